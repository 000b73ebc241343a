//! /proc/self/mountinfo (proc_pid_mountinfo(5)).

mod namespaces;

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags};

pub(crate) use namespaces::canonical_of;
pub use namespaces::{Table, canonical, elsewhere, table_with};

/// Where it is, below `/`.
pub const PATH: &str = "proc/self/mountinfo";

/// What a mount shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// `ext4`, `xfs`, `btrfs`, ...
    pub kind: String,
    /// What was mounted: often a device's node, and any word otherwise.
    pub source: String,
    /// The filesystem's options, in the kernel's order.
    pub options: Vec<String>,
}

/// The mount with this number in a text of mountinfo.
pub fn with_id(table: &str, mount_id: u64) -> Option<Mounted> {
    let id = mount_id.to_string();
    let line = table
        .lines()
        .find(|line| line.split(' ').next() == Some(&id))?;
    let (_, filesystem) = line.split_once(" - ")?;
    let mut fields = filesystem.split(' ');
    let kind = unescaped(fields.next()?);
    let source = unescaped(fields.next()?);
    let options = fields.next()?.split(',').map(unescaped);
    Some(Mounted {
        kind,
        source,
        options: options.collect(),
    })
}

/// Where filesystems of this kind are mounted.
pub fn points_of(table: &str, kind: &str) -> Vec<PathBuf> {
    let point = |line: &str| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let is_kind = filesystem.split(' ').next() == Some(kind);
        let point = mount.split(' ').nth(4).filter(|_| is_kind)?;
        Some(PathBuf::from(unescaped(point)))
    };
    table.lines().filter_map(point).collect()
}

/// The number of the mount that a path lies on; `None` if the path is not there, or without /proc
/// before Linux 5.8.
pub fn id_of(path: &Path) -> Option<u64> {
    let found = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok();
    let is_told = |mask| StatxFlags::from_bits_retain(mask).contains(StatxFlags::MNT_ID);
    match found.filter(|found| is_told(found.stx_mask)) {
        Some(found) => Some(found.stx_mnt_id),
        None => id_by_descriptor(path),
    }
}

/// The same of any Linux.
fn id_by_descriptor(path: &Path) -> Option<u64> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let object = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let told = format!("/proc/self/fdinfo/{}", object.as_raw_fd());
    let told = std::fs::read_to_string(told).ok()?;
    let id = told.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
    id.trim().parse().ok()
}

/// A field: the kernel writes blanks, backslashes and `#` as octal numbers (`mangle`,
/// fs/proc_namespace.c).
pub fn unescaped_bytes(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let octal = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(octal.unwrap_or(*first));
        rest = match octal {
            Some(_) => &after[3..],
            None => after,
        };
    }
    bytes
}

/// The same, as text.
fn unescaped(text: &str) -> String {
    String::from_utf8_lossy(&unescaped_bytes(text.as_bytes())).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_a_kind_are_found_by_their_points() {
        let table = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n\
                     31 23 0:27 / /a\\040b rw - cgroup2 none rw\n\
                     32 23 0:28 / /tmp rw - tmpfs cgroup2 rw\n";
        let expected = ["/sys/fs/cgroup", "/a b"].map(PathBuf::from);
        assert_eq!(points_of(table, "cgroup2"), expected);
    }

    #[test]
    fn a_descriptor_tells_the_same_number() {
        for path in ["/", "/proc", "/proc/self/fd/0"].map(Path::new) {
            assert!(id_of(path).is_some());
            assert_eq!(id_by_descriptor(path), id_of(path), "{}", path.display());
        }
        assert_eq!(id_of(Path::new("/nowhere/at/all")), None);
    }

    #[test]
    fn every_escape_of_the_kernel_is_read() {
        for (text, expected) in [
            (&b"/a\\040b\\011\\012\\134\\043"[..], &b"/a b\t\n\\#"[..]),
            (b"/a\\134040", b"/a\\040"),
            (b"/\\377\xfe", b"/\xff\xfe"),
            (b"/\\8\\04", b"/\\8\\04"),
            (b"/\\777", b"/\\777"),
        ] {
            assert_eq!(unescaped_bytes(text), expected);
        }
    }

    #[test]
    fn options_are_those_of_the_mount_with_that_number() {
        let table = "\
7 1 7:0 / /mnt rw,noatime shared:1 - ext4 /dev/loop0 rw,nobarrier,stripe=4
77 1 7:1 / /mnt/a\\040b rw - f2fs a\\040b rw,fsync_mode=posix
78 1 0:5 / /proc rw - proc  rw";
        let of = |id| {
            let Mounted {
                kind,
                source,
                options,
            } = with_id(table, id)?;
            Some((kind, source, options.join(",")))
        };
        let some = |words: [&str; 3]| Some(words.map(str::to_owned).into());
        assert_eq!(of(7), some(["ext4", "/dev/loop0", "rw,nobarrier,stripe=4"]));
        assert_eq!(of(77), some(["f2fs", "a b", "rw,fsync_mode=posix"]));
        // A source without a name.
        assert_eq!(of(78), some(["proc", "", "rw"]));
        assert_eq!(of(8), None);
    }
}
