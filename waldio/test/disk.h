/*
** A disk in memory, as a VFS to stand below waldio: files, their locks and
** their wal-index, and a record of all that happens to them, in order, for
** explore.h.  There is no other I/O, so a test may open many thousand
** databases.
**
** The record has what a power loss is about: writes, sizes, names, and what
** made them durable.  A mutant leaves something out, to see that it is missed.
*/
#ifndef WALDIO_DISK_H
#define WALDIO_DISK_H

#include "test.h"
#include <pthread.h>

#define SECTOR 512

/* Names a database has, as suffixes of its own. */
#define NAME_DB       0
#define NAME_WAL      1
#define NAME_JOURNAL  2
#define NNAME         3
static const char *const azSuffix[NNAME] = { "", "-wal", "-journal" };

/******************************** The record ********************************/

#define OP_WRITE    1             /* n bytes at iOfst; zeros if pData==NULL */
#define OP_SIZE     2             /* Truncated or extended to n */
#define OP_SYNCED   3             /* All before operation iOfst is durable */
#define OP_SETTLED  4             /* Write iOfst is durable, alone */
#define OP_LINK     5             /* Name n leads to the file */
#define OP_UNLINK   6             /* Name n is deleted */
#define OP_DIRSYNC  7             /* All names are durable */
#define OP_ACK      8             /* Commit n has to be there from now on */
#define OP_PLAIN    9             /* Stock SQLite must (n) be able to open it */
#define OP_LAYOUT   10            /* The log has layout n */

typedef struct Op Op;
struct Op {
  int eOp;
  int iNode;                      /* Inode.iNode */
  sqlite3_int64 iOfst, n;
  unsigned char *pData;
};

static struct Record {
  int bOn;
  int nOp, mxOp;
  Op *aOp;
} rec;

/* What a mutant leaves out. */
#define MUTANT_NONE     0
#define MUTANT_HEADER   1         /* The flush of the log's header */
#define MUTANT_COMMIT   2         /* All other flushes of the log */
#define MUTANT_SINGLE   3         /* That a single write is durable */
#define MUTANT_DATABASE 4         /* The flush of the database */
#define MUTANT_NAMES    5         /* The flush of the directory */
#define MUTANT_LATE     6         /* The last write before a flush comes behind */
#define MUTANT_EMPTY    7         /* The flush of the emptied log at a close */
static int eMutant;

/********************************* Inodes ***********************************/

#define NLOCK 8                   /* SQLITE_SHM_NLOCK */
#define MXREGION 64
#define SZREGION 32768

typedef struct DiskFile DiskFile;
typedef struct Inode Inode;
struct Inode {
  int iNode;                      /* From 1 on; 0 if not recorded */
  int nRef;                       /* Names and handles */
  unsigned char *a;
  sqlite3_int64 n, mx;
  sqlite3_int64 iLast;            /* Where the last write was */
  int bLastZero;                  /* ... and that it wrote zeros */
  Op late;                        /* Held back by MUTANT_LATE */
  int nShared;                    /* File locks: SHARED ones, and the holder */
  DiskFile *pReserved;            /* of RESERVED or more */
  int bPending;                   /* No new SHARED lock */
  int nMapped;                    /* Handles that use the wal-index */
  unsigned char *apRegion[MXREGION];
  int anShared[NLOCK];            /* Locks in the wal-index */
  DiskFile *apExcl[NLOCK];
};
struct DiskFile {
  sqlite3_file base;
  Inode *p;
  int eLock;
  unsigned mShared;               /* Locks in the wal-index */
  int bMapped;                    /* Counts in Inode.nMapped */
  int iName;                      /* NAME_..., -1 if it is not recorded */
  int bPersist;                   /* SQLITE_FCNTL_PERSIST_WAL */
  int bSyncDir;                   /* The next xSync syncs the directory */
};

