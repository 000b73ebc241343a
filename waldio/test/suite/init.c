/*
** What lets SQLite's testfixture run on waldio.  SQLite calls waldio_suite_init()
** when it is initialised (SQLITE_EXTRA_INIT).  The environment chooses what the
** tests run on, WALDIO_SUITE=
**
**     stock      SQLite alone (the default)
**     reserve    SQLite alone, with the reserved bytes of layout W
**     P, T, W    waldio with this layout.  All goes through the VFS below, where
**                SQLite's fault simulation is, and the log is neither
**                preallocated nor kept, so that it is synced, grows and goes as
**                the tests count on.
**     above      T, but the test VFSes stand above waldio, where they see the
**                wal-index and the locks as SQLite does
**
** The VFSes of the tests that lose, fail or count writes have to stand below
** waldio.  They register themselves, and look for the one they stand on, through
** suite_vfs_register() and so on (see suite.mk): each gets a waldio of its own
** name above it.
*/
#include "../../waldio.c"
#include <stdio.h>

static struct Suite {
  const char *zMode;
  int bWaldio;                    /* waldio is the default VFS */
  int nReserve;                   /* Reserved bytes of a new database */
  int bAbove;                     /* Test VFSes above waldio */
  int szPad;                      /* waldio_padding */
} aSuite[] = {
  { "stock",   0, 0,                 0, 0 },
  { "reserve", 0, WAL_FRAME_HDRSIZE, 0, 0 },
  { "P",       1, 0,                 0, 512 },
  { "T",       1, 0,                 0, 0 },
  { "W",       1, WAL_FRAME_HDRSIZE, 0, 0 },
  { "above",   1, 0,                 1, 0 }
};
static struct Suite *pSuite = 0;

static void suiteConfigure(void){
  const char *z = getenv("WALDIO_SUITE");
  unsigned i;
  for(i=0; pSuite==0 && i<sizeof(aSuite)/sizeof(aSuite[0]); i++){
    if( strcmp(z ? z : "stock", aSuite[i].zMode)==0 ) pSuite = &aSuite[i];
  }
  if( pSuite==0 ){
    fprintf(stderr, "WALDIO_SUITE=%s is none of stock, reserve, P, T, W, "
            "above\n", z);
    abort();
  }
}

/*
** Every new connection, in place of waldio's own part: the reserved bytes of
** new databases.
*/
static int suiteConnection(
  sqlite3 *db, char **pzErrMsg, const sqlite3_api_routines *pApi
){
  int n = pSuite->nReserve;
  (void)pzErrMsg; (void)pApi;
  return sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &n);
}

/*
** The crash VFS fills the sectors of unsynced writes with garbage, and says that
** its device does so.  waldio leaves such a device alone.  Here it does not, and
** the marks in byte 19, which could not survive that, are synced at once.  Its
** sectors are taken for those that a write has to fill.
*/
static sqlite3_io_methods suiteCrashMethods;
static int (*suiteCrashWrite)(sqlite3_file*, const void*, int, sqlite3_int64);
static int suiteWrite(
  sqlite3_file *pFile, const void *pBuf, int n, sqlite3_int64 iOfst
){
  int rc = suiteCrashWrite(pFile, pBuf, n, iOfst);
  if( rc!=SQLITE_OK || n!=1 || iOfst!=19 ) return rc;
  return pFile->pMethods->xSync(pFile, SQLITE_SYNC_NORMAL);
}

static void suiteDbOpened(WdDb *p, sqlite3_vfs *pVfs){
  if( strcmp(pVfs->zName, "crash")==0 ){
    p->bWant = 1;
    wdReason(p, 0);
    p->szSector = wdSectorSize(&p->base);
    if( p->szSector<WD_SECTOR ) p->szSector = WD_SECTOR;
    if( suiteCrashWrite==0 ){
      suiteCrashMethods = *LOWER(p)->pMethods;
      suiteCrashWrite = suiteCrashMethods.xWrite;
      suiteCrashMethods.xWrite = suiteWrite;
    }
    LOWER(p)->pMethods = &suiteCrashMethods;
  }
  p->szPrealloc = 0;
  p->bRecycle = 0;
  p->szPad = pSuite->szPad;
}

/* xOpen of every waldio here. */
static int suiteOpen(
  sqlite3_vfs *pVfs, const char *zName, sqlite3_file *pFile,
  int flags, int *pOutFlags
){
  int rc;
  rc = wdOpen(pVfs, zName, pFile, flags, pOutFlags);
  if( rc==SQLITE_OK && zName && (flags & SQLITE_OPEN_MAIN_DB)!=0 ){
    suiteDbOpened((WdDb*)pFile, pVfs);
  }
  return rc;
}

int waldio_suite_init(const char *zUnused);
int waldio_suite_init(const char *zUnused){
  suiteConfigure();
  if( pSuite->bWaldio ){
    int rc = waldio_extra_init(zUnused);
    wdVfs.base.xOpen = suiteOpen;
    wd.bUnix = 0;
    if( rc!=SQLITE_OK || pSuite->nReserve>0 ) return rc;
    sqlite3_cancel_auto_extension((void(*)(void))wdConnection);
  }
  if( !pSuite->bWaldio && pSuite->nReserve==0 ) return SQLITE_OK;
  return sqlite3_auto_extension((void(*)(void))suiteConnection);
}

/*
** A waldio over the VFS of a test, under the same name.
*/
typedef struct SuiteVfs SuiteVfs;
struct SuiteVfs {
  WdVfs vfs;
  SuiteVfs *pNext;
};
static SuiteVfs *suiteVfses = 0;

/* True if the VFSes of tests are to get a waldio above them. */
static int suiteBelow(void){
  sqlite3_initialize();
  return pSuite->bWaldio && !pSuite->bAbove;
}

/* The VFS the tests mean by this name: the one below waldio. */
sqlite3_vfs *suite_vfs_find(const char *zName);
sqlite3_vfs *suite_vfs_find(const char *zName){
  sqlite3_vfs *p = sqlite3_vfs_find(zName);
  return p && p->xOpen==suiteOpen && suiteBelow() ? LOWERVFS(p) : p;
}

int suite_vfs_unregister(sqlite3_vfs *pVfs);
int suite_vfs_unregister(sqlite3_vfs *pVfs){
  SuiteVfs **pp;
  SuiteVfs *p;
  int rc;
  for(pp=&suiteVfses; *pp && (*pp)->vfs.pLower!=pVfs; pp=&(*pp)->pNext){}
  if( *pp==0 ) return sqlite3_vfs_unregister(pVfs);
  p = *pp;
  rc = sqlite3_vfs_unregister(&p->vfs.base);
  *pp = p->pNext;
  free(p);
  return rc;
}

int suite_vfs_register(sqlite3_vfs *pVfs, int bDefault);
int suite_vfs_register(sqlite3_vfs *pVfs, int bDefault){
  SuiteVfs *p;
  if( !suiteBelow() ) return sqlite3_vfs_register(pVfs, bDefault);
  p = malloc(sizeof(*p));
  if( p==0 ) return SQLITE_NOMEM;
  wdStandOn(&p->vfs, pVfs, pVfs->zName);
  p->vfs.base.xOpen = suiteOpen;
  p->pNext = suiteVfses;
  suiteVfses = p;
  return sqlite3_vfs_register(&p->vfs.base, bDefault);
}
