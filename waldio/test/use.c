/*
** Options, waldio_stat, and the conditions a database can be in: other
** filesystems, exclusive locking, read-only, moved, VACUUMed, limited, without
** its wal-index.
*/
#include "test.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static sqlite3 *create(const char *zUri){
  sqlite3 *db;
  CHECK_INT( testShell("rm -f u.db* v.db*"), 0 );
  db = testOpen(zUri);
  testExec(db, "PRAGMA journal_mode=wal; CREATE TABLE t(a INTEGER PRIMARY KEY, b);"
               "INSERT INTO t VALUES(1,1)");
  return db;
}
/* Stock SQLite reads n rows. */
static void plain(const char *zName, int n){
  char zUri[300];
  sqlite3 *db;
  snprintf(zUri, sizeof(zUri), "file:%s?vfs=unix", zName);
  db = testOpen(zUri);
  CHECK_INT( atoi(testText(db, "SELECT count(*) FROM t")), n );
  CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
  sqlite3_close(db);
}

static void options(void){
  static const struct { const char *zSet, *zGet; } a[] = {
    { "waldio_sync=normal", "normal" }, { "waldio_sync", "normal" },
    { "waldio_sync='group'", "group" },   { "waldio_sync=maybe", 0 },
    { "waldio_sync=persistent", "persistent" },
    { "waldio_sync=full", "full" },     { "waldio_sync", "full" },
    { "waldio_group_frames", "64" },    { "waldio_group_frames=4", "4" },
    { "waldio_group_frames=0", 0 },     { "waldio_group_ms", "10" },
    { "waldio_group_ms=60001", 0 },     { "waldio_group_ms=2", "2" },
    { "waldio_durable_reads", "0" },    { "waldio_durable_reads=2", 0 },
    { "waldio_durable_reads=1", "1" },
    { "waldio_padding", "0" },          { "waldio_padding=8192", "8192" },
    { "waldio_padding=1000", 0 },       { "waldio_padding", "8192" },
    { "waldio_prealloc", "65536" },     { "waldio_prealloc=5000", "5000" },
    { "waldio_prealloc=-1", 0 },        { "waldio_prealloc=0", "0" },
    { "waldio_prealloc=much", 0 },      { "waldio_prealloc=4294967296", 0 },
    { "waldio_durable_reads=on", 0 },   { "waldio_durable_reads", "1" },
    { "waldio_reserve=none", 0 },
    { "waldio_recycle", "1" },          { "waldio_recycle=0", "0" },
    { "waldio_reserve", "24" },         { "waldio_reserve=300", 0 },
    { "waldio_layout", "W" },           { "journal_mode", "wal" },
    { "waldio_unknown", "" }
  };
  sqlite3 *db = create("file:u.db?vfs=waldio");
  unsigned i;
  for(i=0; i<sizeof(a)/sizeof(a[0]); i++){
    const char *z;
    testBegin("PRAGMA %s", a[i].zSet);
    z = testText(db, "PRAGMA %s", a[i].zSet);
    if( a[i].zGet ) CHECK_STR( z, a[i].zGet );
    else CHECK( strncmp(z, "error: waldio_", 14)==0 );
  }
  testBegin("padding from the next restart on");
  testExec(db, "PRAGMA wal_checkpoint(RESTART); INSERT INTO t VALUES(2,2)");
  CHECK_STR( testText(db, "PRAGMA waldio_layout"), "P" );
  CHECK_STR( testText(db, "SELECT slot FROM waldio_stat"), "8192" );
  testBegin("counters");
  CHECK_STR( testText(db, "SELECT commits FROM waldio_stat"), "3" );
  CHECK_STR( testText(db, "SELECT bytes>=frames*4096 FROM waldio_stat"), "1" );
  CHECK_STR( testText(db, "SELECT count(*) FROM waldio_stat AS x, waldio_stat"
                          " WHERE x.reason IS NULL AND x.handles=1"), "1" );
  testBegin("no recycling");
  sqlite3_close(db);
  CHECK( testSize("u.db-wal")<0 );
  plain("u.db", 2);
}

