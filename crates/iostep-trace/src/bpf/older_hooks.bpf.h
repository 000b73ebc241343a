/* SPDX-License-Identifier: GPL-2.0 */
/* Tells of bios from before the programs when they get a request, and whether any may be left. */
#ifndef IOSTEP_OLDER_HOOKS_H
#define IOSTEP_OLDER_HOOKS_H

/* A bio gets a request, or joins one: tells of it if it is an older one. */
static __always_inline void tell_if_older(struct bio *bio)
{
	struct wire_older *record;
	__u32 device;

	if (!older_may_come || is_submitter(bpf_get_current_pid_tgid()))
		return;
	device = device_of(bio->bi_bdev, DEVICE_DISK);
	if (device == NO_DEVICE || is_told(bio))
		return;
	record = reserve(sizeof(*record));
	if (!record)
		return;
	record->type = WIRE_OLDER;
	record->reserved = 0;
	record->bytes = bio->bi_iter.bi_size;
	record->mono_ns = bpf_ktime_get_ns();
	record->sector = bio->bi_iter.bi_sector;
	record->opf = bio->bi_opf;
	record->device = device;
	record->flush_bio = only_flushes(bio) ? (__u64)bio : 0;
	submit(record);
}

SEC("tp_btf/block_getrq")
int BPF_PROG(on_get_request, struct bio *bio)
{
	tell_if_older(bio);
	return 0;
}

/* Writes a byte for each thread that may have older bios. */
SEC("iter/task")
int list_older(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	__u8 one = 1;

	if (task && task->bio_list && !is_submitter(task->pid))
		bpf_seq_write(context->meta->seq, &one, sizeof(one));
	return 0;
}

#endif
