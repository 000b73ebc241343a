/*
** Every way to load waldio: load_extension() with both entry points, an
** automatic extension, linked statically, as the default VFS.
*/
#define SQLITE_CORE 1             /* sqlite3ext.h for its structure alone */
#include <sqlite3ext.h>
#include "test.h"
#include <dlfcn.h>

int sqlite3_waldio_init(sqlite3*, char**, const sqlite3_api_routines*);

/* The name of the VFS stack below a connection, "" if none is told. */
static void vfsName(sqlite3 *db, char *zOut, int nOut){
  char *z = 0;
  sqlite3_file_control(db, "main", SQLITE_FCNTL_VFSNAME, &z);
  snprintf(zOut, (size_t)nOut, "%s", z ? z : "");
  sqlite3_free(z);
}

/* In a process of its own: waldio.so by load_extension(). */
static UNUSED void loadShared(const char *zEntry, int bDefault){
  sqlite3 *db = testOpen(":memory:");
  char zSo[600];
  char zVfs[100];
  char *zErr = 0;
  testBegin("load_extension, entry point %s", zEntry ? zEntry : "of the name");
  snprintf(zSo, sizeof(zSo), "%s/waldio", testHome);
  CHECK_INT( sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1,
                               (int*)0), SQLITE_OK );
  if( sqlite3_load_extension(db, zSo, zEntry, &zErr)!=SQLITE_OK ){
    testFail(__FILE__, __LINE__, "sqlite3_load_extension", zErr);
  }
  sqlite3_close(db);
  CHECK( sqlite3_vfs_find("waldio")!=0 );
  CHECK_INT( sqlite3_vfs_find(0)==sqlite3_vfs_find("waldio"), bDefault );
  db = testOpen("file:load.db?vfs=waldio");
  vfsName(db, zVfs, sizeof(zVfs));
  CHECK_STR( zVfs, "waldio/unix" );
  testExec(db, "CREATE TABLE IF NOT EXISTS t(a); INSERT INTO t VALUES(1)");
  sqlite3_close(db);
}

/* What SQLite gives to extensions. */
static sqlite3_api_routines apiOfSqlite;
static int keepApi(sqlite3 *db, char **pzErr, const sqlite3_api_routines *pApi){
  (void)db; (void)pzErr;
  apiOfSqlite = *pApi;
  return SQLITE_OK;
}
static int oldNumber(void){ return 3039004; }
static const char *oldName(void){ return "3.39.4"; }

/* waldio.so is refused by an SQLite that it cannot serve, and goes on with the
** one that it serves. */
static UNUSED void loadRefused(const char *zExpect, int bOld){
  sqlite3 *db;
  char zSo[600];
  char *zErr = 0;
  void *pSo;
  int (*xInit)(sqlite3*, char**, const sqlite3_api_routines*);
  if( !bOld ) loadShared(0, 0);
  testBegin("refused: %s", zExpect);
  CHECK_INT( sqlite3_auto_extension((void(*)(void))keepApi), SQLITE_OK );
  db = testOpen(":memory:");
  if( bOld ){
    apiOfSqlite.libversion_number = oldNumber;
    apiOfSqlite.libversion = oldName;
  }
  snprintf(zSo, sizeof(zSo), "%s/waldio.so", testHome);
  pSo = dlopen(zSo, RTLD_NOW);
  CHECK( pSo!=0 );
  *(void**)&xInit = dlsym(pSo, "sqlite3_waldio_init");
  CHECK( xInit!=0 );
  CHECK_INT( xInit(db, &zErr, &apiOfSqlite), SQLITE_ERROR );
  CHECK_STR( zErr, zExpect );
  sqlite3_free(zErr);
  CHECK_INT( sqlite3_vfs_find("waldio")!=0, !bOld );
  sqlite3_close(db);
  if( !bOld ) loadShared(0, 0);
}

/* Two builds of waldio in one process: the first to come is used. */
static UNUSED void loadBoth(const char *zUnused, int bUnused){
  sqlite3 *db;
  char zSo[600];
  (void)zUnused; (void)bUnused;
  testBegin("waldio.so where waldio is linked in");
  CHECK_INT( waldio_register(0), SQLITE_OK );
  db = testOpen("file:both.db?vfs=waldio");
  snprintf(zSo, sizeof(zSo), "%s/waldio", testHome);
  CHECK_INT( sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1,
                               (int*)0), SQLITE_OK );
  CHECK_INT( sqlite3_load_extension(db, zSo, 0, 0), SQLITE_OK );
  CHECK_INT( sqlite3_load_extension(db, zSo, "sqlite3_waldio_default_init", 0),
             SQLITE_OK );
  CHECK( sqlite3_vfs_find(0)==sqlite3_vfs_find("waldio") );
  CHECK_STR( testText(db, "PRAGMA journal_mode=waldio"), "waldio" );
  CHECK_STR( testText(db, "SELECT count(*) FROM waldio_stat"), "1" );
  sqlite3_close(db);
}

