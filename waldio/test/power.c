/*
** Power is lost at any moment.  Every commit that promised durability is there
** afterwards, none in part, and none without those before it; stock SQLite can
** use the database whenever it must be plain, and otherwise sees the same or
** changes nothing.
**
** A workload runs on a disk in memory that records all (disk.h, workload.h).
** Then, for each moment of the record, some of the states that a power loss
** could leave are opened (explore.h, judge.h).  One of them is where the next
** life of the database begins.
**
** Last, the disk leaves out what waldio asked for, one thing at a time; that
** has to be found.
**
** WALDIO_STATES is the number of distinct states, WALDIO_SEED another choice of
** them, WALDIO_MODE the only mode.  The seed decides all but the order in which
** threads commit.  The files of the first violation are kept, with the record.
*/
#include "workload.h"

typedef struct Cell Cell;
struct Cell {
  long nState, nDistinct, nBad;
};
static Cell aCell[NMODE][NLAYOUT];

/* One database, from life to life. */
typedef struct Run Run;
struct Run {
  Work work;
  Promise promise;
  Cell *pCell;
  State now;                      /* Looked at */
  State next;                     /* Where the next life begins */
  int nNext;                      /* Commits of that, */
  u64 iNext;                      /* ... and its digest: it may be one that was lost */
  int nSeen;                      /* States of this life */
  int iOp;                        /* After this operation */
  int bStop;                      /* End at the first violation */
  int bBad;
};

static void copyState(State *pTo, const State *pFrom){
  int i;
  for(i=0; i<NNAME; i++){
    Image *p = &pTo->aFile[i];
    roomFor(&p->a, &p->mx, pFrom->aFile[i].n+1);
    p->bThere = pFrom->aFile[i].bThere;
    p->n = p->bThere ? pFrom->aFile[i].n : 0;
    if( p->n ) memcpy(p->a, pFrom->aFile[i].a, (size_t)p->n);
  }
}
static void freeState(State *p){
  int i;
  for(i=0; i<NNAME; i++) free(p->aFile[i].a);
}

/* Keep the files of a violation, and the record up to there. */
static void keepState(const State *p, int iEnd){
  static const char *const azOp[] = {
    "", "write", "size", "synced", "settled", "link", "unlink", "dirsync",
    "ack", "plain", "layout"
  };
  char zName[40];
  FILE *f = fopen("violation.txt", "w");
  int i;
  CHECK( f!=0 );
  fprintf(f, "%s: %s\n", testName, zBad);
  for(i=0; i<=iEnd; i++){
    const Op *q = &rec.aOp[i];
    fprintf(f, "%d: %s %d %lld at %lld%s\n", i, azOp[q->eOp], q->iNode, q->n,
            q->iOfst, q->eOp==OP_WRITE && q->pData==0 ? ", zeros" : "");
  }
  fclose(f);
  for(i=0; i<NNAME; i++){
    if( !p->aFile[i].bThere ) continue;
    snprintf(zName, sizeof(zName), "violation.db%s", azSuffix[i]);
    f = fopen(zName, "wb");
    CHECK( f!=0 && fwrite(p->aFile[i].a, 1, (size_t)p->aFile[i].n, f)
                   ==(size_t)p->aFile[i].n );
    fclose(f);
  }
}

static int lookAt(State *pState, void *pArg){
  Run *p = pArg;
  int bNew;
  const Known *q;
  zBad[0] = 0;
  q = judge(pState, &bNew);
  p->pCell->nState++;
  p->pCell->nDistinct += bNew;
  if( !promiseKept(q, &p->promise) ){
    p->pCell->nBad++;
    if( !p->bBad && eMutant==MUTANT_NONE ){
      fprintf(stderr, "%s: %s\n", testName, zBad);
      keepState(pState, p->iOp);
    }
    p->bBad = 1;
    return p->bStop;
  }
  /* Any state is as likely as another to be the next beginning. */
  if( exRandom((unsigned)++p->nSeen)==0 ){
    copyState(&p->next, pState);
    p->nNext = q->waldio.n;
    p->iNext = q->waldio.iDigest;
  }
  return 0;
}

