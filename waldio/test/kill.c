/*
** Processes of several writing threads are killed at any moment, one or all,
** for WALDIO_SECONDS, in all modes and layouts.  A row is acknowledged in shared
** memory as soon as its COMMIT has returned.  Afterwards every acknowledged row
** is there, and of the others none but the one that was on its way.
**
** No power is lost here, so that holds for modes that do not flush, too.
*/
#include "rows.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#define NPROC   3
#define NTHREAD 2
#define NWORKER (NPROC*NTHREAD)

/* What a worker has said of its rows 1, 2 and so on. */
static struct Said {
  int iBegun;                     /* Begun to write this one */
  int iMost;                      /* The highest iBegun of all lives */
  int iAcked;                     /* COMMIT has returned for this one */
} *aSaid;
static int *pbFailed;             /* A worker has met with an error */

static const char *const azMode[] = {
  "synchronous=FULL", "waldio_sync=persistent", "waldio_sync='group'",
  "synchronous=NORMAL", "waldio_sync=normal"
};
#define NMODE 5

/* How the workers of a round do it. */
static struct Round {
  int bMixed;                     /* Each process has another mode, layout */
  int iMode, iLayout;
  int szPage;
} round_;

/******************************** Workers ***********************************/

static sqlite3 *openWorker(int iWho){
  int iProc = iWho/NTHREAD;
  int iLayout = (round_.iLayout + (round_.bMixed ? iProc : 0))%3;
  int iMode = (round_.iMode + (round_.bMixed ? iProc : 0))%NMODE;
  char zUri[100];
  sqlite3 *db;
  snprintf(zUri, sizeof(zUri), "file:k.db?vfs=waldio&waldio=force%s",
           testLayout("WTP"[iLayout]));
  db = testOpen(zUri);
  sqlite3_busy_timeout(db, 60000);
  testExec(db, "PRAGMA wal_autocheckpoint=%d; PRAGMA cache_size=8;"
           "PRAGMA waldio_prealloc=16384; PRAGMA waldio_group_ms=3",
           10 + iWho*15);
  testExec(db, "PRAGMA %s", azMode[iMode]);
  return db;
}
static void addRow(sqlite3 *db, int iWho, int i){
  __atomic_store_n(&aSaid[iWho].iBegun, i, __ATOMIC_SEQ_CST);
  if( i>aSaid[iWho].iMost ) aSaid[iWho].iMost = i;
  rowsAdd(db, iWho, i);
  __atomic_store_n(&aSaid[iWho].iAcked, i, __ATOMIC_SEQ_CST);
}
static void *workerMain(void *pArg){
  int iWho = (int)(long)pArg;
  int i = aSaid[iWho].iBegun;
  sqlite3 *db = openWorker(iWho);
  for(;;){
    addRow(db, iWho, ++i);
    if( i%9==iWho ) rowsJunk(db, round_.szPage, i%2);
    if( i%31==iWho ){
      int rc = testTry(db, "PRAGMA wal_checkpoint(%s)", i%2 ? "RESTART" : "TRUNCATE");
      CHECK( rc==SQLITE_OK || (rc & 0xff)==SQLITE_BUSY );
    }
    if( i%40==iWho*3 ){
      CHECK_INT( sqlite3_close(db), SQLITE_OK );
      db = openWorker(iWho);
    }
  }
  return 0;
}
static void workerFailed(void){
  __atomic_store_n(pbFailed, 1, __ATOMIC_SEQ_CST);
}
static pid_t spawn(int iProc){
  pid_t pid;
  fflush(stdout);
  pid = fork();
  CHECK( pid>=0 );
  if( pid==0 ){
    pthread_t id;
    long i;
    atexit(workerFailed);
    for(i=1; i<NTHREAD; i++){
      CHECK_INT( pthread_create(&id, 0, workerMain, (void*)(iProc*NTHREAD+i)), 0 );
    }
    workerMain((void*)(long)(iProc*NTHREAD));
  }
  return pid;
}
static void killOne(pid_t pid){
  int st;
  CHECK_INT( kill(pid, SIGKILL), 0 );
  CHECK( waitpid(pid, &st, 0)==pid );
  CHECK( WIFSIGNALED(st) );
}

/********************************* Checks ***********************************/

/* What has to be there: said before the database is looked at. */
static struct Said aMust[NWORKER];

