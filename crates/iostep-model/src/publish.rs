//! Results that appear whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;
use rustix::pipe::PIPE_BUF;

use crate::directory::{self, Found};
use crate::error::{Error, Result};

pub mod partial;

pub use partial::Partial;

/// Standard output as the name of a file.
const STANDARD_OUTPUT: &str = "-";

/// Who may read a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// Whoever the umask allows it: what somebody asked for in order to show it.
    Umask,
    /// Its owner alone: what was recorded, which names other people's files or holds them.
    Private,
}

/// True for the name of standard output: `-`, or what leads to it, as `/dev/stdout`.
pub fn is_standard_output(path: &Path) -> bool {
    path.as_os_str() == STANDARD_OUTPUT || directory::find(path).is_ok_and(|it| is_own_output(&it))
}

/// Where to keep what goes into a result later: beside it, since its disk has to have the room; in the
/// system's temporary directory for what is no file, as standard output or a FIFO.
pub fn spool_directory(path: &Path) -> PathBuf {
    if is_spooled_elsewhere(path) {
        return std::env::temp_dir();
    }
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn is_spooled_elsewhere(path: &Path) -> bool {
    is_standard_output(path) || path.metadata().is_ok_and(|it| !it.is_file())
}

/// How long a reader may let wait whoever was asked to end.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(50);

static END: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);

/// From now on nobody waits long for the reader of a FIFO once this is true. A signal that is caught
/// does not end a call that waits for one.
pub fn end_when(flag: Arc<AtomicBool>) {
    *END.lock().unwrap_or_else(PoisonError::into_inner) = Some(flag);
}

/// Publishes `bytes` at `path`: see [`write_with()`].
///
/// Errors: `Io`.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_with(path, |file| {
        file.write_all(bytes).map_err(Error::io(path, "write"))
    })
}

/// As [`write()`], for what only its owner is to read.
///
/// Errors: `Io`.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    write_private_with(path, |file| {
        file.write_all(bytes).map_err(Error::io(path, "write"))
    })
}

/// Publishes what `fill` makes at `path`.
///
/// A regular file, also one behind a symbolic link, and a name that is free: the content is written
/// to a file without a name, synced, and put there whole; a file that is replaced leaves its mode
/// and its owner to the new one, and the link stays. A device, a FIFO, a socket or a descriptor of
/// a process: it is written to. `-` is standard output. A reader that goes away has what it wanted.
///
/// Errors: `Io`, and whatever `fill` returns; a regular file is then as it was.
pub fn write_with<E: From<Error>>(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<Sink<'_>>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    write_as(path, Access::Umask, fill)
}

/// As [`write_with()`], for what only its owner is to read.
///
/// Errors: as [`write_with()`].
pub fn write_private_with<E: From<Error>>(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<Sink<'_>>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    write_as(path, Access::Private, fill)
}

fn write_as<E: From<Error>>(
    path: &Path,
    access: Access,
    fill: impl FnOnce(&mut BufWriter<Sink<'_>>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let target = Target::of(path).map_err(Error::io(path, "write to"))?;
    let (place, name, old) = match &target {
        Target::Through(file) => return write_into(path, file, true, fill),
        Target::Replace {
            directory,
            name,
            old,
        } => (directory.as_fd(), name, old.as_ref()),
    };
    let new = New::create(place, access, old).map_err(Error::io(path, "create a file for"))?;
    write_into(path, &new.file, false, fill)?;
    new.file.sync_all().map_err(Error::io(path, "sync"))?;
    new.publish(name).map_err(Error::io(path, "replace"))?;
    Ok(())
}

fn write_into<E: From<Error>>(
    path: &Path,
    file: &File,
    reader_may_leave: bool,
    fill: impl FnOnce(&mut BufWriter<Sink<'_>>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let stat = rustix::fs::fstat(file).map_err(|errno| Error::io(path, "look at")(errno.into()))?;
    let sink = Sink {
        file,
        reader_may_leave,
        is_fifo: FileType::from_raw_mode(stat.st_mode) == FileType::Fifo,
    };
    let mut writer = BufWriter::with_capacity(1 << 20, sink);
    fill(&mut writer)?;
    writer.flush().map_err(Error::io(path, "write"))?;
    Ok(())
}

/// What a result is written to.
#[derive(Debug)]
pub struct Sink<'a> {
    file: &'a File,
    reader_may_leave: bool,
    is_fifo: bool,
}

impl Sink<'_> {
    /// A part that a FIFO has room for, once it has. As much as that is always taken at once.
    fn write_part(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_fifo {
            return self.file.write(bytes);
        }
        let part = &bytes[..bytes.len().min(PIPE_BUF)];
        let mut wait = Wait::default();
        loop {
            let tick = Timespec::try_from(TICK).map_err(io::Error::other)?;
            let mut room = [PollFd::new(self.file, PollFlags::OUT)];
            match poll(&mut room, Some(&tick)) {
                Ok(0) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
                Ok(_) => match self.file.write(part) {
                    // Somebody else was faster.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    done => return done,
                },
            }
            wait.check()?;
        }
    }
}

/// Of somebody who was asked to end, since when.
#[derive(Default)]
struct Wait(Option<Instant>);

