//! What a bio's bytes are: content and layout to class, file and evidence.

use iostep_model::event::{self, Content, Event, IoRef, Queue};
use iostep_model::filesystem::Kind;
use iostep_model::manifest::{Backend, Filesystem, LayoutRange, Manifest};
use iostep_model::table::Segment;
use iostep_model::{Class, Evidence, FileKey, Operation, SECTOR_BYTES};
use rustc_hash::FxHashMap;

use super::extents::Extents;
use super::homes::Homes;
use super::names::Names;
use super::volumes::{Region, Volume};
use super::{btrfs, ext4, f2fs, nilfs2, xfs};

/// btrfs keeps free space caches as files of the root tree; ext4 keeps quotas and the like in
/// inodes below the first ordinary one, but for the root directory.
const BTRFS_ROOT_TREE: u64 = 1;
/// btrfs: the inode whose pages are the blocks of all trees.
const BTRFS_BTREE_INODE: u64 = 1;
/// btrfs: the tree of the files that a balance moves data through (`BTRFS_DATA_RELOC_TREE_OBJECTID`).
/// Their inode numbers are no user's files', nor is it said whose data they hold.
const BTRFS_DATA_RELOC_TREE: u64 = (-9i64) as u64;
const EXT4_ROOT_INODE: u64 = 2;
const EXT4_FIRST_INODE: u64 = 11;

/// Classifies the bios of one filesystem.
#[derive(Debug)]
pub(crate) struct Classifier<'a> {
    names: &'a Names,
    /// Which one, in the names.
    volume: u16,
    filesystem: Option<&'a Filesystem>,
    /// Of the device of the bio that is looked at.
    layout: Layout<'a>,
    /// Metadata blocks outside the layout's ranges, by what was written to them: a block that is
    /// read has no content yet when its bio is queued.
    written: FxHashMap<u64, Class>,
    /// ext4.
    homes: Homes,
    /// f2fs.
    nodes: f2fs::Nodes,
    /// nilfs2.
    logs: nilfs2::Logs,
    /// Where the probe could not look into bios.
    extents: Option<Extents>,
}

/// The filesystem on the device, as the manifest has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout<'a> {
    kind: Option<Kind>,
    start_sector: u64,
    block_bytes: u64,
    /// Of the device that it begins on; a filesystem has no more.
    blocks: u64,
    ranges: &'a [LayoutRange],
}

impl<'a> Layout<'a> {
    fn new(volume: &Volume<'a>) -> Layout<'a> {
        let filesystem = volume.filesystem;
        let block_bytes = filesystem.map_or(4096, |f| u64::from(f.block_bytes.max(512)));
        let first = volume.first();
        Layout {
            kind: volume.kind(),
            start_sector: first.map_or(0, |region| region.start_sector),
            block_bytes,
            blocks: volume.device_bytes / block_bytes,
            ranges: first.map_or(&[], |region| region.ranges),
        }
    }

    /// The filesystem block that holds a sector.
    pub(crate) fn block_of(&self, sector: u64) -> u64 {
        let sectors = sector.saturating_sub(self.start_sector);
        sectors.saturating_mul(SECTOR_BYTES) / self.block_bytes
    }

    /// What the layout reserves a block for.
    pub(crate) fn class_of(&self, fs_block: u64) -> Option<Class> {
        self.run_at(fs_block).0
    }

    /// What the layout reserves a block for, and the first block after it of which that may not be
    /// true any more.
    fn run_at(&self, fs_block: u64) -> (Option<Class>, u64) {
        let after = self
            .ranges
            .partition_point(|range| range.first_block <= fs_block);
        let next = self.ranges.get(after).map_or(u64::MAX, |r| r.first_block);
        let range = after.checked_sub(1).map(|at| &self.ranges[at]);
        let end = range.map_or(0, |r| r.first_block.saturating_add(r.blocks));
        match range {
            Some(range) if fs_block < end => (Some(range.class), end),
            _ => (None, next),
        }
    }

    /// The kind of a block of ext2 to ext4 outside the layout's ranges, by its first bytes.
    fn header_class(&self, head: &[u8; 16]) -> Option<Class> {
        ext4::header_class(head, self.block_bytes, self.blocks)
    }

    fn is_nilfs2(&self) -> bool {
        self.kind == Some(Kind::Nilfs2)
    }

    fn is_fat(&self) -> bool {
        self.kind == Some(Kind::Fat)
    }

    fn is_ext(&self) -> bool {
        matches!(self.kind, Some(Kind::Ext2 | Kind::Ext3 | Kind::Ext4))
    }
}

impl<'a> Classifier<'a> {
    /// A classifier for what is on a volume.
    pub(super) fn new(
        manifest: &Manifest,
        (number, volume): (u16, Volume<'a>),
        names: &'a Names,
        events: &[Event],
    ) -> Classifier<'a> {
        let layout = Layout::new(&volume);
        let blind = manifest.backend == Backend::Tracefs && volume.filesystem.is_some();
        Classifier {
            names,
            volume: number,
            filesystem: volume.filesystem,
            layout,
            written: written_metadata(&volume, &layout, events),
            homes: Homes::default(),
            nodes: f2fs::Nodes::learn(&volume, events),
            logs: nilfs2::Logs::default(),
            extents: blind.then(|| Extents::new(manifest, events)).flatten(),
        }
    }

