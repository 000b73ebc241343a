//! f2fs: the superblocks and the areas before the main one. What lies in the main area moves with
//! every write, and only the node blocks there say whose it is.
//!
//! Source: include/linux/f2fs_fs.h, `struct f2fs_super_block`; `sanity_check_area_boundary` and
//! `sanity_check_raw_super` in fs/f2fs/super.c.

use iostep_model::Class;
use iostep_model::manifest::LayoutRange;

use crate::bytes::{kernel_crc32, le32, le64};
use crate::error::{DiskField, Error, Result};
use crate::source::{read, read_if_there, size};
use crate::{Detected, Found, Kind, ReadAt};

/// The first superblock begins inside block 0; its copy lies at the same place in block 1.
const SUPERBLOCK_OFFSET_BYTES: u64 = 1024;
const SUPERBLOCK_BYTES: usize = 3072;
const SUPERBLOCKS: u64 = 2;
const MAGIC: u32 = 0xF2F5_2010;
const FEATURE_OFFSET: usize = 2180;
const FEATURE_CHECKSUM: u32 = 0x0800;
/// The kernel mounts nothing else (`sanity_check_raw_super`).
const LOG_BLOCKS_PER_SEGMENT: u32 = 9;

/// An area: its class, and where the superblock keeps its first block and its length in segments.
struct Area {
    class: Class,
    start: (&'static str, usize),
    segments: (&'static str, usize),
}

const AREAS: [Area; 4] = [
    Area {
        class: Class::Checkpoint,
        start: ("cp_blkaddr", 76),
        segments: ("segment_count_ckpt", 52),
    },
    Area {
        class: Class::SegmentInfoTable,
        start: ("sit_blkaddr", 80),
        segments: ("segment_count_sit", 56),
    },
    Area {
        class: Class::NodeAddressTable,
        start: ("nat_blkaddr", 84),
        segments: ("segment_count_nat", 60),
    },
    Area {
        class: Class::SegmentSummary,
        start: ("ssa_blkaddr", 88),
        segments: ("segment_count_ssa", 64),
    },
];
const MAIN_START: (&str, usize) = ("main_blkaddr", 92);
const SEGMENTS_OFFSET: usize = 48;
const FIRST_SEGMENT_OFFSET: usize = 72;
/// `devs`, where there are several: of each a path of so many bytes, and how many segments it has.
const DEVICES_OFFSET: usize = 2201;
const DEVICE_PATH_BYTES: usize = 64;
const DEVICE_BYTES: usize = DEVICE_PATH_BYTES + 4;

pub(crate) fn probe(source: &dyn ReadAt) -> Result<Option<Detected>> {
    let Some(superblock) = read_if_there(source, SUPERBLOCK_OFFSET_BYTES, 1024)? else {
        return Ok(None);
    };
    let log_blocksize = le32(&superblock, 16);
    if le32(&superblock, 0) != MAGIC || !(9..=16).contains(&log_blocksize) {
        return Ok(None);
    }
    let block_bytes = 1 << log_blocksize;
    let block_count = le64(&superblock, 36);
    Ok(Some(Detected {
        kind: Kind::F2fs,
        block_bytes,
        size_bytes: block_count.checked_mul(u64::from(block_bytes)),
    }))
}

fn field(name: &'static str) -> DiskField {
    DiskField::superblock(Kind::F2fs, name)
}

fn read_superblock(source: &dyn ReadAt) -> Result<Vec<u8>> {
    let superblock = read(source, SUPERBLOCK_OFFSET_BYTES, SUPERBLOCK_BYTES)?;
    if le32(&superblock, 0) != MAGIC {
        return Err(Error::Unsupported {
            kind: Kind::F2fs,
            found: format!("magic {:#010x}", le32(&superblock, 0)),
            expected: format!("{MAGIC:#010x}"),
        });
    }
    check_crc(&superblock)?;
    Ok(superblock)
}

fn check_crc(superblock: &[u8]) -> Result<()> {
    if le32(superblock, FEATURE_OFFSET) & FEATURE_CHECKSUM == 0 {
        return Ok(());
    }
    let offset = le32(superblock, 32) as usize;
    let Some(covered) = superblock.get(..offset) else {
        return Err(field("checksum_offset").corrupt(offset, format!("at most {SUPERBLOCK_BYTES}")));
    };
    let computed = kernel_crc32(MAGIC, covered);
    field("crc").check_checksum(le32(superblock, offset), computed)
}

/// Up to the last segment of the first device: what lies behind is in none, and never used.
fn size_bytes(superblock: &[u8], log_block_bytes: u32) -> u64 {
    let second = DEVICES_OFFSET + DEVICE_BYTES;
    let segments = match superblock[second] {
        0 => le32(superblock, SEGMENTS_OFFSET),
        _ => le32(superblock, DEVICES_OFFSET + DEVICE_PATH_BYTES),
    };
    let first = u64::from(le32(superblock, FIRST_SEGMENT_OFFSET));
    (first + (u64::from(segments) << LOG_BLOCKS_PER_SEGMENT)) << log_block_bytes
}

/// The superblock's copies and the areas up to the main area.
///
/// Errors: `Io`, `Unsupported`, `Corrupt`.
pub(crate) fn layout(source: &dyn ReadAt) -> Result<Found> {
    let superblock = read_superblock(source)?;
    let log_block_bytes = le32(&superblock, 16);
    if !(12..=16).contains(&log_block_bytes) {
        return Err(field("log_blocksize").corrupt(log_block_bytes, "12 to 16"));
    }
    let log_blocks = le32(&superblock, 20);
    if log_blocks != LOG_BLOCKS_PER_SEGMENT {
        return Err(field("log_blocks_per_seg").corrupt(log_blocks, LOG_BLOCKS_PER_SEGMENT));
    }
    let mut layout = vec![LayoutRange {
        first_block: 0,
        blocks: SUPERBLOCKS,
        class: Class::Superblock,
    }];
    let mut end = SUPERBLOCKS;
    for area in &AREAS {
        let first_block = u64::from(le32(&superblock, area.start.1));
        let blocks = u64::from(le32(&superblock, area.segments.1)) << log_blocks;
        // Only the first area is aligned; each of the others begins where the last one ends.
        let follows = layout.len() == 1 && first_block >= end || first_block == end;
        if !follows {
            return Err(field(area.start.0).corrupt(first_block, format!("block {end}")));
        }
        if blocks == 0 {
            return Err(field(area.segments.0).corrupt(0, "at least 1"));
        }
        end = first_block + blocks;
        layout.push(LayoutRange {
            first_block,
            blocks,
            class: area.class,
        });
    }
    let main = u64::from(le32(&superblock, MAIN_START.1));
    let source_blocks = size(source)? >> log_block_bytes;
    if main == end && main > source_blocks && le64(&superblock, 36) > source_blocks {
        return Err(Error::Unsupported {
            kind: Kind::F2fs,
            found: format!("metadata up to block {main}, on several devices"),
            expected: format!("all of it on the first one, which has {source_blocks} blocks"),
        });
    }
    if main != end || main > source_blocks {
        let expected = format!("block {end} of {source_blocks}");
        return Err(field(MAIN_START.0).corrupt(main, expected));
    }
    Ok(Found {
        kind: Kind::F2fs,
        block_bytes: 1 << log_block_bytes,
        size_bytes: size_bytes(&superblock, log_block_bytes)
            .max(main << log_block_bytes)
            .min(size(source)?),
        layout,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `mkfs.f2fs` writes for 64 MiB, as far as the reader looks.
    fn image() -> Vec<u8> {
        let mut bytes = vec![0; 64 << 20];
        let fields = [
            (0, MAGIC),
            (16, 12),
            (20, 9),
            (52, 2),
            (56, 2),
            (60, 2),
            (64, 1),
            (76, 512),
            (80, 512 + 1024),
            (84, 512 + 2048),
            (88, 512 + 3072),
            (92, 512 + 3584),
        ];
        for (at, value) in fields {
            set(&mut bytes, at, value);
        }
        bytes
    }

    fn set(bytes: &mut [u8], at: usize, value: u32) {
        let at = SUPERBLOCK_OFFSET_BYTES as usize + at;
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    #[test]
    fn areas_follow_each_other_up_to_the_main_area() {
        let found = layout(&image()).expect("sound");
        let ranges: Vec<_> = found
            .layout
            .iter()
            .map(|range| (range.first_block, range.blocks, range.class))
            .collect();
        let expected = [
            (0, 2, Class::Superblock),
            (512, 1024, Class::Checkpoint),
            (1536, 1024, Class::SegmentInfoTable),
            (2560, 1024, Class::NodeAddressTable),
            (3584, 512, Class::SegmentSummary),
        ];
        assert_eq!(ranges, expected);
    }

    #[test]
    fn an_area_that_does_not_fit_is_named() {
        for (at, value, name) in [
            (16, 40, "log_blocksize"),
            (20, 31, "log_blocks_per_seg"),
            (56, 0, "segment_count_sit"),
            (60, u32::MAX, "ssa_blkaddr"),
            (76, 1, "cp_blkaddr"),
            (84, 7, "nat_blkaddr"),
            (92, u32::MAX, "main_blkaddr"),
        ] {
            let mut bytes = image();
            set(&mut bytes, at, value);
            let error = layout(&bytes).expect_err(name).to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn metadata_that_goes_on_on_another_device_is_not_called_broken() {
        let mut bytes = image();
        // `block_count`.
        set(&mut bytes, 36, 1 << 20);
        assert!(layout(&bytes).is_ok());
        bytes.truncate(14 << 20);
        let error = layout(&bytes).expect_err("too short").to_string();
        let expected = "found metadata up to block 4096, on several devices";
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn a_checksum_outside_the_superblock_is_named() {
        let mut bytes = image();
        set(&mut bytes, FEATURE_OFFSET, FEATURE_CHECKSUM);
        set(&mut bytes, 32, u32::MAX);
        let error = layout(&bytes).expect_err("no place for it").to_string();
        assert!(error.contains("checksum_offset"), "{error}");
    }
}
