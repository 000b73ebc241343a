/*
** A database with two accounts.  Each commit moves one unit from the first to the
** second and adds a row, so that half of one shows.
*/
#ifndef WALDIO_ACCOUNT_H
#define WALDIO_ACCOUNT_H

#include "test.h"

#define MXCOMMIT 100000

static int nTried;                /* Commits since accountBegin() */
static int nAcked;                /* Those that returned SQLITE_OK */
static char aAcked[MXCOMMIT+1];   /* 1 for these, by number from 1 on */

static void accountCreate(sqlite3 *db){
  testExec(db, "CREATE TABLE acct(id INTEGER PRIMARY KEY, n);"
    "INSERT INTO acct VALUES(1,0),(2,0);"
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b); CREATE TABLE junk(a)");
}

static void accountBegin(void){
  nAcked = nTried = 0;
}

/* Returns SQLITE_OK, or the first error. */
static int commit(sqlite3 *db){
  int rc;
  nTried++;
  CHECK( nTried<=MXCOMMIT );
  rc = testTry(db, "BEGIN IMMEDIATE;"
      "UPDATE acct SET n=n-1 WHERE id=1; UPDATE acct SET n=n+1 WHERE id=2;"
      "INSERT INTO t VALUES(%d, hex(zeroblob(%d))); COMMIT",
      nTried, 200+nTried%7*100);
  aAcked[nTried] = rc==SQLITE_OK;
  if( rc==SQLITE_OK ){
    nAcked++;
  }else if( !sqlite3_get_autocommit(db) ){
    sqlite3_exec(db, "ROLLBACK", 0, 0, 0);
  }
  return rc;
}

/* All commits that were acknowledged are there, and none in part. */
static void consistent(sqlite3 *db){
  int i, n;
  CHECK_STR( testText(db, "PRAGMA integrity_check"), "ok" );
  n = atoi(testText(db, "SELECT count(*) FROM t"));
  CHECK_INT( atoi(testText(db, "SELECT n FROM acct WHERE id=2")), n );
  CHECK_INT( atoi(testText(db, "SELECT n FROM acct WHERE id=1")), -n );
  CHECK_STR( testText(db, "SELECT count(*) FROM t WHERE "
                          "b<>hex(zeroblob(200+a%%7*100))"), "0" );
  for(i=1; i<=nTried; i++){
    if( aAcked[i] ){
      CHECK_STR( testText(db, "SELECT count(*) FROM t WHERE a=%d", i), "1" );
    }
  }
}

#endif
