/*
 * Makes system calls on files in a directory.
 *
 *   calls DIRECTORY all       every one that a recording knows, most of them once, some in vain
 *   calls DIRECTORY quick     200,000 reads of one byte by two threads
 *   calls DIRECTORY wait      opens files, waits for a line of input, goes on with them
 *   calls DIRECTORY killed    is killed while it waits for a lock
 *   calls DIRECTORY restarted is interrupted by a signal while it waits for a lock
 *
 * Plain system calls: libc would make others of them.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/openat2.h>
#include <linux/stat.h>

static char buffer[8192];
static int shared;

static void *other_thread(void *unused)
{
	syscall(SYS_pwrite64, shared, buffer, 300, 4096L);
	return unused;
}

static int make_files(void)
{
	struct open_how how = { .flags = O_RDWR | O_CREAT | O_DSYNC, .mode = 0640 };
	int fd = syscall(SYS_openat, AT_FDCWD, "data", O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	syscall(SYS_close, syscall(SYS_openat2, AT_FDCWD, "how", &how, sizeof(how)));
#ifdef SYS_open
	syscall(SYS_close,
		syscall(SYS_open, "./old/../plain", O_WRONLY | O_CREAT | O_APPEND, 0600));
	syscall(SYS_close, syscall(SYS_creat, "created", 0604));
#endif
	syscall(SYS_openat, AT_FDCWD, "missing", O_RDONLY);
	return fd;
}

static void transfer(int fd)
{
	struct iovec two[2] = { { buffer, 1000 }, { buffer, 24 } };
	struct iovec many[40];

	for (int i = 0; i < 40; i++)
		many[i] = (struct iovec){ buffer, 10 + i };
	syscall(SYS_write, fd, buffer, 5000);
	syscall(SYS_lseek, fd, 100, SEEK_SET);
	syscall(SYS_read, fd, buffer, 200);
	syscall(SYS_pwrite64, fd, buffer, 512, 8192L);
	syscall(SYS_pread64, fd, buffer, 8192, 8000L);
	syscall(SYS_writev, fd, two, 2);
	syscall(SYS_readv, fd, two, 2);
	syscall(SYS_pwritev, fd, many, 40, 20000L, 0L);
	syscall(SYS_preadv, fd, many, 40, 20000L, 0L);
	syscall(SYS_pwritev2, fd, two, 2, -1L, 0L, RWF_DSYNC);
	syscall(SYS_preadv2, fd, two, 2, 0L, 0L, RWF_NOWAIT);
	syscall(SYS_lseek, fd, -4L, SEEK_END);
	syscall(SYS_read, 1234, buffer, 1);
}

static void shape(int fd)
{
	syscall(SYS_fallocate, fd, FALLOC_FL_KEEP_SIZE, 65536L, 4096L);
	/* More than two pages of any kernel. */
	syscall(SYS_ftruncate, fd, 300000L);
	syscall(SYS_truncate, "how", 777L);
	syscall(SYS_fsync, fd);
	syscall(SYS_fdatasync, fd);
	syscall(SYS_sync_file_range, fd, 0L, 4096L, SYNC_FILE_RANGE_WRITE);
	syscall(SYS_fadvise64, fd, 0L, 0L, POSIX_FADV_RANDOM);
	syscall(SYS_readahead, fd, 0L, 4096L);
}

static void map(int fd)
{
	long page = sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, page);

	if (at == MAP_FAILED)
		err(1, "mmap");
	at[0] = 1;
	msync(at, page, MS_SYNC);
	at = mremap(at, 2 * page, 4 * page, MREMAP_MAYMOVE);
	munmap(at, 4 * page);
}

