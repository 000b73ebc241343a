/* SPDX-License-Identifier: GPL-2.0 */
/* f2fs's own tracepoints: fsync, and inodes that go away. */
#ifndef IOSTEP_F2FS_HOOKS_H
#define IOSTEP_F2FS_HOOKS_H

/* Tells whether it is fsync or fdatasync only when it ends. */
PROGRAM("f2fs_sync_file_enter", on_f2fs_fsync, struct inode *inode)
{
	struct sync_state *state = current_sync(bpf_get_current_pid_tgid());

	if (inode && is_traced_super(inode->i_sb))
		filesystem_sync(inode, state ? state->data_only : 0, true);
	return 0;
}

PROGRAM("f2fs_sync_file_exit", on_f2fs_fsync_exit, struct inode *inode, int checkpoint_reason,
	int datasync, int result)
{
	struct sync_state *state = current_sync(bpf_get_current_pid_tgid());

	if (!state || state->inode != (__u64)inode)
		return 0;
	if (state->via == SYNC_VIA_URING || state->via == SYNC_VIA_FILESYSTEM)
		close_sync(state, true, result);
	return 0;
}

PROGRAM("f2fs_evict_inode", on_f2fs_evict, struct inode *inode)
{
	__u64 number;

	if (!inode || !is_traced_super(inode->i_sb))
		return 0;
	number = inode->i_ino;
	/* The blocks of an atomic write were the file's all along. */
	if (bpf_map_delete_elem(&f2fs_atomic_files, &number))
		inode_leaves(inode);
	return 0;
}

#endif
