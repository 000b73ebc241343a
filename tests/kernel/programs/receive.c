/*
 * Passes open files between processes.
 *
 *   receive DIRECTORY give COMMAND...   runs a command whose input is a socket with a file in it
 *   receive DIRECTORY take              takes that, and passes files to a child of its own
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 8

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(MOST * sizeof(int))];
};

static void give(int socket, const int *descriptors, int count)
{
	char byte = 'x';
	struct iovec data = { &byte, 1 };
	union control control = {};
	struct msghdr message = { .msg_iov = &data,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = CMSG_SPACE(count * sizeof(int)) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(head), descriptors, count * sizeof(int));
	if (sendmsg(socket, &message, 0) != 1)
		err(1, "sendmsg");
}

static void take(int socket, int *descriptors, int count)
{
	char byte;
	struct iovec data = { &byte, 1 };
	union control control = {};
	struct msghdr message = { .msg_iov = &data,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *head;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1)
		err(1, "recvmsg");
	head = CMSG_FIRSTHDR(&message);
	if (!head || head->cmsg_len != CMSG_LEN(count * sizeof(int)))
		errx(1, "no descriptors");
	memcpy(descriptors, CMSG_DATA(head), count * sizeof(int));
}

/* Has nothing of what its parent opened. */
static void child(int socket)
{
	int got[4];

	close_range(3, socket - 1, 0);
	close_range(socket + 1, ~0U, 0);
	take(socket, got, 4);
	syscall(SYS_write, got[0], "child", 5);
	syscall(SYS_write, got[1], "pipe", 4);
	syscall(SYS_write, got[2], "memory", 6);
	syscall(SYS_write, got[3], "8 bytes", 8);
	_exit(0);
}

int main(int count, char **words)
{
	int sockets[2], ends[2], own[4], outside, status;
	char buffer[16];

	if (count < 3 || chdir(words[1]))
		errx(2, "no directory");
	if (!strcmp(words[2], "give")) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
			err(1, "socketpair");
		outside = open("outside", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (write(outside, "from outside", 12) != 12)
			err(1, "write");
		give(sockets[0], &outside, 1);
		dup2(sockets[1], 0);
		execvp(words[3], words + 3);
		err(1, "%s", words[3]);
	}
	take(0, &outside, 1);
	syscall(SYS_pread64, outside, buffer, 4, 5L);
	own[0] = syscall(SYS_openat, AT_FDCWD, "own", O_RDWR | O_CREAT, 0600);
	syscall(SYS_write, own[0], "parent", 6);
	if (pipe(ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		err(1, "pipe");
	own[1] = ends[1];
	own[2] = memfd_create("memory", 0);
	own[3] = eventfd(0, 0);
	if (fork() == 0)
		child(sockets[1]);
	give(sockets[0], own, 4);
	wait(&status);
	syscall(SYS_write, own[0], "again", 5);
	/* Whoever asks /proc for the path needs some milliseconds. */
	usleep(500000);
	return status;
}
