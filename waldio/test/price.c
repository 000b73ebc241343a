/*
** What users pay, beside stock SQLite: flushes, bytes, reads and memory, where a log is
** new, a session is short, a transaction is large, or several connections look at what
** one of them wrote.  Flushes are counted where they are asked for, bytes and reads by
** the kernel (/proc/self/io).
*/
#define _GNU_SOURCE
#include "test.h"
#include "flushes.h"
#include <linux/magic.h>
#include <sys/vfs.h>

/* A line of /proc/self/io. */
static long long io(const char *zName){
  FILE *f = fopen("/proc/self/io", "r");
  char zLine[100];
  long long n = -1;
  CHECK( f!=0 );
  while( fgets(zLine, sizeof(zLine), f) ){
    if( strncmp(zLine, zName, strlen(zName))==0 ) n = atoll(strchr(zLine, ':')+1);
  }
  fclose(f);
  return n;
}

static sqlite3 *openAs(int bWaldio){
  sqlite3 *db = testOpen(bWaldio ? "file:p.db?vfs=waldio" : "file:p.db?vfs=unix");
  testExec(db, "PRAGMA journal_mode=wal; PRAGMA synchronous=FULL");
  return db;
}
static void create(int bWaldio){
  sqlite3 *db;
  CHECK_INT( testShell("rm -f p.db*"), 0 );
  db = openAs(bWaldio);
  testExec(db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b); CREATE INDEX tb ON t(b);"
    "WITH n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n LIMIT 2000)"
    "INSERT INTO t SELECT i, hex(randomblob(100)) FROM n");
  sqlite3_close(db);
}

/* True where the directory of a log that was kept is not flushed. */
static int savesDir(void){
  struct statfs fs;
  CHECK_INT( statfs(".", &fs), 0 );
  return (unsigned)fs.f_type==EXT4_SUPER_MAGIC || (unsigned)fs.f_type==XFS_SUPER_MAGIC;
}

