/*
** A damaged log, and pages whose tail is in use.
**
** Whatever a log holds, the database opened with it has the first so many
** commits, whole, or an error: never a wrong page, never a crash.
*/
#include "faultvfs.h"         /* It flushes nothing, which saves minutes */

#define NCOMMIT 24

/* A database in the middle of its life: a checkpointed part, and NCOMMIT
** commits in a restarted log with older frames behind. */
static void makeCrashed(int cLayout, int szPage){
  char zLayout[2] = { (char)cLayout, 0 };
  char zUri[100];
  int i;
  sqlite3 *db;
  CHECK_INT( testShell("rm -f d.db* x.db*"), 0 );
  snprintf(zUri, sizeof(zUri), "file:d.db?vfs=waldio%s", testLayout(cLayout));
  db = testOpen(zUri);
  testExec(db, "PRAGMA page_size=%d; PRAGMA wal_autocheckpoint=0", szPage);
  testExec(db, "PRAGMA journal_mode=wal; PRAGMA synchronous=NORMAL");
  testExec(db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b, c); CREATE TABLE r(a)");
  for(i=0; i<NCOMMIT+8; i++){
    testExec(db, "INSERT INTO t(b,c) VALUES(0,hex(zeroblob(400)))");
  }
  testExec(db, "DELETE FROM t; PRAGMA wal_checkpoint(RESTART)");
  for(i=1; i<=NCOMMIT; i++){
    /* In layout T with pages that have no room for their tail. */
    testExec(db, "BEGIN; INSERT INTO t VALUES(%d,%d,hex(zeroblob(%d)))",
             i, i*7, i*20);
    if( cLayout=='T' ) testExec(db, "INSERT INTO r VALUES(randomblob(2500))");
    testExec(db, "COMMIT");
  }
  CHECK_STR( testText(db, "PRAGMA waldio_layout"), zLayout );
  CHECK( (cLayout=='T')==(atoi(testText(db, "SELECT moved FROM waldio_stat"))>9) );
  CHECK( (cLayout=='T')
         ==(atoi(testText(db, "SELECT escapes FROM waldio_stat"))>=NCOMMIT) );
  CHECK_INT( testShell("cp d.db x.db && cp d.db-wal x.db-wal"), 0 );
  sqlite3_close(db);
}

/* Open d.db with its log, and return how many commits it has; -1 for an error. */
static int openDamaged(void){
  sqlite3 *db = testOpen("file:d.db?vfs=waldio");
  int n = -1;
  if( testTry(db, "SELECT * FROM t")==SQLITE_OK ){
    n = atoi(testText(db, "SELECT count(*) FROM t"));
    CHECK_INT( atoi(testText(db, "SELECT ifnull(max(a),0) FROM t")), n );
    CHECK_STR( testText(db, "SELECT count(*) FROM t WHERE b<>a*7"
                            " OR c<>hex(zeroblob(a*20))"), "0" );
    CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
    testExec(db, "INSERT INTO t VALUES(1000,1,2)");
    CHECK_STR( testText(db, "SELECT b FROM t WHERE a=1000"), "1" );
  }
  sqlite3_close(db);
  return n;
}

static void truncated(int cLayout, int szPage){
  long nDb, nWal, n;
  unsigned char *aDb, *aWal;
  int nBefore = -1;
  makeCrashed(cLayout, szPage);
  aDb = testRead("x.db", &nDb);
  aWal = testRead("x.db-wal", &nWal);
  for(n=0; n<=nWal && nBefore<NCOMMIT; n+=512){
    int nGot;
    testBegin("layout %c, page size %d, log cut at %ld",
              cLayout, szPage, n);
    unlink("d.db-shm");
    testWrite("d.db", aDb, nDb);
    testWrite("d.db-wal", aWal, n);
    nGot = openDamaged();
    CHECK( nGot>=(n ? 0 : -1) && nGot<=NCOMMIT && nGot>=nBefore );
    if( n==0 ) CHECK_INT( nGot, -1 );             /* Refused: its log is lost */
    nBefore = nGot;
  }
  CHECK_INT( nBefore, NCOMMIT );
  free(aDb);
  free(aWal);
}

