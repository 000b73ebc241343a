//! /proc/self/mountinfo (proc_pid_mountinfo(5)).

use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags};

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

/// The number of the mount that a path lies on; `None` if the path is not there, and where the kernel
/// does not tell: before Linux 5.8.
pub fn id_of(path: &Path) -> Option<u64> {
    let found = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
    let is_told = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
    is_told.then_some(found.stx_mnt_id)
}

/// A field: the kernel writes blanks and backslashes as octal numbers (`mangle_path`,
/// fs/seq_file.c).
pub fn unescaped(text: &str) -> String {
    [(" ", "040"), ("\t", "011"), ("\n", "012"), ("\\", "134")]
        .into_iter()
        .fold(text.to_owned(), |text, (sign, octal)| {
            text.replace(&format!("\\{octal}"), sign)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

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
