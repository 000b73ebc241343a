/*
** waldio: a SQLite write-ahead log in aligned blocks.
**
** A VFS shim and loadable extension for SQLite 3.40 and newer on Linux.  SQLite
** appends frames of 24 + page size bytes to its log, none of them aligned, and
** nearly all make the file longer.  waldio stores the same frames in slots of
** whole sectors, in a file that is extended ahead of time and used again by the
** next session, so that a commit is one aligned write that changes no metadata.
** The idea is from "WALDIO: Eliminating the Filesystem Journaling in Resolving
** the Journaling of Journal Anomaly" (USENIX ATC 2015), section 5.
**
**     make                             waldio.so, for load_extension()
**     cc -c -DSQLITE_CORE waldio.c     to be linked with SQLite; see waldio.h
**
**     .load ./waldio
**     .open file:app.db?vfs=waldio
**
** Loading registers the VFS "waldio" and leaves the default VFS alone; entry
** point sqlite3_waldio_default_init makes it the default.
**
**   *  SQLite sees the log it knows.  Checkpoints, recovery and the wal-index are
**      its own; all here translates offsets, gathers a commit's frames into one
**      write, and decides when to flush.
**   *  Connections that commit at once take turns for the WRITE lock and share
**      flushes: wdLockWrite(), wdWaitDurable().  What is durable is known by
**      WdShared.iWritten and iDurable alone.
**   *  Stock SQLite cannot read the log, and is kept from it by guards: byte 19
**      of page 1, the log's version, and a region before the wal-index.
**
** docs/waldio.md has options, guarantees, guards, limits and tests; the format of
** the file is at the code that writes it.
*/
#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif
/* Files above 2 GiB, and times after 2038, where a long has 32 bits.  Elsewhere glibc would
** call pwritev2() by another name, past whoever put something in its place. */
#if __SIZEOF_LONG__==4
# ifndef _FILE_OFFSET_BITS
#  define _FILE_OFFSET_BITS 64
# endif
# ifndef _TIME_BITS
#  define _TIME_BITS 64
# endif
#endif
#if defined(SQLITE_CORE)
# include "sqlite3.h"
# define SQLITE_EXTENSION_INIT2(pApi) (void)(pApi)
/* Not in a build without threads. */
# pragma weak sqlite3_mutex_alloc
# pragma weak sqlite3_mutex_free
#else
# include "sqlite3ext.h"
/* Not SQLITE_EXTENSION_INIT1, whose variable SQLite's RTLD_GLOBAL has all
** extensions of a process share, also those of another SQLite in it. */
static const sqlite3_api_routines *sqlite3_api = 0;
#endif
#include "waldio.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#if !defined(__GLIBC__) && !defined(pwritev2)
/* musl has it from 1.2.5 on, and bionic from Android 13. */
# define pwritev2(FD,PARTS,COUNT,OFST,FLAGS) \
    syscall(SYS_pwritev2, (FD), (PARTS), (COUNT), (long)(OFST), \
            (long)((u64)(OFST)>>32), (FLAGS))
#endif

/* As in SQLite; sequentially consistent. */
#define AtomicLoad(P)           __atomic_load_n((P), __ATOMIC_SEQ_CST)
#define AtomicStore(P,V)        __atomic_store_n((P), (V), __ATOMIC_SEQ_CST)
#define AtomicAdd(P,N)          __atomic_add_fetch((P), (N), __ATOMIC_SEQ_CST)
/* Have *P be NEW if it is OLD, and tell whether it was. */
#define AtomicSwap(P,OLD,NEW)   __sync_bool_compare_and_swap((P), (OLD), (NEW))

typedef unsigned char u8;
typedef unsigned int u32;
typedef sqlite3_int64 i64;
typedef sqlite3_uint64 u64;
/* In shared memory: a program of 32 bits has it where one of 64 bits has it. */
typedef u64 Shared64 __attribute__((aligned(8)));
typedef struct WdBase WdBase;
typedef struct WdDb WdDb;
typedef struct WdLayout WdLayout;
typedef struct WdLog WdLog;
typedef struct WdShared WdShared;

#define WD_OLDEST_SQLITE   3040000

/* SQLite's own WAL format, from the head of its wal.c. */
#define WAL_HDRSIZE        32     /* Size of the log's header */
#define WAL_FRAME_HDRSIZE  24     /* Size of a frame's header */
#define WAL_VERSION        3007000
#define WAL_MAGIC          0x377f0682
#define WAL_WRITE_LOCK     0      /* Lock bytes in the wal-index */
#define WAL_CKPT_LOCK      1
#define WAL_READ_LOCK0     3
#define WAL_NREADER        5
#define WAL_INDEX_HDRSIZE  96     /* Both copies of the wal-index's header */

/* The format of the log; see wdSlot(), wdFindRoom(), wdEncodeBlock0(), wdGuard(). */
#define WD_WAL_VERSION     0x57414c31   /* In place of WAL_VERSION */
#define WD_INDEX_VERSION   0x57414c31   /* In the guard region */
#define WD_MARK            0x57   /* Byte 19 of page 1, above 2 */
#define WD_MARK_EMPTY      0x56   /* ... where the log holds nothing */
#define WD_BLOCK0          4096   /* Size of block 0 */
#ifndef WD_FORMAT
# define WD_FORMAT         3      /* Version; tests build another one too */
#endif
#define WD_SZLABEL         64     /* Bytes of block 0 in use */
#define WD_GROUP           128    /* Slots after each tail block, W and T */
#define WD_TAILBLOCK       4096   /* Size of a tail block */
#define WD_TAILSTEP        32     /* From one tail in it to the next */
#define WD_SZTAIL          28     /* A tail: the bytes a header displaces */
#define WD_SPILLED         0xffffffff   /* It is in the tail block */
#define WD_SHARED_OFST     (256*WD_FORMAT)   /* WdShared in the guard region */

#define WD_SECTOR          512
#define WD_MXPAGE          65536
#define WD_CHUNK           65536  /* unixWrite() takes less than 128 KB */
#define WD_RUN             65536  /* Bytes of frames written at once, at most, */
#define WD_RUN_FIRST       8192   /* and room for so many at first */
#define WD_AHEAD           (128*1024)   /* Bytes read ahead at once */
#define WD_PREALLOC        65536
#define WD_MXPREALLOC      (4*1024*1024)
#define WD_MXSTEP          (1024*1024)  /* 1000 frames need little over 4 MiB */
#define WD_MXKEPT          (5*1024*1024)  /* Bytes of a log that is kept */
#define WD_NWAIT           64     /* Places in the queue of writers */
#define WD_YIELDS          20     /* Times a thread yields before it queues */
#define WD_TURN_US         10000  /* A turn not taken is over */
#define WD_SLEEP_US        10000  /* A waiting thread looks again */
#define WD_MXSLEEP_US      1000000    /* SQLite's busy handler sleeps less */
#define WD_CLOSE_TRIES     5000   /* ... of 200 us, until another has closed */
#define WD_MXFREE          10     /* Then somebody has it who does not queue */
#define WD_IDLE_US         60000000   /* The timer has nothing to do */
#define WD_FLUSH_US        100000 /* Who flushes longer is taken for dead */
#define WD_STUCK_US        5000000    /* ... and on f2fs so long for stopped */
#define WD_GROUP_COMMITS   32     /* Commits without a wait that end a group */
#define WD_GATHER_MIN_US   50     /* A flush for many waits so long, or not, */
#define WD_GATHER_MAX_US   2000   /* for those who just committed, or this long */
#define WD_GATHER_SKIP     8      /* When they did not come, not so many times */
#define WD_CKPT_FEW        100    /* Frames copied while writers wait, or this */
#define WD_CKPT_SHARE      4      /* part of those that were copied before */
#define WD_CKPT_WAIT_US    20000  /* How long a COMMIT waits to do that, */
#define WD_READERS_US      5000   /* for how long it waits for readers then, */
#define WD_CKPT_AGAIN_US   100000 /* and when next, if they stayed */

/* waldio_sync  (Tables insert, update, delete.) */
#define WD_SYNC_FULL       0
#define WD_SYNC_PERSISTENT 1
#define WD_SYNC_NORMAL     2
#define WD_SYNC_GROUP      3

/* PRAGMA journal_mode=waldio; see wdPragmaByName(). */
#define WD_PRAGMA_PREPARED 1
#define WD_PRAGMA_RUNS     2

/*
** Where the frames of a log are.  (Table layouts.)
*/
struct WdLayout {
  u8 eKind;                       /* WD_NONE and so on */
  int szPage;                     /* Page size */
  int szSlot;                     /* Bytes from one slot to the next */
};
#define WD_NONE     0             /* No valid log in the file */
#define WD_PADDED   1             /* P: page, frame header, padding */
#define WD_WHOLE    2             /* W: frame header in the page's tail */
#define WD_MOVED    3             /* T: the same, the tail being in use */
#define WD_STOCK    4             /* SQLite's own layout */
#define wdEmbeds(p) ((p)->eKind==WD_WHOLE || (p)->eKind==WD_MOVED)

/*
** What all processes that use a log share: it lies in the guard region of the
** wal-index, or in WdDb.priv where the wal-index is in heap memory because no
** other process can come in.  All access is atomic.
**
** iWritten is odd while a write is made.  Only the holder of the WRITE lock
** writes, but anybody may flush: what is written meanwhile may be missing from
** that flush.  After the death of a writer iWritten stays odd until the next.
**
** The rest only says who may go first.  Whoever believes it too long, because a
** process died or writes nonsense, loses some milliseconds: every wait on it has
** a timeout, and the locks and iDurable decide.
*/
struct WdShared {
  Shared64 iWritten;              /* Unsynced writes begun and ended */
  Shared64 iDurable;                   /* What had ended when a flush began */
  u32 mLayout;                    /* wdLayoutWord(), 0 if not known yet */
  u32 bPoison;                    /* A flush failed: no commit any more */
  Shared64 nFrames;                    /* Frames in writes that ended */
  Shared64 nFramesDurable;             /* Those of them in iDurable, or less */
  u32 nGroup;                     /* >0: several connections commit at once */
  u32 iFlushing;                  /* wdStamp() of a flush for several, or 0 */
  u32 iFlushed;                   /* Such flushes that ended */
  u32 iHolder;                    /* 1 while the WRITE lock is held */
  u32 iTicket;                    /* The last ticket given out */
  Shared64 iTurn;                      /* Ticket<<32 | wdStamp(), or 0 */
  u32 aWait[WD_NWAIT];            /* Tickets of those who wait, or 0 */
  u32 nAsked;                     /* Commits that asked for a flush */
  u32 nServed;                    /* Those of them before the last one began */
  u32 nExpect;                    /* So many more are likely to ask soon */
  u32 iGather;                    /* nAsked that a flush waits for, or 0 */
  u32 nFlushUs;                   /* How long such a flush takes */
  u32 nGatherSkip;                /* Flushes that do not wait for them */
  u32 bQueue;                     /* 0 if nothing is in aWait[] */
  Shared64 iHeader;               /* iDurable that the header needs, WD_HEADER_... */
  u32 bUnseen;                    /* Somebody has no lock of wdLockPresence() */
};
/* iHeader: */
#define WD_HEADER_UNKNOWN  0      /* The log was there before the wal-index */
#define WD_HEADER_DURABLE  1
#define WD_HEADER_UNASKED  (~(u64)0)    /* SQLite did not have it flushed */

_Static_assert(offsetof(WdShared, iTurn)==64, "one for all sizes of a long");

/* What is counted; columns of waldio_stat, each with what looks at it: tests, or
** tables of the benchmark. */
#define WD_STAT_COMMITS     0     /* Transactions written to the log: use, fresh */
#define WD_STAT_FRAMES      1     /* Frames appended: use, delay */
#define WD_STAT_BYTES       2     /* Bytes written to the log, zeros included: use */
#define WD_STAT_DURABLE     3     /* Commits that were one durable write: use */
#define WD_STAT_FLUSHES     4     /* Other flushes of the log: use */
#define WD_STAT_PREALLOCS   5     /* Times the log was extended ahead: use */
#define WD_STAT_FALLBACKS   6     /* Times something faster did not work: fault */
#define WD_STAT_ESCAPES     7     /* Tails written to the tail block: damage */
#define WD_STAT_MOVED       8     /* Tails moved within the page: damage */
#define WD_STAT_CHECKPOINTS 9     /* Checkpoints that held the WRITE lock: process */
#define WD_STAT_AHEAD       10    /* Checkpoints that had the log read ahead: use */
#define WD_STAT_NCOUNT      11

/*
** One database in this process, however many handles are open on it.
*/
struct WdBase {
  WdBase *pNext;                  /* In wd.pBases */
  char *zName;
  u64 iDev, iInode;               /* Its file, or 0,0 */
  int nRef;                       /* Handles, and cursors of waldio_stat */
  int nHandle;                    /* Handles */
  u32 mLayout;                    /* Of the log as last seen */
  const char *zReason;            /* Why the log is a stock one, or NULL */
  const char *zUnknown;           /* What this SQLite does as no known one, or NULL */
  i64 aStat[WD_STAT_NCOUNT];      /* Indexed by WD_STAT_... */
  WdDb *pClosing;                 /* Closes and is not the last; atomic */
  int nShared;                    /* Handles with a SHARED lock; atomic */
  u8 bSynced;                     /* The database was, with its mark; atomic */
  u8 bSyncFailed;                 /* ... or could not be; atomic */
  i64 iNextCkpt;                  /* No checkpoint holds the WRITE lock before; atomic */
  pid_t pid;                      /* Threads do not outlive a fork() */
  pthread_mutex_t timer;          /* Guards the thread of waldio_sync=group: */
  u32 iTimer;                     /* Changes with what is below */
  WdLog *pTimed;                  /* Logs that the thread may flush by */
  WdLog *pTiming;                 /* The one it does it by now */
  i64 iDue;                       /* When the flush is due, or 0 */
  u64 iDueTo;                     /* What is to be durable then */
  u8 bTimer;                      /* The thread was started */
  u8 bStop;                       /* It has to end */
  pthread_t timerThread;
};

/*
** An open database file.  The lower VFS's file object follows this one in
** memory, WD_SZMAX bytes after its start; likewise for WdLog.
*/
struct WdDb {
  sqlite3_file base;              /* Must be first */
  sqlite3_io_methods methods;     /* What the lower file offers, through here */
  const char *zName;              /* As given to xOpen: the database's identity */
  const char *zWal;               /* SQLite's name for the log */
  const char *zJournal;           /* ... and for a rollback journal */
  WdBase *pBase;
  WdLog *pLog;                    /* The log opened for this handle, or NULL */
  WdDb *pNext;                    /* In wd.pDbs */
  sqlite3 **ppDb;                 /* Connection, from SQLITE_FCNTL_PDB */
  WdShared *pShared;              /* In the guard region, or &priv */
  WdShared priv;
  u64 iWait;                      /* iDurable a commit waits for, or 0 */
  u64 iRead;                      /* iDurable reads of the log wait for */
  int nWaiting;                   /* Threads that wait in pShared */
  int nGroupFrames;               /* waldio_group_frames */
  int msGroup;                    /* waldio_group_ms */
  int bRecycle;                   /* waldio_recycle */
  int bDurableReads;              /* waldio_durable_reads */
  int eLock;                      /* SQLITE_LOCK_... held */
  int nReserve;                   /* Reserved bytes per page */
  int szPad;                      /* waldio_padding, 0 for the sector size */
  int szSector;                   /* What O_DIRECT asks for */
  int szPrealloc;                 /* waldio_prealloc */
  u8 bWant;                       /* Use waldio if this is a WAL database */
  u8 bMarked;                     /* Byte 19 is a mark: the log is waldio's */
  u8 bNeedsLog;                   /* ... WD_MARK, at the first lock */
  u8 bReadonlyShm;                /* pShared must not be written */
  u8 bReading;                    /* Holds a reader's lock in the wal-index */
  u8 bCkptLock;                   /* Holds the CKPT lock alone, */
  u64 iCkptSalt;                  /* ... since the log had these salts, or 0 */
  void volatile *pIndex;          /* SQLite's first region of the wal-index */
  u8 bAfterCommit;                /* A checkpoint now is a COMMIT's */
  u8 bSlice;                      /* ... or a part of the work, */
  u8 bFinish;                     /* ... or the end of it: has the WRITE lock */
  u8 bCkptSync;                   /* It flushes what it writes */
  u8 bAsked;                      /* SQLite has just had the log flushed */
  u8 bCopyUnasked;                /* A checkpoint copies, and has not */
  u32 nBackfill;                  /* Frames in the database before it */
  i64 iReadersUntil;              /* When readers have to have left the log */
  u8 bHolder;                     /* Holds the WRITE lock, */
  u8 bJustLocked;                 /* and did nothing with it yet */
  u8 bClosing;                    /* SQLite closes the log, and nobody else has it */
  u8 bLastClose;                  /* ... and it is backfilled */
  u8 bLeft;                       /* It is not, and its log's lock is given up */
  u8 bAlone;                      /* ... but refused connections of stock SQLite */
  u8 bPlain;                      /* ... and byte 19 is SQLite's own, for good */
  u8 eMark;                       /* ... and was this before */
  u8 bWritten;                    /* ... and it, or the mark, was written, */
  u8 bFlushed;                    /* ... and the log was flushed */
  u8 bPersist;                    /* SQLITE_FCNTL_PERSIST_WAL is set */
  u8 bKept;                       /* An empty log was left, for its blocks */
  u8 bByName;                     /* PRAGMA journal_mode=waldio */
  u8 ePragma;                     /* ... was prepared, WD_PRAGMA_... */
  u8 bOneSchema;                  /* ... which names the database */
  u8 eSync;                       /* waldio_sync, WD_SYNC_... */
  u8 bUnused;                     /* Marked, and no log was opened since */
  u8 bReadonly;                   /* The database was opened read-only */
  u8 bLostLog;                    /* waldio_lost_log */
  u8 bStockWrite;                 /* A stock log was written and not flushed */
};

/*
** An open write-ahead log, always of one WdDb.  Frames gather in aRun until
** the commit, and are written at once; nothing here outlives the WRITE lock.
*/
struct WdLog {
  sqlite3_file base;
  sqlite3_io_methods methods;
  WdDb *pDb;                      /* The database of this log */
  WdLayout lay;
  u32 mLayout;                    /* wdLayoutWord(&lay) */
  i64 szFile;                     /* Size of the file, or less ... */
  u64 iSized;                     /* ... while the log has these salts */
  i64 szSynced;                   /* Its size at the last fsync(), or 0 */
  i64 nSaved;                     /* Bytes that SQLite's own log had taken more, */
  int szBlock;                    /* ... of those: blocks of the filesystem, and */
  int szJournal;                  /* what it writes for a file that has grown */
  int fd;                         /* For RWF_DSYNC and fdatasync, or -1 */
  u8 bPresent;                    /* fd holds the lock of wdLockPresence() */
  u8 bF2fs;                       /* ... on f2fs: see wdTakeFlush() */
  u8 bNames;                      /* ... or on one that wdWasKept() was tried on */
  u8 bDirect;                     /* wdWriteDurable() may work */
  u8 bHasDirect, bDirectNow;      /* fd can have O_DIRECT, and has it */
  u8 bSyncedDir;                  /* The log's name is durable; atomic */
  u8 bFull;                       /* The last commit was followed by xSync */
  u8 bNew;                        /* The file was made for this handle, and is empty */
  u8 bHeader;                     /* A new header is the last thing written, 2: of that */
  u8 bHeaderLater;                /* ... and its flush was put off to the commit's */
  u8 bCommitted;                  /* A commit is the last thing written */
  u8 bDurable;                    /* ... and it is durable */
  u64 iNeeded;                    /* It was noted that the log is needed that has
                                  ** these salts; 0 for none */
  u32 iCommit;                    /* Frame that ended the last commit */
  u8 aSalt[8];                    /* Of the header that was written last, */
  u8 bCheckIndex;                 /* ... which no commit to the wal-index followed */
  u8 bLong;                       /* The transaction has written frames before */
  u8 bRecksum;                    /* Header writes are walRewriteChecksums() */
  u32 iPend;                      /* Frame whose page is to come, or 0 */
  u32 iStored;                    /* Frame whose header was stored just now */
  u8 aPend[WAL_FRAME_HDRSIZE];    /* Its header */
  u32 iDirect, iDirectEnd;        /* Frames that are not in the page cache since
                                  ** the last checkpoint, from and up to */
  u32 nRead;                      /* Reads of the log */
  u32 nReadBefore;                /* ... before the checkpoint under way */
  u8 bAhead;                      /* The last checkpoint read many of them */
  u32 iRun;                       /* First frame in aRun */
  int nRun, mxRun;                /* Frames in aRun, and room for */
  u8 *aRun;                       /* Slots as they will be in the file */
  int iTail, nTail;               /* Frame of aTail[0], and entries in use */
  u8 aTail[WD_TAILBLOCK];         /* Tails of the run, for the tail block */
  void *pRunAlloc;                /* Allocation around aRun, which is aligned */
  WdLog *pNextTimed;              /* In WdBase.pTimed */
  u64 iTimed;                     /* Its last commit in that mode, 0 if not there */
};

#define WD_SZFILE(T)  ((sizeof(T)+15) & ~(size_t)15)
#define WD_SZMAX      (WD_SZFILE(WdDb)>WD_SZFILE(WdLog) ? \
                       WD_SZFILE(WdDb) : WD_SZFILE(WdLog))
#define LOWER(p)      ((sqlite3_file*)(((char*)(p)) + WD_SZMAX))
#define LOWERVFS(p)   (((WdVfs*)(p))->pLower)

/*
** The VFS.  Every method gives the lower one's method the lower VFS: it may be a
** part of something larger that it finds by that pointer.
*/
typedef struct WdVfs {
  sqlite3_vfs base;               /* Must be first */
  sqlite3_vfs *pLower;            /* The VFS below */
} WdVfs;
static WdVfs wdVfs;

/*
** What all databases of the process share.
*/
static struct WdGlobal {
  pthread_mutex_t mutex;          /* Guards the lists and guard regions */
  pthread_mutex_t adopt;          /* Held while a database is taken over or back */
  WdDb *pDbs;                     /* Every open database handle */
  WdBase *pBases;                 /* Every open database */
  sqlite3_vfs *pLower;            /* wdVfs.pLower */
  u8 bUnix;                       /* pLower is SQLite's unix VFS */
  u8 bPhaseTwo;                   /* SQLite has sent SQLITE_FCNTL_COMMIT_PHASETWO; atomic */
} wd = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, 0, 0, 0, 0, 0 };

static const u8 wdZeros[WD_CHUNK] = {0};
static int wdDbSync(sqlite3_file*, int);
static int wdDbClose(sqlite3_file*);
static int wdPragmaRuns(WdDb*);
static void wdPlainSoon(WdDb*);
static void wdStillMarked(WdDb*);
static void wdCleanClose(WdLog*);
static int wdSleep(sqlite3_vfs*, int);

/* A reason that is not one for a stock log. */
static const char wdOther[] = "the log has the format of another version of "
                              "waldio; open and close it with that one";

static void wdCount(WdDb *p, int eStat, i64 n){
  (void)AtomicAdd(&p->pBase->aStat[eStat], n);
}

/* Microseconds of a clock that only runs forward. */
static i64 wdNow(void){
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (i64)t.tv_sec*1000000 + t.tv_nsec/1000;
}

/* That time as a mark in shared memory, never 0; it wraps after an hour. */
static u32 wdStamp(void){
  return (u32)wdNow() | 1;
}

/* Sleep while *p is i, for nMicro at most; wake all that do.  Where a long has 32
** bits the call has two forms, and Linux the one of 64-bit times from 5.1 on: what
** struct timespec is there the C library alone decides. */
#ifndef SYS_futex
# define SYS_futex SYS_futex_time64     /* riscv32 and arc have no other */
#endif
static void wdFutexWait(u32 *p, u32 i, i64 nMicro){
#ifdef SYS_futex_time64
  i64 aTime[2];
  aTime[0] = nMicro/1000000;
  aTime[1] = nMicro%1000000*1000;
  if( syscall(SYS_futex_time64, p, FUTEX_WAIT, i, aTime, 0, 0)<0
   && errno==ENOSYS && SYS_futex!=SYS_futex_time64
  ){
    long aOld[2];
    aOld[0] = (long)aTime[0];
    aOld[1] = (long)aTime[1];
    (void)syscall(SYS_futex, p, FUTEX_WAIT, i, aOld, 0, 0);
  }
#else
  struct timespec t;
  t.tv_sec = (time_t)(nMicro/1000000);
  t.tv_nsec = (long)(nMicro%1000000)*1000;
  (void)syscall(SYS_futex, p, FUTEX_WAIT, i, &t, 0, 0);
#endif
}
static void wdFutexWake(u32 *p){
  (void)syscall(SYS_futex, p, FUTEX_WAKE, INT_MAX, 0, 0, 0);
}

/******************************* Numbers ************************************/

static u32 get4(const u8 *a){
  return ((u32)a[0]<<24) | ((u32)a[1]<<16) | ((u32)a[2]<<8) | a[3];
}
static void put4(u8 *a, u32 v){
  a[0] = (u8)(v>>24); a[1] = (u8)(v>>16); a[2] = (u8)(v>>8); a[3] = (u8)v;
}
static int isZero(const u8 *a, int n){
  return memcmp(a, wdZeros, (size_t)n)==0;
}

/*
** The checksum of SQLite's wal.c over n bytes, n a multiple of 8, taken as
** big-endian words if bBig and as little-endian ones otherwise.
*/
static void walChecksum(const u8 *a, int n, int bBig, u32 *aOut){
  u32 s1 = 0, s2 = 0;
  int i;
  for(i=0; i<n; i+=4){
    u8 aLittle[4];
    u32 x;
    aLittle[0] = a[i+3]; aLittle[1] = a[i+2];
    aLittle[2] = a[i+1]; aLittle[3] = a[i];
    x = get4(bBig ? &a[i] : aLittle);
    if( (i & 4)==0 ) s1 += x + s2; else s2 += x + s1;
  }
  aOut[0] = s1;
  aOut[1] = s2;
}

/* CRC-32C, bit by bit: it is taken of 60 bytes when a log is opened. */
static u32 crc32c(const u8 *a, int n){
  u32 c = 0xffffffff;
  int i, j;
  for(i=0; i<n; i++){
    c ^= a[i];
    for(j=0; j<8; j++) c = (c>>1) ^ (0x82f63b78 & (0-(c&1)));
  }
  return ~c;
}

