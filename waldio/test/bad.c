/*
** What can be wrong with the files of a database: each is refused with an
** SQLite error code and a message in SQLite's log that says what to do, or is no
** harm.  Damage inside of the log is in damage.c, faults of the disk in fault.c,
** another version of the format also in use.c.
*/
#include "test.h"

/* waldio's last message to SQLite's log, and its code. */
static char zMessage[600];
static int rcMessage;
static void onLog(void *pUnused, int rc, const char *z){
  (void)pUnused;
  if( strncmp(z, "waldio: ", 8)!=0 ) return;
  rcMessage = rc;
  snprintf(zMessage, sizeof(zMessage), "%s", z);
}
#define CHECK_MESSAGE(rc,z) do{ \
    CHECK_INT( rcMessage, rc ); \
    if( strstr(zMessage, z)==0 ) testFail(__FILE__, __LINE__, z, zMessage); \
    zMessage[0] = 0; rcMessage = 0; \
  }while(0)

static unsigned long long filesHash(const char *zDb){
  static const char *const az[] = { "", "-wal" };
  unsigned long long h = 1469598103934665603ull;
  char zName[300];
  int i, c;
  for(i=0; i<2; i++){
    FILE *f;
    snprintf(zName, sizeof(zName), "%s%s", zDb, az[i]);
    f = fopen(zName, "rb");
    while( f && (c = getc(f))!=EOF ) h = (h ^ (unsigned)c)*1099511628211ull;
    if( f ) fclose(f);
  }
  return h;
}

/* The database b.db with two rows, and as c.db a copy from when it was open:
** row 2 is in the log alone. */
static void create(int szPage){
  sqlite3 *db;
  CHECK_INT( testShell("rm -f *.db *.db-wal *.db-shm *.db-journal"), 0 );
  db = testOpen("file:b.db?vfs=waldio&waldio=force");
  testExec(db, "PRAGMA page_size=%d; PRAGMA journal_mode=wal; CREATE TABLE t(a "
    "INTEGER PRIMARY KEY, b); INSERT INTO t VALUES(1,1);"
    "PRAGMA wal_checkpoint(TRUNCATE); INSERT INTO t VALUES(2,zeroblob(3000))", szPage);
  CHECK_INT( testShell("cp b.db c.db; cp b.db-wal c.db-wal; cp b.db-shm c.db-shm"), 0 );
  CHECK_INT( testByte19("c.db"), 0x57 );
  sqlite3_close(db);
  CHECK_INT( testByte19("b.db"), 2 );
}
static void checkRows(const char *zUri, int n){
  sqlite3 *db = testOpen(zUri);
  CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
  CHECK_INT( atoi(testText(db, "SELECT count(*) FROM t")), n );
  sqlite3_close(db);
}
/* The database cannot be read or written, and no byte of it changes. */
static void refused(const char *zUri, const char *zDb, int rc){
  unsigned long long h = filesHash(zDb);
  sqlite3 *db = testOpen(zUri);
  CHECK_INT( testTry(db, "SELECT * FROM t"), rc );
  CHECK_INT( testTry(db, "INSERT INTO t VALUES(9,9)"), rc );
  sqlite3_close(db);
  CHECK( filesHash(zDb)==h );
}

static void otherPageSize(void){
  testBegin("a log of another page size");
  create(4096);
  CHECK_INT( testShell("mv c.db-wal keep"), 0 );
  create(1024);
  CHECK_INT( testShell("rm c.db-shm; mv c.db-wal own; mv keep c.db-wal"), 0 );
  refused("file:c.db?vfs=waldio", "c.db", SQLITE_CANTOPEN);
  CHECK_MESSAGE( SQLITE_CANTOPEN, "pages of 4096 bytes, the database of 1024: put "
                                  "its own log there, or remove this one" );
  CHECK_INT( testShell("mv own c.db-wal"), 0 );
  checkRows("file:c.db?vfs=waldio", 2);
  checkRows("file:c.db?vfs=unix", 2);
}

