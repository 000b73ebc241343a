// SPDX-License-Identifier: GPL-2.0
/*
 * Records the system calls of a tree of tasks.
 *
 * sys_enter            takes the time and the arguments
 * sys_exit             reads what the arguments point to, and makes the record
 * sched_process_fork   follows the tree; made before the child runs, so its record comes first
 * sched_process_exec   a new program, with another name and without some descriptors
 * sched_process_exit   the end of a thread, and of the call that it died in
 * task_rename          a thread's name
 * io_uring_…           requests of io_uring (uring.bpf.h); those of io_submit are in aio.bpf.h
 *
 * Only tasks of the tree have storage; all others leave after one look-up. Strings are read when
 * the call returns: the kernel has then read them itself, so that their pages are there, while a
 * program cannot wait for a page.
 */
#include "../../bpf/kernel_types.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "wire.h"
#include "../../bpf/ring.bpf.h"
#include "identity.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* Set before loading: what to record of each call. */
const volatile __u32 classes[WIRE_CALLS] = {};

/* The process whose threads are recorded although nobody saw them begin; 0 for none. */
int attached_process = 0;
/* The thread whose next child is recorded from its first exec on; 0 for none. */
int launching_thread = 0;

/* A second and more of system calls as fast as they go. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 20);
} records SEC(".maps");

struct task {
	/* The call under way; start_ns is 0 if there is none. */
	struct wire_record record;
	/* Waits for its exec: what happens before is the recorder's own doing. */
	__u32 waits;
	/* The last copy of on_enter that ran in the call under way; 0 if there is none. */
	__u32 entered;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task);
} tasks SEC(".maps");

struct long_record {
	struct wire_record record;
	char text[2 * WIRE_TEXT_BYTES];
};

/*
 * Since Linux 7.0 a task can be preempted in a program, and the kernel skips one that is running on
 * the processor already (entries.bpf.h of the tracer's programs has the whole story). So where that
 * may be, what runs with every call is there so often, one behind the other at its tracepoint: the
 * first that runs does the work, and leaves the others nothing to do. Lost is only what all skipped.
 */
#define COPIES 3

/* Who makes a long record on a processor: one place each, since one may be preempted in it. */
enum scratch_place {
	SCRATCH_COPY = 0,
	SCRATCH_THREAD_EXIT = COPIES,
	SCRATCH_REQUEST,
	SCRATCH_PLACES,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_PLACES);
	__type(key, __u32);
	__type(value, struct long_record);
} scratch SEC(".maps");

/* Records that found no room in the ring, tasks without room for their storage. */
enum loss { LOST_RECORDS = 0, LOST_TASKS = 1, LOSSES = 2 };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LOSSES);
	__type(key, __u32);
	__type(value, __u64);
} losses SEC(".maps");

static __always_inline void count_lost(__u32 which)
{
	__u64 *value = bpf_map_lookup_elem(&losses, &which);

	/* Another task may come between. */
	if (value)
		__sync_fetch_and_add(value, 1);
}

/* The reader looks every few milliseconds: waking it for a record costs more than making it. */
static __always_inline void output(void *record, __u64 bytes)
{
	if (!put_into(&records, record, bytes, BPF_RB_NO_WAKEUP))
		count_lost(LOST_RECORDS);
}

#if defined(__TARGET_ARCH_x86)
#define TS_COMPAT 0x0002
static __always_inline bool is_foreign(struct task_struct *task)
{
	return task->thread_info.status & TS_COMPAT;
}
static __always_inline long number_of(struct pt_regs *regs)
{
	return regs->orig_ax;
}
static __always_inline void read_arguments(struct pt_regs *regs, __u64 *word)
{
	word[0] = regs->di;
	word[1] = regs->si;
	word[2] = regs->dx;
	word[3] = regs->r10;
	word[4] = regs->r8;
	word[5] = regs->r9;
}
#elif defined(__TARGET_ARCH_arm64)
#define TIF_32BIT 22
static __always_inline bool is_foreign(struct task_struct *task)
{
	return task->thread_info.flags & (1ul << TIF_32BIT);
}
static __always_inline long number_of(struct pt_regs *regs)
{
	return regs->syscallno;
}
static __always_inline void read_arguments(struct pt_regs *regs, __u64 *word)
{
	word[0] = regs->orig_x0;
	word[1] = regs->user_regs.regs[1];
	word[2] = regs->user_regs.regs[2];
	word[3] = regs->user_regs.regs[3];
	word[4] = regs->user_regs.regs[4];
	word[5] = regs->user_regs.regs[5];
}
#endif

