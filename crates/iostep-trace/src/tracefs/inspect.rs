//! Looks at one inode of the traced filesystem from outside.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use iostep_model::printable::path_text;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};
use rustix::mount::OpenTreeFlags;

use crate::tracefs::handle::{self, Placed};
use crate::tracefs::names::Identity;

/// The traced filesystem, reachable for a moment: kept open it could not be unmounted.
#[derive(Debug)]
pub(crate) struct Visit {
    root: OwnedFd,
    /// What the kernel puts before a path below the filesystem's root.
    prefix: PathBuf,
}

/// What there is to know about an inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inspected {
    pub generation: u32,
    pub mode: u16,
    pub path: Option<String>,
    pub unlinked: bool,
    pub birth_wall_ns: Option<i64>,
}

impl Visit {
    /// Reaches the filesystem `device` (kernel numbering aside: major and minor) at
    /// `mount_point`; `None` if something else, or nothing, is mounted there by now.
    pub fn start(mount_point: &Path, device: (u32, u32)) -> Option<Visit> {
        // A private copy of the mount: an `umount` in this moment does not fail because of us.
        let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let cloned = rustix::mount::open_tree(rustix::fs::CWD, mount_point, clone);
        let cloned = cloned.map(|root| (root, PathBuf::from("/")));
        let (root, prefix) = cloned
            .or_else(|_| {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let root = rustix::fs::open(mount_point, flags, Mode::empty());
                root.map(|root| {
                    // In another mount namespace the kernel's text is that namespace's path.
                    let link = format!("/proc/self/fd/{}", root.as_raw_fd());
                    let told = std::fs::read_link(link);
                    (root, told.unwrap_or_else(|_| mount_point.to_owned()))
                })
            })
            .ok()?;
        // open_by_handle_at wants a directory that is really open.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(&root, ".", flags, Mode::empty()).ok()?;
        let number = rustix::fs::fstat(&root).ok()?.st_dev;
        let number = (rustix::fs::major(number), rustix::fs::minor(number));
        (number == device).then_some(Visit { root, prefix })
    }

    /// The filesystem's block size in bytes.
    pub fn block_bytes(&self) -> Option<u64> {
        let size = rustix::fs::fstatfs(&self.root).ok()?.f_bsize;
        u64::try_from(size).ok().filter(|&size| size != 0)
    }

    /// Looks at an inode of any generation; `None` if it is gone.
    pub fn inspect(&self, inode: u64) -> Option<Inspected> {
        let inode = u32::try_from(inode).ok()?;
        let file = handle::open(self.root.as_fd(), inode, 0, OFlags::PATH).ok()?;
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let stat = rustix::fs::statx(&file, "", AtFlags::EMPTY_PATH, wanted).ok()?;
        let unlinked = stat.stx_nlink == 0;
        let btime = stat.stx_btime;
        let has_birth = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
        Some(Inspected {
            generation: handle::generation(file.as_fd()).ok()?,
            mode: stat.stx_mode,
            path: self.path_of(&file, inode, unlinked),
            unlinked,
            birth_wall_ns: has_birth
                .then(|| btime.tv_sec * 1_000_000_000 + i64::from(btime.tv_nsec)),
        })
    }

    /// The path of a directory; `None` if it is gone.
    pub fn directory(&self, identity: Identity) -> Option<String> {
        let Identity { inode, generation } = identity;
        let file = handle::open(self.root.as_fd(), inode, generation, OFlags::PATH).ok()?;
        let unlinked = rustix::fs::fstat(&file).ok()?.st_nlink == 0;
        self.path_of(&file, inode, unlinked)
    }

    /// Where a regular file or a directory lies now.
    pub fn extents(&self, inode: u64, generation: u32, mode: u16) -> Vec<Placed> {
        let kind = FileType::from_raw_mode(mode.into());
        let Ok(inode) = u32::try_from(inode) else {
            return Vec::new();
        };
        // Opening anything else would open the device or wait for the other end of a pipe.
        if !matches!(kind, FileType::RegularFile | FileType::Directory) {
            return Vec::new();
        }
        let flags = OFlags::RDONLY | OFlags::NOATIME | OFlags::NONBLOCK;
        let file = handle::open(self.root.as_fd(), inode, generation, flags);
        let extents = file.and_then(|file| handle::extents(file.as_fd()));
        extents.unwrap_or_default()
    }

    /// The path that the kernel's name cache has for an open inode. A file that is in use has
    /// one; for another the kernel answers with the bare root.
    fn path_of(&self, file: &OwnedFd, inode: u32, unlinked: bool) -> Option<String> {
        const EXT4_ROOT_INODE: u32 = 2;
        let link = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        below_root(&link, &self.prefix, unlinked).filter(|p| p != "/" || inode == EXT4_ROOT_INODE)
    }
}

/// Turns the kernel's text for an open file into a path below the filesystem's root.
fn below_root(link: &Path, prefix: &Path, unlinked: bool) -> Option<String> {
    let below = link.strip_prefix(prefix).ok()?.as_os_str().as_bytes();
    let below = match below.strip_suffix(b" (deleted)") {
        Some(name) if unlinked => name,
        _ => below,
    };
    Some(format!("/{}", path_text(below)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lose_the_mount_point_and_the_mark_of_deleted_files() {
        let path = |link: &str, prefix: &str, unlinked| {
            below_root(Path::new(link), Path::new(prefix), unlinked)
        };
        assert_eq!(
            path("/mnt/a/b.db", "/mnt", false).as_deref(),
            Some("/a/b.db")
        );
        assert_eq!(path("/b.db (deleted)", "/", true).as_deref(), Some("/b.db"));
        let named_so = path("/b (deleted)", "/", false);
        assert_eq!(named_so.as_deref(), Some("/b (deleted)"));
        assert_eq!(path("/elsewhere/b", "/mnt", false), None);
        assert_eq!(path("/mnt", "/mnt", false).as_deref(), Some("/"));
    }
}
