//! Sync calls after every so many writes.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;

use rustix::io::Result;

use super::calls;

/// A way to make written bytes durable.
pub trait SyncCall {
    /// False if there is none to call.
    const CALLS: bool = true;
    /// Its name, for errors.
    const NAME: &'static str;

    /// Syncs what was written within `range` of the file, in bytes; some sync all of it.
    fn sync(&self, file: &File, range: Range<u64>) -> Result<()>;
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
}

/// `fsync(2)`.
#[derive(Clone, Copy, Debug)]
pub struct Fsync;

impl SyncCall for Fsync {
    const NAME: &'static str = "fsync";

    fn sync(&self, file: &File, _: Range<u64>) -> Result<()> {
        calls::fsync(file)
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
}

/// `sync_file_range(2)`, waiting before and after.
#[derive(Clone, Copy, Debug)]
pub struct FileRange;

impl SyncCall for FileRange {
    const NAME: &'static str = "sync_file_range";

    fn sync(&self, file: &File, range: Range<u64>) -> Result<()> {
        let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        let (start, length) = (range.start as i64, (range.end - range.start) as i64);
        // SAFETY: no memory is involved.
        calls::done(unsafe { libc::sync_file_range(file.as_raw_fd(), start, length, flags) })
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
