/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel types that the programs read: only the fields they read, in no particular order.
 * libbpf relocates every access to the running kernel's layout (CO-RE), so neither a vmlinux.h
 * nor BTF is needed to build.
 *
 * A type that changed between kernels has a variant with a ___suffix, which libbpf ignores when
 * it looks the type up; the release that changed it stands beside it.
 */
#ifndef IOSTEP_KERNEL_TYPES_H
#define IOSTEP_KERNEL_TYPES_H

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __le16;
typedef __u16 __be16;
typedef __u32 __le32;
typedef __u32 __be32;
typedef __u64 __le64;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef unsigned char blk_status_t;
typedef _Bool bool;

enum { false = 0, true = 1 };

/* include/uapi/linux/magic.h: of filesystems that both objects look into. */
#define BTRFS_SUPER_MAGIC 0x9123683Eul
#define OVERLAYFS_SUPER_MAGIC 0x794c7630ul

/* include/uapi/linux/stat.h */
#define S_IFMT 0170000
#define S_IFDIR 0040000
#define S_IFBLK 0060000

/* include/uapi/linux/bpf.h: the parts that the programs name. */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_NO_PREALLOC = 1 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_RB_AVAIL_DATA = 0, BPF_RB_RING_SIZE = 1 };

#define KERNEL_TYPE __attribute__((preserve_access_index))

struct list_head {
	struct list_head *next;
} KERNEL_TYPE;

struct hlist_node {
	struct hlist_node *next;
} KERNEL_TYPE;

struct hlist_head {
	struct hlist_node *first;
} KERNEL_TYPE;

struct gendisk;
struct dentry;
struct super_block;
struct inode;

struct block_device {
	__u32 bd_dev;
	struct gendisk *bd_disk;
	__u64 bd_start_sect;
} KERNEL_TYPE;

struct gendisk {
	struct block_device *part0;
} KERNEL_TYPE;

struct super_block {
	unsigned long s_magic;
	void *s_fs_info;
	struct dentry *s_root;
	struct block_device *s_bdev;
	__u32 s_dev;
} KERNEL_TYPE;

struct address_space {
	struct inode *host;
} KERNEL_TYPE;

struct inode {
	unsigned short i_mode;
	__u32 i_nlink;
	__u32 i_rdev;
	__u32 i_generation;
	unsigned long i_ino;
	__s64 i_size;
	struct super_block *i_sb;
	struct address_space *i_mapping;
	struct hlist_head i_dentry;
} KERNEL_TYPE;

struct qstr {
	__u64 hash_len;
	const unsigned char *name;
} KERNEL_TYPE;

struct hlist_bl_node {
	struct hlist_bl_node **pprev;
} KERNEL_TYPE;

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	union {
		struct hlist_node d_alias;
	};
} KERNEL_TYPE;

/* Linux 6.18 has a name for the union, 7.2 has none. */
struct dentry___named_union {
	union {
		struct hlist_node d_alias;
	} d_u;
} KERNEL_TYPE;

struct file {
	struct inode *f_inode;
	unsigned int f_flags;
	unsigned int f_mode;
	__s64 f_pos;
} KERNEL_TYPE;

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} KERNEL_TYPE;

struct files_struct {
	struct fdtable *fdt;
} KERNEL_TYPE;

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	/* Threads that have not begun to exit. */
	atomic_t live;
} KERNEL_TYPE;

struct thread_info {
	/* x86: thread_status of arch/x86/include/asm/thread_info.h. */
	__u32 status;
	unsigned long flags;
} KERNEL_TYPE;

struct fs_struct;

struct kernfs_node {
	const char *name;
	struct kernfs_node *__parent;
	__u64 id;
} KERNEL_TYPE;

/* Before Linux 6.15 ("kernfs: Use RCU to access kernfs_node::parent."). */
struct kernfs_node___before_6_15 {
	struct kernfs_node *parent;
} KERNEL_TYPE;

struct cgroup {
	struct kernfs_node *kn;
} KERNEL_TYPE;

struct css_set {
	struct cgroup *dfl_cgrp;
} KERNEL_TYPE;

struct upid {
	int nr;
} KERNEL_TYPE;

/* A number in each of the PID namespaces that a task is in, the innermost last. */
struct pid {
	unsigned int level;
	struct upid numbers[1];
} KERNEL_TYPE;

struct task_struct {
	struct thread_info thread_info;
	struct pid *thread_pid;
	int pid;
	int tgid;
	unsigned int flags;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct files_struct *files;
	struct fs_struct *fs;
	struct signal_struct *signal;
	struct css_set *cgroups;
	char comm[16];
	void *worker_private;
	struct bio_list *bio_list;
} KERNEL_TYPE;

