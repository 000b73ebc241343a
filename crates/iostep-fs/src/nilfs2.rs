//! nilfs2: its two superblocks. Everything else is a log, whose blocks move and are named by the
//! log itself.
//!
//! Source: include/uapi/linux/nilfs2_ondisk.h, `struct nilfs_super_block`; `nilfs_valid_sb` in
//! fs/nilfs2/the_nilfs.c.

use iostep_model::Class;
use iostep_model::manifest::LayoutRange;

use crate::bytes::{kernel_crc32, le16, le32, le64};
use crate::error::{DiskField, Error, Result};
use crate::source::{read, read_if_there, size};
use crate::{Detected, Found, Kind, ReadAt, ranges};

const SUPERBLOCK_OFFSET_BYTES: u64 = 1024;
const SUPERBLOCK_BYTES: usize = 1024;
const MAGIC: u16 = 0x3434;
const SUM_OFFSET: usize = 16;
/// The second superblock lies in the last whole unit of this size (`NILFS_SB2_OFFSET_BYTES`).
const SECOND_UNIT_BYTES: u64 = 4096;
/// `NILFS_SEG_MIN_BLOCKS`.
const MIN_SEGMENT_BLOCKS: u32 = 16;

pub(crate) fn probe(source: &dyn ReadAt) -> Result<Option<Detected>> {
    let superblock = read_if_there(source, SUPERBLOCK_OFFSET_BYTES, SUPERBLOCK_BYTES)?;
    Ok(superblock.as_deref().and_then(detected))
}

fn detected(superblock: &[u8]) -> Option<Detected> {
    let log_block_size = le32(superblock, 20);
    // The magic has only two bytes, so the block size must make sense too.
    let is_known = le16(superblock, 6) == MAGIC && log_block_size <= 6;
    is_known.then(|| Detected {
        kind: Kind::Nilfs2,
        block_bytes: 1024 << log_block_size,
        size_bytes: Some(le64(superblock, 32)),
    })
}

fn field(name: &'static str) -> DiskField {
    DiskField::superblock(Kind::Nilfs2, name)
}

fn check(superblock: &[u8]) -> Result<()> {
    let bytes = usize::from(le16(superblock, 8));
    if !(SUM_OFFSET + 4..=SUPERBLOCK_BYTES).contains(&bytes) {
        return Err(field("s_bytes").corrupt(bytes, format!("20 to {SUPERBLOCK_BYTES}")));
    }
    let (head, rest) = superblock[..bytes].split_at(SUM_OFFSET);
    let sum = kernel_crc32(le32(superblock, 12), head);
    let sum = kernel_crc32(kernel_crc32(sum, &[0; 4]), &rest[4..]);
    field("s_sum").check_checksum(le32(superblock, SUM_OFFSET), sum)?;
    let segment_blocks = le32(superblock, 48);
    if segment_blocks < MIN_SEGMENT_BLOCKS {
        let expected = format!("at least {MIN_SEGMENT_BLOCKS}");
        return Err(field("s_blocks_per_segment").corrupt(segment_blocks, expected));
    }
    Ok(())
}

/// Both superblocks, in blocks of the filesystem.
///
/// Errors: `Io`, `Unsupported`, `Corrupt`.
pub(crate) fn layout(source: &dyn ReadAt) -> Result<Found> {
    let superblock = read(source, SUPERBLOCK_OFFSET_BYTES, SUPERBLOCK_BYTES)?;
    let found = detected(&superblock).ok_or_else(|| Error::Unsupported {
        kind: Kind::Nilfs2,
        found: format!("magic {:#06x}", le16(&superblock, 6)),
        expected: format!("{MAGIC:#06x}"),
    })?;
    check(&superblock)?;
    let device_bytes = le64(&superblock, 32);
    let source_bytes = size(source)?;
    if device_bytes > source_bytes {
        let expected = format!("at most {source_bytes}");
        return Err(field("s_dev_size").corrupt(device_bytes, expected));
    }
    let last_unit = (device_bytes / SECOND_UNIT_BYTES).saturating_sub(1) * SECOND_UNIT_BYTES;
    let block_bytes = u64::from(found.block_bytes);
    let layout = [SUPERBLOCK_OFFSET_BYTES, last_unit]
        .map(|offset_bytes| LayoutRange {
            first_block: offset_bytes / block_bytes,
            blocks: 1,
            class: Class::Superblock,
        })
        .to_vec();
    let layout = ranges::sorted(layout).map_err(|overlap| {
        let place = field("s_dev_size").in_block(overlap.block);
        place.corrupt(device_bytes, "room for two superblocks")
    })?;
    Ok(Found {
        kind: Kind::Nilfs2,
        block_bytes: found.block_bytes,
        size_bytes: device_bytes,
        layout,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A superblock of 1 KiB blocks on 1 MiB, with its checksum.
    fn image() -> Vec<u8> {
        let mut image = vec![0; 1 << 20];
        let superblock = &mut image[1024..2048];
        superblock[6..8].copy_from_slice(&MAGIC.to_le_bytes());
        superblock[8..10].copy_from_slice(&280u16.to_le_bytes());
        superblock[12..16].copy_from_slice(&7u32.to_le_bytes());
        superblock[32..40].copy_from_slice(&(1u64 << 20).to_le_bytes());
        superblock[48..52].copy_from_slice(&16u32.to_le_bytes());
        let sum = kernel_crc32(7, &superblock[..280]);
        superblock[SUM_OFFSET..SUM_OFFSET + 4].copy_from_slice(&sum.to_le_bytes());
        image
    }

    #[test]
    fn the_second_superblock_lies_before_the_end() {
        let found = layout(&image()).expect("sound");
        let blocks: Vec<u64> = found.layout.iter().map(|r| r.first_block).collect();
        assert_eq!(blocks, [1, 1020]);
    }

    #[test]
    fn a_flipped_bit_is_named() {
        let mut image = image();
        image[1024 + 100] ^= 1;
        let error = layout(&image).expect_err("a wrong checksum").to_string();
        assert!(error.contains("s_sum"), "{error}");
    }
}
