//! Filesystems in the modes that the papers compare.

use crate::filesystem::Kind;
use crate::names::named;

/// A filesystem with the features and mount options that make it another one for a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Filesystem {
    /// ext4 as it is by default: data=ordered.
    Ext4,
    /// ext4 with data=writeback.
    Ext4Writeback,
    /// ext4 with data=journal.
    Ext4DataJournal,
    /// ext4 with the feature fast_commit.
    Ext4FastCommit,
    /// ext4 without a journal.
    Ext4NoJournal,
    Xfs,
    Btrfs,
    /// f2fs.
    F2fs,
    /// nilfs2.
    Nilfs2,
    /// FAT with 32-bit entries (the kernel's vfat).
    Fat32,
}

named!(
    Filesystem,
    "filesystem of a lab",
    Ext4 = "ext4",
    Ext4Writeback = "ext4-writeback",
    Ext4DataJournal = "ext4-data-journal",
    Ext4FastCommit = "ext4-fast-commit",
    Ext4NoJournal = "ext4-no-journal",
    Xfs = "xfs",
    Btrfs = "btrfs",
    F2fs = "f2fs",
    Nilfs2 = "nilfs2",
    Fat32 = "fat32",
);

impl Filesystem {
    /// What it is without its mode.
    pub fn kind(self) -> Kind {
        match self {
            Filesystem::Ext4
            | Filesystem::Ext4Writeback
            | Filesystem::Ext4DataJournal
            | Filesystem::Ext4FastCommit
            | Filesystem::Ext4NoJournal => Kind::Ext4,
            Filesystem::Xfs => Kind::Xfs,
            Filesystem::Btrfs => Kind::Btrfs,
            Filesystem::F2fs => Kind::F2fs,
            Filesystem::Nilfs2 => Kind::Nilfs2,
            Filesystem::Fat32 => Kind::Fat,
        }
    }

    /// True if its journal or log can be on another device.
    pub fn takes_external_journal(self) -> bool {
        self != Filesystem::Ext4NoJournal && matches!(self.kind(), Kind::Ext4 | Kind::Xfs)
    }
}
