/*
** Stock SQLite and waldio on one database: while the log is waldio's, stock
** SQLite gets an error and changes no byte of database and log; before and
** after, both can use the file.
**
** Stock SQLite is the sqlite3 shell, another build in another process, and the
** VFS "unix" in a child of this one.
*/
#include "test.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* A hash of database and log; the wal-index is not part of the data. */
static unsigned long long filesHash(const char *zDb){
  unsigned long long h = 1469598103934665603ull;
  char zName[300];
  int i, c;
  for(i=0; i<2; i++){
    FILE *f;
    snprintf(zName, sizeof(zName), "%s%s", zDb, i ? "-wal" : "");
    f = fopen(zName, "rb");
    while( f && (c = getc(f))!=EOF ) h = (h ^ (unsigned)c)*1099511628211ull;
    if( f ) fclose(f);
    h = (h ^ 0x100)*1099511628211ull;
  }
  return h;
}

/* Run x in a child process and return its exit status. */
static int child(int (*x)(void*), void *pArg){
  int st = 0;
  pid_t pid;
  fflush(stdout);
  pid = fork();
  CHECK( pid>=0 );
  if( pid==0 ) _exit(x(pArg));
  CHECK( waitpid(pid, &st, 0)==pid );
  return WIFEXITED(st) ? WEXITSTATUS(st) : -1;
}

/* A checkpoint by the C interface reads no page of the database first. */
static int stockCheckpoint(void *pUnused){
  sqlite3 *db = testOpen("file:g.db?vfs=unix");
  int rc = sqlite3_wal_checkpoint_v2(db, 0, SQLITE_CHECKPOINT_TRUNCATE, 0, 0);
  (void)pUnused;
  if( rc==SQLITE_OK ) rc = testTry(db, "SELECT * FROM sqlite_schema");
  sqlite3_close(db);
  return rc==SQLITE_OK ? 0 : 1;
}

static int haveShell(void){
  static int b = -1;
  if( b<0 ){
    b = testShell("command -v sqlite3 >/dev/null")==0;
    if( !b ) printf("skip: the sqlite3 shell, not installed\n");
  }
  return b;
}

/* Nothing stock SQLite can do works or has an effect. */
static void stockRefused(const char *zDb){
  static const char *const azSql[] = {
    "SELECT count(*) FROM t", "INSERT INTO t VALUES(99,99)",
    "PRAGMA wal_checkpoint(TRUNCATE); SELECT * FROM t", "VACUUM",
    "PRAGMA journal_mode=delete; SELECT * FROM t", "DROP TABLE t"
  };
  unsigned long long h = filesHash(zDb);
  unsigned i;
  for(i=0; haveShell() && i<sizeof(azSql)/sizeof(azSql[0]); i++){
    CHECK( testShell("sqlite3 -bail %s '%s' >/dev/null 2>&1", zDb, azSql[i])!=0 );
    CHECK( filesHash(zDb)==h );
  }
  CHECK_INT( child(stockCheckpoint, 0), 1 );
  CHECK( filesHash(zDb)==h );
}

/* Stock SQLite finds the rows 1 to n, and can write. */
static int stockReads(void *pArg){
  sqlite3 *db = testOpen("file:g.db?vfs=unix");
  int n = *(int*)pArg;
  int nGot = atoi(testText(db, "SELECT count(*) FROM t WHERE b=a"));
  int rc = nGot==n && strcmp(testText(db, "PRAGMA integrity_check"), "ok")==0;
  if( rc ) rc = testTry(db, "INSERT INTO t VALUES(%d,%d)", n+1, n+1)==SQLITE_OK;
  if( rc==0 ) fprintf(stderr, "stock SQLite: %d rows of %d, %s\n", nGot, n,
                      sqlite3_errmsg(db));
  sqlite3_close(db);
  return rc ? 0 : 1;
}
static void stockAccepted(int *pn){
  CHECK_INT( child(stockReads, pn), 0 );
  if( haveShell() ){
    CHECK_INT( testShell("test `sqlite3 g.db 'SELECT count(*) FROM t'` = %d",
                         *pn+1), 0 );
  }
  ++*pn;
}

