//! xfs: allocation group headers and the internal log.
//!
//! Source: fs/xfs/libxfs/xfs_format.h, `struct xfs_dsb`, and the four header sectors
//! (`XFS_SB_DADDR`, `XFS_AGF_DADDR`, `XFS_AGI_DADDR`, `XFS_AGFL_DADDR`). Numbers are big-endian.

use iostep_model::Class;
use iostep_model::manifest::LayoutRange;

use crate::bytes::{be16, be32, be64, byte, kernel_crc32c, le32};
use crate::error::{DiskField, Error, Result};
use crate::source::{read, read_if_there, size};
use crate::{Detected, Found, Kind, ReadAt, ranges};

const MAGIC: &[u8] = b"XFSB";
const SB_CRC_OFFSET: usize = 224;

pub(crate) fn probe(source: &dyn ReadAt) -> Result<Option<Detected>> {
    let Some(sb) = read_if_there(source, 0, 512)? else {
        return Ok(None);
    };
    if !sb.starts_with(MAGIC) {
        return Ok(None);
    }
    let block_bytes = be32(&sb, 4);
    Ok(Some(Detected {
        kind: Kind::Xfs,
        block_bytes,
        size_bytes: be64(&sb, 8).checked_mul(u64::from(block_bytes)),
    }))
}

struct Superblock {
    block_bytes: u64,
    sector_bytes: u64,
    blocks: u64,
    ag_blocks: u64,
    ag_count: u64,
    log_start: u64,
    log_blocks: u64,
}

fn field(name: &'static str) -> DiskField {
    DiskField::superblock(Kind::Xfs, name)
}

fn power_of_two(name: &'static str, value: u64, low: u64, high: u64) -> Result<u64> {
    if value.is_power_of_two() && (low..=high).contains(&value) {
        return Ok(value);
    }
    Err(field(name).corrupt(value, format!("a power of two from {low} to {high}")))
}

fn check_crc(sb: &[u8]) -> Result<()> {
    let version = be16(sb, 100) & 0xF;
    if version < 5 {
        return Ok(());
    }
    let (head, rest) = sb.split_at(SB_CRC_OFFSET);
    let crc = kernel_crc32c(!0, head);
    let crc = kernel_crc32c(crc, &[0; 4]);
    let crc = !kernel_crc32c(crc, &rest[4..]);
    field("sb_crc").check_checksum(le32(sb, SB_CRC_OFFSET), crc)
}

fn read_superblock(source: &dyn ReadAt) -> Result<Superblock> {
    let start = read(source, 0, 512)?;
    if !start.starts_with(MAGIC) {
        return Err(Error::Unsupported {
            kind: Kind::Xfs,
            found: format!("magic {:#010x}", be32(&start, 0)),
            expected: "0x58465342".to_owned(),
        });
    }
    let sector_bytes = power_of_two("sb_sectsize", u64::from(be16(&start, 102)), 512, 32768)?;
    let sb = read(source, 0, sector_bytes as usize)?;
    check_crc(&sb)?;
    let block_bytes = power_of_two("sb_blocksize", u64::from(be32(&sb, 4)), 512, 65536)?;
    let blocks = be64(&sb, 8);
    let ag_blocks = u64::from(be32(&sb, 84));
    let ag_count = u64::from(be32(&sb, 88));
    let source_blocks = size(source)? / block_bytes;
    if blocks > source_blocks {
        return Err(field("sb_dblocks").corrupt(blocks, format!("at most {source_blocks}")));
    }
    // The last group may be short, but none may be empty; and 64 is XFS_MIN_AG_BLOCKS.
    if ag_blocks < 64 || ag_count == 0 || blocks.div_ceil(ag_blocks) != ag_count {
        let expected = format!("{ag_count} groups of {ag_blocks} blocks");
        return Err(field("sb_agcount").corrupt(format!("{blocks} blocks"), expected));
    }
    let agblklog = byte(&sb, 124);
    if agblklog >= 32 {
        return Err(field("sb_agblklog").corrupt(agblklog, "at most 31"));
    }
    let logstart = be64(&sb, 48);
    let log_ag = logstart >> agblklog;
    let log_start = log_ag
        .checked_mul(ag_blocks)
        .and_then(|first| first.checked_add(logstart & ((1 << agblklog) - 1)))
        .unwrap_or(u64::MAX);
    let log_blocks = if logstart == 0 {
        0
    } else {
        u64::from(be32(&sb, 96))
    };
    if log_start.saturating_add(log_blocks) > blocks {
        return Err(field("sb_logstart").corrupt(logstart, "a log inside the filesystem"));
    }
    Ok(Superblock {
        block_bytes,
        sector_bytes,
        blocks,
        ag_blocks,
        ag_count,
        log_start,
        log_blocks,
    })
}

/// Headers of every allocation group and the internal log, in sectors of the filesystem.
///
/// Errors: `Io`, `Unsupported`, `Corrupt`.
pub(crate) fn layout(source: &dyn ReadAt) -> Result<Found> {
    let sb = read_superblock(source)?;
    let block_sectors = (sb.block_bytes / sb.sector_bytes).max(1);
    let headers = [
        Class::Superblock,
        Class::FreeSpaceHeader,
        Class::InodeHeader,
        Class::FreeSpaceHeader,
    ];
    let mut layout = Vec::new();
    for group in 0..sb.ag_count {
        let first = group * sb.ag_blocks * block_sectors;
        for (sector, class) in (first..).zip(headers) {
            layout.push(LayoutRange {
                first_block: sector,
                blocks: 1,
                class,
            });
        }
    }
    layout.push(LayoutRange {
        first_block: sb.log_start * block_sectors,
        blocks: sb.log_blocks * block_sectors,
        class: Class::LogOther,
    });
    let limit = sb.blocks * block_sectors;
    layout.retain(|range| range.first_block < limit);
    let layout = ranges::sorted(layout).map_err(|overlap| {
        let found = format!("over the {} there", overlap.first.name());
        field("sb_logstart")
            .in_block(overlap.block)
            .corrupt(found, "free space")
    })?;
    Ok(Found {
        kind: Kind::Xfs,
        block_bytes: sb.sector_bytes as u32,
        // Compared with the source above.
        size_bytes: sb.blocks * sb.block_bytes,
        layout,
    })
}
