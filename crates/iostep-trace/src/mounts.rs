//! Where a filesystem can be seen, and with which options.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use iostep_model::manifest::MountPlace;
use iostep_model::mountinfo::{self, Mounted, Table, unescaped_bytes};
use iostep_model::printable::path_text;
use procfs::process::MountInfo;
use serde::Serialize;

use crate::device_number::DeviceNumber;
use crate::error::{Error, Result};

const MOUNTINFO: &str = "/proc/self/mountinfo";

/// Every mount that this process sees.
///
/// Errors: `Unsupported` without /proc.
pub(crate) fn all() -> Result<Vec<MountInfo>> {
    parse(&Table::own().map_err(|error| Error::unsupported(MOUNTINFO, error))?)
}

/// The same, and the mounts that only other processes see, of filesystems that this one does not: at
/// points below their root directories.
///
/// Errors: as [`all`].
pub(crate) fn everywhere() -> Result<Vec<MountInfo>> {
    let mut found = all()?;
    for table in mountinfo::elsewhere() {
        let known: HashSet<String> = found.iter().map(|info| info.majmin.clone()).collect();
        let others = parse(&table).unwrap_or_default().into_iter();
        found.extend(others.filter(|info| !known.contains(&info.majmin)));
    }
    Ok(found)
}

/// The mount that a path lies on, whoever sees it; and all that this process sees, with those of the
/// process that sees this one.
///
/// Errors: `Io` if the path is not there; `Unsupported` without /proc, and where no process sees the
/// mount.
pub(crate) fn holding(path: &Path) -> Result<(MountInfo, Vec<MountInfo>)> {
    let metadata = std::fs::metadata(path).map_err(Error::io(path, "look at"))?;
    let unknown = || {
        let device = DeviceNumber::of(metadata.dev());
        let link = format!("/sys/dev/block/{}:{}", device.major, device.minor);
        let name = std::fs::canonicalize(link).ok();
        let name = name.and_then(|link| Some(link.file_name()?.to_string_lossy().into_owned()));
        let way = name.map_or("a block device".into(), |name| {
            format!("the block device {name}")
        });
        let reason = format!(
            "it lies on a mount that no process sees, as a pipe does, and what was unmounted with \
             `umount -l`; name {way}"
        );
        Error::unsupported(path.display(), reason)
    };
    let id = mountinfo::id_of(path).ok_or_else(unknown)?;
    let table = mountinfo::table_with(id, path).map_err(Error::io(MOUNTINFO, "read"))?;
    let table = table.ok_or_else(unknown)?;
    let mut mounts = all()?;
    if table.root != Path::new("/") {
        mounts.extend(parse(&table)?);
    }
    let found = mounts.iter().find(|info| has_id(info, id));
    let found = found.ok_or_else(unknown)?.clone();
    Ok((found, mounts))
}

/// A path on the mount with this number, as this process reaches it now: one of the `known`, or where
/// any process sees it; `None` if it is not mounted any more.
pub(crate) fn reached(id: u64, known: [&Path; 2]) -> Option<PathBuf> {
    let is_there = |path: &Path| mountinfo::id_of(path) == Some(id);
    if let Some(path) = known.into_iter().find(|path| is_there(path)) {
        return Some(path.to_owned());
    }
    let table = mountinfo::table_with(id, known[0]).ok()??;
    let mounts = parse(&table).ok()?;
    let found = mounts.into_iter().find(|info| has_id(info, id))?;
    Some(found.mount_point).filter(|point| is_there(point))
}

fn has_id(info: &MountInfo, id: u64) -> bool {
    u64::try_from(info.mnt_id) == Ok(id)
}

fn parse(table: &Table) -> Result<Vec<MountInfo>> {
    let lines = table.text.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    let infos = lines.map(|line| {
        let info = MountInfo::from_line(&as_text(line));
        info.map(|info| as_reached(with_plain_names(info), table))
    });
    let infos: std::result::Result<_, _> = infos.collect();
    infos.map_err(|error| Error::unsupported(MOUNTINFO, error))
}

/// A mount of another process with the paths by which this one reaches its point, and the nodes of
/// devices that only that one has.
fn as_reached(mut info: MountInfo, table: &Table) -> MountInfo {
    if table.root == Path::new("/") {
        return info;
    }
    let is_node =
        |path: &Path| std::fs::metadata(path).is_ok_and(|it| it.file_type().is_block_device());
    let node = |name: &mut String| {
        let node = Some(&**name).filter(|name| name.starts_with('/'));
        let node = node.map(|name| table.reached(Path::new(name)));
        if let Some(node) = node.filter(|node| is_node(node)) {
            *name = node.display().to_string();
        }
    };
    info.mount_point = table.reached(&info.mount_point);
    info.mount_source.iter_mut().for_each(node);
    info.super_options.values_mut().flatten().for_each(node);
    info
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

/// A mount of a device, or over a filesystem that has one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OfDevice {
    /// Where it is.
    pub point: String,
    /// The filesystem, as the kernel calls it.
    pub kind: String,
    /// Its device, or what else was mounted.
    pub source: String,
}