struct bpf_iter_meta {
	struct seq_file *seq;
} KERNEL_TYPE;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} KERNEL_TYPE;

/* Pages and bios. */

struct page {
	unsigned long compound_head;
} KERNEL_TYPE;

/* By Linux 7.2 ("mm: rework compound_head() for power-of-2 sizeof(struct page)"). */
struct page___with_info {
	unsigned long compound_info;
} KERNEL_TYPE;

struct folio {
	struct address_space *mapping;
	unsigned long index;
	void *private;
	unsigned long _flags_1;
} KERNEL_TYPE;

/* Before Linux 6.7 ("mm: free up a word in the first tail page") the order was a byte of its own. */
struct folio___before_6_7 {
	unsigned char _folio_order;
} KERNEL_TYPE;

enum pageflags { PG_head, PG_dirty };

struct bio_vec {
	struct page *bv_page;
	unsigned int bv_len;
	unsigned int bv_offset;
} KERNEL_TYPE;

struct bvec_iter {
	__u64 bi_sector;
	unsigned int bi_size;
	unsigned int bi_idx;
	unsigned int bi_bvec_done;
} KERNEL_TYPE;

/* By Linux 7.3 the same has another name. */
struct bvec_iter___with_offset {
	unsigned int bi_offset;
} KERNEL_TYPE;

struct bio {
	struct block_device *bi_bdev;
	unsigned int bi_opf;
	blk_status_t bi_status;
	struct bvec_iter bi_iter;
	void *bi_end_io;
	void *bi_private;
	struct bio_vec *bi_io_vec;
	void *bi_pool;
} KERNEL_TYPE;

struct blk_mq_hw_ctx {
	unsigned int queue_num;
} KERNEL_TYPE;

struct request {
	struct blk_mq_hw_ctx *mq_hctx;
	int tag;
	/* The elevator's. */
	int internal_tag;
	unsigned int cmd_flags;
	unsigned int rq_flags;
	unsigned int __data_len;
	__u64 __sector;
	__u64 start_time_ns;
	struct request_queue *q;
	struct block_device *part;
	struct bio *bio;
} KERNEL_TYPE;

struct request_queue {
	struct gendisk *disk;
} KERNEL_TYPE;

/* Direct I/O. */

struct kiocb {
	struct file *ki_filp;
	__s64 ki_pos;
	int ki_flags;
} KERNEL_TYPE;

struct iov_iter {
	unsigned long count;
} KERNEL_TYPE;

struct iomap_dio {
	struct kiocb *iocb;
	__s64 size;
} KERNEL_TYPE;

/* By Linux 7.3: a direct I/O of one bio. */
struct iomap_dio_simple {
	struct kiocb *iocb;
	struct bio bio;
} KERNEL_TYPE;

/* ext4 and jbd2. */

struct buffer_head {
	struct block_device *b_bdev;
	__u64 b_blocknr;
	char *b_data;
	struct page *b_page;
	/* Gone by Linux 7.2: bh_submit() gives the bio itself this function. */
	void *b_end_io;
	void *b_private;
} KERNEL_TYPE;

typedef struct journal_s {
	struct block_device *j_fs_dev;
} KERNEL_TYPE journal_t;

typedef struct transaction_s {
	unsigned int t_tid;
} KERNEL_TYPE transaction_t;

struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
} KERNEL_TYPE;

struct ext4_inode_info {
	struct inode vfs_inode;
	struct timespec64 i_crtime;
	unsigned int i_sync_tid;
	unsigned int i_datasync_tid;
} KERNEL_TYPE;

/* xfs. */

struct xfs_inode {
	struct inode i_vnode;
	struct timespec64 i_crtime;
} KERNEL_TYPE;

struct xfs_mount {
	struct super_block *m_super;
} KERNEL_TYPE;

struct xfs_buf_ops {
	char *name;
} KERNEL_TYPE;

struct xfs_buf {
	const struct xfs_buf_ops *b_ops;
} KERNEL_TYPE;

struct xlog_in_core {
	struct list_head ic_callbacks;
} KERNEL_TYPE;

struct xfs_cil_ctx {
	__s64 sequence;
	struct list_head iclog_entry;
} KERNEL_TYPE;

/* btrfs. */

struct btrfs_key {
	__u64 objectid;
} KERNEL_TYPE;

struct btrfs_root {
	struct btrfs_key root_key;
	/* What stat(2) calls the device of the subvolume's files. */
	__u32 anon_dev;
} KERNEL_TYPE;

