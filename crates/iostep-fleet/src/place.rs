//! Directories and files of a lake, none of which is a symbolic link: a link could lead a writer, and
//! the engine that reads, out of the lake.

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use iostep_model::error::{Error, Result};
use rustix::fs::OFlags;

use crate::date::Date;

/// A file in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) name: String,
    /// Its length.
    pub(crate) bytes: u64,
}

/// Errors: `Io`; `Corrupt` for anything but a directory.
pub(crate) fn expect_directory(path: &Path) -> Result<()> {
    let found = path
        .symlink_metadata()
        .map_err(Error::io(path, "look at"))?;
    match found.is_dir() {
        true => Ok(()),
        false => Err(Error::corrupt(
            path,
            "lake",
            "no directory, or a symbolic link to one",
        )),
    }
}

/// Opens a regular file to read it.
///
/// Errors: `Io`; `Corrupt` for a link, a FIFO and the like.
pub(crate) fn open(path: &Path) -> Result<File> {
    let found = path
        .symlink_metadata()
        .map_err(Error::io(path, "look at"))?;
    if !found.is_file() {
        return Err(Error::corrupt(path, "lake", "no regular file"));
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = File::options();
    let options = options.read(true).custom_flags(flags.bits() as i32);
    options.open(path).map_err(Error::io(path, "open"))
}

/// The tables' files in a directory, by name; none if it is not there.
///
/// Errors: `Io`; `Corrupt` for a directory or a file that is a link.
pub(crate) fn files(directory: &Path) -> Result<Vec<Found>> {
    let mut files = all_files(directory)?;
    files.retain(|found| found.name.ends_with(".parquet"));
    Ok(files)
}

/// All files in a directory, by name; none if it is not there.
///
/// Errors: as [`files`].
pub(crate) fn all_files(directory: &Path) -> Result<Vec<Found>> {
    let mut files = Vec::new();
    for name in names(directory)? {
        let path = directory.join(&name);
        let metadata = path
            .symlink_metadata()
            .map_err(Error::io(&path, "look at"))?;
        if !metadata.is_file() {
            return Err(Error::corrupt(path, "lake", "no regular file"));
        }
        let bytes = metadata.len();
        files.push(Found { name, bytes });
    }
    Ok(files)
}

/// The dates that a table's directory has; other names are none of ours.
///
/// Errors: as [`files`].
pub(crate) fn dates(table: &Path) -> Result<Vec<Date>> {
    let mut dates = Vec::new();
    for name in names(table)? {
        let date = name
            .strip_prefix("date=")
            .and_then(|date| date.parse().ok());
        if let Some(date) = date {
            expect_directory(&table.join(&name))?;
            dates.push(date);
        }
    }
    Ok(dates)
}

/// The names in a directory, sorted; none if it is not there. A name that is not UTF-8 is none of
/// ours.
fn names(directory: &Path) -> Result<Vec<String>> {
    match directory.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        _ => expect_directory(directory)?,
    }
    let entries = fs::read_dir(directory).map_err(Error::io(directory, "list"))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::io(directory, "list"))?;
        names.extend(entry.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}

/// Makes a directory in one that is there, and makes its name durable.
///
/// Errors: `Io`; `Corrupt` if the name is taken by something else.
pub(crate) fn make_directory(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(Error::io(path, "make")(error)),
    }
    expect_directory(path)?;
    // Also if it was there: whoever made it may have been killed before this.
    sync_directory(path.parent().unwrap_or(Path::new(".")))
}

/// Makes names in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> Result<()> {
    let directory = File::open(path).map_err(Error::io(path, "open"))?;
    directory.sync_all().map_err(Error::io(path, "sync"))
}
