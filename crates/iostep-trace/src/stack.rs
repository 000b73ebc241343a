//! From the devices that a filesystem lies on down to the disks: device mapper and md in between.
//!
//! Bios say whose they are where the filesystem queues them; requests, and the counters to compare
//! with, are at the bottom. Between the two a bio is followed by the kernel's `block_bio_remap`,
//! which linear, striped and crypt targets (`__map_bio` and `dm_submit_bio_remap`,
//! drivers/md/dm.c) and md's RAID 0 and 1 fire for each of theirs. Others make bios of their own
//! without a word: they are refused.

use std::fs;
use std::path::{Path, PathBuf};

use iostep_model::disk::{self, Disk};
use iostep_model::manifest::{Device, Holds, TracedDevice};

use crate::device_mapper;
use crate::device_number::DeviceNumber;
use crate::error::{Error, Result};

/// As many devices as the BPF programs have room for (`MAX_DEVICES`, maps.bpf.h).
pub(crate) const MAX_DEVICES: usize = 16;
/// Targets of device mapper that fire `block_bio_remap` for every bio. `default-key` is Android's
/// alone (drivers/md/dm-default-key.c of its kernels): `linear` with a key, which was not tried.
const FOLLOWED_TARGETS: [&str; 5] = ["linear", "striped", "crypt", "zero", "default-key"];
/// Levels of md that do.
const FOLLOWED_LEVELS: [(&str, &str); 2] = [("raid0", "RAID0"), ("raid1", "RAID1")];

/// A device of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    pub number: DeviceNumber,
    /// The number of its disk, which is its own unless it is a partition.
    pub disk: DeviceNumber,
    /// What the manifest says of it.
    pub traced: TracedDevice,
    /// The disks that it lies on in the end, through a loop device's file too.
    pub(crate) hardware: Vec<Disk>,
    /// Its directory in sysfs: its `stat` and `inflight`.
    pub(crate) sysfs: PathBuf,
    /// Its disk's.
    pub(crate) disk_sysfs: PathBuf,
    /// Why its I/O cannot be followed, if it cannot.
    refusal: Option<String>,
}

impl Layer {
    /// Errors: `Unsupported` if its I/O cannot be followed.
    pub(crate) fn check_followed(&self) -> Result<()> {
        match &self.refusal {
            Some(reason) => Err(Error::unsupported(&self.traced.device.name, reason)),
            None => Ok(()),
        }
    }

    /// True for one part of a disk.
    pub fn is_partition(&self) -> bool {
        self.number != self.disk
    }

    /// I/Os under way now, reads and writes.
    ///
    /// Errors: `Io`, as when the device was unplugged.
    pub(crate) fn in_flight(&self) -> Result<u64> {
        let text = read(&self.sysfs.join("inflight"))?;
        let numbers = text.split_ascii_whitespace();
        Ok(numbers.filter_map(|n| n.parse::<u64>().ok()).sum())
    }
}

/// A part of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartitionOf {
    pub number: DeviceNumber,
    pub name: String,
    pub start_sector: u64,
    pub sectors: u64,
}

/// Where the kernel tells of devices.
pub(crate) struct Sysfs<'a> {
    /// The root of /sys, /dev and /proc: `/`.
    pub root: &'a Path,
    /// What the targets of a device mapper device are.
    pub target_types: fn(DeviceNumber) -> Result<Vec<String>>,
}

impl Sysfs<'static> {
    /// This machine's.
    pub fn own() -> Sysfs<'static> {
        Sysfs {
            root: Path::new("/"),
            target_types: |number| device_mapper::target_types(number.user_number()),
        }
    }
}

