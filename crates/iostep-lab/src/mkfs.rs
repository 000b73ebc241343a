//! Filesystems, made by their own tools.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

pub use iostep_model::filesystem::Kind;
use iostep_model::lab::Filesystem;
use iostep_model::printable::excerpt;

use crate::disk::Disk;
use crate::error::{Error, Result};

const JOURNAL_PROGRAM: &str = "mke2fs";
/// A journal has the block size of its filesystem.
const JOURNAL_ARGUMENTS: [&str; 6] = ["-q", "-F", "-O", "journal_dev", "-b", "4096"];

/// Those that a lab makes.
pub const MADE: [Kind; 6] = [
    Kind::Ext4,
    Kind::Xfs,
    Kind::Btrfs,
    Kind::F2fs,
    Kind::Nilfs2,
    Kind::Fat,
];

/// What makes a filesystem.
#[derive(Clone, Copy, Debug)]
pub struct Mkfs {
    pub program: &'static str,
    debian_package: &'static str,
    /// The smallest image in bytes that it takes without special options.
    pub smallest_bytes: u64,
    /// Quiet, and over whatever was there before.
    first_arguments: &'static [&'static str],
    /// Arguments that have it write at once what the kernel would write some seconds after the
    /// mount, into somebody's counters.
    pub at_once: &'static [&'static str],
    /// Arguments that have it leave the blocks of an image where they are.
    pub no_discard: &'static [&'static str],
    /// Makes it tell its version, among other things.
    version_argument: &'static str,
}

/// What makes a filesystem of a kind; FAT is made as FAT32.
pub fn tool(kind: Kind) -> Mkfs {
    let mkfs = |program, debian_package, smallest_bytes, first_arguments| Mkfs {
        program,
        debian_package,
        smallest_bytes,
        first_arguments,
        at_once: &[],
        no_discard: &[],
        version_argument: "-V",
    };
    let ext = |program| Mkfs {
        at_once: &["-E", "lazy_itable_init=0,lazy_journal_init=0"],
        // The last of several -E holds.
        no_discard: &["-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
        ..mkfs(program, "e2fsprogs", 8 << 20, &["-q", "-F"])
    };
    match kind {
        Kind::Ext2 => ext("mkfs.ext2"),
        Kind::Ext3 => ext("mkfs.ext3"),
        Kind::Ext4 => ext("mkfs.ext4"),
        Kind::Xfs => Mkfs {
            no_discard: &["-K"],
            ..mkfs("mkfs.xfs", "xfsprogs", 300 << 20, &["-q", "-f"])
        },
        Kind::Btrfs => Mkfs {
            no_discard: &["-K"],
            version_argument: "--version",
            ..mkfs("mkfs.btrfs", "btrfs-progs", 256 << 20, &["-q", "-f"])
        },
        Kind::F2fs => Mkfs {
            no_discard: &["-t", "0"],
            ..mkfs("mkfs.f2fs", "f2fs-tools", 128 << 20, &["-q", "-f"])
        },
        Kind::Nilfs2 => Mkfs {
            no_discard: &["-K"],
            ..mkfs("mkfs.nilfs2", "nilfs-tools", 256 << 20, &["-q", "-f"])
        },
        // 65525 clusters make it FAT32; mkfs.fat takes 512 bytes a cluster here. It has no
        // argument for its version, but tells it before it finds that there is no such file.
        Kind::Fat => Mkfs {
            version_argument: "/dev/null/none",
            ..mkfs("mkfs.fat", "dosfstools", 64 << 20, &["-F", "32", "-I"])
        },
    }
}

/// The one of [`MADE`] that users call so: as in a lab, FAT is `fat32`.
///
/// Errors: `Usage`.
pub fn named(name: &str) -> Result<Kind> {
    let found: Option<Filesystem> = name.parse().ok();
    found
        .map(Filesystem::kind)
        .filter(|kind| *kind == Kind::Fat || kind.name() == name)
        .ok_or_else(|| Error::Usage {
            what: format!("{name}: not a filesystem that iostep makes"),
            hint: "choose ext4, xfs, btrfs, f2fs, nilfs2 or fat32".into(),
        })
}

/// Makes a filesystem, with further arguments for its mkfs.
///
/// Errors: those of [`Disk::check_may_be_destroyed`], before anything is written; `Unsupported` if
/// the tool is not installed, with the Debian package that has it; `Program` if it fails.
pub fn mkfs<S: AsRef<OsStr>>(kind: Kind, disk: &impl Disk, options: &[S]) -> Result<()> {
    disk.check_may_be_destroyed()?;
    let arguments = arguments(kind, disk.device(), options);
    run(&tool(kind), tool(kind).program, &arguments)
}

/// Makes a device the journal of an ext4 that is made afterwards with `-J device=`.
///
/// Errors: as [`mkfs()`].
pub fn make_journal(disk: &impl Disk) -> Result<()> {
    disk.check_may_be_destroyed()?;
    let mut arguments: Vec<OsString> = JOURNAL_ARGUMENTS.iter().map(OsString::from).collect();
    arguments.push(disk.device().into());
    run(&tool(Kind::Ext4), JOURNAL_PROGRAM, &arguments)
}

/// What [`mkfs()`] runs, as a line for a shell.
pub fn command_line<S: AsRef<OsStr>>(kind: Kind, device: &Path, options: &[S]) -> String {
    let arguments = arguments(kind, device, options);
    let words = arguments
        .iter()
        .map(|word| word.to_string_lossy().into_owned());
    let line: Vec<String> = std::iter::once(tool(kind).program.to_owned())
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
    let tool = tool(kind);
    let output = Command::new(tool.program)
        .arg(tool.version_argument)
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

/// The same of a tool that has to be there.
///
/// Errors: `Unsupported` if it is not installed, with the Debian package that has it.
pub fn installed(kind: Kind) -> Result<String> {
    let tool = tool(kind);
    let missing = std::io::ErrorKind::NotFound.into();
    version(kind).ok_or_else(|| Error::not_runnable(tool.program, tool.debian_package, missing))
}

fn arguments<S: AsRef<OsStr>>(kind: Kind, device: &Path, options: &[S]) -> Vec<OsString> {
    let first = tool(kind).first_arguments.iter().map(OsString::from);
    let further = options.iter().map(|option| option.as_ref().to_owned());
    first.chain(further).chain([device.into()]).collect()
}

fn run(tool: &Mkfs, program: &str, arguments: &[OsString]) -> Result<()> {
    let output = Command::new(program)
        .args(arguments)
        .env("PATH", search_path())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::not_runnable(program, tool.debian_package, error))?;
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
        let error = std::io::ErrorKind::NotFound.into();
        let tool = tool(Kind::Fat);
        let text = Error::not_runnable(tool.program, tool.debian_package, error).to_string();
        assert!(text.ends_with("apt install dosfstools"), "{text}");
    }

    #[test]
    fn a_kind_is_named_as_in_a_lab() {
        assert_eq!(named("fat32").ok(), Some(Kind::Fat));
        for kind in &MADE[..5] {
            assert_eq!(named(kind.name()).ok(), Some(*kind));
        }
        for name in ["zfs", "vfat", "ext4-writeback"] {
            assert!(named(name).is_err(), "{name}");
        }
    }
}
