//! From what the user names to the device that is traced.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use iostep_model::manifest::Device;
use procfs::process::{MountInfo, Process};

use crate::error::{Error, Result};

/// A block device's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceNumber {
    /// Major.
    pub major: u32,
    /// Minor.
    pub minor: u32,
}

impl DeviceNumber {
    fn of(rdev: u64) -> DeviceNumber {
        DeviceNumber {
            major: rustix::fs::major(rdev),
            minor: rustix::fs::minor(rdev),
        }
    }

    /// The kernel's own `dev_t` (`MKDEV`, include/linux/kdev_t.h), which is not user space's.
    pub fn kernel_number(self) -> u32 {
        self.major << 20 | self.minor
    }

    fn sysfs(self) -> PathBuf {
        PathBuf::from(format!("/sys/dev/block/{}:{}", self.major, self.minor))
    }
}

/// Where a filesystem is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// `ext4`, `xfs`, `btrfs`, ...
    pub kind: String,
    /// Directory.
    pub point: PathBuf,
    /// Mount options, then the superblock's.
    pub options: String,
}

impl Mount {
    /// The mount that holds a path, with or without a block device below it.
    ///
    /// Errors: `Io` if the path is not there; `Unsupported` without /proc.
    pub fn of(path: &Path) -> Result<Mount> {
        let metadata = fs::metadata(path).map_err(Error::io(path, "look at"))?;
        mount_of(path, &metadata, &mounts()?).map(describe)
    }
}

/// What is traced: a disk, or one partition of it.
#[derive(Clone, Debug)]
pub struct Target {
    /// The whole disk.
    pub disk: DeviceNumber,
    /// The partition, if it is one.
    pub partition: Option<DeviceNumber>,
    /// The disk's or the partition's description.
    pub device: Device,
    /// The mounted filesystem, if it is mounted.
    pub mount: Option<Mount>,
    /// Directory of the disk or partition in sysfs: its `stat` and `inflight`.
    pub(crate) sysfs: PathBuf,
    /// Directory of the disk in sysfs.
    pub(crate) disk_sysfs: PathBuf,
}

impl Target {
    /// Resolves a block device, a partition, or any path on a mounted filesystem.
    ///
    /// Errors: `Io` if the path is not there; `Unsupported` for a filesystem without a block
    /// device of its own (tmpfs, overlay, network) or with several (btrfs).
    pub fn resolve(path: &Path) -> Result<Target> {
        let metadata = fs::metadata(path).map_err(Error::io(path, "look at"))?;
        let mounts = mounts()?;
        if metadata.file_type().is_block_device() {
            let number = DeviceNumber::of(metadata.rdev());
            let mount = mounts.iter().find(|mount| source_is(mount, number));
            return Target::of_device(number, mount.map(describe));
        }
        let mount = mount_of(path, &metadata, &mounts)?;
        let number = device_of_mount(path, mount)?;
        Target::of_device(number, Some(describe(mount)))
    }

    fn of_device(number: DeviceNumber, mount: Option<Mount>) -> Result<Target> {
        let link = number.sysfs();
        let sysfs = fs::canonicalize(&link).map_err(Error::io(&link, "find the device at"))?;
        let is_partition = sysfs.join("partition").exists();
        let disk_sysfs = if is_partition {
            sysfs.parent().map(Path::to_owned).unwrap_or_default()
        } else {
            sysfs.clone()
        };
        let disk = parse_number(&read(&disk_sysfs.join("dev"))?)
            .ok_or_else(|| Error::unsupported(disk_sysfs.display(), "its number is not MAJ:MIN"))?;
        let name = sysfs
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let device = Device {
            name,
            major: number.major,
            minor: number.minor,
            start_sector: read_number(&sysfs.join("start")).unwrap_or(0),
            sectors: read_number(&sysfs.join("size")).unwrap_or(0),
            logical_block_bytes: queue_number(&disk_sysfs, "logical_block_size", 512),
            physical_block_bytes: queue_number(&disk_sysfs, "physical_block_size", 512),
            volatile_write_cache: queue_text(&disk_sysfs, "write_cache") == "write back",
            fua: queue_number(&disk_sysfs, "fua", 0) == 1,
            scheduler: chosen(&queue_text(&disk_sysfs, "scheduler")),
            rotational: queue_number(&disk_sysfs, "rotational", 0) == 1,
        };
        Ok(Target {
            disk,
            partition: is_partition.then_some(number),
            device,
            mount,
            sysfs,
            disk_sysfs,
        })
    }

    /// The device's node, for error texts and for reading the layout.
    pub fn node(&self) -> PathBuf {
        Path::new("/dev").join(self.device.name.replace('!', "/"))
    }

    /// True if the device has requests (blk-mq), false if it handles bios by itself.
    pub(crate) fn has_requests(&self) -> bool {
        self.disk_sysfs.join("mq").is_dir()
    }

    /// I/Os under way now, reads and writes.
    ///
    /// Errors: `Io`, as when the device was unplugged.
    pub fn in_flight(&self) -> Result<u64> {
        let text = read(&self.sysfs.join("inflight"))?;
        Ok(text
            .split_ascii_whitespace()
            .filter_map(|n| n.parse::<u64>().ok())
            .sum())
    }
}

