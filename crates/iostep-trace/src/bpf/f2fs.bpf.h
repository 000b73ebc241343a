/* SPDX-License-Identifier: GPL-2.0 */
/*
 * f2fs: nodes and metadata, which it keeps as pages of two inodes without a name.
 *
 * A node block says itself, in its footer, which inode it belongs to. The pages of the other inode
 * are named by their place on the device, which is for the analysis.
 */
#ifndef IOSTEP_F2FS_H
#define IOSTEP_F2FS_H

/* sanity_check_raw_super() of fs/f2fs/super.c takes no other numbers. */
#define F2FS_NODE_INODE 1
#define F2FS_META_INODE 2
/* struct node_footer and struct f2fs_inode of include/linux/f2fs_fs.h. */
#define F2FS_FOOTER_BYTES 24
#define F2FS_GENERATION_OFFSET 68
/* _IO(0xf5, 2), include/uapi/linux/f2fs.h. */
#define F2FS_IOC_COMMIT_ATOMIC_WRITE 0xf502

struct f2fs_footer {
	__u32 node;
	__u32 inode;
};

/*
 * The inode without a name in which an atomic write keeps its blocks, and the file that they are
 * for.
 */
struct f2fs_file {
	__u64 inode;
	__u64 generation;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 10);
	__type(key, __u64);
	__type(value, struct f2fs_file);
} f2fs_atomic_files SEC(".maps");

static __always_inline bool is_f2fs(struct inode *inode)
{
	return BPF_CORE_READ(inode, i_sb, s_magic) == F2FS_SUPER_MAGIC;
}

/* A page of a file was made dirty; it may be under an atomic write. */
static __always_inline void know_atomic_write(struct inode *inode)
{
	struct f2fs_inode_info *owner;
	struct f2fs_file file = {};
	struct inode *copy;
	__u64 number;

	if (!bpf_core_field_exists(struct f2fs_inode_info, cow_inode) || !is_f2fs(inode))
		return;
	owner = (void *)inode - bpf_core_field_offset(struct f2fs_inode_info, vfs_inode);
	copy = BPF_CORE_READ(owner, cow_inode);
	if (!copy)
		return;
	number = BPF_CORE_READ(copy, i_ino);
	file.inode = BPF_CORE_READ(inode, i_ino);
	file.generation = BPF_CORE_READ(inode, i_generation);
	bpf_map_update_elem(&f2fs_atomic_files, &number, &file, BPF_ANY);
}

/* True for the inodes that hold nodes and metadata. */
static __always_inline bool is_f2fs_own(struct inode *inode)
{
	return BPF_CORE_READ(inode, i_ino) <= F2FS_META_INODE && is_f2fs(inode);
}

static __always_inline void read_f2fs_footer(struct wire_segment *segment, __u64 bytes)
{
	struct f2fs_footer footer = {};
	struct f2fs_file *atomic;
	__u64 inode;

	bpf_probe_read_kernel(&footer, sizeof(footer),
			      (void *)(bytes + PAGE_BYTES - F2FS_FOOTER_BYTES));
	if (footer.node != segment->offset)
		return;
	inode = footer.inode;
	atomic = bpf_map_lookup_elem(&f2fs_atomic_files, &inode);
	if (atomic) {
		segment->inode = atomic->inode;
		segment->generation = atomic->generation;
		segment->flags |= SEGMENT_HAS_GENERATION;
		return;
	}
	segment->inode = inode;
	if (footer.node != footer.inode)
		return;
	bpf_probe_read_kernel(&segment->generation, sizeof(segment->generation),
			      (void *)(bytes + F2FS_GENERATION_OFFSET));
	segment->flags |= SEGMENT_HAS_GENERATION;
}

/* bytes: the page's content, 0 if it is not there. */
static __always_inline void set_f2fs(struct wire_segment *segment, struct inode *inode, __u64 index,
				     __u64 bytes)
{
	if (BPF_CORE_READ(inode, i_ino) != F2FS_NODE_INODE) {
		segment->content = CONTENT_F2FS_META;
		return;
	}
	segment->content = CONTENT_F2FS_NODE;
	segment->offset = index;
	if (bytes)
		read_f2fs_footer(segment, bytes);
}

#endif
