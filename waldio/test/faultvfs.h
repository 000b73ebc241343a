/*
** A VFS to stand below waldio: it passes everything on to the default VFS, and
** makes the Nth call that can fail, fail.
*/
#ifndef WALDIO_FAULTVFS_H
#define WALDIO_FAULTVFS_H

#include "test.h"
#include <pthread.h>

#define FAULT_READ   1
#define FAULT_WRITE  2
#define FAULT_SYNC   4
#define FAULT_SIZE   8            /* xTruncate and xFileSize */
#define FAULT_OPEN   16
#define FAULT_SHM    32           /* xShmMap */
#define FAULT_NAME   64           /* xDelete and xAccess */
#define FAULT_LOCK   128          /* xLock, and xShmLock to lock */

static struct Fault {
  int mOp;                        /* Operations that count, FAULT_... */
  long nLeft;                     /* How many of them succeed; -1 for all */
  int bForever;                   /* All that follow fail as well */
  int rc;                         /* With this code */
  long nCall;                     /* How many were called */
  long nFailed;                   /* How many failed */
} fault = { 0, -1, 0, 0, 0, 0 };

typedef struct FaultFile FaultFile;
struct FaultFile {
  sqlite3_file base;
  sqlite3_io_methods methods;
};
#define FAULT_LOWER(p) ((sqlite3_file*)((FaultFile*)(p)+1))

static pthread_mutex_t faultMutex = PTHREAD_MUTEX_INITIALIZER;
static sqlite3_vfs *faultLower;

/* True if this call of operation mOp has to fail. */
static int faultNow(int mOp){
  int bFail = 0;
  pthread_mutex_lock(&faultMutex);
  if( fault.mOp & mOp ){
    fault.nCall++;
    if( fault.nLeft>0 ){
      fault.nLeft--;
    }else if( fault.nLeft==0 ){
      if( !fault.bForever ) fault.nLeft = -1;
      fault.nFailed++;
      bFail = 1;
    }
  }
  pthread_mutex_unlock(&faultMutex);
  return bFail;
}
/* The n+1st operation of a kind in mOp fails. */
static UNUSED void faultSet(int mOp, long n, int rc, int bForever){
  pthread_mutex_lock(&faultMutex);
  memset(&fault, 0, sizeof(fault));
  fault.mOp = mOp;
  fault.nLeft = n;
  fault.rc = rc;
  fault.bForever = bForever;
  pthread_mutex_unlock(&faultMutex);
}

static int faultClose(sqlite3_file *p){
  return FAULT_LOWER(p)->pMethods->xClose(FAULT_LOWER(p));
}
/* Reads and writes by another thread than the first one. */
static int faultForeign(void){
  static pthread_t first;
  static int nForeign;
  pthread_mutex_lock(&faultMutex);
  if( first==0 ) first = pthread_self();
  if( !pthread_equal(first, pthread_self()) ) nForeign++;
  pthread_mutex_unlock(&faultMutex);
  return nForeign;
}
static int faultRead(sqlite3_file *p, void *pBuf, int n, sqlite3_int64 i){
  (void)faultForeign();
  if( faultNow(FAULT_READ) ) return SQLITE_IOERR_READ;
  return FAULT_LOWER(p)->pMethods->xRead(FAULT_LOWER(p), pBuf, n, i);
}
/* A write that fails has written a half. */
static int faultWrite(sqlite3_file *p, const void *pBuf, int n, sqlite3_int64 i){
  sqlite3_file *pLow = FAULT_LOWER(p);
  (void)faultForeign();
  CHECK( n<128*1024 );
  if( faultNow(FAULT_WRITE) ){
    if( n>1 ) (void)pLow->pMethods->xWrite(pLow, pBuf, n/2, i);
    return fault.rc;
  }
  return pLow->pMethods->xWrite(pLow, pBuf, n, i);
}
static int faultTruncate(sqlite3_file *p, sqlite3_int64 n){
  if( faultNow(FAULT_SIZE) ) return SQLITE_IOERR_TRUNCATE;
  return FAULT_LOWER(p)->pMethods->xTruncate(FAULT_LOWER(p), n);
}
static int faultSync(sqlite3_file *p, int flags){
  if( faultNow(FAULT_SYNC) ) return SQLITE_IOERR_FSYNC;
  (void)p; (void)flags;           /* No power is lost in these tests */
  return SQLITE_OK;
}
static int faultFileSize(sqlite3_file *p, sqlite3_int64 *pn){
  if( faultNow(FAULT_SIZE) ) return SQLITE_IOERR_FSTAT;
  return FAULT_LOWER(p)->pMethods->xFileSize(FAULT_LOWER(p), pn);
}
static int faultLock(sqlite3_file *p, int e){
  if( faultNow(FAULT_LOCK) ) return SQLITE_IOERR_LOCK;
  return FAULT_LOWER(p)->pMethods->xLock(FAULT_LOWER(p), e);
}
static int faultUnlock(sqlite3_file *p, int e){
  return FAULT_LOWER(p)->pMethods->xUnlock(FAULT_LOWER(p), e);
}
static int faultCheckLock(sqlite3_file *p, int *pOut){
  return FAULT_LOWER(p)->pMethods->xCheckReservedLock(FAULT_LOWER(p), pOut);
}
/* A durable write is a write; one that fails has written a half, too. */
static int faultControl(sqlite3_file *p, int op, void *pArg){
  if( op==WALDIO_FCNTL_WRITE && faultNow(FAULT_WRITE) ){
    const waldio_write *pWrite = pArg;
    (void)FAULT_LOWER(p)->pMethods->xWrite(FAULT_LOWER(p), pWrite->pData,
        (int)(pWrite->nByte<65536 ? pWrite->nByte/2 : 65536), pWrite->iOfst);
    return fault.rc;
  }
  return FAULT_LOWER(p)->pMethods->xFileControl(FAULT_LOWER(p), op, pArg);
}
static int faultSector(sqlite3_file *p){
  return FAULT_LOWER(p)->pMethods->xSectorSize(FAULT_LOWER(p));
}
static int faultDevice(sqlite3_file *p){
  return FAULT_LOWER(p)->pMethods->xDeviceCharacteristics(FAULT_LOWER(p));
}
static int faultShmMap(sqlite3_file *p, int i, int n, int b, void volatile **pp){
  if( faultNow(FAULT_SHM) ) return SQLITE_IOERR_SHMMAP;
  return FAULT_LOWER(p)->pMethods->xShmMap(FAULT_LOWER(p), i, n, b, pp);
}
static int faultShmLock(sqlite3_file *p, int i, int n, int flags){
  if( (flags & SQLITE_SHM_LOCK) && faultNow(FAULT_LOCK) ) return SQLITE_IOERR_SHMLOCK;
  return FAULT_LOWER(p)->pMethods->xShmLock(FAULT_LOWER(p), i, n, flags);
}
static void faultShmBarrier(sqlite3_file *p){
  FAULT_LOWER(p)->pMethods->xShmBarrier(FAULT_LOWER(p));
}
static int faultShmUnmap(sqlite3_file *p, int b){
  return FAULT_LOWER(p)->pMethods->xShmUnmap(FAULT_LOWER(p), b);
}