static void flipped(int cLayout, int szPage){
  long nDb, nWal, i;
  unsigned char *aDb, *aWal;
  makeCrashed(cLayout, szPage);
  aDb = testRead("x.db", &nDb);
  aWal = testRead("x.db-wal", &nWal);
  /* All of the label, and prime steps through the rest. */
  for(i=0; i<4096+70*(szPage+512); i += i<64 ? 1 : i<4096 ? 1009 : 211){
    int nGot;
    testBegin("layout %c, page size %d, bit flipped in byte %ld",
              cLayout, szPage, i);
    unlink("d.db-shm");
    aWal[i] ^= (unsigned char)(1 << (i%8));
    testWrite("d.db", aDb, nDb);
    testWrite("d.db-wal", aWal, nWal);
    nGot = openDamaged();
    CHECK( nGot<=NCOMMIT );
    if( i<64 ) CHECK( nGot<=0 );
    aWal[i] ^= (unsigned char)(1 << (i%8));
  }
  free(aDb);
  free(aWal);
}

static void setNumber(unsigned char *a, unsigned v){
  a[0] = (unsigned char)(v>>24); a[1] = (unsigned char)(v>>16);
  a[2] = (unsigned char)(v>>8); a[3] = (unsigned char)v;
}

/* A log that says of itself what is not true, with a CRC that fits: any page
** and slot size, any layout, and any bytes where the frames are. */
static void hostile(int cLayout, int szPage){
  static const unsigned aNumber[] = {
    0, 1, 511, 512, 513, 1000, 1024, 1048, 1536, 2048, 4096, 65535, 65536,
    66048, 73728, 131072, 131584, 0x7fffffff, 0x80000000, 0xfffffe00, 0xffffffff
  };
  const unsigned nNumber = sizeof(aNumber)/sizeof(aNumber[0]);
  long nDb, nWal;
  unsigned char *aDb, *aWal, *aCopy;
  unsigned i, x = 7;
  makeCrashed(cLayout, szPage);
  aDb = testRead("x.db", &nDb);
  aWal = testRead("x.db-wal", &nWal);
  aCopy = malloc((size_t)nWal);
  CHECK( aCopy!=0 );
  for(i=0; i<3*nNumber*nNumber; i++){
    int nGot, j;
    testBegin("layout %c, page size %d, hostile log %u", cLayout,
              szPage, i);
    unlink("d.db-shm");
    memcpy(aCopy, aWal, (size_t)nWal);
    if( i%5 ) setNumber(aCopy+8, aNumber[i%nNumber]);
    if( i%7 ) setNumber(aCopy+44, aNumber[i/nNumber%nNumber]);
    aCopy[40] = (unsigned char)(i%3 ? i%6 : aWal[40]);
    setNumber(aCopy+60, testCrc32c(aCopy, 60));
    for(j=0; j<20 && i%11==0; j++){
      x = x*1664525u + 1013904223u;
      aCopy[4096 + (long)(x>>8)%(nWal-4096)] = (unsigned char)x;
    }
    testWrite("d.db", aDb, nDb);
    testWrite("d.db-wal", aCopy, nWal);
    nGot = openDamaged();
    CHECK( nGot<=NCOMMIT );
  }
  free(aDb);
  free(aWal);
  free(aCopy);
}

/* Put bytes of its own into the tail of every page. */
static void fillTails(const char *zName, int szPage){
  long n, i;
  unsigned char *a = testRead(zName, &n);
  for(i=0; i<n; i++){
    if( i%szPage>=szPage-24 ) a[i] = (unsigned char)(1 + i/szPage*31 + i%24);
  }
  testWrite(zName, a, n);
  free(a);
}

static void backup(sqlite3 *pTo, sqlite3 *pFrom){
  sqlite3_backup *p = sqlite3_backup_init(pTo, "main", pFrom, "main");
  CHECK( p!=0 );
  CHECK_INT( sqlite3_backup_step(p, -1), SQLITE_DONE );
  CHECK_INT( sqlite3_backup_finish(p), SQLITE_OK );
}

/* The tails of database and source are the same, page by page. */
static void sameTails(const char *zName, int szPage){
  long n1, n2, i;
  unsigned char *a1 = testRead(zName, &n1);
  unsigned char *a2 = testRead("s.db", &n2);
  CHECK( n1>=n2 );
  for(i=0; i<n2; i++){
    if( i%szPage>=szPage-24 ) CHECK_INT( a1[i], a2[i] );
  }
  free(a1);
  free(a2);
}

