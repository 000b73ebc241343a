/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sync calls: from the system call, or from the filesystem's fsync inside another one (a write
 * to an O_SYNC file, msync, io_uring, a kernel server). A thread is in one sync call at a time.
 */
#ifndef IOSTEP_SYNCS_H
#define IOSTEP_SYNCS_H

#define IORING_OP_LINKAT 39
#define IOCB_DSYNC 2
#define IOCB_SYNC 4

/* An io_uring request that is an fsync, and the worker that runs it. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 12);
	__type(key, __u64);
	__type(value, __u32);
} uring_syncs SEC(".maps");

static __always_inline struct file *file_of(struct task_struct *task, __u32 fd)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **slots = BPF_CORE_READ(table, fd);
	struct file *file = NULL;

	if (!slots || fd >= BPF_CORE_READ(table, max_fds))
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), slots + fd);
	return file;
}

static __always_inline bool is_write_call(int nr)
{
	return nr == nr_write || nr == nr_pwrite64 || nr == nr_writev || nr == nr_pwritev ||
	       nr == nr_pwritev2;
}

/* Fills the parts of the record that the current system call tells. */
static __always_inline void read_call(struct wire_sync_enter *record, struct task_struct *task)
{
	struct pt_regs *regs;
	struct file *file;

	record->syscall = -1;
	record->file_flags = 0;
	record->write_flags = 0;
	if (task->flags & (PF_KTHREAD | PF_IO_WORKER))
		return;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	record->syscall = syscall_of(regs);
	if (!is_write_call(record->syscall))
		return;
	file = file_of(task, syscall_arg0(regs));
	if (file)
		record->file_flags = BPF_CORE_READ(file, f_flags);
	if (record->syscall == nr_pwritev2)
		record->write_flags = syscall_arg5(regs);
}

/*
 * Opens a sync call of the current thread and tells about it. filesystem: what is synced where there
 * is no inode, or 0 for everything. keep: it will be closed by a hook;
 * otherwise only its start is known. Returns its time, which names it together with the thread.
 */
static __noinline __u64 open_sync(struct inode *inode, __u32 filesystem, __u32 via, __u32 data_only,
				  __u32 keep)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 pid = pid_tgid;
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	struct sync_state state = {};
	struct wire_sync_enter *record;
	bool is_file;

	know_current_thread(pid_tgid);
	is_file = inode && (BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFBLK;
	if (is_file)
		know_file(inode);
	state.enter_ns = bpf_ktime_get_ns();
	state.inode = (__u64)inode;
	state.via = via;
	state.data_only = data_only;
	state.pid = pid;
	if (via == SYNC_VIA_URING) {
		struct io_worker *worker = task->worker_private;
		struct io_wq_work *work = BPF_CORE_READ(worker, cur_work);

		state.uring_request = (__u64)work - bpf_core_field_offset(struct io_kiocb, work);
		bpf_map_update_elem(&uring_syncs, &state.uring_request, &pid, BPF_ANY);
	}
	if (keep && !bpf_map_update_elem(&current_syncs, &pid, &state, BPF_NOEXIST))
		__sync_fetch_and_add(&open_syncs, 1);
	record = reserve(sizeof(*record));
	if (!record)
		return state.enter_ns;
	record->type = WIRE_SYNC_ENTER;
	record->via = via;
	record->flags = (data_only ? SYNC_DATA_ONLY : 0) | (is_file ? SYNC_HAS_FILE : 0);
	record->pid = pid;
	record->mono_ns = state.enter_ns;
	record->tgid = pid_tgid >> 32;
	__builtin_memset(&record->file, 0, sizeof(record->file));
	record->file.filesystem = filesystem;
	if (is_file)
		read_key(&record->file, inode);
	else if (inode && has_volumes)
		record->file.filesystem = BPF_CORE_READ(inode, i_rdev);
	read_call(record, task);
	submit(record);
	return state.enter_ns;
}