/******************************* Layout *************************************/

/*
** The log is block 0 and slots, numbered like SQLite's frames from 1.  All numbers
** are big-endian.  Slots past the last valid frame hold zeros or older frames.
** Checksums of frames are SQLite's, over what SQLite sees.
**
** Layout P.  Slot i is at 4096 + (i-1)*slot size:
**
**          0     N  the page
**          N    24  SQLite's frame header
**       N+24        zero up to the slot size, a multiple of 512
**
** Layouts W and T differ in name only.  The slot size is the page size N.
** Before each 128 slots comes a tail block of 4096 bytes, so that slot i is at
** 8192 + (i-1)*N + ((i-1)/128)*4096:
**
**          0  N-24  the page but for its last 24 bytes, which are zero
**       N-24    24  SQLite's frame header
**
** If any of these 24 bytes is not zero, see wdFindRoom().
*/

/* Round n up to a multiple of m. */
static i64 roundUp(i64 n, i64 m){
  return (n + m - 1)/m*m;
}

/*
** True if this is a layout a log can have.
*/
static int wdLayoutValid(const WdLayout *p){
  int n = p->szPage;
  if( p->eKind==WD_STOCK ) return 1;
  if( n<512 || n>WD_MXPAGE || (n & (n-1))!=0 ) return 0;
  if( p->szSlot%WD_SECTOR!=0 || p->szSlot>2*WD_MXPAGE ) return 0;
  if( wdEmbeds(p) ) return p->szSlot==n;
  return p->eKind==WD_PADDED && p->szSlot>=n+WAL_FRAME_HDRSIZE;
}

/* A layout in 32 bits, never 0; and back. */
static u32 wdLayoutWord(const WdLayout *p){
  return ((u32)p->eKind<<24) | ((u32)(p->szSlot/WD_SECTOR)<<12)
       | (u32)(p->szPage/512);
}
static WdLayout wdLayoutOf(u32 m){
  WdLayout lay;
  lay.eKind = (u8)(m>>24);
  lay.szSlot = (int)((m>>12) & 0xfff)*WD_SECTOR;
  lay.szPage = (int)(m & 0xfff)*512;
  if( !wdLayoutValid(&lay) ) memset(&lay, 0, sizeof(lay));
  return lay;
}

/* Offset of the tail block of a frame's group, and of the tail in it. */
static i64 wdGroupOfst(const WdLayout *p, u32 iFrame){
  i64 szGroup = WD_TAILBLOCK + (i64)WD_GROUP*p->szSlot;
  return WD_BLOCK0 + (i64)((iFrame-1)/WD_GROUP)*szGroup;
}
static i64 wdTail(const WdLayout *p, u32 iFrame){
  return wdGroupOfst(p, iFrame) + (i64)((iFrame-1)%WD_GROUP)*WD_TAILSTEP;
}

/* Offset of the slot of a frame; frames count from 1. */
static i64 wdSlot(const WdLayout *p, u32 iFrame){
  i64 i = (i64)iFrame - 1;
  if( !wdEmbeds(p) ) return WD_BLOCK0 + i*p->szSlot;
  return wdGroupOfst(p, iFrame) + WD_TAILBLOCK + i%WD_GROUP*p->szSlot;
}

/* Offset of a frame's header. */
static i64 wdHdr(const WdLayout *p, u32 iFrame){
  int n = p->szPage - (wdEmbeds(p) ? WAL_FRAME_HDRSIZE : 0);
  return wdSlot(p, iFrame) + n;
}

/* How many slots a file of szFile bytes has in full. */
static i64 wdSlots(const WdLayout *p, i64 szFile){
  i64 n = szFile - WD_BLOCK0;
  i64 szGroup = (i64)WD_GROUP*p->szSlot + WD_TAILBLOCK;
  i64 nRest;
  if( n<=0 ) return 0;
  if( !wdEmbeds(p) ) return n/p->szSlot;
  nRest = n%szGroup - WD_TAILBLOCK;
  return n/szGroup*WD_GROUP + (nRest>0 ? nRest/p->szSlot : 0);
}

/*
** Layouts W and T keep the frame header where the page has its last 24 bytes.
** A page that has other bytes than zeros there says so in the header by a page
** number P and a size N that no frame has otherwise:
**
**     not a commit     (P,0)   is stored as   (P,0xffffffff)
**     commit, P<N      (P,N)                  (N,P)
**     commit, P==N     (P,P)                  (0xffffffff,P)
**
** wdEscape() fails for a header that would be read back as another one.
*/
static int wdEscape(u8 *aHdr, int bEscape){
  u32 iPg = get4(aHdr);
  u32 nSize = get4(&aHdr[4]);
  if( iPg==0 || iPg==0xffffffff || nSize==0xffffffff
   || (nSize!=0 && nSize<iPg) ){
    return SQLITE_IOERR_WRITE;
  }
  if( bEscape ){
    put4(aHdr, nSize==0 ? iPg : nSize>iPg ? nSize : 0xffffffff);
    put4(&aHdr[4], nSize==0 ? 0xffffffff : iPg);
  }
  return SQLITE_OK;
}
static int wdUnescape(u8 *aHdr){
  u32 a = get4(aHdr);
  u32 b = get4(&aHdr[4]);
  if( b==0xffffffff ){
    put4(&aHdr[4], 0);
  }else if( a==0xffffffff ){
    put4(aHdr, b);
  }else if( b!=0 && a>b ){
    put4(aHdr, b);
    put4(&aHdr[4], a);
  }else{
    return 0;
  }
  return 1;
}

/****************************** Tails of pages ******************************/

/*
** In layouts W and T, if any of the page's last 24 bytes is not zero then its last
** 28, the tail, lie elsewhere.  The frame header says so, see wdEscape(), and the
** slot is:
**
**          0  N-28  the page but for its tail, and perhaps the tail in it
**       N-28     4  where the tail is: (S<<21) | (M<<16) | R, or 0xffffffff
**       N-24    24  SQLite's frame header, marked
**
** The first M bytes of the tail are at R, where the page has zeros.  The other
** 28-M are in the topmost 4 bits (2 if N>4096) of every second byte from S on,
** most significant first; these bits are zero in the page.  The tail is taken
** from R first, R filled with zeros, then from S.  If the value is 2^28 or
** more, M above 28, R+M above N-28, or one of the bytes from S on not before
** N-28, then the whole tail is in the tail block, at 32*((i-1)%128).
**
** Most pages of a b-tree have zeros between their cell pointers and their cells.
** A full page, or one where that gap holds what was deleted, has zero bits: a cell
** pointer is below the page size, so in pages of 4096 bytes 56 of them hold 28
** bytes in their topmost 4 bits.  Both together serve for fewer.
*/
static int wdSpareBits(int szPage){
  return szPage<=4096 ? 4 : 2;
}

/* The offset of n zeros in a row from a[i] on, before a[iEnd], or -1. */
static int wdFindZeros(const u8 *a, int i, int iEnd, int n){
  while( i+n<=iEnd ){
    int k = n;
    while( k>0 && a[i+k-1]==0 ) k--;
    if( k==0 ) return i;
    i += k;
  }
  return -1;
}

/* Where page iPg has room for its tail, in the form that a slot holds. */
static u32 wdFindRoom(const u8 *a, int szPage, u32 iPg){
  int iEnd = szPage - WD_SZTAIL;
  int iHdr = iPg==1 ? 100 : 0;
  int eType = a[iHdr];
  int nBit = wdSpareBits(szPage);
  int iPtr = 0, nPtr = 0, nMove = WD_SZTAIL;
  int iRoom, i;
  if( eType==2 || eType==5 || eType==10 || eType==13 ){
    iPtr = iHdr + (eType<8 ? 12 : 8);
    nPtr = a[iHdr+3]*256 + a[iHdr+4];
    if( iPtr+2*nPtr>iEnd ) iPtr = nPtr = 0;
  }
  iRoom = wdFindZeros(a, iPtr+2*nPtr, iEnd, nMove);
  if( iRoom>=0 ) return ((u32)nMove<<16) | (u32)iRoom;
  for(i=0; i<nPtr && (a[iPtr+2*i]>>(8-nBit))==0; i++){}
  nMove -= i*nBit/8;
  if( nMove==WD_SZTAIL ) return WD_SPILLED;
  if( nMove<0 ) nMove = 0;
  iRoom = wdFindZeros(a, iPtr+2*nPtr, iEnd, nMove);
  if( iRoom<0 ) return WD_SPILLED;
  return ((u32)iPtr<<21) | ((u32)nMove<<16) | (u32)iRoom;
}

/* True if a tail is in its page; then its parts R, M and S. */
static int wdInPage(
  u32 x, int szPage, int *piRoom, int *pnMove, int *piBits
){
  int iEnd = szPage - WD_SZTAIL;
  *piRoom = (int)(x & 0xffff);
  *pnMove = (int)((x>>16) & 31);
  *piBits = (int)(x>>21);
  if( (x>>28)!=0 || *pnMove>WD_SZTAIL || *piRoom+*pnMove>iEnd ) return 0;
  return *pnMove==WD_SZTAIL || *piBits
           + (WD_SZTAIL-*pnMove)*8/wdSpareBits(szPage)*2 - 1<=iEnd;
}

/* Move a tail to the place x that wdFindRoom() found. */
static void wdPutTail(u8 *a, int szPage, u32 x, const u8 *aTail){
  int nBit = wdSpareBits(szPage);
  int iRoom, nMove, iBits, i, iShift;
  if( !wdInPage(x, szPage, &iRoom, &nMove, &iBits) ) return;
  memcpy(&a[iRoom], aTail, (size_t)nMove);
  for(i=nMove; i<WD_SZTAIL; i++){
    for(iShift=8-nBit; iShift>=0; iShift-=nBit, iBits+=2){
      a[iBits] |= (u8)((aTail[i]>>iShift)<<(8-nBit));
    }
  }
}

/* The reverse.  Returns 0 if the tail is not in the page. */
static int wdTakeTail(u8 *a, int szPage, u32 x, u8 *aTail){
  int nBit = wdSpareBits(szPage);
  int iRoom, nMove, iBits, i, iShift;
  if( !wdInPage(x, szPage, &iRoom, &nMove, &iBits) ) return 0;
  memcpy(aTail, &a[iRoom], (size_t)nMove);
  memset(&a[iRoom], 0, (size_t)nMove);
  for(i=nMove; i<WD_SZTAIL; i++){
    aTail[i] = 0;
    for(iShift=8-nBit; iShift>=0; iShift-=nBit, iBits+=2){
      aTail[i] |= (u8)((a[iBits]>>(8-nBit))<<iShift);
      a[iBits] &= (u8)(0xff>>nBit);
    }
  }
  return 1;
}

/******************************* Block 0 ************************************/

/* "waldio 3": also of whoever shares a log, which builds before 3 did by other rules */
static void wdLabel(u8 *a){
  memcpy(a, "waldio ", 7);
  a[7] = '0' + WD_FORMAT;
}

/*
** Turn the header SQLite writes into block 0, all of it zero before:
**
**     offset  size  content
**          0    24  SQLite's log header, with 0x57414c31 as version (at 4)
**         24     8  its checksum, as in wal.c, over the 24 bytes before
**         32     8  "waldio 3"
**         40     1  layout: 1 is P, 2 is W, 3 is T
**         41     3  zero
**         44     4  slot size
**         48    12  zero
**         60     4  CRC-32C of the 60 bytes before
**         64  4032  zero
**
** The first 32 bytes are zero in a log that is empty and kept for its blocks.
*/
static void wdEncodeBlock0(u8 *a, const u8 *aWalHdr, const WdLayout *pLay){
  u32 aCksum[2];
  memcpy(a, aWalHdr, WAL_HDRSIZE);
  put4(&a[4], WD_WAL_VERSION);
  walChecksum(a, 24, a[3]&1, aCksum);
  put4(&a[24], aCksum[0]);
  put4(&a[28], aCksum[1]);
  wdLabel(&a[32]);
  a[40] = pLay->eKind;
  put4(&a[44], (u32)pLay->szSlot);
  put4(&a[60], crc32c(a, 60));
}

/*
** The reverse, from the first 64 bytes of a log.  Damage leaves WD_NONE, and
** SQLite ignores such a log as it ignores one whose header has a bad checksum.
** SQLITE_CANTOPEN is for another version of the format.
*/
static int wdDecodeBlock0(const u8 *a, WdLayout *pLay){
  u8 aLabel[8];
  memset(pLay, 0, sizeof(*pLay));
  if( (get4(a) & ~1u)!=WAL_MAGIC ) return SQLITE_OK;
  if( get4(&a[4])!=WD_WAL_VERSION ){
    /* SQLite's own, or of a version that SQLite refuses. */
    pLay->eKind = WD_STOCK;
    return SQLITE_OK;
  }
  if( get4(&a[60])!=crc32c(a, 60) ) return SQLITE_OK;
  wdLabel(aLabel);
  if( memcmp(&a[32], aLabel, 8)!=0 ) return SQLITE_CANTOPEN;
  pLay->eKind = a[40];
  pLay->szPage = (int)get4(&a[8]);
  pLay->szSlot = (int)get4(&a[44]);
  if( pLay->eKind==WD_STOCK || !wdLayoutValid(pLay) ){
    memset(pLay, 0, sizeof(*pLay));
  }
  return SQLITE_OK;
}

/* The header as SQLite wrote it, from block 0. */
static void wdDecodeWalHdr(u8 *aOut, const u8 *a){
  u32 aCksum[2];
  memcpy(aOut, a, WAL_HDRSIZE);
  put4(&aOut[4], WAL_VERSION);
  walChecksum(aOut, 24, aOut[3]&1, aCksum);
  put4(&aOut[24], aCksum[0]);
  put4(&aOut[28], aCksum[1]);
}

/******************************** Page 1 ************************************/

/*
** Byte 19 of page 1, the version needed to read the file, is 0x57 in the database
** and in the log, so that stock SQLite says SQLITE_NOTADB.  (3 is taken by its wal2
** branch.)  In the database it is 0x56 until a log is first flushed, and again
** before the log is emptied: a database with 0x57 whose log is gone has lost
** commits, and is not opened.  SQLite above the shim sees 2 for both, in the log too.
*/

static int isPage1(const u8 *a, u8 eVersion){
  return a[19]==eVersion && memcmp(a, "SQLite format 3", 16)==0;
}
static int isMark(u8 eVersion){
  return eVersion==WD_MARK || eVersion==WD_MARK_EMPTY;
}
static int isMarkedPage1(const u8 *a){
  return isMark(a[19]) && isPage1(a, a[19]);
}

/* Show page 1 to SQLite as a page of a WAL database. */
static void wdShowPage1(WdDb *p, u8 *a){
  if( isMarkedPage1(a) ) a[19] = 2;
  p->nReserve = a[20];
}

/* Mark page 1 before it is stored.  A checkpoint comes after a flush of the log. */
static void wdHidePage1(WdDb *p, u8 *a){
  int bStock = p->pLog && p->pLog->lay.eKind==WD_STOCK;
  if( isPage1(a, 2) ) a[19] = p->bUnused || bStock ? WD_MARK_EMPTY : WD_MARK;
  p->nReserve = a[20];
}

/**************************** Log: lower level ******************************/

static int wdLowRead(WdLog *p, void *pBuf, int n, i64 iOfst){
  return LOWER(p)->pMethods->xRead(LOWER(p), pBuf, n, iOfst);
}

static u64 wdWritten(WdLog *p){
  return AtomicLoad(&p->pDb->pShared->iWritten);
}
static void wdBeginWrite(WdLog *p){
  u64 i = wdWritten(p) | 1;
  AtomicStore(&p->pDb->pShared->iWritten, i);
}
static void wdEndWrite(WdLog *p){
  u64 i = wdWritten(p) + 1;
  AtomicStore(&p->pDb->pShared->iWritten, i);
}

/* Write through the page cache. */
static int wdLowWrite(WdLog *p, const void *pBuf, i64 n, i64 iOfst){
  const u8 *a = (const u8*)pBuf;
  int rc = SQLITE_OK;
  wdCount(p->pDb, WD_STAT_BYTES, n);
  wdBeginWrite(p);
  while( rc==SQLITE_OK && n>0 ){
    int m = n>WD_CHUNK ? WD_CHUNK : (int)n;
    rc = LOWER(p)->pMethods->xWrite(LOWER(p), a, m, iOfst);
    a += m; iOfst += m; n -= m;
  }
  wdEndWrite(p);
  return rc;
}

static int wdPoisoned(WdLog *p){
  return AtomicLoad(&p->pDb->pShared->bPoison)!=0;
}

/* After a failed flush nobody knows what is in the file: SQLite's log could
** be replayed with a gap.  So there is no commit until it is opened anew. */
static int wdPoison(WdLog *p, int rc){
  AtomicStore(&p->pDb->pShared->bPoison, 1);
  sqlite3_log(rc, "waldio: flushing the log of %s failed; close the database "
              "everywhere and open it again", p->pDb->pBase->zName);
  return rc;
}

/* Let *p reach iTo. */
static void wdReach(u64 *p, u64 iTo){
  u64 i;
  do{
    i = AtomicLoad(p);
  }while( i<iTo && !AtomicSwap(p, i, iTo) );
}

/*
** Change byte 19 from one mark to the other.  Sets *pbChanged if it was eFrom.
*/
static int wdRemark(WdDb *p, u8 eFrom, u8 eTo, int *pbChanged){
  u8 eNow = 0;
  int rc = LOWER(p)->pMethods->xRead(LOWER(p), &eNow, 1, 19);
  *pbChanged = rc==SQLITE_OK && eNow==eFrom;
  if( *pbChanged ) rc = LOWER(p)->pMethods->xWrite(LOWER(p), &eTo, 1, 19);
  return rc==SQLITE_IOERR_SHORT_READ ? SQLITE_OK : rc;
}

/*
** All of the log is in the database, and it is about to be emptied or deleted.
** The database says so first, and for good: stock SQLite deletes an empty log.
*/
static int wdNeedNoLog(WdDb *p){
  int bChanged;
  int rc = wdRemark(p, WD_MARK, WD_MARK_EMPTY, &bChanged);
  if( rc==SQLITE_OK && bChanged ){
    rc = LOWER(p)->pMethods->xSync(LOWER(p), SQLITE_SYNC_NORMAL);
    if( rc!=SQLITE_OK ) (void)wdRemark(p, WD_MARK_EMPTY, WD_MARK, &bChanged);
  }
  if( rc==SQLITE_OK ) p->bNeedsLog = 0;
  return rc;
}

/*
** fdatasync(), as not every build of SQLite does; and on f2fs fsync() if the file
** has grown.  There a checkpoint of the filesystem between write and fdatasync()
** can leave the file as long as it was (Linux 6.1; scripts/crash-states f2fs).
** Elsewhere fsync() would journal no more than the file's times, a flush or two.
*/
static int wdSyncFile(WdLog *p){
  struct stat st;
  int rc;
  if( !p->bF2fs ) return fdatasync(p->fd)==0 ? SQLITE_OK : SQLITE_IOERR_FSYNC;
  if( fstat(p->fd, &st)!=0 ) return SQLITE_IOERR_FSTAT;
  if( st.st_size==AtomicLoad(&p->szSynced) ){
    rc = fdatasync(p->fd);
  }else{
    rc = fsync(p->fd);
    if( rc==0 ) AtomicStore(&p->szSynced, st.st_size);
  }
  return rc==0 ? SQLITE_OK : SQLITE_IOERR_FSYNC;
}

/*
** A flush on f2fs that ends forgets that the file needs one, also for what was
** written meanwhile: the next fdatasync() then returns at once, and the data is
** in the cache of the disk (f2fs_do_sync_file() in Linux's fs/f2fs/file.c; seen
** by scripts/crash-states f2fs).  So the flushes of a log take turns there, and
** so do durable writes, by a lock that ends with whoever has it: the process, or
** its child after a fork().  One that is stopped just then is not waited for
** longer than any flush takes.
*/
static void wdLockFlush(WdLog *p, short eType){
  struct flock lock;
  i64 iUntil;
  if( !p->bF2fs ) return;
  memset(&lock, 0, sizeof(lock));
  lock.l_type = eType;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  iUntil = wdNow() + WD_STUCK_US;
  while( fcntl(p->fd, F_OFD_SETLK, &lock)!=0 && (errno==EAGAIN || errno==EACCES)
      && wdNow()<iUntil ){
    wd.pLower->xSleep(wd.pLower, 200);
  }
}
/*
** Who has the log of a database open in waldio holds a lock of its file, shared, of a
** byte that no flush is locked by.  Whoever can have it alone is the only one, whatever
** stock SQLite keeps open.  Who closes has it alone for a moment, so it is waited for.
** What cannot have a lock says so in WdShared.bUnseen: then nobody is alone.
*/
static int wdLockPresence(WdLog *p, short eType, i64 nMicro){
  struct flock lock;
  i64 iUntil = wdNow() + nMicro;
  int rc;
  if( p->fd<0 ) return 0;
  memset(&lock, 0, sizeof(lock));
  lock.l_type = eType;
  lock.l_whence = SEEK_SET;
  lock.l_start = 1;
  lock.l_len = 1;
  while( (rc = fcntl(p->fd, F_OFD_SETLK, &lock))!=0
      && (errno==EAGAIN || errno==EACCES || errno==EINTR) && wdNow()<iUntil ){
    wd.pLower->xSleep(wd.pLower, 200);
  }
  return rc==0;
}

static int wdIsAlone(WdLog *p){
  return p->bPresent && AtomicLoad(&p->pDb->pShared->bUnseen)==0
      && p->pDb->pShared!=&p->pDb->priv && wdLockPresence(p, F_WRLCK, 0);
}
static void wdNotAlone(WdLog *p){
  (void)wdLockPresence(p, F_RDLCK, 0);
}

static void wdTakeFlush(WdLog *p){ wdLockFlush(p, F_WRLCK); }
static void wdLeaveFlush(WdLog *p){ wdLockFlush(p, F_UNLCK); }

/* The first flush goes through the lower VFS, which then also syncs the directory, but
** for a log that was kept: see wdWasKept(). */
static int wdSyncLog(WdLog *p, int flags){
  int rc;
  wdTakeFlush(p);
  if( p->fd>=0 && AtomicLoad(&p->bSyncedDir) ){
    rc = wdSyncFile(p);
  }else{
    rc = LOWER(p)->pMethods->xSync(LOWER(p), flags);
  }
  wdLeaveFlush(p);
  if( rc==SQLITE_OK ) AtomicStore(&p->bSyncedDir, 1);
  return rc;
}

/* Make all that any process has written to the log durable. */
static int wdFlush(WdLog *p, int flags){
  WdShared *pShared = p->pDb->pShared;
  u64 nFrames = AtomicLoad(&pShared->nFrames);
  u64 iTo = wdWritten(p) & ~(u64)1;
  int rc;
  if( wdPoisoned(p) ) return SQLITE_IOERR_FSYNC;
  wdCount(p->pDb, WD_STAT_FLUSHES, 1);
  rc = wdSyncLog(p, flags);
  if( rc!=SQLITE_OK ) return wdPoison(p, rc);
  wdReach(&pShared->iDurable, iTo);
  wdReach(&pShared->nFramesDurable, nFrames);
  return SQLITE_OK;
}

/* The salts of the log, from SQLite's header of the wal-index; a restart of the
** log changes them. */
static u64 wdSalt(WdDb *p){
  u32 *a = (u32*)p->pIndex;
  if( a==0 ) return 0;
  return ((u64)AtomicLoad(&a[8])<<32) | AtomicLoad(&a[9]);
}

/*
** Commits in the log are durable.  From now on a log that is not there was lost:
** should that not be noted, it will go unnoticed, no more.  It is noted once for
** each log, since another connection may empty it.  A stock log may be gone without a
** loss: stock SQLite that is refused copies it into the database and deletes it.
*/
static void wdNeedLog(WdLog *p){
  u64 iSalt = wdSalt(p->pDb) | 1;
  u32 mLayout = AtomicLoad(&p->pDb->pShared->mLayout);
  int bChanged;
  if( p->iNeeded!=iSalt && mLayout!=0 && wdLayoutOf(mLayout).eKind!=WD_STOCK
   && wdRemark(p->pDb, WD_MARK_EMPTY, WD_MARK, &bChanged)==SQLITE_OK
  ){
    p->iNeeded = iSalt;
  }
}
static int wdFlushCommits(WdLog *p, int flags){
  int rc = wdFlush(p, flags);
  if( rc==SQLITE_OK ) wdNeedLog(p);
  return rc;
}

/*
** True if other connections commit at the same time, of this process or another
** one.  Then a commit does not flush under the WRITE lock: the next one writes
** meanwhile, and one flush serves all that wait for it.
*/
static int wdGroup(WdLog *p){
  return AtomicLoad(&p->pDb->pShared->nGroup)>0;
}
static void wdSetGroup(WdShared *p){
  AtomicStore(&p->nGroup, WD_GROUP_COMMITS);
}
static void wdCountGroup(WdShared *p){
  u32 n = AtomicLoad(&p->nGroup);
  if( n>WD_GROUP_COMMITS ) n = WD_GROUP_COMMITS;
  if( n>0 ) AtomicStore(&p->nGroup, n-1);
}

/*
** A commit is written, and a flush is to make it durable.  The WRITE lock is
** held.
*/
static void wdAsk(WdShared *p){
  u32 n = AtomicAdd(&p->nAsked, 1);
  u32 iGather = AtomicLoad(&p->iGather);
  if( iGather!=0 && (int)(n-iGather)>=0 && AtomicSwap(&p->iGather, iGather, 0) ){
    wdFutexWake(&p->iGather);
  }
}

