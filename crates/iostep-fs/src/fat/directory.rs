//! Directories: entries of 32 bytes, and the long names before them.

use crate::bytes::{byte, le16};

pub(super) const ENTRY_BYTES: usize = 32;
/// `DELETED_FLAG`, include/uapi/linux/msdos_fs.h; a name that really begins with it has 0x05.
const DELETED: u8 = 0xE5;
const DELETED_ALIAS: u8 = 0x05;
const ATTRIBUTE_VOLUME: u8 = 0x08;
const ATTRIBUTE_DIRECTORY: u8 = 0x10;
/// `ATTR_EXT`: an entry that holds a part of a long name.
const ATTRIBUTE_LONG_NAME: u8 = 0x0F;
/// Of the first byte of a part: which part it is, and whether it is the last.
const PART_NUMBER: u8 = 0x3F;
const PART_LAST: u8 = 0x40;
const PART_UNITS: usize = 13;
/// 255 units, in parts of 13.
const MAX_PARTS: usize = 20;
/// `CASE_LOWER_BASE` and `CASE_LOWER_EXT`.
const LOWER_BASE: u8 = 0x08;
const LOWER_EXTENSION: u8 = 0x10;

/// A file or directory that a directory names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// UTF-8 for a long name; else the bytes of the code page.
    pub(super) name: Vec<u8>,
    /// True for a directory.
    pub(super) is_directory: bool,
    /// The first cluster; 0 if there is none.
    pub(super) first_cluster: u32,
}

/// Puts together what a directory's entries say, one after the other.
#[derive(Debug, Default)]
pub(super) struct Reader {
    units: Vec<u16>,
    /// The part that must come next, and the checksum of all.
    expected: u8,
    checksum: u8,
    ended: bool,
}

impl Reader {
    /// Takes an entry; gives the file if it ends one. Free entries, labels, `.` and `..` name none.
    pub(super) fn take(&mut self, entry: &[u8]) -> Option<Entry> {
        let first = byte(entry, 0);
        let attributes = byte(entry, 11);
        self.ended |= first == 0;
        if self.ended || first == DELETED {
            self.units.clear();
            return None;
        }
        if attributes & 0x3F == ATTRIBUTE_LONG_NAME {
            self.take_part(entry);
            return None;
        }
        let units = std::mem::take(&mut self.units);
        let short = entry.get(..11).unwrap_or(&[]);
        if attributes & ATTRIBUTE_VOLUME != 0 || first == b'.' {
            return None;
        }
        let whole = self.expected == 0 && self.checksum == checksum(short);
        let name = match long_name(&units) {
            Some(name) if whole => name,
            _ => short_name(short, byte(entry, 12)),
        };
        Some(Entry {
            name,
            is_directory: attributes & ATTRIBUTE_DIRECTORY != 0,
            first_cluster: u32::from(le16(entry, 26)) | u32::from(le16(entry, 20)) << 16,
        })
    }

    /// True after the entry that ends the directory.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// The parts come last first.
    fn take_part(&mut self, entry: &[u8]) {
        let number = byte(entry, 0) & PART_NUMBER;
        if byte(entry, 0) & PART_LAST != 0 {
            self.units = vec![0xFFFF; PART_UNITS * usize::from(number).min(MAX_PARTS)];
            self.checksum = byte(entry, 13);
        } else if number != self.expected || byte(entry, 13) != self.checksum {
            self.units.clear();
        }
        self.expected = number.saturating_sub(1);
        let start = usize::from(self.expected) * PART_UNITS;
        let places = (1..11)
            .step_by(2)
            .chain((14..26).step_by(2))
            .chain([28, 30]);
        let room = self.units.iter_mut().skip(start);
        for (unit, at) in room.zip(places) {
            *unit = le16(entry, at);
        }
    }
}

fn long_name(units: &[u16]) -> Option<Vec<u8>> {
    let end = units.iter().position(|unit| matches!(unit, 0 | 0xFFFF));
    let units = &units[..end.unwrap_or(units.len())];
    (!units.is_empty()).then(|| String::from_utf16_lossy(units).into_bytes())
}

