//! One thread's transactions.

use std::ffi::CString;

use iostep_model::bench::{CheckpointPolicy, SqliteJob, Step};
use iostep_model::pragma::Synchronous;

use super::connection::{Connection, Prepared, Sql, SqlError};
use super::plan::{Action, Plan};
use super::row::Version;
use super::{settings, vfs};
use crate::engine::{Fault, Thread, Worker};
use iostep_model::clock::mono_ns;

/// A thread with its connection.
#[derive(Debug)]
pub(super) struct Writer {
    db: Connection,
    plan: Plan,
    /// Committed transactions, ramp included.
    pub committed: u64,
    tables: Vec<Table>,
    begin: Prepared,
    begin_writing: Prepared,
    commit: Prepared,
    /// A transaction is one statement, which needs no BEGIN.
    is_single: bool,
    seed: u64,
    value: Vec<u8>,
    rows: Vec<u64>,
    schemas: Vec<CString>,
    /// Checkpoint after so many transactions.
    checkpoint_every: Option<u64>,
    timeout_ns: u64,
}

/// What is done with one table.
#[derive(Debug)]
struct Table {
    database: u64,
    table: u32,
    /// By action; only those that the operation needs.
    statements: [Option<Prepared>; 4],
}

/// When a transaction's COMMIT began and how many rows it wrote or read.
struct Done {
    commit_ns: Option<u64>,
    records: u64,
}

/// What went wrong, in which transaction, with which key.
struct Wrong {
    error: SqlError,
    key: Option<i64>,
}

impl From<SqlError> for Wrong {
    fn from(error: SqlError) -> Wrong {
        Wrong { error, key: None }
    }
}

impl Writer {
    /// Prepares the statements of `thread`. `number` says which database of all is the
    /// connection's first.
    ///
    /// Errors: SQLite's.
    pub fn new(job: &SqliteJob, mut db: Connection, thread: u32, number: u64) -> Sql<Writer> {
        let schemas: Vec<String> = (0..job.databases as usize).map(settings::schema).collect();
        let mut tables = Vec::new();
        for (database, schema) in (number..).zip(&schemas) {
            for table in 0..job.tables {
                tables.push(Table {
                    database,
                    table,
                    statements: prepare(&mut db, job, &format!("{schema}.t{table}"))?,
                });
            }
        }
        let writing = match job.shared {
            true => "BEGIN IMMEDIATE",
            false => "BEGIN",
        };
        Ok(Writer {
            begin: db.prepare("BEGIN")?,
            begin_writing: db.prepare(writing)?,
            commit: db.prepare("COMMIT")?,
            db,
            plan: Plan::new(job, thread),
            committed: 0,
            is_single: tables.len() == 1 && job.statements == 1,
            tables,
            seed: job.measurement.seed,
            value: vec![0; job.record_bytes as usize],
            rows: Vec::with_capacity(job.statements as usize),
            schemas: schemas
                .into_iter()
                .map(|schema| CString::new(schema).expect("letters and digits have no NUL"))
                .collect(),
            checkpoint_every: match (job.journal.is_log(), job.checkpoint) {
                (true, CheckpointPolicy::Transactions(every)) => Some(every),
                _ => None,
            },
            timeout_ns: job.busy_timeout_ns,
        })
    }

    /// Commits once without touching a row, so that journals are there and caches are warm.
    ///
    /// Errors: SQLite's.
    pub fn warm_up(&mut self) -> Sql<()> {
        let mut sql = String::from("BEGIN IMMEDIATE;");
        for schema in &self.schemas {
            sql += &format!("PRAGMA {}.user_version = 1;", schema.to_string_lossy());
        }
        self.db.execute_batch(&(sql + "COMMIT"))?;
        if let Some(hooks) = self.db.hooks() {
            hooks.take_busy_ns();
            hooks.take_checkpoints(|_| ());
        }
        Ok(())
    }

