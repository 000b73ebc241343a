//! Directories held by descriptor, and who may own what is made in them.
//!
//! A path is looked up once. What is done later is done in the directory that was found, whatever
//! somebody puts at its name meanwhile: the program often runs as root in other people's
//! directories.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, FlockOperation, Gid, Mode, OFlags, ResolveFlags, Stat, Uid};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::mountinfo;

mod remove;

pub use remove::remove_all;

/// As many symbolic links as the kernel follows in one path (path_resolution(7)).
const MAX_LINKS: usize = 40;
/// `PROC_SUPER_MAGIC` (statfs(2)).
const PROC: u64 = 0x9fa0;
/// Says of a temporary directory that it is one, and with its lock that somebody uses it.
const MARK: &str = ".iostep-temporary";
const FIND: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
const HOLD: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Takes a lock for this process, in a file that is made if it is not there, until the file is
/// dropped; `None` if another process has it.
///
/// Errors: `Io`.
pub fn lock(path: &Path) -> Result<Option<File>> {
    let mut options = File::options();
    let options = options.create(true).truncate(false).write(true);
    let file = options.open(path).map_err(Error::io(path, "open"))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(Error::io(path, "lock")(errno.into())),
    }
}

/// Whoever called sudo, if this process is root because of that: their user and group.
pub fn caller() -> Option<(Uid, Gid)> {
    let number = |name: &str| -> Option<u32> {
        let value = std::env::var(name).ok()?;
        value.parse().ok().filter(|number| *number != u32::MAX)
    };
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let (user, group) = (number("SUDO_UID")?, number("SUDO_GID")?);
    Some((Uid::from_raw(user), Gid::from_raw(group)))
}

/// Makes something new belong to whoever called sudo.
///
/// Errors: a filesystem without owners keeps its own, which is no error; others are the kernel's.
pub fn give_to_caller(fd: impl AsFd) -> io::Result<()> {
    let Some((user, group)) = caller() else {
        return Ok(());
    };
    match rustix::fs::fchown(fd, Some(user), Some(group)) {
        Ok(()) | Err(Errno::PERM | Errno::OPNOTSUPP | Errno::INVAL) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// What a path leads to.
#[derive(Debug)]
pub(crate) struct Found {
    /// The directory that the last name is in, or the path's own where it names nothing in it.
    pub(crate) directory: OwnedFd,
    /// The last name: no symbolic link, or one of the kernel's own.
    pub(crate) name: Option<OsString>,
    /// What the name stands for; nothing if there is nothing.
    pub(crate) object: Option<Stat>,
    /// The name is a link in /proc, as `/proc/self/fd/1`.
    pub(crate) is_descriptor: bool,
}

/// Follows a path as the kernel does, but for symbolic links that belong to a stranger: whoever
/// owns them could make root write anywhere.
pub(crate) fn find(path: &Path) -> io::Result<Found> {
    let mut pending = Vec::new();
    push(&mut pending, path);
    let mut directory = rustix::fs::open(c".", FIND | OFlags::DIRECTORY, Mode::empty())?;
    let mut links = 0;
    while let Some(name) = pending.pop() {
        if name == "/" || name == ".." {
            directory =
                rustix::fs::openat(&directory, &name, FIND | OFlags::DIRECTORY, Mode::empty())?;
            continue;
        }
        let object = rustix::fs::openat(&directory, &name, FIND | OFlags::NOFOLLOW, Mode::empty());
        let object = match object {
            Err(Errno::NOENT) if pending.is_empty() => {
                return Ok(Found {
                    directory,
                    name: Some(name),
                    object: None,
                    is_descriptor: false,
                });
            }
            other => other?,
        };
        let stat = rustix::fs::fstat(&object)?;
        let is_last = pending.is_empty();
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            links += 1;
            if links > MAX_LINKS {
                return Err(Errno::LOOP.into());
            }
            if rustix::fs::fstatfs(&object)?.f_type as u64 == PROC {
                // Its text is only a description: the kernel alone knows where it leads.
                let target = rustix::fs::openat(&directory, &name, FIND, Mode::empty())?;
                if is_last {
                    return Ok(Found {
                        directory,
                        name: Some(name),
                        object: Some(rustix::fs::fstat(&target)?),
                        is_descriptor: true,
                    });
                }
                directory = target;
                continue;
            }
            check_trusted(&name, stat.st_uid)?;
            let target = rustix::fs::readlinkat(&object, c"", Vec::new())?;
            push(
                &mut pending,
                Path::new(OsStr::from_bytes(target.to_bytes())),
            );
        } else if is_last {
            return Ok(Found {
                directory,
                name: Some(name),
                object: Some(stat),
                is_descriptor: false,
            });
        } else {
            directory = object;
        }
    }
    let object = Some(rustix::fs::fstat(&directory)?);
    Ok(Found {
        directory,
        name: None,
        object,
        is_descriptor: false,
    })
}

/// The path, without any symbolic link, of what `path` leads to.
///
/// Errors: `Io`, also where nothing is there, or the way leads through a stranger's symbolic link or
/// into another mount namespace.
pub fn resolve(path: &Path) -> Result<PathBuf> {
    let failed = |error: io::Error| Error::io(path, "resolve")(error);
    let found = find(path).map_err(failed)?;
    if found.object.is_none() {
        return Err(failed(Errno::NOENT.into()));
    }
    if found.is_descriptor {
        return mountinfo::canonical(path).map_err(failed);
    }
    // Not by the directory's path and the name: something else may be mounted there in this namespace.
    let name = found.name.unwrap_or_else(|| ".".into());
    let flags = FIND | OFlags::NOFOLLOW;
    let object = rustix::fs::openat(&found.directory, &name, flags, Mode::empty());
    let object = object.map_err(|errno| failed(errno.into()))?;
    mountinfo::canonical_of(&object, path).map_err(failed)
}

fn push(pending: &mut Vec<OsString>, path: &Path) {
    pending.extend(path.components().rev().filter_map(|part| match part {
        Component::CurDir | Component::Prefix(_) => None,
        Component::RootDir => Some(OsString::from("/")),
        Component::ParentDir => Some(OsString::from("..")),
        Component::Normal(name) => Some(name.to_owned()),
    }));
}

fn check_trusted(name: &OsStr, owner: u32) -> io::Result<()> {
    let is_trusted = owner == 0
        || owner == rustix::process::geteuid().as_raw()
        || caller().is_some_and(|(user, _)| user.as_raw() == owner);
    match is_trusted {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{} is a symbolic link of user {owner}, who could point it elsewhere; name what it \
                 points to",
                name.display()
            ),
        )),
    }
}