impl Sysfs<'_> {
    /// The devices `above`, and all below them, the disks first.
    ///
    /// Errors: `Io`; `Unsupported` for too many.
    pub fn stack(&self, above: &[(DeviceNumber, Holds)]) -> Result<Vec<Layer>> {
        let mut found = Vec::new();
        for (number, holds) in above {
            let layer = self.layer(*number, *holds)?;
            self.add(layer, &mut found)?;
        }
        Ok(disks_first(found))
    }

    /// Adds a device and those below, once; gives its index.
    fn add(&self, layer: Layer, found: &mut Vec<Layer>) -> Result<u8> {
        // A partition of a disk that is traced as a whole is a part of it.
        let same = |known: &Layer| known.number == layer.number || known.number == layer.disk;
        if let Some(at) = found.iter().position(same) {
            if found[at].traced.holds == Holds::Devices {
                found[at].traced.holds = layer.traced.holds;
            }
            return Ok(at as u8);
        }
        if found.len() == MAX_DEVICES {
            let reason = format!("more than {MAX_DEVICES} devices belong to it; trace one of them");
            return Err(Error::unsupported(&layer.traced.device.name, reason));
        }
        let index = found.len();
        let below = self.below(&layer)?;
        found.push(layer);
        let mut made_of = Vec::with_capacity(below.len());
        for number in below {
            let layer = self.layer(number, Holds::Devices)?;
            made_of.push(self.add(layer, found)?);
        }
        found[index].traced.made_of = made_of;
        Ok(index as u8)
    }

    /// The numbers of the devices that one is made of.
    fn below(&self, layer: &Layer) -> Result<Vec<DeviceNumber>> {
        if layer.is_partition() {
            return Ok(Vec::new());
        }
        let mut all = entries(&layer.sysfs.join("slaves"));
        all.sort();
        all.iter().map(|dir| number_in(dir)).collect()
    }

    /// The devices that lie on one, and on none of which others lie; itself if there is none.
    pub fn above(&self, number: DeviceNumber) -> Result<Vec<DeviceNumber>> {
        let directory = self.directory(number)?;
        let mut found = Vec::new();
        holders(&directory, &mut found, MAX_DEVICES)?;
        Ok(found)
    }

    /// The partitions of a disk that no other device lies on, in the order of their beginnings; none
    /// of what cannot be read.
    pub fn partitions(&self, disk: DeviceNumber) -> Vec<PartitionOf> {
        let all = self.directory(disk).map(|dir| entries(&dir));
        let parts = all.into_iter().flatten();
        let mut found: Vec<PartitionOf> = parts
            .filter(|dir| dir.join("partition").exists())
            .filter(|dir| entries(&dir.join("holders")).is_empty())
            .filter_map(|dir| {
                Some(PartitionOf {
                    number: number_in(&dir).ok()?,
                    name: dir.file_name()?.to_string_lossy().into_owned(),
                    start_sector: read_number(&dir.join("start"))?,
                    sectors: read_number(&dir.join("size"))?,
                })
            })
            .collect();
        found.sort_by_key(|partition| partition.start_sector);
        found
    }

    /// True if a disk is parted, whatever lies on its partitions.
    pub fn is_parted(&self, disk: DeviceNumber) -> bool {
        let all = self.directory(disk).map(|dir| entries(&dir));
        let mut parts = all.into_iter().flatten();
        parts.any(|dir| dir.join("partition").exists())
    }

    fn directory(&self, number: DeviceNumber) -> Result<PathBuf> {
        let DeviceNumber { major, minor } = number;
        let link = self.root.join(format!("sys/dev/block/{major}:{minor}"));
        fs::canonicalize(&link).map_err(Error::io(&link, "find the device at"))
    }

    fn layer(&self, number: DeviceNumber, holds: Holds) -> Result<Layer> {
        let sysfs = self.directory(number)?;
        let disk_sysfs = match sysfs.join("partition").exists() {
            true => sysfs.parent().map(Path::to_owned).unwrap_or_default(),
            false => sysfs.clone(),
        };
        let disk = number_in(&disk_sysfs)?;
        let kind = self.kind(number, disk, &disk_sysfs);
        let below = disk::below(self.root, &sysfs);
        let traced = TracedDevice {
            device: describe(number, &sysfs, &disk_sysfs, disk::rotational(&below)),
            holds,
            made_of: Vec::new(),
            kind: kind.name,
            title: kind.title,
        };
        Ok(Layer {
            number,
            disk,
            traced,
            hardware: disk::disks(&below),
            sysfs,
            disk_sysfs,
            refusal: kind.refusal,
        })
    }

    fn kind(&self, number: DeviceNumber, disk: DeviceNumber, directory: &Path) -> Kind {
        let mut kind = if directory.join("dm").exists() {
            self.mapped(disk, directory)
        } else if let Ok(level) = read(&directory.join("md/level")) {
            striped(level.trim())
        } else if directory.join("mq").exists() {
            // Only devices with requests have hardware queues (`blk_mq_sysfs_register`).
            Kind::default()
        } else {
            Kind::refused(
                "",
                "it has no requests, only bios, so there is nothing to compare with its counters; \
                 name a disk, or a device of device mapper or md on one"
                    .into(),
            )
        };
        if number != disk && !kind.name.is_empty() {
            let reason = "it is a partition of a device that is made of others; name that device";
            kind.refusal = Some(reason.into());
        }
        kind
    }

    fn mapped(&self, disk: DeviceNumber, directory: &Path) -> Kind {
        let text = |file: &str| read(&directory.join("dm").join(file)).unwrap_or_default();
        let (uuid, title) = (text("uuid"), text("name"));
        let (name, title) = match uuid.split('-').collect::<Vec<_>>()[..] {
            ["LVM", ..] => ("LVM", Some(title.trim().to_owned())),
            ["CRYPT", version, ..] if version.starts_with("LUKS") => ("LUKS", None),
            ["CRYPT", ..] => ("dm-crypt", None),
            _ => ("device mapper", None),
        };
        let refusal = match (self.target_types)(disk) {
            Err(error) => Some(error.to_string()),
            Ok(types) => types
                .iter()
                .find(|kind| !FOLLOWED_TARGETS.contains(&kind.as_str()))
                .map(|other| unfollowed(&format!("device mapper's {other}"))),
        };
        Kind {
            name: name.into(),
            title,
            refusal,
        }
    }
}

/// How a device is made of others, and what people call it.
#[derive(Default)]
struct Kind {
    name: String,
    title: Option<String>,
    refusal: Option<String>,
}