#define MXNAME 16
static struct Disk {
  pthread_mutex_t mutex;
  struct { char zName[64]; Inode *p; } aName[MXNAME];
  int nNode;                      /* Numbers given */
  int bSingle;                    /* WALDIO_FCNTL_WRITE works */
  int bDead;                      /* The process is gone: nothing has effect */
  int nThread;                    /* >0: others run while one syncs */
  unsigned long long iRandom;
  sqlite3_vfs *pReal;
} disk = { PTHREAD_MUTEX_INITIALIZER, {{"",0}}, 0, 0, 0, 0, 1, 0 };

/* Add to the record; the mutex is held.  Returns the operation's number. */
static int record(int eOp, int iNode, const void *pData, sqlite3_int64 n,
                  sqlite3_int64 iOfst){
  Op *p;
  if( !rec.bOn ) return -1;
  if( rec.nOp==rec.mxOp ){
    rec.mxOp = 2*rec.mxOp + 1000;
    rec.aOp = realloc(rec.aOp, (size_t)rec.mxOp*sizeof(Op));
    CHECK( rec.aOp!=0 );
  }
  p = &rec.aOp[rec.nOp];
  p->eOp = eOp;
  p->iNode = iNode;
  p->iOfst = iOfst;
  p->n = n;
  p->pData = 0;
  if( pData ){
    p->pData = malloc((size_t)n);
    CHECK( p->pData!=0 );
    memcpy(p->pData, pData, (size_t)n);
  }
  return rec.nOp++;
}
static UNUSED void recordNote(int eOp, sqlite3_int64 n){
  pthread_mutex_lock(&disk.mutex);
  record(eOp, 0, 0, n, 0);
  pthread_mutex_unlock(&disk.mutex);
}
/* Record what happens from now on, or no more. */
static UNUSED void recordOn(int bOn){
  pthread_mutex_lock(&disk.mutex);
  rec.bOn = bOn;
  pthread_mutex_unlock(&disk.mutex);
}
/* The process that has the files open is gone: nothing it does has effect. */
static UNUSED void diskDead(int bDead){
  pthread_mutex_lock(&disk.mutex);
  disk.bDead = bDead;
  pthread_mutex_unlock(&disk.mutex);
}
static UNUSED void recordClear(void){
  int i;
  for(i=0; i<rec.nOp; i++) free(rec.aOp[i].pData);
  rec.nOp = 0;
}

static void inodeFree(Inode *p){
  int i;
  if( --p->nRef>0 ) return;
  for(i=0; i<MXREGION; i++) free(p->apRegion[i]);
  free(p->late.pData);
  free(p->a);
  free(p);
}
static void inodeSize(Inode *p, sqlite3_int64 n){
  if( n>=p->mx ){
    p->mx = n + n/2 + 4096;
    p->a = realloc(p->a, (size_t)p->mx);
    CHECK( p->a!=0 );
  }
  if( n>p->n ) memset(p->a+p->n, 0, (size_t)(n-p->n));
  p->n = n;
}
static Inode *inodeNew(int bNumber){
  Inode *p = calloc(1, sizeof(*p));
  CHECK( p!=0 );
  p->nRef = 1;
  p->iLast = -1;
  if( bNumber ) p->iNode = ++disk.nNode;
  return p;
}

static int nameFind(const char *zName){
  int i;
  for(i=0; i<MXNAME && strcmp(disk.aName[i].zName, zName)!=0; i++){}
  return i<MXNAME ? i : -1;
}
static void nameSet(const char *zName, Inode *p){
  int i = nameFind(zName);
  if( i<0 ) i = nameFind("");
  CHECK( i>=0 );
  if( disk.aName[i].p ) inodeFree(disk.aName[i].p);
  snprintf(disk.aName[i].zName, sizeof(disk.aName[i].zName), "%s",
           p ? zName : "");
  disk.aName[i].p = p;
}
/* Which of the names of /p.db this is, the database that is recorded; or -1. */
static int nameKind(const char *zName){
  size_t n = strlen(zName);
  int i;
  if( strncmp(zName, "/p.db", 5)!=0 ) return -1;
  for(i=NNAME-1; i>0; i--){
    size_t m = strlen(azSuffix[i]);
    if( n>m && strcmp(zName+n-m, azSuffix[i])==0 ) break;
  }
  return i;
}