static sqlite3 *create(void){
  sqlite3 *db;
  CHECK_INT( testShell("rm -f g.db*"), 0 );
  db = testOpen("file:g.db?vfs=waldio");
  CHECK_STR( testText(db, "PRAGMA journal_mode=waldio"), "waldio" );
  testExec(db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
  return db;
}
static void addRow(sqlite3 *db, int *pn){
  ++*pn;
  testExec(db, "INSERT INTO t VALUES(%d,%d)", *pn, *pn);
}
static void checkRows(sqlite3 *db, int n){
  CHECK_INT( atoi(testText(db, "SELECT count(*) FROM t WHERE b=a")), n );
  CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
}

static void live(void){
  sqlite3 *db = create();
  int n = 0;
  testBegin("live, page 1 in the log only");
  addRow(db, &n);
  stockRefused("g.db");
  testBegin("live, checkpointed");
  testExec(db, "PRAGMA wal_checkpoint(TRUNCATE)");
  CHECK_INT( testByte19("g.db"), 0x56 );
  stockRefused("g.db");
  testBegin("live, log restarted without page 1");
  addRow(db, &n);
  stockRefused("g.db");
  testBegin("closed");
  sqlite3_close(db);
  CHECK_INT( testByte19("g.db"), 2 );
  CHECK( testSize("g.db-shm")<0 );
  CHECK( testSize("g.db-wal")>0 );
  stockAccepted(&n);
  testBegin("opened again after stock SQLite");
  db = testOpen("file:g.db?vfs=waldio");
  checkRows(db, n);
  addRow(db, &n);
  CHECK_STR( testText(db, "PRAGMA waldio_layout"), "W" );
  stockRefused("g.db");
  testBegin("journal_mode=delete");
  CHECK_STR( testText(db, "PRAGMA journal_mode=delete"), "delete" );
  CHECK_INT( testByte19("g.db"), 1 );
  CHECK( testSize("g.db-wal")<0 );
  stockAccepted(&n);
  testBegin("journal_mode=waldio again");
  CHECK_STR( testText(db, "PRAGMA journal_mode=waldio"), "waldio" );
  addRow(db, &n);
  checkRows(db, n);
  CHECK_INT( testByte19("g.db"), 0x57 );
  stockRefused("g.db");
  sqlite3_close(db);
  stockAccepted(&n);
}

/* No log is ever opened: the close makes the database plain all the same. */
static void unused(void){
  int n = 1;
  sqlite3 *db = create();
  testBegin("journal_mode=waldio and no transaction");
  testExec(db, "INSERT INTO t VALUES(1,1); PRAGMA journal_mode=delete");
  CHECK_STR( testText(db, "PRAGMA journal_mode=waldio"), "waldio" );
  CHECK_INT( testByte19("g.db"), 0x56 );
  CHECK( testSize("g.db-wal")<0 );
  sqlite3_close(db);
  CHECK_INT( testByte19("g.db"), 2 );
  stockAccepted(&n);
}

/* A log that holds nothing may be missing, be it that stock SQLite deleted it. */
static int openAndDie(void *pArg){
  sqlite3 *db = testOpen("file:g.db?vfs=waldio");
  CHECK_INT( testTry(db, "SELECT * FROM t"), SQLITE_OK );
  (void)pArg;
  return 7;
}
static void opened(void){
  int n = 0;
  sqlite3 *db = create();
  addRow(db, &n);
  sqlite3_close(db);
  testBegin("opened, and a crash");
  CHECK( testSize("g.db-wal")>0 );
  CHECK_INT( child(openAndDie, 0), 7 );
  CHECK_INT( testByte19("g.db"), 0x56 );
  db = testOpen("file:g.db?vfs=unix");
  CHECK_INT( testTry(db, "SELECT * FROM t"), SQLITE_NOTADB );
  sqlite3_close(db);
  (void)unlink("g.db-wal");
  db = testOpen("file:g.db?vfs=waldio");
  checkRows(db, n);
  CHECK_INT( testByte19("g.db"), 0x56 );
  addRow(db, &n);
  CHECK_INT( testByte19("g.db"), 0x57 );
  sqlite3_close(db);
  stockAccepted(&n);
}

/* What others do to the log and to byte 19, while commits go on. */
static int needDie(void *pArg){
  const char *zWhat = (const char*)pArg;
  sqlite3 *db = testOpen("file:g.db?vfs=waldio");
  testExec(db, "PRAGMA synchronous=FULL");
  if( strcmp(zWhat, "emptied by another")==0 ){
    sqlite3 *db2 = testOpen("file:g.db?vfs=waldio");
    testExec(db, "INSERT INTO t VALUES(1,1)");
    testExec(db2, "PRAGMA synchronous=OFF; PRAGMA wal_checkpoint(TRUNCATE)");
    CHECK_INT( testByte19("g.db"), 0x56 );
    testExec(db2, "INSERT INTO t VALUES(2,2)");
  }else if( strcmp(zWhat, "copied in part")==0 ){
    sqlite3 *db2 = testOpen("file:g.db?vfs=waldio");
    testExec(db, "INSERT INTO t VALUES(1,1); PRAGMA locking_mode=EXCLUSIVE;"
                 "INSERT INTO t VALUES(2,2); PRAGMA locking_mode=NORMAL;"
                 "SELECT * FROM t");
    testExec(db2, "BEGIN; SELECT * FROM t");
    testExec(db, "INSERT INTO t VALUES(3,3); PRAGMA wal_checkpoint");
  }
  testExec(db, "INSERT INTO t VALUES(8,8); INSERT INTO t VALUES(9,9)");
  return 7;
}
static void needed(void){
  static const char *const azWhat[] = {
    "emptied by another", "copied in part"
  };
  unsigned i;
  for(i=0; i<2; i++){
    sqlite3 *db = create();
    sqlite3_close(db);
    testBegin("a log that is needed, %s", azWhat[i]);
    CHECK_INT( child(needDie, (void*)azWhat[i]), 7 );
    CHECK_INT( testByte19("g.db"), 0x57 );
    CHECK_INT( unlink("g.db-wal"), 0 );
    db = testOpen("file:g.db?vfs=waldio");
    CHECK_INT( testTry(db, "SELECT * FROM t"), SQLITE_CANTOPEN );
    sqlite3_close(db);
    db = testOpen("file:g.db?vfs=waldio&waldio_lost_log=1&mode=ro");
    CHECK_INT( testTry(db, "SELECT * FROM t"), SQLITE_CANTOPEN );
    sqlite3_close(db);
    CHECK( testSize("g.db-wal")<0 );
  }
}

/* A log that stock SQLite began: it may copy it after a crash, and delete it. */
#define INSERT2 "INSERT INTO t VALUES(2,2);"
static int stockLogDie(void *pArg){
  const char **az = (const char**)pArg;
  sqlite3 *db = testOpen("file:g.db?vfs=waldio");
  testExec(db, "PRAGMA synchronous=%s; PRAGMA waldio_sync=%s", az[0], az[1]);
  testExec(db, "%s", az[2]);
  return 7;
}
/* With page 1 in the log or without it: what is copied of it has byte 19, too. */
static void stockBegan(int bPage1){
  static const char *const az[][3] = {
    { "FULL", "full",      INSERT2 },
    { "FULL", "full",      INSERT2 "PRAGMA wal_checkpoint" },
    { "FULL", "full",      INSERT2 "PRAGMA wal_checkpoint(TRUNCATE)" },
    { "FULL", "full",      "PRAGMA wal_checkpoint" },
    { "OFF", "persistent", INSERT2 "PRAGMA wal_checkpoint" },
    { "OFF", "persistent", "PRAGMA wal_checkpoint" },
    { "OFF", "persistent", "PRAGMA wal_checkpoint(TRUNCATE)" },
  };
  unsigned i;
  for(i=0; i<sizeof(az)/sizeof(az[0]); i++){
    int n = strncmp(az[i][2], INSERT2, strlen(INSERT2))==0 ? 2 : 1;
    sqlite3 *db = create();
    sqlite3_close(db);
    testBegin("a log that stock SQLite began, %s, %s, page 1: %d", az[i][0], az[i][2],
              bPage1);
    db = testOpen("file:g.db?vfs=unix");
    CHECK_INT( sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int*)0),
               SQLITE_OK );
    testExec(db, "INSERT INTO t VALUES(1,1)");
    if( bPage1 ) testExec(db, "PRAGMA user_version=3");
    sqlite3_close(db);
    CHECK( testSize("g.db-wal")>0 );
    CHECK_INT( child(stockLogDie, (void*)az[i]), 7 );
    db = testOpen("file:g.db?vfs=unix");
    testTry(db, "SELECT * FROM t");
    sqlite3_close(db);
    db = testOpen("file:g.db?vfs=waldio");
    checkRows(db, n);
    sqlite3_close(db);
    stockAccepted(&n);
  }
}