/* Paddings: how many bytes a commit of one page writes. */
static void paddings(void){
  static const struct { int szPage, szPad, szSlot; } a[] = {
    { 512, 512, 1024 },    { 512, 4096, 4096 },   { 512, 8192, 8192 },
    { 4096, 512, 4608 },   { 4096, 4096, 8192 },  { 4096, 8192, 8192 },
    { 65536, 512, 66048 }, { 65536, 4096, 69632 }, { 65536, 8192, 73728 },
    { 512, 0, 512 },       { 4096, 0, 4096 },     { 65536, 0, 65536 }
  };
  const int n = (int)(sizeof(a)/sizeof(a[0]));
  int i;
  for(i=0; i<2*n; i++){
    int szPage = a[i/2].szPage, szPad = a[i/2].szPad, szSlot = a[i/2].szSlot;
    int nByte;
    char zUri[100];
    sqlite3 *db;
    testBegin("page size %d, padding %d, %s", szPage, szPad,
              i%2 ? "reserved bytes" : "no reserved bytes");
    CHECK_INT( testShell("rm -f u.db*"), 0 );
    snprintf(zUri, sizeof(zUri), "file:u.db?vfs=waldio&waldio_padding=%d%s",
             szPad, testLayout(i%2 ? 'W' : 'T'));
    db = testOpen(zUri);
    CHECK_INT( atoi(testText(db, "PRAGMA waldio_padding")), szPad );
    testExec(db, "PRAGMA page_size=%d; PRAGMA waldio_prealloc=0;"
      "PRAGMA journal_mode=wal; CREATE TABLE t(a); INSERT INTO t VALUES(0)",
      szPage);
    CHECK_STR( testText(db, "PRAGMA waldio_layout"),
               szPad ? "P" : i%2 ? "W" : "T" );
    CHECK_INT( atoi(testText(db, "SELECT slot FROM waldio_stat")), szSlot );
    nByte = atoi(testText(db, "SELECT bytes FROM waldio_stat"));
    testExec(db, "UPDATE t SET a=1; UPDATE t SET a=2; UPDATE t SET a=3");
    nByte = atoi(testText(db, "SELECT bytes FROM waldio_stat")) - nByte;
    CHECK_INT( nByte, 3*szSlot );
    sqlite3_close(db);
    plain("u.db", 1);
  }
}

/* A connection with psow=0 comes to a database that is waldio's: SQLite fills sectors
** with frames, and divides writes between them. */
static void noPowersafe(void){
  sqlite3 *db = create("file:u.db?vfs=waldio");
  sqlite3 *db2 = testOpen("file:u.db?vfs=waldio&psow=0");
  int i;
  testBegin("psow=0 beside a connection without");
  for(i=2; i<12; i++) testExec(db2, "INSERT INTO t VALUES(%d,%d)", i, i);
  CHECK_STR( testText(db, "SELECT count(*) FROM t"), "11" );
  sqlite3_close(db);
  sqlite3_close(db2);
  plain("u.db", 11);
}

static void insertMany(sqlite3 *db, int n, const char *zValue){
  while( n-- > 0 ) testExec(db, "INSERT INTO t(b) VALUES(%s)", zValue);
}

/* Pages of random bytes have no room for their tail, but with reserved bytes. */
static void noRoom(int cLayout){
  char zLayout[2] = { (char)cLayout, 0 };
  char zUri[100];
  sqlite3 *db;
  testBegin("pages without room for their tail, %c", cLayout);
  CHECK_INT( testShell("rm -f u.db*"), 0 );
  snprintf(zUri, sizeof(zUri), "file:u.db?vfs=waldio%s", testLayout(cLayout));
  db = testOpen(zUri);
  testExec(db, "PRAGMA journal_mode=wal; CREATE TABLE t(a INTEGER PRIMARY KEY,b)");
  insertMany(db, 20, "randomblob(9000)");
  testExec(db, "PRAGMA wal_checkpoint(RESTART)");
  insertMany(db, 20, "randomblob(9000)");
  CHECK_STR( testText(db, "PRAGMA waldio_layout"), zLayout );
  CHECK( (cLayout=='T')
         ==(atoi(testText(db, "SELECT escapes FROM waldio_stat"))>=40) );
  sqlite3_close(db);
  plain("u.db", 40);
}

