/*
** Every allocation fails once, in all modes and layouts: waldio and SQLite report
** SQLITE_NOMEM or go on, lose nothing that was acknowledged, and leak nothing.
** The database is on a disk in memory, which has memory of its own.
*/
#include "disk.h"

static const char *const azMode[] = {
  "synchronous=FULL", "waldio_sync=persistent", "synchronous=NORMAL",
  "waldio_sync='group'", "waldio_sync=normal"
};
static int iMode, cLayout;

static sqlite3_mem_methods realMem;
static long nLeft = -1;           /* Allocations until one fails; -1: never */
static long nFailed, nRun;

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

static char zUri[100];

static void scenario(void){
  sqlite3 *db = 0;
  int i;
  if( sqlite3_open_v2(zUri, &db, SQLITE_OPEN_READWRITE
                      |SQLITE_OPEN_URI, 0)!=SQLITE_OK ){
    sqlite3_close(db);
    return;
  }
  testTry(db, "PRAGMA cache_size=5; PRAGMA %s", azMode[iMode]);
  for(i=1; i<=4; i++){
    int rc = testTry(db, "INSERT INTO t VALUES(%d,hex(zeroblob(700)))", i);
    if( rc==SQLITE_OK ) nAcked = i;
    if( i==2 ) testTry(db, "PRAGMA wal_checkpoint(RESTART)");
    if( i==3 ) testTry(db, "BEGIN; UPDATE t SET b=hex(zeroblob(9000)); ROLLBACK");
    if( !sqlite3_get_autocommit(db) ) testTry(db, "ROLLBACK");
  }
  testTry(db, "PRAGMA waldio_layout; SELECT * FROM waldio_stat");
  testTry(db, "PRAGMA journal_mode=waldio");
  CHECK_INT( sqlite3_close(db), SQLITE_OK );
}

/* Fail each allocation of the scenario. */
static void each(void){
  sqlite3 *db;
  sqlite3_int64 nUsed;
  long n;
  diskPut("/n.db", 0, 0);
  diskPut("/n.db-wal", 0, 0);
  snprintf(zUri, sizeof(zUri), "file:/n.db?vfs=waldio%s", testLayout(cLayout));
  db = testOpen(zUri);
  testExec(db, "PRAGMA journal_mode=wal; CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
  sqlite3_close(db);
  nUsed = sqlite3_memory_used();
  nFailed = 1;
  for(n=0; nFailed; n++){
    testBegin("allocation %ld fails, %s, layout %c", n, azMode[iMode], cLayout);
    nAcked = 0;
    nFailed = 0;
    nLeft = n;
    scenario();
    nLeft = -1;
    CHECK_INT( sqlite3_memory_used(), nUsed );
    db = testOpen(zUri);
    CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
    CHECK( atoi(testText(db, "SELECT ifnull(max(a),0) FROM t"))>=nAcked );
    testExec(db, "DELETE FROM t");
    CHECK_INT( sqlite3_close(db), SQLITE_OK );
    CHECK_INT( sqlite3_memory_used(), nUsed );
    nRun++;
  }
  CHECK_INT( nAcked, 4 );
  CHECK( n>100 );
}

int main(void){
  sqlite3_mem_methods mem;
  int i;
  testEnter();
  CHECK_INT( sqlite3_config(SQLITE_CONFIG_GETMALLOC, &realMem), SQLITE_OK );
  mem = realMem;
  mem.xMalloc = memMalloc;
  mem.xRealloc = memRealloc;
  CHECK_INT( sqlite3_config(SQLITE_CONFIG_MALLOC, &mem), SQLITE_OK );
  CHECK_INT( sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0), SQLITE_OK );
  diskRegister();
  disk.bSingle = 1;
  CHECK_INT( waldio_register(0), SQLITE_OK );
  for(i=0; i<15; i++){
    iMode = i%5;
    cLayout = "WTP"[i/5];
    each();
  }
  printf("%ld allocations failed\n", nRun);
  testLeave("nomem");
  return 0;
}