static void tails(int szPage){
  sqlite3 *pFrom, *db;
  int n = 24;
  testBegin("pages with a tail, page size %d", szPage);
  CHECK_INT( testShell("rm -f s.db* d.db* x.db*"), 0 );
  pFrom = testOpen("file:s.db?vfs=unix");
  testExec(pFrom, "PRAGMA page_size=%d", szPage);
  sqlite3_file_control(pFrom, "main", SQLITE_FCNTL_RESERVE_BYTES, &n);
  testExec(pFrom, "CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
  testExec(pFrom, "WITH c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<300)"
                  " INSERT INTO t SELECT i, CASE WHEN i%%3=0 THEN"
                  " randomblob(%d) ELSE hex(zeroblob(%d)) END FROM c",
                  szPage*3/2, szPage/3);
  sqlite3_close(pFrom);
  fillTails("s.db", szPage);
  pFrom = testOpen("file:s.db?vfs=unix");
  db = testOpen("file:d.db?vfs=waldio");
  testExec(db, "PRAGMA page_size=%d; PRAGMA wal_autocheckpoint=0", szPage);
  testExec(db, "PRAGMA journal_mode=wal; CREATE TABLE gone(a)");
  CHECK_STR( testText(db, "PRAGMA waldio_layout"), "W" );
  backup(db, pFrom);
  CHECK( atoi(testText(db, "SELECT moved FROM waldio_stat"))>=150 );
  CHECK( atoi(testText(db, "SELECT escapes FROM waldio_stat"))>=50 );
  /* Over the backup: a spilled transaction that writes pages twice. */
  testExec(db, "PRAGMA cache_size=10; PRAGMA cache_spill=10; BEGIN;"
               "UPDATE t SET b=upper(b) WHERE a%%3=0;"
               "UPDATE t SET b=lower(b) WHERE a%%3=0; COMMIT");
  CHECK_INT( testShell("cp d.db x.db && cp d.db-wal x.db-wal"), 0 );
  CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
  sqlite3_close(db);
  sameTails("d.db", szPage);
  db = testOpen("file:x.db?vfs=waldio");
  CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
  CHECK_STR( testText(db, "SELECT count(*) FROM t"), "300" );
  sqlite3_close(db);
  sameTails("x.db", szPage);
  sqlite3_close(pFrom);
}

/* Power failed while page 1 was copied to the database. */
static void tornPage1(int cLayout){
  char zCmd[200];
  int i;
  for(i=1; i<=2; i++){
    testBegin("page 1 torn in a checkpoint, layout %c, %d sectors", cLayout, i);
    makeCrashed(cLayout, 1024);
    snprintf(zCmd, sizeof(zCmd), "cp x.db d.db && cp x.db-wal d.db-wal && "
             "head -c %d /dev/urandom | dd of=d.db conv=notrunc status=none",
             i*512);
    CHECK_INT( testShell("%s", zCmd), 0 );
    CHECK_INT( openDamaged(), NCOMMIT );
  }
}

/* SQLite reads no log of a version it does not know, and keeps it. */
static void unknownVersion(void){
  unsigned char *a;
  unsigned s1 = 0, s2 = 0, x;
  long n;
  int i;
  sqlite3 *db;
  testBegin("a log of an unknown version");
  makeCrashed('W', 1024);
  CHECK_INT( testShell("cp x.db d.db"), 0 );
  a = testRead("x.db-wal", &n);
  a[4] = 0; a[5] = 0x2d; a[6] = 0xe2; a[7] = 0x19;        /* 3007001 */
  for(i=0; i<24; i+=4){
    x = (a[3] & 1) ? (unsigned)a[i]<<24 | a[i+1]<<16 | a[i+2]<<8 | a[i+3]
                   : (unsigned)a[i+3]<<24 | a[i+2]<<16 | a[i+1]<<8 | a[i];
    if( i%8==0 ) s1 += x + s2; else s2 += x + s1;
  }
  for(i=0; i<4; i++){
    a[24+i] = (unsigned char)(s1>>(24-8*i));
    a[28+i] = (unsigned char)(s2>>(24-8*i));
  }
  testWrite("d.db-wal", a, n);
  free(a);
  CHECK_INT( testShell("cp d.db-wal keep"), 0 );
  db = testOpen("file:d.db?vfs=waldio");
  CHECK_INT( testTry(db, "SELECT * FROM t"), SQLITE_CANTOPEN );
  CHECK_INT( testTry(db, "INSERT INTO t VALUES(99,99,99)"), SQLITE_CANTOPEN );
  sqlite3_close(db);
  CHECK_INT( testShell("cmp d.db-wal keep"), 0 );
}

int main(void){
  int i;
  testEnter();
  faultRegister();
  CHECK_INT( waldio_register(0), SQLITE_OK );
  for(i=0; i<3; i++){
    truncated("WTP"[i], 1024);
    flipped("WTP"[i], 1024);
    hostile("WTP"[i], 1024);
  }
  for(i=0; i<3; i++) tornPage1("WTP"[i]);
  unknownVersion();
  for(i=512; i<=65536; i*=2) tails(i);
  testLeave("damage");
  return 0;
}
