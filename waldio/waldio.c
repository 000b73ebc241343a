/*
** waldio: a SQLite write-ahead log in aligned blocks.
**
** This file is a VFS shim and a loadable extension.  It needs SQLite 3.40 or
** newer and Linux, and stands over SQLite's default VFS.
**
** COMPILING
**
**     make                       waldio.so, for load_extension()
**     cc -c -DSQLITE_CORE waldio.c     to be linked with SQLite; see waldio.h
**
** LOADING
**
** From the sqlite3 shell:
**
**     .load ./waldio
**     .open file:app.db?vfs=waldio
**
** From SQL or C, on any connection:
**
**     SELECT load_extension('./waldio');
**
** Loading registers the VFS "waldio" and leaves the default VFS alone.  The
** second entry point makes waldio the default for all databases opened later:
**
**     .load ./waldio sqlite3_waldio_default_init
**
** Linked statically, call waldio_register() before the first database is
** opened, or sqlite3_auto_extension((void(*)(void))sqlite3_waldio_init), or
** compile SQLite itself with -DSQLITE_EXTRA_INIT=waldio_extra_init.
*/
#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif
#if defined(SQLITE_CORE)
# include "sqlite3.h"
# define SQLITE_EXTENSION_INIT1
# define SQLITE_EXTENSION_INIT2(pApi) (void)(pApi)
#else
# include "sqlite3ext.h"
SQLITE_EXTENSION_INIT1
#endif
#include "waldio.h"
#include <pthread.h>
#include <string.h>

typedef struct WdDb WdDb;
typedef struct WdLog WdLog;

/*
** An open database file.  The lower VFS's file object follows this one in
** memory, WD_SZFILE bytes after its start; likewise for WdLog.
*/
struct WdDb {
  sqlite3_file base;              /* Must be first */
  sqlite3_io_methods methods;     /* What the lower file offers, through here */
  const char *zName;              /* As given to xOpen: identifies the database */
  WdLog *pLog;                    /* The log opened for this handle, or NULL */
  WdDb *pNext;                    /* In wd.pDbs */
};

/*
** An open write-ahead log, always of one WdDb.
*/
struct WdLog {
  sqlite3_file base;
  sqlite3_io_methods methods;
  WdDb *pDb;                      /* The database of this log */
};

#define WD_SZFILE(T)  ((sizeof(T)+15) & ~(size_t)15)
#define WD_SZMAX      (WD_SZFILE(WdDb)>WD_SZFILE(WdLog) ? \
                       WD_SZFILE(WdDb) : WD_SZFILE(WdLog))
#define LOWER(p)      ((sqlite3_file*)(((char*)(p)) + WD_SZMAX))
#define LOWERVFS(p)   ((sqlite3_vfs*)(p)->pAppData)

/*
** What all databases of the process share.
*/
static struct WdGlobal {
  pthread_mutex_t mutex;          /* Guards pDbs and the links between files */
  WdDb *pDbs;                     /* Every open database handle */
} wd = { PTHREAD_MUTEX_INITIALIZER, 0 };

/**************************** Database file *********************************/

