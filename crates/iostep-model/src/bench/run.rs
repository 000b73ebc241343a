//! What one repetition measured.

use serde::{Deserialize, Serialize};

use super::{LatencyHistogram, WaldioRun};
use crate::manifest::Counters;

/// One repetition of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Whether it came to its end.
    pub state: RunState,
    /// `CLOCK_REALTIME` at the start of the measured part, ns since the epoch.
    pub start_wall_ns: u64,
    /// Length of the measured part: from the end of the ramp to the last thread's end.
    pub elapsed_ns: u64,
    /// Operations that succeeded: reads and writes, or transactions.
    pub operations: u64,
    /// Payload bytes of these operations.
    pub bytes: u64,
    /// Time that the threads spent thinking or waiting for their schedule, summed.
    pub idle_ns: u64,
    /// How long the steps took.
    pub latencies: Vec<Latency>,
    /// What was done in each second of the measured part; the last may be shorter.
    pub seconds: Vec<Second>,
    /// Processor time and context switches.
    pub cpu: Cpu,
    /// What the device counted; `None` where the filesystem has no device that counts.
    pub device: Option<Counters>,
    /// What other processes read and wrote meanwhile, which is in `device` as far as it was there;
    /// `None` where the device does not count, and in older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<OthersIo>,
    /// What the device counted during the checkpoint after the end, which is not in `device`; `None`
    /// without one, or where no device counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_checkpoint: Option<Counters>,
    /// The page cache of the files at the start; `None` for SQLite and devices.
    pub page_cache: Option<PageCacheState>,
    /// What waldio said, if it was asked for.
    #[serde(default)]
    pub waldio: Option<WaldioRun>,
    /// Transactions that were committed by batch atomic writes, those of the ramp among them;
    /// `None` unless they were asked for.
    #[serde(default)]
    pub atomic_commits: Option<u64>,
    /// Each thread's share.
    pub threads: Vec<ThreadRun>,
    /// Operations that failed. The first ends the run.
    pub failures: Vec<Failure>,
    /// What reading back found, if it was asked for.
    pub verification: Option<Verification>,
}

impl Run {
    /// One that began at `start_wall_ns` and measured nothing.
    pub fn empty(state: RunState, start_wall_ns: u64) -> Run {
        Run {
            state,
            start_wall_ns,
            elapsed_ns: 0,
            operations: 0,
            bytes: 0,
            idle_ns: 0,
            latencies: Vec::new(),
            seconds: Vec::new(),
            cpu: Cpu::default(),
            device: None,
            others: None,
            last_checkpoint: None,
            page_cache: None,
            waldio: None,
            atomic_commits: None,
            threads: Vec::new(),
            failures: Vec::new(),
            verification: None,
        }
    }
}

/// What processes read and wrote during a run, by the kernel's accounts of each (`/proc/PID/io`): bytes
/// that were made dirty or written directly, and bytes that were read from disks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OthersIo {
    /// Of the generator itself.
    pub own: ReadWritten,
    /// Of others with a file of the measured disk open for writing, or a child that had.
    pub here: ReadWritten,
    /// Of others that were not seen to write to any disk: it may have been the measured one.
    pub unplaced: ReadWritten,
    /// The processes with the most, of both kinds.
    pub processes: Vec<OtherProcess>,
    /// Processes whose account this one may not read.
    pub unseen_processes: u64,
    /// What the whole disks counted beside the partitions that are measured. The kernel counts the
    /// flushes of all partitions of a disk as one number.
    #[serde(default, skip_serializing_if = "Counters::is_empty")]
    pub beside: Counters,
    /// Disks whose flushes the kernel does not count, as their bios complete without requests: their
    /// names below /dev.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flushes_not_counted: Vec<String>,
}

/// Bytes read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadWritten {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// What another process did during a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherProcess {
    /// Its number.
    pub pid: u32,
    /// Its name, as the kernel has it.
    pub name: String,
    /// What it did, with children that ended meanwhile.
    #[serde(flatten)]
    pub done: ReadWritten,
}

/// Whether a run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Everything was done.
    Complete,
    /// A signal ended it; what is here is what was done until then.
    Interrupted,
    /// An operation failed; what is here is what was done until then.
    Failed,
}

