//! The block devices of a mounted filesystem: one, or several of btrfs, or one for the journal.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use iostep_model::manifest::Holds;
use procfs::process::MountInfo;

use crate::device_number::{DeviceNumber, node};
use crate::error::{Error, Result};

/// A device, and what of the filesystem lies on it.
pub(crate) type Part = (DeviceNumber, Holds);

/// The devices of the filesystem that is mounted there; `path` is for error texts.
///
/// Errors: `Unsupported` for one without a block device.
pub(crate) fn of_mount(path: &Path, mount: &MountInfo) -> Result<Vec<Part>> {
    let number = DeviceNumber::parse(&mount.majmin).filter(|number| number.major != 0);
    let source = mount.mount_source.as_deref().unwrap_or("none");
    // btrfs has a number of its own, which is no device's.
    let own = match mount.fs_type.as_str() {
        "btrfs" => number_of(Path::new(source)),
        _ => number,
    };
    let own = own.ok_or_else(|| {
        Error::unsupported(
            path.display(),
            format!(
                "it lies on {} ({source}), which has no block device of its own; {}",
                mount.fs_type,
                hint_for(&mount.fs_type)
            ),
        )
    })?;
    Ok(all_of(own, &mount.fs_type, &mount.super_options))
}

/// The mounted filesystem that a device is a part of, with all its devices.
pub(crate) fn mount_on(
    number: DeviceNumber,
    mounts: &[MountInfo],
) -> Option<(&MountInfo, Vec<Part>)> {
    mounts.iter().find_map(|mount| {
        let parts = of_mount(&mount.mount_point, mount).ok()?;
        let has_it = parts.iter().any(|(part, _)| *part == number);
        has_it.then_some((mount, parts))
    })
}

fn all_of(own: DeviceNumber, kind: &str, options: &HashMap<String, Option<String>>) -> Vec<Part> {
    let mut all = vec![(own, Holds::Filesystem)];
    let others: Vec<Part> = match kind {
        "btrfs" => with(Holds::Filesystem, btrfs_devices(Path::new("/sys"), own)),
        "ext3" | "ext4" => with(Holds::Journal, ext4_journal(own)),
        "xfs" => {
            let option = |name| number_of(Path::new(options.get(name)?.as_deref()?));
            let mut parts: Vec<Part> = with(Holds::Journal, option("logdev"));
            parts.extend(with(Holds::Filesystem, option("rtdev")));
            parts
        }
        _ => Vec::new(),
    };
    for part in others {
        if all.iter().all(|(known, _)| *known != part.0) {
            all.push(part);
        }
    }
    all
}

fn with(holds: Holds, numbers: impl IntoIterator<Item = DeviceNumber>) -> Vec<Part> {
    let parts = numbers.into_iter().map(|number| (number, holds));
    parts.collect()
}

fn number_of(node: &Path) -> Option<DeviceNumber> {
    let metadata = fs::metadata(node).ok()?;
    let is_device = metadata.file_type().is_block_device();
    is_device.then(|| DeviceNumber::of(metadata.rdev()))
}

/// The devices of the btrfs that one belongs to (fs/btrfs/sysfs.c).
fn btrfs_devices(sysfs: &Path, number: DeviceNumber) -> Vec<DeviceNumber> {
    let entries = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten();
    for filesystem in entries(sysfs.join("fs/btrfs")) {
        let mut devices: Vec<DeviceNumber> = entries(filesystem.path().join("devices"))
            .filter_map(|entry| {
                let number = fs::read_to_string(entry.path().join("dev")).ok()?;
                DeviceNumber::parse(&number)
            })
            .collect();
        if devices.contains(&number) {
            devices.sort_by_key(|device| (device.major, device.minor));
            return devices;
        }
    }
    Vec::new()
}

/// Fields of ext4's superblock (fs/ext4/ext4.h).
mod superblock {
    pub const AT: u64 = 1024;
    pub const MAGIC_AT: usize = 0x38;
    pub const MAGIC: u16 = 0xef53;
    pub const JOURNAL_INODE_AT: usize = 0xe0;
    pub const JOURNAL_DEVICE_AT: usize = 0xe4;
    pub const BYTES: usize = 0x100;
}

/// The device of an ext4's journal, if it has one of its own: a mount writes the number into the
/// superblock (`ext4_load_journal`, fs/ext4/super.c).
fn ext4_journal(number: DeviceNumber) -> Option<DeviceNumber> {
    let link = PathBuf::from(format!("/sys/dev/block/{}:{}", number.major, number.minor));
    let name = fs::canonicalize(link).ok()?.file_name()?.to_os_string();
    let mut bytes = [0; superblock::BYTES];
    File::open(node(&name.to_string_lossy()))
        .ok()?
        .read_exact_at(&mut bytes, superblock::AT)
        .ok()?;
    journal_in(&bytes)
}

fn journal_in(bytes: &[u8; superblock::BYTES]) -> Option<DeviceNumber> {
    let word =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let magic = word(superblock::MAGIC_AT) as u16;
    let number = word(superblock::JOURNAL_DEVICE_AT);
    if magic != superblock::MAGIC || word(superblock::JOURNAL_INODE_AT) != 0 || number == 0 {
        return None;
    }
    // `new_decode_dev`, include/linux/kdev_t.h.
    Some(DeviceNumber {
        major: (number & 0xf_ff00) >> 8,
        minor: (number & 0xff) | (number >> 12 & 0xf_ff00),
    })
}

fn hint_for(kind: &str) -> &'static str {
    match kind {
        "overlay" => "name the upper directory, or the device under it",
        "nfs" | "nfs4" | "cifs" | "9p" | "virtiofs" => "trace on the machine that has the disk",
        _ => "name a block device, or a path on ext4, xfs, btrfs, f2fs, nilfs2 or FAT",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_superblock_names_a_journal_elsewhere() {
        let mut bytes = [0; superblock::BYTES];
        assert_eq!(journal_in(&bytes), None);
        bytes[0x38..0x3a].copy_from_slice(&0xef53u16.to_le_bytes());
        assert_eq!(journal_in(&bytes), None);
        bytes[0xe4..0xe8].copy_from_slice(&0x0010_0713u32.to_le_bytes());
        let expected = DeviceNumber {
            major: 7,
            minor: 0x113,
        };
        assert_eq!(journal_in(&bytes), Some(expected));
        // Its own.
        bytes[0xe0] = 8;
        assert_eq!(journal_in(&bytes), None);
    }

    #[test]
    fn one_device_of_a_btrfs_stands_for_all() {
        let root = tempfile::tempdir().expect("a directory");
        for (name, number) in [("loop1", "7:1"), ("loop0", "7:0")] {
            let dir = root.path().join("fs/btrfs/some-uuid/devices").join(name);
            fs::create_dir_all(&dir).expect("made");
            fs::write(dir.join("dev"), format!("{number}\n")).expect("written");
        }
        let loops = [0, 1].map(|minor| DeviceNumber { major: 7, minor });
        assert_eq!(btrfs_devices(root.path(), loops[1]), loops);
        let other = DeviceNumber { major: 7, minor: 5 };
        assert!(btrfs_devices(root.path(), other).is_empty());
    }
}
