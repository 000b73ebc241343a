/*
** Every call to the lower VFS fails once, and all from one on: a full disk, an
** I/O error, a failed flush.  What was acknowledged is there when the database is
** opened again, by waldio and then by stock SQLite; what was not is there whole or
** not at all.
*/
#include "account.h"
#include "faultvfs.h"

static void scenario(const char *zSync){
  sqlite3 *db = 0;
  int i;
  if( sqlite3_open_v2("file:f.db?vfs=waldio", &db, SQLITE_OPEN_READWRITE
                      |SQLITE_OPEN_URI, 0)!=SQLITE_OK ){
    sqlite3_close(db);
    return;
  }
  testTry(db, "PRAGMA synchronous=%s; PRAGMA wal_autocheckpoint=0", zSync);
  testTry(db, "PRAGMA waldio_prealloc=8192; PRAGMA cache_size=5");
  for(i=0; i<6; i++) commit(db);
  testTry(db, "BEGIN IMMEDIATE; WITH c(i) AS (SELECT 1 UNION ALL "
      "SELECT i+1 FROM c WHERE i<30) INSERT INTO junk SELECT hex(zeroblob(300))"
      " FROM c; UPDATE junk SET a='x'; ROLLBACK");
  if( !sqlite3_get_autocommit(db) ) testTry(db, "ROLLBACK");
  commit(db);
  testTry(db, "PRAGMA wal_checkpoint(RESTART)");
  for(i=0; i<4; i++) commit(db);
  testTry(db, "PRAGMA wal_checkpoint(TRUNCATE)");
  for(i=0; i<3; i++) commit(db);
  sqlite3_close(db);
}

/* The database the scenario begins with. */
static void prepare(const char *zReserve){
  sqlite3 *db;
  faultSet(0, -1, 0, 0);
  CHECK_INT( testShell("rm -f f.db*"), 0 );
  db = testOpen(zReserve);
  testExec(db, "PRAGMA page_size=1024; PRAGMA journal_mode=wal");
  accountCreate(db);
  sqlite3_close(db);
  CHECK_INT( testShell("mkdir -p keep && rm -f keep/* && cp f.db* keep"), 0 );
}

/* Fail the nth call for n=0, nStep, 2*nStep ... until none is left to fail. */
static void each(const char *zWhat, const char *zReserve, const char *zSync,
                 int mOp, int rcFault, int bForever, int nStep){
  long n;
  long nFailed = 1;
  for(n=0; nFailed; n+=nStep){
    sqlite3 *db;
    testBegin("%s, synchronous=%s, call %ld%s, %s", zWhat, zSync, n,
              bForever ? " and on" : "", zReserve);
    CHECK_INT( testShell("rm -f f.db*; cp keep/* ."), 0 );
    accountBegin();
    faultSet(mOp, n, rcFault, bForever);
    scenario(zSync);
    nFailed = fault.nFailed;
    faultSet(0, -1, 0, 0);
    if( nFailed==0 ) CHECK_INT( nAcked, 14 );
    CHECK_INT( testShell("rm -f f.db-shm"), 0 );
    db = testOpen("file:f.db?vfs=waldio");
    consistent(db);
    CHECK_INT( commit(db), SQLITE_OK );
    sqlite3_close(db);
    db = testOpen("file:f.db?vfs=unix");
    consistent(db);
    sqlite3_close(db);
  }
  CHECK( n>2*nStep );
}

/* After a flush failed every commit fails, on all connections, until the last
** of them is closed; then what was acknowledged is there. */
static void poisoned(void){
  sqlite3 *db, *db2;
  testBegin("poisoned by a failed flush");
  prepare("file:f.db?vfs=waldio");
  accountBegin();
  db = testOpen("file:f.db?vfs=waldio");
  db2 = testOpen("file:f.db?vfs=waldio");
  testExec(db, "PRAGMA synchronous=FULL");
  testExec(db2, "PRAGMA synchronous=FULL");
  CHECK_INT( commit(db), SQLITE_OK );
  CHECK_INT( commit(db2), SQLITE_OK );
  faultSet(FAULT_SYNC, 0, 0, 0);
  CHECK_INT( commit(db), SQLITE_IOERR_FSYNC );
  CHECK_INT( fault.nFailed, 1 );
  faultSet(0, -1, 0, 0);
  CHECK_INT( commit(db), SQLITE_IOERR_FSYNC );
  CHECK_INT( commit(db2), SQLITE_IOERR_FSYNC );
  CHECK( testTry(db, "PRAGMA wal_checkpoint; BEGIN IMMEDIATE; "
                     "INSERT INTO junk VALUES(1); COMMIT")!=SQLITE_OK );
  testTry(db, "ROLLBACK");
  CHECK( atoi(testText(db2, "SELECT count(*) FROM t"))>=2 );
  sqlite3_close(db);
  CHECK_INT( commit(db2), SQLITE_IOERR_FSYNC );
  sqlite3_close(db2);
  db = testOpen("file:f.db?vfs=waldio");
  consistent(db);
  CHECK_INT( commit(db), SQLITE_OK );
  sqlite3_close(db);
}

