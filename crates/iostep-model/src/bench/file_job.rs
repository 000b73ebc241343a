//! Reads and writes of files.

use std::path::PathBuf;

use clap::ArgAction;
use clap::builder::{FalseyValueParser, PathBufValueParser, TypedValueParser};
use serde::{Deserialize, Serialize};

use super::{MEASUREMENT, Measurement, value, without_flags};
use crate::names::named;
use crate::units;

/// What a file generator does. Each field is one option: its flag, its help, its default and the
/// values that it takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
pub struct FileJob {
    /// Directory, or block device
    // Who reads a command line looks which of them it is.
    #[arg(value_parser = PathBufValueParser::new().map(Target::Directory))]
    pub target: Target,

    #[arg(long, value_name = "ACCESS", default_value = "write", help = Access::CHOICES)]
    pub access: Access,

    /// Bytes of one operation
    #[arg(long = "record", value_name = "SIZE", default_value = "4KiB",
          value_parser = units::parse_bytes)]
    pub record_bytes: u64,

    /// Bytes of each file
    // A multiple of the record.
    #[arg(long = "size", value_name = "SIZE", default_value = "64MiB",
          value_parser = units::parse_bytes)]
    pub file_bytes: u64,

    /// Threads, 1 to 1024
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,

    /// All threads on one file, instead of a file each
    #[arg(long = "shared", action = ArgAction::SetTrue, required = false,
          value_parser = FalseyValueParser::new().map(Sharing::from))]
    pub sharing: Sharing,

    #[arg(long, value_name = "HOW", default_value = "buffered", help = Transfer::CHOICES)]
    pub transfer: Transfer,

    #[arg(long, value_name = "MODE", default_value = "none", help = Sync::CHOICES)]
    pub sync: Sync,

    /// Sync after every so many writes of a thread
    // Says nothing for the syncs that are part of the write itself.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub sync_every: u64,

    /// Sync once more at the end, inside the measured time
    // By fsync, for a mapping by msync.
    #[arg(long)]
    pub end_sync: bool,

    /// All of a record or nothing: RWF_ATOMIC
    #[arg(long)]
    pub atomic: bool,

    /// Poll for completions: RWF_HIPRI, or IORING_SETUP_IOPOLL
    #[arg(long)]
    pub polled: bool,

    /// psync (pread, pwrite) or uring (io_uring)
    #[arg(long, value_name = "ENGINE", default_value = "psync")]
    pub engine: Engine,

    /// Operations under way at once in each thread; needs uring
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub depth: u32,

    /// Share of random operations that go where an earlier one went
    // An earlier one of the same pass. Percent, 0 to 100.
    #[arg(long = "overlap", value_name = "PERCENT", default_value = "0",
          value_parser = value::percent)]
    pub overlap_percent: f64,

    #[arg(long, value_name = "CONTENT", default_value = "written",
          help = format!("What the files hold before: {}", InitialContent::CHOICES))]
    pub initial: InitialContent,

    /// incompressible, constant (0xfe), constant:BYTE
    #[arg(long, value_name = "KIND", default_value = "incompressible",
          value_parser = payload)]
    pub payload: PayloadKind,

    #[arg(long = "cache", value_name = "STATE", default_value = "drop",
          help = format!("Page cache of the files at the start: {}", PageCache::CHOICES))]
    pub page_cache: PageCache,

    /// Allow writing to a block device, which destroys what it holds
    // A promise and no setting: results do not keep it.
    #[arg(long)]
    #[serde(skip)]
    pub destroy_data: bool,

    /// How it is measured.
    #[command(flatten)]
    #[serde(flatten)]
    pub measurement: Measurement,

    /// Use what an earlier run left with --keep, if it fits
    #[arg(long = "reuse", action = ArgAction::SetTrue, required = false,
          help_heading = MEASUREMENT, value_parser = FalseyValueParser::new().map(Files::from))]
    pub files: Files,

    /// Leave the files or databases behind
    #[arg(long, help_heading = MEASUREMENT)]
    pub keep: bool,
}

impl FileJob {
    /// Every flag's own default: each byte of a file of 64 MiB once, by buffered writes of 4 KiB in
    /// order, by one thread, nothing synced.
    pub fn new(target: Target) -> FileJob {
        FileJob {
            target,
            ..without_flags(&["."])
        }
    }

    /// How many files it has, or parts of a device.
    pub fn files(&self) -> u32 {
        match self.sharing {
            Sharing::OwnFile => self.threads,
            Sharing::SharedFile => 1,
        }
    }

    /// True if several threads are on one file.
    pub fn threads_share(&self) -> bool {
        self.sharing == Sharing::SharedFile && self.threads > 1
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

impl From<bool> for Sharing {
    fn from(shared: bool) -> Sharing {
        match shared {
            true => Sharing::SharedFile,
            false => Sharing::OwnFile,
        }
    }
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

impl Sync {
    /// True for what is part of the write itself, and no call after it.
    pub fn is_of_write(self) -> bool {
        matches!(self, Sync::OSync | Sync::ODsync | Sync::RwfDsync)
    }
}

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

impl From<bool> for Files {
    fn from(reuse: bool) -> Files {
        match reuse {
            true => Files::Reuse,
            false => Files::Fresh,
        }
    }
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

/// The byte that a constant payload repeats if none is named.
const CONSTANT: u8 = 0xfe;
/// `incompressible`, `constant` or `constant:BYTE`.
fn payload(text: &str) -> Result<PayloadKind, String> {
    let (kind, byte) = match text.split_once(':') {
        Some((kind, byte)) => (kind, Some(byte)),
        None => (text, None),
    };
    match (kind, byte) {
        ("incompressible", None) => Ok(PayloadKind::Incompressible),
        ("constant", None) => Ok(PayloadKind::Constant(CONSTANT)),
        ("constant", Some(byte)) => match byte.strip_prefix("0x") {
            Some(digits) => u8::from_str_radix(digits, 16),
            None => byte.parse(),
        }
        .map(PayloadKind::Constant)
        .map_err(|_| format!("{byte}: no byte; expected 0 to 255, or 0x00 to 0xff")),
        _ => Err(format!(
            "{text}: no payload; choose incompressible, constant, constant:BYTE"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_payload_names_its_byte_in_either_base() {
        assert_eq!(payload("constant"), Ok(PayloadKind::Constant(0xfe)));
        assert_eq!(payload("constant:0x00"), Ok(PayloadKind::Constant(0)));
        assert_eq!(payload("constant:255"), Ok(PayloadKind::Constant(255)));
        for text in [
            "constant:256",
            "constant:0xfff",
            "constant:",
            "zero",
            "incompressible:1",
        ] {
            assert!(payload(text).is_err(), "{text}");
        }
    }
}
