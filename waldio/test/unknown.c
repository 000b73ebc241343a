/*
** A SQLite that waldio does not know: with another header of the log or of the wal-index,
** other locks, or none of the calls that a COMMIT waits in.  Its log is a stock one, and
** waldio_stat says why; and nothing that was committed is lost.  Such a SQLite is played by
** a VFS above waldio, which changes what passes.
*/
#define _GNU_SOURCE
#include "test.h"
#include "flushes.h"

enum { AS_IT_IS, LOG_VERSION, INDEX_VERSION, INDEX_FRAMES, INDEX_SALTS, LOCKS, NO_PHASE_TWO };
static int eDiffers;
static sqlite3_vfs *pWaldio;

typedef struct Above { sqlite3_file base; sqlite3_file *pFile; } Above;
static unsigned *aIndex;          /* The header of the wal-index */
#define BELOW(f) (((Above*)(f))->pFile)

static void put4(unsigned char *a, unsigned v){
  a[0] = (unsigned char)(v>>24); a[1] = (unsigned char)(v>>16);
  a[2] = (unsigned char)(v>>8); a[3] = (unsigned char)v;
}
/* SQLite's checksum of n bytes, in words of this machine or as the log's magic says. */
static void checksum(const unsigned char *a, int n, int bBig, unsigned *aOut){
  unsigned s1 = 0, s2 = 0;
  int i;
  for(i=0; i<n; i+=8){
    unsigned x[2];
    memcpy(x, a+i, 8);
    if( bBig ){ x[0] = __builtin_bswap32(x[0]); x[1] = __builtin_bswap32(x[1]); }
    s1 += x[0] + s2;
    s2 += x[1] + s1;
  }
  aOut[0] = s1;
  aOut[1] = s2;
}

static void swap(unsigned *a, int i, int j){
  unsigned x = a[i];
  a[i] = a[j];
  a[j] = x;
}
/* Turn the wal-index into that of the other SQLite while waldio may look at it, and back. */
static void turn(void){
  int i;
  if( aIndex==0 || eDiffers<INDEX_VERSION || eDiffers>INDEX_SALTS ) return;
  for(i=0; i<2; i++){
    unsigned *a = &aIndex[12*i];
    if( eDiffers==INDEX_VERSION ) a[0] ^= 3007000 ^ 3007001;
    if( eDiffers==INDEX_FRAMES ) swap(a, 4, 5);
    if( eDiffers==INDEX_SALTS ){ swap(a, 8, 6); swap(a, 9, 7); }
    checksum((unsigned char*)a, 40, 0, &a[10]);
  }
}

