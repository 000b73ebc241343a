//! The script's own side: one connection, one transaction after the other.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iostep_model::pragma::{Journal, Synchronous};
use rusqlite::{Connection, ErrorCode, InterruptHandle, OpenFlags};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::sql::asked::Request;
use crate::sql::held;
use crate::sql::protocol::Opened;
use crate::sql::script;
use crate::sql::settings::Settings;

/// Characters of a statement that reports and errors show.
const PREVIEW_CHARACTERS: usize = 80;

/// A database and the script that runs on it.
#[derive(Debug)]
pub struct Runner {
    connection: Connection,
    /// The same database handle, for hooks while a statement borrows `connection`.
    hooks: Connection,
    statements: Vec<String>,
    next: usize,
    rolled_back: Arc<AtomicBool>,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Its changes, if any, are in the database.
    Committed,
    /// Its changes are undone.
    RolledBack,
    /// The script ended inside it; closing the database rolls it back.
    Open,
}

/// What one transaction did, by its own account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// Its statements, `BEGIN` and `COMMIT` among them.
    pub statements: Vec<Executed>,
    /// `CLOCK_MONOTONIC` before the first of them.
    pub start_ns: u64,
    /// `CLOCK_MONOTONIC` after the last of them.
    pub end_ns: u64,
    /// How it ended.
    pub outcome: Outcome,
}

/// What one statement did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executed {
    /// Its number in the script, from 1.
    pub number: usize,
    /// Its beginning.
    pub text: String,
    /// Rows inserted, updated or deleted by the statement itself, not by triggers.
    pub rows_changed: u64,
    /// Rows that it returned.
    pub rows_returned: u64,
    /// Bytes that it asked to store: the new values of inserted rows, and of those columns of
    /// updated rows that got another value. `None` where SQLite does not tell: see `asked.rs`.
    pub user_bytes: Option<u64>,
}

