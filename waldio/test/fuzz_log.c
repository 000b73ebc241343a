/*
** A hostile log: any bytes, opened by waldio beside a good database.
**
** What waldio makes of them is compared, byte by byte, with a second decoder,
** written from the format as waldio.c describes it: each frame SQLite can read,
** and the database after a checkpoint, which must hold the commits before the
** first failed checksum and nothing else.
**
** With clang's fuzzer this is a target (make fuzz).  Without, it is a test: real
** logs of every layout and page size, and mutations of them.  An input is a byte
** that chooses the database, a byte of FIX_... bits, and the log.
**
** The files are in memory, so that an input takes a fraction of a millisecond.
**
**     test-fuzz_log corpus DIR     writes the real logs as inputs
**     test-fuzz_log FILE...        runs inputs
*/
#include "disk.h"
#include <stdint.h>

typedef unsigned char u8;
typedef unsigned int u32;

#define FIX_BLOCK0  1             /* Make block 0 one of this format */
#define FIX_FRAMES  2             /* Make salts and checksums of frames fit */
#define FIX_NORMAL  4             /* locking_mode=NORMAL, with a wal-index */
#define NBASE       16            /* Page sizes 512 to 65536, with and without
                                  ** reserved bytes */
#define MXFRAME     400           /* Frames looked at */
#define MXPAGE      100000        /* Pages of a database that is checked */

/* The databases, as a crash leaves them: marked, log not yet copied. */
static struct Base {
  u8 *a;
  long n;
} aBase[NBASE];

static u32 get4(const u8 *a){
  return (u32)a[0]<<24 | (u32)a[1]<<16 | (u32)a[2]<<8 | a[3];
}
static void put4(u8 *a, u32 v){
  a[0] = (u8)(v>>24); a[1] = (u8)(v>>16); a[2] = (u8)(v>>8); a[3] = (u8)v;
}

/* A file in memory, as testRead has one. */
static u8 *getFile(const char *zName, long *pn){
  const Inode *p = diskGet(zName);
  u8 *a;
  CHECK( p!=0 );
  *pn = (long)p->n;
  a = malloc((size_t)*pn+1);
  CHECK( a!=0 );
  if( *pn ) memcpy(a, p->a, (size_t)*pn);
  return a;
}

/************************** The second decoder ******************************/

/* A log, by the text of the format. */
typedef struct Log Log;
struct Log {
  const u8 *a;
  long n;
  enum { EMPTY, STOCK, OTHER, VALID } eKind;
  int eLayout;                    /* 1 is P, 2 is W, 3 is T */
  long szPage, szSlot;
  long nSlot;                     /* Slots that lie in the file in full */
  u8 aHdr[32];                    /* The log's header as SQLite sees it */
};

/* n bytes of the log; behind its end are zeros. */
static void bytes(const Log *p, long iOfst, u8 *a, long n){
  long nThere = p->n - iOfst;
  if( nThere<0 ) nThere = 0;
  if( nThere>n ) nThere = n;
  if( nThere ) memcpy(a, p->a+iOfst, (size_t)nThere);
  memset(a+nThere, 0, (size_t)(n-nThere));
}

/* wal.c: sums of 32-bit words, of the byte order the magic tells. */
static void checksum(const u8 *a, long n, int bBig, u32 *s){
  long i;
  for(i=0; i<n; i+=8){
    u32 aWord[2];
    int j;
    for(j=0; j<2; j++){
      const u8 *w = a + i + 4*j;
      aWord[j] = bBig ? get4(w)
               : (u32)w[3]<<24 | (u32)w[2]<<16 | (u32)w[1]<<8 | w[0];
    }
    s[0] += aWord[0] + s[1];
    s[1] += aWord[1] + s[0];
  }
}

/* Offset of slot i, from 1. */
static long slot(const Log *p, long i){
  if( p->eLayout==1 ) return 4096 + (i-1)*p->szSlot;
  return 8192 + (i-1)*p->szPage + ((i-1)/128)*4096;
}

