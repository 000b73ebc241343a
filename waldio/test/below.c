/*
** A VFS below waldio that is a part of something larger, which each of its methods
** finds by the pointer it is given: waldio gives it that, in every method.
*/
#include "test.h"
#include <stddef.h>

static struct Larger {
  char aBefore[64];
  sqlite3_vfs base;
  sqlite3_vfs *pUnix;
  int aCall[16];                  /* Calls of each method */
} larger;
enum { C_OPEN, C_DELETE, C_ACCESS, C_FULL, C_DLOPEN, C_DLERROR, C_DLSYM, C_DLCLOSE,
       C_RANDOM, C_SLEEP, C_TIME, C_ERROR, C_TIME64, C_SET, C_GET, C_NEXT };

static sqlite3_vfs *below(sqlite3_vfs *pVfs, int iCall){
  struct Larger *p = (struct Larger*)((char*)pVfs - offsetof(struct Larger, base));
  CHECK( p==&larger );
  p->aCall[iCall]++;
  return p->pUnix;
}
static int xOpen(sqlite3_vfs *p, const char *z, sqlite3_file *f, int fl, int *po){
  p = below(p, C_OPEN);
  return p->xOpen(p, z, f, fl, po);
}
static int xDelete(sqlite3_vfs *p, const char *z, int b){
  p = below(p, C_DELETE);
  return p->xDelete(p, z, b);
}
static int xAccess(sqlite3_vfs *p, const char *z, int fl, int *po){
  p = below(p, C_ACCESS);
  return p->xAccess(p, z, fl, po);
}
static int xFullPathname(sqlite3_vfs *p, const char *z, int n, char *zo){
  p = below(p, C_FULL);
  return p->xFullPathname(p, z, n, zo);
}
static void *xDlOpen(sqlite3_vfs *p, const char *z){
  p = below(p, C_DLOPEN);
  return p->xDlOpen(p, z);
}
static void xDlError(sqlite3_vfs *p, int n, char *zo){
  p = below(p, C_DLERROR);
  p->xDlError(p, n, zo);
}
static void (*xDlSym(sqlite3_vfs *p, void *h, const char *z))(void){
  p = below(p, C_DLSYM);
  return p->xDlSym(p, h, z);
}
static void xDlClose(sqlite3_vfs *p, void *h){
  p = below(p, C_DLCLOSE);
  p->xDlClose(p, h);
}
static int xRandomness(sqlite3_vfs *p, int n, char *zo){
  p = below(p, C_RANDOM);
  return p->xRandomness(p, n, zo);
}
static int xSleep(sqlite3_vfs *p, int n){
  p = below(p, C_SLEEP);
  return p->xSleep(p, n);
}
static int xCurrentTime(sqlite3_vfs *p, double *pr){
  p = below(p, C_TIME);
  return p->xCurrentTime(p, pr);
}
static int xGetLastError(sqlite3_vfs *p, int n, char *zo){
  p = below(p, C_ERROR);
  return p->xGetLastError(p, n, zo);
}
static int xCurrentTimeInt64(sqlite3_vfs *p, sqlite3_int64 *pi){
  p = below(p, C_TIME64);
  return p->xCurrentTimeInt64(p, pi);
}
static int xSetSystemCall(sqlite3_vfs *p, const char *z, sqlite3_syscall_ptr x){
  p = below(p, C_SET);
  return p->xSetSystemCall(p, z, x);
}
static sqlite3_syscall_ptr xGetSystemCall(sqlite3_vfs *p, const char *z){
  p = below(p, C_GET);
  return p->xGetSystemCall(p, z);
}
static const char *xNextSystemCall(sqlite3_vfs *p, const char *z){
  p = below(p, C_NEXT);
  return p->xNextSystemCall(p, z);
}

static void registerLarger(int iVersion){
  sqlite3_vfs vfs = {
    iVersion, 0, 0, 0, "unix-larger", 0, xOpen, xDelete, xAccess, xFullPathname,
    xDlOpen, xDlError, xDlSym, xDlClose, xRandomness, xSleep, xCurrentTime,
    xGetLastError, xCurrentTimeInt64, xSetSystemCall, xGetSystemCall, xNextSystemCall
  };
  larger.pUnix = sqlite3_vfs_find(0);
  vfs.szOsFile = larger.pUnix->szOsFile;
  vfs.mxPathname = larger.pUnix->mxPathname;
  larger.base = vfs;
  CHECK_INT( sqlite3_vfs_register(&larger.base, 1), SQLITE_OK );
}

/* What SQLite does with a database, and what a program may do with a VFS. */
static void use(int iVersion){
  sqlite3_vfs *pVfs = sqlite3_vfs_find("waldio");
  sqlite3 *db = testOpen("file:b.db");
  char z[100], *zErr = 0;
  double r;
  int i;
  testExec(db, "PRAGMA journal_mode=waldio; CREATE TABLE t(a, b);"
               "INSERT INTO t VALUES(CURRENT_TIMESTAMP, randomblob(10));"
               "ATTACH 'c.db' AS c; CREATE TABLE c.u AS SELECT * FROM t;"
               "PRAGMA journal_mode=delete; INSERT INTO t SELECT * FROM t;"
               "CREATE TEMP TABLE x AS SELECT * FROM t");
  CHECK_INT( sqlite3_enable_load_extension(db, 1), SQLITE_OK );
  CHECK( sqlite3_load_extension(db, "/nowhere", 0, &zErr)!=SQLITE_OK );
  sqlite3_free(zErr);
  sqlite3_close(db);
  CHECK_INT( pVfs->iVersion, iVersion );
  CHECK_INT( pVfs->xSleep(pVfs, 1)>=0, 1 );
  CHECK_INT( pVfs->xCurrentTime(pVfs, &r), SQLITE_OK );
  (void)pVfs->xGetLastError(pVfs, sizeof(z), z);
  if( iVersion>2 ){
    const char *zCall = pVfs->xNextSystemCall(pVfs, 0);
    CHECK( zCall!=0 && pVfs->xGetSystemCall(pVfs, zCall)!=0 );
    CHECK_INT( pVfs->xSetSystemCall(pVfs, zCall, 0), SQLITE_OK );
  }else{
    CHECK( pVfs->xSetSystemCall==0 && pVfs->xGetSystemCall==0 );
  }
  if( iVersion<2 ) CHECK( pVfs->xCurrentTimeInt64==0 );
  for(i=C_OPEN; i<=C_NEXT; i++){
    int bMust = i!=C_DLSYM && i!=C_DLCLOSE && (i!=C_TIME64 || iVersion>1)
             && (i<C_SET || iVersion>2);
    testBegin("version %d, method %d", iVersion, i);
    if( bMust ) CHECK( larger.aCall[i]>0 );
  }
}

int main(void){
  int i, st;
  testEnter();
  for(i=1; i<=3; i++){
    pid_t pid = fork();
    testBegin("version %d", i);
    CHECK( pid>=0 );
    if( pid==0 ){
      registerLarger(i);
      CHECK_INT( waldio_register(1), SQLITE_OK );
      use(i);
      exit(0);
    }
    CHECK( waitpid(pid, &st, 0)==pid );
    CHECK_INT( st, 0 );
    CHECK_INT( testShell("rm -f *.db*"), 0 );
  }
  testLeave("below");
  return 0;
}
