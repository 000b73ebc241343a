/*
** Power is lost at any moment.  A VFS below waldio keeps apart what was synced
** and what was only written.  At a power loss each sector written since the
** last sync of its file is there or not, in any combination.  What is left is
** opened again: every commit that promised durability is there, and none in
** part.
**
** The VFS also makes single writes durable, as O_DIRECT and RWF_DSYNC do, and
** nothing but these.  WALDIO_ROUNDS asks for more states.
*/
#include "test.h"
#include <pthread.h>

#define SECTOR 512

static unsigned rnd(unsigned n){
  static unsigned long long i = 20150708;
  unsigned long long x = __atomic_add_fetch(&i, 0x9e3779b97f4a7c15ull,
                                            __ATOMIC_RELAXED);
  x = (x ^ (x>>30))*0xbf58476d1ce4e5b9ull;
  return (unsigned)((x ^ (x>>27))>>32)%n;
}

/****************************** The power VFS *******************************/

/* A write that was not synced; pData is NULL for a truncation to iOfst. */
typedef struct Pending Pending;
struct Pending {
  Pending *pNext;
  unsigned char *pData;
  int n;
  sqlite3_int64 iOfst;
};

/* One file: its synced bytes, and what came after. */
typedef struct Image Image;
struct Image {
  char zName[300];
  unsigned char *a;
  sqlite3_int64 n;
};
static struct Disk {
  Image image;
  Pending *pFirst, **ppLast;
} aDisk[2];                       /* The database and its log */
static pthread_mutex_t diskMutex = PTHREAD_MUTEX_INITIALIZER;
static void (*xOnWrite)(void);    /* Called before each write */
static int bSingle;               /* Single writes can be made durable */
static int nSingle;               /* How many were */

typedef struct PowerFile PowerFile;
struct PowerFile {
  sqlite3_file base;
  struct Disk *pDisk;
};
#define LOWERFILE(p) ((sqlite3_file*)((PowerFile*)(p)+1))
static sqlite3_vfs *pLowerVfs;

static void imageSize(Image *p, sqlite3_int64 n){
  p->a = realloc(p->a, (size_t)n+1);
  CHECK( p->a!=0 );
  if( n>p->n ) memset(p->a+p->n, 0, (size_t)(n-p->n));
  p->n = n;
}
static void imageWrite(Image *p, const unsigned char *a, int n, sqlite3_int64 i){
  if( i+n>p->n ) imageSize(p, i+n);
  memcpy(p->a+i, a, (size_t)n);
}
static void addPending(struct Disk *pDisk, const void *a, int n, sqlite3_int64 i){
  Pending *p = calloc(1, sizeof(*p));
  CHECK( p!=0 );
  if( a ){
    p->pData = malloc((size_t)n);
    CHECK( p->pData!=0 );
    memcpy(p->pData, a, (size_t)n);
  }
  p->n = n;
  p->iOfst = i;
  pthread_mutex_lock(&diskMutex);
  *pDisk->ppLast = p;
  pDisk->ppLast = &p->pNext;
  pthread_mutex_unlock(&diskMutex);
}

