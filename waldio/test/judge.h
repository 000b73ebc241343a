/*
** What a database holds that was left behind by a power loss, opened with
** waldio and with stock SQLite.
**
** Commit n of a workload sets meta.n to n; its digest is that of all rows.  So
** a database has the commits 1 to n and none of the others, whole, exactly if
** its digest is the one of commit n.
*/
#ifndef WALDIO_JUDGE_H
#define WALDIO_JUDGE_H

#include "explore.h"

#define MXCOMMIT 4000
#define MXLOST   400

/* What one SQLite sees. */
typedef struct View View;
struct View {
  int n;                          /* Commits, or VIEW_... */
  u64 iDigest;
};
#define VIEW_REFUSED  (-1)        /* Not opened, nothing changed */
#define VIEW_BAD      (-2)

/* What is known of a state, by the hash of its files. */
typedef struct Known Known;
struct Known {
  u64 h;
  View waldio, stock;
};
#define NKNOWN (1<<21)            /* A power of two */
static Known *aKnown;
static int nKnown;

static char zBad[500];            /* What was wrong with a state first */

static void badState(const char *zFormat, ...){
  va_list ap;
  if( zBad[0] ) return;
  va_start(ap, zFormat);
  vsnprintf(zBad, sizeof(zBad), zFormat, ap);
  va_end(ap);
}

/* Four words at a time, which do not wait for one another. */
static u64 hashBytes(u64 h, const u8 *a, i64 n){
  u64 aLane[4] = { h, h+1, h+2, h+3 };
  u64 x;
  int i;
  for(; n>=32; n-=32, a+=32){
    for(i=0; i<4; i++){
      memcpy(&x, a+8*i, 8);
      aLane[i] = (aLane[i] ^ x)*0x9fb21c651e98df25ull;
      aLane[i] ^= aLane[i]>>29;
    }
  }
  for(i=0; i<4; i++){
    h = (h ^ aLane[i])*0x9fb21c651e98df25ull;
    h ^= h>>29;
  }
  for(; n>0; n--, a++) h = (h ^ *a)*0x100000001b3ull;
  return h;
}
static u64 stateHash(const State *p){
  u64 h = 0x57414c31;
  int i;
  for(i=0; i<NNAME; i++){
    h = (h ^ (u64)(p->aFile[i].bThere ? p->aFile[i].n+1 : 0))*0x9fb21c651e98df25ull;
    if( p->aFile[i].bThere ) h = hashBytes(h, p->aFile[i].a, p->aFile[i].n);
  }
  return h ^ h>>32;
}

/* The digest of the rows, 0 if there is no table; -1 in *pn for an error. */
static u64 digest(sqlite3 *db, int *pn){
  sqlite3_stmt *pStmt = 0;
  u64 h = 1;
  int i, rc;
  *pn = 0;
  if( sqlite3_prepare_v2(db, "SELECT n, a, b, c FROM meta LEFT JOIN t"
                         " ORDER BY a", -1, &pStmt, 0)!=SQLITE_OK ){
    if( strncmp(sqlite3_errmsg(db), "no such table", 13)!=0 ) *pn = -1;
    return 0;
  }
  while( (rc = sqlite3_step(pStmt))==SQLITE_ROW ){
    *pn = sqlite3_column_int(pStmt, 0);
    for(i=1; i<4; i++){
      const u8 *a = sqlite3_column_blob(pStmt, i);
      int n = sqlite3_column_bytes(pStmt, i);
      h = hashBytes(h ^ (u64)n, a, n) + 1;
    }
  }
  if( rc!=SQLITE_DONE ) *pn = -1;
  sqlite3_finalize(pStmt);
  return h;
}

static View viewBad(sqlite3 *db, const char *zVfs, const char *zWhat){
  View v = { VIEW_BAD, 0 };
  badState("%s: %s: %s", zVfs, zWhat, sqlite3_errmsg(db));
  return v;
}

