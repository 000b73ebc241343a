/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sync calls where no tracepoint tells of the fsync: on most filesystems (nilfs2, FAT, exfat, NTFS)
 * and on a device itself. fsync(2) and its kin are seen at the system call everywhere; here are those
 * that another call implies: a write to an O_SYNC file, msync, and io_uring's fsync in its worker.
 */
#ifndef IOSTEP_SILENT_H
#define IOSTEP_SILENT_H

#define O_DSYNC 010000
#define O_SYNC_ONLY 04000000
#define RWF_DSYNC 2
#define RWF_SYNC 4
#define MS_SYNC 4
#define IORING_OP_FSYNC 3

/* True for a file of a filesystem that tells of its fsync by itself; what it tells stays as it is. */
static __always_inline bool tells_fsync(struct inode *inode)
{
	unsigned long magic;

	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK)
		return false;
	magic = BPF_CORE_READ(inode, i_sb, s_magic);
	return magic == EXT4_SUPER_MAGIC || magic == XFS_SUPER_MAGIC ||
	       magic == BTRFS_SUPER_MAGIC || magic == F2FS_SUPER_MAGIC;
}

struct mapped_file {
	struct inode *inode;
};

static long take_mapped_file(struct task_struct *task, struct vm_area_struct *area,
			     struct mapped_file *found)
{
	struct file *file = BPF_CORE_READ(area, vm_file);

	found->inode = file ? BPF_CORE_READ(file, f_inode) : NULL;
	return 0;
}

/* The file that msync writes out; 0 for memory without one. */
static __always_inline struct inode *synced_mapping(struct task_struct *task, struct pt_regs *regs)
{
	struct mapped_file found = {};

	if (!(syscall_arg2(regs) & MS_SYNC))
		return NULL;
	bpf_find_vma(task, syscall_arg0(regs), take_mapped_file, &found, 0);
	return found.inode;
}

/* The file of a write that is durable when it returns; 0 for another write. */
static __always_inline struct inode *durably_written(struct task_struct *task, struct pt_regs *regs,
						     long id, __u32 *data_only)
{
	struct file *file = file_of(task, syscall_arg0(regs));
	__u32 flags, write_flags = 0;

	if (!file)
		return NULL;
	flags = BPF_CORE_READ(file, f_flags);
	if (id == nr_pwritev2)
		write_flags = syscall_arg5(regs);
	if (!(flags & O_DSYNC) && !(write_flags & (RWF_DSYNC | RWF_SYNC)))
		return NULL;
	*data_only = !(flags & O_SYNC_ONLY) && !(write_flags & RWF_SYNC);
	return BPF_CORE_READ(file, f_inode);
}

PROGRAM("sys_enter", on_silent_syscall, struct pt_regs *regs, long id)
{
	struct task_struct *task;
	struct inode *inode;
	__u32 data_only = 0;

	if (id != nr_msync && !is_write_call(id))
		return 0;
	task = (struct task_struct *)bpf_get_current_task_btf();
	inode = id == nr_msync ? synced_mapping(task, regs)
			       : durably_written(task, regs, id, &data_only);
	if (inode && is_traced_inode_address(inode) && !tells_fsync(inode))
		open_sync(inode, 0, SYNC_VIA_FILESYSTEM, data_only, 1);
	return 0;
}

/* The fsync request that an io_uring worker is at; 0 for anything else. */
static __always_inline struct io_kiocb *worker_fsync(struct task_struct *task)
{
	struct io_worker *worker = BPF_CORE_READ(task, worker_private);
	struct io_wq_work *work = worker ? BPF_CORE_READ(worker, cur_work) : NULL;
	struct io_kiocb *request;

	if (!work)
		return NULL;
	request = (void *)work - bpf_core_field_offset(struct io_kiocb, work);
	return BPF_CORE_READ(request, opcode) == IORING_OP_FSYNC ? request : NULL;
}

/* The same as know_current_thread(), for a thread that is not running here. */
static __always_inline void know_thread(struct task_struct *task, __u32 pid)
{
	struct known_thread now = {};

	BPF_CORE_READ_INTO(&now.comm, task, comm);
	now.tgid = BPF_CORE_READ(task, tgid);
	now.cgroup = cgroup_of(task);
	know_thread_as(task, pid, &now);
}

/*
 * Opens the fsync of an io_uring worker, which may be asleep by now: nothing told of its start, so
 * it begins here. Its end is told by on_uring_complete().
 */
static __noinline void open_worker_sync(struct task_struct *task)
{
	struct io_kiocb *request = worker_fsync(task);
	struct wire_sync_enter *record;
	struct sync_state state = {};
	struct inode *inode;
	bool is_file;
	__u32 pid;

	if (!request)
		return;
	inode = BPF_CORE_READ(request, file, f_inode);
	if (!inode || !is_traced_inode_address(inode) || tells_fsync(inode))
		return;
	pid = BPF_CORE_READ(task, pid);
	know_thread(task, pid);
	is_file = (BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFBLK;
	if (is_file)
		know_file(inode);
	state.enter_ns = bpf_ktime_get_ns();
	state.inode = (__u64)inode;
	state.via = SYNC_VIA_URING;
	state.pid = pid;
	state.uring_request = (__u64)request;
	bpf_map_update_elem(&uring_syncs, &state.uring_request, &pid, BPF_ANY);
	if (bpf_map_update_elem(&current_syncs, &pid, &state, BPF_NOEXIST))
		return;
	__sync_fetch_and_add(&open_syncs, 1);
	record = reserve(sizeof(*record));
	if (!record)
		return;
	__builtin_memset(record, 0, sizeof(*record));
	record->type = WIRE_SYNC_ENTER;
	record->via = SYNC_VIA_URING;
	record->flags = is_file ? SYNC_HAS_FILE : 0;
	record->pid = pid;
	record->mono_ns = state.enter_ns;
	record->tgid = BPF_CORE_READ(task, tgid);
	record->syscall = -1;
	if (is_file)
		read_key(&record->file, inode);
	else if (has_volumes)
		record->file.filesystem = BPF_CORE_READ(inode, i_rdev);
	submit(record);
}

/* The fsync that the current thread is at, if it is a worker of io_uring; its time, or 0. */
static __noinline __u64 sync_of_worker(__u32 pid)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	struct sync_state *state;

	if (!(task->flags & PF_IO_WORKER))
		return 0;
	open_worker_sync(task);
	state = current_sync(pid);
	return state ? state->enter_ns : 0;
}

#endif
