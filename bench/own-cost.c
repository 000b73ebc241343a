/*
 * The least that a load program can do: one system call after another, and nothing else.
 *
 *   own-cost FILE read|write RECORD_BYTES SECONDS
 *
 * Goes over FILE from start to end until the time is over, which it looks up only now and then.
 * Prints how many calls it made, and its time in user mode and in the kernel, in nanoseconds.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CALLS_PER_LOOK 4096

static long long nanoseconds(struct timeval time)
{
	return time.tv_sec * 1000000000LL + time.tv_usec * 1000LL;
}

static double now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* Answers the calls made. */
static long long call_until(double end, int fd, int writes, char *buffer, size_t record, off_t size)
{
	long long calls = 0;
	off_t offset = 0;

	while (now() < end) {
		for (int i = 0; i < CALLS_PER_LOOK; i++) {
			ssize_t moved = writes ? pwrite(fd, buffer, record, offset)
					       : pread(fd, buffer, record, offset);

			if (moved != (ssize_t)record)
				err(1, "%zu bytes at %lld", record, (long long)offset);
			offset += record;
			if (offset == size)
				offset = 0;
		}
		calls += CALLS_PER_LOOK;
	}
	return calls;
}

int main(int argc, char **argv)
{
	struct rusage before, after;
	struct stat file;
	long long calls;
	size_t record;
	char *buffer;
	int fd, writes;

	if (argc != 5)
		errx(2, "usage: own-cost FILE read|write RECORD_BYTES SECONDS");
	writes = strcmp(argv[2], "write") == 0;
	record = strtoul(argv[3], NULL, 10);
	fd = open(argv[1], O_RDWR);
	if (fd < 0 || fstat(fd, &file) < 0)
		err(1, "%s", argv[1]);
	if (record == 0 || file.st_size == 0 || file.st_size % record != 0)
		errx(2, "%s: not a multiple of %zu bytes", argv[1], record);
	buffer = aligned_alloc(4096, (record + 4095) / 4096 * 4096);
	/* Up to 256 random bytes are enough: nothing below compresses. */
	if (!buffer || getrandom(buffer, record < 256 ? record : 256, 0) < 0)
		err(1, "buffer");
	getrusage(RUSAGE_SELF, &before);
	calls = call_until(now() + atof(argv[4]), fd, writes, buffer, record, file.st_size);
	getrusage(RUSAGE_SELF, &after);
	printf("%lld %lld %lld\n", calls,
	       nanoseconds(after.ru_utime) - nanoseconds(before.ru_utime),
	       nanoseconds(after.ru_stime) - nanoseconds(before.ru_stime));
	return 0;
}
