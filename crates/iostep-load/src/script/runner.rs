//! The script's own side: one connection, one transaction after the other.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iostep_model::clock::mono_ns;
use iostep_model::pragma::Synchronous;
use rusqlite::{Connection, InterruptHandle, OpenFlags};

use crate::error::{Error, Result};
use crate::script::asked::Request;
use crate::script::database::{check_is_file, connect, database_error, message, read_only};
use crate::script::protocol::{Executed, Opened, Outcome, Transaction};
use crate::script::settings::Settings;
use crate::script::statements;

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
        self.statements = statements::split(script)?
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
        let counter = request.listen(&mut self.hooks)?;
        let ran = run_to_end(&mut statement);
        counter.stop(&mut self.hooks)?;
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
            user_bytes: counter.user_bytes(&self.connection, rows_changed)?,
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

fn run_to_end(statement: &mut rusqlite::Statement<'_>) -> rusqlite::Result<u64> {
    let mut rows = statement.raw_query();
    let mut count = 0;
    while rows.next()?.is_some() {
        count += 1;
    }
    Ok(count)
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
