/*
 * Reads and writes files in ways that name none: through links of /proc, in a child that asks not to be
 * traced, by io_submit, and between descriptors of which one is no file. In the directory of its only argument. What it writes and syncs in all stands in
 * record/odd.rs.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char buffer[1 << 16];

static void check(int holds, int line)
{
	if (!holds) {
		fprintf(stderr, "odd.c:%d\n", line);
		_exit(1);
	}
}
#define CHECK(holds) check(holds, __LINE__)

static int link_to(const char *form, int descriptor, int flags)
{
	char path[100];

	snprintf(path, sizeof(path), form, descriptor);
	return open(path, flags);
}

/* 100 + 4096 + 2048 + 1000 + 500 + 3000 bytes, two syncs. */
static void through_links(const char *directory)
{
	char path[4200];
	int file = open("data", O_RDWR | O_CREAT | O_TRUNC, 0644), again, temporary;

	CHECK(write(file, buffer, 100) == 100);
	close(file);
	file = open("data", O_PATH);
	again = link_to("/proc/self/fd/%d", file, O_RDWR);
	CHECK(pwrite(again, buffer, 4096, 0) == 4096 && fsync(again) == 0);
	close(again);
	again = link_to("/dev/fd/%d", file, O_RDWR);
	CHECK(pwrite(again, buffer, 2048, 4096) == 2048 && fdatasync(again) == 0);
	close(again);
	again = open("/proc/self/cwd/data", O_RDWR);
	CHECK(write(again, buffer, 1000) == 1000);
	close(again);
	snprintf(path, sizeof(path), "/proc/self/root%s/data", directory);
	again = open(path, O_RDWR);
	CHECK(write(again, buffer, 500) == 500);
	close(again);
	temporary = open(".", O_TMPFILE | O_RDWR, 0600);
	CHECK(write(temporary, buffer, 3000) == 3000);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", temporary);
	CHECK(linkat(AT_FDCWD, path, AT_FDCWD, "final", AT_SYMLINK_FOLLOW) == 0);
	close(temporary);
	close(file);
}

/* 40 + 60 bytes. */
static void through_symbolic_links(void)
{
	char path[100];
	int file = open("linked", O_RDWR | O_CREAT | O_TRUNC, 0644), again;

	CHECK(symlink("/proc/self/fd", "descriptors") == 0 &&
	      symlink("/proc/self/cwd", "here") == 0);
	snprintf(path, sizeof(path), "descriptors/%d", file);
	again = open(path, O_WRONLY);
	CHECK(again >= 0 && pwrite(again, buffer, 40, 0) == 40);
	close(again);
	again = open("here/linked", O_WRONLY | O_APPEND);
	CHECK(again >= 0 && write(again, buffer, 60) == 60);
	close(again);
	close(file);
}

/* 700 bytes to a file; 3000, 1000 and 700 from one. */
static void between_descriptors(void)
{
	int from = open("final", O_RDONLY), to = open("spliced", O_RDWR | O_CREAT | O_TRUNC, 0644);
	int sockets[2], pipes[2];
	off_t start = 0;
	loff_t at = 100;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0 && pipe(pipes) == 0);
	CHECK(sendfile(sockets[0], from, &start, 3000) == 3000);
	CHECK(sendfile(sockets[0], from, NULL, 1000) == 1000);
	CHECK(splice(from, &at, pipes[1], NULL, 700, 0) == 700);
	CHECK(splice(pipes[0], NULL, to, NULL, 700, 0) == 700);
	CHECK(mknod("fifo", S_IFIFO | 0600, 0) == 0 && mknod("node", S_IFREG | 0600, 0) == 0);
	CHECK(rename("fifo", "moved") == 0);
	close(from);
	close(to);
}

/* 5 bytes. */
static void in_untraced_child(void)
{
	int status, file;
	long child = syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, 0, 0, 0);

	if (!child) {
		file = open("child", O_WRONLY | O_CREAT, 0644);
		_exit(write(file, "hello", 5) != 5);
	}
	CHECK(waitpid(child, &status, __WALL) == child && !status);
}

/* 16384 + 1536 + 16384 bytes, two syncs. */
static void by_io_submit(void)
{
	struct iovec parts[] = { { buffer, 512 }, { buffer + 512, 1024 } };
	struct iocb requests[5] = {}, *all[5];
	struct io_event events[8];
	aio_context_t context = 0;
	int file = open("submitted", O_RDWR | O_CREAT | O_TRUNC, 0644), at;
	long done = 0, more;

	CHECK(syscall(SYS_io_setup, 16, &context) == 0);
	for (at = 0; at < 5; at++) {
		all[at] = &requests[at];
		requests[at].aio_fildes = file;
	}
	requests[0].aio_lio_opcode = IOCB_CMD_PWRITE;
	requests[0].aio_buf = (unsigned long)buffer;
	requests[0].aio_nbytes = 16384;
	requests[0].aio_offset = 65536;
	requests[1].aio_lio_opcode = IOCB_CMD_PWRITEV;
	requests[1].aio_buf = (unsigned long)parts;
	requests[1].aio_nbytes = 2;
	requests[2].aio_lio_opcode = IOCB_CMD_FSYNC;
	requests[3].aio_lio_opcode = IOCB_CMD_FDSYNC;
	requests[4].aio_lio_opcode = 99;
	CHECK(syscall(SYS_io_submit, context, 5l, all) == 4);
	while (done < 4) {
		more = syscall(SYS_io_getevents, context, 1l, 8l, events, NULL);
		CHECK(more > 0);
		done += more;
	}
	/* Of this one's end nobody asks. */
	requests[0].aio_offset = 0;
	CHECK(syscall(SYS_io_submit, context, 1l, all) == 1);
	close(file);
	CHECK(syscall(SYS_io_destroy, context) == 0);
}

int main(int count, char **words)
{
	CHECK(count == 2 && chdir(words[1]) == 0);
	through_links(words[1]);
	through_symbolic_links();
	between_descriptors();
	in_untraced_child();
	by_io_submit();
	return 0;
}