/*
** A flush for many is about to begin.  Those whose commits the last one made
** durable are likely to commit again at once, and would miss this one: two halves
** of the writers would wait for each other's flush.  So it waits for them, for
** half the time of a flush at most.  Where they do not come it waits seldom, and
** never where a flush is as fast as a commit.  (Table slow-flush.)
*/
static void wdGather(WdShared *p){
  i64 nLeft = AtomicLoad(&p->nFlushUs)/2;
  u32 nSkip = AtomicLoad(&p->nGatherSkip);
  u32 nAsked = AtomicLoad(&p->nAsked);
  u32 iGoal = AtomicLoad(&p->nServed) + AtomicLoad(&p->nExpect);
  int nMissing = (int)(iGoal-nAsked);
  i64 iUntil;
  if( nLeft<WD_GATHER_MIN_US || nMissing<=0 || iGoal==0 ) return;
  if( nSkip>0 ){
    AtomicStore(&p->nGatherSkip, nSkip-1);
    return;
  }
  if( nLeft>WD_GATHER_MAX_US ) nLeft = WD_GATHER_MAX_US;
  iUntil = wdNow() + nLeft;
  AtomicStore(&p->iGather, iGoal);
  while( nLeft>0 && (int)(iGoal-AtomicLoad(&p->nAsked))>0 ){
    wdFutexWait(&p->iGather, iGoal, nLeft);
    nLeft = iUntil - wdNow();
  }
  AtomicStore(&p->iGather, 0);
  if( (int)(iGoal-AtomicLoad(&p->nAsked))>nMissing/2 ){
    AtomicStore(&p->nGatherSkip, WD_GATHER_SKIP);
  }
}

/* Flush for all that wait, and remember how many did, and how long it took. */
static int wdFlushAll(WdLog *p){
  WdShared *pShared = p->pDb->pShared;
  u32 nBefore, nServed, nTook, nOld;
  i64 iBegin;
  int rc;
  wdGather(pShared);
  iBegin = wdNow();
  nBefore = AtomicLoad(&pShared->nServed);
  nServed = AtomicLoad(&pShared->nAsked);
  AtomicStore(&pShared->nServed, nServed);
  rc = wdFlush(p, SQLITE_SYNC_NORMAL);
  nTook = (u32)(wdNow() - iBegin);
  nOld = AtomicLoad(&pShared->nFlushUs);
  AtomicStore(&pShared->nFlushUs, nTook/4 + nOld/4*3);
  AtomicStore(&pShared->nExpect, AtomicLoad(&pShared->nAsked) - nBefore);
  return rc;
}

/*
** True if all that was written to the log is durable.  Nobody knows that of a log
** that was there before the wal-index, as after the death of all processes: then
** iWritten is 0.
*/
static int wdAllDurable(WdLog *p){
  u64 iDurable = AtomicLoad(&p->pDb->pShared->iDurable);
  u64 iWritten = wdWritten(p);
  return iWritten!=0 && iDurable>=iWritten;
}

/* True if a ticket has the turn to write, and did not miss it. */
static int wdTurnTaken(u64 iTurn){
  return iTurn!=0 && wdStamp()-(u32)iTurn<WD_TURN_US;
}

/* True if the WRITE lock is free and nobody was called to take it. */
static int wdIsFree(WdShared *pShared){
  return AtomicLoad(&pShared->iHolder)==0
      && !wdTurnTaken(AtomicLoad(&pShared->iTurn));
}

/*
** Wait until all writes up to iTo are durable.  The first that comes flushes;
** those that come meanwhile wait, and the first of them flushes for all next.
** Flushes may overlap, so whoever believes that the other one died may flush.
*/
static int wdWaitDurable(WdLog *p, u64 iTo){
  WdShared *pShared = p->pDb->pShared;
  int bWaited = 0;
  int rc = SQLITE_OK;
  while( rc==SQLITE_OK ){
    u32 iSeq = AtomicLoad(&pShared->iFlushed);
    u32 iBegan = AtomicLoad(&pShared->iFlushing);
    u32 iNow = wdStamp();
    if( AtomicLoad(&pShared->iDurable)>=iTo ) break;
    if( wdPoisoned(p) ){
      rc = SQLITE_IOERR_FSYNC;
    }else if( iBegan && iNow-iBegan<WD_FLUSH_US ){
      bWaited = 1;
      wdFutexWait(&pShared->iFlushed, iSeq, WD_FLUSH_US);
    }else if( AtomicSwap(&pShared->iFlushing, iBegan, iNow) ){
      rc = wdFlushAll(p);
      (void)AtomicSwap(&pShared->iFlushing, iNow, 0);
      (void)AtomicAdd(&pShared->iFlushed, 1);
      wdFutexWake(&pShared->iFlushed);
    }
  }
  if( bWaited ) wdSetGroup(pShared);
  return rc;
}

/* Wait until the timer's fields change, for nMicro at most; and change them. */
static void wdTimerWait(WdBase *p, i64 nMicro){
  u32 i = AtomicLoad(&p->iTimer);
  pthread_mutex_unlock(&p->timer);
  wdFutexWait(&p->iTimer, i, nMicro);
  pthread_mutex_lock(&p->timer);
}
static void wdTimerChanged(WdBase *p){
  (void)AtomicAdd(&p->iTimer, 1);
  wdFutexWake(&p->iTimer);
}

/*
** The thread that flushes for waldio_sync=group, by any log that has something
** to flush.  A failure poisons the log, so that the next commit fails.  It holds no
** mutex but WdBase.timer, which the child of a fork() has no use for.
*/
static void *wdTimerMain(void *pArg){
  WdBase *p = (WdBase*)pArg;
  pthread_mutex_lock(&p->timer);
  while( !p->bStop ){
    i64 nLeft = p->iDue ? p->iDue - wdNow() : WD_IDLE_US;
    if( nLeft>0 ){
      wdTimerWait(p, nLeft);
    }else{
      u64 iTo = p->iDueTo;
      p->iDue = 0;
      p->pTiming = p->pTimed;
      pthread_mutex_unlock(&p->timer);
      (void)wdWaitDurable(p->pTiming, iTo);
      pthread_mutex_lock(&p->timer);
      p->pTiming = 0;
      wdTimerChanged(p);
    }
  }
  pthread_mutex_unlock(&p->timer);
  return 0;
}

/*
** True if SQLite's mutexes exclude anybody.  With SQLITE_CONFIG_SINGLETHREAD they
** are all the same one, which sqlite3_threadsafe() does not say; a build without
** threads has none.
*/
static int wdHasMutexes(void){
  sqlite3_mutex *p1, *p2;
  int bOne;
  if( !sqlite3_threadsafe() || !sqlite3_mutex_alloc ) return 0;
  p1 = sqlite3_mutex_alloc(SQLITE_MUTEX_FAST);
  p2 = sqlite3_mutex_alloc(SQLITE_MUTEX_FAST);
  bOne = p1==p2 || p1==0 || p2==0;
  sqlite3_mutex_free(p1);
  sqlite3_mutex_free(p2);
  return !bOne;
}

/* Start the thread, which takes none of the program's signals; and end it. */
static int wdStartTimer(WdBase *p){
  sigset_t all, old;
  int rc;
  if( !wdHasMutexes() ) return 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  rc = pthread_create(&p->timerThread, 0, wdTimerMain, p);
  pthread_sigmask(SIG_SETMASK, &old, 0);
  return rc==0;
}
static void wdEndTimer(WdBase *p){
  if( !p->bTimer || p->pid!=getpid() ) return;
  pthread_mutex_lock(&p->timer);
  p->bStop = 1;
  wdTimerChanged(p);
  pthread_mutex_unlock(&p->timer);
  pthread_join(p->timerThread, 0);
  p->bTimer = p->bStop = 0;
}

/*
** A commit in waldio_sync=group.  The thread will flush it in time, unless too
** many frames wait already or there can be no thread.
*/
static int wdWaitGroup(WdLog *p, u64 iTo){
  WdDb *pDb = p->pDb;
  WdBase *pBase = pDb->pBase;
  u64 n = AtomicLoad(&pDb->pShared->nFramesDurable);
  i64 iDue = wdNow() + (i64)pDb->msGroup*1000;
  int bTimer = 0;
  n = AtomicLoad(&pDb->pShared->nFrames) - n;
  if( n<(u64)pDb->nGroupFrames && pDb->msGroup>0 ){
    pthread_mutex_lock(&pBase->timer);
    if( !pBase->bTimer ) pBase->bTimer = (u8)wdStartTimer(pBase);
    bTimer = pBase->bTimer;
    if( bTimer && p->iTimed==0 ){
      p->pNextTimed = pBase->pTimed;
      pBase->pTimed = p;
    }
    if( bTimer ){
      p->iTimed = iTo;
      if( pBase->iDueTo<iTo ) pBase->iDueTo = iTo;
      if( pBase->iDue==0 || iDue<pBase->iDue ){
        pBase->iDue = iDue;
        wdTimerChanged(pBase);
      }
    }
    pthread_mutex_unlock(&pBase->timer);
    if( !bTimer ) wdCount(pDb, WD_STAT_FALLBACKS, 1);
  }
  return bTimer ? SQLITE_OK : wdWaitDurable(p, iTo);
}

/*
** A log is about to be closed: its commits are flushed, and the thread must not
** use it any more.  (The child of a fork() may close a connection of its parent's,
** but has no thread.)
*/
static void wdLeaveGroup(WdLog *p){
  WdBase *pBase = p->pDb->pBase;
  WdLog **pp;
  if( p->iTimed==0 || pBase->pid!=getpid() ) return;
  if( !wdPoisoned(p) ) (void)wdWaitDurable(p, p->iTimed);
  pthread_mutex_lock(&pBase->timer);
  while( pBase->pTiming==p ) wdTimerWait(pBase, WD_IDLE_US);
  for(pp=&pBase->pTimed; *pp!=p; pp=&(*pp)->pNextTimed){}
  *pp = p->pNextTimed;
  if( pBase->pTimed==0 ) pBase->iDue = pBase->iDueTo = 0;
  pthread_mutex_unlock(&pBase->timer);
  p->iTimed = 0;
}

/*
** Have durable writes go around the page cache, or through it.  Others read what was
** committed from the page cache: around it they would read the device, a read of each
** frame.  In waldio_sync=persistent it is what was asked for, and layout P has slots that
** are no whole pages of it: each would be written as two.  (Tables pool, lookups.)
*/
static void wdUseDirect(WdLog *p){
  int bWant = p->pDb->eSync==WD_SYNC_PERSISTENT
           || (p->lay.eKind==WD_PADDED && p->lay.szSlot%WD_BLOCK0!=0);
  int flags;
  if( p->fd<0 || !p->bHasDirect || bWant==p->bDirectNow ) return;
  flags = fcntl(p->fd, F_GETFL);
  flags = bWant ? flags | O_DIRECT : flags & ~O_DIRECT;
  if( fcntl(p->fd, F_SETFL, flags)==0 ) p->bDirectNow = (u8)bWant;
}

/*
** Write whole slots, durable on return: with RWF_DSYNC, or as the lower VFS can
** if it is not SQLite's.  SQLITE_NOTFOUND means that the file cannot do it; all
** is to be written again.
*/
static int wdWriteDurable(WdLog *p, const u8 *a, i64 n, i64 iOfst){
  if( p->fd<0 ){
    waldio_write w;
    int rc;
    w.pData = a;
    w.nByte = n;
    w.iOfst = iOfst;
    rc = LOWER(p)->pMethods->xFileControl(LOWER(p), WALDIO_FCNTL_WRITE, &w);
    if( rc==SQLITE_OK ) wdCount(p->pDb, WD_STAT_BYTES, n);
    if( rc==SQLITE_NOTFOUND ) p->bDirect = 0;
    return rc;
  }
  wdCount(p->pDb, WD_STAT_BYTES, n);
  wdUseDirect(p);
  while( n>0 ){
    struct iovec v;
    ssize_t nDone;
    int eErrno;
    v.iov_base = (void*)a;
    v.iov_len = (size_t)n;
    wdTakeFlush(p);
    nDone = pwritev2(p->fd, &v, 1, iOfst, RWF_DSYNC);
    eErrno = errno;
    wdLeaveFlush(p);
    errno = eErrno;
    if( nDone<=0 ){
      if( nDone<0 && errno==EINTR ) continue;
      /* EPERM: a sandbox; EFBIG: RLIMIT_FSIZE.  Nothing was written. */
      if( errno==EINVAL || errno==EOPNOTSUPP || errno==ENOSYS || errno==EPERM
       || errno==EFBIG
      ){
        p->bDirect = 0;
        wdCount(p->pDb, WD_STAT_FALLBACKS, 1);
        return SQLITE_NOTFOUND;
      }
      if( nDone<0 && (errno==ENOSPC || errno==EDQUOT) ) return SQLITE_FULL;
      return wdPoison(p, SQLITE_IOERR_WRITE);
    }
    a += nDone; iOfst += nDone; n -= nDone;
  }
  return SQLITE_OK;
}

/* The file may have become shorter. */
static void wdForgetSize(WdLog *p){
  p->szFile = 0;
  AtomicStore(&p->szSynced, 0);
}

/* Append zeros up to szNew bytes, initialised and allocated. */
static int wdZeroFill(WdLog *p, i64 szNew){
  int rc = SQLITE_OK;
  i64 n;
  while( rc==SQLITE_OK && p->szFile<szNew ){
    n = szNew - p->szFile;
    if( n>WD_CHUNK ) n = WD_CHUNK;
    rc = wdLowWrite(p, wdZeros, n, p->szFile);
    if( rc==SQLITE_OK ) p->szFile += n;
  }
  return rc;
}

/* True if each commit is flushed, or soon after it.  The others gain nothing
** from zeros written ahead, and would have to wait for the flush of these. */
static int wdFlushesCommits(WdLog *p){
  int eSync = p->pDb->eSync;
  return eSync==WD_SYNC_FULL ? p->bFull : eSync!=WD_SYNC_NORMAL;
}

/*
** The WRITE lock is held, and n bytes of slots up to offset iEnd are about to be written.
** *piTo becomes the end that the file is to have then: iEnd, or well beyond if these end a
** short transaction, so that commits to come change no metadata.  Its size is read again
** first: other processes extend it too, and zeros must never fall on their frames; with a
** restart they may have truncated it.
**
** Zeros spare the filesystem a flush in each commit that finds them, and what it journals
** for a file that grows; they are as many bytes as the frames that come over them.  So
** they are written as far as bytes were saved: in SQLite's own log a commit begins within
** the block where the last one ended, and writes it once more.  Whoever stops at any
** commit has written no more than with SQLite's log.  (Tables fresh, sessions, rows.)
*/
static int wdPrealloc(WdLog *p, i64 n, i64 iEnd, int bShort, i64 *piTo){
  u64 iSalt = wdSalt(p->pDb);
  i64 szAsked = p->pDb->szPrealloc==WD_PREALLOC ? 0 : p->pDb->szPrealloc;
  struct rlimit limit;
  i64 szStep;
  int rc;
  *piTo = iEnd;
  if( iSalt!=p->iSized ) wdForgetSize(p);
  p->iSized = iSalt;
  if( !wdFlushesCommits(p) ) return SQLITE_OK;
  if( bShort ) p->nSaved += p->szBlock;
  if( iEnd>p->szFile ){
    rc = LOWER(p)->pMethods->xFileSize(LOWER(p), &p->szFile);
    if( rc!=SQLITE_OK ) return rc;
  }
  if( iEnd<=p->szFile ){
    if( bShort ) p->nSaved += p->szJournal;
    return SQLITE_OK;
  }
  if( p->pDb->szPrealloc==0 || !bShort ) return SQLITE_OK;
  szStep = (iEnd - WD_BLOCK0 - WD_TAILBLOCK)/2;
  if( szStep>WD_MXSTEP ) szStep = WD_MXSTEP;
  if( szStep<n ) szStep = n;
  if( szStep>p->nSaved ) szStep = p->nSaved;
  szStep -= szStep%WD_BLOCK0;
  if( szStep<n ) szStep = 0;
  if( szStep<szAsked ) szStep = szAsked;
  if( szStep==0 ) return SQLITE_OK;
  iEnd = roundUp(iEnd+szStep, WD_BLOCK0);
  wdCount(p->pDb, WD_STAT_PREALLOCS, 1);
  /* Beyond that limit a signal would end the process. */
  if( getrlimit(RLIMIT_FSIZE, &limit)==0 && limit.rlim_cur<(rlim_t)iEnd ){
    wdCount(p->pDb, WD_STAT_FALLBACKS, 1);
    return SQLITE_OK;
  }
  p->nSaved -= szStep;
  *piTo = iEnd;
  return SQLITE_OK;
}

/**************************** Log: its layout *******************************/

static void wdUseLayout(WdLog *p, u32 m){
  p->lay = wdLayoutOf(m);
  p->mLayout = m;
  p->iDirect = p->iDirectEnd = 0;
  AtomicStore(&p->pDb->pBase->mLayout, m);
  sqlite3_free(p->pRunAlloc);
  p->pRunAlloc = 0;
  p->nRun = p->nTail = 0;
  p->iPend = 0;
}

/* Another version of waldio has the log, or had it when it crashed. */
static int wdOtherFormat(WdLog *p, const u8 *a){
  AtomicStore(&p->pDb->pBase->zReason, wdOther);
  sqlite3_log(SQLITE_CANTOPEN, "waldio: the log of %s has format '%.8s', this "
              "waldio reads 'waldio %d'; open and close the database with the "
              "waldio that wrote it", p->pDb->zName, (const char*)&a[32],
              WD_FORMAT);
  return SQLITE_CANTOPEN;
}

/* Read block 0 into a[] and take its layout.  A layout that others have put
** into shared memory meanwhile is newer, and wins if bForce is not set. */
static int wdLearn(WdLog *p, u8 *a, int bForce){
  WdShared *pShared = p->pDb->pShared;
  WdLayout lay;
  u32 m = 0;
  int rc = wdLowRead(p, a, WD_SZLABEL, 0);
  if( rc!=SQLITE_OK && rc!=SQLITE_IOERR_SHORT_READ ) return rc;
  rc = wdDecodeBlock0(a, &lay);
  if( rc!=SQLITE_OK ) return wdOtherFormat(p, a);
  (void)AtomicSwap(&p->pDb->pBase->zReason, wdOther, 0);
  if( lay.eKind!=WD_NONE ) m = wdLayoutWord(&lay);
  if( !p->pDb->bReadonlyShm ){
    if( bForce ){
      AtomicStore(&pShared->mLayout, m);
    }else if( m && !AtomicSwap(&pShared->mLayout, 0, m) ){
      m = AtomicLoad(&pShared->mLayout);
    }
  }
  wdUseLayout(p, m);
  return SQLITE_OK;
}

/*
** Have p->lay be the layout in force.  Whoever restarts the log may change it,
** and does so in shared memory before the first frame can be seen.
*/
static int wdLayoutNow(WdLog *p){
  u32 m = AtomicLoad(&p->pDb->pShared->mLayout);
  u8 a[WD_SZLABEL];
  if( m==0 ) return wdLearn(p, a, 0);
  if( m!=p->mLayout ) wdUseLayout(p, m);
  return SQLITE_OK;
}

/* Allocate aRun, which also serves as room for one slot; or double it, up to WD_RUN
** bytes.  Without memory for that the frames are written as they are. */
static int wdRunBuffer(WdLog *p){
  int szSlot = p->lay.szSlot;
  int mxRun = p->pRunAlloc ? 2*p->mxRun : WD_RUN_FIRST/szSlot;
  void *pAlloc;
  u8 *aRun;
  if( p->pRunAlloc && (p->nRun<p->mxRun || mxRun>WD_RUN/szSlot) ) return SQLITE_OK;
  if( mxRun==0 ) mxRun = 1;
  pAlloc = sqlite3_malloc64((u64)mxRun*(u64)szSlot + 4096);
  if( pAlloc==0 ) return p->pRunAlloc ? SQLITE_OK : SQLITE_IOERR_NOMEM;
  aRun = (u8*)(((uintptr_t)pAlloc + 4095) & ~(uintptr_t)4095);
  if( p->nRun>0 ) memcpy(aRun, p->aRun, (size_t)p->nRun*(size_t)szSlot);
  sqlite3_free(p->pRunAlloc);
  p->pRunAlloc = pAlloc;
  p->aRun = aRun;
  p->mxRun = mxRun;
  return SQLITE_OK;
}

/**************************** Log: frames ***********************************/

/* Read the header of a frame; *pbEscaped tells whether its page's tail is in
** another place. */
static int wdLoadHdr(WdLog *p, u32 iFrame, u8 *aHdr, int *pbEscaped){
  int rc = wdLowRead(p, aHdr, WAL_FRAME_HDRSIZE, wdHdr(&p->lay, iFrame));
  *pbEscaped = wdEmbeds(&p->lay) ? wdUnescape(aHdr) : 0;
  return rc;
}

/* Put a page's tail back in its place.  A tail block that is missing ends the
** log, as a frame that is missing does: by the frame's checksum. */
static int wdRestoreTail(WdLog *p, u32 iFrame, u8 *aPage){
  int szPage = p->lay.szPage;
  u8 *aEnd = &aPage[szPage-WD_SZTAIL];
  u8 aTail[WD_SZTAIL];
  int rc = SQLITE_OK;
  if( !wdTakeTail(aPage, szPage, get4(aEnd), aTail) ){
    rc = wdLowRead(p, aTail, WD_SZTAIL, wdTail(&p->lay, iFrame));
    if( rc==SQLITE_IOERR_SHORT_READ ) rc = SQLITE_OK;
  }
  memcpy(aEnd, aTail, WD_SZTAIL);
  return rc;
}

/* Read the page of a frame. */
static int wdLoadPage(WdLog *p, u32 iFrame, u8 *aPage){
  int szPage = p->lay.szPage;
  int bEscaped = 0;
  u8 aHdr[WAL_FRAME_HDRSIZE];
  int rc = wdLowRead(p, aPage, szPage, wdSlot(&p->lay, iFrame));
  if( rc!=SQLITE_OK && rc!=SQLITE_IOERR_SHORT_READ ) return rc;
  if( wdEmbeds(&p->lay) ){
    u8 *aEnd = &aPage[szPage-WAL_FRAME_HDRSIZE];
    memcpy(aHdr, aEnd, WAL_FRAME_HDRSIZE);
    if( wdUnescape(aHdr) ){
      int rcTail = wdRestoreTail(p, iFrame, aPage);
      if( rc==SQLITE_OK ) rc = rcTail;
    }else{
      memset(aEnd, 0, WAL_FRAME_HDRSIZE);
    }
  }else if( isMarkedPage1(aPage) ){
    /* Any page may hold such bytes; page 1 alone had its version changed. */
    int rcHdr = wdLoadHdr(p, iFrame, aHdr, &bEscaped);
    if( rc==SQLITE_OK ) rc = rcHdr;
  }else{
    return rc;
  }
  if( get4(aHdr)==1 ) wdShowPage1(p->pDb, aPage);
  return rc;
}

/* Keep a tail for the tail block, which is written with the run. */
static void wdSpill(WdLog *p, u32 iFrame, const u8 *aTail){
  int n;
  if( p->nTail==0 ) p->iTail = (int)iFrame;
  n = ((int)iFrame - p->iTail + 1)*WD_TAILSTEP;
  memset(&p->aTail[p->nTail*WD_TAILSTEP], 0,
         (size_t)(n - p->nTail*WD_TAILSTEP));
  memcpy(&p->aTail[n-WD_TAILSTEP], aTail, WD_SZTAIL);
  p->nTail = n/WD_TAILSTEP;
  wdCount(p->pDb, WD_STAT_ESCAPES, 1);
}

/* Write the tails of the run.  The entries between them are its own, too. */
static int wdWriteTails(WdLog *p){
  int rc;
  if( p->nTail==0 ) return SQLITE_OK;
  rc = wdLowWrite(p, p->aTail, (i64)p->nTail*WD_TAILSTEP,
                  wdTail(&p->lay, (u32)p->iTail));
  if( rc==SQLITE_OK ) p->nTail = 0;
  return rc;
}

/* The slot holds a page, with aHdr to come over its end. */
static int wdEmbed(WdLog *p, u32 iFrame, u8 *aSlot, const u8 *aHdr){
  int n = p->lay.szPage;
  u8 *aEnd = &aSlot[n-WD_SZTAIL];
  u8 *aTo = &aSlot[n-WAL_FRAME_HDRSIZE];
  int bEscape = !isZero(aTo, WAL_FRAME_HDRSIZE);
  if( bEscape ){
    u32 x = wdFindRoom(aSlot, n, get4(aHdr));
    if( x==WD_SPILLED ){
      wdSpill(p, iFrame, aEnd);
    }else{
      wdPutTail(aSlot, n, x, aEnd);
      wdCount(p->pDb, WD_STAT_MOVED, 1);
    }
    put4(aEnd, x);
  }
  memcpy(aTo, aHdr, WAL_FRAME_HDRSIZE);
  return wdEscape(aTo, bEscape);
}

/* Build the slot of a frame. */
static int wdMakeSlot(
  WdLog *p, u32 iFrame, u8 *aSlot, const u8 *aHdr, const u8 *aPage
){
  int n = p->lay.szPage;
  memcpy(aSlot, aPage, (size_t)n);
  if( get4(aHdr)==1 ) wdHidePage1(p->pDb, aSlot);
  if( wdEmbeds(&p->lay) ) return wdEmbed(p, iFrame, aSlot, aHdr);
  memcpy(&aSlot[n], aHdr, WAL_FRAME_HDRSIZE);
  n += WAL_FRAME_HDRSIZE;
  memset(&aSlot[n], 0, (size_t)(p->lay.szSlot - n));
  return SQLITE_OK;
}

/*
** The header of a new log has to be durable before a second slot is written: behind
** the old header a new frame would cut the old log short, and what is left of it would
** be copied over newer pages (https://sqlite.org/src/info/ff5be73dee).  A single slot
** may go with the header: with the old header the log ends before it, at frame 1, and
** all of the old log is in the database; with the new one its checksum says whether it
** is there.  So where the first commit is one slot, and will be flushed before the WRITE
** lock is given up, one flush does for both; and for whoever comes after one that died
** before.  The first log of a new file has nothing before it.  (Power, table sessions.)
**
** With synchronous=OFF SQLite asks for no flush at all, and a commit that is durable by
** waldio_sync=persistent needs those before it: of the database, too.
*/
static int wdNeedHeader(WdLog *p, int bCommit){
  WdShared *pShared = p->pDb->pShared;
  u64 iHeader = AtomicLoad(&pShared->iHeader);
  int rc = SQLITE_OK;
  if( p->pDb->bReadonlyShm || iHeader==WD_HEADER_DURABLE
   || (iHeader>WD_HEADER_DURABLE && AtomicLoad(&pShared->iDurable)>=iHeader)
  ){
    return SQLITE_OK;
  }
  if( iHeader==WD_HEADER_UNASKED ){
    if( p->pDb->eSync!=WD_SYNC_PERSISTENT ) return SQLITE_OK;
    rc = wdDbSync(&p->pDb->base, SQLITE_SYNC_NORMAL);
  }else if( bCommit && p->iRun==1 && p->nRun==1 && p->bHeaderLater ){
    return SQLITE_OK;
  }
  p->bHeaderLater = 0;
  if( rc==SQLITE_OK ) rc = wdFlush(p, SQLITE_SYNC_NORMAL);
  if( rc==SQLITE_OK ){
    (void)AtomicSwap(&pShared->iHeader, iHeader, WD_HEADER_DURABLE);
  }
  return rc;
}

