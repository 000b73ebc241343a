/*
** Several connections at once: threads, processes, processes killed at any
** moment.  Every row that was acknowledged is there, exactly once.
**
** The processes use different layouts, so each restart of the log may change
** its layout under the others.
*/
#define _GNU_SOURCE
#include "test.h"
#include <sys/resource.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>

#define NTHREAD 4
#define NPROC   4

static const char *zSync = "synchronous=FULL";

static sqlite3 *openWorker(int iWho){
  static const int aPad[] = { 0, 4096, 512, 8192 };
  sqlite3 *db = testOpen("file:p.db?vfs=waldio");
  sqlite3_busy_timeout(db, 60000);
  testExec(db, "PRAGMA %s; PRAGMA wal_autocheckpoint=%d; "
               "PRAGMA waldio_padding=%d", zSync, 20+10*iWho, aPad[iWho%4]);
  return db;
}
static void addRow(sqlite3 *db, int iWho, int i){
  testExec(db, "BEGIN IMMEDIATE; INSERT INTO t VALUES(%d,%d,hex(zeroblob(%d)));"
               "UPDATE n SET n=n+1; COMMIT", iWho, i, i%50*20);
}
static void create(void){
  sqlite3 *db;
  CHECK_INT( testShell("rm -f p.db*"), 0 );
  db = testOpen("file:p.db?vfs=waldio");
  testExec(db, "PRAGMA page_size=1024; PRAGMA journal_mode=wal;"
               "CREATE TABLE t(w, i, b, PRIMARY KEY(w,i));"
               "CREATE TABLE n(n); INSERT INTO n VALUES(0)");
  sqlite3_close(db);
}
static void whole(sqlite3 *db){
  CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
  CHECK_STR( testText(db, "SELECT (SELECT n FROM n)=(SELECT count(*) FROM t)"),
             "1" );
  CHECK_STR( testText(db, "SELECT count(*) FROM t WHERE"
                          " b<>hex(zeroblob(i%%50*20))"), "0" );
}

static void *threadMain(void *pArg){
  int iWho = (int)(long)pArg;
  int i;
  sqlite3 *db = openWorker(iWho);
  for(i=1; i<=60; i++){
    addRow(db, iWho, i);
    if( i%20==0 ) whole(db);
  }
  sqlite3_close(db);
  return 0;
}
static void threads(void){
  pthread_t a[NTHREAD];
  sqlite3 *db;
  int i;
  testBegin("%d threads, %s", NTHREAD, zSync);
  create();
  for(i=0; i<NTHREAD; i++){
    CHECK_INT( pthread_create(&a[i], 0, threadMain, (void*)(long)i), 0 );
  }
  for(i=0; i<NTHREAD; i++) CHECK_INT( pthread_join(a[i], 0), 0 );
  db = testOpen("file:p.db?vfs=unix");
  whole(db);
  CHECK_INT( atoi(testText(db, "SELECT n FROM n")), NTHREAD*60 );
  sqlite3_close(db);
}

/* Add rows from iFrom on, and tell each when it is committed. */
static void worker(int iWho, int iFrom, int fd){
  sqlite3 *db = openWorker(iWho);
  int i;
  for(i=iFrom; ; i++){
    addRow(db, iWho, i);
    if( write(fd, &i, sizeof(i))!=sizeof(i) ) _exit(0);
    if( i%64==0 ) whole(db);
  }
}

typedef struct Proc Proc;
struct Proc {
  pid_t pid;
  int fd;
  int iAcked;                     /* Last row acknowledged */
  int iTried;                     /* First row of the next life */
};