/* Commit rows and die. */
static int commitAndDie(void *pArg){
  int *pn = (int*)pArg;
  sqlite3 *db = testOpen("file:g.db?vfs=waldio");
  int n = pn[0];
  while( n<pn[1] ) addRow(db, &n);
  testExec(db, "BEGIN; INSERT INTO t VALUES(1000,0)");
  return 7;
}
static void crashed(void){
  int an[2] = {0, 5};
  int n;
  sqlite3 *db = create();
  testBegin("crashed");
  sqlite3_close(db);
  CHECK_INT( child(commitAndDie, an), 7 );
  stockRefused("g.db");
  testBegin("crashed, wal-index lost");
  CHECK_INT( unlink("g.db-shm"), 0 );
  stockRefused("g.db");
  testBegin("crashed twice");
  an[0] = 5; an[1] = 9;
  CHECK_INT( child(commitAndDie, an), 7 );
  stockRefused("g.db");
  db = testOpen("file:g.db?vfs=waldio");
  checkRows(db, 9);
  sqlite3_close(db);
  n = 9;
  stockAccepted(&n);
}

/*
** How a program may end, of which the manual says that the guards stay, and that they are
** gone when waldio has opened and closed the database once.
*/
static const char *const azEnd[] = {
  "exit() without a close", "SIGTERM", "a disk that is full at the close",
  "a connection that was opened read-only closes last", "NO_CKPT_ON_CLOSE",
  "a connection that was opened read-only closes first"
};
#define END_EXIT       0
#define END_SIGTERM    1
#define END_FULL       2
#define END_READONLY   3
#define END_NOCKPT     4
#define END_CLOSED     5          /* No guard stays */

