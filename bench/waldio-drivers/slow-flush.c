/*
 * A device whose flush takes a while, for a program that is started with it:
 *
 *   SLOW_FLUSH_US=1000 LD_PRELOAD=slow-flush.so PROGRAM...
 *
 * Every call that makes something durable takes so much longer: fsync, fdatasync, writes with
 * RWF_DSYNC or RWF_SYNC, and pwrite to a file that was opened with O_DSYNC or O_SYNC. Calls of several threads take their time side by side, as flushes that a
 * device merges do.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

typedef int sync_call(int);
typedef ssize_t write_call(int, const struct iovec *, int, off_t, int);
typedef ssize_t pwrite_call(int, const void *, size_t, off_t);

/* The function that this library hides. A flush that is not slow would be a wrong result. */
static void *next(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found) {
		fprintf(stderr, "slow-flush: no %s below\n", name);
		abort();
	}
	return found;
}

static void take_time(void)
{
	const char *text = getenv("SLOW_FLUSH_US");
	long us = text ? atol(text) : 1000;
	struct timespec left = { us / 1000000, us % 1000000 * 1000 };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

int fsync(int file)
{
	sync_call *below = next("fsync");

	take_time();
	return below(file);
}

int fdatasync(int file)
{
	sync_call *below = next("fdatasync");

	take_time();
	return below(file);
}

ssize_t pwritev2(int file, const struct iovec *vectors, int count, off_t offset, int flags)
{
	write_call *below = next("pwritev2");

	if (flags & (RWF_DSYNC | RWF_SYNC))
		take_time();
	return below(file, vectors, count, offset, flags);
}

/* The name of the same call in programs that are built with 64-bit offsets asked for. */
ssize_t pwritev64v2(int file, const struct iovec *vectors, int count, off_t offset, int flags)
{
	return pwritev2(file, vectors, count, offset, flags);
}

/* O_SYNC has the bit of O_DSYNC. */
ssize_t pwrite(int file, const void *data, size_t size, off_t offset)
{
	pwrite_call *below = next("pwrite");

	if (fcntl(file, F_GETFL) & O_DSYNC)
		take_time();
	return below(file, data, size, offset);
}

ssize_t pwrite64(int file, const void *data, size_t size, off_t offset)
{
	return pwrite(file, data, size, offset);
}
