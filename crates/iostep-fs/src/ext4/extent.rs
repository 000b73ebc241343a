//! Extent trees.
//!
//! Source: fs/ext4/ext4_extents.h; `ext4_extent_block_csum` in fs/ext4/extents.c.

use super::blocks::{BlockMap, MapReader, Mapping, place};
use super::inode::Inode;
use crate::ReadAt;
use crate::bytes::{kernel_crc32c, le16, le32};
use crate::error::{DiskField, Result};

const MAGIC: u16 = 0xF30A;
const ENTRY_BYTES: usize = 12;
const MAX_DEPTH: u16 = 5;
/// A longer `ee_len` marks an extent that was preallocated and not written (`EXT_INIT_MAX_LEN`).
const INIT_MAX_LEN: u16 = 1 << 15;

/// Reads an inode's whole extent tree.
///
/// Errors: `Io`; `Corrupt` for a bad magic, checksum, depth, order or block number.
pub(crate) fn read<S: ReadAt>(reader: &mut MapReader<'_, S>, inode: &Inode) -> Result<BlockMap> {
    let mut walk = Walk {
        inode,
        map: BlockMap::default(),
        next_file_block: 0,
    };
    let root = inode.i_block();
    // An inode that was never given a tree has zeros there.
    if root.iter().all(|&byte| byte == 0) {
        return Ok(walk.map);
    }
    let at = place(reader.superblock, inode, "eh_magic");
    walk.node(reader, at, root, None)?;
    Ok(walk.map)
}

struct Walk<'a> {
    inode: &'a Inode,
    map: BlockMap,
    /// Extents come in the order of the file; this is where the next may start.
    next_file_block: u64,
}

impl Walk<'_> {
    /// `depth` is what the parent promised; the root promises itself.
    fn node<S: ReadAt>(
        &mut self,
        reader: &mut MapReader<'_, S>,
        at: DiskField,
        bytes: &[u8],
        depth: Option<u16>,
    ) -> Result<()> {
        let header = Header::decode(at, bytes)?;
        let field = |field| DiskField { field, ..at };
        match depth {
            Some(depth) if header.eh_depth != depth => {
                return Err(field("eh_depth").corrupt(header.eh_depth, depth));
            }
            None if header.eh_depth > MAX_DEPTH => {
                let expected = format!("at most {MAX_DEPTH}");
                return Err(field("eh_depth").corrupt(header.eh_depth, expected));
            }
            _ => {}
        }
        let entries = bytes
            .chunks_exact(ENTRY_BYTES)
            .skip(1)
            .take(usize::from(header.eh_entries));
        for entry in entries {
            match header.eh_depth {
                0 => self.extent(reader, at, entry)?,
                depth => self.index(reader, at, entry, depth - 1)?,
            }
        }
        Ok(())
    }

    fn extent<S: ReadAt>(
        &mut self,
        reader: &MapReader<'_, S>,
        at: DiskField,
        entry: &[u8],
    ) -> Result<()> {
        let ee_len = le16(entry, 4);
        let unwritten = ee_len > INIT_MAX_LEN;
        let blocks = u64::from(if unwritten {
            ee_len - INIT_MAX_LEN
        } else {
            ee_len
        });
        let file_block = u64::from(le32(entry, 0));
        let field = |field| DiskField { field, ..at };
        if blocks == 0 {
            return Err(field("ee_len").corrupt(0, "at least 1"));
        }
        if file_block < self.next_file_block {
            let expected = format!("at least {}", self.next_file_block);
            return Err(field("ee_block").corrupt(file_block, expected));
        }
        self.next_file_block = file_block + blocks;
        let fs_block = u64::from(le32(entry, 8)) | u64::from(le16(entry, 6)) << 32;
        reader.check_run(field("ee_start"), fs_block, blocks)?;
        self.map.push(Mapping {
            file_block,
            fs_block,
            blocks,
            unwritten,
        });
        Ok(())
    }

    fn index<S: ReadAt>(
        &mut self,
        reader: &mut MapReader<'_, S>,
        at: DiskField,
        entry: &[u8],
        depth: u16,
    ) -> Result<()> {
        let block = u64::from(le32(entry, 4)) | u64::from(le16(entry, 8)) << 32;
        let field = "ei_leaf";
        let bytes = reader.block(DiskField { field, ..at }, block)?;
        self.map.tree.push(block);
        let at = at.in_block(block);
        check_tail(reader, self.inode, at, &bytes)?;
        self.node(reader, at, &bytes, Some(depth))
    }
}

struct Header {
    eh_entries: u16,
    eh_depth: u16,
}

impl Header {
    fn decode(at: DiskField, bytes: &[u8]) -> Result<Header> {
        let eh_magic = le16(bytes, 0);
        if eh_magic != MAGIC {
            let found = format!("{eh_magic:#06x}");
            return Err(at.corrupt(found, format!("{MAGIC:#06x}")));
        }
        let eh_entries = le16(bytes, 2);
        let room = bytes.len() / ENTRY_BYTES - 1;
        if usize::from(eh_entries) > room {
            let field = "eh_entries";
            return Err(DiskField { field, ..at }.corrupt(eh_entries, format!("at most {room}")));
        }
        Ok(Header {
            eh_entries,
            eh_depth: le16(bytes, 6),
        })
    }
}

/// The checksum lies behind the last entry that the block has room for.
fn check_tail<S>(
    reader: &MapReader<'_, S>,
    inode: &Inode,
    at: DiskField,
    bytes: &[u8],
) -> Result<()> {
    let Some(seed) = inode.checksum_seed(reader.superblock) else {
        return Ok(());
    };
    let eh_max = usize::from(le16(bytes, 4));
    let tail = ENTRY_BYTES * (eh_max + 1);
    let Some(covered) = bytes.get(..tail).filter(|_| tail + 4 <= bytes.len()) else {
        let field = "eh_max";
        let room = bytes.len() / ENTRY_BYTES - 1;
        return Err(DiskField { field, ..at }.corrupt(eh_max, format!("at most {room}")));
    };
    let field = "et_checksum";
    DiskField { field, ..at }.check_checksum(le32(bytes, tail), kernel_crc32c(seed, covered))
}