/// Opens a name in a directory and nothing else: no symbolic link, nothing outside.
pub(crate) fn open_beneath(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    flags: OFlags,
    mode: Mode,
) -> std::result::Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat2(directory, name, flags, mode, resolve) {
        // Before Linux 5.6, and where a sandbox knows no openat2: the same for a single name.
        Err(Errno::NOSYS | Errno::PERM) if !name.as_bytes().contains(&b'/') => {
            rustix::fs::openat(directory, name, flags, mode)
        }
        done => done,
    }
}

/// A directory that is held: what is done at [`Directory::path`] is done in it, wherever it is
/// moved and whatever is put in its place.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    name: PathBuf,
}

impl Directory {
    /// Holds the directory at `path`.
    ///
    /// Errors: `Io`, also where the way leads through a stranger's symbolic link.
    pub fn open(path: &Path) -> Result<Directory> {
        let failed = |error: io::Error| Error::io(path, "open")(error);
        let found = find(path).map_err(failed)?;
        let name = match (&found.name, found.is_descriptor) {
            (Some(name), true) => {
                let flags = HOLD.difference(OFlags::NOFOLLOW);
                rustix::fs::openat(&found.directory, name, flags, Mode::empty())
            }
            (Some(name), false) => open_beneath(found.directory.as_fd(), name, HOLD, Mode::empty()),
            (None, _) => rustix::fs::openat(&found.directory, c".", HOLD, Mode::empty()),
        };
        Ok(Directory {
            fd: name.map_err(|errno| failed(errno.into()))?,
            name: path.to_owned(),
        })
    }

