/*
** Power is lost under a real filesystem.  A program writes to databases on a
** filesystem whose disk is a network block device that this program serves from
** memory: it records what the disk is told.  Then, for moments of the record,
** the disk is made as it could have been, the filesystem is mounted, and every
** commit that was acknowledged before that moment must be there.
** scripts/crash-states does all of it.
**
**   test-crash record FS BASE LOG COMMITS
**       Mounts a copy of the image BASE in the directory mnt, writes databases
**       there, and puts the record in LOG.
**   test-crash check FS BASE LOG STATES SEED
**       Works in the directory that it is started in, which should be in memory.
**
** A disk loses what it has in its cache: of the writes since the last flush
** that had not FUA, any may be lost, and the write that was on its way may be
** there in part, by blocks of 4 KiB.  dm-log-writes would not do: it files a
** write under the flush that first took it.  Where another flush, begun later,
** ends before that one, the write is durable and not in the log yet.
**
** Stock SQLite writes beside waldio, with synchronous=FULL, which must not lose a
** commit either where the filesystem keeps what it promised (f2fs does not
** always), and with NORMAL, which loses some: else the states are too tame.
*/
#define _GNU_SOURCE
#include "rows.h"
#include <endian.h>
#include <linux/loop.h>
#include <linux/nbd.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>

typedef unsigned long long u64;

/* A database, and how it is committed to. */
static const struct Kind {
  const char *zName;
  const char *zVfs;
  const char *zLayout;            /* URI parameters */
  const char *zSync;
  int nWriter;
  int bDurable;                   /* An acknowledged commit is never lost */
  int bSessions;                  /* Each in a session, every third stock SQLite's */
} aKind[] = {
  { "full-W", "waldio", "", "synchronous=FULL", 2, 1, 0 },
  { "full-T", "waldio", "&waldio_reserve=0", "synchronous=FULL", 2, 1, 0 },
  { "full-P", "waldio", "&waldio_reserve=0&waldio_padding=512",
    "synchronous=FULL", 2, 1, 0 },
  { "persistent", "waldio", "", "waldio_sync=persistent", 2, 1, 0 },
  { "sessions", "waldio", "", "synchronous=FULL", 1, 1, 1 },
  { "stock", "unix", "", "synchronous=FULL", 1, 1, 0 },
  { "stock-normal", "unix", "", "synchronous=NORMAL", 1, 0, 0 },
};
/* Who comes after waldio's last close, to the same file. */
static const struct Kind stockSession = { "sessions", "unix", "", "synchronous=FULL", 1, 1, 1 };
#define NKIND   ((int)(sizeof(aKind)/sizeof(aKind[0])))
#define MXWRITER 2
#define SZPAGE  4096
#define SZBLOCK 4096

static sqlite3 *openKind(const struct Kind *p, const char *zDir, int flags){
  sqlite3 *db = 0;
  char *z = sqlite3_mprintf("file:%s/%s.db?vfs=%s%s", zDir, p->zName, p->zVfs,
                            p->zLayout);
  int rc = sqlite3_open_v2(z, &db, SQLITE_OPEN_READWRITE|SQLITE_OPEN_URI|flags, 0);
  sqlite3_free(z);
  if( rc!=SQLITE_OK ){
    sqlite3_close(db);
    return 0;
  }
  sqlite3_busy_timeout(db, 60000);
  return db;
}

/********************************** Log *************************************/

/* What the disk was told, in order: a write, perhaps with FUA, a discard or a
** flush.  And what writer iOfst%MXWRITER of database iOfst/MXWRITER said: that
** its commit n has been acknowledged. */
#define LOG_WRITE    1
#define LOG_FUA      2            /* LOG_WRITE, and durable at its end */
#define LOG_DISCARD  3
#define LOG_FLUSH    4            /* All before it is durable at its end */
#define LOG_MARK     5

typedef struct Entry Entry;
struct Entry {
  u64 eType;
  u64 iOfst, n;                   /* Bytes */
};

/* Entries, each with its data, in memory that the disk's process has in common
** with the writers'.  The file has the bytes at a.  Their order is that in which
** room was taken for them.  There is no mutex: for a new page of the memory a
** writer waits for another's mmap_lock, who may wait for the disk. */
#define MXLOG ((size_t)4<<30)
static struct Log {
  size_t n;
  unsigned char a[];
} *pLog;