static void spawn(Proc *p, int iWho){
  int aPipe[2];
  CHECK( pipe(aPipe)==0 );
  p->pid = fork();
  CHECK( p->pid>=0 );
  if( p->pid==0 ){
    close(aPipe[0]);
    worker(iWho, p->iTried, aPipe[1]);
  }
  close(aPipe[1]);
  p->fd = aPipe[0];
}
/* Read acknowledgements; 0 at the end of the process. */
static int hear(Proc *p){
  int i = 0;
  ssize_t n = read(p->fd, &i, sizeof(i));
  if( n!=sizeof(i) ) return 0;
  CHECK_INT( i, p->iAcked<p->iTried ? p->iTried : p->iAcked+1 );
  p->iAcked = i;
  return 1;
}
/* Kill a process.  The row it was about to tell may be there or not; its next
** life begins behind. */
static void reap(Proc *p, sqlite3 *db, int iWho){
  int st;
  CHECK_INT( kill(p->pid, SIGKILL), 0 );
  while( hear(p) ){}
  close(p->fd);
  CHECK( waitpid(p->pid, &st, 0)==p->pid );
  if( WIFEXITED(st) ) testFail(__FILE__, __LINE__, "worker ended", "");
  if( db ){
    int n = atoi(testText(db, "SELECT ifnull(max(i),0) FROM t WHERE w=%d", iWho));
    CHECK( n>=p->iAcked );
    CHECK( n<=p->iAcked+1 || p->iAcked<p->iTried );
    p->iAcked = n;
    p->iTried = n+1;
  }
}

static void killed(int nKill, int bOther){
  Proc a[NPROC];
  sqlite3 *db = 0;
  unsigned r = 12345;
  int i, nAck = 0;
  testBegin("%d processes killed at random, %s, %s", NPROC, zSync,
            bOther ? "one stays" : "none stays");
  create();
  memset(a, 0, sizeof(a));
  if( bOther ) db = testOpen("file:p.db?vfs=waldio");
  for(i=0; i<NPROC; i++){
    a[i].iTried = 1;
    spawn(&a[i], i);
  }
  while( nKill>0 ){
    struct pollfd fds[NPROC];
    for(i=0; i<NPROC; i++){
      fds[i].fd = a[i].fd;
      fds[i].events = POLLIN;
    }
    CHECK( poll(fds, NPROC, 60000)>0 );
    for(i=0; i<NPROC; i++){
      if( fds[i].revents==0 ) continue;
      if( !hear(&a[i]) ) testFail(__FILE__, __LINE__, "worker ended", "");
      r = r*1664525u + 1013904223u;
      if( ++nAck%20==0 ){
        int j = (int)(r>>16)%NPROC;
        sqlite3 *pCheck = db ? db : testOpen("file:p.db?vfs=waldio");
        reap(&a[j], pCheck, j);
        if( db==0 ) sqlite3_close(pCheck);
        spawn(&a[j], j);
        nKill--;
        break;
      }
    }
  }
  for(i=0; i<NPROC; i++) reap(&a[i], 0, i);
  if( db ) sqlite3_close(db);
  db = testOpen("file:p.db?vfs=waldio");
  whole(db);
  for(i=0; i<NPROC; i++){
    CHECK( atoi(testText(db, "SELECT max(i) FROM t WHERE w=%d", i))>=a[i].iAcked );
    CHECK_STR( testText(db, "SELECT max(i)=count(*) FROM t WHERE w=%d", i), "1" );
  }
  sqlite3_close(db);
}