/* A commit whose process died before it was shown in the wal-index is not seen
** by others, and yet is there if the wal-index is made anew before they write:
** then a former life has got further than the last one. */
static void rows(sqlite3 *db, int iFrom, int iTo){
  int i;
  for(i=iFrom; i<iTo; i++){
    int n = rowsOf(db, i);
    CHECK( n>=aMust[i].iAcked );
    CHECK( n<=aMust[i].iMost );
    aSaid[i].iBegun = aSaid[i].iAcked = n;
  }
}
/* The others go on: the rows of the killed process, in a view of one moment. */
static void checkOne(int iProc){
  sqlite3 *db = testOpen("file:k.db?vfs=waldio&waldio=force");
  sqlite3_busy_timeout(db, 60000);
  testExec(db, "BEGIN; SELECT * FROM n");
  CHECK_STR( rowsWhole(db), "ok" );
  rows(db, iProc*NTHREAD, (iProc+1)*NTHREAD);
  testExec(db, "COMMIT");
  sqlite3_close(db);
}
/* All are dead.  Stock SQLite sees the same, or nothing. */
static void checkAll(int bStock){
  sqlite3 *db;
  if( bStock ){
    db = testOpen("file:k.db?vfs=unix");
    if( testTry(db, "SELECT * FROM n")==SQLITE_OK ){
      CHECK_STR( rowsWhole(db), "ok" );
      rows(db, 0, NWORKER);
    }else{
      int rc = sqlite3_errcode(db);
      CHECK( rc==SQLITE_NOTADB || rc==SQLITE_CANTOPEN );
    }
    sqlite3_close(db);
  }
  db = testOpen("file:k.db?vfs=waldio&waldio=force");
  CHECK_STR( rowsWhole(db), "ok" );
  rows(db, 0, NWORKER);
  sqlite3_close(db);
  db = testOpen("file:k.db?vfs=unix");
  CHECK_STR( rowsWhole(db), "ok" );
  sqlite3_close(db);
}
/* No connection of this process may live when it forks: a child does it. */
static void check(int iProc, int bStock){
  pid_t pid;
  int st = 0;
  memcpy(aMust, aSaid, sizeof(aMust));
  pid = fork();
  CHECK( pid>=0 );
  if( pid==0 ){
    if( iProc>=0 ) checkOne(iProc); else checkAll(bStock);
    _exit(0);
  }
  CHECK( waitpid(pid, &st, 0)==pid );
  CHECK_INT( st, 0 );
}

static void create(void){
  static const int aSize[] = { 512, 1024, 4096, 16384 };
  int st = 0;
  pid_t pid;
  CHECK_INT( testShell("rm -f k.db*"), 0 );
  memset(aSaid, 0, NWORKER*sizeof(aSaid[0]));
  round_.bMixed = rnd(3)==0;
  round_.szPage = aSize[rnd(4)];
  pid = fork();
  CHECK( pid>=0 );
  if( pid==0 ){
    sqlite3 *db = openWorker(0);
    rowsCreate(db, round_.szPage);
    sqlite3_close(db);
    _exit(0);
  }
  CHECK( waitpid(pid, &st, 0)==pid );
  CHECK_INT( st, 0 );
}

static double now(void){
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec/1e9;
}

static int acked(void){
  int i, n = 0;
  for(i=0; i<NWORKER; i++) n += __atomic_load_n(&aSaid[i].iAcked, __ATOMIC_SEQ_CST);
  return n;
}
/* However slow the machine is, a row more than nBefore, so that kills meet with
** writers and not only with processes that begin. */
static void awaitRow(int nBefore){
  double dStart = now();
  while( acked()<=nBefore && !*pbFailed ){
    CHECK( now()-dStart<60 );
    usleep(500);
  }
}

/* Kill and check until dEnd; the acknowledged rows, *pnKill kills, *pnAwaited
** of them after a row that was waited for. */
static int storm(double dEnd, int *pnKill, int *pnAwaited){
  pid_t aPid[NPROC];
  int i, nBefore;
  testBegin("%s, layout %c, %s, page size %d", azMode[round_.iMode],
            "WTP"[round_.iLayout], round_.bMixed ? "mixed" : "alike", round_.szPage);
  create();
  nBefore = acked();
  for(i=0; i<NPROC; i++) aPid[i] = spawn(i);
  do{
    usleep(1000 + rnd(60)*rnd(60)*20);
    if( rnd(4) ){
      awaitRow(nBefore);
      ++*pnAwaited;
    }
    CHECK( !*pbFailed );
    if( rnd(3) ){
      i = (int)rnd(NPROC);
      killOne(aPid[i]);
      check(i, 0);
      nBefore = acked();
      aPid[i] = spawn(i);
      ++*pnKill;
    }else{
      for(i=0; i<NPROC; i++) killOne(aPid[i]);
      check(-1, (int)rnd(2));
      nBefore = acked();
      for(i=0; i<NPROC; i++) aPid[i] = spawn(i);
      *pnKill += NPROC;
    }
  }while( now()<dEnd );
  for(i=0; i<NPROC; i++) killOne(aPid[i]);
  CHECK( !*pbFailed );
  check(-1, 0);
  return acked();
}

int main(void){
  const char *zSeconds = getenv("WALDIO_SECONDS");
  const char *zSeed = getenv("WALDIO_SEED");
  double dSeconds = zSeconds ? atof(zSeconds) : 10;
  double dStart = now();
  int i, nKill = 0, nAwaited = 0, nAcked = 0;
  testEnter();
  CHECK_INT( waldio_register(0), SQLITE_OK );
  iRandom = zSeed ? strtoull(zSeed, 0, 10) : (unsigned long long)time(0);
  printf("seed %llu\n", iRandom);
  aSaid = mmap(0, 4096, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS, -1, 0);
  CHECK( aSaid!=MAP_FAILED );
  pbFailed = (int*)&aSaid[NWORKER];
  for(i=0; i<3*NMODE; i++){
    round_.iMode = i%NMODE;
    round_.iLayout = i%3;
    nAcked += storm(dStart + dSeconds*(i+1)/(3*NMODE), &nKill, &nAwaited);
  }
  printf("%d kills, %d rows acknowledged, all there\n", nKill, nAcked);
  CHECK( nKill>=3*NMODE && nAwaited>0 && nAcked>=nAwaited );
  testLeave("kill");
  return 0;
}