static int xClose(sqlite3_file *f){
  int rc = BELOW(f)->pMethods->xClose(BELOW(f));
  sqlite3_free(BELOW(f));
  return rc;
}
static int xRead(sqlite3_file *f, void *a, int n, sqlite3_int64 i){
  return BELOW(f)->pMethods->xRead(BELOW(f), a, n, i);
}
/* The log's header, of another version. */
static int xWrite(sqlite3_file *f, const void *a, int n, sqlite3_int64 i){
  unsigned char aHdr[32];
  int rc;
  if( eDiffers==LOG_VERSION && n==32 && i==0 ){
    unsigned aSum[2];
    memcpy(aHdr, a, 32);
    put4(&aHdr[4], 3007001);
    checksum(aHdr, 24, aHdr[3]&1, aSum);
    put4(&aHdr[24], aSum[0]);
    put4(&aHdr[28], aSum[1]);
    a = aHdr;
  }
  turn();
  rc = BELOW(f)->pMethods->xWrite(BELOW(f), a, n, i);
  turn();
  return rc;
}
static int xTruncate(sqlite3_file *f, sqlite3_int64 n){
  return BELOW(f)->pMethods->xTruncate(BELOW(f), n);
}
static int xSync(sqlite3_file *f, int fl){ return BELOW(f)->pMethods->xSync(BELOW(f), fl); }
static int xFileSize(sqlite3_file *f, sqlite3_int64 *p){
  return BELOW(f)->pMethods->xFileSize(BELOW(f), p);
}
static int xLock(sqlite3_file *f, int e){ return BELOW(f)->pMethods->xLock(BELOW(f), e); }
static int xUnlock(sqlite3_file *f, int e){ return BELOW(f)->pMethods->xUnlock(BELOW(f), e); }
static int xCheck(sqlite3_file *f, int *p){
  return BELOW(f)->pMethods->xCheckReservedLock(BELOW(f), p);
}
static int xControl(sqlite3_file *f, int op, void *p){
  if( op==SQLITE_FCNTL_COMMIT_PHASETWO && eDiffers==NO_PHASE_TWO ) return SQLITE_OK;
  return BELOW(f)->pMethods->xFileControl(BELOW(f), op, p);
}
static int xSector(sqlite3_file *f){ return BELOW(f)->pMethods->xSectorSize(BELOW(f)); }
static int xDevice(sqlite3_file *f){
  return BELOW(f)->pMethods->xDeviceCharacteristics(BELOW(f));
}
static int xShmMap(sqlite3_file *f, int i, int n, int b, void volatile **pp){
  int rc = BELOW(f)->pMethods->xShmMap(BELOW(f), i, n, b, pp);
  if( rc==SQLITE_OK && i==0 ) aIndex = (unsigned*)(size_t)*pp;
  return rc;
}
/* Writers have a lock elsewhere, which they need not have here. */
static int xShmLock(sqlite3_file *f, int i, int n, int fl){
  int rc;
  if( eDiffers==LOCKS && n==1 && i==0 ) return SQLITE_OK;
  turn();
  rc = BELOW(f)->pMethods->xShmLock(BELOW(f), i, n, fl);
  turn();
  return rc;
}
static void xShmBarrier(sqlite3_file *f){ BELOW(f)->pMethods->xShmBarrier(BELOW(f)); }
static int xShmUnmap(sqlite3_file *f, int b){
  aIndex = 0;
  return BELOW(f)->pMethods->xShmUnmap(BELOW(f), b);
}

static const sqlite3_io_methods above = {
  2, xClose, xRead, xWrite, xTruncate, xSync, xFileSize, xLock, xUnlock, xCheck, xControl,
  xSector, xDevice, xShmMap, xShmLock, xShmBarrier, xShmUnmap, 0, 0
};

static int xOpen(sqlite3_vfs *v, const char *z, sqlite3_file *f, int fl, int *po){
  Above *p = (Above*)f;
  int rc;
  (void)v;
  f->pMethods = 0;
  p->pFile = sqlite3_malloc(pWaldio->szOsFile);
  CHECK( p->pFile!=0 );
  rc = pWaldio->xOpen(pWaldio, z, p->pFile, fl, po);
  if( rc==SQLITE_OK ) f->pMethods = &above; else sqlite3_free(p->pFile);
  return rc;
}
static int xDelete(sqlite3_vfs *v, const char *z, int b){
  (void)v;
  return pWaldio->xDelete(pWaldio, z, b);
}
static int xAccess(sqlite3_vfs *v, const char *z, int fl, int *po){
  (void)v;
  return pWaldio->xAccess(pWaldio, z, fl, po);
}
static int xFullPathname(sqlite3_vfs *v, const char *z, int n, char *zo){
  (void)v;
  return pWaldio->xFullPathname(pWaldio, z, n, zo);
}
static int xRandomness(sqlite3_vfs *v, int n, char *zo){
  (void)v;
  return pWaldio->xRandomness(pWaldio, n, zo);
}
static int xSleep(sqlite3_vfs *v, int n){
  (void)v;
  return pWaldio->xSleep(pWaldio, n);
}
static int xCurrentTime(sqlite3_vfs *v, double *p){
  (void)v;
  return pWaldio->xCurrentTime(pWaldio, p);
}
static sqlite3_vfs vfs = {
  .iVersion = 1, .szOsFile = sizeof(Above), .mxPathname = 512, .zName = "above",
  .xOpen = xOpen, .xDelete = xDelete, .xAccess = xAccess, .xFullPathname = xFullPathname,
  .xRandomness = xRandomness, .xSleep = xSleep, .xCurrentTime = xCurrentTime
};

#define REASON "this SQLite is none that waldio knows: "