/* Go through the record and look at about nBudget states. */
static void explore(Run *p, int iFirst, int iMode, int nBudget){
  int i, nPoint = 1;
  State start;
  memset(&start, 0, sizeof(start));
  copyState(&start, &p->next);
  exploreBegin(&start, iFirst);
  freeState(&start);
  for(i=0; i<rec.nOp; i++) nPoint += rec.aOp[i].eOp!=OP_LAYOUT;
  p->nSeen = 0;
  for(i=0; i<rec.nOp; i++){
    const Op *pOp = &rec.aOp[i];
    int n = nBudget/nPoint;
    int bNew = exploreStep(i);
    p->iOp = i;
    if( pOp->eOp==OP_LAYOUT ) p->pCell = &aCell[iMode][pOp->n];
    if( pOp->eOp==OP_ACK && pOp->n>p->promise.nAcked ) p->promise.nAcked = (int)pOp->n;
    if( pOp->eOp==OP_PLAIN ) p->promise.bPlain = (int)pOp->n;
    if( !bNew || pOp->eOp==OP_LAYOUT ) continue;
    if( n<4 ) n = exRandom((unsigned)nPoint*4)<(unsigned)nBudget ? 4 : 0;
    testBegin("%s, %s, page size %d, operation %d of %d", p->work.pMode->zName,
              p->work.pWish->zName, p->work.szPage, i, rec.nOp);
    if( n && exploreHere(&p->now, n, lookAt, p) ) break;
  }
}

/* Put the database where it begins; the number of its first inode. */
static int putNext(const State *p){
  int iFirst = disk.nNode+1;
  char zName[32];
  int i;
  for(i=0; i<NNAME; i++){
    snprintf(zName, sizeof(zName), "/p.db%s", azSuffix[i]);
    diskPut(zName, p->aFile[i].bThere ? p->aFile[i].a : 0, p->aFile[i].n);
  }
  return iFirst;
}
static void takeNext(State *p){
  char zName[32];
  int i;
  for(i=0; i<NNAME; i++){
    Image *pFile = &p->aFile[i];
    const Inode *q;
    snprintf(zName, sizeof(zName), "/p.db%s", azSuffix[i]);
    q = diskGet(zName);
    pFile->bThere = q!=0;
    if( q==0 ) continue;
    roomFor(&pFile->a, &pFile->mx, q->n+1);
    if( q->n ) memcpy(pFile->a, q->a, (size_t)q->n);
    pFile->n = q->n;
  }
}

/* nLife lives of a database, about nBudget states in each.  Returns nonzero
** for a violation. */
static int runLives(int iMode, int iWish, int szPage, int nLife, int nBudget,
                    int bStop){
  static Run run;
  int i, j;
  for(i=0; i<NNAME; i++) run.next.aFile[i].n = run.next.aFile[i].bThere = 0;
  putNext(&run.next);
  memset(&run.work, 0, sizeof(run.work));
  run.work.pMode = &aMode[iMode];
  run.work.pWish = &aWish[iWish];
  run.work.szPage = szPage;
  run.work.iRandom = ex.iRandom;
  run.bStop = bStop;
  run.bBad = 0;
  run.promise.nLost = 0;
  disk.bSingle = (int)exRandom(3)!=0;
  testBegin("%s, %s, page size %d", aMode[iMode].zName, aWish[iWish].zName, szPage);
  createDatabase(&run.work);
  takeNext(&run.next);
  run.nNext = 1;
  run.iNext = run.work.aDigest[1];
  for(j=0; j<nLife && !(bStop && run.bBad); j++){
    int iFirst = putNext(&run.next);
    for(i=run.nNext+1; j>0 && i<=run.promise.nTried && run.promise.nLost<MXLOST; i++){
      run.promise.aLost[run.promise.nLost].n = i;
      run.promise.aLost[run.promise.nLost++].iDigest = run.work.aDigest[i];
    }
    run.work.aDigest[run.nNext] = run.iNext;
    run.promise.nAcked = run.nNext;
    run.promise.bPlain = 0;
    run.promise.aDigest = run.work.aDigest;
    run.work.nCommit = run.nNext;
    run.pCell = &aCell[iMode][0];
    recordOn(1);
    life(&run.work, 8+(int)exRandom(szPage>8192 ? 8 : 24));
    recordOn(0);
    run.promise.nTried = run.work.nCommit;
    explore(&run, iFirst, iMode, nBudget);
    recordClear();
  }
  return run.bBad;
}

