/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Files and threads: who they are, told once.
 *
 * A file is described when it is first seen and again when its name changes; a thread when it is
 * first seen and again when its comm or its control group changes, and with it the first thread of
 * its process, whose comm is the program's. The inode is alive whenever one of its pages is dirtied,
 * queued or synced, so a file that is deleted later still has its name here.
 */
#ifndef IOSTEP_NAMES_H
#define IOSTEP_NAMES_H

#define EXT4_SUPER_MAGIC 0xEF53ul
#define XFS_SUPER_MAGIC 0x58465342ul
#define F2FS_SUPER_MAGIC 0xF2F52010ul
#define PF_IO_WORKER 0x00000010
#define PF_KTHREAD 0x00200000

struct known_file {
	unsigned long inode;
	/* The key once more: from here it is a number to verifiers, as functions take them. */
	__u64 address;
	__u64 subvolume;
	__u32 generation;
	/* The last thread that made a page of it dirty. */
	__u32 dirtier_pid;
	__u32 dirtier_tgid;
	/* Another thread did before. */
	__u32 has_several;
	/* When a page was last written through memory that may be another thread's; see folios.bpf.h. */
	__u64 mapped_ns;
	/* What its name hung on when it was last told. */
	__u64 parent;
	__u64 name_hash;
	/* Of the whole path. */
	__u64 fingerprint;
	/* It was told that nothing names it any more. */
	__u32 unlinked;
	__u32 is_told;
};

/* Key: address of the struct inode. An inode that was freed and reused has another identity. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, __u64);
	__type(value, struct known_file);
} known_files SEC(".maps");

struct known_thread {
	__u64 comm[2];
	/* Numbers are given again: the same one with the same comm may be another process's. */
	__u32 tgid;
	__u32 reserved;
	/* 0: not known. */
	__u64 cgroup;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, __u32);
	__type(value, struct known_thread);
} known_threads SEC(".maps");

/*
 * Inodes that had no name when they were told about: deleted and still open, or made by O_TMPFILE,
 * so that linkat(2) may yet name them. By the address of the struct inode, as known_files.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 10);
	__type(key, __u64);
	__type(value, __u32);
} nameless_files SEC(".maps");

/* Lets the hook on every system call's exit return at once while there was none. */
__u32 has_nameless = 0;

static __always_inline __u64 subvolume_of(struct inode *inode, struct super_block *super)
{
	struct btrfs_inode *owner;

	if (!bpf_core_type_exists(struct btrfs_inode) ||
	    BPF_CORE_READ(super, s_magic) != BTRFS_SUPER_MAGIC)
		return 0;
	owner = (void *)inode - bpf_core_field_offset(struct btrfs_inode, vfs_inode);
	return BPF_CORE_READ(owner, root, root_key.objectid);
}

static __always_inline void read_key(struct wire_file_key *key, struct inode *inode)
{
	key->subvolume = subvolume_of(inode, BPF_CORE_READ(inode, i_sb));
	key->inode = BPF_CORE_READ(inode, i_ino);
	key->generation = BPF_CORE_READ(inode, i_generation);
	key->filesystem = filesystem_of(BPF_CORE_READ(inode, i_sb));
}

