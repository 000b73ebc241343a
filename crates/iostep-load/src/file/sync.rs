//! Sync modes: what each one opens, writes with, calls and does not go with, and which writes
//! share a call.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;

use io_uring::types::{Fixed, FsyncFlags};
use io_uring::{opcode, squeue};
use iostep_model::bench::{Sync, Transfer};
use rustix::fs::OFlags;
use rustix::io::Result;

use super::calls;

/// The one file that a ring knows.
const FILE: Fixed = Fixed(0);
/// Waiting before and after.
const FILE_RANGE: u32 = libc::SYNC_FILE_RANGE_WAIT_BEFORE
    | libc::SYNC_FILE_RANGE_WRITE
    | libc::SYNC_FILE_RANGE_WAIT_AFTER;

/// What a file is opened with.
pub fn open_flags(sync: Sync) -> OFlags {
    match sync {
        Sync::OSync => OFlags::SYNC,
        // rustix's DSYNC is O_SYNC where it makes the system calls itself (1.1.6).
        Sync::ODsync => OFlags::from_bits_retain(libc::O_DSYNC as u32),
        _ => OFlags::empty(),
    }
}

/// `RWF_` flags of each write.
pub fn write_flags(sync: Sync) -> i32 {
    match sync {
        Sync::RwfDsync => libc::RWF_DSYNC,
        _ => 0,
    }
}

/// Why a mode means nothing for a transfer, and what to choose.
pub fn conflict(sync: Sync, transfer: Transfer) -> Option<(String, &'static str)> {
    match (sync, transfer) {
        (Sync::MsSync | Sync::MsAsync, Transfer::Mmap) => None,
        (Sync::MsSync | Sync::MsAsync, _) => Some((
            format!("sync mode {sync} is for mappings"),
            "add --transfer mmap or choose --sync fsync",
        )),
        (_, Transfer::Mmap) if sync.is_of_write() => Some((
            format!("sync mode {sync} is part of a write call, which a mapping has not"),
            "choose --sync msync",
        )),
        (Sync::SyncFileRange, Transfer::Direct) => Some((
            "sync_file_range writes the page cache, which direct transfers go around".into(),
            "choose --sync fdatasync",
        )),
        _ => None,
    }
}

/// Evaluates an expression with the [`SyncCall`] of a mode, in code of its own for each. The calls
/// of a mapping are not here, since they are good only as long as it is.
macro_rules! with_call {
    ($sync:expr, $call:ident => $work:expr) => {
        match $sync {
            ::iostep_model::bench::Sync::Fsync => {
                let $call = $crate::file::sync::Fsync;
                $work
            }
            ::iostep_model::bench::Sync::Fdatasync => {
                let $call = $crate::file::sync::Fdatasync;
                $work
            }
            ::iostep_model::bench::Sync::SyncFileRange => {
                let $call = $crate::file::sync::FileRange;
                $work
            }
            ::iostep_model::bench::Sync::None
            | ::iostep_model::bench::Sync::OSync
            | ::iostep_model::bench::Sync::ODsync
            | ::iostep_model::bench::Sync::RwfDsync
            | ::iostep_model::bench::Sync::MsSync
            | ::iostep_model::bench::Sync::MsAsync => {
                let $call = $crate::file::sync::NoCall;
                $work
            }
        }
    };
}

pub(super) use with_call;

/// What a ring is asked for to sync a range; `None` where nothing is called.
pub fn entry(sync: Sync, range: &Range<u64>) -> Option<squeue::Entry> {
    with_call!(sync, call => call.entry(range))
}

/// The call's name, for errors.
pub fn name(sync: Sync) -> &'static str {
    fn of<S: SyncCall>(_: S) -> &'static str {
        S::NAME
    }
    with_call!(sync, call => of(call))
}

/// A way to make written bytes durable.
pub trait SyncCall {
    /// False if there is none to call.
    const CALLS: bool = true;
    /// Its name, for errors.
    const NAME: &'static str;

    /// Syncs what was written within `range` of the file, in bytes; some sync all of it.
    fn sync(&self, file: &File, range: Range<u64>) -> Result<()>;

    /// The same, asked of a ring; `None` if there is no such entry.
    fn entry(&self, range: &Range<u64>) -> Option<squeue::Entry>;
}