/* Writers without a pause, and readers that come and go: the log is restarted
** all the same; not while a reader of it stays, but then. */
static int bWritersEnd;
static int nBusy;                 /* What the writers added */
static char zNormal[] = "PRAGMA synchronous=NORMAL";
static void *busyMain(void *pArg){
  sqlite3 *db = testOpen("file:p.db?vfs=waldio");
  sqlite3_busy_timeout(db, 60000);
  testExec(db, "%s", (char*)pArg);
  while( !__atomic_load_n(&bWritersEnd, __ATOMIC_RELAXED) ){
    testExec(db, "UPDATE n SET n=n+1");
    __atomic_fetch_add(&nBusy, 1, __ATOMIC_RELAXED);
  }
  sqlite3_close(db);
  return 0;
}
static void *readerMain(void *pArg){
  sqlite3 *db = testOpen("file:p.db?vfs=waldio");
  (void)pArg;
  sqlite3_busy_timeout(db, 60000);
  while( !__atomic_load_n(&bWritersEnd, __ATOMIC_RELAXED) ){
    testExec(db, "BEGIN; SELECT * FROM n");
    usleep(300);
    testExec(db, "COMMIT");
  }
  sqlite3_close(db);
  return 0;
}
/* How often the log was restarted, from its header. */
static int restartsOf(int fd){
  unsigned char a[16];
  CHECK( pread(fd, a, sizeof(a), 0)==(ssize_t)sizeof(a) );
  return a[12]<<24 | a[13]<<16 | a[14]<<8 | a[15];
}
static int restarts(void){
  int fd = open("p.db-wal", O_RDONLY);
  int n = fd>=0 ? restartsOf(fd) : -1;
  CHECK( n>=0 );
  close(fd);
  return n;
}
static void bounded(int nReader, int bStays){
  pthread_t a[NTHREAD], aReader[4];
  sqlite3 *db;
  int i, n;
  testBegin("%d writers without a pause, %d readers%s", NTHREAD, nReader,
            bStays ? ", one that stays" : "");
  create();
  bWritersEnd = nBusy = 0;
  db = testOpen("file:p.db?vfs=waldio");
  testExec(db, "UPDATE n SET n=0");
  n = restarts();
  if( bStays ) testExec(db, "BEGIN; SELECT * FROM n");
  for(i=0; i<nReader; i++){
    CHECK_INT( pthread_create(&aReader[i], 0, readerMain, 0), 0 );
  }
  for(i=0; i<NTHREAD; i++){
    CHECK_INT( pthread_create(&a[i], 0, busyMain, zNormal), 0 );
  }
  if( bStays ){
    while( __atomic_load_n(&nBusy, __ATOMIC_RELAXED)<6000 ) usleep(1000);
    CHECK_INT( restarts(), n );
    CHECK_STR( testText(db, "SELECT n FROM n"), "0" );
    testExec(db, "COMMIT");
  }
  while( restarts()<n+3 ){
#ifndef __SANITIZE_THREAD__       /* It has threads of its own */
    CHECK_INT( testThreads(), 1+NTHREAD+nReader );
#endif
    usleep(1000);
  }
  __atomic_store_n(&bWritersEnd, 1, __ATOMIC_RELAXED);
  for(i=0; i<NTHREAD; i++) CHECK_INT( pthread_join(a[i], 0), 0 );
  for(i=0; i<nReader; i++) CHECK_INT( pthread_join(aReader[i], 0), 0 );
  CHECK( atoi(testText(db, "SELECT checkpoints FROM waldio_stat"))>0 );
  CHECK_INT( atoi(testText(db, "SELECT n FROM n")), nBusy );
  CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
  sqlite3_close(db);
}

/* Two connections to a new database: the first has read what the other, which does
** not checkpoint by itself, committed. */
static sqlite3 *openTwo(sqlite3 **pDb2){
  sqlite3 *db;
  create();
  db = testOpen("file:p.db?vfs=waldio");
  *pDb2 = testOpen("file:p.db?vfs=waldio");
  testExec(*pDb2, "PRAGMA wal_autocheckpoint=0; UPDATE n SET n=1");
  CHECK_STR( testText(db, "SELECT n FROM n"), "1" );
  return db;
}

/* SQLite's WAL-reset bug: a checkpoint has read the wal-index, finds there that it
** changed, and calls xUnfetch; then another connection restarts the log. */
static sqlite3 *dbRestarts;
static int (*xUnfetchBelow)(sqlite3_file*, sqlite3_int64, void*);
static int restartThenUnfetch(sqlite3_file *p, sqlite3_int64 iOfst, void *pPage){
  sqlite3 *db = dbRestarts;
  dbRestarts = 0;
  if( db ) testExec(db, "INSERT INTO t VALUES(2,0,'')");
  return xUnfetchBelow(p, iOfst, pPage);
}
static void restartedMeanwhile(void){
  sqlite3_io_methods methods;
  sqlite3_file *pFile = 0;
  sqlite3 *db, *db2;
  int i, n;
  testBegin("a log that is restarted while a checkpoint begins");
  db = openTwo(&db2);
  for(i=0; i<40; i++) testExec(db2, "INSERT INTO t VALUES(1,%d,'')", i);
  testExec(db2, "PRAGMA wal_checkpoint");
  n = restarts();
  CHECK_INT( sqlite3_file_control(db, 0, SQLITE_FCNTL_FILE_POINTER, &pFile),
             SQLITE_OK );
  methods = *pFile->pMethods;
  xUnfetchBelow = methods.xUnfetch;
  methods.xUnfetch = restartThenUnfetch;
  pFile->pMethods = &methods;
  dbRestarts = db2;
  testExec(db, "PRAGMA wal_checkpoint");
  CHECK( dbRestarts==0 );
  CHECK_INT( restarts(), n+1 );
  /* Fewer frames than it would have taken for copied */
  for(i=1; i<8; i++) testExec(db2, "INSERT INTO t VALUES(2,%d,'')", i);
  sqlite3_close(db2);
  sqlite3_close(db);
  db = testOpen("file:p.db?vfs=waldio");
  CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
  CHECK_STR( testText(db, "SELECT count(*) FROM t"), "48" );
  sqlite3_close(db);
}