    /// Makes a directory that only this user, or whoever called sudo, can enter. True if it was
    /// made, false if there was one.
    ///
    /// Errors: `Io`.
    pub fn make(path: &Path) -> Result<(Directory, bool)> {
        let failed = |error: io::Error| Error::io(path, "create")(error);
        let found = find(path).map_err(failed)?;
        let Some(name) = found.name.filter(|_| found.object.is_none()) else {
            return Ok((Directory::open(path)?, false));
        };
        let parent = found.directory.as_fd();
        match rustix::fs::mkdirat(parent, &name, Mode::RWXU) {
            // Somebody was faster.
            Err(Errno::EXIST) => return Ok((Directory::open(path)?, false)),
            made => made.map_err(|errno| failed(errno.into()))?,
        }
        let fd = open_beneath(parent, &name, HOLD, Mode::empty());
        let fd = fd.map_err(|errno| failed(errno.into()))?;
        check_is_ours(&fd).map_err(failed)?;
        give_to_caller(&fd).map_err(failed)?;
        let name = path.to_owned();
        Ok((Directory { fd, name }, true))
    }

    /// Its path for this process, as long as this value lives.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.fd.as_raw_fd()).into()
    }

    /// Its path for other processes, as long as this value lives.
    pub fn path_for_others(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.fd.as_raw_fd()).into()
    }

    /// Its path for people.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// An error at [`Directory::path`], told with the path that people know.
    pub fn named(&self, error: Error) -> Error {
        let path = self.path();
        let known = |found: PathBuf| match found.strip_prefix(&path) {
            Ok(rest) if rest.as_os_str().is_empty() => self.name.clone(),
            Ok(rest) => self.name.join(rest),
            Err(_) => found,
        };
        match error {
            Error::Io { path, what, source } => Error::Io {
                path: known(path),
                what,
                source,
            },
            Error::Unsupported {
                path,
                found,
                expected,
            } => Error::Unsupported {
                path: known(path),
                found,
                expected,
            },
            Error::Corrupt {
                path,
                place,
                reason,
            } => Error::Corrupt {
                path: known(path),
                place,
                reason,
            },
        }
    }

    /// Removes the directory at its name, if it is still this one and empty.
    pub fn remove_if_empty(&self) {
        let Ok(found) = find(&self.name) else { return };
        let (Some(name), Ok(own)) = (found.name, rustix::fs::fstat(&self.fd)) else {
            return;
        };
        let same = found
            .object
            .is_some_and(|other| (other.st_dev, other.st_ino) == (own.st_dev, own.st_ino));
        if same {
            let _ = rustix::fs::unlinkat(&found.directory, name, AtFlags::REMOVEDIR);
        }
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// What was made a moment ago must not have been exchanged since.
fn check_is_ours(fd: &OwnedFd) -> io::Result<()> {
    match rustix::fs::fstat(fd)?.st_uid == rustix::process::geteuid().as_raw() {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "somebody put another directory there",
        )),
    }
}

/// A directory that only this user can enter, removed with this value. What a run that was killed
/// has left beside it is removed, too.
#[derive(Debug)]
pub struct Temporary {
    parent: OwnedFd,
    directory: Directory,
    name: OsString,
    /// Locked as long as this value lives; nothing once it is kept.
    mark: Option<File>,
}

impl Temporary {
    /// Makes `parent/PREFIX…`.
    ///
    /// Errors: `Io`.
    pub fn new(parent: &Path, prefix: &str) -> Result<Temporary> {
        Temporary::within(&Directory::open(parent)?, prefix)
    }

    /// Makes `PREFIX…` in a directory that is held.
    ///
    /// Errors: `Io`.
    pub fn within(held: &Directory, prefix: &str) -> Result<Temporary> {
        let parent = held.name();
        let failed = |error: io::Error| Error::io(parent, "create a directory in")(error);
        sweep(held.as_fd(), prefix);
        let of_parent = held.fd.try_clone().map_err(failed)?;
        // One that a sweep took before it had its lock is made again.
        for _ in 0..100 {
            let name = unique(prefix);
            match rustix::fs::mkdirat(&held.fd, &name, Mode::RWXU) {
                Err(Errno::EXIST) => continue,
                made => made.map_err(|errno| failed(errno.into()))?,
            }
            let fd = open_beneath(held.as_fd(), &name, HOLD, Mode::empty());
            let fd = fd.map_err(|errno| failed(errno.into()))?;
            check_is_ours(&fd).map_err(failed)?;
            let Some(mark) = mark(fd.as_fd()).map_err(failed)? else {
                continue;
            };
            let name_of_all = parent.join(&name);
            return Ok(Temporary {
                parent: of_parent,
                directory: Directory {
                    fd,
                    name: name_of_all,
                },
                name,
                mark: Some(mark),
            });
        }
        Err(failed(Errno::EXIST.into()))
    }

    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The path for this process, as long as this value lives.
    pub fn path(&self) -> PathBuf {
        self.directory.path()
    }