static void makeLog(void){
  pLog = mmap(0, MXLOG, PROT_READ|PROT_WRITE,
              MAP_SHARED|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);
  CHECK( pLog!=MAP_FAILED );
}
static void append(u64 eType, u64 iOfst, u64 n, const void *pData){
  Entry e = { eType, iOfst, n };
  size_t nData = pData ? (size_t)n : 0;
  size_t i = __atomic_fetch_add(&pLog->n, sizeof(e)+nData, __ATOMIC_SEQ_CST);
  CHECK( sizeof(*pLog)+i+sizeof(e)+nData<=MXLOG );
  memcpy(pLog->a+i, &e, sizeof(e));
  if( nData ) memcpy(pLog->a+i+sizeof(e), pData, nData);
}
static void mark(int iKind, int iWho, int iDone){
  append(LOG_MARK, (u64)(iKind*MXWRITER+iWho), (u64)iDone, 0);
}

static void writeAt(int fd, const void *a, u64 n, u64 iOfst){
  while( n>0 ){
    ssize_t rc = pwrite(fd, a, n, (off_t)iOfst);
    if( rc<0 && errno==EINTR ) continue;
    CHECK( rc>0 );
    a = (const char*)a + rc;
    n -= (u64)rc;
    iOfst += (u64)rc;
  }
}

/********************************** Disk ************************************/

/* A disk of sz bytes in memory.  It is a process of its own: a writer that waits
** for a page of a file holds what the disk would need for memory. */
static struct Disk {
  unsigned char *a;
  u64 sz;
  int fd;                         /* The server's end */
  int fdNbd;
} disk;

static void transfer(int fd, void *p, size_t n, int bWrite){
  while( n>0 ){
    ssize_t rc = bWrite ? write(fd, p, n) : read(fd, p, n);
    if( rc<0 && errno==EINTR ) continue;
    CHECK( rc>0 );
    p = (char*)p + rc;
    n -= (size_t)rc;
  }
}

/* One request after the other, as Documentation/admin-guide/blockdev/nbd.rst
** and linux/nbd.h have them. */
static void serve(void){
  struct nbd_request q;
  struct nbd_reply r;
  for(;;){
    u64 iOfst, n;
    unsigned eCmd, bFua;
    transfer(disk.fd, &q, sizeof(q), 0);
    CHECK_INT( be32toh(q.magic), NBD_REQUEST_MAGIC );
    eCmd = be32toh(q.type) & 0xffff;
    bFua = be32toh(q.type) & NBD_CMD_FLAG_FUA;
    iOfst = be64toh(q.from);
    n = be32toh(q.len);
    if( eCmd==NBD_CMD_DISC ) return;
    CHECK( n<=disk.sz && iOfst<=disk.sz-n );
    switch( eCmd ){
      case NBD_CMD_READ: break;
      case NBD_CMD_WRITE:
        transfer(disk.fd, disk.a+iOfst, n, 0);
        append(bFua ? LOG_FUA : LOG_WRITE, iOfst, n, disk.a+iOfst);
        break;
      case NBD_CMD_TRIM:
        memset(disk.a+iOfst, 0, n);
        append(LOG_DISCARD, iOfst, n, 0);
        break;
      default:
        CHECK_INT( eCmd, NBD_CMD_FLUSH );
        append(LOG_FLUSH, 0, 0, 0);
    }
    r.magic = htobe32(NBD_REPLY_MAGIC);
    r.error = 0;
    memcpy(&r.handle, &q.handle, sizeof(r.handle));
    transfer(disk.fd, &r, sizeof(r), 1);
    if( eCmd==NBD_CMD_READ ) transfer(disk.fd, disk.a+iOfst, n, 1);
  }
}
static void *kernelMain(void *pUnused){
  (void)pUnused;
  ioctl(disk.fdNbd, NBD_DO_IT);   /* Until the end */
  return 0;
}

