/* SPDX-License-Identifier: GPL-2.0 */
/* Requests: to the driver and back. The hot path: small records, no look-ups but the sums. */
#ifndef IOSTEP_REQUESTS_H
#define IOSTEP_REQUESTS_H

static __always_inline bool is_flush(struct request *request)
{
	return (request->cmd_flags & 0xff) == 2;
}

/*
 * A command of the driver's own, or one that a program made (SG_IO, NVME_IOCTL_IO_CMD): REQ_OP_DRV_IN
 * and REQ_OP_DRV_OUT. It covers no sectors, and no bio of it is queued.
 */
static __always_inline bool is_passthrough(struct request *request)
{
	return (request->cmd_flags & 0xfe) == 34;
}

/* The disk that a request is for. */
static __always_inline __u32 device_of_request(struct request *request)
{
	struct block_device *part = request->part;
	__u32 disk = request->q->disk->part0->bd_dev;
	__u32 own = part ? part->bd_dev : 0;

#pragma unroll
	for (__u32 i = 0; i < MAX_DEVICES; i++) {
		if (i >= device_count)
			break;
		if (!(device_roles[i] & DEVICE_DISK) || device_disks[i] != disk)
			continue;
		if (device_roles[i] & DEVICE_WHOLE || device_numbers[i] == own)
			return i;
		/*
		 * A flush is the whole disk's; the analysis drops those that this partition did
		 * not ask for.
		 */
		if (!part && is_flush(request))
			return i;
	}
	return NO_DEVICE;
}

static __always_inline bool in_flush_sequence(struct request *request)
{
	return request->rq_flags & (1u << flush_sequence_bit);
}

/*
 * Made before the trace began: what it carries was perhaps not seen queued, nor itself issued. A
 * request's time is that of the first bio in it; the kernel may take it from its plug, so it is a
 * little early (blk_mq_rq_time_init, block/blk-mq.c, 6.12).
 */
static __always_inline bool began_before(struct request *request)
{
	return request->start_time_ns < began_ns;
}

/*
 * Requests at the driver, by device, queue and tag. With an elevator the tag is its own: the driver's
 * is given back before block_rq_requeue (__blk_mq_requeue_request, block/blk-mq.c, 6.12), so that
 * another request has it by the time its old owner is sought.
 *
 * On a busy machine the kernel now and then runs no program for a burst of completions although
 * the tracepoint fires (perf counts them all), and counts nothing. But a tag is given away again
 * only when its request is over: the next request with the tag tells the completion late, and user
 * space tells what is left at the end. A write in a flush sequence has its tag until it comes back
 * the second time, without bytes; the flush itself borrows the tag of one of the writes that wait
 * for it; a queue has one (blk_alloc_flush_queue).
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PENDING_SLOTS);
	__type(key, __u32);
	__type(value, struct wire_pending);
} pending SEC(".maps");

/* Those whose slot another queue's request has: some hosts have more tags than a slot's share. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PENDING_COLLISIONS);
	__type(key, __u32);
	__type(value, struct wire_pending);
} pending_collided SEC(".maps");

static __always_inline __u32 key_of(struct request *request, __u32 device)
{
	int tag = request->internal_tag;
	__u32 queue = request->mq_hctx->queue_num & 0xfff;
	__u16 number = tag < 0 ? request->tag : tag;

	if (is_flush(request))
		number = 0x8000;
	return device << 28 | queue << 16 | number;
}

/* Queues may overlap in it: whose the slot is, its key says. */
static __always_inline struct wire_pending *slot_of(__u32 key)
{
	__u32 queue = (key >> 16 & 0xfff) + (key >> 28 << 3);
	__u32 slot = ((queue << 11) + (__u16)key) & (PENDING_SLOTS - 1);

	return bpf_map_lookup_elem(&pending, &slot);
}

static __always_inline struct wire_pending *free_slot(__u32 key)
{
	struct wire_pending empty = {};
	struct wire_pending *slot = slot_of(key);

	if (!slot || !slot->valid || slot->key == key)
		return slot;
	bpf_map_update_elem(&pending_collided, &key, &empty, BPF_NOEXIST);
	return bpf_map_lookup_elem(&pending_collided, &key);
}

/* NULL if the programs did not see it go to the driver, or saw it come back. */
static __always_inline struct wire_pending *pending_of(struct request *request, __u32 device)
{
	__u32 key = key_of(request, device);
	struct wire_pending *slot = slot_of(key);

	if (!slot || !slot->valid || slot->request != (__u64)request)
		slot = bpf_map_lookup_elem(&pending_collided, &key);
	if (!slot || !slot->valid || slot->request != (__u64)request)
		return NULL;
	return slot;
}

