//! What a cell measured, and where.

use serde::{Deserialize, Serialize};

use super::Cell;
use crate::bench::{Cpu, WaldioRun};
use crate::class::Class;
use crate::disk::Disk;
use crate::host::Host;
use crate::manifest::{Counters, Device};
use crate::names::named;
use crate::operation::Operation;

/// A cell with what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// What was asked for.
    pub cell: Cell,
    /// Whether it was done.
    pub state: State,
    /// Where; `None` where nothing was made ready, as for a cell that is not applicable.
    pub environment: Option<Environment>,
    /// What was measured, one for each repetition or round.
    pub runs: Vec<Run>,
}

impl CellResult {
    /// What came of a cell for which nothing was made.
    pub fn without_runs(cell: &Cell, state: State) -> CellResult {
        CellResult {
            cell: cell.clone(),
            state,
            environment: None,
            runs: Vec::new(),
        }
    }

    /// True if the runs of both are of the same rounds, each at its place of the list.
    pub fn shares_rounds_with(&self, other: &CellResult) -> bool {
        let start = |result: &CellResult| result.environment.as_ref().map(|e| e.start_wall_ns);
        self.cell.takes_turns_with(&other.cell) && start(self) == start(other)
    }
}

/// Whether a cell was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum State {
    /// Every run came to its end.
    Complete,
    /// It did not.
    Failed {
        /// Why, in one line.
        reason: String,
    },
    /// The combination means nothing, as an external journal for f2fs.
    NotApplicable {
        /// Why, in one line.
        reason: String,
    },
    /// A signal ended it; the runs are those until then.
    Interrupted,
}

impl State {
    /// Its name in files.
    pub fn name(&self) -> &'static str {
        match self {
            State::Complete => "complete",
            State::Failed { .. } => "failed",
            State::NotApplicable { .. } => "not_applicable",
            State::Interrupted => "interrupted",
        }
    }

    /// True if running the cell again would add nothing.
    pub fn is_final(&self) -> bool {
        matches!(self, State::Complete | State::NotApplicable { .. })
    }

    /// Why there is no complete result, if there is none.
    pub fn reason(&self) -> Option<&str> {
        match self {
            State::Complete => None,
            State::Failed { reason } | State::NotApplicable { reason } => Some(reason),
            State::Interrupted => Some("interrupted"),
        }
    }
}

/// What a cell's storage lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Medium {
    /// A loop device over a file in the directory for temporary files.
    Loop,
    /// A loop device over a file in memory.
    Tmpfs,
    /// A block device that was given.
    Device,
    /// A directory that was given, on the filesystem that it is on.
    Directory,
    /// A device of a guest under QEMU.
    Guest,
}

named!(
    Medium,
    "place",
    Loop = "loop",
    Tmpfs = "tmpfs",
    Device = "device",
    Directory = "directory",
    Guest = "guest",
);

/// Where a cell ran: everything that is needed to do it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// What the storage lies on.
    pub place: Medium,
    /// True under a processor that is emulated in software: times are then not those of hardware,
    /// counts and bytes are.
    pub emulated: bool,
    #[serde(flatten)]
    pub host: Host,
    /// The device below the filesystem; `None` where it has none of its own.
    pub device: Option<Device>,
    /// The disks below it; empty where none is known, and in older results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<Disk>,
    /// The first disk's name for itself, `QEMU NVMe Ctrl`; empty where it has none, and where a file
    /// of this machine stands for a disk.
    pub device_model: String,
    /// The filesystem's kind and options as /proc/self/mountinfo has them: `ext4 rw,relatime`.
    pub mounted: String,
    /// How the filesystem was made and mounted, as lines of a shell.
    pub commands: Vec<String>,
    pub tools: Vec<Tool>,
    /// Version of the iostep that ran it.
    pub iostep_version: String,
    /// The commit that this iostep was built from, if known; ends in `+` where files differed, in
    /// `?` where nobody looked whether they do.
    pub iostep_commit: Option<String>,
    /// `sqlite3_libversion`, if SQLite ran.
    pub sqlite_version: Option<String>,
    /// `CLOCK_REALTIME` when the cell, or the first of those it takes turns with, began:
    /// nanoseconds since the epoch.
    pub start_wall_ns: u64,
}