static int commitAndEnd(void *pArg){
  int eEnd = *(int*)pArg;
  int n = 0;
  struct rlimit limit = { 8192, 8192 };
  sqlite3 *db = testOpen("file:g.db?vfs=waldio"), *db2;
  addRow(db, &n);
  testExec(db, "CREATE TABLE u AS SELECT randomblob(100000)");
  db2 = testOpen("file:g.db?vfs=waldio&mode=ro");
  checkRows(db2, n);
  if( eEnd==END_EXIT ) exit(7);
  if( eEnd==END_SIGTERM ) raise(SIGTERM);
  if( eEnd==END_FULL ){
    signal(SIGXFSZ, SIG_IGN);
    CHECK_INT( setrlimit(RLIMIT_FSIZE, &limit), 0 );
  }
  if( eEnd==END_NOCKPT ){
    CHECK_INT( sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, 0), SQLITE_OK );
  }
  CHECK_INT( sqlite3_close(eEnd==END_READONLY ? db : db2), SQLITE_OK );
  CHECK_INT( sqlite3_close(eEnd==END_READONLY ? db2 : db), SQLITE_OK );
  return 7;
}
static void ended(int eEnd){
  sqlite3 *db = create();
  int n = 1;
  testBegin("%s", azEnd[eEnd]);
  sqlite3_close(db);
  CHECK_INT( child(commitAndEnd, &eEnd), eEnd==END_SIGTERM ? -1 : 7 );
  if( eEnd!=END_CLOSED ){
    stockRefused("g.db");
    db = testOpen("file:g.db?vfs=waldio");
    checkRows(db, n);
    sqlite3_close(db);
  }
  stockAccepted(&n);
}

