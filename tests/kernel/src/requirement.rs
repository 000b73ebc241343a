//! What a test needs of the machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use iostep_lab::guest;

use crate::kernels;

/// Something that a machine has or lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// Effective user id 0.
    Root,
    /// `/sys/kernel/btf/vmlinux`.
    Btf,
    /// tracefs, mounted or not.
    Tracefs,
    /// `/dev/loop-control`.
    Loop,
    /// A filesystem that the kernel can mount.
    Filesystem(&'static str),
    /// A program on the path, or where Debian has those of PostgreSQL's server.
    Program(&'static str),
    /// A header of C, below `/usr/include`.
    Header(&'static str),
    /// What the kernel's ext4 can do, by its name in `/sys/fs/ext4/features`.
    Ext4Feature(&'static str),
    /// System calls of 32-bit x86 (int 0x80).
    Ia32,
    /// What `iostep lab guest` needs: QEMU, a kernel, busybox.
    Guest,
    /// A kernel of [`kernels::ROLES`].
    Kernel(&'static str),
}

impl Requirement {
    /// The name that `IOSTEP_REQUIRE` and skip reasons use.
    pub fn name(self) -> &'static str {
        match self {
            Requirement::Root => "root",
            Requirement::Btf => "btf",
            Requirement::Tracefs => "tracefs",
            Requirement::Loop => "loop",
            Requirement::Guest => "guest",
            Requirement::Filesystem(name)
            | Requirement::Program(name)
            | Requirement::Header(name)
            | Requirement::Ext4Feature(name) => name,
            Requirement::Ia32 => "ia32",
            Requirement::Kernel(_) => "kernels",
        }
    }

    /// What is missing, or `None` if nothing is.
    pub fn missing(self) -> Option<String> {
        let present = match self {
            Requirement::Root => rustix::process::geteuid().is_root(),
            Requirement::Btf => Path::new("/sys/kernel/btf/vmlinux").exists(),
            Requirement::Tracefs => has_filesystem("tracefs"),
            Requirement::Loop => Path::new("/dev/loop-control").exists(),
            Requirement::Filesystem(name) => has_filesystem(name),
            Requirement::Program(name) => program(name).is_some(),
            Requirement::Header(name) => Path::new("/usr/include").join(name).is_file(),
            Requirement::Ext4Feature(name) => {
                has_filesystem("ext4") && Path::new("/sys/fs/ext4/features").join(name).exists()
            }
            Requirement::Ia32 => Path::new("/proc/sys/abi/vsyscall32").exists(),
            Requirement::Guest => return guest_fault(),
            Requirement::Kernel(role) => kernels::image(role).is_some(),
        };
        (!present).then(|| match self {
            Requirement::Root => "not root".to_owned(),
            Requirement::Filesystem(name) => format!("the kernel has no {name}"),
            Requirement::Program(name) | Requirement::Header(name) => {
                format!("{name} is not installed")
            }
            Requirement::Ext4Feature(name) => format!("the kernel's ext4 has no {name}"),
            Requirement::Ia32 => "no 32-bit system calls".to_owned(),
            Requirement::Kernel(role) => {
                let purpose = match kernels::ARM64.contains(&role) {
                    true => "guest-arm64",
                    false => "guest",
                };
                format!("no kernel {role}, which scripts/setup {purpose} unpacks")
            }
            other => format!("no {}", other.name()),
        })
    }
}

/// What a test lacks here, by name, and why it cannot run; empty if it can.
pub fn lacks(requirements: &[Requirement]) -> (Vec<&'static str>, Vec<String>) {
    let missing = requirements.iter();
    let missing = missing.filter_map(|r| Some((r.name(), r.missing()?)));
    missing.unzip()
}

/// Guests do not nest: within one there is none.
fn guest_fault() -> Option<String> {
    if std::env::var_os("IOSTEP_GUEST").is_some() {
        return Some("in a guest".into());
    }
    let fault = guest::check_prerequisites(&guest::Options::default()).err()?;
    Some(fault.to_string())
}

fn has_filesystem(name: &str) -> bool {
    let known = || {
        let list = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
        list.lines()
            .any(|line| line.split_whitespace().last() == Some(name))
    };
    known() || {
        // Not loaded yet, perhaps; the second look tells.
        let load = Command::new("modprobe")
            .arg(name)
            .stderr(Stdio::null())
            .status();
        load.is_ok_and(|status| status.success()) && known()
    }
}

/// Where a program is, as [`Requirement::Program`] says.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let servers = std::fs::read_dir("/usr/lib/postgresql");
    let servers = servers.into_iter().flatten().flatten();
    std::env::split_paths(&path)
        .chain(servers.map(|version| version.path().join("bin")))
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_thing_is_named() {
        let programs = ["no-such-program-1", "no-such-program-2"];
        let (missing, reasons) = lacks(&programs.map(Requirement::Program));
        assert_eq!(missing, programs);
        assert_eq!(reasons.len(), 2, "{reasons:?}");
    }
}
