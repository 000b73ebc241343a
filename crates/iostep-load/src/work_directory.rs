//! The directory that holds everything a generator makes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// An own directory below one that somebody chose. No one else of us works in it meanwhile. It
/// goes away with this value if it is empty.
#[derive(Debug)]
pub struct WorkDirectory {
    parent: OwnedFd,
    directory: OwnedFd,
    name: &'static str,
    path: PathBuf,
}

impl WorkDirectory {
    /// Makes it below `parent` by this name, or takes it if it is there.
    ///
    /// Errors: `Usage` if `parent` is no directory; `Refused` if it cannot be written, if the
    /// name belongs to something else or somebody else, or if another run uses it; `Io`.
    pub fn open(parent: &Path, name: &'static str) -> Result<WorkDirectory> {
        let path = parent.join(name);
        let parent = open_parent(parent)?;
        // Between opening and locking, the one that used it may have removed it.
        for _ in 0..10 {
            let directory = open_own(parent.as_fd(), name, &path)?;
            match rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => {
                    return Err(refused(&path, "another run uses it", "wait for its end"));
                }
                // Not every filesystem of a network has locks.
                Ok(()) | Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS) => {}
                Err(errno) => return Err(Error::io(&path, "lock")(errno.into())),
            }
            let found = rustix::fs::fstat(&directory)
                .map_err(|errno| Error::io(&path, "look at")(errno.into()))?;
            if found.st_nlink > 0 {
                return Ok(WorkDirectory {
                    parent,
                    directory,
                    name,
                    path,
                });
            }
        }
        Err(refused(&path, "it is removed again and again", "try again"))
    }

    /// Its path, for people.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for WorkDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        // Refused if something is in it, as kept files.
        let _ = rustix::fs::unlinkat(&self.parent, self.name, AtFlags::REMOVEDIR);
    }
}

fn refused(path: &Path, fact: &str, hint: &str) -> Error {
    Error::Refused {
        what: format!("{}: {fact}", path.display()),
        hint: hint.into(),
    }
}

fn open_parent(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let usage = |fact: &str, hint: &str| Error::Usage {
        what: format!("{}: {fact}", path.display()),
        hint: hint.into(),
    };
    rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::NOENT => usage("there is no such directory", "make it or name another"),
        Errno::NOTDIR => usage("it is not a directory", "name a directory"),
        _ => Error::io(path, "open")(errno.into()),
    })
}

fn open_own(parent: BorrowedFd<'_>, name: &str, path: &Path) -> Result<OwnedFd> {
    let made = match rustix::fs::mkdirat(parent, name, Mode::RWXU) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(Errno::ROFS) => {
            let hint = "choose a directory that can be written";
            return Err(refused(path, "the filesystem is read-only", hint));
        }
        Err(errno) => return Err(Error::io(path, "make")(errno.into())),
    };
    let hint = "remove it or choose another directory";
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory =
        rustix::fs::openat(parent, name, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::NOTDIR | Errno::LOOP => refused(path, "it is not a directory of ours", hint),
            _ => Error::io(path, "open")(errno.into()),
        })?;
    let found = rustix::fs::fstat(&directory).map_err(|e| Error::io(path, "look at")(e.into()))?;
    if !made && found.st_uid != rustix::process::geteuid().as_raw() {
        return Err(refused(path, "it belongs to another user", hint));
    }
    Ok(directory)
}
