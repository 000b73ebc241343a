//! What jbd2 writes to its log, read from the device's page cache.
//!
//! jbd2 builds descriptor, revoke and commit blocks in the page cache of the device, and a
//! descriptor lists the home of each block that follows it. They are read back there a moment
//! later; the device itself is not asked, since cachestat(2) (Linux 6.5) tells first whether the
//! page is in memory. Copies of other blocks pass the page cache by and are never read, but the
//! originals of metadata lie in it. Only blocks of the commit under way are believed.
//!
//! Sources: fs/ext4/ext4.h (`struct ext4_super_block`), fs/ext4/ext4_extents.h,
//! include/linux/jbd2.h, `journal_tag_bytes` in fs/jbd2/journal.c. The log is big-endian, ext4
//! little-endian.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use iostep_model::SECTOR_BYTES;
use iostep_model::event::{Content, Segment};
use rustix::fs::{Advice, fadvise};
use rustix::io::{ReadWriteFlags, preadv2};

const EXT4_MAGIC: u16 = 0xEF53;
const EXTENT_MAGIC: u16 = 0xF30A;
const JBD2_MAGIC: u32 = 0xC03B_3998;
const DESCRIPTOR: u32 = 1;
const COMMIT: u32 = 2;
const SUPERBLOCK_V2: u32 = 4;
const REVOKE: u32 = 5;
/// `JBD2_FEATURE_INCOMPAT_*`.
const BITS64: u32 = 0x2;
const CSUM_V2: u32 = 0x8;
const CSUM_V3: u32 = 0x10;
const FAST_COMMIT: u32 = 0x20;
/// `JBD2_FLAG_SAME_UUID` and `JBD2_FLAG_LAST_TAG`.
const SAME_UUID: u32 = 2;
const LAST_TAG: u32 = 8;
const HEADER_BYTES: usize = 12;
const PAGE_BYTES: u64 = 4096;
const UUID_BYTES: usize = 16;
/// `JBD2_DEFAULT_FAST_COMMIT_BLOCKS`.
const DEFAULT_FAST_BLOCKS: u32 = 256;

/// Where the log lies and how its tags look.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shape {
    block_bytes: u64,
    /// Filesystem blocks, in the order of the log.
    runs: Vec<Range<u64>>,
    incompat: u32,
    /// Blocks at the log's end for fast commits.
    fast_blocks: u64,
}

/// The log of one ext4.
#[derive(Debug)]
pub(crate) struct Log {
    node: PathBuf,
    start_sector: u64,
    shape: Shape,
    /// Open while a batch needs it: kept open, the device could not be detached.
    device: Option<File>,
    block: Vec<u8>,
    commit: Option<u64>,
    /// The homes of the blocks that come next.
    homes: VecDeque<u64>,
    /// A block of this commit was not what it should be: the rest is not known.
    lost: bool,
}

impl Log {
    /// Finds the log of the mounted ext4 on `node`, which begins at `start_sector` of its disk;
    /// `None` if there is none inside it, or what describes it is not in memory.
    pub fn find(node: PathBuf, start_sector: u64) -> Option<Log> {
        let device = open(&node).ok()?;
        let mut superblock = vec![0; 1024];
        // The mounted filesystem holds both superblocks, but maybe not what else is in the page.
        device.read_exact_at(&mut superblock, 1024).ok()?;
        let (block_bytes, runs) = parse_superblock(&superblock)?;
        let mut block = vec![0; usize::try_from(block_bytes).ok()?];
        let log_bytes = runs.first()?.start.checked_mul(block_bytes)?;
        device.read_exact_at(&mut block, log_bytes).ok()?;
        Some(Log {
            node,
            start_sector,
            shape: parse_log_superblock(&block, block_bytes, runs)?,
            device: None,
            block,
            commit: None,
            homes: VecDeque::new(),
            lost: false,
        })
    }

    /// A commit began or ended.
    pub fn commit(&mut self, commit: Option<u64>) {
        self.commit = commit;
        self.homes.clear();
        self.lost = false;
    }

    /// Ends a batch.
    pub fn close(&mut self) {
        self.device = None;
    }

    /// The parts of a write to the log, block by block; `None` if it lies elsewhere.
    pub fn segments(&mut self, sector: u64, bytes: u32) -> Option<Vec<Segment>> {
        let block_bytes = self.shape.block_bytes;
        let first = sector.checked_sub(self.start_sector)?;
        let first = first.checked_mul(SECTOR_BYTES)?;
        let whole = first.is_multiple_of(block_bytes)
            && u64::from(bytes).is_multiple_of(block_bytes)
            && bytes > 0;
        if !whole || self.shape.place_of(first / block_bytes).is_none() {
            return None;
        }
        let blocks = first / block_bytes..first / block_bytes + u64::from(bytes) / block_bytes;
        let segments = blocks.map(|block| Segment {
            bytes: block_bytes as u32,
            content: self.content(block),
            dirtier: None,
        });
        Some(segments.collect())
    }