/* Any allocation fails while waldio.so is loaded: what is registered stays. */
static sqlite3_mem_methods memReal;
static int nMemLeft = -1, nMemFailed;
static void *memMalloc(int n){
  if( nMemLeft==0 ) nMemFailed++;
  if( nMemLeft>=0 && nMemLeft--==0 ) return 0;
  return memReal.xMalloc(n);
}
static UNUSED void loadNoMemory(const char *zUnused, int nLeft){
  sqlite3_mem_methods mem;
  sqlite3 *db;
  char zSo[600];
  (void)zUnused;
  testBegin("load_extension, allocation %d fails", nLeft);
  CHECK_INT( sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memReal), SQLITE_OK );
  mem = memReal;
  mem.xMalloc = memMalloc;
  CHECK_INT( sqlite3_config(SQLITE_CONFIG_MALLOC, &mem), SQLITE_OK );
  CHECK_INT( sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0), SQLITE_OK );
  db = testOpen(":memory:");
  snprintf(zSo, sizeof(zSo), "%s/waldio", testHome);
  CHECK_INT( sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1,
                               (int*)0), SQLITE_OK );
  nMemLeft = nLeft;
  (void)sqlite3_load_extension(db, zSo, "sqlite3_waldio_init", 0);
  nMemLeft = -1;
  if( nMemFailed==0 ) exit(9);    /* That was all of them */
  CHECK_INT( sqlite3_load_extension(db, zSo, "sqlite3_waldio_init", 0), SQLITE_OK );
  sqlite3_close(db);
  db = testOpen("file:load.db?vfs=waldio");
  CHECK_STR( testText(db, "SELECT count(*) FROM waldio_stat"), "1" );
  sqlite3_close(db);
  exit(0);
}
static UNUSED void noMemory(void){
  int i, st = 0;
  for(i=0; st==0; i++){
    pid_t pid = fork();
    CHECK( pid>=0 );
    if( pid==0 ) loadNoMemory(0, i);
    CHECK( waitpid(pid, &st, 0)==pid );
  }
  testBegin("load_extension without memory");
  CHECK( WIFEXITED(st) );
  CHECK_INT( WEXITSTATUS(st), 9 );
  CHECK( i>2 );
}

/* SQLite is shut down, and loads waldio.so again. */
static UNUSED void loadAgain(const char *zEntry, int bDefault){
  sqlite3 *db;
  loadShared(zEntry, bDefault);
  CHECK_INT( sqlite3_shutdown(), SQLITE_OK );
  loadShared(zEntry, bDefault);
  testBegin("loaded again after sqlite3_shutdown()");
  CHECK_INT( testShell("rm -f load.db*"), 0 );
  db = testOpen("file:load.db?vfs=waldio");
  CHECK_STR( testText(db, "PRAGMA journal_mode=waldio"), "waldio" );
  testExec(db, "CREATE TABLE t(a)");
  CHECK_STR( testText(db, "SELECT layout FROM waldio_stat"), "W" );
  sqlite3_close(db);
}

static void inChild(void (*x)(const char*,int), const char *z, int b){
  int st = 0;
  pid_t pid = fork();
  CHECK( pid>=0 );
  if( pid==0 ){
    x(z, b);
    exit(0);
  }
  CHECK( waitpid(pid, &st, 0)==pid );
  CHECK_INT( st, 0 );
}

/* A connection by a build of waldio: waldio.so, or another version of it. */
static UNUSED sqlite3 *openWith(const char *zBuild){
  sqlite3 *db = testOpen(":memory:");
  char zSo[600];
  snprintf(zSo, sizeof(zSo), "%s/%s", testHome, zBuild);
  CHECK_INT( sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1,
                               (int*)0), SQLITE_OK );
  CHECK_INT( sqlite3_load_extension(db, zSo, "sqlite3_waldio_init", 0), 0 );
  sqlite3_close(db);
  return testOpen("file:two.db?vfs=waldio");
}