/* ... and one that waits for the WRITE lock reads the wal-index when it has it: it
** is not late. */
static int commitWhenBusy(void *pArg, int n){
  if( n==0 ) testExec((sqlite3*)pArg, "INSERT INTO t VALUES(3,0,''); COMMIT");
  return n<20;
}
static void restartedBefore(void){
  sqlite3 *db, *db2;
  int n, nLog = -1, nDone = -1;
  testBegin("a log that is restarted while a checkpoint waits for a writer");
  db = openTwo(&db2);
  testExec(db2, "PRAGMA wal_checkpoint; BEGIN IMMEDIATE");
  n = restarts();
  sqlite3_busy_handler(db, commitWhenBusy, db2);
  CHECK_INT( sqlite3_wal_checkpoint_v2(db, 0, SQLITE_CHECKPOINT_RESTART, &nLog,
                                       &nDone), SQLITE_OK );
  CHECK_INT( restarts(), n+1 );
  CHECK( nLog>0 && nDone==nLog );
  sqlite3_close(db2);
  sqlite3_close(db);
}

/* A connection that is alone checkpoints as in stock SQLite. */
static void alone(void){
  sqlite3 *db;
  int i;
  create();
  testBegin("checkpoints of a single connection");
  db = testOpen("file:p.db?vfs=waldio");
  testExec(db, "PRAGMA wal_autocheckpoint=5");
  for(i=0; i<100; i++) testExec(db, "UPDATE n SET n=n+1");
  CHECK_STR( testText(db, "SELECT checkpoints FROM waldio_stat"), "0" );
  CHECK( restarts()>10 );
  sqlite3_close(db);
}