static void decodeLog(Log *p, const u8 *a, long n){
  u8 b[64];
  u32 aSum[2] = {0, 0};
  memset(p, 0, sizeof(*p));
  p->a = a;
  p->n = n;
  bytes(p, 0, b, 64);
  if( get4(b)!=0x377f0682 && get4(b)!=0x377f0683 ) return;
  if( get4(b+4)==3007000 ) p->eKind = STOCK;
  if( get4(b+4)!=0x57414c31 || get4(b+60)!=testCrc32c(b, 60) ) return;
  if( memcmp(b+32, "waldio 3", 8)!=0 ){
    p->eKind = OTHER;
    return;
  }
  p->eLayout = b[40];
  p->szPage = get4(b+8);
  p->szSlot = get4(b+44);
  if( p->szPage<512 || p->szPage>65536 || (p->szPage & (p->szPage-1)) ) return;
  if( p->eLayout<1 || p->eLayout>3 ) return;
  if( p->eLayout==1 ){
    if( p->szSlot%512 || p->szSlot<p->szPage+24 || p->szSlot>131072 ) return;
  }else if( p->szSlot!=p->szPage ) return;
  p->eKind = VALID;
  while( slot(p, p->nSlot+1)+p->szSlot<=n ) p->nSlot++;
  memcpy(p->aHdr, b, 24);
  put4(p->aHdr+4, 3007000);
  checksum(p->aHdr, 24, b[3]&1, aSum);
  put4(p->aHdr+24, aSum[0]);
  put4(p->aHdr+28, aSum[1]);
}

/* Offset of the header of frame i. */
static long header(const Log *p, long i){
  return slot(p, i) + p->szPage - (p->eLayout==1 ? 0 : 24);
}

/* Put the tail of a page that ends with aPage[N-28] = where it is. */
static void decodeTail(const Log *p, long i, u8 *aPage){
  long nEnd = p->szPage - 28;
  u32 x = get4(aPage+nEnd);
  long iBit = x>>21, nMove = x>>16 & 31, iAt = x & 0xffff;
  int nTop = p->szPage>4096 ? 2 : 4;
  long nByte = (28-nMove)*8/nTop;
  u8 *aTail = aPage + nEnd;
  long j;
  if( x>>28 || nMove>28 || iAt+nMove>nEnd
   || (nByte>0 && iBit+2*(nByte-1)>=nEnd)
  ){
    long iBlock = slot(p, (i-1)/128*128 + 1) - 4096;
    bytes(p, iBlock + 32*((i-1)%128), aTail, 28);
    return;
  }
  memset(aTail, 0, 28);
  for(j=0; j<nMove; j++){
    aTail[j] = aPage[iAt+j];
    aPage[iAt+j] = 0;
  }
  for(j=0; j<nByte*nTop; j++){
    u8 *pTop = &aPage[iBit + 2*(j/nTop)];
    int m = 0x80>>(j%nTop);
    if( *pTop & m ) aTail[nMove+j/8] |= (u8)(0x80>>(j%8));
    *pTop &= (u8)~m;
  }
}

/* Frame i as SQLite sees it: 24 bytes and the page. */
static void decodeFrame(const Log *p, long i, u8 *aFrame){
  u8 *aPage = aFrame + 24;
  u32 iPage, nSize;
  bytes(p, slot(p, i), aPage, p->szPage);
  bytes(p, header(p, i), aFrame, 24);
  if( p->eLayout!=1 ){
    iPage = get4(aFrame);
    nSize = get4(aFrame+4);
    if( nSize==0xffffffff ){
      put4(aFrame+4, 0);
    }else if( iPage==0xffffffff ){
      put4(aFrame, nSize);
    }else if( nSize!=0 && nSize<iPage ){
      put4(aFrame, nSize);
      put4(aFrame+4, iPage);
    }
    if( get4(aFrame)!=iPage || get4(aFrame+4)!=nSize ){
      decodeTail(p, i, aPage);
    }else{
      memset(aPage + p->szPage - 24, 0, 24);
    }
  }
  if( get4(aFrame)==1 && memcmp(aPage, "SQLite format 3", 16)==0
   && (aPage[19]==0x57 || aPage[19]==0x56) ) aPage[19] = 2;
}