/* Sessions of nCommit commits, the first of which is the database's first or second. */
static int sessions(int bWaldio, int nCommit, int bNew){
  int i, j;
  if( bNew ) CHECK_INT( testShell("rm -f p.db*"), 0 ); else create(bWaldio);
  nFlush = nFlushDir = 0;
  for(i=0; i<(bNew ? 1 : 5); i++){
    sqlite3 *db = openAs(bWaldio);
    if( bNew ) testExec(db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
    for(j=0; j<nCommit; j++) testExec(db, "INSERT INTO t(b) VALUES('x')");
    sqlite3_close(db);
  }
  return nFlush;
}

static void shortSessions(void){
  static const int aCommit[] = { 1, 2, 3, 5, 10, 20, 50 };
  unsigned i;
  int bNew;
  for(i=0; i<sizeof(aCommit)/sizeof(aCommit[0]); i++){
    for(bNew=0; bNew<2; bNew++){
      int nStock = sessions(0, aCommit[i], bNew);
      int nWaldio = sessions(1, aCommit[i], bNew);
      testBegin("sessions of %d commits%s: %d flushes, stock %d", aCommit[i],
                bNew ? ", a new database" : "", nWaldio, nStock);
      CHECK( nStock>aCommit[i] );
      CHECK( nWaldio<=nStock );
      /* Of a log that was kept the name is durable: header, commits, database, and the log
      ** that is emptied. */
      if( !bNew && savesDir() ){
        CHECK_INT( nFlushDir, 0 );
        CHECK_INT( nWaldio, 5*(aCommit[i]+3) );
      }
    }
  }
}

/* The log's name, too, is durable before a log is kept that nobody has flushed. */
static void unflushed(void){
  sqlite3 *db;
  int nNew;
  CHECK_INT( testShell("rm -f p.db*"), 0 );
  db = openAs(1);
  testExec(db, "PRAGMA synchronous=OFF; CREATE TABLE t(a)");
  nFlush = nFlushDir = 0;
  sqlite3_close(db);
  nNew = nFlush;
  testBegin("a log that nobody flushed is kept: %d flushes", nNew);
  CHECK_INT( nFlushDir, 1 );
  db = openAs(1);
  testExec(db, "PRAGMA synchronous=OFF; INSERT INTO t VALUES(1)");
  nFlush = nFlushDir = 0;
  sqlite3_close(db);
  testBegin("... and again: %d flushes", nFlush);
  if( !savesDir() ) return;
  CHECK_INT( nFlushDir, 0 );
  CHECK_INT( nNew, nFlush+2 );
}

/* A database that was moved with its log: their names there are durable before a commit is. */
static void moved(void){
  sqlite3 *db;
  create(1);
  CHECK( testSize("p.db-wal")>0 );
  CHECK_INT( testShell("rm -rf there; mkdir there; mv p.db p.db-wal there; mv there/* ."), 0 );
  db = openAs(1);
  nFlush = nFlushDir = 0;
  testExec(db, "INSERT INTO t(b) VALUES('x')");
  testBegin("the first commit after a move: %d flushes", nFlush);
  CHECK_INT( nFlushDir, 1 );
  sqlite3_close(db);
}

/* What growing costs: the commits of nPage pages after which the log is longer, and the
** bytes that all of them write to it, in a log that begins with the first of them.  SQLite
** writes the blocks of its file that a commit is in.  (The kernel's counter charges all of
** a large folio for a part of it.) */
static void grow(int bWaldio, int nCommit, int nPage, int *pnGrown, long long *pnByte){
  sqlite3 *db;
  long szBefore = 0;
  int i;
  CHECK_INT( testShell("rm -f p.db*"), 0 );
  db = openAs(bWaldio);
  testExec(db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b); WITH n(i) AS "
    "(VALUES(1) UNION ALL SELECT i+1 FROM n LIMIT 200) INSERT INTO t SELECT i, zeroblob(3000) FROM n");
  sqlite3_close(db);
  CHECK_INT( testShell("rm -f p.db-wal"), 0 );
  db = openAs(bWaldio);
  *pnGrown = 0;
  *pnByte = 0;
  for(i=0; i<nCommit; i++){
    long sz;
    testExec(db, "UPDATE t SET b=randomblob(3000) WHERE a>%d AND a<=%d", i*nPage, (i+1)*nPage);
    sz = testSize("p.db-wal");
    *pnGrown += sz>szBefore;
    *pnByte += (sz+4095)/4096*4096 - szBefore/4096*4096;
    szBefore = sz;
  }
  if( bWaldio ) *pnByte = atoll(testText(db, "SELECT bytes FROM waldio_stat"));
  sqlite3_close(db);
}

/*
** A log that grows, by commits of few pages and of many: at whichever commit it ends,
** zeros written ahead are no more bytes than were saved, by commits that begin no block
** anew, and by those that need no journal of the filesystem, which ext4 has in blocks.
*/
static void growing(void){
  static const int aCommit[] = { 1, 2, 3, 4, 6, 9, 14, 25, 50 };
  struct statfs fs;
  unsigned i;
  int nPage;
  CHECK_INT( statfs(".", &fs), 0 );
  for(nPage=1; nPage<4; nPage++){
    for(i=0; i<sizeof(aCommit)/sizeof(aCommit[0]); i++){
      int bExt4 = (unsigned)fs.f_type==EXT4_SUPER_MAGIC && fs.f_bsize==4096;
      int nStock, nGrown;
      long long nStockByte, nByte, nJournal = bExt4 ? 4*4096 : 4096;
      grow(0, aCommit[i], nPage, &nStock, &nStockByte);
      grow(1, aCommit[i], nPage, &nGrown, &nByte);
      testBegin("%d commits of %d pages: the log grew %d times by %lld bytes, stock %d, %lld",
                aCommit[i], nPage, nGrown, nByte, nStock, nStockByte);
      CHECK_INT( nStock, aCommit[i] );
      CHECK( nByte<=nStockByte + 2*4096 + nJournal*(nStock-nGrown) );
      /* Zeros for the second commit go with the first, where they are soon earned. */
      if( bExt4 && nPage==1 ) CHECK( nGrown<=1+aCommit[i]/2 );
      if( aCommit[i]>8 ) CHECK( nGrown<nStock );
    }
  }
}

