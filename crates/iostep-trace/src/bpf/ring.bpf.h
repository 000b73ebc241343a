/* SPDX-License-Identifier: GPL-2.0 */
/* How records find their place in a ring buffer. */
#ifndef IOSTEP_RING_H
#define IOSTEP_RING_H

/*
 * Since Linux 6.15 the ring's lock gives up after a quarter of a second, so that a record may find no
 * place although there is one (kernel/bpf/rqspinlock.c): a virtual machine's other processor may
 * stand still so long with the lock in its hands.
 */
#define RING_TRIES 8
#define RECORD_HEADER_BYTES 8

/*
 * A length that the verifier can follow: without the barrier the compiler proves the bound from
 * facts that the verifier does not have, and drops the comparison.
 */
static __always_inline __u64 at_most(__u64 value, __u64 bound)
{
	asm volatile("" : "+r"(value));
	return value > bound ? bound : value;
}

static __always_inline bool is_full(void *ring, __u64 bytes)
{
	return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) + bytes + RECORD_HEADER_BYTES >
	       bpf_ringbuf_query(ring, BPF_RB_RING_SIZE);
}

/* NULL if there is no place. */
static __always_inline void *reserve_in(void *ring, __u64 bytes)
{
	void *record;

	for (int try = 0; try < RING_TRIES; try++) {
		record = bpf_ringbuf_reserve(ring, bytes, 0);
		if (record || is_full(ring, bytes))
			return record;
	}
	return NULL;
}

/* False if there is no place. */
static __always_inline bool put_into(void *ring, void *record, __u64 bytes, __u64 flags)
{
	for (int try = 0; try < RING_TRIES; try++) {
		if (!bpf_ringbuf_output(ring, record, bytes, flags))
			return true;
		if (is_full(ring, bytes))
			break;
	}
	return false;
}

#endif
