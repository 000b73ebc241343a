//! The files of a store: whose they are, and that they lead nowhere else.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, IFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::new_file::{create_private, sync};

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

/// A file beside a name that it is to get.
#[derive(Debug)]
pub(super) struct Part {
    pub path: PathBuf,
    pub file: File,
    /// As long as it is held, nobody takes the file for one that was left.
    _lock: File,
}

impl Part {
    /// Makes one for its owner alone, and removes those that others left when they were killed.
    ///
    /// Errors: `Io`.
    pub(super) fn create(to: &Path) -> Result<Part> {
        let failed = |error: io::Error| Error::io(to, "create")(error);
        let directory = to.parent().filter(|it| !it.as_os_str().is_empty());
        // SQLite follows no link for this store; whoever names a directory by one means that directory.
        let directory = directory.unwrap_or(Path::new(".")).canonicalize();
        let directory = directory.map_err(failed)?;
        let name = to.file_name().unwrap_or_default().to_string_lossy();
        let prefix = format!(".{name}.part-");
        // The directory, and not the file: SQLite locks that, and NFS takes both locks for one.
        let lock = File::open(&directory).map_err(failed)?;
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            remove_left(&directory, &prefix).map_err(failed)?;
        }
        // Without it, as on a filesystem that has none, nobody else removes anything either.
        let _ = rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared);
        let path = directory.join(format!("{prefix}{}", std::process::id()));
        let file = create_private(&path).map_err(failed)?;
        Ok(Part {
            path,
            file,
            _lock: lock,
        })
    }
}

/// Removes parts of a name that nobody has any more, and SQLite's journals of them.
fn remove_left(directory: &Path, prefix: &str) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let found = entry?;
        let name = found.file_name();
        let number = name.to_str().and_then(|it| it.strip_prefix(prefix));
        let number = number.map(|it| it.strip_suffix("-journal").unwrap_or(it));
        let is_part = number.is_some_and(|it| it.parse::<u32>().is_ok());
        if is_part && found.file_type()?.is_file() {
            std::fs::remove_file(found.path())?;
        }
    }
    Ok(())
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
