/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The records that the BPF programs put into the ring buffer.
 *
 * This header is the single source of truth: the programs include it, and the Rust types are
 * generated from the BTF of the compiled object. Times are CLOCK_MONOTONIC ns, sectors are 512
 * bytes from the start of the whole disk.
 */
#ifndef IOSTEP_WIRE_H
#define IOSTEP_WIRE_H

enum wire_type {
	WIRE_QUEUE = 1,
	WIRE_ISSUE = 2,
	WIRE_COMPLETE = 3,
	WIRE_REQUEUE = 4,
	WIRE_SPLIT = 5,
	WIRE_SYNC_ENTER = 6,
	WIRE_SYNC_EXIT = 7,
	WIRE_SYNC_NEEDS = 8,
	WIRE_COMMIT_START = 9,
	WIRE_COMMIT_END = 10,
	WIRE_PROCESS = 11,
	WIRE_FILE = 12,
	WIRE_FILE_DELETED = 13,
	WIRE_BIO_END = 14,
	WIRE_REMAP = 15,
	WIRE_FLUSH_END = 16,
	WIRE_CGROUP = 17,
	WIRE_OLDER = 18,
};

/* What was behind the pages of a segment; see iostep_model::event::Content. */
enum wire_content {
	CONTENT_UNKNOWN = 0,
	CONTENT_FILE = 1,
	CONTENT_FILE_DIRECT = 2,
	CONTENT_BUFFER = 3,
	CONTENT_JOURNAL_BLOCK = 4,
	CONTENT_FAST_COMMIT = 5,
	CONTENT_XFS_BUFFER = 6,
	CONTENT_XFS_LOG = 7,
	CONTENT_BTRFS_NODE = 8,
	CONTENT_BTRFS_SUPERBLOCK = 9,
	CONTENT_DEVICE_DIRECT = 10,
	CONTENT_F2FS_NODE = 11,
	CONTENT_F2FS_META = 12,
	CONTENT_BLOCK_MAP = 13,
};

enum wire_segment_flags {
	SEGMENT_DIRTIER_BY_INODE = 1,
	SEGMENT_HAS_HOME = 2,
	SEGMENT_HOME_IS_FILE = 4,
	SEGMENT_HAS_COMMIT = 8,
	SEGMENT_HAS_GENERATION = 16,
	/* All of the bio is of one extent, whatever its pages. */
	SEGMENT_WHOLE_BIO = 32,
	/* The home block's page was cut off its file. */
	SEGMENT_HOME_IS_CUT_OFF = 64,
};

enum wire_sync_via {
	/* Seen at the system call's own entry. */
	SYNC_VIA_SYSCALL = 0,
	/* Seen at the filesystem's fsync, inside another system call. */
	SYNC_VIA_FILESYSTEM = 1,
	/* Seen at the filesystem's fsync, in an io_uring worker. */
	SYNC_VIA_URING = 2,
	/* A direct write that carries its own durability (FUA): no fsync is called. */
	SYNC_VIA_DIRECT_WRITE = 3,
};

enum wire_sync_flags {
	SYNC_DATA_ONLY = 1,
	SYNC_HAS_RESULT = 2,
	SYNC_HAS_FILE = 4,
};

/* Instead of an index into the traced devices. */
enum wire_device { NO_DEVICE = 0xff };

/* subvolume is 0 but on btrfs. */
struct wire_file_key {
	unsigned long long subvolume;
	unsigned long long inode;
	unsigned int generation;
	/*
	 * Where several filesystems are traced, as everywhere: a device that the filesystem lies
	 * on, by the kernel's number for it; or 0.
	 */
	unsigned int filesystem;
};

struct wire_segment {
	unsigned long long inode;
	/*
	 * Files: byte offset. Journal blocks: home block number. btrfs nodes: logical address.
	 * f2fs nodes: node id.
	 */
	unsigned long long offset;
	/* Files: subvolume. Journal blocks: commit. xfs log: sequence. btrfs nodes: owner. */
	unsigned long long extra;
	unsigned int bytes;
	unsigned int generation;
	unsigned int dirtier_pid;
	unsigned int dirtier_tgid;
	unsigned char content;
	unsigned char flags;
	unsigned char reserved[6];
	/* The first bytes of a block, the name of an xfs structure, or a logged file's offset. */
	unsigned char head[16];
};

struct wire_queue {
	unsigned short type;
	unsigned short segments;
	unsigned int bytes;
	unsigned long long mono_ns;
	unsigned long long sector;
	unsigned long long sync_enter_ns;
	unsigned int opf;
	unsigned int pid;
	unsigned int tgid;
	/* Not 0: more segments of the same bio, from this byte on. */
	unsigned int continues_at_bytes;
	/* As everywhere: an index into the traced devices. */
	unsigned int device;
	unsigned int reserved;
	/* Its address, which tells it from the others, if it only flushes; or 0. */
	unsigned long long flush_bio;
	/* wire_segment[segments] follow. */
};

enum wire_transfer_flags {
	TRANSFER_IN_FLUSH_SEQUENCE = 1,
	/* The request was made before the trace began. */
	TRANSFER_BEGAN_BEFORE = 2,
	/* The kernel counts the request when this part is back. */
	TRANSFER_WHOLE = 4,
};

struct wire_transfer {
	unsigned short type;
	unsigned char flags;
	unsigned char status;
	unsigned int bytes;
	unsigned long long mono_ns;
	unsigned long long sector;
	unsigned int opf;
	unsigned int device;
};

/* A bio from before the programs gets a request, or joins one. */
struct wire_older {
	unsigned short type;
	unsigned short reserved;
	unsigned int bytes;
	unsigned long long mono_ns;
	unsigned long long sector;
	unsigned int opf;
	unsigned int device;
	/* Its address, if it only flushes; else 0. */
	unsigned long long flush_bio;
};

