/*
** Every allocation fails once: waldio and SQLite report SQLITE_NOMEM or go on,
** lose nothing that was acknowledged, and leak nothing.
*/
#include "test.h"

static sqlite3_mem_methods realMem;
static long nLeft = -1;           /* Allocations until one fails; -1: never */
static long nFailed;

static int failNow(void){
  if( nLeft<0 || nLeft-- > 0 ) return 0;
  nFailed++;
  return 1;
}
static void *memMalloc(int n){
  return failNow() ? 0 : realMem.xMalloc(n);
}
static void *memRealloc(void *p, int n){
  return failNow() ? 0 : realMem.xRealloc(p, n);
}

static int nAcked;

static void scenario(void){
  sqlite3 *db = 0;
  int i;
  if( sqlite3_open_v2("file:n.db?vfs=waldio", &db, SQLITE_OPEN_READWRITE
                      |SQLITE_OPEN_URI, 0)!=SQLITE_OK ){
    sqlite3_close(db);
    return;
  }
  for(i=1; i<=4; i++){
    int rc = testTry(db, "INSERT INTO t VALUES(%d,hex(zeroblob(700)))", i);
    if( rc==SQLITE_OK ) nAcked = i;
    if( i==2 ) testTry(db, "PRAGMA wal_checkpoint(RESTART)");
  }
  testTry(db, "PRAGMA waldio_layout; SELECT * FROM waldio_stat");
  testTry(db, "PRAGMA journal_mode=waldio");
  CHECK_INT( sqlite3_close(db), SQLITE_OK );
}

int main(void){
  sqlite3_mem_methods mem;
  sqlite3 *db;
  sqlite3_int64 nUsed;
  long n;
  testEnter();
  CHECK_INT( sqlite3_config(SQLITE_CONFIG_GETMALLOC, &realMem), SQLITE_OK );
  mem = realMem;
  mem.xMalloc = memMalloc;
  mem.xRealloc = memRealloc;
  CHECK_INT( sqlite3_config(SQLITE_CONFIG_MALLOC, &mem), SQLITE_OK );
  CHECK_INT( sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0), SQLITE_OK );
  CHECK_INT( waldio_register(0), SQLITE_OK );
  db = testOpen("file:n.db?vfs=waldio");
  testExec(db, "PRAGMA journal_mode=wal; CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
  sqlite3_close(db);
  nUsed = sqlite3_memory_used();
  nFailed = 1;
  for(n=0; nFailed; n += 1 + n/200){
    testBegin("allocation %ld fails", n);
    nAcked = 0;
    nFailed = 0;
    nLeft = n;
    scenario();
    nLeft = -1;
    CHECK_INT( sqlite3_memory_used(), nUsed );
    db = testOpen("file:n.db?vfs=waldio");
    CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
    CHECK( atoi(testText(db, "SELECT ifnull(max(a),0) FROM t"))>=nAcked );
    testExec(db, "DELETE FROM t");
    CHECK_INT( sqlite3_close(db), SQLITE_OK );
    CHECK_INT( sqlite3_memory_used(), nUsed );
  }
  CHECK_INT( nAcked, 4 );
  CHECK( n>100 );
  testLeave("nomem");
  return 0;
}