/* Have a file of these bytes, or none if a==NULL; nobody has it open. */
static UNUSED void diskPut(const char *zName, const unsigned char *a,
                           sqlite3_int64 n){
  Inode *p = 0;
  if( a ){
    p = inodeNew(1);
    inodeSize(p, n);
    if( n ) memcpy(p->a, a, (size_t)n);
  }
  if( p || nameFind(zName)>=0 ) nameSet(zName, p);
}
static UNUSED Inode *diskGet(const char *zName){
  int i = nameFind(zName);
  return i<0 ? 0 : disk.aName[i].p;
}

/****************************** File methods ********************************/

#define DFILE(p) ((DiskFile*)(p))
#define ENTER pthread_mutex_lock(&disk.mutex)
#define LEAVE pthread_mutex_unlock(&disk.mutex)

static int dkUnlock(sqlite3_file *pFile, int eLock);
static int dkShmUnmap(sqlite3_file *pFile, int bDelete);

static int dkClose(sqlite3_file *pFile){
  DiskFile *p = DFILE(pFile);
  dkUnlock(pFile, SQLITE_LOCK_NONE);
  dkShmUnmap(pFile, 0);
  ENTER;
  inodeFree(p->p);
  p->p = 0;
  LEAVE;
  return SQLITE_OK;
}
static int dkRead(sqlite3_file *pFile, void *pBuf, int n, sqlite3_int64 i){
  Inode *p = DFILE(pFile)->p;
  sqlite3_int64 m;
  ENTER;
  m = i<p->n ? p->n-i : 0;
  if( m>n ) m = n;
  if( m>0 ) memcpy(pBuf, p->a+i, (size_t)m);
  LEAVE;
  if( m==n ) return SQLITE_OK;
  memset((char*)pBuf+m, 0, (size_t)(n-m));
  return SQLITE_IOERR_SHORT_READ;
}

static int allZero(const unsigned char *a, sqlite3_int64 n){
  while( n>0 && a[n-1]==0 ) n--;
  return n==0;
}
/* Write and record; the mutex is held.  The operation's number. */
static int inodeWrite(DiskFile *pFile, const void *pBuf, int n, sqlite3_int64 i){
  Inode *p = pFile->p;
  const void *pData;
  int iOp = -1;
  if( i+n>p->n ) inodeSize(p, i+n);
  memcpy(p->a+i, pBuf, (size_t)n);
  if( pFile->iName<0 || !rec.bOn ) return -1;
  pData = allZero(pBuf, n) ? 0 : pBuf;
  p->iLast = i;
  p->bLastZero = pData==0;
  if( eMutant==MUTANT_LATE && pFile->iName==NAME_WAL ){
    Op *q = &p->late;
    if( q->eOp ) iOp = record(q->eOp, p->iNode, q->pData, q->n, q->iOfst);
    free(q->pData);
    q->pData = 0;
    q->eOp = OP_WRITE;
    q->n = n;
    q->iOfst = i;
    if( pData ){
      q->pData = malloc((size_t)n);
      CHECK( q->pData!=0 );
      memcpy(q->pData, pData, (size_t)n);
    }
    return iOp;
  }
  return record(OP_WRITE, p->iNode, pData, n, i);
}
static int dkWrite(sqlite3_file *pFile, const void *pBuf, int n, sqlite3_int64 i){
  CHECK( n<128*1024 );
  ENTER;
  if( !disk.bDead ) inodeWrite(DFILE(pFile), pBuf, n, i);
  LEAVE;
  return SQLITE_OK;
}
/* As ftruncate(), also to a greater size: a checkpoint does that where the log's
** last commit has pages that nobody wrote. */
static int dkTruncate(sqlite3_file *pFile, sqlite3_int64 n){
  DiskFile *p = DFILE(pFile);
  ENTER;
  if( !disk.bDead ){
    inodeSize(p->p, n);
    if( p->iName>=0 ) record(OP_SIZE, p->p->iNode, 0, n, 0);
  }
  LEAVE;
  return SQLITE_OK;
}

