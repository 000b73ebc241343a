/*
** A database that several users share: whoever comes next can use it, whatever user
** closed it last.  Needs root, to be these users.
*/
#include "test.h"
#include <grp.h>

#define SHARED_GROUP 60100

/* As a user of a group of its own, who is in the shared one as well. */
static int session(int iUser){
  gid_t shared = SHARED_GROUP;
  sqlite3 *db;
  int rc;
  alarm(60);
  if( setgroups(1, &shared) || setgid((gid_t)(60200+iUser)) || setuid((uid_t)(60200+iUser)) ) return 9;
  umask(0007);
  db = testOpen("file:s.db?vfs=waldio");
  rc = testTry(db, "INSERT INTO t VALUES(%d)", iUser);
  if( rc!=SQLITE_OK ) fprintf(stderr, "user %d: %s\n", iUser, sqlite3_errmsg(db));
  sqlite3_close(db);
  return rc==SQLITE_OK ? 0 : 1;
}

/* The owner of the database is root or one of them; its mode and group are given. */
static void users(int iOwner, int mode, const char *zAcl){
  sqlite3 *db;
  int i, st;
  testBegin("owner %d, mode %o %s", iOwner, (unsigned)mode, zAcl);
  CHECK_INT( testShell("rm -f s.db*"), 0 );
  db = testOpen("file:s.db?vfs=waldio");
  testExec(db, "PRAGMA journal_mode=wal; CREATE TABLE t(a)");
  sqlite3_close(db);
  CHECK_INT( testShell("rm -f s.db-wal"), 0 );
  CHECK_INT( chown("s.db", iOwner ? (uid_t)(60200+iOwner) : 0, SHARED_GROUP), 0 );
  CHECK_INT( chmod("s.db", (mode_t)mode), 0 );
  if( zAcl[0] ) CHECK_INT( testShell("setfacl -m %s s.db", zAcl), 0 );
  for(i=1; i<=6; i++){
    pid_t pid = fork();
    CHECK( pid>=0 );
    if( pid==0 ) _exit(session(1+i%3));
    CHECK( waitpid(pid, &st, 0)==pid );
    CHECK_INT( st, 0 );
  }
  db = testOpen("file:s.db?vfs=unix");
  CHECK_STR( testText(db, "SELECT count(*) FROM t"), "6" );
  sqlite3_close(db);
}

int main(void){
  char zDir[] = "/var/tmp/waldio-group-XXXXXX";
  if( geteuid()!=0 ){
    printf("skip: databases that users share, not root\n");
    return 0;
  }
  CHECK_INT( waldio_register(0), SQLITE_OK );
  testEnter();
  /* Where these users may come to. */
  CHECK( mkdtemp(zDir)!=0 && chmod(zDir, 0777)==0 && chdir(zDir)==0 );
  users(0, 0660, "");
  users(1, 0660, "");
  users(0, 0666, "");
  if( testShell("command -v setfacl >/dev/null")==0 ) users(1, 0600, "u:60202:rw,u:60203:rw");
  else printf("skip: access lists, setfacl is not installed\n");
  CHECK_INT( chdir(testHome), 0 );
  CHECK_INT( testShell("rm -rf '%s'", zDir), 0 );
  CHECK_INT( chdir(testDir), 0 );
  testLeave("group");
  return 0;
}
