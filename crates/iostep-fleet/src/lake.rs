//! The lake's directory: what is where, who may change it, and how a change becomes visible.
//!
//! ```text
//! LAKE/_iostep/lake.json    the format's version
//!              key          the secret behind hidden text
//!              locks/DATE   held while a date's directories change
//!              tmp/NAME/    what somebody is making; its lock is held meanwhile
//!              commit/DATE~NAME/  what is whole, and being put into its place
//! LAKE/TABLE/date=YYYY-MM-DD/*.parquet
//! ```
//!
//! Engines ignore names that begin with `_`, and read whatever lies in a date's directory. So a file
//! is written and synced elsewhere, and renamed into its directory. The files of a trace are renamed
//! one by one: they are first, with one rename, put into `commit`, and whoever takes the date's lock
//! next finishes what it finds there. A file is named after what is in it, so that doing a step again
//! does nothing.

mod stage;

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use iostep_model::directory;
use iostep_model::error::{Error, Result};
use iostep_model::hex;
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};

use crate::date::Date;
use crate::format::{VERSION, VERSIONED};
use crate::hidden::Key;
use crate::place::{self, sync_directory};
use crate::reader;
use crate::table::Table;

pub(crate) use stage::Stage;

const CONTROL: &str = "_iostep";
const FILE_NAME: &str = "lake.json";
const KEY: &str = "key";
const LOCKS: &str = "locks";
const TEMPORARY: &str = "tmp";
const COMMIT: &str = "commit";
/// What a lake's control directory is called while it is being made.
const UNBORN: &str = ".iostep-lake-";
/// A head is a line or two.
const MOST_HEAD_BYTES: u64 = 64 << 10;

#[derive(Serialize, Deserialize)]
struct Head {
    lake_version: u32,
    iostep_version: String,
}

/// A lake.
pub struct Lake {
    root: PathBuf,
    key: Key,
    /// Ids in files of many, by the file's name, which tells their content.
    ids: Mutex<HashMap<PathBuf, HashSet<String>>>,
}

/// The right to merge a date's files.
pub(crate) struct Merging(File);

impl Drop for Merging {
    fn drop(&mut self) {
        // Closing is not enough: a child that another thread is just starting has the file open, too.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// What a table of a lake holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Directories of a date.
    pub dates: u64,
    pub files: u64,
    pub rows: u64,
    /// Bytes of its files.
    pub bytes: u64,
}

impl Lake {
    /// Opens the lake at `root`, or makes one where there is nothing, or an empty directory; then
    /// finishes or removes what a writer that was killed has left.
    ///
    /// Errors: `Io`; `Unsupported` for a directory of something else, and for a newer lake;
    /// `Corrupt` for a damaged head, and for a symbolic link inside.
    pub fn create(root: &Path) -> Result<Lake> {
        // What devices did is its owner's affair, as a trace is, until the owner opens it to others.
        match fs::DirBuilder::new().mode(0o700).create(root) {
            Ok(()) => sync_parent(root)?,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io(root, "make a lake of")(error)),
        }
        if !is_lake(root) {
            make(root)?;
        }
        Lake::open(root)
    }