/// `fat_checksum`, include/linux/msdos_fs.h.
fn checksum(short: &[u8]) -> u8 {
    short
        .iter()
        .fold(0u8, |sum, byte| sum.rotate_right(1).wrapping_add(*byte))
}

fn short_name(short: &[u8], case: u8) -> Vec<u8> {
    let (base, extension) = short.split_at(short.len().min(8));
    let part = |bytes: &[u8], is_lower| {
        let end = bytes
            .iter()
            .rposition(|b| *b != b' ')
            .map_or(0, |at| at + 1);
        match is_lower {
            true => bytes[..end].to_ascii_lowercase(),
            false => bytes[..end].to_vec(),
        }
    };
    let mut name = part(base, case & LOWER_BASE != 0);
    if name.first() == Some(&DELETED_ALIAS) {
        name[0] = DELETED;
    }
    let extension = part(extension, case & LOWER_EXTENSION != 0);
    if !extension.is_empty() {
        name.push(b'.');
        name.extend(extension);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(name: &[u8; 11], attributes: u8, case: u8, cluster: u32) -> [u8; 32] {
        let mut entry = [0; 32];
        entry[..11].copy_from_slice(name);
        (entry[11], entry[12]) = (attributes, case);
        entry[20..22].copy_from_slice(&((cluster >> 16) as u16).to_le_bytes());
        entry[26..28].copy_from_slice(&(cluster as u16).to_le_bytes());
        entry
    }

    fn part(first: u8, text: &str, checksum: u8) -> [u8; 32] {
        let mut entry = [0xFF; 32];
        (entry[0], entry[11], entry[12], entry[13]) = (first, 0x0F, 0, checksum);
        entry[26..28].fill(0);
        let units: Vec<u16> = text.encode_utf16().chain([0]).take(13).collect();
        let places = (1..11)
            .step_by(2)
            .chain((14..26).step_by(2))
            .chain([28, 30]);
        for (unit, at) in units.iter().zip(places) {
            entry[at..at + 2].copy_from_slice(&unit.to_le_bytes());
        }
        entry
    }

    fn names(entries: &[[u8; 32]]) -> Vec<(String, u32)> {
        let mut reader = Reader::default();
        let found = entries.iter().filter_map(|entry| reader.take(entry));
        found
            .map(|e| {
                (
                    String::from_utf8_lossy(&e.name).into_owned(),
                    e.first_cluster,
                )
            })
            .collect()
    }

    #[test]
    fn short_names_have_their_case_and_their_cluster() {
        let entries = [
            short(b"README  TXT", 0x20, 0x18, 0x0001_0002),
            short(b"NOEXT      ", 0x20, 0, 5),
            short(b"LABEL      ", 0x08, 0, 0),
            short(b".          ", 0x10, 0, 7),
        ];
        let expected = [("readme.txt".to_owned(), 0x1_0002), ("NOEXT".to_owned(), 5)];
        assert_eq!(names(&entries), expected);
    }

    #[test]
    fn a_long_name_is_put_together_from_its_parts() {
        let file = short(b"ALONGN~1DB ", 0x20, 0, 9);
        let sum = checksum(&file[..11]);
        let entries = [
            part(0x42, "ä.db", sum),
            part(0x01, "a long name, ", sum),
            file,
        ];
        assert_eq!(names(&entries), [("a long name, ä.db".to_owned(), 9)]);
    }

    #[test]
    fn parts_that_do_not_belong_are_left_out() {
        let file = short(b"ALONGN~1DB ", 0x20, 0, 9);
        let sum = checksum(&file[..11]);
        let short_one = [("ALONGN~1.DB".to_owned(), 9)];
        let other = [part(0x41, "other", sum.wrapping_add(1)), file];
        assert_eq!(names(&other), short_one);
        let missing = [part(0x42, "x", sum), file];
        assert_eq!(names(&missing), short_one);
        let gap = [part(0x43, "x", sum), part(0x01, "y", sum), file];
        assert_eq!(names(&gap), short_one);
    }

    #[test]
    fn nothing_comes_after_the_end() {
        let file = short(b"FILE       ", 0x20, 0, 9);
        assert!(names(&[[0; 32], file]).is_empty());
    }
}
