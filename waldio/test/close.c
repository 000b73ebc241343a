/*
** How a connection ends: what it leaves behind is all that was committed,
** whatever was asked, set and moved before.
*/
#include "test.h"

/* One way; every field is 0 or 1. */
typedef struct Way Way;
struct Way {
  int bAsk;                       /* PERSIST_WAL is asked for before the close */
  int bPersist;                   /* ... and set */
  int bExclusive;                 /* locking_mode=EXCLUSIVE from the beginning */
  int bLater;                     /* ... and only after a transaction */
  int bNoCkpt;                    /* SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE */
  int bMoved;                     /* The database is moved while it is open */
  int bOther;                     /* Another connection closes later */
};

/* PERSIST_WAL as SQLite has it, unchanged. */
static void ask(sqlite3 *db, int bExpected){
  int b = -1;
  CHECK_INT( sqlite3_file_control(db, "main", SQLITE_FCNTL_PERSIST_WAL, &b),
             SQLITE_OK );
  CHECK_INT( b, bExpected );
}

static void closes(const Way *p, const char *zVfs){
  char zUri[100];
  sqlite3 *db, *pOther = 0;
  const char *zName = p->bMoved ? "moved.db" : "c.db";
  testBegin("%s: asked %d, set %d, EXCLUSIVE %d %d, no checkpoint %d, moved %d, "
            "another %d", zVfs, p->bAsk, p->bPersist, p->bExclusive, p->bLater,
            p->bNoCkpt, p->bMoved, p->bOther);
  CHECK_INT( testShell("rm -f c.db* moved.db*"), 0 );
  snprintf(zUri, sizeof(zUri), "file:c.db?vfs=%s", zVfs);
  db = testOpen(zUri);
  if( p->bExclusive ) testExec(db, "PRAGMA locking_mode=EXCLUSIVE");
  testExec(db, "PRAGMA journal_mode=wal; CREATE TABLE t(a)");
  if( p->bLater ) testExec(db, "PRAGMA locking_mode=EXCLUSIVE");
  if( p->bPersist ){
    int b = 1;
    CHECK_INT( sqlite3_file_control(db, "main", SQLITE_FCNTL_PERSIST_WAL, &b),
               SQLITE_OK );
  }
  if( p->bNoCkpt ){
    CHECK_INT( sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, 0),
               SQLITE_OK );
  }
  testExec(db, "INSERT INTO t VALUES(1)");
  if( p->bAsk ) ask(db, p->bPersist);
  testExec(db, "INSERT INTO t VALUES(2)");
  if( p->bOther ){
    pOther = testOpen(zUri);
    CHECK_STR( testText(pOther, "SELECT count(*) FROM t"), "2" );
  }
  if( p->bMoved ) CHECK_INT( rename("c.db", zName), 0 );
  if( p->bAsk ) ask(db, p->bPersist);
  CHECK_INT( sqlite3_close(db), SQLITE_OK );
  if( pOther ) CHECK_INT( sqlite3_close(pOther), SQLITE_OK );
  if( p->bMoved ){
    CHECK_INT( testShell("if [ -e c.db-wal ]; then mv c.db-wal moved.db-wal; fi"), 0 );
  }
  snprintf(zUri, sizeof(zUri), "file:%s?vfs=%s", zName, zVfs);
  db = testOpen(zUri);
  CHECK_STR( testText(db, "SELECT count(*) FROM t"), "2" );
  CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
  CHECK_INT( sqlite3_close(db), SQLITE_OK );
  snprintf(zUri, sizeof(zUri), "file:%s?vfs=unix", zName);
  db = testOpen(zUri);
  CHECK_STR( testText(db, "SELECT count(*) FROM t"), "2" );
  CHECK_INT( sqlite3_close(db), SQLITE_OK );
}

