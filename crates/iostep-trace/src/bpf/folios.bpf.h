/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Large folios: a folio of many pages becomes dirty once, so the threads that write to it afterwards
 * are not seen there. ext4 and xfs say which range of a file a thread writes; that is kept page by
 * page for a file that several threads write to, as a part of the folio. A page that is written
 * through memory is in no range: where that may be another thread's, the folio's writer is not known.
 */
#ifndef IOSTEP_FOLIOS_H
#define IOSTEP_FOLIOS_H

/* Tells the key of a folio's part from that of a folio. */
#define PART_OF_FOLIO (1ull << 63)

/* A file that was told and is the same still. */
static __always_inline struct known_file *known_file_of(struct inode *inode)
{
	__u64 address = (__u64)inode;
	struct known_file *known = bpf_map_lookup_elem(&known_files, &address);

	if (!known || known->inode != BPF_CORE_READ(inode, i_ino) ||
	    known->generation != BPF_CORE_READ(inode, i_generation))
		return NULL;
	return known;
}

struct parts {
	struct page_key key;
	struct page_dirtier dirtier;
};

static long part_step(__u32 index, struct parts *parts)
{
	bpf_map_update_elem(&dirtiers, &parts->key, &parts->dirtier, BPF_ANY);
	parts->key.index++;
	return 0;
}

/* The thread writes to a file. The last one is a page's: what the page holds is from that one. */
static __always_inline void know_parts(struct inode *inode, __u64 position, __u64 bytes)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid(), first = position >> PAGE_SHIFT, pages;
	struct known_file *known = known_file_of(inode);
	struct parts parts = {};

	if (!bytes)
		return;
	if (!known)
		known = know_file(inode);
	if (!known || (known->dirtier_pid == (__u32)pid_tgid && !known->has_several))
		return;
	know_last_dirtier(known, pid_tgid);
	if (!known->has_several)
		return;
	pages = ((position + bytes - 1) >> PAGE_SHIFT) - first + 1;
	parts.key.mapping = (__u64)BPF_CORE_READ(inode, i_mapping);
	parts.key.index = first | PART_OF_FOLIO;
	parts.dirtier.pid = pid_tgid;
	parts.dirtier.tgid = pid_tgid >> 32;
	parts.dirtier.inode = known->inode;
	parts.dirtier.generation = known->generation;
	parts.dirtier.mono_ns = bpf_ktime_get_ns();
	dirtiers_told += pages;
	bpf_loop(pages > DIRTIERS ? DIRTIERS : pages, part_step, &parts, 0);
	know_current_thread(pid_tgid);
}

PROGRAM("ext4_da_write_end", on_ext4_delayed_write, struct inode *inode, __s64 position,
	unsigned int bytes)
{
	if (inode && is_traced_super(inode->i_sb))
		know_parts(inode, position, bytes);
	return 0;
}

PROGRAM("ext4_write_end", on_ext4_write, struct inode *inode, __s64 position, unsigned int bytes)
{
	if (inode && is_traced_super(inode->i_sb))
		know_parts(inode, position, bytes);
	return 0;
}

/* Before the first of its pages is written, with the inode locked. */
PROGRAM("xfs_file_buffered_write", on_xfs_write, struct kiocb *request, struct iov_iter *bytes)
{
	struct inode *inode;

	if (!request || !bytes)
		return 0;
	inode = BPF_CORE_READ(request, ki_filp, f_inode);
	if (inode && is_traced_super_address(BPF_CORE_READ(inode, i_sb)))
		know_parts(inode, BPF_CORE_READ(request, ki_pos), BPF_CORE_READ(bytes, count));
	return 0;
}

/*
 * A page of xfs is about to be written through memory: of which folio is not told. If it is one that
 * is dirty already, it may be another thread's.
 */
static __always_inline void know_mapped(struct xfs_inode *file)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct known_file *known;
	struct inode *inode;

	if (!file || !is_traced_super(file->i_vnode.i_sb))
		return;
	inode = (void *)file + bpf_core_field_offset(struct xfs_inode, i_vnode);
	known = known_file_of(inode);
	if (known && known->dirtier_pid &&
	    (known->has_several || known->dirtier_pid != (__u32)pid_tgid))
		known->mapped_ns = bpf_ktime_get_ns();
}

PROGRAM("xfs_write_fault", on_xfs_fault, struct xfs_inode *file)
{
	know_mapped(file);
	return 0;
}

/* Its name until Linux 6.12. */
PROGRAM("xfs_filemap_fault", on_xfs_fault_of_old, struct xfs_inode *file, unsigned int order,
	bool is_write)
{
	if (is_write)
		know_mapped(file);
	return 0;
}

