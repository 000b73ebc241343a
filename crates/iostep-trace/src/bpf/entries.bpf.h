/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Programs that a kernel may preempt, and that can be entered again meanwhile.
 *
 * Since Linux 7.0 a task can be preempted in any tracepoint, since 6.13 in those of system calls.
 * The kernel skips a program that is running on the processor already, so that the next task's event
 * goes by (bpf_prog_get_recursion_context, kernel/trace/bpf_trace.c). Preemption cannot be put off
 * from inside: it then comes where it is allowed again, still inside the program.
 *
 * So there a program has several entries, one behind the other at its tracepoint. Each goes on to the
 * program by a tail call, which the kernel does not count, unless an entry before did; the program
 * itself is loaded once. An event is lost only where as many tasks as there are entries were preempted
 * in the same program on one processor.
 */
#ifndef IOSTEP_ENTRIES_H
#define IOSTEP_ENTRIES_H

#define ENTRIES 4
#define SEEN_SLOTS (1 << 14)
/* Of the slots, those for interrupts of idle processors. */
#define IDLE_SLOTS (1 << 12)

struct event {
	/* The tracepoint's first argument. */
	__u64 argument;
	__u32 pid;
	__u32 program;
};

/* The event that a thread's last program was at, until the last entry has seen it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SEEN_SLOTS);
	__type(key, __u32);
	__type(value, struct event);
} seen SEC(".maps");

/* Those that an interrupt between two entries took the slot from. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 12);
	__type(key, struct event);
	__type(value, __u32);
} seen_before SEC(".maps");

/* There ever were any. */
__u64 any_seen_before = 0;

static __always_inline struct event *seen_slot(__u32 pid)
{
	__u32 slot = IDLE_SLOTS + pid % (SEEN_SLOTS - IDLE_SLOTS);

	if (!pid)
		slot = bpf_get_smp_processor_id() & (IDLE_SLOTS - 1);
	return bpf_map_lookup_elem(&seen, &slot);
}

static __always_inline bool is_event(struct event *slot, struct event *event)
{
	return slot->program == event->program && slot->argument == event->argument &&
	       slot->pid == event->pid;
}

/* The last that a program does. */
static __always_inline void set_seen(__u64 argument, __u32 program)
{
	struct event event = { .argument = argument, .program = program }, other;
	struct event *slot;
	__u32 one = 1;

	event.pid = bpf_get_current_pid_tgid();
	slot = seen_slot(event.pid);
	if (!slot)
		return;
	if (slot->program && !is_event(slot, &event)) {
		other = *slot;
		any_seen_before = 1;
		bpf_map_update_elem(&seen_before, &other, &one, BPF_ANY);
	}
	*slot = event;
}

static __always_inline bool was_seen(__u64 argument, __u32 program, bool by_last)
{
	struct event event = { .argument = argument, .program = program };
	struct event *slot;

	event.pid = bpf_get_current_pid_tgid();
	slot = seen_slot(event.pid);
	if (slot && is_event(slot, &event)) {
		if (by_last)
			slot->program = 0;
		return true;
	}
	if (!any_seen_before)
		return false;
	if (by_last)
		return !bpf_map_delete_elem(&seen_before, &event);
	return bpf_map_lookup_elem(&seen_before, &event);
}

#define ENTRY(tracepoint, name, number)                                                    \
	SEC("tp_btf/" tracepoint)                                                          \
	int name##_entry##number(__u64 *ctx)                                               \
	{                                                                                  \
		if (number == 1 || !was_seen(ctx[0], number_of_##name, number == ENTRIES)) \
			bpf_tail_call(ctx, &name##_program, 0);                            \
		return 0;                                                                  \
	}

#define CALL_BODY(name, args...)                                                              \
	_Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wint-conversion\"") \
		name##_body(___bpf_ctx_cast(args));                                           \
	_Pragma("GCC diagnostic pop")

/*
 * A program on a tracepoint, whose body follows: as one that is called itself, and as one behind
 * entries. That one ends in a tail call to nowhere, since a program without any has a stack of its own
 * for each processor, on the ground that it cannot be entered twice (bpf_enable_priv_stack,
 * kernel/bpf/verifier.c, since Linux 6.13).
 */
#define PROGRAM(tracepoint, name, args...)                          \
	enum { number_of_##name = __COUNTER__ + 1 };                \
	struct {                                                    \
		__uint(type, BPF_MAP_TYPE_PROG_ARRAY);              \
		__uint(max_entries, 1);                             \
		__type(key, __u32);                                 \
		__type(value, __u32);                               \
	} name##_program SEC(".maps");                              \
	static __always_inline int name##_body(__u64 *ctx, ##args); \
	SEC("tp_btf/" tracepoint)                                   \
	int name(__u64 *ctx)                                        \
	{                                                           \
		CALL_BODY(name, args)                               \
		return 0;                                           \
	}                                                           \
	SEC("tp_btf/" tracepoint)                                   \
	int name##_behind(__u64 *ctx)                               \
	{                                                           \
		CALL_BODY(name, args)                               \
		set_seen(ctx[0], number_of_##name);                 \
		bpf_tail_call(ctx, &name##_program, 1);             \
		return 0;                                           \
	}                                                           \
	ENTRY(tracepoint, name, 1)                                  \
	ENTRY(tracepoint, name, 2)                                  \
	ENTRY(tracepoint, name, 3)                                  \
	ENTRY(tracepoint, name, 4)                                  \
	static __always_inline int name##_body(__u64 *ctx, ##args)

#endif
