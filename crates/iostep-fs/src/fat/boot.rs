//! The boot sector, with its BIOS parameter block.

use iostep_model::Class;

use super::field;
use crate::bytes::{byte, le16, le32};
use crate::error::{Error, Result};
use crate::source::{read, read_if_there};
use crate::{Detected, Kind, ReadAt};

const BYTES: usize = 512;
const SIGNATURE: u16 = 0xAA55;
/// More clusters than this need entries of 16 bits (`MAX_FAT12`, fs/fat/fat.h).
const MAX_FAT12_CLUSTERS: u64 = 0xFF4;
/// `MAX_FAT16` and `MAX_FAT32`.
const MAX_FAT16_CLUSTERS: u64 = 0xFFF4;
const MAX_FAT32_CLUSTERS: u64 = 0x0FFF_FFF6;
/// The number of the first cluster.
pub(super) const FIRST_CLUSTER: u32 = 2;
const ENTRY_BYTES: u64 = 32;

/// How long an entry of the allocation table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 12 bits.
    Fat12,
    /// 16 bits.
    Fat16,
    /// 32 bits, of which 28 count.
    Fat32,
}

/// What the boot sector says about the geometry, validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootSector {
    /// `BPB_BytsPerSec`: 512 to 4096. A sector is the unit of everything here.
    pub sector_bytes: u32,
    /// `BPB_SecPerClus`.
    pub cluster_sectors: u32,
    /// `BPB_RsvdSecCnt`.
    pub reserved_sectors: u64,
    /// `BPB_NumFATs`: copies of the allocation table.
    pub tables: u8,
    /// The copy that counts, if only one does (`BPB_ExtFlags`); else the first.
    pub active_table: u8,
    /// Sectors of one copy.
    pub table_sectors: u64,
    /// Sectors of the root directory where it has a place of its own (FAT12, FAT16); else 0.
    pub root_sectors: u64,
    /// `BPB_RootClus` (FAT32); else 0.
    pub root_cluster: u32,
    /// `BPB_TotSec`.
    pub sectors: u64,
    /// How many clusters there are; the first has number 2.
    pub clusters: u32,
    /// The width of an entry.
    pub width: Width,
    /// `BPB_FSInfo` (FAT32); 0 if there is none.
    pub info_sector: u64,
    /// `BPB_BkBootSec` (FAT32); 0 if there is none.
    pub backup_sector: u64,
}

