//! Directories: names in blocks, whatever index lies over them, and names kept in the inode.
//!
//! An index (htree) is a directory block whose entries span it whole, so reading every block as a
//! list of entries skips it (fs/ext4/ext4.h, `struct ext4_dir_entry_2`; fs/ext4/namei.c,
//! `struct dx_root`).

use super::blocks::{BlockMap, MapReader, place};
use super::inline;
use super::inode::Inode;
use crate::ReadAt;
use crate::bytes::{byte, le16, le32};
use crate::error::{DiskField, Result};

const HEADER_BYTES: usize = 8;
/// The parent's number, where `.` and `..` would be.
const INLINE_PARENT_BYTES: usize = 4;

/// Calls `entry` with the inode number and the name of everything in a directory but `.` and `..`.
///
/// Errors: `Io`; `Corrupt`, after the entries before the damage were given.
pub(crate) fn read<S: ReadAt>(
    reader: &mut MapReader<'_, S>,
    inode: &Inode,
    map: &BlockMap,
    entry: &mut impl FnMut(u32, &[u8]),
) -> Result<()> {
    let at = place(reader.superblock, inode, "rec_len");
    let has_file_type = reader.superblock.features.has_file_type();
    if inode.has_inline_data() {
        let in_i_block = inode.i_block().get(INLINE_PARENT_BYTES..).unwrap_or(&[]);
        read_entries(at, in_i_block, has_file_type, entry)?;
        return read_entries(at, inline::value(inode), has_file_type, entry);
    }
    // `i_size` says nothing about how many blocks hold entries that the map would not.
    for mapping in map.mappings.iter().filter(|mapping| !mapping.unwritten) {
        for block in mapping.fs_block..mapping.fs_block + mapping.blocks {
            let bytes = reader.block(at, block)?;
            read_entries(at.in_block(block), &bytes, has_file_type, entry)?;
        }
    }
    Ok(())
}

fn read_entries(
    at: DiskField,
    bytes: &[u8],
    has_file_type: bool,
    entry: &mut impl FnMut(u32, &[u8]),
) -> Result<()> {
    let mut rest = bytes;
    while rest.len() >= HEADER_BYTES {
        let rec_len = record_bytes(le16(rest, 4), bytes.len());
        let name_len = match has_file_type {
            true => usize::from(byte(rest, 6)),
            false => usize::from(le16(rest, 6)),
        };
        if rec_len < HEADER_BYTES || rec_len > rest.len() {
            let expected = format!("{HEADER_BYTES} to {}", rest.len());
            return Err(at.corrupt(rec_len, expected));
        }
        let (record, after) = rest.split_at(rec_len);
        let inode = le32(record, 0);
        if inode != 0 {
            let name = record.get(HEADER_BYTES..HEADER_BYTES + name_len);
            let field = "name_len";
            let name = name.ok_or_else(|| {
                let expected = format!("at most {}", rec_len - HEADER_BYTES);
                DiskField { field, ..at }.corrupt(name_len, expected)
            })?;
            if !matches!(name, b"." | b"..") {
                entry(inode, name);
            }
        }
        rest = after;
    }
    Ok(())
}

/// In blocks of 64 KiB the length of a whole block does not fit (`ext4_rec_len_from_disk`).
fn record_bytes(rec_len: u16, block_bytes: usize) -> usize {
    match rec_len {
        0 | u16::MAX if block_bytes == 1 << 16 => block_bytes,
        _ if block_bytes == 1 << 16 => {
            usize::from(rec_len & 0xFFFC) | usize::from(rec_len & 3) << 16
        }
        _ => usize::from(rec_len),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    fn names(bytes: &[u8]) -> (Vec<(u32, Vec<u8>)>, bool) {
        let mut found = Vec::new();
        let at = DiskField::superblock(Kind::Ext4, "rec_len");
        let whole = read_entries(at, bytes, true, &mut |inode, name| {
            found.push((inode, name.to_vec()));
        });
        (found, whole.is_ok())
    }

    #[test]
    fn dots_and_empty_entries_are_left_out() {
        let block = [
            &[2, 0, 0, 0, 12, 0, 1, 2, b'.', 0, 0, 0][..],
            &[0, 0, 0, 0, 12, 0, 1, 1, b'x', 0, 0, 0],
            &[9, 0, 0, 0, 16, 0, 3, 1, b'a', b'b', b'c', 0, 0, 0, 0, 0],
        ]
        .concat();
        assert_eq!(names(&block), (vec![(9, b"abc".to_vec())], true));
    }

    #[test]
    fn a_record_of_length_zero_ends_the_reading() {
        assert_eq!(
            names(&[9, 0, 0, 0, 0, 0, 1, 1, b'x', 0, 0, 0]),
            (vec![], false)
        );
    }

    #[test]
    fn a_name_longer_than_its_record_is_damage() {
        assert_eq!(
            names(&[9, 0, 0, 0, 12, 0, 5, 1, b'x', 0, 0, 0]),
            (vec![], false)
        );
    }
}
