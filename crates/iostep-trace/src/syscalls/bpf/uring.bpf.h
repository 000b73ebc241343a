/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests of io_uring: from being handed in to being complete.
 *
 * io_uring_submit_req   a request that is whole; io_uring_submit_sqe before Linux 6.3
 * io_uring_complete     its end, wherever it was carried out
 * io_uring_req_failed   one that made no sense, and so never became whole
 *
 * What a request asks for is in the kernel's own struct, whose beginning each operation uses as it
 * needs (struct io_cmd_data of include/linux/io_uring_types.h). Names are told when it is handed
 * in, since they are gone when it is complete.
 */
#ifndef IOSTEP_URING_BPF_H
#define IOSTEP_URING_BPF_H

/* Requests under way, by the address of the kernel's struct. */
struct uring_request {
	__u64 start_ns;
	__u32 tid;
	int tgid;
	__u64 word[WIRE_REQUEST_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, __u64);
	__type(value, struct uring_request);
} requests SEC(".maps");

/* enum io_uring_op (include/uapi/linux/io_uring.h). */
enum {
	OP_READV = 1,
	OP_WRITEV = 2,
	OP_FSYNC = 3,
	OP_READ_FIXED = 4,
	OP_WRITE_FIXED = 5,
	OP_SYNC_FILE_RANGE = 8,
	OP_FALLOCATE = 17,
	OP_OPENAT = 18,
	OP_CLOSE = 19,
	OP_STATX = 21,
	OP_READ = 22,
	OP_WRITE = 23,
	OP_FADVISE = 24,
	OP_OPENAT2 = 28,
	OP_RENAMEAT = 35,
	OP_UNLINKAT = 36,
	OP_MKDIRAT = 37,
	OP_SYMLINKAT = 38,
	OP_LINKAT = 39,
	OP_FTRUNCATE = 55,
	OP_READV_FIXED = 60,
	OP_WRITEV_FIXED = 61,
};

/* REQ_F_FIXED_FILE, REQ_F_CQE_SKIP (include/linux/io_uring_types.h, by enum io_uring_sqe_flags_bit). */
#define FIXED_FILE 0x01
#define SKIPS_SUCCESS 0x40
/* include/linux/sched.h. */
#define PF_IO_WORKER 0x10
/* IORING_CQE_F_MORE (include/uapi/linux/io_uring.h): it will complete again. */
#define COMPLETES_AGAIN 2
/* The bits of a registered file's pointer that are flags (FFS_MASK of io_uring/filetable.h). */
#define POINTER_FLAGS 7ul
/* Descriptors among which a registered file is looked for. */
#define MAX_SEARCH 4096

/* The file of a slot of the ring's own table. */
static __always_inline struct file *registered_file(struct io_kiocb *kiocb, __u32 slot)
{
	struct io_ring_ctx *ring = BPF_CORE_READ(kiocb, ctx);
	unsigned long pointer = 0;

	if (bpf_core_field_exists(struct io_file_table, data)) {
		struct io_rsrc_node **nodes = BPF_CORE_READ(ring, file_table.data.nodes);
		struct io_rsrc_node *node = NULL;

		if (slot >= BPF_CORE_READ(ring, file_table.data.nr))
			return NULL;
		bpf_probe_read_kernel(&node, sizeof(node), nodes + slot);
		if (node)
			pointer = BPF_CORE_READ(node, file_ptr);
	} else {
		struct io_ring_ctx___before_6_13 *old = (void *)ring;
		unsigned long *files;

		if (slot >= BPF_CORE_READ(old, nr_user_files))
			return NULL;
		files = (void *)BPF_CORE_READ(old, file_table.files);
		bpf_probe_read_kernel(&pointer, sizeof(pointer), files + slot);
	}
	return (struct file *)(pointer & ~POINTER_FLAGS);
}

struct file_search {
	struct file **slots;
	struct file *file;
	__s64 found;
};

static long compare_file(__u32 index, struct file_search *search)
{
	struct file *file = NULL;

	bpf_probe_read_kernel(&file, sizeof(file), search->slots + index);
	if (file != search->file)
		return 0;
	search->found = index;
	return 1;
}

