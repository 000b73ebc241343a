/*
 * Makes system calls of 32-bit x86 on files in a directory, from a 64-bit program:
 *
 *   calls32 DIRECTORY
 *
 * int 0x80 takes the numbers of asm/unistd_32.h, and addresses of 32 bits.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	OPEN = 5,
	CLOSE = 6,
	WRITE = 4,
	UNLINK = 10,
	FSYNC = 118,
	LLSEEK = 140,
	PREAD64 = 180,
	PWRITE64 = 181,
	FTRUNCATE64 = 194,
	STAT64 = 195,
	FSTAT64 = 197,
	FCNTL64 = 221
};

/* The C library says 0, as it is for programs of 64 bits. */
#define LARGEFILE 0100000

static char *low;

static long call(long number, long a, long b, long c, long d, long e)
{
	long result;

	asm volatile("int $0x80"
		     : "=a"(result)
		     : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
		     : "memory", "r8", "r9", "r10", "r11");
	return (int)result;
}

int main(int argc, char **argv)
{
	long path, buffer;
	int fd;

	if (argc != 2 || chdir(argv[1]))
		err(2, "usage: calls32 DIRECTORY");
	low = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1,
		   0);
	if (low == MAP_FAILED)
		err(1, "memory below 4 GiB");
	strcpy(low, "file");
	path = (long)low;
	buffer = (long)low + 4096;
	fd = call(OPEN, path, O_RDWR | O_CREAT | LARGEFILE, 0644, 0, 0);
	if (fd < 0)
		errx(1, "open: %d", fd);
	call(WRITE, fd, buffer, 100, 0, 0);
	/* 5 GiB: the two halves of a number of 64 bits. */
	call(PWRITE64, fd, buffer, 10, 0x40000000, 1);
	call(PREAD64, fd, buffer, 20, 0x40000000, 1);
	call(LLSEEK, fd, 1, 0x40000000, buffer, SEEK_SET);
	call(FTRUNCATE64, fd, 50, 0, 0, 0);
	call(FSTAT64, fd, buffer, 0, 0, 0);
	call(STAT64, path, buffer, 0, 0, 0);
	call(FCNTL64, fd, F_GETFL, 0, 0, 0);
	call(FSYNC, fd, 0, 0, 0, 0);
	call(CLOSE, fd, 0, 0, 0, 0);
	call(UNLINK, path, 0, 0, 0, 0);
	return 0;
}
