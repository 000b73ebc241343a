//! What is being made, and how it gets into its place.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use iostep_model::error::{Error, Result};
use iostep_model::hex;
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;

use super::{COMMIT, Lake, TEMPORARY, UNBORN, random};
use crate::date::Date;
use crate::place::{self, sync_directory};
use crate::table::Table;

/// Between table and name, and between date and name.
const SEPARATOR: char = '~';

/// A directory that nobody else sees, removed in the end. While its lock is held, nobody sweeps it.
pub(crate) struct Stage {
    directory: PathBuf,
    _lock: File,
}

impl Stage {
    /// Where a table's file is made that will be called `NAME.parquet`.
    pub(crate) fn file(&self, table: Table, name: &str) -> PathBuf {
        self.directory
            .join(format!("{}{SEPARATOR}{name}.parquet", table.name()))
    }

    /// A place in it.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // What was put into its place has this name no more.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Lake {
    /// Errors: `Io`.
    pub(crate) fn stage(&self) -> Result<Stage> {
        let temporary = self.control(TEMPORARY);
        // Nobody sweeps between the next two steps.
        let all = lock(&temporary, FlockOperation::LockShared)?;
        let directory = temporary.join(hex::encode(&random::<8>(&temporary)?));
        fs::create_dir(&directory).map_err(Error::io(&directory, "make"))?;
        let own = lock(&directory, FlockOperation::LockExclusive)?;
        drop(all);
        Ok(Stage {
            directory,
            _lock: own,
        })
    }

    /// Puts the files of a stage, which are synced, into their places, all or none; false if what is
    /// named `id` in `table` is in the lake already.
    ///
    /// Errors: `Io`; what was begun is then finished by whoever opens the lake next.
    pub(crate) fn commit(&self, stage: &Stage, table: Table, date: Date, id: &str) -> Result<bool> {
        let lock = self.lock(date)?;
        self.finish_commits_of(date)?;
        if self.has(table, date, id)? {
            return Ok(false);
        }
        sync_directory(&stage.directory)?;
        let commit = self.control(COMMIT);
        let name = hex::encode(&random::<8>(&commit)?);
        let whole = commit.join(format!("{date}{SEPARATOR}{name}"));
        fs::rename(&stage.directory, &whole).map_err(Error::io(&whole, "rename to"))?;
        sync_directory(&commit)?;
        self.finish_commit(&whole, date)?;
        drop(lock);
        Ok(true)
    }

    /// Finishes what others have begun, of all dates.
    pub(super) fn finish_commits(&self) -> Result<()> {
        let mut dates: Vec<Date> = self.commits()?.into_iter().map(|(date, _)| date).collect();
        dates.sort_unstable();
        dates.dedup();
        for date in dates {
            let lock = self.lock(date)?;
            self.finish_commits_of(date)?;
            drop(lock);
        }
        Ok(())
    }

    /// Finishes what others have begun; the date's lock is held.
    pub(crate) fn finish_commits_of(&self, date: Date) -> Result<()> {
        let commits = self.commits()?;
        let own = commits.into_iter().filter(|(of, _)| *of == date);
        own.into_iter()
            .try_for_each(|(date, path)| self.finish_commit(&path, date))
    }

    fn commits(&self) -> Result<Vec<(Date, PathBuf)>> {
        let commit = self.control(COMMIT);
        let mut commits = Vec::new();
        for entry in fs::read_dir(&commit).map_err(Error::io(&commit, "list"))? {
            let entry = entry.map_err(Error::io(&commit, "list"))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let date = name
                .split(SEPARATOR)
                .next()
                .and_then(|date| date.parse().ok());
            let date = date.ok_or_else(|| {
                Error::corrupt(entry.path(), "lake", "a name that iostep gives to nothing")
            })?;
            commits.push((date, entry.path()));
        }
        Ok(commits)
    }

    /// Renames each file to its place, `traces` last.
    fn finish_commit(&self, whole: &Path, date: Date) -> Result<()> {
        let files = place::files(whole)?;
        for table in Table::ALL {
            let mut files = files.iter().filter_map(|found| {
                let (of, name) = found.name.split_once(SEPARATOR)?;
                (of == table.name()).then_some((&found.name, name))
            });
            let Some((staged, name)) = files.next() else {
                continue;
            };
            let directory = self.directory(table, date);
            place::make_directory(&self.root.join(table.name()))?;
            place::make_directory(&directory)?;
            let place = directory.join(name);
            fs::rename(whole.join(staged), &place).map_err(Error::io(&place, "rename to"))?;
            sync_directory(&directory)?;
        }
        fs::remove_dir(whole).map_err(Error::io(whole, "remove"))
    }

    /// Removes what writers that were killed were making.
    pub(super) fn sweep(&self) -> Result<()> {
        let temporary = self.control(TEMPORARY);
        let all = match lock(&temporary, FlockOperation::NonBlockingLockExclusive) {
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::WouldBlock => {
                return Ok(());
            }
            all => all?,
        };
        for entry in fs::read_dir(&temporary).map_err(Error::io(&temporary, "list"))? {
            let path = entry.map_err(Error::io(&temporary, "list"))?.path();
            // Its owner may be removing it.
            if place::expect_directory(&path).is_err() {
                continue;
            }
            // Whoever holds it lives.
            if let Ok(_dead) = lock(&path, FlockOperation::NonBlockingLockExclusive) {
                let _ = fs::remove_dir_all(&path);
            }
        }
        drop(all);
        for entry in fs::read_dir(&self.root).map_err(Error::io(&self.root, "list"))? {
            let entry = entry.map_err(Error::io(&self.root, "list"))?;
            // There is a lake, so nobody needs the one that was to become it.
            if entry.file_name().to_string_lossy().starts_with(UNBORN) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        Ok(())
    }

    /// Puts a directory in the place of a date's, and the date's in its: a reader that lists finds the
    /// one or the other. The date's lock is held.
    ///
    /// Errors: `Io`, also where the filesystem cannot exchange.
    pub(crate) fn exchange(&self, new: &Path, table: Table, date: Date) -> Result<()> {
        sync_directory(new)?;
        let place = self.directory(table, date);
        renameat_with(CWD, new, CWD, &place, RenameFlags::EXCHANGE)
            .map_err(|errno| Error::io(&place, "exchange")(errno.into()))?;
        sync_directory(&self.root.join(table.name()))
    }
}

/// A directory with a lock.
fn lock(path: &Path, how: FlockOperation) -> Result<File> {
    let directory = File::open(path).map_err(Error::io(path, "open"))?;
    loop {
        match flock(&directory, how) {
            Ok(()) => return Ok(directory),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::io(path, "lock")(errno.into())),
        }
    }
}
