//! ext4 and jbd2 blocks by their first bytes.

use iostep_model::Class;

/// `JBD2_MAGIC_NUMBER`, big-endian (include/linux/jbd2.h).
const JBD2_MAGIC: u32 = 0xc03b_3998;
/// `EXT4_EXT_MAGIC` (fs/ext4/ext4_extents.h).
const EXTENT_MAGIC: u16 = 0xf30a;
/// `EXT4_XATTR_MAGIC` (fs/ext4/xattr.h).
const ATTRIBUTE_MAGIC: u32 = 0xea02_0000;
/// The largest `file_type` of a directory entry, `EXT4_FT_SYMLINK`, and the checksum's 0xDE.
const MAX_FILE_TYPE: u8 = 7;
const CHECKSUM_TYPE: u8 = 0xde;
/// A directory entry without a name.
const MIN_ENTRY_BYTES: u16 = 8;

/// The kind of a block of the log itself; `None` for a copy of another block: jbd2 blanks the
/// magic in those.
pub(super) fn log_class(head: &[u8; 16]) -> Option<Class> {
    if be32(head, 0) != JBD2_MAGIC {
        return None;
    }
    match be32(head, 4) {
        1 => Some(Class::LogDescriptor),
        2 => Some(Class::LogCommit),
        3 | 4 => Some(Class::LogSuperblock),
        5 => Some(Class::LogRevoke),
        _ => None,
    }
}

/// The kind of a metadata block that no fixed range of the layout holds.
pub(super) fn header_class(head: &[u8; 16], block_bytes: u64) -> Option<Class> {
    if le16(head, 0) == EXTENT_MAGIC && le16(head, 2) <= le16(head, 4) {
        Some(Class::ExtentBlock)
    } else if le32(head, 0) == ATTRIBUTE_MAGIC {
        Some(Class::Attribute)
    } else if is_directory_entry(head, block_bytes) {
        Some(Class::Directory)
    } else {
        None
    }
}

/// `struct ext4_dir_entry_2`: inode, length of the entry, length of the name, type. The root of
/// a directory index begins with the entry of ".", an inner node with an empty entry that spans
/// the block.
fn is_directory_entry(head: &[u8; 16], block_bytes: u64) -> bool {
    let inode = le32(head, 0);
    let entry_bytes = le16(head, 4);
    let (name_bytes, file_type) = (head[6], head[7]);
    // 64 KiB blocks store a length of 65536 as 0 or 65535.
    let fits = u64::from(entry_bytes) <= block_bytes || entry_bytes == u16::MAX;
    let shaped = entry_bytes >= MIN_ENTRY_BYTES && (entry_bytes.is_multiple_of(4)) && fits;
    let named = u16::from(name_bytes) + MIN_ENTRY_BYTES <= entry_bytes;
    let known_type = file_type <= MAX_FILE_TYPE || file_type == CHECKSUM_TYPE;
    shaped && named && known_type && (inode != 0 || name_bytes == 0 || file_type != 0)
}

fn be32(bytes: &[u8; 16], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn le32(bytes: &[u8; 16], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn le16(bytes: &[u8; 16], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_the_log_are_told_by_their_type() {
        let mut head = [0; 16];
        head[..8].copy_from_slice(&[0xc0, 0x3b, 0x39, 0x98, 0, 0, 0, 2]);
        assert_eq!(log_class(&head), Some(Class::LogCommit));
        head[7] = 1;
        assert_eq!(log_class(&head), Some(Class::LogDescriptor));
        assert_eq!(log_class(&[0; 16]), None);
    }

    #[test]
    fn a_directory_block_begins_with_an_entry() {
        let dot = [2, 0, 0, 0, 12, 0, 1, 2, b'.', 0, 0, 0, 2, 0, 0, 0];
        assert_eq!(header_class(&dot, 4096), Some(Class::Directory));
        let index_node = [0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(header_class(&index_node, 4096), Some(Class::Directory));
        assert_eq!(header_class(&[0; 16], 4096), None);
        assert_eq!(header_class(&[0xff; 16], 4096), None);
    }

    #[test]
    fn an_extent_block_is_told_by_its_magic() {
        let head = [0x0a, 0xf3, 3, 0, 84, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(header_class(&head, 4096), Some(Class::ExtentBlock));
    }
}
