/*
 * The floor of bench/waldio: what a commit of one page costs if there is no database.
 *
 *   floor FILE dsync|fdatasync|direct MILLISECONDS
 *
 * Writes 4 KiB at a time with O_DIRECT over a file whose blocks are there: durably by RWF_DSYNC, or
 * by an fdatasync after each write, or not at all.
 */
#define _GNU_SOURCE
#include "driver.h"

#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>

enum { BLOCK = 4096, BLOCKS = 1024 };

static int prepare(const char *path, char *block)
{
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);

	if (file < 0)
		err(1, "%s: cannot open it with O_DIRECT", path);
	for (int i = 0; i < BLOCKS; i++)
		if (pwrite(file, block, BLOCK, (off_t)i * BLOCK) != BLOCK)
			err(1, "%s: write", path);
	if (fsync(file))
		err(1, "%s: fsync", path);
	return file;
}

int main(int argc, char **argv)
{
	struct latencies latencies = { 0 };
	struct counters before;
	struct iovec vector;
	uint64_t start_ns, until_ns, begin_ns, end_ns;
	int file, flags, flushes;

	if (argc != 4)
		errx(2, "usage: floor FILE dsync|fdatasync|direct MILLISECONDS");
	flags = strcmp(argv[2], "dsync") == 0 ? RWF_DSYNC : 0;
	flushes = strcmp(argv[2], "fdatasync") == 0;
	vector.iov_len = BLOCK;
	vector.iov_base = aligned_alloc(BLOCK, BLOCK);
	if (!vector.iov_base)
		err(1, "memory");
	memset(vector.iov_base, 0x5a, BLOCK);
	file = prepare(argv[1], vector.iov_base);
	before = read_counters(argv[1]);
	start_ns = end_ns = now_ns();
	until_ns = start_ns + strtoull(argv[3], NULL, 10) * 1000000;
	for (uint64_t number = 0; end_ns < until_ns; number++) {
		begin_ns = end_ns;
		memcpy(vector.iov_base, &number, sizeof(number));
		if (pwritev2(file, &vector, 1, number % BLOCKS * BLOCK, flags) != BLOCK)
			err(1, "%s: write", argv[1]);
		if (flushes && fdatasync(file))
			err(1, "%s: fdatasync", argv[1]);
		end_ns = now_ns();
		count_latency(&latencies, end_ns - begin_ns);
	}
	print_result(&latencies, end_ns - start_ns, before, read_counters(argv[1]));
	return unlink(argv[1]) ? 1 : 0;
}
