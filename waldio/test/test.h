/*
** What every test program of waldio uses.
**
** A test runs in a fresh directory below the current one, so that it sees the
** filesystem the sources are on.  The first fact that does not hold ends the
** program with its place, and leaves the directory for inspection.
*/
#ifndef WALDIO_TEST_H
#define WALDIO_TEST_H

#define _FILE_OFFSET_BITS 64      /* Also in a program of 32 bits */
#define _TIME_BITS 64
#include "sqlite3.h"
#include "waldio.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))

/* What is being tested now, for the report of a failure. */
static char testName[256];
static char testDir[256];
static char testHome[512];

#define CHECK(x) \
  do{ if( !(x) ) testFail(__FILE__, __LINE__, #x, ""); }while(0)
#define CHECK_INT(x,want) do{ \
    long long got_ = (long long)(x), want_ = (long long)(want); \
    if( got_!=want_ ){ \
      char z_[80]; \
      snprintf(z_, sizeof(z_), "got %lld, expected %lld", got_, want_); \
      testFail(__FILE__, __LINE__, #x, z_); \
    } \
  }while(0)
#define CHECK_STR(x,want) do{ \
    const char *zGot_ = (x), *zWant_ = (want); \
    if( zGot_==0 || strcmp(zGot_, zWant_)!=0 ){ \
      char z_[400]; \
      snprintf(z_, sizeof(z_), "got '%.150s', expected '%.150s'", \
               zGot_ ? zGot_ : "(null)", zWant_); \
      testFail(__FILE__, __LINE__, #x, z_); \
    } \
  }while(0)

static void testFail(const char *zFile, int iLine, const char *zExpr,
                     const char *zMore){
  fprintf(stderr, "%s:%d: in \"%s\": %s %s\n  files kept in %s\n",
          zFile, iLine, testName, zExpr, zMore, testDir);
  exit(1);
}

static UNUSED void testBegin(const char *zFormat, ...){
  va_list ap;
  va_start(ap, zFormat);
  vsnprintf(testName, sizeof(testName), zFormat, ap);
  va_end(ap);
}

/* Run shell commands; the exit status, or -1 if a signal ended them. */
static UNUSED int testShell(const char *zFormat, ...){
  char z[2000];
  va_list ap;
  int st;
  va_start(ap, zFormat);
  vsnprintf(z, sizeof(z), zFormat, ap);
  va_end(ap);
  st = system(z);
  return WIFEXITED(st) ? WEXITSTATUS(st) : -1;
}

/* Make and enter the directory of this program's files. */
static UNUSED void testEnter(void){
  CHECK( getcwd(testHome, sizeof(testHome))!=0 );
  snprintf(testDir, sizeof(testDir), "build/work-XXXXXX");
  CHECK( mkdtemp(testDir)!=0 );
  CHECK_INT( chdir(testDir), 0 );
}
static UNUSED void testLeave(const char *zWhat){
  CHECK_INT( chdir(testHome), 0 );
  CHECK_INT( testShell("rm -rf '%s'", testDir), 0 );
  printf("ok %s, SQLite %s\n", zWhat, sqlite3_libversion());
}

/* What makes a new database's log have layout W, T, or P with slots padded to
** sectors: to be added to the URI file:...?vfs=waldio. */
static UNUSED const char *testLayout(int cLayout){
  return cLayout=='W' ? "" : cLayout=='T' ? "&waldio_reserve=0"
       : "&waldio_reserve=0&waldio_padding=512";
}

/* The byte of a database's header that says who reads it; its length, or -1. */
static UNUSED int testByte19(const char *zName){
  int c;
  FILE *f = fopen(zName, "rb");
  CHECK( f!=0 && fseek(f, 19, SEEK_SET)==0 );
  c = getc(f);
  fclose(f);
  return c;
}
static UNUSED long testSize(const char *zName){
  struct stat st;
  return stat(zName, &st)==0 ? (long)st.st_size : -1;
}

/* All of a file, to be freed. */
static UNUSED unsigned char *testRead(const char *zName, long *pn){
  FILE *f = fopen(zName, "rb");
  unsigned char *a;
  CHECK( f!=0 && fseek(f, 0, SEEK_END)==0 );
  *pn = ftell(f);
  rewind(f);
  a = malloc((size_t)*pn+1);
  CHECK( a!=0 && (long)fread(a, 1, (size_t)*pn, f)==*pn );
  fclose(f);
  return a;
}
/* A file that is truncated, not deleted, is flushed by ext4 when closed. */
static UNUSED void testWrite(const char *zName, const unsigned char *a, long n){
  FILE *f;
  CHECK( unlink(zName)==0 || errno==ENOENT );
  f = fopen(zName, "wb");
  CHECK( f!=0 && (long)fwrite(a, 1, (size_t)n, f)==n );
  CHECK( fclose(f)==0 );
}

static UNUSED unsigned testCrc32c(const unsigned char *a, int n){
  unsigned c = 0xffffffff;
  int i;
  for(; n>0; n--, a++){
    c ^= *a;
    for(i=0; i<8; i++) c = (c>>1) ^ ((c & 1) ? 0x82f63b78 : 0);
  }
  return ~c;
}

/* A random number below n: splitmix64, with a state of one's own or the program's. */
static UNUSED unsigned rndOf(unsigned long long *p, unsigned n){
  unsigned long long x = *p += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x>>30))*0xbf58476d1ce4e5b9ull;
  x = (x ^ (x>>27))*0x94d049bb133111ebull;
  return (unsigned)((x ^ (x>>31))>>32)%n;
}
static UNUSED unsigned long long iRandom;
static UNUSED unsigned rnd(unsigned n){
  return rndOf(&iRandom, n);
}