static int wdDbClose(sqlite3_file *pFile){
  WdDb *p = (WdDb*)pFile;
  WdDb **pp;
  pthread_mutex_lock(&wd.mutex);
  for(pp=&wd.pDbs; *pp && *pp!=p; pp=&(*pp)->pNext){}
  if( *pp ) *pp = p->pNext;
  if( p->pLog ) p->pLog->pDb = 0;
  pthread_mutex_unlock(&wd.mutex);
  return LOWER(p)->pMethods->xClose(LOWER(p));
}
static int wdDbRead(sqlite3_file *p, void *pBuf, int n, sqlite3_int64 iOfst){
  return LOWER(p)->pMethods->xRead(LOWER(p), pBuf, n, iOfst);
}
static int wdDbWrite(
  sqlite3_file *p, const void *pBuf, int n, sqlite3_int64 iOfst
){
  return LOWER(p)->pMethods->xWrite(LOWER(p), pBuf, n, iOfst);
}
static int wdTruncate(sqlite3_file *p, sqlite3_int64 size){
  return LOWER(p)->pMethods->xTruncate(LOWER(p), size);
}
static int wdSync(sqlite3_file *p, int flags){
  return LOWER(p)->pMethods->xSync(LOWER(p), flags);
}
static int wdFileSize(sqlite3_file *p, sqlite3_int64 *pSize){
  return LOWER(p)->pMethods->xFileSize(LOWER(p), pSize);
}
static int wdLock(sqlite3_file *p, int eLock){
  return LOWER(p)->pMethods->xLock(LOWER(p), eLock);
}
static int wdUnlock(sqlite3_file *p, int eLock){
  return LOWER(p)->pMethods->xUnlock(LOWER(p), eLock);
}
static int wdCheckReservedLock(sqlite3_file *p, int *pResOut){
  return LOWER(p)->pMethods->xCheckReservedLock(LOWER(p), pResOut);
}
static int wdFileControl(sqlite3_file *p, int op, void *pArg){
  int rc = LOWER(p)->pMethods->xFileControl(LOWER(p), op, pArg);
  if( op==SQLITE_FCNTL_VFSNAME && rc==SQLITE_OK ){
    *(char**)pArg = sqlite3_mprintf("waldio/%z", *(char**)pArg);
  }
  return rc;
}
static int wdSectorSize(sqlite3_file *p){
  return LOWER(p)->pMethods->xSectorSize(LOWER(p));
}
static int wdDeviceCharacteristics(sqlite3_file *p){
  return LOWER(p)->pMethods->xDeviceCharacteristics(LOWER(p));
}
static int wdShmMap(
  sqlite3_file *p, int iRegion, int szRegion, int bExtend, void volatile **pp
){
  return LOWER(p)->pMethods->xShmMap(LOWER(p), iRegion, szRegion, bExtend, pp);
}
static int wdShmLock(sqlite3_file *p, int iOfst, int n, int flags){
  return LOWER(p)->pMethods->xShmLock(LOWER(p), iOfst, n, flags);
}
static void wdShmBarrier(sqlite3_file *p){
  LOWER(p)->pMethods->xShmBarrier(LOWER(p));
}
static int wdShmUnmap(sqlite3_file *p, int bDelete){
  return LOWER(p)->pMethods->xShmUnmap(LOWER(p), bDelete);
}
static int wdFetch(sqlite3_file *p, sqlite3_int64 iOfst, int n, void **pp){
  return LOWER(p)->pMethods->xFetch(LOWER(p), iOfst, n, pp);
}
static int wdUnfetch(sqlite3_file *p, sqlite3_int64 iOfst, void *pPage){
  return LOWER(p)->pMethods->xUnfetch(LOWER(p), iOfst, pPage);
}

static const sqlite3_io_methods wdDbMethods = {
  3, wdDbClose, wdDbRead, wdDbWrite, wdTruncate, wdSync, wdFileSize, wdLock,
  wdUnlock, wdCheckReservedLock, wdFileControl, wdSectorSize,
  wdDeviceCharacteristics, wdShmMap, wdShmLock, wdShmBarrier, wdShmUnmap,
  wdFetch, wdUnfetch
};

/******************************** Log file **********************************/

static int wdLogClose(sqlite3_file *pFile){
  WdLog *p = (WdLog*)pFile;
  pthread_mutex_lock(&wd.mutex);
  if( p->pDb ) p->pDb->pLog = 0;
  pthread_mutex_unlock(&wd.mutex);
  return LOWER(p)->pMethods->xClose(LOWER(p));
}

static const sqlite3_io_methods wdLogMethods = {
  1, wdLogClose, wdDbRead, wdDbWrite, wdTruncate, wdSync, wdFileSize, wdLock,
  wdUnlock, wdCheckReservedLock, wdFileControl, wdSectorSize,
  wdDeviceCharacteristics, 0, 0, 0, 0, 0, 0
};

/*********************************** VFS ************************************/

/*
** Fill in *pTo: the methods of pFrom that the lower file has as well.  SQLite
** decides by iVersion and by NULL pointers what a file can do.
*/
static void wdMethods(
  sqlite3_io_methods *pTo,
  const sqlite3_io_methods *pFrom,
  const sqlite3_io_methods *pLower
){
  *pTo = *pFrom;
  if( pLower->iVersion<pTo->iVersion ) pTo->iVersion = pLower->iVersion;
  if( pLower->iVersion<2 || pLower->xShmMap==0 ) pTo->xShmMap = 0;
}