impl Runner {
    /// Opens a database and sets it up.
    ///
    /// Errors: `Usage` for what is no file; `Database` for what SQLite cannot use: locked,
    /// encrypted, read-only, damaged.
    pub fn open(path: &Path, settings: &Settings) -> Result<Runner> {
        check_is_file(path, settings.create)?;
        let create = match settings.create {
            true => OpenFlags::SQLITE_OPEN_CREATE,
            false => OpenFlags::empty(),
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | create;
        let failed = |error| database_error(path, &error);
        let connection = connect(path, flags, settings.journal).map_err(failed)?;
        connection
            .busy_timeout(Duration::from_millis(settings.busy_timeout_ms.into()))
            .map_err(failed)?;
        // The first thing that looks into the file.
        connection
            .pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0))
            .map_err(failed)?;
        if connection.is_readonly("main").map_err(failed)? {
            return Err(read_only(path));
        }
        settings.apply(path, &connection)?;
        // SAFETY: both values stay in this thread and in this struct, and a connection made from
        // a handle does not close it.
        let hooks = unsafe { Connection::from_handle(connection.handle()) }.map_err(failed)?;
        Ok(Runner {
            connection,
            hooks,
            statements: Vec::new(),
            next: 0,
            rolled_back: Arc::default(),
        })
    }

    /// What the connection is set to now.
    ///
    /// Errors: `Database`.
    pub fn describe(&self, path: &Path) -> Result<Opened> {
        let failed = |error| database_error(path, &error);
        let text = |pragma: &str| -> Result<String> {
            self.connection
                .pragma_query_value(None, pragma, |row| row.get(0))
                .map_err(failed)
        };
        let number = |pragma: &str| -> Result<u32> {
            self.connection
                .pragma_query_value(None, pragma, |row| row.get(0))
                .map_err(failed)
        };
        Ok(Opened {
            pid: std::process::id(),
            journal: text("journal_mode")?.parse()?,
            synchronous: Synchronous::ALL[number("synchronous")?.min(3) as usize],
            page_bytes: number("page_size")?,
            sqlite_version: rusqlite::version().into(),
        })
    }

    /// Takes a script to run from its first statement; the answer is how many it has.
    ///
    /// Errors: `Usage` if it has none.
    pub fn load(&mut self, script: &str) -> Result<usize> {
        self.statements = script::split(script)?
            .into_iter()
            .map(str::to_owned)
            .collect();
        self.next = 0;
        Ok(self.statements.len())
    }

    /// Commits a transaction that changes nothing but the change counter, so that the journal or
    /// WAL of this mode exists in the state that one transaction leaves for the next.
    ///
    /// Errors: `Database`.
    pub fn warm_up(&mut self, path: &Path) -> Result<()> {
        let version: i64 = self
            .connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(|error| database_error(path, &error))?;
        self.connection
            .pragma_update(None, "user_version", version)
            .map_err(|error| database_error(path, &error))
    }

    /// Has no page in memory any more: SQLite reads what the next statement needs.
    ///
    /// Errors: `Database`.
    pub fn forget_pages(&self, path: &Path) -> Result<()> {
        self.connection
            .release_memory()
            .map_err(|error| database_error(path, &error))
    }

    /// Runs the statements up to the end of the next transaction; `None` after the last.
    ///
    /// Errors: `Statement`; an open transaction is then rolled back.
    pub fn step(&mut self) -> Result<Option<Transaction>> {
        if self.next == self.statements.len() {
            return Ok(None);
        }
        let start_ns = mono_ns();
        self.rolled_back.store(false, Ordering::Relaxed);
        let flag = Arc::clone(&self.rolled_back);
        self.set_rollback_hook(Some(move || flag.store(true, Ordering::Relaxed)));
        let ran = self.run_transaction();
        // Not left in place: rusqlite 0.41 frees a hook before the rollback that closing the
        // database inside a transaction makes, which then calls it.
        self.set_rollback_hook(None::<fn()>);
        Ok(Some(Transaction {
            statements: ran?,
            start_ns,
            end_ns: mono_ns(),
            outcome: self.outcome(),
        }))
    }

    /// Stops, from another thread, the statement that runs.
    pub fn interrupt_handle(&self) -> InterruptHandle {
        self.connection.get_interrupt_handle()
    }

    /// Closes the database, which checkpoints and removes a WAL.
    ///
    /// Errors: `Database`.
    pub fn close(self, path: &Path) -> Result<()> {
        drop(self.hooks);
        self.connection
            .close()
            .map_err(|(_, error)| database_error(path, &error))
    }

    fn set_rollback_hook<F: FnMut() + Send + 'static>(&mut self, hook: Option<F>) {
        self.hooks
            .rollback_hook(hook)
            .expect("only a database without memory refuses a hook");
    }

    fn run_transaction(&mut self) -> Result<Vec<Executed>> {
        let first = self.next + 1;
        let mut statements = Vec::new();
        while self.next < self.statements.len() {
            let executed = self
                .execute(self.next)
                .map_err(|error| self.failure(first, &error))?;
            statements.push(executed);
            self.next += 1;
            if self.connection.is_autocommit() {
                break;
            }
        }
        Ok(statements)
    }

    fn outcome(&self) -> Outcome {
        if !self.connection.is_autocommit() {
            Outcome::Open
        } else if self.rolled_back.load(Ordering::Relaxed) {
            Outcome::RolledBack
        } else {
            Outcome::Committed
        }
    }

    fn execute(&mut self, index: usize) -> rusqlite::Result<Executed> {
        let sql = &self.statements[index];
        let changes_before = self.connection.total_changes();
        let (mut statement, request) = Request::prepare(&self.connection, &mut self.hooks, sql)?;
        // Set after the statement is prepared: with a hook, SQLite does not cut a table off whole
        // when all its rows are deleted, and we would measure ourselves.
        let told = request.listen(&mut self.hooks)?;
        let ran = run_to_end(&mut statement);
        told.stop(&mut self.hooks)?;
        let rows_returned = ran?;
        // changes() is of the last statement that changed something, which may be another.
        let rows_changed = match self.connection.total_changes() - changes_before {
            0 => 0,
            _ => self.connection.changes(),
        };
        Ok(Executed {
            number: index + 1,
            text: preview(sql),
            rows_changed,
            rows_returned,
            user_bytes: told.user_bytes(&self.connection, rows_changed)?,
        })
    }

    fn failure(&self, first: usize, error: &rusqlite::Error) -> Error {
        let number = self.next + 1;
        if !self.connection.is_autocommit() {
            // What SQLite does at close anyway; here so that the error can say it is done.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        Error::Statement {
            number,
            total: self.statements.len(),
            text: preview(&self.statements[self.next]),
            message: message(error),
            first_of_transaction: first,
        }
    }
}