/* So many bytes of a request are back, and nobody saw it; the request is over if it is whole. */
static __always_inline void tell_late(struct wire_pending *slot, __u32 bytes, bool whole)
{
	struct wire_transfer *record;

	count(COUNTER_LATE);
	add(POINT_LATE, slot->opf, whole, bytes);
	if (slot->issue_ns < began_ns)
		add(POINT_LATE_OF_BEFORE, slot->opf, whole, bytes);
	record = reserve(sizeof(*record));
	if (!record)
		return;
	__builtin_memset(record, 0, sizeof(*record));
	record->type = WIRE_COMPLETE;
	record->flags = whole                     ? TRANSFER_WHOLE
			: slot->in_flush_sequence ? TRANSFER_IN_FLUSH_SEQUENCE
						  : 0;
	record->bytes = bytes;
	record->mono_ns = bpf_ktime_get_ns();
	record->sector = slot->sector;
	record->opf = slot->opf;
	record->device = slot->device;
	submit(record);
}

/* A request goes to the driver. */
static __always_inline void begin_pending(struct request *request, __u32 device, __u32 bytes)
{
	__u32 key = key_of(request, device);
	struct wire_pending *slot = free_slot(key);

	if (!slot)
		return;
	/* Whatever had the tag before is over. */
	if (slot->valid)
		tell_late(slot, slot->bytes, true);
	slot->request = (__u64)request;
	slot->issue_ns = bpf_ktime_get_ns();
	slot->sector = request->__sector;
	slot->bytes = bytes;
	slot->opf = request->cmd_flags;
	slot->key = key;
	slot->device = device;
	slot->valid = 1;
	slot->in_flush_sequence = !is_flush(request) && in_flush_sequence(request);
}

/* Its bio has no vector. Device mapper's clones of bios that only flush may have one all the same. */
static __always_inline bool only_flushed(struct request *request)
{
	return request->bio && !request->bio->bi_io_vec;
}

/*
 * A request, or a part of it, is back. What it brings must be what went out; a request that never
 * went out must be older than the trace, or have failed on its way. True if this was the second end
 * of a write in a flush sequence.
 */
static __always_inline bool end_pending(struct request *request, __u32 device, __u8 status,
					__u32 bytes, __u32 whole)
{
	struct wire_pending *slot = pending_of(request, device);
	__u32 opf = request->cmd_flags, left = request->__data_len;

	/* A bio that only flushes has a tag, and is never issued: the slot is its predecessor's. */
	if (slot && !bytes && !left && (opf & 0xff) == 1 &&
	    (!slot->in_flush_sequence || only_flushed(request))) {
		tell_late(slot, slot->bytes, true);
		slot->valid = 0;
		return false;
	}
	if (!slot) {
		if (!bytes && !is_flush(request))
			return false;
		if (began_before(request))
			add(POINT_BEFORE, opf, whole, bytes);
		else if (!status)
			add(POINT_UNISSUED, opf, 1, bytes);
		return false;
	}
	/* What the kernel no longer waits for came back unseen. */
	if (left < slot->bytes) {
		tell_late(slot, slot->bytes - left, false);
		slot->sector += (slot->bytes - left) >> 9;
		slot->bytes = left;
	}
	if (bytes > slot->bytes || (bytes >= left && bytes != slot->bytes))
		add(POINT_UNEVEN, opf, 1, bytes);
	slot->sector += bytes >> 9;
	slot->bytes -= bytes < slot->bytes ? bytes : slot->bytes;
	slot->valid = bytes < left || (slot->in_flush_sequence && in_flush_sequence(request));
	return slot->in_flush_sequence && !slot->valid;
}

static __always_inline void tell(struct request *request, __u32 device, __u32 type, __u32 bytes,
				 __u8 status, __u8 flags)
{
	struct wire_transfer *record = reserve(sizeof(*record));

	if (!record)
		return;
	record->type = type;
	record->flags = flags | (in_flush_sequence(request) ? TRANSFER_IN_FLUSH_SEQUENCE : 0);
	record->status = status;
	record->bytes = bytes;
	record->mono_ns = bpf_ktime_get_ns();
	record->sector = request->__sector;
	record->opf = request->cmd_flags;
	record->device = device;
	submit(record);
}

/*
 * Nobody saw a passthrough request queued: the thread that hands it to the driver is the one that made
 * it, or a kernel's worker if it had to wait.
 */
static __always_inline void tell_submitter(struct request *request, __u32 device, __u32 bytes)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct wire_queue *record = reserve(sizeof(*record));

	if (!record)
		return;
	__builtin_memset(record, 0, sizeof(*record));
	record->type = WIRE_QUEUE;
	record->bytes = bytes;
	record->mono_ns = bpf_ktime_get_ns();
	record->sector = request->__sector;
	record->opf = request->cmd_flags;
	record->pid = pid_tgid;
	record->tgid = pid_tgid >> 32;
	record->device = device;
	submit(record);
	know_current_thread(pid_tgid);
}

static __always_inline void issue(struct request *request, __u32 device, __u32 bytes)
{
	if (is_passthrough(request))
		tell_submitter(request, device, bytes);
	begin_pending(request, device, bytes);
	add(POINT_ISSUED, request->cmd_flags, 1, bytes);
	tell(request, device, WIRE_ISSUE, bytes, 0,
	     began_before(request) ? TRANSFER_BEGAN_BEFORE : 0);
}

/*
 * A driver without room for a request gives it back too, often before it began: that one was never
 * issued (scsi_queue_rq, nvme_queue_rq).
 */
