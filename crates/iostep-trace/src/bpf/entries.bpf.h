/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Programs that a kernel may preempt, and that can be entered again meanwhile.
 *
 * Since Linux 7.0 a task can be preempted in any tracepoint. (Since 6.13 in those of system calls, where
 * entries would cost every call more than they find: what is skipped there is counted.)
 * The kernel skips a program that is running on the processor already, so that the next task's event
 * goes by (bpf_prog_get_recursion_context, kernel/trace/bpf_trace.c). Preemption cannot be put off
 * from inside: it then comes where it is allowed again, still inside the program.
 *
 * So there a program has several entries, one behind the other at its tracepoint. Each goes on to the
 * program by a tail call, which the kernel does not count, unless an entry before did; the program
 * itself is loaded once. An event is lost only where all entries were running on the processor: in
 * tasks that were preempted in them, or that an interrupt found there.
 */
#ifndef IOSTEP_ENTRIES_H
#define IOSTEP_ENTRIES_H

/* The last one goes nowhere: it ends what is known of the event. */
#define ENTRIES 5
#define SEEN_SLOTS (1 << 16)
/* Of the slots, those for interrupts of idle processors. */
#define IDLE_SLOTS (1 << 12)
/* Of a mark, the bits for the number of the last entry that saw the event; the others name it. */
#define NUMBER_BITS 7ull

/*
 * The event that a thread was at last, as a mark: an entry that comes after those that saw it need not
 * go on. One that finds it was seen by itself, or by one behind it, has another event before it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SEEN_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} seen SEC(".maps");

/* The same for events that an interrupt between two entries took the slot from. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 12);
	__type(key, __u64);
	__type(value, __u64);
} seen_before SEC(".maps");

/* How many there are. */
__s64 events_before = 0;

/* By the name of a program, how often an entry behind the first led to it. */
#define PROGRAM_NAME_BYTES 32
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, char[PROGRAM_NAME_BYTES]);
	__type(value, __u64);
} led SEC(".maps");

/*
 * Takes what belongs to one user of a processor at a time, to be given back. Between a look and a
 * store another task may come, so those that want it are counted first: only who is alone has it.
 */
static __always_inline bool take(__u32 *users)
{
	if (!is_preempted) {
		if (*users)
			return false;
		*users = 1;
		return true;
	}
	__sync_fetch_and_add(users, 1);
	if (*(volatile __u32 *)users == 1)
		return true;
	__sync_fetch_and_add(users, -1);
	return false;
}

static __always_inline void give_back(__u32 *users)
{
	if (is_preempted)
		__sync_fetch_and_add(users, -1);
	else
		*users = 0;
}

static __always_inline __u64 *seen_slot(__u32 pid)
{
	__u32 slot = IDLE_SLOTS + pid % (SEEN_SLOTS - IDLE_SLOTS);

	if (!pid)
		slot = bpf_get_smp_processor_id() & (IDLE_SLOTS - 1);
	return bpf_map_lookup_elem(&seen, &slot);
}

/* The name of an event in a mark. An argument is read: addresses cannot be mixed. */
static __always_inline __u64 name_event(__u64 *argument, __u32 pid, __u32 program)
{
	__u64 address = 0;

	bpf_probe_read_kernel(&address, sizeof(address), argument);
	address ^= (__u64)pid << 40;
	return (address * 0x9e3779b97f4a7c15ull + program * 0xc2b2ae3d27d4eb4full) & ~NUMBER_BITS;
}

static __always_inline void forget_before(__u64 event)
{
	if (events_before > 0 && !bpf_map_delete_elem(&seen_before, &event))
		__sync_fetch_and_add(&events_before, -1);
}

/* The last that a program does. */
static __always_inline void set_seen(__u64 *argument, __u32 program)
{
	__u32 pid = bpf_get_current_pid_tgid();
	__u64 event = name_event(argument, pid, program), *slot = seen_slot(pid), other, number;

	if (!slot)
		return;
	other = *slot & ~NUMBER_BITS;
	number = *slot & NUMBER_BITS;
	forget_before(event);
	if (number && number < ENTRIES && other != event &&
	    !bpf_map_update_elem(&seen_before, &other, &number, BPF_NOEXIST))
		__sync_fetch_and_add(&events_before, 1);
	*slot = event | 1;
}

