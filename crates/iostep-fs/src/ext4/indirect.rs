//! Block maps of ext2 and ext3: twelve direct blocks, then one, two and three levels of blocks of
//! block numbers.
//!
//! Source: fs/ext4/indirect.c, `ext4_block_to_path`.

use super::blocks::{BlockMap, MapReader, Mapping, place};
use super::inode::Inode;
use crate::ReadAt;
use crate::bytes::le32;
use crate::error::{DiskField, Result};

const DIRECT_BLOCKS: usize = 12;
const POINTER_BYTES: usize = 4;
const LEVELS: [u32; 3] = [1, 2, 3];

/// Reads an inode's whole block map.
///
/// Errors: `Io`; `Corrupt` for a block number outside the filesystem or one used twice.
pub(crate) fn read<S: ReadAt>(reader: &mut MapReader<'_, S>, inode: &Inode) -> Result<BlockMap> {
    let pointers: Vec<u32> = inode
        .i_block()
        .chunks_exact(POINTER_BYTES)
        .map(|pointer| le32(pointer, 0))
        .collect();
    let at = place(reader.superblock, inode, "i_block");
    let mut walk = Walk {
        map: BlockMap::default(),
        file_block: 0,
    };
    for &pointer in &pointers[..DIRECT_BLOCKS] {
        walk.pointer(reader, at, pointer, 0)?;
    }
    for (&pointer, level) in pointers[DIRECT_BLOCKS..].iter().zip(LEVELS) {
        walk.pointer(reader, at, pointer, level)?;
    }
    Ok(walk.map)
}

struct Walk {
    map: BlockMap,
    file_block: u64,
}

impl Walk {
    fn pointer<S: ReadAt>(
        &mut self,
        reader: &mut MapReader<'_, S>,
        at: DiskField,
        pointer: u32,
        level: u32,
    ) -> Result<()> {
        let per_block = u64::from(reader.superblock.block_bytes) / POINTER_BYTES as u64;
        let fs_block = u64::from(pointer);
        if pointer == 0 {
            self.file_block += per_block.pow(level);
        } else if level == 0 {
            reader.check_run(at, fs_block, 1)?;
            self.map.push(Mapping {
                file_block: self.file_block,
                fs_block,
                blocks: 1,
                unwritten: false,
            });
            self.file_block += 1;
        } else {
            let bytes = reader.block(at, fs_block)?;
            self.map.tree.push(fs_block);
            for pointer in bytes.chunks_exact(POINTER_BYTES) {
                self.pointer(reader, at.in_block(fs_block), le32(pointer, 0), level - 1)?;
            }
        }
        Ok(())
    }
}
