/*
** Rows that tell which commits a database has: writer w adds its row i in its
** commit i, and every commit counts itself in n.
*/
#ifndef WALDIO_ROWS_H
#define WALDIO_ROWS_H

#include "test.h"

static UNUSED void rowsCreate(sqlite3 *db, int szPage){
  testExec(db, "PRAGMA page_size=%d; PRAGMA journal_mode=wal;"
           "CREATE TABLE t(w, i, b, PRIMARY KEY(w,i)); CREATE TABLE junk(a);"
           "CREATE TABLE n(n); INSERT INTO n VALUES(0)", szPage);
}
static UNUSED void rowsAdd(sqlite3 *db, int iWho, int i){
  testExec(db, "BEGIN IMMEDIATE; INSERT INTO t VALUES(%d,%d,hex(zeroblob(%d)));"
               "UPDATE n SET n=n+1; COMMIT", iWho, i, i%50*20);
}
/* A large transaction, which leaves nothing. */
static UNUSED void rowsJunk(sqlite3 *db, int szPage, int bRollback){
  testExec(db, "BEGIN IMMEDIATE; WITH c(x) AS (SELECT 1 UNION ALL SELECT x+1"
    " FROM c WHERE x<40) INSERT INTO junk SELECT hex(zeroblob(%d)) FROM c;"
    "UPDATE junk SET a='x'; %s", szPage/3,
    bRollback ? "ROLLBACK" : "DELETE FROM junk; COMMIT");
}

/* How many rows a writer has, which are the first ones; -1 if they are not, or
** cannot be read. */
static UNUSED int rowsOf(sqlite3 *db, int iWho){
  char *zEnd;
  const char *z = testText(db, "SELECT CASE WHEN count(*)=ifnull(max(i),0)"
                           " THEN count(*) ELSE -1 END FROM t WHERE w=%d", iWho);
  long n = strtol(z, &zEnd, 10);
  return zEnd==z || *zEnd ? -1 : (int)n;
}

/* "ok", or what is wrong with the database. */
static UNUSED const char *rowsWhole(sqlite3 *db){
  const char *z = testText(db, "PRAGMA integrity_check");
  if( strcmp(z, "ok")!=0 ) return z;
  z = testText(db, "SELECT (SELECT n FROM n)=(SELECT count(*) FROM t)");
  if( strcmp(z, "1")!=0 ) return z[0]=='e' ? z : "the count is not of these rows";
  z = testText(db, "SELECT count(*) FROM t WHERE b<>hex(zeroblob(i%%50*20))");
  if( strcmp(z, "0")!=0 ) return z[0]=='e' ? z : "a row is not what was written";
  return "ok";
}

#endif /* WALDIO_ROWS_H */