static void loadDisk(const char *zBase){
  int fd = open(zBase, O_RDONLY|O_CLOEXEC);
  struct stat st;
  off_t i = 0;
  CHECK( fd>=0 && fstat(fd, &st)==0 && st.st_size>0 );
  disk.sz = (u64)st.st_size;
  disk.a = mmap(0, disk.sz, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
  CHECK( disk.a!=MAP_FAILED );
  while( i<st.st_size ){
    ssize_t n = pread(fd, disk.a+i, (size_t)(st.st_size-i), i);
    CHECK( n>0 );
    i += n;
  }
  close(fd);
}
static pid_t startDisk(const char *zNbd, pthread_t *pId){
  int aFd[2];
  pid_t pid;
  CHECK_INT( socketpair(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0, aFd), 0 );
  disk.fd = aFd[0];
  pid = fork();
  CHECK( pid>=0 );
  if( pid==0 ){
    close(aFd[1]);
    /* Whoever serves a disk must not wait for it to get memory. */
    CHECK_INT( prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0), 0 );
    serve();
    _exit(0);
  }
  close(aFd[0]);
  disk.fdNbd = open(zNbd, O_RDWR|O_CLOEXEC);
  CHECK( disk.fdNbd>=0 );
  CHECK_INT( ioctl(disk.fdNbd, NBD_SET_BLKSIZE, 512ul), 0 );
  CHECK_INT( ioctl(disk.fdNbd, NBD_SET_SIZE_BLOCKS, disk.sz/512), 0 );
  CHECK_INT( ioctl(disk.fdNbd, NBD_SET_FLAGS, (unsigned long)(NBD_FLAG_HAS_FLAGS
             |NBD_FLAG_SEND_FLUSH|NBD_FLAG_SEND_FUA|NBD_FLAG_SEND_TRIM)), 0 );
  CHECK_INT( ioctl(disk.fdNbd, NBD_SET_SOCK, aFd[1]), 0 );
  CHECK_INT( pthread_create(pId, 0, kernelMain, 0), 0 );
  return pid;
}

/********************************* Record ***********************************/

/* Each commit writes its tag into a page of its own, for checkEarly(). */
static void tagOf(char *z, size_t n, int iKind, int iWho, int i){
  snprintf(z, n, "<%s %d %d>", aKind[iKind].zName, iWho, i);
}
static void tagCreate(sqlite3 *db, int iKind){
  /* The end of a page is not always stored in one piece, so it has zeros. */
  testExec(db, "ALTER TABLE n ADD COLUMN tag; ALTER TABLE n ADD COLUMN pad;"
    "CREATE TRIGGER tag AFTER INSERT ON t BEGIN UPDATE n SET"
    " tag='<%s '||new.w||' '||new.i||'>', pad=zeroblob(64); END",
    aKind[iKind].zName);
}

static int nCommit;               /* Of each writer */

static void *writerMain(void *pArg){
  int iKind = (int)(long)pArg / MXWRITER, iWho = (int)(long)pArg % MXWRITER;
  const struct Kind *p = &aKind[iKind];
  sqlite3 *db = openKind(p, "mnt", 0);
  int i;
  CHECK( db!=0 );
  testExec(db, "PRAGMA %s; PRAGMA wal_autocheckpoint=%d; PRAGMA cache_size=8;"
           "PRAGMA journal_size_limit=%d", p->zSync, 25+iWho*50,
           iWho ? -1 : 65536);
  if( strcmp(p->zVfs, "waldio")==0 ) testExec(db, "PRAGMA waldio_prealloc=65536");
  for(i=1; i<=nCommit; i++){
    rowsAdd(db, iWho, i);
    mark(iKind, iWho, i);
    if( i%19==iWho ) rowsJunk(db, SZPAGE, i%2);
    if( i%47==iWho ){
      int rc = testTry(db, "PRAGMA wal_checkpoint(%s)", i%2 ? "RESTART" : "TRUNCATE");
      CHECK( rc==SQLITE_OK || (rc & 0xff)==SQLITE_BUSY );
    }
    if( p->bSessions || i%61==iWho+9 ){
      CHECK_INT( sqlite3_close(db), SQLITE_OK );
      db = openKind(p->bSessions && i%3==0 ? &stockSession : p, "mnt", 0);
      CHECK( db!=0 );
      testExec(db, "PRAGMA %s", p->zSync);
    }
  }
  CHECK_INT( sqlite3_close(db), SQLITE_OK );
  return 0;
}