static __always_inline struct file *file_of(struct task_struct *task, __u32 descriptor)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **slots = BPF_CORE_READ(table, fd);
	struct file *file = NULL;

	if (descriptor < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), slots + descriptor);
	return file;
}

/* The lock commands of fcntl (include/uapi/asm-generic/fcntl.h), F_OFD_ included. */
static __always_inline bool is_lock_command(__u64 command)
{
	return (command >= 5 && command <= 7) || (command >= 36 && command <= 38);
}

struct lock {
	__s16 type;
	__s16 whence;
	__u32 padding;
	__s64 start;
	__s64 length;
};

/* Before the call, since F_GETLK answers in the same place. */
static __noinline void read_lock(struct wire_record *record, struct task_struct *task)
{
	struct lock lock = {};
	struct file *file;

	if (!record || !task)
		return;
	if (bpf_probe_read_user(&lock, sizeof(lock), (void *)record->word[2])) {
		record->flags |= FLAG_EXTRA_LOST;
		return;
	}
	record->word[6] = (__u16)lock.type | (__u64)(__u16)lock.whence << 16;
	record->word[7] = lock.start;
	record->word[8] = lock.length;
	record->word[9] = 0;
	if (!lock.whence)
		return;
	file = file_of(task, record->word[0]);
	record->word[9] = lock.whence == 1 ? BPF_CORE_READ(file, f_pos)
					   : BPF_CORE_READ(file, f_inode, i_size);
}

static __always_inline void see_file(struct wire_record *record, struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);

	if (!inode)
		return;
	record->flags |= FLAG_SEEN;
	record->word[6] = (__u64)BPF_CORE_READ(inode, i_mode) << 32 | device_of(inode);
	record->word[7] = BPF_CORE_READ(inode, i_ino);
	record->word[8] = BPF_CORE_READ(inode, i_size);
	record->word[9] = (__u64)BPF_CORE_READ(file, f_mode) << 32 |
			  (__u32)BPF_CORE_READ(inode, i_sb, s_magic);
}

static __always_inline void see_opened(struct wire_record *record, struct task_struct *task)
{
	see_file(record, file_of(task, record->result));
}

/* The same, and which open file it is: two descriptors of it have the same address. */
static __always_inline void see_own(struct wire_record *record, struct task_struct *task)
{
	struct file *file = file_of(task, record->result);

	see_file(record, file);
	record->word[5] = (__u64)file;
}

struct vector {
	__u64 address;
	__u64 length;
};

struct vector_sum {
	__u64 address;
	__u64 sum;
	__u64 lost;
};

static long add_vector(__u32 index, struct vector_sum *sum)
{
	struct vector vector;

	if (bpf_probe_read_user(&vector, sizeof(vector),
				(void *)(sum->address + index * sizeof(vector)))) {
		sum->lost = 1;
		return 1;
	}
	sum->sum += vector.length;
	return 0;
}

/* UIO_MAXIOV (include/uapi/linux/uio.h): the kernel refuses more. */
#define MAX_VECTORS 1024

static __always_inline void sum_vectors(struct wire_record *record)
{
	struct vector_sum sum = { .address = record->word[1] };

	bpf_loop(at_most(record->word[2], MAX_VECTORS), add_vector, &sum, 0);
	record->word[6] = sum.sum;
	if (sum.lost)
		record->flags |= FLAG_EXTRA_LOST;
}

static __always_inline void read_words(struct wire_record *record, __u64 at, __u64 *word,
				       __u64 bytes)
{
	*word = 0;
	if (at && bpf_probe_read_user(word, bytes, (void *)at))
		record->flags |= FLAG_EXTRA_LOST;
}

#include "stat.bpf.h"

/* include/uapi/linux/fs.h. */
#define FICLONERANGE 0x4020940d

static __noinline void read_extra(struct wire_record *record, struct task_struct *task, __u32 class)
{
	if (!record || !task)
		return;
	switch (class >> CLASS_EXTRA_SHIFT & CLASS_EXTRA) {
	case EXTRA_OPEN_HOW:
		read_words(record, record->word[2] + 8, &record->word[3], 8);
		read_words(record, record->word[2], &record->word[2], 8);
		if (record->result >= 0)
			see_own(record, task);
		break;
	case EXTRA_OPENED:
		if (record->result >= 0)
			see_own(record, task);
		break;
	case EXTRA_VECTORS:
		sum_vectors(record);
		break;
	case EXTRA_PAIR_AT_0:
		if (record->result >= 0)
			read_words(record, record->word[0], &record->word[6], 8);
		break;
	case EXTRA_PAIR_AT_3:
		if (record->result >= 0)
			read_words(record, record->word[3], &record->word[6], 8);
		break;
	case EXTRA_OFFSETS:
		read_words(record, record->word[1], &record->word[6], 8);
		read_words(record, record->word[3], &record->word[7], 8);
		break;
	case EXTRA_OFFSET_AT_2:
		read_words(record, record->word[2], &record->word[6], 8);
		break;
	case EXTRA_STAT:
		read_stat(record, class);
		break;
	case EXTRA_CLONE_RANGE:
		if ((__u32)record->word[1] == FICLONERANGE)
			read_words(record, record->word[2], &record->word[6], 32);
		break;
	}
}

