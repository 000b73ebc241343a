/*
 * The judge of bench/accuracy: nothing but the calls and the clock.
 *
 *   file-loop DIRECTORY THREADS MILLISECONDS fdatasync|fsync|write|read|msync
 *
 * Thread N does 4 KiB at a time on DIRECTORY/file-N, whose length it keeps: fdatasync and fsync
 * write in order and sync each write; write and read are O_DIRECT, each record once in random
 * order; msync copies to a mapping, in random order, and syncs the page. Prints the mean time of
 * an operation with its sync, and p50 and p99 of the sync, or of the operation if there is none,
 * in nanoseconds.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { RECORD = 4096, SLOTS = 64 };

struct load {
	pthread_t thread;
	char path[4096];
	const char *mode;
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

static int is(const struct load *load, const char *mode)
{
	return strcmp(load->mode, mode) == 0;
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

/* Every record once, in another order each time. */
static void shuffle(uint32_t *records, size_t length, unsigned *seed)
{
	for (size_t i = length - 1; i > 0; i--) {
		size_t other = rand_r(seed) % (i + 1);
		uint32_t kept = records[i];
		records[i] = records[other];
		records[other] = kept;
	}
}

static int sync_record(const struct load *load, int file, char *record)
{
	if (is(load, "fdatasync"))
		return fdatasync(file);
	if (is(load, "fsync"))
		return fsync(file);
	return msync(record, RECORD, MS_SYNC);
}

/* One operation; the answer is false when the time is over. */
static int operate(struct load *load, int file, char *slot, char *mapped, off_t offset)
{
	int syncs = !is(load, "write") && !is(load, "read");
	uint64_t begin_ns = now_ns(), done_ns, end_ns;
	if (begin_ns >= load->until_ns)
		return 0;
	if (mapped)
		memcpy(mapped + offset, slot, RECORD);
	else if (is(load, "read"))
		must(pread(file, slot, RECORD, offset) == RECORD, "pread");
	else
		must(pwrite(file, slot, RECORD, offset) == RECORD, "pwrite");
	done_ns = end_ns = now_ns();
	if (syncs) {
		must(sync_record(load, file, mapped ? mapped + offset : NULL) == 0, "sync");
		end_ns = now_ns();
	}
	count(load, end_ns - begin_ns, syncs ? end_ns - done_ns : end_ns - begin_ns);
	return 1;
}

static void *run(void *argument)
{
	struct load *load = argument;
	int direct = is(load, "write") || is(load, "read");
	int file = open(load->path, O_RDWR | (direct ? O_DIRECT : 0));
	struct stat status;
	must(file >= 0 && fstat(file, &status) == 0, load->path);
	size_t records = status.st_size / RECORD;
	uint32_t *order = malloc(records * sizeof(*order));
	char *slots = aligned_alloc(RECORD, SLOTS * RECORD), *mapped = NULL;
	must(records > 0 && order && slots, "memory");
	for (size_t i = 0; i < records; i++)
		order[i] = i;
	unsigned seed = 1;
	for (size_t i = 0; i < SLOTS * RECORD; i++)
		slots[i] = rand_r(&seed) >> 8;
	if (is(load, "msync")) {
		mapped = mmap(NULL, status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		must(mapped != MAP_FAILED, "mmap");
	}
	for (uint64_t number = 0;;) {
		if (direct || mapped)
			shuffle(order, records, &seed);
		for (size_t i = 0; i < records; i++, number++) {
			char *slot = slots + number % SLOTS * RECORD;
			memcpy(slot, &number, sizeof(number));
			if (!operate(load, file, slot, mapped, (off_t)order[i] * RECORD))
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
	if (argc != 5) {
		fprintf(stderr, "usage: file-loop DIRECTORY THREADS MILLISECONDS MODE\n");
		return 2;
	}
	int threads = atoi(argv[2]);
	struct load *loads = calloc(threads, sizeof(*loads)), all = { .mode = argv[4] };
	must(loads != NULL, "calloc");
	uint64_t until_ns = now_ns() + atoi(argv[3]) * 1000000ull;
	for (int i = 0; i < threads; i++) {
		loads[i].mode = argv[4];
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
