//! The three feature sets of a superblock, and what each asks of a reader.
//!
//! Source: fs/ext4/ext4.h, `EXT4_FEATURE_*`.

use crate::Kind;
use crate::bytes::{kernel_crc32c, le32};
use crate::error::{Error, Result};

/// Feature bits as they are on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    compat: u32,
    incompat: u32,
    ro_compat: u32,
}

const COMPAT_HAS_JOURNAL: u32 = 0x4;
const COMPAT_SPARSE_SUPER2: u32 = 0x200;
const COMPAT_FAST_COMMIT: u32 = 0x400;
const COMPAT_ORPHAN_FILE: u32 = 0x1000;

const INCOMPAT_FILETYPE: u32 = 0x2;
const INCOMPAT_RECOVER: u32 = 0x4;
const INCOMPAT_META_BG: u32 = 0x10;
const INCOMPAT_EXTENTS: u32 = 0x40;
const INCOMPAT_64BIT: u32 = 0x80;
const INCOMPAT_MMP: u32 = 0x100;
const INCOMPAT_FLEX_BG: u32 = 0x200;
const INCOMPAT_EA_INODE: u32 = 0x400;
const INCOMPAT_CSUM_SEED: u32 = 0x2000;
const INCOMPAT_LARGEDIR: u32 = 0x4000;
const INCOMPAT_INLINE_DATA: u32 = 0x8000;
const INCOMPAT_ENCRYPT: u32 = 0x10000;
const INCOMPAT_CASEFOLD: u32 = 0x20000;

const INCOMPAT_EXT3: u32 = INCOMPAT_FILETYPE | INCOMPAT_RECOVER | INCOMPAT_META_BG;
const INCOMPAT_KNOWN: u32 = INCOMPAT_EXT3
    | INCOMPAT_EXTENTS
    | INCOMPAT_64BIT
    | INCOMPAT_MMP
    | INCOMPAT_FLEX_BG
    | INCOMPAT_EA_INODE
    | INCOMPAT_CSUM_SEED
    | INCOMPAT_LARGEDIR
    | INCOMPAT_INLINE_DATA
    | INCOMPAT_ENCRYPT
    | INCOMPAT_CASEFOLD;
const INCOMPAT_NAMES: [(u32, &str); 3] = [
    (0x1, "compression"),
    (0x8, "an external journal device"),
    (0x1000, "dirdata"),
];

const RO_COMPAT_SPARSE_SUPER: u32 = 0x1;
const RO_COMPAT_GDT_CSUM: u32 = 0x10;
const RO_COMPAT_QUOTA: u32 = 0x100;
const RO_COMPAT_METADATA_CSUM: u32 = 0x400;
/// sparse_super, large_file, btree_dir.
const RO_COMPAT_EXT3: u32 = 0x7;

impl Features {
    pub(crate) fn decode(superblock: &[u8]) -> Features {
        Features {
            compat: le32(superblock, 0x5C),
            incompat: le32(superblock, 0x60),
            ro_compat: le32(superblock, 0x64),
        }
    }

    /// `Unsupported` for a feature that changes the format in a way not known here. Read-only
    /// features do not matter to a reader, by their definition.
    pub(crate) fn check(self) -> Result<()> {
        let unknown = self.incompat & !INCOMPAT_KNOWN;
        if unknown == 0 {
            return Ok(());
        }
        let name = INCOMPAT_NAMES
            .iter()
            .find(|(bit, _)| unknown & bit != 0)
            .map_or_else(
                || format!("incompatible features {unknown:#x}"),
                |(_, name)| (*name).to_owned(),
            );
        Err(Error::Unsupported {
            kind: Kind::Ext4,
            found: name,
            expected: format!("incompatible features within {INCOMPAT_KNOWN:#x}"),
        })
    }

    /// As blkid tells them apart.
    pub(crate) fn kind(self) -> Kind {
        if self.incompat & !INCOMPAT_EXT3 != 0 || self.ro_compat & !RO_COMPAT_EXT3 != 0 {
            Kind::Ext4
        } else if self.compat & COMPAT_HAS_JOURNAL != 0 {
            Kind::Ext3
        } else {
            Kind::Ext2
        }
    }

    /// True if the journal holds changes that are not in place yet: a mounted filesystem, or one
    /// that was not unmounted in order.
    pub fn needs_recovery(self) -> bool {
        self.incompat & INCOMPAT_RECOVER != 0
    }

    /// True if the journal has blocks in another format than jbd2's.
    pub fn has_fast_commit(self) -> bool {
        self.compat & COMPAT_FAST_COMMIT != 0
    }

    pub(crate) fn is_64bit(self) -> bool {
        self.incompat & INCOMPAT_64BIT != 0
    }

    pub(crate) fn has_meta_bg(self) -> bool {
        self.incompat & INCOMPAT_META_BG != 0
    }

    pub(crate) fn has_sparse_super(self) -> bool {
        self.ro_compat & RO_COMPAT_SPARSE_SUPER != 0
    }

    pub(crate) fn has_sparse_super2(self) -> bool {
        self.compat & COMPAT_SPARSE_SUPER2 != 0
    }

    pub(crate) fn has_file_type(self) -> bool {
        self.incompat & INCOMPAT_FILETYPE != 0
    }

    pub(crate) fn has_metadata_checksums(self) -> bool {
        self.ro_compat & RO_COMPAT_METADATA_CSUM != 0
    }

    /// The older checksum, of group descriptors only.
    pub(crate) fn has_group_checksums(self) -> bool {
        self.ro_compat & RO_COMPAT_GDT_CSUM != 0
    }

    pub(crate) fn journal_inode(self, s_journal_inum: u32) -> u32 {
        match self.compat & COMPAT_HAS_JOURNAL {
            0 => 0,
            _ => s_journal_inum,
        }
    }

    /// Of the inodes that the superblock names for users', groups' and projects' quotas and for the
    /// orphan file, those in use; 0 for another.
    pub(crate) fn system_inodes(self, [users, groups, projects, orphans]: [u32; 4]) -> [u32; 4] {
        let has_quota = u32::from(self.ro_compat & RO_COMPAT_QUOTA != 0);
        let has_orphans = u32::from(self.compat & COMPAT_ORPHAN_FILE != 0);
        [
            users * has_quota,
            groups * has_quota,
            projects * has_quota,
            orphans * has_orphans,
        ]
    }

    pub(crate) fn mmp_block(self, s_mmp_block: u64) -> u64 {
        match self.incompat & INCOMPAT_MMP {
            0 => 0,
            _ => s_mmp_block,
        }
    }

    pub(crate) fn checksum_seed(self, s_checksum_seed: u32, uuid: &[u8]) -> Option<u32> {
        if !self.has_metadata_checksums() {
            None
        } else if self.incompat & INCOMPAT_CSUM_SEED != 0 {
            Some(s_checksum_seed)
        } else {
            Some(kernel_crc32c(!0, uuid))
        }
    }
}
