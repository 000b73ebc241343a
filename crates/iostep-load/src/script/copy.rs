//! A copy of a database that starts where the original stands.

use std::ffi::{OsString, c_int};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::fs::{IFlags, OFlags};

use crate::error::{Error, Result};
use crate::script::database::{check_is_file, connect, database_error, mode_of};

/// How long SQLite waits for somebody else's transaction before we look whether to go on.
const BUSY_TIMEOUT: Duration = Duration::from_millis(50);
const CHUNK_BYTES: usize = 1 << 20;
/// Copies a database, and its WAL if it has one, into a directory.
///
/// The copy is of the files, byte by byte, so pages lie in it as in the original; `VACUUM INTO`
/// and the backup API would tidy or re-log them. It never shares blocks with the original (no
/// `FICLONE`, no `copy_file_range`): on a filesystem that copies on write the first change of a
/// shared block costs what the original's would not. On btrfs it takes over the original's `chattr
/// +C`. A read transaction keeps other processes from changing the files meanwhile, and nothing
/// that is left of the original changes.
///
/// Waits `timeout` for somebody else's exclusive lock, unless `interrupted`. Follows no symbolic link
/// at the end of a path: whoever can write to the directory of a database could have any file copied.
///
/// Errors: `Usage` for what is no file or no database; `Database` for what is damaged or locked, or if
/// a crash left a rollback journal to play back; `Io`, such as a full disk; `Interrupted`.
pub fn copy(
    original: &Path,
    directory: &Path,
    timeout: Duration,
    interrupted: &AtomicBool,
) -> Result<PathBuf> {
    check_is_file(original, false)?;
    // Closing any descriptor of a file drops all of a process's POSIX locks on it, SQLite's too,
    // so this one is opened first and closed last.
    let source = open(original).map_err(Error::io(original, "open"))?;
    let lock = lock(original, &source)?;
    begin(original, &lock, timeout, interrupted)?;
    check_same(original, &source, &lock)?;
    let target = copy_files(original, &source, directory)?;
    drop(lock);
    drop(source);
    Ok(target)
}

/// The same of a database that nobody else uses, without SQLite: what it lies on may have neither
/// locks nor memory that is shared.
///
/// Errors: `Io`.
pub fn copy_unshared(original: &Path, directory: &Path) -> Result<PathBuf> {
    let source = open(original).map_err(Error::io(original, "open"))?;
    copy_files(original, &source, directory)
}

/// Where SQLite has a database's log.
pub fn log_of(database: &Path) -> PathBuf {
    with_suffix(database, "-wal")
}

fn copy_files(original: &Path, source: &File, directory: &Path) -> Result<PathBuf> {
    let target = directory.join(original.file_name().unwrap_or_default());
    copy_file(original, source, &target)?;
    let wal = log_of(original);
    match open(&wal) {
        Ok(source) => copy_file(&wal, &source, &log_of(&target))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(Error::io(&wal, "open")(error)),
    }
    Ok(target)
}

/// A connection to read with.
fn lock(path: &Path, file: &File) -> Result<Connection> {
    let failed = |error| database_error(path, &error);
    let mode = mode_of(path, file)?;
    // Without write access SQLite cannot play back the journal of a crash, which would change the
    // original; a WAL's shared memory on the other hand needs it.
    let access = if mode.is_log() {
        OpenFlags::SQLITE_OPEN_READ_WRITE
    } else {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    };
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = connect(path, flags, None).map_err(failed)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    let frames = std::fs::metadata(with_suffix(path, "-wal")).map_or(0, |wal| wal.len());
    if frames > 0 {
        // What the original has in its WAL stays there. Without frames the close tidies away the
        // files that this connection has made.
        connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .map_err(failed)?;
    }
    Ok(connection)
}

/// Begins a read transaction.
fn begin(
    path: &Path,
    connection: &Connection,
    timeout: Duration,
    interrupted: &AtomicBool,
) -> Result<()> {
    let start = Instant::now();
    let failed = |error| unreadable(path, &error);
    connection.execute_batch("BEGIN").map_err(failed)?;
    loop {
        match connection.execute_batch("SELECT count(*) FROM sqlite_schema") {
            Err(error) if is_busy(&error) && interrupted.load(Ordering::Relaxed) => {
                return Err(Error::Interrupted);
            }
            Err(error) if is_busy(&error) && start.elapsed() < timeout => {}
            done => return done.map_err(failed),
        }
    }
}

/// Opens a regular file to read.
fn open(path: &Path) -> std::io::Result<File> {
    // Whoever opens a FIFO to read waits for a writer.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(std::io::Error::other("not a regular file")),
    }
}