static void links(void){
  sqlite3 *db;
  testBegin("hard link to an open database");
  create(1024);
  db = testOpen("file:b.db?vfs=waldio");
  testExec(db, "INSERT INTO t VALUES(3,3)");
  CHECK_INT( testShell("ln b.db l.db"), 0 );
  refused("file:l.db?vfs=waldio", "l.db", SQLITE_CANTOPEN);
  CHECK_MESSAGE( SQLITE_CANTOPEN, "/b.db; use that name" );
  testExec(db, "INSERT INTO t VALUES(4,4)");
  sqlite3_close(db);
  checkRows("file:b.db?vfs=unix", 4);
  testBegin("hard links to a closed database");
  db = testOpen("file:l.db?vfs=waldio&waldio=force");
  testExec(db, "INSERT INTO t VALUES(5,5)");
  CHECK_STR( testText(db, "PRAGMA waldio_layout"), "stock" );
  CHECK_STR( testText(db, "SELECT reason FROM waldio_stat"),
             "the file has several names (hard links)" );
  sqlite3_close(db);
  checkRows("file:b.db?vfs=waldio", 5);
  testBegin("hard link to a crashed database");
  CHECK_INT( testShell("ln c.db l2.db"), 0 );
  refused("file:l2.db?vfs=waldio", "l2.db", SQLITE_CANTOPEN);
  CHECK_MESSAGE( SQLITE_CANTOPEN, "open it by the name that was used" );
  checkRows("file:c.db?vfs=waldio", 2);
  checkRows("file:l2.db?vfs=waldio", 2);
}

static void moved(void){
  sqlite3 *db, *db2;
  sqlite3_stmt *pStmt;
  testBegin("renamed while it is open");
  create(1024);
  db = testOpen("file:b.db?vfs=waldio");
  testExec(db, "INSERT INTO t VALUES(3,3)");
  CHECK_INT( testShell("mv b.db m.db"), 0 );
  refused("file:m.db?vfs=waldio", "m.db", SQLITE_CANTOPEN);
  CHECK_MESSAGE( SQLITE_CANTOPEN, "/b.db; use that name" );
  testExec(db, "INSERT INTO t VALUES(4,4)");
  sqlite3_close(db);              /* SQLite makes no checkpoint then */
  CHECK_INT( testShell("mv b.db-wal m.db-wal"), 0 );
  checkRows("file:m.db?vfs=waldio", 4);
  checkRows("file:m.db?vfs=unix", 4);
  testBegin("moved while a statement reads its row of waldio_stat");
  db = testOpen("file:m.db?vfs=waldio");
  CHECK_STR( testText(db, "SELECT count(*) FROM t"), "4" );
  CHECK_INT( sqlite3_open(":memory:", &db2), SQLITE_OK );
  CHECK_INT( sqlite3_prepare_v2(db2, "SELECT * FROM waldio_stat", -1, &pStmt, 0),
             SQLITE_OK );
  CHECK_INT( sqlite3_step(pStmt), SQLITE_ROW );
  sqlite3_close(db);
  CHECK_INT( testShell("mv m.db b.db; mv m.db-wal b.db-wal"), 0 );
  checkRows("file:b.db?vfs=waldio", 4);
  CHECK_INT( sqlite3_finalize(pStmt), SQLITE_OK );
  sqlite3_close(db2);
  testBegin("moved after a crash, without its log");
  CHECK_INT( testShell("mv c.db n.db; cp n.db o.db"), 0 );
  refused("file:n.db?vfs=waldio", "n.db", SQLITE_CANTOPEN);
  CHECK_MESSAGE( SQLITE_CANTOPEN, "/n.db-wal is missing or empty; bring it back" );
  refused("file:n.db?vfs=waldio&waldio=off", "n.db", SQLITE_CANTOPEN);
  refused("file:n.db?vfs=unix", "n.db", SQLITE_NOTADB);
  rcMessage = 0;
  checkRows("file:n.db?vfs=waldio&waldio_lost_log=1", 1);
  CHECK_MESSAGE( SQLITE_WARNING, "/n.db-wal is missing or empty; what it held is lost" );
  rcMessage = 0;
  checkRows("file:n.db?vfs=waldio", 1);
  CHECK_INT( rcMessage, 0 );
  checkRows("file:n.db?vfs=unix", 1);
  testBegin("moved after a crash, with its log");
  CHECK_INT( testShell("touch o.db-wal"), 0 );
  refused("file:o.db?vfs=waldio", "o.db", SQLITE_CANTOPEN);
  CHECK_MESSAGE( SQLITE_CANTOPEN, "/o.db-wal is missing or empty; bring it back" );
  CHECK_INT( testShell("mv c.db-wal o.db-wal"), 0 );
  checkRows("file:o.db?vfs=waldio", 2);
  CHECK_INT( rcMessage, 0 );
  checkRows("file:o.db?vfs=unix", 2);
}

