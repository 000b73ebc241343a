/*
** waldio: a SQLite write-ahead log in aligned blocks.
**
** This file is a VFS shim and a loadable extension.  It needs SQLite 3.40 or
** newer and Linux, and stands over SQLite's default VFS.
**
** SQLite appends frames of 24 + page size bytes to its log, in two writes each.
** None of them is aligned, and nearly all of them make the file longer, so that
** one small commit writes two or three filesystem blocks and then, as the file
** grew, the filesystem's own journal.  waldio stores the same frames in slots
** of whole sectors, in a file that is extended ahead of time with initialised
** blocks and used again by the next session: a commit is one aligned write that
** changes no metadata.  The idea is from "WALDIO: Eliminating the Filesystem
** Journaling in Resolving the Journaling of Journal Anomaly" (USENIX ATC 2015),
** section 5: preallocation with explicit journaling, and header embedding.
** SQLite sees the log it knows; checkpoints, recovery, snapshots and the
** wal-index are SQLite's own.
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
**
** USE
**
** Every WAL database opened through the VFS gets a log of waldio's, new ones
** and old ones, if
**
**   *  it is on ext4, XFS or F2FS and has O_DIRECT.  A file that is never
**      overwritten in place gains nothing; its log stays SQLite's.
**   *  a write leaves the bytes around it alone even if power fails during it,
**      as SQLite takes for granted unless it is told otherwise (psow=0).
**   *  the first connection is alone.  One of stock SQLite that is open already
**      keeps the log a stock one until all are closed.
**
** Column "reason" of the table waldio_stat tells why a log is a stock one.
** PRAGMA journal_mode=waldio is PRAGMA journal_mode=wal, tells "waldio" if the
** log is waldio's, and changes a stock log to one.  These parameters of the URI
** file:app.db?vfs=waldio&... decide otherwise:
**
**     waldio=off             leave the log a stock one
**     waldio=force           on any filesystem
**     waldio_reserve=N       reserved bytes per page of a new database, 24 if
**                            not given; less than 24 means layout T, not W
**     waldio_padding=N       as PRAGMA waldio_padding
**
** Options of a connection, each readable without "=...":
**
**     PRAGMA waldio_sync=full      a commit is durable if synchronous=FULL
**     PRAGMA waldio_sync=persistent  ... whatever synchronous is, each by a
**                                  durable write of its own
**     PRAGMA waldio_sync=normal    a commit is written and not flushed, even
**                                  if synchronous=FULL
**     PRAGMA waldio_sync='group'   a commit is durable a little later:
**     PRAGMA waldio_group_frames=N   before N frames (64 if not set) and
**     PRAGMA waldio_group_ms=T       before T milliseconds (10) wait for it
**     PRAGMA waldio_durable_reads=1  read no commit that is not yet durable;
**                                  0 if not set
**     PRAGMA waldio_padding=N      layout P with slots of a multiple of 512,
**                                  4096 or 8192 bytes; 0 chooses the layout
**                                  by itself.  From the next restart of the
**                                  log on.
**     PRAGMA waldio_prealloc=N     first step the log is extended by, 64 KiB if
**                                  not set; each doubles the file, until steps
**                                  are 1 MiB.  0: never, as for commits that
**                                  are not flushed.
**     PRAGMA waldio_recycle=0      delete the log at the last close
**     PRAGMA waldio_reserve=N      reserved bytes from the next VACUUM on
**     PRAGMA waldio_layout         W, T, P, stock or none
**
**     SELECT * FROM waldio_stat    what was done, per database
**
** LAYOUTS
**
** In all of them a slot begins at a multiple of a sector.  Which one is used is
** decided anew whenever the log is restarted:
**
**   W  for pages that reserve 24 bytes or more, as in a database made by waldio
**      or VACUUMed with it: the frame header takes their place, a slot is as
**      large as a page.
**   T  for every other database: the frame header lies in the same place, and
**      the 28 bytes it displaces are moved to where the page has zeros, or has
**      bits that are zero in every cell pointer.  The few pages that have no
**      such room, as overflow pages of random bytes, cost a block more.
**   P  the page, the header, and padding up to the next sector: where so many
**      pages of the last log had no room that T cost more than the padding,
**      where a page is smaller than the sector of O_DIRECT, and on demand.
**
** WHAT A COMMIT DOES
**
** In synchronous=FULL the frames of a commit are one pwritev2() with O_DIRECT
** and RWF_DSYNC, if all that any process wrote before is durable; otherwise
** they go through the page cache and fdatasync() follows.  In NORMAL they go
** through the page cache, aligned.
**
** When several connections commit at once, in one process or in many, a commit in
** FULL does not flush while it has the WRITE lock.  It is visible to others then,
** and its COMMIT returns only when it is durable: one of those that wait flushes
** for all (SQLITE_FCNTL_COMMIT_PHASETWO, after the lock is released; an error
** there is COMMIT's error).  The read lock is held meanwhile.  So that there are
** others to write, the WRITE lock goes round among all threads of all processes
** in the order they asked for it, as long as the busy handler sleeps through the
** VFS; sqlite3_busy_timeout()'s does.  Before it queues, a thread yields its CPU a
** few times, for the lock is held shortly.  The queue is in the wal-index.  Whoever
** dies in it costs the others 10 ms, who dies while it flushes, 100 ms.  Where a
** flush takes long, it waits for half that time, 2 ms at most, for those whose
** commits the last one made durable: they are likely to commit again.
**
** SQLite checkpoints at the end of the COMMIT that makes the log 1000 frames long
** (PRAGMA wal_autocheckpoint), and it restarts the log when a writer begins and
** finds all of it in the database.  Writers without a pause never find that, and
** the log would grow for ever.  So when connections commit at once, the checkpoint
** of a COMMIT is a slice of the work.  One that finds much to copy copies it while
** the others write, and flushes the database.  One that finds little takes the
** WRITE lock, and holds it while it copies the last frames, flushes the database,
** and the readers of the log leave (the time of two flushes, 5 ms at most); the
** next writer restarts the log.  It has precedence for the lock at a moment when
** the log is durable, so that it needs not flush that, too, and queues if there is
** none for the time of four flushes (10 ms at most).  Where readers stay the next
** such slice waits 10 ms, then twice as long and so on, 320 ms at most.  That is
** all in the connection that commits: waldio starts no thread.
**
** What was written with O_DIRECT is not in the page cache, and a checkpoint would
** read it page by page.  Where that would be many pages it has them read ahead.
**
** In waldio_sync=group a commit is written through the page cache and returns,
** so the death of the process loses nothing.  A thread flushes the log when
** the oldest commit has waited T milliseconds, even if no other follows; the
** COMMIT that makes it N frames flushes before it returns, and so does the
** close of the connection.  A power loss costs commits with less than N frames
** in all, of the last T milliseconds and the time of a flush, and always the
** last ones: frames are chained by their checksums.  (If the process dies, the
** next flush by any connection makes its last commits durable, or the kernel's
** writeback.)  If the thread's flush fails, the next COMMIT says so.
**
** With waldio_durable_reads=1 a transaction that reads a page of the log first
** waits until all that was committed when it began is durable.
**
** The sync of the log's header at each restart is kept: without it, recovery
** could replay frames of the generation before.  When a flush fails the log is
** poisoned: all later commits fail until every connection has closed the
** database, for nobody knows what the file holds.
**
** GUARDS
**
** Stock SQLite cannot read the log, and must not take the database for one
** that has none.  While a log of waldio's is in use, in normal operation and
** after a crash, stock SQLite gets an error and changes nothing:
**
**   *  the log's header has a version it does not know (SQLITE_CANTOPEN, seen
**      by recovery);
**   *  byte 19 of page 1, the version needed to read the file, is 0x57, in the
**      database and in the log (SQLITE_NOTADB; 3 is taken by SQLite's wal2
**      branch); in the database it is 0x56 until a log is first flushed, as SQLite
**      does with its header, and again before the log is emptied;
**   *  the first 32768 bytes of the wal-index are a header of an unknown
**      version (SQLITE_CANTOPEN).  This one holds for connections that look at
**      no page, such as a checkpoint at close.
**
** SQLite above the shim sees 2 in byte 19.  When the last connection closes the
** database, or journal_mode=delete is set, byte 19 is 2 or 1 again and the log
** is empty or gone: any SQLite can use the file.  (If nothing was written, that
** is not flushed: after a power loss it may take waldio to open it once more.)
** A database with 0x57 whose log is gone is not opened, as commits are lost;
** 0x57 is written when the log's name is durable, and taken back before the log
** is emptied.  (Where stock SQLite began the log, it stays 0x56 until the log is
** begun anew: stock SQLite may copy such a log, and delete it.)
**
** LIMITS
**
** As with any SQLite database, the log has the name of the database, and both
** are to be moved together, when nobody uses them.  A file of several names
** (hard links) keeps a stock log; by a name other than the one it is open by, a
** database is refused (SQLITE_CANTOPEN; sqlite3_config(SQLITE_CONFIG_LOG) tells
** why).  So is a log whose pages have another size than the database's.
**
** Programs that read the log themselves (Litestream) cannot follow.  The
** cksumvfs extension wants 8 reserved bytes, layout W 24: with cksumvfs,
** layout T is used (waldio_reserve=8).  A commit is atomic across attached databases as far as it
** is in WAL mode: in each of them, not over all.  A connection that is told
** not to checkpoint when it closes (SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE) leaves
** the log behind, and the database closed to stock SQLite; so may processes
** that close it at the same moment.  A reader that stays keeps the log from
** being restarted, as ever.
**
** FILE FORMAT
**
** All numbers are big-endian.  The log is block 0 and slots, numbered like
** SQLite's frames from 1.  Block 0, 4096 bytes:
**
**     offset  size  content
**          0    24  SQLite's log header, with 0x57414c31 as version (at 4)
**         24     8  its checksum, as in wal.c, over the 24 bytes before
**         32     8  "waldio 2"
**         40     1  layout: 1 is P, 2 is W, 3 is T
**         41     3  zero
**         44     4  slot size
**         48    12  zero
**         60     4  CRC-32C of the 60 bytes before
**         64  4032  zero
**
** The first 32 bytes are zero in a log that is empty and kept for its blocks.
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
** If any of these 24 bytes is not zero then the last 28, the page's tail, lie
** elsewhere.  The frame header says so, see wdEscape(), and the slot is:
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
** In all, byte 19 of page 1 is 0x57.  All checksums of frames are those of
** SQLite, over what SQLite sees, so recovery is SQLite's own too.  Slots past
** the last valid frame hold zeros or older frames.
**
** The wal-index has a region of 32768 bytes before SQLite's regions:
**
**          0    48  a WalIndexHdr of SQLite's wal.c with version 0x57414c31
**         48    48  the same again
**        512        struct WdShared, elsewhere in other versions of the format
**
** As the wal-index itself, it is in host byte order and lost in a crash.
*/
#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif
#if defined(SQLITE_CORE)
# include "sqlite3.h"
# define SQLITE_EXTENSION_INIT1
# define SQLITE_EXTENSION_INIT2(pApi) (void)(pApi)
/* Not in a build without threads. */
# pragma weak sqlite3_mutex_alloc
# pragma weak sqlite3_mutex_free
#else
# include "sqlite3ext.h"
SQLITE_EXTENSION_INIT1
#endif
#include "waldio.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* Newer than some headers it is built with. */
#ifndef FALLOC_FL_WRITE_ZEROES
# define FALLOC_FL_WRITE_ZEROES 0x80    /* Linux 6.17, linux/falloc.h */
#endif

typedef unsigned char u8;
typedef unsigned int u32;
typedef sqlite3_int64 i64;
typedef sqlite3_uint64 u64;
typedef struct WdBase WdBase;
typedef struct WdDb WdDb;
typedef struct WdLayout WdLayout;
typedef struct WdLog WdLog;
typedef struct WdShared WdShared;

/* SQLite's own WAL format, from the head of its wal.c. */
#define WAL_HDRSIZE        32     /* Size of the log's header */
#define WAL_FRAME_HDRSIZE  24     /* Size of a frame's header */
#define WAL_VERSION        3007000
#define WAL_MAGIC          0x377f0682
#define WAL_WRITE_LOCK     0      /* Lock bytes in the wal-index */
#define WAL_CKPT_LOCK      1
#define WAL_READ_LOCK0     3
#define WAL_NREADER        5

/* The format of this file's head. */
#define WD_WAL_VERSION     0x57414c31   /* In place of WAL_VERSION */
#define WD_INDEX_VERSION   0x57414c31   /* In the guard region */
#define WD_MARK            0x57   /* Byte 19 of page 1, above 2 */
#define WD_MARK_EMPTY      0x56   /* ... where the log holds nothing */
#define WD_BLOCK0          4096   /* Size of block 0 */
#ifndef WD_FORMAT
# define WD_FORMAT         2      /* Version; tests build another one too */
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
#define WD_RUN             (256*1024)   /* Frames written at once */
#define WD_AHEAD           (128*1024)   /* Bytes read ahead at once */
#define WD_MXPREALLOC      (4*1024*1024)
#define WD_MXSTEP          (1024*1024)  /* 1000 frames need little over 4 MiB */
#define WD_NWAIT           64     /* Places in the queue of writers */
#define WD_TURN_US         10000  /* A turn not taken is over */
#define WD_SLEEP_US        10000  /* A waiting thread looks again */
#define WD_MXSLEEP_US      1000000    /* SQLite's busy handler sleeps less */
#define WD_CLOSE_TRIES     100
#define WD_YIELDS          20     /* Times a thread yields before it queues */
#define WD_MXFREE          10     /* Then somebody has it who does not queue */
#define WD_FLUSH_US        100000 /* Who flushes longer is taken for dead */
#define WD_GROUP_COMMITS   32     /* Commits without a wait that end a group */
#define WD_GATHER_MIN_US   50     /* A flush for many waits so long, or not, */
#define WD_GATHER_MAX_US   2000   /* for those who just committed, or this long */
#define WD_GATHER_MXFAIL   5      /* When they did not come, not 2^5 times */
#define WD_PAUSE_MAX_US    5000   /* How long a checkpoint waits for readers: two
                                  ** flushes, a millisecond, but no more */
