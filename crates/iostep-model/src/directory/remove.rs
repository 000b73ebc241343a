//! Removing what is in a directory.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

type Looked<T> = std::result::Result<T, Errno>;

/// Removes what is in a directory, without recursion into the caller's stack: a hostile tree may
/// be deep.
pub fn remove_all(directory: BorrowedFd<'_>) -> Looked<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let again = |fd: BorrowedFd<'_>| rustix::fs::openat(fd, c".", flags, Mode::empty());
    // Directories on the way down, each with the name of the next.
    let mut way: Vec<(OwnedFd, CString)> = Vec::new();
    let mut current = again(directory)?;
    loop {
        match first_directory_after_removing_files(&current)? {
            Some(name) => {
                let below = open_own(&current, &name, flags)?;
                way.push((std::mem::replace(&mut current, below), name));
                if way.len() >= MAX_DEPTH {
                    shorten(&mut way, directory)?;
                    current = again(directory)?;
                }
            }
            None => {
                let Some((above, name)) = way.pop() else {
                    return Ok(());
                };
                rustix::fs::unlinkat(&above, &name, AtFlags::REMOVEDIR)?;
                current = above;
            }
        }
    }
}

/// Opens a directory, whose permissions must not stop the owner: without the right to read it, it
/// is found first, and then given all rights.
fn open_own(above: &OwnedFd, name: &CStr, flags: OFlags) -> Looked<OwnedFd> {
    let found = rustix::fs::openat(above, name, flags | OFlags::PATH, Mode::empty())?;
    // If this is not allowed, the next call says why.
    let _ = rustix::fs::chmod(format!("/proc/self/fd/{}", found.as_raw_fd()), Mode::RWXU);
    rustix::fs::openat(&found, c".", flags, Mode::empty())
}

/// Descriptors that are held on the way down.
const MAX_DEPTH: usize = 256;

/// Moves the directory at the end of a long way to the top, so that the way becomes shorter.
fn shorten(way: &mut Vec<(OwnedFd, CString)>, top: BorrowedFd<'_>) -> Looked<()> {
    let Some((above, name)) = way.pop() else {
        return Ok(());
    };
    for number in 0u32.. {
        let new = CString::new(format!("iostep-deep-{number}")).unwrap_or_default();
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(&above, &name, top, &new, flags) {
            Err(Errno::EXIST) => {}
            done => {
                way.clear();
                return done;
            }
        }
    }
    Ok(())
}

fn first_directory_after_removing_files(directory: &OwnedFd) -> Looked<Option<CString>> {
    for entry in rustix::fs::Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let is_directory = match entry.file_type() {
            FileType::Unknown => {
                let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(found.st_mode) == FileType::Directory
            }
            known => known == FileType::Directory,
        };
        if is_directory {
            return Ok(Some(name.to_owned()));
        }
        match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
            // Somebody else removed it.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(None)
}