/* Run x in a child without root's rights; a directory is read-only for it. */
static void asNobody(void (*x)(void)){
  int st = 0;
  pid_t pid = fork();
  CHECK( pid>=0 );
  if( pid==0 ){
    if( getuid()==0 ) CHECK( setgid(65534)==0 && setuid(65534)==0 );
    x();
    _exit(0);
  }
  CHECK( waitpid(pid, &st, 0)==pid );
  CHECK_INT( st, 0 );
}
static void inReadOnly(void){
  sqlite3 *db;
  testBegin("read-only directory, closed database");
  refused("file:ro/b.db?vfs=waldio", "ro/b.db", SQLITE_READONLY_DIRECTORY);
  CHECK_INT( testByte19("ro/b.db"), 2 );
  refused("file:ro/b.db?vfs=unix", "ro/b.db", SQLITE_READONLY_DIRECTORY);
  checkRows("file:ro/b.db?vfs=waldio&immutable=1", 2);
  testBegin("read-only directory, closed database with a log that was kept");
  db = testOpen("file:ro/d.db?vfs=waldio");
  CHECK( testTry(db, "SELECT * FROM t")!=SQLITE_OK );
  sqlite3_close(db);
  CHECK_INT( testByte19("ro/d.db"), 2 );
  testBegin("read-only directory, crashed database");
  refused("file:ro/c.db?vfs=waldio", "ro/c.db", SQLITE_CANTOPEN);
}
static void readOnly(void){
  create(1024);
  CHECK_INT( testShell("chmod 755 . && mkdir ro && cp b.db c.db c.db-wal ro &&"
                       "cp b.db ro/d.db && cp b.db-wal ro/d.db-wal &&"
                       "chmod 666 ro/?.db ro/d.db-wal && chmod 444 ro/c.db-wal &&"
                       "chmod 555 ro"), 0 );
  asNobody(inReadOnly);
  CHECK_INT( testShell("chmod 755 ro && chmod 644 ro/*"), 0 );
  checkRows("file:ro/b.db?vfs=waldio", 2);
  checkRows("file:ro/c.db?vfs=waldio", 2);
  CHECK_INT( testShell("rm -r ro"), 0 );
}

/* A child with the build of another format has a look at zDb. */
static UNUSED void otherBuild(const char *zDb, int bClosed){
  int st = 0;
  pid_t pid = fork();
  CHECK( pid>=0 );
  if( pid==0 ){
    execl("/proc/self/exe", "test-bad", zDb, bClosed ? "closed" : "open", (char*)0);
    _exit(9);
  }
  CHECK( waitpid(pid, &st, 0)==pid );
  CHECK_INT( st, 0 );
}
static void otherMain(const char *zDb, int bClosed){
  char zUri[300];
  sqlite3 *db = testOpen(":memory:");
  CHECK_INT( sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1,
                               (int*)0), SQLITE_OK );
  CHECK_INT( sqlite3_load_extension(db, "../waldio-next", "sqlite3_waldio_init",
                                     0), SQLITE_OK );
  snprintf(zUri, sizeof(zUri), "file:%s?vfs=waldio&waldio=force", zDb);
  if( bClosed ){
    checkRows(zUri, 2);
    return;
  }
  refused(zUri, zDb, SQLITE_CANTOPEN);
  CHECK_MESSAGE( SQLITE_CANTOPEN, "format 'waldio 3', this waldio reads 'waldio 4';"
                 " open and close the database with the waldio that wrote it" );
}
static UNUSED void twoBuilds(void){
  sqlite3 *db;
  create(1024);
  testBegin("another build, the database is closed");
  otherBuild("b.db", 1);
  testBegin("another build, the database is open");
  db = testOpen("file:b.db?vfs=waldio");
  testExec(db, "INSERT INTO t VALUES(3,3)");
  otherBuild("b.db", 0);
  testExec(db, "INSERT INTO t VALUES(4,4)");
  sqlite3_close(db);
  checkRows("file:b.db?vfs=unix", 4);
  testBegin("another build, the database has crashed");
  otherBuild("c.db", 0);
  CHECK_INT( testShell("rm -f c.db-shm"), 0 );
  otherBuild("c.db", 0);
  checkRows("file:c.db?vfs=waldio", 2);
}

static void lostIndex(void){
  testBegin("a crashed database, with a stale wal-index");
  create(1024);
  CHECK_INT( testShell("for x in d e f; do cp c.db $x.db; cp c.db-wal $x.db-wal; "
                       "done; cp c.db-shm d.db-shm; head -c 40000 /dev/urandom "
                       ">e.db-shm"), 0 );
  checkRows("file:d.db?vfs=waldio", 2);
  testBegin("a crashed database, with nonsense for a wal-index");
  checkRows("file:e.db?vfs=waldio", 2);
  testBegin("a crashed database, without a wal-index");
  checkRows("file:f.db?vfs=waldio", 2);
}

