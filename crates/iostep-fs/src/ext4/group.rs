//! Group descriptors: where a group keeps its bitmaps and its inode table.
//!
//! Source: fs/ext4/ext4.h, `struct ext4_group_desc`; `descriptor_loc` in fs/ext4/super.c;
//! `ext4_group_desc_csum` there.

use super::superblock::Superblock;
use crate::bytes::{kernel_crc32c, le16, le32_pair};
use crate::error::{DiskField, Result};
use crate::source::read;
use crate::{Error, ReadAt};

/// One group's descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupDescriptor {
    /// `bg_block_bitmap`, a filesystem block.
    pub block_bitmap: u64,
    /// `bg_inode_bitmap`, a filesystem block.
    pub inode_bitmap: u64,
    /// `bg_inode_table`, its first filesystem block.
    pub inode_table: u64,
    /// `EXT4_BG_INODE_UNINIT`: the inode bitmap was never written, no inode is in use.
    pub inodes_uninitialised: bool,
}

const CHECKSUM_OFFSET: usize = 0x1E;
const FLAG_INODE_UNINIT: u16 = 1;
const ATTEMPTS: u32 = 4;

/// True if the group holds a copy of the superblock (`ext4_bg_has_super`).
pub(crate) fn has_superblock(superblock: &Superblock, group: u32) -> bool {
    if group == 0 {
        return true;
    }
    if superblock.features.has_sparse_super2() {
        return superblock.backup_groups.contains(&group);
    }
    group == 1
        || !superblock.features.has_sparse_super()
        || [3, 5, 7].into_iter().any(|base| is_power(group, base))
}

fn is_power(mut number: u32, base: u32) -> bool {
    while number > 1 && number.is_multiple_of(base) {
        number /= base;
    }
    number == 1
}

/// True if block `nr` of the descriptors lies in its own meta group.
fn in_meta_group(superblock: &Superblock, nr: u32) -> bool {
    superblock.features.has_meta_bg() && nr >= superblock.first_meta_bg
}

/// The block that holds the primary superblock: where a copy's offset in its group comes from.
pub(crate) fn superblock_block(superblock: &Superblock) -> u64 {
    u64::from(superblock.block_bytes == 1024)
}

/// Where block `nr` of the descriptors lies.
fn descriptor_block(superblock: &Superblock, nr: u32) -> u64 {
    if !in_meta_group(superblock, nr) {
        return superblock_block(superblock) + 1 + u64::from(nr);
    }
    let group = nr * superblock.descriptors_per_block();
    // With blocks of 1 KiB that count from 0 (bigalloc), the first group begins with a boot block.
    let boot = superblock_block(superblock) - u64::from(superblock.first_data_block);
    superblock.group_start(group)
        + u64::from(has_superblock(superblock, group))
        + if group == 0 { boot } else { 0 }
}

/// How many descriptor blocks, and reserved ones after them, the group holds (`ext4_bg_num_gdb`).
pub(crate) fn descriptor_blocks_in(superblock: &Superblock, group: u32) -> u64 {
    let per_block = superblock.descriptors_per_block();
    let nr = group / per_block;
    if in_meta_group(superblock, nr) {
        let place = group % per_block;
        return u64::from(place == 0 || place == 1 || place == per_block - 1);
    }
    if !has_superblock(superblock, group) {
        return 0;
    }
    let count = match superblock.features.has_meta_bg() {
        true => superblock.first_meta_bg,
        false => superblock.descriptor_blocks(),
    };
    u64::from(count) + u64::from(superblock.reserved_gdt_blocks)
}