static __always_inline void read_birth(struct wire_file *record, struct inode *inode)
{
	__u64 magic = BPF_CORE_READ(inode, i_sb, s_magic);

	record->birth_wall_s = 0;
	record->birth_wall_ns = 0;
	if (magic == EXT4_SUPER_MAGIC && bpf_core_field_exists(struct ext4_inode_info, i_crtime)) {
		struct ext4_inode_info *owner =
			(void *)inode - bpf_core_field_offset(struct ext4_inode_info, vfs_inode);
		record->birth_wall_s = BPF_CORE_READ(owner, i_crtime.tv_sec);
		record->birth_wall_ns = BPF_CORE_READ(owner, i_crtime.tv_nsec);
	} else if (magic == XFS_SUPER_MAGIC && bpf_core_field_exists(struct xfs_inode, i_crtime)) {
		struct xfs_inode *owner =
			(void *)inode - bpf_core_field_offset(struct xfs_inode, i_vnode);
		record->birth_wall_s = BPF_CORE_READ(owner, i_crtime.tv_sec);
		record->birth_wall_ns = BPF_CORE_READ(owner, i_crtime.tv_nsec);
	} else if (magic == BTRFS_SUPER_MAGIC &&
		   bpf_core_field_exists(struct btrfs_inode, i_otime_sec)) {
		struct btrfs_inode *owner =
			(void *)inode - bpf_core_field_offset(struct btrfs_inode, vfs_inode);
		record->birth_wall_s = BPF_CORE_READ(owner, i_otime_sec);
		record->birth_wall_ns = BPF_CORE_READ(owner, i_otime_nsec);
	} else if (magic == BTRFS_SUPER_MAGIC &&
		   bpf_core_field_exists(struct btrfs_inode___before_6_7, i_otime)) {
		struct btrfs_inode___before_6_7 *owner =
			(void *)inode -
			bpf_core_field_offset(struct btrfs_inode___before_6_7, vfs_inode);
		record->birth_wall_s = BPF_CORE_READ(owner, i_otime.tv_sec);
		record->birth_wall_ns = BPF_CORE_READ(owner, i_otime.tv_nsec);
	} else if (magic == F2FS_SUPER_MAGIC &&
		   bpf_core_field_exists(struct f2fs_inode_info, i_crtime)) {
		struct f2fs_inode_info *owner =
			(void *)inode - bpf_core_field_offset(struct f2fs_inode_info, vfs_inode);
		record->birth_wall_s = BPF_CORE_READ(owner, i_crtime.tv_sec);
		record->birth_wall_ns = BPF_CORE_READ(owner, i_crtime.tv_nsec);
	}
}

static __noinline void tell_file(struct inode *inode, struct dentry *name)
{
	struct path_scratch *scratch;
	struct path_walk *walk;
	__u64 address = (__u64)inode;
	__u64 bytes;

	if (!inode)
		return;
	scratch = take_scratch();
	if (!scratch) {
		/* It is told when it is next seen. */
		bpf_map_delete_elem(&known_files, &address);
		count_lost(LOST_RING_FULL);
		return;
	}
	walk = &scratch->walk;
	walk->at = name;
	walk->root = BPF_CORE_READ(inode, i_sb, s_root);
	walk->bytes = 0;
	walk->whole = 0;
	if (name)
		bpf_loop(PATH_COMPONENTS, path_step, &scratch, 0);
	index_path(scratch, address, name);
	bytes = walk->bytes;
	scratch->record.type = WIRE_FILE;
	scratch->record.mode = BPF_CORE_READ(inode, i_mode);
	scratch->record.path_bytes = bytes;
	scratch->record.mono_ns = bpf_ktime_get_ns();
	read_key(&scratch->record.file, inode);
	read_birth(&scratch->record, inode);
	scratch->record.unlinked = BPF_CORE_READ(inode, i_nlink) == 0;
	scratch->record.path_is_whole = walk->whole;
	scratch->record.reserved = 0;
	bytes = sizeof(struct wire_file) + at_most(bytes, WIRE_PATH_BYTES + NAME_BYTES);
	output(scratch, bytes, BPF_RB_NO_WAKEUP);
	give_back(&scratch->users);
}

static __always_inline void tell_name(struct inode *inode, struct known_file *known,
				      struct dentry *name)
{
	known->name_hash = BPF_CORE_READ(name, d_name.hash_len);
	known->parent = (__u64)BPF_CORE_READ(name, d_parent);
	known->fingerprint = fingerprint_of(name);
	known->unlinked = !BPF_CORE_READ(inode, i_nlink);
	known->is_told = 1;
	tell_file(inode, name);
}

/*
 * Tells about the file with an inode's address that was not told, or whose inode has another name in
 * the first place now. Not static: so a verifier goes through it once and not at each call.
 */