/* Write the header of a frame whose page is in the file. */
static int wdStoreHdr(WdLog *p, u32 iFrame, const u8 *aHdr){
  u8 a[WAL_FRAME_HDRSIZE];
  int rc = wdNeedHeader(p, 0);
  int bEscaped;
  if( rc==SQLITE_OK && wdEmbeds(&p->lay) ){
    rc = wdLoadHdr(p, iFrame, a, &bEscaped);
    if( rc==SQLITE_IOERR_SHORT_READ ) rc = SQLITE_OK;
    memcpy(a, aHdr, sizeof(a));
    if( rc==SQLITE_OK ) rc = wdEscape(a, bEscaped);
    aHdr = a;
  }
  if( rc!=SQLITE_OK ) return rc;
  return wdLowWrite(p, aHdr, WAL_FRAME_HDRSIZE, wdHdr(&p->lay, iFrame));
}

/* Write the page of a frame whose header is in the file. */
static int wdStorePage(WdLog *p, u32 iFrame, const u8 *aPage){
  u8 aHdr[WAL_FRAME_HDRSIZE];
  int bEscaped;
  int rc = wdRunBuffer(p);
  p->nTail = 0;
  if( rc==SQLITE_OK ) rc = wdNeedHeader(p, 0);
  if( rc==SQLITE_OK ) rc = wdLoadHdr(p, iFrame, aHdr, &bEscaped);
  if( rc==SQLITE_OK ) rc = wdMakeSlot(p, iFrame, p->aRun, aHdr, aPage);
  if( rc==SQLITE_OK ) rc = wdWriteTails(p);
  if( rc!=SQLITE_OK ) return rc;
  return wdLowWrite(p, p->aRun, p->lay.szSlot, wdSlot(&p->lay, iFrame));
}

/*
** True if a commit may be one durable write: all before it is durable already.
** In waldio_sync=full it is if synchronous=FULL, that is, if an xSync follows.
** That is not known before, but the last commit had one.
*/
static int wdWantDurable(WdLog *p){
  int eSync = p->pDb->eSync;
  if( !p->bDirect ) return 0;
  if( eSync!=WD_SYNC_PERSISTENT
   && (eSync!=WD_SYNC_FULL || !p->bFull || wdGroup(p)) ) return 0;
  return wdAllDurable(p);
}

/* Put the gathered frames into the file. */
static int wdPutRun(WdLog *p, int bCommit){
  WdShared *pShared = p->pDb->pShared;
  i64 iOfst = wdSlot(&p->lay, p->iRun);
  i64 n = (i64)p->nRun*p->lay.szSlot;
  i64 iTo;
  int rc = wdPrealloc(p, n, iOfst+n, bCommit && !p->bLong, &iTo);
  p->bLong = !bCommit;
  if( rc==SQLITE_OK ) rc = wdNeedHeader(p, bCommit);
  if( rc==SQLITE_OK ) rc = wdWriteTails(p);
  if( rc!=SQLITE_OK ) return rc;
  if( bCommit && iOfst+n<=p->szFile && wdWantDurable(p) ){
    rc = wdWriteDurable(p, p->aRun, n, iOfst);
    if( rc==SQLITE_OK ){
      p->bDurable = 1;
      wdCount(p->pDb, WD_STAT_DURABLE, 1);
      if( p->bDirectNow && (p->iDirect==0 || p->iRun<p->iDirect) ){
        p->iDirect = p->iRun;
      }
      if( p->bDirectNow && p->iRun+(u32)p->nRun>p->iDirectEnd ){
        p->iDirectEnd = p->iRun + (u32)p->nRun;
      }
    }
    if( rc!=SQLITE_NOTFOUND ) return rc;
  }
  rc = wdLowWrite(p, p->aRun, n, iOfst);
  (void)AtomicAdd(&pShared->nFrames, (u64)p->nRun);
  if( rc!=SQLITE_OK || iOfst+n<=p->szFile ) return rc;
  p->szFile = iOfst+n;
  /* Zeros need no flush of their own: they go with the commit's. */
  if( wdZeroFill(p, iTo)!=SQLITE_OK ) wdCount(p->pDb, WD_STAT_FALLBACKS, 1);
  return SQLITE_OK;
}

/*
** Write the gathered frames.  When that fails they stay, for SQLite takes them
** for written: it may roll back a savepoint and go on.  A commit that fails is
** rolled back in full, and must not be written later.
*/
static int wdWriteRun(WdLog *p, int bCommit){
  int rc;
  if( p->nRun==0 ) return SQLITE_OK;
  rc = wdPutRun(p, bCommit);
  if( rc!=SQLITE_OK && !bCommit ) return rc;
  wdCount(p->pDb, WD_STAT_FRAMES, p->nRun);
  p->nRun = 0;
  return rc;
}

/* Have everything in the file that SQLite has written. */
static int wdSettle(WdLog *p){
  int rc = wdWriteRun(p, 0);
  if( rc==SQLITE_OK && p->iPend ){
    rc = wdStoreHdr(p, p->iPend, p->aPend);
    if( rc==SQLITE_OK ) p->iPend = 0;
  }
  return rc;
}

/* The WRITE lock is given up: what is not in the file was rolled back, and the
** slots belong to the next writer. */
static void wdForget(WdLog *p){
  p->nRun = p->nTail = 0;
  p->iPend = 0;
  p->bRecksum = p->bLong = 0;
}

/*
** True if SQLite may ignore what SQLITE_FCNTL_COMMIT_PHASETWO returns, as
** vdbeCommit() does for a transaction with a super-journal: one that also writes
** two databases with rollback journals.  (A temporary one, number 1, has none.)
** And as long as it has sent none: a commit waits for nothing that may not come.
*/
static int wdMayIgnore(WdDb *p){
  sqlite3 *db = p->ppDb ? *p->ppDb : 0;
  int i, nWrite = 0;
  if( !AtomicLoad(&wd.bPhaseTwo) ) return 1;
  if( db==0 || sqlite3_db_name(db, 3)==0 ) return 0;
  for(i=0; i==1 || sqlite3_db_name(db, i)!=0; i++){
    if( i!=1 ) nWrite += sqlite3_txn_state(db, sqlite3_db_name(db, i))
                         ==SQLITE_TXN_WRITE;
  }
  return nWrite>2;
}

/* A commit frame has just been written.  What its COMMIT has to wait for, it
** does in SQLITE_FCNTL_COMMIT_PHASETWO, or here if an error there is lost. */
static int wdCommitted(WdLog *p){
  int eSync = p->pDb->eSync;
  p->bCommitted = 1;
  wdCount(p->pDb, WD_STAT_COMMITS, 1);
  if( p->bDurable ){
    wdNeedLog(p);
    return SQLITE_OK;
  }
  if( (eSync==WD_SYNC_PERSISTENT && wdMayIgnore(p->pDb))
   || (eSync==WD_SYNC_GROUP && !AtomicLoad(&wd.bPhaseTwo))
  ){
    return wdFlushCommits(p, SQLITE_SYNC_NORMAL);
  }
  if( eSync==WD_SYNC_PERSISTENT || eSync==WD_SYNC_GROUP ){
    p->pDb->iWait = wdWritten(p);
  }
  return SQLITE_OK;
}

/* The transaction is over.  An xSync of its own would have come before: in
** synchronous=NORMAL there is none, and the next one is a checkpoint's. */
static void wdCommitOver(WdLog *p){
  if( p->bCommitted ) p->bFull = 0;
  p->bCommitted = 0;
}

/* Add a frame to the run, and write the run if the frame ends a commit. */
static int wdAppend(WdLog *p, u32 iFrame, const u8 *aHdr, const u8 *aPage){
  int bCommit = get4(&aHdr[4])!=0 && !p->bRecksum;
  int rc = wdRunBuffer(p);
  if( rc==SQLITE_OK && p->nRun
   && (iFrame!=p->iRun+(u32)p->nRun || p->nRun>=p->mxRun
        || (wdEmbeds(&p->lay) && (iFrame-1)%WD_GROUP==0))
  ){
    rc = wdWriteRun(p, 0);
  }
  if( rc!=SQLITE_OK ) return rc;
  if( p->nRun==0 ){
    p->iRun = iFrame;
    p->nTail = 0;
  }
  rc = wdMakeSlot(p, iFrame, &p->aRun[(i64)p->nRun*p->lay.szSlot], aHdr, aPage);
  if( rc!=SQLITE_OK ) return rc;
  p->nRun++;
  if( bCommit ) wdCountGroup(p->pDb->pShared);
  if( bCommit || p->bRecksum ) rc = wdWriteRun(p, bCommit);
  if( bCommit ) p->iCommit = iFrame;
  if( rc==SQLITE_OK && bCommit ) rc = wdCommitted(p);
  return rc;
}

/*
** SQLite writes a frame header.  Usually the page follows.  A transaction that
** writes over its own frames, having spilled its cache, leaves the salts of
** later headers zero, and rewrites all headers from the first such frame on
** when it commits; nothing follows the last of these but perhaps an xSync, so
** they are stored at once.
*/
static int wdWriteHdr(WdLog *p, u32 iFrame, const u8 *aHdr){
  int rc = SQLITE_OK;
  if( p->iPend ) rc = wdSettle(p);
  if( isZero(&aHdr[8], 8) ){
    p->bRecksum = 1;
  }else if( p->bRecksum ){
    if( rc==SQLITE_OK ) rc = wdSettle(p);
    if( rc==SQLITE_OK ) rc = wdStoreHdr(p, iFrame, aHdr);
    p->iStored = iFrame;
    if( rc==SQLITE_OK && get4(&aHdr[4]) ){
      p->bRecksum = 0;
      p->iCommit = iFrame;
      rc = wdCommitted(p);
    }
    return rc;
  }
  memcpy(p->aPend, aHdr, WAL_FRAME_HDRSIZE);
  p->iPend = iFrame;
  return rc;
}

/* SQLite writes a page: of the frame whose header came before, or over one of
** the transaction's own frames. */
static int wdWritePage(WdLog *p, u32 iFrame, const u8 *aPage){
  int rc;
  if( p->iPend==iFrame ){
    p->iPend = 0;
    return wdAppend(p, iFrame, p->aPend, aPage);
  }
  rc = wdSettle(p);
  if( rc==SQLITE_OK ) rc = wdStorePage(p, iFrame, aPage);
  if( iFrame!=p->iStored ) p->bRecksum = 1;
  return rc;
}

/* Choose the layout of a new log. */
static void wdChoose(WdDb *p, int szPage, WdLayout *pLay){
  int szPad = p->szPad>p->szSector ? p->szPad : p->szSector;
  pLay->szPage = pLay->szSlot = szPage;
  pLay->eKind = p->nReserve>=WAL_FRAME_HDRSIZE ? WD_WHOLE : WD_MOVED;
  if( p->szPad || szPage%p->szSector!=0 ){
    pLay->eKind = WD_PADDED;
    pLay->szSlot = (int)roundUp(szPage + WAL_FRAME_HDRSIZE, szPad);
  }
}

/*
** waldio relies on some of SQLite's inside: the log's header, locks and header of the
** wal-index, and which calls come in which order.  A version of SQLite that nobody has
** tried may have others.  So they are looked at where a log begins, for then it can still
** be a stock one, which no SQLite has trouble with.  Returns what differs, or NULL.
**
** The WRITE lock is held, of which nothing is seen where there are no others: with an
** EXCLUSIVE lock of the database, or a wal-index in heap memory.  SQLite has just begun
** the wal-index anew: two equal headers, with no frames, of which none is copied.
*/
static const char *wdDiffers(WdLog *p, const u8 *aWalHdr){
  WdDb *pDb = p->pDb;
  u32 a[WAL_INDEX_HDRSIZE/4];
  u32 aCksum[2];
  u32 one = 1;
  walChecksum(aWalHdr, 24, aWalHdr[3]&1, aCksum);
  if( (get4(aWalHdr) & ~1u)!=WAL_MAGIC || get4(&aWalHdr[4])!=WAL_VERSION
   || get4(&aWalHdr[24])!=aCksum[0] || get4(&aWalHdr[28])!=aCksum[1]
  ){
    return "the header of its log";
  }
  if( pDb->pShared==&pDb->priv ) return 0;
  if( !pDb->bHolder && pDb->eLock!=SQLITE_LOCK_EXCLUSIVE ) return "the locks of its wal-index";
  if( pDb->pIndex==0 ) return 0;
  memcpy(a, (u8*)pDb->pIndex, sizeof(a));
  walChecksum((u8*)a, 40, *(u8*)&one==0, aCksum);
  if( a[0]!=WAL_VERSION || ((u8*)a)[12]!=1 || a[4]!=0 || memcmp(a, &a[12], 48)!=0
   || a[10]!=aCksum[0] || a[11]!=aCksum[1] || ((u32*)pDb->pIndex)[24]!=0
  ){
    return "the header of its wal-index";
  }
  return 0;
}

static void wdUnknown(WdDb *p, const char *zWhat){
  if( AtomicLoad(&p->pBase->zUnknown) ) return;
  AtomicStore(&p->pBase->zUnknown, zWhat);
  sqlite3_log(SQLITE_WARNING, "waldio: SQLite %s differs from those that are known in %s; "
              "the log of %s is a stock one", sqlite3_libversion(), zWhat, p->zName);
}

/* The first commit of a log is over: salts and number of frames in the wal-index are those
** that were written, or the next log is a stock one. */
static void wdCheckIndex(WdLog *p){
  u32 *a = (u32*)p->pDb->pIndex;
  u32 nFrame = a ? AtomicLoad(&a[4]) : 0;
  int bCheck = p->bCheckIndex;
  p->bCheckIndex = 0;
  if( !bCheck || nFrame==0 ) return;              /* It was rolled back */
  if( nFrame!=p->iCommit || memcmp(&a[8], p->aSalt, 8)!=0 ){
    wdUnknown(p->pDb, "the header of its wal-index");
  }
}

/* A log as SQLite writes it, in place of one of waldio's. */
static int wdNewStockLog(WdLog *p, const u8 *aWalHdr){
  WdLayout lay;
  int rc;
  memset(&lay, 0, sizeof(lay));
  lay.eKind = WD_STOCK;
  wdForget(p);
  rc = LOWER(p)->pMethods->xWrite(LOWER(p), aWalHdr, WAL_HDRSIZE, 0);
  if( rc!=SQLITE_OK ) return rc;
  wdUseLayout(p, wdLayoutWord(&lay));
  p->pDb->bStockWrite = p->bHeader = 1;
  AtomicStore(&p->pDb->pShared->mLayout, p->mLayout);
  return SQLITE_OK;
}

/*
** SQLite begins a log, or restarts one that is copied to the database in full.
** No frame can be read until the first commit, so the layout may change here.
*/
static int wdNewLog(WdLog *p, const u8 *aWalHdr){
  WdDb *pDb = p->pDb;
  u8 a[WD_BLOCK0];
  const char *zDiffers = wdDiffers(p, aWalHdr);
  WdLayout lay;
  int rc;
  if( zDiffers ) wdUnknown(pDb, zDiffers);
  if( AtomicLoad(&pDb->pBase->zUnknown) ) return wdNewStockLog(p, aWalHdr);
  wdChoose(pDb, (int)get4(&aWalHdr[8]), &lay);
  if( !wdLayoutValid(&lay) ) return SQLITE_IOERR_WRITE;
  wdForget(p);
  wdUseLayout(p, wdLayoutWord(&lay));
  rc = LOWER(p)->pMethods->xFileSize(LOWER(p), &p->szFile);
  /* Nothing was ever in a file that this connection has made and begins. */
  if( p->szFile!=0 || wdWritten(p)!=0 || pDb->eSync==WD_SYNC_PERSISTENT ) p->bNew = 0;
  p->iSized = wdSalt(pDb);
  if( rc!=SQLITE_OK ) return rc;
  memset(a, 0, sizeof(a));
  wdEncodeBlock0(a, aWalHdr, &lay);
  rc = wdLowWrite(p, a, WD_BLOCK0, 0);
  if( rc==SQLITE_OK ){
    p->iNeeded = 0;
    memcpy(p->aSalt, &aWalHdr[16], sizeof(p->aSalt));
    p->bCheckIndex = 1;
    p->bHeader = p->bNew ? 2 : 1;
    AtomicStore(&pDb->pShared->iHeader, p->bNew ? WD_HEADER_DURABLE : WD_HEADER_UNASKED);
    p->bNew = 0;
    AtomicStore(&pDb->pShared->mLayout, p->mLayout);
  }
  return rc;
}

/* A write of any other shape: with psow=0 SQLite divides one where a sector begins. */
static int wdWriteOther(WdLog *p, const u8 *a, int n, i64 iOfst){
  int szFrame = p->lay.szPage + WAL_FRAME_HDRSIZE;
  u8 *aPage = sqlite3_malloc(p->lay.szPage);
  u8 aHdr[WAL_FRAME_HDRSIZE];
  int rc = aPage ? wdSettle(p) : SQLITE_IOERR_NOMEM;
  while( rc==SQLITE_OK && n>0 ){
    u32 iFrame = (u32)((iOfst-WAL_HDRSIZE)/szFrame) + 1;
    int i = (int)((iOfst-WAL_HDRSIZE)%szFrame);
    int m = (i<WAL_FRAME_HDRSIZE ? WAL_FRAME_HDRSIZE : szFrame) - i;
    int bEscaped;
    if( m>n ) m = n;
    if( i<WAL_FRAME_HDRSIZE ){
      (void)wdLoadHdr(p, iFrame, aHdr, &bEscaped);
      memcpy(&aHdr[i], a, (size_t)m);
      rc = wdStoreHdr(p, iFrame, aHdr);
    }else{
      (void)wdLoadPage(p, iFrame, aPage);
      memcpy(&aPage[i-WAL_FRAME_HDRSIZE], a, (size_t)m);
      rc = wdStorePage(p, iFrame, aPage);
    }
    a += m; iOfst += m; n -= m;
  }
  sqlite3_free(aPage);
  return rc;
}

/**************************** Log: methods **********************************/

/* True if SQLite's offsets are those of the file. */
static int wdLogStock(WdLog *p, int *pRc){
  *pRc = SQLITE_OK;
  if( !p->pDb->bMarked ) return 1;
  *pRc = wdLayoutNow(p);
  return *pRc==SQLITE_OK && p->lay.eKind==WD_STOCK;
}

/* A write to a stock log.  SQLite has its header flushed before frames are written, but not
** with synchronous=OFF; for waldio_sync=persistent that is done all the same, as in
** wdNeedHeader(). */
static int wdStockWrite(WdLog *p, const u8 *a, int n, i64 iOfst){
  int bFlush = p->bHeader && p->pDb->eSync==WD_SYNC_PERSISTENT;
  int rc = bFlush ? LOWER(p)->pMethods->xSync(LOWER(p), SQLITE_SYNC_NORMAL) : SQLITE_OK;
  if( rc!=SQLITE_OK ) return rc;
  p->pDb->bStockWrite = 1;
  p->bHeader = iOfst==0;
  return LOWER(p)->pMethods->xWrite(LOWER(p), a, n, iOfst);
}

static int wdLogWrite(sqlite3_file *pFile, const void *pBuf, int n, i64 iOfst){
  WdLog *p = (WdLog*)pFile;
  const u8 *a = (const u8*)pBuf;
  int bHdr = iOfst==0 && n==WAL_HDRSIZE;
  int szFrame, rc;
  int bStock = wdLogStock(p, &rc);
  p->pDb->bClosing = p->pDb->bLastClose = p->pDb->bJustLocked = p->pDb->bAsked = 0;
  if( bStock && (!bHdr || !p->pDb->bMarked) ) return wdStockWrite(p, a, n, iOfst);
  if( rc!=SQLITE_OK ) return rc;
  if( wdPoisoned(p) ) return SQLITE_IOERR_FSYNC;
  wdCommitOver(p);
  p->bDurable = p->bHeader = 0;
  if( bHdr ) return wdNewLog(p, a);
  if( p->lay.eKind==WD_NONE || iOfst<WAL_HDRSIZE ) return SQLITE_IOERR_WRITE;
  szFrame = p->lay.szPage + WAL_FRAME_HDRSIZE;
  iOfst -= WAL_HDRSIZE;
  if( n==WAL_FRAME_HDRSIZE && iOfst%szFrame==0 ){
    return wdWriteHdr(p, (u32)(iOfst/szFrame)+1, a);
  }
  if( n==p->lay.szPage && iOfst%szFrame==WAL_FRAME_HDRSIZE ){
    return wdWritePage(p, (u32)(iOfst/szFrame)+1, a);
  }
  return wdWriteOther(p, a, n, iOfst+WAL_HDRSIZE);
}

/* A log of another page size is not that of the database, whose page 1 tells. */
static int wdCheckPageSize(WdLog *p){
  u8 a[18];
  int n;
  if( LOWER(p->pDb)->pMethods->xRead(LOWER(p->pDb), a, 18, 0)!=SQLITE_OK
   || memcmp(a, "SQLite format 3", 16)!=0 ) return SQLITE_OK;
  n = a[16]*256 + a[17];
  if( n==1 ) n = WD_MXPAGE;
  if( n==p->lay.szPage ) return SQLITE_OK;
  sqlite3_log(SQLITE_CANTOPEN, "waldio: the log beside %s has pages of %d bytes, "
              "the database of %d: put its own log there, or remove this one",
              p->pDb->zName, p->lay.szPage, n);
  return SQLITE_CANTOPEN;
}

/* Read a piece of the header: from block 0 as it is now. */
static int wdReadWalHdr(WdLog *p, u8 *a, int n, i64 iOfst){
  u8 aBlock[WD_SZLABEL];
  u8 aHdr[WAL_HDRSIZE];
  int rc = wdLearn(p, aBlock, 1);
  if( rc==SQLITE_OK && p->lay.eKind!=WD_NONE && p->fd>=0 && n==WAL_HDRSIZE ){
    /* After a failed flush the page cache has what the disk has not, and will not
    ** write it again: recovery goes by the disk. */
    (void)posix_fadvise(p->fd, 0, 0, POSIX_FADV_DONTNEED);
    rc = wdLearn(p, aBlock, 1);
  }
  if( rc!=SQLITE_OK ) return rc;
  memset(aHdr, 0, sizeof(aHdr));
  if( p->lay.eKind==WD_STOCK ){
    memcpy(aHdr, aBlock, sizeof(aHdr));
  }else if( p->lay.eKind!=WD_NONE ){
    rc = wdCheckPageSize(p);
    if( rc!=SQLITE_OK ) return rc;
    wdDecodeWalHdr(aHdr, aBlock);
  }
  memcpy(a, &aHdr[iOfst], (size_t)n);
  return SQLITE_OK;
}

/* Read m bytes from offset i of a frame, none of them beyond its header or
** page. */
static int wdReadPiece(WdLog *p, u8 *a, int m, u32 iFrame, int i){
  u8 aHdr[WAL_FRAME_HDRSIZE];
  u8 *aPage;
  int bEscaped, rc;
  if( i<WAL_FRAME_HDRSIZE ){
    rc = wdLoadHdr(p, iFrame, aHdr, &bEscaped);
    if( rc==SQLITE_OK || rc==SQLITE_IOERR_SHORT_READ ){
      memcpy(a, &aHdr[i], (size_t)m);
    }
    return rc;
  }
  if( m==p->lay.szPage ) return wdLoadPage(p, iFrame, a);
  aPage = sqlite3_malloc(p->lay.szPage);
  if( aPage==0 ) return SQLITE_IOERR_NOMEM;
  rc = wdLoadPage(p, iFrame, aPage);
  if( rc==SQLITE_OK || rc==SQLITE_IOERR_SHORT_READ ){
    memcpy(a, &aPage[i-WAL_FRAME_HDRSIZE], (size_t)m);
  }
  sqlite3_free(aPage);
  return rc;
}

/*
** waldio_durable_reads: have all durable that was committed when the transaction
** began.  This is not done when it begins, because SQLite begins anew if there
** was a commit since it looked at the wal-index; without reading from the log,
** a transaction sees what is in the database or what it has read before.
*/
static int wdWaitToRead(WdLog *p){
  u64 iRead = p->pDb->iRead;
  p->pDb->iRead = 0;
  if( p->pDb->bReadonlyShm ){
    return LOWER(p)->pMethods->xSync(LOWER(p), SQLITE_SYNC_NORMAL);
  }
  return wdWaitDurable(p, iRead);
}

static int wdLogRead(sqlite3_file *pFile, void *pBuf, int n, i64 iOfst){
  WdLog *p = (WdLog*)pFile;
  u8 *a = (u8*)pBuf;
  int bShort = 0;
  int rc;
  p->nRead++;
  if( wdLogStock(p, &rc) ){
    return LOWER(p)->pMethods->xRead(LOWER(p), pBuf, n, iOfst);
  }
  if( rc==SQLITE_OK ) rc = wdSettle(p);
  if( rc==SQLITE_OK && p->pDb->iRead ) rc = wdWaitToRead(p);
  while( rc==SQLITE_OK && n>0 ){
    int m;
    if( iOfst<WAL_HDRSIZE ){
      m = n<WAL_HDRSIZE-iOfst ? n : (int)(WAL_HDRSIZE-iOfst);
      rc = wdReadWalHdr(p, a, m, iOfst);
    }else if( p->lay.eKind==WD_NONE || p->lay.eKind==WD_STOCK ){
      memset(a, 0, (size_t)n);
      return SQLITE_IOERR_SHORT_READ;
    }else{
      int szFrame = p->lay.szPage + WAL_FRAME_HDRSIZE;
      int i = (int)((iOfst-WAL_HDRSIZE)%szFrame);
      m = (i<WAL_FRAME_HDRSIZE ? WAL_FRAME_HDRSIZE : szFrame) - i;
      if( m>n ) m = n;
      rc = wdReadPiece(p, a, m, (u32)((iOfst-WAL_HDRSIZE)/szFrame)+1, i);
    }
    if( rc==SQLITE_IOERR_SHORT_READ ){
      bShort = 1;
      rc = SQLITE_OK;
    }
    a += m; iOfst += m; n -= m;
  }
  return rc==SQLITE_OK && bShort ? SQLITE_IOERR_SHORT_READ : rc;
}

