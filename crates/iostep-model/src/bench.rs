//! What a generator is asked to do, and what it measured.
//!
//! A [`Job`] says everything that matters for the I/O; `iostep-load` runs it and answers with a
//! [`Run`] for each repetition; a [`Document`] keeps job, environment and runs in one JSON file.

mod document;
mod file_job;
mod histogram;
mod run;
mod sqlite_job;
mod waldio;
mod warning;

pub use document::{Document, Environment, SCHEMA_VERSION, SqliteLibrary};
pub use file_job::{
    Access, Engine, FileJob, Files, InitialContent, PageCache, PayloadKind, Sharing, Sync, Target,
    Transfer,
};
pub use histogram::LatencyHistogram;
pub use run::{
    Cpu, Failure, Latency, MachineTime, PageCacheState, Run, RunState, Second, Step, ThreadRun,
    Verification,
};
pub use sqlite_job::{
    CheckpointMode, CheckpointPolicy, KeyOrder, Mix, SqliteJob, SqliteOperation, WalFile,
};
pub use waldio::{WaldioLayout, WaldioOptions, WaldioRun, WaldioSync};
pub use warning::Warning;

use serde::{Deserialize, Serialize};

/// What to do, completely: two equal jobs ask for the same I/O.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Job {
    /// Reads and writes of files or of a block device.
    File(FileJob),
    /// Transactions of SQLite.
    Sqlite(SqliteJob),
}

/// When a run ends and what of it counts; the same for every job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// End after this time, not counting [`Limits::ramp_ns`]. `None`: when the work is done once.
    /// With a time the work starts over as often as needed.
    pub time_ns: Option<u64>,
    /// What happens before this time does not count.
    pub ramp_ns: u64,
}

/// How fast work is issued; the same for every job. Both times are outside of the latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Operations a second of all threads together, on a schedule of absolute times: an operation
    /// that is late does not move the next one.
    pub operations_per_second: Option<f64>,
    /// Pause of a thread after each operation.
    pub think_ns: u64,
}