static void name(int root)
{
	struct stat stat;
	struct statx statx;
	struct statfs statfs;

	syscall(SYS_mkdirat, root, "dir", 0755);
	syscall(SYS_linkat, root, "how", root, "dir/link", 0);
	syscall(SYS_symlinkat, "dir/link", root, "soft");
	syscall(SYS_readlinkat, root, "soft", buffer, 100);
	syscall(SYS_renameat2, root, "dir/link", root, "dir/renamed", RENAME_NOREPLACE);
	syscall(SYS_renameat, root, "dir/none", root, "dir/any");
	syscall(SYS_faccessat, root, "dir", R_OK);
	syscall(SYS_faccessat2, root, "none", F_OK, AT_SYMLINK_NOFOLLOW);
	syscall(SYS_newfstatat, root, "soft", &stat, AT_SYMLINK_NOFOLLOW);
	syscall(SYS_newfstatat, root, "", &stat, AT_EMPTY_PATH);
	syscall(SYS_statx, root, "how", 0, STATX_ALL, &statx);
	syscall(SYS_fstat, root, &stat);
	syscall(SYS_fstatfs, root, &statfs);
	syscall(SYS_statfs, ".", &statfs);
	syscall(SYS_fchmodat, root, "how", 0600);
	syscall(SYS_fchmod, root, 0755);
	syscall(SYS_fchownat, root, "how", -1, -1, 0);
	syscall(SYS_fchown, root, -1, -1);
	syscall(SYS_utimensat, root, "how", NULL, 0);
	syscall(SYS_getdents64, root, buffer, sizeof(buffer));
	syscall(SYS_unlinkat, root, "dir/renamed", 0);
	syscall(SYS_unlinkat, root, "dir", AT_REMOVEDIR);
#ifdef SYS_rename
	syscall(SYS_mkdir, "dir2", 0700);
	syscall(SYS_rename, "soft", "dir2/soft");
	syscall(SYS_link, "how", "dir2/how");
	syscall(SYS_symlink, "../how", "dir2/again");
	syscall(SYS_readlink, "dir2/again", buffer, 10);
	syscall(SYS_access, "dir2/how", W_OK);
	syscall(SYS_stat, "dir2/again", &stat);
	syscall(SYS_lstat, "dir2/again", &stat);
	syscall(SYS_chmod, "dir2/how", 0644);
	syscall(SYS_chown, "dir2/how", -1, -1);
	syscall(SYS_lchown, "dir2/again", -1, -1);
	syscall(SYS_unlink, "dir2/how");
	syscall(SYS_unlink, "dir2/again");
	syscall(SYS_unlink, "dir2/soft");
	syscall(SYS_rmdir, "dir2");
#endif
}

static void lock(int fd)
{
	struct flock range = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 5 };

	syscall(SYS_flock, fd, LOCK_EX | LOCK_NB);
	syscall(SYS_flock, fd, LOCK_UN);
	syscall(SYS_fcntl, fd, F_SETLK, &range);
	syscall(SYS_fcntl, fd, F_GETLK, &range);
	range = (struct flock){ .l_type = F_UNLCK, .l_whence = SEEK_END, .l_start = -10 };
	syscall(SYS_fcntl, fd, F_OFD_SETLK, &range);
	syscall(SYS_fcntl, fd, F_GETFL);
	syscall(SYS_fcntl, fd, F_SETFL, O_APPEND);
	syscall(SYS_fcntl, fd, F_SETFL, 0);
	syscall(SYS_ioctl, fd, FIONREAD, buffer);
}

static void copy(int fd)
{
	int to = syscall(SYS_openat, AT_FDCWD, "copy", O_RDWR | O_CREAT | O_TRUNC, 0644);
	long from_at = 100, to_at = 50;

	syscall(SYS_copy_file_range, fd, &from_at, to, &to_at, 1000L, 0);
	syscall(SYS_lseek, fd, 0L, SEEK_SET);
	syscall(SYS_sendfile, to, fd, NULL, 600L);
	from_at = 40;
	syscall(SYS_sendfile, to, fd, &from_at, 70L);
	syscall(SYS_syncfs, to);
	syscall(SYS_close, to);
}