static __always_inline void close_sync(struct sync_state *state, bool has_result, __s64 result)
{
	struct wire_sync_exit *record = reserve(sizeof(*record));
	__u32 pid = state->pid;

	if (record) {
		record->type = WIRE_SYNC_EXIT;
		record->flags = has_result ? SYNC_HAS_RESULT : 0;
		record->pid = pid;
		record->mono_ns = bpf_ktime_get_ns();
		record->enter_ns = state->enter_ns;
		record->result = result;
		submit(record);
	}
	if (!bpf_map_delete_elem(&current_syncs, &pid))
		__sync_fetch_and_add(&open_syncs, -1);
}

static __always_inline void tell_needs(struct sync_state *state, __u64 commit, __u32 filesystem)
{
	struct wire_sync_needs *record = reserve(sizeof(*record));

	if (!record)
		return;
	record->type = WIRE_SYNC_NEEDS;
	record->reserved = 0;
	record->pid = state->pid;
	record->mono_ns = bpf_ktime_get_ns();
	record->enter_ns = state->enter_ns;
	record->commit = commit;
	record->filesystem = filesystem;
	record->reserved2 = 0;
	submit(record);
}

/* What syncfs(2) there syncs. An overlay syncs its upper layer: ovl_sync_fs(). */
static __always_inline struct super_block *synced_super(struct super_block *super)
{
	struct ovl_fs *overlay;

	if (BPF_CORE_READ(super, s_magic) == OVERLAYFS_SUPER_MAGIC &&
	    bpf_core_field_exists(struct ovl_sb, sb)) {
		overlay = BPF_CORE_READ(super, s_fs_info);
		super = BPF_CORE_READ(overlay, fs, sb);
	}
	return super;
}

PROGRAM("sys_enter", on_syscall, struct pt_regs *regs, long id)
{
	bool commits = id == nr_ioctl && syscall_arg1(regs) == F2FS_IOC_COMMIT_ATOMIC_WRITE;
	struct super_block *super;
	struct task_struct *task;
	struct inode *inode;
	struct file *file;

	if (id != nr_fsync && id != nr_fdatasync && id != nr_sync_file_range && id != nr_syncfs &&
	    id != nr_sync && !commits)
		return 0;
	if (id == nr_sync) {
		open_sync(NULL, 0, SYNC_VIA_SYSCALL, 0, 1);
		return 0;
	}
	task = (struct task_struct *)bpf_get_current_task_btf();
	file = file_of(task, syscall_arg0(regs));
	inode = file ? BPF_CORE_READ(file, f_inode) : NULL;
	if (!inode)
		return 0;
	if (id == nr_syncfs) {
		super = synced_super(BPF_CORE_READ(inode, i_sb));
		if (is_traced_super_address(super))
			open_sync(NULL, filesystem_of(super), SYNC_VIA_SYSCALL, 0, 1);
		return 0;
	}
	if (!is_traced_inode_address(inode) || (commits && !is_f2fs(inode)))
		return 0;
	open_sync(inode, 0, SYNC_VIA_SYSCALL, id == nr_fdatasync, 1);
	return 0;
}

PROGRAM("sys_exit", on_syscall_exit, struct pt_regs *regs, long result)
{
	struct sync_state *state = current_sync(bpf_get_current_pid_tgid());

	if (state)
		close_sync(state, state->via == SYNC_VIA_SYSCALL, result);
	if (result)
		return 0;
	if (has_nameless && syscall_of(regs) == nr_linkat)
		name_nameless_files();
	names_changed(regs);
	return 0;
}

/* The filesystem's fsync begins; the thread may be in a sync system call already. */
static __always_inline void filesystem_sync(struct inode *inode, __u32 data_only, bool has_exit)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	struct sync_state *state = current_sync(bpf_get_current_pid_tgid());
	__u32 flags = task->flags;

	if (state) {
		state->inode = (__u64)inode;
		state->data_only = data_only;
		return;
	}
	if (flags & PF_IO_WORKER)
		open_sync(inode, 0, SYNC_VIA_URING, data_only, 1);
	else
		open_sync(inode, 0, SYNC_VIA_FILESYSTEM, data_only,
			  has_exit || !(flags & PF_KTHREAD));
}

PROGRAM("ext4_sync_file_enter", on_ext4_fsync, struct file *file, int datasync)
{
	struct inode *inode = file ? file->f_inode : NULL;

	if (inode && is_traced_super(inode->i_sb))
		filesystem_sync(inode, datasync != 0, true);
	return 0;
}

