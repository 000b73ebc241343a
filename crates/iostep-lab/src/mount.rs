//! Mounts that go away by themselves.

use std::ffi::CString;
use std::path::Path;

use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::thread::UnshareFlags;
use tempfile::TempDir;

use crate::error::{Error, Result};
use crate::image::LoopImage;
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
            hint: "run it with sudo".into(),
        }
    })?;
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", slave).map_err(Error::io("/", "make private the mounts of"))
}

/// A mounted image. The drop unmounts it (lazily if it is still in use) and removes the mount
/// point.
#[derive(Debug)]
pub struct Mount {
    directory: TempDir,
}

impl Mount {
    /// Mounts an image at a directory of its own, which only this user can enter.
    ///
    /// `options` are the filesystem's, as `mount -o` has them.
    /// Errors: `Io`, with the kernel's reason; `Usage` if the options hold a zero byte.
    pub fn new(kind: Kind, image: &LoopImage, options: &str) -> Result<Mount> {
        let parent = std::env::temp_dir();
        let directory = tempfile::Builder::new()
            .prefix("iostep-")
            .tempdir_in(&parent)
            .map_err(Error::io(&parent, "create a directory in"))?;
        let data = CString::new(options).map_err(|_| Error::Usage {
            what: "a zero byte in the mount options".into(),
            hint: "leave it out".into(),
        })?;
        let flags = MountFlags::NODEV | MountFlags::NOSUID;
        rustix::mount::mount(
            image.device(),
            directory.path(),
            kind.mount_type(),
            flags,
            data.as_c_str(),
        )
        .map_err(Error::io(image.device(), "mount"))?;
        Ok(Mount { directory })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.directory.path()
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
        let path = self.directory.path();
        // EINVAL after `unmount`: it is no mount point any more, which is what we want.
        if rustix::mount::unmount(path, UnmountFlags::NOFOLLOW) == Err(rustix::io::Errno::BUSY) {
            let _ = rustix::mount::unmount(path, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH);
        }
    }
}