/* Stock SQLite opens a live database in vain, and closes it after the waldio
** process is gone: now it is alone, and must not checkpoint. */
static int stockOutlives(void *pArg){
  int *aPipe = (int*)pArg;
  char c = 0;
  sqlite3 *db = testOpen("file:g.db?vfs=unix");
  int rc = testTry(db, "SELECT * FROM t");
  if( write(aPipe[1], &c, 1)!=1 || read(aPipe[2], &c, 1)!=1 ) return 2;
  if( sqlite3_wal_checkpoint_v2(db, 0, SQLITE_CHECKPOINT_PASSIVE, 0, 0)==0 ) rc = 0;
  sqlite3_close(db);
  return rc==SQLITE_OK ? 1 : 0;
}
static int waldioDies(void *pArg){
  int *aPipe = (int*)pArg;
  int n = 0;
  int i;
  char c = 0;
  pid_t pid;
  sqlite3 *db = testOpen("file:g.db?vfs=waldio");
  for(i=0; i<3; i++) addRow(db, &n);
  pid = fork();
  if( pid==0 ){
    execl("/proc/self/exe", "test-guard", "outlive", (char*)0);
    _exit(9);
  }
  if( read(aPipe[0], &c, 1)!=1 ) return 2;
  for(i=0; i<3; i++) addRow(db, &n);
  return 7;
}
static void outlived(void){
  int aPipe[4];
  unsigned long long h;
  char c = 0;
  sqlite3 *db = create();
  testBegin("stock SQLite closes after a crash of waldio");
  sqlite3_close(db);
  CHECK( pipe(aPipe)==0 && pipe(aPipe+2)==0 );
  /* The descriptors keep their numbers across exec. */
  CHECK( dup2(aPipe[1], 101)==101 && dup2(aPipe[2], 102)==102 );
  CHECK_INT( child(waldioDies, aPipe), 7 );
  h = filesHash("g.db");
  CHECK( write(aPipe[3], &c, 1)==1 );
  close(aPipe[1]);
  close(101);
  while( read(aPipe[0], &c, 1)==1 ){}   /* Until the stock process ends */
  CHECK( filesHash("g.db")==h );
  db = testOpen("file:g.db?vfs=waldio");
  checkRows(db, 6);
  sqlite3_close(db);
}

/* The next flushes of files fail, by whichever library. */
static int bFlushFails;
int fdatasync(int fd){
  if( bFlushFails ){
    errno = EIO;
    return -1;
  }
  return (int)syscall(SYS_fdatasync, fd);
}

/* A connection of stock SQLite that was refused stays open, in another process or in this
** one.  It does not keep the guards: with waldio's last close any SQLite reads the
** database again, and that connection, too. */
static int stockStays(int *aPipe){
  char c = 0;
  sqlite3 *db = testOpen("file:g.db?vfs=unix");
  alarm(60);
  if( testTry(db, "SELECT * FROM t")==SQLITE_OK ) return 1;
  if( write(aPipe[1], &c, 1)!=1 || read(aPipe[2], &c, 1)!=1 ) return 2;
  if( c ) CHECK_INT( atoi(testText(db, "SELECT count(*) FROM t WHERE b=a")), c );
  if( c ) testExec(db, "UPDATE t SET b=a");
  sqlite3_close(db);
  return 0;
}
static void refusedStays(int bInside, int bPoison, int bRecycle){
  int aPipe[4];
  int st = 0, n = 0;
  char c = 0;
  pid_t pid = 0;
  sqlite3 *db = create(), *pStock = 0, *db2;
  testBegin("a refused connection stays open%s%s%s", bInside ? ", in this process" : "",
            bPoison ? ", and the log is poisoned" : "", bRecycle ? "" : ", no recycling");
  testExec(db, "PRAGMA synchronous=FULL; PRAGMA waldio_recycle=%d", bRecycle);
  addRow(db, &n);
  addRow(db, &n);
  CHECK( pipe(aPipe)==0 && pipe(aPipe+2)==0 );
  if( bInside ){
    pStock = testOpen("file:g.db?vfs=unix");
    CHECK( testTry(pStock, "SELECT * FROM t")!=SQLITE_OK );
  }else{
    CHECK( dup2(aPipe[1], 101)==101 && dup2(aPipe[2], 102)==102 );
    pid = fork();
    if( pid==0 ){
      execl("/proc/self/exe", "test-guard", "stay", (char*)0);
      _exit(9);
    }
    CHECK( read(aPipe[0], &c, 1)==1 );
  }
  if( bPoison ){
    bFlushFails = 1;
    CHECK( testTry(db, "PRAGMA waldio_sync='group'; PRAGMA waldio_group_frames=1;"
                       "INSERT INTO t VALUES(100,0)")!=SQLITE_OK );
    bFlushFails = 0;
    CHECK( testTry(db, "INSERT INTO t VALUES(101,0)")!=SQLITE_OK );
    sqlite3_close(db);
    db = testOpen("file:g.db?vfs=waldio");
    testExec(db, "DELETE FROM t WHERE a>=100");
  }
  addRow(db, &n);
  db2 = testOpen("file:g.db?vfs=waldio");
  addRow(db2, &n);
  sqlite3_close(db);
  addRow(db2, &n);
  stockRefused("g.db");
  sqlite3_close(db2);
  CHECK_INT( testByte19("g.db"), 2 );
  stockAccepted(&n);
  c = (char)n;
  if( bInside ){
    CHECK_INT( atoi(testText(pStock, "SELECT count(*) FROM t WHERE b=a")), n );
    sqlite3_close(pStock);
  }else{
    CHECK( write(aPipe[3], &c, 1)==1 );
    CHECK( waitpid(pid, &st, 0)==pid );
    CHECK_INT( st, 0 );
  }
  db = testOpen("file:g.db?vfs=waldio");
  checkRows(db, n);
  addRow(db, &n);
  CHECK_INT( testByte19("g.db"), 0x57 );
  sqlite3_close(db);
  stockAccepted(&n);
  for(st=0; st<4; st++) close(aPipe[st]);
  close(101);
  close(102);
}

