//! From what the user names to the devices that are traced.

mod volumes;

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use iostep_model::disk::{self, Disk};
use iostep_model::manifest::{Device, Holds, MountPlace, TracedDevice};
use procfs::process::MountInfo;

use crate::device_number::DeviceNumber;
use crate::devices::{self, Part};
use crate::error::{Error, Result};
use crate::mounts;
use crate::stack::{self, Layer, Sysfs};

pub use volumes::Volume;

/// Where a filesystem is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// `ext4`, `xfs`, `btrfs`, ...
    pub kind: String,
    /// For this process: in another mount namespace it begins with a process's root in /proc.
    pub point: PathBuf,
    /// Mount options, then the superblock's.
    pub options: String,
    /// Every place where the filesystem can be seen, `point` first.
    pub places: Vec<MountPlace>,
    /// The kernel's number for the mount.
    id: u64,
    /// A path on it: what was asked for.
    path: PathBuf,
}

impl Mount {
    /// The mount that holds a path, with or without a block device below it.
    ///
    /// Errors: `Io` if the path is not there; `Unsupported` without /proc, or if no process sees it.
    pub fn of(path: &Path) -> Result<Mount> {
        let (mount, all) = mounts::holding(path)?;
        Ok(describe(&mount, &all, path))
    }

    /// A path on it that leads there now; `None` if it is not mounted any more.
    pub fn reached(&self) -> Option<PathBuf> {
        mounts::reached(self.id, [&self.point, &self.path])
    }
}

/// What is traced: a disk or a partition; or all devices of a filesystem that lies on several, or
/// on one that is made of others.
#[derive(Clone, Debug)]
pub struct Target {
    /// The whole disk; the first one of several.
    pub disk: DeviceNumber,
    /// The partition, if it is one.
    pub partition: Option<DeviceNumber>,
    /// The disk's or the partition's description.
    pub device: Device,
    /// The mounted filesystem, if it is mounted.
    pub mount: Option<Mount>,
    /// Every device, the disks first: at least the one above.
    pub layers: Vec<Layer>,
    /// Where filesystems may lie, where it is not simply all of the devices.
    pub volumes: Vec<Volume>,
    /// Directory of the disk in sysfs.
    pub(crate) disk_sysfs: PathBuf,
}

impl Target {
    /// Resolves a block device, a partition, or any path on a mounted filesystem.
    ///
    /// A device on which others lie means those, and one of a filesystem's several means all. A path
    /// may lead into another mount namespace, as `/proc/PID/root/mnt` does: its device is the one
    /// that stat(2) names.
    ///
    /// Errors: `Io` if the path is not there; `Unsupported` for a filesystem without a block
    /// device of its own (tmpfs, overlay, network), with others that are not found, or on a mount
    /// that no process sees.
    pub fn resolve(path: &Path) -> Result<Target> {
        let metadata = fs::metadata(path).map_err(Error::io(path, "look at"))?;
        if !metadata.file_type().is_block_device() {
            let (mount, all) = mounts::holding(path)?;
            let mut parts = devices::of_mount(path, &mount)?;
            parts.dedup();
            return Target::of(&parts, Some(describe(&mount, &all, path)));
        }
        let mounts = mounts::everywhere()?;
        let (mut parts, mount) = on_device(DeviceNumber::of(metadata.rdev()), &mounts)?;
        parts.dedup();
        let described = mount.map(|mount| describe(mount, &mounts, &mount.mount_point));
        let mut target = Target::of(&parts, described)?;
        if mount.is_none() {
            target.volumes = volumes::of(&Sysfs::own(), &target.layers, &mounts);
        }
        Ok(target)
    }

    fn of(above: &[Part], mount: Option<Mount>) -> Result<Target> {
        let mut layers = Sysfs::own().stack(above)?;
        // Each device of a btrfs has its superblocks at the same places.
        if mount.as_ref().is_some_and(|mount| mount.kind != "btrfs") {
            stack::refuse_another_order(&mut layers, above);
        }
        let first = layers
            .first()
            .ok_or_else(|| Error::unsupported("the target", "no device was found"))?;
        Ok(Target {
            disk: first.disk,
            partition: first.is_partition().then_some(first.number),
            device: first.traced.device.clone(),
            mount,
            disk_sysfs: first.disk_sysfs.clone(),
            layers,
            volumes: Vec::new(),
        })
    }

    /// The devices with requests: what is summed.
    pub fn disks(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().filter(|layer| layer.traced.is_disk())
    }

    /// The disks below all of them, through loop devices' files too, each once and without its
    /// health.
    pub fn hardware(&self) -> Vec<Disk> {
        let all = self.layers.iter().flat_map(|layer| &layer.hardware);
        disk::each_once(all.cloned())
    }

    /// Errors: `Unsupported` for a device whose I/O cannot be followed, with its name.
    pub fn check_followed(&self) -> Result<()> {
        self.layers.iter().try_for_each(Layer::check_followed)
    }

    /// True if devices are made of others.
    pub fn is_layered(&self) -> bool {
        self.layers.iter().any(|layer| !layer.traced.is_disk())
    }