/* The log is extended by zeros. */
static void extended(void){
  sqlite3 *db = create("file:u.db?vfs=waldio");
  testBegin("extended ahead");
  insertMany(db, 40, "randomblob(9000)");
  CHECK_STR( testText(db, "SELECT preallocations>1 FROM waldio_stat"), "1" );
  /* The zeros are among the bytes written. */
  CHECK_STR( testText(db, "SELECT bytes>=2*131072+frames*slot FROM waldio_stat"),
             "1" );
  CHECK( testSize("u.db-wal")>=524288 );
  sqlite3_close(db);
  plain("u.db", 41);
}

/* A reason to leave the log to SQLite. */
static void stock(const char *zUri, const char *zName, const char *zReason){
  sqlite3 *db;
  testBegin("stock: %s", zReason);
  db = testOpen(zUri);
  CHECK_STR( testText(db, "PRAGMA journal_mode=waldio"), "wal" );
  CHECK_STR( testText(db, "PRAGMA journal_mode"), "wal" );
  CHECK_STR( testText(db, "PRAGMA journal_mode=delete"), "delete" );
  CHECK_STR( testText(db, "PRAGMA journal_mode=wal"), "wal" );
  testExec(db, "DROP TABLE IF EXISTS t; CREATE TABLE t(a); INSERT INTO t VALUES(1)");
  CHECK_STR( testText(db, "PRAGMA waldio_layout"), "stock" );
  CHECK_STR( testText(db, "SELECT reason FROM waldio_stat"), zReason );
  CHECK_INT( testByte19(zName), 2 );
  plain(zName, 1);
  sqlite3_close(db);
}
static void reasons(void){
  sqlite3 *db;
  CHECK_INT( testShell("rm -f u.db*"), 0 );
  stock("file:u.db?vfs=waldio&waldio=off", "u.db", "waldio=off");
  stock("file:u.db?vfs=waldio&psow=0", "u.db",
        "no POWERSAFE_OVERWRITE (psow=0)");
  if( access("/dev/shm", W_OK)==0 ){
    char zName[100], zUri[200];
    snprintf(zName, sizeof(zName), "/dev/shm/waldio-%d.db", (int)getpid());
    snprintf(zUri, sizeof(zUri), "file:%s?vfs=waldio", zName);
    stock(zUri, zName, "tmpfs has no disk");
    CHECK_INT( testShell("rm -f %s*", zName), 0 );
  }else{
    printf("skip: tmpfs, no /dev/shm\n");
  }
  testBegin("journal_mode=waldio where there is no WAL");
  db = testOpen("file:u.db?vfs=waldio&mode=memory");
  CHECK_STR( testText(db, "PRAGMA journal_mode=waldio"), "memory" );
  sqlite3_close(db);
}

/* SQLITE_FCNTL_PERSIST_WAL keeps the wal-index as well, as in SQLite. */
static void persistent(void){
  sqlite3 *db;
  int i, bOn;
  for(i=0; i<2; i++){
    testBegin("PERSIST_WAL %d", i);
    db = create("file:u.db?vfs=waldio");
    bOn = i;
    CHECK_INT( sqlite3_file_control(db, "main", SQLITE_FCNTL_PERSIST_WAL, &bOn),
               SQLITE_OK );
    sqlite3_close(db);
    CHECK( testSize("u.db-wal")>0 );
    CHECK_INT( testSize("u.db-shm")>0, i );
    CHECK_INT( testByte19("u.db"), 2 );
    plain("u.db", 1);
  }
}

