/*
** C, linked with waldio.o and any SQLite: auto_extension DATABASE
**
** The first connection registers the VFS; those after it can name it.
*/
#include "notes.h"

int sqlite3_waldio_init(sqlite3*, char**, const struct sqlite3_api_routines*);

int main(int argc, char **argv){
  sqlite3 *db = 0;
  char *zUri;
  int rc;
  if( argc!=2 ) return 2;
  sqlite3_auto_extension((void(*)(void))sqlite3_waldio_init);
  rc = sqlite3_open(":memory:", &db);
  sqlite3_close(db);
  if( rc!=SQLITE_OK ) return 1;
  zUri = sqlite3_mprintf("file:%s?vfs=waldio", argv[1]);
  rc = zUri ? notes(zUri) : 1;
  sqlite3_free(zUri);
  return rc;
}
