/* SPDX-License-Identifier: GPL-2.0 */
/*
 * FAT: who changed a block of the allocation table, of a directory or of a file, and direct I/O by
 * fs/direct-io.c, which other filesystems have left.
 */
#ifndef IOSTEP_FAT_H
#define IOSTEP_FAT_H

/* Buffers are smaller than their page, which is told dirty once for all of them. */
static __always_inline void buffer_key(struct page_key *key, __u64 block)
{
	key->mapping = 0;
	key->index = block;
}

/*
 * FAT has no holes: whoever appends behind a gap fills it with zeros, which others may overwrite
 * before they are written. A dirty page is not told of again, but its buffers are.
 */
static __always_inline void know_last_writer(struct buffer_head *buffer,
					     struct page_dirtier *writer)
{
	__u64 folio = head_of((__u64)BPF_CORE_READ(buffer, b_page));
	struct page_dirtier *known;
	struct page_key key;

	key.mapping = (__u64)BPF_CORE_READ((struct folio *)folio, mapping);
	key.index = BPF_CORE_READ((struct folio *)folio, index);
	known = bpf_map_lookup_elem(&dirtiers, &key);
	if (!known)
		return;
	known->pid = writer->pid;
	known->tgid = writer->tgid;
}

PROGRAM("block_dirty_buffer", on_dirty_buffer, struct buffer_head *buffer)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct page_dirtier dirtier = {};
	struct page_key key;

	/* The kernel writes back inodes that a process changed: that process is the one. */
	if (task->flags & PF_KTHREAD || !is_traced(buffer->b_bdev))
		return 0;
	buffer_key(&key, buffer->b_blocknr);
	dirtier.pid = pid_tgid;
	dirtier.tgid = pid_tgid >> 32;
	bpf_map_update_elem(&dirtiers, &key, &dirtier, BPF_ANY);
	know_last_writer(buffer, &dirtier);
	know_current_thread(pid_tgid);
	return 0;
}

static __always_inline void set_buffer_dirtier(struct wire_segment *segment,
					       struct buffer_head *buffer)
{
	struct page_dirtier *dirtier;
	struct page_key key;

	buffer_key(&key, BPF_CORE_READ(buffer, b_blocknr));
	dirtier = bpf_map_lookup_elem(&dirtiers, &key);
	if (!dirtier)
		return;
	segment->dirtier_pid = dirtier->pid;
	segment->dirtier_tgid = dirtier->tgid;
}

/* How far a direct I/O has come. */
struct direct_progress {
	__u64 request;
	__s64 position;
	__s64 mapped_bytes;
	__s64 queued_bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 12);
	__type(key, __u64);
	__type(value, struct direct_progress);
} direct_progress SEC(".maps");

/*
 * Where in its file a bio of a direct I/O begins: nothing but the sum of the bios before it says so.
 * struct dio is used again at once, and so is the kiocb on a thread's stack; but dio->result, the
 * bytes whose place is known, only grows within one I/O, and all that was queued lies below it.
 */
static __always_inline __u64 direct_offset(struct dio *dio, __u32 bytes)
{
	struct kiocb *request = BPF_CORE_READ(dio, iocb);
	struct direct_progress now = {}, *before;
	__u64 key = (__u64)dio;

	now.request = (__u64)request;
	now.position = BPF_CORE_READ(request, ki_pos);
	now.mapped_bytes = BPF_CORE_READ(dio, result);
	before = bpf_map_lookup_elem(&direct_progress, &key);
	if (before && before->request == now.request && before->position == now.position &&
	    before->mapped_bytes < now.mapped_bytes &&
	    before->queued_bytes + bytes <= now.mapped_bytes)
		now.queued_bytes = before->queued_bytes;
	now.queued_bytes += bytes;
	/* The last bio holds all that is mapped. */
	if (now.queued_bytes == now.mapped_bytes)
		bpf_map_delete_elem(&direct_progress, &key);
	else
		bpf_map_update_elem(&direct_progress, &key, &now, BPF_ANY);
	return now.position + now.queued_bytes - bytes;
}

#endif