    /// Learns from an event that is no I/O.
    pub(super) fn observe(&mut self, event: &Event) {
        if let Some(extents) = &mut self.extents {
            extents.apply(event);
        }
    }

    /// The parts of a bio that lies in a region of the volume, in the order of sectors. Their bytes
    /// add up to the bio's. Their requests, sectors and causes are not known yet.
    pub(super) fn segments(&mut self, region: &Region<'a>, queue: &Queue) -> Vec<Segment> {
        self.layout.ranges = region.ranges;
        let transfers = queue.operation.is_write() || queue.operation == Operation::Read;
        if let Some(extents) = self.extents.as_mut().filter(|_| transfers) {
            return extents.pieces(queue, self.names);
        }
        let mut sector = queue.sector;
        let mut pieces = Vec::with_capacity(queue.segments.len().max(1));
        for segment in &queue.segments {
            if segment.content == Content::Unknown {
                pieces.extend(self.unseen(queue, segment, sector));
                sector += u64::from(segment.bytes) / SECTOR_BYTES;
                continue;
            }
            let mut piece = self.piece(queue, segment, sector);
            if self.layout.is_nilfs2() && queue.operation.is_write() {
                self.logs.refine(&mut piece, segment, sector);
            }
            if self.layout.is_ext() && queue.operation.is_write() {
                let fs_block = self.layout.block_of(sector);
                self.homes.refine(&mut piece, segment, fs_block);
            }
            pieces.push(piece);
            sector += u64::from(segment.bytes) / SECTOR_BYTES;
        }
        if pieces.is_empty() && queue.bytes > 0 {
            let first = self.layout.block_of(queue.sector);
            let sectors = u64::from(queue.bytes) / SECTOR_BYTES;
            self.homes
                .forget(first..self.layout.block_of(queue.sector + sectors));
            pieces = self.without_pages(queue);
        }
        pieces
    }

    /// Discards and the like name a range, not pages.
    fn without_pages(&self, queue: &Queue) -> Vec<Segment> {
        let class = match queue.operation {
            Operation::WriteZeroes => return self.zeroed(queue),
            Operation::Read | Operation::Write => Class::Unknown,
            _ => Class::Free,
        };
        vec![Segment::of(queue.bytes, class, Evidence::None)]
    }

    /// A range that is to be read as zeros: of the filesystem's own structures (inode tables), or
    /// of a file, which nobody names.
    fn zeroed(&self, queue: &Queue) -> Vec<Segment> {
        let parts = self.reserved_parts(queue.sector, queue.bytes).into_iter();
        let pieces = parts.map(|(class, bytes)| match class {
            Some(class) => Segment::of(bytes, class, Evidence::LayoutRange),
            None => Segment::of(bytes, Class::Zeroes, Evidence::None),
        });
        pieces.collect()
    }

    /// Nothing was seen behind the pages: the layout is all there is.
    fn unseen(&self, queue: &Queue, segment: &event::Segment, sector: u64) -> Vec<Segment> {
        let parts = self.reserved_parts(sector, segment.bytes).into_iter();
        let pieces = parts.map(|(class, bytes)| match class {
            Some(class) => Segment::of(bytes, class, Evidence::LayoutRange),
            None => Segment::of(bytes, Class::Unknown, Evidence::None),
        });
        pieces
            .map(|piece| self.with_dirtier(queue, segment, piece))
            .collect()
    }

