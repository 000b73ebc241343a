//! Transactions of SQLite.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Limits, Pace, WaldioOptions};
use crate::names::named;
use crate::pragma::{Journal, Synchronous};

/// What a SQLite generator does.
///
/// A transaction touches every one of [`SqliteJob::tables`] tables in every one of
/// [`SqliteJob::databases`] databases with [`SqliteJob::statements`] statements each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SqliteJob {
    /// The databases are made in an own directory below this one.
    pub directory: PathBuf,
    /// What each statement does.
    pub operation: SqliteOperation,
    /// `PRAGMA journal_mode`, of every database.
    pub journal: Journal,
    /// `PRAGMA synchronous`, of every database.
    pub synchronous: Synchronous,
    /// Transactions of each thread. With a time limit only that ends the run.
    pub transactions: u64,
    /// Bytes of the value of a row.
    pub record_bytes: u32,
    /// Rows of each table before the measured part.
    pub rows: u64,
    /// Tables touched per database and transaction.
    pub tables: u32,
    /// Databases touched per transaction: the first is main, the others are attached.
    pub databases: u32,
    /// Statements per table and transaction.
    pub statements: u32,
    pub keys: KeyOrder,
    /// How many threads, each with a connection.
    pub threads: u32,
    /// All threads on the same databases; otherwise each has its own.
    pub shared: bool,
    /// How long a writer waits for another's lock, nanoseconds.
    pub busy_timeout_ns: u64,
    /// `PRAGMA page_size`, bytes; SQLite's default if `None`.
    pub page_bytes: Option<u32>,
    /// `PRAGMA cache_size`: pages, or KiB if negative; SQLite's default if `None`.
    pub cache_size: Option<i64>,
    /// `PRAGMA mmap_size`, bytes; SQLite's default if `None`.
    pub mmap_bytes: Option<u64>,
    /// When a WAL is checkpointed.
    pub checkpoint: CheckpointPolicy,
    pub checkpoint_mode: CheckpointMode,
    /// What the file of a WAL is like when a run begins.
    #[serde(default)]
    pub wal_file: WalFile,
    /// Options of waldio, for [`Journal::Waldio`].
    #[serde(default)]
    pub waldio: WaldioOptions,
    /// Commits by f2fs's batch atomic writes in place of a journal.
    #[serde(default)]
    pub batch_atomic: bool,
    /// `fsync(2)` wherever SQLite would call `fdatasync(2)`.
    pub fsync: bool,
    /// A SQLite library to load; the one inside if `None`.
    pub library: Option<PathBuf>,
    /// Use databases of an earlier run that have the right shape.
    pub reuse: bool,
    /// Leave the databases behind.
    pub keep: bool,
    /// At the end `PRAGMA integrity_check`, and every row compared with what was committed.
    pub verify: bool,
    /// Seed of keys and values.
    pub seed: u64,
    /// CPUs that the threads are pinned to, in turn; empty for none.
    pub cpus: Vec<u32>,
    /// When it ends.
    pub limits: Limits,
    /// How fast it goes.
    pub pace: Pace,
}

/// What a statement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SqliteOperation {
    /// A new row.
    Insert,
    /// Another value for a row.
    Update,
    /// One row less.
    Delete,
    /// One row by its key.
    Read,
    /// Each transaction is one of these, at random.
    Mix(Mix),
}

/// Weights of the operations of a mix; at least one is not 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mix {
    /// Inserts.
    pub insert: u32,
    /// Updates.
    pub update: u32,
    /// Deletes.
    pub delete: u32,
    /// Reads.
    pub read: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// Ascending.
    Sequential,
    /// In random order, each once before any comes again.
    Random,
}

named!(
    KeyOrder,
    "key order",
    Sequential = "sequential",
    Random = "random"
);

/// When a WAL is checkpointed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointPolicy {
    /// By the committing thread when the WAL has at least so many pages, as SQLite does itself
    /// (it takes 1000).
    Pages(u32),
    /// Never before the end.
    Never,
    /// After so many transactions of a thread.
    Transactions(u64),
}

/// What the file of a WAL is like when a run begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WalFile {
    /// New: it grows with the first transactions.
    #[default]
    Fresh,
    /// As long as it gets, and checkpointed: it is written again from its beginning.
    Steady,
}

named!(
    WalFile,
    "state of a WAL's file",
    Fresh = "fresh",
    Steady = "steady",
);

/// How a WAL is checkpointed (`sqlite3_wal_checkpoint_v2`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointMode {
    /// What can be done without waiting: SQLite's own.
    Passive,
    /// All of it, waiting for readers and writers.
    Full,
    /// As full, and the next writer starts the WAL over.
    Restart,
    /// As restart, and the file is cut to length zero.
    Truncate,
}

named!(
    CheckpointMode,
    "checkpoint mode",
    Passive = "passive",
    Full = "full",
    Restart = "restart",
    Truncate = "truncate",
);
