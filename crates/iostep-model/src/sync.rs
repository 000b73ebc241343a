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

impl SyncKind {
    /// Every kind, in the order of the stored code.
    pub const ALL: [SyncKind; 11] = [
        SyncKind::Fsync,
        SyncKind::Fdatasync,
        SyncKind::SyncFileRange,
        SyncKind::Msync,
        SyncKind::OSync,
        SyncKind::ODsync,
        SyncKind::Syncfs,
        SyncKind::Sync,
        SyncKind::UringFsync,
        SyncKind::Other,
        SyncKind::AtomicCommit,
    ];

    /// The name shown to people and stored in tables.
    pub fn name(self) -> &'static str {
        match self {
            SyncKind::Fsync => "fsync",
            SyncKind::Fdatasync => "fdatasync",
            SyncKind::SyncFileRange => "sync_file_range",
            SyncKind::Msync => "msync",
            SyncKind::OSync => "O_SYNC write",
            SyncKind::ODsync => "O_DSYNC write",
            SyncKind::Syncfs => "syncfs",
            SyncKind::Sync => "sync",
            SyncKind::UringFsync => "io_uring fsync",
            SyncKind::Other => "other sync",
            SyncKind::AtomicCommit => "atomic commit",
        }
    }

    /// The kind with this [`SyncKind::name`].
    pub fn from_name(name: &str) -> Option<SyncKind> {
        SyncKind::ALL.into_iter().find(|k| k.name() == name)
    }
}
