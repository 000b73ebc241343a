//! What a database is like, read without changing a byte of it or of what is beside it.
//!
//! A database that others use is read as it is at this moment: through their shared memory, opened
//! read-only, if it has a log with content, and without any lock else, so that no writer ever waits
//! for us. What a writer changes meanwhile can then make a table unreadable, which is told.

mod header;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use iostep_model::database::{DatabaseFacts, TableFacts, uri};
use iostep_model::pragma::Journal;
use rusqlite::{Connection, OpenFlags};

use self::header::Header;
use crate::error::{Error, Result};
use crate::script::check_is_file;

/// Tables that are looked at.
const MAX_TABLES: u32 = 1000;
/// Pages that are read of each table in any case.
const LEAST_PAGES: u64 = 64;

/// Reads what a database is like. `path` has no links in it. Tables are read for about `budget`;
/// of those that are too large a part is read.
///
/// Errors: `Usage` for what is no file, or no database; `Io`.
pub fn read(path: &Path, budget: Duration) -> Result<DatabaseFacts> {
    check_is_file(path, false)?;
    let mut file = File::open(path).map_err(Error::io(path, "open"))?;
    let bytes = file.metadata().map_err(Error::io(path, "look at"))?.len();
    let mut start = Vec::with_capacity(header::BYTES);
    file.by_ref()
        .take(header::BYTES as u64)
        .read_to_end(&mut start)
        .map_err(Error::io(path, "read"))?;
    let header = Header::parse(&start).map_err(|what| Error::Usage {
        what: format!("{}: {what}", path.display()),
        hint: "name a plain SQLite database; an encrypted one must be decrypted first".into(),
    })?;
    drop(file);
    let log_bytes = length_of(path, "-wal");
    let mut facts = DatabaseFacts {
        path: path.to_owned(),
        bytes,
        page_bytes: header.page_bytes,
        pages: bytes / u64::from(header.page_bytes),
        reserved_bytes: header.reserved_bytes,
        journal: header.journal,
        log_bytes,
        tables: Vec::new(),
        unread: None,
    };
    if bytes > 0 || log_bytes > 0 {
        read_tables(&mut facts, budget);
    }
    Ok(facts)
}

/// Length of a file beside the database; 0 if it is not there.
fn length_of(path: &Path, suffix: &str) -> u64 {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    std::fs::metadata(PathBuf::from(name)).map_or(0, |found| found.len())
}

fn read_tables(facts: &mut DatabaseFacts, budget: Duration) {
    if facts.journal == Journal::Waldio {
        facts.unread = Some("its tables: waldio's log is in use, or was not closed".into());
        return;
    }
    let shared = facts.log_bytes > 0 && length_of(&facts.path, "-shm") > 0;
    if shared
        && let Ok(connection) = open(&facts.path, "mode=ro&readonly_shm=1")
        && let Ok((tables, pages)) = tables(&connection, budget)
    {
        facts.pages = pages;
        finish(facts, tables);
        return;
    }
    match open(&facts.path, "immutable=1").and_then(|connection| tables(&connection, budget)) {
        Ok((tables, _)) => {
            finish(facts, tables);
            if facts.log_bytes > 0 && facts.journal.is_log() {
                let unread = format!("{} bytes of its log", facts.log_bytes);
                facts.unread.get_or_insert(unread);
            }
        }
        Err(error) => facts.unread = Some(format!("its tables: {error}")),
    }
}

fn finish(facts: &mut DatabaseFacts, mut tables: Vec<TableFacts>) {
    tables.sort_by_key(|table| std::cmp::Reverse(table.pages));
    let parts = tables.iter().filter(|table| !table.whole).count();
    if parts > 0 {
        facts.unread = Some(format!("a part of {parts} of its tables, which are large"));
    }
    facts.tables = tables;
}

fn open(path: &Path, parameters: &str) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri(path, parameters), flags)?;
    // A view or a virtual table of a strange database must not run anything.
    connection.execute_batch("PRAGMA trusted_schema = OFF; BEGIN")?;
    Ok(connection)
}

/// The tables and the pages of the database.
fn tables(connection: &Connection, budget: Duration) -> rusqlite::Result<(Vec<TableFacts>, u64)> {
    let sql = "SELECT s.name, l.wr,
            (SELECT count(*) FROM sqlite_schema i
             WHERE i.type = 'index' AND i.tbl_name = s.name AND i.rootpage > 0)
        FROM sqlite_schema s JOIN pragma_table_list l ON l.schema = 'main' AND l.name = s.name
        WHERE s.type = 'table' AND s.rootpage > 0 AND s.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
        LIMIT ?1";
    let mut statement = connection.prepare(sql)?;
    let names = statement
        .query_map([MAX_TABLES], |row| {
            Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?))
        })?
        .collect::<rusqlite::Result<Vec<(String, bool, u32)>>>()?;
    let end = Instant::now() + budget;
    let mut tables = Vec::with_capacity(names.len());
    for (number, (name, without_rowid, indexes)) in names.iter().enumerate() {
        // What a small table leaves of its share is the later ones'.
        let left = end.saturating_duration_since(Instant::now());
        let until = Instant::now() + left / (names.len() - number) as u32;
        tables.push(table(connection, name, *without_rowid, *indexes, until)?);
    }
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    Ok((tables, pages.unsigned_abs()))
}

/// A table, page by page (sqlite.org/dbstat.html). The rows of one without row ids are in all
/// pages of its tree, those of others in the leaves.
fn table(
    connection: &Connection,
    name: &str,
    without_rowid: bool,
    indexes: u32,
    until: Instant,
) -> rusqlite::Result<TableFacts> {
    let mut facts = TableFacts {
        name: name.to_owned(),
        rows: 0,
        row_bytes: 0,
        pages: 0,
        whole: true,
        indexes,
    };
    let sql = "SELECT pagetype, ncell, payload FROM dbstat WHERE name = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut pages = statement.query([name])?;
    while let Some(page) = pages.next()? {
        if facts.pages >= LEAST_PAGES && Instant::now() >= until {
            facts.whole = false;
            break;
        }
        let kind: String = page.get(0)?;
        facts.pages += 1;
        if kind == "leaf" || (kind == "internal" && without_rowid) {
            facts.rows += page.get::<_, i64>(1)?.unsigned_abs();
        }
        facts.row_bytes += page.get::<_, i64>(2)?.unsigned_abs();
    }
    Ok(facts)
}
