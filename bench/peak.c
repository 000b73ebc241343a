/*
 * Runs a command and prints its wall time in nanoseconds and the most memory that it had in KiB:
 * peak COMMAND...
 *
 * What the command prints goes to standard error. Its own memory counts only from the exec on:
 * until then this program has a megabyte.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int count, char **words)
{
	struct rusage used;
	long long began = now_ns();
	int status = 0;
	pid_t child;

	if (count < 2)
		return 2;
	child = fork();
	if (child == 0) {
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execvp(words[1], words + 1);
		_exit(127);
	}
	if (child < 0 || wait4(child, &status, 0, &used) < 0)
		return 1;
	printf("%lld %ld\n", now_ns() - began, used.ru_maxrss);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
