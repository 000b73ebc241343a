//! The databases of a job: where they are, how they are made, and how they go.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use iostep_model::bench::SqliteJob;
use iostep_model::mountinfo;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};

use super::connection::Connection;
use super::row::{Version, definition};
use super::{settings, waldio};
use crate::engine::Observer;
use crate::error::{Error, Result};
use crate::library::Library;

const DIRECTORY: &str = "iostep-bench";
/// What SQLite puts beside a database.
const COMPANIONS: [&str; 4] = ["", "-journal", "-wal", "-shm"];
/// Rows and bytes of one transaction while rows are made.
const BATCH_ROWS: u64 = 10_000;
const BATCH_BYTES: u64 = 16 << 20;

/// The databases' directory, and which of them there are: one set for each thread, or one for all.
#[derive(Debug)]
pub(super) struct Databases {
    /// Locked: nobody else works here.
    directory: OwnedFd,
    paths: Vec<PathBuf>,
    /// How many make a set.
    in_set: usize,
    /// Remove them in the end.
    pub remove: bool,
}

/// Who wants databases to be made, and may want it no longer.
pub(super) struct Making<'a> {
    pub library: Library,
    /// The VFS that makes them.
    pub vfs: Option<&'a CStr>,
    pub job: &'a SqliteJob,
    pub interrupted: &'a AtomicBool,
    pub observer: &'a mut dyn Observer,
}

impl Databases {
    /// Takes the directory below the job's, which nobody else may read, and which is not a
    /// symbolic link. Makes no database yet.
    ///
    /// Errors: `Io`; `Usage` for a name that is not UTF-8; `Refused` if somebody else's or in use.
    pub fn open(job: &SqliteJob) -> Result<Databases> {
        let parent = &job.directory;
        // SQLite refuses a path with symbolic links; those that lead here are the caller's.
        if !parent.is_dir() {
            return Err(Error::Usage {
                what: format!("{}: there is no such directory", parent.display()),
                hint: "make it or name another".into(),
            });
        }
        let resolved = mountinfo::canonical(parent).map_err(Error::io(parent, "resolve"))?;
        let path = resolved.join(DIRECTORY);
        if path.to_str().is_none() {
            return Err(Error::Usage {
                what: format!("{}: the name is not UTF-8", path.display()),
                hint: "choose another directory".into(),
            });
        }
        let directory = open_directory(&resolved, &path)?;
        let sets = if job.shared { 1 } else { job.threads };
        let name = |set, number| path.join(format!("sqlite-{set}-{number}.db"));
        Ok(Databases {
            directory,
            paths: (0..sets)
                .flat_map(|set| (0..job.databases).map(move |number| (set, number)))
                .map(|(set, number)| name(set, number))
                .collect(),
            in_set: job.databases as usize,
            remove: false,
        })
    }

    /// The directory, for questions about its filesystem.
    pub fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    pub fn path(&self) -> &Path {
        self.paths[0].parent().unwrap_or(Path::new("/"))
    }

    /// How many sets.
    pub fn sets(&self) -> usize {
        self.paths.len() / self.in_set
    }

    /// The databases of a set; the first is main.
    pub fn set(&self, set: usize) -> Vec<&Path> {
        let all = self.paths.iter().map(PathBuf::as_path);
        all.skip(set * self.in_set).take(self.in_set).collect()
    }

    /// Number of database `number` of a set over all sets.
    pub fn number(&self, set: usize, number: usize) -> u64 {
        (set * self.in_set + number) as u64
    }

    /// Opens a set as the job wants it, others than the first attached.
    ///
    /// Errors: `Database`.
    pub fn connect(
        &self,
        job: &SqliteJob,
        (library, vfs): (Library, Option<&CStr>),
        set: usize,
    ) -> Result<Connection> {
        let paths = self.set(set);
        let mut db = Connection::open(library, paths[0], vfs, false)?;
        for (number, path) in paths.iter().enumerate().skip(1) {
            let quoted = path.to_string_lossy().replace('\'', "''");
            let sql = format!("ATTACH '{quoted}' AS {}", settings::schema(number));
            db.execute_batch(&sql).map_err(|error| error.at(path))?;
        }
        settings::apply(job, &mut db, &paths)?;
        Ok(db)
    }

    /// True if every database is there with the rows that the job wants in it.
    pub fn are_right(&self, library: Library, job: &SqliteJob) -> bool {
        self.paths.iter().all(|path| {
            self.leads_nowhere_else(path) && is_right(library, job, path).is_ok_and(|right| right)
        })
    }

    /// True if a database is there, and neither it nor what is beside it is a link: SQLite would
    /// follow one from its journal.
    fn leads_nowhere_else(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        COMPANIONS.iter().all(|companion| {
            let name = format!("{name}{companion}");
            match rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => {
                    FileType::from_raw_mode(found.st_mode).is_file() && found.st_nlink == 1
                }
                Err(_) => !companion.is_empty(),
            }
        })
    }

    /// Makes every database, none of which is there, with its rows, and syncs it.
    ///
    /// Errors: `Database`, `Io`, `Interrupted`.
    pub fn make(&self, making: &mut Making<'_>) -> Result<()> {
        let tables = u64::from(making.job.tables);
        let each = making.job.rows.saturating_mul(tables);
        let total = each.saturating_mul(self.paths.len() as u64);
        for (number, path) in (0..).zip(&self.paths) {
            fill(making, (number, path), (number * each, total))?;
        }
        self.sync()
    }

    /// Writes every database back. No connection may be open: closing a descriptor of a file
    /// drops the process's locks on it.
    ///
    /// Errors: `Io`.
    pub fn sync(&self) -> Result<()> {
        for path in &self.paths {
            let name = path.file_name().unwrap_or_default();
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            rustix::fs::openat(&self.directory, name, flags, Mode::empty())
                .and_then(rustix::fs::fsync)
                .map_err(|errno| Error::io(path, "sync")(errno.into()))?;
        }
        rustix::fs::fsync(&self.directory)
            .map_err(|errno| Error::io(DIRECTORY, "sync")(errno.into()))
    }

    /// Removes every database and what SQLite put beside it.
    pub fn clear(&self) {
        for path in &self.paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            for companion in COMPANIONS {
                let name = format!("{name}{companion}");
                // What is not there need not go; what cannot go is found when it is made.
                let _ = rustix::fs::unlinkat(&self.directory, name, AtFlags::empty());
            }
        }
    }
}