static int faultOpen(sqlite3_vfs *pVfs, const char *zName, sqlite3_file *pFile,
                     int flags, int *pOut){
  static const sqlite3_io_methods methods = {
    2, faultClose, faultRead, faultWrite, faultTruncate, faultSync,
    faultFileSize, faultLock, faultUnlock, faultCheckLock, faultControl,
    faultSector, faultDevice, faultShmMap, faultShmLock, faultShmBarrier,
    faultShmUnmap, 0, 0
  };
  int rc;
  (void)pVfs;
  pFile->pMethods = 0;
  if( faultNow(FAULT_OPEN) ) return SQLITE_CANTOPEN;
  FAULT_LOWER(pFile)->pMethods = 0;
  rc = faultLower->xOpen(faultLower, zName, FAULT_LOWER(pFile), flags, pOut);
  if( rc==SQLITE_OK ){
    ((FaultFile*)pFile)->methods = methods;
    if( FAULT_LOWER(pFile)->pMethods->iVersion<2 ){
      ((FaultFile*)pFile)->methods.iVersion = 1;
    }
    pFile->pMethods = &((FaultFile*)pFile)->methods;
  }
  return rc;
}

static int faultDelete(sqlite3_vfs *pVfs, const char *zName, int bSyncDir){
  (void)pVfs;
  if( faultNow(FAULT_NAME) ) return SQLITE_IOERR_DELETE;
  return faultLower->xDelete(faultLower, zName, bSyncDir);
}
static int faultAccess(sqlite3_vfs *pVfs, const char *zName, int flags, int *pOut){
  (void)pVfs;
  if( faultNow(FAULT_NAME) ) return SQLITE_IOERR_ACCESS;
  return faultLower->xAccess(faultLower, zName, flags, pOut);
}

/* Register the VFS "fault" as the default. */
static void faultRegister(void){
  static sqlite3_vfs vfs;
  faultLower = sqlite3_vfs_find(0);
  vfs = *faultLower;
  vfs.zName = "fault";
  vfs.pNext = 0;
  vfs.szOsFile += (int)sizeof(FaultFile);
  vfs.xOpen = faultOpen;
  vfs.xDelete = faultDelete;
  vfs.xAccess = faultAccess;
  vfs.iVersion = 2;               /* No system calls */
  vfs.xGetLastError = 0;
  vfs.xCurrentTimeInt64 = 0;
  CHECK_INT( sqlite3_vfs_register(&vfs, 1), SQLITE_OK );
}

#endif /* WALDIO_FAULTVFS_H */
