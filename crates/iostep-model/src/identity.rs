//! Identities that outlive a name: files and sync calls.

use serde::{Deserialize, Serialize};

/// A file of one filesystem. Inode numbers are reused at once (ext4 does), so the generation is
/// part of the identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileKey {
    /// btrfs: the id of the subvolume's tree, 5 for the top level. 0 on every other filesystem.
    pub subvolume: u64,
    /// Inode number.
    pub inode: u64,
    /// `i_generation`.
    pub generation: u32,
}

impl FileKey {
    /// A file of a filesystem without subvolumes.
    pub const fn plain(inode: u64, generation: u32) -> FileKey {
        FileKey {
            subvolume: 0,
            inode,
            generation,
        }
    }
}

/// A sync call: the thread that made it and when it entered. A thread is in one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SyncKey {
    /// Thread id.
    pub pid: u32,
    /// When the call entered.
    pub enter_ns: u64,
}
