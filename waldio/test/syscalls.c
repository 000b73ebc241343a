/*
** Each system call that writes or flushes fails in turn, below SQLite and waldio: with EIO,
** ENOSPC or EINTR, or a write takes a part of its bytes.  What was acknowledged is there
** afterwards, and nothing in part.  An interrupted or short write is gone on with, so that
** no commit fails for it.
*/
#define _GNU_SOURCE
#include "account.h"
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define SHORT (-1)                /* No error: a write of a part */

static int nCall;                 /* Calls since the scenario began */
static int iFail, eFail;          /* The one that fails, or 0, and how */

/* What the process that it happens to tells. */
static struct Shared {
  int nCall;                      /* How many the scenario makes */
  int bWrite;                     /* The one that failed is a write */
  int nTried, nAcked;
  char aAcked[100];
} *pShared;

/* Returns 1 if this call fails; *pn are the bytes of a write, of which fewer are left. */
static int failsNow(size_t *pn){
  nCall++;
  if( nCall!=iFail ) return 0;
  pShared->bWrite = pn!=0;
  if( eFail==SHORT ){
    /* Whole sectors: what O_DIRECT could have written. */
    if( pn && *pn>512 ) *pn = (*pn/2+511)/512*512;
    return 0;
  }
  errno = eFail;
  return 1;
}

/* Calls, by whichever library they are made. */
int fdatasync(int fd){
  return failsNow(0) ? -1 : (int)syscall(SYS_fdatasync, fd);
}
int fsync(int fd){
  return failsNow(0) ? -1 : (int)syscall(SYS_fsync, fd);
}
ssize_t pwrite64(int fd, const void *p, size_t n, off64_t iOfst){
  return failsNow(&n) ? -1 : syscall(SYS_pwrite64, fd, p, n, iOfst);
}
ssize_t failing(int, const struct iovec*, int, off64_t, int) __asm__("pwritev2");
ssize_t failing(int fd, const struct iovec *a, int n, off64_t iOfst, int flags){
  struct iovec v = a[0];
  CHECK_INT( n, 1 );
  if( failsNow(&v.iov_len) ) return -1;
  return syscall(SYS_pwritev2, fd, &v, 1L, (long)iOfst, 0L, (long)flags);
}

/* Two sessions, the second in the log of the first; it ends without a close. */
static void scenario(const char *zMode){
  int i, j;
  nCall = 0;
  for(j=0; j<2; j++){
    sqlite3 *db = testOpen("file:s.db?vfs=waldio");
    testTry(db, "PRAGMA %s; PRAGMA wal_autocheckpoint=0", zMode);
    for(i=0; i<3; i++){
      commit(db);
      if( i==1 ) testTry(db, "PRAGMA wal_checkpoint(RESTART)");
    }
    if( j==0 ) sqlite3_close(db);
  }
  pShared->nCall = nCall;
  pShared->nTried = nTried;
  pShared->nAcked = nAcked;
  memcpy(pShared->aAcked, aAcked, sizeof(pShared->aAcked));
}

static void each(const char *zMode, int e, const char *zFail){
  int i, nMost = 1;
  for(i=0; i<=nMost; i++){
    sqlite3 *db;
    pid_t pid;
    int st;
    testBegin("%s, call %d: %s", zMode, i, zFail);
    CHECK_INT( testShell("rm -f s.db*; cp new.db s.db; cp new.db-wal s.db-wal"), 0 );
    pid = fork();
    CHECK( pid>=0 );
    if( pid==0 ){
      accountBegin();
      iFail = i;
      eFail = e;
      scenario(zMode);
      _exit(7);
    }
    CHECK( waitpid(pid, &st, 0)==pid );
    CHECK_INT( WIFEXITED(st) ? WEXITSTATUS(st) : -1, 7 );
    nTried = pShared->nTried;
    nAcked = pShared->nAcked;
    memcpy(aAcked, pShared->aAcked, sizeof(pShared->aAcked));
    if( i==0 ) nMost = pShared->nCall;
    if( i==0 || (pShared->bWrite && (e==SHORT || e==EINTR)) ) CHECK_INT( nAcked, nTried );
    db = testOpen("file:s.db?vfs=waldio");
    consistent(db);
    CHECK_INT( sqlite3_close(db), SQLITE_OK );
    db = testOpen("file:s.db?vfs=unix");
    CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
    CHECK_INT( sqlite3_close(db), SQLITE_OK );
  }
  printf("%s, %s: %d calls\n", zMode, zFail, nMost);
}

int main(void){
  static const struct { int e; const char *z; } aFail[] = {
    { EIO, "EIO" }, { ENOSPC, "ENOSPC" }, { EINTR, "EINTR" }, { SHORT, "a short write" }
  };
  sqlite3 *db;
  unsigned i;
  testEnter();
  CHECK_INT( waldio_register(0), SQLITE_OK );
  db = testOpen("file:new.db?vfs=waldio");
  testExec(db, "PRAGMA journal_mode=wal");
  accountCreate(db);
  CHECK_INT( sqlite3_close(db), SQLITE_OK );
  pShared = mmap(0, sizeof(*pShared), PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS, -1, 0);
  CHECK( pShared!=MAP_FAILED );
  for(i=0; i<sizeof(aFail)/sizeof(aFail[0]); i++){
    each("synchronous=FULL", aFail[i].e, aFail[i].z);
    each("waldio_sync=persistent", aFail[i].e, aFail[i].z);
  }
  testLeave("syscalls");
  return 0;
}
