//! The devices that a guest sees.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::free_space;

/// A kind of storage device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Device {
    /// virtio-blk.
    #[default]
    Virtio,
    /// NVMe, with queues for polled completion.
    Nvme,
    /// SCSI disks on a virtio host adapter.
    Scsi,
    /// An SD card in a host controller on PCI.
    Sd,
}

iostep_model::listed! { Device,
    Virtio = "virtio",
    Nvme = "nvme",
    Scsi = "scsi",
    Sd = "sd",
}

impl Device {
    /// Where the guest has the `n`th device of this kind, counted from 0.
    pub fn path(self, n: usize) -> PathBuf {
        let letter = char::from(b'a' + (n % 26) as u8);
        PathBuf::from(match self {
            Device::Virtio => format!("/dev/vd{letter}"),
            // One controller with a namespace each: controllers are numbered as they answer.
            Device::Nvme => format!("/dev/nvme0n{}", n + 1),
            Device::Scsi => format!("/dev/sd{letter}"),
            Device::Sd => format!("/dev/mmcblk{n}"),
        })
    }

    /// Its drivers, with the parameters that they are loaded with.
    pub(super) fn drivers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Device::Virtio => &[("virtio_blk", "")],
            // Without queues of their own, polled requests wait for interrupts after all.
            Device::Nvme => &[("nvme", "poll_queues=1")],
            // Found one after the other, or their letters would come as they answer.
            Device::Scsi => &[
                ("scsi_mod", "scan=sync"),
                ("virtio_scsi", ""),
                ("sd_mod", ""),
            ],
            Device::Sd => &[("sdhci_pci", ""), ("mmc_block", "")],
        }
    }

    /// QEMU's arguments for the devices of this kind, whose images are `blockdev`s `disk0`,
    /// `disk1` and so on.
    pub(super) fn arguments(self, count: usize) -> Vec<OsString> {
        let mut arguments = Vec::new();
        let mut device = |text: String| arguments.extend(["-device".into(), text.into()]);
        if self == Device::Nvme && count > 0 {
            device("nvme,id=nvme,serial=iostep".into());
        }
        if self == Device::Scsi && count > 0 {
            device("virtio-scsi-pci,id=scsi".into());
        }
        for n in 0..count {
            match self {
                // Otherwise a full disk of the host would stop the guest, not the request.
                Device::Virtio => device(format!(
                    "virtio-blk-pci,drive=disk{n},serial=iostep{n},werror=report,rerror=report"
                )),
                Device::Nvme => device(format!("nvme-ns,drive=disk{n},bus=nvme,nsid={}", n + 1)),
                Device::Scsi => device(format!(
                    "scsi-hd,bus=scsi.0,scsi-id={n},drive=disk{n},serial=iostep{n},werror=report,rerror=report"
                )),
                Device::Sd => {
                    device(format!("sdhci-pci,id=sdhci{n}"));
                    // Every controller calls its bus alike (hw/sd/sdhci.c).
                    device(format!("sd-card,bus=pcie.0/sdhci{n}/sd-bus,drive=disk{n}"));
                }
            }
        }
        arguments
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(name: &str) -> Result<Device> {
        Device::ALL
            .into_iter()
            .find(|device| device.name() == name)
            .ok_or_else(|| Error::Usage {
                what: format!("{name}: not a device that a guest can have"),
                hint: "choose virtio, nvme, scsi or sd".into(),
            })
    }
}

/// What lies behind a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A sparse file of this many bytes, gone with the guest.
    New(u64),
    /// An image file of the caller's, which the guest reads and writes.
    Image(PathBuf),
}

/// Opens what lies behind the devices; new files are nameless and lie in `directory`.
///
/// Errors: `Usage` if a device cannot have this size; `Io`; `Unsupported` if they do not fit
/// into the directory.
pub(super) fn open(device: Device, backings: &[Backing], directory: &Path) -> Result<Vec<File>> {
    let new = backings.iter().map(|backing| match backing {
        Backing::New(bytes) => *bytes,
        Backing::Image(_) => 0,
    });
    // The guest could not tell a full host from a broken device.
    free_space::check(directory, new.fold(0, u64::saturating_add))?;
    backings
        .iter()
        .map(|backing| {
            let file = open_one(backing, directory)?;
            let bytes = file
                .metadata()
                .map_err(Error::io(directory, "inspect an image in"))?;
            check_size(device, bytes.len())?;
            Ok(file)
        })
        .collect()
}

