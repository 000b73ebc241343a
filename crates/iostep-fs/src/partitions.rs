//! Partition tables of a whole disk's image: GPT, and MBR with its logical partitions.
//!
//! Source: UEFI Specification 2.10, sections 5.2 (MBR) and 5.3 (GPT); for logical partitions
//! `parse_extended` in block/partitions/msdos.c of the kernel.

use crate::ReadAt;
use crate::bytes::{byte, kernel_crc32, le16, le32, le64};
use crate::error::Result;
use crate::source::{read_if_there, size};

/// A partition, as its table has it: it may reach over the end of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// As the kernel counts: of a GPT its entry's place from 1 on, logical ones of an MBR from 5 on.
    pub number: u32,
    pub start_bytes: u64,
    pub size_bytes: u64,
}

/// Of an MBR, whatever the disk's sectors are: an image does not tell.
const SECTOR_BYTES: u64 = 512;
const BOOT_SIGNATURE: u16 = 0xAA55;
const BOOT_SIGNATURE_OFFSET: usize = 510;
const ENTRIES_OFFSET: usize = 446;
const ENTRY_BYTES: usize = 16;
/// Says that the table is a GPT.
const TYPE_PROTECTIVE: u8 = 0xEE;
const TYPES_EXTENDED: [u8; 3] = [0x05, 0x0F, 0x85];
/// More than any table has; a chain of logical partitions may lead back to itself.
const MAX_LOGICAL: u32 = 252;

const GPT_MAGIC: &[u8] = b"EFI PART";
const GPT_SECTOR_BYTES: [u64; 2] = [512, 4096];
const GPT_HEADER_BYTES: usize = 512;
/// The least that an entry and a header may have.
const GPT_MIN_ENTRY_BYTES: u32 = 128;
const GPT_MIN_HEADER_BYTES: usize = 92;
/// Bytes of all entries: 128 entries take 16 KiB.
const GPT_MAX_TABLE_BYTES: u64 = 1 << 20;

/// The partitions of a disk, by number; `None` if it has no table.
///
/// A filesystem on the whole disk may look like an MBR: [`crate::detect`] it first.
/// Of a GPT with a wrong checksum its copy at the end is taken.
/// Errors: `Io`.
pub fn partitions<S: ReadAt>(source: &S) -> Result<Option<Vec<Partition>>> {
    let Some(boot) = read_if_there(source, 0, SECTOR_BYTES as usize)? else {
        return Ok(None);
    };
    if le16(&boot, BOOT_SIGNATURE_OFFSET) != BOOT_SIGNATURE {
        return Ok(None);
    }
    let entries = entries_of(&boot);
    if entries.iter().any(|entry| entry.kind == TYPE_PROTECTIVE) {
        return gpt(source);
    }
    mbr(source, &entries)
}

/// An entry of an MBR, in sectors.
#[derive(Clone, Copy, Debug)]
struct Entry {
    boot: u8,
    kind: u8,
    start: u64,
    sectors: u64,
}

impl Entry {
    fn is_used(&self) -> bool {
        self.kind != 0 && self.sectors > 0
    }

    fn is_extended(&self) -> bool {
        TYPES_EXTENDED.contains(&self.kind)
    }

    /// The partition, where the entry counts from `from`.
    fn partition(&self, number: u32, from: u64) -> Partition {
        Partition {
            number,
            start_bytes: (from + self.start) * SECTOR_BYTES,
            size_bytes: self.sectors * SECTOR_BYTES,
        }
    }
}

fn entries_of(sector: &[u8]) -> [Entry; 4] {
    [0, 1, 2, 3].map(|place| {
        let entry = &sector[ENTRIES_OFFSET + place * ENTRY_BYTES..];
        Entry {
            boot: byte(entry, 0),
            kind: byte(entry, 4),
            start: le32(entry, 8).into(),
            sectors: le32(entry, 12).into(),
        }
    })
}

fn mbr(source: &dyn ReadAt, entries: &[Entry; 4]) -> Result<Option<Vec<Partition>>> {
    // Boot code and filesystems end with the same signature; only flags of entries are 0 or 0x80.
    let is_table = entries.iter().all(|entry| matches!(entry.boot, 0 | 0x80));
    if !is_table || !entries.iter().any(Entry::is_used) {
        return Ok(None);
    }
    let mut found = Vec::new();
    for (number, entry) in (1..).zip(entries).filter(|(_, entry)| entry.is_used()) {
        match entry.is_extended() {
            // It is not counted among the logical ones, which have no fifth place before them.
            true => logical(source, *entry, &mut found)?,
            false => found.push(entry.partition(number, 0)),
        }
    }
    found.sort_by_key(|partition| partition.number);
    Ok(Some(found))
}

