//! The one error type of this crate.

use std::fmt;

use crate::Kind;

/// Why a filesystem could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The source refused or ended.
    #[error("cannot read {bytes} bytes at byte {offset_bytes}: {source}")]
    Io {
        /// Where, from the filesystem's start.
        offset_bytes: u64,
        bytes: usize,
        source: std::io::Error,
    },
    /// Valid, as far as can be told, but of a kind that this crate does not read.
    #[error("no {kind} filesystem that iostep reads: found {found}, expected {expected}")]
    Unsupported {
        /// What it was read as.
        kind: Kind,
        found: String,
        /// What is read.
        expected: String,
    },
    /// Broken.
    #[error("{place} is {found}, expected {expected}; check it with fsck")]
    Corrupt {
        place: DiskField,
        found: String,
        /// What the format asks for.
        expected: String,
    },
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// A field on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskField {
    pub kind: Kind,
    /// Block group or allocation group.
    pub group: Option<u64>,
    /// Inode number.
    pub inode: Option<u64>,
    /// Filesystem block.
    pub block: Option<u64>,
    /// The field, by the kernel's name.
    pub field: &'static str,
}

impl DiskField {
    pub(crate) fn superblock(kind: Kind, field: &'static str) -> DiskField {
        DiskField {
            kind,
            group: None,
            inode: None,
            block: None,
            field,
        }
    }

    /// The same field of a group.
    pub(crate) fn in_group(mut self, group: u64) -> DiskField {
        self.group = Some(group);
        self
    }

    /// The same field of an inode.
    pub(crate) fn of_inode(mut self, inode: u64) -> DiskField {
        self.inode = Some(inode);
        self
    }

    /// The same field in a block.
    pub(crate) fn in_block(mut self, block: u64) -> DiskField {
        self.block = Some(block);
        self
    }

    /// The error that this field is wrong.
    pub(crate) fn corrupt(self, found: impl ToString, expected: impl ToString) -> Error {
        Error::Corrupt {
            place: self,
            found: found.to_string(),
            expected: expected.to_string(),
        }
    }

    /// `Corrupt` unless the stored checksum is the computed one.
    pub(crate) fn check_checksum(self, stored: u32, computed: u32) -> Result<()> {
        if stored == computed {
            return Ok(());
        }
        Err(self.corrupt(format!("{stored:#010x}"), format!("{computed:#010x}")))
    }
}

impl fmt::Display for DiskField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(group) = self.group {
            write!(f, " group {group}")?;
        }
        if let Some(inode) = self.inode {
            write!(f, " inode {inode}")?;
        }
        if let Some(block) = self.block {
            write!(f, " block {block}")?;
        }
        write!(f, ": {}", self.field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corrupt_field_is_named_with_inode_and_block() {
        let error = DiskField::superblock(Kind::Ext4, "eh_depth")
            .of_inode(12)
            .in_block(345)
            .corrupt(9, "at most 5");
        assert_eq!(
            error.to_string(),
            "ext4 inode 12 block 345: eh_depth is 9, expected at most 5; check it with fsck"
        );
    }
}
