/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Names in the kernel's memory: those of an inode, paths from them upwards, and whose names they are.
 */
#ifndef IOSTEP_PATHS_H
#define IOSTEP_PATHS_H

#define PATH_COMPONENTS 40
#define NAME_BYTES 256
/* Links of an inode that are looked at. */
#define MOST_LINKS 16
/* FNV-1a: http://www.isthe.com/chongo/tech/comp/fnv/ */
#define FNV_PRIME 0x100000001b3ull
#define FNV_BASIS 0xcbf29ce484222325ull

struct path_walk {
	/* Where the walk is: a file's name, or a control group. */
	union {
		struct dentry *at;
		struct kernfs_node *group;
	};
	union {
		struct dentry *root;
		/* Of the letters of a name, once the names are together. */
		__u64 hash;
	};
	/* The file's; 0 above it. */
	__u64 inode;
	__u32 bytes;
	__u32 whole;
};

struct path_scratch {
	/* The path follows either. */
	union {
		struct wire_file record;
		struct {
			char before[sizeof(struct wire_file) - sizeof(struct wire_cgroup)];
			struct wire_cgroup cgroup;
		};
	};
	char path[WIRE_PATH_BYTES + NAME_BYTES];
	__u32 users;
	/* Not on the stack, which is full. */
	struct path_walk walk;
};

/* Of a processor: programs interrupt each other, and are preempted. */
#define PATH_SCRATCHES (ENTRIES + 2)

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PATH_SCRATCHES);
	__type(key, __u32);
	__type(value, struct path_scratch);
} path_scratch SEC(".maps");

/* Puts a name behind the others; false if that cannot be. */
static __always_inline bool add_name(struct path_scratch *scratch, const void *name)
{
	__u32 at = scratch->walk.bytes;
	long length;

	if (at >= WIRE_PATH_BYTES)
		return false;
	length = bpf_probe_read_kernel_str(scratch->path + (at & (WIRE_PATH_BYTES - 1)), NAME_BYTES,
					   name);
	if (length <= 0)
		return false;
	scratch->walk.bytes = at + length;
	return true;
}

static long path_step(__u32 index, struct path_scratch **of)
{
	struct path_scratch *scratch = *of;
	struct path_walk *walk = &scratch->walk;
	struct dentry *name = walk->at;
	struct dentry *parent;

	if (name == walk->root) {
		walk->whole = 1;
		return 1;
	}
	parent = BPF_CORE_READ(name, d_parent);
	if (parent == name || !add_name(scratch, BPF_CORE_READ(name, d_name.name)))
		return 1;
	walk->at = parent;
	return 0;
}

/* One that nobody uses, to be given back; a program that is preempted keeps its own. */
static __always_inline struct path_scratch *take_scratch(void)
{
	struct path_scratch *scratch;

	for (__u32 at = 0; at < PATH_SCRATCHES; at++) {
		__u32 index = at;

		scratch = bpf_map_lookup_elem(&path_scratch, &index);
		if (scratch && take(&scratch->users))
			return scratch;
	}
	return NULL;
}

/* The name that is a link in an inode's list of names. */
static __always_inline struct dentry *name_at(struct hlist_node *node)
{
	if (!node)
		return NULL;
	if (bpf_core_field_exists(struct dentry___named_union, d_u))
		return (void *)node -
		       bpf_core_field_offset(struct dentry___named_union, d_u.d_alias);
	return (void *)node - bpf_core_field_offset(struct dentry, d_alias);
}

static __always_inline struct dentry *first_name(struct inode *inode)
{
	return name_at(BPF_CORE_READ(inode, i_dentry.first));
}

static __always_inline bool is_called(struct dentry *name, __u64 hash, __u64 parent)
{
	return BPF_CORE_READ(name, d_name.hash_len) == hash &&
	       (__u64)BPF_CORE_READ(name, d_parent) == parent;
}

struct links_walk {
	struct hlist_node *node;
	/* What the name that was told hung on. */
	__u64 hash;
	__u64 parent;
	/* The name that was told, another one, and one that was removed; 0 if there is none. */
	struct dentry *told;
	struct dentry *living;
	struct dentry *removed;
};

static long link_step(__u32 index, struct links_walk *walk)
{
	struct hlist_node *node = walk->node;
	struct dentry *name = name_at(node);
	bool is_told;

	if (!name)
		return 1;
	is_told = is_called(name, walk->hash, walk->parent);
	if (!BPF_CORE_READ(name, d_hash.pprev)) {
		if (is_told || !walk->removed)
			walk->removed = name;
	} else if (is_told) {
		walk->told = name;
		return 1;
	} else if (!walk->living) {
		walk->living = name;
	}
	walk->node = BPF_CORE_READ(node, next);
	return 0;
}

/*
 * The name of an inode that was told, by what it hung on; if that was removed, another that was not;
 * if all were, the one that was told or else any. A removed name is still there while the file is
 * open, but no path leads to it (d_unhashed()).
 */