static int pwClose(sqlite3_file *p){
  return LOWERFILE(p)->pMethods->xClose(LOWERFILE(p));
}
static int pwRead(sqlite3_file *p, void *a, int n, sqlite3_int64 i){
  return LOWERFILE(p)->pMethods->xRead(LOWERFILE(p), a, n, i);
}
static int pwWrite(sqlite3_file *p, const void *a, int n, sqlite3_int64 i){
  struct Disk *pDisk = ((PowerFile*)p)->pDisk;
  if( pDisk ){
    if( xOnWrite ) xOnWrite();
    addPending(pDisk, a, n, i);
  }
  return LOWERFILE(p)->pMethods->xWrite(LOWERFILE(p), a, n, i);
}
static int pwTruncate(sqlite3_file *p, sqlite3_int64 n){
  struct Disk *pDisk = ((PowerFile*)p)->pDisk;
  if( pDisk ) addPending(pDisk, 0, 0, n);
  return LOWERFILE(p)->pMethods->xTruncate(LOWERFILE(p), n);
}
/* Only what was written before a sync began is durable when it ends. */
static int pwSync(sqlite3_file *pFile, int flags){
  struct Disk *pDisk = ((PowerFile*)pFile)->pDisk;
  Pending **ppEnd;
  (void)flags;
  if( pDisk==0 ) return SQLITE_OK;
  pthread_mutex_lock(&diskMutex);
  ppEnd = pDisk->ppLast;
  pthread_mutex_unlock(&diskMutex);
  if( __atomic_load_n(&xOnWrite, __ATOMIC_RELAXED)==0 ) usleep(100);
  pthread_mutex_lock(&diskMutex);
  /* Another sync may have been here, and passed that end. */
  {
    Pending *p;
    int bFound = ppEnd==&pDisk->pFirst;
    for(p=pDisk->pFirst; p && !bFound; p=p->pNext) bFound = ppEnd==&p->pNext;
    while( bFound && ppEnd!=&pDisk->pFirst ){
      p = pDisk->pFirst;
      if( p->pData ) imageWrite(&pDisk->image, p->pData, p->n, p->iOfst);
      else imageSize(&pDisk->image, p->iOfst);
      pDisk->pFirst = p->pNext;
      if( pDisk->ppLast==&p->pNext ) pDisk->ppLast = &pDisk->pFirst;
      if( ppEnd==&p->pNext ) ppEnd = &pDisk->pFirst;
      free(p->pData);
      free(p);
    }
  }
  pthread_mutex_unlock(&diskMutex);
  return SQLITE_OK;
}
static int pwFileSize(sqlite3_file *p, sqlite3_int64 *pn){
  return LOWERFILE(p)->pMethods->xFileSize(LOWERFILE(p), pn);
}
static int pwLock(sqlite3_file *p, int e){
  return LOWERFILE(p)->pMethods->xLock(LOWERFILE(p), e);
}
static int pwUnlock(sqlite3_file *p, int e){
  return LOWERFILE(p)->pMethods->xUnlock(LOWERFILE(p), e);
}
static int pwCheckLock(sqlite3_file *p, int *pOut){
  return LOWERFILE(p)->pMethods->xCheckReservedLock(LOWERFILE(p), pOut);
}

/* A write that is durable, alone: those before it stay pending. */
static int durableWrite(sqlite3_file *pFile, const waldio_write *pWrite){
  struct Disk *pDisk = ((PowerFile*)pFile)->pDisk;
  const unsigned char *a = pWrite->pData;
  int n = (int)pWrite->nByte;
  int i, rc = SQLITE_OK;
  if( pDisk==0 || !bSingle ) return SQLITE_NOTFOUND;
  CHECK( n%SECTOR==0 && pWrite->iOfst%SECTOR==0 );
  if( xOnWrite ) xOnWrite();
  pthread_mutex_lock(&diskMutex);
  imageWrite(&pDisk->image, a, n, pWrite->iOfst);
  nSingle++;
  pthread_mutex_unlock(&diskMutex);
  for(i=0; i<n && rc==SQLITE_OK; i+=65536){
    int m = n-i>65536 ? 65536 : n-i;
    rc = LOWERFILE(pFile)->pMethods->xWrite(LOWERFILE(pFile), a+i, m,
                                            pWrite->iOfst+i);
  }
  return rc;
}
static int pwControl(sqlite3_file *p, int op, void *pArg){
  if( op==WALDIO_FCNTL_WRITE ) return durableWrite(p, pArg);
  return LOWERFILE(p)->pMethods->xFileControl(LOWERFILE(p), op, pArg);
}
static int pwSector(sqlite3_file *p){
  return LOWERFILE(p)->pMethods->xSectorSize(LOWERFILE(p));
}
static int pwDevice(sqlite3_file *p){
  return LOWERFILE(p)->pMethods->xDeviceCharacteristics(LOWERFILE(p));
}
static int pwShmMap(sqlite3_file *p, int i, int n, int b, void volatile **pp){
  return LOWERFILE(p)->pMethods->xShmMap(LOWERFILE(p), i, n, b, pp);
}
static int pwShmLock(sqlite3_file *p, int i, int n, int flags){
  return LOWERFILE(p)->pMethods->xShmLock(LOWERFILE(p), i, n, flags);
}
static void pwShmBarrier(sqlite3_file *p){
  LOWERFILE(p)->pMethods->xShmBarrier(LOWERFILE(p));
}
static int pwShmUnmap(sqlite3_file *p, int b){
  return LOWERFILE(p)->pMethods->xShmUnmap(LOWERFILE(p), b);
}