/*
** A checkpoint begins, and ends.  It reads one frame after the other, in the order
** of their pages; those written with O_DIRECT each from the device.  Where the last
** checkpoint read many of its frames, and not a few pages that were written again
** and again, they are all asked for at once.  Of one call Linux takes no more than
** the device's read_ahead_kb.  (Test "use"; a checkpoint of 1,000 pages at random
** takes a third of the time.)
*/
static void wdReadAhead(WdLog *p){
  i64 iOfst, iEnd;
  p->nReadBefore = p->nRead;
  if( !p->bAhead || p->iDirect==0 || p->fd<0 ) return;
  wdCount(p->pDb, WD_STAT_AHEAD, 1);
  iEnd = wdSlot(&p->lay, p->iDirectEnd);
  for(iOfst=wdSlot(&p->lay, p->iDirect); iOfst<iEnd; iOfst+=WD_AHEAD){
    (void)posix_fadvise(p->fd, iOfst, WD_AHEAD, POSIX_FADV_WILLNEED);
  }
}
static void wdReadOver(WdLog *p){
  if( p->iDirect ){
    p->bAhead = p->nRead-p->nReadBefore > (p->iDirectEnd-p->iDirect)/8;
  }
  p->iDirect = p->iDirectEnd = 0;
}

static int wdLogTruncate(sqlite3_file *pFile, i64 size){
  WdLog *p = (WdLog*)pFile;
  i64 szFile = 0;
  int rc;
  int bStock = wdLogStock(p, &rc);
  if( size==0 && p->pDb->bMarked ){
    /* Who cannot say that the log is not needed leaves it as it is. */
    if( p->pDb->bReadonly ) return rc;
    if( rc==SQLITE_OK ) rc = wdNeedNoLog(p->pDb);
  }
  if( bStock || p->lay.eKind==WD_NONE ){
    if( rc==SQLITE_OK ) rc = LOWER(p)->pMethods->xTruncate(LOWER(p), size);
  }else{
    if( rc==SQLITE_OK ) rc = wdSettle(p);
    if( size>WAL_HDRSIZE ){
      i64 n = roundUp(size-WAL_HDRSIZE, p->lay.szPage+WAL_FRAME_HDRSIZE);
      n /= p->lay.szPage+WAL_FRAME_HDRSIZE;
      szFile = wdSlot(&p->lay, (u32)n) + p->lay.szSlot;
    }
    wdBeginWrite(p);
    if( rc==SQLITE_OK ) rc = LOWER(p)->pMethods->xTruncate(LOWER(p), szFile);
    wdEndWrite(p);
  }
  wdForgetSize(p);
  if( rc==SQLITE_OK && size==0 && p->pDb->bMarked ){
    AtomicStore(&p->pDb->pShared->mLayout, 0);
    wdUseLayout(p, 0);
  }
  return rc;
}

/*
** An xSync right after a commit frame is that commit's.  Every other one has
** to cover what all connections have written: a checkpoint follows.  Nothing is
** flushed if all of it is durable.
*/
static int wdLogSync(sqlite3_file *pFile, int flags){
  WdLog *p = (WdLog*)pFile;
  int bCommit = p->bCommitted;
  int rc;
  p->pDb->bCkptSync = p->pDb->bCkptLock;
  p->pDb->bAsked = 1;
  if( wdLogStock(p, &rc) ){
    p->pDb->bStockWrite = p->bHeader = 0;
    return LOWER(p)->pMethods->xSync(LOWER(p), flags);
  }
  if( rc==SQLITE_OK ) rc = wdSettle(p);
  if( rc!=SQLITE_OK ) return rc;
  p->bCommitted = 0;
  if( p->bHeader ){
    int bNew = p->bHeader>1;
    p->bHeader = 0;
    if( !bNew ) AtomicStore(&p->pDb->pShared->iHeader, wdWritten(p));
    /* The frame is the next thing written, and its commit's flush the next thing. */
    p->bHeaderLater = p->bFull && p->pDb->eSync==WD_SYNC_FULL && !wdGroup(p)
                   && p->pDb->bHolder;
    if( p->bHeaderLater ) return SQLITE_OK;
  }
  if( bCommit ){
    int eSync = p->pDb->eSync;
    p->bFull = 1;
    if( p->bDurable || eSync==WD_SYNC_NORMAL || eSync==WD_SYNC_GROUP ){
      return SQLITE_OK;
    }
    if( eSync==WD_SYNC_FULL && wdGroup(p) && !wdMayIgnore(p->pDb) ){
      p->pDb->iWait = wdWritten(p);   /* COMMIT will wait for it */
      wdAsk(p->pDb->pShared);
      return SQLITE_OK;
    }
  }else if( AtomicLoad(&p->bSyncedDir) && !wdPoisoned(p) && wdAllDurable(p) ){
    return SQLITE_OK;
  }
  return wdFlushCommits(p, flags);
}

/* The size SQLite would see: as many frames as there are slots. */
static int wdLogFileSize(sqlite3_file *pFile, i64 *pSize){
  WdLog *p = (WdLog*)pFile;
  i64 szFile;
  int rc;
  int bStock = wdLogStock(p, &rc);
  if( rc==SQLITE_OK && !bStock ) rc = wdSettle(p);
  if( rc==SQLITE_OK ) rc = LOWER(p)->pMethods->xFileSize(LOWER(p), &szFile);
  if( rc!=SQLITE_OK ) return rc;
  if( bStock ){
    *pSize = szFile;
  }else if( p->lay.eKind==WD_NONE ){
    *pSize = 0;
  }else{
    *pSize = WAL_HDRSIZE
           + wdSlots(&p->lay, szFile)*(p->lay.szPage+WAL_FRAME_HDRSIZE);
  }
  return SQLITE_OK;
}

/* The access list of a file; its length, 0 for none. */
static ssize_t wdAcl(const char *zName, u8 *a, size_t n){
  ssize_t got = getxattr(zName, "system.posix_acl_access", a, n);
  return got>0 ? got : got<0 && errno==ERANGE ? (ssize_t)n+1 : 0;
}

/*
** True if the log is not for the same users as the database, each of whom could make a
** log if there were none: if it has another mode, owner, group or access list.  Owner
** and group are of no account where all may do the same.
*/
static int wdModeDiffers(WdDb *p){
  struct stat st, stDb;
  u8 aAcl[1024], aAclDb[1024];
  int mode;
  ssize_t n;
  if( !wd.bUnix || lstat(p->zWal, &st) || stat(p->zName, &stDb) ) return 0;
  mode = (int)stDb.st_mode & 0777;
  if( ((st.st_mode ^ stDb.st_mode) & 0777)!=0 ) return 1;
  if( st.st_uid!=stDb.st_uid && (mode>>6)!=(mode & 7) ) return 1;
  if( st.st_gid!=stDb.st_gid && (mode>>3 & 7)!=(mode & 7) ) return 1;
  n = wdAcl(p->zName, aAclDb, sizeof(aAclDb));
  return n!=wdAcl(p->zWal, aAcl, sizeof(aAcl)) || n>(ssize_t)sizeof(aAcl)
      || memcmp(aAcl, aAclDb, (size_t)n)!=0;
}

/*
** True if a log was emptied by wdCleanClose() and not used since: its name is durable.  The
** last of that close was to write to it.  Whoever has renamed it since has changed the inode,
** and not what it holds; a copy is a new inode, and ext4 and XFS log it together with its name,
** so that the log's first flush makes both durable.  pBefore is of before it was opened.
*/
static int wdWasKept(WdLog *p, const struct stat *pBefore){
  u8 a[WAL_HDRSIZE+8];
  u8 aLabel[8];
  wdLabel(aLabel);
  return p->bNames
      && pBefore->st_mtim.tv_sec==pBefore->st_ctim.tv_sec
      && pBefore->st_mtim.tv_nsec==pBefore->st_ctim.tv_nsec
      && wdLowRead(p, a, sizeof(a), 0)==SQLITE_OK && isZero(a, WAL_HDRSIZE)
      && memcmp(&a[WAL_HDRSIZE], aLabel, 8)==0;
}

/*
** The database was used by this connection alone and is complete without the
** log.  Leave a plain WAL database behind: byte 19 as SQLite writes it, for good, and
** then an empty log, whose blocks the next session uses again.  The log is emptied for
** good, too: were it to come back after a power loss, its frames would overwrite what
** stock SQLite may have written since.  Where it cannot be emptied it is deleted.  A log
** that nobody has flushed, with synchronous=OFF, is before: see wdWasKept().
*/
static void wdCleanClose(WdLog *p){
  WdDb *pDb = p->pDb;
  const sqlite3_io_methods *pLow = LOWER(p)->pMethods;
  u8 a[4] = {0,0,0,0};
  i64 szFile = 0;
  int rc = wdLowRead(p, a, 4, 0);
  int bEmpty = isZero(a, 4);
  int bWritten = pDb->bWritten || !bEmpty;
  if( rc==SQLITE_IOERR_SHORT_READ ) rc = SQLITE_OK;
  if( rc==SQLITE_OK && !pDb->bPlain ){
    wdPlainSoon(pDb);
    rc = pDb->bPlain ? SQLITE_OK : SQLITE_IOERR_WRITE;
    if( rc==SQLITE_OK && bWritten ){
      rc = LOWER(pDb)->pMethods->xSync(LOWER(pDb), SQLITE_SYNC_NORMAL);
    }
    if( rc!=SQLITE_OK ) wdStillMarked(pDb);
  }
  if( rc!=SQLITE_OK ) return;
  pDb->bMarked = 0;
  pDb->bKept = pDb->bRecycle && !wdModeDiffers(pDb);
  if( !bEmpty && !pDb->bFlushed && !AtomicLoad(&p->bSyncedDir) ){
    rc = wdSyncLog(p, SQLITE_SYNC_NORMAL);
  }
  if( rc==SQLITE_OK && !bEmpty ) rc = wdLowWrite(p, wdZeros, WAL_HDRSIZE, 0);
  if( rc==SQLITE_OK && bWritten ) rc = wdSyncLog(p, SQLITE_SYNC_NORMAL);
  /* What was needed for one large transaction is given back. */
  if( rc==SQLITE_OK && !pDb->bAlone ) rc = pLow->xFileSize(LOWER(p), &szFile);
  if( rc==SQLITE_OK && szFile>WD_MXKEPT ) rc = pLow->xTruncate(LOWER(p), WD_MXKEPT);
  if( rc!=SQLITE_OK && pDb->bAlone ){
    wdStillMarked(pDb);
    pDb->bMarked = 1;
  }else if( rc!=SQLITE_OK ){
    pDb->bKept = 0;
    (void)wd.pLower->xDelete(wd.pLower, pDb->zWal, 1);
  }
}

static int wdLogClose(sqlite3_file *pFile){
  WdLog *p = (WdLog*)pFile;
  wdForget(p);
  wdLeaveGroup(p);
  if( p->pDb->bMarked && p->pDb->bLastClose ) wdCleanClose(p);
  p->pDb->bClosing = p->pDb->bLastClose = p->pDb->bPlain = p->pDb->bAlone = 0;
  p->pDb->bLeft = 0;
  if( p->fd>=0 ) close(p->fd);
  sqlite3_free(p->pRunAlloc);
  p->pDb->pLog = 0;
  return LOWER(p)->pMethods->xClose(LOWER(p));
}

/* Methods that databases and logs leave to the lower file. */
static int wdSectorSize(sqlite3_file *pFile){
  return LOWER(pFile)->pMethods->xSectorSize(LOWER(pFile));
}
static int wdDeviceCharacteristics(sqlite3_file *pFile){
  return LOWER(pFile)->pMethods->xDeviceCharacteristics(LOWER(pFile));
}
static int wdLock(sqlite3_file *pFile, int eLock){
  return LOWER(pFile)->pMethods->xLock(LOWER(pFile), eLock);
}
static int wdUnlock(sqlite3_file *pFile, int eLock){
  return LOWER(pFile)->pMethods->xUnlock(LOWER(pFile), eLock);
}
static int wdCheckReservedLock(sqlite3_file *pFile, int *pOut){
  return LOWER(pFile)->pMethods->xCheckReservedLock(LOWER(pFile), pOut);
}
static int wdFileControl(sqlite3_file *pFile, int op, void *pArg){
  return LOWER(pFile)->pMethods->xFileControl(LOWER(pFile), op, pArg);
}

static const sqlite3_io_methods wdLogMethods = {
  1, wdLogClose, wdLogRead, wdLogWrite, wdLogTruncate, wdLogSync,
  wdLogFileSize, wdLock, wdUnlock, wdCheckReservedLock, wdFileControl,
  wdSectorSize, wdDeviceCharacteristics,
  0, 0, 0, 0, 0, 0
};

/***************************** Database: mode *******************************/

static void wdReason(WdDb *p, const char *zReason){
  AtomicStore(&p->pBase->zReason, zReason);
}

/*
** Open a regular file that is there and no other: opening a FIFO would wait for
** somebody, and a symbolic link may lead anywhere.  Returns -1 if it cannot be,
** with errno==EEXIST if something else has the name.
*/
static int wdOpenRegular(const char *zName, int flags, struct stat *p){
  int fd = open(zName, flags|O_CLOEXEC|O_NOFOLLOW|O_NONBLOCK|O_NOCTTY);
  if( fd<0 ){
    if( errno==ELOOP || errno==ENXIO ) errno = EEXIST;
    return -1;
  }
  if( fstat(fd, p)==0 && S_ISREG(p->st_mode) ) return fd;
  close(fd);
  errno = EEXIST;
  return -1;
}

/* True if something is there by the name of the log, and it is no regular file. */
static int wdLogIsStrange(WdDb *p){
  struct stat st;
  return wd.bUnix && lstat(p->zWal, &st)==0 && !S_ISREG(st.st_mode);
}

/* The first n bytes of a file. */
static int wdPeekFile(const char *zName, u8 *a, int n){
  struct stat st;
  int fd = wdOpenRegular(zName, O_RDONLY, &st);
  int rc = SQLITE_OK;
  ssize_t got;
  if( fd<0 ) return SQLITE_CANTOPEN;
  got = pread(fd, a, (size_t)n, 0);
  close(fd);
  if( got<0 ) return SQLITE_IOERR_READ;
  if( got<n ){
    memset(&a[got], 0, (size_t)(n-got));
    rc = SQLITE_IOERR_SHORT_READ;
  }
  return rc;
}

/* The first n bytes of the log, which may be open or not. */
static int wdPeekLog(WdDb *p, u8 *a, int n){
  sqlite3_vfs *pLow = wd.pLower;
  sqlite3_file *pFile;
  int flags = SQLITE_OPEN_READONLY|SQLITE_OPEN_WAL;
  int rc;
  if( wd.bUnix ) return wdPeekFile(p->zWal, a, n);
  pFile = sqlite3_malloc(pLow->szOsFile);
  if( pFile==0 ) return SQLITE_NOMEM;
  pFile->pMethods = 0;
  rc = pLow->xOpen(pLow, p->zWal, pFile, flags, &flags);
  if( rc==SQLITE_OK ) rc = pFile->pMethods->xRead(pFile, a, n, 0);
  if( pFile->pMethods ) pFile->pMethods->xClose(pFile);
  sqlite3_free(pFile);
  return rc;
}

/* True if there is a log of waldio's beside the database. */
static int wdLogIsOurs(WdDb *p, int *pRc){
  u8 a[8];
  int rc = wdPeekLog(p, a, sizeof(a));
  if( rc==SQLITE_NOMEM ) *pRc = rc;
  return rc==SQLITE_OK && (get4(a) & ~1u)==WAL_MAGIC
      && get4(&a[4])==WD_WAL_VERSION;
}

/*
** Byte 19 of the database: 0 if there is none, or the file is another one, such
** as one that is encrypted.  Where power failed while page 1 was copied from the
** log, the log tells whose it is.
*/
static int wdReadVersion(WdDb *p, u8 *pVersion){
  u8 a[20];
  int rc = LOWER(p)->pMethods->xRead(LOWER(p), a, sizeof(a), 0);
  *pVersion = 0;
  if( rc==SQLITE_OK && memcmp(a, "SQLite format 3", 16)==0 ){
    *pVersion = a[19];
  }else if( rc==SQLITE_OK && wdLogIsOurs(p, &rc) ){
    *pVersion = WD_MARK;
  }
  p->bNeedsLog = *pVersion==WD_MARK;
  return rc==SQLITE_IOERR_SHORT_READ ? SQLITE_OK : rc;
}

/*
** Nobody else uses the database.  An empty log that was kept from the session
** before has the mode the database had then.  If that was changed, make way for
** a new one, or those it was changed for could not write.
*/
static void wdDropKept(WdDb *p){
  u8 a[WAL_HDRSIZE];
  if( wdModeDiffers(p) && wdPeekLog(p, a, sizeof(a))==SQLITE_OK
   && isZero(a, sizeof(a))
  ){
    (void)wd.pLower->xDelete(wd.pLower, p->zWal, 0);
  }
}

/*
** A SHARED lock is held, the database is a WAL database, and not waldio's.
** Mark it if this connection is the only one: an EXCLUSIVE lock tells.  A
** connection of stock SQLite that stays open would go on to use the log.
** Returns SQLITE_BUSY if there are others.
*/
static int wdAdopt(WdDb *p){
  const u8 eMark = WD_MARK_EMPTY;
  int rc = LOWER(p)->pMethods->xLock(LOWER(p), SQLITE_LOCK_EXCLUSIVE);
  if( rc==SQLITE_OK && wdLogIsStrange(p) ){
    p->bWant = 0;
    wdReason(p, "the log is no regular file");
  }else if( rc==SQLITE_OK ){
    wdDropKept(p);
    rc = LOWER(p)->pMethods->xWrite(LOWER(p), &eMark, 1, 19);
    p->bMarked = p->bUnused = rc==SQLITE_OK;
    wdReason(p, rc==SQLITE_OK ? 0 : "the database cannot be written");
    rc = SQLITE_OK;
  }
  LOWER(p)->pMethods->xUnlock(LOWER(p), SQLITE_LOCK_SHARED);
  return rc;
}

/* Take a SHARED lock, and look whether the database is marked. */
static int wdLook(WdDb *p, u8 *pVersion){
  int rc = LOWER(p)->pMethods->xLock(LOWER(p), SQLITE_LOCK_SHARED);
  if( rc==SQLITE_OK ) rc = wdReadVersion(p, pVersion);
  p->bMarked = (u8)isMark(*pVersion);
  if( p->bMarked ) wdReason(p, 0);
  return rc;
}

/*
** Take the first SHARED lock of a session, and find out whether the database
** is waldio's; that cannot change while the lock is held.  Others of this
** process that do the same at the same time wait; other processes are given a
** few moments, for they may be waldio's too.
*/
static int wdLockShared(WdDb *p){
  u8 eVersion = 0;
  int i;
  int rc = wdLook(p, &eVersion);
  for(i=0; i<8 && eVersion==2 && !p->bMarked && p->bWant; i++){
    /* Busy: another process tries the same just now. */
    if( rc!=SQLITE_OK && rc!=SQLITE_BUSY ) break;
    LOWER(p)->pMethods->xUnlock(LOWER(p), SQLITE_LOCK_NONE);
    if( i>0 ) wd.pLower->xSleep(wd.pLower, 500*i);
    pthread_mutex_lock(&wd.adopt);
    rc = wdLook(p, &eVersion);
    if( rc==SQLITE_OK && eVersion==2 && wdAdopt(p)!=SQLITE_OK ){
      wdReason(p, "another connection uses the stock log");
    }
    pthread_mutex_unlock(&wd.adopt);
  }
  if( rc==SQLITE_OK && eVersion==2 && !p->bMarked && wdLogIsOurs(p, &rc) ){
    /* Power failed while the last connection closed, and this one may not mark it. */
    p->bMarked = 1;
    wdReason(p, 0);
  }
  if( rc!=SQLITE_OK ) LOWER(p)->pMethods->xUnlock(LOWER(p), SQLITE_LOCK_NONE);
  return rc;
}

/**************************** Database: wal-index ***************************/

/*
** Fill in the guard region, 32768 bytes before SQLite's regions of the wal-index:
** what stock SQLite takes for a wal-index header of a version it does not know.
**
**          0    48  a WalIndexHdr of SQLite's wal.c with version 0x57414c31
**         48    48  the same again
**        768        struct WdShared, elsewhere in other versions of the format
**
** As the wal-index itself, it is in host byte order and lost in a crash.
*/
static void wdGuard(void volatile *pRegion){
  u8 aHdr[48];
  u32 a[12];
  u32 one = 1;
  memset(a, 0, sizeof(a));
  a[0] = WD_INDEX_VERSION;
  memcpy(aHdr, a, sizeof(aHdr));
  aHdr[12] = 1;                   /* WalIndexHdr.isInit */
  walChecksum(aHdr, 40, *(u8*)&one==0, &a[10]);
  memcpy(&aHdr[40], &a[10], 8);
  pthread_mutex_lock(&wd.mutex);
  if( memcmp((u8*)pRegion, aHdr, 48) ) memcpy((u8*)pRegion, aHdr, 48);
  if( memcmp((u8*)pRegion+48, aHdr, 48) ) memcpy((u8*)pRegion+48, aHdr, 48);
  pthread_mutex_unlock(&wd.mutex);
}

/*
** Refused connections of stock SQLite keep the wal-index in being when all of waldio's
** are gone.  If the log is poisoned there and nobody else has it open, begin as if there
** had been none: SQLite recovers what is in the log, from a header that is not valid.
*/
static void wdHeal(WdDb *p, void volatile *pIndex){
  if( p->pLog==0 || p->bReadonlyShm || !wdPoisoned(p->pLog) || !wdIsAlone(p->pLog) ) return;
  memset((u8*)pIndex, 0, WAL_INDEX_HDRSIZE);
  memset(p->pShared, 0, sizeof(*p->pShared));
  wdNotAlone(p->pLog);
}

/*
** The database is a plain one again, and nobody of waldio has it open: what refused
** connections of stock SQLite still have of the wal-index is theirs to begin anew.
*/
static void wdLiftGuard(WdShared *pShared){
  u8 volatile *a = (u8 volatile*)pShared - WD_SHARED_OFST;
  int i;
  for(i=0; i<WAL_INDEX_HDRSIZE; i++) a[i] = 0;
  __sync_synchronize();
}

static int wdDbShmMap(
  sqlite3_file *pFile, int iRegion, int szRegion, int bExtend,
  void volatile **pp
){
  WdDb *p = (WdDb*)pFile;
  const sqlite3_io_methods *pLow = LOWER(p)->pMethods;
  int rc;
  if( !p->bMarked ){
    return pLow->xShmMap(LOWER(p), iRegion, szRegion, bExtend, pp);
  }
  if( p->pShared==&p->priv ){
    void volatile *pGuard = 0;
    rc = pLow->xShmMap(LOWER(p), 0, szRegion, bExtend, &pGuard);
    /* SQLite keeps what *pp is even if this fails. */
    *pp = 0;
    if( (rc!=SQLITE_OK && rc!=SQLITE_READONLY) || pGuard==0 ) return rc;
    p->bReadonlyShm = rc==SQLITE_READONLY;
    if( rc==SQLITE_OK ) wdGuard(pGuard);
    pthread_mutex_lock(&wd.mutex);
    p->pShared = (WdShared*)((u8*)pGuard + WD_SHARED_OFST);
    pthread_mutex_unlock(&wd.mutex);
    if( rc==SQLITE_OK && (p->pLog==0 || !p->pLog->bPresent) ){
      AtomicStore(&p->pShared->bUnseen, 1);
    }
  }
  rc = pLow->xShmMap(LOWER(p), iRegion+1, szRegion, bExtend, pp);
  if( rc==SQLITE_OK && iRegion==0 && *pp ) wdHeal(p, *pp);
  if( iRegion==0 ) p->pIndex = *pp;
  return rc;
}

/* From the wal-index: the frames of the log, and those that are in the database. */
static u32 wdFrames(WdDb *p, u32 *pnBackfill){
  u32 *a = (u32*)p->pIndex;
  *pnBackfill = a ? AtomicLoad(&a[24]) : 0;
  return a ? AtomicLoad(&a[4]) : 0;
}

/*
** The WRITE lock goes round among those who want it, threads and processes, in
** the order they asked for it.  SQLite's busy handler sleeps longer and longer,
** whoever comes late may get the lock first, and a flush shared by many needs
** writers that do not sleep.  So whoever cannot have the lock takes a ticket and
** waits, in the xSleep() the busy handler calls, until it is called; nobody else
** gets the lock meanwhile.  (Tables writers and processes.)
*/
static __thread struct {
  WdDb *pDb;                      /* Where this thread found the lock taken */
  u32 iTicket;                    /* Its ticket there, or 0 */
  int bAsked;                     /* ... in the last call */
  int bYielded;                   /* It yielded its CPU instead of taking one */
  int nFree;                      /* Times it was not held any more */
  i64 nOwed;                      /* Microseconds it was woken too early */
} wdQueue;

/* The thread waits for nothing. */
static void wdNewQueue(void){
  wdQueue.iTicket = 0;
  wdQueue.nFree = 0;
  wdQueue.nOwed = 0;
  wdQueue.bYielded = 0;
}

#define WD_LOCK    (SQLITE_SHM_LOCK|SQLITE_SHM_EXCLUSIVE)
#define WD_UNLOCK  (SQLITE_SHM_UNLOCK|SQLITE_SHM_EXCLUSIVE)

/* Nobody need wait for it to be gone: see wdLockLast(). */
static void wdNotClosing(WdDb *p){
  if( AtomicLoad(&p->pBase->pClosing)==p ){
    (void)AtomicSwap(&p->pBase->pClosing, p, (WdDb*)0);
  }
}

static int wdShmLock(WdDb *p, int iOfst, int n, int flags){
  wdNotClosing(p);
  return LOWER(p)->pMethods->xShmLock(LOWER(p), iOfst, n, flags);
}

