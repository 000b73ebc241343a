/*
** The thread of waldio's exists only where it is asked for and SQLite has mutexes:
** not with SQLITE_CONFIG_SINGLETHREAD, whatever the build could do.
*/
#include "test.h"

/* The most threads that a configuration ever has. */
static int most(int eConfig, const char *zOption){
  sqlite3 *db, *db2;
  int i, n, nMost = 0, nBefore = testThreads();
  testBegin("%s, SQLITE_CONFIG number %d", zOption, eConfig);
  CHECK_INT( sqlite3_config(eConfig), SQLITE_OK );
  CHECK_INT( waldio_register(0), SQLITE_OK );
  db = testOpen("file:s.db?vfs=waldio");
  testExec(db, "PRAGMA journal_mode=wal; PRAGMA wal_autocheckpoint=5;"
               "CREATE TABLE t(a); PRAGMA %s", zOption);
  db2 = testOpen("file:s.db?vfs=waldio");
  testExec(db2, "PRAGMA wal_autocheckpoint=5; PRAGMA %s", zOption);
  for(i=0; i<40; i++){
    testExec(i&1 ? db : db2, "INSERT INTO t VALUES(%d)", i);
    n = testThreads() - nBefore;
    if( n>nMost ) nMost = n;
  }
  CHECK_STR( testText(db, "SELECT count(*) FROM t"), "40" );
  sqlite3_close(db2);
  sqlite3_close(db);
  /* /proc has a thread a little longer than pthread_join(). */
  for(i=0; i<2000 && testThreads()!=nBefore; i++) usleep(1000);
  CHECK_INT( testThreads(), nBefore );
  db = testOpen("file:s.db?vfs=unix");
  CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
  sqlite3_close(db);
  return nMost;
}

/* In a process of its own, since SQLite is configured once. */
static void expect(int eConfig, const char *zOption, int n){
  int st;
  pid_t pid;
  CHECK_INT( testShell("rm -f s.db*"), 0 );
  pid = fork();
  CHECK( pid>=0 );
  if( pid==0 ){
    int nMost = most(eConfig, zOption);
    CHECK_INT( nMost, n );
    exit(0);
  }
  CHECK( waitpid(pid, &st, 0)==pid );
  CHECK_INT( st, 0 );
}

int main(void){
#ifdef __SANITIZE_THREAD__
  printf("single: skipped, ThreadSanitizer has threads of its own\n");
  return 0;
#endif
  testEnter();
  expect(SQLITE_CONFIG_SINGLETHREAD, "waldio_sync='group'", 0);
  expect(SQLITE_CONFIG_MULTITHREAD, "waldio_sync='group'", 1);
  expect(SQLITE_CONFIG_SERIALIZED, "waldio_sync='group'", 1);
  expect(SQLITE_CONFIG_SERIALIZED, "waldio_sync=full", 0);
  testLeave("single");
  return 0;
}