static int pwOpen(sqlite3_vfs *pVfs, const char *zName, sqlite3_file *pFile,
                  int flags, int *pOut){
  static const sqlite3_io_methods methods = {
    2, pwClose, pwRead, pwWrite, pwTruncate, pwSync, pwFileSize, pwLock,
    pwUnlock, pwCheckLock, pwControl, pwSector, pwDevice, pwShmMap, pwShmLock,
    pwShmBarrier, pwShmUnmap, 0, 0
  };
  PowerFile *p = (PowerFile*)pFile;
  int i, rc;
  (void)pVfs;
  p->base.pMethods = 0;
  p->pDisk = 0;
  for(i=0; zName && i<2; i++){
    if( strcmp(aDisk[i].image.zName, zName)==0 ) p->pDisk = &aDisk[i];
  }
  rc = pLowerVfs->xOpen(pLowerVfs, zName, LOWERFILE(p), flags, pOut);
  if( rc==SQLITE_OK ) p->base.pMethods = &methods;
  return rc;
}

static void powerRegister(void){
  static sqlite3_vfs vfs;
  pLowerVfs = sqlite3_vfs_find(0);
  vfs = *pLowerVfs;
  vfs.zName = "power";
  vfs.pNext = 0;
  vfs.szOsFile += (int)sizeof(PowerFile);
  vfs.xOpen = pwOpen;
  CHECK_INT( sqlite3_vfs_register(&vfs, 1), SQLITE_OK );
}

/* Begin with the files as they are, all durable. */
static void powerOn(const char *zDb){
  int i;
  for(i=0; i<2; i++){
    struct Disk *p = &aDisk[i];
    FILE *f;
    while( p->pFirst ){
      Pending *pNext = p->pFirst->pNext;
      free(p->pFirst->pData);
      free(p->pFirst);
      p->pFirst = pNext;
    }
    p->ppLast = &p->pFirst;
    snprintf(p->image.zName, sizeof(p->image.zName), "%.200s/%s%s",
             testHome, zDb, i ? "-wal" : "");
    imageSize(&p->image, 0);
    f = fopen(p->image.zName, "rb");
    if( f ){
      int c;
      sqlite3_int64 n = 0;
      CHECK( fseek(f, 0, SEEK_END)==0 );
      imageSize(&p->image, ftell(f));
      rewind(f);
      while( (c = getc(f))!=EOF ) p->image.a[n++] = (unsigned char)c;
      fclose(f);
    }
  }
}

/* One state a power loss may leave: the synced bytes, and of the sectors that
** were written since each with a chance of nPercent. */
static void powerLoss(Image *aOut, unsigned nPercent){
  int i;
  pthread_mutex_lock(&diskMutex);
  for(i=0; i<2; i++){
    Pending *p;
    memset(&aOut[i], 0, sizeof(aOut[i]));
    imageSize(&aOut[i], aDisk[i].image.n);
    memcpy(aOut[i].a, aDisk[i].image.a, (size_t)aOut[i].n);
    for(p=aDisk[i].pFirst; p; p=p->pNext){
      int j = 0;
      if( p->pData==0 ){
        if( rnd(100)<nPercent ) imageSize(&aOut[i], p->iOfst);
        continue;
      }
      while( j<p->n ){
        int m = SECTOR - (int)((p->iOfst+j)%SECTOR);
        if( m>p->n-j ) m = p->n-j;
        if( rnd(100)<nPercent ) imageWrite(&aOut[i], p->pData+j, m, p->iOfst+j);
        j += m;
      }
    }
  }
  pthread_mutex_unlock(&diskMutex);
}

/****************************** The workload ********************************/

static int nAcked;                /* The last commit that returned */
static int bSure;                 /* It promised to be durable */
static int bPrefix;               /* Commits are rows 1, 2 and so on */
static int nState;                /* States looked at */