static int wdLockWrite(WdDb *p){
  WdShared *pShared = p->pShared;
  u64 iTurn = AtomicLoad(&pShared->iTurn);
  int rc = SQLITE_BUSY;
  if( wdQueue.pDb!=p ){
    wdQueue.pDb = p;
    wdNewQueue();
  }
  if( (u32)(iTurn>>32)==wdQueue.iTicket || !wdTurnTaken(iTurn) ){
    rc = wdShmLock(p, WAL_WRITE_LOCK, 1, WD_LOCK);
  }
  wdQueue.bAsked = rc==SQLITE_BUSY;
  if( rc==SQLITE_OK ){
    wdNewQueue();
    p->bHolder = p->bJustLocked = 1;
    if( p->bCkptLock ) p->iCkptSalt = wdSalt(p);
    AtomicStore(&pShared->iHolder, 1);
    AtomicStore(&pShared->iTurn, 0);
  }
  return rc;
}

/*
** Give up the WRITE lock, and call the one who is next.  Its turn begins before the
** lock is free, so that nobody can come between.
*/
static int wdUnlockWrite(WdDb *p){
  WdShared *pShared = p->pShared;
  u32 *pNext = 0;
  u32 iNext = 0;
  int i, rc;
  /* SQLITE_BUSY_SNAPSHOT: somebody committed before the lock was taken.  The
  ** busy handler would sleep, but the one who did is gone. */
  if( p->bJustLocked ) wdQueue.bAsked = 1;
  p->bHolder = p->bJustLocked = 0;
  AtomicStore(&pShared->iHolder, 0);
  if( AtomicLoad(&pShared->bQueue) ){
    AtomicStore(&pShared->bQueue, 0);
    for(i=0; i<WD_NWAIT; i++){
      u32 iTicket = AtomicLoad(&pShared->aWait[i]);
      if( iTicket!=0 && (pNext==0 || (int)(iTicket-iNext)<0) ){
        pNext = &pShared->aWait[i];
        iNext = iTicket;
      }
    }
  }
  if( pNext ){
    AtomicStore(&pShared->bQueue, 1);
    AtomicStore(&pShared->iTurn, ((u64)iNext<<32) | wdStamp());
    wdSetGroup(pShared);
  }
  rc = wdShmLock(p, WAL_WRITE_LOCK, 1, WD_UNLOCK);
  if( pNext && AtomicSwap(pNext, iNext, 0) ) wdFutexWake(pNext);
  return rc;
}

/*
** True if the WRITE lock is free soon.  Where flushes are shared it is held for
** less time than it takes to put a thread to sleep and to wake it.  Once for each
** time that the lock is wanted: whoever came too late then waits its turn.
** (Commits of tables writers and slow-flush.)
*/
static int wdFreeSoon(WdShared *pShared){
  int i;
  if( wdQueue.iTicket || wdQueue.bYielded ) return 0;
  wdQueue.bYielded = 1;
  for(i=0; i<WD_YIELDS && !wdIsFree(pShared); i++) sched_yield();
  return i<WD_YIELDS;
}

/* Take a place in the queue; NULL if there is none. */
static u32 *wdTakePlace(WdShared *pShared, u32 iTicket){
  u32 *pPlace = 0;
  int i;
  for(i=0; i<WD_NWAIT && pPlace==0; i++){
    pPlace = &pShared->aWait[(iTicket+(u32)i)%WD_NWAIT];
    if( !AtomicSwap(pPlace, 0, iTicket) ) pPlace = 0;
  }
  AtomicStore(&pShared->bQueue, 1);
  return pPlace;
}

/* Wait to be called, for nMicro or a little longer.  Whoever was called and missed
** its turn goes on waiting: to return early would cost it a try of its busy timeout. */
static void wdWaitTurn(WdShared *pShared, i64 nMicro){
  i64 nLeft = nMicro<WD_SLEEP_US ? WD_SLEEP_US : nMicro;
  i64 iUntil = wdNow() + nLeft;
  u32 *pMine = 0;
  u32 iMine = wdQueue.iTicket;
  while( iMine==0 ) iMine = AtomicAdd(&pShared->iTicket, 1);
  wdQueue.iTicket = iMine;
  while( nLeft>0 ){
    if( pMine && AtomicLoad(pMine)!=iMine ){
      u64 iTurn = AtomicLoad(&pShared->iTurn);
      pMine = 0;
      if( (u32)(iTurn>>32)==iMine && wdTurnTaken(iTurn) ) break;
    }
    if( pMine==0 ) pMine = wdTakePlace(pShared, iMine);
    if( wdQueue.nFree<WD_MXFREE && wdIsFree(pShared) ){
      wdQueue.nFree++;            /* Just given up, and nobody was called */
      sched_yield();
      break;
    }
    if( pMine ){
      wdFutexWait(pMine, iMine, nLeft<WD_SLEEP_US ? nLeft : WD_SLEEP_US);
    }else{
      wd.pLower->xSleep(wd.pLower, 1000);
    }
    nLeft = iUntil - wdNow();
  }
  if( pMine ) (void)AtomicSwap(pMine, iMine, 0);
}

/******************** Database: checkpoints of commits **********************/

/*
** Writers without a pause would let the log grow for ever, as SQLite restarts it
** when a writer finds all of it in the database.  So if others commit at once, the
** checkpoint of a COMMIT is a slice of the work.  While there is much to copy they
** go on writing.  When little is left the WRITE lock is taken, so that nothing is
** added and the next writer restarts the log.  (Test "process", KB each of table
** writers.)
*/
static void wdBeginSlice(WdDb *p){
  u32 nFrame = wdFrames(p, &p->nBackfill);
  u32 nLeft = nFrame - p->nBackfill;
  i64 iUntil = wdNow() + WD_CKPT_WAIT_US;
  int rc;
  if( p->pLog==0 || p->bReadonlyShm || nFrame<=p->nBackfill
   || !wdGroup(p->pLog) ) return;
  p->bSlice = 1;
  p->bCkptSync = 0;
  if( nLeft>WD_CKPT_FEW && nLeft>p->nBackfill/WD_CKPT_SHARE ) return;
  if( wdNow()<AtomicLoad(&p->pBase->iNextCkpt) ) return;
  while( (rc = wdLockWrite(p))==SQLITE_BUSY && wdNow()<iUntil ){
    (void)wdSleep(&wdVfs.base, 1000);
  }
  if( rc==SQLITE_OK ){
    p->bFinish = 1;
    p->iReadersUntil = wdNow() + WD_READERS_US;
    wdCount(p, WD_STAT_CHECKPOINTS, 1);
  }
}

/* A lock that keeps readers out.  Those of the log have to leave it soon. */
static int wdLockReaders(WdDb *p, int iOfst, int n, int flags){
  int rc = wdShmLock(p, iOfst, n, flags);
  while( rc==SQLITE_BUSY && p->bFinish && wdNow()<p->iReadersUntil ){
    wd.pLower->xSleep(wd.pLower, 100);
    rc = wdShmLock(p, iOfst, n, flags);
  }
  return rc;
}

/* Its end.  What was copied while others wrote is flushed now, which SQLite leaves
** to the checkpoint that copies the rest: then writers would wait for it. */
static void wdEndSlice(WdDb *p){
  u32 nBackfill;
  u32 nFrame = wdFrames(p, &nBackfill);
  int bAll = nFrame==nBackfill;
  if( p->bFinish ){
    int iLock = WAL_READ_LOCK0+1;
    int nLock = WAL_NREADER-1;
    bAll = bAll && wdLockReaders(p, iLock, nLock, WD_LOCK)==SQLITE_OK;
    if( bAll ) (void)wdShmLock(p, iLock, nLock, WD_UNLOCK);
    AtomicStore(&p->pBase->iNextCkpt, bAll ? 0 : wdNow()+WD_CKPT_AGAIN_US);
    p->bFinish = 0;
    (void)wdUnlockWrite(p);
  }else if( p->bCkptSync && nBackfill>p->nBackfill && !bAll ){
    (void)wdDbSync(&p->base, SQLITE_SYNC_NORMAL);
  }
  p->bSlice = 0;
}

/*
** A checkpoint locks readers out of the database, to copy the frames that it found
** in the wal-index.  SQLite before 3.51.3 does not notice if the log was restarted
** since it looked, and copies slots of the new log over pages they are not (its
** "WAL-reset bug").  Such a checkpoint has nothing to copy, and is told that there
** are readers.  It looks after it has the CKPT lock, and after it waited for the
** WRITE lock, if it wants that, too.
*/
static int wdCkptIsLate(WdDb *p){
  return p->bCkptLock && p->iCkptSalt!=0 && wdSalt(p)!=p->iCkptSalt;
}

static int wdDbShmLock(sqlite3_file *pFile, int iOfst, int n, int flags){
  WdDb *p = (WdDb*)pFile;
  int bWrite = p->bMarked && p->pLog && iOfst==WAL_WRITE_LOCK
            && (flags & SQLITE_SHM_EXCLUSIVE)!=0;
  int bAfterCommit = 0;
  int rc;
  if( bWrite && p->bFinish ) return SQLITE_OK;    /* It has it until the end */
  if( p->bLeft && (flags & SQLITE_SHM_LOCK) ) return SQLITE_IOERR_SHMLOCK;
  if( bWrite && (flags & SQLITE_SHM_LOCK)!=0 ){
    p->bAfterCommit = 0;
    return wdLockWrite(p);
  }
  if( bWrite ){
    wdForget(p->pLog);
    wdCheckIndex(p->pLog);
    return wdUnlockWrite(p);
  }
  p->bJustLocked = 0;
  if( flags==(SQLITE_SHM_LOCK|SQLITE_SHM_SHARED) && wdPragmaRuns(p) ){
    return SQLITE_SCHEMA;
  }
  if( flags & SQLITE_SHM_LOCK ){
    bAfterCommit = p->bAfterCommit;
    p->bAfterCommit = 0;
  }
  if( p->bSlice && iOfst==WAL_CKPT_LOCK && (flags & SQLITE_SHM_UNLOCK) ){
    wdEndSlice(p);
  }
  rc = wdLockReaders(p, iOfst, n, flags);
  if( rc!=SQLITE_OK ) return rc;
  if( iOfst==WAL_READ_LOCK0 && n==1 && p->bMarked
   && flags==WD_LOCK && wdCkptIsLate(p)
  ){
    (void)wdShmLock(p, iOfst, n, WD_UNLOCK);
    return SQLITE_BUSY;
  }
  if( iOfst==WAL_CKPT_LOCK && n==1 ){
    p->bAsked = 0;
    p->bCkptLock = (flags & SQLITE_SHM_LOCK)!=0;
    p->iCkptSalt = wdSalt(p);
  }
  if( iOfst>=WAL_READ_LOCK0 && (flags & SQLITE_SHM_SHARED) ){
    p->bReading = (flags & SQLITE_SHM_LOCK)!=0;
    if( p->bReading && p->bDurableReads && p->bMarked && p->pLog ){
      p->iRead = wdWritten(p->pLog) & ~(u64)1;
    }
  }
  if( iOfst==WAL_CKPT_LOCK && n==1 ){
    if( bAfterCommit && p->bMarked ) wdBeginSlice(p);
    if( p->bMarked && p->pLog ){
      if( flags & SQLITE_SHM_LOCK ) wdReadAhead(p->pLog);
      else wdReadOver(p->pLog);
    }
  }
  return SQLITE_OK;
}
/* As in SQLite, the last to close deletes the file of the wal-index, unless
** PERSIST_WAL is set. */
static int wdDbShmUnmap(sqlite3_file *pFile, int bDelete){
  WdDb *p = (WdDb*)pFile;
  WdShared *pShared = p->pShared;
  if( p->pLog ) wdLeaveGroup(p->pLog);
  if( p->bAlone && p->bLastClose && p->pLog ){
    wdCleanClose(p->pLog);
    p->bLastClose = 0;
  }
  p->iWait = p->iRead = 0;
  if( p->bHolder ) (void)wdUnlockWrite(p);
  memset(&p->priv, 0, sizeof(p->priv));
  p->pIndex = 0;
  p->bReading = p->bCkptLock = p->bSlice = p->bFinish = 0;
  pthread_mutex_lock(&wd.mutex);
  p->pShared = &p->priv;
  pthread_mutex_unlock(&wd.mutex);
  p->bReadonlyShm = 0;
  /* A thread that was told SQLITE_BUSY and sleeps on its own account. */
  while( AtomicLoad(&p->nWaiting)>0 ){
    wd.pLower->xSleep(wd.pLower, 500);
  }
  if( p->bAlone ){
    /* Others have the wal-index's file, who would go on with one that has no name. */
    if( !p->bMarked && pShared!=&p->priv ) wdLiftGuard(pShared);
    return LOWER(p)->pMethods->xShmUnmap(LOWER(p), 0);
  }
  return LOWER(p)->pMethods->xShmUnmap(LOWER(p),
             bDelete || (p->bLastClose && !p->bPersist));
}

static void wdDbShmBarrier(sqlite3_file *pFile){
  LOWER(pFile)->pMethods->xShmBarrier(LOWER(pFile));
}

/****************************** Database: pragmas ***************************/

/* The name of the database a handle belongs to, as in ATTACH. */
static const char *wdSchema(WdDb *p, sqlite3 *db){
  const char *z;
  int i;
  for(i=0; (z = sqlite3_db_name(db, i))!=0; i++){
    sqlite3_file *pFile = 0;
    sqlite3_file_control(db, z, SQLITE_FCNTL_FILE_POINTER, &pFile);
    if( pFile==&p->base ) return z;
  }
  return 0;
}

/* The value of a row, as text. */
static int wdValue(void *pzOut, int nCol, char **az, char **azCol){
  (void)azCol;
  sqlite3_free(*(char**)pzOut);
  *(char**)pzOut = nCol>0 && az[0] ? sqlite3_mprintf("%s", az[0]) : 0;
  return 0;
}

/* Run "PRAGMA <schema>.journal_mode=<zMode>".  *pzOut becomes the mode that the
** database has then, or what was wrong. */
static int wdSetJournalMode(WdDb *p, const char *zMode, char **pzOut){
  sqlite3 *db = *p->ppDb;
  const char *zSchema = wdSchema(p, db);
  char *zSql;
  char *zMsg = 0;
  int rc;
  if( zSchema==0 ) return SQLITE_ERROR;
  zSql = sqlite3_mprintf("PRAGMA \"%w\".journal_mode=%s", zSchema, zMode);
  if( zSql==0 ) return SQLITE_NOMEM;
  rc = sqlite3_exec(db, zSql, wdValue, pzOut, &zMsg);
  sqlite3_free(zSql);
  if( rc!=SQLITE_OK ){
    sqlite3_free(*pzOut);
    *pzOut = sqlite3_mprintf("cannot change to journal_mode=%s: %s", zMode,
                             zMsg ? zMsg : sqlite3_errstr(rc));
  }
  sqlite3_free(zMsg);
  return rc;
}

/* Have one database use waldio: journal_mode=wal through this VFS; one whose log is
** a stock one goes through journal_mode=delete, which fails if others use it.
** *pzOut becomes what the pragma answers. */
static int wdBecomeWaldio(WdDb *p, char **pzOut){
  int rc = SQLITE_OK;
  if( p->pLog && !p->bMarked && p->bWant ){
    rc = wdSetJournalMode(p, "delete", pzOut);
  }
  if( rc==SQLITE_OK ) rc = wdSetJournalMode(p, "wal", pzOut);
  if( rc==SQLITE_OK ){
    p->bByName = 1;
    if( p->bMarked ){
      sqlite3_free(*pzOut);
      *pzOut = sqlite3_mprintf("waldio");
    }
  }
  return rc;
}

/* The handle of a database of a connection, if it is one of this VFS. */
static WdDb *wdHandle(sqlite3 *db, const char *zSchema){
  sqlite3_file *pFile = 0;
  sqlite3_file_control(db, zSchema, SQLITE_FCNTL_FILE_POINTER, &pFile);
  return pFile && pFile->pMethods && pFile->pMethods->xClose==wdDbClose
       ? (WdDb*)pFile : 0;
}

/*
** The same for all that are attached, as "PRAGMA journal_mode" without a schema
** does.  The answer is that of the main database; what has no file, and is no
** database of this VFS, stays as it is.
*/
static int wdAllBecomeWaldio(sqlite3 *db, char **pzOut){
  const char *zSchema;
  int i, n = 0, rc = SQLITE_OK;
  while( sqlite3_db_name(db, n)!=0 ) n++;
  for(i=n-1; i>=0 && rc==SQLITE_OK; i--){
    WdDb *p;
    if( i==1 || (zSchema = sqlite3_db_name(db, i))==0 ) continue;
    p = wdHandle(db, zSchema);
    if( p ) rc = wdBecomeWaldio(p, pzOut);
  }
  return rc;
}

/* Behind the blanks, comments and semicolons at z; and behind one name more, which
** may be quoted. */
static const char *wdSkipBlanks(const char *z){
  for(;;){
    const char *zEnd;
    z += strspn(z, " \t\n\f\r;");
    if( z[0]=='-' && z[1]=='-' ){
      zEnd = strchr(z, '\n');
    }else if( z[0]=='/' && z[1]=='*' ){
      zEnd = strstr(z+2, "*/");
      if( zEnd ) zEnd++;
    }else{
      return z;
    }
    if( zEnd==0 ) return z + strlen(z);
    z = zEnd+1;
  }
}
static const char *wdSkipName(const char *z){
  static const char zLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz0123456789_$";
  char cEnd = *z=='[' ? ']' : *z;
  if( *z==0 || strchr("\"`'[", *z)==0 ){
    while( *z && ((*z & 0x80) || strchr(zLetters, *z)) ) z++;
    return wdSkipBlanks(z);
  }
  for(z++; *z && (*z!=cEnd || (cEnd!=']' && z[1]==cEnd)); z++){
    if( *z==cEnd ) z++;
  }
  return *z ? wdSkipBlanks(z+1) : z;
}

/* True if this is the text of PRAGMA journal_mode; then whether it names a schema. */
static int wdIsJournalMode(const char *zSql, u8 *pbSchema){
  const char *z = wdSkipBlanks(zSql ? zSql : "");
  const char *zName;
  if( sqlite3_strnicmp(z, "pragma", 6)!=0 ) return 0;
  zName = wdSkipBlanks(z+6);
  z = wdSkipName(zName);
  *pbSchema = *z=='.';
  if( *z=='.' ) zName = wdSkipBlanks(z+1);
  if( *zName && strchr("\"`'[", *zName) ) zName++;
  return sqlite3_strnicmp(zName, "journal_mode", 12)==0;
}

/*
** PRAGMA journal_mode=waldio.  SQLite asks the VFS while it prepares the statement,
** which may never run, or be explained; and it does not say whether a schema was
** named.  So the statement becomes "PRAGMA data_version", whose first act is a read
** transaction.  If that comes, and wdPragmaRuns(), it is told that the statement has
** to be prepared again, SQLITE_SCHEMA, which sqlite3_step() does at once.  Only then
** the mode is changed.  Where no such call would come, since a transaction is open or
** the database is locked for good, the statement is journal_mode=wal as SQLite does it.
**
** az[1] and az[2] are the words of the statement, which SQLite looks at afterwards.
*/
static int wdPragmaByName(WdDb *p, char **az){
  sqlite3 *db = p->ppDb ? *p->ppDb : 0;
  if( db==0 ) return SQLITE_NOTFOUND;
  if( p->ePragma==WD_PRAGMA_RUNS ){
    p->ePragma = 0;
    return p->bOneSchema ? wdBecomeWaldio(p, &az[0]) : wdAllBecomeWaldio(db, &az[0]);
  }
  if( p->bReading || p->eLock==SQLITE_LOCK_EXCLUSIVE
   || (p->eLock!=SQLITE_LOCK_NONE && p->pLog==0)
  ){
    if( p->bMarked ){
      az[0] = sqlite3_mprintf("waldio");
      return SQLITE_OK;
    }
    memcpy(az[2], "wal", 4);
    return SQLITE_NOTFOUND;
  }
  p->ePragma = WD_PRAGMA_PREPARED;
  memcpy(az[1], "data_version", 13);
  return SQLITE_NOTFOUND;
}

/* True if a read transaction begins for a statement of wdPragmaByName(). */
static int wdPragmaRuns(WdDb *p){
  sqlite3 *db = p->ppDb ? *p->ppDb : 0;
  sqlite3_stmt *pStmt = 0;
  if( p->ePragma!=WD_PRAGMA_PREPARED || db==0 ) return 0;
  while( (pStmt = sqlite3_next_stmt(db, pStmt))!=0 ){
    if( sqlite3_stmt_busy(pStmt) && !sqlite3_stmt_isexplain(pStmt)
     && wdIsJournalMode(sqlite3_sql(pStmt), &p->bOneSchema) ){
      p->ePragma = WD_PRAGMA_RUNS;
      return 1;
    }
  }
  return 0;
}

static int wdPragmaJournalMode(WdDb *p, char **az){
  if( az[2]==0 ){
    if( !p->bByName || !p->bMarked ) return SQLITE_NOTFOUND;
    az[0] = sqlite3_mprintf("waldio");
    return SQLITE_OK;
  }
  return sqlite3_stricmp(az[2], "waldio")==0 ? wdPragmaByName(p, az) : SQLITE_NOTFOUND;
}

static int wdPragmaError(char **az, const char *zWant){
  az[0] = sqlite3_mprintf("%s is %s, not '%s'", az[1], zWant, az[2]);
  return SQLITE_ERROR;
}

/* A pragma's value: -1 if it is no number up to mx. */
static int wdPragmaNumber(char **az, int mx){
  char *zEnd;
  long long n = strtoll(az[2], &zEnd, 10);
  return zEnd==az[2] || *zEnd || n<0 || n>mx ? -1 : (int)n;
}

/* PRAGMA waldio_reserve=N: reserved bytes per page, from the next VACUUM on. */
static int wdPragmaReserve(WdDb *p, char **az){
  if( az[2] ){
    int n = wdPragmaNumber(az, 255);
    const char *zSchema = p->ppDb && *p->ppDb ? wdSchema(p, *p->ppDb) : 0;
    if( n<0 || zSchema==0 ) return wdPragmaError(az, "0 to 255");
    sqlite3_file_control(*p->ppDb, zSchema, SQLITE_FCNTL_RESERVE_BYTES, &n);
  }
  az[0] = sqlite3_mprintf("%d", p->nReserve);
  return SQLITE_OK;
}

/* n, if slots can be padded to it; else 0. */
static int wdPadding(i64 n){
  return n==512 || n==4096 || n==8192 ? (int)n : 0;
}

/* The options that are a number: set one if az[2] is given, return it. */
static int wdPragmaOption(WdDb *p, char **az){
  const struct {
    const char *zName;
    int *pValue;
    int mn, mx;
    const char *zWant;
  } a[] = {
    { "waldio_recycle", &p->bRecycle, 0, 1, "0 or 1" },
    { "waldio_padding", &p->szPad, 0, 8192, "0, 512, 4096 or 8192" },
    { "waldio_prealloc", &p->szPrealloc, 0, WD_MXPREALLOC, "0 to 4194304" },
    { "waldio_group_frames", &p->nGroupFrames, 1, INT_MAX, "1 or more" },
    { "waldio_group_ms", &p->msGroup, 0, 60000, "0 to 60000" },
    { "waldio_durable_reads", &p->bDurableReads, 0, 1, "0 or 1" }
  };
  unsigned i;
  for(i=0; i<sizeof(a)/sizeof(a[0]); i++){
    int n = *a[i].pValue;
    if( sqlite3_stricmp(az[1], a[i].zName)!=0 ) continue;
    if( az[2] ) n = wdPragmaNumber(az, a[i].mx);
    if( n<a[i].mn || (a[i].pValue==&p->szPad && n!=wdPadding(n)) ){
      return wdPragmaError(az, a[i].zWant);
    }
    *a[i].pValue = n;
    az[0] = sqlite3_mprintf("%d", n);
    return SQLITE_OK;
  }
  return SQLITE_NOTFOUND;
}

/* PRAGMA waldio_sync */
static int wdPragmaSync(WdDb *p, char **az){
  static const char *const azName[] = {
    "full", "persistent", "normal", "group"
  };
  int i;
  if( az[2] ){
    for(i=0; i<4 && sqlite3_stricmp(az[2], azName[i])!=0; i++){}
    if( i==4 ) return wdPragmaError(az, "full, persistent, normal or group");
    p->eSync = (u8)i;
  }
  az[0] = sqlite3_mprintf("%s", azName[p->eSync]);
  return SQLITE_OK;
}

static const char *wdLayoutName(u32 m){
  WdLayout lay = wdLayoutOf(m);
  static const char *const azName[] = { "none", "P", "W", "T", "stock" };
  return azName[lay.eKind];
}

static int wdPragma(WdDb *p, char **az){
  if( sqlite3_stricmp(az[1], "journal_mode")==0 ){
    return wdPragmaJournalMode(p, az);
  }
  if( sqlite3_strnicmp(az[1], "waldio_", 7)!=0 ) return SQLITE_NOTFOUND;
  if( sqlite3_stricmp(az[1], "waldio_reserve")==0 ){
    return wdPragmaReserve(p, az);
  }
  if( sqlite3_stricmp(az[1], "waldio_sync")==0 ){
    return wdPragmaSync(p, az);
  }
  if( sqlite3_stricmp(az[1], "waldio_layout")==0 ){
    const char *z = !p->bMarked ? (p->pLog ? "stock" : "none")
                  : p->pLog ? wdLayoutName(p->pLog->mLayout) : "none";
    az[0] = sqlite3_mprintf("%s", z);
    return SQLITE_OK;
  }
  return wdPragmaOption(p, az);
}

/**************************** Database: methods *****************************/

/* Let go of a WdBase; wd.mutex is held. */
static void wdReleaseBase(WdBase *p){
  WdBase **pp;
  if( --p->nRef>0 ) return;
  for(pp=&wd.pBases; *pp!=p; pp=&(*pp)->pNext){}
  *pp = p->pNext;
  pthread_mutex_destroy(&p->timer);
  sqlite3_free(p->zName);
  sqlite3_free(p);
}