/* The flush that the thread of waldio_sync=group makes fails: the next commit
** says so. */
static void poisonedLater(void){
  sqlite3 *db;
  int rc;
  testBegin("the delayed flush fails");
  prepare("file:f.db?vfs=waldio");
  accountBegin();
  db = testOpen("file:f.db?vfs=waldio");
  testExec(db, "PRAGMA waldio_sync='group'; PRAGMA waldio_group_ms=1;"
               "PRAGMA waldio_group_frames=1000000");
  CHECK_INT( commit(db), SQLITE_OK );
  faultSet(FAULT_SYNC, 0, 0, 0);
  while( (rc = commit(db))==SQLITE_OK ){}
  CHECK_INT( rc, SQLITE_IOERR_FSYNC );
  CHECK_INT( commit(db), SQLITE_IOERR_FSYNC );
  faultSet(0, -1, 0, 0);
  sqlite3_close(db);
  db = testOpen("file:f.db?vfs=waldio");
  consistent(db);
  CHECK_INT( commit(db), SQLITE_OK );
  sqlite3_close(db);
}

/* That thread flushes the log, and leaves the file of the database, which is
** marked once something is durable, to the thread that uses it. */
static void foreign(void){
  unsigned char c = 0;
  sqlite3 *db;
  int i, n = 0, fd;
  testBegin("files used by one thread");
  prepare("file:f.db?vfs=waldio");
  accountBegin();
  db = testOpen("file:f.db?vfs=waldio");
  testExec(db, "PRAGMA waldio_sync='group'; PRAGMA waldio_group_ms=1;"
               "PRAGMA waldio_group_frames=1000000; PRAGMA waldio_prealloc=0");
  for(i=1; i<=5; i++){
    CHECK_INT( commit(db), SQLITE_OK );
    while( atoi(testText(db, "SELECT flushes FROM waldio_stat"))==n ) usleep(100);
    n = atoi(testText(db, "SELECT flushes FROM waldio_stat"));
  }
  CHECK_INT( faultForeign(), 0 );
  fd = open("f.db", O_RDONLY);
  CHECK( pread(fd, &c, 1, 19)==1 );
  CHECK_INT( c, 0x57 );
  close(fd);
  sqlite3_close(db);
}

/* The next commits of a database find that several connections commit at once:
** WdShared.nGroup, in the guard region of the wal-index. */
static void asGroup(const char *zShm){
  const unsigned n = 32;
  int fd = open(zShm, O_RDWR);
  CHECK( fd>=0 );
  CHECK_INT( pwrite(fd, &n, sizeof(n), 768+40), sizeof(n) );
  close(fd);
}

/* A transaction that has a super-journal: SQLite ignores what the end of a COMMIT
** returns.  Whichever flush fails, a COMMIT that succeeds poisons nothing. */
static void ignored(const char *zSync, int bGroup){
  long n, nFailed = 1;
  int nError = 0;
  for(n=0; nFailed; n++){
    sqlite3 *db;
    int rc;
    testBegin("flush %ld of a transaction over three databases, %s", n, zSync);
    CHECK_INT( testShell("rm -f f.db* g.db* h.db*"), 0 );
    db = testOpen("file:f.db?vfs=waldio");
    testExec(db, "PRAGMA journal_mode=wal; CREATE TABLE t(a);"
      "ATTACH 'file:g.db?vfs=unix' AS g; CREATE TABLE g.t(a);"
      "ATTACH 'file:h.db?vfs=unix' AS h; CREATE TABLE h.t(a);"
      "PRAGMA waldio_sync=normal; INSERT INTO main.t VALUES(1); PRAGMA %s", zSync);
    if( bGroup ) asGroup("f.db-shm");
    faultSet(FAULT_SYNC, n, 0, 0);
    rc = testTry(db, "BEGIN; INSERT INTO main.t VALUES(2); INSERT INTO g.t VALUES(2);"
                     "INSERT INTO h.t VALUES(2); COMMIT");
    nFailed = fault.nFailed;
    faultSet(0, -1, 0, 0);
    if( rc==SQLITE_OK ){
      testExec(db, "INSERT INTO main.t VALUES(3)");
    }else{
      nError++;
    }
    sqlite3_close(db);
  }
  CHECK( nError>0 );
}