/* One transaction of many MiB, in a log that is new; and what is kept of it. */
static void largeTransaction(void){
  int i, anFlush[2];
  long long aByte[2];
  sqlite3 *db;
  for(i=0; i<2; i++){
    CHECK_INT( testShell("rm -f p.db*"), 0 );
    db = openAs(i);
    testExec(db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b); PRAGMA wal_autocheckpoint=0");
    nFlush = 0;
    aByte[i] = io("write_bytes");
    testExec(db, "BEGIN");
    for(int j=0; j<24; j++) testExec(db, "INSERT INTO t(b) VALUES(randomblob(1<<20))");
    testExec(db, "COMMIT");
    aByte[i] = io("write_bytes") - aByte[i];
    anFlush[i] = nFlush;
    testBegin("a transaction of 24 MiB: %lld bytes and %d flushes, stock %lld and %d",
              aByte[i], anFlush[i], aByte[0], anFlush[0]);
    CHECK( aByte[i]>24<<20 );
    if( i ) CHECK( aByte[1]<=aByte[0]/100*105 && anFlush[1]<=anFlush[0] );
    testExec(db, "DELETE FROM t; VACUUM");
    sqlite3_close(db);
  }
  testBegin("the log of a tiny database");
  CHECK( testSize("p.db")<65536 );
  CHECK( testSize("p.db-wal")<=5<<20 );
  db = openAs(1);
  testExec(db, "INSERT INTO t(b) VALUES(1)");
  sqlite3_close(db);
  CHECK( testSize("p.db-wal")<=5<<20 );
}

/* What was committed is read by another connection, which has nothing in its cache. */
static void readByAnother(void){
  sqlite3 *db, *db2;
  long long n;
  int i;
  create(1);
  db = openAs(1);
  testExec(db, "PRAGMA wal_autocheckpoint=0");
  for(i=1; i<=300; i++){
    testExec(db, "UPDATE t SET b=b||'x' WHERE a=%d", i*6);
  }
  testBegin("reads by another connection");
  CHECK_STR( testText(db, "SELECT durable_writes>200 FROM waldio_stat"), "1" );
  db2 = openAs(1);
  CHECK_INT( testShell("cat p.db >/dev/null"), 0 );
  n = io("read_bytes");
  CHECK_STR( testText(db2, "SELECT count(*) FROM t WHERE substr(b,-1)='x'"), "300" );
  for(i=1; i<100; i++){
    testExec(i%2 ? db2 : db, "UPDATE t SET b=b||'x' WHERE a=%d", i*6);
  }
  CHECK_INT( io("read_bytes")-n, 0 );
  testExec(db, "PRAGMA wal_checkpoint");
  CHECK_INT( io("read_bytes")-n, 0 );
  sqlite3_close(db);
  sqlite3_close(db2);
}

/* Memory that a connection has after a commit, without the pages in its cache. */
static void memory(void){
  long long aUsed[2];
  int i;
  for(i=0; i<2; i++){
    long long n = sqlite3_memory_used();
    sqlite3 *db = openAs(i);
    testExec(db, "CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY, b);"
                 "INSERT INTO t(b) VALUES(1)");
    aUsed[i] = sqlite3_memory_used() - n;
    sqlite3_close(db);
  }
  testBegin("memory of a connection: %lld bytes, stock %lld", aUsed[1], aUsed[0]);
  CHECK( aUsed[1]<aUsed[0] + 65536 );
}

int main(void){
  testEnter();
  CHECK_INT( waldio_register(0), SQLITE_OK );
  shortSessions();
  unflushed();
  moved();
  growing();
  largeTransaction();
  readByAnother();
  memory();
  testLeave("price");
  return 0;
}
