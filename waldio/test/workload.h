/*
** The lives of a database whose end is a power loss: all kinds of work, chosen
** at random, and told to the record of disk.h.
*/
#ifndef WALDIO_WORKLOAD_H
#define WALDIO_WORKLOAD_H

#include "judge.h"

/* A way to commit. */
typedef struct Mode Mode;
struct Mode {
  const char *zName;
  const char *zSynchronous;       /* PRAGMA synchronous */
  const char *zSync;              /* PRAGMA waldio_sync */
  int nHandle;                    /* Connections that commit by turns */
  int bThread;                    /* ... each in a thread */
  int bDurable;                   /* COMMIT promises durability */
};
static const Mode aMode[] = {
  { "full",            "FULL",   "full",       1, 0, 1 },
  { "full, by turns",  "FULL",   "full",       2, 0, 1 },
  { "full, threads",   "FULL",   "full",       3, 1, 1 },
  { "persistent",      "NORMAL", "persistent", 2, 0, 1 },
  { "persistent, OFF", "OFF",    "persistent", 2, 0, 1 },
  { "normal",          "NORMAL", "full",       1, 0, 0 },
  { "normal, by turns", "NORMAL", "full",      2, 0, 0 },
  { "normal, threads", "NORMAL", "full",       3, 1, 0 },
  { "not flushed",     "FULL",   "normal",     2, 0, 0 },
  { "not flushed, normal", "NORMAL", "normal", 2, 0, 0 },
  { "group",           "FULL",   "group",      2, 0, 0 },
};
#define NMODE ((int)(sizeof(aMode)/sizeof(aMode[0])))

/* A layout to ask for. */
static const struct Wish { const char *zName; int nReserve; int szPad; } aWish[] = {
  { "W", 24, 0 }, { "P", 0, 512 }, { "T", 0, 0 }
};
#define NWISH 3

static const char *const azLayout[] = { "none", "stock", "P", "W", "T" };
#define NLAYOUT 5

#define MXHANDLE 4
typedef struct Work Work;
struct Work {
  const Mode *pMode;
  const struct Wish *pWish;
  int szPage;
  u64 iRandom;
  sqlite3 *adb[MXHANDLE];         /* adb[0] is open, or none */
  int bWal;                       /* The journal mode is waldio's */
  int bWritten;                   /* Something was written since it was opened */
  int nCommit;
  u64 aDigest[MXCOMMIT];
};

static unsigned wkRandom(Work *p, unsigned n){
  return rndOf(&p->iRandom, n);
}

static void setSync(Work *p, sqlite3 *db){
  testExec(db, "PRAGMA synchronous=%s; PRAGMA waldio_sync='%s'",
           p->pMode->zSynchronous, p->pMode->zSync);
}

static sqlite3 *openHandle(Work *p){
  static const int aPrealloc[] = { 0, 4096, 8192, 16384, 65536 };
  char zUri[80];
  sqlite3 *db;
  snprintf(zUri, sizeof(zUri), "file:/p.db?vfs=waldio&waldio_reserve=%d",
           p->pWish->nReserve);
  db = testOpen(zUri);
  setSync(p, db);
  testExec(db, "PRAGMA waldio_padding=%d; PRAGMA waldio_prealloc=%d",
           p->pWish->szPad, aPrealloc[wkRandom(p, 5)]);
  testExec(db, "PRAGMA wal_autocheckpoint=%d; PRAGMA cache_size=%d;"
           "PRAGMA cache_spill=%d; PRAGMA waldio_recycle=%d;"
           "PRAGMA waldio_group_frames=%d; PRAGMA waldio_group_ms=%d",
           wkRandom(p, 2) ? 0 : 10+(int)wkRandom(p, 30), 4+(int)wkRandom(p, 30),
           4+(int)wkRandom(p, 10), wkRandom(p, 5)!=0, 1<<wkRandom(p, 7),
           (int)wkRandom(p, 3)*5);
  return db;
}
static void noteLayout(Work *p){
  const char *z;
  int i = 0;
  if( p->adb[0]==0 ) return;
  z = testText(p->adb[0], "PRAGMA waldio_layout");
  while( i<NLAYOUT-1 && strcmp(azLayout[i], z)!=0 ) i++;
  CHECK_STR( z, azLayout[i] );
  recordNote(OP_LAYOUT, i);
}

