//! The kinds of sync call.

use serde::{Deserialize, Serialize};

/// What made data durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncKind {
    /// `fsync(2)`.
    Fsync,
    /// `fdatasync(2)`.
    Fdatasync,
    /// `sync_file_range(2)`: no metadata, no flush.
    SyncFileRange,
    /// `msync(2)` with `MS_SYNC`.
    Msync,
    /// A write to a file opened with `O_SYNC`, or `RWF_SYNC`.
    OSync,
    /// A write to a file opened with `O_DSYNC`, or `RWF_DSYNC`.
    ODsync,
    /// `syncfs(2)`.
    Syncfs,
    /// `sync(2)`.
    Sync,
    /// `fsync` or `fdatasync` through io_uring.
    UringFsync,
    /// The filesystem's fsync, called by a system call that is none of the above.
    Other,
    /// f2fs: `F2FS_IOC_COMMIT_ATOMIC_WRITE`, SQLite's batch atomic write.
    AtomicCommit,
}

crate::listed! { SyncKind,
    Fsync = "fsync",
    Fdatasync = "fdatasync",
    SyncFileRange = "sync_file_range",
    Msync = "msync",
    OSync = "O_SYNC write",
    ODsync = "O_DSYNC write",
    Syncfs = "syncfs",
    Sync = "sync",
    UringFsync = "io_uring fsync",
    Other = "other sync",
    AtomicCommit = "atomic commit",
}