/* The last frame of the last commit, by wal.c's rules, and the pages of the
** database after it. */
static long recover(const Log *p, u8 *aFrame, u32 *pnPage){
  u32 aSum[2];
  long i, iLast = 0;
  *pnPage = 0;
  if( p->eKind!=VALID ) return 0;
  aSum[0] = get4(p->aHdr+24);
  aSum[1] = get4(p->aHdr+28);
  for(i=1; i<=p->nSlot; i++){
    decodeFrame(p, i, aFrame);
    if( memcmp(aFrame+8, p->aHdr+16, 8)!=0 || get4(aFrame)==0 ) break;
    checksum(aFrame, 8, p->aHdr[3]&1, aSum);
    checksum(aFrame+24, p->szPage, p->aHdr[3]&1, aSum);
    if( aSum[0]!=get4(aFrame+16) || aSum[1]!=get4(aFrame+20) ) break;
    if( get4(aFrame+4) ){
      iLast = i;
      *pnPage = get4(aFrame+4);
    }
  }
  return iLast;
}

/* Write salts and checksums that fit to all frames up to MXFRAME. */
static void fixFrames(u8 *a, long n){
  static u8 aFrame[65536+24];
  Log log;
  u32 aSum[2];
  long i;
  decodeLog(&log, a, n);
  aSum[0] = get4(log.aHdr+24);
  aSum[1] = get4(log.aHdr+28);
  for(i=1; log.eKind==VALID && i<=log.nSlot && i<=MXFRAME; i++){
    u8 *aHdr = a + header(&log, i);
    decodeFrame(&log, i, aFrame);
    checksum(aFrame, 8, log.aHdr[3]&1, aSum);
    checksum(aFrame+24, log.szPage, log.aHdr[3]&1, aSum);
    memcpy(aHdr+8, log.aHdr+16, 8);
    put4(aHdr+16, aSum[0]);
    put4(aHdr+20, aSum[1]);
  }
}

/***************************** The comparison *******************************/

static struct Count {
  long nInput, nFrame, nCommit, nImage, nOther;
} count;

/* A log whose pages have another size than the database's, which is refused. */
static int isOfOtherSize(const Log *p, const struct Base *pBase){
  long n = pBase->a[16]*256 + pBase->a[17];
  return p->eKind==VALID && p->szPage!=(n==1 ? 65536 : n);
}

/* Every frame in the file, as waldio shows it to SQLite, in two ways: as SQLite
** reads, and in one piece from the middle of one to the middle of the next. */
static void sameFrames(sqlite3 *db, const Log *p, const struct Base *pBase){
  static u8 aWant[2*(65536+24)], aGot[2*(65536+24)];
  sqlite3_file *pFile = 0;
  sqlite3_int64 n = -1;
  long szFrame = p->szPage + 24;
  long i;
  sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &pFile);
  if( pFile==0 || pFile->pMethods==0 || p->eKind!=VALID ) return;
  CHECK_INT( pFile->pMethods->xFileSize(pFile, &n), SQLITE_OK );
  CHECK_INT( n, 32 + p->nSlot*szFrame );
  if( isOfOtherSize(p, pBase) ){
    CHECK_INT( pFile->pMethods->xRead(pFile, aGot, 32, 0), SQLITE_CANTOPEN );
    count.nOther++;
    return;
  }
  CHECK_INT( pFile->pMethods->xRead(pFile, aGot, 32, 0), SQLITE_OK );
  CHECK( memcmp(aGot, p->aHdr, 32)==0 );
  for(i=1; i<=p->nSlot && i<=MXFRAME; i++){
    sqlite3_int64 iOfst = 32 + (i-1)*szFrame;
    count.nFrame++;
    decodeFrame(p, i, aWant);
    CHECK_INT( pFile->pMethods->xRead(pFile, aGot, 24, iOfst), SQLITE_OK );
    CHECK( memcmp(aGot, aWant, 24)==0 );
    CHECK_INT( pFile->pMethods->xRead(pFile, aGot, (int)p->szPage, iOfst+24), 0 );
    CHECK( memcmp(aGot, aWant+24, (size_t)p->szPage)==0 );
    if( i%7==1 && i<p->nSlot ){
      int j = (int)(i*37%szFrame);
      decodeFrame(p, i+1, aWant+szFrame);
      CHECK_INT( pFile->pMethods->xRead(pFile, aGot, (int)szFrame, iOfst+j), 0 );
      CHECK( memcmp(aGot, aWant+j, (size_t)szFrame)==0 );
    }
  }
}