static void openWork(Work *p){
  recordNote(OP_PLAIN, 0);
  p->adb[0] = openHandle(p);
  p->bWritten = 0;
  p->bWal = strcmp(testText(p->adb[0], "PRAGMA journal_mode"), "wal")==0;
  if( !p->bWal ) testExec(p->adb[0], "PRAGMA synchronous=EXTRA");
}
/* All that was committed is durable when the last connection is closed. */
static void closeWork(Work *p){
  int i;
  for(i=MXHANDLE-1; i>=0; i--){
    CHECK_INT( sqlite3_close(p->adb[i]), SQLITE_OK );
    p->adb[i] = 0;
  }
  if( p->bWritten ){
    recordNote(OP_ACK, p->nCommit);
    recordNote(OP_PLAIN, 1);
  }
}
/* The process is killed: what it wrote stays, in the page cache. */
static void killWork(Work *p){
  int i;
  diskDead(1);
  for(i=MXHANDLE-1; i>=0; i--){
    sqlite3_close(p->adb[i]);
    p->adb[i] = 0;
  }
  diskDead(0);
}

/******************************* Commits ************************************/

/* Insert, update or delete a row or some. */
static int change(Work *p, sqlite3 *db, u64 *pRandom){
  unsigned r = rndOf(pRandom, 1000000);
  int id = 1 + (int)(r%40);
  int n = (int)(r/40)%(r%7==0 ? 2*p->szPage : p->szPage/4 + 1);
  switch( r/3%8 ){
    case 0: return testTry(db, "DELETE FROM t WHERE a=%d", id);
    case 1: return testTry(db, "UPDATE t SET b=b+1 WHERE a BETWEEN %d AND %d",
                           id, id+5);
    case 2: return testTry(db, "UPDATE t SET c=substr(c,1,%d) WHERE a=%d", n, id);
    case 3: return testTry(db, "DELETE FROM t WHERE a BETWEEN %d AND %d", id, id+8);
    default:
      return testTry(db, "REPLACE INTO t VALUES(%d,%d,"
                     "substr(hex(%d)||hex(zeroblob(%d)),1,%d))", id, r%97, r, n, n);
  }
}
/* Fill more pages than the cache has, and write some of them twice. */
static int spill(Work *p, sqlite3 *db, u64 *pRandom){
  unsigned r = rndOf(pRandom, 1000);
  int n = p->szPage>8192 ? 8 : 30;
  return testTry(db, "WITH x(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM x WHERE"
      " i<%d) REPLACE INTO t SELECT 100+i, %u, substr(hex(%u+i)||"
      "hex(zeroblob(%d)),1,%d) FROM x; UPDATE t SET b=b+%u WHERE a>=100;"
      "UPDATE t SET c=c||'x' WHERE a%%3=0 AND length(c)<%d",
      n, r, r, p->szPage/2, p->szPage*2/3, r, 2*p->szPage);
}

/*
** Before 3.54 at the latest, SQLite itself forgets to rewrite the checksum of a
** frame when a savepoint is rolled back behind a spill, and loses that commit
** at a power loss, with and without waldio; see model.c.  There a savepoint is
** rolled back only in transactions that stay in the cache.
*/
static int savepointsSpill(void){
  return sqlite3_libversion_number()>=3054000;
}
static int savepoint(Work *p, sqlite3 *db, u64 *pRandom){
  int rc = testTry(db, "SAVEPOINT s");
  if( rc==SQLITE_OK && savepointsSpill() && rndOf(pRandom, 2) ){
    rc = spill(p, db, pRandom);
  }
  if( rc==SQLITE_OK ) rc = change(p, db, pRandom);
  if( rc==SQLITE_OK ) rc = testTry(db, "ROLLBACK TO s");
  if( rc==SQLITE_OK ) rc = change(p, db, pRandom);
  return rc==SQLITE_OK ? testTry(db, "RELEASE s") : rc;
}