/* Open a state and look at it.  The first iSure commits are there for sure.
** Returns how many are, and these are the first ones. */
static int verifyState(Image *a, const char *zWhere, int iSure){
  char zName[100];
  sqlite3 *db;
  int i, n;
  for(i=0; i<2; i++){
    FILE *f;
    snprintf(zName, sizeof(zName), "%s.db%s", zWhere, i ? "-wal" : "");
    f = fopen(zName, "wb");
    CHECK( f!=0 && fwrite(a[i].a, 1, (size_t)a[i].n, f)==(size_t)a[i].n );
    fclose(f);
    free(a[i].a);
  }
  snprintf(zName, sizeof(zName), "file:%s.db?vfs=waldio", zWhere);
  db = testOpen(zName);
  CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
  n = atoi(testText(db, "SELECT count(*) FROM t"));
  CHECK_INT( atoi(testText(db, "SELECT n FROM acct WHERE id=2")), n );
  CHECK_INT( atoi(testText(db, "SELECT n FROM acct WHERE id=1")), -n );
  if( bPrefix ) CHECK_INT( atoi(testText(db, "SELECT max(a) FROM t")), n );
  if( iSure ) CHECK_INT( atoi(testText(db, "SELECT count(*) FROM t WHERE a=%d",
                                       iSure)), 1 );
  sqlite3_close(db);
  __atomic_fetch_add(&nState, 1, __ATOMIC_RELAXED);
  return n;
}

/* States kept inside of a transaction, to be looked at after it. */
static struct Kept { Image a[2]; int iSure; } aKept[400];
static int nKept;
static int iBusy;                 /* One of how many writes is a state */

static void keepState(void){
  static const unsigned aPercent[] = { 0, 50, 100, 90, 10 };
  if( nKept<(int)(sizeof(aKept)/sizeof(aKept[0])) && rnd((unsigned)iBusy)==0 ){
    aKept[nKept].iSure = bSure ? nAcked : 0;
    powerLoss(aKept[nKept++].a, aPercent[rnd(5)]);
  }
}
static void verifyKept(void){
  int i;
  __atomic_store_n(&xOnWrite, 0, __ATOMIC_RELAXED);
  for(i=0; i<nKept; i++) verifyState(aKept[i].a, "q", aKept[i].iSure);
  nKept = 0;
  __atomic_store_n(&xOnWrite, keepState, __ATOMIC_RELAXED);
}

static int transfer(sqlite3 *db, int i){
  return testTry(db, "BEGIN IMMEDIATE;"
      "UPDATE acct SET n=n-1 WHERE id=1; UPDATE acct SET n=n+1 WHERE id=2;"
      "INSERT INTO t VALUES(%d, hex(zeroblob(%d))); COMMIT", i, 50+i%9*150);
}

static void create(int szPage, int cLayout){
  sqlite3 *db;
  char zUri[100];
  CHECK_INT( testShell("rm -f p.db* q.db*"), 0 );
  snprintf(zUri, sizeof(zUri), "file:p.db?vfs=waldio%s", testLayout(cLayout));
  db = testOpen(zUri);
  testExec(db, "PRAGMA page_size=%d; PRAGMA journal_mode=wal;"
    "CREATE TABLE acct(id INTEGER PRIMARY KEY, n);"
    "INSERT INTO acct VALUES(1,0),(2,0);"
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b); CREATE TABLE junk(a)", szPage);
  sqlite3_close(db);
}

/* What a connection promises. */
static const struct Promise { const char *zSet; int bSure; } aPromise[] = {
  { "synchronous=FULL", 1 },
  { "synchronous=NORMAL", 0 },
  { "waldio_sync=persistent", 1 },
  { "synchronous=NORMAL; PRAGMA waldio_sync=persistent", 1 },
  { "synchronous=FULL; PRAGMA waldio_sync=normal", 0 },
  { "waldio_sync='group'; PRAGMA waldio_group_ms=1", 0 },
  { "waldio_sync='group'; PRAGMA waldio_group_frames=1", 1 },
};
#define FULL       0
#define NORMAL     1
#define PERSISTENT 2
#define GROUP      5