/* SQLite's VFS, which counts how often anybody sleeps. */
static sqlite3_vfs *pUnix;
static int nSleep;
static int countedSleep(sqlite3_vfs *pVfs, int nMicro){
  (void)pVfs;
  nSleep++;
  return pUnix->xSleep(pUnix, nMicro);
}
static void countSleeps(void){
  static sqlite3_vfs vfs;
  pUnix = sqlite3_vfs_find(0);
  vfs = *pUnix;
  vfs.zName = "unix-counted";
  vfs.xSleep = countedSleep;
  CHECK_INT( sqlite3_vfs_register(&vfs, 1), SQLITE_OK );
}

/* Who wants the database for itself, within a transaction, and does not get it goes
** on reading.  It does not close, so nobody that closes meanwhile waits for it. */
static void refusedExclusive(int bBegin){
  sqlite3 *db, *db2, *pOther;
  testBegin("locking_mode=EXCLUSIVE is refused %s", bBegin ? "in a transaction"
            : "while a statement reads");
  CHECK_INT( testShell("rm -f c.db*"), 0 );
  db = testOpen("file:c.db?vfs=waldio");
  testExec(db, "PRAGMA journal_mode=wal; CREATE TABLE t(a); INSERT INTO t VALUES(1)");
  db2 = testOpen("file:c.db?vfs=waldio");
  pOther = testOpen("file:c.db?vfs=waldio");
  CHECK_STR( testText(db2, "SELECT count(*) FROM t"), "1" );
  CHECK_STR( testText(pOther, "SELECT count(*) FROM t"), "1" );
  testExec(db, "PRAGMA locking_mode=EXCLUSIVE");
  nSleep = 0;
  if( bBegin ){
    testExec(db, "BEGIN; SELECT * FROM t");
    CHECK_INT( testTry(db, "INSERT INTO t VALUES(2)"), SQLITE_BUSY );
    CHECK_INT( testTry(db, "INSERT INTO t VALUES(2)"), SQLITE_BUSY );
    CHECK_INT( sqlite3_close(pOther), SQLITE_OK );
    testExec(db, "COMMIT");
  }else{
    sqlite3_stmt *pStmt;
    CHECK_INT( sqlite3_prepare_v2(db, "SELECT * FROM t", -1, &pStmt, 0), SQLITE_OK );
    CHECK_INT( sqlite3_step(pStmt), SQLITE_ROW );
    CHECK_INT( testTry(db, "INSERT INTO t VALUES(2)"), SQLITE_BUSY );
    CHECK_INT( sqlite3_close(pOther), SQLITE_OK );
    CHECK_INT( sqlite3_finalize(pStmt), SQLITE_OK );
  }
  CHECK_INT( nSleep, 0 );
  CHECK_INT( sqlite3_close(db2), SQLITE_OK );
  testExec(db, "INSERT INTO t VALUES(3)");      /* Now it gets it */
  CHECK_INT( sqlite3_close(db), SQLITE_OK );
  db = testOpen("file:c.db?vfs=unix");
  CHECK_STR( testText(db, "SELECT count(*) FROM t"), "2" );
  CHECK_INT( sqlite3_close(db), SQLITE_OK );
}

int main(void){
  int i, n = 0;
  testEnter();
  countSleeps();
  CHECK_INT( waldio_register(0), SQLITE_OK );
  refusedExclusive(0);
  refusedExclusive(1);
  for(i=0; i<128; i++){
    const Way way = { i&1, i>>1&1, i>>2&1, i>>6&1, i>>3&1, i>>4&1, i>>5&1 };
    if( (way.bExclusive || way.bLater) && (way.bOther || way.bExclusive==way.bLater) ){
      continue;
    }
    /* SQLite itself keeps all of it, so what is asked here can be had. */
    closes(&way, "unix");
    closes(&way, "waldio");
    n++;
  }
  testBegin("ways to close");
  CHECK_INT( n, 64 );
  testLeave("close");
  return 0;
}