    /// What the layout reserves the parts of a range for, and the bytes of each.
    fn reserved_parts(&self, sector: u64, bytes: u32) -> Vec<(Option<Class>, u32)> {
        let block_sectors = (self.layout.block_bytes / SECTOR_BYTES).max(1);
        let mut parts = Vec::new();
        let (mut sector, mut left) = (sector, bytes);
        while left > 0 {
            let (class, until) = self.layout.run_at(self.layout.block_of(sector));
            let end = until.saturating_mul(block_sectors);
            let sectors = end.saturating_sub(sector.saturating_sub(self.layout.start_sector));
            let room = sectors.saturating_mul(SECTOR_BYTES);
            let bytes = u32::try_from(room).map_or(left, |room| room.min(left));
            let bytes = bytes.max(1).min(left);
            parts.push((class, bytes));
            sector = sector.saturating_add(u64::from(bytes) / SECTOR_BYTES);
            left -= bytes;
        }
        parts
    }

    fn piece(&self, queue: &Queue, segment: &event::Segment, sector: u64) -> Segment {
        let piece = self.content(queue, segment, sector);
        self.with_dirtier(queue, segment, piece)
    }

    fn with_dirtier(&self, queue: &Queue, segment: &event::Segment, mut piece: Segment) -> Segment {
        let Some(dirtier) = segment.dirtier else {
            return piece;
        };
        let Some(row) = self.names.process(dirtier.pid, queue.mono_ns) else {
            return piece;
        };
        // jbd2 marks a metadata buffer dirty long after the process changed it.
        let is_data = matches!(
            piece.class,
            Class::FileData | Class::DeviceData | Class::LoggedData
        );
        // Of a mounted filesystem's, only FAT says which process changed a buffer.
        let is_shared =
            matches!(segment.content, Content::Buffer { .. }) && self.shares_its_buffers();
        if is_data || !is_shared && !self.names.process_at(row).kernel {
            piece.dirtier = Some(row);
            piece.dirtier_by_inode = dirtier.by_inode;
        }
        piece
    }

    /// True for a filesystem that nothing is known of but its files.
    fn has_no_rules(&self) -> bool {
        self.filesystem.is_some() && self.layout.kind.is_none()
    }

    /// True for a mounted filesystem whose metadata many calls change in one buffer.
    fn shares_its_buffers(&self) -> bool {
        let is_mounted = self.filesystem.is_some_and(|it| !it.mount_point.is_empty());
        is_mounted && !self.layout.is_fat()
    }

    fn content(&self, queue: &Queue, segment: &event::Segment, sector: u64) -> Segment {
        let bytes = segment.bytes;
        match &segment.content {
            Content::File {
                file,
                offset_bytes,
                direct,
            } => self.file_page(bytes, *file, *offset_bytes, *direct),
            Content::Buffer { head } => self.buffer(queue, bytes, sector, head),
            Content::JournalBlock {
                head,
                home_fs_block,
                home_file,
                commit,
                fast,
            } => Segment {
                commit: *commit,
                ..self.journal_block(bytes, head, *home_fs_block, *home_file, *fast)
            },
            Content::XfsBuffer { structure } => {
                Segment::of(bytes, xfs::class_of(structure), Evidence::StructureName)
            }
            Content::XfsLog { sequence } => Segment {
                commit: *sequence,
                ..Segment::of(bytes, Class::LogRecord, Evidence::LogBuffer)
            },
            Content::BtrfsNode { bytenr, owner, .. } => Segment {
                home: Some(*bytenr),
                ..Segment::of(bytes, btrfs::class_of(*owner), Evidence::BlockHeader)
            },
            Content::BtrfsSuperblock => {
                Segment::of(bytes, Class::Superblock, Evidence::StructureName)
            }
            Content::DeviceDirect => Segment::of(bytes, Class::DeviceData, Evidence::DirectIo),
            Content::F2fsNode {
                node,
                inode,
                generation,
            } => {
                let id = (*node, *inode, *generation);
                self.nodes
                    .piece((self.names, self.volume), bytes, queue.mono_ns, id)
            }
            Content::F2fsMeta => {
                let reserved = self.layout.class_of(self.layout.block_of(sector));
                let has_layout = self.filesystem.is_some_and(|it| !it.layout.is_empty());
                f2fs::metadata(bytes, has_layout, reserved, queue.operation)
            }
            Content::BlockMap { file } => Segment {
                file: match self.own_file(*file) {
                    None => self.names.file_of(self.volume, *file),
                    Some(_) => None,
                },
                ..Segment::of(bytes, Class::IndirectBlock, Evidence::PageCache)
            },
            Content::Unknown => Segment::of(bytes, Class::Unknown, Evidence::None),
        }
    }

