/* Writes 4 KiB at scheduled times, paced as Mobibench paces a replay: usleep of one microsecond
 * less than what is left, with the timer slack that processes begin with, and usleep(0) after
 * each call. The judge of `iostep replay`'s lateness (bench/replay).
 *
 * usage: usleep-pacer DIRECTORY SCHEDULE
 * SCHEDULE has a line a write: thread from 1, due time in nanoseconds; ascending.
 * Prints a line for each write: "waited" and how late it was, if its thread came to it in time, or
 * "added" and the time since the thread's write before; nanoseconds. Last "cpu" and the CPU time
 * that was used.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { MOST_THREADS = 64, BYTES = 4096, LEAD_NS = 50000000 };

struct write {
	long long due_ns, issued_ns, before_ns;
};

struct thread {
	struct write *writes;
	size_t count, room;
	int fd;
	pthread_t id;
};

static struct thread threads[MOST_THREADS];
static long long start_ns;

static void fail(const char *what)
{
	fprintf(stderr, "usleep-pacer: %s: %s\n", what, strerror(errno));
	exit(1);
}

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec - start_ns;
}

static void *run(void *argument)
{
	struct thread *thread = argument;
	char page[BYTES];
	long long before_ns = 0;

	memset(page, 'x', sizeof(page));
	for (size_t i = 0; i < thread->count; i++) {
		struct write *write = &thread->writes[i];
		long long left_us = (write->due_ns - now_ns()) / 1000;

		write->before_ns = before_ns;
		if (left_us > 1)
			usleep(left_us - 1);
		write->issued_ns = now_ns();
		if (pwrite(thread->fd, page, BYTES, (off_t)(i % 64) * BYTES) != BYTES)
			fail("write");
		before_ns = now_ns();
		usleep(0);
	}
	return NULL;
}

static void read_schedule(const char *path)
{
	FILE *file = fopen(path, "r");
	int number;
	long long due_ns;

	if (!file)
		fail(path);
	while (fscanf(file, "%d %lld", &number, &due_ns) == 2) {
		struct thread *thread;

		if (number < 1 || number > MOST_THREADS) {
			errno = ERANGE;
			fail(path);
		}
		thread = &threads[number - 1];
		if (thread->count == thread->room) {
			thread->room = thread->room ? 2 * thread->room : 1024;
			thread->writes =
				realloc(thread->writes, thread->room * sizeof(*thread->writes));
			if (!thread->writes)
				fail("memory");
		}
		thread->writes[thread->count++] = (struct write){ .due_ns = due_ns };
	}
	fclose(file);
}

int main(int argc, char **argv)
{
	struct rusage used;

	if (argc != 3) {
		fprintf(stderr, "usage: usleep-pacer DIRECTORY SCHEDULE\n");
		return 2;
	}
	read_schedule(argv[2]);
	for (int i = 0; i < MOST_THREADS && threads[i].count; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/paced-%d", argv[1], i);
		threads[i].fd = open(path, O_RDWR | O_CREAT, 0600);
		if (threads[i].fd < 0)
			fail(path);
	}
	start_ns = now_ns() + LEAD_NS;
	for (int i = 0; i < MOST_THREADS && threads[i].count; i++)
		if ((errno = pthread_create(&threads[i].id, NULL, run, &threads[i])))
			fail("thread");
	for (int i = 0; i < MOST_THREADS && threads[i].count; i++) {
		pthread_join(threads[i].id, NULL);
		for (size_t j = 0; j < threads[i].count; j++) {
			struct write *write = &threads[i].writes[j];

			if (write->before_ns > write->due_ns)
				printf("added %lld\n", write->issued_ns - write->before_ns);
			else
				printf("waited %lld\n", write->issued_ns - write->due_ns);
		}
	}
	getrusage(RUSAGE_SELF, &used);
	printf("cpu %lld\n", (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000LL +
				     (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000LL);
	return 0;
}