static void exclusive(void){
  sqlite3 *db;
  int i;
  testBegin("locking_mode=EXCLUSIVE");
  CHECK_INT( testShell("rm -f u.db*"), 0 );
  db = testOpen("file:u.db?vfs=waldio");
  testExec(db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=wal;"
               "CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
  for(i=0; i<50; i++){
    testExec(db, "INSERT INTO t(b) VALUES(randomblob(900))");
    if( i%20==7 ) testExec(db, "PRAGMA wal_checkpoint(RESTART)");
    if( i%10==3 ){
      testExec(db, "BEGIN; UPDATE t SET b=1; ROLLBACK");
    }
  }
  CHECK_STR( testText(db, "PRAGMA waldio_layout"), "W" );
  CHECK( testSize("u.db-shm")<0 );
  CHECK_INT( testShell("cp u.db v.db && cp u.db-wal v.db-wal"), 0 );
  testExec(db, "PRAGMA locking_mode=NORMAL; INSERT INTO t(b) VALUES(1)");
  sqlite3_close(db);
  plain("u.db", 51);
  db = testOpen("file:v.db?vfs=waldio");
  CHECK_STR( testText(db, "SELECT count(*) FROM t"), "50" );
  sqlite3_close(db);
  plain("v.db", 50);
}

static void vacuum(void){
  sqlite3 *db;
  testBegin("VACUUM to another reserve and page size");
  CHECK_INT( testShell("rm -f u.db*"), 0 );
  db = testOpen("file:u.db?vfs=unix");
  testExec(db, "PRAGMA page_size=1024; CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
  testExec(db, "INSERT INTO t VALUES(1,randomblob(9000)),(2,randomblob(9000))");
  sqlite3_close(db);
  db = testOpen("file:u.db?vfs=waldio");
  CHECK_STR( testText(db, "PRAGMA journal_mode=waldio"), "waldio" );
  testExec(db, "INSERT INTO t VALUES(3,1)");
  CHECK_STR( testText(db, "PRAGMA waldio_layout"), "T" );
  testExec(db, "VACUUM; PRAGMA wal_checkpoint(RESTART); INSERT INTO t VALUES(4,1)");
  CHECK_STR( testText(db, "PRAGMA waldio_reserve"), "24" );
  CHECK_STR( testText(db, "PRAGMA waldio_layout"), "W" );
  testExec(db, "PRAGMA journal_mode=delete; PRAGMA page_size=8192; VACUUM");
  CHECK_STR( testText(db, "PRAGMA journal_mode=waldio"), "waldio" );
  testExec(db, "INSERT INTO t VALUES(5,1)");
  CHECK_STR( testText(db, "SELECT slot FROM waldio_stat"), "8192" );
  sqlite3_close(db);
  plain("u.db", 5);
}

static void limited(void){
  sqlite3 *db = create("file:u.db?vfs=waldio");
  int i;
  testBegin("journal_size_limit");
  testExec(db, "PRAGMA journal_size_limit=100000");
  for(i=0; i<300; i++) testExec(db, "INSERT INTO t(b) VALUES(randomblob(3000))");
  testExec(db, "PRAGMA wal_checkpoint(RESTART); INSERT INTO t(b) VALUES(1)");
  CHECK( testSize("u.db-wal")<=200000 );
  for(i=0; i<50; i++) testExec(db, "INSERT INTO t(b) VALUES(randomblob(3000))");
  sqlite3_close(db);
  plain("u.db", 352);
}

static void lostIndex(void){
  sqlite3 *db, *db2;
  db = create("file:u.db?vfs=waldio");
  CHECK_INT( testShell("cp u.db v.db; cp u.db-wal v.db-wal; cp u.db-shm v.db-shm"), 0 );
  sqlite3_close(db);
  testBegin("a copy with a stale wal-index");
  db = testOpen("file:v.db?vfs=waldio");
  CHECK_STR( testText(db, "SELECT count(*) FROM t"), "1" );
  testBegin("moved while closed, opened by two names");
  sqlite3_close(db);
  CHECK_INT( testShell("mv v.db u.db; rm -f u.db-wal; mv v.db-wal u.db-wal"), 0 );
  db = testOpen("file:u.db?vfs=waldio");
  CHECK_INT( testShell("mkdir -p d && ln -sf ../u.db d/link.db"), 0 );
  db2 = testOpen("file:d/link.db?vfs=waldio");
  testExec(db, "INSERT INTO t VALUES(2,2)");
  testExec(db2, "INSERT INTO t VALUES(3,3)");
  CHECK_STR( testText(db, "SELECT count(*) FROM t"), "3" );
  CHECK_STR( testText(db2, "SELECT handles FROM waldio_stat"), "2" );
  sqlite3_close(db);
  sqlite3_close(db2);
  plain("u.db", 3);
}

static void readonly(void){
  sqlite3 *db = create("file:u.db?vfs=waldio");
  sqlite3 *db2;
  testBegin("read-only connection");
  db2 = testOpen("file:u.db?vfs=waldio&mode=ro");
  CHECK_STR( testText(db2, "SELECT count(*) FROM t"), "1" );
  testExec(db, "INSERT INTO t VALUES(2,2)");
  CHECK_STR( testText(db2, "SELECT count(*) FROM t"), "2" );
  CHECK( testTry(db2, "INSERT INTO t VALUES(3,3)")==SQLITE_READONLY );
  testBegin("read-only connection, a log that is in the database");
  CHECK_STR( testText(db, "PRAGMA wal_checkpoint"), "0" );
  CHECK_STR( testText(db2, "PRAGMA wal_checkpoint(TRUNCATE)"), "0" );
  CHECK_STR( testText(db2, "SELECT count(*) FROM t"), "2" );
  testExec(db, "UPDATE t SET b=3 WHERE a=2");
  CHECK_STR( testText(db2, "SELECT b FROM t WHERE a=2"), "3" );
  sqlite3_close(db2);
  sqlite3_close(db);
  testBegin("read-only connection alone");
  db2 = testOpen("file:u.db?vfs=waldio&mode=ro");
  CHECK_STR( testText(db2, "SELECT count(*) FROM t"), "2" );
  sqlite3_close(db2);
  plain("u.db", 2);
}

/* Commits that are not flushed do not wait for zeros written ahead either. */
static void appended(const char *zPragma){
  static const char zCount[] =
      "SELECT flushes || ' ' || preallocations || ' ' || bytes FROM waldio_stat";
  sqlite3 *db = create("file:u.db?vfs=waldio");
  char zBefore[100];
  int i, nByte, nFrame;
  testBegin("no preallocation with %s", zPragma);
  testExec(db, zPragma);
  testExec(db, "INSERT INTO t VALUES(2,2)");
  testExec(db, "INSERT INTO t VALUES(3,3)");
  snprintf(zBefore, sizeof(zBefore), "%s", testText(db, zCount));
  nByte = atoi(strrchr(zBefore, ' '));
  *strrchr(zBefore, ' ') = 0;
  nFrame = atoi(testText(db, "SELECT frames FROM waldio_stat"));
  for(i=4; i<=200; i++) testExec(db, "INSERT INTO t(b) VALUES(randomblob(2000))");
  CHECK( strncmp(testText(db, zCount), zBefore, strlen(zBefore))==0 );
  nFrame = atoi(testText(db, "SELECT frames FROM waldio_stat")) - nFrame;
  nByte = atoi(testText(db, "SELECT bytes FROM waldio_stat")) - nByte;
  CHECK_INT( nByte, 4096*nFrame );
  testBegin("preallocation again with flushes, after %s", zPragma);
  testExec(db, "PRAGMA synchronous=FULL; PRAGMA waldio_sync=full");
  for(i=0; i<100; i++) testExec(db, "INSERT INTO t(b) VALUES(randomblob(2000))");
  CHECK( strncmp(testText(db, zCount), zBefore, strlen(zBefore))!=0 );
  CHECK_STR( testText(db, "SELECT durable_writes>90 FROM waldio_stat"), "1" );
  sqlite3_close(db);
  plain("u.db", 300);
}

/* A connection that has seen a long log does not take it for long for ever. */
static void truncatedByAnother(void){
  sqlite3 *db = create("file:u.db?vfs=waldio");
  sqlite3 *db2 = testOpen("file:u.db?vfs=waldio");
  long szLog;
  int i, nAhead;
  testBegin("zeros written ahead in a log that another connection truncated");
  for(i=0; i<60; i++) testExec(db, "INSERT INTO t(b) VALUES(randomblob(3000))");
  CHECK( testSize("u.db-wal")>2*65536 );
  testExec(db2, "PRAGMA journal_size_limit=4096; PRAGMA wal_checkpoint;"
           "INSERT INTO t(b) VALUES(1)");
  szLog = testSize("u.db-wal");
  CHECK( szLog<65536 );
  nAhead = atoi(testText(db, "SELECT preallocations FROM waldio_stat"));
  for(i=0; i<20; i++) testExec(db, "INSERT INTO t(b) VALUES(1)");
  CHECK( testSize("u.db-wal")>=szLog+20*4096 );
  CHECK( atoi(testText(db, "SELECT preallocations FROM waldio_stat"))>nAhead );
  sqlite3_close(db2);
  sqlite3_close(db);
}

/* A checkpoint flushes a log again only if something is not durable. */
static void flushedOnce(void){
  sqlite3 *db = create("file:u.db?vfs=waldio");
  const char *zCount = "SELECT flushes FROM waldio_stat";
  int n;
  testBegin("a checkpoint of a log that is durable");
  testExec(db, "PRAGMA synchronous=FULL; INSERT INTO t VALUES(2,2)");
  testExec(db, "INSERT INTO t VALUES(3,3)");
  for(n=0; n<20; n++) testExec(db, "UPDATE t SET b=b+1 WHERE a=3");
  n = atoi(testText(db, zCount));
  CHECK_STR( testText(db, "SELECT durable_writes>0 FROM waldio_stat"), "1" );
  testExec(db, "PRAGMA wal_checkpoint");
  CHECK_INT( atoi(testText(db, zCount)), n );
  testBegin("a checkpoint of a log that is not");
  testExec(db, "PRAGMA synchronous=NORMAL; INSERT INTO t VALUES(4,4)");
  testExec(db, "INSERT INTO t VALUES(5,5)");
  n = atoi(testText(db, zCount));
  testExec(db, "PRAGMA wal_checkpoint");
  CHECK_INT( atoi(testText(db, zCount)), n+1 );
  sqlite3_close(db);
  plain("u.db", 5);
}

static unsigned long inode(const char *zName){
  struct stat st;
  return stat(zName, &st)==0 ? (unsigned long)st.st_ino : 0;
}

/* A log is kept for those who can write the database, and for them alone. */
static void keptMode(void){
  const char *zOpen = "file:u.db?vfs=waldio";
  sqlite3 *db = create(zOpen);
  unsigned long i;
  testBegin("a log is kept");
  sqlite3_close(db);
  i = inode("u.db-wal");
  CHECK( i!=0 );
  db = testOpen(zOpen);
  testExec(db, "INSERT INTO t VALUES(2,2)");
  CHECK( inode("u.db-wal")==i );
  testBegin("chmod between two sessions");
  sqlite3_close(db);
  CHECK_INT( chmod("u.db", 0666), 0 );
  db = testOpen(zOpen);
  testExec(db, "INSERT INTO t VALUES(3,3)");
  CHECK_STR( testText(db, "PRAGMA waldio_layout"), "W" );
  CHECK_INT( testShell("test `stat -c %%a u.db-wal` = 666"), 0 );
  testBegin("chmod of an open database");
  CHECK_INT( chmod("u.db", 0640), 0 );
  sqlite3_close(db);
  CHECK( testSize("u.db-wal")<0 );
  testBegin("chmod, and frames in a stock log");
  db = testOpen("file:u.db?vfs=unix");
  testExec(db, "INSERT INTO t VALUES(4,4)");
  CHECK_INT( testShell("cp u.db v.db && cp u.db-wal v.db-wal && chmod 600 v.db"),
             0 );
  sqlite3_close(db);
  db = testOpen("file:v.db?vfs=waldio");
  CHECK_STR( testText(db, "SELECT count(*) FROM t"), "4" );
  testExec(db, "INSERT INTO t VALUES(5,5)");
  sqlite3_close(db);
  plain("u.db", 4);
  plain("v.db", 5);
}

/*
** A checkpoint that has to read many frames from the device asks for them at once,
** if the one before read many, too.
*/
static void readAhead(void){
  const char *zCount = "SELECT read_ahead FROM waldio_stat";
  sqlite3 *db = create("file:u.db?vfs=waldio");
  int i, j;
  testBegin("a checkpoint of many pages");
  testExec(db, "PRAGMA waldio_sync=persistent; PRAGMA wal_autocheckpoint=0;"
               "WITH n(i) AS (VALUES(2) UNION ALL SELECT i+1 FROM n LIMIT 100)"
               "INSERT INTO t SELECT i, randomblob(3000) FROM n;"
               "PRAGMA wal_checkpoint");
  CHECK_STR( testText(db, zCount), "0" );
  for(i=0; i<3; i++){
    for(j=2; j<=100; j++){
      testExec(db, "UPDATE t SET b=randomblob(3000) WHERE a=%d", j);
    }
    CHECK_STR( testText(db, "SELECT durable_writes>90 FROM waldio_stat"), "1" );
    testExec(db, "PRAGMA wal_checkpoint");
    CHECK_INT( atoi(testText(db, zCount)), i );
  }
  testBegin("a checkpoint of few pages");
  for(i=0; i<3; i++){
    for(j=0; j<100; j++) testExec(db, "UPDATE t SET b=b+1 WHERE a=1");
    testExec(db, "PRAGMA wal_checkpoint");
    CHECK_INT( atoi(testText(db, zCount)), 3 );
  }
  sqlite3_close(db);
  plain("u.db", 101);
}

/* A memory-mapped database shows page 1 as SQLite wants it. */
static void mapped(void){
  sqlite3 *db = create("file:u.db?vfs=waldio");
  testBegin("mmap_size");
  testExec(db, "PRAGMA mmap_size=1000000; INSERT INTO t VALUES(2,2);"
               "PRAGMA wal_checkpoint(TRUNCATE); INSERT INTO t VALUES(3,3)");
  sqlite3_close(db);
  db = testOpen("file:u.db?vfs=waldio");
  testExec(db, "PRAGMA mmap_size=1000000; INSERT INTO t VALUES(4,4)");
  CHECK_STR( testText(db, "SELECT count(*) FROM t"), "4" );
  CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
  sqlite3_close(db);
  plain("u.db", 4);
}

/* In a child that has given up some rights: commits go on as without waldio. */
static void confined(const char *zHow){
  int i, st;
  pid_t pid;
  sqlite3 *db = create("file:u.db?vfs=waldio");
  testBegin("commits within %s", zHow);
  CHECK_INT( testShell("cp u.db v.db && cp u.db-wal v.db-wal"), 0 );
  CHECK_INT( testByte19("v.db"), 0x57 );
  sqlite3_close(db);
  pid = fork();
  CHECK( pid>=0 );
  if( pid==0 ){
    db = testOpen("file:v.db?vfs=waldio");
    if( strcmp(zHow, "a limit of file sizes")==0 ){
      struct rlimit limit = { 150000, 150000 };
      CHECK_INT( setrlimit(RLIMIT_FSIZE, &limit), 0 );
    }else{
      struct sock_filter a[] = {
        BPF_STMT(BPF_LD|BPF_W|BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K, SYS_pwritev2, 2, 0),
        BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K, SYS_faccessat, 1, 0),
#ifdef SYS_access
        BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K, SYS_access, 0, 1),
#else
        BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K, SYS_faccessat, 0, 1),
#endif
        BPF_STMT(BPF_RET|BPF_K, SECCOMP_RET_ERRNO|EPERM),
        BPF_STMT(BPF_RET|BPF_K, SECCOMP_RET_ALLOW)
      };
      struct sock_fprog prog = { sizeof(a)/sizeof(a[0]), a };
      CHECK_INT( prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0 );
      CHECK_INT( prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), 0 );
    }
    testExec(db, "PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0");
    for(i=2; i<=30; i++) testExec(db, "INSERT INTO t VALUES(%d,1)", i);
    CHECK_STR( testText(db, "PRAGMA waldio_layout"), "W" );
    CHECK_STR( testText(db, "SELECT fallbacks>0 FROM waldio_stat"), "1" );
    sqlite3_close(db);
    _exit(0);
  }
  CHECK( waitpid(pid, &st, 0)==pid );
  CHECK_INT( st, 0 );
  plain("v.db", 30);
}

