//! The superblock.
//!
//! Source: fs/ext4/ext4.h, `struct ext4_super_block`; the checks follow `ext4_check_geometry` and
//! its neighbours in fs/ext4/super.c.

use super::features::Features;
use crate::bytes::{byte, kernel_crc32c, le16, le32, le32_pair, le64};
use crate::error::{DiskField, Error, Result};
use crate::source::{read, size};
use crate::{Kind, ReadAt};

/// Where the primary superblock lies, whatever the block size.
pub(crate) const OFFSET_BYTES: u64 = 1024;
/// How long it is.
pub(crate) const BYTES: usize = 1024;
pub(crate) const MAGIC: u16 = 0xEF53;

/// What the superblock says about the geometry, validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// ext2, ext3 or ext4, by its features.
    pub kind: Kind,
    /// `s_log_block_size`, as bytes: 1024 to 65536.
    pub block_bytes: u32,
    /// `s_blocks_count`.
    pub blocks: u64,
    /// `s_first_data_block`: 1 for blocks of 1 KiB, else 0.
    pub first_data_block: u32,
    /// `s_blocks_per_group`.
    pub blocks_per_group: u32,
    /// How many block groups there are.
    pub groups: u32,
    /// `s_inodes_count`.
    pub inodes: u32,
    /// `s_inodes_per_group`.
    pub inodes_per_group: u32,
    /// `s_inode_size`, bytes.
    pub inode_bytes: u16,
    /// `s_first_ino`: smaller inodes are the filesystem's own, but for the root.
    pub first_inode: u32,
    /// The three feature sets.
    pub features: Features,
    /// `s_desc_size`, bytes: 32 or more.
    pub descriptor_bytes: u16,
    /// `s_reserved_gdt_blocks`.
    pub reserved_gdt_blocks: u16,
    /// `s_first_meta_bg`.
    pub first_meta_bg: u32,
    /// `s_backup_bgs`: the groups with backups under sparse_super2.
    pub backup_groups: [u32; 2],
    /// `s_journal_inum`; 0 if there is none, or an external journal.
    pub journal_inode: u32,
    /// The inodes of the quotas and of the orphan file, which are the filesystem's own also above
    /// `first_inode`; 0 for none.
    pub system_inodes: [u32; 4],
    /// `s_mmp_block`; 0 if there is none.
    pub mmp_block: u64,
    /// `s_uuid`.
    pub uuid: [u8; 16],
    /// The seed of every metadata checksum; `None` without metadata_csum.
    pub checksum_seed: Option<u32>,
}

fn field(name: &'static str) -> DiskField {
    DiskField::superblock(Kind::Ext4, name)
}

/// A mounted filesystem's superblock may be caught between a change and its checksum, so a
/// mismatch is read again before it counts.
const ATTEMPTS: u32 = 4;

impl Superblock {
    /// Reads and validates the primary superblock.
    ///
    /// Errors: `Io`; `Unsupported` for another magic or an unknown incompatible feature; `Corrupt`.
    pub(crate) fn read<S: ReadAt>(source: &S) -> Result<Superblock> {
        let mut attempt = 1;
        let bytes = loop {
            let bytes = read(source, OFFSET_BYTES, BYTES)?;
            match check_bytes(&bytes) {
                Ok(()) => break bytes,
                Err(Error::Corrupt { .. }) if attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
            }
        };
        decode(&bytes, size(source)?)
    }

    /// Bytes to a filesystem block.
    ///
    /// Errors: `Corrupt` if the block is outside the filesystem.
    pub(crate) fn offset_bytes(&self, place: DiskField, block: u64) -> Result<u64> {
        if block < self.blocks {
            return Ok(block * u64::from(self.block_bytes));
        }
        Err(place.corrupt(
            format!("block {block}"),
            format!("less than {}", self.blocks),
        ))
    }

    /// First block of a group.
    pub(crate) fn group_start(&self, group: u32) -> u64 {
        u64::from(self.first_data_block) + u64::from(group) * u64::from(self.blocks_per_group)
    }

    pub(crate) fn descriptors_per_block(&self) -> u32 {
        self.block_bytes / u32::from(self.descriptor_bytes)
    }

    /// Blocks that all descriptors need (`s_gdb_count`).
    pub(crate) fn descriptor_blocks(&self) -> u32 {
        self.groups.div_ceil(self.descriptors_per_block())
    }

    /// Blocks of one group's inode table (`s_itb_per_group`).
    pub(crate) fn inode_table_blocks(&self) -> u32 {
        let bytes = u64::from(self.inodes_per_group) * u64::from(self.inode_bytes);
        bytes.div_ceil(u64::from(self.block_bytes)) as u32
    }

    /// True for inodes that only the filesystem uses.
    pub(crate) fn is_system_inode(&self, inode: u32) -> bool {
        (inode < self.first_inode && inode != super::ROOT_INODE)
            || self.system_inodes.contains(&inode)
    }
}

fn check_bytes(bytes: &[u8]) -> Result<()> {
    let magic = le16(bytes, 0x38);
    if magic != MAGIC {
        return Err(Error::Unsupported {
            kind: Kind::Ext4,
            found: format!("magic {magic:#06x}"),
            expected: format!("{MAGIC:#06x}"),
        });
    }
    let features = Features::decode(bytes);
    features.check()?;
    if !features.has_metadata_checksums() {
        return Ok(());
    }
    let crc32c_type = 1;
    if byte(bytes, 0x175) != crc32c_type {
        return Err(field("s_checksum_type").corrupt(byte(bytes, 0x175), crc32c_type));
    }
    let computed = kernel_crc32c(!0, &bytes[..0x3FC]);
    field("s_checksum").check_checksum(le32(bytes, 0x3FC), computed)
}

