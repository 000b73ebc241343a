/*
** Every call to the lower VFS fails, once or from then on, in all modes and
** layouts: on a disk in memory, so that no call is left out.  What was
** acknowledged is there afterwards, each commit whole, and the database is of
** use again.
**
** WALDIO_CALLS=all tries each mode with each layout, not with one of them.
*/
#include "account.h"
#include "disk.h"
#include "faultvfs.h"

static const char *const azMode[] = {
  "synchronous=FULL", "waldio_sync=persistent", "synchronous=NORMAL",
  "waldio_sync='group'", "waldio_sync=normal"
};
#define NMODE 5

static const struct Kind { const char *zName; int mOp; int rc; } aKind[] = {
  { "full disk",          FAULT_WRITE,           SQLITE_FULL },
  { "write error",        FAULT_WRITE,           SQLITE_IOERR_WRITE },
  { "read error",         FAULT_READ,            0 },
  { "failed flush",       FAULT_SYNC,            0 },
  { "failed size",        FAULT_SIZE,            0 },
  { "failed open",        FAULT_OPEN|FAULT_NAME, 0 },
  { "failed wal-index",   FAULT_SHM,             0 },
  { "failed lock",        FAULT_LOCK,            0 },
};
#define NKIND ((int)(sizeof(aKind)/sizeof(aKind[0])))

static long nRun;

static sqlite3 *openFile(const char *zMode, const char *zLayout){
  sqlite3 *db = 0;
  char zUri[100];
  snprintf(zUri, sizeof(zUri), "file:/f.db?vfs=waldio%s", zLayout);
  if( sqlite3_open_v2(zUri, &db, SQLITE_OPEN_READWRITE|SQLITE_OPEN_CREATE
                      |SQLITE_OPEN_URI, 0)==SQLITE_OK ){
    testTry(db, "PRAGMA %s", zMode);
    testTry(db, "PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=5");
    testTry(db, "PRAGMA waldio_prealloc=4096; PRAGMA waldio_group_frames=5");
  }
  return db;
}

/* Two connections, all kinds of work. */
static void scenario(const char *zMode, const char *zLayout){
  sqlite3 *db = openFile(zMode, zLayout);
  sqlite3 *db2 = openFile(zMode, zLayout);
  int i;
  for(i=0; i<3; i++) commit(db);
  for(i=0; i<4; i++) commit(i%2 ? db : db2);
  testTry(db, "BEGIN IMMEDIATE; WITH c(i) AS (SELECT 1 UNION ALL "
      "SELECT i+1 FROM c WHERE i<20) INSERT INTO junk SELECT hex(zeroblob(300))"
      " FROM c; UPDATE junk SET a='x'; ROLLBACK");
  if( !sqlite3_get_autocommit(db) ) testTry(db, "ROLLBACK");
  testTry(db, "PRAGMA wal_checkpoint(RESTART)");
  commit(db2);
  commit(db);
  testTry(db, "PRAGMA wal_checkpoint(TRUNCATE)");
  commit(db);
  sqlite3_close(db2);
  testTry(db, "PRAGMA journal_mode=delete");
  commit(db);
  testTry(db, "PRAGMA journal_mode=waldio");
  commit(db);
  sqlite3_close(db);
}

/* The files the scenario begins with. */
static Inode *apKeep[NNAME];
static void put(void){
  char zName[20];
  int i;
  for(i=0; i<NNAME; i++){
    snprintf(zName, sizeof(zName), "/f.db%s", azSuffix[i]);
    diskPut(zName, apKeep[i] ? apKeep[i]->a : 0, apKeep[i] ? apKeep[i]->n : 0);
  }
}
static void prepare(const char *zLayout){
  char zName[20];
  sqlite3 *db;
  int i;
  for(i=0; i<NNAME; i++){
    if( apKeep[i] ) inodeFree(apKeep[i]);
    apKeep[i] = 0;
  }
  put();
  faultSet(0, -1, 0, 0);
  db = openFile("page_size=1024", zLayout);
  testExec(db, "PRAGMA journal_mode=wal");
  accountCreate(db);
  sqlite3_close(db);
  for(i=0; i<NNAME; i++){
    snprintf(zName, sizeof(zName), "/f.db%s", azSuffix[i]);
    apKeep[i] = diskGet(zName);
    if( apKeep[i] ) apKeep[i]->nRef++;
  }
  /* From now on each run has files of its own. */
  put();
}

/* Fail the n-th call, for all n there are. */
static void each(const struct Kind *pKind, int bForever, const char *zMode,
                 const char *zLayout){
  long n, nFailed = 1;
  for(n=0; nFailed; n++){
    sqlite3 *db;
    testBegin("%s, call %ld%s, %s%s", pKind->zName, n, bForever ? " and on" : "",
              zMode, zLayout);
    put();
    accountBegin();
    faultSet(pKind->mOp, n, pKind->rc, bForever);
    scenario(zMode, zLayout);
    nFailed = fault.nFailed;
    faultSet(0, -1, 0, 0);
    CHECK_INT( nTried, 12 );
    if( nFailed==0 ) CHECK_INT( nAcked, nTried );
    db = openFile(zMode, zLayout);
    consistent(db);
    CHECK_INT( commit(db), SQLITE_OK );
    CHECK_INT( sqlite3_close(db), SQLITE_OK );
    db = testOpen("file:/f.db?vfs=disk");
    consistent(db);
    CHECK_INT( sqlite3_close(db), SQLITE_OK );
    nRun++;
  }
  CHECK( n>3 );
}

int main(void){
  const char *zAll = getenv("WALDIO_CALLS");
  int i, j, k;
  testEnter();
  diskRegister();
  disk.bSingle = 1;
  faultRegister();
  CHECK_INT( waldio_register(0), SQLITE_OK );
  for(i=0; i<NMODE; i++){
    for(j=0; j<3; j++){
      if( zAll==0 && i%3!=j ) continue;
      prepare(testLayout("WTP"[j]));
      for(k=0; k<2*NKIND; k++){
        each(&aKind[k/2], k%2, azMode[i], testLayout("WTP"[j]));
      }
    }
  }
  printf("%ld calls failed\n", nRun);
  testLeave("calls");
  return 0;
}
