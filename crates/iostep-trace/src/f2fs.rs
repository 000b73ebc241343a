//! The other devices of an f2fs that lies on several. It knows them by the paths that `mkfs.f2fs -c`
//! was given, and opens what is there at each mount (`f2fs_scan_devices`, fs/f2fs/super.c); the
//! kernel tells of no number.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};

use iostep_model::{SECTOR_BYTES, disk};
use procfs::process::MountInfo;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::device_number::DeviceNumber;
use crate::error::{Error, Result};
use crate::mounts;
use crate::stack;

/// Bytes of `struct f2fs_super_block` (include/linux/f2fs_fs.h), and where its copies begin on the
/// first device.
pub const SUPERBLOCK_BYTES: usize = 3072;
const SUPERBLOCK_AT: u64 = 1024;

const MAGIC: u32 = 0xf2f5_2010;
const LOG_BLOCK_BYTES_AT: usize = 16;
const LOG_SEGMENT_BLOCKS_AT: usize = 20;
/// `devs`: of each device a path, which ends at the first zero, and its number of segments.
const DEVICES_AT: usize = 2201;
const DEVICES: usize = 8;
const PATH_BYTES: usize = 64;
const DEVICE_BYTES: usize = PATH_BYTES + 4;

/// A device as the superblock has it: nothing of it is known to be true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedDevice {
    pub path: PathBuf,
    /// What f2fs uses of it.
    pub bytes: u64,
}

/// The devices that a superblock names, the first one first: none where it is the only one, or where
/// this is no superblock of f2fs.
pub fn named_devices(superblock: &[u8; SUPERBLOCK_BYTES]) -> Vec<NamedDevice> {
    let word = |at: usize| {
        let bytes = [0, 1, 2, 3].map(|index| superblock[at + index]);
        u32::from_le_bytes(bytes)
    };
    if word(0) != MAGIC {
        return Vec::new();
    }
    // Nothing else is mounted than 512 blocks of at most 64 KiB (`sanity_check_raw_super`).
    let log_segment_bytes = word(LOG_BLOCK_BYTES_AT).min(16) + word(LOG_SEGMENT_BLOCKS_AT).min(9);
    let device = |number: usize| {
        let at = DEVICES_AT + number * DEVICE_BYTES;
        let mut path = superblock[at..at + PATH_BYTES].split(|byte| *byte == 0);
        let path = path.next().unwrap_or_default();
        NamedDevice {
            path: OsStr::from_bytes(path).into(),
            bytes: u64::from(word(at + PATH_BYTES)) << log_segment_bytes,
        }
    };
    let all = (0..DEVICES).map(device);
    let named: Vec<NamedDevice> = all
        .take_while(|device| !device.path.as_os_str().is_empty())
        .collect();
    match named.len() {
        1 => Vec::new(),
        _ => named,
    }
}

/// The devices of a mounted f2fs beside `own`, the one that it is mounted from.
///
/// Errors: `Unsupported` if there are others and it cannot be told which, with what to do.
pub(crate) fn other_devices(own: DeviceNumber, mount: &MountInfo) -> Result<Vec<DeviceNumber>> {
    let node = node_of(own);
    let object = || match &node {
        Some(node) => node.display().to_string(),
        None => mount.mount_point.display().to_string(),
    };
    let Some(superblock) = node.as_deref().and_then(superblock) else {
        // Who may not read it is told whether there is anything to be known.
        return match is_larger(mount, own) {
            false => Ok(Vec::new()),
            true => Err(Error::unsupported(
                object(),
                "f2fs over several devices: which the others are stands in its superblock, which \
                 cannot be read; run it as root",
            )),
        };
    };
    let mut found: Vec<DeviceNumber> = Vec::new();
    for named in named_devices(&superblock).iter().skip(1) {
        let number = resolve(named, own).map_err(|reason| {
            let path = named.path.display();
            let reason = format!(
                "f2fs over several devices is followed by the paths that its superblock has of them \
                 since mkfs.f2fs, and {path} {reason}; give that path to the right device, by a \
                 symbolic link or a rule of udev"
            );
            Error::unsupported(object(), reason)
        })?;
        found.push(number);
    }
    Ok(found)
}

fn node_of(number: DeviceNumber) -> Option<PathBuf> {
    let name = fs::canonicalize(sysfs_of(number)).ok()?;
    disk::node(Path::new("/"), &name.file_name()?.to_string_lossy())
}

fn sysfs_of(number: DeviceNumber) -> PathBuf {
    format!("/sys/dev/block/{}:{}", number.major, number.minor).into()
}

