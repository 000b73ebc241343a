/*
** A random workload beside a model of what the database must hold: every page
** size and layout, with spilled caches, savepoints, rollbacks, checkpoints,
** restarted and recycled logs, a second connection, and copies of the files
** at any moment, as a crashed process leaves them.
**
** WALDIO_SEED and WALDIO_STEPS choose another run, and a longer one.
*/
#include "test.h"

#define MXROW 160

/* A row is known by its value: the blob follows from it. */
typedef struct Model Model;
struct Model {
  int aVal[MXROW];                /* 0: no such row */
};

typedef struct Run Run;
struct Run {
  sqlite3 *db;                    /* Through waldio */
  sqlite3 *pOther;                /* A second connection, or NULL */
  Model committed;
  Model now;                      /* Inside the transaction */
  int bTrans;
  int szPage;
  int cLayout;                    /* W, T or P */
  int szPad;                      /* Padding of P */
  int iCrash;                     /* Copies made */
};

/* Length and bytes of the blob of a value. */
static int blobSize(int iVal, int szPage){
  unsigned n = (unsigned)iVal*2654435761u>>16;
  return (int)(n%(unsigned)(iVal%17==0 ? 3*szPage : szPage/3));
}
static void blobFill(unsigned char *a, int n, int iVal){
  unsigned x = (unsigned)iVal;
  int i;
  for(i=0; i<n; i++){
    x = x*1664525u + 1013904223u;
    a[i] = (unsigned char)(x>>24);
  }
}

/* The database has the rows of the model, in table and index. */
static void verify(sqlite3 *db, const Model *p, int szPage){
  static unsigned char aBlob[4*65536];
  sqlite3_stmt *pStmt = 0;
  int nRow = 0, nModel = 0;
  int i, rc;
  CHECK_INT( sqlite3_prepare_v2(db, "SELECT id, v, b FROM t", -1, &pStmt, 0), 0 );
  while( (rc = sqlite3_step(pStmt))==SQLITE_ROW ){
    int id = sqlite3_column_int(pStmt, 0);
    int iVal = sqlite3_column_int(pStmt, 1);
    int n = blobSize(iVal, szPage);
    CHECK( id>=0 && id<MXROW );
    CHECK_INT( iVal, p->aVal[id] );
    CHECK_INT( sqlite3_column_bytes(pStmt, 2), n );
    blobFill(aBlob, n, iVal);
    CHECK( n==0 || memcmp(aBlob, sqlite3_column_blob(pStmt, 2), (size_t)n)==0 );
    nRow++;
  }
  CHECK_INT( rc, SQLITE_DONE );
  sqlite3_finalize(pStmt);
  for(i=0; i<MXROW; i++) nModel += p->aVal[i]!=0;
  CHECK_INT( nRow, nModel );
  CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
}

static void openRun(Run *p){
  char zUri[100];
  snprintf(zUri, sizeof(zUri), "file:m.db?vfs=waldio%s",
           testLayout(p->cLayout=='P' ? 'T' : p->cLayout));
  p->db = testOpen(zUri);
  testExec(p->db, "PRAGMA waldio_padding=%d", p->szPad);
  testExec(p->db, "PRAGMA cache_size=%d; PRAGMA cache_spill=5; "
                  "PRAGMA wal_autocheckpoint=%d",
           5+(int)rnd(20), rnd(3) ? 0 : 20+(int)rnd(200));
  testExec(p->db, "PRAGMA synchronous=%s", rnd(3) ? "NORMAL" : "FULL");
}

static void setRow(Run *p, int id, int iVal){
  static unsigned char aBlob[4*65536];
  sqlite3_stmt *pStmt = 0;
  int n = blobSize(iVal, p->szPage);
  blobFill(aBlob, n, iVal);
  if( iVal==0 ){
    testExec(p->db, "DELETE FROM t WHERE id=%d", id);
  }else{
    const char *z = p->now.aVal[id] ? "UPDATE t SET v=?2, b=?3 WHERE id=?1"
                                    : "INSERT INTO t VALUES(?1,?2,?3)";
    CHECK_INT( sqlite3_prepare_v2(p->db, z, -1, &pStmt, 0), SQLITE_OK );
    sqlite3_bind_int(pStmt, 1, id);
    sqlite3_bind_int(pStmt, 2, iVal);
    sqlite3_bind_blob(pStmt, 3, aBlob, n, SQLITE_STATIC);
    CHECK_INT( sqlite3_step(pStmt), SQLITE_DONE );
    CHECK_INT( sqlite3_finalize(pStmt), SQLITE_OK );
  }
  p->now.aVal[id] = iVal;
}

static void someRows(Run *p, int n){
  while( n-- > 0 ){
    setRow(p, (int)rnd(MXROW), rnd(4) ? 1+(int)rnd(1000000) : 0);
  }
}

/*
** Before 3.54 at the latest, SQLite forgets to rewrite a frame's checksum when
** a savepoint is rolled back after its pages were spilled, and then recovers
** less than was committed, with and without waldio (see iReCksum in
** sqlite3WalSavepointUndo() of a version that does not).
*/
static int savepointsSpill(void){
  return sqlite3_libversion_number()>=3054000;
}

