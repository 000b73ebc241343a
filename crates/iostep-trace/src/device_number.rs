//! Numbers of block devices.

use std::path::Path;

use iostep_model::disk;

/// A block device's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceNumber {
    pub major: u32,
    pub minor: u32,
}

impl DeviceNumber {
    pub(crate) fn of(rdev: u64) -> DeviceNumber {
        DeviceNumber {
            major: rustix::fs::major(rdev),
            minor: rustix::fs::minor(rdev),
        }
    }

    /// The number of the device that a path leads to; `None` if it leads to no block device.
    pub(crate) fn of_node(path: &Path) -> Option<DeviceNumber> {
        disk::number_of(Path::new("/"), path).map(DeviceNumber::of)
    }

    /// The kernel's own `dev_t` (`MKDEV`, include/linux/kdev_t.h), which is not user space's.
    pub fn kernel_number(self) -> u32 {
        self.major << 20 | self.minor
    }

    /// The number as user space has it (`st_rdev`).
    pub(crate) fn user_number(self) -> u64 {
        rustix::fs::makedev(self.major, self.minor)
    }

    /// The number in `MAJ:MIN`.
    pub(crate) fn parse(text: &str) -> Option<DeviceNumber> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(DeviceNumber {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    }
}
