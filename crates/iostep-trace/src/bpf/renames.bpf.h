/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Files under the names that they get after they were told of, without any more I/O of theirs.
 *
 * No tracepoint tells of a changed name. So where a system call that changes some returns, what was
 * told of and had the call's names is looked at again. What that does not find is found by sweeps over
 * all files that were told of: after a directory above some was renamed, at times if a call's names
 * could not be followed, and at the end.
 */
#ifndef IOSTEP_RENAMES_H
#define IOSTEP_RENAMES_H

#define IORING_OP_RENAMEAT 35
/* Sweeps in system calls of others may take a part of the time, and so much in a row. */
#define SWEEP_SHARE 10
#define SWEEP_CREDIT_NS 20000000ull
/* A sweep leaves this part of the ring to other records. */
#define SWEEP_RING_PART 4
/* IDs of system calls that are looked up in a table. */
#define MAX_CALLS 512

/* Which arguments of a system call are paths whose names it changes, a bit each. */
const volatile __u8 naming_calls[MAX_CALLS] = {};

struct sweep {
	__u64 told;
	__u64 is_cut;
};

__u64 sweep_ended_ns = 0, sweep_took_ns = 0, sweep_credit_ns = 0;

static __always_inline bool is_file_of(struct known_file *known, struct inode *inode)
{
	return known->inode == BPF_CORE_READ(inode, i_ino) &&
	       known->generation == BPF_CORE_READ(inode, i_generation);
}

/* True if the file was told of as something else than it is now; then it is told again. */
static __noinline bool look_again(struct inode *inode, struct known_file *known)
{
	struct dentry *name;

	if (!inode || !known || !is_file_of(known, inode) ||
	    !is_traced_super_address(BPF_CORE_READ(inode, i_sb)))
		return false;
	name = present_name(inode, known->name_hash, known->parent);
	/*
	 * Without one it is on its way out of memory, or its name is. Then others' names may be where
	 * the list of its own was (i_rcu of struct inode).
	 */
	if (!name || BPF_CORE_READ(name, d_inode) != inode ||
	    (fingerprint_of(name) == known->fingerprint &&
	     known->unlinked == !BPF_CORE_READ(inode, i_nlink)))
		return false;
	tell_name(inode, known, name);
	return true;
}

static long sweep_step(void *map, __u64 *key, struct known_file *known, struct sweep *sweep)
{
	if (bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) >
	    bpf_ringbuf_query(&events, BPF_RB_RING_SIZE) / SWEEP_RING_PART) {
		sweep->is_cut = 1;
		return 1;
	}
	sweep->told += look_again((struct inode *)*key, known);
	return 0;
}

/* Tells all files anew whose paths are not those that were told. */
static __noinline void sweep_files(void)
{
	struct sweep sweep = {};
	__u64 start_ns = bpf_ktime_get_ns();

	sweep_wanted = SWEEP_NOT;
	bpf_for_each_map_elem(&known_files, sweep_step, &sweep, 0);
	if (sweep.is_cut)
		want_sweep(SWEEP_NOW);
	sweep_ended_ns = bpf_ktime_get_ns();
	sweep_took_ns = sweep_ended_ns - start_ns;
}

/* Called by the reader. */
SEC("syscall")
int sweep(void *context)
{
	sweep_files();
	return 0;
}

static __always_inline void sweep_if_cheap(void)
{
	__u64 credit_ns = sweep_credit_ns + (bpf_ktime_get_ns() - sweep_ended_ns) / SWEEP_SHARE;

	credit_ns = at_most(credit_ns, SWEEP_CREDIT_NS);
	want_sweep(SWEEP_NOW);
	if (credit_ns < sweep_took_ns)
		return;
	sweep_credit_ns = credit_ns - sweep_took_ns;
	sweep_files();
}

/* What had a name that was told of, and has another now. */
enum renamed { RENAMED_FILE = 1, RENAMED_DIRECTORY = 2 };

static __always_inline __u32 look_at(__u64 address)
{
	struct inode *inode = (struct inode *)address;
	struct known_file *file = bpf_map_lookup_elem(&known_files, &address);
	struct known_directory *directory;
	struct dentry *name;

	if (file && look_again(inode, file))
		return RENAMED_FILE;
	directory = bpf_map_lookup_elem(&known_directories, &address);
	name = directory ? first_name(inode) : NULL;
	if (!name || directory->inode != BPF_CORE_READ(inode, i_ino) ||
	    is_called(name, directory->name_hash, directory->parent))
		return 0;
	/* It is told with the files below, and is known by its new name then. */
	bpf_map_delete_elem(&known_directories, &address);
	return RENAMED_DIRECTORY;
}

struct last_component {
	struct path_scratch *scratch;
	__u64 hash;
	/* Of the last component that is not empty. */
	__u64 last;
	__u32 bytes;
};

static long component_step(__u32 index, struct last_component *walk)
{
	char letter;

	if (index >= walk->bytes)
		return 1;
	letter = letter_at(walk->scratch, index);
	if (!letter)
		return 1;
	if (letter == '/') {
		walk->hash = FNV_BASIS;
	} else {
		walk->hash = (walk->hash ^ (__u8)letter) * FNV_PRIME;
		walk->last = walk->hash;
	}
	return 0;
}

/* The hash of the last component of a path in a process's memory; 0 if that cannot be read. */
static __noinline __u64 hash_of_path(__u64 path)
{
	struct path_scratch *scratch = take_scratch();
	struct last_component walk = { .scratch = scratch, .hash = FNV_BASIS };
	long bytes;

	if (!scratch)
		return 0;
	bytes = bpf_probe_read_user_str(scratch->path, sizeof(scratch->path), (void *)path);
	/* The end of a path that is longer is not there. */
	if (bytes > 0 && bytes < (long)sizeof(scratch->path)) {
		walk.bytes = bytes;
		bpf_loop(sizeof(scratch->path), component_step, &walk, 0);
	}
	give_back(&scratch->users);
	return walk.last;
}

/* A call that changed the name at the end of a path returned. Not static, as tell_new_name(). */
__noinline int name_changed(__u64 path)
{
	__u64 hash = hash_of_path(path);
	struct namesakes *known = bpf_map_lookup_elem(&names_index, &hash);
	struct namesakes all;
	__u32 found = 0;

	if (!hash)
		want_sweep(SWEEP_LATER);
	if (!known)
		return 0;
	all = *known;
	for (int i = 0; i < NAMESAKES; i++)
		if (all.inodes[i])
			found |= look_at(all.inodes[i]);
	if (found & RENAMED_DIRECTORY)
		sweep_if_cheap();
	/* There may be more namesakes than are kept. */
	if (!found && all.inodes[NAMESAKES - 1])
		want_sweep(SWEEP_LATER);
	return 0;
}

/* After a system call without an error. */
static __always_inline void names_changed(struct pt_regs *regs)
{
	__u32 nr = syscall_left(regs);
	__u8 paths = nr < MAX_CALLS ? naming_calls[nr] : 0;

	if (!paths)
		return;
	if (paths & 1)
		name_changed(syscall_arg0(regs));
	if (paths & 2)
		name_changed(syscall_arg1(regs));
	if (paths & 8)
		name_changed(syscall_arg3(regs));
}

#endif
