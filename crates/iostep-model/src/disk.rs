//! The hardware behind a device: what it calls itself, what it promises, and how worn it is.
//!
//! No serial number is read, nor anything else that tells one piece from another of its kind.

mod ata;
mod attribute;
mod filesystem;
mod health;
mod loop_device;
mod nvme;
mod sysfs;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use attribute::node;
pub use filesystem::{btrfs_devices, number_of};
pub use health::Health;
pub use loop_device::{Status as LoopStatus, status as loop_status};
pub use sysfs::{Below, below, disks, rotational};

use crate::names::named;

/// How a disk is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bus {
    Nvme,
    /// SCSI of any transport that is not named below.
    Scsi,
    /// ATA and SATA.
    Ata,
    Usb,
    Ufs,
    Emmc,
    /// An SD card.
    Sd,
    Virtio,
}

named!(
    Bus,
    "bus",
    Nvme = "NVMe",
    Scsi = "SCSI",
    Ata = "ATA",
    Usb = "USB",
    Ufs = "UFS",
    Emmc = "eMMC",
    Sd = "SD",
    Virtio = "virtio",
);

/// `queue/write_cache`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCache {
    /// It is volatile: a flush means something.
    Back,
    Through,
}

named!(
    WriteCache,
    "write cache",
    Back = "write back",
    Through = "write through"
);

/// A disk at the bottom, below partitions, device mapper, md and loop devices. What the kernel does
/// not tell is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Name below /dev: `nvme0n1`.
    pub name: String,
    pub bus: Option<Bus>,
    /// As the disk says, or the number that stands for it: of PCI for NVMe, of virtio, or the
    /// card's manufacturer ID.
    pub vendor: Option<String>,
    pub model: Option<String>,
    pub firmware: Option<String>,
    pub capacity_bytes: Option<u64>,
    pub write_cache: Option<WriteCache>,
    /// `queue/fua`.
    pub fua: Option<bool>,
    /// `queue/rotational`.
    pub rotational: Option<bool>,
    /// Before the run; `None` where the disk or the rights do not tell.
    pub health_before: Option<Health>,
    /// After it.
    pub health_after: Option<Health>,
}

impl Disk {
    /// True if nothing that both tell says that they are of different kinds. Where it is attached
    /// by name, and its wear, do not count.
    pub fn is_like(&self, other: &Disk) -> bool {
        fn agree<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        agree(&self.bus, &other.bus)
            && agree(&self.vendor, &other.vendor)
            && agree(&self.model, &other.model)
            && agree(&self.firmware, &other.firmware)
            && agree(&self.capacity_bytes, &other.capacity_bytes)
    }
}

/// Disks without those that were there before, by name.
pub fn each_once(disks: impl IntoIterator<Item = Disk>) -> Vec<Disk> {
    let mut all: Vec<Disk> = Vec::new();
    for disk in disks {
        if all.iter().all(|known| known.name != disk.name) {
            all.push(disk);
        }
    }
    all
}

/// Reads the disks' health before a run.
///
/// `root` is that of /sys and /dev: `/`. NVMe tells only root.
pub fn read_before(root: &Path, disks: &mut [Disk]) {
    for disk in disks {
        disk.health_before = health::read(root, disk);
    }
}

/// The same after it.
pub fn read_after(root: &Path, disks: &mut [Disk]) {
    for disk in disks {
        disk.health_after = health::read(root, disk);
    }
}

#[cfg(test)]
mod tests;