/// Opens a database through waldio if that is the mode that is asked for, or the one that the file
/// is in: no other SQLite can read it then.
pub(crate) fn connect(
    path: &Path,
    flags: OpenFlags,
    journal: Option<Journal>,
) -> rusqlite::Result<Connection> {
    crate::sqlite::batch_atomic::keep_off();
    held::take_as_it_is(path);
    let is_waldio = journal == Some(Journal::Waldio)
        || super::own_mode(path).is_ok_and(|mode| mode == Journal::Waldio);
    if !is_waldio {
        return Connection::open_with_flags(path, flags);
    }
    waldio::register(false)?;
    Connection::open_with_flags_and_vfs(path, flags, waldio::VFS)
}

fn run_to_end(statement: &mut rusqlite::Statement<'_>) -> rusqlite::Result<u64> {
    let mut rows = statement.raw_query();
    let mut count = 0;
    while rows.next()?.is_some() {
        count += 1;
    }
    Ok(count)
}

pub(crate) fn check_is_file(path: &Path, create: bool) -> Result<()> {
    let usage = |what: &str, hint: &str| Error::Usage {
        what: format!("{}: {what}", path.display()),
        hint: hint.into(),
    };
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(metadata) if metadata.is_dir() => {
            Err(usage("is a directory", "name the database file in it"))
        }
        Ok(_) => Err(usage("is not a regular file", "name a database file")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && create => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(usage(
            "no such file",
            "name an existing database, or make one with: sqlite3 FILE \"CREATE TABLE ...\"",
        )),
        Err(error) => Err(Error::io(path, "open")(error)),
    }
}

fn read_only(path: &Path) -> Error {
    Error::Database {
        path: path.to_owned(),
        what: "read-only".into(),
        hint: "its file and its directory must be writable".into(),
    }
}

/// SQLite's answer about the database as a whole.
pub(crate) fn database_error(path: &Path, error: &rusqlite::Error) -> Error {
    let hint = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another process uses it; end that one's transaction and try again"
        }
        Some(ErrorCode::NotADatabase) => {
            return Error::Usage {
                what: format!("{}: {}", path.display(), message(error)),
                hint: "iostep reads plain SQLite files; an encrypted one must be decrypted first"
                    .into(),
            };
        }
        Some(ErrorCode::ReadOnly) => return read_only(path),
        Some(ErrorCode::DiskFull) => "make room on its filesystem",
        Some(ErrorCode::DatabaseCorrupt) => {
            "check it with: sqlite3 FILE \"PRAGMA integrity_check\""
        }
        Some(ErrorCode::CannotOpen) => "its file and its directory must be readable and writable",
        _ => "see the SQLite documentation for this error",
    };
    Error::Database {
        path: path.to_owned(),
        what: message(error),
        hint: hint.into(),
    }
}

/// SQLite's words, without the statement that rusqlite adds.
fn message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        other => other.to_string(),
    }
}

/// One line of at most [`PREVIEW_CHARACTERS`].
fn preview(sql: &str) -> String {
    let words: Vec<&str> = sql.split_whitespace().take(PREVIEW_CHARACTERS).collect();
    let line = words.join(" ");
    match line.char_indices().nth(PREVIEW_CHARACTERS) {
        Some((cut, _)) => format!("{}...", &line[..cut]),
        None => line.trim_end_matches(';').to_owned(),
    }
}

pub(crate) fn mono_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // The monotonic clock starts at zero when the machine does.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