impl Kind {
    fn refused(name: &str, refusal: String) -> Kind {
        Kind {
            name: name.into(),
            title: None,
            refusal: Some(refusal),
        }
    }
}

/// A device of md.
fn striped(level: &str) -> Kind {
    let known = FOLLOWED_LEVELS.iter().find(|(known, _)| *known == level);
    match known {
        Some((_, name)) => Kind {
            name: (*name).into(),
            ..Kind::default()
        },
        None => Kind::refused("md", unfollowed(&format!("md's {level}"))),
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Follows `holders` upwards; partitions of a disk can have some, too.
fn holders(directory: &Path, found: &mut Vec<DeviceNumber>, left: usize) -> Result<bool> {
    let names = |dir: PathBuf| {
        let mut all = entries(&dir);
        all.sort();
        all
    };
    if left == 0 {
        return Ok(false);
    }
    let at = found.len();
    let mut has_some = false;
    for holder in names(directory.join("holders")) {
        let holder = fs::canonicalize(&holder).map_err(Error::io(&holder, "find the device at"))?;
        holders(&holder, found, left - 1)?;
        has_some = true;
    }
    let parts = names(directory.to_owned());
    for part in parts.iter().filter(|part| part.join("partition").exists()) {
        if !names(part.join("holders")).is_empty() {
            holders(part, found, left - 1)?;
        }
    }
    let number = number_in(directory)?;
    if !has_some && !found.contains(&number) {
        // Before those on its partitions.
        found.insert(at, number);
    }
    Ok(has_some)
}

fn unfollowed(what: &str) -> String {
    format!(
        "{what} does not tell where it sends a block; iostep follows linear, striped and crypt \
         targets (LVM, LUKS) and md's RAID 0 and 1; of a disk, name a partition without it"
    )
}

/// The disks first, each device's parts counted anew.
fn disks_first(mut found: Vec<Layer>) -> Vec<Layer> {
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by_key(|at| !found[*at].traced.is_disk());
    let new_place = |old: u8| order.iter().position(|at| *at == usize::from(old));
    for layer in &mut found {
        let made_of = layer.traced.made_of.iter();
        layer.traced.made_of = made_of
            .filter_map(|old| Some(new_place(*old)? as u8))
            .collect();
    }
    order.into_iter().map(|at| found[at].clone()).collect()
}

/// Of several devices `above`, the first is taken for the one that the filesystem's layout is of: it
/// cannot be followed where one of the others is a disk, and it is not.
pub(crate) fn refuse_another_order(layers: &mut [Layer], above: &[(DeviceNumber, Holds)]) {
    let mut all = layers.iter();
    let first = all.find(|layer| layer.traced.holds == Holds::Filesystem);
    let first = first.map(|layer| (layer.number, layer.traced.device.name.clone()));
    let Some(((begins_on, _), (number, disk))) = above.first().zip(first) else {
        return;
    };
    if let Some(layer) = layers
        .iter_mut()
        .find(|layer| layer.number == *begins_on && number != *begins_on)
    {
        layer.refusal = Some(format!(
            "the filesystem begins on it, which is made of others, and goes on on {disk}, a disk; \
             iostep follows several devices of a filesystem that are disks, or are all made of others"
        ));
    }
}

fn describe(number: DeviceNumber, sysfs: &Path, disk: &Path, rotational: Option<bool>) -> Device {
    let flag = |name| Some(queue_text(disk, name)?.parse::<u8>().ok()? == 1);
    let name = |directory: &Path| {
        let name = directory.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    Device {
        name: name(sysfs),
        major: number.major,
        minor: number.minor,
        part_of: (sysfs != disk).then(|| name(disk)),
        start_sector: read_number(&sysfs.join("start")).unwrap_or(0),
        sectors: read_number(&sysfs.join("size")).unwrap_or(0),
        logical_block_bytes: queue_number(disk, "logical_block_size"),
        physical_block_bytes: queue_number(disk, "physical_block_size"),
        volatile_write_cache: queue_text(disk, "write_cache").map(|text| text == "write back"),
        fua: flag("fua"),
        scheduler: queue_text(disk, "scheduler").map(|text| chosen(&text)),
        rotational,
    }
}

fn number_in(directory: &Path) -> Result<DeviceNumber> {
    DeviceNumber::parse(&read(&directory.join("dev"))?)
        .ok_or_else(|| Error::unsupported(directory.display(), "its number is not MAJ:MIN"))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(Error::io(path, "read"))
}

/// What a file of sysfs has, as a number.
pub(crate) fn read_number(path: &Path) -> Option<u64> {
    read(path).ok()?.trim().parse().ok()
}

fn queue_text(disk: &Path, name: &str) -> Option<String> {
    let text = read(&disk.join("queue").join(name)).ok()?;
    Some(text.trim().to_owned())
}

fn queue_number(disk: &Path, name: &str) -> Option<u32> {
    queue_text(disk, name)?.parse().ok()
}

/// `none [mq-deadline] kyber`: the one in brackets.
fn chosen(text: &str) -> String {
    text.split_ascii_whitespace()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
        .unwrap_or(text)
        .to_owned()
}

#[cfg(test)]
mod tests;