struct btrfs_inode {
	struct btrfs_root *root;
	__u64 i_otime_sec;
	__u32 i_otime_nsec;
	struct inode vfs_inode;
} KERNEL_TYPE;

/* Before Linux 6.7 ("btrfs: open code timespec64 in struct btrfs_inode"). */
struct btrfs_inode___before_6_7 {
	struct timespec64 i_otime;
	struct inode vfs_inode;
} KERNEL_TYPE;

struct btrfs_device {
	struct block_device *bdev;
} KERNEL_TYPE;

struct btrfs_fs_devices {
	struct btrfs_device *latest_dev;
} KERNEL_TYPE;

struct btrfs_fs_info {
	struct btrfs_fs_devices *fs_devices;
} KERNEL_TYPE;

struct extent_buffer {
	__u64 start;
	__u32 len;
} KERNEL_TYPE;

struct btrfs_ordered_extent {
	__u64 file_offset;
	__u64 num_bytes;
	int compress_type;
} KERNEL_TYPE;

struct btrfs_bio {
	struct btrfs_inode *inode;
	__u64 file_offset;
	/* Since Linux 6.5 ("btrfs: add a btrfs_bio backpointer to the ordered_extent"). */
	struct btrfs_ordered_extent *ordered;
	struct bio bio;
} KERNEL_TYPE;

struct btrfs_io_context {
	struct bio *orig_bio;
} KERNEL_TYPE;

struct btrfs_io_stripe {
	struct btrfs_io_context *bioc;
} KERNEL_TYPE;

/* Before Linux 6.4 struct btrfs_bio had no inode; its private data led to it. */
struct btrfs_bio___before_6_4 {
	void *private;
	__u64 file_offset;
	struct bio bio;
} KERNEL_TYPE;

struct btrfs_dio_private___before_6_4 {
	struct inode *inode;
} KERNEL_TYPE;

struct compressed_bio___before_6_4 {
	struct inode *inode;
	__u64 start;
	unsigned int len;
} KERNEL_TYPE;

/* overlayfs. */

struct ovl_sb {
	struct super_block *sb;
	/* What stat(2) calls the device of this layer's files, if their numbers are not unique. */
	__u32 pseudo_dev;
} KERNEL_TYPE;

struct ovl_layer {
	struct ovl_sb *fs;
} KERNEL_TYPE;

struct ovl_path {
	struct ovl_layer *layer;
	struct dentry *dentry;
} KERNEL_TYPE;

struct ovl_entry {
	unsigned int __numlower;
	struct ovl_path __lowerstack[0];
} KERNEL_TYPE;

struct ovl_fs {
	/* The upper layer's filesystem, then the lower ones'. */
	struct ovl_sb *fs;
	/* Negative: not unique; 0: those of one filesystem; else the bits that tell layers apart. */
	int xino_mode;
} KERNEL_TYPE;

struct ovl_inode {
	struct inode vfs_inode;
	struct ovl_entry *oe;
} KERNEL_TYPE;

/* Before Linux 6.5 ("ovl: move ovl_entry into ovl_inode"). */
struct ovl_inode___before_6_5 {
	struct ovl_path lowerpath;
} KERNEL_TYPE;

/* f2fs. */

struct f2fs_inode_info {
	struct inode vfs_inode;
	struct timespec64 i_crtime;
	/* Since Linux 6.0: where an atomic write keeps its blocks until it is committed. */
	struct inode *cow_inode;
} KERNEL_TYPE;

/* nilfs2. */

struct wait_queue_head {
	struct list_head head;
} KERNEL_TYPE;

struct wait_queue_entry {
	void *private;
	struct list_head entry;
} KERNEL_TYPE;

struct nilfs_cstage {
	int scnt;
} KERNEL_TYPE;

struct nilfs_sc_info {
	struct super_block *sc_super;
	struct wait_queue_head sc_wait_request;
	__u32 sc_seq_accepted;
	struct nilfs_cstage sc_stage;
} KERNEL_TYPE;

struct nilfs_segctor_wait_request {
	struct wait_queue_entry wq;
	__u32 seq;
} KERNEL_TYPE;

struct the_nilfs {
	__u64 ns_seg_seq;
	unsigned long ns_pseg_offset;
} KERNEL_TYPE;

struct nilfs_bmap {
	int b_state;
} KERNEL_TYPE;

struct nilfs_inode_info {
	struct nilfs_bmap *i_bmap;
	struct nilfs_bmap i_bmap_data;
	/* Since Linux 5.18 ("nilfs2: fix lockdep warnings in page operations for btree nodes"). */
	struct inode *i_assoc_inode;
	struct inode vfs_inode;
} KERNEL_TYPE;