    /// Leaves it where it is, to whoever called sudo. Gives its path.
    ///
    /// Errors: `Io`.
    pub fn keep(mut self) -> Result<PathBuf> {
        let path = self.directory.name.clone();
        self.mark = None;
        let gone = rustix::fs::unlinkat(&self.directory.fd, MARK, AtFlags::empty());
        gone.map_err(|errno| Error::io(&path, "keep")(errno.into()))?;
        give_to_caller(&self.directory.fd).map_err(Error::io(&path, "give away"))?;
        Ok(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.mark.is_none() {
            return;
        }
        remove(self.parent.as_fd(), &self.name, self.directory.as_fd());
    }
}

/// Empties a directory that is held and removes its name, which goes only if what is there is
/// empty, so never a stranger's. A process that is about to end may make files meanwhile, for a
/// second.
fn remove(parent: BorrowedFd<'_>, name: &OsStr, directory: BorrowedFd<'_>) {
    for _ in 0..100 {
        let _ = remove_all(directory);
        let removed = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
        if removed != Err(Errno::NOTEMPTY) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Puts the mark into a new directory and locks it; nothing if a sweep had the lock first, which
/// has removed the directory, or is about to.
fn mark(directory: BorrowedFd<'_>) -> io::Result<Option<File>> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    let file = open_beneath(directory, MARK.as_ref(), flags, Mode::RUSR | Mode::WUSR)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        // Not every filesystem of a network has locks: nothing is swept there either.
        Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS) => {}
        Err(errno) => return Err(errno.into()),
    }
    let swept = rustix::fs::fstat(&file)?.st_nlink == 0;
    Ok((!swept).then(|| file.into()))
}

/// Removes the [`Temporary`] directory at `path` if it is this user's and whoever made it is dead.
/// Waits at most `patience` for that: the kernel closes the descriptors of who dies one after the
/// other, and each BPF program among them takes its time.
pub fn remove_left(path: &Path, patience: Duration) {
    let Ok(found) = find(path) else { return };
    let Some(name) = found.name else { return };
    let begin = Instant::now();
    while sweep_one(found.directory.as_fd(), &name) == Err(Errno::WOULDBLOCK) {
        if begin.elapsed() >= patience {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Removes the temporary directories of this name that nobody uses any more: they are this user's,
/// have the mark, and its lock is free, so whoever made them is dead.
fn sweep(parent: BorrowedFd<'_>, prefix: &str) {
    let Ok(entries) = rustix::fs::Dir::read_from(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name.as_bytes().starts_with(prefix.as_bytes()) {
            let _ = sweep_one(parent, name);
        }
    }
}

fn sweep_one(parent: BorrowedFd<'_>, name: &OsStr) -> std::result::Result<(), Errno> {
    let user = rustix::process::geteuid().as_raw();
    let directory = open_beneath(parent, name, HOLD, Mode::empty())?;
    let flags = OFlags::RDWR | OFlags::NONBLOCK;
    let mark = open_beneath(directory.as_fd(), MARK.as_ref(), flags, Mode::empty())?;
    let (own, marked) = (rustix::fs::fstat(&directory)?, rustix::fs::fstat(&mark)?);
    if own.st_uid != user || marked.st_uid != user {
        return Ok(());
    }
    rustix::fs::flock(&mark, FlockOperation::NonBlockingLockExclusive)?;
    remove(parent, name, directory.as_fd());
    Ok(())
}

/// A name that this process does not use a second time.
pub fn unique(prefix: &str) -> OsString {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}{}-{number}", std::process::id()).into()
}

#[cfg(test)]
mod tests;
