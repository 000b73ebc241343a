//! What a probe saw, whichever probe it was.
//!
//! Events are facts, not conclusions: which sync call caused a commit, or which request a bio
//! became, is for `iostep-analyze` to find out. Times are `CLOCK_MONOTONIC` nanoseconds.

use serde::{Deserialize, Serialize};

use crate::identity::{FileKey, SyncKey};
use crate::operation::{Flags, Operation};
use crate::sync::SyncKind;

/// One observation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// A bio entered the block layer.
    Queue(Queue),
    /// A request went to the driver.
    Issue(Transfer),
    /// A request, or a part of it, came back.
    Complete(Completion),
    /// The driver gave a request back unfinished; it will be issued again.
    Requeue(Transfer),
    /// A bio was cut in two; `sector` is where the second part starts.
    Split {
        mono_ns: u64,
        /// First sector of the second part.
        sector: u64,
    },
    /// A sync call entered.
    SyncEnter(SyncEnter),
    /// A sync call left.
    SyncExit {
        mono_ns: u64,
        sync: SyncKey,
        /// What it returned, a negative errno for failure; `None` where that was not seen.
        result: Option<i64>,
    },
    /// A sync call needs this commit of the filesystem's log: a jbd2 transaction id, or an xfs
    /// CIL sequence.
    SyncNeeds {
        mono_ns: u64,
        /// Which sync call.
        sync: SyncKey,
        commit: u64,
    },
    /// The filesystem's log began to commit.
    CommitStart {
        mono_ns: u64,
        /// jbd2 transaction id.
        commit: u64,
    },
    /// The filesystem's log finished a commit.
    CommitEnd {
        mono_ns: u64,
        /// jbd2 transaction id.
        commit: u64,
    },
    /// A thread was seen for the first time, or under a new name; the first thread of its process
    /// is told of as well.
    Process(Process),
    /// A file was seen for the first time, or under a new name.
    File(File),
    /// A file's inode went away because nothing names it any more.
    FileDeleted { mono_ns: u64, file: FileKey },
    /// The filesystem told where a part of a file lies (tracefs probe).
    Extent(Extent),
    /// A part of a file was written in the page cache (tracefs probe, which cannot look into
    /// bios).
    Dirty {
        mono_ns: u64,
        /// Inode number.
        inode: u64,
        /// Offset in the file.
        offset_bytes: u64,
        /// Length; 0 for a folio of unknown size that begins at `offset_bytes`.
        bytes: u32,
        /// The thread.
        pid: u32,
    },
    /// The tool's own milestones.
    Marker { mono_ns: u64, marker: Marker },
    /// I/O on another device than the first of the manifest's `devices`, where there are several.
    On {
        /// Index into the manifest's `devices`.
        device: u8,
        /// What happened there.
        io: Io,
    },
    /// A bio went on to a device below.
    Remap(Remap),
    /// A thread, told of before, is in this control group: when it is first seen under a name, and
    /// after it moved.
    Cgroup(Cgroup),
    /// Something about another filesystem than that of the first of the manifest's `volumes`, where
    /// there are several.
    Of {
        /// Index into the manifest's `volumes`; [`NO_VOLUME`] for one that is none of them.
        volume: u16,
        /// What happened there.
        fact: Fact,
    },
}

/// Of a filesystem that came while the trace ran.
pub const NO_VOLUME: u16 = u16::MAX;

/// Something about a filesystem: what the events of the same names say of the first one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Fact {
    /// As [`Event::SyncEnter`].
    SyncEnter(SyncEnter),
    /// As [`Event::SyncNeeds`].
    SyncNeeds {
        mono_ns: u64,
        sync: SyncKey,
        commit: u64,
    },
    /// As [`Event::CommitStart`].
    CommitStart { mono_ns: u64, commit: u64 },
    /// As [`Event::CommitEnd`].
    CommitEnd { mono_ns: u64, commit: u64 },
    /// As [`Event::File`].
    File(File),
    /// As [`Event::FileDeleted`].
    FileDeleted { mono_ns: u64, file: FileKey },
}

/// Something about whichever filesystem, borrowed from its event.
#[derive(Clone, Copy, Debug)]
pub enum FactRef<'a> {
    /// A sync call entered.
    SyncEnter(&'a SyncEnter),
    /// A sync call needs a commit.
    SyncNeeds {
        mono_ns: u64,
        sync: SyncKey,
        commit: u64,
    },
    /// A commit began.
    CommitStart { mono_ns: u64, commit: u64 },
    /// A commit ended.
    CommitEnd { mono_ns: u64, commit: u64 },
    /// A file was seen.
    File(&'a File),
    /// A file went away.
    FileDeleted { mono_ns: u64, file: FileKey },
}

/// I/O on a device: what the events of the same names say of the first one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Io {
    /// As [`Event::Queue`].
    Queue(Queue),
    /// As [`Event::Issue`].
    Issue(Transfer),
    /// As [`Event::Complete`].
    Complete(Completion),
    /// As [`Event::Requeue`].
    Requeue(Transfer),
}