/* It stays open while several processes of waldio open, write and close. */
static int comeAndGo(void *pArg){
  int i;
  for(i=0; i<20; i++){
    sqlite3 *db = testOpen("file:g.db?vfs=waldio");
    testExec(db, "INSERT INTO t(b) VALUES(%d)", *(int*)pArg);
    sqlite3_close(db);
  }
  return 0;
}
static void refusedAmongMany(void){
  sqlite3 *db = create(), *pStock;
  pid_t aPid[3];
  int i, st;
  testBegin("a refused connection, and processes that come and go");
  testExec(db, "INSERT INTO t(b) VALUES(9)");
  pStock = testOpen("file:g.db?vfs=unix");
  CHECK( testTry(pStock, "SELECT * FROM t")!=SQLITE_OK );
  for(i=0; i<3; i++){
    aPid[i] = fork();
    if( aPid[i]==0 ) _exit(comeAndGo(&i));
  }
  sqlite3_close(db);
  for(i=0; i<3; i++){
    CHECK( waitpid(aPid[i], &st, 0)==aPid[i] );
    CHECK_INT( st, 0 );
  }
  CHECK_INT( testByte19("g.db"), 2 );
  CHECK_STR( testText(pStock, "SELECT count(*) FROM t"), "61" );
  CHECK_STR( testText(pStock, "PRAGMA integrity_check"), "ok" );
  sqlite3_close(pStock);
}

