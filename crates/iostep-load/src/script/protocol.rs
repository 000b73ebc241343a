//! What the driver and its child tell each other: one JSON value a line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use iostep_model::pragma::{Journal, Synchronous};

use crate::script::settings::Settings;

/// A database to work on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Database {
    pub path: PathBuf,
    /// How to set SQLite up.
    pub settings: Settings,
}

/// What the connection is set to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// Process that has the database open.
    pub pid: u32,
    /// Journal mode.
    pub journal: Journal,
    /// Synchronous setting.
    pub synchronous: Synchronous,
    /// Page size in bytes.
    pub page_bytes: u32,
    /// SQLite's version.
    pub sqlite_version: String,
}

/// When a database was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    /// `CLOCK_MONOTONIC` before.
    pub start_ns: u64,
    /// `CLOCK_MONOTONIC` after.
    pub end_ns: u64,
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
    pub rows_returned: u64,
    /// Bytes that it asked to store: the new values of inserted rows, and of those columns of
    /// updated rows that got another value. `None` where SQLite does not tell: see `asked.rs`.
    pub user_bytes: Option<u64>,
}

/// From the driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// A directory, or mount point, to remove if the driver is killed.
    Dispose(PathBuf),
    Open(Database),
    Load(String),
    WarmUp,
    Forget,
    Step,
    Settle,
    Close,
    /// The end is in order: the driver cleans up.
    Quit,
}

/// From the child; each request gets one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Noted,
    Opened(Opened),
    Loaded(usize),
    WarmedUp,
    Forgotten,
    Settled,
    Stepped(Option<Transaction>),
    Closed(Closed),
    Failed(Error),
}
