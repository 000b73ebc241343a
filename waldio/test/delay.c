/*
** How late commits become durable: waldio_sync=group loses no more than it
** says, waldio_durable_reads shows nothing that a power loss undoes, and what a
** killed process left to be flushed is flushed with the next commit.
**
** The disk is the one of disk.h.  A power loss leaves what was flushed, or also
** some of what was not.
*/
#include "explore.h"

static int iStep;                 /* Operations of the record gone through */
static State state;

/* Go through the record to its end, or to its next operation; 0 if there is none. */
static int go(int bEnd){
  int bStep;
  pthread_mutex_lock(&disk.mutex);
  bStep = iStep<rec.nOp;
  while( iStep<rec.nOp ){
    exploreStep(iStep++);
    if( !bEnd ) break;
  }
  pthread_mutex_unlock(&disk.mutex);
  return bStep;
}

/* What a power loss leaves there: how many rows, which are 1, 2 and so on. */
static int left(int nPercent){
  Choice c;
  sqlite3 *db;
  int n;
  memset(&c, 0, sizeof(c));
  c.eHow = nPercent ? HOW_RANDOM : HOW_NONE;
  c.nPercent = (unsigned)nPercent;
  pthread_mutex_lock(&disk.mutex);
  buildState(&state, &c);
  pthread_mutex_unlock(&disk.mutex);
  putState(&state);
  db = testOpen("file:/q.db?vfs=waldio");
  CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
  n = atoi(testText(db, "SELECT count(*) FROM t"));
  CHECK_INT( atoi(testText(db, "SELECT ifnull(max(a),0) FROM t")), n );
  sqlite3_close(db);
  return n;
}
static int lost(int nPercent){
  go(1);
  return left(nPercent);
}

