//! Who wrote which part of which file, each write told once.
//!
//! ext4 tells of every `write`; the page cache tells when a folio becomes dirty, which is all
//! there is of mapped writes but mostly repeats the former. Direct I/O is not told of: who
//! submits its bios is who writes.

use std::collections::HashMap;

use crate::tracefs::seen::Part;

const PAGE_BYTES: u64 = 4096;
/// A page becomes dirty at most this long after the record of the write that made it so.
const WRITE_TO_DIRTY_NS: u64 = 1_000_000;
/// The tables start anew above this: what they save is told again then.
const MAX_CACHED: usize = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Written {
    mono_ns: u64,
    inode: u64,
    pid: u32,
    first_page: u64,
    last_page: u64,
    /// How many write bios there had been.
    bios: u64,
}

/// A part of a file to tell of; 0 bytes stand for a folio of unknown size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirtyRange {
    pub inode: u64,
    pub offset_bytes: u64,
    pub bytes: u32,
}

/// The last writes of inodes and threads.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    /// The last that was told of, by inode.
    told: HashMap<u64, Written>,
    /// The last of each thread, until the folio that it made dirty is seen.
    writing: HashMap<u32, Written>,
    bios: u64,
}

impl Writes {
    /// A thread wrote a part; returns what is new of that.
    pub fn wrote(&mut self, mono_ns: u64, pid: u32, part: Part) -> Option<DirtyRange> {
        let last_byte = part.offset_bytes.saturating_add(part.bytes.checked_sub(1)?);
        let written = Written {
            mono_ns,
            inode: part.inode,
            pid,
            first_page: part.offset_bytes / PAGE_BYTES,
            last_page: last_byte / PAGE_BYTES,
            bios: self.bios,
        };
        bound(&mut self.writing);
        self.writing.insert(pid, written);
        let repeats = |told: &Written| {
            told.pid == pid
                && told.bios == written.bios
                && told.first_page <= written.first_page
                && written.last_page <= told.last_page
        };
        if self.told.get(&part.inode).is_some_and(repeats) {
            return None;
        }
        bound(&mut self.told);
        self.told.insert(part.inode, written);
        let pages = written.last_page - written.first_page + 1;
        Some(DirtyRange {
            inode: part.inode,
            offset_bytes: written.first_page * PAGE_BYTES,
            bytes: u32::try_from(pages.saturating_mul(PAGE_BYTES)).unwrap_or(u32::MAX),
        })
    }

    /// A folio became dirty: news, unless the thread's last write explains it.
    pub fn folio(&mut self, mono_ns: u64, pid: u32, inode: u64, page: u64) -> Option<DirtyRange> {
        let explained = self.writing.remove(&pid).is_some_and(|write| {
            write.inode == inode
                && page <= write.last_page
                && mono_ns.saturating_sub(write.mono_ns) < WRITE_TO_DIRTY_NS
        });
        if explained {
            return None;
        }
        self.told.remove(&inode);
        Some(DirtyRange {
            inode,
            offset_bytes: page.saturating_mul(PAGE_BYTES),
            bytes: 0,
        })
    }

    /// A write went to the device: it may have taken pages along, and then what dirties them
    /// again is news.
    pub fn bio(&mut self) {
        self.bios += 1;
    }

    /// True if the last to write to the inode was this thread.
    pub fn wrote_last(&self, inode: u64, pid: u32) -> bool {
        self.told.get(&inode).is_some_and(|told| told.pid == pid)
    }

    /// The inode went away.
    pub fn gone(&mut self, inode: u64) {
        self.told.remove(&inode);
    }
}

fn bound<K, V>(table: &mut HashMap<K, V>) {
    if table.len() >= MAX_CACHED {
        table.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(offset_bytes: u64, bytes: u64) -> Part {
        Part {
            inode: 12,
            offset_bytes,
            bytes,
        }
    }

    #[test]
    fn a_page_that_is_written_byte_by_byte_is_told_of_once_for_each_writer_and_write_back() {
        let mut writes = Writes::default();
        let first = writes.wrote(1, 100, part(5000, 10)).expect("news");
        assert_eq!((first.offset_bytes, first.bytes), (4096, 4096));
        assert_eq!(writes.wrote(2, 100, part(5010, 10)), None);
        assert!(writes.wrote(3, 200, part(5020, 10)).is_some());
        assert!(writes.wrote(4, 100, part(5030, 10)).is_some());
        assert_eq!(writes.wrote(5, 100, part(0, 0)), None);
        assert_eq!(writes.wrote(6, 100, part(5040, 10)), None);
        writes.bio();
        assert!(writes.wrote(7, 100, part(5050, 10)).is_some());
    }

    #[test]
    fn a_folio_is_news_only_if_no_write_made_it_dirty() {
        let mut writes = Writes::default();
        writes.wrote(1, 100, part(8192, 4096));
        assert_eq!(writes.folio(2, 100, 12, 2), None);
        let mapped = writes.folio(3, 100, 12, 2).expect("a mapped write");
        assert_eq!((mapped.offset_bytes, mapped.bytes), (8192, 0));
        assert!(writes.folio(4, 200, 12, 2).is_some());
    }
}
