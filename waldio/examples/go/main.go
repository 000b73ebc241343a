// Go with mattn/go-sqlite3: waldio-notes WALDIO.SO DATABASE
package main

import (
	"database/sql"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/mattn/go-sqlite3"
)

func run(extension, path string) error {
	// A connection with the extension makes waldio known to the process.
	sql.Register("waldio", &sqlite3.SQLiteDriver{Extensions: []string{extension}})
	loader, err := sql.Open("waldio", ":memory:")
	if err != nil {
		return err
	}
	if err := loader.Ping(); err != nil {
		return err
	}

	db, err := sql.Open("sqlite3", "file:"+path+"?vfs=waldio&_journal_mode=wal")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range []string{
		"CREATE TABLE notes(text)",
		"INSERT INTO notes VALUES ('milk'), ('bread')",
		"INSERT INTO notes VALUES ('salt')",
	} {
		if _, err := db.Exec(statement); err != nil {
			return err
		}
	}
	var layout string
	var commits int
	var reason sql.NullString
	row := db.QueryRow("SELECT layout, commits, reason FROM waldio_stat")
	if err := row.Scan(&layout, &commits, &reason); err != nil {
		return err
	}
	fmt.Printf("layout=%s commits=%d reason=%s\n", layout, commits, reason.String)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}
