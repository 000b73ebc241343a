//! Where a filesystem can be seen, and with which options.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use iostep_model::manifest::MountPlace;
use iostep_model::mountinfo::{self, Mounted, unescaped_bytes};
use iostep_model::printable::path_text;
use procfs::process::MountInfo;
use rustix::fs::{AtFlags, CWD, StatxFlags};

use crate::error::{Error, Result};

const MOUNTINFO: &str = "/proc/self/mountinfo";

/// Every mount that this process sees.
///
/// Errors: `Unsupported` without /proc.
pub(crate) fn all() -> Result<Vec<MountInfo>> {
    let table = std::fs::read(MOUNTINFO).map_err(|error| Error::unsupported(MOUNTINFO, error))?;
    parse(&table)
}

fn parse(table: &[u8]) -> Result<Vec<MountInfo>> {
    let lines = table.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    let infos = lines.map(|line| MountInfo::from_line(&as_text(line)).map(with_plain_names));
    let infos: std::result::Result<_, _> = infos.collect();
    infos.map_err(|error| Error::unsupported(MOUNTINFO, error))
}

/// A line with the bytes that are no text written as the kernel writes blanks.
fn as_text(line: &[u8]) -> String {
    let mut text = String::with_capacity(line.len());
    for chunk in line.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\{byte:03o}"));
        }
    }
    text
}

fn with_plain_names(mut info: MountInfo) -> MountInfo {
    info.root = path_text(&unescaped_bytes(info.root.as_bytes()));
    let point = unescaped_bytes(info.mount_point.as_os_str().as_bytes());
    info.mount_point = OsString::from_vec(point).into();
    info
}

/// Every mount of the filesystem that is mounted at `point`, that one first; none where it is not
/// mounted there any more. Bind mounts and a btrfs filesystem's subvolumes are among them.
pub fn of_filesystem_at(point: &Path) -> Vec<MountPlace> {
    all().map_or(Vec::new(), |infos| same_filesystem(&infos, point))
}

fn same_filesystem(infos: &[MountInfo], point: &Path) -> Vec<MountPlace> {
    // The last one hides those below it.
    let Some(own) = infos.iter().rev().find(|info| info.mount_point == point) else {
        return Vec::new();
    };
    let others = infos
        .iter()
        .filter(|info| info.majmin == own.majmin && info.mnt_id != own.mnt_id);
    std::iter::once(own).chain(others).map(place).collect()
}

fn place(info: &MountInfo) -> MountPlace {
    MountPlace {
        root: info.root.clone(),
        point: path_text(info.mount_point.as_os_str().as_bytes()),
    }
}

/// What the filesystem of a mount was told to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The mount, which no other one is while it is there.
    pub mount_id: u64,
    /// `ext4`, `xfs`, `btrfs`, ...
    pub kind: String,
    /// Its options as the kernel shows them, in its order.
    pub shown: Vec<String>,
    /// Its options in force, separated by commas: also those that are not shown since they are the
    /// filesystem's own, as tune2fs(8) sets them.
    pub in_force: String,
}

impl Superblock {
    /// That of the mount which a path lies on.
    ///
    /// Errors: `Io` if the path is not there; `Unsupported` without /proc.
    pub fn of(path: &Path) -> Result<Superblock> {
        let stat = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID)
            .map_err(Error::io(path, "look at"))?;
        let table = std::fs::read_to_string(MOUNTINFO).map_err(Error::io(MOUNTINFO, "read"))?;
        let Mounted {
            kind,
            options: shown,
            ..
        } = mountinfo::with_id(&table, stat.stx_mnt_id)
            .ok_or_else(|| Error::unsupported(path.display(), "no mount holds it"))?;
        let mut in_force = shown.join(",");
        if kind == "ext4" {
            in_force.push(',');
            in_force.push_str(&ext4_options(stat.stx_dev_major, stat.stx_dev_minor));
        }
        Ok(Superblock {
            mount_id: stat.stx_mnt_id,
            kind,
            shown,
            in_force,
        })
    }
}

/// All options of ext4 on a device, separated by commas; nothing where it does not tell them
/// (`ext4_seq_options_show`, fs/ext4/super.c).
fn ext4_options(major: u32, minor: u32) -> String {
    let device = std::fs::read_link(format!("/sys/dev/block/{major}:{minor}")).unwrap_or_default();
    let name = device.file_name().unwrap_or_default();
    let path = Path::new("/proc/fs/ext4").join(name).join("options");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(id: i32, device: &str, root: &str, point: &str) -> MountInfo {
        let line = format!("{id} 1 {device} {root} {point} rw - btrfs /dev/vda rw");
        with_plain_names(MountInfo::from_line(&line).expect("a line of mountinfo"))
    }

    #[test]
    fn a_mount_point_that_is_no_text_is_the_bytes_that_it_is() {
        let table = b"21 1 0:40 /a\xfe /mnt/n\xff\\040x rw - btrfs /dev/vda rw\n";
        let infos = parse(table).expect("a table");
        let point = infos[0].mount_point.as_os_str().as_bytes();
        assert_eq!(point, b"/mnt/n\xff x");
        let shown = place(&infos[0]);
        assert_eq!(shown.point, "/mnt/n\\xff x");
        assert_eq!(shown.root, "/a\\xfe");
    }

    #[test]
    fn the_mount_that_was_named_is_first() {
        let infos = [
            info(21, "0:40", "/", "/top"),
            info(22, "0:41", "/", "/home"),
            info(23, "0:40", "/@home", "/home"),
            info(24, "0:40", "/a\\040b", "/bind\\0402"),
        ];
        let places = same_filesystem(&infos, Path::new("/home"));
        let found: Vec<_> = places
            .iter()
            .map(|place| (place.root.as_str(), place.point.as_str()))
            .collect();
        assert_eq!(
            found,
            [("/@home", "/home"), ("/", "/top"), ("/a b", "/bind 2")]
        );
        assert!(same_filesystem(&infos, Path::new("/gone")).is_empty());
    }

    #[test]
    fn the_root_has_a_superblock() {
        let root = Superblock::of(Path::new("/")).expect("it is mounted");
        assert!(
            root.shown
                .iter()
                .any(|option| option == "rw" || option == "ro")
        );
        assert!(root.in_force.starts_with(&root.shown.join(",")));
        let below = Superblock::of(Path::new("/proc/self")).expect("proc is mounted");
        assert!(below.kind == "proc" && below.mount_id != root.mount_id);
    }
}