/* A log is not deleted before the database says that it needs none, and a database
** that says so is not refused for want of it: whichever call fails at the close. */
static void deleted(int mOp, int rcFault){
  long n, nFailed = 1;
  for(n=0; nFailed; n++){
    sqlite3 *db;
    testBegin("close that deletes the log, operation %d, call %ld", mOp, n);
    prepare("file:f.db?vfs=waldio");
    accountBegin();
    db = testOpen("file:f.db?vfs=waldio");
    testExec(db, "PRAGMA waldio_recycle=0; PRAGMA synchronous=FULL");
    CHECK_INT( commit(db), SQLITE_OK );
    faultSet(mOp, n, rcFault, 0);
    sqlite3_close(db);
    nFailed = fault.nFailed;
    faultSet(0, -1, 0, 0);
    db = testOpen("file:f.db?vfs=waldio");
    consistent(db);
    CHECK_INT( commit(db), SQLITE_OK );
    sqlite3_close(db);
  }
  CHECK( n>1 );
}

/* Whoever recovers a log and deletes it may begin another. */
static void begunAgain(void){
  sqlite3 *db;
  testBegin("log recovered, deleted and begun again");
  prepare("file:f.db?vfs=waldio");
  accountBegin();
  db = testOpen("file:f.db?vfs=waldio");
  testExec(db, "PRAGMA synchronous=FULL");
  CHECK_INT( commit(db), SQLITE_OK );
  CHECK_INT( testShell("rm -f keep/* && cp f.db f.db-wal keep"), 0 );
  sqlite3_close(db);
  CHECK_INT( testShell("rm -f f.db* && cp keep/* ."), 0 );
  db = testOpen("file:f.db?vfs=waldio");
  testExec(db, "PRAGMA waldio_recycle=0; PRAGMA locking_mode=EXCLUSIVE");
  consistent(db);
  CHECK_STR( testText(db, "PRAGMA journal_mode=delete"), "delete" );
  CHECK_STR( testText(db, "PRAGMA journal_mode=wal"), "wal" );
  CHECK_INT( commit(db), SQLITE_OK );
  consistent(db);
  sqlite3_close(db);
}

/* A full disk while the log is extended ahead, by the write after a commit's: the commit
** stands, and the log is appended to instead. */
static void noRoomAhead(void){
  sqlite3 *db;
  int i;
  testBegin("no room to preallocate");
  prepare("file:f.db?vfs=waldio");
  CHECK_INT( testShell("rm f.db-wal"), 0 );
  accountBegin();
  db = testOpen("file:f.db?vfs=waldio");
  testExec(db, "PRAGMA synchronous=FULL; SELECT * FROM t");
  CHECK_INT( commit(db), SQLITE_OK );     /* Begins with a header */
  for(i=0; i<30 && fault.nFailed==0; i++){
    faultSet(FAULT_WRITE, 1, SQLITE_FULL, 0);
    CHECK_INT( commit(db), SQLITE_OK );
  }
  CHECK_INT( fault.nFailed, 1 );
  faultSet(0, -1, 0, 0);
  CHECK_INT( commit(db), SQLITE_OK );
  CHECK_STR( testText(db, "SELECT fallbacks FROM waldio_stat"), "1" );
  consistent(db);
  sqlite3_close(db);
}

