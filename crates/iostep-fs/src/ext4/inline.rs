//! Content kept behind the inode's fields, as the extended attribute `system.data`.
//!
//! Source: fs/ext4/inline.c; fs/ext4/xattr.h, `struct ext4_xattr_ibody_header`.

use super::inode::Inode;
use crate::bytes::{byte, le16, le32};

const MAGIC: u32 = 0xEA02_0000;
const MAGIC_BYTES: usize = 4;
const ENTRY_BYTES: usize = 16;
const INDEX_SYSTEM: u8 = 7;
const NAME: &[u8] = b"data";

/// The part of inline data that `i_block` had no room for; empty if there is none, or if the
/// attributes are damaged.
pub(crate) fn value(inode: &Inode) -> &[u8] {
    let attributes = inode.behind_fields();
    if le32(attributes, 0) != MAGIC {
        return &[];
    }
    // Value offsets count from the first entry.
    let body = attributes.get(MAGIC_BYTES..).unwrap_or(&[]);
    let mut rest = body;
    while le32(rest, 0) != 0 {
        let name_len = usize::from(byte(rest, 0));
        let name = rest.get(ENTRY_BYTES..ENTRY_BYTES + name_len);
        if byte(rest, 1) == INDEX_SYSTEM && name == Some(NAME) {
            let start = usize::from(le16(rest, 2));
            let size = le32(rest, 8) as usize;
            return body.get(start..start.saturating_add(size)).unwrap_or(&[]);
        }
        let next = (ENTRY_BYTES + name_len).next_multiple_of(4);
        rest = rest.get(next..).unwrap_or(&[]);
    }
    &[]
}