    /// True if there is more than one device, above each other or side by side.
    pub fn has_several(&self) -> bool {
        self.layers.len() > 1
    }

    /// The device that the filesystem lies on, the first of several.
    pub fn upper(&self) -> &Device {
        let mut all = self.layers.iter();
        let upper = all.find(|layer| layer.traced.holds == Holds::Filesystem);
        upper.map_or(&self.device, |layer| &layer.traced.device)
    }

    /// The node of the device that the filesystem lies on, for error texts and for reading the
    /// layout.
    pub fn node(&self) -> PathBuf {
        let name = &self.upper().name;
        disk::node(Path::new("/"), name).unwrap_or_else(|| Path::new("/dev").join(name))
    }

    /// A short name for what is traced, as `dm-0` or `vg-root`.
    pub fn title(&self) -> String {
        let mut all = self.layers.iter();
        let upper = all.find(|layer| layer.traced.holds == Holds::Filesystem);
        upper
            .map_or(&self.device.name[..], |layer| layer.traced.title())
            .to_owned()
    }

    /// Looks once more for mounts of filesystems of which none was known: those that were mounted
    /// meanwhile. Nothing is found where the table of mounts cannot be read.
    pub fn look_for_mounts(&mut self) {
        let Ok(mounts) = mounts::everywhere() else {
            return;
        };
        volumes::find_mounts(&mut self.volumes, &mounts);
        if self.mount.is_some() || !self.volumes.is_empty() {
            return;
        }
        let upper = self.upper();
        let number = DeviceNumber {
            major: upper.major,
            minor: upper.minor,
        };
        let found = devices::mount_on(number, &mounts).ok().flatten();
        self.mount = found.map(|(mount, _)| describe(mount, &mounts, &mount.mount_point));
    }

    /// The kernel's names for the filesystems that are mounted.
    pub fn filesystem_kinds(&self) -> Vec<&str> {
        let of_volumes = self.volumes.iter().filter_map(|it| it.mount.as_ref());
        let mounts = self.mount.iter().chain(of_volumes);
        mounts.map(|mount| mount.kind.as_str()).collect()
    }

    /// Which volume a filesystem is on, by the kernel's number for any of its devices; none where
    /// there are no volumes.
    pub(crate) fn volume_numbers(&self) -> HashMap<u32, u16> {
        let numbered = (0..).zip(&self.volumes);
        numbered
            .map(|(at, volume)| {
                let first = volume.described.part_of.unwrap_or(at);
                (volume.number.kernel_number(), first)
            })
            .collect()
    }

    /// True if the device has requests (blk-mq), false if it handles bios by itself.
    pub(crate) fn has_requests(&self) -> bool {
        self.disk_sysfs.join("mq").is_dir()
    }

    /// I/Os under way now, reads and writes.
    ///
    /// Errors: `Io`, as when the device was unplugged.
    pub fn in_flight(&self) -> Result<u64> {
        self.disks().map(Layer::in_flight).sum()
    }

    /// What the manifest says of the devices: nothing if there is only one.
    pub(crate) fn traced_devices(&self) -> Vec<TracedDevice> {
        match self.has_several() {
            true => self.layers.iter().map(|l| l.traced.clone()).collect(),
            false => Vec::new(),
        }
    }
}

/// What lies on a device: whole filesystems with all their devices, or what is found above it.
fn on_device(
    number: DeviceNumber,
    mounts: &[MountInfo],
) -> Result<(Vec<Part>, Option<&MountInfo>)> {
    let mut all = Vec::new();
    let mut found = None;
    let above = Sysfs::own().above(number)?;
    for number in &above {
        match devices::mount_on(*number, mounts)? {
            Some((mount, devices)) => {
                found = Some(mount);
                all.extend(devices);
            }
            None => all.push((*number, Holds::Filesystem)),
        }
    }
    // Of several filesystems none is the one.
    let found = found.filter(|_| above.len() == 1);
    if found.is_none() {
        add_others(&above, mounts, &mut all);
    }
    Ok((all, found))
}

/// Adds the other devices of filesystems that begin or go on in partitions of a disk.
fn add_others(disks: &[DeviceNumber], mounts: &[MountInfo], all: &mut Vec<Part>) {
    let partitions = disks.iter().flat_map(|disk| Sysfs::own().partitions(*disk));
    for partition in partitions {
        // One whose devices are not found is a part of this disk all the same.
        let mounted = devices::mount_on(partition.number, mounts).ok().flatten();
        for part in mounted.into_iter().flat_map(|(_, parts)| parts) {
            if !all.iter().any(|(known, _)| *known == part.0) {
                all.push(part);
            }
        }
    }
}

/// `all` are those that the places are looked for in, and `path` leads to the mount.
fn describe(mount: &MountInfo, all: &[MountInfo], path: &Path) -> Mount {
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
        places: mounts::same_filesystem(all, mount),
        id: u64::try_from(mount.mnt_id).unwrap_or_default(),
        path: path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
