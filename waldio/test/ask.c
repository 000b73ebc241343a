/*
** What is asked for by name: PRAGMA journal_mode=waldio, which acts when it runs and
** not before, on the databases that SQLite would take; and the parameters of a URI,
** none of which is ignored without a word.
*/
#include "test.h"

static char zLogged[1000];
static void logged(void *pUnused, int rc, const char *zMsg){
  (void)pUnused;
  if( rc==SQLITE_CANTOPEN ) snprintf(zLogged, sizeof(zLogged), "%s", zMsg);
}

static sqlite3 *create(void){
  sqlite3 *db;
  CHECK_INT( testShell("rm -f a.db* b.db* c.db*"), 0 );
  db = testOpen("file:a.db?vfs=waldio");
  testExec(db, "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
  return db;
}
/* Byte 19 of a database in another mode, of waldio's, and of one that others read. */
#define MODE_OTHER  1
#define MODE_STOCK  2
static int isWaldio(const char *zName){
  int c = testByte19(zName);
  return c==0x56 || c==0x57;
}

/* Prepared, explained, stepped once or twice, run again. */
static void whenItRuns(void){
  static const char *const azExplain[] = { "EXPLAIN ", "EXPLAIN QUERY PLAN " };
  sqlite3 *db = create();
  sqlite3_stmt *pStmt;
  int i;
  for(i=0; i<2; i++){
    testBegin("%s", azExplain[i]);
    testExec(db, "%sPRAGMA journal_mode=waldio", azExplain[i]);
    testExec(db, "SELECT * FROM t; INSERT INTO t VALUES(2)");
    CHECK_INT( testByte19("a.db"), MODE_OTHER );
  }
  testBegin("prepared and never run");
  CHECK_INT( sqlite3_prepare_v2(db, "PRAGMA journal_mode=waldio", -1, &pStmt, 0),
             SQLITE_OK );
  testExec(db, "SELECT * FROM t; INSERT INTO t VALUES(3)");
  CHECK_INT( testByte19("a.db"), MODE_OTHER );
  CHECK_STR( testText(db, "PRAGMA journal_mode"), "delete" );
  CHECK_INT( sqlite3_finalize(pStmt), SQLITE_OK );
  testExec(db, "SELECT * FROM t; INSERT INTO t VALUES(4)");
  CHECK_INT( testByte19("a.db"), MODE_OTHER );
  testBegin("run, and run again");
  CHECK_INT( sqlite3_prepare_v2(db, " /* . */ PRAGMA journal_mode = WALDIO;", -1,
                                &pStmt, 0), SQLITE_OK );
  for(i=0; i<3; i++){
    CHECK_INT( testByte19("a.db"), MODE_OTHER );
    CHECK_INT( sqlite3_step(pStmt), SQLITE_ROW );
    CHECK_STR( (const char*)sqlite3_column_text(pStmt, 0), "waldio" );
    CHECK( isWaldio("a.db") );
    CHECK_INT( sqlite3_step(pStmt), SQLITE_DONE );
    CHECK_INT( sqlite3_reset(pStmt), SQLITE_OK );
    CHECK_STR( testText(db, "PRAGMA journal_mode"), "waldio" );
    CHECK_STR( testText(db, "PRAGMA journal_mode=waldio"), "waldio" );
    testExec(db, "EXPLAIN PRAGMA journal_mode=wal");
    CHECK_STR( testText(db, "PRAGMA journal_mode"), "waldio" );
    CHECK_STR( testText(db, "PRAGMA journal_mode=delete"), "delete" );
  }
  CHECK_INT( sqlite3_finalize(pStmt), SQLITE_OK );
  testBegin("within a transaction");
  testExec(db, "BEGIN; SELECT * FROM t");
  CHECK_INT( testTry(db, "PRAGMA journal_mode=waldio"), SQLITE_ERROR );
  testExec(db, "COMMIT");
  CHECK_INT( testByte19("a.db"), MODE_OTHER );
  CHECK_STR( testText(db, "PRAGMA journal_mode=waldio"), "waldio" );
  testExec(db, "BEGIN; SELECT * FROM t");
  CHECK_STR( testText(db, "PRAGMA journal_mode=waldio"), "waldio" );
  testExec(db, "COMMIT");
  testBegin("while it is locked for good");
  testExec(db, "PRAGMA journal_mode=delete; PRAGMA locking_mode=EXCLUSIVE;"
               "INSERT INTO t VALUES(5); PRAGMA journal_mode=waldio;"
               "INSERT INTO t VALUES(6)");
  CHECK( isWaldio("a.db") );
  CHECK_STR( testText(db, "PRAGMA journal_mode=waldio"), "waldio" );
  CHECK_STR( testText(db, "SELECT count(*) FROM t"), "7" );
  sqlite3_close(db);
}

/* Without a schema it is for all that are attached, with one for that. */
static void whose(void){
  static const struct { const char *zSql; int bMain, bB, bC; } a[] = {
    { "PRAGMA journal_mode=waldio",              1, 1, 1 },
    { "pragma\njournal_mode(waldio)",            1, 1, 1 },
    { "-- b.\nPRAGMA\"journal_mode\"='waldio'",  1, 1, 1 },
    { "PRAGMA main.journal_mode=waldio",         1, 0, 0 },
    { "PRAGMA b.journal_mode=waldio",            0, 1, 0 },
    { "PRAGMA \"c \"\"c\" . journal_mode=waldio", 0, 0, 1 },
    { "PRAGMA/* x */[b]/**/.journal_mode=waldio", 0, 1, 0 }
  };
  unsigned i;
  for(i=0; i<sizeof(a)/sizeof(a[0]); i++){
    sqlite3 *db = create();
    testBegin("%s", a[i].zSql);
    testExec(db, "ATTACH 'file:b.db?vfs=waldio' AS b;"
                 "ATTACH 'file:c.db?vfs=waldio' AS 'c \"c'; ATTACH ':memory:' AS m;"
                 "CREATE TABLE b.u(a); CREATE TABLE \"c \"\"c\".v(a); CREATE TABLE m.w(a);"
                 "CREATE TEMP TABLE x(a)");
    CHECK_STR( testText(db, "%s", a[i].zSql), "waldio" );
    CHECK_INT( isWaldio("a.db"), a[i].bMain );
    CHECK_INT( isWaldio("b.db"), a[i].bB );
    CHECK_INT( isWaldio("c.db"), a[i].bC );
    testExec(db, "INSERT INTO t VALUES(1); INSERT INTO u VALUES(1); INSERT INTO v VALUES(1)");
    sqlite3_close(db);
  }
}

/* A statement that reads, or that others hold up, is not taken for it. */
static void amongOthers(void){
  sqlite3 *db = create(), *db2;
  sqlite3_stmt *pPragma, *pRead;
  testBegin("another connection locks the database");
  db2 = testOpen("file:a.db?vfs=waldio");
  sqlite3_busy_timeout(db, 0);
  testExec(db2, "BEGIN EXCLUSIVE");
  CHECK_INT( strncmp(testText(db, "PRAGMA journal_mode=waldio"), "error: ", 7), 0 );
  testExec(db2, "COMMIT");
  CHECK_INT( testByte19("a.db"), MODE_OTHER );
  testBegin("prepared, and another statement reads");
  CHECK_INT( sqlite3_prepare_v2(db, "PRAGMA journal_mode=waldio", -1, &pPragma, 0),
             SQLITE_OK );
  CHECK_INT( sqlite3_prepare_v2(db, "SELECT 'pragma journal_mode', a FROM t", -1,
                                &pRead, 0), SQLITE_OK );
  CHECK_INT( sqlite3_step(pRead), SQLITE_ROW );
  CHECK_INT( sqlite3_reset(pRead), SQLITE_OK );
  CHECK_INT( testByte19("a.db"), MODE_OTHER );
  CHECK_INT( sqlite3_step(pPragma), SQLITE_ROW );
  CHECK_STR( (const char*)sqlite3_column_text(pPragma, 0), "waldio" );
  CHECK( isWaldio("a.db") );
  CHECK_INT( sqlite3_finalize(pPragma), SQLITE_OK );
  CHECK_INT( sqlite3_finalize(pRead), SQLITE_OK );
  CHECK_STR( testText(db2, "PRAGMA journal_mode=waldio"), "waldio" );
  sqlite3_close(db2);
  sqlite3_close(db);
}

/* Parameters: the log's layout after a commit, or the sentence that refuses. */
static void parameters(void){
  static const struct { const char *zUri, *zLayout, *zRefused; } a[] = {
    { "waldio=off", "stock", 0 },    { "waldio=OFF", "stock", 0 },
    { "waldio=0", "stock", 0 },      { "waldio=no", "stock", 0 },
    { "waldio=False", "stock", 0 },  { "waldio=on", "W", 0 },
    { "waldio=1", "W", 0 },          { "waldio=YES", "W", 0 },
    { "waldio=force", "W", 0 },      { "waldio=Force", "W", 0 },
    { "waldio=of", 0, "waldio is on, off or force, not 'of'" },
    { "waldio=", 0, "waldio is on, off or force, not ''" },
    { "waldio", 0, "waldio is on, off or force, not ''" },
    { "waldio_lost_log=perhaps", 0, "waldio_lost_log is on or off, not 'perhaps'" },
    { "waldio_reserve=0", "T", 0 },  { "waldio_reserve=24", "W", 0 },
    { "waldio_reserve=300", 0, "waldio_reserve is 0 to 255, not '300'" },
    { "waldio_reserve=few", 0, "waldio_reserve is 0 to 255, not 'few'" },
    { "waldio_padding=4096", "P", 0 },
    { "waldio_padding=5", 0, "waldio_padding is 0, 512, 4096 or 8192, not '5'" },
    { "waldio_sync=sometimes", 0,
      "waldio_sync is full, persistent, normal or group, not 'sometimes'" },
    { "waldio_prealloc=many", 0, "waldio_prealloc is 0 to 4194304, not 'many'" },
    { "waldio_recycle=2", 0, "waldio_recycle is 0 or 1, not '2'" },
    { "waldio_layout=W", 0, "there is no parameter waldio_layout" },
    { "Waldio=off", 0, "there is no parameter Waldio" },
    { "waldiosync=full", 0, "there is no parameter waldiosync" },
    { "waldio=off&waldio=on", "stock", 0 },
    { "other=1&waldio=off", "stock", 0 }
  };
  static const struct { const char *zUri, *zPragma, *zValue; } aSet[] = {
    { "waldio_sync=group", "waldio_sync", "group" },
    { "waldio_sync=NORMAL", "waldio_sync", "normal" },
    { "waldio_sync=persistent", "waldio_sync", "persistent" },
    { "waldio_group_frames=7", "waldio_group_frames", "7" },
    { "waldio_group_ms=3", "waldio_group_ms", "3" },
    { "waldio_durable_reads=1", "waldio_durable_reads", "1" },
    { "waldio_prealloc=0", "waldio_prealloc", "0" },
    { "waldio_padding=512", "waldio_padding", "512" },
    { "waldio_recycle=0", "waldio_recycle", "0" },
    { "waldio_sync=group&waldio_group_ms=2", "waldio_group_ms", "2" }
  };
  unsigned i;
  char zUri[200];
  for(i=0; i<sizeof(a)/sizeof(a[0]); i++){
    sqlite3 *db = 0;
    int rc;
    testBegin("?%s", a[i].zUri);
    CHECK_INT( testShell("rm -f a.db*"), 0 );
    snprintf(zUri, sizeof(zUri), "file:a.db?vfs=waldio&%s", a[i].zUri);
    zLogged[0] = 0;
    rc = sqlite3_open_v2(zUri, &db, SQLITE_OPEN_READWRITE|SQLITE_OPEN_CREATE
                         |SQLITE_OPEN_URI, 0);
    if( rc==SQLITE_OK ) rc = testTry(db, "PRAGMA journal_mode=wal; CREATE TABLE t(a)");
    CHECK_INT( rc, a[i].zRefused ? SQLITE_CANTOPEN : SQLITE_OK );
    if( a[i].zRefused ) CHECK( strstr(zLogged, a[i].zRefused)!=0 );
    else CHECK_STR( testText(db, "PRAGMA waldio_layout"), a[i].zLayout );
    sqlite3_close(db);
  }
  for(i=0; i<sizeof(aSet)/sizeof(aSet[0]); i++){
    sqlite3 *db;
    testBegin("?%s", aSet[i].zUri);
    CHECK_INT( testShell("rm -f a.db*"), 0 );
    snprintf(zUri, sizeof(zUri), "file:a.db?vfs=waldio&%s", aSet[i].zUri);
    db = testOpen(zUri);
    CHECK_STR( testText(db, "PRAGMA %s", aSet[i].zPragma), aSet[i].zValue );
    sqlite3_close(db);
  }
}

int main(void){
  CHECK_INT( sqlite3_config(SQLITE_CONFIG_LOG, logged, (void*)0), SQLITE_OK );
  CHECK_INT( waldio_register(0), SQLITE_OK );
  testEnter();
  whenItRuns();
  whose();
  amongOthers();
  parameters();
  testLeave("ask");
  return 0;
}
