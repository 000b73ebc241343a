//! Where a cell runs: on this machine, or in a guest because this kernel lacks something.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use iostep_model::filesystem::Kind;
use iostep_model::lab::{Cell, Filesystem, Lab};
use iostep_model::mountinfo;

use crate::error::{Error, Result};
use crate::plan::not_applicable;
use crate::storage::filesystem_of;

/// What the user wants the cells to lie on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum On {
    /// Loop devices where this kernel has the filesystem and the feature, a guest elsewhere.
    #[default]
    Auto,
    /// Loop devices over files in the directory for temporary files.
    Loop,
    /// Loop devices over files in memory.
    Tmpfs,
    /// A guest, for all.
    Guest,
    /// This block device, which is overwritten.
    Device(PathBuf),
    /// This directory, whose filesystem stays as it is.
    Directory(PathBuf),
}

impl FromStr for On {
    type Err = Error;

    fn from_str(text: &str) -> Result<On> {
        let path = PathBuf::from(text);
        let kind = std::fs::metadata(&path).map(|metadata| metadata.file_type());
        match (text, kind) {
            ("auto", _) => Ok(On::Auto),
            ("loop", _) => Ok(On::Loop),
            ("tmpfs", _) => Ok(On::Tmpfs),
            ("guest", _) => Ok(On::Guest),
            (_, Ok(kind)) if kind.is_dir() => Ok(On::Directory(path)),
            (_, Ok(kind)) if kind.is_block_device() => Ok(On::Device(path)),
            (_, found) => Err(Error::Usage {
                what: match found {
                    Ok(_) => format!("{text}: neither a directory nor a block device"),
                    Err(error) => format!("{text}: {error}"),
                },
                hint: "choose auto, loop, tmpfs, guest, a block device or a directory".into(),
            }),
        }
    }
}

/// What is to be done with a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Run it on this machine.
    Here,
    /// Run it in a guest.
    Guest,
    /// It means nothing, or nothing there: why.
    NotApplicable(String),
}

/// Since Linux 5.10 (fs/ext4/sysfs.c).
const FAST_COMMIT: &str = "/sys/fs/ext4/features/fast_commit";

/// What this machine's kernel can mount, as far as it was asked.
#[derive(Debug, Default)]
pub struct Mountable {
    known: BTreeMap<Filesystem, bool>,
}

impl Mountable {
    /// Nothing is looked up before it is asked for.
    pub fn new() -> Mountable {
        Mountable::default()
    }

    /// True if this kernel can mount it with its features, with a module loaded if need be.
    pub fn has(&mut self, filesystem: Filesystem) -> bool {
        let can_mount = || {
            let wants_fast_commit = filesystem == Filesystem::Ext4FastCommit;
            kernel_mounts(filesystem.kind())
                && (!wants_fast_commit || Path::new(FAST_COMMIT).exists())
        };
        *self.known.entry(filesystem).or_insert_with(can_mount)
    }

    /// Where a cell runs if the user wants it `on`. `journal` tells if a second device was given,
    /// `polled` are the blocks of the lab whose cells need a device that can be polled.
    pub fn choose(
        &mut self,
        cell: &Cell,
        on: &On,
        journal: bool,
        polled: &BTreeSet<String>,
    ) -> Choice {
        if let Some(reason) = not_applicable(cell) {
            return Choice::NotApplicable(reason);
        }
        let refused = match on {
            // A loop device never polls, and a kernel that lacks the filesystem has none.
            On::Auto if polled.contains(&cell.block) => return Choice::Guest,
            On::Auto if !self.has(cell.storage.filesystem) => return Choice::Guest,
            On::Auto => None,
            On::Guest => return Choice::Guest,
            On::Loop | On::Tmpfs => polled_on_loop(cell),
            On::Device(device) => on_device(cell, device, journal),
            On::Directory(directory) => in_directory(cell, directory),
        };
        refused.map_or(Choice::Here, Choice::NotApplicable)
    }

    #[cfg(test)]
    fn with(known: &[(Filesystem, bool)]) -> Mountable {
        Mountable {
            known: known.iter().copied().collect(),
        }
    }
}

/// The blocks with a cell that is polled. Its other cells are what it is compared with, so they
/// need the same device.
pub fn polled_blocks(lab: &Lab) -> BTreeSet<String> {
    let polled = lab
        .cells
        .iter()
        .filter(|cell| cell.switches.polled && not_applicable(cell).is_none());
    polled.map(|cell| cell.block.clone()).collect()
}

fn polled_on_loop(cell: &Cell) -> Option<String> {
    cell.switches
        .polled
        .then(|| "a loop device has no queue to poll".into())
}

fn on_device(cell: &Cell, device: &Path, journal: bool) -> Option<String> {
    if cell.storage.external_journal && !journal {
        return Some("no second device was given; name one with --journal-device".into());
    }
    if cell.switches.polled && !polls(device) {
        return Some(format!("{} has no queue to poll", device.display()));
    }
    None
}

/// `queue/io_poll` of the disk.
fn polls(device: &Path) -> bool {
    let number = std::fs::metadata(device).map(|metadata| {
        let number = std::os::unix::fs::MetadataExt::rdev(&metadata);
        (rustix::fs::major(number), rustix::fs::minor(number))
    });
    number.is_ok_and(|(major, minor)| {
        let directory = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        // A partition has its disk's queue.
        let own = ["queue/io_poll", "../queue/io_poll"].map(|name| directory.join(name));
        let texts = own
            .iter()
            .filter_map(|path| std::fs::read_to_string(path).ok());
        texts.into_iter().any(|text| text.trim() == "1")
    })
}

fn in_directory(cell: &Cell, directory: &Path) -> Option<String> {
    let wanted = cell.storage.filesystem;
    let found = mounted(directory);
    let shown = directory.display();
    match found {
        Some(found) if found == wanted => {}
        Some(found) => return Some(format!("{shown} is on {found}, not on {wanted}")),
        None => return Some(format!("{shown} is not on {wanted}")),
    }
    let storage = &cell.storage;
    if storage.external_journal || cell.switches.polled {
        return Some(format!(
            "{shown} is used as it is; switches E and P need a device"
        ));
    }
    if !storage.mkfs_options.is_empty() || !storage.mount_options.is_empty() {
        return Some(format!("{shown} is used as it is; options need a device"));
    }
    None
}

fn mounted(directory: &Path) -> Option<Filesystem> {
    let id = mountinfo::id_of(directory)?;
    let table = mountinfo::table_with(id, directory).ok()??;
    let mount = mountinfo::with_id(&String::from_utf8_lossy(&table.text), id)?;
    filesystem_of(&mount.kind, &mount.options.join(","))
}

/// True if this kernel can mount filesystems of a kind, with a module loaded if need be.
pub fn kernel_mounts(kind: Kind) -> bool {
    registered(kind.name()) || {
        load_module(kind.name());
        registered(kind.name())
    }
}

fn registered(name: &str) -> bool {
    let list = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    list.lines()
        .any(|line| line.split_whitespace().last() == Some(name))
}

/// Failure needs no word: the second look tells.
fn load_module(name: &str) {
    let _ = Command::new("modprobe")
        .arg(name)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

#[cfg(test)]
mod tests;
