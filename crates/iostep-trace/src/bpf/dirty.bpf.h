/* SPDX-License-Identifier: GPL-2.0 */
/* Who made a page dirty: the process behind an I/O that a kworker submits later. */
#ifndef IOSTEP_DIRTY_H
#define IOSTEP_DIRTY_H

/* Bits in a page's mapping: anonymous memory, movable pages (include/linux/page-flags.h). */
#define MAPPING_FLAGS 3ul
#define DIRTIERS (1 << 18)

struct page_key {
	__u64 mapping;
	__u64 index;
};

struct page_dirtier {
	__u32 pid;
	__u32 tgid;
	/* Mappings are reused with their inodes: the identity tells an old entry. */
	__u64 inode;
	__u32 generation;
	/* Of a large folio: see folios.bpf.h. */
	__u8 is_large;
	__u8 tells_parts;
	__u8 is_shared;
	__u8 reserved;
	__u64 mono_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, DIRTIERS);
	__type(key, struct page_key);
	__type(value, struct page_dirtier);
} dirtiers SEC(".maps");

/* How often it was told who wrote a page, or nearly: as long as that is less, none was forgotten. */
__u32 dirtiers_told = 0;

static __always_inline __u64 head_of(__u64 page)
{
	__u64 size = bpf_core_type_size(struct page), head;

	if (!bpf_core_field_exists(struct page___with_info, compound_info)) {
		head = BPF_CORE_READ((struct page *)page, compound_head);
		return (head & 1) ? head - 1 : page;
	}
	head = BPF_CORE_READ((struct page___with_info *)page, compound_info);
	if (!(head & 1))
		return page;
	/* A mask where the size of struct page is a power of 2: compound_info_has_mask(). */
	return size & (size - 1) ? head - 1 : page & head;
}

static __always_inline __u32 order_of(__u64 head)
{
	__u64 flags = 0;

	bpf_probe_read_kernel(&flags, sizeof(flags), (void *)head);
	if (!(flags & (1ul << bpf_core_enum_value(enum pageflags, PG_head))))
		return 0;
	if (bpf_core_field_exists(struct folio___before_6_7, _folio_order))
		return BPF_CORE_READ((struct folio___before_6_7 *)head, _folio_order);
	return BPF_CORE_READ((struct folio *)head, _flags_1) & 0xff;
}

/* The first 8 bytes of names, as numbers: "f2fs_gc-", "btrfs-cl"(eaner). */
#define F2FS_COLLECTOR 0x2d63675f73663266ul
#define BTRFS_CLEANER 0x6c632d7366727462ul

/*
 * The filesystem's own threads that write blocks of others anew: f2fs's garbage collection, btrfs's
 * autodefrag (btrfs_run_defrag_inodes, fs/btrfs/defrag.c). What they make dirty is their own doing.
 */
static __always_inline bool is_rewriter(void)
{
	__u64 comm[2] = {};

	bpf_get_current_comm(comm, sizeof(comm));
	return comm[0] == F2FS_COLLECTOR || comm[0] == BTRFS_CLEANER;
}

/* True in fsync(2) and its kin, which write nothing of their own. */
static __always_inline bool is_syncing(void)
{
	struct sync_state *state = current_sync(bpf_get_current_pid_tgid());

	return state && state->via == SYNC_VIA_SYSCALL;
}

/*
 * jbd2 makes a committed page dirty again so that it is written in place (data=journal), as does a
 * thread that syncs the file, and write-back what it could not write: the process that wrote it stays
 * the one.
 */
static __always_inline bool is_refiled(struct page_key *key, struct inode *inode)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	struct page_dirtier *known;

	if (is_rewriter() || (!(task->flags & PF_KTHREAD) && !is_syncing()))
		return false;
	known = bpf_map_lookup_elem(&dirtiers, key);
	return known && known->inode == inode->i_ino && known->generation == inode->i_generation;
}

/* True if the filesystem says which pages of a large folio are written (folios.bpf.h). */
static __always_inline bool tells_parts(struct super_block *super)
{
	return super->s_magic == EXT4_SUPER_MAGIC || super->s_magic == XFS_SUPER_MAGIC;
}

static __always_inline bool is_traced_inode(struct inode *inode)
{
	if ((inode->i_mode & S_IFMT) == S_IFBLK)
		return device_with(inode->i_rdev, inode->i_rdev, DEVICE_HOLDS) != NO_DEVICE ||
		       is_volume(inode->i_rdev);
	return is_traced_super(inode->i_sb);
}

/* The same for an address that came through a plain read, which the verifier does not trust. */
static __always_inline bool is_traced_inode_address(struct inode *inode)
{
	__u32 number = BPF_CORE_READ(inode, i_rdev);

	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK)
		return device_with(number, number, DEVICE_HOLDS) != NO_DEVICE || is_volume(number);
	return is_traced_super_address(BPF_CORE_READ(inode, i_sb));
}

/* The thread is now the last that wrote to the file. */
static __always_inline void know_last_dirtier(struct known_file *known, __u64 pid_tgid)
{
	if (known->dirtier_pid && known->dirtier_pid != (__u32)pid_tgid)
		known->has_several = 1;
	known->dirtier_pid = pid_tgid;
	known->dirtier_tgid = pid_tgid >> 32;
}

static __always_inline void know_dirtier(struct page_key *key, struct inode *inode, bool is_large)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct page_dirtier dirtier = {};
	struct known_file *known;

	dirtier.pid = pid_tgid;
	dirtier.tgid = pid_tgid >> 32;
	dirtier.inode = inode->i_ino;
	dirtier.generation = inode->i_generation;
	dirtier.is_large = is_large;
	dirtier.tells_parts = is_large && tells_parts(inode->i_sb);
	dirtier.mono_ns = bpf_ktime_get_ns();
	dirtiers_told++;
	bpf_map_update_elem(&dirtiers, key, &dirtier, BPF_ANY);
	know_current_thread(pid_tgid);
	if ((inode->i_mode & S_IFMT) == S_IFBLK)
		return;
	know_atomic_write(inode);
	known = know_file(inode);
	if (known)
		know_last_dirtier(known, pid_tgid);
}

PROGRAM("writeback_dirty_folio", on_dirty_folio, struct folio *folio, struct address_space *mapping)
{
	struct inode *inode = mapping ? mapping->host : NULL;
	struct page_key key;

	if (!inode || !is_traced_inode(inode))
		return 0;
	key.mapping = (__u64)mapping;
	key.index = folio->index;
	if (!is_refiled(&key, inode))
		know_dirtier(&key, inode, order_of((__u64)folio) != 0);
	return 0;
}

/*
 * data=journal: before Linux 6.3 a write puts a page into the transaction without making it dirty;
 * jbd2 does so once it is committed (ext4_journalled_write_end, fs/ext4/inode.c).
 */
PROGRAM("ext4_journalled_write_end", on_ext4_journalled_write, struct inode *inode, __s64 position)
{
	struct page_key key;

	if (!inode || !is_traced_super(inode->i_sb))
		return 0;
	key.mapping = (__u64)inode->i_mapping;
	key.index = (__u64)position >> PAGE_SHIFT;
	know_dirtier(&key, inode, false);
	return 0;
}

#endif