/* A bio on its way from a device to the one below. */
struct wire_remap {
	unsigned short type;
	/* Or NO_DEVICE. */
	unsigned char from;
	unsigned char to;
	unsigned int bytes;
	unsigned long long mono_ns;
	unsigned long long from_sector;
	unsigned long long to_sector;
	unsigned int opf;
	unsigned int reserved;
	/* As of a queued bio. */
	unsigned long long flush_bio;
};

/*
 * The end of a bio that brings no byte back: of one that only flushes, or of a write in a flush
 * sequence, whose bytes came before.
 */
struct wire_flush_end {
	unsigned short type;
	/* It can only be the former, and began with the trace: it was seen queued. */
	unsigned char is_expected;
	unsigned char reserved;
	unsigned int device;
	unsigned long long bio;
};

struct wire_sync_enter {
	unsigned short type;
	unsigned char via;
	unsigned char flags;
	unsigned int pid;
	unsigned long long mono_ns;
	struct wire_file_key file;
	unsigned int tgid;
	/* The system call that the thread is in. */
	int syscall;
	/* f_flags of the written file; RWF_ flags of pwritev2. */
	unsigned int file_flags;
	unsigned int write_flags;
};

struct wire_sync_exit {
	unsigned short type;
	unsigned short flags;
	unsigned int pid;
	unsigned long long mono_ns;
	unsigned long long enter_ns;
	long long result;
};

struct wire_sync_needs {
	unsigned short type;
	unsigned short reserved;
	unsigned int pid;
	unsigned long long mono_ns;
	unsigned long long enter_ns;
	unsigned long long commit;
	unsigned int filesystem;
	unsigned int reserved2;
};

struct wire_commit {
	unsigned short type;
	unsigned short reserved;
	unsigned int filesystem;
	unsigned long long mono_ns;
	unsigned long long commit;
};

struct wire_process {
	unsigned short type;
	unsigned short kernel;
	unsigned int pid;
	unsigned long long mono_ns;
	unsigned int tgid;
	unsigned int parent_tgid;
	unsigned char comm[16];
};

#define WIRE_PATH_BYTES 1024

/* The control group (of version 2) that a thread is in. */
struct wire_cgroup {
	unsigned short type;
	/* 1: the walk ended at the root of the hierarchy. */
	unsigned short path_is_whole;
	unsigned int pid;
	unsigned long long mono_ns;
	/* The inode number of its directory. */
	unsigned long long cgroup;
	/* As of a file. */
	unsigned int path_bytes;
	unsigned int reserved;
	/* path_bytes bytes follow. */
};

struct wire_file {
	unsigned short type;
	unsigned short mode;
	/* Components from the file upwards, each closed by a zero byte. */
	unsigned int path_bytes;
	unsigned long long mono_ns;
	struct wire_file_key file;
	long long birth_wall_s;
	unsigned int birth_wall_ns;
	unsigned char unlinked;
	/* 1: the walk ended at the filesystem's root. */
	unsigned char path_is_whole;
	unsigned short reserved;
	/* path_bytes bytes follow. */
};

struct wire_file_deleted {
	unsigned short type;
	unsigned short reserved;
	unsigned int reserved2;
	unsigned long long mono_ns;
	struct wire_file_key file;
};

/* A request at the driver, in a map. */
struct wire_pending {
	/* Its address: requests are made with the queue and used again and again. */
	unsigned long long request;
	unsigned long long issue_ns;
	unsigned long long sector;
	/* What has not been seen to come back. */
	unsigned int bytes;
	unsigned int opf;
	/* Device, queue and tag. */
	unsigned int key;
	unsigned short valid;
	/* It comes back once more, without data, and counts then. */
	unsigned short in_flush_sequence;
	unsigned int device;
	unsigned int reserved;
};

#define PENDING_SLOTS (1 << 16)
#define PENDING_COLLISIONS (1 << 13)

/* Indices of the program's own sums: point * GROUPS + group. */
enum wire_point {
	POINT_QUEUED = 0,
	POINT_ISSUED = 1,
	POINT_COMPLETED = 2,
	POINT_REQUEUED = 3,
	/* Apart from the other completions: an interrupt may come between reading and writing a sum. */
	POINT_LATE = 4,
	/* Completions of requests that were issued before the trace began. */
	POINT_BEFORE = 5,
	/* Faults: completions of requests that were not issued, or with another size. */
	POINT_UNISSUED = 6,
	POINT_UNEVEN = 7,
	/* Of the late ones, those issued before the trace began: they may have come before it, too. */
	POINT_LATE_OF_BEFORE = 8,
};
enum wire_group {
	GROUP_READ = 0,
	GROUP_WRITE = 1,
	GROUP_DISCARD = 2,
	GROUP_FLUSH = 3,
	GROUP_NONE = 4
};
#define WIRE_GROUPS 5
#define WIRE_POINTS 9

struct wire_sum {
	unsigned long long ios;
	unsigned long long bytes;
};

/* Bios merged, bios split, completions told late. */
enum wire_counter {
	COUNTER_MERGES = 0,
	COUNTER_SPLITS = 1,
	COUNTER_LATE = 2,
};
#define WIRE_COUNTERS 3

/* Read at once: what it holds belongs together. */
struct wire_sums {
	struct wire_sum of[WIRE_POINTS * WIRE_GROUPS];
	unsigned long long counters[WIRE_COUNTERS];
};

/* Faults that are made on purpose, to see that they are found. */
enum wire_fault { FAULT_NONE = 0, FAULT_SKIP = 1, FAULT_TWICE = 2, FAULT_BYTE = 3 };

#endif