static void writeAll(void){
  pthread_t aId[NKIND*MXWRITER];
  int i, j, n = 0;
  for(i=0; i<NKIND; i++){
    sqlite3 *db = openKind(&aKind[i], "mnt", SQLITE_OPEN_CREATE);
    CHECK( db!=0 );
    rowsCreate(db, SZPAGE);
    tagCreate(db, i);
    CHECK_INT( sqlite3_close(db), SQLITE_OK );
    for(j=0; j<aKind[i].nWriter; j++) mark(i, j, 0);
  }
  for(i=0; i<NKIND; i++){
    for(j=0; j<aKind[i].nWriter; j++){
      CHECK_INT( pthread_create(&aId[n++], 0, writerMain,
                                (void*)(long)(i*MXWRITER+j)), 0 );
    }
  }
  for(i=0; i<n; i++) CHECK_INT( pthread_join(aId[i], 0), 0 );
  printf("%d writers, %d commits each\n", n, nCommit);
}

static void record(const char *zFs, const char *zBase, const char *zLog){
  static const char zNbd[] = "/dev/nbd0";
  pthread_t id;
  pid_t pid;
  int i, rc, fd, st;
  testBegin("record");
  loadDisk(zBase);
  makeLog();
  pid = startDisk(zNbd, &id);
  /* Until the kernel has begun, the disk has no bytes. */
  for(i=0; (rc = mount(zNbd, "mnt", zFs, 0, 0))!=0 && i<500; i++) usleep(10000);
  CHECK_INT( rc, 0 );
  writeAll();
  CHECK_INT( umount2("mnt", 0), 0 );
  CHECK_INT( ioctl(disk.fdNbd, NBD_DISCONNECT), 0 );
  CHECK( waitpid(pid, &st, 0)==pid );
  CHECK_INT( st, 0 );
  CHECK_INT( pthread_join(id, 0), 0 );
  fd = open(zLog, O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC, 0600);
  CHECK( fd>=0 );
  writeAt(fd, pLog->a, pLog->n, 0);
  CHECK_INT( fsync(fd), 0 );
  close(fd);
}

/******************************** Read it ***********************************/

static Entry *aEntry;
static const unsigned char **apData;
static int nEntry;

static void readLog(const char *zLog, u64 szDisk){
  int fd = open(zLog, O_RDONLY|O_CLOEXEC);
  struct stat st;
  const unsigned char *a;
  u64 i = 0, n;
  CHECK( fd>=0 && fstat(fd, &st)==0 && st.st_size>0 );
  n = (u64)st.st_size;
  a = mmap(0, n, PROT_READ, MAP_SHARED, fd, 0);
  CHECK( a!=MAP_FAILED );
  close(fd);
  aEntry = calloc(n/sizeof(Entry), sizeof(aEntry[0]));
  apData = calloc(n/sizeof(Entry), sizeof(apData[0]));
  CHECK( aEntry!=0 && apData!=0 );
  while( i<n ){
    Entry *p = &aEntry[nEntry];
    CHECK( n-i>=sizeof(Entry) );
    memcpy(p, a+i, sizeof(Entry));
    i += sizeof(Entry);
    apData[nEntry++] = a+i;
    CHECK( p->eType>=LOG_WRITE && p->eType<=LOG_MARK );
    if( p->eType!=LOG_MARK ) CHECK( p->n<=szDisk && p->iOfst<=szDisk-p->n );
    if( p->eType<=LOG_FUA ){
      CHECK( n-i>=p->n );
      i += p->n;
    }
  }
}

/* What commits the marks before a moment acknowledge; -1: not even a database. */
static int aAcked[NKIND][MXWRITER];

static void readMark(const Entry *p){
  CHECK( p->iOfst<NKIND*MXWRITER );
  int *pn = &aAcked[p->iOfst/MXWRITER][p->iOfst%MXWRITER];
  CHECK_INT( p->n, *pn+1 );
  *pn = (int)p->n;
}

/************************ Acknowledged, and not durable *********************/

