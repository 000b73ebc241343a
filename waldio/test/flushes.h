/*
** nFlush: how often anybody in the program asked for a flush; nFlushDir: of those, of a
** directory.
*/
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* Each call that makes data durable, by whichever library; see fsync(2), pwritev2(2). */
static int nFlush, nFlushDir;
static void countFlush(int fd){
  struct stat st;
  nFlush++;
  nFlushDir += fstat(fd, &st)==0 && S_ISDIR(st.st_mode);
}
int fsync(int fd){
  countFlush(fd);
  return (int)syscall(SYS_fsync, fd);
}
int fdatasync(int fd){
  countFlush(fd);
  return (int)syscall(SYS_fdatasync, fd);
}
/* The name by which waldio.c calls pwritev2(2). */
#if __SIZEOF_LONG__==4
# define PWRITEV2 "pwritev64v2"
#else
# define PWRITEV2 "pwritev2"
#endif
ssize_t writeCounted(int, const struct iovec*, int, off64_t, int) __asm__(PWRITEV2);
ssize_t writeCounted(int fd, const struct iovec *a, int n, off64_t iOfst, int flags){
  if( flags & RWF_DSYNC ) nFlush++;
  return syscall(SYS_pwritev2, fd, a, (long)n, (long)iOfst, (long)(iOfst>>16>>16),
                 (long)flags);
}