/* Add a row to nRow, and close the database or die; nRow<0: it is refused. */
static UNUSED void addRow(const char *zBuild, int nRow){
  sqlite3 *db = openWith(zBuild);
  sqlite3 *db2 = testOpen(":memory:");
  testBegin("%s where %d rows are", zBuild, nRow);
  if( nRow<0 ){
    CHECK_INT( testTry(db, "SELECT * FROM t"), SQLITE_CANTOPEN );
    CHECK_INT( testTry(db, "INSERT INTO t VALUES(1)"), SQLITE_CANTOPEN );
    CHECK_STR( testText(db2, "SELECT reason FROM waldio_stat"), "the log has the "
               "format of another version of waldio; open and close it with that "
               "one" );
  }else{
    CHECK_INT( atoi(testText(db, "SELECT count(*) FROM t")), nRow );
    testExec(db, "INSERT INTO t VALUES(1)");
    CHECK( strcmp(testText(db, "PRAGMA waldio_layout"), "stock")!=0 );
    if( nRow==2 ) _exit(0);
  }
  sqlite3_close(db2);
  sqlite3_close(db);
}

/* Two processes with builds that differ in the format: the database is the
** first one's until it is closed, also after a crash. */
static UNUSED void twoFormats(void){
  static const char *const zNext = "build/waldio-next";
  int aPipe[4], st = 0;
  char c = 0;
  pid_t pid;
  testBegin("two formats at once");
  CHECK( pipe(aPipe)==0 && pipe(aPipe+2)==0 );
  pid = fork();
  CHECK( pid>=0 );
  /* Each has its own ends alone, or would wait for ever when the other fails. */
  close(aPipe[pid ? 1 : 0]);
  close(aPipe[pid ? 2 : 3]);
  if( pid==0 ){
    sqlite3 *db = openWith("waldio");
    CHECK_STR( testText(db, "PRAGMA journal_mode=waldio"), "waldio" );
    testExec(db, "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
    CHECK( write(aPipe[1], &c, 1)==1 && read(aPipe[2], &c, 1)==1 );
    testExec(db, "INSERT INTO t VALUES(1)");
    CHECK_STR( testText(db, "SELECT count(*) FROM t"), "2" );
    sqlite3_close(db);
    _exit(0);
  }
  CHECK( read(aPipe[0], &c, 1)==1 );
  inChild(addRow, zNext, -1);
  CHECK( write(aPipe[3], &c, 1)==1 );
  close(aPipe[0]);
  close(aPipe[3]);
  CHECK( waitpid(pid, &st, 0)==pid );
  CHECK_INT( st, 0 );
  inChild(addRow, zNext, 2);      /* And dies */
  CHECK_INT( testShell("cat two.db two.db-wal | cksum > sum"), 0 );
  inChild(addRow, "waldio", -1);
  CHECK_INT( testShell("cat two.db two.db-wal | cksum | cmp - sum"), 0 );
  inChild(addRow, zNext, 3);
  inChild(addRow, "waldio", 4);
}

static void loadStatic(const char *zUnused, int bUnused){
  char zVfs[100];
  sqlite3 *db;
  (void)zUnused; (void)bUnused;
  testBegin("automatic extension");
  CHECK_INT( sqlite3_auto_extension((void(*)(void))sqlite3_waldio_init), 0 );
  db = testOpen(":memory:");
  sqlite3_close(db);
  CHECK( sqlite3_vfs_find("waldio")!=0 );
  CHECK( sqlite3_vfs_find(0)!=sqlite3_vfs_find("waldio") );
  testBegin("linked statically, default VFS");
  CHECK_INT( waldio_extra_init(0), SQLITE_OK );
  db = testOpen("file:plain.db");
  vfsName(db, zVfs, sizeof(zVfs));
  CHECK_STR( zVfs, "waldio/unix" );
  testExec(db, "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
  testExec(db, "ATTACH 'file:other.db' AS o; CREATE TABLE o.t(a)");
  CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
  sqlite3_close(db);
  testBegin("registered again, no longer the default");
  CHECK_INT( waldio_register(0), SQLITE_OK );
  CHECK( sqlite3_vfs_find("waldio")!=0 );
}

int main(void){
  testEnter();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  inChild(loadShared, 0, 0);
  inChild(loadShared, "sqlite3_waldio_default_init", 1);
  noMemory();
  inChild(loadAgain, 0, 0);
  inChild(loadBoth, 0, 0);
  inChild(loadRefused, "waldio needs SQLite 3.40 or newer, and this is 3.39.4", 1);
  inChild(loadRefused, "waldio serves another SQLite of this process, and each "
          "needs a copy of its file, by another name", 0);
  twoFormats();
#endif
  inChild(loadStatic, 0, 0);
  testLeave("load");
  return 0;
}