/* One commit; ends with the acknowledgement, if the mode promises anything. */
static void commit(Work *p, sqlite3 *db, u64 *pRandom){
  int bSavepoint = rndOf(pRandom, 6)==0;
  int i, n = 0;
  u64 h;
  if( bSavepoint && !savepointsSpill() ) testExec(db, "PRAGMA cache_spill=0");
  testExec(db, "BEGIN IMMEDIATE");
  if( bSavepoint ){
    CHECK_INT( savepoint(p, db, pRandom), SQLITE_OK );
  }else if( rndOf(pRandom, 8)==0 ){
    CHECK_INT( spill(p, db, pRandom), SQLITE_OK );
  }
  for(i=(int)rndOf(pRandom, 3); i>=0; i--){
    CHECK_INT( change(p, db, pRandom), SQLITE_OK );
  }
  testExec(db, "UPDATE meta SET n=n+1");
  h = digest(db, &n);
  CHECK( n>0 && n<MXCOMMIT );
  p->aDigest[n] = h;
  __atomic_store_n(&p->nCommit, n, __ATOMIC_RELEASE);
  testExec(db, "COMMIT");
  if( p->pMode->bDurable || !p->bWal ) recordNote(OP_ACK, n);
  if( bSavepoint && !savepointsSpill() ) testExec(db, "PRAGMA cache_spill=4");
  __atomic_store_n(&p->bWritten, 1, __ATOMIC_RELAXED);
}

static void rollback(Work *p, sqlite3 *db){
  testExec(db, "BEGIN IMMEDIATE");
  CHECK_INT( wkRandom(p, 2) ? spill(p, db, &p->iRandom)
                            : change(p, db, &p->iRandom), SQLITE_OK );
  testExec(db, "ROLLBACK");
}

/***************************** Other work ***********************************/

/* A checkpoint that copied all of the log makes it durable. */
static void checkpoint(Work *p){
  int nLog = -1, nCkpt = -2;
  int eMode = (int)wkRandom(p, 4);
  int rc = sqlite3_wal_checkpoint_v2(p->adb[0], 0, eMode, &nLog, &nCkpt);
  CHECK( rc==SQLITE_OK || rc==SQLITE_BUSY );
  if( rc==SQLITE_OK && nLog==nCkpt && nLog>0 ) recordNote(OP_ACK, p->nCommit);
}

/*
** To journal_mode=delete and back, perhaps with another page size.
**
** The connection reads first.  SQLite, with and without waldio, keeps pages in
** its cache over the change of mode that others have written since it last
** read, if page 1 was not among them (seen with stock 3.40.1 and 3.54.1).
*/
static void modes(Work *p){
  sqlite3 *db = p->adb[0];
  int i;
  for(i=1; i<MXHANDLE; i++){
    CHECK_INT( sqlite3_close(p->adb[i]), SQLITE_OK );
    p->adb[i] = 0;
  }
  testExec(db, "PRAGMA synchronous=EXTRA; SELECT n FROM meta");
  CHECK_STR( testText(db, "PRAGMA journal_mode=delete"), "delete" );
  p->bWal = 0;
  p->bWritten = 1;
  recordNote(OP_ACK, p->nCommit);
  recordNote(OP_PLAIN, 1);
  for(i=(int)wkRandom(p, 3); i>0; i--) commit(p, db, &p->iRandom);
  if( wkRandom(p, 2) ){
    static const int aTo[] = { 512, 1024, 2048, 4096, 8192, 65536 };
    p->szPage = wkRandom(p, 2) ? p->szPage : aTo[wkRandom(p, p->szPage>2048 ? 6 : 4)];
    testExec(db, "PRAGMA page_size=%d; VACUUM", p->szPage);
  }
  if( wkRandom(p, 4)==0 ) return;
  recordNote(OP_PLAIN, 0);
  CHECK_STR( testText(db, "PRAGMA journal_mode=waldio"), "waldio" );
  p->bWal = 1;
  setSync(p, db);
}

