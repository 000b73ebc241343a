//! btrfs: the copies of the superblock. Everything else moves, and is named by its own headers.
//!
//! Source: include/uapi/linux/btrfs_tree.h, `struct btrfs_super_block`; `btrfs_sb_offset` in
//! fs/btrfs/super.h.

use iostep_model::Class;
use iostep_model::manifest::LayoutRange;

use crate::bytes::{kernel_crc32c, le16, le32, le64};
use crate::error::{DiskField, Error, Result};
use crate::source::{read, read_if_there, size};
use crate::{Detected, Found, Kind, ReadAt};

const SUPERBLOCK_BYTES: u64 = 4096;
const COPY_OFFSETS_BYTES: [u64; 3] = [64 << 10, 64 << 20, 256 << 30];
const MAGIC: &[u8] = b"_BHRfS_M";
const MAGIC_OFFSET: usize = 64;
const CSUM_TYPE_CRC32C: u16 = 0;

pub(crate) fn probe(source: &dyn ReadAt) -> Result<Option<Detected>> {
    let primary = read_if_there(source, COPY_OFFSETS_BYTES[0], SUPERBLOCK_BYTES as usize)?;
    Ok(primary
        .filter(|sb| sb[MAGIC_OFFSET..].starts_with(MAGIC))
        .map(|sb| Detected {
            kind: Kind::Btrfs,
            block_bytes: le32(&sb, 144),
            size_bytes: Some(le64(&sb, 112)),
        }))
}

fn check(sb: &[u8]) -> Result<()> {
    if !sb[MAGIC_OFFSET..].starts_with(MAGIC) {
        return Err(Error::Unsupported {
            kind: Kind::Btrfs,
            found: format!("magic {:#018x}", le64(sb, MAGIC_OFFSET)),
            expected: "_BHRfS_M".to_owned(),
        });
    }
    if le16(sb, 196) != CSUM_TYPE_CRC32C {
        return Ok(());
    }
    let computed = !kernel_crc32c(!0, &sb[32..]);
    DiskField::superblock(Kind::Btrfs, "csum").check_checksum(le32(sb, 0), computed)
}

/// The superblock's copies that fit the device, in blocks of 4096 bytes.
///
/// Errors: `Io`, `Unsupported`, `Corrupt`.
pub(crate) fn layout(source: &dyn ReadAt) -> Result<Found> {
    let sb = read(source, COPY_OFFSETS_BYTES[0], SUPERBLOCK_BYTES as usize)?;
    check(&sb)?;
    // dev_item.total_bytes: this device's share, which a shrunk filesystem does not fill.
    let device_bytes = le64(&sb, 209).min(size(source)?);
    let layout = COPY_OFFSETS_BYTES
        .into_iter()
        .filter(|offset| offset + SUPERBLOCK_BYTES <= device_bytes)
        .map(|offset| LayoutRange {
            first_block: offset / SUPERBLOCK_BYTES,
            blocks: 1,
            class: Class::Superblock,
        })
        .collect();
    Ok(Found {
        kind: Kind::Btrfs,
        block_bytes: SUPERBLOCK_BYTES as u32,
        size_bytes: device_bytes,
        layout,
    })
}
