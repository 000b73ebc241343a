//! Where a filesystem can be seen.

use std::path::Path;

use iostep_model::manifest::MountPlace;
use procfs::process::{MountInfo, Process};

/// Every mount of the filesystem that is mounted at `point`, that one first; none where it is not
/// mounted there any more. Bind mounts and a btrfs filesystem's subvolumes are among them.
pub fn of_filesystem_at(point: &Path) -> Vec<MountPlace> {
    let infos = Process::myself().and_then(|me| me.mountinfo());
    infos.map_or(Vec::new(), |infos| same_filesystem(&infos.0, point))
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
        root: unescaped(&info.root),
        point: unescaped(&info.mount_point.to_string_lossy()),
    }
}

/// The kernel writes blanks and backslashes as octal numbers (`mangle_path`, fs/seq_file.c).
fn unescaped(text: &str) -> String {
    [(" ", "040"), ("\t", "011"), ("\n", "012"), ("\\", "134")]
        .into_iter()
        .fold(text.to_owned(), |text, (sign, octal)| {
            text.replace(&format!("\\{octal}"), sign)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(id: i32, device: &str, root: &str, point: &str) -> MountInfo {
        let line = format!("{id} 1 {device} {root} {point} rw - btrfs /dev/vda rw");
        MountInfo::from_line(&line).expect("a line of mountinfo")
    }

    #[test]
    fn the_mount_that_was_named_is_first() {
        let infos = [
            info(21, "0:40", "/", "/top"),
            info(22, "0:41", "/", "/home"),
            info(23, "0:40", "/@home", "/home"),
            info(24, "0:40", "/a\\040b", "/bind"),
        ];
        let places = same_filesystem(&infos, Path::new("/home"));
        let found: Vec<_> = places
            .iter()
            .map(|place| (place.root.as_str(), place.point.as_str()))
            .collect();
        assert_eq!(
            found,
            [("/@home", "/home"), ("/", "/top"), ("/a b", "/bind")]
        );
        assert!(same_filesystem(&infos, Path::new("/gone")).is_empty());
    }
}
