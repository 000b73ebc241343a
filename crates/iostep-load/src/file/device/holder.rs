//! Who uses a block device, in words.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Who holds a device.
#[derive(Debug, PartialEq, Eq)]
pub struct Holder {
    /// What stands against using it.
    fact: String,
    /// What to do about it.
    hint: String,
}

impl Default for Holder {
    /// One that leaves no trace outside of itself.
    fn default() -> Holder {
        Holder {
            fact: "another program or mount namespace holds it".into(),
            hint: "see lsof, and close it there".into(),
        }
    }
}

impl Holder {
    /// The refusal to use the device at `path`.
    pub fn refuse(self, path: &Path) -> Error {
        Error::Refused {
            what: format!("{}: {}", path.display(), self.fact),
            hint: self.hint,
        }
    }
}

/// The directory of a device number (`st_rdev`) in sysfs.
pub fn sysfs(root: &Path, number: u64) -> PathBuf {
    root.join(format!("sys/dev/block/{}", major_minor(number)))
}

fn major_minor(number: u64) -> String {
    format!(
        "{}:{}",
        rustix::fs::major(number),
        rustix::fs::minor(number)
    )
}

/// Finds who uses the device with this number, one of its partitions, or the disk that it is a
/// partition of. `root` is `/` but for tests. `None` says little: what another namespace mounted
/// is not seen here, only the kernel knows.
pub fn find(root: &Path, number: u64) -> Option<Holder> {
    let family = family(root, number);
    mounted(root, &family)
        .or_else(|| part_of_btrfs(root, &family))
        .or_else(|| swap(root, &family))
        .or_else(|| stacked_upon(&family))
        .or_else(|| backs_a_loop_device(root, &family))
}

/// Names and numbers (`8:1`) of a device, its partitions and its disk.
#[derive(Debug, Default)]
struct Family {
    /// Directories in sysfs by name.
    members: BTreeMap<String, PathBuf>,
    numbers: Vec<String>,
}

fn family(root: &Path, number: u64) -> Family {
    let mut family = Family {
        numbers: vec![major_minor(number)],
        ..Family::default()
    };
    let Ok(directory) = std::fs::canonicalize(sysfs(root, number)) else {
        return family;
    };
    if directory.join("partition").exists() {
        if let Some(disk) = directory.parent() {
            family.add(disk);
        }
    } else {
        for entry in entries(&directory) {
            if entry.join("partition").exists() {
                family.add(&entry);
            }
        }
    }
    family.add(&directory);
    family
}

impl Family {
    fn add(&mut self, directory: &Path) {
        if let Some(name) = directory.file_name() {
            let name = name.to_string_lossy().into_owned();
            self.members.insert(name, directory.to_owned());
        }
        self.numbers.extend(read(&directory.join("dev")));
    }

    /// The member that a path below /dev names.
    fn named(&self, path: &str) -> Option<&str> {
        // sysfs has `cciss!c0d0` for /dev/cciss/c0d0.
        let name = path.strip_prefix("/dev/")?.replace('/', "!");
        self.members
            .get_key_value(&name)
            .map(|(name, _)| name.as_str())
    }
}

fn mounted(root: &Path, family: &Family) -> Option<Holder> {
    let text = read(&root.join("proc/self/mountinfo"))?;
    text.lines().find_map(|line| {
        // "36 35 98:0 /root /point options [fields] - kind source options", proc(5).
        let mut words = line.split(' ');
        let number = words.nth(2)?;
        let point = words.nth(1)?;
        let source = words.skip_while(|word| *word != "-").nth(2)?;
        let is_member = family.numbers.iter().any(|n| n == number);
        (is_member || family.named(source).is_some()).then(|| Holder {
            fact: format!("{source} is mounted at {point}"),
            hint: "unmount it, or choose another device".into(),
        })
    })
}

/// A btrfs of several devices is mounted from one of them, and holds all.
fn part_of_btrfs(root: &Path, family: &Family) -> Option<Holder> {
    entries(&root.join("sys/fs/btrfs"))
        .iter()
        .find_map(|filesystem| {
            let devices = filesystem.join("devices");
            let name = family
                .members
                .keys()
                .find(|name| devices.join(name).exists())?;
            Some(Holder {
                fact: format!("{name} belongs to a mounted btrfs"),
                hint: "unmount it, or choose another device".into(),
            })
        })
}

fn swap(root: &Path, family: &Family) -> Option<Holder> {
    let text = read(&root.join("proc/swaps"))?;
    text.lines().find_map(|line| {
        let path = line.split_ascii_whitespace().next()?;
        let name = family.named(path)?;
        Some(Holder {
            fact: format!("{name} is used as swap"),
            hint: format!("run swapoff {path}, or choose another device"),
        })
    })
}

/// Device mapper and md tell what they are built upon.
fn stacked_upon(family: &Family) -> Option<Holder> {
    family.members.iter().find_map(|(name, directory)| {
        let above = entries(&directory.join("holders")).into_iter().next()?;
        let above = above.file_name()?.to_string_lossy().into_owned();
        Some(Holder {
            fact: format!("{name} is a part of {above}"),
            hint: format!("use {above} itself, or take it apart"),
        })
    })
}

fn backs_a_loop_device(root: &Path, family: &Family) -> Option<Holder> {
    entries(&root.join("sys/block"))
        .iter()
        .find_map(|directory| {
            let backing = read(&directory.join("loop/backing_file"))?;
            let name = family.named(&backing)?;
            let above = directory.file_name()?.to_string_lossy().into_owned();
            Some(Holder {
                fact: format!("{name} is below {above}"),
                hint: format!("run losetup -d /dev/{above}, or choose another device"),
            })
        })
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut entries: Vec<_> = entries.map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

fn read(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

#[cfg(test)]
mod tests;