/* The database after a checkpoint. */
static void sameImage(const Log *p, const struct Base *pBase){
  static u8 aFrame[65536+24];
  long nImage, i, iLast, n;
  u32 nPage;
  u8 *aImage, *aGot;
  iLast = recover(p, aFrame, &nPage);
  nImage = iLast ? (long)nPage*p->szPage : pBase->n;
  aImage = calloc(1, (size_t)nImage+1);
  CHECK( aImage!=0 );
  memcpy(aImage, pBase->a, (size_t)(nImage<pBase->n ? nImage : pBase->n));
  for(i=1; i<=iLast; i++){
    decodeFrame(p, i, aFrame);
    if( get4(aFrame)>nPage ) continue;
    memcpy(aImage + (long)(get4(aFrame)-1)*p->szPage, aFrame+24,
           (size_t)p->szPage);
  }
  aImage[19] = 0x57;
  aGot = getFile("/h.db", &n);
  CHECK_INT( n, nImage );
  CHECK( memcmp(aGot, aImage, (size_t)n)==0 );
  free(aGot);
  free(aImage);
  count.nImage++;
  count.nCommit += iLast>0;
}

/* The database's size in pages, 0 if SQLite does not tell. */
static sqlite3_int64 pageCount(sqlite3 *db){
  sqlite3_stmt *pStmt = 0;
  sqlite3_int64 n = 0;
  if( sqlite3_prepare_v2(db, "PRAGMA page_count", -1, &pStmt, 0)==SQLITE_OK
   && sqlite3_step(pStmt)==SQLITE_ROW ) n = sqlite3_column_int64(pStmt, 0);
  sqlite3_finalize(pStmt);
  return n;
}

/* Whatever SQLite says to what it finds: it must not crash.  Its checks begin
** by zeroing a bit for each page, half a gigabyte if a commit says so: that is
** nothing of waldio's, and was most of the fuzzer's time. */
static void useDatabase(sqlite3 *db){
  testTry(db, "SELECT sum(length(b)) FROM t");
  if( pageCount(db)<=MXPAGE ) testTry(db, "PRAGMA quick_check");
  testTry(db, "UPDATE t SET k=k+1 WHERE a%%5=0");
  testTry(db, "INSERT INTO t(k,b) VALUES(1,randomblob(300))");
}

static void run(const u8 *a, long n, int iBase, int mFix){
  const struct Base *pBase = &aBase[iBase%NBASE];
  int bRead;
  Log log;
  sqlite3 *db;
  count.nInput++;
  diskPut("/h.db", pBase->a, pBase->n);
  diskPut("/h.db-wal", a, n);
  decodeLog(&log, a, n);
  db = testOpen("file:/h.db?vfs=waldio");
  testTry(db, "PRAGMA locking_mode=%s; PRAGMA synchronous=OFF",
          mFix & FIX_NORMAL ? "NORMAL" : "EXCLUSIVE");
  sqlite3_wal_autocheckpoint(db, 0);
  bRead = testTry(db, "SELECT count(*) FROM sqlite_schema")==SQLITE_OK;
  CHECK( !bRead || log.eKind!=OTHER );
  CHECK( !bRead || log.nSlot==0 || !isOfOtherSize(&log, pBase) );
  sameFrames(db, &log, pBase);
  if( bRead && log.eKind!=STOCK
   && sqlite3_wal_checkpoint_v2(db, 0, SQLITE_CHECKPOINT_PASSIVE, 0, 0)==0 ){
    sameImage(&log, pBase);
  }
  if( bRead ) useDatabase(db);
  sqlite3_close(db);
}