    /// Commits without touching a row or flushing, so that the WAL gets `frames` frames long.
    ///
    /// Errors: SQLite's.
    pub fn fill_wal(&mut self, frames: u64, synchronous: Synchronous) -> Sql<()> {
        self.set_synchronous(Synchronous::Off)?;
        for _ in 0..frames {
            self.warm_up()?;
        }
        self.set_synchronous(synchronous)
    }

    fn set_synchronous(&mut self, synchronous: Synchronous) -> Sql<()> {
        self.schemas.iter().try_for_each(|schema| {
            let schema = schema.to_string_lossy();
            let sql = format!("PRAGMA {schema}.synchronous = {synchronous}");
            self.db.execute_batch(&sql)
        })
    }

    /// The connection, between runs.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.db
    }

    /// Forgets the run that it was part of, also if its thread died.
    pub fn leave(&self) {
        if let Some(hooks) = self.db.hooks() {
            // SAFETY: there is no flag.
            unsafe { hooks.listen(None) };
        }
    }

    /// Checkpoints every database; shows how long each took, nanoseconds.
    ///
    /// Errors: SQLite's.
    pub fn checkpoint(&mut self, show: impl FnMut(u64)) -> Sql<()> {
        let result = self
            .schemas
            .iter()
            .try_for_each(|schema| self.db.checkpoint(schema));
        if let Some(hooks) = self.db.hooks() {
            hooks.take_checkpoints(show);
        }
        result
    }

    /// The database's path, for errors.
    pub fn path(&self) -> &std::path::Path {
        self.db.path()
    }

    #[inline]
    fn transaction(&mut self, action: Action) -> Result<Done, Wrong> {
        if !self.is_single {
            self.db.run(match action.writes() {
                true => self.begin_writing,
                false => self.begin,
            })?;
        }
        let share = self.plan.share();
        for table in &self.tables {
            let statement =
                table.statements[action as usize].expect("a plan has only the operation's actions");
            for &row in &self.rows {
                let version = Version {
                    database: table.database,
                    table: table.table,
                    key: share.key(row),
                    transaction: self.committed + 1,
                };
                let touched = match action {
                    Action::Insert | Action::Update => {
                        version.fill(self.seed, &mut self.value);
                        self.db.change(statement, version.key, Some(&self.value))
                    }
                    Action::Delete => self.db.change(statement, version.key, None),
                    Action::Read => {
                        let length = self.db.read(statement, version.key);
                        length.map(|length| u64::from(length == Some(self.value.len())))
                    }
                };
                let key = Some(version.key);
                if touched.map_err(|error| Wrong { error, key })? != 1 {
                    return Err(no_row(statement, &self.db, key));
                }
            }
        }
        let commit_ns = (!self.is_single).then(mono_ns);
        if !self.is_single {
            self.db.run(self.commit)?;
        }
        let records = match action {
            Action::Delete => 0,
            _ => (self.tables.len() * self.rows.len()) as u64,
        };
        Ok(Done { commit_ns, records })
    }

    /// Runs one transaction and records its steps. The answer is when it ended.
    #[inline]
    fn timed(
        &mut self,
        thread: &mut Thread<'_>,
        action: Action,
        begin_ns: u64,
    ) -> Result<u64, Wrong> {
        let done = self.transaction(action)?;
        let mut end_ns = mono_ns();
        self.committed += 1;
        let mut checkpoints_ns = 0;
        if let Some(hooks) = self.db.hooks() {
            let show = |checkpoint_ns| thread.step(Step::Checkpoint, checkpoint_ns);
            checkpoints_ns = hooks.take_checkpoints(show);
            let busy_ns = hooks.take_busy_ns();
            if busy_ns > 0 {
                thread.step(Step::BusyWait, busy_ns);
            }
        }
        let passed_ns = end_ns - begin_ns;
        thread.step(Step::Transaction, passed_ns.saturating_sub(checkpoints_ns));
        if let (Some(commit_ns), true) = (done.commit_ns, action.writes()) {
            let commit_ns = end_ns - commit_ns;
            thread.step(Step::Commit, commit_ns.saturating_sub(checkpoints_ns));
        }
        if let Some(every) = self.checkpoint_every
            && self.committed.is_multiple_of(every)
        {
            self.checkpoint(|checkpoint_ns| thread.step(Step::Checkpoint, checkpoint_ns))?;
            end_ns = mono_ns();
        }
        vfs::take_syncs(|sync_ns| thread.step(Step::Sync, sync_ns));
        thread.step(Step::Total, end_ns - begin_ns);
        thread.end(begin_ns, end_ns, done.records * self.value.len() as u64);
        Ok(end_ns)
    }

    /// Ends the transaction that failed; `None` if it only failed because the run is over.
    #[cold]
    fn fault(&mut self, thread: &Thread<'_>, wrong: Wrong) -> Option<Fault> {
        let Wrong { error, key } = wrong;
        let (mut timed_out, mut checkpoint_failed) = (false, false);
        if let Some(hooks) = self.db.hooks() {
            timed_out = hooks.timed_out();
            checkpoint_failed = hooks.checkpoint_failed();
        }
        self.db.roll_back();
        if checkpoint_failed {
            // SQLite tells of it in the answer to the COMMIT, which was done.
            self.committed += 1;
        }
        if error.is_busy() && !timed_out && thread.must_stop() {
            return None;
        }
        let mut attempt = error.sql;
        if let Some(key) = key {
            attempt += &format!(" with key {key}");
        }
        let mut reason = format!("{} (code {})", error.message, error.code);
        if timed_out {
            let waited = self.timeout_ns as f64 / 1e9;
            let number = thread.number();
            reason += &format!("; thread {number} waited {waited} s for another's lock");
        }
        Some(Fault {
            attempt: format!("{attempt} in {}", self.db.path().display()),
            reason,
            operation: None,
        })
    }

    fn all(&mut self, thread: &mut Thread<'_>) -> Result<(), Wrong> {
        let mut end_ns = None;
        while let Some(action) = self.plan.next(&mut self.rows) {
            let Some(begin_ns) = thread.begin_after(end_ns) else {
                break;
            };
            end_ns = Some(self.timed(thread, action, begin_ns)?);
        }
        Ok(())
    }
}

