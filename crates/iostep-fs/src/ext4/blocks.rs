//! Where an inode's content lies: what extent trees and indirect blocks have in common.

use std::collections::HashSet;

use super::inode::Inode;
use super::superblock::Superblock;
use crate::ReadAt;
use crate::error::{DiskField, Result};

/// A run of a file's blocks that is a run on the device too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First block in the file.
    pub file_block: u64,
    /// First block on the device.
    pub fs_block: u64,
    pub blocks: u64,
    /// Allocated but never written: it reads as zeros, whatever the device holds.
    pub unwritten: bool,
}

/// All of an inode's blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockMap {
    /// The content, in the order of the file.
    pub mappings: Vec<Mapping>,
    /// The blocks of the map itself: extent tree or indirect blocks.
    pub tree: Vec<u64>,
}

impl BlockMap {
    /// Adds a run, or lengthens the last one.
    pub(crate) fn push(&mut self, next: Mapping) {
        if let Some(last) = self.mappings.last_mut()
            && last.unwritten == next.unwritten
            && last.file_block + last.blocks == next.file_block
            && last.fs_block + last.blocks == next.fs_block
        {
            last.blocks += next.blocks;
        } else {
            self.mappings.push(next);
        }
    }
}

/// Reads maps, and each block of a map at most once: a block belongs to one map, so whoever asks
/// for it again is broken. That bounds the work on hostile input by the filesystem's size.
#[derive(Debug)]
pub(crate) struct MapReader<'a, S> {
    pub(crate) source: &'a S,
    pub(crate) superblock: &'a Superblock,
    seen: HashSet<u64>,
}

impl<'a, S: ReadAt> MapReader<'a, S> {
    pub(crate) fn new(source: &'a S, superblock: &'a Superblock) -> MapReader<'a, S> {
        MapReader {
            source,
            superblock,
            seen: HashSet::new(),
        }
    }

    /// Reads a block of the filesystem's own structures, once.
    ///
    /// Errors: `Io`; `Corrupt` if it is outside the filesystem or was read before.
    pub(crate) fn block(&mut self, place: DiskField, block: u64) -> Result<Vec<u8>> {
        let offset_bytes = self.superblock.offset_bytes(place, block)?;
        if !self.seen.insert(block) {
            return Err(place.corrupt(
                format!("block {block}, which is in use elsewhere"),
                "a block of its own",
            ));
        }
        let bytes = self.superblock.block_bytes as usize;
        crate::source::read(self.source, offset_bytes, bytes)
    }

    /// `Corrupt` unless the run lies inside the filesystem.
    pub(crate) fn check_run(&self, place: DiskField, first: u64, blocks: u64) -> Result<()> {
        let end = first.saturating_add(blocks);
        if first >= u64::from(self.superblock.first_data_block) && end <= self.superblock.blocks {
            return Ok(());
        }
        Err(place.corrupt(
            format!("blocks {first} to {}", end.saturating_sub(1)),
            format!("inside the filesystem's {} blocks", self.superblock.blocks),
        ))
    }
}

/// The place of a field in an inode's map.
pub(crate) fn place(superblock: &Superblock, inode: &Inode, field: &'static str) -> DiskField {
    DiskField::superblock(superblock.kind, field).of_inode(u64::from(inode.number))
}