impl Wait {
    /// Errors: this process is to end, and was given a moment.
    fn check(&mut self) -> io::Result<()> {
        let end = END.lock().unwrap_or_else(PoisonError::into_inner);
        if !end.as_ref().is_some_and(|end| end.load(Ordering::Relaxed)) {
            return Ok(());
        }
        // Not `Interrupted`, after which a write is tried again.
        match self.0.get_or_insert_with(Instant::now).elapsed() < PATIENCE {
            true => Ok(()),
            false => Err(io::Error::other("a signal came while nobody read it")),
        }
    }
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.write_part(bytes) {
            Err(error) if self.reader_may_leave && error.kind() == io::ErrorKind::BrokenPipe => {
                Ok(bytes.len())
            }
            done => done,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// What a path stands for.
enum Target {
    /// What is written to as it is.
    Through(File),
    /// A regular file, or none yet.
    Replace {
        directory: OwnedFd,
        name: OsString,
        old: Option<Stat>,
    },
}

impl Target {
    fn of(path: &Path) -> io::Result<Target> {
        if path.as_os_str() == STANDARD_OUTPUT {
            return Ok(Target::Through(standard_output()?));
        }
        let found = directory::find(path)?;
        let kind = found
            .object
            .map(|stat| FileType::from_raw_mode(stat.st_mode));
        match (kind, found) {
            // A whole disk for a page of text is nobody's wish.
            (Some(FileType::BlockDevice), _) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is a block device, whose content would be lost; name a file",
            )),
            (Some(FileType::Directory), _) => Err(io::ErrorKind::IsADirectory.into()),
            (
                None | Some(FileType::RegularFile),
                Found {
                    directory,
                    name: Some(name),
                    object: old,
                    is_descriptor: false,
                },
            ) => Ok(Target::Replace {
                directory,
                name,
                old,
            }),
            (_, found) => through(&found).map(Target::Through),
        }
    }
}

/// What somebody already writes to is not truncated: their text stays before ours.
fn through(found: &Found) -> io::Result<File> {
    if is_own_output(found) {
        return standard_output();
    }
    let name = found.name.as_deref().unwrap_or(OsStr::new("."));
    let mut flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOCTTY | OFlags::CLOEXEC;
    if !found.is_descriptor {
        flags |= OFlags::NOFOLLOW;
    }
    let is_fifo = |stat: Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo;
    if found.object.is_some_and(is_fifo) {
        flags |= OFlags::NONBLOCK;
    }
    let mut wait = Wait::default();
    loop {
        match rustix::fs::openat(&found.directory, name, flags, Mode::empty()) {
            // It has no reader yet.
            Err(Errno::NXIO) if flags.contains(OFlags::NONBLOCK) => wait.check()?,
            opened => return Ok(opened?.into()),
        }
        std::thread::sleep(TICK);
    }
}

fn is_own_output(found: &Found) -> bool {
    let own = rustix::fs::fstat(io::stdout()).ok();
    let same =
        |(own, found): (Stat, Stat)| (own.st_dev, own.st_ino) == (found.st_dev, found.st_ino);
    found.is_descriptor && own.zip(found.object).is_some_and(same)
}

fn standard_output() -> io::Result<File> {
    let mut out = io::stdout().lock();
    out.flush()?;
    Ok(out.as_fd().try_clone_to_owned()?.into())
}

/// A file that nobody sees yet.
struct New<'a> {
    directory: BorrowedFd<'a>,
    file: File,
    /// Its name for now, where the filesystem has no files without one.
    name: Option<OsString>,
}

impl<'a> New<'a> {
    fn create(
        directory: BorrowedFd<'a>,
        access: Access,
        old: Option<&Stat>,
    ) -> io::Result<New<'a>> {
        let all = Mode::RUSR | Mode::WUSR;
        let all = match access {
            Access::Private => all,
            Access::Umask => all | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH,
        };
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let unnamed = rustix::fs::openat(directory, c".", flags | OFlags::TMPFILE, all);
        let new = match unnamed {
            Ok(fd) => New {
                directory,
                file: fd.into(),
                name: None,
            },
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL | Errno::NOSYS) => {
                let name = directory::unique(TEMPORARY);
                let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
                let fd = rustix::fs::openat(directory, &name, flags, all)?;
                New {
                    directory,
                    file: fd.into(),
                    name: Some(name),
                }
            }
            Err(errno) => return Err(errno.into()),
        };
        match old {
            Some(old) => {
                let mode = Mode::from_raw_mode(old.st_mode & 0o777);
                let mode = match access {
                    Access::Private => mode & all,
                    Access::Umask => mode,
                };
                keep_owner(&new.file, old)?;
                // A filesystem without modes keeps its own.
                let _ = rustix::fs::fchmod(&new.file, mode);
            }
            None => directory::give_to_caller(&new.file)?,
        }
        Ok(new)
    }

    /// Puts it where it belongs.
    fn publish(mut self, name: &OsStr) -> io::Result<()> {
        let temporary = match self.name.take() {
            Some(temporary) => temporary,
            None => {
                let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                let link = |to: &OsStr| {
                    let follow = AtFlags::SYMLINK_FOLLOW;
                    rustix::fs::linkat(CWD, &own, self.directory, to, follow)
                };
                match link(name) {
                    Err(Errno::EXIST) => {}
                    done => return Ok(done?),
                }
                let temporary = directory::unique(TEMPORARY);
                link(&temporary)?;
                temporary
            }
        };
        let renamed = rustix::fs::renameat(self.directory, &temporary, self.directory, name);
        self.name = renamed.is_err().then_some(temporary);
        Ok(renamed?)
    }
}

impl Drop for New<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = rustix::fs::unlinkat(self.directory, name, AtFlags::empty());
        }
    }
}

const TEMPORARY: &str = ".iostep-";

/// Root must not take a user's file away by replacing it.
fn keep_owner(file: &File, old: &Stat) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let (user, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
    match rustix::fs::fchown(file, Some(user), Some(group)) {
        Ok(()) | Err(Errno::PERM | Errno::OPNOTSUPP | Errno::INVAL) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests;
