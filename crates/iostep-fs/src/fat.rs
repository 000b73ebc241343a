//! FAT, by its boot sector only.
//!
//! Source: Microsoft, FAT32 File System Specification 1.03, section "Boot Sector and BPB".

use crate::bytes::{byte, le16, le32};
use crate::error::Result;
use crate::source::read_if_there;
use crate::{Detected, Kind, ReadAt};

pub(crate) fn probe(source: &dyn ReadAt) -> Result<Option<Detected>> {
    let Some(sector) = read_if_there(source, 0, 512)? else {
        return Ok(None);
    };
    let sector_bytes = le16(&sector, 11);
    let cluster_sectors = byte(&sector, 13);
    let named = [54, 82].iter().any(|&at| {
        sector
            .get(at..)
            .is_some_and(|name| name.starts_with(b"FAT"))
    });
    // A master boot record ends in 0x55AA as well; the name and a sane BPB tell them apart.
    if le16(&sector, 510) != 0xAA55
        || !named
        || !matches!(sector_bytes, 512 | 1024 | 2048 | 4096)
        || !cluster_sectors.is_power_of_two()
    {
        return Ok(None);
    }
    let sectors = match le16(&sector, 19) {
        0 => le32(&sector, 32),
        sectors => u32::from(sectors),
    };
    Ok(Some(Detected {
        kind: Kind::Fat,
        block_bytes: u32::from(sector_bytes) * u32::from(cluster_sectors),
        size_bytes: Some(u64::from(sectors) * u64::from(sector_bytes)),
    }))
}
