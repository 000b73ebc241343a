/* SPDX-License-Identifier: GPL-2.0 */
/* Requests: to the driver and back. The hot path: small records, no look-ups but the sums. */
#ifndef IOSTEP_REQUESTS_H
#define IOSTEP_REQUESTS_H

static __always_inline bool is_traced_request(struct request *request)
{
	struct block_device *part = request->part;

	if (!traced_partition)
		return request->q->disk->part0->bd_dev == traced_disk;
	if (part)
		return part->bd_dev == traced_partition;
	/* A flush is the whole disk's; the analysis drops those that this partition did not ask for. */
	return (request->cmd_flags & 0xff) == 2 && request->q->disk->part0->bd_dev == traced_disk;
}

static __always_inline bool in_flush_sequence(struct request *request)
{
	__u32 bit = 4;

	if (bpf_core_enum_value_exists(enum rqf_flags, __RQF_FLUSH_SEQ))
		bit = bpf_core_enum_value(enum rqf_flags, __RQF_FLUSH_SEQ);
	return request->rq_flags & (1u << bit);
}

static __always_inline void tell(struct request *request, __u32 type, __u32 bytes, __u8 status)
{
	struct wire_transfer *record = reserve(sizeof(*record));

	if (!record)
		return;
	record->type = type;
	record->in_flush_sequence = in_flush_sequence(request);
	record->status = status;
	record->bytes = bytes;
	record->mono_ns = bpf_ktime_get_ns();
	record->sector = request->__sector;
	record->opf = request->cmd_flags;
	record->reserved = 0;
	submit(record);
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_issue, struct request *request)
{
	if (!is_traced_request(request))
		return 0;
	add(POINT_ISSUED, request->cmd_flags, 1, request->__data_len);
	tell(request, WIRE_ISSUE, request->__data_len, 0);
	return 0;
}

SEC("tp_btf/block_rq_requeue")
int BPF_PROG(on_requeue, struct request *request)
{
	if (!is_traced_request(request))
		return 0;
	add(POINT_REQUEUED, request->cmd_flags, 1, request->__data_len);
	tell(request, WIRE_REQUEUE, request->__data_len, 0);
	return 0;
}

/*
 * A FUA request comes back twice, first inside the flush sequence. The kernel counts its bytes
 * then and the request when it leaves the sequence (block/blk-flush.c, blk_account_io_done).
 */
SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete, struct request *request, blk_status_t status, unsigned int bytes)
{
	if (!is_traced_request(request))
		return 0;
	add(POINT_COMPLETED, request->cmd_flags,
	    (request->cmd_flags & 0xff) == 2 ||
		    (!in_flush_sequence(request) && bytes >= request->__data_len),
	    bytes);
	tell(request, WIRE_COMPLETE, bytes, status);
	return 0;
}

SEC("tp_btf/block_split")
int BPF_PROG(on_split, struct bio *bio, unsigned int sector)
{
	struct wire_transfer *record;

	if (!is_traced(bio->bi_bdev))
		return 0;
	count(COUNTER_SPLITS);
	record = reserve(sizeof(*record));
	if (!record)
		return 0;
	__builtin_memset(record, 0, sizeof(*record));
	record->type = WIRE_SPLIT;
	record->mono_ns = bpf_ktime_get_ns();
	record->sector = bio->bi_iter.bi_sector;
	record->opf = bio->bi_opf;
	submit(record);
	return 0;
}

SEC("tp_btf/block_bio_backmerge")
int BPF_PROG(on_back_merge, struct bio *bio)
{
	if (is_traced(bio->bi_bdev))
		count(COUNTER_MERGES);
	return 0;
}

SEC("tp_btf/block_bio_frontmerge")
int BPF_PROG(on_front_merge, struct bio *bio)
{
	if (is_traced(bio->bi_bdev))
		count(COUNTER_MERGES);
	return 0;
}

SEC("tp_btf/block_rq_merge")
int BPF_PROG(on_request_merge, struct request *request)
{
	if (is_traced_request(request))
		count(COUNTER_MERGES);
	return 0;
}

#endif
