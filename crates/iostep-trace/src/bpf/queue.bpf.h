/* SPDX-License-Identifier: GPL-2.0 */
/* A bio is queued: who sends it, for which sync call, and whose bytes it carries. */
#ifndef IOSTEP_QUEUE_H
#define IOSTEP_QUEUE_H

static __always_inline __u32 done_in_vector(struct bio *bio)
{
	struct bvec_iter___with_offset *iter = (void *)&bio->bi_iter;

	if (bpf_core_field_exists(iter->bi_offset))
		return BPF_CORE_READ(iter, bi_offset);
	return bio->bi_iter.bi_bvec_done;
}

/* BIO_MAX_VECS of the kernel. */
#define BIO_VECTORS 256

/* A place in a bio's vector, and how far back from it the bytes begin. */
struct back {
	__u64 vector;
	__u32 done;
	__u32 bytes;
};

static long step_back(__u32 index, struct back *back)
{
	struct bio_vec before = {};

	if (back->done >= back->bytes) {
		back->done -= back->bytes;
		return 1;
	}
	back->bytes -= back->done;
	back->vector -= sizeof(before);
	bpf_probe_read_kernel(&before, sizeof(before), (void *)back->vector);
	back->done = before.bv_len;
	return 0;
}

/*
 * Since Linux 7.0 fscrypt leaves encryption to the block layer, which without the hardware for it
 * queues bios of encrypted pages. Their private data is the filesystem's bio, whose iterator stands
 * behind what they carry (__blk_crypto_fallback_encrypt_bio, block/blk-crypto-fallback.c). Before
 * that, the plain bio is the one that is queued.
 */
static __always_inline void look_through(struct bio_walk *walk, struct bio *bio)
{
	struct bio *plain = (struct bio *)walk->private;
	struct bvec_iter___with_offset *iter = (void *)&plain->bi_iter;
	struct back back = { .bytes = bio->bi_iter.bi_size };
	__u32 *kind;

	walk->end_io = (__u64)BPF_CORE_READ(plain, bi_end_io);
	walk->private = (__u64)BPF_CORE_READ(plain, bi_private);
	kind = bpf_map_lookup_elem(&end_io_kinds, &walk->end_io);
	/* What is found by the bio's own place in memory is not this bio's. */
	walk->kind = kind && *kind != END_IO_IOMAP_SIMPLE ? *kind : END_IO_OTHER;
	back.vector = (__u64)BPF_CORE_READ(plain, bi_io_vec) +
		      sizeof(struct bio_vec) * BPF_CORE_READ(plain, bi_iter.bi_idx);
	if (bpf_core_field_exists(iter->bi_offset))
		back.done = BPF_CORE_READ(iter, bi_offset);
	else
		back.done = BPF_CORE_READ(plain, bi_iter.bi_bvec_done);
	bpf_loop(BIO_VECTORS + 1, step_back, &back, 0);
	walk->vector = back.vector;
	walk->vector_offset = back.done;
}

static __always_inline void start_vector(struct bio_walk *walk, struct bio *bio)
{
	walk->vector = (__u64)bio->bi_io_vec + sizeof(struct bio_vec) * bio->bi_iter.bi_idx;
	walk->vector_offset = done_in_vector(bio);
	if (walk->kind == END_IO_ENCRYPTED)
		look_through(walk, bio);
}

/* One that nobody uses, to be given back. */
static __always_inline struct bio_walk *take_walk(struct step *step)
{
	struct bio_walk *walk;

	for (__u32 at = 0; at < BIO_WALKS; at++) {
		/* A counter in memory is none to verifiers: an endless loop. */
		step->walk = at;
		walk = bpf_map_lookup_elem(&bio_walks, &step->walk);
		if (walk && take(&walk->users)) {
			/* Read back: a verifier that knew which one it is would follow each by itself. */
			walk->place = at;
			step->walk = *(volatile __u32 *)&walk->place;
			return walk;
		}
	}
	return NULL;
}