/* Another process of stock SQLite has the database open, idle. */
static int stockIdle(void *pArg){
  int *aPipe = (int*)pArg;
  char c = 0;
  sqlite3 *db = testOpen("file:g.db?vfs=unix");
  testExec(db, "PRAGMA wal_autocheckpoint=0; INSERT INTO t VALUES(1,1)");
  if( write(aPipe[1], &c, 1)!=1 || read(aPipe[2], &c, 1)!=1 ) return 2;
  CHECK_INT( atoi(testText(db, "SELECT count(*) FROM t")), 2 );
  sqlite3_close(db);
  return 0;
}
static void shared(void){
  int aPipe[4];
  int st, n = 2;
  char c = 0;
  pid_t pid;
  sqlite3 *db = create();
  testBegin("stock SQLite was there first");
  sqlite3_close(db);
  CHECK( pipe(aPipe)==0 && pipe(aPipe+2)==0 );
  pid = fork();
  if( pid==0 ) _exit(stockIdle(aPipe));
  CHECK( read(aPipe[0], &c, 1)==1 );
  db = testOpen("file:g.db?vfs=waldio");
  testExec(db, "INSERT INTO t VALUES(2,2)");
  CHECK_STR( testText(db, "PRAGMA waldio_layout"), "stock" );
  CHECK_STR( testText(db, "SELECT reason FROM waldio_stat"),
             "another connection uses the stock log" );
  CHECK( strncmp(testText(db, "PRAGMA journal_mode=waldio"), "error: ", 7)==0 );
  CHECK_INT( testByte19("g.db"), 2 );
  CHECK( write(aPipe[3], &c, 1)==1 );
  CHECK( waitpid(pid, &st, 0)==pid );
  CHECK_INT( st, 0 );
  testBegin("stock SQLite left");
  CHECK_STR( testText(db, "PRAGMA journal_mode=waldio"), "waldio" );
  addRow(db, &n);
  stockRefused("g.db");
  sqlite3_close(db);
  stockAccepted(&n);
}

/* A crashed stock database is recovered, its log then becomes waldio's. */
static int stockCrash(void *pUnused){
  sqlite3 *db = testOpen("file:g.db?vfs=unix");
  (void)pUnused;
  testExec(db, "INSERT INTO t VALUES(1,1); INSERT INTO t VALUES(2,2)");
  return 7;
}
static void stockLog(void){
  int n = 2;
  sqlite3 *db = create();
  testBegin("stock SQLite crashed in a kept log");
  sqlite3_close(db);
  CHECK_INT( child(stockCrash, 0), 7 );
  db = testOpen("file:g.db?vfs=waldio");
  checkRows(db, n);
  CHECK_STR( testText(db, "PRAGMA waldio_layout"), "stock" );
  addRow(db, &n);
  testExec(db, "PRAGMA wal_checkpoint(RESTART)");
  addRow(db, &n);
  CHECK_STR( testText(db, "PRAGMA waldio_layout"), "W" );
  stockRefused("g.db");
  sqlite3_close(db);
  stockAccepted(&n);
}

/* journal_mode without a schema changes attached databases too. */
static void attached(void){
  sqlite3 *db = create();
  testBegin("attached");
  CHECK_INT( testShell("rm -f h.db*"), 0 );
  testExec(db, "ATTACH 'file:h.db?vfs=waldio' AS h");
  CHECK_STR( testText(db, "PRAGMA h.journal_mode=waldio"), "waldio" );
  testExec(db, "CREATE TABLE h.u(a); INSERT INTO u VALUES(1)");
  CHECK_INT( testByte19("h.db"), 0x57 );
  CHECK_STR( testText(db, "SELECT count(*) FROM waldio_stat"), "2" );
  CHECK_STR( testText(db, "PRAGMA h.waldio_layout"), "T" );
  testExec(db, "PRAGMA journal_mode=delete");
  CHECK_INT( testByte19("h.db"), 1 );
  CHECK( testSize("h.db-wal")<0 );
  CHECK_INT( testByte19("g.db"), 1 );
  CHECK( testSize("g.db-wal")<0 );
  sqlite3_close(db);
}

int main(int argc, char **argv){
  int i;
  CHECK_INT( waldio_register(0), SQLITE_OK );
  if( argc>1 && strcmp(argv[1], "outlive")==0 ){
    int aPipe[4] = {-1, 101, 102, -1};
    return stockOutlives(aPipe);
  }
  if( argc>1 && strcmp(argv[1], "stay")==0 ){
    int aPipe[4] = {-1, 101, 102, -1};
    return stockStays(aPipe);
  }
  testEnter();
  for(i=END_EXIT; i<=END_CLOSED; i++) ended(i);
  live();
  unused();
  opened();
  needed();
  stockBegan(0);
  stockBegan(1);
  crashed();
  outlived();
  refusedStays(0, 0, 1);
  refusedStays(1, 0, 1);
  refusedStays(0, 1, 1);
  refusedStays(1, 1, 1);
  refusedStays(0, 0, 0);
  refusedAmongMany();
  shared();
  stockLog();
  attached();
  testLeave("guard");
  return 0;
}
