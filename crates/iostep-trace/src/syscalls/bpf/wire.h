/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The records of the recorder of system calls, in the ring buffer and in the spool.
 *
 * This header is the single source of truth: Rust's types and constants are generated from it.
 * Times are CLOCK_MONOTONIC ns, all numbers little-endian as the machine.
 */
#ifndef IOSTEP_CALLS_WIRE_H
#define IOSTEP_CALLS_WIRE_H

enum wire_size {
	/* System call numbers that can be recorded. */
	WIRE_CALLS = 512,
	/* Words of a record: six arguments, four that were read from memory, the two texts' lengths. */
	WIRE_WORDS = 12,
	WIRE_EXTRA = 6,
	WIRE_TEXTS = 10,
	WIRE_REQUEST_WORDS = 6,
	/* PATH_MAX (include/uapi/linux/limits.h), its NUL included. */
	WIRE_TEXT_BYTES = 4096,
};

/* `number` of what is no system call. */
enum wire_note {
	/* word: child, enum wire_shares, the child's number in its own PID namespace or 0. */
	WIRE_FORK = 0x8001,
	/* word: the thread's number before, its name in two words. */
	WIRE_EXEC = 0x8002,
	/* word: 1 if it was the last thread of its process. */
	WIRE_EXIT = 0x8003,
	/* word: a thread, its name in two words. */
	WIRE_NAME = 0x8004,
	/* A call of a 32-bit program, whose numbers are others. */
	WIRE_FOREIGN = 0x8005,
	/*
	 * A request of io_uring. word: opcode, descriptor (or the directory's), three of its own,
	 * enum wire_request in the fifth; requests.rs says which. An open's say which file it
	 * opened, too, as a system call's.
	 */
	WIRE_REQUEST = 0x8006,
	/* The names of a request, of the same thread and beginning; the request itself comes later. */
	WIRE_REQUEST_NAMES = 0x8007,
	/*
	 * A descriptor that came from another process: the result. word: the file's flags, its position,
	 * its number among open files, its links; then which file it is, as an open says it.
	 */
	WIRE_RECEIVED = 0x8008,
	/* A thread or process goes on without being recorded. */
	WIRE_UNRECORDED = 0x8009,
	/*
	 * A request of io_submit, before the record of that call. word: IOCB_CMD_, or all ones for one
	 * that could not be read; descriptor, offset, size, address, and buffers with RWF_ flags above.
	 */
	WIRE_SUBMITTED = 0x800a,
	/* The end of such, as io_getevents told it. word: the context, the request's address, the result. */
	WIRE_COMPLETED = 0x800b,
};

enum wire_shares { SHARES_PROCESS = 1, SHARES_FILES = 2, SHARES_DIRECTORY = 4 };

enum wire_request {
	/* The descriptor is an index into the ring's own table, and the program has none of that file. */
	REQUEST_REGISTERED = 1,
	/* The vectors could not be read. */
	REQUEST_LOST = 2,
	/* It made no sense to the kernel. */
	REQUEST_REFUSED = 4,
	/* The program wants to hear of it only if it fails (IOSQE_CQE_SKIP_SUCCESS). */
	REQUEST_SILENT = 8,
	/* It was handed in, which is all that the recorder saw (ptrace). */
	REQUEST_UNSEEN = 16,
};

enum wire_flags {
	/* The call never returned: its thread was killed in it. */
	FLAG_UNFINISHED = 1,
	/* The text, or another argument in memory, could not be read. */
	FLAG_TEXT_1_LOST = 2,
	FLAG_TEXT_2_LOST = 4,
	FLAG_EXTRA_LOST = 8,
	/* The extra words say which file was opened: device, inode, size, mode and others. */
	FLAG_SEEN = 16,
	/* What a request of io_uring returned was not told. */
	FLAG_UNTOLD = 32,
};

/* What to record of a call, in bits of its class (table.rs has the calls). */
enum wire_class {
	CLASS_WORDS = 0xf,
	CLASS_TEXT_1_SHIFT = 4,
	CLASS_TEXT_2_SHIFT = 8,
	/* The number of the argument plus one; 0 for none. */
	CLASS_TEXT = 0xf,
	CLASS_EXTRA_SHIFT = 12,
	CLASS_EXTRA = 0x1f,
	CLASS_KNOWN = 0x80000000u,
};

enum wire_extra {
	EXTRA_NONE = 0,
	/* The file of the descriptor that is returned; word 5 becomes its number among open files. */
	EXTRA_OPENED = 1,
	/* The sum of the lengths of `struct iovec` at argument 1, as many as argument 2. */
	EXTRA_VECTORS = 2,
	/* `struct flock` at argument 2, for the lock commands of fcntl. */
	EXTRA_LOCK = 3,
	/* Two descriptors at argument 0. */
	EXTRA_PAIR_AT_0 = 4,
	/* Two descriptors at argument 3. */
	EXTRA_PAIR_AT_3 = 5,
	/* Offsets at arguments 1 and 3 (copy_file_range, splice). */
	EXTRA_OFFSETS = 6,
	/* An offset at argument 2 (sendfile). */
	EXTRA_OFFSET_AT_2 = 7,
	/* `struct open_how` at argument 2; words 2 and 3 become its flags and mode. */
	EXTRA_OPEN_HOW = 8,
	/* Nothing is recorded if argument 3 says that there is no file (mmap). */
	EXTRA_MAPPED = 9,
	/* The beginning only: the fork's own hook makes the record. */
	EXTRA_FORK = 10,
	/* The second text is what the call answered, as long as its result. */
	EXTRA_ANSWERED = 11,
	/* No record of the call: one of each descriptor in the messages of `struct msghdr` at argument 1. */
	EXTRA_MESSAGE = 12,
	/* No record of the call: one of the descriptor that is returned. */
	EXTRA_RECEIVED = 13,
	/* One more record of each request of io_submit: argument 1 many, by their addresses at argument 2. */
	EXTRA_SUBMITTED = 14,
	/* No record of the call: one of each `struct io_event` at argument 3, as many as the result. */
	EXTRA_COMPLETED = 15,
	/*
	 * What the stat family answered, at the argument of the second text: word 5 becomes the names that
	 * the file has, word 6 its device (st_dev) and mode, then come inode, size and blocks. Argument 4 is
	 * a struct statx.
	 */
	EXTRA_STAT = 16,
	/* `struct file_clone_range` at argument 2, for FICLONERANGE of ioctl. */
	EXTRA_CLONE_RANGE = 17,
};

struct wire_record {
	unsigned long long start_ns;
	unsigned long long duration_ns;
	long long result;
	/* The thread. */
	unsigned int tid;
	/* System call, or enum wire_note. */
	unsigned short number;
	/* How many words follow. */
	unsigned char words;
	/* enum wire_flags. */
	unsigned char flags;
	unsigned long long word[WIRE_WORDS];
};

#define WIRE_HEADER_BYTES (sizeof(struct wire_record) - WIRE_WORDS * 8)

#endif