/* 30 commits, in logs that are restarted, of an SQLite that differs in one thing. */
static void unknown(int eWhat, const char *zName, const char *zReason){
  sqlite3 *db;
  int i;
  testBegin("another SQLite: %s", zName);
  eDiffers = eWhat;
  CHECK_INT( testShell("rm -f u.db* copy.db*"), 0 );
  db = testOpen("file:u.db?vfs=above&waldio=force");
  testExec(db, "PRAGMA journal_mode=wal; CREATE TABLE t(a)");
  for(i=1; i<=30; i++){
    testExec(db, "INSERT INTO t VALUES(%d)", i);
    if( i%10==0 ) CHECK_STR( testText(db, "PRAGMA wal_checkpoint(RESTART)"), "0" );
  }
  testExec(db, "INSERT INTO t VALUES(31)");
  CHECK_STR( testText(db, "SELECT coalesce(reason,'-') FROM waldio_stat"), zReason );
  CHECK_STR( testText(db, "SELECT layout FROM waldio_stat"), *zReason=='-' ? "T" : "stock" );
  CHECK_STR( testText(db, "SELECT count(*)||' '||sum(a) FROM t"), "31 496" );
  if( eWhat!=LOG_VERSION ){
    sqlite3 *db2;
    CHECK_INT( testShell("cp u.db copy.db; cp u.db-wal copy.db-wal"), 0 );
    db2 = testOpen("file:copy.db?vfs=waldio&waldio=force");
    CHECK_STR( testText(db2, "SELECT count(*)||' '||sum(a) FROM t"), "31 496" );
    sqlite3_close(db2);
  }
  sqlite3_close(db);
  eDiffers = AS_IT_IS;
  db = testOpen("file:u.db?vfs=unix");
  CHECK_STR( testText(db, "SELECT count(*)||' '||sum(a) FROM t"), "31 496" );
  CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
  sqlite3_close(db);
}

/* An SQLite that sends nothing at the end of a COMMIT: each commit has its own flush. */
static void noPhaseTwo(int eWhat, const char *zSync){
  sqlite3 *db;
  int i, n;
  testBegin("the end of a COMMIT %s, %s", eWhat ? "goes unseen" : "is seen", zSync);
  eDiffers = eWhat;
  CHECK_INT( testShell("rm -f u.db*"), 0 );
  db = testOpen("file:u.db?vfs=above&waldio=force");
  testExec(db, "PRAGMA journal_mode=wal; CREATE TABLE t(a); PRAGMA waldio_group_ms=60000;"
               "PRAGMA waldio_group_frames=1000000; PRAGMA waldio_sync=%s;"
               "PRAGMA waldio_prealloc=0; INSERT INTO t VALUES(0)", zSync);
  for(i=n=0; i<20; i++){
    nFlush = 0;
    testExec(db, "INSERT INTO t VALUES(1)");
    n += nFlush>0;
  }
  CHECK_INT( n, eWhat || zSync[0]!='\'' ? 20 : 0 );
  sqlite3_close(db);
  eDiffers = AS_IT_IS;
}

int main(void){
  testEnter();
  CHECK_INT( waldio_register(0), SQLITE_OK );
  pWaldio = sqlite3_vfs_find("waldio");
  vfs.mxPathname = pWaldio->mxPathname;
  CHECK_INT( sqlite3_vfs_register(&vfs, 0), SQLITE_OK );
  /* The first end of a COMMIT that is seen tells that this SQLite has it. */
  noPhaseTwo(NO_PHASE_TWO, "'group'");
  noPhaseTwo(NO_PHASE_TWO, "persistent");
  noPhaseTwo(AS_IT_IS, "'group'");
  unknown(AS_IT_IS, "nothing", "-");
  unknown(LOG_VERSION, "another version of the log", REASON "the header of its log");
  unknown(INDEX_VERSION, "another version of the wal-index",
          REASON "the header of its wal-index");
  unknown(INDEX_FRAMES, "the number of frames elsewhere", REASON "the header of its wal-index");
  unknown(INDEX_SALTS, "the salts elsewhere", REASON "the header of its wal-index");
  unknown(LOCKS, "another lock of writers", REASON "the locks of its wal-index");
  testLeave("unknown");
  return 0;
}