/*
 * A request names a registered file by its slot. The program mostly has a descriptor of the same
 * open file still, which is what everybody else knows it by.
 */
static __noinline long descriptor_of(struct io_kiocb *kiocb, struct task_struct *task, __u32 slot)
{
	struct file_search search = { .found = -1 };
	struct fdtable *table;

	if (!kiocb || !task)
		return -1;
	search.file = registered_file(kiocb, slot);
	table = BPF_CORE_READ(task, files, fdt);
	search.slots = BPF_CORE_READ(table, fd);
	if (search.file)
		bpf_loop(at_most(BPF_CORE_READ(table, max_fds), MAX_SEARCH), compare_file, &search,
			 0);
	return search.found;
}

/* Up to two names, in a record of their own that begins when the request does. */
static __noinline int output_names(struct uring_request *request, struct filename *first,
				   struct filename *second)
{
	__u32 place = SCRATCH_REQUEST, bytes = 0, more = 0;
	struct long_record *all;
	long length;

	if (!request)
		return 0;
	all = bpf_map_lookup_elem(&scratch, &place);
	if (!all)
		return 0;
	__builtin_memset(&all->record, 0, sizeof(all->record));
	all->record.start_ns = request->start_ns;
	all->record.tid = request->tid;
	all->record.number = WIRE_REQUEST_NAMES;
	all->record.words = WIRE_WORDS;
	length = bpf_probe_read_kernel_str(all->text, WIRE_TEXT_BYTES, BPF_CORE_READ(first, name));
	if (length < 0)
		all->record.flags |= FLAG_TEXT_1_LOST;
	else
		bytes = at_most(length, WIRE_TEXT_BYTES);
	if (second) {
		length = bpf_probe_read_kernel_str(all->text + bytes, WIRE_TEXT_BYTES,
						   BPF_CORE_READ(second, name));
		if (length < 0)
			all->record.flags |= FLAG_TEXT_2_LOST;
		else
			more = at_most(length, WIRE_TEXT_BYTES);
	}
	all->record.word[WIRE_TEXTS] = bytes;
	all->record.word[WIRE_TEXTS + 1] = more;
	output(all, sizeof(struct wire_record) + at_most(bytes + more, 2 * WIRE_TEXT_BYTES));
	return 0;
}

