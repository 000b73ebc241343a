/*
 * The judge of bench/accuracy: nothing but the calls and the clock.
 *
 *   file-loop DIRECTORY THREADS MILLISECONDS fdatasync|fsync|write|read|msync KIB
 *   file-loop DIRECTORY THREADS MILLISECONDS uring|uring-singly KIB DEPTH
 *
 * Thread N does KIB at a time on DIRECTORY/file-N, whose length it keeps: fdatasync and fsync
 * write in order and sync each write; write and read are O_DIRECT, each record once in random
 * order; msync copies to a mapping, in random order, and syncs the record. Prints the mean time of
 * an operation with its sync, and p50 and p99 of the sync, or of the operation if there is none,
 * in nanoseconds.
 *
 * uring reads as read does, by io_uring with DEPTH operations under way: one call submits what is
 * free and waits until one has completed, and all that have completed are taken. uring-singly has
 * a call for each submission, and takes one completion at a time. Both print the time that passed
 * per operation instead of its mean; an operation begins before the call that submits it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, POOL = 64 * PAGE };

enum mode { FDATASYNC, FSYNC, MSYNC, WRITE, READ, URING, URING_SINGLY };

static const char *const MODES[] = { "fdatasync", "fsync", "msync",       "write",
				     "read",      "uring", "uring-singly" };
static size_t record_bytes;
static unsigned depth;

struct load {
	pthread_t thread;
	char path[4096];
	enum mode mode;
	uint64_t until_ns;
	uint64_t sum_ns;
	uint32_t *latencies_ns;
	size_t operations, room;
};

static void must(int done, const char *what)
{
	if (!done) {
		perror(what);
		exit(1);
	}
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void count(struct load *load, uint64_t whole_ns, uint64_t part_ns)
{
	if (load->operations == load->room) {
		load->room = load->room ? 2 * load->room : 1 << 17;
		load->latencies_ns =
			realloc(load->latencies_ns, load->room * sizeof(*load->latencies_ns));
		must(load->latencies_ns != NULL, "realloc");
	}
	load->latencies_ns[load->operations++] = part_ns;
	load->sum_ns += whole_ns;
}

/* Marsaglia's xorshift64. */
static uint64_t draw(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	return *seed ^= *seed << 17;
}

/* Every record once, in another order each time. */
static void shuffle(uint32_t *records, size_t length, uint64_t *seed)
{
	for (size_t i = length - 1; i > 0; i--) {
		size_t other = (draw(seed) >> 32) * (i + 1) >> 32;
		uint32_t kept = records[i];
		records[i] = records[other];
		records[other] = kept;
	}
}

static int sync_record(const struct load *load, int file, char *record)
{
	if (load->mode == FDATASYNC)
		return fdatasync(file);
	if (load->mode == FSYNC)
		return fsync(file);
	return msync(record, record_bytes, MS_SYNC);
}

/* One operation; the answer is false when the time is over. */
static int operate(struct load *load, int file, char *slot, char *mapped, off_t offset)
{
	int syncs = load->mode < WRITE;
	uint64_t begin_ns = now_ns(), done_ns, end_ns;
	if (begin_ns >= load->until_ns)
		return 0;
	if (mapped)
		memcpy(mapped + offset, slot, record_bytes);
	else if (load->mode == READ)
		must(pread(file, slot, record_bytes, offset) == (ssize_t)record_bytes, "pread");
	else
		must(pwrite(file, slot, record_bytes, offset) == (ssize_t)record_bytes, "pwrite");
	done_ns = end_ns = now_ns();
	if (syncs) {
		must(sync_record(load, file, mapped ? mapped + offset : NULL) == 0, "sync");
		end_ns = now_ns();
	}
	count(load, end_ns - begin_ns, syncs ? end_ns - done_ns : end_ns - begin_ns);
	return 1;
}

