/*
** The states a power loss can leave, from a record of disk.h.
**
** After each operation of the record some bytes are durable, and others are on
** their way.  These are cut into pieces, none larger than a sector, each of
** which is there or not; a sector has then all that was written to it up to its
** last piece, as the page cache has.  The size of a file may be any it had
** since it was flushed, or as far as its data reach; names come and go in their
** order, or in any, and what a file holds where nothing was written is zero.
** A truncation is there or not, and without it nothing that came after it.
** A flush of a new file makes its name durable, as on ext4, XFS and F2FS.
**
** Few pieces are tried in every combination.  Of many there are samples:
** prefixes, torn ones, all but one, one alone, one file without the other, and
** any.
*/
#ifndef WALDIO_EXPLORE_H
#define WALDIO_EXPLORE_H

#include "disk.h"

typedef sqlite3_int64 i64;
typedef unsigned char u8;
typedef unsigned long long u64;

/* A part of a sector that is not durable yet; pData is NULL for zeros. */
typedef struct Piece Piece;
struct Piece {
  int iOp;
  int iSector;
  i64 iOfst;
  int n;
  int bHole;                      /* Made by a truncation */
  const u8 *pData;
};

/* A file as the disk has it, and what is on the way. */
typedef struct Node Node;
struct Node {
  u8 *a;                          /* Durable content */
  i64 n, mx;                      /* Durable size, and room */
  i64 nNow;                       /* Size as programs see it */
  Piece *aPiece;
  int nPiece, mxPiece;
  struct { int iOp; i64 n; int bShrink; } aSize[4000];
  int nSize;
};

/* Names as the disk has them, and what is on the way. */
typedef struct NameOp NameOp;
struct NameOp {
  int iOp, iName, iNode;          /* iNode is 0 for a deletion */
};

/* How a sample chooses among the pieces. */
#define HOW_PREFIX   0            /* All up to an operation */
#define HOW_TORN     1            /* ... and a part of the next one */
#define HOW_DROP     2            /* All but one operation */
#define HOW_MISSING  3            /* All but one piece */
#define HOW_ALONE    4            /* One operation */
#define HOW_SUFFIX   5            /* All from an operation on */
#define HOW_FILE     6            /* One file, nothing of the others */
#define HOW_RANDOM   7            /* Each with a chance of nPercent */
#define HOW_MASK     8            /* Those whose bit is set */
#define HOW_NONE     9
#define HOW_ALL      10

typedef struct Choice Choice;
struct Choice {
  int eHow;
  int iOp, iPiece, iNode;
  unsigned nPercent;
  u64 mask;
  int eSize;                      /* SIZE_... */
  int bAnyName;                   /* Names in any order */
};
#define SIZE_DATA   0             /* As far as the data reach */
#define SIZE_PREFIX 1             /* As with the choice of operations */
#define SIZE_ANY    2             /* Any since the last flush */

#define MXNODE 64
static struct Explorer {
  u64 iRandom;
  int iFirst;                     /* Number of the first inode */
  Node aNode[MXNODE];
  int aiName[NNAME];              /* Durable names: inode or 0 */
  NameOp aNameOp[MXNODE];
  int nNameOp;
  Choice now;                     /* How the last state was chosen */
} ex;

/* A state: the files by name; not there if bThere is 0. */
typedef struct Image Image;
struct Image {
  int bThere;
  u8 *a;
  i64 n, mx;
};
typedef struct State State;
struct State {
  Image aFile[NNAME];
};

static unsigned exRandom(unsigned n){
  return rndOf(&ex.iRandom, n);
}

static void roomFor(u8 **pa, i64 *pmx, i64 n){
  if( n<=*pmx ) return;
  *pmx = n + n/2 + 4096;
  *pa = realloc(*pa, (size_t)*pmx);
  CHECK( *pa!=0 );
}
/* Write n bytes at i of p, which is as long as it has to be. */
static void put(u8 *p, const u8 *pData, int n){
  if( pData ) memcpy(p, pData, (size_t)n);
  else memset(p, 0, (size_t)n);
}
/*************************** From one operation to the next *****************/