static __noinline struct dentry *present_name(struct inode *inode, __u64 hash, __u64 parent)
{
	struct links_walk walk = {
		.node = BPF_CORE_READ(inode, i_dentry.first),
		.hash = hash,
		.parent = parent,
	};

	bpf_loop(MOST_LINKS, link_step, &walk, 0);
	if (walk.told)
		return walk.told;
	return walk.living ? walk.living : walk.removed;
}

struct upward_walk {
	struct dentry *at;
	__u64 all;
};

static long fingerprint_step(__u32 index, struct upward_walk *walk)
{
	struct dentry *name = walk->at;
	struct dentry *parent = BPF_CORE_READ(name, d_parent);

	if (!name || parent == name)
		return 1;
	walk->all = walk->all * FNV_PRIME + BPF_CORE_READ(name, d_name.hash_len) + (__u64)parent;
	walk->at = parent;
	return 0;
}

/* Of all names from this one upwards: another number if one of them is changed or moved. */
static __noinline __u64 fingerprint_of(struct dentry *name)
{
	struct upward_walk walk = { .at = name };

	bpf_loop(PATH_COMPONENTS, fingerprint_step, &walk, 0);
	return walk.all;
}

/* A directory that a told file lies in or below. */
struct known_directory {
	__u64 inode;
	__u64 parent;
	__u64 name_hash;
};

/* Key: address of the struct inode. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, __u64);
	__type(value, struct known_directory);
} known_directories SEC(".maps");

/* Addresses of inodes that were called alike, the last one first. */
#define NAMESAKES 4
struct namesakes {
	__u64 inodes[NAMESAKES];
};

/*
 * Key: a hash of the last component of a path. A system call that changes a name tells of no inode;
 * so the files and directories that were told of are found by the name that it has.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 15);
	__type(key, __u64);
	__type(value, struct namesakes);
} names_index SEC(".maps");

/* There may be names that changed and were not told: in a second, or at once. */
enum sweep_want { SWEEP_NOT = 0, SWEEP_LATER = 1, SWEEP_NOW = 2 };
volatile __u64 sweep_wanted SEC(".data.sweep") = SWEEP_NOT;

static __always_inline void want_sweep(__u64 when)
{
	if (sweep_wanted < when)
		sweep_wanted = when;
}

/* What is new in a map; not on the stack, which is full. */
const volatile struct namesakes no_namesakes = {};
const volatile struct known_directory no_directory = {};

static __always_inline void index_name(__u64 hash, __u64 inode)
{
	struct namesakes *known = bpf_map_lookup_elem(&names_index, &hash);

	if (!known) {
		bpf_map_update_elem(&names_index, &hash, (const void *)&no_namesakes, BPF_ANY);
		known = bpf_map_lookup_elem(&names_index, &hash);
	}
	if (!known || known->inodes[0] == inode)
		return;
	for (int i = NAMESAKES - 1; i; i--)
		known->inodes[i] = known->inodes[i - 1];
	known->inodes[0] = inode;
}

/* False if the directory is known, and so are those above. */
static __always_inline bool index_directory(__u64 hash, struct dentry *name)
{
	struct inode *inode = BPF_CORE_READ(name, d_inode);
	__u64 address = (__u64)inode;
	struct known_directory *known = bpf_map_lookup_elem(&known_directories, &address);
	__u64 number = BPF_CORE_READ(inode, i_ino);

	if (known && known->inode == number) {
		if (is_called(name, known->name_hash, known->parent))
			return false;
		want_sweep(SWEEP_NOW);
	} else {
		bpf_map_update_elem(&known_directories, &address, (const void *)&no_directory,
				    BPF_ANY);
		known = bpf_map_lookup_elem(&known_directories, &address);
	}
	if (known) {
		known->inode = number;
		known->parent = (__u64)BPF_CORE_READ(name, d_parent);
		known->name_hash = BPF_CORE_READ(name, d_name.hash_len);
	}
	index_name(hash, address);
	return true;
}

static __always_inline char letter_at(struct path_scratch *scratch, __u64 index)
{
	return scratch->path[at_most(index, sizeof(scratch->path) - 1)];
}

static long index_step(__u32 index, struct path_scratch **of)
{
	struct path_walk *walk = &(*of)->walk;
	struct dentry *name = walk->at;
	char letter;

	if (index >= walk->bytes)
		return 1;
	letter = letter_at(*of, index);
	if (letter) {
		walk->hash = (walk->hash ^ (__u8)letter) * FNV_PRIME;
		return 0;
	}
	if (walk->inode)
		index_name(walk->hash, walk->inode);
	else if (!index_directory(walk->hash, name))
		return 1;
	walk->inode = 0;
	walk->hash = FNV_BASIS;
	walk->at = BPF_CORE_READ(name, d_parent);
	return 0;
}

/* Makes a file and the directories above it known by the names that a walk put together. */
static __always_inline void index_path(struct path_scratch *scratch, __u64 inode,
				       struct dentry *name)
{
	scratch->walk.at = name;
	scratch->walk.inode = inode;
	scratch->walk.hash = FNV_BASIS;
	bpf_loop(WIRE_PATH_BYTES + NAME_BYTES, index_step, &scratch, 0);
}

#endif
