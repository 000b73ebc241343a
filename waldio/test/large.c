/*
** A log above 2 GiB, and above 4, is as good as any; also in a program of 32 bits
** (make test-32), whose C library has calls that fail for it.  The file has holes
** where nobody looks.
*/
#include "test.h"

static int commitAndDie(void){
  sqlite3 *db = testOpen("file:l.db?vfs=waldio");
  testExec(db, "PRAGMA synchronous=FULL; INSERT INTO t VALUES(1); INSERT INTO t VALUES(2)");
  return 7;
}

static void large(long long n, int bOld){
  sqlite3 *db;
  struct stat st;
  pid_t pid;
  int status, i;
  testBegin("a log of %lld bytes%s", n, bOld ? ", of the year 2100" : "");
  CHECK_INT( testShell("rm -f l.db*"), 0 );
  db = testOpen("file:l.db?vfs=waldio");
  testExec(db, "PRAGMA journal_mode=wal; CREATE TABLE t(a)");
  sqlite3_close(db);
  pid = fork();
  CHECK( pid>=0 );
  if( pid==0 ) _exit(commitAndDie());
  CHECK( waitpid(pid, &status, 0)==pid );
  CHECK_INT( WEXITSTATUS(status), 7 );
  CHECK_INT( testByte19("l.db"), 0x57 );
  CHECK_INT( testShell("truncate -s %lld l.db-wal", n), 0 );
  if( bOld ) CHECK_INT( testShell("touch -d '2100-01-01' l.db-wal"), 0 );
  db = testOpen("file:l.db?vfs=waldio");
  CHECK_STR( testText(db, "SELECT count(*) FROM t"), "2" );
  for(i=3; i<10; i++) testExec(db, "INSERT INTO t VALUES(%d)", i);
  CHECK_STR( testText(db, "SELECT fallbacks FROM waldio_stat"), "0" );
  CHECK_STR( testText(db, "SELECT durable_writes>0 FROM waldio_stat"), "1" );
  sqlite3_close(db);
  CHECK_INT( testByte19("l.db"), 2 );
  CHECK( stat("l.db-wal", &st)==0 && st.st_size<=5*1024*1024 );
  db = testOpen("file:l.db?vfs=unix");
  CHECK_STR( testText(db, "SELECT count(*) FROM t"), "9" );
  CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
  sqlite3_close(db);
}

int main(void){
  testEnter();
  CHECK_INT( waldio_register(0), SQLITE_OK );
  large(3LL<<30, 0);
  large((4LL<<30)+4096, 0);
  /* SQLite built for 32 bits has 32 bits for times. */
  if( sizeof(long)==8 ) large(65536, 1);
  printf("%d bits\n", (int)sizeof(long)*8);
  testLeave("large");
  return 0;
}