    fn content(&mut self, fs_block: u64) -> Content {
        let place = self.shape.place_of(fs_block);
        if place.is_some_and(|place| place >= self.shape.fast_start()) {
            return logged([0; 16], None, None, true);
        }
        if let Some(home) = self.homes.pop_front() {
            return logged(self.head_of(home), Some(home), self.commit, false);
        }
        let content = self.own_block(fs_block, place == Some(0));
        self.lost |= content.is_none();
        content.unwrap_or(Content::Unknown)
    }

    /// A block that jbd2 itself made: its superblock, or one of the commit under way.
    fn own_block(&mut self, fs_block: u64, first: bool) -> Option<Content> {
        if !first && (self.commit.is_none() || self.lost) {
            return None;
        }
        self.read(fs_block)?;
        let head = *self.block.first_chunk()?;
        let (magic, kind, sequence) = header(&self.block);
        let current = self.commit.map(|commit| commit as u32) == Some(sequence);
        let believed = match kind {
            SUPERBLOCK_V2 => first,
            DESCRIPTOR | COMMIT | REVOKE => current,
            _ => false,
        };
        if magic != JBD2_MAGIC || !believed {
            return None;
        }
        if kind == DESCRIPTOR {
            self.homes = parse_tags(&self.block, self.shape.incompat);
        }
        Some(logged(head, None, self.commit.filter(|_| !first), false))
    }

    /// The first bytes of a block of metadata, which the device's page cache holds too; zeros
    /// for a file's data, which it does not, and where the kernel cannot say which it is.
    fn head_of(&mut self, fs_block: u64) -> [u8; 16] {
        let mut head = [0; 16];
        let block_bytes = self.shape.block_bytes;
        let offset_bytes = fs_block.saturating_mul(block_bytes);
        let Some(device) = self.device() else {
            return head;
        };
        // Without cachestat(2) a read could wake the device for every block of a file.
        let known = block_bytes < PAGE_BYTES || is_cached(device, offset_bytes, 16) == Some(true);
        if !known || read_cached(device, block_bytes, offset_bytes, &mut head).is_none() {
            head = [0; 16];
        }
        head
    }

    fn read(&mut self, fs_block: u64) -> Option<()> {
        let block_bytes = self.shape.block_bytes;
        let offset_bytes = fs_block.checked_mul(block_bytes)?;
        let mut block = std::mem::take(&mut self.block);
        let read = self
            .device()
            .and_then(|device| read_cached(device, block_bytes, offset_bytes, &mut block));
        self.block = block;
        read
    }

    fn device(&mut self) -> Option<&File> {
        if self.device.is_none() {
            self.device = open(&self.node).ok();
        }
        self.device.as_ref()
    }
}

impl Shape {
    /// A block's number in the log.
    fn place_of(&self, fs_block: u64) -> Option<u64> {
        let mut before = 0;
        for run in &self.runs {
            if run.contains(&fs_block) {
                return Some(before + fs_block - run.start);
            }
            before += run.end - run.start;
        }
        None
    }

    fn fast_start(&self) -> u64 {
        let blocks: u64 = self.runs.iter().map(|run| run.end - run.start).sum();
        blocks.saturating_sub(self.fast_blocks)
    }
}

fn logged(head: [u8; 16], home_fs_block: Option<u64>, commit: Option<u64>, fast: bool) -> Content {
    Content::JournalBlock {
        head,
        home_fs_block,
        home_file: None,
        commit,
        fast,
    }
}

fn open(node: &Path) -> io::Result<File> {
    let device = File::open(node)?;
    // Blocks next to those that are read are none of ours.
    fadvise(&device, 0, None, Advice::Random)?;
    Ok(device)
}

/// Fills `buffer` from the page cache; `None` if a part of it is not there.
///
/// A page that jbd2 filled counts as unread for `RWF_NOWAIT`, unless it holds several blocks; a
/// plain read of it asks the device for nothing, unless it holds several blocks.
fn read_cached(
    device: &File,
    block_bytes: u64,
    offset_bytes: u64,
    buffer: &mut [u8],
) -> Option<()> {
    if block_bytes < PAGE_BYTES {
        let wanted = buffer.len();
        let buffers = &mut [IoSliceMut::new(buffer)];
        let read = preadv2(device, buffers, offset_bytes, ReadWriteFlags::NOWAIT);
        return (read.ok()? == wanted).then_some(());
    }
    if is_cached(device, offset_bytes, buffer.len() as u64) == Some(false) {
        return None;
    }
    device.read_exact_at(buffer, offset_bytes).ok()
}