/* A ring with one file and one buffer registered, as fio has it with --registerfiles and --fixedbufs. */
struct ring {
	int descriptor;
	uint32_t *sq_tail, *sq_array, *cq_head, *cq_tail;
	uint32_t sq_mask, cq_mask;
	struct io_uring_sqe *entries;
	struct io_uring_cqe *completions;
};

static void *map_ring(int descriptor, size_t bytes, off_t what)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor,
			what);
	must(at != MAP_FAILED, "mmap of the ring");
	return at;
}

static struct ring make_ring(int file, void *slots, size_t bytes)
{
	struct io_uring_params set = {
		.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
	};
	struct iovec buffer = { slots, bytes };
	int descriptor = syscall(SYS_io_uring_setup, depth, &set);
	must(descriptor >= 0, "io_uring_setup");
	must(syscall(SYS_io_uring_register, descriptor, IORING_REGISTER_FILES, &file, 1) == 0 &&
		     syscall(SYS_io_uring_register, descriptor, IORING_REGISTER_BUFFERS, &buffer,
			     1) == 0,
	     "io_uring_register");
	char *sq = map_ring(descriptor, set.sq_off.array + set.sq_entries * sizeof(uint32_t),
			    IORING_OFF_SQ_RING);
	char *cq =
		map_ring(descriptor, set.cq_off.cqes + set.cq_entries * sizeof(struct io_uring_cqe),
			 IORING_OFF_CQ_RING);
	return (struct ring){
		.descriptor = descriptor,
		.sq_tail = (uint32_t *)(sq + set.sq_off.tail),
		.sq_array = (uint32_t *)(sq + set.sq_off.array),
		.cq_head = (uint32_t *)(cq + set.cq_off.head),
		.cq_tail = (uint32_t *)(cq + set.cq_off.tail),
		.sq_mask = *(uint32_t *)(sq + set.sq_off.ring_mask),
		.cq_mask = *(uint32_t *)(cq + set.cq_off.ring_mask),
		.entries = map_ring(descriptor, set.sq_entries * sizeof(struct io_uring_sqe),
				    IORING_OFF_SQES),
		.completions = (struct io_uring_cqe *)(cq + set.cq_off.cqes),
	};
}

static void enter(const struct ring *ring, unsigned submit, unsigned wait)
{
	must(syscall(SYS_io_uring_enter, ring->descriptor, submit, wait, IORING_ENTER_GETEVENTS,
		     NULL, 0) == submit,
	     "io_uring_enter");
}

static void add_read(const struct ring *ring, char *slots, unsigned slot, off_t offset)
{
	uint32_t tail = *ring->sq_tail, at = tail & ring->sq_mask;
	ring->entries[at] = (struct io_uring_sqe){
		.opcode = IORING_OP_READ_FIXED,
		.flags = IOSQE_FIXED_FILE,
		.off = offset,
		.addr = (uintptr_t)(slots + slot * record_bytes),
		.len = record_bytes,
		.user_data = slot,
	};
	ring->sq_array[at] = at;
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
}

static void run_ring(struct load *load, int file, char *slots, uint32_t *order, size_t records,
		     uint64_t *seed)
{
	struct ring ring = make_ring(file, slots, depth * record_bytes);
	unsigned *free_slots = malloc(depth * sizeof(*free_slots)), free_count = 0;
	uint64_t *begin_ns = malloc(depth * sizeof(*begin_ns));
	int singly = load->mode == URING_SINGLY;
	size_t next = records;
	must(free_slots && begin_ns, "memory");
	while (free_count < depth) {
		free_slots[free_count] = free_count;
		free_count++;
	}
	uint64_t start_ns = now_ns(), now = start_ns;
	while (now < load->until_ns || free_count < depth) {
		unsigned added = 0;
		uint64_t date_ns = now_ns();
		while (now < load->until_ns && free_count > 0) {
			if (next == records) {
				shuffle(order, records, seed);
				next = 0;
			}
			unsigned slot = free_slots[--free_count];
			add_read(&ring, slots, slot, (off_t)order[next++] * record_bytes);
			begin_ns[slot] = date_ns;
			added++;
			if (singly) {
				enter(&ring, added, 0);
				added = 0;
				date_ns = now_ns();
			}
		}
		uint32_t head = *ring.cq_head;
		if (added > 0 || head == __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE))
			enter(&ring, added, 1);
		now = now_ns();
		do {
			const struct io_uring_cqe *done = &ring.completions[head & ring.cq_mask];
			must(done->res == (int)record_bytes, "read");
			free_slots[free_count++] = done->user_data;
			count(load, 0, now - begin_ns[done->user_data]);
			__atomic_store_n(ring.cq_head, ++head, __ATOMIC_RELEASE);
		} while (!singly && head != __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE));
	}
	load->sum_ns = now - start_ns;
}

