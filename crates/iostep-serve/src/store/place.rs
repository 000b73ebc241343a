//! The files of a store: whose they are, and that they lead nowhere else.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, IFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};

const DATABASE: &str = "store.db";
const LOCK: &str = "lock";
/// What SQLite puts beside a database.
const COMPANIONS: [&str; 4] = ["", "-journal", "-wal", "-shm"];

/// The database of a directory, which is made if it is not there, and an empty file in it.
pub(super) fn create(directory: &Path) -> Result<PathBuf> {
    match rustix::fs::mkdir(directory, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(Error::io(directory, "make")(errno)),
    }
    let directory = own(directory)?;
    let database = directory.join(DATABASE);
    match create_private(&database) {
        Ok(_) => sync(&directory)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(Error::io(&database, "create")(error)),
    }
    check_files(&database)?;
    Ok(database)
}

/// The database of a directory that has one.
pub(super) fn find(directory: &Path) -> Result<PathBuf> {
    let database = own(directory)?.join(DATABASE);
    check_files(&database)?;
    Ok(database)
}

/// Makes a file that was not there, for its owner alone.
pub(super) fn create_private(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
    Ok(file.into())
}

/// Makes a file beside `to` for what has no name yet, and removes those that others left when they were
/// killed.
pub(super) fn create_part(to: &Path) -> Result<(PathBuf, File)> {
    let failed = |error: io::Error| Error::io(to, "create")(error);
    let directory = to.parent().filter(|it| !it.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!(".{name}.part-");
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let found = entry.map_err(failed)?;
        let number = found.file_name();
        let number = number.to_str().and_then(|it| it.strip_prefix(&prefix));
        if number.is_some_and(|it| it.parse::<u32>().is_ok()) {
            remove_left(&found.path());
        }
    }
    let part = directory.join(format!("{prefix}{}", std::process::id()));
    let file = create_private(&part).map_err(failed)?;
    // Whoever looks for what is left sees that somebody has it. A filesystem without locks has no need.
    let _ = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
    Ok((part, file))
}

/// Removes a part that nobody has any more.
fn remove_left(part: &Path) {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(part, flags, Mode::empty()) else {
        return;
    };
    let is_file = rustix::fs::fstat(&file)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    let lock = FlockOperation::NonBlockingLockExclusive;
    if is_file && rustix::fs::flock(&file, lock).is_ok() {
        let _ = std::fs::remove_file(part);
    }
}

/// Sees to it that the index of SQLite's log is written in place on btrfs. It is memory that is mapped,
/// and one that is copied when it is written ends the process (SIGBUS) where there is no room for the
/// copy.
pub(super) fn keep_index_in_place(database: &Path) {
    const BTRFS: u64 = 0x9123_683E;
    let is_btrfs = rustix::fs::statfs(database).is_ok_and(|it| it.f_type as u64 == BTRFS);
    if !is_btrfs {
        return;
    }
    let index = PathBuf::from(format!("{}-shm", database.to_string_lossy()));
    // Only of a file that is empty that can be asked; SQLite takes one that is there.
    if let Ok(file) = create_private(&index) {
        let _ = rustix::fs::ioctl_setflags(&file, IFlags::NOCOW);
    }
}

/// Gives a file of the same directory a name that nothing has, durably.
pub(super) fn give_name(file: &Path, name: &Path) -> Result<()> {
    let failed = |error: io::Error| Error::io(name, "create")(error);
    match rustix::fs::renameat_with(CWD, file, CWD, name, RenameFlags::NOREPLACE) {
        // A filesystem that cannot do so, as NFS.
        Err(Errno::INVAL) => {
            std::fs::hard_link(file, name).map_err(failed)?;
            std::fs::remove_file(file).map_err(failed)?;
        }
        renamed => renamed.map_err(|errno| failed(errno.into()))?,
    }
    let directory = name.parent().filter(|it| !it.as_os_str().is_empty());
    sync(directory.unwrap_or(Path::new(".")))
}

pub(super) fn lock(database: &Path) -> Result<File> {
    let path = database.with_file_name(LOCK);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)
        .map_err(Error::io(&path, "open"))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file.into()),
        Err(Errno::WOULDBLOCK) => Err(Error::Refused {
            path,
            what: "another server uses this store".into(),
            hint: "stop it, or name another directory",
        }),
        Err(errno) => Err(Error::io(path, "lock")(errno)),
    }
}

/// A directory without symbolic links in its path, which SQLite refuses, if nobody else may look
/// into it.
fn own(directory: &Path) -> Result<PathBuf> {
    let found = directory
        .canonicalize()
        .map_err(Error::io(directory, "find"))?;
    let stat = rustix::fs::stat(&found).map_err(Error::io(&found, "look at"))?;
    let refused = |what: &str, hint| Error::Refused {
        path: found.clone(),
        what: what.into(),
        hint,
    };
    if !FileType::from_raw_mode(stat.st_mode).is_dir() {
        return Err(refused("it is no directory", "name another"));
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(refused(
            "it belongs to somebody else",
            "run this as its owner, or name another directory",
        ));
    }
    if stat.st_mode & 0o077 != 0 {
        return Err(refused(
            "others may look into it",
            "take their rights with chmod 700, or name another directory",
        ));
    }
    Ok(found)
}

fn check_files(database: &Path) -> Result<()> {
    let name = database.to_string_lossy();
    for companion in COMPANIONS {
        let path = PathBuf::from(format!("{name}{companion}"));
        match rustix::fs::statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode).is_file() && stat.st_nlink == 1 => {}
            Err(Errno::NOENT) if !companion.is_empty() => {}
            Err(errno) => return Err(Error::io(path, "find")(errno)),
            Ok(_) => {
                return Err(Error::Refused {
                    path,
                    what: "it is a link, or no regular file".into(),
                    hint: "remove it, or name another directory",
                });
            }
        }
    }
    Ok(())
}

fn sync(directory: &Path) -> Result<()> {
    let failed = |what| move |error: io::Error| Error::io(directory, what)(error);
    let opened = File::open(directory).map_err(failed("open"))?;
    opened.sync_all().map_err(failed("sync"))
}