/* True if the mutant leaves this flush out. */
static int mutantSync(const DiskFile *p){
  int bHeader = p->iName==NAME_WAL && p->p->iLast==0;
  switch( eMutant ){
    case MUTANT_HEADER:   return bHeader && !p->p->bLastZero;
    case MUTANT_EMPTY:    return bHeader && p->p->bLastZero;
    case MUTANT_COMMIT:   return p->iName==NAME_WAL && !bHeader;
    case MUTANT_DATABASE: return p->iName==NAME_DB;
    default:              return 0;
  }
}
static void syncNames(void){
  if( eMutant!=MUTANT_NAMES ) record(OP_DIRSYNC, 0, 0, 0, 0);
}
/* Only what was written before a sync began is durable when it ends. */
static int dkSync(sqlite3_file *pFile, int flags){
  DiskFile *p = DFILE(pFile);
  int iBegin;
  (void)flags;
  ENTER;
  if( disk.bDead || p->iName<0 || !rec.bOn ){
    LEAVE;
    return SQLITE_OK;
  }
  iBegin = rec.nOp;
  if( disk.nThread ){
    LEAVE;
    usleep(100);
    ENTER;
  }
  if( !mutantSync(p) ) record(OP_SYNCED, p->p->iNode, 0, 0, iBegin);
  if( p->p->late.eOp ){
    Op *q = &p->p->late;
    record(q->eOp, p->p->iNode, q->pData, q->n, q->iOfst);
    free(q->pData);
    memset(q, 0, sizeof(*q));
  }
  if( p->bSyncDir ) syncNames();
  p->bSyncDir = 0;
  LEAVE;
  return SQLITE_OK;
}
static int dkFileSize(sqlite3_file *pFile, sqlite3_int64 *pn){
  ENTER;
  *pn = DFILE(pFile)->p->n;
  LEAVE;
  return SQLITE_OK;
}