/*
** The database was marked, and no log begun: no transaction followed, or there
** can be none, as in a read-only directory.  So there is no log whose close
** would make the database a plain one.  Do so if nobody else has it.
*/
static void wdUnmark(WdDb *p){
  const sqlite3_io_methods *pLow = LOWER(p)->pMethods;
  const u8 eVersion = 2;
  u8 a[WAL_HDRSIZE] = {1};
  u8 eNow = 0;
  int bLog = 1;
  int rc = pLow->xLock(LOWER(p), SQLITE_LOCK_SHARED);
  if( rc==SQLITE_OK ) rc = pLow->xLock(LOWER(p), SQLITE_LOCK_EXCLUSIVE);
  if( rc==SQLITE_OK ){
    rc = wd.pLower->xAccess(wd.pLower, p->zWal, SQLITE_ACCESS_EXISTS, &bLog);
  }
  if( rc==SQLITE_OK ) rc = wdReadVersion(p, &eNow);
  if( bLog ) (void)wdPeekLog(p, a, sizeof(a));
  if( rc==SQLITE_OK && (!bLog || isZero(a, sizeof(a))) && eNow==WD_MARK_EMPTY
   && pLow->xWrite(LOWER(p), &eVersion, 1, 19)==SQLITE_OK
  ){
    (void)pLow->xSync(LOWER(p), SQLITE_SYNC_NORMAL);
  }
  (void)pLow->xUnlock(LOWER(p), SQLITE_LOCK_NONE);
}

static int wdDbClose(sqlite3_file *pFile){
  WdDb *p = (WdDb*)pFile;
  WdDb **pp;
  if( p->bMarked && (p->bUnused || AtomicLoad(&p->pBase->mLayout)==0) ){
    /* Two at once would each find the other there. */
    pthread_mutex_lock(&wd.adopt);
    wdUnmark(p);
    pthread_mutex_unlock(&wd.adopt);
  }
  pthread_mutex_lock(&wd.mutex);
  for(pp=&wd.pDbs; *pp!=p; pp=&(*pp)->pNext){}
  *pp = p->pNext;
  if( --p->pBase->nHandle==0 ) wdEndTimer(p->pBase);
  wdReleaseBase(p->pBase);
  pthread_mutex_unlock(&wd.mutex);
  return LOWER(p)->pMethods->xClose(LOWER(p));
}

static int wdDbRead(sqlite3_file *pFile, void *pBuf, int n, i64 iOfst){
  WdDb *p = (WdDb*)pFile;
  u8 *a = (u8*)pBuf;
  int rc = LOWER(p)->pMethods->xRead(LOWER(p), pBuf, n, iOfst);
  if( rc!=SQLITE_OK && rc!=SQLITE_IOERR_SHORT_READ ) return rc;
  if( iOfst==0 && n>20 && memcmp(a, "SQLite format 3", 16)==0 ){
    if( isMark(a[19]) ) p->bMarked = 1;
    wdShowPage1(p, a);
  }
  return rc;
}

/*
** Page 1 is marked when journal_mode=wal is set, and stays so through
** checkpoints, whatever the log says.  When another mode is set no log is open,
** and the log that was kept is of no more use.
*/
static int wdDbWritePage1(WdDb *p, const u8 *aIn, int n){
  const sqlite3_io_methods *pLow = LOWER(p)->pMethods;
  u8 *a;
  int rc;
  if( aIn[19]!=2 && p->pLog==0 ){
    p->bMarked = 0;
    p->nReserve = aIn[20];
    if( p->bKept ) (void)wd.pLower->xDelete(wd.pLower, p->zWal, 0);
    p->bKept = 0;
    return pLow->xWrite(LOWER(p), aIn, n, 0);
  }
  if( p->bWant && p->pLog==0 && p->eLock==SQLITE_LOCK_EXCLUSIVE ){
    p->bMarked = p->bUnused = 1;
    wdReason(p, 0);
  }
  if( !p->bMarked ) return pLow->xWrite(LOWER(p), aIn, n, 0);
  a = sqlite3_malloc(n);
  if( a==0 ) return SQLITE_IOERR_NOMEM;
  memcpy(a, aIn, (size_t)n);
  a[19] = 2;
  wdHidePage1(p, a);
  rc = pLow->xWrite(LOWER(p), a, n, 0);
  sqlite3_free(a);
  return rc;
}

static int wdDbWrite(sqlite3_file *pFile, const void *pBuf, int n, i64 iOfst){
  WdDb *p = (WdDb*)pFile;
  if( iOfst==0 && n>20 && memcmp(pBuf, "SQLite format 3", 16)==0 ){
    return wdDbWritePage1(p, (const u8*)pBuf, n);
  }
  return LOWER(p)->pMethods->xWrite(LOWER(p), pBuf, n, iOfst);
}

/*
** With synchronous=OFF a checkpoint flushes neither log nor database, and the log is
** restarted after it.  In waldio_sync=persistent that is done all the same: the log's
** when the copying begins, the database's at its end, when SQLite sets its size.
*/
static void wdBeginCopy(WdDb *p){
  p->bCopyUnasked = p->pLog && p->eSync==WD_SYNC_PERSISTENT && !p->bAsked;
  p->bAsked = 0;
  if( p->bCopyUnasked && !wdAllDurable(p->pLog) ){
    (void)wdFlushCommits(p->pLog, SQLITE_SYNC_NORMAL);    /* A failure poisons it */
  }
}
static int wdDbTruncate(sqlite3_file *pFile, i64 size){
  WdDb *p = (WdDb*)pFile;
  int rc = LOWER(p)->pMethods->xTruncate(LOWER(p), size);
  if( rc==SQLITE_OK && p->bCopyUnasked && p->pLog ){
    rc = wdPoisoned(p->pLog) ? SQLITE_IOERR_FSYNC : wdDbSync(pFile, SQLITE_SYNC_NORMAL);
  }
  p->bCopyUnasked = 0;
  return rc;
}
/*
** The last connection closes, and the flush is that of its checkpoint, which was
** complete: byte 19 may become SQLite's own with it.  Should power fail now, the log is
** whole, and its header keeps stock SQLite out.  Whoever finds waldio's log beside a
** database without a mark takes it for waldio's: see wdLockShared().
*/
static void wdPlainSoon(WdDb *p){
  const u8 eVersion = 2;
  int rc = LOWER(p)->pMethods->xRead(LOWER(p), &p->eMark, 1, 19);
  if( rc==SQLITE_OK ) rc = LOWER(p)->pMethods->xWrite(LOWER(p), &eVersion, 1, 19);
  p->bPlain = rc==SQLITE_OK;
}
static void wdStillMarked(WdDb *p){
  if( p->bPlain ) (void)LOWER(p)->pMethods->xWrite(LOWER(p), &p->eMark, 1, 19);
  p->bPlain = 0;
}

/* The kernel tells of a failure once.  What is in the database then nobody knows,
** and no later flush may let a checkpoint take it for copied. */
static int wdDbSync(sqlite3_file *pFile, int flags){
  WdDb *p = (WdDb*)pFile;
  u32 nBackfill;
  int rc;
  if( !p->bMarked ) return LOWER(pFile)->pMethods->xSync(LOWER(pFile), flags);
  if( AtomicLoad(&p->pBase->bSyncFailed) ){
    return SQLITE_IOERR_FSYNC;
  }
  AtomicStore(&p->pBase->bSynced, 1);
  if( p->bClosing ) wdPlainSoon(p);
  rc = LOWER(pFile)->pMethods->xSync(LOWER(pFile), flags);
  if( rc!=SQLITE_OK && p->bPlain ) wdStillMarked(p);
  (void)wdFrames(p, &nBackfill);
  if( rc!=SQLITE_OK && nBackfill>0 ){
    AtomicStore(&p->pBase->bSyncFailed, 1);
  }
  return rc;
}
static int wdDbFileSize(sqlite3_file *pFile, i64 *pSize){
  return LOWER(pFile)->pMethods->xFileSize(LOWER(pFile), pSize);
}

/*
** True if a connection closes that is the last one of waldio's, though others lock the
** database: these can only be connections of stock SQLite that were refused, each of
** which keeps its SHARED lock and the wal-index until it is closed.  They neither read
** nor write, and nobody of waldio comes before the log is closed; so the checkpoint
** needs no EXCLUSIVE lock, and the guards need not outlive the close.  (A statement
** runs where it is the journal mode that changes, which needs the lock itself.)
*/
static int wdClosesAlone(WdDb *p){
  sqlite3 *db = p->ppDb ? *p->ppDb : 0;
  sqlite3_stmt *pStmt = 0;
  u8 eVersion = 0;
  if( db==0 || p->bReadonly || p->bReadonlyShm ) return 0;
  while( (pStmt = sqlite3_next_stmt(db, pStmt))!=0 ){
    if( sqlite3_stmt_busy(pStmt) ) return 0;
  }
  if( !p->pLog->bPresent ) return 0;
  wdLeaveGroup(p->pLog);
  if( wdIsAlone(p->pLog) ) return 1;
  /* Of several that close at once none would be alone, so whoever is not goes first and
  ** looks again; the last to go finds nobody.  Meanwhile another may have left a plain
  ** database behind, whose log is not waldio's.  WdShared is not touched any more. */
  (void)wdLockPresence(p->pLog, F_UNLCK, 0);
  if( wdIsAlone(p->pLog) ){
    if( wdReadVersion(p, &eVersion)==SQLITE_OK && isMark(eVersion) ) return 1;
    (void)wdLockPresence(p->pLog, F_UNLCK, 0);
  }
  p->pLog->bPresent = 0;
  p->bLeft = 1;
  return 0;
}

/*
** A connection that closes asks for EXCLUSIVE to find out whether it is the
** last.  Of several that close at the same time none would be: all but one wait
** until that one is gone.  One that reads does not close: locking_mode=EXCLUSIVE
** asks so within a transaction, and may be refused.
*/
static int wdLockLast(WdDb *p){
  WdBase *pBase = p->pBase;
  int rc, i;
  rc = LOWER(p)->pMethods->xLock(LOWER(p), SQLITE_LOCK_EXCLUSIVE);
  for(i=0; rc==SQLITE_BUSY && i<WD_CLOSE_TRIES; i++){
    if( AtomicLoad(&pBase->nShared)<=1 ){
      rc = LOWER(p)->pMethods->xLock(LOWER(p), SQLITE_LOCK_EXCLUSIVE);
      break;
    }
    if( AtomicSwap(&pBase->pClosing, (WdDb*)0, p) ) break;
    wd.pLower->xSleep(wd.pLower, 200);
    rc = LOWER(p)->pMethods->xLock(LOWER(p), SQLITE_LOCK_EXCLUSIVE);
  }
  if( rc==SQLITE_BUSY && wdClosesAlone(p) ){
    p->bAlone = 1;
    rc = SQLITE_OK;
  }
  return rc;
}

static int wdDbLock(sqlite3_file *pFile, int eLock){
  WdDb *p = (WdDb*)pFile;
  int rc;
  p->bClosing = p->bLastClose = p->bPlain = p->bAsked = 0;
  if( p->bAlone ) wdNotAlone(p->pLog);
  p->bAlone = 0;
  if( eLock==SQLITE_LOCK_SHARED && wdPragmaRuns(p) ) return SQLITE_SCHEMA;
  if( p->eLock==SQLITE_LOCK_NONE && eLock==SQLITE_LOCK_SHARED ){
    rc = wdLockShared(p);
  }else if( p->bMarked && p->pLog && eLock==SQLITE_LOCK_EXCLUSIVE && !p->bReading ){
    rc = wdLockLast(p);
    p->bClosing = rc==SQLITE_OK;
  }else{
    rc = LOWER(p)->pMethods->xLock(LOWER(p), eLock);
  }
  if( rc==SQLITE_OK && p->eLock==SQLITE_LOCK_NONE ){
    AtomicAdd(&p->pBase->nShared, 1);
  }
  if( rc==SQLITE_OK && eLock>p->eLock ) p->eLock = eLock;
  return rc;
}

static int wdDbUnlock(sqlite3_file *pFile, int eLock){
  WdDb *p = (WdDb*)pFile;
  int rc = LOWER(p)->pMethods->xUnlock(LOWER(p), eLock);
  if( p->eLock>eLock && eLock==SQLITE_LOCK_NONE ){
    AtomicAdd(&p->pBase->nShared, -1);
  }
  if( eLock<p->eLock ) p->eLock = eLock;
  wdNotClosing(p);
  return rc;
}

/*
** sqlite3WalClose() asks for an EXCLUSIVE lock of a database whose log is open,
** held already or not; then it checkpoints, and if that was complete it asks for
** PERSIST_WAL.  Then the log is kept for the next session.  Anybody else who asks,
** at any other time, gets SQLite's own answer.  (What the wal-index says counts
** too, unless it is in heap memory: without a checkpoint there is no such lock.)
*/
static int wdPersistWal(WdDb *p, int *pArg){
  int bAsk = *pArg<0;
  u32 nBackfill;
  u32 nFrame = wdFrames(p, &nBackfill);
  int rc = LOWER(p)->pMethods->xFileControl(LOWER(p), SQLITE_FCNTL_PERSIST_WAL,
                                            pArg);
  if( bAsk && p->bClosing && nFrame==nBackfill ){
    p->bLastClose = 1;
    p->bWritten = AtomicLoad(&p->pShared->iWritten)!=0
               || AtomicLoad(&p->pBase->bSynced);
    p->bFlushed = AtomicLoad(&p->pShared->iDurable)!=0;
    p->bPersist = *pArg>0;
    if( p->bAlone || (p->bRecycle && !wdModeDiffers(p)) ) *pArg = 1;
  }
  return rc;
}

/* SQLITE_FCNTL_COMMIT_PHASETWO: the WRITE lock is given up, and an error is that of
** COMMIT.  It waits for what wdCommitted() and wdLogSync() left to it. */
static int wdPhaseTwo(WdDb *p){
  WdLog *pLog = p->pLog;
  u64 iWait = p->iWait;
  u64 iDurable = iWait;           /* What has to be, for the log to be needed */
  int rc = SQLITE_OK;
  if( pLog==0 ) return SQLITE_OK;
  wdCommitOver(pLog);
  p->iWait = 0;
  if( iWait && p->eSync==WD_SYNC_GROUP ){
    iDurable = pLog->iTimed;      /* The thread must not write the database */
    rc = wdWaitGroup(pLog, iWait);
  }else if( iWait ){
    rc = wdWaitDurable(pLog, iWait);
  }
  if( rc==SQLITE_OK && iDurable && iDurable<=AtomicLoad(&p->pShared->iDurable) ){
    wdNeedLog(pLog);
  }
  if( rc==SQLITE_OK && p->bStockWrite && p->eSync==WD_SYNC_PERSISTENT ){
    rc = wdLogSync(&pLog->base, SQLITE_SYNC_NORMAL);
  }
  return rc;
}

static int wdDbFileControl(sqlite3_file *pFile, int op, void *pArg){
  WdDb *p = (WdDb*)pFile;
  int rc = SQLITE_NOTFOUND;
  p->bAfterCommit = op==SQLITE_FCNTL_COMMIT_PHASETWO;
  if( p->bAfterCommit ){
    p->bAsked = 0;
    AtomicStore(&wd.bPhaseTwo, 1);
  }
  p->bJustLocked = 0;
  switch( op ){
    case SQLITE_FCNTL_PDB:             p->ppDb = (sqlite3**)pArg; break;
    case SQLITE_FCNTL_PERSIST_WAL:     return wdPersistWal(p, (int*)pArg);
    case SQLITE_FCNTL_PRAGMA:          rc = wdPragma(p, (char**)pArg); break;
    case SQLITE_FCNTL_CKPT_START:      wdBeginCopy(p); break;
    case SQLITE_FCNTL_COMMIT_PHASETWO: rc = wdPhaseTwo(p); break;
  }
  if( rc!=SQLITE_NOTFOUND && (rc!=SQLITE_OK || op==SQLITE_FCNTL_PRAGMA) ) return rc;
  rc = wdFileControl(pFile, op, pArg);
  if( op==SQLITE_FCNTL_VFSNAME && rc==SQLITE_OK ){
    *(char**)pArg = sqlite3_mprintf("waldio/%z", *(char**)pArg);
  }
  return rc;
}

/* Page 1 is not mapped, since its byte 19 would show. */
static int wdDbFetch(sqlite3_file *pFile, i64 iOfst, int n, void **pp){
  if( iOfst==0 ){
    *pp = 0;
    return SQLITE_OK;
  }
  return LOWER(pFile)->pMethods->xFetch(LOWER(pFile), iOfst, n, pp);
}
static int wdDbUnfetch(sqlite3_file *pFile, i64 iOfst, void *pPage){
  return LOWER(pFile)->pMethods->xUnfetch(LOWER(pFile), iOfst, pPage);
}

static const sqlite3_io_methods wdDbMethods = {
  3, wdDbClose, wdDbRead, wdDbWrite, wdDbTruncate, wdDbSync, wdDbFileSize,
  wdDbLock, wdDbUnlock, wdCheckReservedLock, wdDbFileControl, wdSectorSize,
  wdDeviceCharacteristics, wdDbShmMap, wdDbShmLock, wdDbShmBarrier,
  wdDbShmUnmap, wdDbFetch, wdDbUnfetch
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
  if( pTo->iVersion>2 && (pLower->xFetch==0 || pLower->xUnfetch==0) ) pTo->iVersion = 2;
}

/*
** The kernel's struct statx (include/uapi/linux/stat.h); musl's has not all of
** it, and older headers have not either.
*/
struct WdStatx {
  u32 mMask;
  u32 aOther[38];
  u32 szOffsetAlign;              /* stx_dio_offset_align */
  u32 aLater[24];
};
#define WD_STATX_DIOALIGN 0x2000

/*
** Why the log of this database stays a stock one, or NULL.  On filesystems
** that write every block to a new place, or not at all, aligned blocks gain
** nothing; zSector receives what O_DIRECT asks for.
*/
static const char *wdUseless(const char *zName, int *pszSector){
  struct statfs fs;
  struct WdStatx sx;
  if( syscall(SYS_statx, AT_FDCWD, zName, 0, WD_STATX_DIOALIGN, &sx)==0
   && (sx.mMask & WD_STATX_DIOALIGN)!=0
  ){
    if( sx.szOffsetAlign==0 ) return "the file has no O_DIRECT";
    if( sx.szOffsetAlign>WD_SECTOR ) *pszSector = (int)sx.szOffsetAlign;
  }
  if( *pszSector>WD_BLOCK0 ) return "O_DIRECT asks for more than 4096 bytes";
  if( statfs(zName, &fs)!=0 ) return "statfs() fails";
  switch( (u32)fs.f_type ){
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
      return 0;
    case TMPFS_MAGIC:       return "tmpfs has no disk";
    case BTRFS_SUPER_MAGIC: return "btrfs never overwrites in place";
    case NFS_SUPER_MAGIC:   return "NFS is a network filesystem";
    default:                return "not a filesystem known to gain";
  }
}

/*
** Find or make the WdBase of a database.  The file is known by its inode, and
** by its name if the lower VFS has no inodes; stat() opens nothing, for closing
** a second descriptor would drop the locks of the first.  wd.mutex is held.
*/
static WdBase *wdFindBase(const char *zName){
  struct stat st;
  u64 iDev = 0, iInode = 0;
  WdBase *p;
  if( wd.bUnix && stat(zName, &st)==0 ){
    iDev = (u64)st.st_dev;
    iInode = (u64)st.st_ino;
  }
  for(p=wd.pBases; p; p=p->pNext){
    if( p->nHandle>0 && p->iDev==iDev && p->iInode==iInode && p->pid==getpid()
     && (iInode || strcmp(p->zName, zName)==0) ) break;
  }
  if( p==0 ){
    p = sqlite3_malloc(sizeof(*p));
    if( p==0 ) return 0;
    memset(p, 0, sizeof(*p));
    p->zName = sqlite3_mprintf("%s", zName);
    if( p->zName==0 ){
      sqlite3_free(p);
      return 0;
    }
    pthread_mutex_init(&p->timer, 0);
    p->pid = getpid();
    p->iDev = iDev;
    p->iInode = iInode;
    p->pNext = wd.pBases;
    wd.pBases = p;
  }
  p->nRef++;
  p->nHandle++;
  return p;
}

/* A URI parameter that is a word, in any case; what SQLite takes for a truth value is
** "on" or "off". */
static int wdUriIs(const char *zName, const char *zParam, const char *zWord){
  const char *z = sqlite3_uri_parameter(zName, zParam);
  return z!=0 && sqlite3_stricmp(z, zWord)==0;
}
static int wdUriOff(const char *zName, const char *zParam){
  return sqlite3_uri_parameter(zName, zParam)!=0
      && !sqlite3_uri_boolean(zName, zParam, 1);
}

/* True if one URI parameter has a value that it can have.  Those that a pragma has,
** too, are set as by it. */
static int wdUriOption(WdDb *p, const char *zKey, const char *zValue, char **pzErr){
  char *az[4];
  int bOk;
  az[0] = 0;
  az[1] = (char*)zKey;
  az[2] = (char*)zValue;
  az[3] = 0;
  if( strcmp(zKey, "waldio")==0 || strcmp(zKey, "waldio_lost_log")==0 ){
    bOk = sqlite3_uri_boolean(p->zName, zKey, 0)==sqlite3_uri_boolean(p->zName, zKey, 1)
       || (zKey[6]==0 && sqlite3_stricmp(zValue, "force")==0);
    if( !bOk ) (void)wdPragmaError(az, zKey[6] ? "on or off" : "on, off or force");
  }else if( strcmp(zKey, "waldio_reserve")==0 ){
    bOk = wdPragmaNumber(az, 255)>=0;           /* wdConnection() takes it */
    if( !bOk ) (void)wdPragmaError(az, "0 to 255");
  }else if( strcmp(zKey, "waldio_sync")==0 ){
    bOk = wdPragmaSync(p, az)==SQLITE_OK;
  }else{
    int rc = wdPragmaOption(p, az);
    bOk = rc==SQLITE_OK;
    if( rc==SQLITE_NOTFOUND ) az[0] = sqlite3_mprintf("there is no parameter %s", zKey);
  }
  if( !bOk ) *pzErr = az[0]; else sqlite3_free(az[0]);
  return bOk;
}

/* Look at all parameters of the URI whose names begin with "waldio".  One that means
** nothing is refused: to go on without it is not what was asked for. */
static int wdUriOptions(WdDb *p, const char *zName){
  const char *zKey;
  char *zErr = 0;
  int i;
  for(i=0; (zKey = sqlite3_uri_key(zName, i))!=0; i++){
    const char *zValue = zKey + strlen(zKey) + 1;
    if( sqlite3_strnicmp(zKey, "waldio", 6)!=0
     || sqlite3_uri_parameter(zName, zKey)!=zValue ) continue;   /* Given before */
    if( !wdUriOption(p, zKey, zValue, &zErr) ){
      sqlite3_log(SQLITE_CANTOPEN, "waldio: the URI of %s: %s", zName,
                  zErr ? zErr : "out of memory");
      sqlite3_free(zErr);
      return SQLITE_CANTOPEN;
    }
  }
  return SQLITE_OK;
}

/*
** Open a database.  zName is kept: the name SQLite gives for the log leads
** back to this very pointer.
*/
static int wdOpenDb(WdDb *p, const char *zName, int flags){
  const char *zReason = 0;
  struct stat st;
  int rc;
  memset(p, 0, sizeof(*p));
  p->zName = zName;
  p->zWal = sqlite3_filename_wal(zName);
  p->zJournal = sqlite3_filename_journal(zName);
  p->pShared = &p->priv;
  p->szSector = WD_SECTOR;
  p->szPrealloc = WD_PREALLOC;
  p->bRecycle = 1;
  p->nGroupFrames = 64;
  p->msGroup = 10;
  rc = wdUriOptions(p, zName);
  if( rc!=SQLITE_OK ) return rc;
  if( wd.bUnix ) zReason = wdUseless(zName, &p->szSector);
  if( wdUriIs(zName, "waldio", "force") ) zReason = 0;
  else if( wdUriOff(zName, "waldio") ) zReason = "waldio=off";
  if( wd.bUnix && stat(zName, &st)==0 && st.st_nlink>1 ){
    zReason = "the file has several names (hard links)";
  }
  if( flags & SQLITE_OPEN_READONLY ) zReason = "opened read-only";
  wdMethods(&p->methods, &wdDbMethods, LOWER(p)->pMethods);
  if( (wdDeviceCharacteristics(&p->base) & SQLITE_IOCAP_POWERSAFE_OVERWRITE)
      ==0 ){
    /* Byte 19 is overwritten alone, as are the pieces of a tail block. */
    zReason = "no POWERSAFE_OVERWRITE (psow=0)";
  }
  if( p->methods.xShmMap==0 ) zReason = "no shared memory";
  p->bWant = zReason==0;
  p->bReadonly = (flags & SQLITE_OPEN_READONLY)!=0;
  p->bLostLog = !p->bReadonly && sqlite3_uri_boolean(zName, "waldio_lost_log", 0);
  pthread_mutex_lock(&wd.mutex);
  p->pBase = wdFindBase(zName);
  if( p->pBase ){
    p->pNext = wd.pDbs;
    wd.pDbs = p;
    p->base.pMethods = &p->methods;
    if( p->pBase->nHandle==1 ) wdReason(p, zReason);
  }
  pthread_mutex_unlock(&wd.mutex);
  return p->pBase ? SQLITE_OK : SQLITE_NOMEM;
}

static WdDb *wdFindDb(const char *zName){
  WdDb *p;
  pthread_mutex_lock(&wd.mutex);
  for(p=wd.pDbs; p && p->zName!=zName; p=p->pNext){}
  pthread_mutex_unlock(&wd.mutex);
  return p;
}

/* True if a log of at least a header is there, or may be: whoever cannot look has
** not found that it is missing.  No file need be opened for that. */
static int wdLogIsThere(WdDb *p){
  struct stat st;
  u8 a[WD_SZLABEL];
  int rc;
  if( wd.bUnix ){
    if( stat(p->zWal, &st)!=0 ) return errno!=ENOENT && errno!=ENOTDIR;
    return !S_ISREG(st.st_mode) || st.st_size>=WD_SZLABEL;
  }
  rc = wdPeekLog(p, a, sizeof(a));
  return rc!=SQLITE_CANTOPEN && rc!=SQLITE_IOERR_SHORT_READ;
}