/// Nothing to call.
#[derive(Clone, Copy, Debug)]
pub struct NoCall;

impl SyncCall for NoCall {
    const CALLS: bool = false;
    const NAME: &'static str = "no sync";

    fn sync(&self, _: &File, _: Range<u64>) -> Result<()> {
        Ok(())
    }

    fn entry(&self, _: &Range<u64>) -> Option<squeue::Entry> {
        None
    }
}

/// `fsync(2)`.
#[derive(Clone, Copy, Debug)]
pub struct Fsync;

impl SyncCall for Fsync {
    const NAME: &'static str = "fsync";

    fn sync(&self, file: &File, _: Range<u64>) -> Result<()> {
        calls::fsync(file)
    }

    fn entry(&self, _: &Range<u64>) -> Option<squeue::Entry> {
        Some(opcode::Fsync::new(FILE).build())
    }
}

/// `fdatasync(2)`.
#[derive(Clone, Copy, Debug)]
pub struct Fdatasync;

impl SyncCall for Fdatasync {
    const NAME: &'static str = "fdatasync";

    fn sync(&self, file: &File, _: Range<u64>) -> Result<()> {
        calls::fdatasync(file)
    }

    fn entry(&self, _: &Range<u64>) -> Option<squeue::Entry> {
        let fsync = opcode::Fsync::new(FILE);
        Some(fsync.flags(FsyncFlags::DATASYNC).build())
    }
}

/// `sync_file_range(2)`, waiting before and after.
#[derive(Clone, Copy, Debug)]
pub struct FileRange;

impl SyncCall for FileRange {
    const NAME: &'static str = "sync_file_range";

    fn sync(&self, file: &File, range: Range<u64>) -> Result<()> {
        let (start, length) = (range.start as i64, (range.end - range.start) as i64);
        // SAFETY: no memory is involved.
        calls::done(unsafe { libc::sync_file_range(file.as_raw_fd(), start, length, FILE_RANGE) })
    }

    fn entry(&self, range: &Range<u64>) -> Option<squeue::Entry> {
        // 0 is everything up to the end, for what 32 bits do not hold.
        let length = u32::try_from(range.end - range.start).unwrap_or(0);
        let entry = opcode::SyncFileRange::new(FILE, length).offset(range.start);
        Some(entry.flags(FILE_RANGE).build())
    }
}

/// Writes that will be synced together.
#[derive(Clone, Debug)]
pub struct Group {
    every: u64,
    open: u64,
    /// From the first byte written to the last. What lies between and was not written since the
    /// last sync is clean, so that syncing it costs nothing.
    hull: Range<u64>,
}

/// The hull of nothing.
const EMPTY: Range<u64> = Range {
    start: u64::MAX,
    end: 0,
};

impl Group {
    /// Of `every` writes.
    pub fn new(every: u64) -> Group {
        Group {
            every,
            open: 0,
            hull: EMPTY,
        }
    }

    /// Takes a write. The answer is what has to be synced if that was the last of a group.
    #[inline]
    pub fn wrote(&mut self, offset_bytes: u64, bytes: u64) -> Option<Range<u64>> {
        self.open += 1;
        self.hull.start = self.hull.start.min(offset_bytes);
        self.hull.end = self.hull.end.max(offset_bytes + bytes);
        if self.open < self.every {
            return None;
        }
        self.open = 0;
        Some(std::mem::replace(&mut self.hull, EMPTY))
    }

    /// What has to be synced of a group that was not filled.
    pub fn close(&mut self) -> Option<Range<u64>> {
        let hull = std::mem::replace(&mut self.hull, EMPTY);
        (std::mem::take(&mut self.open) > 0).then_some(hull)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_synced_when_it_is_full_and_covers_exactly_its_own_writes() {
        let mut group = Group::new(3);
        let offsets = [8, 4, 20, 100, 96, 0];
        let due: Vec<_> = offsets.map(|offset| group.wrote(offset, 4)).to_vec();
        assert_eq!(due, [None, None, Some(4..24), None, None, Some(0..104)]);
        assert_eq!(group.close(), None);
        assert_eq!(group.wrote(12, 4), None);
        assert_eq!(group.close(), Some(12..16));
        assert_eq!(group.close(), None);
    }
}
