/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests of io_submit. The kernel has no tracepoint of them: they are read from the program's
 * memory, when io_submit begins and when io_getevents returns.
 */
#ifndef IOSTEP_AIO_BPF_H
#define IOSTEP_AIO_BPF_H

/* More than programs hand in at once. What is beyond shows as missing: io_submit returns how many. */
#define MAX_SUBMITTED 4096
#define MAX_IOVECS 1024

/* include/uapi/linux/aio_abi.h, little-endian. */
struct submitted_iocb {
	__u64 data;
	__u32 key;
	__u32 rw_flags;
	__u16 opcode;
	__u16 priority;
	__u32 descriptor;
	__u64 buffer;
	__u64 bytes;
	__s64 offset;
	__u64 reserved;
	__u32 flags;
	__u32 event_descriptor;
};

struct completed_event {
	__u64 data;
	__u64 request;
	__s64 result;
	__s64 second;
};

#define IOCB_CMD_PREADV 7
#define IOCB_CMD_PWRITEV 8

struct submission {
	__u64 addresses;
	__u32 tid;
};

static long submit_one(__u32 index, struct submission *submission)
{
	struct submitted_iocb request = {};
	struct wire_record record = {};
	struct vector_sum sum = {};
	__u64 address = 0;

	if (bpf_probe_read_user(&address, sizeof(address),
				(void *)(submission->addresses + index * sizeof(address))))
		return 1;
	record.start_ns = bpf_ktime_get_ns();
	record.tid = submission->tid;
	record.number = WIRE_SUBMITTED;
	record.words = WIRE_REQUEST_WORDS;
	if (bpf_probe_read_user(&request, sizeof(request), (void *)address)) {
		record.word[0] = ~0ull;
		output(&record, WIRE_HEADER_BYTES + WIRE_REQUEST_WORDS * 8);
		return 0;
	}
	record.word[0] = request.opcode;
	record.word[1] = request.descriptor;
	record.word[2] = request.offset;
	record.word[3] = request.bytes;
	record.word[4] = address;
	record.word[5] = 1;
	if (request.opcode == IOCB_CMD_PREADV || request.opcode == IOCB_CMD_PWRITEV) {
		sum.address = request.buffer;
		bpf_loop(at_most(request.bytes, MAX_IOVECS), add_vector, &sum, 0);
		record.word[3] = sum.sum;
		record.word[5] = (__u32)request.bytes;
	}
	record.word[5] |= (__u64)request.rw_flags << 32;
	output(&record, WIRE_HEADER_BYTES + WIRE_REQUEST_WORDS * 8);
	return 0;
}

static __noinline int submit(struct wire_record *record)
{
	struct submission submission = {};

	if (!record)
		return 0;
	submission.addresses = record->word[2];
	submission.tid = record->tid;
	bpf_loop(at_most(record->word[1], MAX_SUBMITTED), submit_one, &submission, 0);
	return 0;
}

struct completion {
	__u64 events;
	__u64 context;
	__u32 tid;
};

static long complete_one(__u32 index, struct completion *completion)
{
	struct completed_event event = {};
	struct wire_record record = {};

	if (bpf_probe_read_user(&event, sizeof(event),
				(void *)(completion->events + index * sizeof(event))))
		return 1;
	record.start_ns = bpf_ktime_get_ns();
	record.tid = completion->tid;
	record.number = WIRE_COMPLETED;
	record.words = 3;
	record.word[0] = completion->context;
	record.word[1] = event.request;
	record.word[2] = event.result;
	output(&record, WIRE_HEADER_BYTES + 3 * 8);
	return 0;
}

static __noinline int complete(struct wire_record *record)
{
	struct completion completion = {};

	if (!record || record->result <= 0)
		return 0;
	completion.events = record->word[3];
	completion.context = record->word[0];
	completion.tid = record->tid;
	bpf_loop(at_most(record->result, MAX_SUBMITTED), complete_one, &completion, 0);
	return 0;
}

#endif
