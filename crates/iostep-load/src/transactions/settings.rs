//! Pragmas: set for every database of a connection, read back, compared.

use std::path::Path;

use iostep_model::bench::{SqliteJob, SqliteLibrary};
use iostep_model::pragma::{Journal, Synchronous};

use super::connection::Connection;
use crate::error::{Error, Result};

/// What is read back of the first database for people to see.
const SHOWN: [&str; 14] = [
    "journal_mode",
    "synchronous",
    "page_size",
    "cache_size",
    "wal_autocheckpoint",
    "locking_mode",
    "mmap_size",
    "temp_store",
    "auto_vacuum",
    "journal_size_limit",
    "cache_spill",
    "secure_delete",
    "foreign_keys",
    "encoding",
];

/// The name that SQL has for database number `number` of a connection.
pub(super) fn schema(number: usize) -> String {
    match number {
        0 => "main".into(),
        number => format!("db{number}"),
    }
}

/// Sets the connection up as the job asks: main and every attached database, since SQLite keeps
/// most settings for each of them. Automatic checkpoints are switched off.
///
/// Errors: `Database`; also if SQLite keeps another setting than the one asked for.
pub(super) fn apply(job: &SqliteJob, db: &mut Connection, paths: &[&Path]) -> Result<()> {
    batch(db, "PRAGMA wal_autocheckpoint = 0")?;
    for (number, path) in paths.iter().enumerate() {
        let schema = schema(number);
        if job.journal == Journal::Waldio {
            set_waldio(job, db, path, &schema)?;
        } else {
            let pragma = format!("{schema}.journal_mode");
            set(db, path, &pragma, job.journal.name())?;
        }
        let wanted = [
            ("synchronous", Some(number_of(job.synchronous).to_string())),
            ("cache_size", job.cache_size.map(|size| size.to_string())),
            ("mmap_size", job.mmap_bytes.map(|size| size.to_string())),
        ];
        for (pragma, value) in wanted {
            if let Some(value) = value {
                set(db, path, &format!("{schema}.{pragma}"), &value)?;
            }
        }
    }
    Ok(())
}

fn set(db: &mut Connection, path: &Path, pragma: &str, value: &str) -> Result<()> {
    // In quotes, since some values are words of SQL, as group.
    batch(db, &format!("PRAGMA {pragma} = '{value}'"))?;
    let kept = first(db, &format!("PRAGMA {pragma}"))?;
    if kept == value {
        return Ok(());
    }
    Err(refused(path, pragma, &kept, value))
}

fn refused(path: &Path, pragma: &str, kept: &str, value: &str) -> Error {
    Error::Database {
        path: path.to_owned(),
        what: format!("SQLite keeps {pragma} at {kept:?} instead of {value}"),
        hint: "choose what this SQLite and filesystem can do".into(),
    }
}

/// The options come first: a log takes its layout from them when it begins. Where waldio leaves the
/// log to SQLite the mode is `wal`.
fn set_waldio(job: &SqliteJob, db: &mut Connection, path: &Path, schema: &str) -> Result<()> {
    for (pragma, value) in super::waldio::pragmas(job) {
        if let Some(value) = value {
            set(db, path, &format!("{schema}.{pragma}"), &value)?;
        }
    }
    let pragma = format!("{schema}.journal_mode");
    batch(db, &format!("PRAGMA {pragma} = {}", Journal::Waldio))?;
    match first(db, &format!("PRAGMA {pragma}"))?.as_str() {
        "waldio" | "wal" => Ok(()),
        kept => Err(refused(path, &pragma, kept, Journal::Waldio.name())),
    }
}

/// Fixes the page size of a database that is still empty.
///
/// Errors: `Database`; also if SQLite keeps another one.
pub(super) fn set_page_size(db: &mut Connection, page_bytes: u32) -> Result<()> {
    let path = db.path().to_owned();
    set(db, &path, "main.page_size", &page_bytes.to_string())
}

/// What the library and the first database of a connection say of themselves.
///
/// Errors: `Database`.
pub(super) fn describe(db: &mut Connection, library: &mut SqliteLibrary) -> Result<()> {
    library.compile_options = compile_options(db)?;
    library.settings.clear();
    for pragma in SHOWN {
        // An older SQLite answers an unknown pragma with nothing.
        let value = first(db, &format!("PRAGMA main.{pragma}"))?;
        if !value.is_empty() {
            library.settings.push((pragma.to_owned(), value));
        }
    }
    Ok(())
}

/// All compile options.
///
/// Errors: `Database`.
pub(super) fn compile_options(db: &mut Connection) -> Result<Vec<String>> {
    let path = db.path().to_owned();
    db.texts("PRAGMA compile_options").map_err(|e| e.at(&path))
}

fn batch(db: &mut Connection, sql: &str) -> Result<()> {
    let failed = db.execute_batch(sql);
    failed.map_err(|error| error.at(db.path()))
}

fn first(db: &mut Connection, sql: &str) -> Result<String> {
    let answer = db.first_text(sql).map_err(|error| error.at(db.path()))?;
    Ok(answer.unwrap_or_default())
}

fn number_of(synchronous: Synchronous) -> u8 {
    match synchronous {
        Synchronous::Off => 0,
        Synchronous::Normal => 1,
        Synchronous::Full => 2,
        Synchronous::Extra => 3,
    }
}