/* The record has the moment when the disk was told of a commit: by a write with FUA,
** or one that a flush followed, before the mark.  This looks at all commits, and
** not only at those before a chosen moment. */
static struct Early {
  int nMark;                      /* Marks of commits that may not be lost */
  int nWaldio, nStock;            /* Those that came too early */
} early;

/* The entry that first tells the disk of a tag; -1 if none before iEnd does. */
static int findTag(const char *zTag, int iFrom, int iEnd){
  int i;
  for(i=iFrom; i<iEnd; i++){
    if( aEntry[i].eType<=LOG_FUA
     && memmem(apData[i], aEntry[i].n, zTag, strlen(zTag))!=0
    ){
      return i;
    }
  }
  return -1;
}
static void checkEarly(void){
  int aLast[NKIND][MXWRITER];     /* Their marks before: the write is later */
  int i, j;
  memset(aLast, 0, sizeof(aLast));
  for(i=0; i<nEntry; i++){
    const Entry *p = &aEntry[i];
    int iKind, iWho, bDurable;
    char zTag[80];
    if( p->eType!=LOG_MARK ) continue;
    iKind = (int)p->iOfst/MXWRITER;
    iWho = (int)p->iOfst%MXWRITER;
    if( p->n>0 && aKind[iKind].bDurable ){
      early.nMark++;
      tagOf(zTag, sizeof(zTag), iKind, iWho, (int)p->n);
      j = findTag(zTag, aLast[iKind][iWho], i);
      bDurable = j>=0 && aEntry[j].eType==LOG_FUA;
      for(; j>=0 && j<i && !bDurable; j++) bDurable = aEntry[j].eType==LOG_FLUSH;
      if( !bDurable ){
        int bStock = strcmp(aKind[iKind].zVfs, "unix")==0;
        printf("%s at entry %d: acknowledged before it was durable\n", zTag, i);
        early.nStock += bStock;
        early.nWaldio += !bStock;
      }
    }
    aLast[iKind][iWho] = i;
  }
  printf("%d commits were acknowledged, too early %d of waldio and %d of stock"
         " SQLite\n", early.nMark, early.nWaldio, early.nStock);
}

/******************************** A state ***********************************/

static void apply(int fd, int i){
  const Entry *p = &aEntry[i];
  if( p->eType<=LOG_FUA ){
    writeAt(fd, apData[i], p->n, p->iOfst);
  }else if( p->eType==LOG_DISCARD ){
    CHECK_INT( fallocate(fd, FALLOC_FL_PUNCH_HOLE|FALLOC_FL_KEEP_SIZE,
                         (off_t)p->iOfst, (off_t)p->n), 0 );
  }
}
/* The write is torn: each of its blocks may be there, by addresses of the disk.
** Not by sectors, which is test-power's: a filesystem takes a block for one, as
** ext4 its superblock, whose checksum is over two sectors. */
static void applyPart(int fd, int i){
  const Entry *p = &aEntry[i];
  u64 j = 0;
  if( p->eType>LOG_FUA ) return;
  while( j<p->n ){
    u64 n = SZBLOCK - (p->iOfst+j)%SZBLOCK;
    if( n>p->n-j ) n = p->n-j;
    if( rnd(2) ) writeAt(fd, apData[i]+j, n, p->iOfst+j);
    j += n;
  }
}

/* Copy what a sparse file holds. */
static void copyImage(int fdFrom, int fdTo, off_t sz){
  static char aBuf[1<<20];
  off_t i, iEnd = 0;
  CHECK_INT( ftruncate(fdTo, 0), 0 );
  CHECK_INT( ftruncate(fdTo, sz), 0 );
  while( (i = lseek(fdFrom, iEnd, SEEK_DATA))>=0 ){
    iEnd = lseek(fdFrom, i, SEEK_HOLE);
    CHECK( iEnd>i );
    while( i<iEnd ){
      ssize_t n = pread(fdFrom, aBuf,
          iEnd-i<(off_t)sizeof(aBuf) ? (size_t)(iEnd-i) : sizeof(aBuf), i);
      CHECK( n>0 );
      writeAt(fdTo, aBuf, (u64)n, (u64)i);
      i += n;
    }
  }
  CHECK( errno==ENXIO );
}

