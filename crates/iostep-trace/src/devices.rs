//! The block devices of a mounted filesystem: one, or several of btrfs or f2fs, or one for the journal.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use iostep_model::disk;
use iostep_model::manifest::Holds;
use procfs::process::MountInfo;

use crate::device_number::DeviceNumber;
use crate::error::{Error, Result};
use crate::f2fs;

/// A device, and what of the filesystem lies on it.
pub(crate) type Part = (DeviceNumber, Holds);

/// The devices of the filesystem that is mounted there; `path` is for error texts.
///
/// Errors: `Unsupported` for one without a block device, or with one that is not found.
pub(crate) fn of_mount(path: &Path, mount: &MountInfo) -> Result<Vec<Part>> {
    let number = DeviceNumber::parse(&mount.majmin).filter(|number| number.major != 0);
    let source = mount.mount_source.as_deref().unwrap_or("none");
    // btrfs has a number of its own, which is no device's.
    let own = match mount.fs_type.as_str() {
        "btrfs" => DeviceNumber::of_node(Path::new(source)),
        _ => number,
    };
    let own = own.ok_or_else(|| {
        Error::unsupported(
            path.display(),
            format!(
                "it lies on {} ({source}), which has no block device of its own; {}",
                mount.fs_type,
                hint_for(mount)
            ),
        )
    })?;
    all_of(own, mount)
}

/// The mounted filesystem that a device is a part of, with all its devices.
///
/// Errors: as those of [`of_mount`], if the filesystem is mounted from this device.
pub(crate) fn mount_on(
    number: DeviceNumber,
    mounts: &[MountInfo],
) -> Result<Option<(&MountInfo, Vec<Part>)>> {
    for mount in mounts {
        match of_mount(&mount.mount_point, mount) {
            Ok(parts) if parts.iter().any(|(part, _)| *part == number) => {
                return Ok(Some((mount, parts)));
            }
            Err(error) if DeviceNumber::parse(&mount.majmin) == Some(number) => return Err(error),
            _ => {}
        }
    }
    Ok(None)
}

fn all_of(own: DeviceNumber, mount: &MountInfo) -> Result<Vec<Part>> {
    let mut all = vec![(own, Holds::Filesystem)];
    let others: Vec<Part> = match mount.fs_type.as_str() {
        "btrfs" => with(Holds::Filesystem, btrfs_devices(own)),
        "ext3" | "ext4" => with(Holds::Journal, ext4_journal(own)),
        "xfs" => {
            let options = &mount.super_options;
            let option = |name| DeviceNumber::of_node(Path::new(options.get(name)?.as_deref()?));
            let mut parts: Vec<Part> = with(Holds::Journal, option("logdev"));
            parts.extend(with(Holds::Filesystem, option("rtdev")));
            parts
        }
        "f2fs" => with(Holds::Filesystem, f2fs::other_devices(own, mount)?),
        _ => Vec::new(),
    };
    for part in others {
        if all.iter().all(|(known, _)| *known != part.0) {
            all.push(part);
        }
    }
    Ok(all)
}

fn with(holds: Holds, numbers: impl IntoIterator<Item = DeviceNumber>) -> Vec<Part> {
    let parts = numbers.into_iter().map(|number| (number, holds));
    parts.collect()
}

fn btrfs_devices(own: DeviceNumber) -> impl Iterator<Item = DeviceNumber> {
    let all = disk::btrfs_devices(Path::new("/sys"), own.user_number());
    all.into_iter().map(DeviceNumber::of)
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
    File::open(disk::node(Path::new("/"), &name.to_string_lossy())?)
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

fn hint_for(mount: &MountInfo) -> String {
    match mount.fs_type.as_str() {
        "overlay" => {
            let upper = mount.super_options.get("upperdir").cloned().flatten();
            let upper = upper.map_or(String::new(), |upper| format!(", {upper}"));
            format!("name the upper directory{upper}, or the device under it")
        }
        "nfs" | "nfs4" | "cifs" | "9p" | "virtiofs" => {
            "trace on the machine that has the disk".into()
        }
        _ => "name a block device, or a path on ext4, xfs, btrfs, f2fs, nilfs2 or FAT".into(),
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
}
