// Package waldio links a write-ahead log in aligned blocks into the SQLite of mattn/go-sqlite3.
package waldio

// #cgo CFLAGS: -std=gnu11 -DSQLITE_CORE -include ${SRCDIR}/weak.h
// #cgo LDFLAGS: -pthread
// #include "waldio.h"
import "C"

import (
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"

	"github.com/mattn/go-sqlite3"
)

// Register makes the VFS "waldio" known to SQLite, and the table waldio_stat to every connection
// opened later; it changes nothing else. It may be called again. An error is SQLite's.
func Register() error {
	if code := C.waldio_register(0); code != 0 {
		return sqlite3.ErrNo(code)
	}
	return nil
}

// Open calls Register and returns a pool whose connections have the database file in waldio's log.
// Nothing is opened before the first use, as with sql.Open. Where waldio cannot help, the log is
// SQLite's own, and column reason of the table waldio_stat says why.
//
// For options of go-sqlite3 or of waldio call Register, and sql.Open with
// "file:app.db?vfs=waldio&_journal_mode=wal&...".
func Open(file string) (*sql.DB, error) {
	if file == "" || file == ":memory:" {
		return nil, errors.New("waldio: '" + file + "' is no file: there is no log in memory")
	}
	absolute, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	if err := Register(); err != nil {
		return nil, err
	}
	name := url.URL{Scheme: "file", Path: absolute, RawQuery: "vfs=waldio&_journal_mode=wal"}
	return sql.Open("sqlite3", name.String())
}