pub(crate) fn probe(source: &dyn ReadAt) -> Result<Option<Detected>> {
    let Some(sector) = read_if_there(source, 0, BYTES)? else {
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
    if le16(&sector, 510) != SIGNATURE
        || !named
        || !matches!(sector_bytes, 512 | 1024 | 2048 | 4096)
        || !cluster_sectors.is_power_of_two()
    {
        return Ok(None);
    }
    Ok(Some(Detected {
        kind: Kind::Fat,
        block_bytes: u32::from(sector_bytes) * u32::from(cluster_sectors),
        size_bytes: Some(total_sectors(&sector) * u64::from(sector_bytes)),
    }))
}

fn total_sectors(sector: &[u8]) -> u64 {
    match le16(sector, 19) {
        0 => u64::from(le32(sector, 32)),
        sectors => u64::from(sectors),
    }
}

impl BootSector {
    /// Reads the boot sector.
    ///
    /// Errors: `Io`, `Unsupported`, `Corrupt`.
    pub(super) fn read(source: &dyn ReadAt) -> Result<BootSector> {
        let sector = read(source, 0, BYTES)?;
        if probe(source)?.is_none() {
            return Err(Error::Unsupported {
                kind: Kind::Fat,
                found: "no boot sector".to_owned(),
                expected: "one that names FAT and ends in 0xAA55".to_owned(),
            });
        }
        BootSector::decode(&sector)
    }

    fn decode(sector: &[u8]) -> Result<BootSector> {
        let sector_bytes = u32::from(le16(sector, 11));
        let is_fat32 = le16(sector, 22) == 0;
        let fat32 = |value: u64| if is_fat32 { value } else { 0 };
        let flags = if is_fat32 { le16(sector, 40) } else { 0 };
        let mut boot = BootSector {
            sector_bytes,
            cluster_sectors: u32::from(byte(sector, 13)),
            reserved_sectors: u64::from(le16(sector, 14)),
            tables: byte(sector, 16),
            active_table: if flags & 0x80 == 0 {
                0
            } else {
                flags as u8 & 0xF
            },
            table_sectors: match le16(sector, 22) {
                0 => u64::from(le32(sector, 36)),
                sectors => u64::from(sectors),
            },
            root_sectors: (u64::from(le16(sector, 17)) * ENTRY_BYTES)
                .div_ceil(u64::from(sector_bytes.max(1))),
            root_cluster: if is_fat32 { le32(sector, 44) } else { 0 },
            sectors: total_sectors(sector),
            clusters: 0,
            width: Width::Fat32,
            info_sector: fat32(le16(sector, 48).into()),
            backup_sector: fat32(le16(sector, 50).into()),
        };
        boot.check_places()?;
        boot.count_clusters(is_fat32)?;
        Ok(boot)
    }

    fn check_places(&mut self) -> Result<()> {
        if self.reserved_sectors == 0 {
            return Err(field("BPB_RsvdSecCnt").corrupt(0, "at least 1"));
        }
        if self.tables == 0 || self.active_table >= self.tables {
            return Err(field("BPB_NumFATs").corrupt(self.tables, "at least one, and the active"));
        }
        // The kernel takes no notice of either where it cannot be.
        let inside = |sector: u64| {
            if sector < self.reserved_sectors {
                sector
            } else {
                0
            }
        };
        (self.info_sector, self.backup_sector) =
            (inside(self.info_sector), inside(self.backup_sector));
        if self.data_start() >= self.sectors {
            let expected = format!("more than {}", self.data_start());
            return Err(field("BPB_TotSec").corrupt(self.sectors, expected));
        }
        Ok(())
    }

    /// As `fat_fill_super` does: the table's length says what is FAT32, the number of clusters
    /// tells the others apart.
    fn count_clusters(&mut self, is_fat32: bool) -> Result<()> {
        let clusters = (self.sectors - self.data_start()) / u64::from(self.cluster_sectors);
        let (width, most) = match clusters {
            _ if is_fat32 => (Width::Fat32, MAX_FAT32_CLUSTERS),
            0..=MAX_FAT12_CLUSTERS => (Width::Fat12, MAX_FAT12_CLUSTERS),
            _ => (Width::Fat16, MAX_FAT16_CLUSTERS),
        };
        let entry_bits = match width {
            Width::Fat12 => 12,
            Width::Fat16 => 16,
            Width::Fat32 => 32,
        };
        let entries = self.table_sectors * u64::from(self.sector_bytes) * 8 / entry_bits;
        let held = entries.saturating_sub(u64::from(FIRST_CLUSTER)).min(most);
        if clusters > most || held == 0 {
            let expected = format!(
                "at most {most}, in a table of {} sectors",
                self.table_sectors
            );
            return Err(field("number of clusters").corrupt(clusters, expected));
        }
        self.width = width;
        // Clusters that the table has no entries for cannot be used.
        self.clusters = u32::try_from(clusters.min(held)).expect("at most 2^28");
        Ok(())
    }

    fn data_start(&self) -> u64 {
        self.reserved_sectors + self.table_sectors * u64::from(self.tables) + self.root_sectors
    }

    /// Where a cluster begins.
    pub(super) fn sector_of(&self, cluster: u32) -> u64 {
        let index = u64::from(cluster - FIRST_CLUSTER);
        self.data_start() + index * u64::from(self.cluster_sectors)
    }

    /// True for the number of a cluster.
    pub(super) fn has_cluster(&self, cluster: u32) -> bool {
        cluster >= FIRST_CLUSTER && cluster - FIRST_CLUSTER < self.clusters
    }

    /// Bytes of a cluster: at most 512 KiB.
    pub(super) fn cluster_bytes(&self) -> u64 {
        u64::from(self.cluster_sectors) * u64::from(self.sector_bytes)
    }

    /// Sector and class of what is known of the reserved sectors.
    pub(super) fn reserved_structures(&self) -> Vec<(u64, Class)> {
        let mut known = vec![(0, Class::Superblock)];
        let mut add = |sector, class| {
            let free = known.iter().all(|(taken, _)| *taken != sector);
            if free && sector < self.reserved_sectors {
                known.push((sector, class));
            }
        };
        if self.info_sector != 0 {
            add(self.info_sector, Class::FreeSpaceHeader);
        }
        if self.backup_sector != 0 {
            add(self.backup_sector, Class::Superblock);
            if self.info_sector != 0 {
                let backup = self.backup_sector + self.info_sector;
                add(backup, Class::FreeSpaceHeader);
            }
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `mkfs.fat` writes for 64 MiB, as far as it is looked at.
    fn boot_sector() -> Vec<u8> {
        let mut sector = vec![0; 512];
        sector[11..14].copy_from_slice(&[0x00, 0x02, 0x04]);
        sector[14..19].copy_from_slice(&[4, 0, 2, 0, 2]);
        sector[22..24].copy_from_slice(&128u16.to_le_bytes());
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

    #[test]
    fn the_number_of_clusters_tells_the_width() {
        let boot = BootSector::decode(&boot_sector()).expect("sound");
        assert_eq!((boot.width, boot.root_sectors), (Width::Fat16, 32));
        assert_eq!(boot.clusters, (131_072 - 4 - 256 - 32) / 4);
        let mut small = boot_sector();
        small[32..36].copy_from_slice(&16_000u32.to_le_bytes());
        let boot = BootSector::decode(&small).expect("sound");
        assert_eq!(boot.width, Width::Fat12);
    }

    #[test]
    fn impossible_values_are_named() {
        for (at, value, name) in [
            (14, 0, "BPB_RsvdSecCnt"),
            (16, 0, "BPB_NumFATs"),
            (33, 0, "BPB_TotSec"),
        ] {
            let mut sector = boot_sector();
            sector[at] = value;
            if at == 33 {
                sector[32..36].copy_from_slice(&200u32.to_le_bytes());
            }
            let error = BootSector::decode(&sector).expect_err(name).to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
