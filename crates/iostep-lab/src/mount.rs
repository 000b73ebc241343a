//! Mounts that go away by themselves.

use std::ffi::CString;
use std::path::{Path, PathBuf};

use iostep_model::directory::Temporary;
use iostep_model::rights::way_to_capabilities;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::thread::UnshareFlags;

use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::mkfs::Kind;

/// Moves the calling thread, and what it starts from now on, into a mount namespace of its own:
/// mounts made there are seen by nobody else and end with the last process in it. Unmounts outside
/// still reach inside, so that nobody's disk is kept busy.
///
/// Call it before any other thread is started: the others would stay outside.
///
/// Errors: `Unsupported` without `CAP_SYS_ADMIN`; `Io`.
pub fn enter_private_mounts() -> Result<()> {
    // SAFETY: NEWNS shares no memory and closes no descriptor; only FILES could leave another
    // thread with a descriptor that is not there.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }.map_err(|_| {
        Error::Unsupported {
            what: "no right to make a mount namespace".into(),
            hint: format!("CAP_SYS_ADMIN is missing; {}", way_to_capabilities()),
        }
    })?;
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", slave).map_err(Error::io("/", "make private the mounts of"))
}

/// A mounted disk, or memory. The drop unmounts it (lazily if it is still in use) and removes the mount
/// point.
#[derive(Debug)]
pub struct Mount {
    point: Temporary,
}

impl Mount {
    /// Mounts a disk at a directory of its own, which only this user can enter.
    ///
    /// `options` are as `mount -o` has them.
    /// Errors: `Io`, with the kernel's reason; `Usage` if the options hold a zero byte.
    pub fn new(kind: Kind, disk: &impl Disk, options: &str) -> Result<Mount> {
        let point = mount_point()?;
        let (flags, own) = split(options);
        let data = CString::new(own).map_err(|_| Error::Usage {
            what: "a zero byte in the mount options".into(),
            hint: "leave it out".into(),
        })?;
        rustix::mount::mount(
            disk.device(),
            point.directory().name(),
            kind.name(),
            MountFlags::NODEV | MountFlags::NOSUID | flags,
            data.as_c_str(),
        )
        .map_err(Error::io(disk.device(), "mount"))?;
        Ok(Mount { point })
    }

    /// Mounts an empty tmpfs.
    ///
    /// Errors: `Io`.
    pub(crate) fn memory() -> Result<Mount> {
        let point = mount_point()?;
        let flags = MountFlags::NODEV | MountFlags::NOSUID;
        let path = point.directory().name();
        rustix::mount::mount("iostep", path, "tmpfs", flags, c"mode=700")
            .map_err(Error::io(path, "mount memory at"))?;
        Ok(Mount { point })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.point.directory().name()
    }

    /// Writes everything that waits to be written.
    ///
    /// Errors: `Io`.
    pub fn settle(&self) -> Result<()> {
        let root = std::fs::File::open(self.path()).map_err(Error::io(self.path(), "open"))?;
        rustix::fs::syncfs(&root).map_err(Error::io(self.path(), "sync"))
    }

    /// Unmounts now, with everything written.
    ///
    /// Errors: `Io`, `EBUSY` if a file is open; it is then unmounted as soon as possible.
    pub fn unmount(self) -> Result<()> {
        rustix::mount::unmount(self.path(), UnmountFlags::NOFOLLOW)
            .map_err(Error::io(self.path(), "unmount"))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let path = self.path();
        // EINVAL after `unmount`: it is no mount point any more, which is what we want.
        if rustix::mount::unmount(path, UnmountFlags::NOFOLLOW) == Err(rustix::io::Errno::BUSY) {
            let _ = rustix::mount::unmount(path, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH);
        }
    }
}

/// Its mark lies below what is mounted there: seen, and its directory swept, where that is not.
fn mount_point() -> Result<Temporary> {
    Ok(Temporary::new(&temporary_directory()?, "iostep-mount-")?)
}

/// The directory for temporary files, from the root.
pub(crate) fn temporary_directory() -> Result<PathBuf> {
    let directory = std::env::temp_dir();
    std::path::absolute(&directory).map_err(Error::io(&directory, "find"))
}

/// The options that are the kernel's own, and the rest, which the filesystem reads: mount(8)
/// separates them, mount(2) wants them apart.
fn split(options: &str) -> (MountFlags, String) {
    let mut flags = MountFlags::empty();
    let mut own = Vec::new();
    for option in options.split(',').filter(|option| !option.is_empty()) {
        match option {
            "defaults" | "rw" => {}
            "ro" => flags |= MountFlags::RDONLY,
            "sync" => flags |= MountFlags::SYNCHRONOUS,
            "dirsync" => flags |= MountFlags::DIRSYNC,
            "noatime" => flags |= MountFlags::NOATIME,
            "nodiratime" => flags |= MountFlags::NODIRATIME,
            "relatime" => flags |= MountFlags::RELATIME,
            "strictatime" => flags |= MountFlags::STRICTATIME,
            "lazytime" => flags |= MountFlags::LAZYTIME,
            other => own.push(other),
        }
    }
    (flags, own.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_reads_itself_is_no_option_of_the_filesystem() {
        let (flags, own) = split("noatime,data=writeback,,lazytime,barrier=0,defaults");
        assert_eq!(flags, MountFlags::NOATIME | MountFlags::LAZYTIME);
        assert_eq!(own, "data=writeback,barrier=0");
        assert_eq!(split(""), (MountFlags::empty(), String::new()));
    }
}
