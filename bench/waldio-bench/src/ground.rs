//! Filesystems to measure on, made for the occasion.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use iostep_lab::image::Options;
use iostep_lab::{Kind, LoopImage, Mount, mkfs};
use tempfile::TempDir;

use crate::table::Place;

/// More than the smallest XFS, and a multiple of what any table has in its files.
const IMAGE_BYTES: u64 = 320 << 20;

/// A filesystem; gone after the drop.
pub struct Ground {
    // In the order of their drop.
    mount: Option<Mount>,
    _image: Option<LoopImage>,
    memory: Option<TempDir>,
}

impl Ground {
    /// Makes one. `images` is the directory of the images.
    pub fn new(place: Place, images: &Path) -> Result<Ground> {
        match place {
            Place::Tmpfs => Ok(Ground {
                mount: None,
                _image: None,
                memory: Some(tempfile::tempdir_in("/dev/shm").context("/dev/shm")?),
            }),
            Place::Image(kind) => {
                let image = full_image(images)?;
                mkfs(kind, &image, mkfs_options(kind))?;
                Ok(Ground {
                    mount: Some(Mount::new(kind, &image, "")?),
                    _image: Some(image),
                    memory: None,
                })
            }
        }
    }

    /// Its root.
    pub fn path(&self) -> PathBuf {
        let memory = self.memory.as_ref().map(TempDir::path);
        let path = self.mount.as_ref().map(Mount::path).or(memory);
        path.map(Path::to_owned).unwrap_or_default()
    }

    /// Writes what is in memory, so that it is not counted for whoever comes next.
    pub fn settle(&self) -> Result<()> {
        let root = File::open(self.path())?;
        rustix::fs::syncfs(&root).context("cannot sync the filesystem")
    }
}

/// An image all blocks of which are there. In a sparse one each first write to a block makes the
/// filesystem below allocate, and a flush makes it journal that.
fn full_image(images: &Path) -> Result<LoopImage> {
    let image = LoopImage::create(&Options {
        bytes: IMAGE_BYTES,
        directory: Some(images.to_owned()),
        ..Options::default()
    })?;
    let mut device = File::options()
        .write(true)
        .open(image.device())
        .with_context(|| image.device().display().to_string())?;
    let zeros = vec![0; 1 << 20];
    for _ in 0..IMAGE_BYTES / zeros.len() as u64 {
        device.write_all(&zeros).context("cannot fill the image")?;
    }
    device.sync_all().context("cannot fill the image")?;
    Ok(image)
}

/// No discard, which would make holes in the image, and nothing that is finished later. Without a
/// word a small ext4 has blocks of 1 KiB.
fn mkfs_options(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Ext2 | Kind::Ext3 | Kind::Ext4 => &[
            "-b",
            "4096",
            "-E",
            "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
        ],
        Kind::Xfs | Kind::Btrfs | Kind::Nilfs2 => &["-K"],
        Kind::F2fs => &["-t", "0"],
        Kind::Fat => &[],
    }
}
