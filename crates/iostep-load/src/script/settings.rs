//! How SQLite is set up before a script runs.

use std::path::Path;

use iostep_model::pragma::{Journal, Synchronous};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How SQLite is set up. What is `None` stays as SQLite or the database has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Make the database if it does not exist.
    pub create: bool,
    /// Journal mode.
    pub journal: Option<Journal>,
    pub synchronous: Option<Synchronous>,
    /// Page size in bytes. Another one than the database's own rewrites the whole database.
    pub page_bytes: Option<u32>,
    /// `PRAGMA cache_size`: pages, or KiB if negative.
    pub cache_size: Option<i64>,
    /// `PRAGMA wal_autocheckpoint`: pages; 0 for never.
    pub wal_autocheckpoint_pages: Option<u32>,
    /// How long to wait for somebody else's lock, in milliseconds.
    pub busy_timeout_ms: u32,
}

impl Settings {
    /// Sets up a connection. The page size comes first: a WAL fixes it.
    pub(crate) fn apply(&self, path: &Path, connection: &Connection) -> Result<()> {
        let failed = |error| super::database::database_error(path, &error);
        connection
            .pragma_update(None, "foreign_keys", false)
            .map_err(failed)?;
        if let Some(page_bytes) = self.page_bytes {
            set_page_size(connection, page_bytes).map_err(failed)?;
        }
        if let Some(journal) = self.journal {
            set_journal(path, connection, journal)?;
        }
        let pragmas = [
            ("synchronous", self.synchronous.map(|s| s.name().to_owned())),
            ("cache_size", self.cache_size.map(|n| n.to_string())),
            (
                "wal_autocheckpoint",
                self.wal_autocheckpoint_pages.map(|n| n.to_string()),
            ),
        ];
        for (pragma, value) in pragmas {
            if let Some(value) = value {
                connection
                    .execute_batch(&format!("PRAGMA {pragma} = {value}"))
                    .map_err(failed)?;
            }
        }
        Ok(())
    }
}

fn set_page_size(connection: &Connection, page_bytes: u32) -> rusqlite::Result<()> {
    let current: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    if current == page_bytes {
        return Ok(());
    }
    // A database in WAL mode keeps its page size, even over a VACUUM.
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = delete; PRAGMA page_size = {page_bytes}; VACUUM"
    ))
}

/// Why waldio left the log to SQLite.
fn stock_log(connection: &Connection) -> Error {
    let sql = "SELECT reason FROM waldio_stat WHERE reason IS NOT NULL";
    let reason = connection.query_row(sql, [], |row| row.get::<_, String>(0));
    Error::Unsupported {
        what: format!(
            "waldio leaves the log to SQLite: {}",
            reason.unwrap_or_else(|error| error.to_string())
        ),
        hint: "leave waldio out of the journal modes".into(),
    }
}

fn set_journal(path: &Path, connection: &Connection, journal: Journal) -> Result<()> {
    let set: String = connection
        .pragma_update_and_check(None, "journal_mode", journal.name(), |row| row.get(0))
        .map_err(|error| super::database::database_error(path, &error))?;
    if set == journal.name() {
        return Ok(());
    }
    if journal == Journal::Waldio {
        return Err(stock_log(connection));
    }
    Err(Error::Database {
        path: path.to_owned(),
        what: format!(
            "SQLite keeps journal mode {set} instead of {}",
            journal.name()
        ),
        hint: "choose another mode, or close whoever else uses the database".into(),
    })
}