/* The threads of this process. */
static UNUSED int testThreads(void){
  DIR *p = opendir("/proc/self/task");
  int n = 0;
  CHECK( p!=0 );
  while( readdir(p)!=0 ) n++;
  closedir(p);
  return n-2;                     /* "." and ".." */
}

/* Open a database by URI, with a busy timeout. */
static UNUSED sqlite3 *testOpen(const char *zUri){
  sqlite3 *db = 0;
  int rc = sqlite3_open_v2(zUri, &db,
      SQLITE_OPEN_READWRITE|SQLITE_OPEN_CREATE|SQLITE_OPEN_URI, 0);
  if( rc!=SQLITE_OK ) testFail(zUri, 0, "open", sqlite3_errmsg(db));
  sqlite3_busy_timeout(db, 10000);
  sqlite3_extended_result_codes(db, 1);
  return db;
}

/* Run SQL and return its result code. */
static UNUSED int testTry(sqlite3 *db, const char *zFormat, ...){
  va_list ap;
  char *z;
  int rc;
  va_start(ap, zFormat);
  z = sqlite3_vmprintf(zFormat, ap);
  va_end(ap);
  rc = z ? sqlite3_exec(db, z, 0, 0, 0) : SQLITE_NOMEM;
  sqlite3_free(z);
  return rc;
}
#define testExec(db, ...) do{ \
    if( testTry(db, __VA_ARGS__)!=SQLITE_OK ){ \
      testFail(__FILE__, __LINE__, #__VA_ARGS__, sqlite3_errmsg(db)); \
    } \
  }while(0)

/* First column of the first row as text, in a buffer of its own per call
** site's next three calls; "" for no row, "error: ..." for an error. */
static UNUSED const char *testText(sqlite3 *db, const char *zFormat, ...){
  static __thread char aOut[4][1000];
  static __thread int iOut;
  char *zOut = aOut[iOut++ & 3];
  sqlite3_stmt *pStmt = 0;
  va_list ap;
  char *z;
  int rc;
  va_start(ap, zFormat);
  z = sqlite3_vmprintf(zFormat, ap);
  va_end(ap);
  zOut[0] = 0;
  rc = sqlite3_prepare_v2(db, z, -1, &pStmt, 0);
  if( rc==SQLITE_OK ){
    if( sqlite3_step(pStmt)==SQLITE_ROW ){
      const char *zVal = (const char*)sqlite3_column_text(pStmt, 0);
      snprintf(zOut, sizeof(aOut[0]), "%s", zVal ? zVal : "");
      while( sqlite3_step(pStmt)==SQLITE_ROW ){}
    }
    rc = sqlite3_finalize(pStmt);
  }
  if( rc!=SQLITE_OK ){
    snprintf(zOut, sizeof(aOut[0]), "error: %s", sqlite3_errmsg(db));
  }
  sqlite3_free(z);
  return zOut;
}

#endif /* WALDIO_TEST_H */