/* A name of a request whose variable is called as its type: struct io_open *open. */
#define NAME_OF(request, field)                                              \
	(bpf_core_field_exists(struct io_##request, field)                   \
		 ? BPF_CORE_READ(request, field)                             \
		 : BPF_CORE_READ((struct io_##request##___delayed *)request, \
				 field.__incomplete_filename))

/* Requests that name files by paths. */
static __always_inline void read_named(struct uring_request *request, struct io_kiocb *kiocb)
{
	struct io_open *open = (void *)kiocb;
	struct io_statx *statx = (void *)kiocb;
	struct io_unlink *unlink = (void *)kiocb;
	struct io_rename *rename = (void *)kiocb;
	struct io_mkdir *mkdir = (void *)kiocb;
	struct io_link *link = (void *)kiocb;
	__u64 *word = request->word;

	switch (word[0]) {
	case OP_OPENAT:
	case OP_OPENAT2:
		word[1] = (__u32)BPF_CORE_READ(open, dfd);
		word[2] = BPF_CORE_READ(open, how.flags);
		word[3] = BPF_CORE_READ(open, how.mode);
		word[5] = BPF_CORE_READ(open, file_slot);
		output_names(request, NAME_OF(open, filename), NULL);
		break;
	case OP_STATX:
		word[1] = (__u32)BPF_CORE_READ(statx, dfd);
		word[2] = BPF_CORE_READ(statx, flags);
		output_names(request, NAME_OF(statx, filename), NULL);
		break;
	case OP_UNLINKAT:
		word[1] = (__u32)BPF_CORE_READ(unlink, dfd);
		word[2] = (__u32)BPF_CORE_READ(unlink, flags);
		output_names(request, NAME_OF(unlink, filename), NULL);
		break;
	case OP_MKDIRAT:
		word[1] = (__u32)BPF_CORE_READ(mkdir, dfd);
		word[2] = BPF_CORE_READ(mkdir, mode);
		output_names(request, NAME_OF(mkdir, filename), NULL);
		break;
	case OP_RENAMEAT:
		word[1] = (__u32)BPF_CORE_READ(rename, old_dfd);
		word[2] = (__u32)BPF_CORE_READ(rename, new_dfd);
		word[3] = (__u32)BPF_CORE_READ(rename, flags);
		output_names(request, NAME_OF(rename, oldpath), NAME_OF(rename, newpath));
		break;
	case OP_SYMLINKAT:
	case OP_LINKAT:
		word[1] = (__u32)BPF_CORE_READ(link, old_dfd);
		word[2] = (__u32)BPF_CORE_READ(link, new_dfd);
		word[3] = (__u32)BPF_CORE_READ(link, flags);
		output_names(request, NAME_OF(link, oldpath), NAME_OF(link, newpath));
		break;
	}
}

static __always_inline void read_transfer(struct uring_request *request, struct io_kiocb *kiocb)
{
	struct io_rw *rw = (void *)kiocb;
	struct vector_sum sum = {};
	__u64 *word = request->word;
	__u64 opcode = word[0];

	word[2] = BPF_CORE_READ(rw, kiocb.ki_pos);
	word[3] = BPF_CORE_READ(rw, len);
	word[5] = 1;
	if (opcode == OP_READV || opcode == OP_WRITEV || opcode == OP_READV_FIXED ||
	    opcode == OP_WRITEV_FIXED) {
		word[5] = word[3];
		sum.address = BPF_CORE_READ(rw, addr);
		bpf_loop(at_most(word[5], MAX_VECTORS), add_vector, &sum, 0);
		word[3] = sum.sum;
		if (sum.lost)
			word[4] |= REQUEST_LOST;
	}
	word[5] |= (__u64)(__u32)BPF_CORE_READ(rw, flags) << 32;
}

/* Requests on open files. */
static __always_inline void read_opened(struct uring_request *request, struct io_kiocb *kiocb)
{
	struct io_sync *sync = (void *)kiocb;
	struct io_close *close = (void *)kiocb;
	struct io_fadvise *advise = (void *)kiocb;
	struct io_ftrunc *truncate = (void *)kiocb;
	__u64 *word = request->word;

	switch (word[0]) {
	case OP_FSYNC:
	case OP_SYNC_FILE_RANGE:
	case OP_FALLOCATE:
		word[2] = BPF_CORE_READ(sync, off);
		word[3] = BPF_CORE_READ(sync, len);
		word[5] = (__u32)BPF_CORE_READ(sync, mode) |
			  (__u64)(__u32)BPF_CORE_READ(sync, flags) << 32;
		break;
	case OP_CLOSE:
		word[1] = (__u32)BPF_CORE_READ(close, fd);
		word[5] = BPF_CORE_READ(close, file_slot);
		break;
	case OP_FADVISE:
		word[2] = BPF_CORE_READ(advise, offset);
		word[3] = BPF_CORE_READ(advise, len);
		word[5] = BPF_CORE_READ(advise, advice);
		break;
	case OP_FTRUNCATE:
		if (bpf_core_type_exists(struct io_ftrunc))
			word[2] = BPF_CORE_READ(truncate, len);
		break;
	case OP_READV:
	case OP_WRITEV:
	case OP_READ_FIXED:
	case OP_WRITE_FIXED:
	case OP_READ:
	case OP_WRITE:
	case OP_READV_FIXED:
	case OP_WRITEV_FIXED:
		read_transfer(request, kiocb);
		break;
	}
}

/*
 * Whose request it is. The thread that polls a ring (IORING_SETUP_SQPOLL) is of its maker's process
 * and has its descriptors, but nobody saw it begin: its requests are the process's first thread's.
 */
static __always_inline struct task *submitter(struct task_struct *task, __u32 *tid)
{
	*tid = task->pid;
	if (!(task->flags & PF_IO_WORKER))
		return own_storage(task);
	*tid = task->tgid;
	return own_storage(task->group_leader);
}

static __always_inline void output_request(struct uring_request *request, long result, __u8 flags,
					   bool opened)
{
	struct wire_record record = {};

	record.start_ns = request->start_ns;
	record.duration_ns = bpf_ktime_get_ns() - request->start_ns;
	record.result = result;
	record.tid = request->tid;
	record.number = WIRE_REQUEST;
	record.flags = flags;
	__builtin_memcpy(record.word, request->word, sizeof(request->word));
	if (opened)
		see_opened(&record, bpf_get_current_task_btf());
	record.words = opened ? WIRE_TEXTS : WIRE_REQUEST_WORDS;
	output(&record, WIRE_HEADER_BYTES + record.words * 8);
}

static __always_inline int submitted(struct io_kiocb *kiocb)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct uring_request request = {}, *untold;
	__u64 key = (__u64)kiocb;
	struct task *own;
	long descriptor;

	own = submitter(task, &request.tid);
	if (!own || own->waits)
		return 0;
	/* Its memory is used again, so it is complete, and asked for nobody to be told. */
	untold = bpf_map_lookup_elem(&requests, &key);
	if (untold)
		output_request(untold, 0, FLAG_UNTOLD, false);
	request.tgid = task->tgid;
	request.start_ns = bpf_ktime_get_ns();
	request.word[0] = kiocb->opcode;
	request.word[1] = (__u32)kiocb->cqe.fd;
	if (kiocb->flags & SKIPS_SUCCESS)
		request.word[4] |= REQUEST_SILENT;
	if (kiocb->flags & FIXED_FILE) {
		descriptor = descriptor_of(kiocb, task, request.word[1]);
		if (descriptor < 0)
			request.word[4] |= REQUEST_REGISTERED;
		else
			request.word[1] = descriptor;
	}
	read_opened(&request, kiocb);
	read_named(&request, kiocb);
	if (bpf_map_update_elem(&requests, &key, &request, BPF_ANY))
		count_lost(LOST_RECORDS);
	return 0;
}

SEC("tp_btf/io_uring_submit_req")
int BPF_PROG(on_submit, struct io_kiocb *kiocb)
{
	return submitted(kiocb);
}

SEC("tp_btf/io_uring_submit_sqe")
int BPF_PROG(on_submit_old, struct io_kiocb *kiocb)
{
	return submitted(kiocb);
}

SEC("tp_btf/io_uring_req_failed")
int BPF_PROG(on_refused, const void *entry, struct io_kiocb *kiocb, int error)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct uring_request request = {};
	struct task *own;

	own = submitter(task, &request.tid);
	if (!own || own->waits)
		return 0;
	request.start_ns = bpf_ktime_get_ns();
	request.word[0] = kiocb->opcode;
	request.word[4] = REQUEST_REFUSED;
	output_request(&request, error, 0, false);
	return 0;
}

/* Older kernels pass the result itself, as the fourth argument. Set from the kernel's BTF. */
const volatile bool complete_has_entry = true;

SEC("tp_btf/io_uring_complete")
int on_complete(__u64 *ctx)
{
	__u64 key = ctx[1];
	struct uring_request *request = bpf_map_lookup_elem(&requests, &key);
	struct task_struct *task = bpf_get_current_task_btf();
	struct io_uring_cqe *entry;
	__u32 flags;
	bool opened;
	long result;

	if (!request)
		return 0;
	if (complete_has_entry) {
		entry = (void *)ctx[2];
		result = BPF_CORE_READ(entry, res);
		flags = BPF_CORE_READ(entry, flags);
	} else {
		result = (int)ctx[3];
		flags = ctx[4];
	}
	opened = request->word[0] == OP_OPENAT || request->word[0] == OP_OPENAT2;
	opened = opened && result >= 0 && !request->word[5] && task->tgid == request->tgid;
	output_request(request, result, 0, opened);
	if (!(flags & COMPLETES_AGAIN))
		bpf_map_delete_elem(&requests, &key);
	return 0;
}

#endif
