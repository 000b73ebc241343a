//! Reads and writes of files.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Limits, Pace};
use crate::names::named;

/// What a file generator does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileJob {
    /// On what.
    pub target: Target,
    /// In which way.
    pub access: Access,
    /// Bytes of one operation.
    pub record_bytes: u64,
    /// Bytes of each file, a multiple of [`FileJob::record_bytes`].
    pub file_bytes: u64,
    /// How many threads, 1 to 1024.
    pub threads: u32,
    /// Whether each thread has a file of its own.
    pub sharing: Sharing,
    /// How bytes get between memory and file.
    pub transfer: Transfer,
    /// How written bytes become durable.
    pub sync: Sync,
    /// One sync call after so many writes of a thread; at least 1. Says nothing for the syncs
    /// that are part of the write itself.
    pub sync_every: u64,
    /// One more fsync (msync for a mapping) at the end, inside the measured time.
    pub end_sync: bool,
    /// `RWF_ATOMIC`: all of the record or nothing.
    pub atomic: bool,
    /// `RWF_HIPRI`, or a ring with `IORING_SETUP_IOPOLL`.
    pub polled: bool,
    /// By which system calls.
    pub engine: Engine,
    /// Operations under way at once in each thread; 1 for psync and mappings.
    pub depth: u32,
    /// Percent, 0 to 100, of random operations that go where an earlier one of the same pass went.
    pub overlap_percent: f64,
    /// What the files hold before the measured part.
    pub initial: InitialContent,
    /// Whether files of an earlier run are used.
    pub files: Files,
    /// Leave the files behind.
    pub keep: bool,
    /// What is written.
    pub payload: PayloadKind,
    /// The page cache at the start.
    pub page_cache: PageCache,
    /// Read everything back at the end and compare.
    pub verify: bool,
    /// Seed of offsets and payload.
    pub seed: u64,
    /// CPUs that the threads are pinned to, in turn; empty for none.
    pub cpus: Vec<u32>,
    /// When it ends.
    pub limits: Limits,
    /// How fast it goes.
    pub pace: Pace,
}

impl FileJob {
    /// Each byte of a file of 64 MiB once: buffered writes of 4 KiB in order, by one thread, nothing
    /// synced. What the command line does without a flag.
    pub fn new(target: Target) -> FileJob {
        FileJob {
            target,
            access: Access::Write,
            record_bytes: 4 << 10,
            file_bytes: 64 << 20,
            threads: 1,
            sharing: Sharing::OwnFile,
            transfer: Transfer::Buffered,
            sync: Sync::None,
            sync_every: 1,
            end_sync: false,
            atomic: false,
            polled: false,
            engine: Engine::Psync,
            depth: 1,
            overlap_percent: 0.0,
            initial: InitialContent::Written,
            files: Files::Fresh,
            keep: false,
            payload: PayloadKind::Incompressible,
            page_cache: PageCache::Drop,
            verify: false,
            seed: 1,
            cpus: Vec::new(),
            limits: Limits::default(),
            pace: Pace::default(),
        }
    }
}

/// Where the bytes go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Files in an own directory below this one.
    Directory(PathBuf),
    /// A block device. Whatever writes to it destroys its content, which the caller agreed to.
    BlockDevice(PathBuf),
}

/// Direction and order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Overwrites from the first byte on.
    Write,
    /// Overwrites each record once, in random order.
    RandomWrite,
    /// Reads from the first byte on.
    Read,
    /// Reads each record once, in random order.
    RandomRead,
    /// Writes at the end of an empty file.
    Append,
}

named!(
    Access,
    "access",
    Write = "write",
    RandomWrite = "random-write",
    Read = "read",
    RandomRead = "random-read",
    Append = "append",
);

impl Access {
    /// True for what changes the file.
    pub fn writes(self) -> bool {
        !matches!(self, Access::Read | Access::RandomRead)
    }

    /// True for what jumps.
    pub fn random(self) -> bool {
        matches!(self, Access::RandomWrite | Access::RandomRead)
    }
}

/// Whether threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// Each thread has a file of [`FileJob::file_bytes`].
    OwnFile,
    /// All have one file. In order, each takes its own part; at random, each goes over the whole.
    SharedFile,
}

/// How bytes get between memory and file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transfer {
    /// Through the page cache.
    Buffered,
    /// `O_DIRECT`.
    Direct,
    /// Through the page cache, which drops the pages afterwards: `RWF_DONTCACHE` (Linux 6.14).
    DontCache,
    /// Copies to or from a shared mapping.
    Mmap,
}

named!(
    Transfer,
    "transfer",
    Buffered = "buffered",
    Direct = "direct",
    DontCache = "dontcache",
    Mmap = "mmap",
);

/// How written bytes become durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sync {
    /// Not at all, or when the kernel likes.
    None,
    /// `O_SYNC`.
    OSync,
    /// `O_DSYNC`.
    ODsync,
    /// `RWF_DSYNC` on each write.
    RwfDsync,
    /// `fsync(2)`.
    Fsync,
    /// `fdatasync(2)`.
    Fdatasync,
    /// `sync_file_range(2)` of what was written since the last one, waiting before and after.
    /// Not durable: neither metadata nor the device's cache is written.
    SyncFileRange,
    /// `msync(MS_SYNC)` of what was written since the last one.
    MsSync,
    /// `msync(MS_ASYNC)`, which has done nothing since Linux 2.6.19.
    MsAsync,
}

named!(
    Sync,
    "sync mode",
    None = "none",
    OSync = "osync",
    ODsync = "odsync",
    RwfDsync = "rwf-dsync",
    Fsync = "fsync",
    Fdatasync = "fdatasync",
    SyncFileRange = "sync-file-range",
    MsSync = "msync",
    MsAsync = "msync-async",
);

/// By which system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// `pread(2)`, `pwrite(2)`, and `preadv2(2)`, `pwritev2(2)` where flags are needed.
    Psync,
    /// `io_uring(7)`.
    Uring,
}

named!(Engine, "engine", Psync = "psync", Uring = "uring");

/// What the files hold before the measured part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialContent {
    /// Written from end to end, and synced.
    Written,
    /// Blocks from `fallocate(2)`, unwritten.
    Allocated,
    /// Only a length: a hole.
    Sparse,
}

named!(
    InitialContent,
    "initial content",
    Written = "written",
    Allocated = "allocated",
    Sparse = "sparse",
);

/// Whether files of an earlier run are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Files {
    /// Made anew for each run.
    Fresh,
    /// Taken as they are if they have the right length and content, else made.
    Reuse,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PayloadKind {
    /// Random bytes, each 4 KiB of them different from every other.
    Incompressible,
    /// One byte, over and over.
    Constant(u8),
}

/// The page cache of the files at the start of the measured part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageCache {
    /// The files' pages are written back and dropped.
    Drop,
    /// The files' pages are dropped, and read once, one by one.
    Warm,
    /// As preparing the files left it.
    AsIs,
}

named!(
    PageCache,
    "page cache state",
    Drop = "drop",
    Warm = "warm",
    AsIs = "as-is",
);
