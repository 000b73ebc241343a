/* SPDX-License-Identifier: GPL-2.0 */
/* Commits of the filesystem's log, and files that go away. */
#ifndef IOSTEP_JOURNAL_H
#define IOSTEP_JOURNAL_H

/* The transaction that a jbd2 thread is committing. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 10);
	__type(key, __u32);
	__type(value, __u64);
} committing SEC(".maps");

static __always_inline void tell_commit(__u32 type, __u64 commit, __u32 filesystem)
{
	struct wire_commit *record = reserve(sizeof(*record));

	if (!record)
		return;
	record->type = type;
	record->reserved = 0;
	record->filesystem = filesystem;
	record->mono_ns = bpf_ktime_get_ns();
	record->commit = commit;
	submit(record);
}

/* As filesystem_of(), of the one that the log is for. */
static __always_inline __u32 filesystem_of_log(journal_t *journal)
{
	return has_volumes ? journal->j_fs_dev->bd_dev : 0;
}

PROGRAM("jbd2_start_commit", on_commit_start, journal_t *journal, transaction_t *transaction)
{
	__u32 pid = bpf_get_current_pid_tgid();
	__u64 commit;

	if (!journal || !transaction || !is_traced(journal->j_fs_dev))
		return 0;
	commit = transaction->t_tid;
	bpf_map_update_elem(&committing, &pid, &commit, BPF_ANY);
	tell_commit(WIRE_COMMIT_START, commit, filesystem_of_log(journal));
	return 0;
}

PROGRAM("jbd2_end_commit", on_commit_end, journal_t *journal, transaction_t *transaction)
{
	__u32 pid = bpf_get_current_pid_tgid();

	if (!journal || !transaction || !is_traced(journal->j_fs_dev))
		return 0;
	bpf_map_delete_elem(&committing, &pid);
	tell_commit(WIRE_COMMIT_END, transaction->t_tid, filesystem_of_log(journal));
	return 0;
}

/* An inode leaves memory; if nothing names it, the file is gone. */
static __always_inline void inode_leaves(struct inode *inode)
{
	struct wire_file_deleted *record;
	__u64 address = (__u64)inode;

	if (!inode || !is_traced_super(inode->i_sb))
		return;
	bpf_map_delete_elem(&known_files, &address);
	if (has_nameless)
		bpf_map_delete_elem(&nameless_files, &address);
	if (inode->i_nlink)
		return;
	record = reserve(sizeof(*record));
	if (!record)
		return;
	record->type = WIRE_FILE_DELETED;
	record->reserved = 0;
	record->reserved2 = 0;
	record->mono_ns = bpf_ktime_get_ns();
	read_key(&record->file, inode);
	submit(record);
}

PROGRAM("ext4_evict_inode", on_ext4_evict, struct inode *inode)
{
	inode_leaves(inode);
	return 0;
}

PROGRAM("xfs_destroy_inode", on_xfs_destroy, struct xfs_inode *file)
{
	if (file)
		inode_leaves(&file->i_vnode);
	return 0;
}

PROGRAM("btrfs_inode_evict", on_btrfs_evict, struct inode *inode)
{
	inode_leaves(inode);
	return 0;
}

#endif
