//! Disks as sysfs shows them (Documentation/ABI: stable/sysfs-block, testing/sysfs-driver-ufs;
//! Documentation/driver-api/mmc/mmc-dev-attrs.rst; drivers/nvme/host/sysfs.c).
//!
//! `sys` is the root of sysfs, `/sys` but for tests; `root` that of /sys, /dev and /proc, `/`.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::attribute::{bytes, entries, node, number, text};
use super::loop_device::{self, Status};
use super::{Bus, Disk, ata};
use crate::SECTOR_BYTES;

/// More block devices than any disk's belong to each other.
const MOST_BLOCK_DEVICES: usize = 8;

/// A device on the way down to the disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Below {
    /// Name below /dev.
    pub name: String,
    /// Of a loop device, as the kernel names it.
    pub backing_file: Option<PathBuf>,
    directory: PathBuf,
    /// True if nothing is known that it is built upon.
    is_lowest: bool,
}

impl Below {
    /// True if it is hardware as far as the kernel tells.
    fn is_disk(&self) -> bool {
        let is_built = |kind| self.directory.join(kind).exists();
        self.is_lowest && !["loop", "dm", "md"].into_iter().any(is_built)
    }

    fn rotational(&self) -> Option<bool> {
        // A loop device's own says nothing of what its file lies on.
        let is_loop = self.directory.join("loop").exists();
        flag(&self.directory, "rotational").filter(|_| !is_loop)
    }
}

/// A device, by its directory in sysfs or a link to it, and all that it is built upon: partition,
/// device mapper, md, loop devices' files. What cannot be read is left out.
pub fn below(root: &Path, device: &Path) -> Vec<Below> {
    below_as(root, device, loop_device::ask)
}

/// The same; `ask` gives what a loop device at a node says of its file.
pub(super) fn below_as(root: &Path, device: &Path, ask: fn(&Path) -> Option<Status>) -> Vec<Below> {
    let mut found: Vec<Below> = Vec::new();
    let mut next = vec![device.to_owned()];
    while let Some(device) = next.pop() {
        let Ok(directory) = fs::canonicalize(device) else {
            continue;
        };
        if found.iter().any(|known| known.directory == directory) {
            continue;
        }
        let name = file_name(&directory);
        let mut lower = entries(&directory.join("slaves"));
        if directory.join("partition").exists() {
            lower.extend(directory.parent().map(Path::to_owned));
        }
        let backing_file = backing_file(&directory);
        if let Some(file) = &backing_file {
            let status = node(root, &name).and_then(|node| ask(&node));
            lower.extend(loop_device::lower(root, &directory, file, status));
        }
        found.push(Below {
            name,
            is_lowest: lower.is_empty(),
            backing_file,
            directory,
        });
        // Taken from the end: in order.
        next.extend(lower.into_iter().rev());
    }
    found
}

/// The file of a loop device, byte for byte: the kernel adds a line's end and nothing else.
fn backing_file(directory: &Path) -> Option<PathBuf> {
    let mut bytes = bytes(&directory.join("loop/backing_file"))?;
    bytes.pop_if(|byte| *byte == b'\n');
    (!bytes.is_empty()).then(|| OsString::from_vec(bytes).into())
}

/// The disks among what [`below`] found, without their health. Below a loop device over memory
/// there is none.
pub fn disks(found: &[Below]) -> Vec<Disk> {
    let disks = found.iter().filter(|below| below.is_disk());
    disks.map(|disk| describe(&disk.directory)).collect()
}

/// Whether anything turns of what [`below`] found; `None` where the kernel does not tell it of all
/// that is lowest, as of a loop device's file whose disk it does not tell.
pub fn rotational(found: &[Below]) -> Option<bool> {
    let lowest = found.iter().filter(|below| below.is_lowest);
    let told: Vec<Option<bool>> = lowest.map(Below::rotational).collect();
    if told.contains(&Some(true)) {
        return Some(true);
    }
    (!told.is_empty() && !told.contains(&None)).then_some(false)
}

/// Where sysfs tells of a disk.
pub struct SysfsDisk {
    /// The block device's own directory.
    directory: PathBuf,
    /// Of what it is the disk: a controller, a card, a logical unit.
    pub device: Option<PathBuf>,
}

impl SysfsDisk {
    /// Of the block device with a name below /dev.
    pub fn of(sys: &Path, name: &str) -> Option<SysfsDisk> {
        let is_plain = !name.contains('/') && !name.starts_with('.');
        let directory = fs::canonicalize(sys.join("class/block").join(name));
        directory.ok().filter(|_| is_plain).map(SysfsDisk::at)
    }