/* One connection, all kinds of work, a state at each iEach-th write or so. */
static void alone(int szPage, int cLayout, int iPromise, int iEach){
  char zUri[100];
  sqlite3 *db;
  const struct Promise *pPromise = &aPromise[iPromise];
  int i, j = 0;
  testBegin("page size %d, layout %c, %s", szPage, cLayout, pPromise->zSet);
  create(szPage, cLayout);
  snprintf(zUri, sizeof(zUri), "file:p.db?vfs=waldio%s", testLayout(cLayout));
  powerOn("p.db");
  iBusy = iEach;
  nAcked = 0;
  bSure = pPromise->bSure;
  bPrefix = 1;
  __atomic_store_n(&xOnWrite, keepState, __ATOMIC_RELAXED);
  for(i=0; i<4; i++){
    db = testOpen(zUri);
    testExec(db, "PRAGMA %s; PRAGMA wal_autocheckpoint=%d;"
                 "PRAGMA waldio_prealloc=%d; PRAGMA cache_size=10",
                 pPromise->zSet, i%2 ? 12 : 0, i<2 ? 8192 : 0);
    while( rnd(12) ){
      CHECK_INT( transfer(db, ++j), SQLITE_OK );
      nAcked = j;
      verifyKept();
      if( rnd(6)==0 ){
        testExec(db, "BEGIN; WITH c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c"
          " WHERE i<40) INSERT INTO junk SELECT hex(zeroblob(200)) FROM c;"
          "UPDATE junk SET a='x'; %s", rnd(2) ? "ROLLBACK" : "COMMIT");
      }
      if( rnd(6)==0 ){
        testExec(db, "PRAGMA wal_checkpoint(%s)", rnd(2) ? "RESTART" : "TRUNCATE");
      }
      verifyKept();
    }
    sqlite3_close(db);
    verifyKept();
  }
  __atomic_store_n(&xOnWrite, 0, __ATOMIC_RELAXED);
  bPrefix = 0;
}

/* waldio_sync='group' loses the last commits, of less than nMax frames, and with
** no more to come none for ever. */
static void delayed(int cLayout, int nMax){
  sqlite3 *db;
  int aFrame[201], i, n, nLost = 0;
  Image a[2];
  testBegin("group sync, layout %c, %d frames", cLayout, nMax);
  create(1024, cLayout);
  powerOn("p.db");
  bPrefix = 1;
  db = testOpen("file:p.db?vfs=waldio");
  testExec(db, "PRAGMA waldio_sync='group'; PRAGMA waldio_group_ms=60000;"
    "PRAGMA waldio_group_frames=%d; PRAGMA wal_autocheckpoint=50", nMax);
  aFrame[0] = 0;
  for(i=1; i<=200; i++){
    CHECK_INT( transfer(db, i), SQLITE_OK );
    aFrame[i] = atoi(testText(db, "SELECT frames FROM waldio_stat WHERE database"
                                  " LIKE '%%/p.db'"));
    powerLoss(a, i%2 ? 0 : 50);
    n = verifyState(a, "q", 0);
    CHECK( aFrame[i]-aFrame[n]<nMax );
    if( n<i ) nLost++;
  }
  CHECK( nLost>20 );
  testExec(db, "PRAGMA waldio_group_ms=5");
  CHECK_INT( transfer(db, i), SQLITE_OK );
  do{
    powerLoss(a, 0);
  }while( verifyState(a, "q", 0)<i );
  testExec(db, "PRAGMA waldio_group_ms=60000");
  CHECK_INT( transfer(db, ++i), SQLITE_OK );
  sqlite3_close(db);
  powerLoss(a, 0);
  CHECK_INT( verifyState(a, "q", 0), i );
  bPrefix = 0;
}

