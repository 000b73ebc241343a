/* SPDX-License-Identifier: GPL-2.0 */
/* Settings, maps and the ring buffer that all programs share. */
#ifndef IOSTEP_MAPS_H
#define IOSTEP_MAPS_H

/*
 * Set before loading, as the devices are (devices.bpf.h). Addresses of the symbols that hold the
 * bases of the kernel's memory map; 0: not known.
 */
const volatile __u64 vmemmap_base_address = 0;
const volatile __u64 page_offset_base_address = 0;
/* Used where the kernel has no such symbols. */
const volatile __u64 vmemmap_base_fixed = 0;
const volatile __u64 page_offset_base_fixed = 0;
/* log2 of the bytes of a page: 14 on some kernels for arm64. */
const volatile __u32 page_shift = 12;
#define PAGE_SHIFT page_shift
#define PAGE_BYTES (1u << page_shift)

/* Address of journal_end_buffer_io_sync and of ext4_end_buffer_io_sync. */
const volatile __u64 jbd2_end_io = 0;
const volatile __u64 fast_commit_end_io = 0;
/* Where bios of iomap's direct I/O in one bio are from (by Linux 7.3); 0: not known. */
const volatile __u64 simple_direct_pool = 0;
/* iomap's direct I/O counts a bio's bytes after it was submitted. */
const volatile __u32 direct_counts_later = 0;
/* System call numbers of this architecture. */
const volatile int nr_fsync = -1, nr_fdatasync = -1, nr_sync = -1, nr_syncfs = -1;
const volatile int nr_sync_file_range = -1;
const volatile int nr_write = -1, nr_pwrite64 = -1, nr_writev = -1, nr_pwritev = -1;
const volatile int nr_pwritev2 = -1, nr_ioctl = -1, nr_msync = -1, nr_linkat = -1;

/* The bit of RQF_FLUSH_SEQ in a request's rq_flags. */
const volatile __u32 flush_sequence_bit = 0;

/* The filesystem's fsync has no tracepoint. */
const volatile __u32 fsync_is_silent = 0;

/* The kernel may preempt every program; see entries.bpf.h. */
const volatile __u32 is_preempted = 0;

/* When the trace began, once it did: until then everything is older. In a map of its own. */
volatile __u64 began_ns SEC(".data.began") = ~0ull;

/* A fault to make: see enum wire_fault; at which point, and at which event there. */
const volatile __u32 fault_kind = 0, fault_point = 0;
const volatile __u64 fault_number = 0;
static volatile __u64 fault_events;
static volatile __u32 fault_done;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 20);
} events SEC(".maps");

/* What submitted a bio, by the address of its bi_end_io. */
enum end_io_kind {
	END_IO_OTHER = 0,
	END_IO_IOMAP_DIRECT = 1,
	END_IO_BUFFER_HEAD = 2,
	END_IO_XFS_LOG = 3,
	END_IO_XFS_BUFFER = 4,
	END_IO_BTRFS = 5,
	END_IO_BTRFS_SUPERBLOCK = 6,
	/* Direct I/O on the block device itself. */
	END_IO_DEVICE_DIRECT = 7,
	/* Somebody waits: direct I/O on the block device in one bio, or the filesystem. */
	END_IO_WAIT = 8,
	/* Direct I/O by fs/direct-io.c. */
	END_IO_DIO = 9,
	/* Direct I/O of a file in one bio, which is a part of the control block. */
	END_IO_IOMAP_SIMPLE = 10,
	/* btrfs, the second copy and those after it. */
	END_IO_BTRFS_COPY = 11,
	/* A copy that the block layer encrypted: its private data is the plain bio. */
	END_IO_ENCRYPTED = 12,
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 128);
	__type(key, __u64);
	__type(value, __u32);
} end_io_kinds SEC(".maps");

/* Lost events by reason; see enum lost_reason. */
enum lost_reason { LOST_RING_FULL = 0, LOST_SEGMENTS = 1, LOST_REASONS = 2 };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LOST_REASONS);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wire_sums);
} sums SEC(".maps");

/*
 * The reader polls. It is woken only when the buffer is a quarter full: a wake-up per event
 * costs more than everything else together.
 */
#define WAKE_AT_BYTES (16ul << 20)

static __always_inline __u64 wakeup(void)
{
	return bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > WAKE_AT_BYTES ? BPF_RB_FORCE_WAKEUP
									     : BPF_RB_NO_WAKEUP;
}

static __always_inline void count_lost(__u32 reason)
{
	__u64 *value = bpf_map_lookup_elem(&lost, &reason);

	if (value)
		*value += 1;
}

static __always_inline void count(__u32 which)
{
	__u32 zero = 0;
	struct wire_sums *all = bpf_map_lookup_elem(&sums, &zero);

	if (all && which < WIRE_COUNTERS)
		__sync_fetch_and_add(&all->counters[which], 1);
}

/* op_stat_group() of include/linux/blk_types.h. */
static __always_inline __u32 group_of(__u32 opf)
{
	switch (opf & 0xff) {
	case 0:
		return GROUP_READ;
	case 2:
		return GROUP_FLUSH;
	case 3:
		return GROUP_DISCARD;
	case 1:
	case 5:
	case 7:
	case 9:
	/* Zone management, without bytes. */
	case 11:
	case 13:
	case 15:
	case 17:
	case 19:
		return GROUP_WRITE;
	default:
		return GROUP_NONE;
	}
}

static __always_inline void add(__u32 point, __u32 opf, __u64 ios, __u64 bytes)
{
	__u32 zero = 0;
	struct wire_sums *all = bpf_map_lookup_elem(&sums, &zero);
	__u64 index = at_most(point * WIRE_GROUPS + group_of(opf), WIRE_POINTS * WIRE_GROUPS - 1);

	if (!all)
		return;
	if (is_preempted) {
		/* Another task may come between. */
		__sync_fetch_and_add(&all->of[index].ios, ios);
		__sync_fetch_and_add(&all->of[index].bytes, bytes);
		return;
	}
	all->of[index].ios += ios;
	all->of[index].bytes += bytes;
}

/* The fault to make now, once, at the event of the trace that the user chose. */
static __always_inline __u32 fault_at(__u32 point)
{
	if (!fault_kind || fault_point != point || fault_done || began_ns == ~0ull)
		return FAULT_NONE;
	if (++fault_events < fault_number)
		return FAULT_NONE;
	fault_done = 1;
	return fault_kind;
}

static __always_inline void *reserve(__u64 bytes)
{
	void *record = reserve_in(&events, bytes);

	if (!record)
		count_lost(LOST_RING_FULL);
	return record;
}

static __always_inline void output(void *record, __u64 bytes, __u64 flags)
{
	if (!put_into(&events, record, bytes, flags))
		count_lost(LOST_RING_FULL);
}

static __always_inline void submit(void *record)
{
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

#endif