    fn at(directory: PathBuf) -> SysfsDisk {
        let above = |directory: &Path| fs::canonicalize(directory.join("device")).ok();
        // A boot partition of an eMMC is a block device of a block device, which is the card's.
        let next = |device: &PathBuf| above(device).filter(|_| subsystem(device) == "block");
        let devices = std::iter::successors(above(&directory), next);
        SysfsDisk {
            device: devices.take(MOST_BLOCK_DEVICES).last(),
            directory,
        }
    }

    /// The directory of a SCSI disk's host: the ancestor called `host0`.
    fn host(&self) -> Option<&Path> {
        let mut ancestors = self.device.as_deref()?.ancestors();
        ancestors.find(|path| is_numbered(&file_name(path), "host"))
    }

    /// What the host of a SCSI disk belongs to.
    pub fn controller(&self) -> Option<&Path> {
        self.host()?.parent()
    }

    fn bus(&self) -> Option<Bus> {
        let device = self.device.as_deref()?;
        match subsystem(device).as_str() {
            "nvme" | "nvme-subsystem" => Some(Bus::Nvme),
            "virtio" => Some(Bus::Virtio),
            "scsi" => Some(self.scsi_bus()),
            "mmc" => match text(&device.join("type"))?.as_str() {
                "MMC" => Some(Bus::Emmc),
                "SD" => Some(Bus::Sd),
                _ => None,
            },
            _ => None,
        }
    }

    /// What SCSI's commands go over.
    fn scsi_bus(&self) -> Bus {
        let above = |prefix: &str| {
            let mut ancestors = self.directory.ancestors();
            ancestors.any(|path| is_numbered(&file_name(path), prefix))
        };
        match () {
            () if above("ata") => Bus::Ata,
            () if above("usb") => Bus::Usb,
            () if self.is_ufs() => Bus::Ufs,
            () => Bus::Scsi,
        }
    }

    fn is_ufs(&self) -> bool {
        let is_ufs = || {
            let host = self.host()?;
            let driver = text(
                &host
                    .join("scsi_host")
                    .join(file_name(host))
                    .join("proc_name"),
            );
            let descriptor = host.parent()?.join("device_descriptor");
            Some(driver.as_deref() == Some("ufshcd") || descriptor.exists())
        };
        is_ufs() == Some(true)
    }

    /// Where a vendor, a model and a firmware are told.
    fn names(&self, bus: Bus) -> [Option<String>; 3] {
        let device = self.device.as_deref();
        let read = |name: &str| text(&device?.join(name));
        match bus {
            Bus::Nvme => [self.nvme_vendor(), read("model"), read("firmware_rev")],
            Bus::Ata => {
                let [model, firmware] = device.map_or([None, None], ata::names);
                // Without the page, their first 16 and 4 characters.
                let [model, firmware] = [model.or(read("model")), firmware.or(read("rev"))];
                [read("vendor"), model, firmware]
            }
            Bus::Scsi | Bus::Usb | Bus::Ufs => [read("vendor"), read("model"), read("rev")],
            Bus::Emmc | Bus::Sd => [read("manfid"), read("name"), read("fwrev")],
            Bus::Virtio => [read("vendor"), None, None],
        }
    }

    /// The number of the controller's vendor on PCI; with several ways to a disk, `device` is the
    /// subsystem, which has the controllers as links.
    fn nvme_vendor(&self) -> Option<String> {
        let device = self.device.as_deref()?;
        let controllers = entries(device).into_iter();
        let mut controllers = controllers.filter(|path| is_numbered(&file_name(path), "nvme"));
        let of = |controller: &Path| text(&controller.join("device/vendor"));
        of(device).or_else(|| controllers.find_map(|controller| of(&controller)))
    }
}

fn describe(directory: &Path) -> Disk {
    let place = SysfsDisk::at(directory.to_owned());
    let bus = place.bus();
    let [vendor, model, firmware] = bus.map_or([None, None, None], |bus| place.names(bus));
    let sectors = number(&directory.join("size"));
    Disk {
        name: file_name(directory),
        bus,
        vendor,
        model,
        firmware,
        capacity_bytes: sectors.and_then(|sectors| sectors.checked_mul(SECTOR_BYTES)),
        write_cache: text(&directory.join("queue/write_cache")).and_then(|text| text.parse().ok()),
        fua: flag(directory, "fua"),
        rotational: flag(directory, "rotational"),
        health_before: None,
        health_after: None,
    }
}

/// What kind of device has this directory: `block`, `scsi`; empty if it does not tell.
fn subsystem(directory: &Path) -> String {
    let link = fs::canonicalize(directory.join("subsystem"));
    link.map_or(String::new(), |link| file_name(&link))
}

/// `0` or `1` of a block device's `queue`.
fn flag(directory: &Path, name: &str) -> Option<bool> {
    match text(&directory.join("queue").join(name))?.as_str() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// `host0`, not `host` nor `hostess`.
fn is_numbered(name: &str, prefix: &str) -> bool {
    let number = name.strip_prefix(prefix);
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}