#define SOL_SOCKET 1
#define SCM_RIGHTS 1
#define MSG_CMSG_CLOEXEC 0x40000000
#define O_CLOEXEC 02000000
/* `SCM_MAX_FD` (include/net/scm.h). */
#define MAX_RECEIVED 253
/* Kinds of control messages on a unix socket, and more. */
#define MAX_MESSAGES 8

static __always_inline void receive(struct task_struct *task, __u32 descriptor, __u64 close_on_exec)
{
	struct file *file = file_of(task, descriptor);
	struct wire_record record = {};

	record.start_ns = bpf_ktime_get_ns();
	record.result = descriptor;
	record.tid = task->pid;
	record.number = WIRE_RECEIVED;
	record.words = WIRE_TEXTS;
	record.word[0] = BPF_CORE_READ(file, f_flags) | close_on_exec;
	record.word[1] = BPF_CORE_READ(file, f_pos);
	record.word[2] = (__u64)file;
	record.word[3] = BPF_CORE_READ(file, f_inode, i_nlink);
	see_file(&record, file);
	output(&record, WIRE_HEADER_BYTES + WIRE_TEXTS * 8);
}

/* Where a program finds its control messages (struct msghdr, include/linux/socket.h). */
struct messages {
	__u64 at;
	__u64 end;
	__u64 descriptors;
	__u64 close_on_exec;
};

static long receive_next(__u32 index, struct messages *messages)
{
	__s32 descriptor;

	if (bpf_probe_read_user(&descriptor, sizeof(descriptor),
				(void *)(messages->descriptors + index * sizeof(descriptor))))
		return 1;
	receive(bpf_get_current_task_btf(), descriptor, messages->close_on_exec);
	return 0;
}

static long read_message(__u32 index, struct messages *messages)
{
	struct {
		__u64 length;
		__s32 level;
		__s32 type;
	} head;

	if (messages->at + sizeof(head) > messages->end ||
	    bpf_probe_read_user(&head, sizeof(head), (void *)messages->at) ||
	    head.length < sizeof(head) || head.length > messages->end - messages->at)
		return 1;
	if (head.level == SOL_SOCKET && head.type == SCM_RIGHTS) {
		messages->descriptors = messages->at + sizeof(head);
		bpf_loop(at_most((head.length - sizeof(head)) / sizeof(__s32), MAX_RECEIVED),
			 receive_next, messages, 0);
	}
	messages->at += (head.length + 7) & ~7ull;
	return 0;
}

/* What came with a message. The kernel has put the length of all control messages there. */
static __noinline void receive_messages(struct wire_record *record)
{
	struct messages messages = {};
	__u64 control[2];

	if (!record || record->result < 0)
		return;
	if (bpf_probe_read_user(control, sizeof(control), (void *)(record->word[1] + 32)))
		return;
	messages.at = control[0];
	messages.end = control[0] + control[1];
	messages.close_on_exec = record->word[2] & MSG_CMSG_CLOEXEC ? O_CLOEXEC : 0;
	bpf_loop(MAX_MESSAGES, read_message, &messages, 0);
}

#include "aio.bpf.h"