    /// A file's page, or its bytes on their way past the cache.
    fn file_page(&self, bytes: u32, file: FileKey, offset_bytes: u64, direct: bool) -> Segment {
        let evidence = match direct {
            true => Evidence::DirectIo,
            false => Evidence::PageCache,
        };
        if let Some(class) = self.own_file(file) {
            return Segment::of(bytes, class, evidence);
        }
        // A scrub reads whatever is there in its name; its own pages are tree blocks.
        if (file.subvolume, file.inode) == (BTRFS_ROOT_TREE, BTRFS_BTREE_INODE) {
            return Segment::of(bytes, Class::Unknown, Evidence::None);
        }
        if file.subvolume == BTRFS_DATA_RELOC_TREE {
            return Segment::of(bytes, Class::FileData, evidence);
        }
        let is_system = file.subvolume == BTRFS_ROOT_TREE
            || self.layout.is_ext()
                && file.inode < EXT4_FIRST_INODE
                && file.inode != EXT4_ROOT_INODE;
        let file = self.names.file_of(self.volume, file);
        let class = match file {
            _ if is_system => Class::SystemFile,
            Some(row) if self.names.is_directory(row) => Class::Directory,
            _ => Class::FileData,
        };
        Segment {
            file,
            file_offset_bytes: Some(offset_bytes),
            ..Segment::of(bytes, class, evidence)
        }
    }

    /// The class of nilfs2's own files.
    fn own_file(&self, file: FileKey) -> Option<Class> {
        match self.layout.is_nilfs2() {
            true => nilfs2::class_of_file(file.inode),
            false => None,
        }
    }

    /// A buffer of the block device: metadata of ext4, or what a user wrote past it.
    fn buffer(&self, queue: &Queue, bytes: u32, sector: u64, head: &[u8; 16]) -> Segment {
        if self.filesystem.is_none() {
            return Segment::of(bytes, Class::DeviceData, Evidence::PageCache);
        }
        let fs_block = self.layout.block_of(sector);
        let is_read = queue.operation == Operation::Read;
        match self.layout.class_of(fs_block) {
            Some(Class::LogOther) if is_read => {
                Segment::of(bytes, Class::LogOther, Evidence::LayoutRange)
            }
            Some(Class::LogOther) => Segment {
                commit: ext4::log_commit(head),
                ..Segment::of(
                    bytes,
                    ext4::log_class(head).unwrap_or(Class::LogOther),
                    Evidence::LayoutRange,
                )
            },
            Some(class) => Segment::of(bytes, class, Evidence::LayoutRange),
            None if self.layout.is_ext() => {
                let class = if is_read {
                    self.written.get(&fs_block).copied()
                } else {
                    self.layout.header_class(head)
                };
                match class {
                    Some(class) => Segment::of(bytes, class, Evidence::BlockHeader),
                    None => Segment::of(bytes, Class::OtherMetadata, Evidence::PageCache),
                }
            }
            // FAT has no buffers for anything else there.
            None if self.layout.is_fat() => {
                Segment::of(bytes, Class::Directory, Evidence::PageCache)
            }
            // Of a filesystem without rules it may be anything: its metadata, or what a program wrote.
            None if self.has_no_rules() => Segment::of(bytes, Class::Unknown, Evidence::None),
            None => Segment::of(bytes, Class::DeviceData, Evidence::PageCache),
        }
    }

