//! nilfs2, by its magic only.
//!
//! Source: include/uapi/linux/nilfs2_ondisk.h, `struct nilfs_super_block`.

use crate::bytes::{le16, le32, le64};
use crate::error::Result;
use crate::source::read_if_there;
use crate::{Detected, Kind, ReadAt};

const SUPERBLOCK_OFFSET_BYTES: u64 = 1024;
const MAGIC: u16 = 0x3434;

pub(crate) fn probe(source: &dyn ReadAt) -> Result<Option<Detected>> {
    let Some(superblock) = read_if_there(source, SUPERBLOCK_OFFSET_BYTES, 1024)? else {
        return Ok(None);
    };
    let log_block_size = le32(&superblock, 20);
    // The magic has only two bytes, so the block size must make sense too.
    if le16(&superblock, 6) != MAGIC || log_block_size > 6 {
        return Ok(None);
    }
    Ok(Some(Detected {
        kind: Kind::Nilfs2,
        block_bytes: 1024 << log_block_size,
        size_bytes: Some(le64(&superblock, 32)),
    }))
}