/* FAT: fs/direct-io.c. */

struct dio {
	struct inode *inode;
	struct kiocb *iocb;
	long result;
} KERNEL_TYPE;

/* Memory maps. */

struct vm_area_struct {
	struct file *vm_file;
} KERNEL_TYPE;

/* io_uring. */

struct io_wq_work {
	unsigned int flags;
} KERNEL_TYPE;

struct io_cqe {
	int fd;
} KERNEL_TYPE;

struct io_rsrc_node {
	unsigned long file_ptr;
} KERNEL_TYPE;

struct io_rsrc_data {
	unsigned int nr;
	struct io_rsrc_node **nodes;
} KERNEL_TYPE;

struct io_file_table {
	struct io_rsrc_data data;
} KERNEL_TYPE;

struct io_ring_ctx {
	struct io_file_table file_table;
} KERNEL_TYPE;

/* Before Linux 6.13 registered files were an array of pointers. */
struct io_file_table___before_6_13 {
	void *files;
} KERNEL_TYPE;

struct io_ring_ctx___before_6_13 {
	struct io_file_table___before_6_13 file_table;
	unsigned int nr_user_files;
} KERNEL_TYPE;

struct io_kiocb {
	__u8 opcode;
	__u64 flags;
	struct io_cqe cqe;
	struct io_ring_ctx *ctx;
	struct file *file;
	struct io_wq_work work;
} KERNEL_TYPE;

struct io_rw {
	struct kiocb kiocb;
	__u64 addr;
	__u32 len;
	int flags;
} KERNEL_TYPE;

struct filename {
	const char *name;
} KERNEL_TYPE;

/*
 * By Linux 7.2: what io_uring's requests have in the place of a struct filename *, and the same
 * pointer until it is used (fs/namei.c).
 */
struct delayed_filename {
	struct filename *__incomplete_filename;
} KERNEL_TYPE;

struct io_open___delayed {
	struct delayed_filename filename;
} KERNEL_TYPE;

struct io_statx___delayed {
	struct delayed_filename filename;
} KERNEL_TYPE;

struct io_unlink___delayed {
	struct delayed_filename filename;
} KERNEL_TYPE;

struct io_mkdir___delayed {
	struct delayed_filename filename;
} KERNEL_TYPE;

struct io_rename___delayed {
	struct delayed_filename oldpath;
	struct delayed_filename newpath;
} KERNEL_TYPE;

struct io_link___delayed {
	struct delayed_filename oldpath;
	struct delayed_filename newpath;
} KERNEL_TYPE;

struct open_how {
	__u64 flags;
	__u64 mode;
} KERNEL_TYPE;

struct io_open {
	int dfd;
	__u32 file_slot;
	struct filename *filename;
	struct open_how how;
} KERNEL_TYPE;

struct io_close {
	int fd;
	__u32 file_slot;
} KERNEL_TYPE;

struct io_statx {
	int dfd;
	unsigned int flags;
	struct filename *filename;
} KERNEL_TYPE;

struct io_unlink {
	int dfd;
	int flags;
	struct filename *filename;
} KERNEL_TYPE;

struct io_mkdir {
	int dfd;
	__u16 mode;
	struct filename *filename;
} KERNEL_TYPE;

struct io_rename {
	int old_dfd;
	int new_dfd;
	struct filename *oldpath;
	struct filename *newpath;
	int flags;
} KERNEL_TYPE;

struct io_link {
	int old_dfd;
	int new_dfd;
	struct filename *oldpath;
	struct filename *newpath;
	int flags;
} KERNEL_TYPE;

struct io_fadvise {
	__u64 offset;
	__u64 len;
	__u32 advice;
} KERNEL_TYPE;

struct io_ftrunc {
	__s64 len;
} KERNEL_TYPE;

struct io_sync {
	__s64 len;
	__s64 off;
	int flags;
	int mode;
} KERNEL_TYPE;

struct io_uring_cqe {
	__s32 res;
	__u32 flags;
} KERNEL_TYPE;

struct io_worker {
	struct io_wq_work *cur_work;
} KERNEL_TYPE;

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, flags, sp, ss;
} KERNEL_TYPE;
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp, pc, pstate;
};
struct pt_regs {
	union {
		struct user_pt_regs user_regs;
	};
	__u64 orig_x0;
	__s32 syscallno;
} KERNEL_TYPE;
#else
#error "iostep knows the system call registers of x86 and arm64 only"
#endif

#endif