static const char *const azLayout[] = {
  "", "&waldio_reserve=0", "&waldio_reserve=0&waldio_padding=512"
};
static sqlite3 *openAs(const char *zOptions, int iLayout){
  char zUri[100];
  sqlite3 *db;
  snprintf(zUri, sizeof(zUri), "file:/p.db?vfs=waldio%s", azLayout[iLayout]);
  db = testOpen(zUri);
  testExec(db, "PRAGMA wal_autocheckpoint=50; PRAGMA %s", zOptions);
  return db;
}
/* The files are those of a state, and the record begins. */
static void beginWith(const State *p){
  char zName[20];
  int i, iFirst = disk.nNode + 1;
  recordOn(0);
  recordClear();
  for(i=0; i<NNAME; i++){
    const Image *pFile = &p->aFile[i];
    snprintf(zName, sizeof(zName), "/p.db%s", azSuffix[i]);
    diskPut(zName, pFile->bThere ? pFile->a : 0, pFile->n);
  }
  exploreBegin(p, iFirst);
  iStep = 0;
  recordOn(1);
}
/* A new database, all of it durable, and the record begins. */
static void begin(int iLayout){
  sqlite3 *db;
  char zName[20];
  int i;
  recordOn(0);
  for(i=0; i<NNAME; i++){
    snprintf(zName, sizeof(zName), "/p.db%s", azSuffix[i]);
    diskPut(zName, 0, 0);
  }
  db = openAs("page_size=1024", iLayout);
  testExec(db, "PRAGMA journal_mode=wal; CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
  sqlite3_close(db);
  for(i=0; i<NNAME; i++){
    Image *pFile = &state.aFile[i];
    const Inode *p;
    snprintf(zName, sizeof(zName), "/p.db%s", azSuffix[i]);
    p = diskGet(zName);
    pFile->bThere = p!=0;
    if( p==0 ) continue;
    roomFor(&pFile->a, &pFile->mx, p->n+1);
    if( p->n ) memcpy(pFile->a, p->a, (size_t)p->n);
    pFile->n = p->n;
  }
  beginWith(&state);
}
static void addRow(sqlite3 *db, int i){
  testExec(db, "INSERT INTO t VALUES(%d,hex(zeroblob(%d)))", i, 50+i%9*150);
}

/* waldio_sync=group loses the last commits, of less than nMax frames, and with
** no more to come none for ever. */
static void delayed(int iLayout, int nMax){
  sqlite3 *db;
  int aFrame[202], i, n, nLost = 0;
  testBegin("group sync, layout %s, %d frames", azLayout[iLayout], nMax);
  begin(iLayout);
  db = openAs("waldio_sync='group'", iLayout);
  testExec(db, "PRAGMA waldio_group_ms=60000; PRAGMA waldio_group_frames=%d", nMax);
  aFrame[0] = 0;
  for(i=1; i<=200; i++){
    addRow(db, i);
    aFrame[i] = atoi(testText(db, "SELECT frames FROM waldio_stat WHERE database"
                                  " LIKE '%%/p.db'"));
    n = lost(i%2 ? 0 : 50);
    CHECK( aFrame[i]-aFrame[n]<nMax );
    if( n<i ) nLost++;
  }
  CHECK( nLost>20 );
  testExec(db, "PRAGMA waldio_group_ms=5");
  addRow(db, i);
  while( lost(0)<i ){}
  testExec(db, "PRAGMA waldio_group_ms=60000");
  addRow(db, ++i);
  sqlite3_close(db);
  CHECK_INT( lost(0), i );
}

static void durableReads(const char *zWriter){
  sqlite3 *db, *dbRead;
  int i, n;
  testBegin("durable reads, writer with %s", zWriter);
  disk.bSingle = 0;
  begin(0);
  db = openAs(zWriter, 0);
  testExec(db, "PRAGMA waldio_group_ms=60000");
  dbRead = openAs("cache_size=100", 0);
  for(i=1; i<=100; i++){
    testExec(dbRead, "PRAGMA waldio_durable_reads=%d", i>1);
    addRow(db, i);
    n = atoi(testText(dbRead, "SELECT max(a) FROM t"));
    CHECK_INT( n, i );
    CHECK_INT( lost(0), i>1 ? i : 0 );
  }
  sqlite3_close(dbRead);
  sqlite3_close(db);
}

/* The commits of a killed process may not be durable, and no wal-index tells:
** the next commit cannot be one durable write behind them. */
static void orphaned(int iLayout){
  sqlite3 *db;
  int i;
  testBegin("commits of a killed process, layout %s", azLayout[iLayout]);
  begin(iLayout);
  db = openAs("synchronous=FULL", iLayout);
  addRow(db, 1);
  testExec(db, "PRAGMA synchronous=NORMAL");
  for(i=2; i<=5; i++) addRow(db, i);
  CHECK( lost(0)<5 );
  diskDead(1);
  sqlite3_close(db);
  diskDead(0);
  db = openAs("synchronous=FULL", iLayout);
  CHECK_STR( testText(db, "SELECT max(a) FROM t"), "5" );
  addRow(db, 6);
  CHECK_INT( lost(0), 6 );
  addRow(db, 7);
  CHECK_INT( lost(0), 7 );
  sqlite3_close(db);
}

/* A journal that was rolled back does not come back once there are commits: not
** beside a log that was kept, and not where one connection creates the log and
** another one flushes it first. */
static void hotJournal(int bLog){
  sqlite3 *db, *db2;
  Choice c;
  testBegin("hot journal beside %s", bLog ? "a kept log" : "no log");
  begin(0);
  memset(&c, 0, sizeof(c));
  c.eHow = HOW_NONE;
  db = openAs("synchronous=FULL", 0);
  addRow(db, 1);
  testExec(db, "PRAGMA journal_mode=delete");
  sqlite3_close(db);
  do{
    CHECK( iStep<rec.nOp );
    exploreStep(iStep++);
    buildState(&state, &c);
  }while( !state.aFile[NAME_JOURNAL].bThere || !state.aFile[NAME_WAL].bThere
       || rec.aOp[iStep].eOp!=OP_UNLINK );
  state.aFile[NAME_WAL].bThere = bLog;
  beginWith(&state);
  db = openAs("synchronous=FULL", 0);
  if( !bLog ) CHECK_STR( testText(db, "SELECT count(*) FROM t"), "1" );
  db2 = bLog ? db : openAs("synchronous=FULL", 0);
  addRow(db2, 2);
  addRow(db2, 3);
  testExec(db2, "PRAGMA wal_checkpoint(RESTART)");
  addRow(db2, 4);
  CHECK_INT( lost(0), 4 );
  if( db2!=db ) sqlite3_close(db2);
  sqlite3_close(db);
}

/* On a log that stays a stock one a commit is flushed as usual.  With synchronous=OFF the
** database is, too, before the log that was copied to it is written anew, and the log's
** header before its frames. */
static void stockLog(const char *zSynchronous){
  sqlite3 *db, *dbStock;
  int i, j;
  testBegin("waldio_sync=persistent, synchronous=%s, stock log", zSynchronous);
  begin(0);
  dbStock = testOpen("file:/p.db?vfs=disk");
  testExec(dbStock, "SELECT * FROM t");
  db = openAs("synchronous=NORMAL", 0);
  addRow(db, 1);
  CHECK_STR( testText(db, "PRAGMA waldio_layout"), "stock" );
  CHECK_INT( lost(0), 0 );
  testExec(db, "PRAGMA waldio_sync=persistent; PRAGMA synchronous=%s", zSynchronous);
  for(i=2; i<17; i++){
    testExec(db, "BEGIN");
    addRow(db, i);
    testExec(db, "UPDATE t SET b=b||%d; COMMIT", i);
    while( go(0) ){
      for(j=0; j<100 && i>2; j+=16){
        int n = left(j);
        CHECK( n==i || n==i-1 );
      }
    }
    for(j=0; j<100; j+=16) CHECK_INT( left(j), i );
    if( i%3!=0 ) continue;
    testExec(db, "PRAGMA wal_checkpoint(RESTART)");
    while( go(0) ){
      for(j=0; j<100; j+=16) CHECK_INT( left(j), i );
    }
  }
  sqlite3_close(db);
  sqlite3_close(dbStock);
}

int main(void){
  int i;
  testEnter();
  diskRegister();
  disk.bSingle = 1;
  CHECK_INT( waldio_register(0), SQLITE_OK );
  for(i=0; i<3; i++){
    delayed(i, 10+i*20);
    orphaned(i);
  }
  durableReads("synchronous=NORMAL");
  durableReads("waldio_sync='group'");
  stockLog("NORMAL");
  stockLog("OFF");
  hotJournal(1);
  hotJournal(0);
  testLeave("delay");
  return 0;
}
