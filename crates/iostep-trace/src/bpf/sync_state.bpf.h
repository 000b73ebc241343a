/* SPDX-License-Identifier: GPL-2.0 */
/* The sync call that each thread is in. */
#ifndef IOSTEP_SYNC_STATE_H
#define IOSTEP_SYNC_STATE_H

struct sync_state {
	__u64 enter_ns;
	__u64 inode;
	__u8 via;
	__u8 data_only;
	__u16 reserved;
	__u32 pid;
	/* SYNC_VIA_URING: the request. */
	__u64 uring_request;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, __u32);
	__type(value, struct sync_state);
} current_syncs SEC(".maps");

/* Entries of current_syncs: lets the hook on every system call's exit return at once. */
__s64 open_syncs = 0;

static __always_inline struct sync_state *current_sync(__u32 pid)
{
	return open_syncs ? bpf_map_lookup_elem(&current_syncs, &pid) : NULL;
}

#endif