/* What one connection cannot have does not say what the log of all is. */
static void reasonOfAll(void){
  static const char *const az[] = { "&mode=ro", "&waldio=off" };
  char zUri[100];
  sqlite3 *db, *db2;
  int i, j;
  for(i=0; i<4; i++){
    testBegin("a second connection with %s, %s", az[i/2], i%2 ? "reads" : "open");
    db = create("file:u.db?vfs=waldio");
    snprintf(zUri, sizeof(zUri), "file:u.db?vfs=waldio%s", az[i/2]);
    db2 = testOpen(zUri);
    if( i%2 ) CHECK_STR( testText(db2, "SELECT count(*) FROM t"), "1" );
    for(j=0; j<2; j++){
      CHECK_STR( testText(j ? db2 : db, "SELECT layout || ' ' || (reason IS NULL)"
                                        "  FROM waldio_stat"), "W 1" );
    }
    sqlite3_close(db2);
    sqlite3_close(db);
  }
}

/* A log in another version of the format is not touched. */
static void otherFormat(int cVersion){
  sqlite3 *db2;
  sqlite3 *db = create("file:u.db?vfs=waldio");
  testBegin("a log of version %c", cVersion);
  CHECK_INT( testShell("cp u.db v.db && cp u.db-wal v.db-wal"), 0 );
  sqlite3_close(db);
  /* The version in the label, and a CRC that fits */
  CHECK_INT( testShell("python3 -c '\n"
    "def crc(b):\n"
    "  c = 0xffffffff\n"
    "  for x in b:\n"
    "    c ^= x\n"
    "    for _ in range(8): c = c>>1 ^ (0x82f63b78 if c&1 else 0)\n"
    "  return c ^ 0xffffffff\n"
    "f = open(\"v.db-wal\", \"r+b\"); a = bytearray(f.read(64))\n"
    "assert crc(a[:60])==int.from_bytes(a[60:], \"big\")\n"
    "assert a[32:39]==b\"waldio \" and a[39]!=%d\n"
    "a[39] = %d; a[60:] = crc(a[:60]).to_bytes(4, \"big\")\n"
    "f.seek(0); f.write(a)'", cVersion, cVersion), 0 );
  CHECK_INT( testShell("cat v.db v.db-wal | cksum > sum"), 0 );
  db = testOpen("file:v.db?vfs=waldio");
  CHECK_INT( testTry(db, "SELECT * FROM t"), SQLITE_CANTOPEN );
  CHECK_INT( testTry(db, "INSERT INTO t VALUES(9,9)"), SQLITE_CANTOPEN );
  /* The connection cannot read a schema any more; another one tells why. */
  db2 = testOpen(":memory:");
  CHECK_STR( testText(db2, "SELECT reason FROM waldio_stat"), "the log has the "
             "format of another version of waldio; open and close it with that "
             "one" );
  CHECK_STR( testText(db2, "SELECT layout FROM waldio_stat"), "none" );
  sqlite3_close(db2);
  sqlite3_close(db);
  CHECK_INT( testShell("cat v.db v.db-wal | cksum | cmp - sum"), 0 );
}

int main(void){
  testEnter();
  CHECK_INT( waldio_register(0), SQLITE_OK );
  options();
  paddings();
  noRoom('T');
  noRoom('W');
  extended();
  reasons();
  persistent();
  exclusive();
  vacuum();
  limited();
  lostIndex();
  readonly();
  noPowersafe();
  mapped();
  appended("PRAGMA synchronous=NORMAL");
  appended("PRAGMA waldio_sync=normal");
  truncatedByAnother();
  flushedOnce();
  keptMode();
  confined("a limit of file sizes");
  confined("a sandbox without pwritev2() and access()");
  reasonOfAll();
  readAhead();
  otherFormat('1');
  otherFormat('2');
  otherFormat('4');
  testLeave("use");
  return 0;
}