/* A reader with waldio_durable_reads sees nothing that a power loss undoes. */
static void durableReads(int iWriter){
  sqlite3 *db, *dbRead;
  Image a[2];
  int i, n;
  testBegin("durable reads, writer with %s", aPromise[iWriter].zSet);
  create(1024, 'W');
  powerOn("p.db");
  db = testOpen("file:p.db?vfs=waldio");
  testExec(db, "PRAGMA %s; PRAGMA waldio_group_ms=60000;"
               "PRAGMA wal_autocheckpoint=50", aPromise[iWriter].zSet);
  dbRead = testOpen("file:p.db?vfs=waldio");
  for(i=1; i<=100; i++){
    testExec(dbRead, "PRAGMA waldio_durable_reads=%d", i>1);
    CHECK_INT( transfer(db, i), SQLITE_OK );
    n = atoi(testText(dbRead, "SELECT max(a) FROM t"));
    CHECK_INT( n, i );
    powerLoss(a, 0);
    n = verifyState(a, "q", 0);
    CHECK_INT( n, i>1 ? i : 0 );
  }
  sqlite3_close(dbRead);
  sqlite3_close(db);
}

/* Threads commit in groups; each cuts the power when its commit returned. */
static int iNext;
static const char *zGroup;        /* Their option */
static void *groupMain(void *pArg){
  char zWhere[20];
  int i;
  sqlite3 *db = testOpen("file:p.db?vfs=waldio");
  snprintf(zWhere, sizeof(zWhere), "q%ld", (long)pArg);
  testExec(db, "PRAGMA %s; PRAGMA wal_autocheckpoint=40", zGroup);
  for(i=0; i<40; i++){
    int iRow = __atomic_add_fetch(&iNext, 1, __ATOMIC_RELAXED);
    Image a[2];
    CHECK_INT( transfer(db, iRow), SQLITE_OK );
    powerLoss(a, i%3 ? 0 : 50);
    verifyState(a, zWhere, iRow);
  }
  sqlite3_close(db);
  return 0;
}
static void groups(int cLayout, int iPromise){
  pthread_t a[4];
  sqlite3 *db;
  long i;
  zGroup = aPromise[iPromise].zSet;
  testBegin("4 threads, layout %c, %s", cLayout, zGroup);
  create(1024, cLayout);
  powerOn("p.db");
  iNext = 0;
  db = testOpen("file:p.db?vfs=waldio");
  testExec(db, "SELECT * FROM t");
  for(i=0; i<4; i++) CHECK_INT( pthread_create(&a[i], 0, groupMain, (void*)i), 0 );
  for(i=0; i<4; i++) CHECK_INT( pthread_join(a[i], 0), 0 );
  if( iPromise==FULL ){
    CHECK( atoi(testText(db, "SELECT groups FROM waldio_stat WHERE database"
                             " LIKE '%%/p.db'"))>0 );
  }
  CHECK_STR( testText(db, "SELECT count(*) FROM t"), "160" );
  sqlite3_close(db);
}

int main(void){
  const char *zRounds = getenv("WALDIO_ROUNDS");
  int i, nRound = zRounds ? atoi(zRounds) : 4;
  testEnter();
  /* SQLite opens files by their full names. */
  CHECK( getcwd(testHome, 200)!=0 );
  powerRegister();
  CHECK_INT( waldio_register(0), SQLITE_OK );
  for(i=0; i<2*nRound; i++){
    bSingle = i%2;
    alone(512, 'P', FULL, 4);
    alone(512, 'T', FULL, 4);
    alone(512, 'W', FULL, 4);
    alone(1024, 'P', NORMAL, 4);
    alone(1024, 'T', NORMAL, 4);
    alone(4096, 'W', NORMAL, 3);
    alone(4096, 'W', FULL, 3);
    alone(4096, 'T', FULL, 3);
    alone(65536, 'P', FULL, 2);
    alone(65536, 'T', FULL, 2);
    alone(1024, "WTP"[i%3], PERSISTENT, 4);
    alone(1024, "WTP"[i%3], PERSISTENT+1+i%4, 4);
  }
  for(i=0; i<nRound; i++){
    bSingle = i%2==0;
    groups("WTP"[i%3], FULL);
    groups("WTP"[i%3], PERSISTENT);
    delayed("WTP"[i%3], 10+i%4*20);
    durableReads(i%2 ? NORMAL : GROUP);
  }
  CHECK( nSingle>0 );
  printf("%d states after a power loss\n", nState);
  snprintf(testHome, sizeof(testHome), "../..");
  testLeave("power");
  return 0;
}