int LLVMFuzzerInitialize(int *pArgc, char ***pArgv);
int LLVMFuzzerTestOneInput(const u8 *aIn, size_t nIn);

int LLVMFuzzerTestOneInput(const u8 *aIn, size_t nIn){
  long n = (long)nIn - 2;
  u8 *a;
  if( n<0 ) return 0;
  a = malloc((size_t)n+1);
  CHECK( a!=0 );
  memcpy(a, aIn+2, (size_t)n);
  if( (aIn[1] & FIX_BLOCK0) && n>=64 ){
    put4(a, 0x377f0682 | (a[3] & 1));
    put4(a+4, 0x57414c31);
    memcpy(a+32, "waldio 3", 8);
    put4(a+60, testCrc32c(a, 60));
  }
  if( aIn[1] & FIX_FRAMES ) fixFrames(a, n);
  run(a, n, aIn[0], aIn[1]);
  free(a);
  return 0;
}

/***************************** Real logs ************************************/

/* A row: random, repeated, or longer than a page. */
static void setRow(sqlite3 *db, const char *zSql, int i, int szPage){
  static u8 aBlob[2*65536];
  sqlite3_stmt *pStmt = 0;
  int j, n = (int)rnd(rnd(9) ? 200 : szPage*3u/2);
  int bRandom = rnd(3)!=0;
  for(j=0; j<n; j++) aBlob[j] = bRandom ? (u8)rnd(256) : 'x';
  CHECK_INT( sqlite3_prepare_v2(db, zSql, -1, &pStmt, 0), SQLITE_OK );
  sqlite3_bind_int(pStmt, 1, i);
  sqlite3_bind_int(pStmt, 2, (int)rnd(1u<<24));
  sqlite3_bind_blob(pStmt, 3, aBlob, n, SQLITE_STATIC);
  CHECK_INT( sqlite3_step(pStmt), SQLITE_DONE );
  CHECK_INT( sqlite3_finalize(pStmt), SQLITE_OK );
}

/* Few rows and commits, for many inputs a second. */
#ifdef WALDIO_LIBFUZZER
static const int bSmall = 1;
#else
static int bSmall;
#endif

/* A database of iBase's kind, alike in each run of this program, as the file
** h.db, in use: checkpointed, with commits in the log since. */
static sqlite3 *makeDatabase(int iBase, int szPad){
  int szPage = 512<<(iBase/2);
  int nCommit = bSmall ? 5 : szPage>8192 ? 12 : 60;
  int nRow = bSmall ? 12 : 200;
  u32 nKey = (u32)nRow/4*5;
  sqlite3 *db;
  int i;
  iRandom = 20150708;
  testBegin("database %d, padding %d", iBase, szPad);
  diskPut("/h.db", 0, 0);
  diskPut("/h.db-wal", 0, 0);
  db = testOpen(iBase%2 ? "file:/h.db?vfs=waldio"
                : "file:/h.db?vfs=waldio&waldio_reserve=0");
  CHECK_INT( sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, iBase+1, db), 0 );
  testExec(db, "PRAGMA page_size=%d; PRAGMA journal_mode=wal; PRAGMA "
    "synchronous=OFF; PRAGMA wal_autocheckpoint=0; PRAGMA waldio_prealloc=4096;"
    "PRAGMA secure_delete=0; PRAGMA waldio_padding=%d;"
    "CREATE TABLE t(a INTEGER PRIMARY KEY, k INT, b); CREATE INDEX i ON t(k)",
    szPage, szPad);
  testExec(db, "BEGIN");
  for(i=1; i<=nRow; i++) setRow(db, "INSERT INTO t VALUES(?1,?2,?3)", i, szPage);
  testExec(db, "COMMIT; DELETE FROM t WHERE a%%9=0;"
               "PRAGMA wal_checkpoint(RESTART)");
  for(i=0; i<nCommit; i++){
    testExec(db, "BEGIN");
    setRow(db, "INSERT OR REPLACE INTO t VALUES(?1,?2,?3)", 1+(int)rnd(nKey),
           szPage);
    setRow(db, "UPDATE t SET k=?2, b=?3 WHERE a=?1", 1+(int)rnd(nKey), szPage);
    if( rnd(5)==0 ) testExec(db, "DELETE FROM t WHERE a=%d", 1+(int)rnd(nKey));
    testExec(db, "COMMIT");
  }
  return db;
}