static Node *exNode(int iNode){
  CHECK( iNode>=ex.iFirst && iNode<ex.iFirst+MXNODE );
  return &ex.aNode[iNode-ex.iFirst];
}

/* Begin with the files of a state, all durable, as inodes from iFirst on. */
static void exploreBegin(const State *pState, int iFirst){
  int i;
  for(i=0; i<MXNODE; i++){
    ex.aNode[i].n = ex.aNode[i].nNow = 0;
    ex.aNode[i].nPiece = ex.aNode[i].nSize = 0;
  }
  ex.iFirst = iFirst;
  ex.nNameOp = 0;
  for(i=0; i<NNAME; i++){
    const Image *pFile = &pState->aFile[i];
    ex.aiName[i] = 0;
    if( pFile->bThere ){
      Node *p = exNode(iFirst);
      roomFor(&p->a, &p->mx, pFile->n+1);
      if( pFile->n ) memcpy(p->a, pFile->a, (size_t)pFile->n);
      p->n = p->nNow = pFile->n;
      ex.aiName[i] = iFirst++;
    }
  }
}

static void addPieces(Node *p, int iOp, i64 iOfst, i64 n, const u8 *pData,
                      int bHole){
  while( n>0 ){
    int m = SECTOR - (int)(iOfst%SECTOR);
    Piece *q;
    if( m>n ) m = (int)n;
    if( p->nPiece==p->mxPiece ){
      p->mxPiece = 2*p->mxPiece + 100;
      p->aPiece = realloc(p->aPiece, (size_t)p->mxPiece*sizeof(Piece));
      CHECK( p->aPiece!=0 );
    }
    q = &p->aPiece[p->nPiece++];
    q->iOp = iOp;
    q->iSector = (int)(iOfst/SECTOR);
    q->iOfst = iOfst;
    q->n = m;
    q->bHole = bHole;
    q->pData = pData;
    if( pData ) pData += m;
    iOfst += m; n -= m;
  }
}
static void addSize(Node *p, int iOp, i64 n){
  CHECK( p->nSize<(int)(sizeof(p->aSize)/sizeof(p->aSize[0])) );
  p->aSize[p->nSize].iOp = iOp;
  p->aSize[p->nSize].bShrink = n<p->nNow;
  p->aSize[p->nSize++].n = n;
  p->nNow = n;
}

/* The size of a file is durable as it was after operation iOp; what is zero in
** between is among the pieces. */
static void sizeSynced(Node *p, int iOp){
  i64 n = p->n;
  int i;
  for(i=0; i<p->nSize && p->aSize[i].iOp<=iOp; i++) n = p->aSize[i].n;
  memmove(p->aSize, &p->aSize[i], (size_t)(p->nSize-i)*sizeof(p->aSize[0]));
  p->nSize -= i;
  roomFor(&p->a, &p->mx, n+1);
  if( n>p->n ) memset(p->a+p->n, 0, (size_t)(n-p->n));
  p->n = n;
}

