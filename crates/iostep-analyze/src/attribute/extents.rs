//! Whose bytes a bio carries, from what the filesystem told while the trace ran.
//!
//! The tracefs probe cannot look into bios. It records where ext4 puts each part of a file and
//! who writes to it; a bio's blocks then belong to the file whose extent was told last before
//! the bio was queued. Blocks that move from a deleted file to a new one follow the new extent.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use iostep_model::event::{self, Content, Dirtier, Event, Queue};
use iostep_model::manifest::{LayoutRange, Manifest};
use iostep_model::table::Segment;
use iostep_model::{Class, Evidence, FileKey, Flags, SECTOR_BYTES};

use super::dirtiers::Dirtiers;
use super::ext4;
use super::names::Names;
use super::runs::{Along, Runs};

/// ext4's inode numbers below `EXT4_GOOD_OLD_FIRST_INO` (fs/ext4/ext4.h) are its own.
const ROOT_INODE: u64 = 2;
const JOURNAL_INODE: u64 = 8;
const FIRST_USER_INODE: u64 = 11;
/// `S_IFMT` and `S_IFDIR`.
const KIND_MASK: u16 = 0o170_000;
const DIRECTORY: u16 = 0o040_000;
/// More ranges than any filesystem of ours has; what comes above is not remembered.
const MAX_RUNS: usize = 8 << 20;

/// A block's place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileBlock {
    inode: u64,
    file_block: u64,
}

