//! FAT12, FAT16 and FAT32.
//!
//! [`Fat::open`] reads the boot sector, [`Fat::layout`] lists what it reserves, and [`owners`]
//! follows every directory and every chain of clusters. The filesystem may be mounted; then what is
//! read is what the kernel holds in the device's page cache, which is newer than the disk.
//!
//! Source: Microsoft, FAT32 File System Specification 1.03; the kernel's reading of it,
//! fs/fat/inode.c, fs/fat/fatent.c and fs/fat/dir.c.

mod boot;
mod chain;
mod directory;
mod owners;

pub use boot::{BootSector, Width};
pub use owners::{ROOT_INODE, owners};

use iostep_model::Class;
use iostep_model::manifest::LayoutRange;

use crate::error::{DiskField, Result};
use crate::source::size;
use crate::{Found, Kind, ReadAt, ranges};
use chain::Chains;

pub(crate) use boot::probe;

/// An open filesystem.
#[derive(Debug)]
pub struct Fat<S> {
    source: S,
    boot: BootSector,
}

/// A field of the boot sector.
fn field(name: &'static str) -> DiskField {
    DiskField::superblock(Kind::Fat, name)
}

impl<S: ReadAt> Fat<S> {
    /// Reads and validates the boot sector.
    ///
    /// Errors: `Io`; `Unsupported` for a sector that is none; `Corrupt` for an impossible value.
    pub fn open(source: S) -> Result<Fat<S>> {
        let boot = BootSector::read(&source)?;
        let source_sectors = size(&source)? / u64::from(boot.sector_bytes);
        if boot.sectors > source_sectors {
            let expected = format!("at most {source_sectors}");
            return Err(field("BPB_TotSec").corrupt(boot.sectors, expected));
        }
        Ok(Fat { source, boot })
    }

    pub fn boot(&self) -> &BootSector {
        &self.boot
    }

    /// Boot sectors, FSInfo, every copy of the allocation table and the root directory, in sectors
    /// of the filesystem, sorted and without overlaps.
    ///
    /// On FAT32 the root directory is a chain of clusters, as long as it is now.
    /// Errors: `Io`; `Corrupt` if the chain is broken.
    pub fn layout(&self) -> Result<Vec<LayoutRange>> {
        let boot = &self.boot;
        let mut layout = self.fixed();
        if boot.width == Width::Fat32 {
            let mut chains = Chains::new(&self.source, boot);
            let mut runs = Vec::new();
            chains.follow(boot.root_cluster, |first, clusters| {
                runs.push((first, clusters));
                Ok(())
            })?;
            layout.extend(runs.into_iter().map(|(first, clusters)| LayoutRange {
                first_block: boot.sector_of(first),
                blocks: u64::from(clusters) * u64::from(boot.cluster_sectors),
                class: Class::Directory,
            }));
        }
        sorted(layout)
    }

    /// What lies before the clusters.
    fn fixed(&self) -> Vec<LayoutRange> {
        let boot = &self.boot;
        let range = |first_block, blocks, class| LayoutRange {
            first_block,
            blocks,
            class,
        };
        let known = boot.reserved_structures();
        let mut layout: Vec<LayoutRange> = known
            .iter()
            .map(|&(sector, class)| range(sector, 1, class))
            .collect();
        let is_known = |sector: &u64| known.iter().any(|(known, _)| known == sector);
        // Boot code, or nothing.
        let rest = (0..boot.reserved_sectors).filter(|sector| !is_known(sector));
        layout.extend(rest.map(|sector| range(sector, 1, Class::OtherMetadata)));
        let tables = boot.table_sectors * u64::from(boot.tables);
        layout.push(range(boot.reserved_sectors, tables, Class::AllocationTable));
        let root = boot.reserved_sectors + tables;
        layout.push(range(root, boot.root_sectors, Class::Directory));
        layout
    }
}

fn sorted(layout: Vec<LayoutRange>) -> Result<Vec<LayoutRange>> {
    ranges::sorted(layout).map_err(|overlap| {
        let classes = format!("{} and {}", overlap.first.name(), overlap.second.name());
        field("the layout")
            .in_block(overlap.block)
            .corrupt(classes, "one structure")
    })
}

/// See [`Fat::layout`].
pub(crate) fn layout(source: &dyn ReadAt) -> Result<Found> {
    let filesystem = Fat::open(source)?;
    Ok(Found {
        kind: Kind::Fat,
        block_bytes: filesystem.boot.sector_bytes,
        // `open` compared it with the source.
        size_bytes: filesystem.boot.sectors * u64::from(filesystem.boot.sector_bytes),
        layout: filesystem.layout()?,
    })
}
