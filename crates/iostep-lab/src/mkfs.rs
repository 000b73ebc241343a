//! Filesystems, made by their own tools.

use std::ffi::OsStr;
use std::io;
use std::process::{Command, Stdio};
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::image::LoopImage;

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

    fn program(self) -> &'static str {
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

    /// Quiet, and over whatever was there before.
    fn first_arguments(self) -> &'static [&'static str] {
        match self {
            Kind::Ext4 => &["-q", "-F"],
            Kind::Xfs | Kind::Btrfs | Kind::F2fs | Kind::Nilfs2 => &["-q", "-f"],
            Kind::Fat32 => &["-F", "32", "-I"],
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

/// Makes a filesystem on an image, with further arguments for its mkfs.
///
/// Takes nothing but an image of our own, and makes sure that the device is still bound to it.
/// Errors: `Usage` if it is not; `Unsupported` if the tool is not installed, with the Debian
/// package that has it; `Program` if it fails.
pub fn mkfs<S: AsRef<OsStr>>(kind: Kind, image: &LoopImage, options: &[S]) -> Result<()> {
    image.check_is_ours()?;
    let output = Command::new(kind.program())
        .args(kind.first_arguments())
        .args(options)
        .arg(image.device())
        .env("PATH", search_path())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| missing(kind, error))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.lines().rfind(|line| !line.trim().is_empty());
    Err(Error::Program {
        program: kind.program().into(),
        status: output.status,
        message: last.unwrap_or("no message").trim().into(),
    })
}

fn missing(kind: Kind, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return Error::Unsupported {
            what: format!("{}: not installed", kind.program()),
            hint: format!(
                "on Debian and Ubuntu: apt install {}",
                kind.debian_package()
            ),
        };
    }
    Error::io(kind.program(), "run")(error)
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
            let text = missing(kind, not_found()).to_string();
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