static void pageSizes(void){
  sqlite3 *db;
  int i, n = 512;
  testBegin("page_size in WAL mode has no effect");
  create(1024);
  db = testOpen("file:b.db?vfs=waldio&waldio=force");
  testExec(db, "PRAGMA page_size=4096; VACUUM");
  CHECK_STR( testText(db, "PRAGMA page_size"), "1024" );
  for(i=0; i<8; i++, n*=2){
    testBegin("page size changed to %d by VACUUM", n);
    testExec(db, "PRAGMA journal_mode=delete; PRAGMA page_size=%d; VACUUM", n);
    CHECK_STR( testText(db, "PRAGMA journal_mode=waldio"), "waldio" );
    testExec(db, "INSERT INTO t VALUES(%d,1); PRAGMA wal_checkpoint", 10+i);
    CHECK_INT( atoi(testText(db, "PRAGMA page_size")), n );
    CHECK_INT( atoi(testText(db, "SELECT slot FROM waldio_stat")), n );
  }
  sqlite3_close(db);
  checkRows("file:b.db?vfs=unix", 10);
}

/* One transaction over a database of waldio's and one of stock SQLite. */
static void attached(const char *zMode){
  sqlite3 *db, *db2;
  testBegin("attached: a stock database with journal_mode=%s", zMode);
  create(1024);
  db = testOpen("file:b.db?vfs=waldio&waldio=force");
  testExec(db, "ATTACH 'file:s.db?vfs=unix' AS s");
  CHECK_STR( testText(db, "PRAGMA s.journal_mode=%s", zMode), zMode );
  testExec(db, "CREATE TABLE s.t(a INTEGER PRIMARY KEY, b)");
  testExec(db, "BEGIN; INSERT INTO main.t VALUES(3,3); INSERT INTO s.t VALUES(3,3);"
               "COMMIT");
  testExec(db, "BEGIN; INSERT INTO main.t VALUES(4,4); INSERT INTO s.t VALUES(4,4);"
               "ROLLBACK");
  CHECK_INT( testTry(db, "BEGIN; INSERT INTO main.t VALUES(5,5);"
                         "INSERT INTO s.t VALUES(3,3)"), SQLITE_CONSTRAINT_PRIMARYKEY );
  testExec(db, "ROLLBACK");
  testBegin("attached: the stock database is locked");
  db2 = testOpen("file:s.db?vfs=unix");
  testExec(db2, "BEGIN IMMEDIATE");
  sqlite3_busy_timeout(db, 10);
  CHECK_INT( testTry(db, "BEGIN; INSERT INTO main.t VALUES(6,6);"
                         "INSERT INTO s.t VALUES(6,6)"), SQLITE_BUSY );
  testExec(db, "ROLLBACK");
  sqlite3_close(db2);
  CHECK_STR( testText(db, "PRAGMA main.waldio_layout"), "W" );
  CHECK_INT( testShell("cp b.db x.db; cp b.db-wal x.db-wal"), 0 );
  sqlite3_close(db);
  checkRows("file:b.db?vfs=unix", 3);
  checkRows("file:s.db?vfs=unix", 1);
  checkRows("file:x.db?vfs=waldio", 3);
}

/* Another thing has the name of the log: nobody waits for it, or follows it. */
static void strange(int bCrashed){
  static const char *const az[][2] = {
    { "a FIFO", "mkfifo b.db-wal" },
    { "a symbolic link", "cp b.db-copy other && ln -s other b.db-wal" },
    { "a directory", "mkdir b.db-wal" },
    { "a device", "mknod b.db-wal c 1 3 2>/dev/null" }
  };
  unsigned i;
  for(i=0; i<sizeof(az)/sizeof(az[0]); i++){
    sqlite3 *db;
    testBegin("the log is %s, %s", az[i][0], bCrashed ? "crashed" : "closed");
    create(4096);
    CHECK_INT( testShell("%s && cp b.db b.db-copy && rm -f b.db-wal b.db-shm",
                         bCrashed ? "mv c.db b.db" : "rm c.db"), 0 );
    if( testShell("%s", az[i][1])!=0 ){
      printf("skip: %s: not allowed\n", testName);
      continue;
    }
    alarm(60);
    db = testOpen("file:b.db?vfs=waldio");
    CHECK( testTry(db, "INSERT INTO t VALUES(9)")!=SQLITE_OK );
    sqlite3_close(db);
    alarm(0);
    if( bCrashed && strcmp(az[i][0], "a FIFO")==0 ){
      CHECK_MESSAGE( SQLITE_CANTOPEN, "is no regular file" );
    }
    zMessage[0] = 0;
    rcMessage = 0;
    CHECK_INT( testShell("cmp -s b.db b.db-copy && rm -rf b.db-wal other"), 0 );
    if( bCrashed ) continue;
    checkRows("file:b.db?vfs=waldio", 2);
    checkRows("file:b.db?vfs=unix", 2);
  }
}