/* The databases, and what the log of each of them ends in: the same state as
** if it had been closed. */
static void makeBases(void){
  int i;
  for(i=0; i<NBASE; i++){
    sqlite3 *db = makeDatabase(i, 0);
    aBase[i].a = getFile("/h.db", &aBase[i].n);
    CHECK_INT( aBase[i].a[19], 0x57 );
    sqlite3_close(db);
  }
}

#ifdef WALDIO_LIBFUZZER
/* At exit, but not after a crash. */
static void fuzzLeave(void){
  testLeave("fuzz_log");
}
#endif

int LLVMFuzzerInitialize(int *pArgc, char ***pArgv){
  (void)pArgc; (void)pArgv;
  testEnter();
#ifdef WALDIO_LIBFUZZER
  atexit(fuzzLeave);
#endif
  CHECK_INT( sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0), SQLITE_OK );
  diskRegister();
  CHECK_INT( waldio_register(0), SQLITE_OK );
  makeBases();
  return 0;
}

#ifndef WALDIO_LIBFUZZER

/* The log of a database of iBase's kind, as an input. */
static u8 *realInput(int iBase, int szPad, long *pn){
  sqlite3 *db = makeDatabase(iBase, szPad);
  long nLog, nDb, nGot;
  u8 *aLog = getFile("/h.db-wal", &nLog);
  u8 *aIn = malloc((size_t)nLog+2);
  u8 *aDb, *aGot;
  CHECK( aIn!=0 );
  if( iBase<8 && szPad==0 && !bSmall ){
    CHECK( atoi(testText(db, "SELECT moved FROM waldio_stat"))>=20 || iBase%2 );
    CHECK( atoi(testText(db, "SELECT escapes FROM waldio_stat"))>=5 || iBase%2 );
  }
  sqlite3_close(db);
  aIn[0] = (u8)iBase;
  aIn[1] = 0;
  memcpy(aIn+2, aLog, (size_t)nLog);
  *pn = nLog+2;
  /* The log alone, beside the database it began with, gives what SQLite had:
  ** nothing was lost, and the second decoder knows it all. */
  testBegin("log of database %d, padding %d, unchanged", iBase, szPad);
  aDb = getFile("/h.db", &nDb);
  diskPut("/h.db", aBase[iBase].a, aBase[iBase].n);
  diskPut("/h.db-wal", aLog, nLog);
  db = testOpen("file:/h.db?vfs=waldio");
  testExec(db, "PRAGMA synchronous=OFF; SELECT * FROM t");
  sqlite3_close(db);
  aGot = getFile("/h.db", &nGot);
  CHECK_INT( nGot, nDb );
  CHECK( memcmp(aGot, aDb, (size_t)nDb)==0 );
  free(aGot);
  free(aDb);
  free(aLog);
  return aIn;
}