/* A transaction has spilled its cache.  A statement reads these pages, for which
** they have to be written, and fails; it is undone, and the transaction goes
** on. */
static void spilled(const char *zUri){
  sqlite3 *db;
  long n;
  long nFailed = 1;
  for(n=0; nFailed; n++){
    testBegin("full disk at write %ld, in a statement, %s", n, zUri);
    faultSet(0, -1, 0, 0);
    CHECK_INT( testShell("rm -f f.db*; cp keep/* ."), 0 );
    db = testOpen(zUri);
    testExec(db, "PRAGMA cache_size=10; PRAGMA temp_store=memory;"
                 "PRAGMA waldio_prealloc=0; CREATE TABLE u(a UNIQUE)");
    testExec(db, "BEGIN; WITH c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c"
                 " WHERE i<30) INSERT INTO junk SELECT hex(zeroblob(400)) FROM c");
    faultSet(FAULT_WRITE, n, SQLITE_FULL, 1);
    testTry(db, "INSERT INTO u SELECT a||rowid FROM junk");
    nFailed = fault.nFailed;
    faultSet(0, -1, 0, 0);
    if( n==0 ) CHECK_INT( sqlite3_get_autocommit(db), 0 );
    if( !sqlite3_get_autocommit(db) ){
      testExec(db, "COMMIT");
      CHECK_STR( testText(db, "SELECT sum(length(a)) FROM junk"), "24000" );
    }
    CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
    sqlite3_close(db);
  }
  CHECK( n>1 );
}

/* The wal-index cannot be mapped, and later it can, by the same connection. */
static void unmapped(void){
  sqlite3 *db;
  long n;
  long nFailed = 1;
  for(n=0; nFailed; n++){
    testBegin("mapping %ld of the wal-index fails", n);
    faultSet(0, -1, 0, 0);
    CHECK_INT( testShell("rm -f f.db*; cp keep/* ."), 0 );
    db = testOpen("file:f.db?vfs=waldio");
    faultSet(FAULT_SHM, n, 0, 0);
    testTry(db, "SELECT * FROM t");
    nFailed = fault.nFailed;
    faultSet(0, -1, 0, 0);
    accountBegin();
    CHECK_INT( commit(db), SQLITE_OK );
    consistent(db);
    sqlite3_close(db);
  }
  CHECK( n>2 );
}

/* What the VFS below lacks, SQLite does without. */
static void lacking(void){
  sqlite3 *db;
  sqlite3_vfs *pFault = sqlite3_vfs_find("fault");
  sqlite3_vfs *pWaldio = sqlite3_vfs_find("waldio");
  testBegin("methods the VFS below lacks");
  CHECK( pFault->xCurrentTimeInt64==0 && pFault->xGetLastError==0 );
  CHECK( pWaldio->xCurrentTimeInt64==0 && pWaldio->xGetLastError==0 );
  CHECK( pWaldio->xSetSystemCall==0 );
  db = testOpen("file:f.db?vfs=waldio");
  CHECK_STR( testText(db, "SELECT julianday('now')>2450000"), "1" );
  CHECK_INT( sqlite3_system_errno(db), 0 );
  sqlite3_close(db);
}

int main(void){
  static const char *const azUri[] = {
    "file:f.db?vfs=waldio", "file:f.db?vfs=waldio&waldio_reserve=0",
    "file:f.db?vfs=waldio&waldio_reserve=0&waldio_padding=512"
  };
  int i, b;
  testEnter();
  faultRegister();
  CHECK_INT( waldio_register(0), SQLITE_OK );
  lacking();
  poisoned();
  poisonedLater();
  foreign();
  ignored("waldio_sync=persistent; PRAGMA synchronous=NORMAL", 0);
  ignored("waldio_sync=full; PRAGMA synchronous=FULL", 1);
  noRoomAhead();
  deleted(FAULT_WRITE, SQLITE_IOERR_WRITE);
  deleted(FAULT_SYNC, 0);
  deleted(FAULT_NAME, 0);
  begunAgain();
  for(i=0; i<3; i++){
    prepare(azUri[i]);
    spilled(azUri[i]);
    unmapped();
    for(b=0; b<2; b++){
      each("full disk", azUri[i], "FULL", FAULT_WRITE, SQLITE_FULL, b, 1);
      each("full disk", azUri[i], "NORMAL", FAULT_WRITE, SQLITE_FULL, b, 3);
      each("write error", azUri[i], "FULL", FAULT_WRITE, SQLITE_IOERR_WRITE, b, 3);
      each("read error", azUri[i], "FULL", FAULT_READ, 0, b, 5);
      each("failed flush", azUri[i], "FULL", FAULT_SYNC, 0, b, 1);
      each("failed size", azUri[i], "FULL", FAULT_SIZE, 0, b, 1);
      each("failed open", azUri[i], "FULL", FAULT_OPEN, 0, b, 1);
    }
  }
  testLeave("fault");
  return 0;
}
