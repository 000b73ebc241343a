//! What a generator is asked to do, and what it measured.
//!
//! A [`Job`] says everything that matters for the I/O; `iostep-load` runs it and answers with a
//! [`Run`] for each repetition; a [`Document`] keeps job, environment and runs in one JSON file.

mod document;
pub mod figures;
mod file_job;
mod histogram;
pub mod off_device;
mod run;
mod sqlite_job;
pub mod value;
mod waldio;
mod warning;

pub use document::{Document, Environment, SCHEMA_VERSION, SqliteLibrary};
pub use file_job::{
    Access, Engine, FileJob, Files, InitialContent, PageCache, PayloadKind, Sharing, Sync, Target,
    Transfer,
};
pub use histogram::{LatencyHistogram, LatencyRecorder};
pub use run::{
    Cpu, Failure, Latency, MachineTime, OtherProcess, OthersIo, PageCacheState, ReadWritten, Run,
    RunState, Second, Step, ThreadRun, Verification,
};
pub use sqlite_job::{
    CheckpointMode, CheckpointPolicy, KeyOrder, Mix, SqliteJob, SqliteOperation, WalFile,
};
pub use value::Rate;
pub use waldio::{WaldioLayout, WaldioOptions, WaldioRun, WaldioSync};
pub use warning::Warning;

use serde::{Deserialize, Serialize};

use crate::units;

/// What to do, completely: two equal jobs ask for the same I/O.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Job {
    /// Reads and writes of files or of a block device.
    File(FileJob),
    /// Transactions of SQLite.
    Sqlite(SqliteJob),
}

impl Job {
    /// How many threads it has.
    pub fn threads(&self) -> u32 {
        match self {
            Job::File(job) => job.threads,
            Job::Sqlite(job) => job.threads,
        }
    }

    /// How it is run.
    pub fn measurement(&self) -> &Measurement {
        match self {
            Job::File(job) => &job.measurement,
            Job::Sqlite(job) => &job.measurement,
        }
    }
}

/// The heading of the flags that every generator has.
pub const MEASUREMENT: &str = "Measurement";

/// How a job is run; the same for every generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[command(next_help_heading = MEASUREMENT)]
pub struct Measurement {
    /// When it ends.
    #[command(flatten)]
    pub limits: Limits,

    /// How fast it goes.
    #[command(flatten)]
    pub pace: Pace,

    /// Pin the threads to these CPUs in turn: 0-3,6
    // Written with its path, since clap takes a plain `Vec` for a flag that is repeated.
    #[arg(long, value_name = "LIST", default_value = value::NO_CPUS, hide_default_value = true,
          value_parser = value::cpus)]
    pub cpus: std::vec::Vec<u32>,

    /// Seed of offsets, keys and payload
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Read everything back at the end and compare
    // For SQLite that is `PRAGMA integrity_check`, and every row against what was committed.
    #[arg(long)]
    pub verify: bool,
}

impl Default for Measurement {
    fn default() -> Measurement {
        without_flags(&[])
    }
}

/// When a run ends and what of it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
pub struct Limits {
    /// Run for this long, starting over as needed: 10, 500ms, 2m
    // Not counting the ramp. `None`: when the work is done once.
    #[arg(long = "time", value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub time_ns: Option<u64>,

    /// Do not count what happens before this time
    #[arg(long = "ramp", value_name = "DURATION", default_value = "0",
          value_parser = units::parse_duration_ns)]
    pub ramp_ns: u64,
}

/// How fast work is issued. Both times are outside of the latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, clap::Args)]
pub struct Pace {
    /// Issue this many operations a second, or bytes: 500, 4MiB/s
    // As it was written; [`Pace::settle`] makes operations of it.
    #[arg(long, value_name = "RATE")]
    #[serde(skip)]
    pub rate: Option<Rate>,

    /// Operations a second of all threads together, on a schedule of absolute times: an operation
    /// that is late does not move the next one.
    #[arg(skip)]
    pub operations_per_second: Option<f64>,

    /// Pause of a thread after each operation
    #[arg(long = "think", value_name = "DURATION", default_value = "0",
          value_parser = units::parse_duration_ns)]
    pub think_ns: u64,
}

impl Pace {
    /// Makes operations of a rate in bytes, each of `record_bytes`. The answer is false for
    /// operations that have no length.
    pub fn settle(&mut self, record_bytes: Option<u64>) -> bool {
        self.operations_per_second = match (self.rate.take(), record_bytes) {
            (Some(Rate::Bytes(_)), None) => return false,
            (Some(Rate::Bytes(rate)), Some(record)) => Some(rate as f64 / record.max(1) as f64),
            (Some(Rate::Operations(rate)), _) => Some(rate),
            (None, _) => None,
        };
        true
    }
}

/// Options as they are without any flag.
fn without_flags<A: clap::Args>(positional: &[&str]) -> A {
    let command = A::augment_args(clap::Command::new("job").no_binary_name(true));
    command
        .try_get_matches_from(positional)
        .and_then(|matches| A::from_arg_matches(&matches))
        .expect("every option has a default")
}