/*
** The log of a database has the database's name.  So a database that is in use,
** or was at a crash, cannot be opened by another name: its last commits would
** not be seen.  Nor can it if its log is gone.  Called before the log is opened,
** and perhaps made.
*/
static int wdCheckName(const char *zWal){
  WdDb *p = wdFindDb(sqlite3_filename_database(zWal));
  struct stat st;
  u8 eVersion;
  int i;
  if( p==0 ) return SQLITE_CANTOPEN;
  if( wdLogIsStrange(p) ){
    /* Where a FIFO cannot be written, SQLite would wait for somebody who does. */
    sqlite3_log(SQLITE_CANTOPEN, "waldio: %s is no regular file", zWal);
    return SQLITE_CANTOPEN;
  }
  if( !p->bMarked ) return SQLITE_OK;
  if( wd.bUnix && strcmp(p->zName, p->pBase->zName)!=0 ){
    sqlite3_log(SQLITE_CANTOPEN, "waldio: %s is open as %s; use that name",
                p->zName, p->pBase->zName);
    return SQLITE_CANTOPEN;
  }
  /* Others may truncate the log, having marked that it is not needed, meanwhile. */
  for(i=0; i<3; i++){
    if( !p->bNeedsLog || wdLogIsThere(p) ) return SQLITE_OK;
    (void)wdReadVersion(p, &eVersion);
  }
  if( wd.bUnix && stat(p->zName, &st)==0 && st.st_nlink>1 ){
    sqlite3_log(SQLITE_CANTOPEN, "waldio: %s has several names, and its log has "
                "another one; open it by the name that was used", p->zName);
    return SQLITE_CANTOPEN;
  }
  sqlite3_log(p->bLostLog ? SQLITE_WARNING : SQLITE_CANTOPEN, "waldio: %s was not "
              "closed, and its log %s is missing or empty%s", p->zName, zWal,
              p->bLostLog ? "; what it held is lost"
              : "; bring it back, or do without the commits in it: "
                "waldio_lost_log=1");
  return p->bLostLog ? SQLITE_OK : SQLITE_CANTOPEN;
}

/*
** Be one of those who have the log open.  Whoever closed it alone meanwhile has left a
** plain database behind, which others may use already: begin again, SQLITE_BUSY.
*/
static int wdBePresent(WdLog *p){
  WdDb *pDb = p->pDb;
  u8 eVersion = 0;
  int rc;
  if( !wd.bUnix || !pDb->bMarked ) return SQLITE_OK;
  if( p->fd<0 ) return SQLITE_CANTOPEN;
  errno = 0;
  p->bPresent = (u8)wdLockPresence(p, F_RDLCK, WD_STUCK_US);
  if( !p->bPresent && (errno==EAGAIN || errno==EACCES) ) return SQLITE_BUSY;
  rc = wdReadVersion(pDb, &eVersion);
  if( rc==SQLITE_OK && !isMark(eVersion) && !wdLogIsOurs(pDb, &rc) ){
    pDb->bMarked = 0;
    rc = SQLITE_BUSY;
  }
  return rc;
}

/*
** What the filesystem of the log writes for a commit when the file has grown: ext4 journals
** four or five whole blocks (descriptor, inode, bitmap, group, commit), XFS some sectors,
** and F2FS a node.  Before there are zeros block 0 and the first tail block have to be
** earned; but on ext4 with blocks of 4 KiB a second commit earns more than both.
*/
static void wdKnowFilesystem(WdLog *p){
  struct statfs fs;
  memset(&fs, 0, sizeof(fs));
  if( p->fd>=0 && fstatfs(p->fd, &fs)!=0 ) memset(&fs, 0, sizeof(fs));
  p->szBlock = fs.f_bsize>0 && fs.f_bsize<WD_BLOCK0 ? (int)fs.f_bsize : WD_BLOCK0;
  p->bF2fs = (u32)fs.f_type==F2FS_SUPER_MAGIC;
  switch( (u32)fs.f_type ){
    case EXT4_SUPER_MAGIC: p->szJournal = 4*p->szBlock; p->bNames = 1; break;
    case XFS_SUPER_MAGIC:  p->szJournal = 1024; p->bNames = 1; break;
    case F2FS_SUPER_MAGIC: p->szJournal = WD_BLOCK0; break;
  }
  p->nSaved = p->szJournal>2*WD_BLOCK0 ? WD_BLOCK0 : -2*WD_BLOCK0;
}

/*
** Open the log of a database.  Log and database are paired by the identity of
** the name, never by its text: two handles of one file have the same text.
** A log whose database was not opened through this VFS is refused, and one whose
** name stands for another file than before and while the lower VFS opened it:
** pBefore is what it stood for, with st_ino==0 for nothing.
*/
static int wdOpenLog(WdLog *p, const char *zName, int flags,
                     const struct stat *pBefore){
  WdDb *pDb = wdFindDb(sqlite3_filename_database(zName));
  int rc;
  memset(p, 0, sizeof(*p));
  p->fd = -1;
  p->bFull = 1;
  p->bNew = pBefore->st_ino==0;
  p->bDirect = !wd.bUnix;
  if( pDb==0 ) return SQLITE_CANTOPEN;
  if( wd.bUnix && pDb->bMarked && (flags & SQLITE_OPEN_READONLY)!=0 ){
    struct stat st;
    p->fd = wdOpenRegular(zName, O_RDONLY, &st);          /* For its lock alone */
  }else if( wd.bUnix && pDb->bMarked ){
    struct stat st;
    p->fd = wdOpenRegular(zName, O_RDWR|O_DIRECT, &st);
    p->bDirect = p->bHasDirect = p->bDirectNow = p->fd>=0;
    if( p->fd<0 && errno!=EEXIST ){
      p->fd = wdOpenRegular(zName, O_RDWR, &st);
      p->bDirect = p->fd>=0;
      wdCount(pDb, WD_STAT_FALLBACKS, 1);
    }
    if( p->fd<0 ? errno==EEXIST
                : pBefore->st_ino!=0 && (pBefore->st_ino!=st.st_ino
                                         || pBefore->st_dev!=st.st_dev) ){
      sqlite3_log(SQLITE_CANTOPEN, "waldio: %s is no regular file, or another one "
                  "than a moment ago", zName);
      if( p->fd>=0 ) close(p->fd);
      return SQLITE_CANTOPEN;
    }
  }
  wdKnowFilesystem(p);
  if( pDb->pShared==&pDb->priv ) memset(&pDb->priv, 0, sizeof(pDb->priv));
  wdMethods(&p->methods, &wdLogMethods, LOWER(p)->pMethods);
  p->base.pMethods = &p->methods;
  p->pDb = pDb;
  wdUseDirect(p);
  rc = wdBePresent(p);
  if( rc!=SQLITE_OK ){
    p->base.pMethods = 0;         /* SQLite need not close it */
    if( p->fd>=0 ) close(p->fd);
    return rc;
  }
  pDb->pLog = p;
  pDb->bKept = pDb->bUnused = 0;
  p->bSyncedDir = (u8)(pDb->bMarked && wdWasKept(p, pBefore));
  return SQLITE_OK;
}

static int wdOpen(
  sqlite3_vfs *pVfs, const char *zName, sqlite3_file *pFile,
  int flags, int *pOutFlags
){
  sqlite3_vfs *pLower = LOWERVFS(pVfs);
  struct stat before = {0};
  int outFlags = 0;
  int rc;
  if( zName==0 || (flags & (SQLITE_OPEN_MAIN_DB|SQLITE_OPEN_WAL))==0 ){
    return pLower->xOpen(pLower, zName, pFile, flags, pOutFlags);
  }
  pFile->pMethods = 0;
  LOWER(pFile)->pMethods = 0;
  if( flags & SQLITE_OPEN_WAL ){
    rc = wdCheckName(zName);
    if( rc!=SQLITE_OK ) return rc;
    if( wd.bUnix ){
      if( lstat(zName, &before)!=0 ) before.st_ino = 0;
    }else{
      int bThere = 1;
      (void)pLower->xAccess(pLower, zName, SQLITE_ACCESS_EXISTS, &bThere);
      before.st_ino = bThere!=0;
    }
  }
  rc = pLower->xOpen(pLower, zName, LOWER(pFile), flags, &outFlags);
  if( pOutFlags ) *pOutFlags = outFlags;
  if( rc==SQLITE_OK ){
    if( flags & SQLITE_OPEN_MAIN_DB ){
      rc = wdOpenDb((WdDb*)pFile, zName, outFlags);
    }else{
      rc = wdOpenLog((WdLog*)pFile, zName, outFlags, &before);
    }
  }
  if( rc!=SQLITE_OK && LOWER(pFile)->pMethods ){
    LOWER(pFile)->pMethods->xClose(LOWER(pFile));
  }
  return rc;
}

/*
** A journal is deleted.  Were it to come back after a power loss, it would be
** rolled back over what was committed to the log since.  No flush of a new
** file's directory need come before that: the log may be there already, as one
** that was kept is, or another connection may create it than the one that
** flushes it first.
**
** A log is deleted only if the database says that it needs none.
*/
static int wdDelete(sqlite3_vfs *pVfs, const char *zName, int bSyncDir){
  sqlite3_vfs *pLower = LOWERVFS(pVfs);
  WdDb *p;
  u8 aVersion[2] = { 2, 2 };      /* Above 1 in a WAL database */
  int bLog = 0;
  pthread_mutex_lock(&wd.mutex);
  for(p=wd.pDbs; p && p->zJournal!=zName && p->zWal!=zName; p=p->pNext){}
  pthread_mutex_unlock(&wd.mutex);
  if( p && p->zWal==zName ){
    int rc = p->bMarked ? wdNeedNoLog(p) : SQLITE_OK;
    if( rc!=SQLITE_OK ) return rc;
  }else if( p && !bSyncDir ){
    (void)LOWER(p)->pMethods->xRead(LOWER(p), aVersion, 2, 18);
    if( p->zWal ){
      (void)pLower->xAccess(pLower, p->zWal, SQLITE_ACCESS_READWRITE, &bLog);
    }
    bSyncDir = bLog || aVersion[0]>1 || aVersion[1]>1;
  }
  return pLower->xDelete(pLower, zName, bSyncDir);
}

/*
** SQLite opens a log that exists, whatever byte 19 says.  An empty one, kept
** when journal_mode=delete closed it, must not turn the database back into a
** WAL database, so it does not exist.
*/
static int wdAccess(sqlite3_vfs *pVfs, const char *zName, int flags, int *pOut){
  const WdDb *p;
  pthread_mutex_lock(&wd.mutex);
  for(p=wd.pDbs; p && (p->zWal!=zName || !p->bKept); p=p->pNext){}
  pthread_mutex_unlock(&wd.mutex);
  if( p ){
    *pOut = 0;
    return SQLITE_OK;
  }
  return LOWERVFS(pVfs)->xAccess(LOWERVFS(pVfs), zName, flags, pOut);
}
/* The thread may have left the database where it was busy, so that is looked
** for before it is used.  Whoever is woken early and does not get the lock after
** all sleeps so much longer the next time: sqlite3_busy_timeout() adds up what it
** asked for. */
static int wdSleep(sqlite3_vfs *pVfs, int nMicro){
  WdShared *pShared = 0;
  WdDb *p = 0;
  i64 iBegin, nWant;
  if( wdQueue.bAsked && nMicro<=WD_MXSLEEP_US ){
    pthread_mutex_lock(&wd.mutex);
    for(p=wd.pDbs; p && p!=wdQueue.pDb; p=p->pNext){}
    if( p && p->pShared!=&p->priv ){
      pShared = p->pShared;
      AtomicAdd(&p->nWaiting, 1);
    }
    pthread_mutex_unlock(&wd.mutex);
  }
  wdQueue.bAsked = 0;
  if( pShared==0 ) return LOWERVFS(pVfs)->xSleep(LOWERVFS(pVfs), nMicro);
  iBegin = wdNow();
  nWant = nMicro + wdQueue.nOwed;
  if( !wdFreeSoon(pShared) ) wdWaitTurn(pShared, nWant);
  nWant -= wdNow() - iBegin;
  wdQueue.nOwed = nWant>0 ? nWant : 0;
  AtomicAdd(&p->nWaiting, -1);
  return nMicro;
}

/* Methods that are left to the lower VFS. */
#define LOWERCALL(pVfs,xMethod,...) \
    LOWERVFS(pVfs)->xMethod(LOWERVFS(pVfs), __VA_ARGS__)
static int wdFullPathname(sqlite3_vfs *pVfs, const char *zName, int n, char *zOut){
  return LOWERCALL(pVfs, xFullPathname, zName, n, zOut);
}
static void *wdDlOpen(sqlite3_vfs *pVfs, const char *zFile){
  return LOWERCALL(pVfs, xDlOpen, zFile);
}
static void wdDlError(sqlite3_vfs *pVfs, int n, char *zOut){
  LOWERCALL(pVfs, xDlError, n, zOut);
}
static void (*wdDlSym(sqlite3_vfs *pVfs, void *p, const char *zSym))(void){
  return LOWERCALL(pVfs, xDlSym, p, zSym);
}
static void wdDlClose(sqlite3_vfs *pVfs, void *p){
  LOWERCALL(pVfs, xDlClose, p);
}
static int wdRandomness(sqlite3_vfs *pVfs, int n, char *zOut){
  return LOWERCALL(pVfs, xRandomness, n, zOut);
}
static int wdCurrentTime(sqlite3_vfs *pVfs, double *pTime){
  return LOWERCALL(pVfs, xCurrentTime, pTime);
}
static int wdGetLastError(sqlite3_vfs *pVfs, int n, char *zOut){
  return LOWERCALL(pVfs, xGetLastError, n, zOut);
}
static int wdCurrentTimeInt64(sqlite3_vfs *pVfs, sqlite3_int64 *pTime){
  return LOWERCALL(pVfs, xCurrentTimeInt64, pTime);
}
static int wdSetSystemCall(
  sqlite3_vfs *pVfs, const char *zName, sqlite3_syscall_ptr xCall
){
  return LOWERCALL(pVfs, xSetSystemCall, zName, xCall);
}
static sqlite3_syscall_ptr wdGetSystemCall(sqlite3_vfs *pVfs, const char *zName){
  return LOWERCALL(pVfs, xGetSystemCall, zName);
}
static const char *wdNextSystemCall(sqlite3_vfs *pVfs, const char *zName){
  return LOWERCALL(pVfs, xNextSystemCall, zName);
}

/* Have a VFS of the name zName stand on pLower: what pLower has, and no more. */
#define WD_OFFER(xMethod,xOurs) \
    p->base.xMethod = pLower->xMethod ? xOurs : 0
static void wdStandOn(WdVfs *p, sqlite3_vfs *pLower, const char *zName){
  memset(p, 0, sizeof(*p));
  p->pLower = pLower;
  p->base.iVersion = pLower->iVersion>3 ? 3 : pLower->iVersion;
  p->base.szOsFile = (int)WD_SZMAX + pLower->szOsFile;
  p->base.mxPathname = pLower->mxPathname;
  p->base.zName = zName;
  p->base.pAppData = pLower->pAppData;
  p->base.xOpen = wdOpen;
  p->base.xDelete = wdDelete;
  p->base.xAccess = wdAccess;
  p->base.xSleep = wdSleep;
  WD_OFFER(xFullPathname, wdFullPathname);
  WD_OFFER(xDlOpen, wdDlOpen);
  WD_OFFER(xDlError, wdDlError);
  WD_OFFER(xDlSym, wdDlSym);
  WD_OFFER(xDlClose, wdDlClose);
  WD_OFFER(xRandomness, wdRandomness);
  WD_OFFER(xCurrentTime, wdCurrentTime);
  WD_OFFER(xGetLastError, wdGetLastError);
  if( pLower->iVersion<2 ) return;
  WD_OFFER(xCurrentTimeInt64, wdCurrentTimeInt64);
  if( pLower->iVersion<3 ) return;
  WD_OFFER(xSetSystemCall, wdSetSystemCall);
  WD_OFFER(xGetSystemCall, wdGetSystemCall);
  WD_OFFER(xNextSystemCall, wdNextSystemCall);
}

/****************************** waldio_stat *********************************/

/*
** CREATE TABLE waldio_stat(...): one row per database this process has open
** through the VFS.  An eponymous virtual table.
*/
static const char wdStatSchema[] =
  "CREATE TABLE waldio_stat(database TEXT, layout TEXT, slot INT, reason TEXT,"
  " handles INT, commits INT, frames INT, bytes INT, durable_writes INT,"
  " flushes INT, preallocations INT, fallbacks INT, escapes INT, moved INT,"
  " checkpoints INT, read_ahead INT)";
#define WD_STAT_NFIXED  5         /* Columns before those of aStat[] */

typedef struct WdCursor WdCursor;
struct WdCursor {
  sqlite3_vtab_cursor base;
  WdBase *pBase;                  /* The row it is on, which nRef keeps */
  i64 iRow;
};

static int wdStatConnect(
  sqlite3 *db, void *pAux, int argc, const char *const *argv,
  sqlite3_vtab **ppVtab, char **pzErr
){
  int rc = sqlite3_declare_vtab(db, wdStatSchema);
  (void)pAux; (void)argc; (void)argv; (void)pzErr;
  if( rc!=SQLITE_OK ) return rc;
  *ppVtab = sqlite3_malloc(sizeof(sqlite3_vtab));
  if( *ppVtab==0 ) return SQLITE_NOMEM;
  memset(*ppVtab, 0, sizeof(sqlite3_vtab));
  return SQLITE_OK;
}
static int wdStatDisconnect(sqlite3_vtab *pVtab){
  sqlite3_free(pVtab);
  return SQLITE_OK;
}
static int wdStatBestIndex(sqlite3_vtab *pVtab, sqlite3_index_info *pInfo){
  (void)pVtab;
  pInfo->estimatedCost = 10;
  pInfo->estimatedRows = 10;
  return SQLITE_OK;
}
static int wdStatOpen(sqlite3_vtab *pVtab, sqlite3_vtab_cursor **ppCursor){
  WdCursor *p = sqlite3_malloc(sizeof(*p));
  (void)pVtab;
  if( p==0 ) return SQLITE_NOMEM;
  memset(p, 0, sizeof(*p));
  *ppCursor = &p->base;
  return SQLITE_OK;
}
/* Go to a row, or to none. */
static int wdStatGo(WdCursor *p, WdBase *pTo, i64 iRow){
  if( pTo ) pTo->nRef++;
  if( p->pBase ) wdReleaseBase(p->pBase);
  p->pBase = pTo;
  p->iRow = iRow;
  pthread_mutex_unlock(&wd.mutex);
  return SQLITE_OK;
}
static int wdStatNext(sqlite3_vtab_cursor *pCursor){
  WdCursor *p = (WdCursor*)pCursor;
  pthread_mutex_lock(&wd.mutex);
  return wdStatGo(p, p->pBase->pNext, p->iRow+1);
}
static int wdStatFilter(
  sqlite3_vtab_cursor *pCursor, int idxNum, const char *idxStr,
  int argc, sqlite3_value **argv
){
  (void)idxNum; (void)idxStr; (void)argc; (void)argv;
  pthread_mutex_lock(&wd.mutex);
  return wdStatGo((WdCursor*)pCursor, wd.pBases, 0);
}
static int wdStatEof(sqlite3_vtab_cursor *pCursor){
  return ((WdCursor*)pCursor)->pBase==0;
}
static int wdStatClose(sqlite3_vtab_cursor *pCursor){
  pthread_mutex_lock(&wd.mutex);
  (void)wdStatGo((WdCursor*)pCursor, 0, 0);
  sqlite3_free(pCursor);
  return SQLITE_OK;
}

static int wdStatColumn(
  sqlite3_vtab_cursor *pCursor, sqlite3_context *pCtx, int iCol
){
  WdBase *p = ((WdCursor*)pCursor)->pBase;
  const char *zReason = AtomicLoad(&p->zReason);
  const char *zUnknown = AtomicLoad(&p->zUnknown);
  u32 mLayout = AtomicLoad(&p->mLayout);
  i64 n = 0;
  switch( iCol ){
    case 0: sqlite3_result_text(pCtx, p->zName, -1, SQLITE_TRANSIENT); break;
    case 1: sqlite3_result_text(pCtx, zReason && zReason!=wdOther
                ? "stock" : wdLayoutName(mLayout), -1, SQLITE_STATIC);
            break;
    case 2: sqlite3_result_int(pCtx, wdLayoutOf(mLayout).szSlot); break;
    case 3: if( zReason || zUnknown==0 ){
              sqlite3_result_text(pCtx, zReason, -1, SQLITE_STATIC);
            }else{
              char *z = sqlite3_mprintf("this SQLite is none that waldio knows: %s", zUnknown);
              sqlite3_result_text(pCtx, z, -1, sqlite3_free);
            }
            break;
    case 4: pthread_mutex_lock(&wd.mutex);
            n = p->nHandle;
            pthread_mutex_unlock(&wd.mutex);
            sqlite3_result_int64(pCtx, n);
            break;
    default: n = AtomicLoad(&p->aStat[iCol-WD_STAT_NFIXED]);
             sqlite3_result_int64(pCtx, n);
  }
  return SQLITE_OK;
}
static int wdStatRowid(sqlite3_vtab_cursor *pCursor, sqlite3_int64 *pRowid){
  *pRowid = ((WdCursor*)pCursor)->iRow;
  return SQLITE_OK;
}

static const sqlite3_module wdStatModule = {
  .iVersion = 0,
  .xConnect = wdStatConnect,      /* No xCreate: eponymous only */
  .xBestIndex = wdStatBestIndex,
  .xDisconnect = wdStatDisconnect,
  .xOpen = wdStatOpen,
  .xClose = wdStatClose,
  .xFilter = wdStatFilter,
  .xNext = wdStatNext,
  .xEof = wdStatEof,
  .xColumn = wdStatColumn,
  .xRowid = wdStatRowid
};

/******************************* Entry points *******************************/

/*
** Called for every new connection.  A new database on this VFS gets the
** reserved bytes layout W needs; so does an existing one at its next VACUUM.
** The URI parameter waldio_reserve asks for another number: SQLite only ever
** raises it.
*/
static int wdConnection(
  sqlite3 *db, char **pzErrMsg, const sqlite3_api_routines *pApi
){
  sqlite3_file *pFile = 0;
  int n = WAL_FRAME_HDRSIZE;
  (void)pzErrMsg; (void)pApi;
  sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &pFile);
  if( pFile && pFile->pMethods && pFile->pMethods->xClose==wdDbClose
   && ((WdDb*)pFile)->bWant
  ){
    n = (int)sqlite3_uri_int64(((WdDb*)pFile)->zName, "waldio_reserve", n);
    sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &n);
  }
  return sqlite3_create_module(db, "waldio_stat", &wdStatModule, 0);
}

static int wdRegister(int bDefault){
  sqlite3_vfs *pOther = sqlite3_vfs_find("waldio");
  int rc;
  if( pOther && pOther!=&wdVfs.base ){
    /* Another build of waldio is loaded.  Two must not stand on each other. */
    return bDefault ? sqlite3_vfs_register(pOther, 1) : SQLITE_OK;
  }
  pthread_mutex_lock(&wd.mutex);
  if( wd.pLower==0 ){
    sqlite3_vfs *pLower = sqlite3_vfs_find(0);
    if( pLower==0 ){
      pthread_mutex_unlock(&wd.mutex);
      return SQLITE_ERROR;
    }
    wdStandOn(&wdVfs, pLower, "waldio");
    wd.pLower = pLower;
    wd.bUnix = strncmp(pLower->zName, "unix", 4)==0;
  }
  pthread_mutex_unlock(&wd.mutex);
  rc = sqlite3_auto_extension((void(*)(void))wdConnection);
  return rc==SQLITE_OK ? sqlite3_vfs_register(&wdVfs.base, bDefault) : rc;
}

int waldio_register(int bDefault){
  return wdRegister(bDefault);
}

int waldio_extra_init(const char *zUnused){
  (void)zUnused;
  return wdRegister(1);
}

/*
** Whether this SQLite cannot be served.  A process may have several, as Python's
** sqlite3 beside apsw, and dlopen() gives all of them one copy of this file.
*/
static int wdRefuse(char **pzErrMsg, const sqlite3_api_routines *pApi){
#if defined(SQLITE_CORE)
  (void)pzErrMsg; (void)pApi;
#else
  if( pApi->libversion_number()<WD_OLDEST_SQLITE ){
    *pzErrMsg = pApi->mprintf("waldio needs SQLite %d.%d or newer, and this is %s",
        WD_OLDEST_SQLITE/1000000, WD_OLDEST_SQLITE/1000%1000, pApi->libversion());
    return 1;
  }
  if( sqlite3_api && sqlite3_api!=pApi ){
    *pzErrMsg = pApi->mprintf("waldio serves another SQLite of this process, and "
        "each needs a copy of its file, by another name");
    return 1;
  }
#endif
  return 0;
}

/*
** As an automatic extension this runs for every new connection and must not
** change the default VFS each time.
*/
static int wdInit(
  char **pzErrMsg, const sqlite3_api_routines *pApi, int bDefault
){
  int rc = SQLITE_OK;
  if( wdRefuse(pzErrMsg, pApi) ) return SQLITE_ERROR;
  SQLITE_EXTENSION_INIT2(pApi);
  if( bDefault || sqlite3_vfs_find("waldio")==0 ){
    rc = wdRegister(bDefault);
  }else if( sqlite3_vfs_find("waldio")==&wdVfs.base ){
    /* sqlite3_shutdown() forgets it, and leaves the VFS. */
    rc = sqlite3_auto_extension((void(*)(void))wdConnection);
  }
  /* The VFS outlives the connection that loaded it. */
  return rc==SQLITE_OK ? SQLITE_OK_LOAD_PERMANENTLY : rc;
}

/* sqlite3_auto_extension() takes SQLITE_OK_LOAD_PERMANENTLY for an error. */
static int wdLoaded(sqlite3 *db, char **pzErrMsg, int rc){
  int rcDb = SQLITE_OK;
  if( rc!=SQLITE_OK && rc!=SQLITE_OK_LOAD_PERMANENTLY ) return rc;
  /* The waldio_stat of another build shows the databases of its VFS. */
  if( sqlite3_vfs_find("waldio")==&wdVfs.base ){
    rcDb = wdConnection(db, pzErrMsg, 0);
  }
#if defined(SQLITE_CORE)
  rc = rcDb;
#endif
  /* An error would have SQLite unload what is registered. */
  (void)rcDb;
  return rc;
}

int sqlite3_waldio_init(
  sqlite3 *db, char **pzErrMsg, const sqlite3_api_routines *pApi
){
  int rc = wdInit(pzErrMsg, pApi, 0);
  return wdLoaded(db, pzErrMsg, rc);
}

int sqlite3_waldio_default_init(
  sqlite3 *db, char **pzErrMsg, const sqlite3_api_routines *pApi
){
  int rc = wdInit(pzErrMsg, pApi, 1);
  return wdLoaded(db, pzErrMsg, rc);
}