/* All of a file before operation iOp is durable. */
static void nodeSynced(Node *p, int iOp){
  int i, j = 0;
  sizeSynced(p, iOp-1);
  for(i=0; i<p->nPiece; i++){
    Piece *q = &p->aPiece[i];
    if( q->iOp>=iOp ){
      p->aPiece[j++] = *q;
    }else if( q->iOfst+q->n<=p->n ){
      put(p->a+q->iOfst, q->pData, q->n);
    }
  }
  p->nPiece = j;
}
/*
** Write iOp is durable, what was written before to its sectors, and the size if
** it had to be; also a truncation before, since the blocks may be others now.
*/
static void nodeSettled(Node *p, int iOp){
  const Op *pOp = &rec.aOp[iOp];
  i64 iEnd = pOp->iOfst + pOp->n;
  int bSize = iEnd>p->n;
  int i, j = 0;
  for(i=0; i<p->nSize && p->aSize[i].iOp<iOp; i++) bSize |= p->aSize[i].bShrink;
  if( bSize ) sizeSynced(p, iOp);
  CHECK( iEnd<=p->n );
  for(i=0; i<p->nPiece; i++){
    Piece *q = &p->aPiece[i];
    int bIn = q->iOfst>=pOp->iOfst && q->iOfst<iEnd;
    if( q->iOp>iOp || (!bIn && !(bSize && q->bHole)) ){
      p->aPiece[j++] = *q;
    }else if( !bIn && q->iOfst+q->n<=p->n ){
      put(p->a+q->iOfst, q->pData, q->n);
    }
  }
  p->nPiece = j;
  put(p->a+pOp->iOfst, pOp->pData, (int)pOp->n);
}

/* All names are durable, or those before operation iOp that lead to inode iNode;
** what happened to these names before is then past. */
static void namesSynced(int iNode, int iOp){
  int i, k, j = 0;
  for(i=0; i<ex.nNameOp; i++){
    const NameOp p = ex.aNameOp[i];
    if( p.iOp>=iOp || (iNode && p.iNode!=iNode) ){
      ex.aNameOp[j++] = p;
      continue;
    }
    ex.aiName[p.iName] = p.iNode;
    for(k=0; k<j; ){
      if( ex.aNameOp[k].iName==p.iName ){
        memmove(&ex.aNameOp[k], &ex.aNameOp[k+1], (size_t)(--j-k)*sizeof(p));
      }
      else{ k++; }
    }
  }
  ex.nNameOp = j;
}

/* Operation iOp of the record happens.  Returns 0 if no state is new. */
static int exploreStep(int iOp){
  const Op *p = &rec.aOp[iOp];
  NameOp *q;
  Node *pNode;
  switch( p->eOp ){
    case OP_WRITE:
      pNode = exNode(p->iNode);
      addPieces(pNode, iOp, p->iOfst, p->n, p->pData, 0);
      if( p->iOfst+p->n>pNode->nNow ) addSize(pNode, iOp, p->iOfst+p->n);
      return 1;
    case OP_SIZE:
      pNode = exNode(p->iNode);
      if( p->n<pNode->nNow ){
        addPieces(pNode, iOp, p->n, pNode->nNow-p->n, 0, 1);
      }
      addSize(pNode, iOp, p->n);
      return 1;
    case OP_SYNCED:
      nodeSynced(exNode(p->iNode), (int)p->iOfst);
      namesSynced(p->iNode, (int)p->iOfst);
      return 0;
    case OP_SETTLED:
      nodeSettled(exNode(p->iNode), (int)p->iOfst);
      return 0;
    case OP_LINK:
    case OP_UNLINK:
      CHECK( ex.nNameOp<MXNODE );
      q = &ex.aNameOp[ex.nNameOp++];
      q->iOp = iOp;
      q->iName = (int)p->n;
      q->iNode = p->iNode;
      return 1;
    case OP_DIRSYNC:
      namesSynced(0, iOp);
      return 0;
    default:
      return 1;
  }
}

/****************************** One state ***********************************/

/* True if a piece, the i-th of all, of operation iOp survives. */
static int survives(const Choice *p, int i, int iOp, int iNode){
  switch( p->eHow ){
    case HOW_PREFIX:  return iOp<=p->iOp;
    case HOW_TORN:    return iOp<p->iOp || (iOp==p->iOp && exRandom(2));
    case HOW_DROP:    return iOp!=p->iOp;
    case HOW_MISSING: return i!=p->iPiece;
    case HOW_ALONE:   return iOp==p->iOp;
    case HOW_SUFFIX:  return iOp>=p->iOp;
    case HOW_FILE:    return iNode==p->iNode;
    case HOW_RANDOM:  return exRandom(100)<p->nPercent;
    case HOW_MASK:    return i<0 ? (int)exRandom(2) : (int)(p->mask>>i & 1);
    default:          return p->eHow==HOW_ALL;
  }
}

