//! The owner of every sector: a walk over all directories from the root.

use std::collections::VecDeque;

use iostep_model::Class;

use super::chain::{Chains, is_damage};
use super::directory::{ENTRY_BYTES, Reader};
use super::{Fat, Width, sorted};
use crate::Kind;
use crate::ReadAt;
use crate::error::{Error, Result};
use crate::owner::{Builder, NO_FILE_BLOCK, OwnerMap, Range};
use crate::source::read;

/// The number of the root directory (`MSDOS_ROOT_INO`, include/uapi/linux/msdos_fs.h).
pub const ROOT_INODE: u64 = 1;
const DIRECTORY_MODE: u16 = 0o040_755;
const FILE_MODE: u16 = 0o100_755;

/// Walks the whole filesystem. The map's block is the sector.
///
/// FAT has no inode numbers, and the kernel makes up new ones at each mount. Here a file has the
/// number of its directory entry: its place on the device in units of 32 bytes, which is what the
/// kernel calls `i_pos`. Memory is that of the [`OwnerMap`], twice its names, and a bit a cluster.
/// A chain or a directory that is damaged is put in [`OwnerMap::problems`], and the walk goes on.
///
/// Errors: `Io` or `Corrupt` for the problem that is one too many; `Unsupported` for more runs of
/// sectors than a map holds.
pub fn owners<S: ReadAt>(filesystem: &Fat<S>) -> Result<OwnerMap> {
    let boot = filesystem.boot();
    let reserved = sorted(filesystem.fixed())?
        .into_iter()
        // Where the root directory has a place of its own, it has an owner too.
        .filter(|range| range.class != Class::Directory)
        .map(|range| Range {
            first_block: range.first_block,
            inode: 0,
            file_block: NO_FILE_BLOCK,
            blocks: u32::try_from(range.blocks).unwrap_or(u32::MAX),
            class: range.class,
            unwritten: false,
        })
        .collect();
    let mut walk = Walk {
        filesystem,
        chains: Chains::new(&filesystem.source, boot),
        builder: Builder::new(boot.sector_bytes, boot.sectors, reserved),
        files: Vec::new(),
        directories: VecDeque::new(),
    };
    walk.root()?;
    while let Some((inode, runs)) = walk.directories.pop_front() {
        if let Err(error) = walk.directory(inode, &runs) {
            walk.keep(error)?;
        }
    }
    Ok(walk.finish())
}

/// A run of sectors.
type Sectors = (u64, u64);

struct Named {
    inode: u64,
    parent: u64,
    mode: u16,
    name: Vec<u8>,
}

struct Walk<'a, S> {
    filesystem: &'a Fat<S>,
    chains: Chains<'a, S>,
    builder: Builder,
    files: Vec<Named>,
    directories: VecDeque<(u64, Vec<Sectors>)>,
}

impl<S: ReadAt> Walk<'_, S> {
    fn root(&mut self) -> Result<()> {
        let boot = self.filesystem.boot();
        self.files.push(Named {
            inode: ROOT_INODE,
            parent: ROOT_INODE,
            mode: DIRECTORY_MODE,
            name: Vec::new(),
        });
        let runs = if boot.width == Width::Fat32 {
            self.content(ROOT_INODE, boot.root_cluster, Class::Directory)?
        } else {
            let start = boot.reserved_sectors + boot.table_sectors * u64::from(boot.tables);
            let run = (start, boot.root_sectors);
            self.push(ROOT_INODE, run, 0, Class::Directory)?;
            vec![run]
        };
        self.directories.push_back((ROOT_INODE, runs));
        Ok(())
    }

    /// Claims the clusters of a file; what is damaged is kept as a problem.
    fn content(&mut self, inode: u64, first: u32, class: Class) -> Result<Vec<Sectors>> {
        let boot = self.filesystem.boot();
        let cluster_sectors = u64::from(boot.cluster_sectors);
        let mut runs = Vec::new();
        let followed = self.chains.follow(first, |first, clusters| {
            runs.push((boot.sector_of(first), u64::from(clusters) * cluster_sectors));
            Ok(())
        });
        let mut file_sector = 0;
        for &run in &runs {
            self.push(inode, run, file_sector, class)?;
            file_sector += run.1;
        }
        if let Err(error) = followed {
            self.keep(error)?;
        }
        Ok(runs)
    }

    fn push(&mut self, inode: u64, run: Sectors, file_block: u64, class: Class) -> Result<()> {
        let pushed = self.builder.push(Range {
            first_block: run.0,
            inode,
            file_block,
            // A FAT has at most 2^32 sectors, and some are not clusters.
            blocks: u32::try_from(run.1).unwrap_or(u32::MAX),
            class,
            unwritten: false,
        });
        if pushed {
            return Ok(());
        }
        Err(Error::Unsupported {
            kind: Kind::Fat,
            found: format!("more than {} runs of clusters", crate::owner::MAX_RANGES),
            expected: "fewer".to_owned(),
        })
    }

    fn directory(&mut self, parent: u64, runs: &[Sectors]) -> Result<()> {
        let boot = self.filesystem.boot();
        let sector_bytes = u64::from(boot.sector_bytes);
        let step = (boot.cluster_bytes() / sector_bytes).max(1);
        let mut reader = Reader::default();
        for &(start, sectors) in runs {
            // A cluster at a time: a chain may be as long as the filesystem.
            for first in (start..start + sectors).step_by(step as usize) {
                let sectors = step.min(start + sectors - first);
                let offset_bytes = first * sector_bytes;
                let bytes = (sectors * sector_bytes) as usize;
                let bytes = read(&self.filesystem.source, offset_bytes, bytes)?;
                self.entries(parent, offset_bytes, &bytes, &mut reader)?;
                if reader.has_ended() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn entries(
        &mut self,
        parent: u64,
        offset_bytes: u64,
        bytes: &[u8],
        reader: &mut Reader,
    ) -> Result<()> {
        let first = offset_bytes / ENTRY_BYTES as u64;
        for (inode, bytes) in (first..).zip(bytes.chunks_exact(ENTRY_BYTES)) {
            let Some(entry) = reader.take(bytes) else {
                continue;
            };
            let (mode, class) = match entry.is_directory {
                true => (DIRECTORY_MODE, Class::Directory),
                false => (FILE_MODE, Class::FileData),
            };
            self.files.push(Named {
                inode,
                parent,
                mode,
                name: entry.name,
            });
            if entry.first_cluster == 0 {
                continue;
            }
            let runs = self.content(inode, entry.first_cluster, class)?;
            if entry.is_directory {
                self.directories.push_back((inode, runs));
            }
        }
        Ok(())
    }

    /// Keeps damage of one structure; a map with no room left ends the walk.
    fn keep(&mut self, error: Error) -> Result<()> {
        match is_damage(&error) {
            true => self.builder.problem(error),
            false => Err(error),
        }
    }

    fn finish(mut self) -> OwnerMap {
        self.files.sort_by_key(|file| file.inode);
        for file in &self.files {
            self.builder.push_file(file.inode, 0, file.mode, None);
        }
        self.builder.set_root(ROOT_INODE);
        for file in &self.files {
            self.builder.name(file.inode, file.parent, &file.name);
        }
        self.builder.finish()
    }
}