__noinline int tell_new_name(__u64 address)
{
	struct known_file *known = bpf_map_lookup_elem(&known_files, &address);
	struct inode *inode = (struct inode *)address;
	struct dentry *name;

	if (!known)
		return 0;
	name = present_name(inode, known->name_hash, known->parent);
	if (!known->is_told || !is_called(name, known->name_hash, known->parent))
		tell_name(inode, known, name);
	return 0;
}

/* Not on the stack, which is full. */
const volatile struct known_file no_file = {};

/*
 * Tells about a file unless it is known under its present name. The entry is 0 if the map had no
 * room for it; then it is told when it is next seen.
 */
static __always_inline struct known_file *know_file(struct inode *inode)
{
	__u64 address = (__u64)inode;
	struct known_file *known = bpf_map_lookup_elem(&known_files, &address);
	struct dentry *name = first_name(inode);
	unsigned long number = BPF_CORE_READ(inode, i_ino);
	__u32 generation = BPF_CORE_READ(inode, i_generation);

	if (known && known->inode == number && known->generation == generation) {
		/* A name that is gone from memory is no new name. */
		if (!name || is_called(name, known->name_hash, known->parent))
			return known;
	} else {
		bpf_map_update_elem(&known_files, &address, (const void *)&no_file, BPF_ANY);
		known = bpf_map_lookup_elem(&known_files, &address);
		if (!known)
			return NULL;
		known->inode = number;
		known->address = address;
		known->generation = generation;
		known->subvolume = subvolume_of(inode, BPF_CORE_READ(inode, i_sb));
		if (!BPF_CORE_READ(inode, i_nlink)) {
			bpf_map_update_elem(&nameless_files, &address, &generation, BPF_ANY);
			has_nameless = 1;
		}
	}
	tell_new_name(known->address);
	return known;
}

/* One of nameless_files, after something was linked. */
static long name_step(void *map, __u64 *key, __u32 *generation, void *context)
{
	__u64 address = *key;
	struct inode *inode = (struct inode *)address;
	struct known_file *known = bpf_map_lookup_elem(&known_files, &address);

	/* The memory may be another inode's by now. */
	if (!known || known->inode != BPF_CORE_READ(inode, i_ino) ||
	    known->generation != BPF_CORE_READ(inode, i_generation)) {
		bpf_map_delete_elem(&nameless_files, &address);
		return 0;
	}
	if (BPF_CORE_READ(inode, i_nlink)) {
		bpf_map_delete_elem(&nameless_files, &address);
		know_file(inode);
	}
	return 0;
}

/*
 * A link was made, of whatever: no tracepoint tells of which file, and the file may never again
 * have a dirty page that does.
 */
static __noinline void name_nameless_files(void)
{
	bpf_for_each_map_elem(&nameless_files, name_step, NULL, 0);
}

static long cgroup_step(__u32 index, struct path_scratch **of)
{
	struct path_scratch *scratch = *of;
	struct path_walk *walk = &scratch->walk;
	struct kernfs_node *group = walk->group;
	struct kernfs_node *parent;

	if (bpf_core_field_exists(struct kernfs_node, __parent))
		parent = BPF_CORE_READ(group, __parent);
	else
		parent = BPF_CORE_READ((struct kernfs_node___before_6_15 *)group, parent);
	if (!parent) {
		walk->whole = 1;
		return 1;
	}
	if (!add_name(scratch, BPF_CORE_READ(group, name)))
		return 1;
	walk->group = parent;
	return 0;
}

/*
 * Tells which control group a thread is in. The group may be gone as soon as its last thread is,
 * so that only here it surely has a name.
 */
