/*
** A log that ends at any byte: the database has the first so many commits, whole,
** the more the longer the log is, and takes new ones; without its header it is refused
** unless asked for.  On a disk in memory, at each 13th byte and all bytes of the
** header; WALDIO_CALLS=all: at every byte.
*/
#include "disk.h"

#define NCOMMIT 12

static void cut(int cLayout, int szPage, int iStep){
  char zUri[100], zLost[130];
  sqlite3 *db;
  unsigned char *aDb, *aWal;
  sqlite3_int64 nDb, nWal, n;
  int i, nBefore = 0;
  Inode *p;
  snprintf(zUri, sizeof(zUri), "file:/c.db?vfs=waldio%s", testLayout(cLayout));
  snprintf(zLost, sizeof(zLost), "%s&waldio_lost_log=1", zUri);
  diskPut("/c.db", 0, 0);
  diskPut("/c.db-wal", 0, 0);
  db = testOpen(zUri);
  testExec(db, "PRAGMA page_size=%d; PRAGMA wal_autocheckpoint=0;"
    "PRAGMA waldio_prealloc=4096; PRAGMA journal_mode=wal;"
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b); PRAGMA wal_checkpoint(RESTART)", szPage);
  for(i=1; i<=NCOMMIT; i++){
    testExec(db, "INSERT INTO t VALUES(%d, hex(zeroblob(%d)))", i, szPage/9);
  }
  p = diskGet("/c.db");
  nDb = p->n;
  aDb = malloc((size_t)nDb);
  memcpy(aDb, p->a, (size_t)nDb);
  p = diskGet("/c.db-wal");
  nWal = p->n;
  aWal = malloc((size_t)nWal);
  memcpy(aWal, p->a, (size_t)nWal);
  sqlite3_close(db);
  for(n=0; n<=nWal; n += n<64 || n==nWal ? 1 : n+iStep<nWal ? iStep : nWal-n){
    int nGot;
    testBegin("layout %c, page size %d, log cut at %lld", cLayout, szPage, n);
    diskPut("/c.db", aDb, nDb);
    diskPut("/c.db-wal", aWal, n);
    db = testOpen(zUri);
    if( n<64 ){
      CHECK_INT( testTry(db, "SELECT * FROM t"), SQLITE_CANTOPEN );
      CHECK_INT( sqlite3_close(db), SQLITE_OK );
      CHECK_INT( diskGet("/c.db-wal")->n, n );
      db = testOpen(zLost);
    }
    nGot = atoi(testText(db, "SELECT count(*) FROM t"));
    CHECK( nGot>=nBefore && nGot<=NCOMMIT );
    CHECK_INT( atoi(testText(db, "SELECT ifnull(max(a),0) FROM t")), nGot );
    CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
    testExec(db, "INSERT INTO t VALUES(1000,1)");
    CHECK_INT( sqlite3_close(db), SQLITE_OK );
    db = testOpen("file:/c.db?vfs=disk");
    CHECK_INT( atoi(testText(db, "SELECT count(*) FROM t")), nGot+1 );
    CHECK_INT( sqlite3_close(db), SQLITE_OK );
    nBefore = nGot;
  }
  CHECK_INT( nBefore, NCOMMIT );
  free(aDb);
  free(aWal);
}

int main(void){
  int iStep = getenv("WALDIO_CALLS") ? 1 : 13;
  int i;
  testEnter();
  diskRegister();
  CHECK_INT( waldio_register(0), SQLITE_OK );
  for(i=0; i<3; i++){
    cut("WTP"[i], 512, iStep);
    cut("WTP"[i], 4096, 4*iStep);
  }
  testLeave("cut");
  return 0;
}