/* A record with one or two strings behind it. */
static __always_inline void output_texts(struct wire_record *record, __u32 class, __u32 place)
{
	__u32 first = class >> CLASS_TEXT_1_SHIFT & CLASS_TEXT;
	__u32 second = class >> CLASS_TEXT_2_SHIFT & CLASS_TEXT;
	struct long_record *all;
	__u64 address, bytes = 0, more = 0;
	long length;

	all = bpf_map_lookup_elem(&scratch, &place);
	if (!all)
		return;
	address = record->word[(first - 1) & 7];
	if (address) {
		length = bpf_probe_read_user_str(all->text, WIRE_TEXT_BYTES, (void *)address);
		if (length < 0)
			record->flags |= FLAG_TEXT_1_LOST;
		else
			bytes = at_most(length, WIRE_TEXT_BYTES);
	}
	if ((class >> CLASS_EXTRA_SHIFT & CLASS_EXTRA) == EXTRA_ANSWERED) {
		more = record->result > 0 ? at_most(record->result, WIRE_TEXT_BYTES) : 0;
		address = record->word[(second - 1) & 7];
		if (more && bpf_probe_read_user(all->text + bytes, more, (void *)address)) {
			record->flags |= FLAG_TEXT_2_LOST;
			more = 0;
		}
	} else if (second && (class >> CLASS_EXTRA_SHIFT & CLASS_EXTRA) != EXTRA_STAT) {
		address = record->word[(second - 1) & 7];
		length = bpf_probe_read_user_str(all->text + bytes, WIRE_TEXT_BYTES,
						 (void *)address);
		if (length < 0)
			record->flags |= FLAG_TEXT_2_LOST;
		else
			more = at_most(length, WIRE_TEXT_BYTES);
	}
	record->word[WIRE_TEXTS] = bytes;
	record->word[WIRE_TEXTS + 1] = more;
	record->words = WIRE_WORDS;
	all->record = *record;
	bytes = at_most(bytes + more, 2 * WIRE_TEXT_BYTES);
	output(all, sizeof(struct wire_record) + bytes);
}

static __always_inline void finish(struct task *own, struct task_struct *task, long result,
				   __u32 flags, __u32 place)
{
	struct wire_record *record = &own->record;
	__u32 class;

	record->duration_ns = bpf_ktime_get_ns() - record->start_ns;
	record->result = result;
	record->flags |= flags;
	if (record->number >= WIRE_CALLS) {
		record->words = 0;
		output(record, WIRE_HEADER_BYTES);
		goto end;
	}
	class = classes[record->number & (WIRE_CALLS - 1)];
	/* The fork's record was made already, unless it failed. */
	if ((class >> CLASS_EXTRA_SHIFT & CLASS_EXTRA) == EXTRA_FORK && result >= 0)
		goto end;
	switch (class >> CLASS_EXTRA_SHIFT & CLASS_EXTRA) {
	case EXTRA_NONE:
		break;
	case EXTRA_MESSAGE:
		receive_messages(record);
		goto end;
	case EXTRA_COMPLETED:
		complete(record);
		goto end;
	case EXTRA_RECEIVED:
		if (result >= 0)
			receive(task, result, O_CLOEXEC);
		goto end;
	default:
		read_extra(record, task, class);
	}
	if (class >> CLASS_TEXT_1_SHIFT & CLASS_TEXT) {
		output_texts(record, class, place);
	} else {
		record->words = class & CLASS_WORDS;
		output(record, WIRE_HEADER_BYTES + at_most(record->words, WIRE_WORDS) * 8);
	}
end:
	record->start_ns = 0;
	own->entered = 0;
}

static __always_inline struct task *own_storage(struct task_struct *task)
{
	struct task *own = bpf_task_storage_get(&tasks, task, 0, 0);

	if (own || !attached_process || task->tgid != attached_process)
		return own;
	own = bpf_task_storage_get(&tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!own)
		count_lost(LOST_TASKS);
	return own;
}

#define MAP_ANONYMOUS 0x20

/* True if a copy before has seen the call. */
static __always_inline bool was_entered(struct task *own, __u32 copy)
{
	bool seen = own->entered && own->entered < copy;

	own->entered = copy;
	return seen;
}