/* A process that can open the database no more, by its name or at all: the log is
** restarted all the same. */
static void *manyMain(void *pArg){
  while( !__atomic_load_n(&bWritersEnd, __ATOMIC_RELAXED) ){
    testExec(pArg, "UPDATE n SET n=n+1");
    __atomic_fetch_add(&nBusy, 1, __ATOMIC_RELAXED);
  }
  return 0;
}
static void shutIn(const char *zHow){
  pthread_t a[NTHREAD];
  sqlite3 *adb[NTHREAD];
  int i, n, fd, st;
  pid_t pid;
  testBegin("checkpoints after %s", zHow);
  create();
  pid = fork();
  CHECK( pid>=0 );
  if( pid==0 ){
    alarm(120);                   /* Ends the child if the log is never restarted */
    bWritersEnd = nBusy = 0;
    for(i=0; i<NTHREAD; i++){
      adb[i] = testOpen("file:p.db?vfs=waldio");
      sqlite3_busy_timeout(adb[i], 60000);
      testExec(adb[i], "PRAGMA wal_autocheckpoint=50; PRAGMA synchronous=NORMAL;"
                       "UPDATE n SET n=0");
    }
    fd = open("p.db-wal", O_RDONLY);
    n = restartsOf(fd);
    if( strcmp(zHow, "chroot")==0 ){
      CHECK_INT( mkdir("empty", 0700), 0 );
      CHECK_INT( chroot("empty"), 0 );
    }else if( strcmp(zHow, "setuid")==0 ){
      CHECK_INT( setuid(65534), 0 );
    }else if( strcmp(zHow, "rename")==0 ){
      CHECK_INT( rename("p.db", "q.db"), 0 );
    }else{
      struct rlimit none = { 0, 0 };
      CHECK_INT( setrlimit(RLIMIT_NOFILE, &none), 0 );
    }
    for(i=0; i<NTHREAD; i++){
      CHECK_INT( pthread_create(&a[i], 0, manyMain, adb[i]), 0 );
    }
    while( restartsOf(fd)<n+4 ) usleep(1000);
    __atomic_store_n(&bWritersEnd, 1, __ATOMIC_RELAXED);
    for(i=0; i<NTHREAD; i++) CHECK_INT( pthread_join(a[i], 0), 0 );
    CHECK_INT( atoi(testText(adb[0], "SELECT n FROM n")), nBusy );
    for(i=0; i<NTHREAD; i++) sqlite3_close(adb[i]);
    _exit(0);
  }
  CHECK( waitpid(pid, &st, 0)==pid );
  CHECK_INT( st, 0 );
  if( strcmp(zHow, "rename")==0 ) CHECK_INT( rename("q.db", "p.db"), 0 );
  if( strcmp(zHow, "chroot")==0 ) CHECK_INT( rmdir("empty"), 0 );
  adb[0] = testOpen("file:p.db?vfs=waldio");
  CHECK_STR( testText(adb[0], "PRAGMA integrity_check"), "ok" );
  sqlite3_close(adb[0]);
}
static void shutInAll(void){
  static const char *const azHow[] = { "chroot", "setuid", "rename", "descriptors" };
  unsigned i;
  for(i=0; i<4; i++){
    if( i<2 && geteuid()!=0 ){
      printf("skipped without root: %s\n", azHow[i]);
      continue;
    }
    shutIn(azHow[i]);
  }
}

/* A child of a fork() opens another database, by stock SQLite and by waldio, whatever
** the thread of waldio's that was asked for does just then, and may close the
** connection of its parent. */
static void forks(void){
  sqlite3 *db;
  int i, j, st;
#ifdef __SANITIZE_ADDRESS__
  /* Its allocator, unlike libc's, is not held during a fork(): where a thread begins
  ** or ends just then, the child hangs in its first malloc(). */
  printf("skipped under AddressSanitizer: fork() beside a thread\n");
  return;
#endif
  create();
  testBegin("a fork() while a thread flushes");
  db = testOpen("file:p.db?vfs=waldio");
  testExec(db, "PRAGMA waldio_sync='group'; PRAGMA waldio_group_ms=1;"
               "PRAGMA waldio_group_frames=1000");
  for(i=0; i<400; i++){
    pid_t pid;
    for(j=0; j<3; j++) testExec(db, "UPDATE n SET n=n+1");
#ifndef __SANITIZE_THREAD__       /* It has threads of its own */
    CHECK_INT( testThreads(), 2 );
#endif
    pid = fork();
    CHECK( pid>=0 );
    if( pid==0 ){
      sqlite3 *db2;
      alarm(60);                  /* Ends a child that hangs */
      db2 = testOpen(i%2 ? "file:other.db?vfs=unix" : "file:other.db?vfs=waldio");
#ifndef __SANITIZE_THREAD__       /* It lets no such child have threads */
      testExec(db2, "PRAGMA waldio_sync='group'");
#endif
      testExec(db2, "PRAGMA journal_mode=wal; CREATE TABLE IF NOT EXISTS t(a);"
                    "INSERT INTO t VALUES(1)");
      sqlite3_close(db2);
      sqlite3_close(db);
      _exit(0);
    }
    CHECK( waitpid(pid, &st, 0)==pid );
    CHECK_INT( st, 0 );
  }
  CHECK_STR( testText(db, "SELECT n FROM n"), "1200" );
  sqlite3_close(db);
  CHECK_INT( testShell("rm -f other.db*"), 0 );
}

