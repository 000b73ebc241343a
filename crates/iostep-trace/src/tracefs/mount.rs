//! Where tracefs is, or a private mount of it.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::error::{Error, Result};

/// The root of a tracefs.
#[derive(Debug)]
pub(crate) struct Mount {
    path: PathBuf,
    /// Keeps a private mount alive: it is already detached, so it ends with this descriptor,
    /// however this process ends.
    _private: Option<OwnedFd>,
}

impl Mount {
    /// Finds a mounted tracefs, or mounts one that nobody else sees.
    ///
    /// Errors: `Io` if there is none and none can be mounted (no root, or a kernel without it).
    pub fn find() -> Result<Mount> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let mounted = mounted_tracefs(&mounts).into_iter();
        // Older systems mount it on the first look into debugfs.
        let debugfs = PathBuf::from("/sys/kernel/debug/tracing");
        match mounted.chain([debugfs]).find(|path| usable(path)) {
            Some(path) => Ok(Mount {
                path,
                _private: None,
            }),
            None => Mount::private(),
        }
    }

    fn private() -> Result<Mount> {
        let dir = std::env::temp_dir().join(format!("iostep-tracefs-{}", std::process::id()));
        std::fs::create_dir(&dir).map_err(Error::io(&dir, "create"))?;
        let mounted = mount_detached(&dir);
        // Best effort: an empty directory is all that can stay.
        let _ = std::fs::remove_dir(&dir);
        let root = mounted.map_err(Error::io("tracefs", "mount"))?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", root.as_raw_fd()));
        Ok(Mount {
            path,
            _private: Some(root),
        })
    }

    /// The root directory; valid in this process only.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn mount_detached(dir: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("tracefs", dir, "tracefs", flags, None)?;
    let root = rustix::fs::open(
        dir,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    );
    unmount(dir, UnmountFlags::DETACH)?;
    root
}

fn usable(path: &Path) -> bool {
    path.join("instances").is_dir() && File::open(path.join("events/header_page")).is_ok()
}

/// Mount points of type tracefs in the text of `/proc/self/mounts`.
fn mounted_tracefs(mounts: &str) -> Vec<PathBuf> {
    let lines = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (point, kind) = (words.next()?, words.next()?);
        (kind == "tracefs").then(|| PathBuf::from(point.replace("\\040", " ")))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracefs_is_found_by_type_not_by_place() {
        let mounts = "proc /proc proc rw 0 0\n\
                      none /trace\\040here tracefs rw,relatime 0 0\n\
                      tracefs /data ext4 rw 0 0\nbroken";
        assert_eq!(mounted_tracefs(mounts), [PathBuf::from("/trace here")]);
    }
}
