//! What to record, as filters that the kernel evaluates.
//!
//! Bios carry the number of the partition that they were sent to (of its disk before 5.12),
//! requests always that of the disk, ext4 that of its superblock, and write-back goes by the name
//! of the disk's backing device. Sectors count from the disk's start everywhere.

use std::path::{Path, PathBuf};

use crate::device_number::DeviceNumber;
use crate::target::Target;

/// What a hook's records must belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// The traced device, by the bio's own number.
    Bio,
    /// The disk: requests know nothing of partitions.
    Request,
    Filesystem,
    /// The backing device.
    Backing,
    /// Anything: the record names no device.
    Anything,
    /// What this filter takes; the record names no device.
    Matching(&'static str),
}

/// The traced device and its filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    disk: DeviceNumber,
    /// What is traced: the disk or a partition.
    device: DeviceNumber,
    /// A partition's first sector and the one after its last.
    range: Option<(u64, u64)>,
    /// If the disk is traced, its partitions.
    partitions: Vec<DeviceNumber>,
    /// Where the device is mounted, if its files can be told apart: on ext4.
    pub mount_point: Option<PathBuf>,
}

impl Scope {
    /// What to record of `target`.
    pub fn of(target: &Target) -> Scope {
        let ext = |kind: &str| matches!(kind, "ext2" | "ext3" | "ext4");
        let mount = target.mount.as_ref().filter(|mount| ext(&mount.kind));
        let start = target.device.start_sector;
        Scope {
            disk: target.disk,
            device: target.partition.unwrap_or(target.disk),
            range: target
                .partition
                .map(|_| (start, start.saturating_add(target.device.sectors))),
            partitions: match target.partition {
                Some(_) => Vec::new(),
                None => partitions(&target.disk_sysfs),
            },
            mount_point: mount.map(|mount| mount.point.clone()),
        }
    }

    /// The filesystem's device, if there is a filesystem.
    pub fn filesystem(&self) -> Option<(u32, u32)> {
        self.mount_point.as_ref()?;
        Some((self.device.major, self.device.minor))
    }

    /// True if only a partition is traced.
    pub fn is_partition(&self) -> bool {
        self.range.is_some()
    }

    /// The kernel's filter; `None` if nothing can match.
    pub fn filter(&self, of: Of) -> Option<String> {
        let disk = self.disk.kernel_number();
        let device = self.device.kernel_number();
        Some(match of {
            Of::Bio => {
                let mut devices = format!("dev == {disk}");
                let others = self.partitions.iter().map(|part| part.kernel_number());
                for other in others.chain((device != disk).then_some(device)) {
                    devices += &format!(" || dev == {other}");
                }
                self.in_range(devices)
            }
            Of::Request => self.in_range(format!("dev == {disk}")),
            Of::Filesystem => {
                self.filesystem()?;
                format!("dev == {device}")
            }
            Of::Backing => {
                self.filesystem()?;
                let DeviceNumber { major, minor } = self.disk;
                // The device's own page cache goes by its number (`bdev_add`, block/bdev.c).
                format!("name == \"{major}:{minor}\" && ino != {device}")
            }
            Of::Anything => String::new(),
            Of::Matching(filter) => filter.to_owned(),
        })
    }

    /// Flushes have sector 0 when they are issued and -1 when they complete.
    fn in_range(&self, devices: String) -> String {
        let Some((first, end)) = self.range else {
            return devices;
        };
        let flush = format!("sector == 0 || sector == {}", u64::MAX);
        format!("({devices}) && ({flush} || (sector >= {first} && sector < {end}))")
    }
}

fn partitions(disk: &Path) -> Vec<DeviceNumber> {
    let entries = std::fs::read_dir(disk).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| {
        let path = entry.path();
        std::fs::metadata(path.join("partition")).ok()?;
        let number = std::fs::read_to_string(path.join("dev")).ok()?;
        let (major, minor) = number.trim().split_once(':')?;
        Some(DeviceNumber {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    });
    numbers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        let number = |minor| DeviceNumber { major: 7, minor };
        Scope {
            disk: number(0),
            device: number(0),
            range: None,
            partitions: vec![number(1)],
            mount_point: Some("/mnt".into()),
        }
    }

    #[test]
    fn a_whole_disk_takes_the_bios_of_its_partitions() {
        let filter = scope().filter(Of::Bio);
        assert_eq!(filter.as_deref(), Some("dev == 7340032 || dev == 7340033"));
        let requests = scope().filter(Of::Request);
        assert_eq!(requests.as_deref(), Some("dev == 7340032"));
    }

    #[test]
    fn a_partition_takes_its_own_sectors_and_flushes() {
        let mut scope = scope();
        scope.device = scope.partitions.remove(0);
        scope.range = Some((2048, 4096));
        let filter = scope.filter(Of::Request).expect("a filter");
        let sectors = "(sector >= 2048 && sector < 4096)";
        let flushes = "sector == 0 || sector == 18446744073709551615";
        assert_eq!(
            filter,
            format!("(dev == 7340032) && ({flushes} || {sectors})")
        );
        assert!(scope.filter(Of::Bio).expect("one").contains("7340033"));
    }

    #[test]
    fn without_a_filesystem_its_hooks_stay_off() {
        let mut scope = scope();
        scope.mount_point = None;
        assert_eq!(scope.filter(Of::Filesystem), None);
        assert_eq!(scope.filter(Of::Backing), None);
    }
}