fn mounts() -> Result<Vec<MountInfo>> {
    Process::myself()
        .and_then(|me| me.mountinfo())
        .map(|infos| infos.0)
        .map_err(|error| Error::unsupported("/proc/self/mountinfo", error))
}

fn describe(mount: &MountInfo) -> Mount {
    let words = |options: &std::collections::HashMap<String, Option<String>>| {
        let mut words: Vec<String> = options
            .iter()
            .map(|(name, value)| match value {
                Some(value) => format!("{name}={value}"),
                None => name.clone(),
            })
            .collect();
        words.sort();
        words.join(",")
    };
    Mount {
        kind: mount.fs_type.clone(),
        point: mount.mount_point.clone(),
        options: format!(
            "{};{}",
            words(&mount.mount_options),
            words(&mount.super_options)
        ),
    }
}

/// The mount that a path lies on: the deepest one whose point is a prefix, the last if several
/// are stacked.
fn mount_of<'a>(
    path: &Path,
    metadata: &fs::Metadata,
    mounts: &'a [MountInfo],
) -> Result<&'a MountInfo> {
    let real = fs::canonicalize(path).map_err(Error::io(path, "resolve"))?;
    let number = DeviceNumber::of(metadata.dev());
    let text = format!("{}:{}", number.major, number.minor);
    mounts
        .iter()
        .filter(|mount| real.starts_with(&mount.mount_point))
        .max_by_key(|mount| {
            let same = mount.majmin == text;
            (same, mount.mount_point.components().count(), mount.mnt_id)
        })
        .ok_or_else(|| Error::unsupported(path.display(), "no mount holds it"))
}

fn device_of_mount(path: &Path, mount: &MountInfo) -> Result<DeviceNumber> {
    let number = parse_number(&mount.majmin);
    if let Some(number) = number.filter(|number| number.major != 0) {
        return Ok(number);
    }
    let source = mount.mount_source.as_deref().unwrap_or("none");
    let metadata = fs::metadata(source).ok();
    match metadata.filter(|m| m.file_type().is_block_device()) {
        Some(metadata) if mount.fs_type == "btrfs" => {
            let number = DeviceNumber::of(metadata.rdev());
            refuse_several_devices(path, number)?;
            Ok(number)
        }
        _ => Err(Error::unsupported(
            path.display(),
            format!(
                "it lies on {} ({source}), which has no block device of its own; {}",
                mount.fs_type,
                hint_for(&mount.fs_type)
            ),
        )),
    }
}

fn hint_for(kind: &str) -> &'static str {
    match kind {
        "overlay" => "name the upper directory, or the device under it",
        "nfs" | "nfs4" | "cifs" | "9p" | "virtiofs" => "trace on the machine that has the disk",
        _ => "name a block device or a path on ext4, xfs or btrfs",
    }
}

fn refuse_several_devices(path: &Path, number: DeviceNumber) -> Result<()> {
    let name = fs::canonicalize(number.sysfs())
        .ok()
        .and_then(|dir| dir.file_name().map(ToOwned::to_owned))
        .unwrap_or_default();
    for filesystem in fs::read_dir("/sys/fs/btrfs")
        .into_iter()
        .flatten()
        .flatten()
    {
        let devices = filesystem.path().join("devices");
        if !devices.join(&name).exists() {
            continue;
        }
        let count = fs::read_dir(&devices).map_or(1, Iterator::count);
        if count > 1 {
            return Err(Error::unsupported(
                path.display(),
                format!("its btrfs has {count} devices; name one of them"),
            ));
        }
    }
    Ok(())
}

fn source_is(mount: &MountInfo, number: DeviceNumber) -> bool {
    if parse_number(&mount.majmin) == Some(number) {
        return true;
    }
    mount.fs_type == "btrfs"
        && mount
            .mount_source
            .as_deref()
            .and_then(|source| fs::metadata(source).ok())
            .is_some_and(|m| {
                m.file_type().is_block_device() && DeviceNumber::of(m.rdev()) == number
            })
}

fn parse_number(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.trim().split_once(':')?;
    Some(DeviceNumber {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    })
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(Error::io(path, "read"))
}

fn read_number(path: &Path) -> Option<u64> {
    read(path).ok()?.trim().parse().ok()
}

fn queue_text(disk: &Path, name: &str) -> String {
    let text = read(&disk.join("queue").join(name)).unwrap_or_default();
    text.trim().to_owned()
}

fn queue_number(disk: &Path, name: &str, otherwise: u32) -> u32 {
    queue_text(disk, name).parse().unwrap_or(otherwise)
}

/// `none [mq-deadline] kyber`: the one in brackets.
fn chosen(text: &str) -> String {
    text.split_ascii_whitespace()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
        .unwrap_or(text)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_scheduler_is_the_one_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
    }

    #[test]
    fn a_filesystem_without_a_device_is_refused_with_a_hint() {
        let error = Target::resolve(Path::new("/proc/self/status")).expect_err("proc");
        assert!(error.to_string().contains("no block device"), "{error}");
    }

    #[test]
    fn a_missing_path_is_named() {
        let error = Target::resolve(Path::new("/nowhere/at/all")).expect_err("missing");
        assert!(
            error.to_string().starts_with("/nowhere/at/all: "),
            "{error}"
        );
    }
}
