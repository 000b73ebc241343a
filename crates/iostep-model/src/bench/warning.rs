//! What spoils a measurement.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::ReadWritten;

/// Something that makes figures worth less, with what to do about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Warning {
    /// The frequency of a CPU may change while it runs.
    CpuGovernor {
        /// The governor, as `powersave`.
        governor: String,
        /// On how many CPUs.
        cpus: u32,
    },
    /// The machine runs on its battery.
    OnBattery,
    /// Android's battery saver was on, which slows the processor.
    BatterySaver,
    /// Android said that the phone was hot, so that the processor and the storage may be slowed down.
    Hot {
        /// The worst of `PowerManager.getCurrentThermalStatus` before and after: 1, light, to 6,
        /// shutdown; at least 3, severe, where `getThermalHeadroom` was 1 or more.
        status: u32,
    },
    /// What this process is not shown: figures of the machine or of devices are missing.
    Unreadable {
        /// Files of /proc and directories of /sys.
        paths: Vec<PathBuf>,
    },
    /// A filter of system calls refused some, which failed as if the kernel had not got them.
    CallsRefused {
        /// How often.
        calls: u64,
        /// The number of the last one, of the machine's architecture.
        last: u64,
    },
    /// Little room is left, which slows allocation.
    FilesystemNearlyFull {
        mount_point: PathBuf,
        /// Used share of its bytes, 0 to 1.
        used: f64,
    },
    /// The filesystem compresses, so what is written depends on the payload.
    Compression {
        /// The mount option, as `compress=zstd:3`, or the device, as `zram0`.
        by: String,
    },
    /// There is no device below.
    InMemory {
        /// `tmpfs` or `ramfs`.
        filesystem: String,
    },
    /// Memory was being swapped: pages in or out during the runs.
    Swapping {
        /// How many pages.
        pages: u64,
    },
    /// Others used the machine's CPUs meanwhile.
    BusyMachine {
        /// Their share of the machine's CPU time, 0 to 1.
        others: f64,
    },
    /// Others used the device meanwhile, so its counts are not those of an operation.
    BusyDevice {
        /// Bytes that others read and wrote at most, as far as the device's counters have them.
        others: ReadWritten,
        /// Bytes that the device read and wrote.
        device: ReadWritten,
        /// Names of the processes with the most.
        processes: Vec<String>,
    },
    /// A log was not checkpointed within a run, so what a transaction wrote is without its share of
    /// that.
    WithoutCheckpoint,
    /// What was written is still in memory: the device has got less than half of it.
    StayedInMemory {
        /// Payload bytes of the run.
        payload_bytes: u64,
        /// Bytes that the device wrote meanwhile.
        written_bytes: u64,
    },
    /// The hypervisor took CPU time away.
    Steal {
        /// Its share of the machine's CPU time, 0 to 1.
        share: f64,
    },
    /// More threads than CPUs: latencies hold the wait for a CPU.
    MoreThreadsThanCpus {
        threads: u32,
        /// CPUs that they may use.
        cpus: u32,
    },
    /// The file fits into memory and is read through the page cache, so the device is not measured.
    FitsInPageCache { file_bytes: u64, memory_bytes: u64 },
    /// The measured part was too short to say much.
    TooShort {
        /// Its length, nanoseconds.
        elapsed_ns: u64,
    },
    /// The rate was not reached.
    RateNotReached {
        /// Operations a second that were asked for.
        asked: f64,
        /// Operations a second that were done.
        reached: f64,
    },
    /// Throughput did not settle.
    NotSteady {
        /// Number of the run, from 1.
        run: u32,
        /// Why, in words.
        reason: String,
    },
    /// The runs differ by more than the bound that was asked for.
    SpreadTooWide {
        /// Half the confidence interval over the median, 0 to 1.
        spread: f64,
        bound: f64,
    },
    /// Waldio was asked for, and SQLite's own log was used.
    StockLog {
        /// Why, in waldio's words.
        reason: String,
    },
    /// The device is a loop device: its figures are those of the file below.
    LoopDevice {
        device: String,
        /// The file, as the kernel names it.
        backing_file: PathBuf,
    },
}
