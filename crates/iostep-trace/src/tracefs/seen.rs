//! What a record said, in numbers of the model.

use iostep_model::{Flags, Operation, SyncKind};

/// A decoded record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Seen {
    Block(Block),
    File(OfFile),
    Sync(OfSync),
    Task(OfTask),
}

/// The block layer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    Queue(Range),
    Issue(Range),
    Requeue(Range),
    /// With the negative errno, 0 for success.
    Complete(Range, i32),
    /// First sector of the second part.
    Split(u64),
    /// A bio or a request was merged into another request.
    Merge,
}

/// What happened to a file's blocks and pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfFile {
    /// A mapping was made; true if its blocks hold data.
    Mapped(Piece, bool),
    /// A mapping that existed was looked up.
    Looked(Piece),
    /// Filesystem blocks were freed: the first and how many.
    Freed(u64, u64),
    /// A part was written in the page cache.
    Write(Part),
    /// A folio became dirty: the inode and the index of its first page.
    Folio(u64, u64),
    Born {
        inode: u64,
        parent: u64,
        mode: u16,
    },
    /// An inode went away.
    Gone(u64),
}

/// What happened to sync calls and to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfSync {
    /// The filesystem's fsync began.
    FsyncEnter {
        inode: u64,
        datasync: bool,
    },
    /// The filesystem's fsync ended, with this result.
    FsyncExit(i64),
    SyscallEnter(SyncKind),
    SyscallExit(i64),
    /// The thread syncs the whole filesystem.
    SyncFs,
    /// The thread writes back this inode.
    Writepages(u64),
    CommitStart(u64),
    CommitEnd(u64),
    /// The thread started a handle of this transaction.
    Handle(u64),
    /// The thread marked an inode dirty, from the code at an address.
    Marked(u64, u64),
    /// The thread (or the one that polls for it) submitted an fsync to io_uring.
    UringFsync,
}

/// What happened to threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OfTask {
    /// A thread of this id was made, of the same process if true.
    New(u32, bool, String),
    /// A thread was renamed, this one if `None`.
    Renamed(Option<u32>, String),
}

/// A bio's or a request's place and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub sector: u64,
    pub bytes: u32,
    pub operation: Operation,
    pub flags: Flags,
}

/// A run of a file's blocks on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub inode: u64,
    pub file_block: u64,
    pub fs_block: u64,
    pub blocks: u32,
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub inode: u64,
    pub offset_bytes: u64,
    pub bytes: u64,
}
