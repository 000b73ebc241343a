//! The directory that holds everything a generator makes.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// Says of a directory that its content is ours.
const MARK: &CStr = c"user.iostep";
const MARK_FILE: &CStr = c".iostep-replay";

/// An own directory below one that somebody chose. No one else of us works in it meanwhile. It
/// goes away with this value if it is empty.
#[derive(Debug)]
pub struct WorkDirectory {
    parent: OwnedFd,
    directory: OwnedFd,
    name: &'static str,
    path: PathBuf,
    /// It was there, empty, and nobody says whose it is.
    stays: bool,
    is_new: bool,
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
            let (directory, made) = open_own(parent.as_fd(), name, &path)?;
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
                    stays: false,
                    is_new: made,
                });
            }
        }
        Err(refused(&path, "it is removed again and again", "try again"))
    }

    /// Notes in the directory that its content is ours, to be removed by a later run. An extended
    /// attribute, which no listing shows; a file where the filesystem has none of those.
    ///
    /// Errors: `Refused` if something is in it that is not marked so; `Io`.
    pub fn mark(&mut self) -> Result<()> {
        let path = self.path.clone();
        let failed = |errno: Errno| Error::io(&path, "mark")(errno.into());
        if self.is_marked() {
            return Ok(());
        }
        if !self.is_empty().map_err(failed)? {
            return Err(refused(
                &self.path,
                "what is in it was not made by a replay",
                "move it away, or choose another directory",
            ));
        }
        self.stays = !self.is_new;
        let flags = rustix::fs::XattrFlags::CREATE;
        if rustix::fs::fsetxattr(&self.directory, MARK, b"1", flags).is_ok() {
            return Ok(());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let made = rustix::fs::openat(&self.directory, MARK_FILE, flags, mode);
        made.map(drop).map_err(failed)
    }

    fn is_marked(&self) -> bool {
        let mut value = [0; 8];
        if rustix::fs::fgetxattr(&self.directory, MARK, &mut value).is_ok() {
            return true;
        }
        let found = rustix::fs::statat(&self.directory, MARK_FILE, AtFlags::SYMLINK_NOFOLLOW);
        let user = rustix::process::geteuid().as_raw();
        found.is_ok_and(|found| {
            let kind = rustix::fs::FileType::from_raw_mode(found.st_mode);
            kind == rustix::fs::FileType::RegularFile && found.st_uid == user
        })
    }

    fn is_empty(&self) -> std::result::Result<bool, Errno> {
        for entry in rustix::fs::Dir::read_from(&self.directory)? {
            if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
                return Ok(false);
            }
        }
        Ok(true)
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
        if self.stays {
            if self.is_empty() == Ok(true) {
                let _ = rustix::fs::fremovexattr(&self.directory, MARK);
            }
            return;
        }
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

fn open_own(parent: BorrowedFd<'_>, name: &str, path: &Path) -> Result<(OwnedFd, bool)> {
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
    Ok((directory, made))
}
