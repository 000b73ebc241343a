//! Filesystems in the modes that the papers compare.

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
    /// xfs.
    Xfs,
    /// btrfs.
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
    /// The kernel's name for it, as mount(2) takes it and /proc/filesystems has it.
    pub fn kernel_name(self) -> &'static str {
        match self {
            Filesystem::Ext4
            | Filesystem::Ext4Writeback
            | Filesystem::Ext4DataJournal
            | Filesystem::Ext4FastCommit
            | Filesystem::Ext4NoJournal => "ext4",
            Filesystem::Xfs => "xfs",
            Filesystem::Btrfs => "btrfs",
            Filesystem::F2fs => "f2fs",
            Filesystem::Nilfs2 => "nilfs2",
            Filesystem::Fat32 => "vfat",
        }
    }

    /// True if its journal or log can be on another device.
    pub fn takes_external_journal(self) -> bool {
        match self {
            Filesystem::Ext4
            | Filesystem::Ext4Writeback
            | Filesystem::Ext4DataJournal
            | Filesystem::Ext4FastCommit
            | Filesystem::Xfs => true,
            Filesystem::Ext4NoJournal
            | Filesystem::Btrfs
            | Filesystem::F2fs
            | Filesystem::Nilfs2
            | Filesystem::Fat32 => false,
        }
    }
}