fn open_one(backing: &Backing, directory: &Path) -> Result<File> {
    match backing {
        Backing::New(bytes) => {
            let file = tempfile::tempfile_in(directory)
                .map_err(Error::io(directory, "create a file in"))?;
            file.set_len(*bytes)
                .map_err(Error::io(directory, "make a sparse file in"))?;
            Ok(file)
        }
        Backing::Image(path) => File::options()
            .read(true)
            .write(true)
            .open(path)
            .map_err(Error::io(path, "open")),
    }
}

fn check_size(device: Device, bytes: u64) -> Result<()> {
    let refused = |rule: &str| {
        Err(Error::Usage {
            what: format!("{bytes} bytes: no size for this device"),
            hint: rule.into(),
        })
    };
    match device {
        _ if bytes == 0 || !bytes.is_multiple_of(512) => refused("choose a multiple of 512 bytes"),
        // QEMU models cards of whole erase blocks only (hw/sd/sd.c).
        Device::Sd if !bytes.is_power_of_two() => {
            refused("an SD card has a power of 2, as 512MiB or 1GiB")
        }
        _ => Ok(()),
    }
}

/// QEMU's arguments for the images: files that this process has open, since they need no name.
pub(super) fn images(files: &[File]) -> Vec<OsString> {
    let blockdev = |(n, file): (usize, &File)| {
        let path = held(file);
        let options = format!(
            "driver=raw,node-name=disk{n},discard=unmap,file.driver=file,file.filename={path},file.discard=unmap"
        );
        ["-blockdev".into(), options.into()]
    };
    files.iter().enumerate().flat_map(blockdev).collect()
}

/// A path at which other processes of this user find a file that this process has open.
pub(super) fn held(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_numbered_as_linux_does() {
        assert_eq!(Device::Virtio.path(1), Path::new("/dev/vdb"));
        assert_eq!(Device::Nvme.path(1), Path::new("/dev/nvme0n2"));
        assert_eq!(Device::Scsi.path(1), Path::new("/dev/sdb"));
        assert_eq!(Device::Sd.path(1), Path::new("/dev/mmcblk1"));
    }

    #[test]
    fn kinds_read_back_by_name_and_others_are_refused() {
        for device in Device::ALL {
            assert_eq!(device.name().parse::<Device>().expect("known"), device);
        }
        assert!("floppy".parse::<Device>().is_err());
    }

    #[test]
    fn sizes_that_a_device_cannot_have_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let opened = |device, bytes| open(device, &[Backing::New(bytes)], directory.path());
        assert!(opened(Device::Virtio, 3 << 20).is_ok());
        assert!(opened(Device::Sd, 4 << 20).is_ok());
        for (device, bytes) in [
            (Device::Sd, 3 << 20),
            (Device::Nvme, 0),
            (Device::Virtio, 700),
        ] {
            let error = opened(device, bytes).expect_err("refused");
            assert!(matches!(error, Error::Usage { .. }), "{error}");
        }
    }

    #[test]
    fn images_larger_than_the_room_for_them_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let backings = [Backing::New(u64::MAX >> 1), Backing::New(u64::MAX >> 1)];
        let error = open(Device::Virtio, &backings, directory.path()).expect_err("refused");
        assert!(error.to_string().contains("TMPDIR"), "{error}");
    }

    #[test]
    fn a_given_image_is_used_and_a_new_one_has_no_name() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("image");
        std::fs::write(&path, [7; 1024]).expect("written");
        let backings = [Backing::Image(path), Backing::New(4096)];
        let files = open(Device::Virtio, &backings, directory.path()).expect("opened");
        assert_eq!(files[0].metadata().expect("inspected").len(), 1024);
        assert_eq!(
            std::fs::read_dir(directory.path()).expect("listed").count(),
            1
        );
        assert_eq!(std::fs::read(held(&files[0])).expect("found"), [7; 1024]);
    }
}