/* Many threads open a clean database at once: all find it to be waldio's.  Then
** they close it at once, with a log or without, and it is stock SQLite's again. */
static void *openMain(void *pArg){
  sqlite3 *db = testOpen("file:p.db?vfs=waldio");
  (void)pArg;
  testExec(db, "SELECT * FROM t");
  return db;
}
static void *closeMain(void *pArg){
  sqlite3_close(pArg);
  return 0;
}
static void together(void){
  pthread_t a[8];
  int i, j;
  create();
  for(j=0; j<20; j++){
    sqlite3 *adb[8];
    testBegin("8 threads open a clean database, round %d", j);
    for(i=0; i<8; i++) CHECK_INT( pthread_create(&a[i], 0, openMain, 0), 0 );
    for(i=0; i<8; i++){
      void *p;
      CHECK_INT( pthread_join(a[i], &p), 0 );
      adb[i] = p;
    }
    for(i=0; i<8; i++){
      CHECK_STR( testText(adb[i], "SELECT reason IS NULL FROM waldio_stat"), "1" );
    }
    if( j%2 ) testExec(adb[j%8], "UPDATE n SET n=n+1");
    for(i=0; i<8; i++){
      CHECK_INT( pthread_create(&a[i], 0, closeMain, adb[i]), 0 );
    }
    for(i=0; i<8; i++) CHECK_INT( pthread_join(a[i], 0), 0 );
    adb[0] = testOpen("file:p.db?vfs=unix");
    CHECK_STR( testText(adb[0], "SELECT count(*) FROM t"), "0" );
    sqlite3_close(adb[0]);
    CHECK_INT( testShell("rm -f p.db-wal p.db-shm"), 0 );
  }
}