/* ... nor does somebody who may only read what is there. */
static void inFifo(void){
  int i;
  for(i=0; i<2; i++){
    const char *zUri = i ? "file:ro/c.db?vfs=waldio" : "file:ro/b.db?vfs=waldio";
    sqlite3 *db;
    testBegin("the log is a FIFO that cannot be written, %s", i ? "crashed" : "closed");
    alarm(60);
    db = testOpen(zUri);
    CHECK_INT( testTry(db, "SELECT * FROM t"), SQLITE_CANTOPEN );
    sqlite3_close(db);
    alarm(0);
    CHECK_MESSAGE( SQLITE_CANTOPEN, "-wal is no regular file" );
  }
}
static void fifo(void){
  create(1024);
  CHECK_INT( testShell("mkdir ro && cp b.db c.db ro && chmod 666 ro/?.db && "
                       "mkfifo -m 444 ro/b.db-wal ro/c.db-wal && chmod 755 . && "
                       "chmod 777 ro"), 0 );
  asNobody(inFifo);
  CHECK_INT( testShell("rm ro/*-wal; rm -f ro/*-shm"), 0 );
  checkRows("file:ro/b.db?vfs=unix", 2);
  CHECK_INT( testShell("rm -r ro"), 0 );
}

/* The log is replaced just after the lower VFS opened it. */
static int (*xRealOpen)(const char*, int, int);
static int swapping(const char *zName, int flags, int mode){
  int fd = xRealOpen(zName, flags, mode);
  size_t n = strlen(zName);
  if( n>4 && strcmp(&zName[n-4], "-wal")==0 ) CHECK_INT( rename("other", zName), 0 );
  return fd;
}
static void swapped(void){
  sqlite3_vfs *pUnix = sqlite3_vfs_find("unix");
  sqlite3 *db;
  testBegin("the log is replaced while it is opened");
  create(4096);
  CHECK_INT( testShell("rm -f b.db* && cp c.db-wal other"), 0 );
  xRealOpen = (int(*)(const char*, int, int))pUnix->xGetSystemCall(pUnix, "open");
  CHECK_INT( pUnix->xSetSystemCall(pUnix, "open", (sqlite3_syscall_ptr)swapping),
             SQLITE_OK );
  db = testOpen("file:c.db?vfs=waldio");
  CHECK_INT( testTry(db, "SELECT count(*) FROM t"), SQLITE_CANTOPEN );
  CHECK_INT( pUnix->xSetSystemCall(pUnix, "open", 0), SQLITE_OK );
  sqlite3_close(db);
  CHECK_MESSAGE( SQLITE_CANTOPEN, "another one than a moment ago" );
  checkRows("file:c.db?vfs=waldio", 2);
}

/* What is no database, be it encrypted or a picture, is left alone, whatever it has
** where a database has its version. */
static void noDatabase(void){
  static const unsigned char az[] = { 2, 0x56, 0x57 };
  unsigned i;
  create(1024);
  for(i=0; i<sizeof(az); i++){
    unsigned char a[2048];
    sqlite3 *db;
    FILE *f = fopen("x.db", "wb");
    testBegin("no database, byte 19 is %d", az[i]);
    memset(a, 0xee, sizeof(a));
    a[19] = az[i];
    CHECK( f!=0 && fwrite(a, sizeof(a), 1, f)==1 && fclose(f)==0 );
    db = testOpen("file:x.db?vfs=waldio");
    CHECK_INT( testTry(db, "SELECT * FROM t"), SQLITE_NOTADB );
    CHECK_INT( testByte19("x.db"), az[i] );
    sqlite3_close(db);
    CHECK_INT( testByte19("x.db"), az[i] );
  }
}

int main(int argc, char **argv){
  CHECK_INT( sqlite3_config(SQLITE_CONFIG_LOG, onLog, (void*)0), SQLITE_OK );
  if( argc>2 ){
    otherMain(argv[1], strcmp(argv[2], "closed")==0);
    return 0;
  }
  testEnter();
  CHECK_INT( waldio_register(0), SQLITE_OK );
  otherPageSize();
  links();
  moved();
  readOnly();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  twoBuilds();
#endif
  strange(0);
  strange(1);
  fifo();
  swapped();
  lostIndex();
  noDatabase();
  pageSizes();
  attached("delete");
  attached("wal");
  testLeave("bad");
  return 0;
}
