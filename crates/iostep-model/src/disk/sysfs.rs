//! Disks as sysfs shows them (Documentation/ABI: stable/sysfs-block, testing/sysfs-driver-ufs;
//! Documentation/driver-api/mmc/mmc-dev-attrs.rst; drivers/nvme/host/sysfs.c).
//!
//! Functions take the root of sysfs, `/sys` but for tests.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::{Bus, Disk};
use crate::SECTOR_BYTES;

/// No attribute is longer than a page.
const MOST_BYTES: u64 = 4096;

/// A device on the way down to the disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Below {
    /// Name below /dev.
    pub name: String,
    /// Of a loop device, as the kernel names it.
    pub backing_file: Option<PathBuf>,
    directory: PathBuf,
    is_disk: bool,
}

/// A device, by its directory in sysfs or a link to it, and all that it is built upon: partition,
/// device mapper, md, loop devices' files. What cannot be read is left out.
pub fn below(sys: &Path, device: &Path) -> Vec<Below> {
    let mut found: Vec<Below> = Vec::new();
    let mut next = vec![device.to_owned()];
    while let Some(device) = next.pop() {
        let Ok(directory) = fs::canonicalize(device) else {
            continue;
        };
        if found.iter().any(|known| known.directory == directory) {
            continue;
        }
        let mut lower = entries(&directory.join("slaves"));
        if directory.join("partition").exists() {
            lower.extend(directory.parent().map(Path::to_owned));
        }
        let backing_file = text(&directory.join("loop/backing_file")).map(PathBuf::from);
        lower.extend(
            backing_file
                .as_deref()
                .and_then(|file| device_of(sys, file)),
        );
        found.push(Below {
            name: file_name(&directory),
            is_disk: lower.is_empty() && backing_file.is_none(),
            backing_file,
            directory,
        });
        // Taken from the end: in order.
        next.extend(lower.into_iter().rev());
    }
    found
}

/// The disks below a device, without their health; itself if it is one. Of a loop device over
/// memory there is none.
pub fn disks(sys: &Path, device: &Path) -> Vec<Disk> {
    let found = below(sys, device).into_iter();
    let disks = found.filter(|below| below.is_disk);
    disks.map(|disk| describe(disk.directory)).collect()
}

/// The directory of the device of the filesystem that a file is on, or that it is itself.
fn device_of(sys: &Path, file: &Path) -> Option<PathBuf> {
    let found = fs::metadata(file)
        .or_else(|_| fs::metadata(directory_of_deleted(file)?))
        .ok()?;
    let is_device = found.file_type().is_block_device();
    let number = if is_device { found.rdev() } else { found.dev() };
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let directory = sys.join(format!("dev/block/{major}:{minor}"));
    directory.exists().then_some(directory)
}

/// Where a file was that has no name any more; of one that lies in memory (memfd_create(2)), not
/// the root, which the kernel puts before its name.
fn directory_of_deleted(file: &Path) -> std::io::Result<&Path> {
    let name = file.as_os_str().as_encoded_bytes();
    let is_deleted = name.ends_with(b" (deleted)") && !name.starts_with(b"/memfd:");
    let parent = file.parent().filter(|_| is_deleted);
    parent.ok_or_else(|| std::io::ErrorKind::NotFound.into())
}

/// Where sysfs tells of a disk.
pub struct Place {
    /// The block device's own directory.
    directory: PathBuf,
    /// Of what it is the disk: a controller, a card, a logical unit.
    pub device: Option<PathBuf>,
}

impl Place {
    /// Of the block device with a name below /dev.
    pub fn of(sys: &Path, name: &str) -> Option<Place> {
        let is_plain = !name.contains('/') && !name.starts_with('.');
        let directory = fs::canonicalize(sys.join("class/block").join(name));
        directory.ok().filter(|_| is_plain).map(Place::at)
    }

    fn at(directory: PathBuf) -> Place {
        Place {
            device: fs::canonicalize(directory.join("device")).ok(),
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
        let subsystem = fs::canonicalize(device.join("subsystem")).ok()?;
        match file_name(&subsystem).as_str() {
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
            Bus::Scsi | Bus::Ata | Bus::Usb | Bus::Ufs => {
                [read("vendor"), read("model"), read("rev")]
            }
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

fn describe(directory: PathBuf) -> Disk {
    let place = Place::at(directory);
    let bus = place.bus();
    let [vendor, model, firmware] = bus.map_or([None, None, None], |bus| place.names(bus));
    let queue = |name: &str| text(&place.directory.join("queue").join(name));
    let flag = |name: &str| match queue(name)?.as_str() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    };
    let sectors = text(&place.directory.join("size")).and_then(|text| text.parse::<u64>().ok());
    Disk {
        name: file_name(&place.directory),
        bus,
        vendor,
        model,
        firmware,
        capacity_bytes: sectors.and_then(|sectors| sectors.checked_mul(SECTOR_BYTES)),
        write_cache: queue("write_cache").and_then(|text| text.parse().ok()),
        fua: flag("fua"),
        rotational: flag("rotational"),
        health_before: None,
        health_after: None,
    }
}

/// An attribute without the white space around it, wrong UTF-8 replaced; `None` if there is none,
/// or it is empty.
pub fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    // A device may fill the field with zeros.
    let text = text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    entries.sort();
    entries
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