/* Mount a file, and give it to a loop device that ends with the mount. */
static int mountImage(int fd, const char *zFs, const char *zAt){
  struct loop_config c;
  char zLoop[40];
  int fdControl = open("/dev/loop-control", O_RDWR|O_CLOEXEC);
  int fdLoop, i, rc = -1;
  CHECK( fdControl>=0 );
  memset(&c, 0, sizeof(c));
  c.fd = (unsigned)fd;
  c.info.lo_flags = LO_FLAGS_AUTOCLEAR;
  for(i=0; i<100; i++){
    int iLoop = ioctl(fdControl, LOOP_CTL_GET_FREE);
    CHECK( iLoop>=0 );
    snprintf(zLoop, sizeof(zLoop), "/dev/loop%d", iLoop);
    fdLoop = open(zLoop, O_RDWR|O_CLOEXEC);
    if( fdLoop>=0 && (rc = ioctl(fdLoop, LOOP_CONFIGURE, &c))==0 ) break;
    if( fdLoop>=0 ) close(fdLoop);
    usleep(10000);                /* Another has taken it */
  }
  close(fdControl);
  CHECK_INT( rc, 0 );
  rc = mount(zLoop, zAt, zFs, 0, 0);
  close(fdLoop);
  return rc;
}

/******************************** Checks ************************************/

static struct Sums {
  int nState, nBad;
  int nStock;                     /* What is wrong with stock SQLite's, FULL */
  int nLossy;                     /* States in which stock SQLite, NORMAL, lost */
  int nMost;                      /* ... at most so many commits */
} sums;

static void bad(int iEntry, const char *zWhat, const char *zMore){
  if( sums.nBad++<20 ){
    printf("after entry %d, %s: %s\n", iEntry, zWhat, zMore);
  }
}

static void checkDb(int iKind, int iEntry){
  const struct Kind *p = &aKind[iKind];
  sqlite3 *db;
  int i, bLost = 0;
  char zMore[200];
  const char *z;
  zMore[0] = 0;
  db = openKind(p, "mnt", 0);
  if( aAcked[iKind][0]<0 ){
    sqlite3_close(db);            /* Being made */
    return;
  }
  if( db==0 ){
    bad(iEntry, p->zName, "cannot be opened");
    return;
  }
  z = rowsWhole(db);
  if( strcmp(z, "ok")!=0 ) snprintf(zMore, sizeof(zMore), "%.190s", z);
  for(i=0; i<p->nWriter && zMore[0]==0; i++){
    int n = rowsOf(db, i), nAcked = aAcked[iKind][i];
    if( n<0 || n>nAcked+1 || (n<nAcked && p->bDurable) ){
      snprintf(zMore, sizeof(zMore), "writer %d: %d acknowledged, %d there", i,
               nAcked, n);
    }else if( n<nAcked ){
      bLost = 1;
      if( nAcked-n>sums.nMost ) sums.nMost = nAcked-n;
    }
  }
  sums.nLossy += bLost;
  if( zMore[0] && p->bDurable && strcmp(p->zVfs, "unix")==0 ){
    printf("after entry %d, %s: %s\n", iEntry, p->zName, zMore);
    sums.nStock++;
  }else if( zMore[0] ){
    bad(iEntry, p->zName, zMore);
  }
  if( sqlite3_close(db)!=SQLITE_OK ) bad(iEntry, p->zName, "close");
}

static void checkImage(int fd, const char *zFs, int iEntry){
  int i;
  sums.nState++;
  if( mountImage(fd, zFs, "mnt")!=0 ){
    bad(iEntry, "mount", strerror(errno));
    return;
  }
  for(i=0; i<NKIND; i++) checkDb(i, iEntry);
  CHECK_INT( umount2("mnt", 0), 0 );
}