/* Open the database /q.db and look at all of it; write as well if bWrite. */
static View viewOf(const char *zVfs, int bWrite){
  char zUri[64];
  const char *z;
  sqlite3 *db = 0;
  View v = { 0, 0 };
  snprintf(zUri, sizeof(zUri), "file:/q.db?vfs=%s", zVfs);
  if( sqlite3_open_v2(zUri, &db, SQLITE_OPEN_READWRITE|SQLITE_OPEN_CREATE
                      |SQLITE_OPEN_URI, 0)!=SQLITE_OK ){
    v = viewBad(db, zVfs, "open");
  }else{
    v.iDigest = digest(db, &v.n);
    if( v.n<0 ){
      int rc = sqlite3_errcode(db);
      v.n = VIEW_REFUSED;
      if( rc!=SQLITE_CANTOPEN && rc!=SQLITE_NOTADB ) v = viewBad(db, zVfs, "read");
    }else if( strcmp(z = testText(db, "PRAGMA integrity_check"), "ok")!=0 ){
      v = viewBad(db, zVfs, z);
    }else if( bWrite && v.n>0
           && (testTry(db, "INSERT INTO t(b,c) VALUES(1,zeroblob(900))")
            || testTry(db, "DELETE FROM t WHERE a=last_insert_rowid()")) ){
      v = viewBad(db, zVfs, "write");
    }
  }
  if( sqlite3_close(db)!=SQLITE_OK ) v = viewBad(db, zVfs, "close");
  return v;
}

/* What waldio saw first is what is seen after another use: a close leaves a
** plain database behind, and stock SQLite that refuses a database loses nothing
** of it.  (It may roll back a hot journal, and delete a log that holds nothing.)
*/
static void afterwards(Known *p, View v, const char *zWho){
  if( p->waldio.n<0 || (v.n==p->waldio.n && v.iDigest==p->waldio.iDigest) ) return;
  badState("%s: %d commits, not %d", zWho, v.n, p->waldio.n);
  p->waldio.n = VIEW_BAD;
}

/* Look at a state, or remember it.  *pbNew tells which. */
static const Known *judge(const State *pState, int *pbNew){
  u64 h = stateHash(pState) | 1;
  unsigned i = (unsigned)(h>>20) & (NKNOWN-1);
  Known *p;
  if( aKnown==0 ) aKnown = calloc(NKNOWN, sizeof(Known));
  CHECK( aKnown!=0 && nKnown<NKNOWN/4*3 );
  while( aKnown[i].h && aKnown[i].h!=h ) i = (i+1) & (NKNOWN-1);
  p = &aKnown[i];
  *pbNew = p->h==0;
  if( p->h ) return p;
  p->h = h;
  nKnown++;
  putState(pState);
  p->waldio = viewOf("waldio", h%8==0);
  if( p->waldio.n>=0 ){
    afterwards(p, viewOf("disk", 0), "stock SQLite after waldio");
  }
  putState(pState);
  p->stock = viewOf("disk", 0);
  if( p->stock.n==VIEW_REFUSED && p->waldio.n>=0 ){
    afterwards(p, viewOf("waldio", 0), "waldio after stock SQLite refused");
  }
  return p;
}

/* What a state has to hold. */
typedef struct Promise Promise;
struct Promise {
  int nAcked;                     /* Commits that have to be there */
  int nTried;                     /* No more than these */
  int bPlain;                     /* Stock SQLite can use it */
  const u64 *aDigest;             /* Of the commits */
  struct { int n; u64 iDigest; } aLost[MXLOST];
  int nLost;                      /* Begun in a life before and not there after it */
};

/* True if this is a commit that was lost in a life before.  Its frames lie in the log
** until they are overwritten, and may come back until another commit is durable: the
** next power loss adds the sectors that the last one had left out.  That is so with
** stock SQLite too. */
static int wasLost(const View *p, const Promise *pPromise){
  int i;
  for(i=0; i<pPromise->nLost; i++){
    if( pPromise->aLost[i].n==p->n && pPromise->aLost[i].iDigest==p->iDigest ){
      return 1;
    }
  }
  return 0;
}

static int viewKept(const View *p, const Promise *pPromise, const char *zWho){
  if( p->n==VIEW_BAD ) return 0;
  if( p->n>pPromise->nAcked && wasLost(p, pPromise) ) return 1;
  if( p->n<pPromise->nAcked || p->n>pPromise->nTried ){
    badState("%s: %d commits, %d acknowledged, %d begun",
             zWho, p->n, pPromise->nAcked, pPromise->nTried);
    return 0;
  }
  if( p->iDigest!=pPromise->aDigest[p->n] ){
    badState("%s: not what commit %d left", zWho, p->n);
    return 0;
  }
  return 1;
}
/* True if a state is what was promised; else zBad tells why not. */
static int promiseKept(const Known *p, const Promise *pPromise){
  if( !viewKept(&p->waldio, pPromise, "waldio") ) return 0;
  if( p->stock.n==VIEW_REFUSED ){
    if( pPromise->bPlain ) badState("stock SQLite: refused");
    return !pPromise->bPlain;
  }
  return viewKept(&p->stock, pPromise, "stock SQLite");
}

#endif /* WALDIO_JUDGE_H */