/// Each logical partition has a table of its own: itself, counted from that table, and the next
/// table, counted from the first.
fn logical(source: &dyn ReadAt, extended: Entry, found: &mut Vec<Partition>) -> Result<()> {
    let mut table = extended.start;
    let mut number = 5;
    for _ in 0..MAX_LOGICAL {
        let sector = read_if_there(source, table * SECTOR_BYTES, SECTOR_BYTES as usize)?;
        let Some(sector) = sector else {
            return Ok(());
        };
        if le16(&sector, BOOT_SIGNATURE_OFFSET) != BOOT_SIGNATURE {
            return Ok(());
        }
        let entries = entries_of(&sector);
        let used = entries.iter().filter(|entry| entry.is_used());
        for entry in used.clone().filter(|entry| !entry.is_extended()) {
            found.push(entry.partition(number, table));
            number += 1;
        }
        match used.clone().find(|entry| entry.is_extended()) {
            Some(next) => table = extended.start + next.start,
            None => return Ok(()),
        }
    }
    Ok(())
}

fn gpt(source: &dyn ReadAt) -> Result<Option<Vec<Partition>>> {
    for sector_bytes in GPT_SECTOR_BYTES {
        let last = (size(source)? / sector_bytes).saturating_sub(1);
        for header in [1, last] {
            if let Some(found) = gpt_at(source, sector_bytes, header)? {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

fn gpt_at(source: &dyn ReadAt, sector_bytes: u64, at: u64) -> Result<Option<Vec<Partition>>> {
    let Some(header) = read_if_there(source, at * sector_bytes, GPT_HEADER_BYTES)? else {
        return Ok(None);
    };
    let header_bytes = le32(&header, 12) as usize;
    let is_header = header.starts_with(GPT_MAGIC)
        && (GPT_MIN_HEADER_BYTES..=GPT_HEADER_BYTES).contains(&header_bytes)
        && le64(&header, 24) == at;
    if !is_header || header_checksum(&header[..header_bytes]) != le32(&header, 16) {
        return Ok(None);
    }
    let (count, entry_bytes) = (le32(&header, 80), le32(&header, 84));
    let table_bytes = u64::from(count) * u64::from(entry_bytes);
    let start = le64(&header, 72).checked_mul(sector_bytes);
    let is_bounded = table_bytes <= GPT_MAX_TABLE_BYTES && entry_bytes >= GPT_MIN_ENTRY_BYTES;
    let Some(start) = start.filter(|_| is_bounded) else {
        return Ok(None);
    };
    let Some(table) = read_if_there(source, start, table_bytes as usize)? else {
        return Ok(None);
    };
    if checksum(&table) != le32(&header, 88) {
        return Ok(None);
    }
    let entries = (1..).zip(table.chunks_exact(entry_bytes as usize));
    Ok(Some(
        entries
            .filter_map(|(number, entry)| gpt_partition(number, entry, sector_bytes))
            .collect(),
    ))
}

/// `None` for an entry that is not used.
fn gpt_partition(number: u32, entry: &[u8], sector_bytes: u64) -> Option<Partition> {
    let (first, last) = (le64(entry, 32), le64(entry, 40));
    if entry[..16].iter().all(|byte| *byte == 0) {
        return None;
    }
    let sectors = last.checked_sub(first)?.checked_add(1)?;
    Some(Partition {
        number,
        start_bytes: first.checked_mul(sector_bytes)?,
        size_bytes: sectors.checked_mul(sector_bytes)?,
    })
}

/// A header's checksum, which is taken with its own field as zero.
fn header_checksum(header: &[u8]) -> u32 {
    let sum = kernel_crc32(!0, &header[..16]);
    let sum = kernel_crc32(sum, &[0; 4]);
    !kernel_crc32(sum, &header[20..])
}

fn checksum(bytes: &[u8]) -> u32 {
    !kernel_crc32(!0, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn entry(disk: &mut [u8], table: u64, place: usize, kind: u8, start: u32, sectors: u32) {
        let table = &mut disk[(table * SECTOR_BYTES) as usize..];
        table[510..512].copy_from_slice(&BOOT_SIGNATURE.to_le_bytes());
        let entry = &mut table[ENTRIES_OFFSET + place * ENTRY_BYTES..][..ENTRY_BYTES];
        entry[4] = kind;
        entry[8..12].copy_from_slice(&start.to_le_bytes());
        entry[12..16].copy_from_slice(&sectors.to_le_bytes());
    }

    fn found(disk: &Vec<u8>) -> Option<Vec<(u32, u64, u64)>> {
        let all = partitions(disk).expect("no I/O error")?;
        let sectors = |bytes| bytes / SECTOR_BYTES;
        Some(
            all.iter()
                .map(|it| (it.number, sectors(it.start_bytes), sectors(it.size_bytes)))
                .collect(),
        )
    }

    #[test]
    fn logical_partitions_count_from_five_and_from_their_own_tables() {
        let mut disk = vec![0; 8 * MIB as usize];
        entry(&mut disk, 0, 0, 0x83, 2048, 2048);
        entry(&mut disk, 0, 2, 0x05, 4096, 8192);
        entry(&mut disk, 4096, 0, 0x83, 63, 1000);
        entry(&mut disk, 4096, 1, 0x05, 2048, 2048);
        entry(&mut disk, 4096 + 2048, 0, 0x82, 64, 900);
        let expected = [(1, 2048, 2048), (5, 4159, 1000), (6, 6208, 900)];
        assert_eq!(found(&disk).as_deref(), Some(&expected[..]));
        // The last table leads back to the first one.
        entry(&mut disk, 4096 + 2048, 1, 0x05, 0, 2048);
        assert_eq!(
            found(&disk).expect("a table").len(),
            1 + MAX_LOGICAL as usize
        );
    }

    #[test]
    fn what_is_no_table_has_no_partitions() {
        assert_eq!(found(&vec![0; 511]), None);
        assert_eq!(found(&vec![0; MIB as usize]), None);
        let mut disk = vec![0; MIB as usize];
        entry(&mut disk, 0, 0, 0x83, 2048, 0);
        assert_eq!(found(&disk), None);
        entry(&mut disk, 0, 0, 0x83, 2048, 5);
        disk[ENTRIES_OFFSET] = 0x33;
        assert_eq!(found(&disk), None);
    }

    /// A GPT with entries of 128 bytes, and its copy at the end.
    fn gpt_disk(sector_bytes: u64, parts: &[(usize, u64, u64)]) -> Vec<u8> {
        let mut disk = vec![0; 4 * MIB as usize];
        entry(&mut disk, 0, 0, TYPE_PROTECTIVE, 1, u32::MAX);
        let mut table = vec![0; 128 * 128];
        for (place, first, last) in parts {
            let entry = &mut table[place * 128..][..128];
            entry[0] = 1;
            entry[32..40].copy_from_slice(&first.to_le_bytes());
            entry[40..48].copy_from_slice(&last.to_le_bytes());
        }
        let last = disk.len() as u64 / sector_bytes - 1;
        for (at, start) in [(1, 2), (last, last - 40)] {
            let place = (start * sector_bytes) as usize;
            disk[place..place + table.len()].copy_from_slice(&table);
            let mut header = [0; 92];
            header[..8].copy_from_slice(GPT_MAGIC);
            header[12..16].copy_from_slice(&92u32.to_le_bytes());
            header[24..32].copy_from_slice(&at.to_le_bytes());
            header[72..80].copy_from_slice(&start.to_le_bytes());
            header[80..84].copy_from_slice(&128u32.to_le_bytes());
            header[84..88].copy_from_slice(&128u32.to_le_bytes());
            header[88..92].copy_from_slice(&checksum(&table).to_le_bytes());
            let sum = header_checksum(&header);
            header[16..20].copy_from_slice(&sum.to_le_bytes());
            let place = (at * sector_bytes) as usize;
            disk[place..place + 92].copy_from_slice(&header);
        }
        disk
    }

    #[test]
    fn a_gpt_of_either_sector_size_is_read_and_its_copy_where_it_is_broken() {
        for sector_bytes in GPT_SECTOR_BYTES {
            let mut disk = gpt_disk(sector_bytes, &[(0, 40, 47), (3, 48, 48)]);
            let unit = sector_bytes / SECTOR_BYTES;
            let expected = [(1, 40 * unit, 8 * unit), (4, 48 * unit, unit)];
            assert_eq!(found(&disk).as_deref(), Some(&expected[..]));
            disk[2 * sector_bytes as usize + 40] ^= 1;
            assert_eq!(found(&disk).as_deref(), Some(&expected[..]));
            let end = disk.len() - sector_bytes as usize;
            disk[end + 20] ^= 1;
            assert_eq!(found(&disk), None);
        }
    }

    #[test]
    fn entries_that_are_hostile_are_left_out() {
        let disk = gpt_disk(512, &[(0, 9, 8), (1, 0, u64::MAX), (2, 1 << 60, 1 << 60)]);
        assert_eq!(found(&disk), Some(Vec::new()));
    }
}
