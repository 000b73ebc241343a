/*
** C, linked with waldio.o and an SQLite that was compiled with
** -DSQLITE_EXTRA_INIT=waldio_extra_init: extra_init DATABASE
*/
#include "notes.h"

int main(int argc, char **argv){
  return argc==2 ? notes(argv[1]) : 2;
}
