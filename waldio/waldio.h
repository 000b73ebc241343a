/*
** waldio: a SQLite write-ahead log in aligned blocks.
**
** Only programs that link waldio.c statically need this header; docs/waldio.md
** has every way to load and use it.
*/
#ifndef WALDIO_H
#define WALDIO_H

#include "sqlite3.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
** Register the VFS "waldio" over the VFS that is the default now, and add
** the virtual table waldio_stat to every connection opened later.  It becomes
** the default VFS if bDefault is not zero.  Calling it again only changes
** which VFS is the default.  Returns an SQLite result code.
*/
int waldio_register(int bDefault);

/*
** The same as waldio_register(1), in the form SQLITE_EXTRA_INIT wants:
** compile SQLite with -DSQLITE_EXTRA_INIT=waldio_extra_init.
*/
int waldio_extra_init(const char *zUnused);

/*
** A VFS other than SQLite's own, below waldio, may offer this file control on
** log files: write nByte bytes, a multiple of 512, at offset iOfst, and have
** them on stable storage before returning.  waldio_write is its argument.  If
** it returns SQLITE_NOTFOUND then xWrite() and xSync() are used.
*/
#define WALDIO_FCNTL_WRITE 0x57414c31
typedef struct waldio_write waldio_write;
struct waldio_write {
  const void *pData;
  sqlite3_int64 nByte;
  sqlite3_int64 iOfst;
};

#ifdef __cplusplus
}
#endif
#endif /* WALDIO_H */
