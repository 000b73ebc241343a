/*
** What the C examples do with a database, however waldio came into them.
*/
#include <stdio.h>
#include "sqlite3.h"

static int notesRow(void *pUnused, int n, char **az, char **azName){
  (void)pUnused; (void)azName;
  printf("layout=%s commits=%s reason=%s\n", az[0], az[1], az[2] ? az[2] : "");
  return n!=3;
}

static int notes(const char *zUri){
  sqlite3 *db = 0;
  char *zErr = 0;
  int rc = sqlite3_open_v2(zUri, &db,
      SQLITE_OPEN_READWRITE|SQLITE_OPEN_CREATE|SQLITE_OPEN_URI, 0);
  if( rc==SQLITE_OK ){
    rc = sqlite3_exec(db,
        "PRAGMA journal_mode = waldio;"
        "CREATE TABLE notes(text);"
        "INSERT INTO notes VALUES ('milk'), ('bread');"
        "INSERT INTO notes VALUES ('salt');", 0, 0, &zErr);
  }
  if( rc==SQLITE_OK ){
    rc = sqlite3_exec(db, "SELECT layout, commits, reason FROM waldio_stat",
                      notesRow, 0, &zErr);
  }
  if( rc!=SQLITE_OK ){
    fprintf(stderr, "%s: %s\n", zUri, zErr ? zErr : sqlite3_errmsg(db));
  }
  fflush(stdout);
  while( getchar()!=EOF ){}
  sqlite3_free(zErr);
  sqlite3_close(db);
  return rc!=SQLITE_OK;
}