/// What is copied has to be what SQLite has locked: somebody may have put another file at the name
/// between the two.
fn check_same(path: &Path, source: &File, lock: &Connection) -> Result<()> {
    let mut has_moved: c_int = 0;
    let operation = rusqlite::ffi::SQLITE_FCNTL_HAS_MOVED;
    // SAFETY: the connection is open, and this operation writes an int.
    let asked = unsafe {
        let result = (&raw mut has_moved).cast();
        rusqlite::ffi::sqlite3_file_control(lock.handle(), c"main".as_ptr(), operation, result)
    };
    // A VFS that does not know is asked in vain.
    let has_moved = asked == rusqlite::ffi::SQLITE_OK && has_moved != 0;
    let failed = || Error::io(path, "look at");
    let own = source.metadata().map_err(failed())?;
    let now = std::fs::symlink_metadata(path).map_err(failed())?;
    match !has_moved && (own.dev(), own.ino()) == (now.dev(), now.ino()) {
        true => Ok(()),
        false => Err(exchanged(path)),
    }
}

/// The error for a database that was one file first and then another.
pub fn exchanged(path: &Path) -> Error {
    Error::Database {
        path: path.to_owned(),
        what: "somebody put another file in its place".into(),
        hint: "try again once it stays".into(),
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

fn unreadable(path: &Path, error: &rusqlite::Error) -> Error {
    let readonly_rollback = rusqlite::ffi::SQLITE_READONLY_ROLLBACK;
    if error
        .sqlite_error()
        .is_some_and(|e| e.extended_code == readonly_rollback)
    {
        return Error::Database {
            path: path.to_owned(),
            what: "a crash left a journal that must be played back".into(),
            hint: "open it once with its own program or sqlite3, then try again".into(),
        };
    }
    database_error(path, error)
}

fn copy_file(from: &Path, source: &File, to: &Path) -> Result<()> {
    let mut target = OpenOptions::new()
        .write(true)
        .create_new(true)
        // For the owner alone, whoever may read the original.
        .mode(0o600)
        .open(to)
        .map_err(Error::io(to, "create"))?;
    keep_nocow(source, &target);
    let mut source = source;
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let read = source.read(&mut chunk).map_err(Error::io(from, "read"))?;
        if read == 0 {
            break;
        }
        target
            .write_all(&chunk[..read])
            .map_err(Error::io(to, "write"))?;
    }
    target.sync_all().map_err(Error::io(to, "sync"))
}

/// Only btrfs has the flag, and only an empty file takes it.
fn keep_nocow(source: &File, target: &File) {
    let flag = |file: &File| rustix::fs::ioctl_getflags(file).unwrap_or(IFlags::empty());
    if flag(source).contains(IFlags::NOCOW) {
        let _ = rustix::fs::ioctl_setflags(target, flag(target) | IFlags::NOCOW);
    }
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::own_mode;
    use iostep_model::pragma::Journal;
    use std::collections::BTreeMap;

    struct Original {
        directory: tempfile::TempDir,
        path: PathBuf,
    }

    impl Original {
        fn new(mode: &str) -> Original {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let path = directory.path().join("app.db");
            let original = Original { directory, path };
            original
                .connect()
                .execute_batch(&format!(
                    "PRAGMA journal_mode = {mode}; CREATE TABLE t (v); INSERT INTO t VALUES (1)"
                ))
                .expect("a table");
            original
        }

        fn connect(&self) -> Connection {
            Connection::open(&self.path).expect("it opens")
        }

        /// Every file beside the database, with its content, but the shared memory, which holds
        /// locks and marks.
        fn files(&self) -> BTreeMap<OsString, Vec<u8>> {
            std::fs::read_dir(self.directory.path())
                .expect("list")
                .map(|entry| entry.expect("an entry"))
                .filter(|entry| entry.file_name() != "app.db-shm")
                .map(|entry| {
                    (
                        entry.file_name(),
                        std::fs::read(entry.path()).expect("read"),
                    )
                })
                .collect()
        }
    }

    fn copied(original: &Path, directory: &Path) -> Result<PathBuf> {
        let never = AtomicBool::new(false);
        copy(original, directory, Duration::ZERO, &never)
    }

    fn rows(path: &Path) -> i64 {
        Connection::open(path)
            .and_then(|c| c.query_row("SELECT count(*) FROM t", [], |row| row.get(0)))
            .expect("the copy is a database")
    }

    #[test]
    fn a_copy_is_equal_and_the_original_untouched() {
        for mode in ["delete", "persist", "wal"] {
            let original = Original::new(mode);
            let before = original.files();
            let target = tempfile::tempdir().expect("a temporary directory");
            let path = copied(&original.path, target.path()).expect("it can be copied");
            assert_eq!(
                std::fs::read(&path).expect("read"),
                before[&OsString::from("app.db")]
            );
            assert_eq!(rows(&path), 1, "{mode}");
            assert_eq!(original.files(), before, "{mode}");
            assert!(!with_suffix(&original.path, "-shm").exists(), "{mode}");
        }
    }

    #[test]
    fn what_is_only_in_the_wal_is_copied_and_stays_there() {
        let original = Original::new("wal");
        let writer = original.connect();
        writer
            .execute_batch("INSERT INTO t VALUES (2)")
            .expect("insert");
        let before = original.files();
        let target = tempfile::tempdir().expect("a temporary directory");
        let path = copied(&original.path, target.path()).expect("it can be copied");
        assert_eq!(rows(&path), 2);
        assert_eq!(original.files(), before);
        drop(writer);
        assert_eq!(own_mode(&original.path).expect("a file"), Journal::Wal);
    }

    #[test]
    fn the_wal_of_a_crash_is_copied_and_not_checkpointed() {
        let original = Original::new("wal");
        let writer = original.connect();
        writer
            .execute_batch("INSERT INTO t VALUES (2)")
            .expect("insert");
        let crashed = tempfile::tempdir().expect("a temporary directory");
        let crashed = Original {
            path: copied(&original.path, crashed.path()).expect("it can be copied"),
            directory: crashed,
        };
        let before = crashed.files();
        let target = tempfile::tempdir().expect("a temporary directory");
        let path = copied(&crashed.path, target.path()).expect("it can be copied");
        assert_eq!(crashed.files(), before);
        assert_eq!(rows(&path), 2);
    }

    #[test]
    fn a_link_and_what_came_to_a_name_later_are_not_copied() {
        let (original, other) = (Original::new("delete"), Original::new("delete"));
        let target = tempfile::tempdir().expect("a temporary directory");
        let link = target.path().join("link.db");
        std::os::unix::fs::symlink(&original.path, &link).expect("a link");
        copied(&link, target.path()).expect_err("a link");
        let source = open(&original.path).expect("a file");
        let lock = lock(&original.path, &source).expect("a database");
        let never = AtomicBool::new(false);
        begin(&original.path, &lock, Duration::ZERO, &never).expect("a transaction");
        assert_eq!(check_same(&original.path, &source, &lock), Ok(()));
        // What is locked is at the name, and something else is copied.
        let wrong = open(&other.path).expect("a file");
        check_same(&original.path, &wrong, &lock).expect_err("it is not what is locked");
        // What is copied is at the name, and something else is locked.
        std::fs::rename(&other.path, &original.path).expect("exchanged");
        check_same(&original.path, &wrong, &lock).expect_err("the other is locked");
        check_same(&original.path, &source, &lock).expect_err("it is not there any more");
    }

    #[test]
    fn a_journal_to_play_back_is_refused_and_stays() {
        let original = Original::new("delete");
        let writer = original.connect();
        writer
            .execute_batch(
                "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN; \
                            INSERT INTO t SELECT zeroblob(3000) FROM (VALUES (1), (2), (3), (4)); \
                            UPDATE t SET v = zeroblob(2999)",
            )
            .expect("a transaction that spills");
        let crashed = tempfile::tempdir().expect("a temporary directory");
        for name in ["app.db", "app.db-journal"] {
            let from = original.directory.path().join(name);
            std::fs::copy(from, crashed.path().join(name)).expect("a copy of the moment");
        }
        let crashed = Original {
            path: crashed.path().join("app.db"),
            directory: crashed,
        };
        let before = crashed.files();
        let target = tempfile::tempdir().expect("a temporary directory");
        let error = copied(&crashed.path, target.path())
            .expect_err("it is hot")
            .to_string();
        assert!(error.contains("must be played back"), "{error}");
        assert_eq!(crashed.files(), before);
    }

    #[test]
    fn a_database_in_exclusive_use_is_refused() {
        let original = Original::new("delete");
        let other = original.connect();
        other.execute_batch("BEGIN EXCLUSIVE").expect("the lock");
        let target = tempfile::tempdir().expect("a temporary directory");
        let error = copied(&original.path, target.path()).expect_err("it is locked");
        assert!(error.to_string().contains("database is locked"), "{error}");
    }

    #[test]
    fn a_lock_that_goes_in_time_is_waited_for_and_a_signal_ends_the_wait() {
        let original = Original::new("delete");
        let other = original.connect();
        other.execute_batch("BEGIN EXCLUSIVE").expect("the lock");
        let target = tempfile::tempdir().expect("a temporary directory");
        let long = Duration::from_secs(3600);
        let signalled = AtomicBool::new(true);
        let ended = copy(&original.path, target.path(), long, &signalled);
        assert_eq!(ended, Err(Error::Interrupted));
        let never = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| copy(&original.path, target.path(), long, &never));
            // It has met the lock; were it not to wait, it would have ended.
            std::thread::sleep(5 * BUSY_TIMEOUT);
            assert!(!waiting.is_finished());
            other.execute_batch("COMMIT").expect("the lock is gone");
            let path = waiting.join().expect("no panic").expect("it waited");
            assert_eq!(rows(&path), 1);
        });
    }
}