    fn journal_block(
        &self,
        bytes: u32,
        head: &[u8; 16],
        home: Option<u64>,
        home_file: Option<(FileKey, u64)>,
        fast: bool,
    ) -> Segment {
        if fast {
            return Segment::of(bytes, Class::FastCommit, Evidence::LogBuffer);
        }
        if let Some((file, offset_bytes)) = home_file {
            let is_cut_off = file.inode == 0;
            return Segment {
                file: self.names.file_of(self.volume, file),
                file_offset_bytes: (!is_cut_off).then_some(offset_bytes),
                home,
                home_class: Some(Class::FileData),
                ..Segment::of(bytes, Class::LoggedData, Evidence::LogBuffer)
            };
        }
        let Some(home) = home else {
            let class = ext4::log_class(head).unwrap_or(Class::LogOther);
            return Segment::of(bytes, class, Evidence::BlockHeader);
        };
        let home_class = self
            .layout
            .class_of(home)
            .or_else(|| self.layout.header_class(head))
            .unwrap_or(Class::OtherMetadata);
        Segment {
            home: Some(home),
            home_class: Some(home_class),
            ..Segment::of(bytes, Class::LoggedBlock, Evidence::LogBuffer)
        }
    }
}

/// The classes of metadata blocks outside the layout's ranges, as the log and the blocks
/// themselves tell when they are written.
fn written_metadata(
    volume: &Volume<'_>,
    layout: &Layout<'_>,
    events: &[Event],
) -> FxHashMap<u64, Class> {
    let mut classes = FxHashMap::default();
    if !layout.is_ext() {
        return classes;
    }
    let writes = events.iter().filter_map(|event| match event.io()? {
        (_, IoRef::Queue(queue)) if queue.operation != Operation::Write => None,
        (device, IoRef::Queue(queue)) => Some((device, queue)),
        _ => None,
    });
    for (device, queue) in writes {
        let mut next_sector = queue.sector;
        for segment in &queue.segments {
            let sector = next_sector;
            next_sector += u64::from(segment.bytes) / SECTOR_BYTES;
            let (fs_block, head) = match &segment.content {
                Content::Buffer { head }
                    if volume.first().is_some_and(|it| it.holds(device, sector)) =>
                {
                    (layout.block_of(sector), head)
                }
                Content::JournalBlock {
                    head,
                    home_fs_block: Some(home),
                    home_file: None,
                    ..
                } if volume.holds(device, sector) => (*home, head),
                _ => continue,
            };
            if layout.class_of(fs_block).is_none()
                && let Some(class) = layout.header_class(head)
            {
                classes.insert(fs_block, class);
            }
        }
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::super::classifiers::Classifiers;
    use super::super::volumes;
    use super::*;
    use iostep_model::Flags;
    use iostep_model::fixture;

    const BLOCK_SECTORS: u64 = 8;

    /// An ext4 that reserves blocks 100 to 109 for inodes.
    fn manifest() -> Manifest {
        let mut manifest = fixture::sqlite_on_ext4(1).manifest;
        manifest.device.start_sector = 0;
        manifest.device.sectors = 1 << 20;
        let filesystem = manifest.filesystem.as_mut().expect("ext4");
        filesystem.block_bytes = 4096;
        filesystem.layout = vec![LayoutRange {
            first_block: 100,
            blocks: 10,
            class: Class::InodeTable,
        }];
        manifest
    }

    fn queue(
        operation: Operation,
        block: u64,
        blocks: u32,
        segments: Vec<event::Segment>,
    ) -> Queue {
        Queue {
            mono_ns: 1,
            sector: block * BLOCK_SECTORS,
            bytes: blocks * 4096,
            operation,
            flags: Flags::default(),
            pid: 1,
            tgid: 1,
            sync: None,
            segments,
        }
    }

    #[test]
    fn each_block_of_a_bio_is_remembered_at_its_own_place() {
        let buffer = |head: [u8; 16]| event::Segment {
            bytes: 4096,
            content: Content::Buffer { head },
            dirtier: None,
        };
        let extents = [0x0a, 0xf3, 3, 0, 84, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let dot = [2, 0, 0, 0, 12, 0, 1, 2, b'.', 0, 0, 0, 2, 0, 0, 0];
        let segments = vec![buffer(extents), buffer(dot)];
        let events = [Event::Queue(queue(Operation::Write, 700, 2, segments))];
        let manifest = manifest();
        let volume = volumes::of(&manifest).remove(0);
        let classes = written_metadata(&volume, &Layout::new(&volume), &events);
        assert_eq!(classes.get(&700), Some(&Class::ExtentBlock));
        assert_eq!(classes.get(&701), Some(&Class::Directory));
    }

    #[test]
    fn a_range_of_zeros_is_what_the_layout_reserves_it_for_or_zeroes() {
        let manifest = manifest();
        let names = Names::learn(&[]);
        let mut classifier = Classifiers::new(&manifest, &names, &[]);
        let zeroes = queue(Operation::WriteZeroes, 95, 20, Vec::new());
        let pieces = classifier.segments(0, &zeroes);
        let classes: Vec<_> = pieces.iter().map(|p| (p.class, p.bytes / 4096)).collect();
        let expected = [
            (Class::Zeroes, 5),
            (Class::InodeTable, 10),
            (Class::Zeroes, 5),
        ];
        assert_eq!(classes, expected);
        let discard = queue(Operation::Discard, 95, 20, Vec::new());
        assert_eq!(classifier.segments(0, &discard)[0].class, Class::Free);
    }
}