/// A program that took part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Its name: `mkfs.ext4`.
    pub name: String,
    /// As it says itself.
    pub version: String,
}

/// One repetition of a cell's workload: the measured part, without what prepared it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Length of the measured part.
    pub elapsed_ns: u64,
    /// Operations that succeeded: reads and writes, transactions, replayed calls, or whatever a
    /// command counts.
    pub operations: u64,
    /// From an operation's beginning to its end, its sync included.
    pub latency: Option<Latency>,
    /// The sync calls alone.
    pub sync_latency: Option<Latency>,
    /// What the kernel counted for the device; with an external journal that of both together.
    /// `None` where the filesystem has no device that counts.
    pub device: Option<Counters>,
    /// Others may have asked for some of the device's flushes, or the kernel does not count them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flushes_are_others: bool,
    /// Processor time and context switches of the workload's process; not known of a command.
    pub cpu: Option<Cpu>,
    /// What waldio said, if it ran.
    #[serde(default)]
    pub waldio: Option<WaldioRun>,
    /// Requests and bytes by class, those of the measured part; `None` without a trace. With an
    /// external journal only those of the first device.
    pub classes: Option<Vec<ClassCount>>,
    /// Bytes of the filesystem's log that were written because of syncs of a database's own log:
    /// the journaling of journal (ATC'15 table 1), those of the measured part; `None` without a
    /// trace.
    #[serde(default)]
    pub journal_of_journal_bytes: Option<u64>,
    /// Writes that moved data, those of the measured part; `None` without a trace. The kernel's
    /// counters have flushes among the writes that came alone, as fdatasync(2) of an overwrite
    /// makes them.
    #[serde(default)]
    pub write_requests: Option<u64>,
    /// The requests of the sync calls of the last operations, in the order of issue; `None` if they
    /// were not asked for.
    #[serde(default)]
    pub pattern: Option<Vec<PatternRequest>>,
}

impl Run {
    /// The device's flushes, if nobody else may have asked for some.
    pub fn own_flushes(&self) -> Option<u64> {
        let device = self.device.filter(|_| !self.flushes_are_others)?;
        Some(device.flush.ios)
    }

    /// Operations a second.
    pub fn per_second(&self) -> f64 {
        match self.elapsed_ns {
            0 => 0.0,
            ns => self.operations as f64 * 1e9 / ns as f64,
        }
    }
}

/// How long something took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// How often it was done.
    pub count: u64,
    /// Half of them took at most this.
    pub p50_ns: u64,
    /// 99 of 100 took at most this.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// What the device was asked for of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassCount {
    /// What the bytes are; flushes have none.
    pub class: Option<Class>,
    pub operation: Operation,
    /// Bytes of this class; over all classes they add up to the requests'.
    pub bytes: u64,
    /// Requests with any byte of this class. A request with two classes counts in both.
    pub requests: u64,
}

/// A request of a block pattern (ATC'13 figure 3), or the part of one with one class and file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatternRequest {
    /// When it was issued, since the first of the pattern.
    pub issue_ns: u64,
    /// Which of the kept sync calls it belongs to: the first that ended after its issue. From 0.
    pub step: u32,
    /// First sector.
    pub sector: u64,
    /// Length; 0 for a flush.
    pub sectors: u64,
    pub operation: Operation,
    /// It had to be on the medium before it completed.
    pub fua: bool,
    /// What the bytes are; `None` for a flush.
    pub class: Option<Class>,
    /// Whose they are, as people read it; `None` where no file is known.
    pub file: Option<String>,
}