/* Change an input: somewhere, or where the format has its numbers. */
static void mutate(u8 *a, long *pn){
  static const u32 aNumber[] = {
    0, 1, 2, 27, 28, 100, 127, 484, 511, 4068, 4069, 0xffff, 0x10000, 0x1c0000,
    0x1f0000, 0x1c01e4, 0xfe00000, 0xfffffff, 0x10000000, 0x7fffffff, 0xffffffff
  };
  long szPage = 512L<<(a[0]/2);
  long n = *pn - 2;
  u8 *aLog = a + 2;
  int nChange = 1 + (int)rnd(6);
  a[1] = (u8)rnd(8);
  if( rnd(4)==0 ) n = 2 + (long)rnd((u32)n-2);
  while( nChange-- > 0 && n>8192+2*szPage ){
    long nFrame = (n-8192)/szPage;
    long iFrame = 1 + (long)rnd((u32)(nFrame<60 ? nFrame : 60));
    long iEnd = 8192 + iFrame*szPage;     /* Of a slot of W or T */
    long k;
    switch( rnd(9) ){
      case 0: aLog[rnd((u32)n)] ^= (u8)(1<<rnd(8)); break;
      case 1: aLog[rnd(64)] ^= (u8)(1<<rnd(8)); break;
      case 2: put4(aLog+iEnd-28, aNumber[rnd(sizeof(aNumber)/4)]); break;
      case 3: put4(aLog+iEnd-28, rnd(128)<<21 | rnd(32)<<16 | rnd((u32)szPage));
              break;
      case 4: put4(aLog+iEnd-24+4*(long)rnd(2), aNumber[rnd(sizeof(aNumber)/4)]);
              break;
      case 5: aLog[4096+rnd(4096)] ^= (u8)(1<<rnd(8)); break;
      case 6: memmove(aLog+iEnd-szPage, aLog+8192+szPage*(long)rnd((u32)nFrame-1),
                      (size_t)szPage); break;
      case 7: put4(aLog+8, 512u<<rnd(8)); put4(aLog+44, get4(aLog+8));
              a[1] |= FIX_BLOCK0; break;
      case 8: for(k=4096; k+20<=n; k+=512){
                if( memcmp(aLog+k, "SQLite format 3", 16)==0 ){
                  aLog[k+19] = "\x56\x01\x00\x03"[rnd(4)];
                }
              }
              break;
    }
  }
  *pn = n + 2;
}

static void mutations(int iBase, int szPad, int nEach){
  long n;
  u8 *a = realInput(iBase, szPad, &n);
  u8 *aCopy = malloc((size_t)n);
  int i;
  CHECK( aCopy!=0 );
  CHECK_INT( LLVMFuzzerTestOneInput(a, (size_t)n), 0 );
  for(i=0; i<nEach; i++){
    long nCopy = n;
    testBegin("log of database %d, padding %d, mutation %d", iBase, szPad, i);
    iRandom = (u32)(i+1)*2654435761u + (u32)iBase;
    memcpy(aCopy, a, (size_t)n);
    mutate(aCopy, &nCopy);
    CHECK_INT( LLVMFuzzerTestOneInput(aCopy, (size_t)nCopy), 0 );
  }
  free(aCopy);
  free(a);
}

/* Write the real logs to a directory. */
static void corpus(const char *zDir){
  int i;
  for(i=0; i<NBASE; i++){
    int b;
    for(b=0; b<2; b++){
      char zName[700];
      long n;
      u8 *a = realInput(i, b ? 512 : 0, &n);
      snprintf(zName, sizeof(zName), "%s%s/%d-%s", zDir[0]=='/' ? "" : "../../",
               zDir, i, b ? "padded" : "embedded");
      testWrite(zName, a, n);
      free(a);
    }
  }
}

int main(int argc, char **argv){
  const char *zRounds = getenv("WALDIO_ROUNDS");
  int i;
  bSmall = argc==3 && strcmp(argv[1], "corpus")==0;
  LLVMFuzzerInitialize(&argc, &argv);
  if( bSmall ){
    corpus(argv[2]);
  }else if( argc>1 ){
    for(i=1; i<argc; i++){
      char zName[700];
      long n;
      u8 *a;
      snprintf(zName, sizeof(zName), "%s%s", argv[i][0]=='/' ? "" : "../../",
               argv[i]);
      a = testRead(zName, &n);
      testBegin("input %.200s", argv[i]);
      LLVMFuzzerTestOneInput(a, (size_t)n);
      free(a);
    }
  }else{
    for(i=0; i<NBASE; i++){
      int nEach = (zRounds ? atoi(zRounds) : 4)*(i<8 ? 20 : 5);
      mutations(i, 0, nEach);
      mutations(i, i%3 ? 512 : 4096, nEach);
    }
    CHECK( count.nCommit>300 && count.nImage>count.nCommit && count.nOther>100 );
    printf("%ld logs, %ld frames and %ld databases compared, %ld with commits\n",
           count.nInput, count.nFrame, count.nImage, count.nCommit);
  }
  testLeave("fuzz_log");
  return 0;
}
#endif /* WALDIO_LIBFUZZER */