/* All modes, layouts and page sizes, until there are nWant distinct states. */
static void exploreAll(int nWant){
  int nBudget = nWant/(NMODE*NWISH*8)/2 + 20;
  const char *zOnly = getenv("WALDIO_MODE");
  int i, iMode, iWish;
  do{
    for(i=0; i<8; i++){
      /* Large pages make states slow. */
      int n = i<5 ? nBudget : nBudget/3;
      for(iMode=0; iMode<NMODE; iMode++){
        if( zOnly && strcmp(zOnly, aMode[iMode].zName)!=0 ) continue;
        for(iWish=0; iWish<NWISH; iWish++){
          runLives(iMode, iWish, 512<<i, 3, n, 0);
        }
      }
    }
  }while( nKnown<nWant );
}

static void printTable(void){
  Cell all = {0, 0, 0};
  int i, j;
  printf("%-18s %-7s %10s %10s %10s\n", "mode", "layout", "states", "distinct",
         "violations");
  for(i=0; i<NMODE; i++){
    for(j=0; j<NLAYOUT; j++){
      const Cell *p = &aCell[i][j];
      if( p->nState==0 ) continue;
      printf("%-18s %-7s %10ld %10ld %10ld\n", aMode[i].zName, azLayout[j],
             p->nState, p->nDistinct, p->nBad);
      all.nState += p->nState;
      all.nDistinct += p->nDistinct;
      all.nBad += p->nBad;
    }
  }
  printf("%-18s %-7s %10ld %10ld %10ld\n", "all", "", all.nState, all.nDistinct,
         all.nBad);
  CHECK_INT( all.nBad, 0 );
}

/* A disk that leaves something out is found. */
static void mutants(void){
  static const struct { int eMutant; int iMode; const char *zName; } a[] = {
    { MUTANT_HEADER,   5, "the log's header is not flushed" },
    { MUTANT_COMMIT,   1, "a commit is not flushed" },
    { MUTANT_SINGLE,   0, "a single write is not durable" },
    { MUTANT_DATABASE, 0, "the database is not flushed" },
    { MUTANT_NAMES,    0, "names are not flushed" },
    { MUTANT_LATE,     1, "the last write comes behind the flush" },
    { MUTANT_EMPTY,    0, "the emptied log is not flushed" },
  };
  unsigned i;
  int j;
  for(i=0; i<sizeof(a)/sizeof(a[0]); i++){
    int bFound = 0;
    eMutant = a[i].eMutant;
    for(j=0; j<40 && !bFound; j++){
      bFound = runLives(a[i].iMode, j%NWISH, 512<<j%4, 3, 600, 1);
    }
    printf("mutant: %s: %s after %d\n", a[i].zName, bFound ? zBad : "NOT FOUND", j);
    testBegin("mutant: %s", a[i].zName);
    CHECK( bFound );
  }
  eMutant = MUTANT_NONE;
}

int main(void){
  const char *zStates = getenv("WALDIO_STATES");
  const char *zSeed = getenv("WALDIO_SEED");
  testEnter();
  ex.iRandom = zSeed ? strtoull(zSeed, 0, 10) : 20150708;
  disk.iRandom = ex.iRandom;
  printf("seed %llu, SQLite %s%s\n", ex.iRandom, sqlite3_libversion(),
         savepointsSpill() ? "" : ": no savepoint is rolled back behind a spill");
  diskRegister();
  CHECK_INT( waldio_register(0), SQLITE_OK );
  exploreAll(zStates ? atoi(zStates) : 10000);
  printTable();
  mutants();
  testLeave("power");
  return 0;
}
