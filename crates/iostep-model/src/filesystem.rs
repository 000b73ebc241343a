//! The filesystems that iostep knows.

use crate::names::named;

/// A filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Without a journal.
    Ext2,
    /// With a journal, and nothing that only ext4 has.
    Ext3,
    /// ext4.
    Ext4,
    Xfs,
    Btrfs,
    /// f2fs.
    F2fs,
    /// nilfs2.
    Nilfs2,
    /// FAT12, FAT16 or FAT32, with long names.
    Fat,
}

// As mount(2) takes it and /proc/filesystems has it.
named!(
    Kind,
    "filesystem",
    Ext2 = "ext2",
    Ext3 = "ext3",
    Ext4 = "ext4",
    Xfs = "xfs",
    Btrfs = "btrfs",
    F2fs = "f2fs",
    Nilfs2 = "nilfs2",
    Fat = "vfat",
);

impl Kind {
    /// By the kernel's name for it; FAT has another one where it is mounted without long names.
    pub fn of_mount(name: &str) -> Option<Kind> {
        match name {
            "msdos" => Some(Kind::Fat),
            name => name.parse().ok(),
        }
    }
}
