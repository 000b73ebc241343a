//! Transactions of SQLite.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde::{Deserialize, Serialize};

use super::{MEASUREMENT, Measurement, WaldioOptions, value, without_flags};
use crate::names::named;
use crate::pragma::{Journal, Synchronous};
use crate::units;

/// Rows of a table that is not only inserted into: enough that a transaction seldom finds its
/// page in the one before.
const ROWS: u64 = 10_000;

/// What a SQLite generator does. Each field is one option: its flag, its help, its default and the
/// values that it takes.
///
/// A transaction touches every one of [`SqliteJob::tables`] tables in every one of
/// [`SqliteJob::databases`] databases with [`SqliteJob::statements`] statements each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
pub struct SqliteJob {
    /// Directory that the databases are made in
    pub directory: PathBuf,

    /// What each statement does
    #[arg(long, value_enum, ignore_case = true, default_value = "insert")]
    pub operation: SqliteOperation,

    /// Weights of a mix [default: insert=40,update=30,delete=10,read=20]
    // As it was written; [`SqliteJob::settle`] moves it into the operation.
    #[arg(long, value_name = "WEIGHTS", value_parser = mix)]
    #[serde(skip)]
    pub mix: Option<Mix>,

    #[arg(long, value_name = "MODE", default_value = "delete", help = Journal::CHOICES)]
    pub journal: Journal,

    #[arg(long, value_name = "SETTING", default_value = "full", help = Synchronous::CHOICES)]
    pub synchronous: Synchronous,

    /// Transactions of each thread; with --time, that ends it instead
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub transactions: u64,

    /// Bytes of a row's value
    #[arg(long = "record", value_name = "SIZE", default_value = "100",
          value_parser = value::sqlite_bytes)]
    pub record_bytes: u32,

    /// Rows of each table before [default: 0 for insert, as many as are
    /// deleted for delete, 10000 else]
    // As it was written; [`SqliteJob::settle`] makes `rows` of it.
    #[arg(long = "rows", value_name = "N")]
    #[serde(skip)]
    pub rows_asked: Option<u64>,

    /// Rows of each table before the measured part.
    #[arg(skip)]
    pub rows: u64,

    /// Tables that a transaction touches in each database
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub tables: u32,

    /// Databases that a transaction touches: main, and attached ones
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub databases: u32,

    /// Statements of a transaction for each table
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub statements: u32,

    #[arg(long, value_name = "ORDER", default_value = "sequential", help = KeyOrder::CHOICES)]
    pub keys: KeyOrder,

    /// Threads, 1 to 1024, each with a connection
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,

    /// All threads on the same databases, instead of their own each
    #[arg(long)]
    pub shared: bool,

    /// How long a writer waits for another's lock
    #[arg(long = "busy-timeout", value_name = "DURATION", default_value = "10s",
          value_parser = units::parse_duration_ns)]
    pub busy_timeout_ns: u64,

    /// PRAGMA page_size [default: SQLite's]
    #[arg(long = "page-size", value_name = "SIZE", value_parser = value::sqlite_bytes)]
    pub page_bytes: Option<u32>,

    /// PRAGMA cache_size: pages, or KiB if negative [default: SQLite's]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub cache_size: Option<i64>,

    /// PRAGMA mmap_size [default: SQLite's]
    #[arg(long = "mmap-size", value_name = "SIZE", value_parser = units::parse_bytes)]
    pub mmap_bytes: Option<u64>,

    /// When a WAL is checkpointed: PAGES, never, every:TRANSACTIONS
    #[arg(long, value_name = "WHEN", default_value = "1000", value_parser = checkpoint)]
    pub checkpoint: CheckpointPolicy,

    #[arg(long, value_name = "MODE", default_value = "passive", help = CheckpointMode::CHOICES)]
    pub checkpoint_mode: CheckpointMode,

    /// A WAL's file before each run: fresh, steady (as long as it gets)
    #[arg(long, value_name = "STATE", default_value = "fresh")]
    #[serde(default)]
    pub wal_file: WalFile,

    /// Commit by f2fs's batch atomic writes in place of a journal
    #[arg(long)]
    #[serde(default)]
    pub batch_atomic: bool,

    /// Call fsync where SQLite would call fdatasync
    #[arg(long)]
    pub fsync: bool,

    /// Use this SQLite instead of the one inside
    #[arg(id = "sqlite_lib", long = "sqlite-lib", value_name = "FILE")]
    pub library: Option<PathBuf>,

    /// Options of waldio, for [`Journal::Waldio`].
    #[command(flatten)]
    #[serde(default)]
    pub waldio: WaldioOptions,

    /// How it is measured.
    #[command(flatten)]
    #[serde(flatten)]
    pub measurement: Measurement,

    /// Use what an earlier run left with --keep, if it fits
    #[arg(long, help_heading = MEASUREMENT)]
    pub reuse: bool,

    /// Leave the files or databases behind
    #[arg(long, help_heading = MEASUREMENT)]
    pub keep: bool,
}