/// A part of an operation that is timed by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// An operation and the sync that follows it.
    Total,
    /// The read call or the copy from a mapping.
    Read,
    /// The write call or the copy to a mapping.
    Write,
    /// The sync call. For SQLite: each of its xSync calls.
    Sync,
    /// The sync call after the last operation.
    EndSync,
    /// A transaction from BEGIN until COMMIT returned, without checkpoints.
    Transaction,
    /// The COMMIT of a transaction that writes, without the checkpoint that it may run.
    Commit,
    /// A checkpoint of a WAL.
    Checkpoint,
    /// Waiting for another connection's lock, summed over a transaction that had to.
    BusyWait,
    /// How much later than its schedule an operation was issued.
    Lateness,
}

crate::listed! { Step,
    Total = "total",
    Read = "read",
    Write = "write",
    Sync = "sync",
    EndSync = "end sync",
    Transaction = "transaction",
    Commit = "commit",
    Checkpoint = "checkpoint",
    BusyWait = "busy wait",
    Lateness = "lateness",
}

/// How long one step took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    pub step: Step,
    pub histogram: LatencyHistogram,
}

/// What was done in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Length, nanoseconds: 10^9 but for the last.
    pub length_ns: u64,
    /// Operations that ended in it.
    pub operations: u64,
    pub bytes: u64,
    /// Sum of their latencies with their syncs, nanoseconds.
    pub latency_sum_ns: u64,
    /// The greatest of them.
    pub latency_max_ns: u64,
    /// What the device counted in it, to the precision of the sampling thread.
    pub device: Option<Counters>,
}

/// Processor time and context switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Of the generator in user mode: all threads of the process, io_uring's workers among them,
    /// but the one that watches. Nanoseconds.
    pub user_ns: u64,
    /// Of the same in the kernel, nanoseconds.
    pub system_ns: u64,
    /// Voluntary context switches of the same.
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    /// The whole machine's time; `None` where /proc/stat does not tell.
    pub machine: Option<MachineTime>,
}

/// Where the time of all CPUs went (`/proc/stat`, in its ticks of 10 ms): nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineTime {
    /// User mode, nice included.
    pub user_ns: u64,
    /// Kernel mode.
    pub system_ns: u64,
    /// Nothing to do.
    pub idle_ns: u64,
    /// Nothing to do but I/O under way.
    pub iowait_ns: u64,
    /// Interrupts.
    pub irq_ns: u64,
    /// Soft interrupts.
    pub softirq_ns: u64,
    /// Taken by the hypervisor for others.
    pub steal_ns: u64,
}

impl MachineTime {
    /// Everything.
    pub fn total_ns(&self) -> u64 {
        let idle = [self.idle_ns, self.iowait_ns, self.steal_ns];
        idle.into_iter().fold(self.active_ns(), u64::saturating_add)
    }

    /// The share of what is active and is not the `own_ns` of the load's threads, 0 to 1. The ticks
    /// are coarser than the threads' clock; the kernel's threads that work for the load are in it.
    pub fn others(&self, own_ns: u64) -> f64 {
        self.active_ns().saturating_sub(own_ns) as f64 / self.total_ns().max(1) as f64
    }

    /// Everything but idle, iowait and steal.
    pub fn active_ns(&self) -> u64 {
        let active = [self.user_ns, self.system_ns, self.irq_ns, self.softirq_ns];
        active.into_iter().fold(0, u64::saturating_add)
    }
}

/// How much of the files was in the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageCacheState {
    /// Pages of the files, of the machine's page size.
    pub pages: u64,
    /// How many of them were resident.
    pub resident_pages: u64,
    /// How many of these were dirty; `None` where only mincore(2) answers.
    pub dirty_pages: Option<u64>,
}

/// One thread's share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadRun {
    /// Operations that succeeded.
    pub operations: u64,
    pub bytes: u64,
    /// From the start of the measured part to this thread's end, nanoseconds.
    pub elapsed_ns: u64,
}

/// An operation that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The thread, from 0.
    pub thread: u32,
    /// The number of the operation in its thread, from 1, ramp included.
    pub operation: u64,
    /// What was attempted, on what: `write of 4096 bytes at 12288 of .../file-0`.
    pub attempt: String,
    /// Why not: the system's or SQLite's words.
    pub reason: String,
}

/// What reading everything back found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// Records or rows that were compared.
    pub compared: u64,
    /// How many of them were wrong.
    pub wrong: u64,
    /// The first of the wrong ones, in words; at most ten.
    pub examples: Vec<String>,
}
