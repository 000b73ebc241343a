//! The devices of filesystems that have a number of their own, which is no device's.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::attribute::{entries, of_number, text};
use crate::mountinfo::{self, Mounted};

/// The directories in sysfs of the devices of the filesystem that a path is on; none where they
/// cannot be told, which is so for all but btrfs. `root` is that of /sys, /dev and /proc.
pub(super) fn devices(root: &Path, path: &Path) -> Vec<PathBuf> {
    let Some(Mounted { kind, source, .. }) = mounted(root, path) else {
        return Vec::new();
    };
    let number = number_of(root, Path::new(&source)).filter(|_| kind == "btrfs");
    let sys = root.join("sys");
    let numbers = number.map_or(Vec::new(), |number| match btrfs_devices(&sys, number) {
        none if none.is_empty() => vec![number],
        all => all,
    });
    let directories = numbers
        .into_iter()
        .filter_map(|number| of_number(&sys, number));
    directories.collect()
}

fn mounted(root: &Path, path: &Path) -> Option<Mounted> {
    let table = fs::read(root.join(mountinfo::PATH)).ok()?;
    mountinfo::with_id(&String::from_utf8_lossy(&table), mountinfo::id_of(path)?)
}

/// The number (`st_rdev`) of the block device that a mount's source or option names, by its node,
/// or by its name in sysfs where there is no node, as in containers. `root` is `/` but for tests.
pub fn number_of(root: &Path, source: &Path) -> Option<u64> {
    let below_root = source.strip_prefix("/").ok()?;
    if let Ok(found) = fs::metadata(root.join(below_root)) {
        return found.file_type().is_block_device().then(|| found.rdev());
    }
    let name = below_root
        .strip_prefix("dev")
        .ok()?
        .to_str()?
        .replace('/', "!");
    number_in(&root.join("sys/class/block").join(name))
}

/// The number in a device's `dev`.
fn number_in(directory: &Path) -> Option<u64> {
    let number = text(&directory.join("dev"))?;
    let (major, minor) = number.split_once(':')?;
    Some(rustix::fs::makedev(
        major.parse().ok()?,
        minor.parse().ok()?,
    ))
}

/// The devices of the mounted btrfs that one belongs to, by their numbers (`st_rdev`) and in the
/// order of these (fs/btrfs/sysfs.c); none if it belongs to none.
pub fn btrfs_devices(sys: &Path, number: u64) -> Vec<u64> {
    for filesystem in entries(&sys.join("fs/btrfs")) {
        let devices = entries(&filesystem.join("devices"));
        let mut devices: Vec<u64> = devices.iter().filter_map(|dir| number_in(dir)).collect();
        if devices.contains(&number) {
            devices.sort_by_key(|device| (rustix::fs::major(*device), rustix::fs::minor(*device)));
            return devices;
        }
    }
    Vec::new()
}