impl Drop for Databases {
    fn drop(&mut self) {
        if self.remove {
            self.clear();
            if let Some(directory) = self.paths[0].parent() {
                // Others may have files there.
                let _ = rustix::fs::rmdir(directory);
            }
        }
        // Closing is not enough while a process that was just forked has the descriptor, too.
        let _ = rustix::fs::flock(&self.directory, FlockOperation::Unlock);
    }
}

fn open_directory(parent: &Path, path: &Path) -> Result<OwnedFd> {
    let io = |what| move |errno: rustix::io::Errno| Error::io(path, what)(errno.into());
    let refused = |what: &str, hint: &str| Error::Refused {
        what: format!("{}: {what}", path.display()),
        hint: hint.into(),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent =
        rustix::fs::open(parent, flags, Mode::empty()).map_err(io("open the parent of"))?;
    match rustix::fs::mkdirat(&parent, DIRECTORY, Mode::RWXU) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(errno) => return Err(io("make")(errno)),
    }
    let flags = flags | OFlags::NOFOLLOW;
    let directory = match rustix::fs::openat(&parent, DIRECTORY, flags, Mode::empty()) {
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
            return Err(refused("not a directory of its own", "remove it"));
        }
        other => other.map_err(io("open"))?,
    };
    let stat = rustix::fs::fstat(&directory).map_err(io("look at"))?;
    if stat.st_uid != rustix::process::geteuid().as_raw() || stat.st_mode & 0o022 != 0 {
        return Err(refused(
            "somebody else can write into it",
            "remove it, or choose another directory",
        ));
    }
    match rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => Err(refused(
            "another run uses it",
            "wait for its end, or choose another directory",
        )),
        other => other.map(|()| directory).map_err(io("lock")),
    }
}

fn is_right(library: Library, job: &SqliteJob, path: &Path) -> Result<bool> {
    let mut db = Connection::open(library, path, None, false)?;
    let failed = |error: super::connection::SqlError| error.at(path);
    if let Some(page_bytes) = job.page_bytes {
        let found = db.first_text("PRAGMA page_size").map_err(failed)?;
        if found != Some(page_bytes.to_string()) {
            return Ok(false);
        }
    }
    let found = db.texts("SELECT sql FROM sqlite_master").map_err(failed)?;
    if found != (0..job.tables).map(definition).collect::<Vec<_>>() {
        return Ok(false);
    }
    let (rows, record) = (job.rows, job.record_bytes);
    for table in 0..job.tables {
        let sql = format!(
            "SELECT count(*) = {rows} AND ifnull(min(key), 1) = 1 AND ifnull(max(key), 0) = {rows}
             AND ifnull(min(length(value)), {record}) = {record}
             AND ifnull(max(length(value)), {record}) = {record} FROM t{table}"
        );
        if db.first_text(&sql).map_err(failed)?.as_deref() != Some("1") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes one database with its tables and rows.
fn fill(
    making: &mut Making<'_>,
    (number, path): (u64, &Path),
    (mut done, total): (u64, u64),
) -> Result<()> {
    let job = making.job;
    let failed = |error: super::connection::SqlError| error.at(path);
    let mut db = Connection::open(making.library, path, making.vfs, true)?;
    waldio::reserve(job, &mut db)?;
    if let Some(page_bytes) = job.page_bytes {
        settings::set_page_size(&mut db, page_bytes)?;
    }
    db.execute_batch("PRAGMA journal_mode = off; PRAGMA synchronous = off; BEGIN")
        .map_err(failed)?;
    let mut value = vec![0; job.record_bytes as usize];
    let batch = (BATCH_BYTES / u64::from(job.record_bytes)).clamp(1, BATCH_ROWS);
    for table in 0..job.tables {
        db.execute_batch(&definition(table)).map_err(failed)?;
        let sql = format!("INSERT INTO t{table} (key, value) VALUES (?1, ?2)");
        let insert = db.prepare(&sql).map_err(failed)?;
        for row in 0..job.rows {
            let version = Version {
                database: number,
                table,
                key: row as i64 + 1,
                transaction: 0,
            };
            version.fill(job.measurement.seed, &mut value);
            db.change(insert, version.key, Some(&value))
                .map_err(failed)?;
            done += 1;
            if done % batch == 0 {
                db.execute_batch("COMMIT; BEGIN").map_err(failed)?;
                making.observer.preparing(done, total);
                if making.interrupted.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
            }
        }
    }
    db.execute_batch("COMMIT").map_err(failed)?;
    making.observer.preparing(done, total);
    Ok(())
}