/* The first truncation that does not survive, and with it all that came later
** to the file.  *pFirst is the size that the last one that does leaves. */
static int chosenCut(const Node *pNode, const Choice *p, int *pFirst){
  int i;
  *pFirst = -1;
  for(i=0; i<pNode->nSize; i++){
    if( !pNode->aSize[i].bShrink ) continue;
    if( !survives(p, -1, pNode->aSize[i].iOp, 0) ) return pNode->aSize[i].iOp;
    *pFirst = i;
  }
  return 0x7fffffff;
}
static i64 chosenSize(const Node *pNode, const Choice *p, i64 nData, int iCut,
                      int iFirst){
  i64 n = iFirst>=0 ? pNode->aSize[iFirst].n : pNode->n;
  int i, nSize = 0;
  if( p->eHow==HOW_ALL ) return pNode->nNow;
  if( p->eHow==HOW_NONE ) return pNode->n;
  for(i=iFirst+1; i<pNode->nSize && pNode->aSize[i].iOp<iCut; i++) nSize++;
  switch( p->eSize ){
    case SIZE_DATA:
      return nData>n ? nData : n;
    case SIZE_PREFIX:
      for(i=iFirst+1; i<=iFirst+nSize; i++){
        if( survives(p, -1, pNode->aSize[i].iOp, 0) ) n = pNode->aSize[i].n;
      }
      return n;
    default:
      i = (int)exRandom((unsigned)nSize+1);
      return i ? pNode->aSize[iFirst+i].n : n;
  }
}

/* Which inode each name leads to. */
static void chosenNames(const Choice *p, int *aiName){
  int i, n = ex.nNameOp;
  memcpy(aiName, ex.aiName, sizeof(ex.aiName));
  if( p->eHow==HOW_NONE ) n = 0;
  if( p->eHow!=HOW_NONE && p->eHow!=HOW_ALL && !p->bAnyName ){
    n = (int)exRandom((unsigned)n+1);
  }
  for(i=0; i<n; i++){
    const NameOp *q = &ex.aNameOp[i];
    if( !p->bAnyName || p->eHow==HOW_ALL || exRandom(2) ){
      aiName[q->iName] = q->iNode;
    }
  }
}

/* Build file iNode; *pi counts the pieces of all files. */
static void buildFile(Image *pOut, int iNode, const Choice *p, int *pi){
  static int *aLast;
  static int nLast;
  Node *pNode = exNode(iNode);
  i64 nData = 0, n, mx = pNode->n;
  int i, iFirst;
  int iCut = chosenCut(pNode, p, &iFirst);
  for(i=0; i<pNode->nPiece; i++){
    const Piece *q = &pNode->aPiece[i];
    if( q->iSector>=nLast ){
      int nNew = 2*q->iSector + 100;
      aLast = realloc(aLast, (size_t)nNew*sizeof(int));
      CHECK( aLast!=0 );
      nLast = nNew;
    }
    aLast[q->iSector] = -1;
  }
  for(i=0; i<pNode->nPiece; i++){
    const Piece *q = &pNode->aPiece[i];
    i64 iEnd = q->iOfst + q->n;
    if( iEnd>mx ) mx = iEnd;
    if( (survives(p, (*pi)++, q->iOp, iNode) || q->bHole) && q->iOp<iCut ){
      aLast[q->iSector] = q->iOp;
      if( !q->bHole && iEnd>nData ) nData = iEnd;
    }
  }
  n = chosenSize(pNode, p, nData, iCut, iFirst);
  if( n>mx ) mx = n;
  roomFor(&pOut->a, &pOut->mx, mx+1);
  if( pNode->n ) memcpy(pOut->a, pNode->a, (size_t)pNode->n);
  memset(pOut->a+pNode->n, 0, (size_t)(mx-pNode->n));
  for(i=0; i<pNode->nPiece; i++){
    const Piece *q = &pNode->aPiece[i];
    if( q->iOp<=aLast[q->iSector] ) put(pOut->a+q->iOfst, q->pData, q->n);
  }
  pOut->n = n;
  pOut->bThere = 1;
}

