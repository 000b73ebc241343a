//! What a replay was asked to do, and what it did: one [`Performed`] for each call of the
//! recording. What that means (lateness, differences, sums) is computed by `iostep-analyze`.
//!
//! Units: times are nanoseconds since the replay's start (`CLOCK_MONOTONIC`), sizes are bytes.

use serde::{Deserialize, Serialize};

use crate::names::named;

/// When a call is issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// At its time in the recording, divided by the speed.
    #[default]
    Original,
    /// As soon as the order allows.
    Fast,
    /// As long after the thread's call before as in the recording.
    Think,
}

named!(
    Timing,
    "timing",
    Original = "original",
    Fast = "fast",
    Think = "think",
);

/// Who issues the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// A thread for each of the recording's.
    #[default]
    Original,
    /// One thread for all, in the order of the recording.
    Merge,
}

named!(
    Threads,
    "way to run threads",
    Original = "original",
    Merge = "merge"
);

/// How a replay is run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// When calls are issued.
    pub timing: Timing,
    /// How many times faster than recorded, for `Original` and `Think`. More than 0.
    pub speed: f64,
    /// Who issues them.
    pub threads: Threads,
}

/// Why a call was not issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Skip {
    /// It is no call: what fork, exec and exit do to descriptors is done without one.
    Bookkeeping,
    /// An ioctl that is not on the list of those that are safe.
    Control,
    /// A request of io_uring without an equivalent.
    Uring,
    /// The call that opened its file did not succeed here, or was skipped.
    NotOpen,
    /// It never returned in the recording, so nobody knows what it did.
    Unfinished,
    /// The recorded filesystems refused it as others may not: it led from one to another, or they do
    /// not know it. It did nothing there, and what the program did instead is in the recording.
    Refused,
    /// Its path or size is more than a replay accepts.
    Bounds,
    /// The replay was interrupted before.
    Interrupted,
}

named!(
    Skip,
    "reason",
    Bookkeeping = "bookkeeping",
    Control = "ioctl",
    Uring = "io_uring",
    NotOpen = "not open",
    Unfinished = "unfinished",
    Refused = "refused as recorded",
    Bounds = "out of bounds",
    Interrupted = "interrupted",
);

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It was issued and returned this: 0 or more (0 for what returns a descriptor or an address),
    /// or a negative error number.
    Done(i64),
    /// It was not issued.
    Skipped(Skip),
}

/// One call of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Performed {
    /// When the timing wanted it issued; with `Fast`, when nothing it waits for was left.
    pub due_ns: u64,
    /// When the order allowed it: the last call that it had to wait for had ended. Not before
    /// `due_ns` where it had nothing to wait for.
    pub ready_ns: u64,
    pub issued_ns: u64,
    /// When it returned.
    pub ended_ns: u64,
    /// What became of it.
    pub state: State,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// How it was run.
    pub settings: Settings,
    /// One for each call, by its place in [`crate::syscall::Recording::calls`].
    pub calls: Vec<Performed>,
    /// What was made before the start.
    pub prepared: Prepared,
    /// Calls that were issued before one had ended that they must follow, as counted by an
    /// independent check after the run. 0, or the replay is wrong.
    pub order_violations: u64,
    /// CPU time of the replay's threads in nanoseconds, system calls included.
    pub cpu_ns: u64,
    /// CPU time of the replay's threads between calls, for waiting and keeping books, in
    /// nanoseconds: the replay's own cost.
    pub user_ns: u64,
    /// Share of the machine's CPU time that others used meanwhile, 0 to 1.
    pub others_cpu: f64,
    /// A signal ended it.
    pub interrupted: bool,
}

/// The initial state as it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    pub directories: u64,
    /// Regular files.
    pub files: u64,
    /// Symbolic and hard links.
    pub links: u64,
    /// Bytes written into files.
    pub bytes: u64,
}