fn within(name: &'static str, value: u64, low: u64, high: u64) -> Result<u64> {
    if (low..=high).contains(&value) {
        return Ok(value);
    }
    Err(field(name).corrupt(value, format!("{low} to {high}")))
}

fn decode(bytes: &[u8], source_bytes: u64) -> Result<Superblock> {
    let features = Features::decode(bytes);
    let s_log_block_size = within("s_log_block_size", u64::from(le32(bytes, 0x18)), 0, 6)?;
    let block_bytes = 1024u32 << s_log_block_size;
    let blocks = block_count(bytes);
    let source_blocks = source_bytes / u64::from(block_bytes);
    within("s_blocks_count", blocks, 1, source_blocks)?;
    let first_data_block = le32(bytes, 0x14);
    let most = u64::from(block_bytes == 1024);
    within("s_first_data_block", u64::from(first_data_block), 0, most)?;
    let (blocks_per_group, groups) = decode_groups(bytes, block_bytes, blocks)?;
    let rev_level = le32(bytes, 0x4C);
    let (inode_bytes, first_inode) = match rev_level {
        0 => (128, 11),
        _ => (le16(bytes, 0x58), le32(bytes, 0x54)),
    };
    if !inode_bytes.is_power_of_two() {
        return Err(field("s_inode_size").corrupt(inode_bytes, "a power of two"));
    }
    let most = u64::from(block_bytes);
    within("s_inode_size", u64::from(inode_bytes), 128, most)?;
    let uuid: [u8; 16] = bytes[0x68..0x78].try_into().expect("sixteen bytes");
    let superblock = Superblock {
        kind: features.kind(),
        block_bytes,
        blocks,
        first_data_block,
        blocks_per_group,
        groups,
        inodes: le32(bytes, 0x0),
        inodes_per_group: le32(bytes, 0x28),
        inode_bytes,
        first_inode,
        features,
        descriptor_bytes: descriptor_bytes(bytes, features)?,
        reserved_gdt_blocks: le16(bytes, 0xCE),
        first_meta_bg: le32(bytes, 0x104),
        backup_groups: [le32(bytes, 0x24C), le32(bytes, 0x250)],
        journal_inode: features.journal_inode(le32(bytes, 0xE0)),
        system_inodes: features
            .system_inodes([0x240, 0x244, 0x26C, 0x280].map(|at| le32(bytes, at))),
        mmp_block: features.mmp_block(le64(bytes, 0x168)),
        uuid,
        checksum_seed: features.checksum_seed(le32(bytes, 0x270), &uuid),
    };
    check_inodes(&superblock)?;
    Ok(superblock)
}

/// `s_blocks_count`, whose high half counts only with the feature 64bit.
pub(crate) fn block_count(bytes: &[u8]) -> u64 {
    match Features::decode(bytes).is_64bit() {
        true => le32_pair(bytes, 0x4, 0x150),
        false => u64::from(le32(bytes, 0x4)),
    }
}

fn decode_groups(bytes: &[u8], block_bytes: u32, blocks: u64) -> Result<(u32, u32)> {
    // Each group's bitmap is one block; under bigalloc a bit stands for a cluster of blocks.
    let s_log_cluster_size = u64::from(le32(bytes, 0x1C));
    let s_log_block_size = u64::from(le32(bytes, 0x18));
    let log_cluster_blocks = s_log_cluster_size.saturating_sub(s_log_block_size).min(16);
    let most = (u64::from(block_bytes) * 8) << log_cluster_blocks;
    let blocks_per_group = u64::from(le32(bytes, 0x20));
    within("s_blocks_per_group", blocks_per_group, 8, most)?;
    let data_blocks = blocks.saturating_sub(u64::from(le32(bytes, 0x14)));
    let groups = data_blocks.div_ceil(blocks_per_group);
    within("s_blocks_count", groups, 1, u64::from(u32::MAX))
        .map_err(|_| field("s_blocks_count").corrupt(blocks, "1 to 2^32 groups"))?;
    Ok((blocks_per_group as u32, groups as u32))
}

fn descriptor_bytes(bytes: &[u8], features: Features) -> Result<u16> {
    if !features.is_64bit() {
        return Ok(32);
    }
    let s_desc_size = le16(bytes, 0xFE);
    if s_desc_size.is_power_of_two() && (64..=1024).contains(&s_desc_size) {
        return Ok(s_desc_size);
    }
    Err(field("s_desc_size").corrupt(s_desc_size, "a power of two from 64 to 1024"))
}

fn check_inodes(superblock: &Superblock) -> Result<()> {
    let bits = u64::from(superblock.block_bytes) * 8;
    let per_group = u64::from(superblock.inodes_per_group);
    within("s_inodes_per_group", per_group, 1, bits)?;
    // Bounds the work of a walk over all inodes by the filesystem's size.
    let table_blocks = u64::from(superblock.inode_table_blocks());
    let most = u64::from(superblock.blocks_per_group).min(superblock.blocks);
    if table_blocks > most {
        let expected = format!("a table of at most {most} blocks");
        return Err(field("s_inodes_per_group").corrupt(per_group, expected));
    }
    let expected = per_group * u64::from(superblock.groups);
    if u64::from(superblock.inodes) != expected {
        return Err(field("s_inodes_count").corrupt(superblock.inodes, expected));
    }
    if superblock.features.has_meta_bg() {
        let most = u64::from(superblock.descriptor_blocks());
        within(
            "s_first_meta_bg",
            u64::from(superblock.first_meta_bg),
            0,
            most,
        )?;
    }
    Ok(())
}