    /// Opens the lake at `root`, and finishes or removes what a writer that was killed has left.
    ///
    /// Errors: as [`Lake::create`]; `Unsupported` if there is no lake.
    pub fn open(root: &Path) -> Result<Lake> {
        let control = root.join(CONTROL);
        if !is_lake(root) {
            return Err(Error::Unsupported {
                path: root.to_owned(),
                found: format!("no lake: it has no {CONTROL}/{FILE_NAME}"),
                expected: "a directory that iostep fleet add made".into(),
            });
        }
        place::expect_directory(&control)?;
        let path = control.join(FILE_NAME);
        let text = read(&path, MOST_HEAD_BYTES)?;
        let head: Head =
            serde_json::from_slice(&text).map_err(|error| Error::corrupt(&path, "JSON", error))?;
        if head.lake_version > VERSION {
            let found = head.lake_version.into();
            let writer = Some(head.iostep_version.as_str());
            return Err(Error::newer(path, VERSIONED, found, VERSION, writer));
        }
        for name in [LOCKS, TEMPORARY, COMMIT] {
            place::expect_directory(&control.join(name))?;
        }
        let path = control.join(KEY);
        let key = read(&path, Key::BYTES as u64 + 1)?;
        let key = key.try_into().map_err(|key: Vec<u8>| {
            let reason = format!("{} bytes, expected {}", key.len(), Key::BYTES);
            Error::corrupt(&path, "length", reason)
        })?;
        let lake = Lake {
            root: root.to_owned(),
            key: Key::new(key),
            ids: Mutex::default(),
        };
        lake.finish_commits()?;
        lake.sweep()?;
        Ok(lake)
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What tells it from every other lake, wherever it lies, and tells nothing of its key.
    pub fn identity(&self) -> String {
        let hidden = self.key.hide("lake", "");
        String::from_utf8_lossy(&hidden).into_owned()
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    fn control(&self, name: &str) -> PathBuf {
        self.root.join(CONTROL).join(name)
    }

    /// The directory of a table's date.
    pub(crate) fn directory(&self, table: Table, date: Date) -> PathBuf {
        self.root.join(table.name()).join(format!("date={date}"))
    }

    /// Takes the right to change what is in a date's directories, until it is dropped.
    pub(crate) fn lock(&self, date: Date) -> Result<File> {
        let path = self.control(LOCKS).join(date.to_string());
        let mut options = File::options();
        let options = options.create(true).truncate(false).write(true);
        let options = options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
        let file = options.open(&path).map_err(Error::io(&path, "open"))?;
        loop {
            match flock(&file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(file),
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(Error::io(path, "lock")(errno.into())),
            }
        }
    }

    /// Takes the right to merge a date's files, until it is dropped; `None` if somebody has it.
    pub(crate) fn lock_for_merge(&self, date: Date) -> Result<Option<Merging>> {
        let held = directory::lock(&self.control(LOCKS).join(format!("{date}.compact")))?;
        Ok(held.map(Merging))
    }

    /// True if what is named `id` is in the lake: a trace, or a result. The date's lock is held.
    ///
    /// Errors: `Io`; `Corrupt` for a file that is none of the lake's.
    pub(crate) fn has(&self, table: Table, date: Date, id: &str) -> Result<bool> {
        let directory = self.directory(table, date);
        let own = format!("{id}.parquet");
        let files = place::files(&directory)?;
        if files.iter().any(|found| found.name == own) {
            return Ok(true);
        }
        let merged = files.iter().filter(|found| found.name.starts_with(MERGED));
        let merged: Vec<PathBuf> = merged.map(|found| directory.join(&found.name)).collect();
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        // What was merged again has another name.
        ids.retain(|path, _| path.parent() != Some(&*directory) || merged.contains(path));
        for path in merged {
            if !ids.contains_key(&path) {
                ids.insert(path.clone(), reader::ids(&path, table)?);
            }
            if ids.get(&path).is_some_and(|ids| ids.contains(id)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The dates that any table has, the first first.
    ///
    /// Errors: `Io`; `Corrupt` for a symbolic link.
    pub fn dates(&self) -> Result<Vec<Date>> {
        let mut dates = Vec::new();
        for table in Table::ALL {
            dates.extend(place::dates(&self.root.join(table.name()))?);
        }
        dates.sort_unstable();
        dates.dedup();
        Ok(dates)
    }

    /// What a table holds, of all dates.
    ///
    /// Errors: `Io`; `Corrupt` for a file that is none of the table's.
    pub fn totals(&self, table: Table) -> Result<Totals> {
        let mut totals = Totals::default();
        for date in place::dates(&self.root.join(table.name()))? {
            totals.dates += 1;
            let _lock = self.lock(date)?;
            let directory = self.directory(table, date);
            for found in place::files(&directory)? {
                totals.files += 1;
                totals.bytes += found.bytes;
                totals.rows += reader::rows(&directory.join(&found.name), table)?;
            }
        }
        Ok(totals)
    }
}

/// What the names of files begin with that hold what was merged.
pub(crate) const MERGED: &str = "merged-";

fn is_lake(root: &Path) -> bool {
    root.join(CONTROL)
        .join(FILE_NAME)
        .symlink_metadata()
        .is_ok()
}

/// Makes the control directory of a new lake, whole or not at all.
fn make(root: &Path) -> Result<()> {
    let entries = fs::read_dir(root).map_err(Error::io(root, "list"))?;
    for entry in entries {
        let entry = entry.map_err(Error::io(root, "list"))?;
        let is_unborn = entry.file_name().to_string_lossy().starts_with(UNBORN);
        if is_lake(root) {
            return Ok(());
        }
        if !is_unborn {
            let name = entry.file_name();
            return Err(Error::Unsupported {
                path: root.to_owned(),
                found: format!("no lake, and it holds {name:?}"),
                expected: "a lake, an empty directory, or a name that is free".into(),
            });
        }
    }
    let new = root.join(format!("{UNBORN}{}", hex::encode(&random::<8>(root)?)));
    let done = fill(&new).and_then(|()| {
        fs::rename(&new, root.join(CONTROL)).map_err(Error::io(root, "make a lake of"))
    });
    if done.is_err() {
        let _ = fs::remove_dir_all(&new);
    }
    match done {
        // Somebody else was faster.
        Err(_) if is_lake(root) => Ok(()),
        done => done.and_then(|()| sync_directory(root)),
    }
}

fn fill(new: &Path) -> Result<()> {
    fs::create_dir(new).map_err(Error::io(new, "make"))?;
    for name in [LOCKS, TEMPORARY, COMMIT] {
        fs::create_dir(new.join(name)).map_err(Error::io(new, "make a directory in"))?;
    }
    let key: [u8; Key::BYTES] = random(new)?;
    write(&new.join(KEY), &key, 0o600)?;
    let head = Head {
        lake_version: VERSION,
        iostep_version: env!("CARGO_PKG_VERSION").into(),
    };
    let head = serde_json::to_vec_pretty(&head).expect("a head has only JSON's types");
    write(&new.join(FILE_NAME), &head, 0o666)?;
    sync_directory(new)
}

/// Random bytes; `path` is what they are for.
fn random<const N: usize>(path: &Path) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        let flags = rustix::rand::GetRandomFlags::empty();
        let length = rustix::rand::getrandom(&mut bytes[filled..], flags);
        filled += length.map_err(|errno| Error::io(path, "make a name for")(errno.into()))?;
    }
    Ok(bytes)
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let mut options = File::options();
    let options = options.write(true).create_new(true).mode(mode);
    let mut file = options.open(path).map_err(Error::io(path, "create"))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.map_err(Error::io(path, "write"))
}

/// The first bytes of a file that is no link.
fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = place::open(path)?;
    file.take(most)
        .read_to_end(&mut bytes)
        .map_err(Error::io(path, "read"))?;
    Ok(bytes)
}

fn sync_parent(path: &Path) -> Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_directory(parent),
        _ => sync_directory(Path::new(".")),
    }
}