/// True if every page of a range is in the page cache; `None` if the kernel does not say.
///
/// Source: cachestat(2), include/uapi/linux/mman.h.
fn is_cached(device: &File, offset_bytes: u64, length_bytes: u64) -> Option<bool> {
    const CACHESTAT: libc::c_long = 451;
    let range = [offset_bytes, length_bytes];
    let mut counts = [0u64; 5];
    // SAFETY: `range` and `counts` are laid out as `struct cachestat_range` and
    // `struct cachestat`, and outlive the call.
    let result = unsafe {
        libc::syscall(
            CACHESTAT,
            device.as_raw_fd(),
            range.as_ptr(),
            counts.as_mut_ptr(),
            0,
        )
    };
    let end_bytes = offset_bytes.checked_add(length_bytes)?;
    let pages = end_bytes.div_ceil(PAGE_BYTES) - offset_bytes / PAGE_BYTES;
    (result == 0).then_some(counts[0] >= pages)
}

fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The block size, and the extents of the journal inode from the copy that the superblock keeps.
fn parse_superblock(superblock: &[u8]) -> Option<(u64, Vec<Range<u64>>)> {
    const JOURNAL_INODE: u32 = 8;
    const BACKUP_BLOCKS: u8 = 1;
    const I_BLOCK: usize = 0x10C;
    let log_block_size = le32(superblock, 0x18)?;
    let inside =
        le32(superblock, 0xE0)? == JOURNAL_INODE && superblock.get(0xFD)? == &BACKUP_BLOCKS;
    if le16(superblock, 0x38)? != EXT4_MAGIC || !inside || log_block_size > 6 {
        return None;
    }
    let i_block = superblock.get(I_BLOCK..I_BLOCK + 60)?;
    let (entries, depth) = (le16(i_block, 2)?, le16(i_block, 6)?);
    if le16(i_block, 0)? != EXTENT_MAGIC || depth != 0 || !(1..=4).contains(&entries) {
        return None;
    }
    let extent = |entry: usize| {
        let at = 12 + entry * 12;
        let length = u64::from(le16(i_block, at + 4)?);
        let high = u64::from(le16(i_block, at + 6)?);
        let start = high << 32 | u64::from(le32(i_block, at + 8)?);
        Some(start..start + length)
    };
    let runs: Option<Vec<_>> = (0..usize::from(entries)).map(extent).collect();
    Some((1024 << log_block_size, runs?))
}

fn parse_log_superblock(block: &[u8], block_bytes: u64, runs: Vec<Range<u64>>) -> Option<Shape> {
    let (magic, kind, _) = header(block);
    let same_size = be32(block, 0x0C).map(u64::from) == Some(block_bytes);
    if magic != JBD2_MAGIC || kind != SUPERBLOCK_V2 || !same_size {
        return None;
    }
    let incompat = be32(block, 0x28)?;
    let fast_blocks = match be32(block, 0x54)? {
        _ if incompat & FAST_COMMIT == 0 => 0,
        0 => DEFAULT_FAST_BLOCKS,
        blocks => blocks,
    };
    Some(Shape {
        block_bytes,
        runs,
        incompat,
        fast_blocks: fast_blocks.into(),
    })
}

/// Magic, block type and sequence: `journal_header_t`.
fn header(block: &[u8]) -> (u32, u32, u32) {
    let word = |at| be32(block, at).unwrap_or(0);
    (word(0), word(4), word(8))
}

