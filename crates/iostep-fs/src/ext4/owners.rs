//! The owner of every block: a walk over all inodes in use, then over all directories.

use std::collections::HashSet;

use iostep_model::Class;

use super::blocks::{BlockMap, MapReader};
use super::inode::Inode;
use super::{Ext4, ROOT_INODE, directory, group, tree_class};
use crate::ReadAt;
use crate::error::{DiskField, Error, Result};
use crate::owner::{Builder, NO_FILE_BLOCK, OwnerMap, Range};

/// Walks the whole filesystem.
///
/// Memory is that of the [`OwnerMap`], some 500 bytes a directory, and 16 bytes for each block of
/// directories, attributes, extent trees and indirect blocks. An inode or a directory that cannot be read is put in
/// [`OwnerMap::problems`], and the walk goes on.
/// Errors: `Io` or `Corrupt` for the layout itself, or for the problem that is one too many;
/// `Unsupported` for more runs of blocks than a map holds.
pub fn owners<S: ReadAt>(filesystem: &Ext4<S>) -> Result<OwnerMap> {
    let superblock = filesystem.superblock();
    let reserved = filesystem
        .layout_without_files()?
        .into_iter()
        .flat_map(|range| pieces(range.first_block, range.blocks, range.class))
        .collect();
    let builder = Builder::new(superblock.block_bytes, superblock.blocks, reserved);
    let mut walk = Walk {
        filesystem,
        reader: MapReader::new(&filesystem.source, superblock),
        builder,
        directories: Vec::new(),
        attribute_blocks: HashSet::new(),
    };
    for group in 0..superblock.groups {
        if let Err(error) = walk.group(group) {
            walk.keep(error)?;
        }
    }
    walk.name_files()?;
    Ok(walk.builder.finish())
}

/// A layout range in runs whose length fits.
fn pieces(first_block: u64, blocks: u64, class: Class) -> impl Iterator<Item = Range> {
    let step = 1 << 31;
    (0..blocks).step_by(step).map(move |from| Range {
        first_block: first_block + from,
        inode: 0,
        file_block: NO_FILE_BLOCK,
        blocks: u32::try_from((blocks - from).min(step as u64)).expect("at most 2^31"),
        class,
        unwritten: false,
    })
}

struct Walk<'a, S> {
    filesystem: &'a Ext4<S>,
    reader: MapReader<'a, S>,
    builder: Builder,
    directories: Vec<(Inode, BlockMap)>,
    /// Inodes with equal attributes share one block; the first has it.
    attribute_blocks: HashSet<u64>,
}

impl<S: ReadAt> Walk<'_, S> {
    fn group(&mut self, group: u32) -> Result<()> {
        let superblock = self.filesystem.superblock();
        let descriptor = &self.filesystem.groups()[group as usize];
        if descriptor.inodes_uninitialised {
            return Ok(());
        }
        let bitmap = group::read_inode_bitmap(&self.filesystem.source, superblock, descriptor)?;
        let first = group * superblock.inodes_per_group;
        for bit in 0..superblock.inodes_per_group {
            let byte = bitmap.get(bit as usize / 8).copied().unwrap_or(0);
            if byte >> (bit % 8) & 1 == 0 {
                continue;
            }
            if let Err(error) = self.inode(first + bit + 1) {
                self.keep(error)?;
            }
        }
        Ok(())
    }

    fn inode(&mut self, number: u32) -> Result<()> {
        let superblock = self.filesystem.superblock();
        if number == superblock.journal_inode {
            return Ok(());
        }
        let inode = self.filesystem.inode(number)?;
        let (generation, birth) = (inode.generation, inode.birth_wall_ns);
        let number = u64::from(number);
        self.builder
            .push_file(number, generation, inode.mode, birth);
        if inode.attribute_block != 0 && self.attribute_blocks.insert(inode.attribute_block) {
            self.push(inode.attribute_block, 1, number, Class::Attribute)?;
        }
        let map = super::map(&mut self.reader, &inode)?;
        for &block in &map.tree {
            self.push(block, 1, number, tree_class(&inode))?;
        }
        let class = content_class(superblock.is_system_inode(inode.number), &inode);
        for mapping in &map.mappings {
            for mut piece in pieces(mapping.fs_block, mapping.blocks, class) {
                piece.file_block = mapping.file_block + (piece.first_block - mapping.fs_block);
                piece.inode = number;
                piece.unwritten = mapping.unwritten;
                self.push_range(piece)?;
            }
        }
        if inode.is_directory() && !inode.is_encrypted() {
            self.directories.push((inode, map));
        }
        Ok(())
    }

    fn push(&mut self, block: u64, blocks: u64, inode: u64, class: Class) -> Result<()> {
        let place = DiskField::superblock(self.filesystem.superblock().kind, "i_file_acl");
        self.reader
            .check_run(place.of_inode(inode), block, blocks)?;
        for piece in pieces(block, blocks, class) {
            self.push_range(Range { inode, ..piece })?;
        }
        Ok(())
    }

    fn push_range(&mut self, range: Range) -> Result<()> {
        if self.builder.push(range) {
            return Ok(());
        }
        Err(Error::Unsupported {
            kind: self.filesystem.superblock().kind,
            found: format!("more than {} extents", crate::owner::MAX_RANGES),
            expected: "fewer".to_owned(),
        })
    }

    fn name_files(&mut self) -> Result<()> {
        self.builder.set_root(u64::from(ROOT_INODE));
        for (inode, map) in std::mem::take(&mut self.directories) {
            let parent = u64::from(inode.number);
            let builder = &mut self.builder;
            let mut name = |inode, name: &[u8]| builder.name(u64::from(inode), parent, name);
            if let Err(error) = directory::read(&mut self.reader, &inode, &map, &mut name) {
                self.keep(error)?;
            }
        }
        Ok(())
    }

    /// Keeps damage of one structure; a map with no room left ends the walk.
    fn keep(&mut self, error: Error) -> Result<()> {
        match error {
            Error::Unsupported { .. } => Err(error),
            Error::Io { .. } | Error::Corrupt { .. } => self.builder.problem(error),
        }
    }
}

fn content_class(is_system: bool, inode: &Inode) -> Class {
    if is_system {
        Class::SystemFile
    } else if inode.is_attribute_value() {
        Class::Attribute
    } else if inode.is_directory() {
        Class::Directory
    } else {
        Class::FileData
    }
}
