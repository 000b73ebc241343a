//! Where filesystems may lie on a whole disk: its partitions, and the devices made of it.

use std::path::{Path, PathBuf};

use iostep_model::disk;
use iostep_model::manifest::{self, Holds};
use procfs::process::MountInfo;

use super::{Mount, describe};
use crate::device_number::DeviceNumber;
use crate::devices;
use crate::stack::{Layer, Sysfs};

/// A partition of a traced disk, or a device made of others.
#[derive(Clone, Debug)]
pub struct Volume {
    pub number: DeviceNumber,
    /// What the manifest says of it; its filesystem was not looked for yet.
    pub described: manifest::Volume,
    /// Of the filesystem that begins on it, if it is mounted.
    pub mount: Option<Mount>,
}

impl Volume {
    /// Its node, for reading the layout.
    pub fn node(&self) -> PathBuf {
        let name = &self.described.name;
        disk::node(Path::new("/"), name).unwrap_or_else(|| Path::new("/dev").join(name))
    }
}

/// The volumes of devices, by their layers; none where there is only one, which fills its device.
pub(super) fn of(sysfs: &Sysfs<'_>, layers: &[Layer], mounts: &[MountInfo]) -> Vec<Volume> {
    let mut all = Vec::new();
    let mut is_parted = false;
    for (device, layer) in (0..).zip(layers) {
        if layer.traced.holds == Holds::Devices {
            continue;
        }
        if layer.is_partition() || !sysfs.is_parted(layer.number) {
            all.push(whole(layer, device));
            continue;
        }
        is_parted = true;
        let parts = sysfs.partitions(layer.number).into_iter();
        all.extend(parts.map(|part| Volume {
            number: part.number,
            described: described(part.name, device, (part.start_sector, part.sectors)),
            mount: None,
        }));
    }
    if all.len() < 2 && !is_parted {
        return Vec::new();
    }
    find_mounts(&mut all, mounts);
    all
}

fn whole(layer: &Layer, device: u8) -> Volume {
    let of = &layer.traced.device;
    let place = (of.start_sector, of.sectors);
    Volume {
        number: layer.number,
        described: manifest::Volume {
            title: layer.traced.title.clone(),
            holds: layer.traced.holds,
            ..described(of.name.clone(), device, place)
        },
        mount: None,
    }
}

fn described(name: String, device: u8, (start_sector, sectors): (u64, u64)) -> manifest::Volume {
    manifest::Volume {
        name,
        title: None,
        device,
        start_sector,
        sectors,
        holds: Holds::Filesystem,
        part_of: None,
        filesystem: None,
    }
}

/// Finds what is mounted from each of which that is not known, and which are parts of a filesystem
/// that begins elsewhere.
pub(super) fn find_mounts(all: &mut [Volume], mounts: &[MountInfo]) {
    let numbers: Vec<DeviceNumber> = all.iter().map(|volume| volume.number).collect();
    for volume in all.iter_mut().filter(|volume| volume.mount.is_none()) {
        let Ok(Some((mount, parts))) = devices::mount_on(volume.number, mounts) else {
            continue;
        };
        let begins_on = parts.first().map(|(number, _)| *number);
        if begins_on == Some(volume.number) {
            volume.mount = Some(describe(mount, mounts, &mount.mount_point));
            continue;
        }
        let first = numbers.iter().position(|number| Some(*number) == begins_on);
        volume.described.part_of = first.and_then(|first| u16::try_from(first).ok());
        let own = parts.iter().find(|(number, _)| *number == volume.number);
        volume.described.holds = own.map_or(Holds::Filesystem, |(_, holds)| *holds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A disk with two partitions with sectors, of which the second is LVM's with two volumes.
    fn machine() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        let devices = root.path().join("sys/devices");
        let numbers = root.path().join("sys/dev/block");
        fs::create_dir_all(&numbers).expect("made");
        for (path, number, files) in [
            ("sda", "8:0", &["mq/x=", "size=90000"][..]),
            (
                "sda/sda1",
                "8:1",
                &["partition=1", "start=2048", "size=4096"],
            ),
            (
                "sda/sda2",
                "8:2",
                &["partition=2", "start=8192", "size=80000"],
            ),
            (
                "dm-0",
                "253:0",
                &["dm/uuid=LVM-a", "dm/name=vg-root", "size=3000"],
            ),
            (
                "dm-1",
                "253:1",
                &["dm/uuid=LVM-b", "dm/name=vg-home", "size=5000"],
            ),
        ] {
            let directory = devices.join(path);
            for file in files.iter().chain([&&*format!("dev={number}")]) {
                let (name, content) = file.split_once('=').expect("a content");
                let file = directory.join(name);
                fs::create_dir_all(file.parent().expect("a parent")).expect("made");
                fs::write(file, content).expect("written");
            }
            symlink(&directory, numbers.join(number)).expect("linked");
        }
        for upper in ["dm-0", "dm-1"] {
            for (of, list, other) in [
                (upper, "slaves", "sda/sda2"),
                ("sda/sda2", "holders", upper),
            ] {
                let list = devices.join(of).join(list);
                fs::create_dir_all(&list).expect("made");
                let other = devices.join(other);
                symlink(&other, list.join(other.file_name().expect("a name"))).expect("linked");
            }
        }
        root
    }

    fn found(number: &str) -> Vec<(String, String, u8, u64, u64)> {
        let root = machine();
        let sysfs = Sysfs {
            root: root.path(),
            target_types: |_| Ok(vec!["linear".into()]),
        };
        let number = DeviceNumber::parse(number).expect("a number");
        let above = sysfs.above(number).expect("found").into_iter();
        let above: Vec<_> = above.map(|number| (number, Holds::Filesystem)).collect();
        let layers = sysfs.stack(&above).expect("a stack");
        let volumes = of(&sysfs, &layers, &[]).into_iter().map(|it| it.described);
        volumes
            .map(|it| {
                let title = it.title().to_owned();
                (it.name, title, it.device, it.start_sector, it.sectors)
            })
            .collect()
    }

    fn volume(name: &str, title: &str, place: (u8, u64, u64)) -> (String, String, u8, u64, u64) {
        (name.into(), title.into(), place.0, place.1, place.2)
    }

    #[test]
    fn a_disk_has_its_partitions_and_the_devices_made_of_them_and_not_those_below() {
        let expected = [
            volume("sda1", "sda1", (0, 2048, 4096)),
            volume("dm-0", "vg-root", (1, 0, 3000)),
            volume("dm-1", "vg-home", (2, 0, 5000)),
        ];
        assert_eq!(found("8:0"), expected);
        let expected = [
            volume("dm-0", "vg-root", (1, 0, 3000)),
            volume("dm-1", "vg-home", (2, 0, 5000)),
        ];
        assert_eq!(found("8:2"), expected);
    }

    #[test]
    fn what_holds_one_filesystem_alone_has_no_volumes() {
        assert!(found("8:1").is_empty());
        assert!(found("253:1").is_empty());
    }
}