/// A bio, or a part of it, on its way from one device to the one below: device mapper and md
/// queue their own bios there, whose pages need not be those of the bio above.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remap {
    pub mono_ns: u64,
    /// The device above: index into the manifest's `devices`; `None` for one that is not traced
    /// and lies on the same disk.
    pub from: Option<u8>,
    /// First sector there.
    pub from_sector: u64,
    /// The device below: index into the manifest's `devices`.
    pub to: u8,
    /// First sector there, on the whole disk.
    pub to_sector: u64,
    /// Length; 0 for an empty flush.
    pub bytes: u32,
    pub operation: Operation,
    pub flags: Flags,
}

/// I/O on whichever device, borrowed from its event.
#[derive(Clone, Copy, Debug)]
pub enum IoRef<'a> {
    /// A bio entered the block layer.
    Queue(&'a Queue),
    /// A request went to the driver.
    Issue(&'a Transfer),
    /// A request, or a part of it, came back.
    Complete(&'a Completion),
    /// The driver gave a request back.
    Requeue(&'a Transfer),
}

/// A milestone of the recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Marker {
    /// The command is about to run.
    CommandStart,
    /// The command ended.
    CommandEnd,
    /// `--settle` begins to sync the filesystem.
    SettleStart,
    /// `--settle` is done.
    SettleEnd,
    /// A step named by whoever drives the trace (`iostep explain`: a transaction's boundaries).
    Step(String),
}

/// A bio, with what its pages were.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    pub mono_ns: u64,
    /// First sector, on the whole disk.
    pub sector: u64,
    /// Length; 0 for an empty flush.
    pub bytes: u32,
    pub operation: Operation,
    pub flags: Flags,
    /// Thread that submitted it.
    pub pid: u32,
    pub tgid: u32,
    /// The sync call that the thread was in.
    pub sync: Option<SyncKey>,
    /// The parts, in the order of sectors; their bytes add up to `bytes`, or there are none.
    pub segments: Vec<Segment>,
}

/// A part of a bio whose bytes have one owner and one origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Length.
    pub bytes: u32,
    /// What the bytes are.
    pub content: Content,
    /// Thread and process that made them dirty.
    pub dirtier: Option<Dirtier>,
}

/// Who made a page dirty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dirtier {
    /// Thread.
    pub pid: u32,
    pub tgid: u32,
    /// True if only the inode's last dirtier is known, not this page's.
    pub by_inode: bool,
}

/// What a probe found behind the pages of a bio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Content {
    /// Pages of a file, from the page cache or from direct I/O.
    File {
        file: FileKey,
        offset_bytes: u64,
        /// True for direct I/O.
        direct: bool,
    },
    /// A buffer of the block device (ext4 metadata in place), or a page that a user wrote to it.
    Buffer {
        /// The first bytes of the block.
        head: [u8; 16],
    },
    /// A block on its way into a jbd2 log.
    JournalBlock {
        /// The first bytes of the block.
        head: [u8; 16],
        /// The filesystem block that this is a copy of.
        home_fs_block: Option<u64>,
        /// data=journal: the file that the home block belongs to, and the offset in it. Inode 0:
        /// the block is a file's, but was cut off it before.
        home_file: Option<(FileKey, u64)>,
        /// The transaction being committed.
        commit: Option<u64>,
        /// Written by ext4's fast commit.
        fast: bool,
    },
    /// An xfs metadata buffer; `b_ops->name`.
    XfsBuffer {
        /// `xfs_agf`, `xfs_inode`, ...
        structure: String,
    },
    /// An xfs log record.
    XfsLog {
        /// The highest CIL sequence whose commit record lies in it.
        sequence: Option<u64>,
    },
    /// A btrfs tree block, by its header.
    BtrfsNode {
        /// Logical address.
        bytenr: u64,
        /// Tree id (`btrfs_header.owner`).
        owner: u64,
        /// A byte that recordings have here and nobody reads.
        unused: u8,
    },
    BtrfsSuperblock,
    /// Direct I/O on the block device itself, past any filesystem.
    DeviceDirect,
    /// Nothing is known about it.
    Unknown,
    /// A page of f2fs's node mapping: an inode, or a block of a file's index.
    F2fsNode {
        /// Its node id; an inode's is the inode number.
        node: u32,
        /// The inode that it belongs to, by its footer; not known when it is read, since the bio
        /// is seen before its content.
        inode: Option<u64>,
        /// That inode's generation, where the block is the inode itself.
        generation: Option<u32>,
    },
    /// A page of f2fs's own metadata: its place says which.
    F2fsMeta,
    /// A page of the tree that says where a file's blocks are (nilfs2's B-tree).
    BlockMap {
        /// Whose tree.
        file: FileKey,
    },
}

