//! Filesystems, made by their own tools.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::str::FromStr;

use iostep_model::printable::excerpt;

use crate::disk::Disk;
use crate::error::{Error, Result};

const JOURNAL_PROGRAM: &str = "mke2fs";
/// A journal has the block size of its filesystem.
const JOURNAL_ARGUMENTS: [&str; 6] = ["-q", "-F", "-O", "journal_dev", "-b", "4096"];

/// A filesystem that the lab can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// ext4.
    Ext4,
    /// xfs.
    Xfs,
    /// btrfs.
    Btrfs,
    /// f2fs.
    F2fs,
    /// nilfs2.
    Nilfs2,
    /// FAT32, with long names.
    Fat32,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 6] = [
        Kind::Ext4,
        Kind::Xfs,
        Kind::Btrfs,
        Kind::F2fs,
        Kind::Nilfs2,
        Kind::Fat32,
    ];

    /// The name that users choose it by.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ext4 => "ext4",
            Kind::Xfs => "xfs",
            Kind::Btrfs => "btrfs",
            Kind::F2fs => "f2fs",
            Kind::Nilfs2 => "nilfs2",
            Kind::Fat32 => "fat32",
        }
    }

    /// The kernel's name for it, as mount(2) takes it and `/proc/filesystems` has it.
    pub fn mount_type(self) -> &'static str {
        match self {
            Kind::Fat32 => "vfat",
            other => other.name(),
        }
    }

    /// The smallest image in bytes that its mkfs takes without special options.
    pub fn smallest_bytes(self) -> u64 {
        match self {
            Kind::Ext4 => 8 << 20,
            Kind::Xfs => 300 << 20,
            Kind::Btrfs | Kind::Nilfs2 => 256 << 20,
            Kind::F2fs => 128 << 20,
            // 65525 clusters make it FAT32; mkfs.fat takes 512 bytes a cluster here.
            Kind::Fat32 => 64 << 20,
        }
    }

    /// Its mkfs.
    pub fn program(self) -> &'static str {
        match self {
            Kind::Ext4 => "mkfs.ext4",
            Kind::Xfs => "mkfs.xfs",
            Kind::Btrfs => "mkfs.btrfs",
            Kind::F2fs => "mkfs.f2fs",
            Kind::Nilfs2 => "mkfs.nilfs2",
            Kind::Fat32 => "mkfs.fat",
        }
    }

    fn debian_package(self) -> &'static str {
        match self {
            Kind::Ext4 => "e2fsprogs",
            Kind::Xfs => "xfsprogs",
            Kind::Btrfs => "btrfs-progs",
            Kind::F2fs => "f2fs-tools",
            Kind::Nilfs2 => "nilfs-tools",
            Kind::Fat32 => "dosfstools",
        }
    }

    /// Arguments that have its mkfs write at once what the kernel would write some seconds after
    /// the mount, into somebody's counters.
    pub fn at_once(self) -> &'static [&'static str] {
        match self {
            Kind::Ext4 => &["-E", "lazy_itable_init=0,lazy_journal_init=0"],
            _ => &[],
        }
    }

    /// Quiet, and over whatever was there before.
    fn first_arguments(self) -> &'static [&'static str] {
        match self {
            Kind::Ext4 => &["-q", "-F"],
            Kind::Xfs | Kind::Btrfs | Kind::F2fs | Kind::Nilfs2 => &["-q", "-f"],
            Kind::Fat32 => &["-F", "32", "-I"],
        }
    }

    /// Makes the tool tell its version, among other things. mkfs.fat has no argument for it, but
    /// tells before it finds that there is no such file.
    fn version_argument(self) -> &'static str {
        match self {
            Kind::Btrfs => "--version",
            Kind::Fat32 => "/dev/null/none",
            Kind::Ext4 | Kind::Xfs | Kind::F2fs | Kind::Nilfs2 => "-V",
        }
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Kind> {
        Kind::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| Error::Usage {
                what: format!("{name}: not a filesystem that iostep makes"),
                hint: "choose ext4, xfs, btrfs, f2fs, nilfs2 or fat32".into(),
            })
    }
}