impl Along for FileBlock {
    fn along(self, by: u64) -> FileBlock {
        FileBlock {
            inode: self.inode,
            file_block: self.file_block.saturating_add(by),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Known {
    file: FileKey,
    mode: u16,
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    tgid: u32,
    kernel: bool,
}

/// A part of a bio with one owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Length.
    pub bytes: u32,
    /// What the bytes are; [`Class::Unknown`] if neither the layout nor an extent says so.
    pub class: Class,
    /// Which of the two said so.
    pub evidence: Evidence,
    pub file: Option<FileKey>,
    /// Where in the file they begin.
    pub file_offset_bytes: Option<u64>,
    /// Who wrote them into the file; `None` for reads.
    pub dirtier: Option<Dirtier>,
    /// Log blocks: the commit that writes them.
    pub commit: Option<u64>,
    /// Logged blocks: what they are a copy of, and its class.
    pub home: Option<(u64, Class)>,
}

/// The state of the filesystem as the events tell it, up to the last one applied.
#[derive(Clone, Debug)]
pub(crate) struct Extents {
    start_sector: u64,
    block_bytes: u64,
    layout: Vec<LayoutRange>,
    places: Runs<FileBlock>,
    dirtiers: Dirtiers,
    files: HashMap<u64, Known>,
    /// For inodes that were named after they were first used.
    first_files: HashMap<u64, Known>,
    threads: HashMap<u32, Thread>,
    /// The commit under way: jbd2 has one at a time.
    commit: Option<u64>,
    /// Inodes whose data goes through the log.
    journalled: HashSet<u64>,
    /// Blocks off the reserved places that were in the log.
    metadata: HashMap<u64, Class>,
}

impl Extents {
    /// Prepares for a trace; `None` if there is no filesystem to attribute to.
    ///
    /// `events` are only looked at for names that come late; [`Extents::apply`] them one by one.
    pub fn new(manifest: &Manifest, events: &[Event]) -> Option<Extents> {
        let filesystem = manifest.filesystem.as_ref().filter(|f| f.block_bytes > 0)?;
        let block_bytes = u64::from(filesystem.block_bytes);
        let mut extents = Extents {
            start_sector: manifest.device.start_sector,
            block_bytes,
            layout: filesystem.layout.clone(),
            places: Runs::new(),
            dirtiers: Dirtiers::new(block_bytes),
            files: HashMap::new(),
            first_files: HashMap::new(),
            threads: HashMap::new(),
            commit: None,
            journalled: HashSet::new(),
            metadata: HashMap::new(),
        };
        for event in events {
            match event {
                Event::File(file) => {
                    let known = Known {
                        file: file.file,
                        mode: file.mode,
                    };
                    extents.first_files.entry(file.file.inode).or_insert(known);
                }
                Event::Process(_) => extents.apply(event),
                _ => {}
            }
        }
        Some(extents)
    }

    /// Takes notice of an event; they come in the order of time.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Extent(extent) => {
                let end = extent.fs_block.saturating_add(extent.fs_blocks.into());
                let place = FileBlock {
                    inode: extent.inode,
                    file_block: extent.file_block,
                };
                if extent.inode == 0 {
                    self.places.remove(extent.fs_block..end);
                } else if self.places.len() < MAX_RUNS {
                    self.places.insert(extent.fs_block..end, place);
                }
            }
            Event::Dirty {
                inode,
                offset_bytes,
                bytes,
                pid,
                ..
            } => self.dirtiers.wrote(*inode, *offset_bytes, *bytes, *pid),
            Event::File(file) => {
                let known = Known {
                    file: file.file,
                    mode: file.mode,
                };
                self.files.insert(file.file.inode, known);
            }
            Event::FileDeleted { file, .. } => {
                self.files.remove(&file.inode);
                self.first_files.remove(&file.inode);
                self.dirtiers.gone(file.inode);
                self.journalled.remove(&file.inode);
            }
            Event::Process(process) => {
                let thread = Thread {
                    tgid: process.tgid,
                    kernel: process.kernel,
                };
                self.threads.insert(process.pid, thread);
            }
            Event::CommitStart { commit, .. } => self.commit = Some(*commit),
            Event::CommitEnd { .. } => self.commit = None,
            _ => {}
        }
    }

    /// The parts of a bio as pieces of the tables' files and processes.
    pub fn pieces(&mut self, queue: &Queue, names: &Names) -> Vec<Segment> {
        let parts = self.parts(queue).into_iter();
        let pieces = parts.map(|part| Segment {
            file: part.file.and_then(|file| names.file(file)),
            file_offset_bytes: part.file_offset_bytes,
            dirtier: part
                .dirtier
                .and_then(|d| names.process(d.pid, queue.mono_ns)),
            dirtier_by_inode: part.dirtier.is_some_and(|d| d.by_inode),
            commit: part.commit,
            home: part.home.map(|(home, _)| home),
            home_class: part.home.map(|(_, class)| class),
            ..Segment::of(part.bytes, part.class, part.evidence)
        });
        pieces.collect()
    }

    /// The parts of a bio, in the order of sectors; their bytes add up to the bio's.
    ///
    /// The blocks of a write count as written back from here on.
    pub fn parts(&mut self, queue: &Queue) -> Vec<Part> {
        let Some(sector) = queue.sector.checked_sub(self.start_sector) else {
            return vec![unknown(queue.bytes)];
        };
        if let Some(parts) = self.logged(queue) {
            return parts;
        }
        let mut byte = sector.saturating_mul(SECTOR_BYTES);
        let end = byte.saturating_add(queue.bytes.into());
        let mut parts: Vec<Part> = Vec::new();
        while byte < end {
            let (part, until_block) = self.part_at(byte, queue);
            let until = until_block.saturating_mul(self.block_bytes).min(end);
            let bytes = u32::try_from(until - byte).unwrap_or(u32::MAX);
            match parts.last_mut() {
                Some(last) if continues(last, &part) => last.bytes += bytes,
                _ => parts.push(Part { bytes, ..part }),
            }
            byte = until;
        }
        if queue.operation.is_write() {
            self.write_back(&parts);
        }
        parts
    }

    /// The blocks of a write to the log, if the probe could read what jbd2 says of them.
    fn logged(&mut self, queue: &Queue) -> Option<Vec<Part>> {
        let mut part = |segment: &event::Segment| match segment.content {
            Content::JournalBlock {
                head,
                home_fs_block,
                commit,
                fast,
                ..
            } => Some(Part {
                bytes: segment.bytes,
                commit,
                ..match (fast, home_fs_block) {
                    (true, _) => log_block(Class::FastCommit, Evidence::LayoutRange),
                    (false, Some(home)) => self.copy_of(home, &head, queue),
                    (false, None) => log_block(
                        ext4::log_class(&head).unwrap_or(Class::LogOther),
                        Evidence::BlockHeader,
                    ),
                }
            }),
            _ => None,
        };
        let parts: Option<Vec<Part>> = queue.segments.iter().map(&mut part).collect();
        parts.filter(|parts| !parts.is_empty())
    }

    /// A copy of a block in the log: of metadata, or of a file's data (data=journal).
    ///
    /// What is neither reserved nor a file's is metadata for sure now, also when it is written
    /// in place later.
    fn copy_of(&mut self, home: u64, head: &[u8; 16], queue: &Queue) -> Part {
        let (original, _) = self.part_at(home.saturating_mul(self.block_bytes), queue);
        let is_data = original.class == Class::FileData;
        self.journalled
            .extend(original.file.filter(|_| is_data).map(|file| file.inode));
        let home_class = match original.class {
            Class::Unknown | Class::OtherMetadata => {
                // An indirect block looks like anything, and this may be a file's after all.
                let class = ext4::header_class(head, self.block_bytes, 0);
                let class = class.unwrap_or(Class::OtherMetadata);
                if self.metadata.len() < MAX_RUNS {
                    self.metadata.insert(home, class);
                }
                class
            }
            class => class,
        };
        let class = if is_data {
            Class::LoggedData
        } else {
            Class::LoggedBlock
        };
        Part {
            home: Some((home, home_class)),
            file: original.file.filter(|_| is_data),
            file_offset_bytes: original.file_offset_bytes.filter(|_| is_data),
            dirtier: original.dirtier.filter(|_| is_data),
            ..log_block(class, Evidence::BlockHeader)
        }
    }

    fn write_back(&mut self, parts: &[Part]) {
        for part in parts {
            if let (Some(file), Some(offset)) = (part.file, part.file_offset_bytes) {
                let end = offset.saturating_add(part.bytes.into());
                let blocks = offset / self.block_bytes..end.div_ceil(self.block_bytes);
                self.dirtiers.written_back(file.inode, blocks);
            }
        }
    }

    /// The part that begins at a byte of the filesystem, and the block before which it ends.
    fn part_at(&self, byte: u64, queue: &Queue) -> (Part, u64) {
        let block = byte / self.block_bytes;
        let (reserved, layout_until) = self.reserved(block);
        let (place, until) = self.places.at(block);
        let until = until.min(layout_until);
        if reserved == Some(Class::LogOther)
            || place.is_some_and(|place| place.inode == JOURNAL_INODE)
        {
            return self.log_part(block, until, queue);
        }
        if let Some(class) = reserved {
            let evidence = Evidence::LayoutRange;
            let part = Part {
                class,
                evidence,
                ..unknown(0)
            };
            return (part, layout_until);
        }
        let Some(place) = place else {
            return self.unmapped_part(block, until);
        };
        let known = self.files.get(&place.inode);
        let known = known.or_else(|| self.first_files.get(&place.inode));
        let offset_bytes = place.file_block.saturating_mul(self.block_bytes);
        let (dirtier, same_blocks) = self.dirtier(place, queue);
        let part = Part {
            bytes: 0,
            class: class_of(place.inode, known.map_or(0, |known| known.mode)),
            evidence: Evidence::ExtentEvent,
            file: known.map(|known| known.file),
            file_offset_bytes: Some(offset_bytes.saturating_add(byte % self.block_bytes)),
            dirtier,
            commit: None,
            home: None,
        };
        (part, until.min(block.saturating_add(same_blocks)))
    }

    /// A block that belongs to no file: known if the log had it.
    fn unmapped_part(&self, block: u64, until: u64) -> (Part, u64) {
        match self.metadata.get(&block) {
            Some(class) => (log_block(*class, Evidence::LogBuffer), block + 1),
            None if self.metadata.is_empty() => (unknown(0), until),
            None => (unknown(0), until.min(block + 1)),
        }
    }

    /// A log block's kind is not seen, but jbd2 writes its commit block, and no other, with a
    /// flush before it and FUA (`journal_submit_commit_record`, fs/jbd2/commit.c). Its
    /// superblock is the first block of the log's first range.
    fn log_part(&self, block: u64, until: u64, queue: &Queue) -> (Part, u64) {
        let mut part = Part {
            class: Class::LogOther,
            evidence: Evidence::LayoutRange,
            ..unknown(0)
        };
        let mut ranges = self.layout.iter();
        let log = ranges.find(|range| range.class == Class::LogOther);
        if log.is_some_and(|log| log.first_block == block) {
            part.class = Class::LogSuperblock;
            return (part, block + 1);
        }
        if queue.flags.has(Flags::PREFLUSH.with(Flags::FUA)) {
            part.class = Class::LogCommit;
        }
        part.commit = self.commit.filter(|_| queue.operation.is_write());
        (part, until)
    }

    /// The class that the layout reserves a block for, and the first block with another answer.
    fn reserved(&self, block: u64) -> (Option<Class>, u64) {
        let after = self
            .layout
            .partition_point(|range| range.first_block <= block);
        let next = self
            .layout
            .get(after)
            .map_or(u64::MAX, |range| range.first_block);
        let here = after.checked_sub(1).map(|at| &self.layout[at]);
        match here.map(|range| (range.class, blocks_of(range).end)) {
            Some((class, end)) if block < end => (Some(class), end),
            _ => (None, next),
        }
    }

    /// Who wrote a block of a file, and for how many blocks from there that holds.
    fn dirtier(&self, place: FileBlock, queue: &Queue) -> (Option<Dirtier>, u64) {
        if !queue.operation.is_write() {
            return (None, u64::MAX);
        }
        let kernel = self
            .threads
            .get(&queue.pid)
            .is_some_and(|thread| thread.kernel);
        // Whoever needs room in the log writes journalled data in place; nobody writes it directly.
        let own = !kernel && !self.journalled.contains(&place.inode);
        let submitter = own.then_some(queue.pid);
        let (found, until) = self.dirtiers.of(place.inode, place.file_block, submitter);
        let dirtier = found.map(|found| Dirtier {
            pid: found.pid,
            tgid: match self.threads.get(&found.pid) {
                Some(thread) => thread.tgid,
                None if found.pid == queue.pid => queue.tgid,
                None => found.pid,
            },
            by_inode: found.by_inode,
        });
        (dirtier, until - place.file_block)
    }
}