impl Worker for Writer {
    fn work(&mut self, thread: &mut Thread<'_>) -> Result<(), Fault> {
        vfs::time_syncs(true);
        if let Some(hooks) = self.db.hooks() {
            // SAFETY: the flag outlives this call; whoever made the writer calls `leave` if it panics.
            unsafe { hooks.listen(Some(thread.stop_flag())) };
        }
        let result = self.all(thread);
        let fault = result.err().and_then(|wrong| self.fault(thread, wrong));
        self.leave();
        vfs::time_syncs(false);
        fault.map_or(Ok(()), Err)
    }
}

fn prepare(db: &mut Connection, job: &SqliteJob, table: &str) -> Sql<[Option<Prepared>; 4]> {
    let mut statements = [None; 4];
    for (action, statement) in Action::ALL.into_iter().zip(&mut statements) {
        let sql = match action {
            Action::Insert => format!("INSERT INTO {table} (key, value) VALUES (?1, ?2)"),
            Action::Update => format!("UPDATE {table} SET value = ?2 WHERE key = ?1"),
            Action::Delete => format!("DELETE FROM {table} WHERE key = ?1"),
            Action::Read => format!("SELECT value FROM {table} WHERE key = ?1"),
        };
        if action.is_part_of(job.operation) {
            *statement = Some(db.prepare(&sql)?);
        }
    }
    Ok(statements)
}

/// SQLite sees no fault in a statement that finds no row; a generator does.
#[cold]
fn no_row(statement: Prepared, db: &Connection, key: Option<i64>) -> Wrong {
    Wrong {
        error: db.complaint(statement, "there is no such row"),
        key,
    }
}