/*
** Open a database.  zName is kept: the name SQLite gives for the log leads
** back to this very pointer.
*/
static void wdOpenDb(WdDb *p, const char *zName){
  memset(p, 0, sizeof(*p));
  p->zName = zName;
  wdMethods(&p->methods, &wdDbMethods, LOWER(p)->pMethods);
  p->base.pMethods = &p->methods;
  pthread_mutex_lock(&wd.mutex);
  p->pNext = wd.pDbs;
  wd.pDbs = p;
  pthread_mutex_unlock(&wd.mutex);
}

/*
** Open the log of a database.  Log and database are paired by the identity of
** the name, never by its text: two handles of one file have the same text.
** A log whose database was not opened through this VFS is refused.
*/
static int wdOpenLog(WdLog *p, const char *zName){
  const char *zDb = sqlite3_filename_database(zName);
  WdDb *pDb;
  memset(p, 0, sizeof(*p));
  wdMethods(&p->methods, &wdLogMethods, LOWER(p)->pMethods);
  pthread_mutex_lock(&wd.mutex);
  for(pDb=wd.pDbs; pDb && pDb->zName!=zDb; pDb=pDb->pNext){}
  if( pDb ){
    p->pDb = pDb;
    pDb->pLog = p;
    p->base.pMethods = &p->methods;
  }
  pthread_mutex_unlock(&wd.mutex);
  return pDb ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int wdOpen(
  sqlite3_vfs *pVfs, const char *zName, sqlite3_file *pFile,
  int flags, int *pOutFlags
){
  sqlite3_vfs *pLower = LOWERVFS(pVfs);
  int rc;
  if( zName==0 || (flags & (SQLITE_OPEN_MAIN_DB|SQLITE_OPEN_WAL))==0 ){
    return pLower->xOpen(pLower, zName, pFile, flags, pOutFlags);
  }
  pFile->pMethods = 0;
  LOWER(pFile)->pMethods = 0;
  rc = pLower->xOpen(pLower, zName, LOWER(pFile), flags, pOutFlags);
  if( rc==SQLITE_OK ){
    if( flags & SQLITE_OPEN_MAIN_DB ){
      wdOpenDb((WdDb*)pFile, zName);
    }else{
      rc = wdOpenLog((WdLog*)pFile, zName);
    }
  }
  if( rc!=SQLITE_OK && LOWER(pFile)->pMethods ){
    LOWER(pFile)->pMethods->xClose(LOWER(pFile));
  }
  return rc;
}

static int wdDelete(sqlite3_vfs *pVfs, const char *zName, int bSyncDir){
  return LOWERVFS(pVfs)->xDelete(LOWERVFS(pVfs), zName, bSyncDir);
}
static int wdAccess(sqlite3_vfs *pVfs, const char *zName, int flags, int *pOut){
  return LOWERVFS(pVfs)->xAccess(LOWERVFS(pVfs), zName, flags, pOut);
}
static int wdFullPathname(sqlite3_vfs *pVfs, const char *zIn, int n, char *zOut){
  return LOWERVFS(pVfs)->xFullPathname(LOWERVFS(pVfs), zIn, n, zOut);
}
static void *wdDlOpen(sqlite3_vfs *pVfs, const char *zFile){
  return LOWERVFS(pVfs)->xDlOpen(LOWERVFS(pVfs), zFile);
}
static void wdDlError(sqlite3_vfs *pVfs, int nByte, char *zErr){
  LOWERVFS(pVfs)->xDlError(LOWERVFS(pVfs), nByte, zErr);
}
static void (*wdDlSym(sqlite3_vfs *pVfs, void *pLib, const char *zSym))(void){
  return LOWERVFS(pVfs)->xDlSym(LOWERVFS(pVfs), pLib, zSym);
}
static void wdDlClose(sqlite3_vfs *pVfs, void *pLib){
  LOWERVFS(pVfs)->xDlClose(LOWERVFS(pVfs), pLib);
}
static int wdRandomness(sqlite3_vfs *pVfs, int nByte, char *zOut){
  return LOWERVFS(pVfs)->xRandomness(LOWERVFS(pVfs), nByte, zOut);
}
static int wdSleep(sqlite3_vfs *pVfs, int nMicro){
  return LOWERVFS(pVfs)->xSleep(LOWERVFS(pVfs), nMicro);
}
static int wdCurrentTime(sqlite3_vfs *pVfs, double *pTime){
  return LOWERVFS(pVfs)->xCurrentTime(LOWERVFS(pVfs), pTime);
}
static int wdGetLastError(sqlite3_vfs *pVfs, int nByte, char *zErr){
  return LOWERVFS(pVfs)->xGetLastError(LOWERVFS(pVfs), nByte, zErr);
}
static int wdCurrentTimeInt64(sqlite3_vfs *pVfs, sqlite3_int64 *pTime){
  return LOWERVFS(pVfs)->xCurrentTimeInt64(LOWERVFS(pVfs), pTime);
}
static int wdSetSystemCall(
  sqlite3_vfs *pVfs, const char *zName, sqlite3_syscall_ptr pNew
){
  return LOWERVFS(pVfs)->xSetSystemCall(LOWERVFS(pVfs), zName, pNew);
}
static sqlite3_syscall_ptr wdGetSystemCall(sqlite3_vfs *pVfs, const char *zName){
  return LOWERVFS(pVfs)->xGetSystemCall(LOWERVFS(pVfs), zName);
}
static const char *wdNextSystemCall(sqlite3_vfs *pVfs, const char *zName){
  return LOWERVFS(pVfs)->xNextSystemCall(LOWERVFS(pVfs), zName);
}

static sqlite3_vfs wdVfs = {
  3, 0, 0, 0, "waldio", 0,
  wdOpen, wdDelete, wdAccess, wdFullPathname, wdDlOpen, wdDlError, wdDlSym,
  wdDlClose, wdRandomness, wdSleep, wdCurrentTime, wdGetLastError,
  wdCurrentTimeInt64, wdSetSystemCall, wdGetSystemCall, wdNextSystemCall
};

/******************************* Entry points *******************************/

int waldio_register(int bDefault){
  sqlite3_vfs *pOther = sqlite3_vfs_find("waldio");
  if( pOther && pOther!=&wdVfs ){
    /* Another build of waldio is loaded.  Two must not stand on each other. */
    return bDefault ? sqlite3_vfs_register(pOther, 1) : SQLITE_OK;
  }
  pthread_mutex_lock(&wd.mutex);
  if( wdVfs.pAppData==0 ){
    sqlite3_vfs *pLower = sqlite3_vfs_find(0);
    if( pLower==0 ){
      pthread_mutex_unlock(&wd.mutex);
      return SQLITE_ERROR;
    }
    wdVfs.iVersion = pLower->iVersion<3 ? pLower->iVersion : 3;
    wdVfs.szOsFile = (int)WD_SZMAX + pLower->szOsFile;
    wdVfs.mxPathname = pLower->mxPathname;
    wdVfs.pAppData = pLower;
  }
  pthread_mutex_unlock(&wd.mutex);
  return sqlite3_vfs_register(&wdVfs, bDefault);
}

int waldio_extra_init(const char *zUnused){
  (void)zUnused;
  return waldio_register(1);
}

/*
** As an automatic extension this runs for every new connection and must not
** change the default VFS each time.
*/
static int wdInit(const sqlite3_api_routines *pApi, int bDefault){
  int rc = SQLITE_OK;
  SQLITE_EXTENSION_INIT2(pApi);
  if( bDefault || sqlite3_vfs_find("waldio")==0 ) rc = waldio_register(bDefault);
  /* The VFS outlives the connection that loaded it. */
  return rc==SQLITE_OK ? SQLITE_OK_LOAD_PERMANENTLY : rc;
}

/*
** sqlite3_auto_extension() takes SQLITE_OK_LOAD_PERMANENTLY for an error.
*/
#if defined(SQLITE_CORE)
# define WD_LOADED(rc)  ((rc)==SQLITE_OK_LOAD_PERMANENTLY ? SQLITE_OK : (rc))
#else
# define WD_LOADED(rc)  (rc)
#endif

int sqlite3_waldio_init(
  sqlite3 *db, char **pzErrMsg, const sqlite3_api_routines *pApi
);
int sqlite3_waldio_init(
  sqlite3 *db, char **pzErrMsg, const sqlite3_api_routines *pApi
){
  int rc = wdInit(pApi, 0);
  (void)db; (void)pzErrMsg;
  return WD_LOADED(rc);
}

int sqlite3_waldio_default_init(
  sqlite3 *db, char **pzErrMsg, const sqlite3_api_routines *pApi
);
int sqlite3_waldio_default_init(
  sqlite3 *db, char **pzErrMsg, const sqlite3_api_routines *pApi
){
  int rc = wdInit(pApi, 1);
  (void)db; (void)pzErrMsg;
  return WD_LOADED(rc);
}
