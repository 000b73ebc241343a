/*
** C, linked with waldio.o and any SQLite: register DATABASE
*/
#include "notes.h"
#include "waldio.h"

int main(int argc, char **argv){
  if( argc!=2 || waldio_register(1)!=SQLITE_OK ) return 2;
  return notes(argv[1]);
}