/// Makes a filesystem, with further arguments for its mkfs.
///
/// Errors: those of [`Disk::check_may_be_destroyed`], before anything is written; `Unsupported` if
/// the tool is not installed, with the Debian package that has it; `Program` if it fails.
pub fn mkfs<S: AsRef<OsStr>>(kind: Kind, disk: &impl Disk, options: &[S]) -> Result<()> {
    disk.check_may_be_destroyed()?;
    let arguments = arguments(kind, disk.device(), options);
    run(kind.program(), kind.debian_package(), &arguments)
}

/// Makes a device the journal of an ext4 that is made afterwards with `-J device=`.
///
/// Errors: as [`mkfs()`].
pub fn make_journal(disk: &impl Disk) -> Result<()> {
    disk.check_may_be_destroyed()?;
    let mut arguments: Vec<OsString> = JOURNAL_ARGUMENTS.iter().map(OsString::from).collect();
    arguments.push(disk.device().into());
    run(JOURNAL_PROGRAM, Kind::Ext4.debian_package(), &arguments)
}

/// What [`mkfs()`] runs, as a line for a shell.
pub fn command_line<S: AsRef<OsStr>>(kind: Kind, device: &Path, options: &[S]) -> String {
    let arguments = arguments(kind, device, options);
    let words = arguments
        .iter()
        .map(|word| word.to_string_lossy().into_owned());
    let line: Vec<String> = std::iter::once(kind.program().to_owned())
        .chain(words)
        .collect();
    line.join(" ")
}

/// What [`make_journal`] runs, as a line for a shell.
pub fn journal_command_line(device: &Path) -> String {
    let arguments = JOURNAL_ARGUMENTS.join(" ");
    format!("{JOURNAL_PROGRAM} {arguments} {}", device.display())
}

/// The line of its output in which the tool tells its version; `None` if it does not, or is not
/// installed.
pub fn version(kind: Kind) -> Option<String> {
    let output = Command::new(kind.program())
        .arg(kind.version_argument())
        .env("PATH", search_path())
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines().map(str::trim);
    let line = lines.find(|line| line.contains(|c: char| c.is_ascii_digit()))?;
    Some(excerpt(line, 200))
}

fn arguments<S: AsRef<OsStr>>(kind: Kind, device: &Path, options: &[S]) -> Vec<OsString> {
    let first = kind.first_arguments().iter().map(OsString::from);
    let further = options.iter().map(|option| option.as_ref().to_owned());
    first.chain(further).chain([device.into()]).collect()
}

fn run(program: &str, package: &str, arguments: &[OsString]) -> Result<()> {
    let output = Command::new(program)
        .args(arguments)
        .env("PATH", search_path())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| missing(program, package, error))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.lines().rfind(|line| !line.trim().is_empty());
    Err(Error::Program {
        program: program.into(),
        status: output.status,
        message: last.unwrap_or("no message").trim().into(),
    })
}

fn missing(program: &str, package: &str, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return Error::Unsupported {
            what: format!("{program}: not installed"),
            hint: format!("on Debian and Ubuntu: apt install {package}"),
        };
    }
    Error::io(program, "run")(error)
}

/// The caller's path and the places where Debian keeps administrators' tools, which `sudo` may
/// not have on it.
fn search_path() -> String {
    let own = std::env::var("PATH").unwrap_or_default();
    format!("{own}:/usr/local/sbin:/usr/sbin:/sbin")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_names_its_package() {
        let not_found = || io::Error::from(io::ErrorKind::NotFound);
        for (kind, package) in [
            (Kind::Ext4, "e2fsprogs"),
            (Kind::Xfs, "xfsprogs"),
            (Kind::Btrfs, "btrfs-progs"),
            (Kind::F2fs, "f2fs-tools"),
            (Kind::Nilfs2, "nilfs-tools"),
            (Kind::Fat32, "dosfstools"),
        ] {
            let text = missing(kind.program(), kind.debian_package(), not_found()).to_string();
            assert!(text.ends_with(&format!("apt install {package}")), "{text}");
        }
    }

    #[test]
    fn kinds_read_back_by_name_and_others_are_refused() {
        for kind in Kind::ALL {
            assert_eq!(kind.name().parse::<Kind>().expect("known"), kind);
        }
        assert!("zfs".parse::<Kind>().is_err());
    }
}