PROGRAM("block_rq_requeue", on_requeue, struct request *request)
{
	__u32 device = device_of_request(request);
	struct wire_pending *slot;

	if (device == NO_DEVICE)
		return 0;
	slot = pending_of(request, device);
	if (!slot)
		return 0;
	slot->valid = 0;
	add(POINT_REQUEUED, request->cmd_flags, 1, request->__data_len);
	tell(request, device, WIRE_REQUEUE, request->__data_len, 0,
	     began_before(request) ? TRANSFER_BEGAN_BEFORE : 0);
	return 0;
}

/*
 * A FUA request comes back twice, first inside the flush sequence. The kernel counts its bytes
 * then and the request when it leaves the sequence (block/blk-flush.c, blk_account_io_done).
 */
static __always_inline void complete(struct request *request, __u32 device, __u8 status,
				     __u32 bytes)
{
	bool whole =
		is_flush(request) || (!in_flush_sequence(request) && bytes >= request->__data_len);
	bool is_second_end;

	is_second_end = end_pending(request, device, status, bytes, whole);
	add(POINT_COMPLETED, request->cmd_flags, whole, bytes);
	tell(request, device, WIRE_COMPLETE, bytes, status, whole ? TRANSFER_WHOLE : 0);
	if (!bytes && whole && !is_second_end && (request->cmd_flags & 0xff) == 1 && request->bio)
		tell_flush_end(request->bio, device,
			       only_flushed(request) && !began_before(request));
}

PROGRAM("block_rq_complete", on_complete, struct request *request, blk_status_t status,
	unsigned int bytes)
{
	__u32 device = device_of_request(request), fault;

	if (device == NO_DEVICE)
		return 0;
	fault = fault_at(POINT_COMPLETED);
	if (fault == FAULT_SKIP)
		return 0;
	if (fault == FAULT_TWICE)
		complete(request, device, status, bytes);
	complete(request, device, status, bytes + (fault == FAULT_BYTE));
	return 0;
}

/* Attached after the programs for what ends: none that is seen to begin ends unseen. */
PROGRAM("block_rq_issue", on_issue, struct request *request)
{
	__u32 device = device_of_request(request), fault;

	if (device == NO_DEVICE)
		return 0;
	fault = fault_at(POINT_ISSUED);
	if (fault == FAULT_SKIP)
		return 0;
	if (fault == FAULT_TWICE)
		issue(request, device, request->__data_len);
	issue(request, device, request->__data_len + (fault == FAULT_BYTE));
	return 0;
}

/*
 * A bio that ends without a request: with REQ_NOWAIT, when there is no room, and its caller tries
 * again (bio_wouldblock_error). Of a bio that had a request, the request's end was told.
 */
PROGRAM_BY(1, "block_bio_complete", on_bio_complete, struct request_queue *queue, struct bio *bio)
{
	__u32 device = bio->bi_status ? device_of(bio->bi_bdev, DEVICE_DISK) : NO_DEVICE;
	struct wire_transfer *record;

	if (device == NO_DEVICE)
		return 0;
	if (only_flushes(bio)) {
		tell_flush_end(bio, device, false);
		return 0;
	}
	record = reserve(sizeof(*record));
	if (!record)
		return 0;
	__builtin_memset(record, 0, sizeof(*record));
	record->type = WIRE_BIO_END;
	record->status = bio->bi_status;
	record->bytes = bio->bi_iter.bi_size;
	record->mono_ns = bpf_ktime_get_ns();
	record->sector = bio->bi_iter.bi_sector;
	record->opf = bio->bi_opf;
	record->device = device;
	submit(record);
	return 0;
}

PROGRAM("block_split", on_split, struct bio *bio, unsigned int sector)
{
	struct wire_transfer *record;

	if (device_of(bio->bi_bdev, DEVICE_DISK) == NO_DEVICE)
		return 0;
	count(COUNTER_SPLITS);
	record = reserve(sizeof(*record));
	if (!record)
		return 0;
	__builtin_memset(record, 0, sizeof(*record));
	record->type = WIRE_SPLIT;
	record->mono_ns = bpf_ktime_get_ns();
	/* The tracepoint's own has 32 bits. */
	record->sector = bio->bi_iter.bi_sector + (bio->bi_iter.bi_size >> 9);
	record->opf = bio->bi_opf;
	submit(record);
	return 0;
}

SEC("tp_btf/block_bio_backmerge")
int BPF_PROG(on_back_merge, struct bio *bio)
{
	tell_if_older(bio);
	if (device_of(bio->bi_bdev, DEVICE_DISK) != NO_DEVICE)
		count(COUNTER_MERGES);
	return 0;
}

SEC("tp_btf/block_bio_frontmerge")
int BPF_PROG(on_front_merge, struct bio *bio)
{
	tell_if_older(bio);
	if (device_of(bio->bi_bdev, DEVICE_DISK) != NO_DEVICE)
		count(COUNTER_MERGES);
	return 0;
}

SEC("tp_btf/block_rq_merge")
int BPF_PROG(on_request_merge, struct request *request)
{
	if (device_of_request(request) != NO_DEVICE)
		count(COUNTER_MERGES);
	return 0;
}

#endif
