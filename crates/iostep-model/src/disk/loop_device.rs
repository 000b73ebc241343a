//! The file of a loop device, and the devices which that lies on.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use linux_raw_sys::loop_device::{LOOP_GET_STATUS64, loop_info64};
use rustix::ioctl::{self, Getter};

use super::attribute::{number, of_number};
use super::filesystem;
use crate::SECTOR_BYTES;

/// `LO_FLAGS_DIRECT_IO`: it goes to the file past its page cache.
const DIRECT_IO: u32 = 16;

/// What a loop device says of its file. Numbers of devices are as `st_dev` and `st_rdev` have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Of the file's filesystem.
    pub device: u64,
    /// The file, if that is a block device: 0 otherwise, with older kernels the same as `device`.
    pub own_device: u64,
    /// Inode of the file.
    pub inode: u64,
    /// True if it goes past the file's page cache.
    pub direct_io: bool,
}

/// What an open loop device is bound to.
///
/// Errors: `ENXIO` if to nothing; `ENOTTY` or `EINVAL` of what is no loop device.
pub fn status(device: impl AsFd) -> rustix::io::Result<Status> {
    // SAFETY: LOOP_GET_STATUS64 fills one `loop_info64`, which has no invalid values.
    let info = unsafe { ioctl::ioctl(device, Getter::<LOOP_GET_STATUS64, loop_info64>::new()) }?;
    Ok(Status {
        device: info.lo_device,
        own_device: info.lo_rdevice,
        inode: info.lo_inode,
        direct_io: info.lo_flags & DIRECT_IO != 0,
    })
}

/// The same by its node; `None` without the right to read that.
pub(super) fn ask(node: &Path) -> Option<Status> {
    status(File::open(node).ok()?).ok()
}

/// The directories in sysfs of the devices below the loop device at `directory` in sysfs, whose
/// file the kernel calls `file`: the file itself if it is a device, or those of its filesystem. None
/// where it lies on no device, or on one that cannot be found.
///
/// `status` is what the device says. It decides, for the name may mean another file by now, or in
/// this mount namespace. Without it, which is without the right to read the device, the name is
/// believed unless that file has another length.
pub(super) fn lower(
    root: &Path,
    directory: &Path,
    file: &Path,
    status: Option<Status>,
) -> Vec<PathBuf> {
    let sys = root.join("sys");
    let one = |number| Vec::from_iter(of_number(&sys, number));
    let named = Named::find(file);
    if let Some(status) = status {
        let numbers = [status.own_device, status.device];
        return match numbers.into_iter().find(|number| is_device(*number)) {
            Some(number) => one(number),
            // The same number, the same filesystem, whatever file that is.
            None => named
                .filter(|named| named.metadata.dev() == status.device)
                .map_or(Vec::new(), |named| filesystem::devices(root, named.path)),
        };
    }
    match named.filter(|named| !named.contradicts(&sys, directory)) {
        None => Vec::new(),
        Some(named) if named.is_block_device() => one(named.metadata.rdev()),
        Some(named) if is_device(named.metadata.dev()) => one(named.metadata.dev()),
        Some(named) => filesystem::devices(root, named.path),
    }
}

/// False for the numbers that filesystems without a device of their own make up.
fn is_device(number: u64) -> bool {
    rustix::fs::major(number) != 0
}

/// What a name leads to now: the file, or the directory of one that was deleted.
struct Named<'a> {
    path: &'a Path,
    metadata: Metadata,
}

impl Named<'_> {
    fn find(file: &Path) -> Option<Named<'_>> {
        let at = |path| {
            let metadata = fs::metadata(path)?;
            io::Result::Ok(Named { path, metadata })
        };
        at(file).or_else(|_| at(directory_of_deleted(file)?)).ok()
    }

    fn is_block_device(&self) -> bool {
        self.metadata.file_type().is_block_device()
    }

    /// True if it has not the length that a loop device shows (`lo_calculate_size`,
    /// drivers/block/loop.c); false where either is not known.
    fn contradicts(&self, sys: &Path, directory: &Path) -> bool {
        let bytes = match self.metadata.file_type() {
            kind if kind.is_file() => Some(self.metadata.len()),
            kind if kind.is_block_device() => of_number(sys, self.metadata.rdev())
                .and_then(|device| number(&device.join("size"))?.checked_mul(SECTOR_BYTES)),
            _ => None,
        };
        let attribute = |name: &str| number(&directory.join(name));
        let (Some(bytes), Some(sectors)) = (bytes, attribute("size")) else {
            return false;
        };
        let offset = attribute("loop/offset").unwrap_or(0);
        let limit = attribute("loop/sizelimit").filter(|limit| *limit > 0);
        let expected = bytes.saturating_sub(offset).min(limit.unwrap_or(u64::MAX));
        let block = attribute("queue/logical_block_size")
            .unwrap_or(0)
            .max(SECTOR_BYTES);
        expected / block != sectors.saturating_mul(SECTOR_BYTES) / block
    }
}

/// Where a file was that has no name any more; of one that lies in memory (memfd_create(2)), not
/// the root, which the kernel puts before its name.
fn directory_of_deleted(file: &Path) -> io::Result<&Path> {
    let name = file.as_os_str().as_encoded_bytes();
    let is_deleted = name.ends_with(b" (deleted)") && !name.starts_with(b"/memfd:");
    let parent = file.parent().filter(|_| is_deleted);
    parent.ok_or_else(|| io::ErrorKind::NotFound.into())
}
