//! The numbers. Times are nanoseconds, sizes bytes.

use iostep_model::syscall::Syscall;
use serde::Serialize;

/// A trace in numbers: those that "Framework for Analyzing Android I/O Stack Behavior" (Future
/// Internet 2013), table 3, gives of MobiGen's traces, and more.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Info {
    /// Events that the recorder lost: the trace is not what happened.
    pub lost: u64,
    /// The line at which the file stops without an end.
    pub cut_at_line: Option<u64>,
    /// Not all of the file was read.
    pub interrupted: bool,
    pub source: Source,
    /// From the first call's start to the last one's end.
    pub run_ns: u64,
    /// Calls and bytes.
    pub totals: Totals,
    pub before: Before,
    /// By system call, the most frequent first.
    pub calls: Vec<CallInfo>,
    /// By path, the most calls first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<FileInfo>>,
}

/// What made a trace, and of what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Program, version and way.
    pub recorder: String,
    /// Kernel and architecture.
    pub machine: String,
    /// The command; what is no UTF-8 is replaced.
    pub command: Vec<String>,
    /// Wall clock at time 0, since 1970.
    pub start_wall_ns: Option<i128>,
    /// What times are exact to.
    pub resolution_ns: u64,
    /// Lines or events of the source that are in the trace.
    pub kept: u64,
    /// Those that are not.
    pub left_out: u64,
    /// Why, the most frequent first.
    pub left_out_because: Vec<(String, u64)>,
}

/// Calls and bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    pub calls: u64,
    pub failed: u64,
    /// Those that never returned.
    pub unfinished: u64,
    /// Those of which nobody knows what they returned.
    pub unknown: u64,
    pub threads: u64,
    pub processes: u64,
    /// Paths that calls used.
    pub files: u64,
    /// Times that something was opened.
    pub opens: u64,
    /// Calls that read.
    pub reads: u64,
    pub read_bytes: u64,
    /// Calls that wrote.
    pub writes: u64,
    /// What they wrote.
    pub written_bytes: u64,
    /// fsync, fdatasync, sync, syncfs, msync, sync_file_range.
    pub syncs: u64,
    pub call_ns: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Before {
    /// Regular files.
    pub files: u64,
    /// What they held.
    pub bytes: u64,
    pub directories: u64,
    /// Symbolic and hard links.
    pub links: u64,
    /// Paths at which nothing was.
    pub absent: u64,
    /// Of all these, those that were seen; others were concluded from what calls returned.
    pub seen: u64,
}

/// The calls of one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallInfo {
    pub syscall: Syscall,
    pub calls: u64,
    pub failed: u64,
    /// Bytes that they read or wrote.
    pub bytes: u64,
    /// Their time, as far as it is known.
    pub total_ns: u64,
    pub longest_ns: u64,
}

/// The calls on one path, by which the file was opened or named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileInfo {
    /// The path; what is no UTF-8 is replaced.
    pub path: String,
    /// How many calls.
    pub calls: u64,
    /// Times it was opened.
    pub opens: u64,
    /// Calls that read.
    pub reads: u64,
    pub read_bytes: u64,
    /// Calls that wrote.
    pub writes: u64,
    /// What they wrote.
    pub written_bytes: u64,
    /// Syncs of this file.
    pub syncs: u64,
    /// The time of its calls.
    pub call_ns: u64,
}
