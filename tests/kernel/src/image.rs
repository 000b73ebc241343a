//! The raw image that a filesystem leaves behind.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use iostep_model::SECTOR_BYTES;
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::stamp::{BLOCK_BYTES, Found, Stamp, Stamps};

/// Sectors in a stamped block.
pub const BLOCK_SECTORS: u64 = BLOCK_BYTES as u64 / SECTOR_BYTES;

const CHUNK_BYTES: usize = 1 << 20;

/// The content of a whole device, in a file or on the device itself; sector 0 is its first.
#[derive(Debug)]
pub struct Image {
    file: File,
    path: PathBuf,
}

impl Image {
    /// Opens an image or a device whose filesystem is not mounted.
    pub fn open(path: &Path) -> anyhow::Result<Image> {
        let file = File::open(path).with_context(|| format!("{}: cannot open", path.display()))?;
        Ok(Image {
            file,
            path: path.to_owned(),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length.
    pub fn bytes(&self) -> anyhow::Result<u64> {
        // Not from its metadata, which say 0 for a block device.
        Ok(rustix::fs::seek(&self.file, SeekFrom::End(0))?)
    }

    /// Reads from a sector on.
    ///
    /// Errors: reading beyond the end.
    pub fn read(&self, sector: u64, bytes: usize) -> anyhow::Result<Vec<u8>> {
        let mut buffer = vec![0; bytes];
        self.file
            .read_exact_at(&mut buffer, sector * SECTOR_BYTES)
            .with_context(|| format!("{}: cannot read sector {sector}", self.path.display()))?;
        Ok(buffer)
    }

    /// Calls `look` with the sector and the bytes of every 4 KiB block but holes.
    pub fn for_each_block(&self, mut look: impl FnMut(u64, &[u8])) -> anyhow::Result<()> {
        let end = self.bytes()?;
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut offset = 0;
        while let Some(data) = self.next_data(offset, end)? {
            offset = data - data % BLOCK_BYTES as u64;
            let length = CHUNK_BYTES.min((end - offset) as usize);
            self.file.read_exact_at(&mut chunk[..length], offset)?;
            let sectors = (offset / SECTOR_BYTES..).step_by(BLOCK_SECTORS as usize);
            for (sector, block) in sectors.zip(chunk[..length].chunks_exact(BLOCK_BYTES)) {
                look(sector, block);
            }
            offset += length as u64;
        }
        Ok(())
    }

    fn next_data(&self, offset: u64, end: u64) -> io::Result<Option<u64>> {
        match rustix::fs::seek(&self.file, SeekFrom::Data(offset)) {
            Ok(data) => Ok(Some(data)),
            Err(Errno::NXIO) => Ok(None),
            // A block device does not know its holes.
            Err(Errno::INVAL) => Ok((offset < end).then_some(offset)),
            Err(error) => Err(error.into()),
        }
    }

    /// Where every stamped block lies.
    pub fn stamp_map(&self) -> anyhow::Result<Stamps> {
        let mut map = Stamps::default();
        for (sector, stamp) in self.stamps()? {
            map.insert(sector, BLOCK_SECTORS, Found { stamp, from: 0 });
        }
        Ok(map)
    }

    /// Every stamped block, by its first sector.
    pub fn stamps(&self) -> anyhow::Result<BTreeMap<u64, Stamp>> {
        let mut found = BTreeMap::new();
        self.for_each_block(|sector, block| {
            if let Some(stamp) = Stamp::decode(block) {
                found.insert(sector, stamp);
            }
        })?;
        Ok(found)
    }
}

/// A little-endian number; zero beyond the end.
pub fn le(bytes: &[u8], offset: usize, length: usize) -> u64 {
    let field = bytes.get(offset..offset + length).unwrap_or_default();
    field.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))
}

/// A big-endian number; zero beyond the end.
pub fn be(bytes: &[u8], offset: usize, length: usize) -> u64 {
    let field = bytes.get(offset..offset + length).unwrap_or_default();
    field.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_found_wherever_they_lie_and_holes_are_skipped() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.as_file().set_len(64 << 20).expect("a hole");
        let stamp = |index| Stamp {
            file_id: 1,
            pid: 2,
            index,
            sequence: index,
        };
        for (block, index) in [(3u64, 0), (4, 1), (16_383, 2)] {
            file.as_file()
                .write_all_at(&stamp(index).encode(), block * BLOCK_BYTES as u64)
                .expect("write");
        }
        let found = Image::open(file.path())
            .expect("open")
            .stamps()
            .expect("scan");
        let expected = [(24, stamp(0)), (32, stamp(1)), (131_064, stamp(2))];
        assert_eq!(found, BTreeMap::from(expected));
    }

    #[test]
    fn numbers_beyond_the_end_are_zero() {
        assert_eq!(le(&[1, 2, 3, 4], 1, 2), 0x0302);
        assert_eq!(be(&[1, 2, 3, 4], 1, 2), 0x0203);
        assert_eq!(le(&[1, 2], 1, 2), 0);
    }
}