static void buildState(State *pOut, const Choice *p){
  int aiName[NNAME];
  int i, iPiece = 0;
  ex.now = *p;
  chosenNames(p, aiName);
  for(i=0; i<NNAME; i++){
    pOut->aFile[i].bThere = 0;
    if( aiName[i] ) buildFile(&pOut->aFile[i], aiName[i], p, &iPiece);
  }
}

/* Have the files of a state, as the database /q.db. */
static UNUSED void putState(const State *p){
  char zName[32];
  int i;
  for(i=0; i<NNAME; i++){
    snprintf(zName, sizeof(zName), "/q.db%s", azSuffix[i]);
    diskPut(zName, p->aFile[i].bThere ? p->aFile[i].a : 0, p->aFile[i].n);
  }
}

/**************************** Which states **********************************/

/* Pieces on the way, and operations they are of. */
static int pendingPieces(void){
  int i, n = 0;
  for(i=0; i<MXNODE; i++) n += ex.aNode[i].nPiece;
  return n;
}
/* The operation of any piece, or of a name. */
static int anyOp(void){
  int i;
  int n = (int)exRandom((unsigned)(pendingPieces() + ex.nNameOp) + 1);
  for(i=0; i<MXNODE; i++){
    if( n<ex.aNode[i].nPiece ) return ex.aNode[i].aPiece[n].iOp;
    n -= ex.aNode[i].nPiece;
  }
  return n<ex.nNameOp ? ex.aNameOp[n].iOp : 0;
}

/* A sample; the first ones are nothing and all. */
static void sample(Choice *p, int i){
  static const u8 aHow[] = {
    HOW_PREFIX, HOW_TORN, HOW_DROP, HOW_RANDOM, HOW_ALONE, HOW_TORN,
    HOW_MISSING, HOW_RANDOM, HOW_SUFFIX, HOW_FILE, HOW_PREFIX, HOW_DROP
  };
  static const u8 aPercent[] = { 50, 90, 10, 75, 25, 97, 3 };
  memset(p, 0, sizeof(*p));
  p->eHow = i==0 ? HOW_NONE : i==1 ? HOW_ALL : aHow[exRandom(sizeof(aHow))];
  p->iOp = anyOp();
  p->iPiece = (int)exRandom((unsigned)pendingPieces()+1);
  p->iNode = ex.iFirst + (int)exRandom(NNAME+1);
  p->nPercent = aPercent[exRandom(sizeof(aPercent))];
  p->eSize = (int)exRandom(3);
  p->bAnyName = exRandom(4)==0;
}

/*
** Call xState for nState states at this moment, or for all there are if these
** are few.  It returns nonzero to end the exploration.
*/
static UNUSED int exploreHere(State *pState, int nState, int (*xState)(State*, void*),
                       void *pArg){
  int nPiece = pendingPieces();
  Choice c;
  int i;
  if( nPiece<=10 && (1<<nPiece)<=nState ){
    for(i=0; i<(1<<nPiece); i++){
      sample(&c, 2);
      c.eHow = HOW_MASK;
      c.mask = (u64)i;
      buildState(pState, &c);
      if( xState(pState, pArg) ) return 1;
    }
    return 0;
  }
  for(i=0; i<nState; i++){
    sample(&c, i);
    buildState(pState, &c);
    if( xState(pState, pArg) ) return 1;
  }
  return 0;
}

#endif /* WALDIO_EXPLORE_H */