/// The homes that a descriptor block lists; what does not fit the block ends the list.
fn parse_tags(block: &[u8], incompat: u32) -> VecDeque<u64> {
    let v3 = incompat & CSUM_V3 != 0;
    let wide = incompat & BITS64 != 0;
    let tail = if incompat & (CSUM_V2 | CSUM_V3) != 0 {
        4
    } else {
        0
    };
    let tag_bytes = match (v3, incompat & CSUM_V2 != 0, wide) {
        (true, ..) => 16,
        (_, v2, wide) => 8 + 2 * usize::from(v2) + 4 * usize::from(wide),
    };
    let block = &block[..block.len().saturating_sub(tail)];
    let mut homes = VecDeque::new();
    let mut at = HEADER_BYTES;
    while let Some(tag) = block.get(at..at + tag_bytes) {
        let word = |at| be32(tag, at).unwrap_or(0);
        // journal_block_tag3_t has 32 bits of flags, journal_block_tag_t the low half only.
        let flags = if v3 { word(4) } else { word(4) & 0xFFFF };
        let high = if wide { u64::from(word(8)) } else { 0 };
        homes.push_back(high << 32 | u64::from(word(0)));
        at += tag_bytes;
        if flags & SAME_UUID == 0 {
            at += UUID_BYTES;
        }
        if flags & LAST_TAG != 0 {
            break;
        }
    }
    homes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tag3(home: u64, flags: u32) -> Vec<u8> {
        let words = [home as u32, flags, (home >> 32) as u32, 0xDEAD_BEEF];
        words.into_iter().flat_map(u32::to_be_bytes).collect()
    }

    fn descriptor(tags: &[u8]) -> Vec<u8> {
        let mut block: Vec<u8> = [JBD2_MAGIC, DESCRIPTOR, 42].map(u32::to_be_bytes).concat();
        block.extend(tags);
        block.resize(1024, 0);
        block
    }

    fn superblock() -> Vec<u8> {
        let mut superblock = vec![0; 1024];
        let mut put = |at: usize, bytes: &[u8]| {
            superblock[at..at + bytes.len()].copy_from_slice(bytes);
        };
        put(0x18, &2u32.to_le_bytes());
        put(0x38, &EXT4_MAGIC.to_le_bytes());
        put(0xE0, &8u32.to_le_bytes());
        put(0xFD, &[1]);
        put(0x10C, &EXTENT_MAGIC.to_le_bytes());
        put(0x10E, &2u16.to_le_bytes());
        for (entry, (length, start)) in [(100u16, 5000u32), (50, 9000)].into_iter().enumerate() {
            put(0x10C + 12 + entry * 12 + 4, &length.to_le_bytes());
            put(0x10C + 12 + entry * 12 + 8, &start.to_le_bytes());
        }
        superblock
    }

    #[test]
    fn a_descriptor_lists_the_homes_of_the_blocks_after_it() {
        let mut tags = tag3(0x1_0000_0007, 0);
        tags.extend([0xAA; UUID_BYTES]);
        tags.extend(tag3(9, SAME_UUID));
        tags.extend(tag3(11, SAME_UUID | LAST_TAG));
        tags.extend(tag3(13, SAME_UUID));
        let homes = parse_tags(&descriptor(&tags), BITS64 | CSUM_V3);
        assert_eq!(homes, [0x1_0000_0007, 9, 11]);
    }

    #[test]
    fn tags_of_every_size_are_read() {
        for (incompat, bytes) in [(0, 8), (BITS64, 12), (CSUM_V2, 10), (BITS64 | CSUM_V2, 14)] {
            let mut tags = Vec::new();
            for (home, flags) in [(7u32, SAME_UUID), (9, SAME_UUID | LAST_TAG)] {
                let mut tag = [home, flags, 0, 0].map(u32::to_be_bytes).concat();
                tag.truncate(bytes);
                tags.extend(tag);
            }
            let homes = parse_tags(&descriptor(&tags), incompat);
            assert_eq!(homes, [7, 9], "{incompat:x}");
        }
    }

    #[test]
    fn a_block_has_its_place_in_a_log_of_several_runs() {
        let (block_bytes, runs) = parse_superblock(&superblock()).expect("a superblock");
        assert_eq!(block_bytes, 4096);
        let shape = Shape {
            block_bytes,
            runs,
            incompat: 0,
            fast_blocks: 10,
        };
        assert_eq!(shape.place_of(5000), Some(0));
        assert_eq!(shape.place_of(9001), Some(101));
        assert_eq!(shape.place_of(5100), None);
        assert_eq!(shape.fast_start(), 140);
    }

    proptest! {
        #[test]
        fn damaged_blocks_never_panic(
            changes in prop::collection::vec((0usize..1024, any::<u8>()), 1..60),
            incompat in 0u32..64,
        ) {
            let mut blocks = [superblock(), descriptor(&tag3(1, SAME_UUID).repeat(60))];
            for block in &mut blocks {
                for (at, value) in &changes {
                    block[*at] = *value;
                }
            }
            if let Some((_, runs)) = parse_superblock(&blocks[0]) {
                prop_assert!(runs.len() <= 4);
            }
            prop_assert!(parse_tags(&blocks[1], incompat).len() <= 1024 / 8);
            parse_log_superblock(&blocks[1], 1024, Vec::new());
        }
    }
}