impl SqliteJob {
    /// What the command line does without a flag: a thousand inserts with SQLite's own settings.
    pub fn new(directory: impl Into<PathBuf>) -> SqliteJob {
        SqliteJob {
            directory: directory.into(),
            ..without_flags(&["."])
        }
    }

    /// Moves weights into the operation, and gives each table the rows that were asked for or that
    /// the operation needs. The answer is false for weights of an operation that is no mix.
    pub fn settle(&mut self) -> bool {
        if let Some(weights) = self.mix.take() {
            let SqliteOperation::Mix(mix) = &mut self.operation else {
                return false;
            };
            *mix = weights;
        }
        self.rows = self.rows_asked.take().unwrap_or(match self.operation {
            SqliteOperation::Insert => 0,
            SqliteOperation::Delete => self
                .transactions
                .saturating_mul(self.statements.into())
                .saturating_mul(if self.shared { self.threads } else { 1 }.into()),
            SqliteOperation::Update | SqliteOperation::Read | SqliteOperation::Mix(_) => ROWS,
        });
        true
    }
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

impl ValueEnum for SqliteOperation {
    fn value_variants<'a>() -> &'a [SqliteOperation] {
        const MIX: Mix = Mix {
            insert: 40,
            update: 30,
            delete: 10,
            read: 20,
        };
        use SqliteOperation as O;
        &[O::Insert, O::Update, O::Delete, O::Read, O::Mix(MIX)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self {
            SqliteOperation::Insert => "insert",
            SqliteOperation::Update => "update",
            SqliteOperation::Delete => "delete",
            SqliteOperation::Read => "read",
            SqliteOperation::Mix(_) => "mix",
        }))
    }
}

/// Weights of the operations of a mix; at least one is not 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mix {
    pub insert: u32,
    pub update: u32,
    pub delete: u32,
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

/// `insert=40,update=30,delete=10,read=20`; what is left out is 0.
fn mix(text: &str) -> Result<Mix, String> {
    let bad = || format!("{text}: expected weights as insert=40,update=30,delete=10,read=20");
    let mut mix = Mix::default();
    let mut sum = 0u32;
    for part in text.split(',') {
        let (name, weight) = part.split_once('=').ok_or_else(bad)?;
        let weight: u32 = weight.parse().map_err(|_| bad())?;
        let place = match name {
            "insert" => &mut mix.insert,
            "update" => &mut mix.update,
            "delete" => &mut mix.delete,
            "read" => &mut mix.read,
            _ => return Err(bad()),
        };
        *place = weight;
        sum = sum.checked_add(weight).ok_or_else(bad)?;
    }
    if sum == 0 {
        return Err(format!("{text}: at least one weight must be more than 0"));
    }
    Ok(mix)
}

/// `PAGES`, `never` or `every:N`.
fn checkpoint(text: &str) -> Result<CheckpointPolicy, String> {
    let policy = match text.split_once(':') {
        None if text == "never" => Some(CheckpointPolicy::Never),
        None => text.parse().ok().map(CheckpointPolicy::Pages),
        Some(("every", count)) => count.parse().ok().map(CheckpointPolicy::Transactions),
        Some(_) => None,
    };
    policy
        .filter(|policy| {
            !matches!(
                policy,
                CheckpointPolicy::Pages(0) | CheckpointPolicy::Transactions(0)
            )
        })
        .ok_or_else(|| {
            format!("{text}: expected pages as 1000, never, or transactions as every:100")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_has_weights_and_not_all_of_them_zero() {
        let found = mix("insert=1,read=3").expect("a mix");
        assert_eq!((found.insert, found.read, found.delete), (1, 3, 0));
        for text in [
            "",
            "insert",
            "insert=x",
            "walk=1",
            "insert=0",
            "insert=4294967295,read=1",
        ] {
            assert!(mix(text).is_err(), "{text}");
        }
    }

    #[test]
    fn checkpoints_come_by_pages_by_transactions_or_never() {
        assert_eq!(checkpoint("1000"), Ok(CheckpointPolicy::Pages(1000)));
        assert_eq!(checkpoint("never"), Ok(CheckpointPolicy::Never));
        assert_eq!(checkpoint("every:5"), Ok(CheckpointPolicy::Transactions(5)));
        for text in ["0", "every:0", "every:", "each:5", "-1", ""] {
            assert!(checkpoint(text).is_err(), "{text}");
        }
    }
}