/// A request at the driver's door.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    pub mono_ns: u64,
    /// First sector, on the whole disk.
    pub sector: u64,
    /// Length.
    pub bytes: u32,
    pub operation: Operation,
    pub flags: Flags,
}

/// A request that came back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// The part that is done.
    pub transfer: Transfer,
    /// `blk_status_t`, 0 for success.
    pub status: u8,
    /// True for the completion of a request that the flush machinery still holds
    /// (`RQF_FLUSH_SEQ`): the kernel's I/O counters ignore it.
    pub in_flush_sequence: bool,
}

/// A sync call's start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SyncEnter {
    /// Which, and when.
    pub sync: SyncKey,
    pub tgid: u32,
    /// What was called.
    pub kind: SyncKind,
    /// On which file; `None` for `sync` and `syncfs`.
    pub file: Option<FileKey>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// When it was seen under this name.
    pub mono_ns: u64,
    /// Thread id.
    pub pid: u32,
    /// Process id.
    pub tgid: u32,
    /// Parent's process id.
    pub parent_tgid: u32,
    /// The thread's `comm`, at most 15 bytes. Where `pid` is `tgid`, the program's name.
    pub comm: String,
    /// True for a kernel thread.
    pub kernel: bool,
    /// The process's command line, where it could be read in time.
    pub command_line: Option<String>,
}

/// The control group that a thread is in, of version 2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cgroup {
    /// When it was seen there.
    pub mono_ns: u64,
    /// Thread id.
    pub pid: u32,
    /// Number of the group, which is the inode number of its directory.
    pub id: Option<u64>,
    /// Path below the root of the hierarchy, beginning with `/`.
    pub path: Option<String>,
}

/// A file's name at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct File {
    /// When it was seen under this name.
    pub mono_ns: u64,
    pub file: FileKey,
    /// `i_mode`.
    pub mode: u16,
    /// Path below the filesystem's root, beginning with `/`; `None` if no name was known. Bytes
    /// that are not UTF-8 are escaped ([`crate::printable::name_text`]).
    pub path: Option<String>,
    /// True if the name was already removed (the file was unlinked while open).
    pub unlinked: bool,
    /// When the inode was made (wall clock), where the filesystem says so.
    pub birth_wall_ns: Option<i64>,
}

/// A piece of a file on the device. Inode 0: the blocks belong to no file any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Extent {
    /// When the filesystem said so.
    pub mono_ns: u64,
    /// Inode number.
    pub inode: u64,
    /// First block in the file, in filesystem blocks.
    pub file_block: u64,
    /// First block on the device, in filesystem blocks from the filesystem's start.
    pub fs_block: u64,
    /// Length in filesystem blocks.
    pub fs_blocks: u32,
}

impl Io {
    fn as_ref(&self) -> IoRef<'_> {
        match self {
            Io::Queue(queue) => IoRef::Queue(queue),
            Io::Issue(transfer) => IoRef::Issue(transfer),
            Io::Complete(completion) => IoRef::Complete(completion),
            Io::Requeue(transfer) => IoRef::Requeue(transfer),
        }
    }

    fn mono_ns(&self) -> u64 {
        match self {
            Io::Queue(queue) => queue.mono_ns,
            Io::Issue(transfer) | Io::Requeue(transfer) => transfer.mono_ns,
            Io::Complete(completion) => completion.transfer.mono_ns,
        }
    }
}

impl Fact {
    fn as_ref(&self) -> FactRef<'_> {
        match self {
            Fact::SyncEnter(enter) => FactRef::SyncEnter(enter),
            Fact::SyncNeeds {
                mono_ns,
                sync,
                commit,
            } => FactRef::SyncNeeds {
                mono_ns: *mono_ns,
                sync: *sync,
                commit: *commit,
            },
            Fact::CommitStart { mono_ns, commit } => FactRef::CommitStart {
                mono_ns: *mono_ns,
                commit: *commit,
            },
            Fact::CommitEnd { mono_ns, commit } => FactRef::CommitEnd {
                mono_ns: *mono_ns,
                commit: *commit,
            },
            Fact::File(file) => FactRef::File(file),
            Fact::FileDeleted { mono_ns, file } => FactRef::FileDeleted {
                mono_ns: *mono_ns,
                file: *file,
            },
        }
    }

    fn mono_ns(&self) -> u64 {
        match self {
            Fact::SyncEnter(enter) => enter.sync.enter_ns,
            Fact::File(file) => file.mono_ns,
            Fact::SyncNeeds { mono_ns, .. }
            | Fact::CommitStart { mono_ns, .. }
            | Fact::CommitEnd { mono_ns, .. }
            | Fact::FileDeleted { mono_ns, .. } => *mono_ns,
        }
    }
}

