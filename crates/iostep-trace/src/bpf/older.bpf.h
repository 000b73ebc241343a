/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bios that were queued before the programs were there, and have no request yet.
 *
 * A bio can wait long for its request: for a tag, for a queue that is frozen, for a throttle of
 * blk-rq-qos. The request is then younger than the trace, so its age tells nothing. But whoever
 * submits a bio waits with it: until the last of what it submitted has a request, task->bio_list is
 * set, and bios that are queued meanwhile are those of devices below (submit_bio_noacct_nocheck,
 * block/blk-core.c, 6.12). So a thread whose bio gets a request, and that was not seen to queue any
 * before, has an older one; and once no thread is left that submits and was not seen to begin, none
 * of these bios is left.
 */
#ifndef IOSTEP_OLDER_H
#define IOSTEP_OLDER_H

/* Older bios may still come. In a map of its own. */
volatile __u32 older_may_come SEC(".data.older") = 1;

/*
 * From when on it is remembered who queues what: when every program is there. One that was queued
 * between the first program and the last is an older one, too.
 */
volatile __u64 waited_for_from_ns SEC(".data.waited_for") = ~0ull;

/* Threads that were seen to begin with a bio: what they submit from then on was seen queued. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, __u32);
	__type(value, __u32);
} submitters SEC(".maps");

/* Bios for devices below, told of while their thread was at an older one. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 12);
	__type(key, __u64);
	__type(value, __u32);
} told_below SEC(".maps");

/* Address of bio_chain_endio, which ends a bio that was split off another; 0: not known. */
const volatile __u64 chain_end_io = 0;

static __always_inline bool is_submitter(__u32 pid)
{
	return bpf_map_lookup_elem(&submitters, &pid);
}

/* A thread queues a bio. */
static __noinline void know_submitter(__u32 pid)
{
	__u32 one = 1;

	if (bpf_ktime_get_ns() < waited_for_from_ns)
		return;
	if (bpf_get_current_task_btf()->bio_list || is_submitter(pid))
		return;
	/* Without room for it, its next bio would be taken for an older one. */
	if (bpf_map_update_elem(&submitters, &pid, &one, BPF_ANY))
		older_may_come = 0;
}

/* A bio is told of. */
static __noinline void know_told(__u64 bio)
{
	__u32 pid = bpf_get_current_pid_tgid(), one = 1;

	if (bpf_ktime_get_ns() >= waited_for_from_ns && !is_submitter(pid))
		bpf_map_update_elem(&told_below, &bio, &one, BPF_ANY);
}

/* True for a bio that was told of below an older one, and for what is split off it. */
static __noinline bool is_told(struct bio *bio)
{
	__u64 address = (__u64)bio;

	if (bpf_map_lookup_elem(&told_below, &address))
		return true;
	if (!chain_end_io || (__u64)BPF_CORE_READ(bio, bi_end_io) != chain_end_io)
		return false;
	address = (__u64)BPF_CORE_READ(bio, bi_private);
	return bpf_map_lookup_elem(&told_below, &address);
}

#endif