/* The rare case: not in its thread's slot, which an interrupt may have taken. */
static __always_inline bool was_seen_before(__u64 event, __u64 entry)
{
	__u64 *number = events_before > 0 ? bpf_map_lookup_elem(&seen_before, &event) : NULL;

	if (!number || *number >= entry)
		return false;
	*number = entry;
	if (entry == ENTRIES)
		forget_before(event);
	return true;
}

static __always_inline bool was_seen(__u64 *argument, __u32 program, __u64 entry)
{
	__u32 pid = bpf_get_current_pid_tgid();
	__u64 event = name_event(argument, pid, program), *slot = seen_slot(pid);

	if (!slot || (*slot & ~NUMBER_BITS) != event)
		return was_seen_before(event, entry);
	if ((*slot & NUMBER_BITS) >= entry)
		return false;
	*slot = event | entry;
	return true;
}

static __always_inline void count_led(const char *program)
{
	__u64 *times = bpf_map_lookup_elem(&led, program), none = 0;

	if (!times) {
		bpf_map_update_elem(&led, program, &none, BPF_NOEXIST);
		times = bpf_map_lookup_elem(&led, program);
	}
	if (times)
		__sync_fetch_and_add(times, 1);
}

#define FIRST_ENTRY(tracepoint, name)                   \
	SEC("tp_btf/" tracepoint)                       \
	int name##_entry1(__u64 *ctx)                   \
	{                                               \
		bpf_tail_call(ctx, &name##_program, 0); \
		return 0;                               \
	}

#define ENTRY(tracepoint, name, identity, number)                                            \
	SEC("tp_btf/" tracepoint)                                                            \
	int name##_entry##number(__u64 *ctx)                                                 \
	{                                                                                    \
		if (was_seen(&ctx[identity], number_of_##name, number) || number == ENTRIES) \
			return 0;                                                            \
		count_led(name_of_##name);                                                   \
		bpf_tail_call(ctx, &name##_program, 0);                                      \
		return 0;                                                                    \
	}

#define CALL_BODY(name, args...)                                                              \
	_Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wint-conversion\"") \
		name##_body(___bpf_ctx_cast(args));                                           \
	_Pragma("GCC diagnostic pop")

/*
 * A program on a tracepoint, whose body follows; the argument number `identity` says which event of
 * its thread it is. It is there as one that is called itself, and as one behind
 * entries. That one ends in a tail call to nowhere, since a program without any has a stack of its own
 * for each processor, on the ground that it cannot be entered twice (bpf_enable_priv_stack,
 * kernel/bpf/verifier.c, since Linux 6.13).
 */
#define PROGRAM_BY(identity, tracepoint, name, args...)               \
	enum { number_of_##name = __COUNTER__ + 1 };                  \
	static const char name_of_##name[PROGRAM_NAME_BYTES] = #name; \
	struct {                                                      \
		__uint(type, BPF_MAP_TYPE_PROG_ARRAY);                \
		__uint(max_entries, 1);                               \
		__type(key, __u32);                                   \
		__type(value, __u32);                                 \
	} name##_program SEC(".maps");                                \
	static __always_inline int name##_body(__u64 *ctx, ##args);   \
	SEC("tp_btf/" tracepoint)                                     \
	int name(__u64 *ctx)                                          \
	{                                                             \
		CALL_BODY(name, args)                                 \
		return 0;                                             \
	}                                                             \
	SEC("tp_btf/" tracepoint)                                     \
	int name##_behind(__u64 *ctx)                                 \
	{                                                             \
		CALL_BODY(name, args)                                 \
		set_seen(&ctx[identity], number_of_##name);           \
		bpf_tail_call(ctx, &name##_program, 1);               \
		return 0;                                             \
	}                                                             \
	FIRST_ENTRY(tracepoint, name)                                 \
	ENTRY(tracepoint, name, identity, 2)                          \
	ENTRY(tracepoint, name, identity, 3)                          \
	ENTRY(tracepoint, name, identity, 4)                          \
	ENTRY(tracepoint, name, identity, 5)                          \
	static __always_inline int name##_body(__u64 *ctx, ##args)

/* The same where the first argument says which event of its thread it is. */
#define PROGRAM(tracepoint, name, args...) PROGRAM_BY(0, tracepoint, name, ##args)

#endif