static __always_inline void send_last(struct bio_walk *walk, __u32 fault)
{
	if (fault == FAULT_TWICE) {
		add(POINT_QUEUED, walk->queue.opf, 1, walk->queue.bytes);
		send(walk);
	}
	send(walk);
}

/* True for a bio of a traced device that was not told of above; remembers who queues it. */
static __always_inline bool is_wanted(struct bio *bio, __u32 pid, __u32 device)
{
	if (older_may_come)
		know_submitter(pid);
	if (device == NO_DEVICE)
		return false;
	if (older_may_come)
		know_told((__u64)bio);
	return !is_layered || !is_clone(bio, device);
}

PROGRAM("block_bio_queue", on_bio_queue, struct bio *bio)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 pid = pid_tgid, device = device_of(bio->bi_bdev, ~0u), *kind;
	struct step step = { .bio = bio };
	struct bio_walk *walk;
	struct sync_state *sync;
	__u64 end_io, *commit;
	__u32 fault;

	if (!is_wanted(bio, pid, device))
		return 0;
	fault = fault_at(POINT_QUEUED);
	if (fault == FAULT_SKIP)
		return 0;
	walk = take_walk(&step);
	if (!walk) {
		count_lost(LOST_RING_FULL);
		return 0;
	}
	end_io = (__u64)bio->bi_end_io;
	kind = bpf_map_lookup_elem(&end_io_kinds, &end_io);
	walk->kind = kind ? *kind : END_IO_OTHER;
	if (simple_direct_pool && walk->kind == END_IO_WAIT &&
	    (__u64)bio->bi_pool == simple_direct_pool)
		walk->kind = END_IO_IOMAP_SIMPLE;
	walk->queue.type = WIRE_QUEUE;
	walk->queue.segments = 0;
	walk->queue.bytes = bio->bi_iter.bi_size;
	walk->queue.mono_ns = bpf_ktime_get_ns();
	walk->queue.sector = bio->bi_iter.bi_sector;
	walk->queue.opf = bio->bi_opf;
	walk->queue.pid = pid;
	walk->queue.tgid = pid_tgid >> 32;
	walk->queue.continues_at_bytes = 0;
	walk->end_io = end_io;
	walk->queue.device = device;
	walk->queue.flush_bio = only_flushes(bio) ? (__u64)bio : 0;
	walk->private = (__u64)bio->bi_private;
	start_vector(walk, bio);
	walk->left = owned_bytes(bio);
	walk->done_bytes = 0;
	walk->mapping = 0;
	walk->next_index = 0;
	walk->btree_left = 0;
	walk->commit = 0;
	sync = current_sync(pid);
	walk->queue.sync_enter_ns = sync ? sync->enter_ns : 0;
	if (!sync && (walk->kind == END_IO_IOMAP_DIRECT || walk->kind == END_IO_IOMAP_SIMPLE))
		walk->queue.sync_enter_ns = sync_of_direct_write(walk, request_of(walk, bio));
	know_current_thread(pid_tgid);
	if (!sync && fsync_is_silent)
		walk->queue.sync_enter_ns = sync_of_worker(pid);
	walk->queue.bytes += fault == FAULT_BYTE;
	count_queued(device, walk->queue.opf, walk->queue.bytes);
	if (walk->kind == END_IO_BUFFER_HEAD) {
		commit = bpf_map_lookup_elem(&committing, &pid);
		walk->commit = commit ? *commit : 0;
	}
	/* Only reads and writes carry pages of an owner. */
	if (walk->left && (walk->queue.opf & 0xff) < 2 && !whole_segment(walk, bio)) {
		if (!walk_step(0, &step))
			bpf_loop(MAX_STEPS, walk_step, &step, 0);
		if (walk->left)
			count_lost(LOST_SEGMENTS);
	}
	send_last(walk, fault);
	give_back(&walk->users);
	return 0;
}

#endif