fn superblock(node: &Path) -> Option<[u8; SUPERBLOCK_BYTES]> {
    let mut bytes = [0; SUPERBLOCK_BYTES];
    let device = File::open(node).ok()?;
    device.read_exact_at(&mut bytes, SUPERBLOCK_AT).ok()?;
    Some(bytes)
}

/// True if the filesystem has more room than the device that it is mounted from.
fn is_larger(mount: &MountInfo, own: DeviceNumber) -> bool {
    let is_own = rustix::fs::stat(&mount.mount_point)
        .is_ok_and(|found| DeviceNumber::of(found.st_dev) == own);
    let room = rustix::fs::statvfs(&mount.mount_point).ok();
    let room = room.map(|room| room.f_blocks.saturating_mul(room.f_frsize));
    is_own && size_of(own).is_some_and(|bytes| room.is_some_and(|room| room > bytes))
}

fn size_of(number: DeviceNumber) -> Option<u64> {
    stack::read_number(&sysfs_of(number).join("size"))?.checked_mul(SECTOR_BYTES)
}

/// The number of a device that the superblock of the f2fs on `own` names; or else why it cannot be
/// that one, to be read behind its path.
fn resolve(named: &NamedDevice, own: DeviceNumber) -> std::result::Result<DeviceNumber, String> {
    let mut parts = named.path.components();
    let is_below_dev = named.path.starts_with("/dev") && parts.all(|p| p != Component::ParentDir);
    if !is_below_dev {
        return Err("is not below /dev".into());
    }
    let number = DeviceNumber::of_node(&named.path).ok_or("is no block device")?;
    if number == own {
        return Err("is the one that it is mounted from".into());
    }
    if size_of(number).is_none_or(|bytes| bytes < named.bytes) {
        return Err(format!("has less than {} bytes", named.bytes));
    }
    let is_mounted = |mount: &MountInfo| DeviceNumber::parse(&mount.majmin) == Some(number);
    if mounts::everywhere().is_ok_and(|all| all.iter().any(is_mounted)) {
        return Err("has a filesystem of its own that is mounted".into());
    }
    // f2fs has each of its devices for itself: whoever else wants one so is refused.
    let node = node_of(number).ok_or("is no block device")?;
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
    match rustix::fs::open(node, flags, Mode::empty()) {
        Err(Errno::BUSY) => Ok(number),
        Ok(_) => Err("is not in use".into()),
        Err(errno) => Err(format!("cannot be opened: {errno}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_mkfs_was_given_is_named_in_its_order() {
        let place = tempfile::tempdir().expect("a directory");
        let [first, second, third] = ["first", "second", "third"].map(|name| {
            let path = place.path().join(name);
            let file = File::create(&path).expect("a file");
            file.set_len(64 << 20).expect("sparse");
            path
        });
        let make = |others: &[&PathBuf]| {
            let mut mkfs = Command::new("mkfs.f2fs");
            mkfs.args(["-q", "-f"]);
            for other in others {
                mkfs.arg("-c").arg(other);
            }
            let status = mkfs.arg(&first).stdout(std::process::Stdio::null());
            assert!(status.status().expect("mkfs.f2fs runs").success());
            named_devices(&superblock(&first).expect("a superblock"))
        };
        assert!(make(&[]).is_empty());
        let named = |path: &PathBuf, mib: u64| NamedDevice {
            path: path.clone(),
            bytes: mib << 20,
        };
        // Before the first segment of the first device lies what is in none.
        assert_eq!(
            make(&[&second, &third]),
            [named(&first, 62), named(&second, 64), named(&third, 64)]
        );
    }

    #[test]
    fn no_superblock_names_none() {
        let mut bytes = [0xff; SUPERBLOCK_BYTES];
        assert!(named_devices(&bytes).is_empty());
        bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
        let all = named_devices(&bytes);
        assert_eq!(all.len(), DEVICES);
        assert_eq!(all[0].path.as_os_str().len(), PATH_BYTES);
    }

    #[test]
    fn what_no_device_of_a_filesystem_can_be_is_refused() {
        let own = DeviceNumber { major: 0, minor: 0 };
        let reason = |path: &str| {
            let named = NamedDevice {
                path: path.into(),
                bytes: 0,
            };
            resolve(&named, own).expect_err(path)
        };
        assert_eq!(reason("vdb"), "is not below /dev");
        assert_eq!(reason("/etc/passwd"), "is not below /dev");
        assert_eq!(reason("/dev/../etc/passwd"), "is not below /dev");
        assert_eq!(reason("/devices"), "is not below /dev");
        assert_eq!(reason("/dev/null"), "is no block device");
        assert_eq!(reason("/dev/no such device"), "is no block device");
    }
}