/// Filesystems of block devices that this process sees, and what is mounted over such, each by the
/// first of its mounts.
///
/// Errors: `Unsupported` without /proc.
pub fn of_devices() -> Result<Vec<OfDevice>> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for info in all()? {
        // The devices of btrfs and overlayfs have no number of their own.
        let has_device = !info.majmin.starts_with("0:")
            || matches!(info.fs_type.as_str(), "btrfs" | "overlay" | "bcachefs");
        if has_device && seen.insert(info.majmin) {
            found.push(OfDevice {
                point: path_text(info.mount_point.as_os_str().as_bytes()),
                kind: info.fs_type,
                source: info.mount_source.unwrap_or_default(),
            });
        }
    }
    Ok(found)
}

/// Every mount of a filesystem, `own` first. Bind mounts and a btrfs filesystem's subvolumes are among
/// them.
pub(crate) fn same_filesystem(infos: &[MountInfo], own: &MountInfo) -> Vec<MountPlace> {
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
        let metadata = std::fs::metadata(path).map_err(Error::io(path, "look at"))?;
        let none = || Error::unsupported(path.display(), "no mount holds it");
        let mount_id = mountinfo::id_of(path).ok_or_else(none)?;
        let table = mountinfo::table_with(mount_id, path).map_err(Error::io(MOUNTINFO, "read"))?;
        let table = table.ok_or_else(none)?;
        let Mounted {
            kind,
            options: shown,
            ..
        } = mountinfo::with_id(&String::from_utf8_lossy(&table.text), mount_id).ok_or_else(none)?;
        let mut in_force = shown.join(",");
        if kind == "ext4" {
            in_force.push(',');
            in_force.push_str(&ext4_options(DeviceNumber::of(metadata.dev())));
        }
        Ok(Superblock {
            mount_id,
            kind,
            shown,
            in_force,
        })
    }
}

/// All options of ext4 on a device, separated by commas; nothing where it does not tell them
/// (`ext4_seq_options_show`, fs/ext4/super.c).
fn ext4_options(DeviceNumber { major, minor }: DeviceNumber) -> String {
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
        let table = Table {
            text: b"21 1 0:40 /a\xfe /mnt/n\xff\\040x rw - btrfs /dev/vda rw\n".into(),
            root: "/".into(),
        };
        let infos = parse(&table).expect("a table");
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
        let places = same_filesystem(&infos, &infos[2]);
        let found: Vec<_> = places
            .iter()
            .map(|place| (place.root.as_str(), place.point.as_str()))
            .collect();
        assert_eq!(
            found,
            [("/@home", "/home"), ("/", "/top"), ("/a b", "/bind 2")]
        );
    }

    #[test]
    fn a_mount_of_another_process_is_reached_through_its_root() {
        let line = "21 1 7:0 / /mnt/a\\040b rw - xfs /dev/none rw,logdev=/none,rtdev=x";
        let table = |root: &str| Table {
            text: line.into(),
            root: root.into(),
        };
        let point = |root| parse(&table(root)).expect("a table")[0].mount_point.clone();
        assert_eq!(point("/"), Path::new("/mnt/a b"));
        assert_eq!(point("/proc/9/root"), Path::new("/proc/9/root/mnt/a b"));
        // No node there, so what the mount says stays.
        let info = &parse(&table("/proc/9/root")).expect("a table")[0];
        assert_eq!(info.mount_source.as_deref(), Some("/dev/none"));
        assert_eq!(info.super_options["logdev"].as_deref(), Some("/none"));
    }

    #[test]
    fn a_mount_is_reached_by_the_path_that_leads_to_it() {
        let id = mountinfo::id_of(Path::new("/proc")).expect("a number");
        let [root, proc, below] = ["/", "/proc", "/proc/self"].map(Path::new);
        for (known, expected) in [
            ([proc, root], Some(proc)),
            ([root, below], Some(below)),
            // Looked up again.
            ([root, root], Some(proc)),
        ] {
            assert_eq!(reached(id, known).as_deref(), expected);
        }
        assert_eq!(reached(u64::MAX, [root, root]), None);
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
