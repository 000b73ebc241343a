//! A database as a file: whether it is one, how it is opened, and what SQLite says of it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use iostep_model::pragma::Journal;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::held;
use crate::batch_atomic;
use crate::error::{Error, Result};

/// Where the header holds the versions for writing and reading; 2 is WAL
/// (sqlite.org/fileformat2.html, section 1.3).
const VERSIONS_OFFSET: u64 = 18;

/// Opens a database through waldio if that is the mode that is asked for, or the one that the file
/// is in: no other SQLite can read it then.
pub(crate) fn connect(
    path: &Path,
    flags: OpenFlags,
    journal: Option<Journal>,
) -> rusqlite::Result<Connection> {
    batch_atomic::keep_off();
    held::take_as_it_is(path);
    let is_waldio = journal == Some(Journal::Waldio)
        || own_mode(path).is_ok_and(|mode| mode == Journal::Waldio);
    if !is_waldio {
        return Connection::open_with_flags(path, flags);
    }
    waldio::register(false)?;
    Connection::open_with_flags_and_vfs(path, flags, waldio::VFS)
}

pub(crate) fn check_is_file(path: &Path, create: bool) -> Result<()> {
    let usage = |what: &str, hint: &str| Error::Usage {
        what: format!("{}: {what}", path.display()),
        hint: hint.into(),
    };
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(metadata) if metadata.is_dir() => {
            Err(usage("is a directory", "name the database file in it"))
        }
        Ok(_) => Err(usage("is not a regular file", "name a database file")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && create => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(usage(
            "no such file",
            "name an existing database, or make one with: sqlite3 FILE \"CREATE TABLE ...\"",
        )),
        Err(error) => Err(Error::io(path, "open")(error)),
    }
}

pub(super) fn read_only(path: &Path) -> Error {
    Error::Database {
        path: path.to_owned(),
        what: "read-only".into(),
        hint: "its file and its directory must be writable".into(),
    }
}

/// SQLite's answer about the database as a whole.
pub(crate) fn database_error(path: &Path, error: &rusqlite::Error) -> Error {
    let hint = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another process uses it; end that one's transaction and try again"
        }
        Some(ErrorCode::NotADatabase) => {
            return Error::Usage {
                what: format!("{}: {}", path.display(), message(error)),
                hint: "iostep reads plain SQLite files; an encrypted one must be decrypted first"
                    .into(),
            };
        }
        Some(ErrorCode::ReadOnly) => return read_only(path),
        Some(ErrorCode::DiskFull) => "make room on its filesystem",
        Some(ErrorCode::DatabaseCorrupt) => {
            "check it with: sqlite3 FILE \"PRAGMA integrity_check\""
        }
        Some(ErrorCode::CannotOpen) => "its file and its directory must be readable and writable",
        _ => "see the SQLite documentation for this error",
    };
    Error::Database {
        path: path.to_owned(),
        what: message(error),
        hint: hint.into(),
    }
}

/// SQLite's words, without the statement that rusqlite adds.
pub(super) fn message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        other => other.to_string(),
    }
}

/// The journal mode that a database file asks for: a WAL is written down in it, and waldio's while
/// it is in use or after a crash; the other modes are each connection's own choice, and SQLite's is
/// DELETE.
///
/// Errors: `Usage` for what is no file; `Io`.
pub fn own_mode(path: &Path) -> Result<Journal> {
    check_is_file(path, false)?;
    let file = File::open(path).map_err(Error::io(path, "open"))?;
    mode_of(path, &file)
}

pub(super) fn mode_of(path: &Path, file: &File) -> Result<Journal> {
    let mut versions = [0; 2];
    match file.read_exact_at(&mut versions, VERSIONS_OFFSET) {
        Ok(()) => Ok(Journal::of_versions(versions)),
        // An empty file is an empty database.
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(Journal::Delete),
        Err(error) => Err(Error::io(path, "read")(error)),
    }
}
