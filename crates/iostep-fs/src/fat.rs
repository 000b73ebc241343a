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

#[cfg(test)]
mod tests {
    use super::*;

    /// What `mkfs.vfat` writes for 64 MiB, as far as the probe looks.
    fn boot_sector() -> Vec<u8> {
        let mut sector = vec![0; 512];
        sector[11..14].copy_from_slice(&[0x00, 0x02, 0x04]);
        sector[32..36].copy_from_slice(&131_072u32.to_le_bytes());
        sector[54..62].copy_from_slice(b"FAT16   ");
        sector[510..].copy_from_slice(&[0x55, 0xAA]);
        sector
    }

    #[test]
    fn a_boot_sector_tells_cluster_and_size() {
        let expected = Detected {
            kind: Kind::Fat,
            block_bytes: 2048,
            size_bytes: Some(64 << 20),
        };
        assert_eq!(probe(&boot_sector()).expect("read"), Some(expected));
    }

    #[test]
    fn a_master_boot_record_is_no_filesystem() {
        let mut sector = boot_sector();
        sector[54..62].fill(0);
        assert_eq!(probe(&sector).expect("read"), None);
    }
}
