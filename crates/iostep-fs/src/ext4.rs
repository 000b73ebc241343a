//! ext2, ext3 and ext4.
//!
//! [`Ext4::open`] reads the superblock and the group descriptors, [`Ext4::layout`] lists what they
//! reserve, and [`owners`] walks every inode and directory. The filesystem may be mounted; then
//! what is read is what the kernel holds in the device's page cache, which is newer than the disk.
//! A journal is not replayed: see [`Features::needs_recovery`].

mod blocks;
mod directory;
mod extent;
mod features;
mod group;
mod indirect;
mod inline;
mod inode;
mod journal;
mod layout;
mod owners;
mod superblock;

pub use blocks::{BlockMap, Mapping};
pub use features::Features;
pub use group::GroupDescriptor;
pub use inode::{Inode, Storage};
pub use owners::owners;
pub use superblock::Superblock;

use iostep_model::Class;

use crate::bytes::{le16, le32};
use crate::error::{DiskField, Error, Result};
use crate::source::{read, read_if_there};
use crate::{Detected, ReadAt};
use blocks::MapReader;

pub(crate) const ROOT_INODE: u32 = 2;
const ATTEMPTS: u32 = 4;

/// An open filesystem.
#[derive(Debug)]
pub struct Ext4<S> {
    source: S,
    superblock: Superblock,
    groups: Vec<GroupDescriptor>,
}

pub(crate) fn probe(source: &dyn ReadAt) -> Result<Option<Detected>> {
    let Some(bytes) = read_if_there(source, superblock::OFFSET_BYTES, superblock::BYTES)? else {
        return Ok(None);
    };
    if le16(&bytes, 0x38) != superblock::MAGIC {
        return Ok(None);
    }
    let block_bytes = 1024u32.checked_shl(le32(&bytes, 0x18)).unwrap_or(0);
    Ok(Some(Detected {
        kind: Features::decode(&bytes).kind(),
        block_bytes,
        size_bytes: superblock::block_count(&bytes).checked_mul(u64::from(block_bytes)),
    }))
}

impl<S: ReadAt> Ext4<S> {
    /// Reads and validates the superblock and every group descriptor.
    ///
    /// Errors: `Io`; `Unsupported` for another magic or an unknown incompatible feature;
    /// `Corrupt` for a wrong checksum or an impossible value.
    pub fn open(source: S) -> Result<Ext4<S>> {
        let superblock = Superblock::read(&source)?;
        let groups = group::read_all(&source, &superblock)?;
        Ok(Ext4 {
            source,
            superblock,
            groups,
        })
    }

    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// The group descriptors, by group.
    pub fn groups(&self) -> &[GroupDescriptor] {
        &self.groups
    }

    /// Reads one inode, in use or not.
    ///
    /// Errors: `Io`; `Corrupt` for a number that does not exist or a wrong checksum.
    pub fn inode(&self, number: u32) -> Result<Inode> {
        let superblock = &self.superblock;
        let place = DiskField::superblock(superblock.kind, "inode number").of_inode(number.into());
        let index = number
            .checked_sub(1)
            .filter(|&index| index < superblock.inodes)
            .ok_or_else(|| place.corrupt(number, format!("1 to {}", superblock.inodes)))?;
        let group = &self.groups[(index / superblock.inodes_per_group) as usize];
        let in_table = u64::from(index % superblock.inodes_per_group);
        let offset_bytes = group.inode_table * u64::from(superblock.block_bytes)
            + in_table * u64::from(superblock.inode_bytes);
        let mut attempt = 1;
        loop {
            let bytes = read(&self.source, offset_bytes, superblock.inode_bytes.into())?;
            match Inode::decode(superblock, number, &bytes) {
                // A mounted filesystem may be caught between a change and its checksum.
                Err(Error::Corrupt { .. }) if attempt < ATTEMPTS => attempt += 1,
                result => return result,
            }
        }
    }

    /// Where an inode's content lies.
    ///
    /// Errors: `Io`, `Corrupt`.
    pub fn block_map(&self, inode: &Inode) -> Result<BlockMap> {
        map(&mut MapReader::new(&self.source, &self.superblock), inode)
    }

    /// The class of the blocks of an inode's map.
    fn tree_class(&self, inode: u32) -> Result<Class> {
        Ok(tree_class(&self.inode(inode)?))
    }
}

/// The blocks of an inode; empty if it has none of its own.
///
/// Errors: `Io`, `Corrupt`.
fn map<S: ReadAt>(reader: &mut MapReader<'_, S>, inode: &Inode) -> Result<BlockMap> {
    match inode.storage() {
        Storage::Extents => extent::read(reader, inode),
        Storage::Indirect => indirect::read(reader, inode),
        Storage::None => Ok(BlockMap::default()),
    }
}

fn tree_class(inode: &Inode) -> Class {
    match inode.storage() {
        Storage::Extents => Class::ExtentBlock,
        Storage::Indirect | Storage::None => Class::IndirectBlock,
    }
}
