/*
 * What the drivers of bench/waldio have in common: the clock, the device's counters, and the answer
 * that each prints at its end as a command of a lab (docs/lab.md).
 */
#ifndef DRIVER_H
#define DRIVER_H

#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum { VALUE_BYTES = 100 };

/* /sys/dev/block/M:N/stat, Documentation/block/stat.rst: the columns that are used, from 0. */
enum {
	STAT_READS = 0,
	STAT_READ_SECTORS = 2,
	STAT_WRITES = 4,
	STAT_WRITE_SECTORS = 6,
	STAT_FLUSHES = 15,
	STAT_COLUMNS = 17
};

struct counters {
	int known;
	uint64_t reads, read_bytes, writes, bytes, flushes;
};

/*
 * Latencies of the measured part, in the order they came. The slowest commit may be one that ended
 * after it, which is not counted otherwise.
 */
struct latencies {
	uint32_t *ns;
	size_t count, room;
	uint32_t slowest_ns;
};

static inline uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static inline struct counters read_counters(const char *path)
{
	struct counters counters = { 0 };
	uint64_t column[STAT_COLUMNS] = { 0 };
	struct stat status;
	char name[64];
	FILE *file;

	if (stat(path, &status))
		err(1, "%s", path);
	snprintf(name, sizeof(name), "/sys/dev/block/%u:%u/stat", major(status.st_dev),
		 minor(status.st_dev));
	file = fopen(name, "r");
	if (!file)
		return counters;
	for (int i = 0; i < STAT_COLUMNS; i++)
		if (fscanf(file, "%lu", &column[i]) != 1)
			errx(1, "%s: %d columns", name, i);
	fclose(file);
	counters.known = 1;
	counters.reads = column[STAT_READS];
	counters.read_bytes = column[STAT_READ_SECTORS] * 512;
	counters.writes = column[STAT_WRITES];
	counters.bytes = column[STAT_WRITE_SECTORS] * 512;
	counters.flushes = column[STAT_FLUSHES];
	return counters;
}

static inline void count_latency(struct latencies *latencies, uint64_t ns)
{
	if (latencies->count == latencies->room) {
		latencies->room = latencies->room ? 2 * latencies->room : 1 << 14;
		latencies->ns = realloc(latencies->ns, latencies->room * sizeof(*latencies->ns));
		if (!latencies->ns)
			err(1, "latencies");
	}
	latencies->ns[latencies->count++] = ns < UINT32_MAX ? ns : UINT32_MAX;
}

static inline int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static inline void print_result(struct latencies *all, uint64_t elapsed_ns, struct counters before,
				struct counters after)
{
	if (all->count == 0)
		errx(1, "no commit in the measured time");
	qsort(all->ns, all->count, sizeof(*all->ns), ascending);
	if (all->slowest_ns < all->ns[all->count - 1])
		all->slowest_ns = all->ns[all->count - 1];
	printf("{\"operations\":%zu,\"elapsed_ns\":%lu,\"latency\":{\"count\":%zu,\"p50_ns\":%u,"
	       "\"p99_ns\":%u,\"max_ns\":%u},\"device\":",
	       all->count, elapsed_ns, all->count, all->ns[all->count / 2],
	       all->ns[all->count * 99 / 100], all->slowest_ns);
	if (before.known)
		printf("{\"reads\":%lu,\"read_bytes\":%lu,\"writes\":%lu,\"written_bytes\":%lu,"
		       "\"flushes\":%lu}}\n",
		       after.reads - before.reads, after.read_bytes - before.read_bytes,
		       after.writes - before.writes, after.bytes - before.bytes,
		       after.flushes - before.flushes);
	else
		printf("null}\n");
}

#endif