static void transaction(Run *p){
  int bLarge = rnd(4)==0;
  testExec(p->db, "BEGIN IMMEDIATE");
  someRows(p, 1+(int)rnd(bLarge ? 60 : 4));
  if( rnd(3)==0 ){
    Model saved = p->now;
    testExec(p->db, "SAVEPOINT s");
    someRows(p, 1+(int)rnd(bLarge ? 60 : 4));
    if( rnd(2) && savepointsSpill() ){
      testExec(p->db, "ROLLBACK TO s");
      p->now = saved;
    }
    someRows(p, (int)rnd(bLarge ? 60 : 4));
    testExec(p->db, "RELEASE s");
  }
  p->bTrans = 1;
}
static void endTransaction(Run *p){
  if( rnd(5)==0 ){
    testExec(p->db, "ROLLBACK");
    p->now = p->committed;
  }else{
    testExec(p->db, "COMMIT");
    p->committed = p->now;
  }
  p->bTrans = 0;
}

/* Copy database and log, open the copy as after a crash, and go on with it;
** then stock SQLite reads what is left. */
static void crash(Run *p){
  sqlite3 *db;
  char zPlain[100];
  CHECK_INT( testShell("rm -f c.db*; cp m.db c.db && cp m.db-wal c.db-wal"), 0 );
  db = testOpen("file:c.db?vfs=waldio&waldio=force");
  verify(db, &p->committed, p->szPage);
  testExec(db, "CREATE TABLE after_crash(a); INSERT INTO after_crash VALUES(1)");
  CHECK_INT( sqlite3_close(db), SQLITE_OK );
  snprintf(zPlain, sizeof(zPlain), "file:c.db?vfs=unix%s", rnd(2) ? "-excl" : "");
  db = testOpen(zPlain);
  verify(db, &p->committed, p->szPage);
  CHECK_STR( testText(db, "SELECT a FROM after_crash"), "1" );
  CHECK_INT( sqlite3_close(db), SQLITE_OK );
  p->iCrash++;
}

static void other(Run *p){
  if( p->pOther && rnd(3)==0 ){
    sqlite3_close(p->pOther);
    p->pOther = 0;
  }else{
    if( p->pOther==0 ) p->pOther = testOpen("file:m.db?vfs=waldio");
    verify(p->pOther, &p->committed, p->szPage);
  }
}

static void step(Run *p){
  static const char *const azCkpt[] = { "PASSIVE", "FULL", "RESTART", "TRUNCATE" };
  unsigned i = rnd(20);
  if( p->bTrans ){
    if( i<3 ) crash(p);
    else if( i<6 ) other(p);
    else endTransaction(p);
  }else if( i<12 ){
    transaction(p);
  }else if( i<14 ){
    testExec(p->db, "PRAGMA wal_checkpoint(%s)", azCkpt[rnd(4)]);
  }else if( i<15 ){
    crash(p);
  }else if( i<17 ){
    other(p);
  }else if( i<18 ){
    testExec(p->db, "PRAGMA synchronous=%s", rnd(2) ? "NORMAL" : "FULL");
  }else if( i<19 ){
    sqlite3_close(p->db);
    openRun(p);
  }else{
    verify(p->db, &p->committed, p->szPage);
  }
}

static void run(int szPage, int cLayout, int szPad, int nStep){
  char zLayout[2] = { (char)cLayout, 0 };
  Run r;
  int i;
  testBegin("page size %d, padding %d, layout %c, seed %llu", szPage, szPad,
            cLayout, iRandom);
  memset(&r, 0, sizeof(r));
  r.szPage = szPage;
  r.cLayout = cLayout;
  r.szPad = szPad;
  CHECK_INT( testShell("rm -f m.db*"), 0 );
  openRun(&r);
  testExec(r.db, "PRAGMA page_size=%d", szPage);
  CHECK_STR( testText(r.db, "PRAGMA journal_mode=wal"), "wal" );
  testExec(r.db, "CREATE TABLE t(id INTEGER PRIMARY KEY, v INT, b BLOB)");
  testExec(r.db, "CREATE INDEX i ON t(v, b)");
  CHECK_STR( testText(r.db, "PRAGMA waldio_layout"), zLayout );
  CHECK_INT( atoi(testText(r.db, "PRAGMA page_size")), szPage );
  for(i=0; i<nStep; i++) step(&r);
  if( r.bTrans ) endTransaction(&r);
  verify(r.db, &r.committed, szPage);
  if( r.pOther ) sqlite3_close(r.pOther);
  sqlite3_close(r.db);
  r.db = testOpen("file:m.db?vfs=unix");
  verify(r.db, &r.committed, szPage);
  sqlite3_close(r.db);
}

int main(void){
  const char *zSeed = getenv("WALDIO_SEED");
  const char *zSteps = getenv("WALDIO_STEPS");
  int nStep = zSteps ? atoi(zSteps) : 150;
  int szPage;
  iRandom = zSeed ? strtoull(zSeed, 0, 10) : 20150708;
  testEnter();
  CHECK_INT( waldio_register(0), SQLITE_OK );
  for(szPage=512; szPage<=65536; szPage*=2){
    run(szPage, 'W', 0, nStep);
    run(szPage, 'T', 0, nStep);
    run(szPage, 'P', 512, nStep);
    run(szPage, 'P', 4096, nStep);
    run(szPage, 'P', 8192, nStep);
  }
  testLeave("model");
  return 0;
}