PROGRAM("ext4_sync_file_exit", on_ext4_fsync_exit, struct inode *inode, int result)
{
	struct sync_state *state = current_sync(bpf_get_current_pid_tgid());
	struct ext4_inode_info *owner;
	__u32 commit;

	if (!inode || !state || state->inode != (__u64)inode)
		return 0;
	owner = (void *)inode - bpf_core_field_offset(struct ext4_inode_info, vfs_inode);
	commit = state->data_only ? BPF_CORE_READ(owner, i_datasync_tid)
				  : BPF_CORE_READ(owner, i_sync_tid);
	if (commit)
		tell_needs(state, commit, filesystem_of(inode->i_sb));
	if (state->via == SYNC_VIA_URING || state->via == SYNC_VIA_FILESYSTEM)
		close_sync(state, true, result);
	return 0;
}

PROGRAM("xfs_file_fsync", on_xfs_fsync, struct xfs_inode *file)
{
	if (file && is_traced_super(file->i_vnode.i_sb))
		filesystem_sync(&file->i_vnode, 0, false);
	return 0;
}

PROGRAM("xfs_dir_fsync", on_xfs_directory_fsync, struct xfs_inode *file)
{
	if (file && is_traced_super(file->i_vnode.i_sb))
		filesystem_sync(&file->i_vnode, 0, false);
	return 0;
}

/* xfs_log_force_seq(): the argument named lsn is the CIL sequence that must become durable. */
PROGRAM("xfs_log_force", on_xfs_log_force, struct xfs_mount *mount, __s64 sequence)
{
	struct sync_state *state = current_sync(bpf_get_current_pid_tgid());

	if (mount && state && sequence && is_traced_super(mount->m_super))
		tell_needs(state, sequence, filesystem_of(mount->m_super));
	return 0;
}

PROGRAM("btrfs_sync_file", on_btrfs_fsync, const struct file *file, int datasync)
{
	struct inode *inode = file ? file->f_inode : NULL;

	if (inode && is_traced_super(inode->i_sb))
		filesystem_sync(inode, datasync != 0, false);
	return 0;
}

/* By Linux 7.2 there are two in the place of btrfs_sync_file. */
PROGRAM("btrfs_sync_file_enter", on_btrfs_fsync_enter, const struct file *file, int datasync)
{
	struct inode *inode = file ? file->f_inode : NULL;

	if (inode && is_traced_super(inode->i_sb))
		filesystem_sync(inode, datasync != 0, true);
	return 0;
}

PROGRAM("btrfs_sync_file_exit", on_btrfs_fsync_exit, const struct file *file, int result)
{
	struct sync_state *state = current_sync(bpf_get_current_pid_tgid());

	if (!file || !state || state->inode != (__u64)file->f_inode)
		return 0;
	if (state->via == SYNC_VIA_URING || state->via == SYNC_VIA_FILESYSTEM)
		close_sync(state, true, result);
	return 0;
}

/* Ends the sync calls that io_uring workers run where the filesystem does not tell their end. */
PROGRAM_BY(1, "io_uring_complete", on_uring_complete, void *context, void *request)
{
	__u64 key = (__u64)request;
	struct sync_state *state;
	__u32 *pid;

	if (has_nameless && BPF_CORE_READ((struct io_kiocb *)request, opcode) == IORING_OP_LINKAT)
		name_nameless_files();
	/* Always a worker's, as it may wait (io_renameat_prep(), io_uring/fs.c). */
	if ((bpf_get_current_task_btf()->flags & PF_IO_WORKER) &&
	    BPF_CORE_READ((struct io_kiocb *)request, opcode) == IORING_OP_RENAMEAT)
		sweep_if_cheap();
	if (!open_syncs)
		return 0;
	pid = bpf_map_lookup_elem(&uring_syncs, &key);
	if (!pid)
		return 0;
	state = bpf_map_lookup_elem(&current_syncs, pid);
	if (state && state->uring_request == key)
		close_sync(state, false, 0);
	bpf_map_delete_elem(&uring_syncs, &key);
	return 0;
}

#endif