fn blocks_of(range: &LayoutRange) -> Range<u64> {
    range.first_block..range.first_block.saturating_add(range.blocks)
}

fn class_of(inode: u64, mode: u16) -> Class {
    match inode {
        ROOT_INODE => Class::Directory,
        inode if inode < FIRST_USER_INODE => Class::SystemFile,
        _ if mode & KIND_MASK == DIRECTORY => Class::Directory,
        _ => Class::FileData,
    }
}

fn unknown(bytes: u32) -> Part {
    Part {
        bytes,
        class: Class::Unknown,
        evidence: Evidence::None,
        file: None,
        file_offset_bytes: None,
        dirtier: None,
        commit: None,
        home: None,
    }
}

fn log_block(class: Class, evidence: Evidence) -> Part {
    Part {
        class,
        evidence,
        ..unknown(0)
    }
}

/// True if `next` is of the same kind and file, and goes on where `last` ends.
fn continues(last: &Part, next: &Part) -> bool {
    let end = last
        .file_offset_bytes
        .map(|offset| offset.saturating_add(u64::from(last.bytes)));
    last.class == next.class
        && last.evidence == next.evidence
        && last.file == next.file
        && last.dirtier == next.dirtier
        && last.commit == next.commit
        && last.home.is_none()
        && next.home.is_none()
        && end == next.file_offset_bytes
}

#[cfg(test)]
mod tests;