impl Event {
    /// Something about the filesystem of a volume.
    pub fn of(volume: u16, fact: Fact) -> Event {
        match (volume, fact) {
            (0, Fact::SyncEnter(enter)) => Event::SyncEnter(enter),
            (
                0,
                Fact::SyncNeeds {
                    mono_ns,
                    sync,
                    commit,
                },
            ) => Event::SyncNeeds {
                mono_ns,
                sync,
                commit,
            },
            (0, Fact::CommitStart { mono_ns, commit }) => Event::CommitStart { mono_ns, commit },
            (0, Fact::CommitEnd { mono_ns, commit }) => Event::CommitEnd { mono_ns, commit },
            (0, Fact::File(file)) => Event::File(file),
            (0, Fact::FileDeleted { mono_ns, file }) => Event::FileDeleted { mono_ns, file },
            (volume, fact) => Event::Of { volume, fact },
        }
    }

    /// What it tells of a filesystem, and which volume that is on; `None` for other events.
    pub fn fact(&self) -> Option<(u16, FactRef<'_>)> {
        let of_first = match self {
            Event::Of { volume, fact } => return Some((*volume, fact.as_ref())),
            Event::SyncEnter(enter) => FactRef::SyncEnter(enter),
            Event::SyncNeeds {
                mono_ns,
                sync,
                commit,
            } => FactRef::SyncNeeds {
                mono_ns: *mono_ns,
                sync: *sync,
                commit: *commit,
            },
            Event::CommitStart { mono_ns, commit } => FactRef::CommitStart {
                mono_ns: *mono_ns,
                commit: *commit,
            },
            Event::CommitEnd { mono_ns, commit } => FactRef::CommitEnd {
                mono_ns: *mono_ns,
                commit: *commit,
            },
            Event::File(file) => FactRef::File(file),
            Event::FileDeleted { mono_ns, file } => FactRef::FileDeleted {
                mono_ns: *mono_ns,
                file: *file,
            },
            _ => return None,
        };
        Some((0, of_first))
    }

    /// I/O on the device with an index into the manifest's `devices`.
    pub fn on(device: u8, io: Io) -> Event {
        match (device, io) {
            (0, Io::Queue(queue)) => Event::Queue(queue),
            (0, Io::Issue(transfer)) => Event::Issue(transfer),
            (0, Io::Complete(completion)) => Event::Complete(completion),
            (0, Io::Requeue(transfer)) => Event::Requeue(transfer),
            (device, io) => Event::On { device, io },
        }
    }

    /// The I/O that it tells of, and the device's index into the manifest's `devices`; `None` for
    /// other events.
    pub fn io(&self) -> Option<(u8, IoRef<'_>)> {
        Some(match self {
            Event::Queue(queue) => (0, IoRef::Queue(queue)),
            Event::Issue(transfer) => (0, IoRef::Issue(transfer)),
            Event::Complete(completion) => (0, IoRef::Complete(completion)),
            Event::Requeue(transfer) => (0, IoRef::Requeue(transfer)),
            Event::On { device, io } => (*device, io.as_ref()),
            _ => return None,
        })
    }

    /// The bio that it tells of, on whichever device.
    pub fn queue(&self) -> Option<&Queue> {
        match self.io() {
            Some((_, IoRef::Queue(queue))) => Some(queue),
            _ => None,
        }
    }

    /// When it happened.
    pub fn mono_ns(&self) -> u64 {
        match self {
            Event::Queue(queue) => queue.mono_ns,
            Event::Issue(transfer) | Event::Requeue(transfer) => transfer.mono_ns,
            Event::Complete(completion) => completion.transfer.mono_ns,
            Event::SyncEnter(enter) => enter.sync.enter_ns,
            Event::Process(process) => process.mono_ns,
            Event::File(file) => file.mono_ns,
            Event::Extent(extent) => extent.mono_ns,
            Event::On { io, .. } => io.mono_ns(),
            Event::Of { fact, .. } => fact.mono_ns(),
            Event::Remap(remap) => remap.mono_ns,
            Event::Cgroup(cgroup) => cgroup.mono_ns,
            Event::Split { mono_ns, .. }
            | Event::SyncExit { mono_ns, .. }
            | Event::SyncNeeds { mono_ns, .. }
            | Event::CommitStart { mono_ns, .. }
            | Event::CommitEnd { mono_ns, .. }
            | Event::FileDeleted { mono_ns, .. }
            | Event::Dirty { mono_ns, .. }
            | Event::Marker { mono_ns, .. } => *mono_ns,
        }
    }
}