#define WD_QUIET_MAX_US    10000  /* ... and before that, for a durable log: four */
#define WD_CKPT_FEW        100    /* Frames copied while writers wait, or this */
#define WD_CKPT_SHARE      4      /* part of those that were copied before */
#define WD_CKPT_AGAIN_US   10000  /* No other one if readers were in the way, */
#define WD_CKPT_MXFAIL     5      /* and twice as long, up to so many times */

#define WD_CKPT_WAIT_US    20000  /* How long a COMMIT waits to end one */

/* waldio_sync */
#define WD_SYNC_FULL       0
#define WD_SYNC_PERSISTENT 1
#define WD_SYNC_NORMAL     2
#define WD_SYNC_GROUP      3

/*
** Where the frames of a log are.
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
  u64 iWritten;                   /* Unsynced writes begun and ended */
  u64 iDurable;                   /* What had ended when a flush began */
  u32 mLayout;                    /* wdLayoutWord(), 0 if not known yet */
  u32 bPoison;                    /* A flush failed: no commit any more */
  u64 nFrames;                    /* Frames in writes that ended */
  u64 nFramesDurable;             /* Those of them in iDurable, or less */
  u32 nGroup;                     /* >0: several connections commit at once */
  u32 iFlushing;                  /* wdStamp() of a flush for several, or 0 */
  u32 iFlushed;                   /* Such flushes that ended */
  u32 iHolder;                    /* 1 while the WRITE lock is held */
  u32 iTicket;                    /* The last ticket given out */
  u64 iTurn;                      /* Ticket<<32 | wdStamp(), or 0 */
  u32 aWait[WD_NWAIT];            /* Tickets of those who wait, or 0 */
  u32 nAsked;                     /* Commits that asked for a flush */
  u32 nServed;                    /* Those of them before the last one began */
  u32 nExpect;                    /* So many more are likely to ask soon */
  u32 iGather;                    /* nAsked that a flush waits for, or 0 */
  u32 nFlushUs;                   /* How long such a flush takes */
  u32 nGatherFail;                /* Times in a row that they did not come */
  u32 nGatherSkip;                /* Flushes that do not wait, therefore */
  u32 bQueue;                     /* 0 if nothing is in aWait[] */
  u32 iCkpt;                      /* Ticket of a checkpointer that waits, or 0 */
};

/* What is counted; columns of waldio_stat. */
#define WD_STAT_COMMITS     0     /* Transactions written to the log */
#define WD_STAT_FRAMES      1     /* Frames appended */
#define WD_STAT_BYTES       2     /* Bytes written to the log, zeros included */
#define WD_STAT_DURABLE     3     /* Commits that were one durable write */
#define WD_STAT_FLUSHES     4     /* Other flushes of the log */
#define WD_STAT_PREALLOCS   5     /* Times the log was extended ahead */
#define WD_STAT_FALLBACKS   6     /* Times something faster did not work */
#define WD_STAT_ESCAPES     7     /* Tails written to the tail block */
#define WD_STAT_GROUPS      8     /* Flushes that made other commits durable */
#define WD_STAT_WAITS       9     /* Commits that waited for such a flush */
#define WD_STAT_MOVED       10    /* Tails moved to another place of the page */
#define WD_STAT_WRITEZEROES 11    /* Extensions by FALLOC_FL_WRITE_ZEROES */
#define WD_STAT_CHECKPOINTS 12    /* Checkpoints of the checkpointer */
#define WD_STAT_WAIT_US     13    /* Microseconds of WD_STAT_WAITS, and */
#define WD_STAT_WAIT_MAX    14    /* the longest */
#define WD_STAT_QUEUED      15    /* Times a thread waited for its turn, */
#define WD_STAT_QUEUE_US    16    /* for how long, */
#define WD_STAT_QUEUE_MAX   17    /* and the longest */
#define WD_STAT_AHEAD       18    /* Checkpoints that had the log read ahead */
#define WD_STAT_HOLDS       19    /* Times a checkpointer had the WRITE lock, */
#define WD_STAT_HELD_US     20    /* for how long, */
#define WD_STAT_HELD_MAX    21    /* and the longest */
#define WD_STAT_QUIET       22    /* Those that began with a durable log */
#define WD_STAT_NCOUNT      23

/*
** One database in this process, however many handles are open on it.
*/
struct WdBase {
  WdBase *pNext;                  /* In wd.pBases */
  char *zName;
  u64 iDev, iInode;               /* Its file, or 0,0 */
  int nHandle;                    /* Handles */
  u32 mLayout;                    /* Of the log as last seen */
  const char *zReason;            /* Why the log is a stock one, or NULL */
  i64 aStat[WD_STAT_NCOUNT];      /* Indexed by WD_STAT_... */
  WdDb *pClosing;                 /* Closes and is not the last; atomic */
  int nShared;                    /* Handles with a SHARED lock; atomic */
  u32 nWritten, nSpill;           /* Frames written since the log's restart, and
                                  ** runs with a tail to spill; atomic */
  u8 bSynced;                     /* The database was, with its mark; atomic */
  u8 bSyncFailed;                 /* ... or could not be; atomic */
  pid_t pid;                      /* Threads do not outlive a fork() */
  pthread_mutex_t timer;          /* Guards the thread: */
  pthread_cond_t timed;           /* Something below changed */
  WdLog *pTimed;                  /* Logs that the thread may flush by */
  WdLog *pTiming;                 /* The one it does it by now */
  i64 iDue;                       /* When the flush is due, or 0 */
  u64 iDueTo;                     /* What is to be durable then */
  u8 bTimer;                      /* The thread was started */
  u8 bStop;                       /* It has to end */
  pthread_t timerThread;
  i64 iNextCkpt;                  /* No checkpoint before that lets writers wait */
  int nCkptFail;                  /* How often one failed in a row */
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
  int eLock;                      /* SQLITE_LOCK_... held */
  int nReserve;                   /* Reserved bytes per page */
  int szPad;                      /* waldio_padding, 0 for the sector size */
  int szSector;                   /* What O_DIRECT asks for */
  int szPrealloc;                 /* waldio_prealloc */
  u8 bWant;                       /* Use waldio if this is a WAL database */
  u8 bMarked;                     /* Byte 19 is a mark: the log is waldio's */
  u8 bNeedsLog;                   /* ... WD_MARK, at the first lock */
  u8 bReadonlyShm;                /* pShared must not be written */
  u8 bQuiet;                      /* A checkpoint waits for a durable log */
  u8 bCkptLock;                   /* Holds the CKPT lock alone, */
  u64 iCkptSalt;                  /* ... since the log had these salts, or 0 */
  void volatile *pIndex;          /* SQLite's first region of the wal-index */
  u8 bAfterCommit;                /* A checkpoint now is a COMMIT's */
  u8 bSlice;                      /* ... or a part of the work, */
  u8 bFinish;                     /* ... or the end of it: has the WRITE lock */
  u8 bCkptSync;                   /* It flushes what it writes */
  u32 nBackfill;                  /* Frames in the database before it */
  i64 iReadersUntil;              /* When readers have to have left the log */
  u8 bHolder;                     /* Holds the WRITE lock, */
  u8 bJustLocked;                 /* and did nothing with it yet */
  u8 bClosing;                    /* SQLite closes the log, and nobody else has it */
  u8 bLastClose;                  /* ... and it is backfilled */
  u8 bWritten;                    /* ... and it, or the mark, was written */
  u8 bPersist;                    /* SQLITE_FCNTL_PERSIST_WAL is set */
  u8 bRecycle;                    /* waldio_recycle */
  u8 bKept;                       /* An empty log was left, for its blocks */
  u8 bByName;                     /* PRAGMA journal_mode=waldio */
  u8 eSync;                       /* waldio_sync, WD_SYNC_... */
  u8 bDurableReads;               /* waldio_durable_reads */
  u8 bUnused;                     /* Marked, and no log was opened since */
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
  int fd;                         /* For RWF_DSYNC and fdatasync, or -1 */
  u8 bDirect;                     /* wdWriteDurable() may work */
  u8 bSyncedDir;                  /* The lower xSync was called once */
  u8 bFull;                       /* The last commit was followed by xSync */
  u8 bCommitted;                  /* A commit is the last thing written */
  u8 bDurable;                    /* ... and it is durable */
  u8 bNeeded;                     /* It was noted that the log is needed ... */
  u64 iNeeded;                    /* ... that has these salts */
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
  u8 bSpill;                      /* A page of the run has no room for its tail */
  int iTail, nTail;               /* Frame of aTail[0], and entries in use */
  u8 aTail[WD_TAILBLOCK];         /* Tails of the run, for the tail block */
  void *pRunAlloc;                /* Allocation around aRun, which is aligned */
  WdLog *pNextTimed;              /* In WdBase.pTimed */
  u8 bTimed;                      /* ... where it is */
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
  pthread_mutex_t mutex;          /* Guards the lists and guard regions */
  pthread_mutex_t adopt;          /* Held while a database is taken over */
  WdDb *pDbs;                     /* Every open database handle */
  WdBase *pBases;                 /* Every open database */
  sqlite3_vfs *pLower;            /* The VFS below */
  u8 bUnix;                       /* pLower is SQLite's unix VFS */
} wd = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, 0, 0, 0, 0 };

static const u8 wdZeros[WD_CHUNK] = {0};
static sqlite3_vfs wdVfs;
static int wdDbSync(sqlite3_file*, int);

/* A reason that is not one for a stock log. */
static const char wdOther[] = "the log has the format of another version of "
                              "waldio; open and close it with that one";

static void wdCount(WdDb *p, int eStat, i64 n){
  __atomic_fetch_add(&p->pBase->aStat[eStat], n, __ATOMIC_RELAXED);
}

/* Microseconds of a clock that only runs forward. */
static i64 wdNow(void){
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (i64)t.tv_sec*1000000 + t.tv_nsec/1000;
}

/* Count a wait that began at iBegan: its number, total and longest. */
static void wdCountWait(WdDb *p, int eStat, int eTotal, i64 iBegan){
  i64 n = wdNow() - iBegan;
  i64 *pMax = &p->pBase->aStat[eTotal+1];
  i64 nMax = __atomic_load_n(pMax, __ATOMIC_RELAXED);
  wdCount(p, eStat, 1);
  wdCount(p, eTotal, n);
  while( n>nMax && !__atomic_compare_exchange_n(pMax, &nMax, n, 0,
                        __ATOMIC_RELAXED, __ATOMIC_RELAXED) ){}
}

/* That time as a mark in shared memory, never 0; it wraps after an hour. */
static u32 wdStamp(void){
  return (u32)wdNow() | 1;
}

/* Sleep while *p is i, for nMicro at most; wake all that do. */
static void wdFutexWait(u32 *p, u32 i, i64 nMicro){
  struct timespec t;
  t.tv_sec = (time_t)(nMicro/1000000);
  t.tv_nsec = (long)(nMicro%1000000)*1000;
  (void)syscall(SYS_futex, p, FUTEX_WAIT, i, &t, 0, 0);
}
static void wdFutexWake(u32 *p){
  (void)syscall(SYS_futex, p, FUTEX_WAKE, INT_MAX, 0, 0, 0);
}

