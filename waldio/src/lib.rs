//! A SQLite write-ahead log in aligned blocks, for programs that use SQLite through rusqlite.
//!
//! ```
//! # fn main() -> rusqlite::Result<()> {
//! # let directory = tempfile::tempdir().expect("a directory");
//! # let path = directory.path().join("app.db");
//! let db = waldio::open(&path)?;
//! db.execute_batch("CREATE TABLE notes (text); INSERT INTO notes VALUES ('milk')")?;
//! # let (log, reason): (String, Option<String>) =
//! #     db.query_row("SELECT layout, reason FROM waldio_stat", [], |row| {
//! #         Ok((row.get(0)?, row.get(1)?))
//! #     })?;
//! # assert_eq!(log == "stock", reason.is_some());
//! # Ok(())
//! # }
//! ```
//!
//! Databases that are opened in another way get waldio's log if they name its VFS, once it is
//! registered:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("app.db");
//! # let path = path.to_str().expect("UTF-8");
//! waldio::register(false)?;
//! let db = rusqlite::Connection::open(format!("file:{path}?vfs=waldio"))?;
//! # let mode: String = db.query_row("PRAGMA journal_mode=waldio", [], |row| row.get(0))?;
//! # assert!(mode == "waldio" || mode == "wal", "{mode}");
//! # Ok(())
//! # }
//! ```
//!
//! `docs/waldio.md` is the manual: which filesystems gain, options, what a commit does, and guards
//! against other programs. Where waldio cannot help, SQLite's own log
//! is used, and column `reason` of the table `waldio_stat` says why.

#[cfg(feature = "flush-hook")]
mod hook;

use std::ffi::c_int;
use std::fmt;
use std::path::Path;

use libsqlite3_sys as ffi;
use rusqlite::{Connection, OpenFlags};

#[cfg(feature = "flush-hook")]
pub use hook::{FlushHook, on_flush};

/// The name of the VFS.
pub const VFS: &str = "waldio";

unsafe extern "C" {
    fn waldio_register(default: c_int) -> c_int;
}

/// SQLite refused to register a VFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// SQLite's result code.
    pub code: c_int,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = ffi::code_to_str(self.code);
        write!(f, "SQLite does not take the VFS {VFS}: {reason}")
    }
}

impl std::error::Error for Error {}

impl From<Error> for rusqlite::Error {
    fn from(error: Error) -> rusqlite::Error {
        let text = Some(error.to_string());
        rusqlite::Error::SqliteFailure(ffi::Error::new(error.code), text)
    }
}

/// Registers the VFS [`VFS`] over the one that is the default now, and the table `waldio_stat` in
/// every connection opened later. With `default` all databases opened later without a VFS of their
/// own use it. Called again it only changes whether it is the default.
///
/// Errors: SQLite's, out of memory or a build without a VFS.
pub fn register(default: bool) -> Result<(), Error> {
    // SAFETY: it may be called at any time, from any thread.
    match unsafe { waldio_register(default.into()) } {
        ffi::SQLITE_OK => Ok(()),
        code => Err(Error { code }),
    }
}

/// Opens a database, or makes it, in `journal_mode=waldio`.
///
/// Where waldio cannot help the log is SQLite's own: see the table `waldio_stat`.
///
/// Errors: those of [`register`], and SQLite's.
pub fn open(path: impl AsRef<Path>) -> rusqlite::Result<Connection> {
    register(false)?;
    let db = Connection::open_with_flags_and_vfs(path, OpenFlags::default(), VFS)?;
    db.query_row("PRAGMA journal_mode = waldio", [], |_| Ok(()))?;
    Ok(db)
}
