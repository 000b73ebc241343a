/* SPDX-License-Identifier: GPL-2.0 */
/*
 * nilfs2 (fs/nilfs2/segment.c). Everything is written as logs, one at a time. A log is built by
 * segctord, for fsync or for its timer, or by the caller of fdatasync itself. The stages of building
 * it are told, and the lock that is held meanwhile. Whoever wants a log takes the next request number
 * and waits in a queue; a log answers all requests up to sc_seq_accepted.
 */
#ifndef IOSTEP_NILFS2_H
#define IOSTEP_NILFS2_H

#define NILFS_SUPER_MAGIC 0x3434ul

/* enum of stages, fs/nilfs2/segment.c; enum nilfs2_transaction_transition_state. */
#define NILFS_ST_INIT 0
#define NILFS_ST_DONE 9
#define NILFS_TRANSACTION_UNLOCK 5
#define NILFS_MAX_WAITERS 4096

/* Names a log: where it begins, by the sequence number of its segment, which is never used again. */
static __always_inline __u64 log_id(struct super_block *super)
{
	struct the_nilfs *nilfs = BPF_CORE_READ(super, s_fs_info);

	return BPF_CORE_READ(nilfs, ns_seg_seq) << 32 | (__u32)BPF_CORE_READ(nilfs, ns_pseg_offset);
}

struct waiters {
	struct list_head *entry;
	__u64 end;
	__u64 commit;
	__u32 accepted;
	__u32 filesystem;
};

/* A thread that waits for a log, if this is the one that answers it. */
static __always_inline void tell_waiter(struct nilfs_segctor_wait_request *request,
					struct waiters *walk)
{
	struct task_struct *task = BPF_CORE_READ(request, wq.private);
	__u32 seq = BPF_CORE_READ(request, seq), pid;
	struct sync_state *state;

	if (!task || (__s32)(seq - walk->accepted) > 0)
		return;
	pid = BPF_CORE_READ(task, pid);
	if (BPF_CORE_READ(task, flags) & PF_IO_WORKER && !bpf_map_lookup_elem(&current_syncs, &pid))
		open_worker_sync(task);
	state = bpf_map_lookup_elem(&current_syncs, &pid);
	if (state)
		tell_needs(state, walk->commit, walk->filesystem);
}

static long waiter_step(__u32 index, struct waiters *walk)
{
	__u32 at = bpf_core_field_offset(struct nilfs_segctor_wait_request, wq) +
		   bpf_core_field_offset(struct wait_queue_entry, entry);

	struct list_head *entry = walk->entry;

	if (!entry || (__u64)entry == walk->end)
		return 1;
	tell_waiter((void *)entry - at, walk);
	walk->entry = BPF_CORE_READ(entry, next);
	return 0;
}

static __always_inline void tell_waiters(struct nilfs_sc_info *builder, __u64 commit)
{
	struct waiters walk = { .commit = commit };

	walk.filesystem = filesystem_of(BPF_CORE_READ(builder, sc_super));
	walk.accepted = BPF_CORE_READ(builder, sc_seq_accepted);
	walk.end = (__u64)builder + bpf_core_field_offset(struct nilfs_sc_info, sc_wait_request) +
		   bpf_core_field_offset(struct wait_queue_head, head);
	walk.entry = BPF_CORE_READ(builder, sc_wait_request.head.next);
	bpf_loop(NILFS_MAX_WAITERS, waiter_step, &walk, 0);
}

/* fdatasync builds the log itself, in the caller or in io_uring's worker. */
static __always_inline void tell_builder(__u32 pid, __u64 commit, __u32 filesystem)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	struct sync_state *state;

	if (task->flags & PF_IO_WORKER && !current_sync(pid))
		open_worker_sync(task);
	state = current_sync(pid);
	if (state)
		tell_needs(state, commit, filesystem);
}

static __always_inline void end_log(__u32 pid, __u64 commit, __u32 filesystem)
{
	bpf_map_delete_elem(&committing, &pid);
	tell_commit(WIRE_COMMIT_END, commit, filesystem);
}

/*
 * At its first stage a log has no place yet; after it, what is collected goes into it. A caller may
 * be in the queue a moment later than its number was accepted: so the queue is walked at the last
 * stage too.
 */
PROGRAM("nilfs2_collection_stage_transition", on_nilfs_stage, struct nilfs_sc_info *builder)
{
	__u32 pid = bpf_get_current_pid_tgid(), filesystem;
	__u64 *open, commit;
	int stage;

	if (!builder || !is_traced_super(builder->sc_super))
		return 0;
	filesystem = filesystem_of(builder->sc_super);
	stage = BPF_CORE_READ(builder, sc_stage.scnt);
	open = bpf_map_lookup_elem(&committing, &pid);
	if (stage == NILFS_ST_INIT) {
		if (open)
			end_log(pid, *open, filesystem);
		return 0;
	}
	if (open && stage != NILFS_ST_DONE)
		return 0;
	commit = open ? *open : log_id(builder->sc_super);
	if (!open) {
		bpf_map_update_elem(&committing, &pid, &commit, BPF_ANY);
		tell_commit(WIRE_COMMIT_START, commit, filesystem);
		tell_builder(pid, commit, filesystem);
	}
	tell_waiters(builder, commit);
	return 0;
}

PROGRAM("nilfs2_transaction_transition", on_nilfs_transaction, struct super_block *super,
	void *transaction, int count, unsigned int flags, int state)
{
	__u32 pid = bpf_get_current_pid_tgid();
	__u64 *open;

	if (!super || state != NILFS_TRANSACTION_UNLOCK || !is_traced_super(super))
		return 0;
	open = bpf_map_lookup_elem(&committing, &pid);
	if (open)
		end_log(pid, *open, filesystem_of(super));
	return 0;
}

/*
 * True for a page of the B-tree that maps a file. It is in a mapping of its own, whose host is an
 * inode with the file's number and the file's map (since Linux 5.18) or the file itself (before).
 */
static __always_inline bool is_nilfs_node(struct inode *inode, __u64 mapping)
{
	struct nilfs_inode_info *info;
	__u64 map;

	if (BPF_CORE_READ(inode, i_sb, s_magic) != NILFS_SUPER_MAGIC)
		return false;
	if (!bpf_core_field_exists(struct nilfs_inode_info, i_assoc_inode))
		return (__u64)BPF_CORE_READ(inode, i_mapping) != mapping;
	info = (void *)inode - bpf_core_field_offset(struct nilfs_inode_info, vfs_inode);
	map = (__u64)BPF_CORE_READ(info, i_bmap);
	return map &&
	       map != (__u64)info + bpf_core_field_offset(struct nilfs_inode_info, i_bmap_data);
}

/* Of an inode that is_nilfs_node(). */
static __always_inline void set_nilfs_node(struct wire_segment *segment, struct inode *inode)
{
	struct inode *owner = NULL;

	if (bpf_core_field_exists(struct nilfs_inode_info, i_assoc_inode)) {
		struct nilfs_inode_info *info =
			(void *)inode - bpf_core_field_offset(struct nilfs_inode_info, vfs_inode);

		owner = BPF_CORE_READ(info, i_assoc_inode);
	}
	if (!owner)
		owner = inode;
	segment->content = CONTENT_BLOCK_MAP;
	segment->inode = BPF_CORE_READ(owner, i_ino);
	segment->generation = BPF_CORE_READ(owner, i_generation);
}

#endif
