//! Numbers of block devices, and their nodes.

use std::path::{Path, PathBuf};

/// Where nodes lie: devtmpfs has them in the first, Android's ueventd makes them in the second.
const NODES: [&str; 2] = ["/dev", "/dev/block"];

/// The node of the device with this name in sysfs, where `!` stands for a slash.
pub(crate) fn node(name: &str) -> PathBuf {
    node_in(NODES.map(Path::new), name)
}

fn node_in(directories: [&Path; 2], name: &str) -> PathBuf {
    let [usual, other] = directories.map(|directory| directory.join(name.replace('!', "/")));
    match !usual.exists() && other.exists() {
        true => other,
        false => usual,
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_found_where_android_makes_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let block = directory.path().join("block");
        std::fs::create_dir_all(block.join("mapper")).expect("made");
        let found = |name| node_in([directory.path(), &block], name);
        assert_eq!(found("mapper!a"), directory.path().join("mapper/a"));
        std::fs::write(block.join("mapper/a"), "").expect("written");
        assert_eq!(found("mapper!a"), block.join("mapper/a"));
    }
}