/// Reads every group's descriptor.
///
/// Errors: `Io`; `Corrupt` for a wrong checksum or a location outside the filesystem.
pub(crate) fn read_all<S: ReadAt>(
    source: &S,
    superblock: &Superblock,
) -> Result<Vec<GroupDescriptor>> {
    let mut descriptors = Vec::new();
    for nr in 0..superblock.descriptor_blocks() {
        let block = descriptor_block(superblock, nr);
        let mut attempt = 1;
        loop {
            match read_block(source, superblock, nr, block) {
                Ok(found) => {
                    descriptors.extend(found);
                    break;
                }
                // A mounted filesystem may be caught between a change and its checksum.
                Err(Error::Corrupt { .. }) if attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(descriptors)
}

fn read_block<S: ReadAt>(
    source: &S,
    superblock: &Superblock,
    nr: u32,
    block: u64,
) -> Result<Vec<GroupDescriptor>> {
    let place = DiskField::superblock(superblock.kind, "group descriptors");
    let offset_bytes = superblock.offset_bytes(place, block)?;
    let bytes = read(source, offset_bytes, superblock.block_bytes as usize)?;
    let first = nr * superblock.descriptors_per_block();
    (first..superblock.groups)
        .zip(bytes.chunks_exact(usize::from(superblock.descriptor_bytes)))
        .map(|(group, bytes)| decode(superblock, group, bytes))
        .collect()
}

fn decode(superblock: &Superblock, group: u32, bytes: &[u8]) -> Result<GroupDescriptor> {
    let place = DiskField::superblock(superblock.kind, "bg_checksum").in_group(u64::from(group));
    let stored = u32::from(le16(bytes, CHECKSUM_OFFSET));
    let checked = checksum(superblock, group, bytes);
    if let Some(computed) = checked {
        place.check_checksum(stored, u32::from(computed))?;
    }
    let within = |field, first: u64, blocks: u64| {
        let end = first.saturating_add(blocks);
        if first > 0 && end <= superblock.blocks {
            return Ok(first);
        }
        let expected = format!("inside the filesystem's {} blocks", superblock.blocks);
        Err(DiskField { field, ..place }.corrupt(format!("block {first}"), expected))
    };
    let table_blocks = u64::from(superblock.inode_table_blocks());
    Ok(GroupDescriptor {
        block_bitmap: within("bg_block_bitmap", le32_pair(bytes, 0x0, 0x20), 1)?,
        inode_bitmap: within("bg_inode_bitmap", le32_pair(bytes, 0x4, 0x24), 1)?,
        inode_table: within("bg_inode_table", le32_pair(bytes, 0x8, 0x28), table_blocks)?,
        // The flag has a meaning only where a checksum guards it.
        inodes_uninitialised: checked.is_some() && le16(bytes, 0x12) & FLAG_INODE_UNINIT != 0,
    })
}

/// `ext4_group_desc_csum`; `None` if the filesystem keeps none.
fn checksum(superblock: &Superblock, group: u32, bytes: &[u8]) -> Option<u16> {
    let (head, rest) = bytes.split_at(CHECKSUM_OFFSET);
    let tail = &rest[2..];
    let group = group.to_le_bytes();
    if let Some(seed) = superblock.checksum_seed {
        let crc = kernel_crc32c(kernel_crc32c(seed, &group), head);
        return Some(kernel_crc32c(kernel_crc32c(crc, &[0; 2]), tail) as u16);
    }
    superblock.features.has_group_checksums().then(|| {
        let crc = crc16(crc16(!0, &superblock.uuid), &group);
        let crc = crc16(crc, head);
        // Unlike the newer one, it leaves its own field out instead of taking it as zero.
        crc16(crc, tail)
    })
}

/// The kernel's `crc16` (lib/crc/crc16.c): polynomial 0x8005, reflected.
fn crc16(seed: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(seed, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xA001 * (crc & 1))
        })
    })
}

/// Reads the bitmap of a group's inodes; bit `n` is the group's `n`th inode.
pub(crate) fn read_inode_bitmap<S: ReadAt>(
    source: &S,
    superblock: &Superblock,
    descriptor: &GroupDescriptor,
) -> Result<Vec<u8>> {
    let place = DiskField::superblock(superblock.kind, "bg_inode_bitmap");
    let offset_bytes = superblock.offset_bytes(place, descriptor.inode_bitmap)?;
    read(source, offset_bytes, superblock.block_bytes as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_told_from_multiples() {
        let powers: Vec<u32> = (1..400).filter(|&n| is_power(n, 7)).collect();
        assert_eq!(powers, [1, 7, 49, 343]);
    }

    #[test]
    fn crc16_has_the_published_check_value() {
        assert_eq!(crc16(0, b"123456789"), 0xBB3D);
    }
}
