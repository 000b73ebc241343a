//! Read-only layouts of filesystems: what a block is for, and whose it is.
//!
//! [`detect`] names the filesystem on a source, [`layout`] lists the blocks that it reserves for
//! itself; [`ext4::owners`] and [`fat::owners`] map every block to its file. Nothing here writes,
//! mounts, or asks the kernel; a source is anything that [`ReadAt`] covers, so an image, a partition of an image
//! and a mounted device read alike. Input is hostile: a broken filesystem gives an error or a
//! partial answer that says so, and work and memory are bounded by the source's size.
//!
//! Each filesystem is one module with a `probe`; a new one adds a line to `PROBES`.

#![forbid(unsafe_code)]

mod btrfs;
mod bytes;
pub mod error;
pub mod ext4;
mod f2fs;
pub mod fat;
mod nilfs2;
pub mod owner;
pub mod partitions;
mod ranges;
pub mod source;
mod xfs;

pub use iostep_model::filesystem::Kind;
use iostep_model::manifest::LayoutRange;

pub use error::{DiskField, Error, Result};
pub use owner::{FileEntry, Owner, OwnerMap};
pub use ranges::joined;
pub use source::{ReadAt, Section};

/// What the magic and its neighbours say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detected {
    pub kind: Kind,
    /// Its block size in bytes; FAT: its cluster size. Not validated.
    pub block_bytes: u32,
    /// Its size in bytes, where the superblock says so. Not validated.
    pub size_bytes: Option<u64>,
}

/// What a filesystem reserves for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub kind: Kind,
    /// Bytes of one block of `layout`. It is the filesystem's block, except on xfs and FAT, where
    /// it is the sector: several headers may share a block of xfs, and FAT has none.
    pub block_bytes: u32,
    /// Bytes from the source's beginning that belong to the filesystem: no more than the source
    /// has. What lies behind is nobody's, or another filesystem's.
    pub size_bytes: u64,
    /// Sorted and without overlaps.
    pub layout: Vec<LayoutRange>,
}

type Probe = fn(&dyn ReadAt) -> Result<Option<Detected>>;

/// In the order of trust: the first magics are long, FAT's is short and often left behind.
const PROBES: [Probe; 6] = [
    btrfs::probe,
    xfs::probe,
    ext4::probe,
    f2fs::probe,
    nilfs2::probe,
    fat::probe,
];

/// Names the filesystem on `source`; `None` if there is none that is known.
///
/// Only magics are read: a filesystem whose superblock is damaged elsewhere is still named.
/// Errors: `Io`.
pub fn detect<S: ReadAt>(source: &S) -> Result<Option<Detected>> {
    for probe in PROBES {
        if let Some(detected) = probe(source)? {
            return Ok(Some(detected));
        }
    }
    Ok(None)
}

/// Lists what the filesystem on `source` reserves for itself; `None` if there is no filesystem.
///
/// Reads only superblocks, group descriptors and the journal's inode, so it is quick on a large
/// device, and it may be used on a mounted one.
/// Errors: `Io`; `Unsupported` for a feature that changes the layout in a way not known here;
/// `Corrupt`.
pub fn layout<S: ReadAt>(source: &S) -> Result<Option<Found>> {
    let Some(detected) = detect(source)? else {
        return Ok(None);
    };
    let found = match detected.kind {
        Kind::Ext2 | Kind::Ext3 | Kind::Ext4 => {
            let filesystem = ext4::Ext4::open(source)?;
            let superblock = filesystem.superblock();
            let size_bytes = superblock
                .blocks
                .saturating_mul(superblock.block_bytes.into());
            Found {
                kind: detected.kind,
                block_bytes: superblock.block_bytes,
                size_bytes: size_bytes.min(source::size(source)?),
                layout: filesystem.layout()?,
            }
        }
        Kind::Xfs => xfs::layout(source)?,
        Kind::Btrfs => btrfs::layout(source)?,
        Kind::F2fs => f2fs::layout(source)?,
        Kind::Nilfs2 => nilfs2::layout(source)?,
        Kind::Fat => fat::layout(source)?,
    };
    Ok(Some(found))
}