static __noinline void tell_cgroup(struct task_struct *task, __u32 pid)
{
	struct path_scratch *scratch = take_scratch();
	struct kernfs_node *group = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn);
	struct known_thread *known;
	__u64 bytes;

	if (!scratch) {
		/* It is told when the thread is next seen. */
		known = bpf_map_lookup_elem(&known_threads, &pid);
		if (known)
			known->cgroup = 0;
		return;
	}
	scratch->walk.group = group;
	scratch->walk.bytes = 0;
	scratch->walk.whole = 0;
	scratch->cgroup.type = WIRE_CGROUP;
	scratch->cgroup.pid = pid;
	scratch->cgroup.mono_ns = bpf_ktime_get_ns();
	scratch->cgroup.cgroup = BPF_CORE_READ(group, id);
	scratch->cgroup.reserved = 0;
	bpf_loop(PATH_COMPONENTS, cgroup_step, &scratch, 0);
	bytes = scratch->walk.bytes;
	scratch->cgroup.path_is_whole = scratch->walk.whole;
	scratch->cgroup.path_bytes = bytes;
	bytes = sizeof(struct wire_cgroup) + at_most(bytes, WIRE_PATH_BYTES + NAME_BYTES);
	output(&scratch->cgroup, bytes, BPF_RB_NO_WAKEUP);
	give_back(&scratch->users);
}

/* The number of a thread's control group; 0 if the kernel has none. */
static __always_inline __u64 cgroup_of(struct task_struct *task)
{
	if (!bpf_core_field_exists(struct task_struct, cgroups))
		return 0;
	return BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
}

static __always_inline void tell_process(struct task_struct *task, __u32 pid,
					 struct known_thread *now)
{
	struct wire_process *record = reserve(sizeof(*record));

	if (!record)
		return;
	record->type = WIRE_PROCESS;
	record->kernel = (BPF_CORE_READ(task, flags) & PF_KTHREAD) != 0;
	record->pid = pid;
	record->mono_ns = bpf_ktime_get_ns();
	record->tgid = now->tgid;
	record->parent_tgid = BPF_CORE_READ(task, real_parent, tgid);
	__builtin_memcpy(record->comm, now->comm, sizeof(record->comm));
	submit(record);
}

/*
 * Tells about a thread unless it is known under this comm and in this control group; true if it was
 * not, so that the group is to be told.
 */
static __always_inline bool know_comm(struct task_struct *task, __u32 pid, struct known_thread *now)
{
	struct known_thread *known = bpf_map_lookup_elem(&known_threads, &pid);
	bool is_named = known && known->comm[0] == now->comm[0] && known->comm[1] == now->comm[1] &&
			known->tgid == now->tgid;

	if (is_named && known->cgroup == now->cgroup)
		return false;
	bpf_map_update_elem(&known_threads, &pid, now, BPF_ANY);
	if (!is_named)
		tell_process(task, pid, now);
	return true;
}

/*
 * The program's name is the comm of its first thread, which may never do I/O itself. A worker of
 * io_uring is a thread of the process that it works for (create_io_thread, kernel/fork.c).
 */
static __noinline bool know_process(struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	struct known_thread now = {};

	BPF_CORE_READ_INTO(&now.comm, leader, comm);
	now.tgid = BPF_CORE_READ(leader, tgid);
	now.cgroup = cgroup_of(leader);
	return know_comm(leader, now.tgid, &now);
}

/*
 * Tells about a thread, and its process, unless it is known so. All that is called is called from
 * here: deeper, the stacks would not fit into the 512 bytes of older kernels.
 */
static __always_inline void know_thread_as(struct task_struct *task, __u32 pid,
					   struct known_thread *now)
{
	bool has_groups = bpf_core_field_exists(struct task_struct, cgroups);

	if (!know_comm(task, pid, now))
		return;
	if (has_groups)
		tell_cgroup(task, pid);
	if (pid != now->tgid && know_process(task) && has_groups)
		tell_cgroup(BPF_CORE_READ(task, group_leader), now->tgid);
}

/*
 * Tells about the current thread, and its process, unless it is known under its present comm and in
 * its present control group.
 */
static __always_inline void know_current_thread(__u64 pid_tgid)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	struct known_thread now = {};
	__u32 pid = pid_tgid;

	bpf_get_current_comm(now.comm, sizeof(now.comm));
	now.tgid = pid_tgid >> 32;
	if (bpf_core_field_exists(struct task_struct, cgroups))
		now.cgroup = bpf_get_current_cgroup_id();
	know_thread_as(task, pid, &now);
}

#endif