static void *run(void *argument)
{
	struct load *load = argument;
	int direct = load->mode >= WRITE;
	int file = open(load->path, O_RDWR | (direct ? O_DIRECT : 0));
	struct stat status;
	must(file >= 0 && fstat(file, &status) == 0, load->path);
	size_t records = status.st_size / record_bytes;
	uint32_t *order = malloc(records * sizeof(*order));
	size_t slot_count = record_bytes < POOL ? POOL / record_bytes : 1;
	slot_count = slot_count < depth ? depth : slot_count;
	size_t pool_bytes = slot_count * record_bytes;
	char *slots = aligned_alloc(PAGE, pool_bytes), *mapped = NULL;
	must(records > 0 && order && slots, "memory");
	for (size_t i = 0; i < records; i++)
		order[i] = i;
	uint64_t seed = 1;
	for (size_t i = 0; i < pool_bytes; i++)
		slots[i] = draw(&seed) >> 32;
	if (load->mode == MSYNC) {
		mapped = mmap(NULL, status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		must(mapped != MAP_FAILED, "mmap");
	}
	if (load->mode >= URING) {
		run_ring(load, file, slots, order, records, &seed);
		return NULL;
	}
	for (uint64_t number = 0;;) {
		if (direct || mapped)
			shuffle(order, records, &seed);
		for (size_t i = 0; i < records; i++, number++) {
			char *slot = slots + number % slot_count * record_bytes;
			memcpy(slot, &number, sizeof(number));
			if (!operate(load, file, slot, mapped, (off_t)order[i] * record_bytes))
				return NULL;
		}
	}
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	if (argc < 6 || argc > 7 || atoi(argv[5]) < 4 || atoi(argv[5]) % 4 != 0) {
		fprintf(stderr,
			"usage: file-loop DIRECTORY THREADS MILLISECONDS MODE KIB [DEPTH]\n");
		return 2;
	}
	record_bytes = atoi(argv[5]) * 1024;
	depth = argc == 7 ? atoi(argv[6]) : 1;
	int threads = atoi(argv[2]);
	struct load *loads = calloc(threads, sizeof(*loads)), all = { .mode = FDATASYNC };

	while (strcmp(argv[4], MODES[all.mode]) != 0)
		must(++all.mode <= URING_SINGLY, argv[4]);
	must(loads != NULL, "calloc");
	uint64_t until_ns = now_ns() + atoi(argv[3]) * 1000000ull;
	for (int i = 0; i < threads; i++) {
		loads[i].mode = all.mode;
		loads[i].until_ns = until_ns;
		snprintf(loads[i].path, sizeof(loads[i].path), "%s/file-%d", argv[1], i);
		must(pthread_create(&loads[i].thread, NULL, run, &loads[i]) == 0, "thread");
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(loads[i].thread, NULL);
		all.sum_ns += loads[i].sum_ns;
		for (size_t n = 0; n < loads[i].operations; n++)
			count(&all, 0, loads[i].latencies_ns[n]);
	}
	must(all.operations > 0, "no operation");
	qsort(all.latencies_ns, all.operations, sizeof(*all.latencies_ns), ascending);
	printf("%.1f %u %u\n", (double)all.sum_ns / all.operations,
	       all.latencies_ns[all.operations / 2], all.latencies_ns[all.operations * 99 / 100]);
	return 0;
}