static __always_inline int enter(struct pt_regs *regs, long id, __u32 copy)
{
	struct task_struct *task;
	struct wire_record *record;
	struct task *own;
	__u32 class;

	if ((__u64)id >= WIRE_CALLS)
		return 0;
	class = classes[id];
	if (!class)
		return 0;
	task = bpf_get_current_task_btf();
	own = own_storage(task);
	if (!own || own->waits || was_entered(own, copy))
		return 0;
	record = &own->record;
	read_arguments(regs, record->word);
	record->tid = task->pid;
	record->number = is_foreign(task) ? WIRE_FOREIGN : id;
	record->flags = 0;
	switch (class >> CLASS_EXTRA_SHIFT & CLASS_EXTRA) {
	case EXTRA_MAPPED:
		if (record->word[3] & MAP_ANONYMOUS)
			return 0;
		break;
	case EXTRA_LOCK:
		if (is_lock_command(record->word[1]))
			read_lock(record, task);
		break;
	case EXTRA_SUBMITTED:
		if (record->number != WIRE_FOREIGN)
			submit(record);
		break;
	}
	record->start_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int leave(struct pt_regs *regs, long result, __u32 copy)
{
	__u64 number = number_of(regs);
	struct task_struct *task;
	struct task *own;

	/* A successful exec and sigreturn lose the number, and are not recorded here. */
	if (number >= WIRE_CALLS || !classes[number])
		return 0;
	task = bpf_get_current_task_btf();
	own = bpf_task_storage_get(&tasks, task, 0, 0);
	if (own && own->record.start_ns)
		finish(own, task, result, 0, SCRATCH_COPY + copy - 1);
	return 0;
}

/* The numbers behind the names are also the recorder's: it loads the others where they are needed. */
#define COPY(number)                                                     \
	SEC("tp_btf/sys_enter")                                          \
	int BPF_PROG(on_enter##number, struct pt_regs *regs, long id)    \
	{                                                                \
		return enter(regs, id, number);                          \
	}                                                                \
	SEC("tp_btf/sys_exit")                                           \
	int BPF_PROG(on_exit##number, struct pt_regs *regs, long result) \
	{                                                                \
		return leave(regs, result, number);                      \
	}

COPY(1)
COPY(2)
COPY(3)

static __always_inline void note(__u32 tid, __u16 number, __u64 start_ns, __u64 first, __u64 second,
				 __u64 third)
{
	struct {
		unsigned long long start_ns, duration_ns;
		long long result;
		unsigned int tid;
		unsigned short number;
		unsigned char words, flags;
		unsigned long long word[3];
	} record = {};
	__u64 now = bpf_ktime_get_ns();

	record.start_ns = start_ns ? start_ns : now;
	record.duration_ns = now - record.start_ns;
	record.tid = tid;
	record.number = number;
	record.words = 3;
	record.word[0] = first;
	record.word[1] = second;
	record.word[2] = third;
	output(&record, sizeof(record));
}

#include "uring.bpf.h"

/* A task's number in its own PID namespace. */
static __always_inline int number_of_own(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	unsigned int level = BPF_CORE_READ(pid, level);
	struct upid *own = (void *)pid + bpf_core_field_offset(struct pid, numbers) +
			   level * bpf_core_type_size(struct upid);

	return BPF_CORE_READ(own, nr);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct task *own = bpf_task_storage_get(&tasks, parent, 0, 0);
	bool launched =
		launching_thread && parent->pid == launching_thread && child->tgid != parent->tgid;
	struct task *new;
	__u64 shares = 0;

	if (!launched && !own && (!attached_process || parent->tgid != attached_process))
		return 0;
	new = bpf_task_storage_get(&tasks, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!new) {
		count_lost(LOST_TASKS);
		return 0;
	}
	if (launched) {
		launching_thread = 0;
		new->waits = 1;
		return 0;
	}
	if (own && own->waits) {
		new->waits = 1;
		return 0;
	}
	if (child->tgid == parent->tgid)
		shares |= SHARES_PROCESS;
	if (child->files == parent->files)
		shares |= SHARES_FILES;
	if (child->fs == parent->fs)
		shares |= SHARES_DIRECTORY;
	note(parent->pid, WIRE_FORK, own ? own->record.start_ns : 0, child->pid, shares,
	     number_of_own(child));
	return 0;
}

static __always_inline void note_name(__u32 tid, __u16 number, __u64 first, const char *name)
{
	__u64 words[2] = {};

	bpf_probe_read_kernel(words, sizeof(words), name);
	note(tid, number, 0, first, words[0], words[1]);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid)
{
	struct task *own = own_storage(task);

	if (!own)
		return 0;
	own->waits = 0;
	own->record.start_ns = 0;
	own->entered = 0;
	note_name(task->pid, WIRE_EXEC, old_pid, task->comm);
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *name)
{
	struct task *own = bpf_task_storage_get(&tasks, task, 0, 0);

	if (own && !own->waits)
		note_name(task->pid, WIRE_NAME, 0, name);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_thread_exit, struct task_struct *task)
{
	struct task *own = own_storage(task);
	bool last = !BPF_CORE_READ(task, signal, live.counter);

	if (!own)
		return 0;
	if (last && task->tgid == attached_process)
		attached_process = 0;
	if (own->waits)
		return 0;
	if (own->record.start_ns)
		finish(own, task, -1, FLAG_UNFINISHED, SCRATCH_THREAD_EXIT);
	note(task->pid, WIRE_EXIT, 0, last, 0, 0);
	return 0;
}

/* Makes these types part of the object's BTF, from which those of Rust are generated. */
struct wire_types {
	enum wire_size size;
	enum wire_note note;
	enum wire_shares shares;
	enum wire_request request;
	enum wire_flags flags;
	enum wire_class class;
	enum wire_extra extra;
	enum loss loss;
	struct wire_record record;
};
struct wire_types wire_types = {};