/* Which moments: after this many entries.  As many at flushes as there are. */
static char *chooseMoments(int nState){
  char *aChosen = calloc((size_t)nEntry+1, 1);
  int i, n = 0, nFlush = 0;
  CHECK( aChosen!=0 );
  for(i=0; i<nEntry; i++){
    nFlush += aEntry[i].eType==LOG_FLUSH || aEntry[i].eType==LOG_FUA;
  }
  for(i=0; i<nEntry; i++){
    if( aEntry[i].eType==LOG_FLUSH || aEntry[i].eType==LOG_FUA ){
      if( (int)rnd((unsigned)nFlush)>=nState/2 ) continue;
      aChosen[i+1] = 1;
      n++;
    }
  }
  printf("%d entries, %d flushes and FUA writes; %d moments at them\n", nEntry,
         nFlush, n);
  if( nState>nEntry ) nState = nEntry;
  while( n<nState ){
    i = 1 + (int)rnd((unsigned)nEntry);
    if( !aChosen[i] ){
      aChosen[i] = 1;
      n++;
    }
  }
  return aChosen;
}

static void check(const char *zFs, const char *zBase, const char *zLog, int nState){
  int fdBase = open(zBase, O_RDONLY|O_CLOEXEC);
  int fdDisk = open("disk", O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC, 0600);
  int fdState = open("state", O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC, 0600);
  struct stat st;
  char *aChosen;
  int i, iNext, iFirst = 0;       /* Those from iFirst on are in the cache */
  CHECK( fdBase>=0 && fdDisk>=0 && fdState>=0 );
  CHECK( fstat(fdBase, &st)==0 && st.st_size>0 );
  CHECK_INT( mkdir("mnt", 0700), 0 );
  /* Whoever ends this program ends its mounts. */
  CHECK_INT( unshare(CLONE_NEWNS), 0 );
  CHECK_INT( mount(0, "/", 0, MS_REC|MS_PRIVATE, 0), 0 );
  readLog(zLog, (u64)st.st_size);
  memset(aAcked, 0xff, sizeof(aAcked));
  checkEarly();
  copyImage(fdBase, fdDisk, st.st_size);
  aChosen = chooseMoments(nState);
  for(i=0; i<=nEntry; i++){
    if( aChosen[i] ){
      unsigned eWhich = rnd(4);
      copyImage(fdDisk, fdState, st.st_size);
      for(iNext=iFirst; iNext<i; iNext++){
        int bThere = eWhich==0 || (eWhich>1 && rnd(2));
        if( bThere || aEntry[iNext].eType==LOG_FUA ) apply(fdState, iNext);
      }
      if( i<nEntry && rnd(2) ) applyPart(fdState, i);
      testBegin("after entry %d", i);
      checkImage(fdState, zFs, i);
      if( isatty(2) ) fprintf(stderr, "\r%d states, %d bad", sums.nState, sums.nBad);
    }
    if( i==nEntry ) break;
    if( aEntry[i].eType==LOG_MARK ) readMark(&aEntry[i]);
    if( aEntry[i].eType==LOG_FLUSH ){
      for(; iFirst<i; iFirst++) apply(fdDisk, iFirst);
    }
  }
  if( isatty(2) ) fprintf(stderr, "\r");
}

int main(int argc, char **argv){
  setvbuf(stdout, 0, _IOLBF, 0);
  CHECK_INT( waldio_register(0), SQLITE_OK );
  if( argc==6 && strcmp(argv[1], "record")==0 ){
    nCommit = atoi(argv[5]);
    record(argv[2], argv[3], argv[4]);
    return 0;
  }
  if( argc!=7 || strcmp(argv[1], "check")!=0 ){
    fprintf(stderr, "usage: test-crash record FS BASE LOG COMMITS\n"
                    "       test-crash check FS BASE LOG STATES SEED\n");
    return 2;
  }
  iRandom = strtoull(argv[6], 0, 10);
  check(argv[2], argv[3], argv[4], atoi(argv[5]));
  printf("%s, SQLite %s: %d states, %d bad; stock SQLite lost commits in %d with"
         " synchronous=FULL, and in %d with NORMAL, at most %d\n", argv[2],
         sqlite3_libversion(), sums.nState, sums.nBad, sums.nStock, sums.nLossy,
         sums.nMost);
  return sums.nBad>0 || early.nWaldio>0 || sums.nLossy==0
      || (sums.nStock+early.nStock>0 && strcmp(argv[2], "f2fs")!=0);
}