/* Stock SQLite uses the database while nobody else does. */
static void stockSession(Work *p){
  sqlite3 *db;
  closeWork(p);
  if( p->bWritten ){
    int bWal = p->bWal;
    db = testOpen("file:/p.db?vfs=disk");
    testExec(db, "PRAGMA synchronous=EXTRA");
    p->bWal = 0;                  /* Each commit is durable */
    commit(p, db, &p->iRandom);
    commit(p, db, &p->iRandom);
    p->bWal = bWal;
    CHECK_INT( sqlite3_close(db), SQLITE_OK );
  }
  openWork(p);
}

static void step(Work *p){
  int i = (int)wkRandom(p, (unsigned)p->pMode->nHandle);
  if( !p->bWal ) i = 0;
  if( p->adb[i]==0 ) p->adb[i] = openHandle(p);
  switch( wkRandom(p, 24) ){
    case 0: case 1: case 2: checkpoint(p); break;
    case 3: rollback(p, p->adb[i]); break;
    case 4: closeWork(p); openWork(p); break;
    case 5: if( wkRandom(p, 2) ) modes(p); break;
    case 6: killWork(p); openWork(p); break;
    case 7: if( wkRandom(p, 2) ) stockSession(p); break;
    case 8: if( p->adb[1]==0 ) testExec(p->adb[0], "VACUUM"); break;
    case 9: testExec(p->adb[0], "PRAGMA waldio_padding=%d",
                     wkRandom(p, 3) ? p->pWish->szPad : 4096); break;
    default: commit(p, p->adb[i], &p->iRandom);
  }
  noteLayout(p);
}

/******************************* Threads ************************************/

typedef struct Thread Thread;
struct Thread {
  Work *pWork;
  sqlite3 *db;
  u64 iRandom;
  pthread_t id;
};
static void *threadMain(void *pArg){
  Thread *p = pArg;
  int i;
  for(i=0; i<6; i++) commit(p->pWork, p->db, &p->iRandom);
  return 0;
}
/* A checkpointer of waldio's may be at it while this is said. */
static void setThreads(int n){
  pthread_mutex_lock(&disk.mutex);
  disk.nThread = n;
  pthread_mutex_unlock(&disk.mutex);
}
static void threads(Work *p){
  Thread a[MXHANDLE];
  int i;
  setThreads(p->pMode->nHandle);
  for(i=0; i<p->pMode->nHandle; i++){
    if( p->adb[i]==0 ) p->adb[i] = openHandle(p);
    a[i].pWork = p;
    a[i].db = p->adb[i];
    a[i].iRandom = p->iRandom + (u64)i*1000;
    CHECK_INT( pthread_create(&a[i].id, 0, threadMain, &a[i]), 0 );
  }
  for(i=0; i<p->pMode->nHandle; i++) CHECK_INT( pthread_join(a[i].id, 0), 0 );
  setThreads(0);
  noteLayout(p);
}

/* A new database, all of it durable: commit 1. */
static void createDatabase(Work *p){
  p->adb[0] = openHandle(p);
  testExec(p->adb[0], "PRAGMA page_size=%d; PRAGMA journal_mode=wal;"
    "CREATE TABLE meta(n); CREATE TABLE t(a INTEGER PRIMARY KEY, b, c);"
    "CREATE INDEX tb ON t(b, c); INSERT INTO meta VALUES(1)", p->szPage);
  p->aDigest[1] = digest(p->adb[0], &p->nCommit);
  CHECK_INT( p->nCommit, 1 );
  closeWork(p);
}

/* One life, from the files as they are on. */
static void life(Work *p, int nStep){
  int i;
  openWork(p);
  if( !p->bWal && wkRandom(p, 8) ){
    CHECK_STR( testText(p->adb[0], "PRAGMA journal_mode=waldio"), "waldio" );
    p->bWal = 1;
  }
  for(i=0; i<nStep; i++){
    if( p->pMode->bThread && i%4==1 && p->bWal ) threads(p);
    else step(p);
  }
  if( wkRandom(p, 2) ) closeWork(p); else killWork(p);
}

#endif /* WALDIO_WORKLOAD_H */
