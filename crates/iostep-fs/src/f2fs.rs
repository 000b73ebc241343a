//! f2fs, by its magic only.
//!
//! Source: include/linux/f2fs_fs.h, `struct f2fs_super_block`.

use crate::bytes::{le32, le64};
use crate::error::Result;
use crate::source::read_if_there;
use crate::{Detected, Kind, ReadAt};

const SUPERBLOCK_OFFSET_BYTES: u64 = 1024;
const MAGIC: u32 = 0xF2F5_2010;

pub(crate) fn probe(source: &dyn ReadAt) -> Result<Option<Detected>> {
    let Some(superblock) = read_if_there(source, SUPERBLOCK_OFFSET_BYTES, 1024)? else {
        return Ok(None);
    };
    let log_blocksize = le32(&superblock, 16);
    if le32(&superblock, 0) != MAGIC || !(9..=16).contains(&log_blocksize) {
        return Ok(None);
    }
    let block_bytes = 1 << log_blocksize;
    let block_count = le64(&superblock, 36);
    Ok(Some(Detected {
        kind: Kind::F2fs,
        block_bytes,
        size_bytes: block_count.checked_mul(u64::from(block_bytes)),
    }))
}