static void share(int fd)
{
	int copies[3];
	pthread_t thread;
	int pair[2];
	int status;

	copies[0] = syscall(SYS_dup, fd);
	copies[1] = syscall(SYS_dup3, fd, 50, O_CLOEXEC);
	copies[2] = syscall(SYS_fcntl, fd, F_DUPFD, 9);
	syscall(SYS_write, copies[0], buffer, 11);
	syscall(SYS_write, copies[1], buffer, 12);
	syscall(SYS_write, copies[2], buffer, 13);
	syscall(SYS_close, copies[0]);
	syscall(SYS_pipe2, pair, 0);
	syscall(SYS_write, pair[1], buffer, 14);
	syscall(SYS_read, pair[0], buffer, 14);
	shared = fd;
	pthread_create(&thread, NULL, other_thread, NULL);
	pthread_join(thread, NULL);
	if (!fork()) {
		syscall(SYS_write, fd, buffer, 15);
		execl("/bin/sh", "sh", "-c", "echo ten bytes >&9; exec true", NULL);
		_exit(127);
	}
	wait(&status);
	syscall(SYS_close_range, 9, 70, 0);
}

static void all(void)
{
	int fd = make_files();
	int root = syscall(SYS_openat, AT_FDCWD, ".", O_RDONLY | O_DIRECTORY);

	if (fd < 0 || root < 0)
		err(1, "open");
	transfer(fd);
	shape(fd);
	map(fd);
	name(root);
	lock(fd);
	copy(fd);
	share(fd);
	syscall(SYS_close, fd);
}

static void *read_bytes(void *unused)
{
	for (int i = 0; i < 100000; i++)
		syscall(SYS_pread64, shared, buffer, 1, (long)i % 4096);
	return unused;
}

static void quick(void)
{
	pthread_t thread;

	shared = syscall(SYS_openat, AT_FDCWD, "quick", O_RDWR | O_CREAT, 0644);
	syscall(SYS_write, shared, buffer, 4096);
	pthread_create(&thread, NULL, read_bytes, NULL);
	read_bytes(NULL);
	pthread_join(thread, NULL);
}

static void wait_for_line(void)
{
	int fd = syscall(SYS_openat, AT_FDCWD, "before", O_RDWR | O_CREAT, 0644);
	int twin = syscall(SYS_dup, fd);
	int other = syscall(SYS_openat, AT_FDCWD, "before", O_RDONLY);
	char line[2];

	syscall(SYS_write, fd, buffer, 1000);
	puts("ready");
	fflush(stdout);
	if (read(0, line, 1) != 1)
		err(1, "standard input");
	syscall(SYS_write, twin, buffer, 10);
	syscall(SYS_pread64, other, buffer, 20, 5L);
	syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, "after", O_WRONLY | O_CREAT, 0600));
}

static void killed(void)
{
	int fd = syscall(SYS_openat, AT_FDCWD, "locked", O_RDWR | O_CREAT, 0644);
	pid_t child = fork();
	int status;

	if (!child) {
		int own = syscall(SYS_openat, AT_FDCWD, "locked", O_RDWR);

		sleep(1);
		syscall(SYS_flock, own, LOCK_EX);
		_exit(1);
	}
	syscall(SYS_flock, fd, LOCK_EX);
	sleep(2);
	kill(child, SIGKILL);
	wait(&status);
}

static void do_nothing(int signal)
{
	(void)signal;
}

static void restarted(void)
{
	struct flock range = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	struct sigaction action = { .sa_handler = do_nothing, .sa_flags = SA_RESTART };
	int fd = syscall(SYS_openat, AT_FDCWD, "locked", O_RDWR | O_CREAT, 0644);
	pid_t child;
	int status;

	syscall(SYS_fcntl, fd, F_SETLK, &range);
	child = fork();
	if (!child) {
		sigaction(SIGALRM, &action, NULL);
		alarm(1);
		syscall(SYS_fcntl, fd, F_SETLKW, &range);
		_exit(0);
	}
	sleep(2);
	range.l_type = F_UNLCK;
	syscall(SYS_fcntl, fd, F_SETLK, &range);
	waitpid(child, &status, 0);
}

int main(int argc, char **argv)
{
	if (argc != 3 || chdir(argv[1]))
		err(2, "usage: calls DIRECTORY all|quick|wait|killed|restarted");
	memset(buffer, 'x', sizeof(buffer));
	if (!strcmp(argv[2], "all"))
		all();
	else if (!strcmp(argv[2], "quick"))
		quick();
	else if (!strcmp(argv[2], "wait"))
		wait_for_line();
	else if (!strcmp(argv[2], "killed"))
		killed();
	else
		restarted();
	return 0;
}