/* A write that is durable when it returns, alone. */
static int dkSingle(DiskFile *p, const waldio_write *pWrite){
  int iOp;
  if( !disk.bSingle ) return SQLITE_NOTFOUND;
  CHECK( pWrite->nByte%SECTOR==0 && pWrite->iOfst%SECTOR==0 );
  ENTER;
  if( !disk.bDead ){
    iOp = inodeWrite(p, pWrite->pData, (int)pWrite->nByte, pWrite->iOfst);
    if( iOp>=0 && eMutant!=MUTANT_SINGLE ){
      record(OP_SETTLED, p->p->iNode, 0, 0, iOp);
    }
  }
  LEAVE;
  return SQLITE_OK;
}
static int dkControl(sqlite3_file *pFile, int op, void *pArg){
  DiskFile *p = DFILE(pFile);
  int *pi = (int*)pArg;
  switch( op ){
    case WALDIO_FCNTL_WRITE:
      return dkSingle(p, pArg);
    case SQLITE_FCNTL_PERSIST_WAL:
      if( *pi>=0 ) p->bPersist = *pi;
      *pi = p->bPersist;
      return SQLITE_OK;
    case SQLITE_FCNTL_VFSNAME:
      *(char**)pArg = sqlite3_mprintf("disk");
      return SQLITE_OK;
    default:
      return SQLITE_NOTFOUND;
  }
}
static int dkSector(sqlite3_file *p){
  (void)p;
  return SECTOR;
}
static int dkDevice(sqlite3_file *p){
  (void)p;
  return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

/********************************** Locks ***********************************/

static int dkLock(sqlite3_file *pFile, int eLock){
  DiskFile *p = DFILE(pFile);
  Inode *q = p->p;
  int rc = SQLITE_OK;
  if( eLock<=p->eLock ) return SQLITE_OK;
  ENTER;
  if( eLock==SQLITE_LOCK_SHARED ){
    if( q->bPending ) rc = SQLITE_BUSY; else q->nShared++;
  }else if( q->pReserved && q->pReserved!=p ){
    rc = SQLITE_BUSY;
  }else{
    q->pReserved = p;
    if( eLock==SQLITE_LOCK_EXCLUSIVE ){
      q->bPending = 1;
      p->eLock = SQLITE_LOCK_PENDING;
      if( q->nShared>1 ) rc = SQLITE_BUSY;
    }
  }
  if( rc==SQLITE_OK ) p->eLock = eLock;
  LEAVE;
  return rc;
}
static int dkUnlock(sqlite3_file *pFile, int eLock){
  DiskFile *p = DFILE(pFile);
  ENTER;
  if( eLock<p->eLock ){
    if( p->p->pReserved==p ){
      p->p->pReserved = 0;
      p->p->bPending = 0;
    }
    if( eLock==SQLITE_LOCK_NONE ) p->p->nShared--;
    p->eLock = eLock;
  }
  LEAVE;
  return SQLITE_OK;
}
static int dkCheckLock(sqlite3_file *pFile, int *pOut){
  ENTER;
  *pOut = DFILE(pFile)->p->pReserved!=0;
  LEAVE;
  return SQLITE_OK;
}

static int dkShmMap(sqlite3_file *pFile, int i, int n, int b, void volatile **pp){
  Inode *p = DFILE(pFile)->p;
  CHECK( i<MXREGION && n==SZREGION );
  ENTER;
  if( !DFILE(pFile)->bMapped ) p->nMapped++;
  DFILE(pFile)->bMapped = 1;
  if( p->apRegion[i]==0 && b ) p->apRegion[i] = calloc(1, SZREGION);
  *pp = p->apRegion[i];
  LEAVE;
  return SQLITE_OK;
}
static int dkShmLock(sqlite3_file *pFile, int iOfst, int n, int flags){
  DiskFile *p = DFILE(pFile);
  Inode *q = p->p;
  int bExcl = (flags & SQLITE_SHM_EXCLUSIVE)!=0;
  int i, rc = SQLITE_OK;
  ENTER;
  for(i=iOfst; i<iOfst+n && rc==SQLITE_OK && (flags & SQLITE_SHM_LOCK); i++){
    int nOther = q->anShared[i] - (int)(p->mShared>>i & 1);
    if( q->apExcl[i] && q->apExcl[i]!=p ) rc = SQLITE_BUSY;
    if( bExcl && nOther>0 ) rc = SQLITE_BUSY;
  }
  for(i=iOfst; i<iOfst+n && rc==SQLITE_OK; i++){
    unsigned m = 1u<<i;
    int bSet = (flags & SQLITE_SHM_LOCK)!=0;
    if( bExcl || (!bSet && q->apExcl[i]==p) ){
      q->apExcl[i] = bSet ? p : 0;
    }else if( ((p->mShared & m)!=0)!=bSet ){
      q->anShared[i] += bSet ? 1 : -1;
      p->mShared ^= m;
    }
  }
  LEAVE;
  return rc;
}
static void dkShmBarrier(sqlite3_file *p){
  (void)p;
  ENTER;
  LEAVE;
}
/* Whoever is the first to map a wal-index finds it empty. */
static int dkShmUnmap(sqlite3_file *pFile, int bDelete){
  DiskFile *p = DFILE(pFile);
  int i;
  (void)bDelete;
  ENTER;
  for(i=0; i<NLOCK; i++){
    if( p->mShared>>i & 1 ) p->p->anShared[i]--;
    if( p->p->apExcl[i]==p ) p->p->apExcl[i] = 0;
  }
  p->mShared = 0;
  p->p->nMapped -= p->bMapped;
  p->bMapped = 0;
  for(i=0; i<MXREGION && p->p->nMapped==0; i++){
    free(p->p->apRegion[i]);
    p->p->apRegion[i] = 0;
  }
  LEAVE;
  return SQLITE_OK;
}

/********************************* The VFS **********************************/

/* The first flush of a new log or journal covers all names, but only by the
** connection that created it; with unixOpen() that of every connection does. */
static int dkOpen(sqlite3_vfs *pVfs, const char *zName, sqlite3_file *pFile,
                  int flags, int *pOut){
  static const sqlite3_io_methods methods = {
    2, dkClose, dkRead, dkWrite, dkTruncate, dkSync, dkFileSize, dkLock,
    dkUnlock, dkCheckLock, dkControl, dkSector, dkDevice, dkShmMap, dkShmLock,
    dkShmBarrier, dkShmUnmap, 0, 0
  };
  DiskFile *p = DFILE(pFile);
  Inode *q = 0;
  (void)pVfs;
  memset(p, 0, sizeof(*p));
  p->iName = zName ? nameKind(zName) : -1;
  ENTER;
  if( zName ) q = diskGet(zName);
  if( q ){
    q->nRef++;
  }else if( zName==0 || (flags & SQLITE_OPEN_CREATE)!=0 ){
    q = inodeNew(zName!=0);
    if( zName && !disk.bDead ){
      q->nRef++;
      nameSet(zName, q);
      if( p->iName>=0 ) record(OP_LINK, q->iNode, 0, p->iName, 0);
      p->bSyncDir = (flags & SQLITE_OPEN_MAIN_DB)==0;
    }
  }
  p->p = q;
  if( q ) p->base.pMethods = &methods;
  LEAVE;
  if( pOut ) *pOut = flags;
  return q ? SQLITE_OK : SQLITE_CANTOPEN;
}
static int dkDelete(sqlite3_vfs *pVfs, const char *zName, int bSyncDir){
  int rc = SQLITE_OK;
  (void)pVfs;
  ENTER;
  if( disk.bDead ){
    rc = SQLITE_OK;
  }else if( diskGet(zName)==0 ){
    rc = SQLITE_IOERR_DELETE_NOENT;
  }else{
    nameSet(zName, 0);
    if( nameKind(zName)>=0 ){
      record(OP_UNLINK, 0, 0, nameKind(zName), 0);
      if( bSyncDir ) syncNames();
    }
  }
  LEAVE;
  return rc;
}
/* As unixAccess(), a file without a byte does not exist. */
static int dkAccess(sqlite3_vfs *pVfs, const char *zName, int flags, int *pOut){
  Inode *p;
  (void)pVfs;
  ENTER;
  p = diskGet(zName);
  *pOut = p!=0 && (flags!=SQLITE_ACCESS_EXISTS || p->n>0);
  LEAVE;
  return SQLITE_OK;
}
static int dkFullPathname(sqlite3_vfs *pVfs, const char *zIn, int n, char *zOut){
  (void)pVfs;
  snprintf(zOut, (size_t)n, "%s%s", zIn[0]=='/' ? "" : "/", zIn);
  return SQLITE_OK;
}
/* Salts of the log come from here. */
static int dkRandomness(sqlite3_vfs *pVfs, int n, char *z){
  int i;
  (void)pVfs;
  ENTER;
  for(i=0; i<n; i++) z[i] = (char)rndOf(&disk.iRandom, 256);
  LEAVE;
  return n;
}
static int dkSleep(sqlite3_vfs *pVfs, int n){
  (void)pVfs;
  return disk.pReal->xSleep(disk.pReal, n);
}
static int dkTime(sqlite3_vfs *pVfs, double *p){
  (void)pVfs;
  return disk.pReal->xCurrentTime(disk.pReal, p);
}

static int dkGetLastError(sqlite3_vfs *pVfs, int n, char *z){
  (void)pVfs; (void)n; (void)z;
  return 0;
}

/* Register the VFS "disk" as the default. */
static UNUSED void diskRegister(void){
  static sqlite3_vfs vfs;
  disk.pReal = sqlite3_vfs_find(0);
  vfs.iVersion = 1;
  vfs.szOsFile = (int)sizeof(DiskFile);
  vfs.mxPathname = 60;
  vfs.zName = "disk";
  vfs.xOpen = dkOpen;
  vfs.xDelete = dkDelete;
  vfs.xAccess = dkAccess;
  vfs.xFullPathname = dkFullPathname;
  vfs.xRandomness = dkRandomness;
  vfs.xSleep = dkSleep;
  vfs.xCurrentTime = dkTime;
  vfs.xGetLastError = dkGetLastError;
  CHECK_INT( sqlite3_vfs_register(&vfs, 1), SQLITE_OK );
}

#endif /* WALDIO_DISK_H */