/* What processes share in the wal-index, by its place: see struct WdShared. */
#define SHARED       768
#define SH_NGROUP    40
#define SH_FLUSHING  44
#define SH_HOLDER    52
#define SH_TURN      64
#define SH_WAIT      72
#define SH_END       (SH_WAIT+64*4+7*4)
static unsigned char *mapShared(void){
  int fd = open("p.db-shm", O_RDWR);
  unsigned char *a = mmap(0, 32768, PROT_READ|PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK( fd>=0 && a!=MAP_FAILED );
  close(fd);
  return a + SHARED;
}
static unsigned micros(void){
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (unsigned)(t.tv_sec*1000000 + t.tv_nsec/1000) | 1;
}
static void put(unsigned char *a, int i, unsigned x){
  __atomic_store_n((unsigned*)(void*)(a+i), x, __ATOMIC_RELAXED);
}
static unsigned get(unsigned char *a, int i){
  return __atomic_load_n((unsigned*)(void*)(a+i), __ATOMIC_RELAXED);
}

/* A process that holds the WRITE lock until it is told to let go. */
static void holder(Proc *p){
  int aTell[2], aHear[2];
  char c = 0;
  CHECK( pipe(aTell)==0 && pipe(aHear)==0 );
  p->pid = fork();
  CHECK( p->pid>=0 );
  if( p->pid==0 ){
    sqlite3 *db = openWorker(9);
    testExec(db, "BEGIN IMMEDIATE; UPDATE n SET n=n+1");
    close(aHear[1]);
    CHECK( write(aTell[1], &c, 1)==1 );
    if( read(aHear[0], &c, 1)!=1 ) _exit(1);
    testExec(db, "ROLLBACK");
    _exit(0);
  }
  CHECK( read(aTell[0], &c, 1)==1 );
  close(aTell[0]);
  close(aTell[1]);
  close(aHear[0]);
  p->fd = aHear[1];
}

/* The process that holds the lock dies, or the one that is first in the queue:
** the others go on. */
static void inQueue(int bHolder){
  Proc a[4];
  unsigned char *aShared;
  sqlite3 *db;
  int i, j, st, nWait = 0;
  char c = 0;
  testBegin("%s of the queue is killed", bHolder ? "the holder" : "the first");
  create();
  memset(a, 0, sizeof(a));
  holder(&a[0]);
  aShared = mapShared();
  for(i=1; i<4; i++){
    a[i].iTried = 1;
    spawn(&a[i], i);
    while( nWait<i ){
      for(j=nWait=0; j<64; j++) nWait += get(aShared, SH_WAIT+4*j)!=0;
    }
  }
  if( bHolder ){
    CHECK_INT( kill(a[0].pid, SIGKILL), 0 );
  }else{
    CHECK_INT( kill(a[1].pid, SIGKILL), 0 );
    CHECK( waitpid(a[1].pid, &st, 0)==a[1].pid && WIFSIGNALED(st) );
    close(a[1].fd);
    CHECK( write(a[0].fd, &c, 1)==1 );
  }
  CHECK( waitpid(a[0].pid, &st, 0)==a[0].pid );
  CHECK_INT( WIFSIGNALED(st), bHolder );
  close(a[0].fd);
  for(i=bHolder ? 1 : 2; i<4; i++){
    for(j=0; j<20; j++) CHECK( hear(&a[i]) );
  }
  for(i=bHolder ? 1 : 2; i<4; i++) reap(&a[i], 0, i);
  db = testOpen("file:p.db?vfs=waldio");
  whole(db);
  sqlite3_close(db);
  munmap(aShared-SHARED, 32768);
}

/* All places of the queue are taken, or who is in it is called and has no turn:
** again and again. */
static void *disturbMain(void *pArg){
  unsigned char *a = mapShared();
  int i, bFull = *(int*)pArg;
  while( !__atomic_load_n(&bWritersEnd, __ATOMIC_RELAXED) ){
    for(i=0; i<64; i++) put(a, SH_WAIT+4*i, bFull ? 0x7fff0000+(unsigned)i : 0);
    usleep(100);
  }
  munmap(a-SHARED, 32768);
  return 0;
}

/* The WRITE lock is held by somebody of whom the queue knows nothing.  Those who
** try it often are woken early at first, and wait no less in all for that. */
static void unknownHolder(const char *zQueue){
  pthread_t disturb;
  int bFull = strcmp(zQueue, "full")==0;
  struct flock lock;
  int aPipe[2], fd, st;
  char c = 0;
  unsigned iBegin;
  pid_t pid;
  sqlite3 *db;
  testBegin("a holder that is not in the queue, which is %s", zQueue);
  create();
  db = testOpen("file:p.db?vfs=waldio");
  testExec(db, "SELECT * FROM t");
  CHECK( pipe(aPipe)==0 );
  pid = fork();
  CHECK( pid>=0 );
  if( pid==0 ){
    memset(&lock, 0, sizeof(lock));
    lock.l_type = F_WRLCK;
    lock.l_start = 120;           /* UNIX_SHM_BASE of os_unix.c */
    lock.l_len = 1;
    fd = open("p.db-shm", O_RDWR);
    CHECK( fd>=0 && fcntl(fd, F_SETLK, &lock)==0 );
    CHECK( write(aPipe[1], &c, 1)==1 );
    pause();
  }
  CHECK( read(aPipe[0], &c, 1)==1 );
  bWritersEnd = strcmp(zQueue, "left alone")==0;
  CHECK_INT( pthread_create(&disturb, 0, disturbMain, &bFull), 0 );
  sqlite3_busy_timeout(db, 300);
  iBegin = micros();
  CHECK_INT( testTry(db, "UPDATE n SET n=n+1"), SQLITE_BUSY );
  CHECK( micros()-iBegin>=300000 );
  __atomic_store_n(&bWritersEnd, 1, __ATOMIC_RELAXED);
  CHECK_INT( pthread_join(disturb, 0), 0 );
  CHECK_INT( kill(pid, SIGKILL), 0 );
  CHECK( waitpid(pid, &st, 0)==pid && WIFSIGNALED(st) );
  close(aPipe[0]);
  close(aPipe[1]);
  testExec(db, "UPDATE n SET n=n+1");
  sqlite3_close(db);
}

/* Others write nonsense where the queue is: everything goes on. */
static unsigned char *aHostile;
static void *hostileMain(void *pArg){
  unsigned r = 1;
  while( !__atomic_load_n((int*)pArg, __ATOMIC_RELAXED) ){
    int i;
    for(i=SH_NGROUP; i<SH_END; i+=4){
      r = r*1664525u + 1013904223u;
      if( r>>29 ) continue;
      put(aHostile, i, i==SH_HOLDER ? 1 : r&1<<28 ? micros() : r);
    }
    usleep(1000);
  }
  return 0;
}
static void hostile(void){
  pthread_t a[NTHREAD+1];
  sqlite3 *db;
  int i, bEnd = 0;
  testBegin("nonsense in the queue");
  create();
  db = testOpen("file:p.db?vfs=waldio");
  testExec(db, "SELECT * FROM t; PRAGMA synchronous=FULL");
  aHostile = mapShared();
  put(aHostile, SH_NGROUP, 1000);
  put(aHostile, SH_FLUSHING, micros());
  addRow(db, 9, 1);
  put(aHostile, SH_HOLDER, 1);
  addRow(db, 9, 2);
  put(aHostile, SH_TURN+4, 77);
  put(aHostile, SH_TURN, micros());
  addRow(db, 9, 3);
  CHECK_INT( pthread_create(&a[NTHREAD], 0, hostileMain, &bEnd), 0 );
  for(i=0; i<NTHREAD; i++){
    CHECK_INT( pthread_create(&a[i], 0, threadMain, (void*)(long)i), 0 );
  }
  for(i=0; i<NTHREAD; i++) CHECK_INT( pthread_join(a[i], 0), 0 );
  __atomic_store_n(&bEnd, 1, __ATOMIC_RELAXED);
  CHECK_INT( pthread_join(a[NTHREAD], 0), 0 );
  whole(db);
  CHECK_INT( atoi(testText(db, "SELECT n FROM n")), NTHREAD*60+3 );
  sqlite3_close(db);
  munmap(aHostile-SHARED, 32768);
}

/* On f2fs flushes take turns.  A process is stopped in its turn, or a child of one
** that was killed has its descriptor: commits go on all the same. */
static int bF2fs;
int fstatfs(int fd, struct statfs *p){
  int rc = (int)syscall(SYS_fstatfs, fd, p);
  if( rc==0 && bF2fs ) p->f_type = F2FS_SUPER_MAGIC;
  return rc;
}
static void stoppedFlush(void){
  struct flock lock;
  sqlite3 *db;
  int i, fd;
  testBegin("a flush on f2fs that does not end");
  create();
  bF2fs = 1;
  db = testOpen("file:p.db?vfs=waldio");
  testExec(db, "PRAGMA synchronous=FULL; UPDATE n SET n=1");
  for(i=2; i<22; i++) testExec(db, "UPDATE n SET n=%d", i);
  bF2fs = 0;
  fd = open("p.db-wal", O_RDWR);
  memset(&lock, 0, sizeof(lock));
  lock.l_type = F_RDLCK;
  lock.l_len = 1;
  /* The commits before have given it back. */
  CHECK( fd>=0 && fcntl(fd, F_OFD_SETLK, &lock)==0 );
  alarm(120);
  testExec(db, "UPDATE n SET n=n+1");
  close(fd);
  testExec(db, "UPDATE n SET n=n+1");
  alarm(0);
  CHECK_STR( testText(db, "SELECT durable_writes>=3 FROM waldio_stat"), "1" );
  sqlite3_close(db);
}

int main(void){
  testEnter();
  CHECK_INT( waldio_register(0), SQLITE_OK );
  together();
  inQueue(0);
  inQueue(1);
  unknownHolder("left alone");
  unknownHolder("full");
  unknownHolder("called");
  hostile();
  stoppedFlush();
  restartedMeanwhile();
  restartedBefore();
  alone();
  forks();
  shutInAll();
  bounded(0, 0);
  bounded(4, 0);
  bounded(0, 1);
  threads();
  zSync = "waldio_sync=persistent";
  threads();
  killed(40, 1);
  zSync = "waldio_sync='group'";
  threads();
  killed(40, 0);
  zSync = "synchronous=NORMAL";
  threads();
  killed(120, 0);
  zSync = "synchronous=FULL";
  killed(120, 1);
  killed(120, 0);
  testLeave("process");
  return 0;
}