/* A condition variable whose timeouts are in that time. */
static void wdCondInit(pthread_cond_t *p){
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(p, &attr);
  pthread_condattr_destroy(&attr);
}
static int wdCondWait(pthread_cond_t *p, pthread_mutex_t *pMutex, i64 iUntil){
  struct timespec t;
  t.tv_sec = (time_t)(iUntil/1000000);
  t.tv_nsec = (long)(iUntil%1000000)*1000;
  return pthread_cond_timedwait(p, pMutex, &t);
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
** A tail that is not zero goes where the page has zeros.  Most pages of a
** b-tree have such bytes between their cell pointers and their cells.  A full
** page, or one where that gap holds what was deleted, has zero bits instead: a
** cell pointer is below the page size, so in pages of 4096 bytes 56 of them
** hold 28 bytes in their topmost 4 bits.  Both together serve for fewer.
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

/* True if a tail is in its page; then its parts are as in the file's head. */
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

/* "waldio 2" */
static void wdLabel(u8 *a){
  memcpy(a, "waldio ", 7);
  a[7] = '0' + WD_FORMAT;
}

/*
** Turn the header SQLite writes into block 0, all of it zero before.
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

static int isPage1(const u8 *a, u8 eVersion){
  return a[19]==eVersion && memcmp(a, "SQLite format 3", 16)==0;
}
static int isMark(u8 eVersion){
  return eVersion==WD_MARK || eVersion==WD_MARK_EMPTY;
}

/* Show page 1 to SQLite as a page of a WAL database. */
static void wdShowPage1(WdDb *p, u8 *a){
  if( isPage1(a, WD_MARK) || isPage1(a, WD_MARK_EMPTY) ) a[19] = 2;
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
  return __atomic_load_n(&p->pDb->pShared->iWritten, __ATOMIC_SEQ_CST);
}
static void wdBeginWrite(WdLog *p){
  u64 i = wdWritten(p) | 1;
  __atomic_store_n(&p->pDb->pShared->iWritten, i, __ATOMIC_SEQ_CST);
}
static void wdEndWrite(WdLog *p){
  u64 i = wdWritten(p) + 1;
  __atomic_store_n(&p->pDb->pShared->iWritten, i, __ATOMIC_SEQ_CST);
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
  return __atomic_load_n(&p->pDb->pShared->bPoison, __ATOMIC_ACQUIRE)!=0;
}

/* After a failed flush nobody knows what is in the file: SQLite's log could
** be replayed with a gap.  So there is no commit until it is opened anew. */
static int wdPoison(WdLog *p, int rc){
  __atomic_store_n(&p->pDb->pShared->bPoison, 1, __ATOMIC_RELEASE);
  sqlite3_log(rc, "waldio: flushing the log of %s failed; close the database "
              "everywhere and open it again", p->pDb->pBase->zName);
  return rc;
}

/* Let *p reach iTo. */
static void wdReach(u64 *p, u64 iTo){
  u64 i = __atomic_load_n(p, __ATOMIC_ACQUIRE);
  while( i<iTo && !__atomic_compare_exchange_n(p, &i, iTo, 0,
                      __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE) ){}
}

static int wdSyncedDir(WdLog *p){
  return __atomic_load_n(&p->bSyncedDir, __ATOMIC_RELAXED);
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
** All of the log is in the database, and it is about to be emptied.  The database
** says so first, and for good: stock SQLite deletes an empty log.
*/
static int wdNeedNoLog(WdDb *p){
  int bChanged;
  int rc = wdRemark(p, WD_MARK, WD_MARK_EMPTY, &bChanged);
  if( rc!=SQLITE_OK || !bChanged ) return rc;
  return LOWER(p)->pMethods->xSync(LOWER(p), SQLITE_SYNC_NORMAL);
}

/*
** fdatasync(), as not every build of SQLite does; and fsync() if the file has
** grown.  On f2fs a checkpoint of the filesystem between write and fdatasync()
** can leave the file as long as it was (Linux 6.1; scripts/crash-states f2fs).
*/
static int wdSyncFile(WdLog *p){
  struct stat st;
  int rc;
  if( fstat(p->fd, &st)!=0 ) return SQLITE_IOERR_FSTAT;
  if( st.st_size==__atomic_load_n(&p->szSynced, __ATOMIC_RELAXED) ){
    rc = fdatasync(p->fd);
  }else{
    rc = fsync(p->fd);
    if( rc==0 ) __atomic_store_n(&p->szSynced, st.st_size, __ATOMIC_RELAXED);
  }
  return rc==0 ? SQLITE_OK : SQLITE_IOERR_FSYNC;
}

/*
** Make all that any process has written to the log durable.  The first flush
** goes through the lower VFS, which then also syncs the directory of a new
** file.
*/
static int wdFlush(WdLog *p, int flags){
  WdShared *pShared = p->pDb->pShared;
  u64 nFrames = __atomic_load_n(&pShared->nFrames, __ATOMIC_SEQ_CST);
  u64 iTo = wdWritten(p) & ~(u64)1;
  int rc;
  if( wdPoisoned(p) ) return SQLITE_IOERR_FSYNC;
  wdCount(p->pDb, WD_STAT_FLUSHES, 1);
  if( p->fd>=0 && wdSyncedDir(p) ){
    rc = wdSyncFile(p);
  }else{
    rc = LOWER(p)->pMethods->xSync(LOWER(p), flags);
  }
  if( rc!=SQLITE_OK ) return wdPoison(p, rc);
  __atomic_store_n(&p->bSyncedDir, 1, __ATOMIC_RELAXED);
  wdReach(&pShared->iDurable, iTo);
  wdReach(&pShared->nFramesDurable, nFrames);
  return SQLITE_OK;
}

/* The salts of the log, from SQLite's header of the wal-index; a restart of the
** log changes them. */
static u64 wdSalt(WdDb *p){
  u32 *a = (u32*)p->pIndex;
  if( a==0 ) return 0;
  return ((u64)__atomic_load_n(&a[8], __ATOMIC_SEQ_CST)<<32)
       | __atomic_load_n(&a[9], __ATOMIC_SEQ_CST);
}

/*
** Make the commits in the log durable.  From then on a log that is not there was
** lost: should that not be noted, it will go unnoticed, no more.  It is noted once
** for each log, since another connection may empty it.
*/
static int wdFlushCommits(WdLog *p, int flags){
  int rc = wdFlush(p, flags);
  u64 iSalt = wdSalt(p->pDb);
  if( rc==SQLITE_OK && !(p->bNeeded && p->iNeeded==iSalt)
   && __atomic_load_n(&p->pDb->pShared->mLayout, __ATOMIC_SEQ_CST)!=0
  ){
    int bChanged;
    p->iNeeded = iSalt;
    p->bNeeded = wdRemark(p->pDb, WD_MARK_EMPTY, WD_MARK, &bChanged)==SQLITE_OK;
  }
  return rc;
}

/*
** True if other connections commit at the same time, of this process or another
** one.  Then a commit does not flush under the WRITE lock: the next one writes
** meanwhile, and one flush serves all that wait for it.
*/
static int wdGroup(WdLog *p){
  return __atomic_load_n(&p->pDb->pShared->nGroup, __ATOMIC_RELAXED)>0;
}
static void wdSetGroup(WdShared *p){
  __atomic_store_n(&p->nGroup, WD_GROUP_COMMITS, __ATOMIC_RELAXED);
}
static void wdCountGroup(WdShared *p){
  u32 n = __atomic_load_n(&p->nGroup, __ATOMIC_RELAXED);
  if( n>WD_GROUP_COMMITS ) n = WD_GROUP_COMMITS;
  if( n>0 ) __atomic_store_n(&p->nGroup, n-1, __ATOMIC_RELAXED);
}

/*
** A commit is written, and a flush is to make it durable.  The WRITE lock is
** held.
*/
static void wdAsk(WdShared *p){
  u32 n = __atomic_add_fetch(&p->nAsked, 1, __ATOMIC_SEQ_CST);
  u32 iGather = __atomic_load_n(&p->iGather, __ATOMIC_SEQ_CST);
  if( iGather!=0 && (int)(n-iGather)>=0
   && __atomic_compare_exchange_n(&p->iGather, &iGather, 0, 0,
           __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
  ){
    wdFutexWake(&p->iGather);
  }
}

/*
** A flush for many is about to begin.  Those whose commits the last one made
** durable are likely to commit again at once, and would miss this one: two halves
** of the writers would wait for each other's flush.  So it waits for them, for
** half the time of a flush at most.  Where they do not come it waits seldom, and
** never where a flush is as fast as a commit.
*/
static void wdGather(WdShared *p){
  i64 nLeft = __atomic_load_n(&p->nFlushUs, __ATOMIC_RELAXED)/2;
  u32 nSkip = __atomic_load_n(&p->nGatherSkip, __ATOMIC_RELAXED);
  u32 nAsked = __atomic_load_n(&p->nAsked, __ATOMIC_SEQ_CST);
  u32 iGoal = __atomic_load_n(&p->nServed, __ATOMIC_SEQ_CST)
            + __atomic_load_n(&p->nExpect, __ATOMIC_RELAXED);
  int nMissing = (int)(iGoal-nAsked);
  i64 iUntil;
  u32 nFail;
  if( nLeft<WD_GATHER_MIN_US || nMissing<=0 || iGoal==0 ) return;
  if( nSkip>0 ){
    __atomic_store_n(&p->nGatherSkip, nSkip-1, __ATOMIC_RELAXED);
    return;
  }
  if( nLeft>WD_GATHER_MAX_US ) nLeft = WD_GATHER_MAX_US;
  iUntil = wdNow() + nLeft;
  __atomic_store_n(&p->iGather, iGoal, __ATOMIC_SEQ_CST);
  do{
    nAsked = __atomic_load_n(&p->nAsked, __ATOMIC_SEQ_CST);
    if( (int)(iGoal-nAsked)<=0 ) break;
    wdFutexWait(&p->iGather, iGoal, nLeft);
    nLeft = iUntil - wdNow();
  }while( nLeft>0 );
  __atomic_store_n(&p->iGather, 0, __ATOMIC_SEQ_CST);
  nAsked = __atomic_load_n(&p->nAsked, __ATOMIC_SEQ_CST);
  nFail = __atomic_load_n(&p->nGatherFail, __ATOMIC_RELAXED);
  if( (int)(iGoal-nAsked)<=nMissing/2 ){
    nFail = 0;
  }else if( nFail<WD_GATHER_MXFAIL ){
    nFail++;
  }else{
    nFail = WD_GATHER_MXFAIL;
  }
  __atomic_store_n(&p->nGatherFail, nFail, __ATOMIC_RELAXED);
  __atomic_store_n(&p->nGatherSkip, nFail ? 1u<<nFail : 0, __ATOMIC_RELAXED);
}

/* Flush for all that wait, and remember how many did, and how long it took. */
static int wdFlushAll(WdLog *p){
  WdShared *pShared = p->pDb->pShared;
  u32 nBefore, nServed, nTook, nOld;
  i64 iBegin;
  int rc;
  wdGather(pShared);
  iBegin = wdNow();
  nBefore = __atomic_load_n(&pShared->nServed, __ATOMIC_SEQ_CST);
  nServed = __atomic_load_n(&pShared->nAsked, __ATOMIC_SEQ_CST);
  __atomic_store_n(&pShared->nServed, nServed, __ATOMIC_SEQ_CST);
  rc = wdFlushCommits(p, SQLITE_SYNC_NORMAL);
  nTook = (u32)(wdNow() - iBegin);
  nOld = __atomic_load_n(&pShared->nFlushUs, __ATOMIC_RELAXED);
  __atomic_store_n(&pShared->nFlushUs, nTook/4 + nOld/4*3, __ATOMIC_RELAXED);
  __atomic_store_n(&pShared->nExpect,
      __atomic_load_n(&pShared->nAsked, __ATOMIC_SEQ_CST) - nBefore,
      __ATOMIC_RELAXED);
  return rc;
}

/*
** True if all that was written to the log is durable.  Nobody knows that of a log
** that was there before the wal-index, as after the death of all processes: then
** iWritten is 0.
*/
static int wdAllDurable(WdLog *p){
  u64 iDurable = __atomic_load_n(&p->pDb->pShared->iDurable, __ATOMIC_SEQ_CST);
  u64 iWritten = wdWritten(p);
  return iWritten!=0 && iDurable>=iWritten;
}

/* True if a ticket has the turn to write, and did not miss it. */
static int wdTurnTaken(u64 iTurn){
  return iTurn!=0 && wdStamp()-(u32)iTurn<WD_TURN_US;
}

/* True if the WRITE lock is free and nobody was called to take it. */
static int wdIsFree(WdShared *pShared){
  return __atomic_load_n(&pShared->iHolder, __ATOMIC_SEQ_CST)==0
      && !wdTurnTaken(__atomic_load_n(&pShared->iTurn, __ATOMIC_SEQ_CST));
}

static void wdGiveTurn(WdShared *pShared, u32 iTicket){
  u64 iTurn = ((u64)iTicket<<32) | wdStamp();
  __atomic_store_n(&pShared->iTurn, iTurn, __ATOMIC_SEQ_CST);
}

/* Call the one who is next; its place in the queue is free again. */
static void wdCall(u32 *pNext, u32 iTicket){
  if( pNext && __atomic_compare_exchange_n(pNext, &iTicket, 0, 0,
                   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ){
    wdFutexWake(pNext);
  }
}

/*
** All that was written is durable, and nobody writes: the moment for a checkpointer
** to have the WRITE lock, for now it needs not flush the log while it holds it.
*/
static void wdCallCkpt(WdLog *p){
  WdShared *pShared = p->pDb->pShared;
  u32 iTicket = __atomic_load_n(&pShared->iCkpt, __ATOMIC_SEQ_CST);
  if( iTicket==0 || !wdAllDurable(p) || !wdIsFree(pShared) ) return;
  wdGiveTurn(pShared, iTicket);
  wdCall(&pShared->iCkpt, iTicket);
}

/*
** Wait until all writes up to iTo are durable.  The first that comes flushes;
** those that come meanwhile wait, and the first of them flushes for all next.
** Flushes may overlap, so whoever believes that the other one died may flush.
*/
static int wdWaitDurable(WdLog *p, u64 iTo){
  WdShared *pShared = p->pDb->pShared;
  int bWaited = 0;
  i64 iBegin = wdNow();
  int rc = SQLITE_OK;
  while( rc==SQLITE_OK ){
    u32 iSeq = __atomic_load_n(&pShared->iFlushed, __ATOMIC_SEQ_CST);
    u32 iBegan = __atomic_load_n(&pShared->iFlushing, __ATOMIC_SEQ_CST);
    u32 iNow = wdStamp();
    if( __atomic_load_n(&pShared->iDurable, __ATOMIC_SEQ_CST)>=iTo ) break;
    if( wdPoisoned(p) ){
      rc = SQLITE_IOERR_FSYNC;
    }else if( iBegan && iNow-iBegan<WD_FLUSH_US ){
      bWaited = 1;
      wdFutexWait(&pShared->iFlushed, iSeq, WD_FLUSH_US);
    }else if( __atomic_compare_exchange_n(&pShared->iFlushing, &iBegan, iNow, 0,
                  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ){
      wdCount(p->pDb, WD_STAT_GROUPS, 1);
      rc = wdFlushAll(p);
      __atomic_compare_exchange_n(&pShared->iFlushing, &iNow, 0, 0,
          __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
      __atomic_fetch_add(&pShared->iFlushed, 1, __ATOMIC_SEQ_CST);
      if( rc==SQLITE_OK ) wdCallCkpt(p);
      wdFutexWake(&pShared->iFlushed);
    }
  }
  if( bWaited ){
    wdSetGroup(pShared);
    wdCountWait(p->pDb, WD_STAT_WAITS, WD_STAT_WAIT_US, iBegin);
  }
  return rc;
}

/*
** The thread that flushes for waldio_sync=group, by any log that has something
** to flush.  A failure poisons the log, so that the next commit fails.
*/
static void *wdTimerMain(void *pArg){
  WdBase *p = (WdBase*)pArg;
  pthread_mutex_lock(&p->timer);
  while( !p->bStop ){
    if( p->iDue==0 || p->pTimed==0 ){
      pthread_cond_wait(&p->timed, &p->timer);
    }else if( wdNow()<p->iDue ){
      (void)wdCondWait(&p->timed, &p->timer, p->iDue);
    }else{
      WdLog *pLog = p->pTimed;
      u64 iTo = p->iDueTo;
      p->iDue = 0;
      p->pTiming = pLog;
      pthread_mutex_unlock(&p->timer);
      (void)wdWaitDurable(pLog, iTo);
      pthread_mutex_lock(&p->timer);
      p->pTiming = 0;
      pthread_cond_broadcast(&p->timed);
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

/* Start the thread, which takes none of the program's signals.  It holds no mutex
** but WdBase.timer, which the child of a fork() has no use for. */
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

/*
** A commit in waldio_sync=group.  The thread will flush it in time, unless too
** many frames wait already or there can be no thread.
*/
static int wdWaitGroup(WdLog *p, u64 iTo){
  WdDb *pDb = p->pDb;
  WdBase *pBase = pDb->pBase;
  WdShared *pShared = pDb->pShared;
  u64 n = __atomic_load_n(&pShared->nFramesDurable, __ATOMIC_SEQ_CST);
  int bTimer;
  n = __atomic_load_n(&pShared->nFrames, __ATOMIC_SEQ_CST) - n;
  if( n>=(u64)pDb->nGroupFrames || pDb->msGroup==0 ){
    return wdWaitDurable(p, iTo);
  }
  pthread_mutex_lock(&pBase->timer);
  while( pBase->bStop ) pthread_cond_wait(&pBase->timed, &pBase->timer);
  if( !pBase->bTimer ){
    pBase->bTimer = (u8)wdStartTimer(pBase);
  }
  bTimer = pBase->bTimer;
  if( bTimer ){
    i64 iDue = wdNow() + (i64)pDb->msGroup*1000;
    if( !p->bTimed ){
      p->pNextTimed = pBase->pTimed;
      pBase->pTimed = p;
      p->bTimed = 1;
    }
    if( pBase->iDueTo<iTo ) pBase->iDueTo = iTo;
    if( pBase->iDue==0 || iDue<pBase->iDue ){
      pBase->iDue = iDue;
      pthread_cond_broadcast(&pBase->timed);
    }
  }
  pthread_mutex_unlock(&pBase->timer);
  if( bTimer ) return SQLITE_OK;
  wdCount(pDb, WD_STAT_FALLBACKS, 1);
  return wdWaitDurable(p, iTo);
}

/*
** A log is about to be closed: its commits are flushed, and the thread must not
** use it any more.  With the last log the thread ends.  (The child of a fork() may
** close a connection of its parent's, but has no thread.)
*/
static void wdLeaveGroup(WdLog *p){
  WdBase *pBase = p->pDb->pBase;
  WdLog **pp;
  u64 iTo;
  if( !p->bTimed || pBase->pid!=getpid() ) return;
  pthread_mutex_lock(&pBase->timer);
  iTo = pBase->iDueTo;
  pthread_mutex_unlock(&pBase->timer);
  if( !wdPoisoned(p) ) (void)wdWaitDurable(p, iTo);
  pthread_mutex_lock(&pBase->timer);
  while( pBase->pTiming==p ) pthread_cond_wait(&pBase->timed, &pBase->timer);
  for(pp=&pBase->pTimed; *pp!=p; pp=&(*pp)->pNextTimed){}
  *pp = p->pNextTimed;
  p->bTimed = 0;
  if( pBase->pTimed==0 && !pBase->bStop ){
    int bTimer = pBase->bTimer;
    pBase->bStop = 1;
    pBase->iDue = 0;
    pBase->iDueTo = 0;
    pthread_cond_broadcast(&pBase->timed);
    pthread_mutex_unlock(&pBase->timer);
    if( bTimer ) pthread_join(pBase->timerThread, 0);
    pthread_mutex_lock(&pBase->timer);
    pBase->bTimer = pBase->bStop = 0;
    pthread_cond_broadcast(&pBase->timed);
  }
  pthread_mutex_unlock(&pBase->timer);
}

/*
** Write whole slots, durable on return: with O_DIRECT, or as the lower VFS can
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
  while( n>0 ){
    struct iovec v;
    ssize_t nDone;
    v.iov_base = (void*)a;
    v.iov_len = (size_t)n;
    nDone = pwritev2(p->fd, &v, 1, iOfst, RWF_DSYNC);
    if( nDone<=0 ){
      if( nDone<0 && errno==EINTR ) continue;
      if( errno==EINVAL || errno==EOPNOTSUPP || errno==ENOSYS ){
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
  __atomic_store_n(&p->szSynced, 0, __ATOMIC_RELAXED);
}

/* Append zeros up to szNew bytes, initialised and allocated. */
static int wdZeroFill(WdLog *p, i64 szNew){
  int rc = SQLITE_OK;
  i64 n;
  if( p->fd>=0 ){
    wdBeginWrite(p);
    rc = fallocate(p->fd, FALLOC_FL_WRITE_ZEROES, p->szFile, szNew-p->szFile);
    wdEndWrite(p);
    if( rc==0 ){
      wdCount(p->pDb, WD_STAT_WRITEZEROES, 1);
      p->szFile = szNew;
      return SQLITE_OK;
    }
    rc = SQLITE_OK;
  }
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
** The WRITE lock is held and slots up to offset iEnd are about to be written.
** Extend the file well beyond, so that the commits to come change no metadata.
** Its size is read again first: other processes extend it too, and zeros must
** never fall on their frames; with a restart they may have truncated it.  Without
** room the log is appended to, as SQLite does.
*/
static int wdPrealloc(WdLog *p, i64 iEnd){
  u64 iSalt = wdSalt(p->pDb);
  i64 szStep;
  int rc;
  if( iSalt!=p->iSized ) wdForgetSize(p);
  p->iSized = iSalt;
  if( iEnd<=p->szFile || !wdFlushesCommits(p) ) return SQLITE_OK;
  rc = LOWER(p)->pMethods->xFileSize(LOWER(p), &p->szFile);
  if( rc!=SQLITE_OK || iEnd<=p->szFile || p->pDb->szPrealloc==0 ) return rc;
  szStep = p->szFile<WD_MXSTEP ? p->szFile : WD_MXSTEP;
  if( szStep<p->pDb->szPrealloc ) szStep = p->pDb->szPrealloc;
  if( p->szFile+szStep>iEnd ) iEnd = p->szFile+szStep;
  wdCount(p->pDb, WD_STAT_PREALLOCS, 1);
  rc = wdZeroFill(p, roundUp(iEnd, WD_BLOCK0));
  if( rc==SQLITE_OK ) rc = wdFlush(p, SQLITE_SYNC_NORMAL);
  if( (rc & 0xff)==SQLITE_FULL ){
    wdCount(p->pDb, WD_STAT_FALLBACKS, 1);
    rc = SQLITE_OK;
  }
  return rc;
}

/**************************** Log: its layout *******************************/

static void wdUseLayout(WdLog *p, u32 m){
  p->lay = wdLayoutOf(m);
  p->mLayout = m;
  p->iDirect = p->iDirectEnd = 0;
  __atomic_store_n(&p->pDb->pBase->mLayout, m, __ATOMIC_RELAXED);
  sqlite3_free(p->pRunAlloc);
  p->pRunAlloc = 0;
  p->nRun = p->nTail = 0;
  p->bSpill = 0;
  p->iPend = 0;
}

/* Another version of waldio has the log, or had it when it crashed. */
static int wdOtherFormat(WdLog *p, const u8 *a){
  __atomic_store_n(&p->pDb->pBase->zReason, wdOther, __ATOMIC_RELAXED);
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
  const char *zOther = wdOther;
  WdLayout lay;
  u32 m = 0;
  int rc = wdLowRead(p, a, WD_SZLABEL, 0);
  if( rc!=SQLITE_OK && rc!=SQLITE_IOERR_SHORT_READ ) return rc;
  rc = wdDecodeBlock0(a, &lay);
  if( rc!=SQLITE_OK ) return wdOtherFormat(p, a);
  __atomic_compare_exchange_n(&p->pDb->pBase->zReason, &zOther, 0, 0,
                              __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  if( lay.eKind!=WD_NONE ) m = wdLayoutWord(&lay);
  if( !p->pDb->bReadonlyShm ){
    u32 mOld = 0;
    if( bForce ){
      __atomic_store_n(&pShared->mLayout, m, __ATOMIC_SEQ_CST);
    }else if( m && !__atomic_compare_exchange_n(&pShared->mLayout, &mOld, m, 0,
                         __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ){
      m = mOld;
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
  u32 m = __atomic_load_n(&p->pDb->pShared->mLayout, __ATOMIC_ACQUIRE);
  u8 a[WD_SZLABEL];
  if( m==0 ) return wdLearn(p, a, 0);
  if( m!=p->mLayout ) wdUseLayout(p, m);
  return SQLITE_OK;
}

/* Allocate aRun, which also serves as room for one slot. */
static int wdRunBuffer(WdLog *p){
  if( p->pRunAlloc ) return SQLITE_OK;
  p->mxRun = WD_RUN/p->lay.szSlot;
  p->pRunAlloc = sqlite3_malloc64((u64)p->mxRun*(u64)p->lay.szSlot + 4096);
  if( p->pRunAlloc==0 ) return SQLITE_IOERR_NOMEM;
  p->aRun = (u8*)(((uintptr_t)p->pRunAlloc + 4095) & ~(uintptr_t)4095);
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
  }else if( isPage1(aPage, WD_MARK) ){
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
      p->bSpill = 1;
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
  if( !p->bSpill && !isZero(&aSlot[n-WAL_FRAME_HDRSIZE], WAL_FRAME_HDRSIZE) ){
    p->bSpill = wdFindRoom(aSlot, n, get4(aHdr))==WD_SPILLED;
  }
  memcpy(&aSlot[n], aHdr, WAL_FRAME_HDRSIZE);
  n += WAL_FRAME_HDRSIZE;
  memset(&aSlot[n], 0, (size_t)(p->lay.szSlot - n));
  return SQLITE_OK;
}

/* Write the header of a frame whose page is in the file. */
static int wdStoreHdr(WdLog *p, u32 iFrame, const u8 *aHdr){
  u8 a[WAL_FRAME_HDRSIZE];
  int rc = SQLITE_OK;
  int bEscaped;
  if( wdEmbeds(&p->lay) ){
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
  if( rc==SQLITE_OK ) rc = wdLoadHdr(p, iFrame, aHdr, &bEscaped);
  if( rc==SQLITE_OK ) rc = wdMakeSlot(p, iFrame, p->aRun, aHdr, aPage);
  if( rc==SQLITE_OK ) rc = wdWriteTails(p);
  if( rc!=SQLITE_OK ) return rc;
  return wdLowWrite(p, p->aRun, p->lay.szSlot, wdSlot(&p->lay, iFrame));
}

/*
** What layout T costs is counted in all layouts: a block for each run that has
** a tail to spill.  See wdChoose().
*/
static void wdCountRun(WdBase *p, int nFrame, int bSpill){
  __atomic_fetch_add(&p->nWritten, (u32)nFrame, __ATOMIC_RELAXED);
  if( bSpill ) __atomic_fetch_add(&p->nSpill, 1, __ATOMIC_RELAXED);
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
  int rc = wdPrealloc(p, iOfst+n);
  if( rc==SQLITE_OK ) rc = wdWriteTails(p);
  if( rc!=SQLITE_OK ) return rc;
  if( bCommit && iOfst+n<=p->szFile && wdWantDurable(p) ){
    rc = wdWriteDurable(p, p->aRun, n, iOfst);
    if( rc==SQLITE_OK ){
      p->bDurable = 1;
      wdCount(p->pDb, WD_STAT_DURABLE, 1);
      if( p->iDirect==0 || p->iRun<p->iDirect ) p->iDirect = p->iRun;
      if( p->iRun+(u32)p->nRun>p->iDirectEnd ){
        p->iDirectEnd = p->iRun + (u32)p->nRun;
      }
    }
    if( rc!=SQLITE_NOTFOUND ) return rc;
  }
  rc = wdLowWrite(p, p->aRun, n, iOfst);
  __atomic_fetch_add(&pShared->nFrames, (u64)p->nRun, __ATOMIC_SEQ_CST);
  if( rc==SQLITE_OK && iOfst+n>p->szFile ) p->szFile = iOfst+n;
  return rc;
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
  wdCountRun(p->pDb->pBase, p->nRun, p->bSpill);
  p->nRun = 0;
  p->bSpill = 0;
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
  p->bSpill = 0;
  p->iPend = 0;
  p->bRecksum = 0;
}

/*
** True if SQLite may ignore what SQLITE_FCNTL_COMMIT_PHASETWO returns, as
** vdbeCommit() does for a transaction with a super-journal: one that also writes
** two databases with rollback journals.  (A temporary one, number 1, has none.)
*/
static int wdMayIgnore(WdDb *p){
  sqlite3 *db = p->ppDb ? *p->ppDb : 0;
  int i, nWrite = 0;
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
  if( p->bDurable ) return SQLITE_OK;
  if( eSync==WD_SYNC_PERSISTENT && wdMayIgnore(p->pDb) ){
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
    p->bSpill = 0;
  }
  rc = wdMakeSlot(p, iFrame, &p->aRun[(i64)p->nRun*p->lay.szSlot], aHdr, aPage);
  if( rc!=SQLITE_OK ) return rc;
  p->nRun++;
  if( bCommit ) wdCountGroup(p->pDb->pShared);
  if( bCommit || p->bRecksum ) rc = wdWriteRun(p, bCommit);
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

/*
** Choose the layout of a new log.  How many tails had to be spilled in the last
** one tells whether embedding the headers pays.
*/
static void wdChoose(WdDb *p, int szPage, WdLayout *pLay){
  int szPad = p->szPad>p->szSector ? p->szPad : p->szSector;
  int szPadded = (int)roundUp(szPage + WAL_FRAME_HDRSIZE, szPad);
  u32 nSpill = __atomic_exchange_n(&p->pBase->nSpill, 0, __ATOMIC_RELAXED);
  u32 nFrame = __atomic_exchange_n(&p->pBase->nWritten, 0, __ATOMIC_RELAXED);
  pLay->szPage = pLay->szSlot = szPage;
  pLay->eKind = p->nReserve>=WAL_FRAME_HDRSIZE ? WD_WHOLE : WD_MOVED;
  if( p->szPad || szPage%p->szSector!=0
   || (i64)nSpill*WD_TAILBLOCK>(i64)nFrame*(szPadded-szPage)
  ){
    pLay->eKind = WD_PADDED;
    pLay->szSlot = szPadded;
  }
}

/*
** SQLite begins a log, or restarts one that is copied to the database in full.
** No frame can be read until the first commit, so the layout may change here.
*/
static int wdNewLog(WdLog *p, const u8 *aWalHdr){
  WdDb *pDb = p->pDb;
  u8 a[WD_BLOCK0];
  WdLayout lay;
  int rc;
  wdChoose(pDb, (int)get4(&aWalHdr[8]), &lay);
  if( !wdLayoutValid(&lay) ) return SQLITE_IOERR_WRITE;
  wdForget(p);
  wdUseLayout(p, wdLayoutWord(&lay));
  rc = LOWER(p)->pMethods->xFileSize(LOWER(p), &p->szFile);
  if( rc==SQLITE_OK ) rc = wdPrealloc(p, wdSlot(&lay, 2));
  if( rc!=SQLITE_OK ) return rc;
  memset(a, 0, sizeof(a));
  wdEncodeBlock0(a, aWalHdr, &lay);
  rc = wdLowWrite(p, a, WD_BLOCK0, 0);
  if( rc==SQLITE_OK ){
    p->bNeeded = 0;
    __atomic_store_n(&pDb->pShared->mLayout, p->mLayout, __ATOMIC_SEQ_CST);
  }
  return rc;
}

/* A write of any other shape: SQLite makes none, other users of the VFS may. */
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

static int wdLogWrite(sqlite3_file *pFile, const void *pBuf, int n, i64 iOfst){
  WdLog *p = (WdLog*)pFile;
  const u8 *a = (const u8*)pBuf;
  int bHdr = iOfst==0 && n==WAL_HDRSIZE;
  int szFrame, rc;
  int bStock = wdLogStock(p, &rc);
  p->pDb->bClosing = p->pDb->bLastClose = p->pDb->bJustLocked = 0;
  if( bStock && (!bHdr || !p->pDb->bMarked) ){
    p->pDb->bStockWrite = 1;
    return LOWER(p)->pMethods->xWrite(LOWER(p), pBuf, n, iOfst);
  }
  if( rc!=SQLITE_OK ) return rc;
  if( wdPoisoned(p) ) return SQLITE_IOERR_FSYNC;
  wdCommitOver(p);
  p->bDurable = 0;
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
** the device's read_ahead_kb.
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
  if( rc==SQLITE_OK && size==0 && p->pDb->bMarked ) rc = wdNeedNoLog(p->pDb);
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
    __atomic_store_n(&p->pDb->pShared->mLayout, 0, __ATOMIC_SEQ_CST);
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
  if( wdLogStock(p, &rc) ){
    p->pDb->bStockWrite = 0;
    return LOWER(p)->pMethods->xSync(LOWER(p), flags);
  }
  if( rc==SQLITE_OK ) rc = wdSettle(p);
  if( rc!=SQLITE_OK ) return rc;
  p->bCommitted = 0;
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
  }else if( wdSyncedDir(p) && !wdPoisoned(p) && wdAllDurable(p) ){
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

/*
** True if the log has not the mode SQLite would give it now, that of the database,
** or, for root, not its owner.
*/
static int wdModeDiffers(WdDb *p){
  struct stat st, stDb;
  if( !wd.bUnix || lstat(p->zWal, &st) || stat(p->zName, &stDb) ) return 0;
  return ((st.st_mode ^ stDb.st_mode) & 0777)!=0
      || (geteuid()==0 && (st.st_uid!=stDb.st_uid || st.st_gid!=stDb.st_gid));
}

/*
** The database was used by this connection alone and is complete without the
** log.  Leave a plain WAL database behind: an empty log, whose blocks the next
** session uses again, and byte 19 as SQLite writes it.  The log is emptied
** first, and for good: were it to come back after a power loss, its frames
** would overwrite what stock SQLite may have written since.
*/
static void wdCleanClose(WdLog *p){
  WdDb *pDb = p->pDb;
  u8 a[4] = {0,0,0,0};
  u8 eVersion = 2;
  int rc = wdLowRead(p, a, 4, 0);
  int bEmpty = isZero(a, 4);
  int bWritten = pDb->bWritten || !bEmpty;
  if( rc==SQLITE_IOERR_SHORT_READ ) rc = SQLITE_OK;
  if( rc==SQLITE_OK ) rc = wdNeedNoLog(pDb);
  if( rc==SQLITE_OK && !bEmpty ) rc = wdLowWrite(p, wdZeros, WAL_HDRSIZE, 0);
  if( rc==SQLITE_OK && bWritten ){
    rc = LOWER(p)->pMethods->xSync(LOWER(p), SQLITE_SYNC_NORMAL);
  }
  if( rc==SQLITE_OK ){
    rc = LOWER(pDb)->pMethods->xWrite(LOWER(pDb), &eVersion, 1, 19);
  }
  if( rc==SQLITE_OK && bWritten ){
    rc = LOWER(pDb)->pMethods->xSync(LOWER(pDb), SQLITE_SYNC_NORMAL);
  }
  if( rc==SQLITE_OK ){
    pDb->bMarked = 0;
    pDb->bKept = pDb->bRecycle && !wdModeDiffers(pDb);
  }
}

static int wdLogClose(sqlite3_file *pFile){
  WdLog *p = (WdLog*)pFile;
  wdForget(p);
  wdLeaveGroup(p);
  if( p->pDb->bMarked && p->pDb->bLastClose ) wdCleanClose(p);
  p->pDb->bClosing = p->pDb->bLastClose = 0;
  if( p->fd>=0 ) close(p->fd);
  sqlite3_free(p->pRunAlloc);
  p->pDb->pLog = 0;
  return LOWER(p)->pMethods->xClose(LOWER(p));
}

static int wdLogSectorSize(sqlite3_file *pFile){
  return LOWER(pFile)->pMethods->xSectorSize(LOWER(pFile));
}
static int wdLogDeviceCharacteristics(sqlite3_file *pFile){
  return LOWER(pFile)->pMethods->xDeviceCharacteristics(LOWER(pFile));
}
static int wdLogLock(sqlite3_file *pFile, int eLock){
  return LOWER(pFile)->pMethods->xLock(LOWER(pFile), eLock);
}
static int wdLogUnlock(sqlite3_file *pFile, int eLock){
  return LOWER(pFile)->pMethods->xUnlock(LOWER(pFile), eLock);
}
static int wdLogCheckReservedLock(sqlite3_file *pFile, int *pOut){
  return LOWER(pFile)->pMethods->xCheckReservedLock(LOWER(pFile), pOut);
}
static int wdLogFileControl(sqlite3_file *pFile, int op, void *pArg){
  return LOWER(pFile)->pMethods->xFileControl(LOWER(pFile), op, pArg);
}

static const sqlite3_io_methods wdLogMethods = {
  1, wdLogClose, wdLogRead, wdLogWrite, wdLogTruncate, wdLogSync,
  wdLogFileSize, wdLogLock, wdLogUnlock, wdLogCheckReservedLock,
  wdLogFileControl, wdLogSectorSize, wdLogDeviceCharacteristics,
  0, 0, 0, 0, 0, 0
};

/***************************** Database: mode *******************************/

static void wdReason(WdDb *p, const char *zReason){
  __atomic_store_n(&p->pBase->zReason, zReason, __ATOMIC_RELAXED);
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
** Byte 19 of the file: 0 if there is none.  Where power failed while page 1
** was copied from the log, the log tells whose it is.
*/
static int wdReadVersion(WdDb *p, u8 *pVersion){
  u8 a[20];
  int rc = LOWER(p)->pMethods->xRead(LOWER(p), a, sizeof(a), 0);
  *pVersion = a[19];
  p->bNeedsLog = rc==SQLITE_OK && a[19]==WD_MARK;
  if( rc==SQLITE_IOERR_SHORT_READ ){
    *pVersion = 0;
    rc = SQLITE_OK;
  }else if( rc==SQLITE_OK && memcmp(a, "SQLite format 3", 16)!=0
         && wdLogIsOurs(p, &rc) ){
    *pVersion = WD_MARK;
  }
  return rc;
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

/*
** Take the first SHARED lock of a session, and find out whether the database
** is waldio's; that cannot change while the lock is held.  Others of this
** process that do the same at the same time wait; other processes are given a
** few moments, for they may be waldio's too.
*/
static int wdLockShared(WdDb *p){
  u8 eVersion = 0;
  int i;
  int rc = LOWER(p)->pMethods->xLock(LOWER(p), SQLITE_LOCK_SHARED);
  if( rc==SQLITE_OK ) rc = wdReadVersion(p, &eVersion);
  p->bMarked = (u8)isMark(eVersion);
  if( rc==SQLITE_OK && (eVersion!=2 || !p->bWant) ) return rc;
  for(i=0; i<8 && eVersion==2 && !p->bMarked && p->bWant; i++){
    /* Busy: another process tries the same just now. */
    if( rc!=SQLITE_OK && rc!=SQLITE_BUSY ) break;
    LOWER(p)->pMethods->xUnlock(LOWER(p), SQLITE_LOCK_NONE);
    if( i>0 ) wd.pLower->xSleep(wd.pLower, 500*i);
    pthread_mutex_lock(&wd.adopt);
    rc = LOWER(p)->pMethods->xLock(LOWER(p), SQLITE_LOCK_SHARED);
    if( rc==SQLITE_OK ) rc = wdReadVersion(p, &eVersion);
    p->bMarked = (u8)isMark(eVersion);
    if( rc==SQLITE_OK && eVersion==2 && wdAdopt(p)!=SQLITE_OK ){
      wdReason(p, "another connection uses the stock log");
    }
    pthread_mutex_unlock(&wd.adopt);
  }
  if( rc!=SQLITE_OK ) LOWER(p)->pMethods->xUnlock(LOWER(p), SQLITE_LOCK_NONE);
  return rc;
}

/**************************** Database: wal-index ***************************/

/*
** Fill in the guard region: what stock SQLite takes for a wal-index header of
** a version it does not know.
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
  }
  rc = pLow->xShmMap(LOWER(p), iRegion+1, szRegion, bExtend, pp);
  if( iRegion==0 ) p->pIndex = *pp;
  return rc;
}

/* From the wal-index: the frames of the log, and those that are in the database. */
static u32 wdFrames(WdDb *p, u32 *pnBackfill){
  u32 *a = (u32*)p->pIndex;
  *pnBackfill = a ? __atomic_load_n(&a[24], __ATOMIC_SEQ_CST) : 0;
  return a ? __atomic_load_n(&a[4], __ATOMIC_SEQ_CST) : 0;
}

/*
** The WRITE lock goes round among those who want it, threads and processes, in
** the order they asked for it.  SQLite's busy handler sleeps longer and longer,
** whoever comes late may get the lock first, and a flush shared by many needs
** writers that do not sleep.  So whoever cannot have the lock takes a ticket and
** waits, in the xSleep() the busy handler calls, until it is called; nobody else
** gets the lock meanwhile.
*/
static __thread struct {
  WdDb *pDb;                      /* Where this thread found the lock taken */
  u32 iTicket;                    /* Its ticket there, or 0 */
  int bAsked;                     /* ... in the last call */
  int bYielded;                   /* It yielded instead of that */
  int nFree;                      /* Times it was not held any more */
  i64 nOwed;                      /* Microseconds it was woken too early */
  i64 iHeld;                      /* When it got the lock, if a checkpointer */
} wdQueue;

/* The thread waits for nothing. */
static void wdNewQueue(void){
  wdQueue.iTicket = 0;
  wdQueue.bYielded = 0;
  wdQueue.nFree = 0;
  wdQueue.nOwed = 0;
}

static int wdLockWrite(WdDb *p, int flags){
  WdShared *pShared = p->pShared;
  u64 iTurn = __atomic_load_n(&pShared->iTurn, __ATOMIC_SEQ_CST);
  int rc = SQLITE_BUSY;
  if( wdQueue.pDb!=p ){
    wdQueue.pDb = p;
    wdNewQueue();
  }
  if( ((u32)(iTurn>>32)==wdQueue.iTicket || !wdTurnTaken(iTurn))
   && (!p->bQuiet || wdAllDurable(p->pLog))
  ){
    rc = LOWER(p)->pMethods->xShmLock(LOWER(p), WAL_WRITE_LOCK, 1, flags);
  }
  wdQueue.bAsked = rc==SQLITE_BUSY;
  if( rc==SQLITE_OK ){
    wdNewQueue();
    p->bHolder = p->bJustLocked = 1;
    if( p->bCkptLock ) p->iCkptSalt = wdSalt(p);
    if( p->bCkptLock ){
      wdQueue.iHeld = wdNow();
      wdCount(p, WD_STAT_QUIET, wdAllDurable(p->pLog));
    }
    __atomic_store_n(&pShared->iHolder, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&pShared->iTurn, 0, __ATOMIC_SEQ_CST);
  }
  return rc;
}

/*
** The WRITE lock is about to be given up: choose who is next.  The turn begins
** before the lock is free, so that nobody can come between.  A checkpointer has
** precedence where it finds a durable log.
*/
static u32 *wdNextTurn(WdDb *p, u32 *piTicket){
  WdShared *pShared = p->pShared;
  u32 *pNext = 0;
  u32 iNext = 0;
  int i;
  /* SQLITE_BUSY_SNAPSHOT: somebody committed before the lock was taken.  The
  ** busy handler would sleep, but the one who did is gone. */
  if( p->bJustLocked ) wdQueue.bAsked = 1;
  p->bHolder = p->bJustLocked = 0;
  __atomic_store_n(&pShared->iHolder, 0, __ATOMIC_SEQ_CST);
  *piTicket = __atomic_load_n(&pShared->iCkpt, __ATOMIC_SEQ_CST);
  if( *piTicket!=0 && wdAllDurable(p->pLog) ){
    wdGiveTurn(pShared, *piTicket);
    return &pShared->iCkpt;
  }
  *piTicket = 0;
  if( __atomic_load_n(&pShared->bQueue, __ATOMIC_SEQ_CST)==0 ) return 0;
  __atomic_store_n(&pShared->bQueue, 0, __ATOMIC_SEQ_CST);
  for(i=0; i<WD_NWAIT; i++){
    u32 iTicket = __atomic_load_n(&pShared->aWait[i], __ATOMIC_SEQ_CST);
    if( iTicket!=0 && (pNext==0 || (int)(iTicket-iNext)<0) ){
      pNext = &pShared->aWait[i];
      iNext = iTicket;
    }
  }
  if( pNext ){
    __atomic_store_n(&pShared->bQueue, 1, __ATOMIC_SEQ_CST);
    wdGiveTurn(pShared, iNext);
    wdSetGroup(pShared);
  }
  *piTicket = iNext;
  return pNext;
}

static int wdUnlockWrite(WdDb *p, int flags){
  u32 iTicket;
  u32 *pNext;
  int rc;
  if( p->bCkptLock && p->bHolder ){
    wdCountWait(p, WD_STAT_HOLDS, WD_STAT_HELD_US, wdQueue.iHeld);
  }
  pNext = wdNextTurn(p, &iTicket);
  rc = LOWER(p)->pMethods->xShmLock(LOWER(p), WAL_WRITE_LOCK, 1, flags);
  wdCall(pNext, iTicket);
  return rc;
}

/*
** True if the WRITE lock is free soon.  Where flushes are shared it is held for
** less time than it takes to put a thread to sleep and to wake it, and those who
** hold it next may be waiting for nothing but this CPU.  Once for each time the
** lock is wanted: whoever came too late then waits its turn.
*/
static int wdFreeSoon(WdShared *pShared){
  int i;
  if( wdQueue.iTicket || wdQueue.bYielded ) return 0;
  wdQueue.bYielded = 1;
  for(i=0; i<WD_YIELDS && !wdIsFree(pShared); i++) sched_yield();
  return i<WD_YIELDS;
}

/* A ticket that is not 0. */
static u32 wdTicket(WdShared *pShared){
  u32 i = 0;
  while( i==0 ) i = __atomic_add_fetch(&pShared->iTicket, 1, __ATOMIC_SEQ_CST);
  return i;
}

/* The microseconds that n flushes for several commits take, 1000 at least and nMax
** at most; 0 if there was no such flush. */
static i64 wdFlushes(WdShared *p, int n, i64 nMax){
  i64 nTook = n*(i64)__atomic_load_n(&p->nFlushUs, __ATOMIC_RELAXED);
  if( nTook==0 ) return 0;
  return nTook<1000 ? 1000 : nTook>nMax ? nMax : nTook;
}

/*
** The checkpointer waits a while for a moment when the whole log is durable and
** nobody writes, before it queues like others: then those who write next wait for
** the flush of the database alone.  True if it was called, or there is no need.
*/
static int wdWaitQuiet(WdDb *p){
  WdShared *pShared = p->pShared;
  i64 nLeft = wdFlushes(pShared, 4, WD_QUIET_MAX_US);
  i64 iUntil = wdNow() + nLeft;
  u32 iMine, iNone = 0;
  int bQuiet = 0;
  p->bQuiet = 0;
  if( p->pLog==0 || nLeft==0 ) return 0;
  iMine = wdTicket(pShared);
  if( !__atomic_compare_exchange_n(&pShared->iCkpt, &iNone, iMine, 0,
           __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ) return 0;
  wdQueue.iTicket = iMine;
  while( !bQuiet && wdNow()<iUntil ){
    wdFutexWait(&pShared->iCkpt, iMine, 1000);
    bQuiet = __atomic_load_n(&pShared->iCkpt, __ATOMIC_SEQ_CST)!=iMine
          || (wdIsFree(pShared) && wdAllDurable(p->pLog));
  }
  if( !__atomic_compare_exchange_n(&pShared->iCkpt, &iMine, 0, 0,
           __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ) bQuiet = 1;
  return bQuiet;
}

/* Wait to be called, for nMicro or a little longer. */
static void wdWaitTurn(WdShared *pShared, i64 nMicro){
  i64 nLeft = nMicro<WD_SLEEP_US ? WD_SLEEP_US : nMicro;
  i64 iUntil = wdNow() + nLeft;
  u32 *pMine = 0;
  u32 iMine = wdQueue.iTicket;
  int i;
  if( iMine==0 ) iMine = wdTicket(pShared);
  wdQueue.iTicket = iMine;
  for(i=0; i<WD_NWAIT && pMine==0; i++){
    u32 iFree = 0;
    pMine = &pShared->aWait[(iMine+(u32)i)%WD_NWAIT];
    if( !__atomic_compare_exchange_n(pMine, &iFree, iMine, 0,
             __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ) pMine = 0;
  }
  __atomic_store_n(&pShared->bQueue, 1, __ATOMIC_SEQ_CST);
  if( pMine==0 ){
    wd.pLower->xSleep(wd.pLower, 1000);
    return;
  }
  while( nLeft>0 && __atomic_load_n(pMine, __ATOMIC_SEQ_CST)==iMine ){
    if( wdQueue.nFree<WD_MXFREE && wdIsFree(pShared) ){
      wdQueue.nFree++;            /* Just given up, and nobody was called */
      sched_yield();
      break;
    }
    wdFutexWait(pMine, iMine, nLeft<WD_SLEEP_US ? nLeft : WD_SLEEP_US);
    nLeft = iUntil - wdNow();
  }
  (void)__atomic_compare_exchange_n(pMine, &iMine, 0, 0,
            __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/******************** Database: checkpoints of commits **********************/

/* A checkpoint that let writers wait is over, having copied all or not. */
static void wdCkptOver(WdBase *p, int bAll){
  pthread_mutex_lock(&p->timer);
  if( bAll ){
    p->nCkptFail = 0;
  }else{
    p->iNextCkpt = wdNow() + (WD_CKPT_AGAIN_US<<p->nCkptFail);
    if( p->nCkptFail<WD_CKPT_MXFAIL ) p->nCkptFail++;
  }
  pthread_mutex_unlock(&p->timer);
}
static int wdCkptMay(WdBase *p){
  int b;
  pthread_mutex_lock(&p->timer);
  b = wdNow()>=p->iNextCkpt;
  pthread_mutex_unlock(&p->timer);
  return b;
}

/*
** A COMMIT begins to checkpoint, and others commit at once or kept the log from
** being restarted after the last checkpoint: it is a slice of the work.  While
** there is much to copy they go on writing.  When little is left the WRITE lock is
** taken, so that nothing is added and the next writer restarts the log.
*/
static void wdBeginSlice(WdDb *p){
  u32 nFrame = wdFrames(p, &p->nBackfill);
  u32 nLeft = nFrame - p->nBackfill;
  i64 iUntil;
  int rc;
  if( p->pLog==0 || p->bReadonlyShm || nFrame<=p->nBackfill ) return;
  if( __atomic_load_n(&p->pShared->nGroup, __ATOMIC_RELAXED)==0
   && p->nBackfill==0 ) return;
  p->bSlice = 1;
  p->bCkptSync = 0;
  if( (nLeft>WD_CKPT_FEW && nLeft>p->nBackfill/WD_CKPT_SHARE)
   || !wdCkptMay(p->pBase) ) return;
  iUntil = wdNow() + WD_CKPT_WAIT_US;
  p->bQuiet = 1;
  do{
    rc = wdLockWrite(p, SQLITE_SHM_LOCK|SQLITE_SHM_EXCLUSIVE);
    if( rc==SQLITE_BUSY ) wdVfs.xSleep(&wdVfs, 1000);
  }while( rc==SQLITE_BUSY && wdNow()<iUntil );
  p->bQuiet = 0;
  if( rc==SQLITE_OK ){
    i64 nPause = wdFlushes(p->pShared, 2, WD_PAUSE_MAX_US);
    p->bFinish = 1;
    p->iReadersUntil = wdNow() + (nPause ? nPause : WD_PAUSE_MAX_US);
    wdCount(p, WD_STAT_CHECKPOINTS, 1);
  }
}

/* A lock that keeps readers out.  Those of the log have to leave it soon. */
static int wdLockReaders(WdDb *p, int iOfst, int n, int flags){
  int rc = LOWER(p)->pMethods->xShmLock(LOWER(p), iOfst, n, flags);
  while( rc==SQLITE_BUSY && p->bFinish && wdNow()<p->iReadersUntil ){
    wd.pLower->xSleep(wd.pLower, 100);
    rc = LOWER(p)->pMethods->xShmLock(LOWER(p), iOfst, n, flags);
  }
  return rc;
}

/* Its end.  What was copied while others wrote is flushed now, which SQLite leaves
** to the checkpoint that copies the rest: then writers would wait for it. */
static void wdEndSlice(WdDb *p){
  u32 nBackfill;
  int bAll = wdFrames(p, &nBackfill)==nBackfill;
  if( p->bFinish ){
    int flags = SQLITE_SHM_LOCK|SQLITE_SHM_EXCLUSIVE;
    bAll = bAll && wdLockReaders(p, WAL_READ_LOCK0+1, WAL_NREADER-1, flags)
                   ==SQLITE_OK;
    if( bAll ){
      flags = SQLITE_SHM_UNLOCK|SQLITE_SHM_EXCLUSIVE;
      (void)LOWER(p)->pMethods->xShmLock(LOWER(p), WAL_READ_LOCK0+1,
                                         WAL_NREADER-1, flags);
    }
    p->bFinish = 0;
    wdCkptOver(p->pBase, bAll);
    (void)wdUnlockWrite(p, SQLITE_SHM_UNLOCK|SQLITE_SHM_EXCLUSIVE);
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
  if( bWrite && (flags & SQLITE_SHM_LOCK)!=0 ){
    p->bAfterCommit = 0;
    return wdLockWrite(p, flags);
  }
  if( bWrite ){
    wdForget(p->pLog);
    return wdUnlockWrite(p, flags);
  }
  p->bJustLocked = 0;
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
   && flags==(SQLITE_SHM_LOCK|SQLITE_SHM_EXCLUSIVE) && wdCkptIsLate(p)
  ){
    flags = SQLITE_SHM_UNLOCK|SQLITE_SHM_EXCLUSIVE;
    (void)LOWER(p)->pMethods->xShmLock(LOWER(p), iOfst, n, flags);
    return SQLITE_BUSY;
  }
  if( iOfst==WAL_CKPT_LOCK && n==1 ){
    p->bCkptLock = (flags & SQLITE_SHM_LOCK)!=0;
    p->iCkptSalt = wdSalt(p);
  }
  if( iOfst>=WAL_READ_LOCK0 && p->bDurableReads && p->bMarked
   && flags==(SQLITE_SHM_LOCK|SQLITE_SHM_SHARED) && p->pLog
  ){
    p->iRead = wdWritten(p->pLog) & ~(u64)1;
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
  if( p->pLog ) wdLeaveGroup(p->pLog);
  p->iWait = p->iRead = 0;
  if( p->bHolder ) (void)wdUnlockWrite(p, SQLITE_SHM_UNLOCK|SQLITE_SHM_EXCLUSIVE);
  memset(&p->priv, 0, sizeof(p->priv));
  p->pIndex = 0;
  p->bCkptLock = p->bSlice = p->bFinish = 0;
  pthread_mutex_lock(&wd.mutex);
  p->pShared = &p->priv;
  pthread_mutex_unlock(&wd.mutex);
  p->bReadonlyShm = 0;
  /* A thread that was told SQLITE_BUSY and sleeps on its own account. */
  while( __atomic_load_n(&p->nWaiting, __ATOMIC_ACQUIRE)>0 ){
    wd.pLower->xSleep(wd.pLower, 500);
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

/*
** PRAGMA journal_mode.  "waldio" is journal_mode=wal through this VFS; a
** database whose log is a stock one goes through journal_mode=delete, which
** fails if others use it.
*/
static int wdPragmaJournalMode(WdDb *p, char **az){
  int rc = SQLITE_OK;
  if( az[2]==0 ){
    if( !p->bByName || !p->bMarked ) return SQLITE_NOTFOUND;
    az[0] = sqlite3_mprintf("waldio");
    return SQLITE_OK;
  }
  if( sqlite3_stricmp(az[2], "waldio")!=0 ){
    p->bByName = 0;
    return SQLITE_NOTFOUND;
  }
  if( p->ppDb==0 || *p->ppDb==0 ) return SQLITE_NOTFOUND;
  if( p->pLog && !p->bMarked && p->bWant ){
    rc = wdSetJournalMode(p, "delete", &az[0]);
  }
  if( rc==SQLITE_OK ) rc = wdSetJournalMode(p, "wal", &az[0]);
  if( rc==SQLITE_OK ){
    p->bByName = 1;
    if( p->bMarked ){
      sqlite3_free(az[0]);
      az[0] = sqlite3_mprintf("waldio");
    }
  }
  return rc;
}

static int wdPragmaError(char **az, const char *zWant){
  az[0] = sqlite3_mprintf("%s is %s, not '%s'", az[1], zWant, az[2]);
  return SQLITE_ERROR;
}

/* PRAGMA waldio_reserve=N: reserved bytes per page, from the next VACUUM on. */
static int wdPragmaReserve(WdDb *p, char **az){
  if( az[2] ){
    int n = atoi(az[2]);
    const char *zSchema = p->ppDb && *p->ppDb ? wdSchema(p, *p->ppDb) : 0;
    if( n<0 || n>255 || zSchema==0 ) return wdPragmaError(az, "0 to 255");
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
  const char *z = az[1] + 7;      /* After "waldio_" */
  int n = az[2] ? atoi(az[2]) : -1;
  if( sqlite3_stricmp(z, "recycle")==0 ){
    if( az[2] ) p->bRecycle = n!=0;
    n = p->bRecycle;
  }else if( sqlite3_stricmp(z, "padding")==0 ){
    if( az[2] && n!=wdPadding(n) ){
      return wdPragmaError(az, "0, 512, 4096 or 8192");
    }
    if( az[2] ) p->szPad = n;
    n = p->szPad;
  }else if( sqlite3_stricmp(z, "prealloc")==0 ){
    if( az[2] && (n<0 || n>WD_MXPREALLOC) ){
      return wdPragmaError(az, "0 to 4194304");
    }
    if( az[2] ) p->szPrealloc = (int)roundUp(n, WD_BLOCK0);
    n = p->szPrealloc;
  }else if( sqlite3_stricmp(z, "group_frames")==0 ){
    if( az[2] && n<1 ) return wdPragmaError(az, "1 or more");
    if( az[2] ) p->nGroupFrames = n;
    n = p->nGroupFrames;
  }else if( sqlite3_stricmp(z, "group_ms")==0 ){
    if( az[2] && (n<0 || n>60000) ) return wdPragmaError(az, "0 to 60000");
    if( az[2] ) p->msGroup = n;
    n = p->msGroup;
  }else if( sqlite3_stricmp(z, "durable_reads")==0 ){
    if( az[2] && n!=0 && n!=1 ) return wdPragmaError(az, "0 or 1");
    if( az[2] ) p->bDurableReads = (u8)n;
    n = p->bDurableReads;
  }else{
    return SQLITE_NOTFOUND;
  }
  az[0] = sqlite3_mprintf("%d", n);
  return SQLITE_OK;
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

/*
** The database was marked, and no log opened: no transaction followed, or there
** can be none, as in a read-only directory.  So there is no log whose close
** would make the database a plain one.  Do so if nobody else has it.
*/
static void wdUnmark(WdDb *p){
  const sqlite3_io_methods *pLow = LOWER(p)->pMethods;
  const u8 eVersion = 2;
  u8 eNow = 0;
  int bLog = 1;
  int rc = pLow->xLock(LOWER(p), SQLITE_LOCK_SHARED);
  if( rc==SQLITE_OK ) rc = pLow->xLock(LOWER(p), SQLITE_LOCK_EXCLUSIVE);
  if( rc==SQLITE_OK ){
    rc = wd.pLower->xAccess(wd.pLower, p->zWal, SQLITE_ACCESS_EXISTS, &bLog);
  }
  if( rc==SQLITE_OK ) rc = wdReadVersion(p, &eNow);
  if( rc==SQLITE_OK && !bLog && eNow==WD_MARK_EMPTY
   && pLow->xWrite(LOWER(p), &eVersion, 1, 19)==SQLITE_OK
  ){
    (void)pLow->xSync(LOWER(p), SQLITE_SYNC_NORMAL);
  }
  (void)pLow->xUnlock(LOWER(p), SQLITE_LOCK_NONE);
}

static int wdDbClose(sqlite3_file *pFile){
  WdDb *p = (WdDb*)pFile;
  WdDb **pp;
  WdBase *pBase = p->pBase;
  WdBase **ppBase;
  if( p->bMarked && p->bUnused ) wdUnmark(p);
  pthread_mutex_lock(&wd.mutex);
  for(pp=&wd.pDbs; *pp!=p; pp=&(*pp)->pNext){}
  *pp = p->pNext;
  if( --pBase->nHandle==0 ){
    for(ppBase=&wd.pBases; *ppBase!=pBase; ppBase=&(*ppBase)->pNext){}
    *ppBase = pBase->pNext;
    /* Mutex and condition hold nothing.  In the child of a fork() destroying the
    ** condition would wait for a thread that is not there. */
    sqlite3_free(pBase->zName);
    sqlite3_free(pBase);
  }
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
** checkpoints.  When another mode is set, the log that was kept is of no more
** use.
*/
static int wdDbWritePage1(WdDb *p, const u8 *aIn, int n){
  const sqlite3_io_methods *pLow = LOWER(p)->pMethods;
  u8 *a;
  int rc;
  if( aIn[19]!=2 ){
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

static int wdDbTruncate(sqlite3_file *pFile, i64 size){
  return LOWER(pFile)->pMethods->xTruncate(LOWER(pFile), size);
}
/* The kernel tells of a failure once.  What is in the database then nobody knows,
** and no later flush may let a checkpoint take it for copied. */
static int wdDbSync(sqlite3_file *pFile, int flags){
  WdDb *p = (WdDb*)pFile;
  u32 nBackfill;
  int rc;
  if( !p->bMarked ) return LOWER(pFile)->pMethods->xSync(LOWER(pFile), flags);
  if( __atomic_load_n(&p->pBase->bSyncFailed, __ATOMIC_SEQ_CST) ){
    return SQLITE_IOERR_FSYNC;
  }
  __atomic_store_n(&p->pBase->bSynced, 1, __ATOMIC_RELAXED);
  rc = LOWER(pFile)->pMethods->xSync(LOWER(pFile), flags);
  (void)wdFrames(p, &nBackfill);
  if( rc!=SQLITE_OK && nBackfill>0 ){
    __atomic_store_n(&p->pBase->bSyncFailed, 1, __ATOMIC_SEQ_CST);
  }
  return rc;
}
static int wdDbFileSize(sqlite3_file *pFile, i64 *pSize){
  return LOWER(pFile)->pMethods->xFileSize(LOWER(pFile), pSize);
}

/*
** A connection that closes asks for EXCLUSIVE to find out whether it is the
** last.  Of several that close at the same time none would be: all but one wait
** until that one is gone.
*/
static int wdLockLast(WdDb *p){
  WdBase *pBase = p->pBase;
  int rc, i;
  rc = LOWER(p)->pMethods->xLock(LOWER(p), SQLITE_LOCK_EXCLUSIVE);
  for(i=0; rc==SQLITE_BUSY && i<WD_CLOSE_TRIES; i++){
    WdDb *pNone = 0;
    if( __atomic_load_n(&pBase->nShared, __ATOMIC_SEQ_CST)<=1 ){
      return LOWER(p)->pMethods->xLock(LOWER(p), SQLITE_LOCK_EXCLUSIVE);
    }
    if( __atomic_compare_exchange_n(&pBase->pClosing, &pNone, p, 0,
            __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ) break;
    wd.pLower->xSleep(wd.pLower, 200);
    rc = LOWER(p)->pMethods->xLock(LOWER(p), SQLITE_LOCK_EXCLUSIVE);
  }
  return rc;
}

static int wdDbLock(sqlite3_file *pFile, int eLock){
  WdDb *p = (WdDb*)pFile;
  int rc;
  p->bClosing = p->bLastClose = 0;
  if( p->eLock==SQLITE_LOCK_NONE && eLock==SQLITE_LOCK_SHARED ){
    rc = wdLockShared(p);
  }else if( p->bMarked && p->pLog && eLock==SQLITE_LOCK_EXCLUSIVE ){
    rc = wdLockLast(p);
    p->bClosing = rc==SQLITE_OK;
  }else{
    rc = LOWER(p)->pMethods->xLock(LOWER(p), eLock);
  }
  if( rc==SQLITE_OK && p->eLock==SQLITE_LOCK_NONE ){
    __atomic_add_fetch(&p->pBase->nShared, 1, __ATOMIC_SEQ_CST);
  }
  if( rc==SQLITE_OK && eLock>p->eLock ) p->eLock = eLock;
  return rc;
}

static int wdDbUnlock(sqlite3_file *pFile, int eLock){
  WdDb *p = (WdDb*)pFile;
  WdDb *pClosing = p;
  int rc = LOWER(p)->pMethods->xUnlock(LOWER(p), eLock);
  if( p->eLock>eLock && eLock==SQLITE_LOCK_NONE ){
    __atomic_add_fetch(&p->pBase->nShared, -1, __ATOMIC_SEQ_CST);
  }
  if( eLock<p->eLock ) p->eLock = eLock;
  (void)__atomic_compare_exchange_n(&p->pBase->pClosing, &pClosing, (WdDb*)0, 0,
            __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return rc;
}

static int wdDbCheckReservedLock(sqlite3_file *pFile, int *pOut){
  return LOWER(pFile)->pMethods->xCheckReservedLock(LOWER(pFile), pOut);
}

/*
** sqlite3WalClose() asks for an EXCLUSIVE lock of a database whose log is open,
** held already or not; then it checkpoints, and if that was complete it asks for
** PERSIST_WAL.  Then the log is kept for the next session.  Anybody else who asks,
** at any other time, gets SQLite's own answer.  (Without a checkpoint at the close
** there is no such lock, but sqlite3PagerBegin() takes one for the first
** transaction after locking_mode=EXCLUSIVE was set: so what the wal-index says
** counts too, if it is not SQLite's own.)
*/
static int wdPersistWal(WdDb *p, int *pArg){
  int bAsk = *pArg<0;
  u32 nBackfill;
  int bAll = wdFrames(p, &nBackfill)==nBackfill;
  int rc = LOWER(p)->pMethods->xFileControl(LOWER(p), SQLITE_FCNTL_PERSIST_WAL,
                                            pArg);
  if( bAsk && p->bClosing && bAll ){
    p->bLastClose = 1;
    p->bWritten = __atomic_load_n(&p->pShared->iWritten, __ATOMIC_ACQUIRE)!=0
               || __atomic_load_n(&p->pBase->bSynced, __ATOMIC_RELAXED);
    p->bPersist = *pArg>0;
    if( p->bRecycle && !wdModeDiffers(p) ) *pArg = 1;
  }
  return rc;
}

static int wdDbFileControl(sqlite3_file *pFile, int op, void *pArg){
  WdDb *p = (WdDb*)pFile;
  int rc;
  if( op==SQLITE_FCNTL_PDB ) p->ppDb = (sqlite3**)pArg;
  p->bAfterCommit = op==SQLITE_FCNTL_COMMIT_PHASETWO;
  p->bJustLocked = 0;
  if( op==SQLITE_FCNTL_PERSIST_WAL ) return wdPersistWal(p, (int*)pArg);
  if( op==SQLITE_FCNTL_COMMIT_PHASETWO && p->pLog ) wdCommitOver(p->pLog);
  if( op==SQLITE_FCNTL_COMMIT_PHASETWO && p->iWait && p->pLog ){
    u64 iWait = p->iWait;
    p->iWait = 0;
    rc = p->eSync==WD_SYNC_GROUP ? wdWaitGroup(p->pLog, iWait)
                                 : wdWaitDurable(p->pLog, iWait);
    if( rc!=SQLITE_OK ) return rc;
  }
  if( op==SQLITE_FCNTL_COMMIT_PHASETWO && p->bStockWrite && p->pLog
   && p->eSync==WD_SYNC_PERSISTENT
  ){
    rc = wdLogSync(&p->pLog->base, SQLITE_SYNC_NORMAL);
    if( rc!=SQLITE_OK ) return rc;
  }
  if( op==SQLITE_FCNTL_PRAGMA ){
    rc = wdPragma(p, (char**)pArg);
    if( rc!=SQLITE_NOTFOUND ) return rc;
  }
  rc = LOWER(p)->pMethods->xFileControl(LOWER(p), op, pArg);
  if( op==SQLITE_FCNTL_VFSNAME && rc==SQLITE_OK ){
    *(char**)pArg = sqlite3_mprintf("waldio/%z", *(char**)pArg);
  }
  return rc;
}

static int wdDbSectorSize(sqlite3_file *pFile){
  return LOWER(pFile)->pMethods->xSectorSize(LOWER(pFile));
}

static int wdDbDeviceCharacteristics(sqlite3_file *pFile){
  return LOWER(pFile)->pMethods->xDeviceCharacteristics(LOWER(pFile));
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
  wdDbLock, wdDbUnlock, wdDbCheckReservedLock, wdDbFileControl, wdDbSectorSize,
  wdDbDeviceCharacteristics, wdDbShmMap, wdDbShmLock, wdDbShmBarrier,
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
}

/*
** Why the log of this database stays a stock one, or NULL.  On filesystems
** that write every block to a new place, or not at all, aligned blocks gain
** nothing; zSector receives what O_DIRECT asks for.
*/
static const char *wdUseless(const char *zName, int *pszSector){
  struct statfs fs;
#if defined(STATX_DIOALIGN)
  struct statx sx;
  if( statx(AT_FDCWD, zName, 0, STATX_DIOALIGN, &sx)==0
   && (sx.stx_mask & STATX_DIOALIGN)!=0
  ){
    if( sx.stx_dio_offset_align==0 ) return "the file has no O_DIRECT";
    if( sx.stx_dio_offset_align>WD_SECTOR ){
      *pszSector = (int)sx.stx_dio_offset_align;
    }
  }
#endif
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
    if( p->iDev==iDev && p->iInode==iInode && p->pid==getpid()
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
    wdCondInit(&p->timed);
    p->pid = getpid();
    p->iDev = iDev;
    p->iInode = iInode;
    p->pNext = wd.pBases;
    wd.pBases = p;
  }
  p->nHandle++;
  return p;
}

/*
** Open a database.  zName is kept: the name SQLite gives for the log leads
** back to this very pointer.
*/
static int wdOpenDb(WdDb *p, const char *zName, int flags){
  const char *zUri = sqlite3_uri_parameter(zName, "waldio");
  const char *zReason = 0;
  struct stat st;
  memset(p, 0, sizeof(*p));
  p->zName = zName;
  p->zWal = sqlite3_filename_wal(zName);
  p->zJournal = sqlite3_filename_journal(zName);
  p->pShared = &p->priv;
  p->szSector = WD_SECTOR;
  p->szPrealloc = 65536;
  p->szPad = wdPadding(sqlite3_uri_int64(zName, "waldio_padding", 0));
  p->bRecycle = 1;
  p->nGroupFrames = 64;
  p->msGroup = 10;
  if( wd.bUnix ) zReason = wdUseless(zName, &p->szSector);
  if( zUri && strcmp(zUri, "force")==0 ) zReason = 0;
  if( zUri && strcmp(zUri, "off")==0 ) zReason = "waldio=off";
  if( wd.bUnix && stat(zName, &st)==0 && st.st_nlink>1 ){
    zReason = "the file has several names (hard links)";
  }
  if( flags & SQLITE_OPEN_READONLY ) zReason = "opened read-only";
  wdMethods(&p->methods, &wdDbMethods, LOWER(p)->pMethods);
  if( (wdDbDeviceCharacteristics(&p->base) & SQLITE_IOCAP_POWERSAFE_OVERWRITE)
      ==0 ){
    /* Byte 19 is overwritten alone, as are the pieces of a tail block. */
    zReason = "no POWERSAFE_OVERWRITE (psow=0)";
  }
  if( p->methods.xShmMap==0 ) zReason = "no shared memory";
  p->bWant = zReason==0;
  p->bLostLog = (flags & SQLITE_OPEN_READONLY)==0
             && sqlite3_uri_boolean(zName, "waldio_lost_log", 0);
  pthread_mutex_lock(&wd.mutex);
  p->pBase = wdFindBase(zName);
  if( p->pBase ){
    p->pNext = wd.pDbs;
    wd.pDbs = p;
    p->base.pMethods = &p->methods;
    wdReason(p, zReason);
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

/*
** The log of a database has the database's name.  So a database that is in use,
** or was at a crash, cannot be opened by another name: its last commits would
** not be seen.  Nor can it if its log is gone.  Called before the log is opened,
** and perhaps made.
*/
static int wdCheckName(const char *zWal){
  WdDb *p = wdFindDb(sqlite3_filename_database(zWal));
  struct stat st;
  u8 a[1];
  if( p==0 ) return SQLITE_CANTOPEN;
  if( !p->bMarked ) return SQLITE_OK;
  if( wd.bUnix && strcmp(p->zName, p->pBase->zName)!=0 ){
    sqlite3_log(SQLITE_CANTOPEN, "waldio: %s is open as %s; use that name",
                p->zName, p->pBase->zName);
    return SQLITE_CANTOPEN;
  }
  if( !p->bNeedsLog ) return SQLITE_OK;
  if( wd.bUnix ? access(zWal, F_OK)==0
               : wdPeekLog(p, a, sizeof(a))!=SQLITE_CANTOPEN ) return SQLITE_OK;
  if( wd.bUnix && stat(p->zName, &st)==0 && st.st_nlink>1 ){
    sqlite3_log(SQLITE_CANTOPEN, "waldio: %s has several names, and its log has "
                "another one; open it by the name that was used", p->zName);
    return SQLITE_CANTOPEN;
  }
  sqlite3_log(p->bLostLog ? SQLITE_WARNING : SQLITE_CANTOPEN, "waldio: %s was not "
              "closed, and its log %s is not there%s", p->zName, zWal,
              p->bLostLog ? "; what it held is lost"
              : "; bring it back, or do without the commits in it: "
                "waldio_lost_log=1");
  return p->bLostLog ? SQLITE_OK : SQLITE_CANTOPEN;
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
  memset(p, 0, sizeof(*p));
  p->fd = -1;
  p->bFull = 1;
  p->bDirect = !wd.bUnix;
  if( pDb==0 ) return SQLITE_CANTOPEN;
  if( wd.bUnix && pDb->bMarked && (flags & SQLITE_OPEN_READONLY)==0 ){
    struct stat st;
    p->fd = wdOpenRegular(zName, O_RDWR|O_DIRECT, &st);
    p->bDirect = p->fd>=0;
    if( p->fd<0 && errno!=EEXIST ){
      p->fd = wdOpenRegular(zName, O_RDWR, &st);
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
  if( pDb->pShared==&pDb->priv ) memset(&pDb->priv, 0, sizeof(pDb->priv));
  wdMethods(&p->methods, &wdLogMethods, LOWER(p)->pMethods);
  p->base.pMethods = &p->methods;
  p->pDb = pDb;
  pDb->pLog = p;
  pDb->bKept = pDb->bUnused = 0;
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
    if( !wd.bUnix || lstat(zName, &before)!=0 ) before.st_ino = 0;
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
*/
static int wdDelete(sqlite3_vfs *pVfs, const char *zName, int bSyncDir){
  sqlite3_vfs *pLower = LOWERVFS(pVfs);
  const WdDb *p;
  u8 aVersion[2] = { 2, 2 };      /* Above 1 in a WAL database */
  int bLog = 0;
  pthread_mutex_lock(&wd.mutex);
  for(p=wd.pDbs; p && p->zJournal!=zName; p=p->pNext){}
  pthread_mutex_unlock(&wd.mutex);
  if( p && !bSyncDir ){
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
static int wdFullPathname(
  sqlite3_vfs *pVfs, const char *zIn, int n, char *zOut
){
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
      __atomic_add_fetch(&p->nWaiting, 1, __ATOMIC_ACQ_REL);
    }
    pthread_mutex_unlock(&wd.mutex);
  }
  wdQueue.bAsked = 0;
  if( pShared==0 ) return LOWERVFS(pVfs)->xSleep(LOWERVFS(pVfs), nMicro);
  iBegin = wdNow();
  nWant = nMicro + wdQueue.nOwed;
  if( !(p->bQuiet ? wdWaitQuiet(p) : wdFreeSoon(pShared)) ){
    wdWaitTurn(pShared, nWant);
  }
  nWant -= wdNow() - iBegin;
  wdQueue.nOwed = nWant>0 ? nWant : 0;
  wdCountWait(p, WD_STAT_QUEUED, WD_STAT_QUEUE_US, iBegin);
  __atomic_add_fetch(&p->nWaiting, -1, __ATOMIC_ACQ_REL);
  return nMicro;
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
static sqlite3_syscall_ptr wdGetSystemCall(
  sqlite3_vfs *pVfs, const char *zName
){
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

/*
** Have pVfs stand on pLower.  SQLite does without these methods where they are
** NULL.
*/
static void wdStandOn(sqlite3_vfs *pVfs, sqlite3_vfs *pLower){
  int n = pLower->iVersion;
  pVfs->iVersion = n<3 ? n : 3;
  pVfs->szOsFile = (int)WD_SZMAX + pLower->szOsFile;
  pVfs->mxPathname = pLower->mxPathname;
  pVfs->pAppData = pLower;
  if( pLower->xGetLastError==0 ) pVfs->xGetLastError = 0;
  if( n<2 || pLower->xCurrentTimeInt64==0 ) pVfs->xCurrentTimeInt64 = 0;
  if( n<3 || pLower->xSetSystemCall==0 ) pVfs->xSetSystemCall = 0;
  if( n<3 || pLower->xGetSystemCall==0 ) pVfs->xGetSystemCall = 0;
  if( n<3 || pLower->xNextSystemCall==0 ) pVfs->xNextSystemCall = 0;
}

/****************************** waldio_stat *********************************/

/*
** CREATE TABLE waldio_stat(...): one row per database this process has open
** through the VFS.  An eponymous virtual table, a copy of the counters is made
** when a scan begins.
*/
static const char wdStatSchema[] =
  "CREATE TABLE waldio_stat(database TEXT, layout TEXT, slot INT, reason TEXT,"
  " handles INT, commits INT, frames INT, bytes INT, durable_writes INT,"
  " flushes INT, preallocations INT, fallbacks INT, escapes INT, groups INT,"
  " waits INT, moved INT, write_zeroes INT, checkpoints INT, wait_us INT,"
  " longest_wait_us INT, queued INT, queue_us INT, longest_queue_us INT,"
  " read_ahead INT, holds INT, held_us INT, longest_held_us INT,"
  " quiet_holds INT)";
#define WD_STAT_NFIXED  5         /* Columns before those of aStat[] */

typedef struct WdRow WdRow;
struct WdRow {
  WdRow *pNext;
  char *zName;
  u32 mLayout;
  const char *zReason;
  int nHandle;
  i64 aStat[WD_STAT_NCOUNT];
};
typedef struct WdCursor WdCursor;
struct WdCursor {
  sqlite3_vtab_cursor base;
  WdRow *pRows;                   /* The row it is on, and those after it */
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
static int wdStatNext(sqlite3_vtab_cursor *pCursor){
  WdCursor *p = (WdCursor*)pCursor;
  WdRow *pRow = p->pRows;
  p->pRows = pRow->pNext;
  p->iRow++;
  sqlite3_free(pRow->zName);
  sqlite3_free(pRow);
  return SQLITE_OK;
}
static int wdStatEof(sqlite3_vtab_cursor *pCursor){
  return ((WdCursor*)pCursor)->pRows==0;
}
static int wdStatClose(sqlite3_vtab_cursor *pCursor){
  while( !wdStatEof(pCursor) ) wdStatNext(pCursor);
  sqlite3_free(pCursor);
  return SQLITE_OK;
}

static int wdStatFilter(
  sqlite3_vtab_cursor *pCursor, int idxNum, const char *idxStr,
  int argc, sqlite3_value **argv
){
  WdCursor *p = (WdCursor*)pCursor;
  WdBase *pBase;
  int rc = SQLITE_OK;
  (void)idxNum; (void)idxStr; (void)argc; (void)argv;
  while( p->pRows ) wdStatNext(pCursor);
  p->iRow = 0;
  pthread_mutex_lock(&wd.mutex);
  for(pBase=wd.pBases; pBase && rc==SQLITE_OK; pBase=pBase->pNext){
    WdRow *pRow = sqlite3_malloc(sizeof(*pRow));
    int i;
    if( pRow==0 ){
      rc = SQLITE_NOMEM;
      break;
    }
    pRow->zName = sqlite3_mprintf("%s", pBase->zName);
    if( pRow->zName==0 ) rc = SQLITE_NOMEM;
    pRow->mLayout = __atomic_load_n(&pBase->mLayout, __ATOMIC_RELAXED);
    pRow->zReason = __atomic_load_n(&pBase->zReason, __ATOMIC_RELAXED);
    pRow->nHandle = pBase->nHandle;
    for(i=0; i<WD_STAT_NCOUNT; i++){
      pRow->aStat[i] = __atomic_load_n(&pBase->aStat[i], __ATOMIC_RELAXED);
    }
    pRow->pNext = p->pRows;
    p->pRows = pRow;
  }
  pthread_mutex_unlock(&wd.mutex);
  return rc;
}

static int wdStatColumn(
  sqlite3_vtab_cursor *pCursor, sqlite3_context *pCtx, int iCol
){
  const WdRow *p = ((WdCursor*)pCursor)->pRows;
  switch( iCol ){
    case 0: sqlite3_result_text(pCtx, p->zName, -1, SQLITE_TRANSIENT); break;
    case 1: sqlite3_result_text(pCtx, p->zReason && p->zReason!=wdOther
                ? "stock" : wdLayoutName(p->mLayout), -1, SQLITE_STATIC);
            break;
    case 2: sqlite3_result_int(pCtx, wdLayoutOf(p->mLayout).szSlot); break;
    case 3: if( p->zReason ){
              sqlite3_result_text(pCtx, p->zReason, -1, SQLITE_STATIC);
            }
            break;
    case 4: sqlite3_result_int(pCtx, p->nHandle); break;
    default: sqlite3_result_int64(pCtx, p->aStat[iCol-WD_STAT_NFIXED]);
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

int waldio_register(int bDefault){
  sqlite3_vfs *pOther = sqlite3_vfs_find("waldio");
  int rc;
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
    wdStandOn(&wdVfs, pLower);
    wd.pLower = pLower;
    wd.bUnix = strncmp(pLower->zName, "unix", 4)==0;
  }
  pthread_mutex_unlock(&wd.mutex);
  rc = sqlite3_auto_extension((void(*)(void))wdConnection);
  return rc==SQLITE_OK ? sqlite3_vfs_register(&wdVfs, bDefault) : rc;
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
  if( bDefault || sqlite3_vfs_find("waldio")==0 ){
    rc = waldio_register(bDefault);
  }
  /* The VFS outlives the connection that loaded it. */
  return rc==SQLITE_OK ? SQLITE_OK_LOAD_PERMANENTLY : rc;
}

/* sqlite3_auto_extension() takes SQLITE_OK_LOAD_PERMANENTLY for an error. */
static int wdLoaded(sqlite3 *db, char **pzErrMsg, int rc){
  if( rc!=SQLITE_OK && rc!=SQLITE_OK_LOAD_PERMANENTLY ) return rc;
#if defined(SQLITE_CORE)
  rc = SQLITE_OK;
#endif
  /* The waldio_stat of another build shows the databases of its VFS. */
  if( sqlite3_vfs_find("waldio")!=&wdVfs ) return rc;
  return wdConnection(db, pzErrMsg, 0)==SQLITE_OK ? rc : SQLITE_ERROR;
}

int sqlite3_waldio_init(
  sqlite3 *db, char **pzErrMsg, const sqlite3_api_routines *pApi
);
int sqlite3_waldio_init(
  sqlite3 *db, char **pzErrMsg, const sqlite3_api_routines *pApi
){
  int rc = wdInit(pApi, 0);
  return wdLoaded(db, pzErrMsg, rc);
}

int sqlite3_waldio_default_init(
  sqlite3 *db, char **pzErrMsg, const sqlite3_api_routines *pApi
);
int sqlite3_waldio_default_init(
  sqlite3 *db, char **pzErrMsg, const sqlite3_api_routines *pApi
){
  int rc = wdInit(pApi, 1);
  return wdLoaded(db, pzErrMsg, rc);
}