/* Where a buffer's bytes are in its file: a folio lies at a multiple of its size in memory. */
static __always_inline __u64 buffer_offset(struct buffer_head *buffer, __u64 folio)
{
	__u64 folio_bytes = (__u64)PAGE_BYTES << (order_of(folio) & 31);

	return BPF_CORE_READ((struct folio *)folio, index) * PAGE_BYTES +
	       ((__u64)BPF_CORE_READ(buffer, b_data) & (folio_bytes - 1));
}

static __always_inline bool is_dirty(__u64 folio)
{
	__u64 flags = 0;

	bpf_probe_read_kernel(&flags, sizeof(flags), (void *)folio);
	return flags & (1ul << bpf_core_enum_value(enum pageflags, PG_dirty));
}

/* True if the thread has just written this page by a call, which was told. */
static __always_inline bool has_written(struct page_key *key, struct page_dirtier *folio, __u32 pid)
{
	struct page_dirtier *part = bpf_map_lookup_elem(&dirtiers, key);

	return part && part->pid == pid && part->mono_ns > folio->mono_ns;
}

/*
 * ext4, and the device itself: a page that is written through memory makes all buffers of its folio
 * dirty (block_page_mkwrite(), fs/buffer.c), one that is written by a call its own; of a device no
 * ranges are told.
 */
PROGRAM("block_dirty_buffer", on_file_buffer, struct buffer_head *buffer)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	bool by_kernel = task->flags & (PF_KTHREAD | PF_IO_WORKER), of_device;
	__u32 pid = bpf_get_current_pid_tgid();
	__u64 folio = head_of((__u64)BPF_CORE_READ(buffer, b_page)), mapping;
	struct page_dirtier *known;
	struct page_key key;
	struct inode *inode;

	if (!order_of(folio) || !is_dirty(folio))
		return 0;
	mapping = (__u64)BPF_CORE_READ((struct folio *)folio, mapping);
	if (!mapping || (mapping & MAPPING_FLAGS))
		return 0;
	key.mapping = mapping;
	key.index = BPF_CORE_READ((struct folio *)folio, index);
	known = bpf_map_lookup_elem(&dirtiers, &key);
	if (!known || known->pid == pid)
		return 0;
	inode = BPF_CORE_READ((struct address_space *)mapping, host);
	of_device = (BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK;
	if (of_device ? task->flags & PF_KTHREAD
		      : by_kernel ||
				is_write_call(syscall_of((struct pt_regs *)bpf_task_pt_regs(task))))
		return 0;
	key.index = (buffer_offset(buffer, folio) >> PAGE_SHIFT) | PART_OF_FOLIO;
	if (of_device || !has_written(&key, known, pid))
		known->is_shared = 1;
	return 0;
}

/*
 * Who wrote a page; NULL: it is not known, but perhaps who was the last to write to its file. Not
 * inline: so its stack is not that of the walk, which is full.
 */
static __noinline struct page_dirtier *dirtier_of(__u64 folio, __u64 index)
{
	struct page_dirtier *whole, *part;
	bool is_unknown, is_mapped;
	struct known_file *known;
	struct page_key key;
	__u64 mapping;

	mapping = (__u64)BPF_CORE_READ((struct folio *)folio, mapping);
	key.mapping = mapping;
	key.index = BPF_CORE_READ((struct folio *)folio, index);
	whole = bpf_map_lookup_elem(&dirtiers, &key);
	if (!whole || !whole->is_large)
		return whole;
	known = known_file_of(BPF_CORE_READ((struct address_space *)mapping, host));
	is_unknown = whole->is_shared;
	is_mapped = known && known->mapped_ns > whole->mono_ns;
	if (!is_unknown && !is_mapped && (!known || !known->has_several))
		return whole;
	key.index = index | PART_OF_FOLIO;
	part = bpf_map_lookup_elem(&dirtiers, &key);
	if (part && part->inode == whole->inode && part->generation == whole->generation &&
	    part->mono_ns > whole->mono_ns)
		return part;
	if (is_unknown || is_mapped || !whole->tells_parts ||
	    (!part && dirtiers_told >= DIRTIERS / 2))
		return NULL;
	return whole;
}

/* True if the pages of a folio may have several writers. */
static __always_inline bool is_by_page(__u64 folio)
{
	struct known_file *known;
	__u64 mapping;

	if (!order_of(folio))
		return false;
	mapping = (__u64)BPF_CORE_READ((struct folio *)folio, mapping);
	if (!mapping || (mapping & MAPPING_FLAGS))
		return false;
	known = known_file_of(BPF_CORE_READ((struct address_space *)mapping, host));
	return known && known->has_several;
}

#endif
