//! The one error type of this crate.

use std::path::PathBuf;

/// What can go wrong with a store, a server or a client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused: `what` names the attempt, `path` the object.
    #[error("{path}: cannot {what}: {source}", path = path.display())]
    Io {
        path: PathBuf,
        /// What was attempted, as a verb phrase.
        what: &'static str,
        source: std::io::Error,
    },
    /// Something at a path is not what a store keeps there.
    #[error("{path}: {what}; {hint}", path = path.display())]
    Refused {
        path: PathBuf,
        what: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// SQLite's own.
    #[error("{path}: {source}", path = path.display())]
    Database {
        path: PathBuf,
        source: rusqlite::Error,
    },
    /// No room is left for the store.
    #[error("{path}: no room is left for the store; make room on its filesystem", path = path.display())]
    Full { path: PathBuf },
    /// Something that the store holds is damaged.
    #[error("{path}: damaged at {place}: {reason}", path = path.display())]
    Damaged {
        path: PathBuf,
        place: String,
        reason: String,
    },
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Builds the `map_err` closure for an operation on `path`.
    pub fn io<E: Into<std::io::Error>>(
        path: impl Into<PathBuf>,
        what: &'static str,
    ) -> impl FnOnce(E) -> Error {
        let path = path.into();
        move |source| Error::Io {
            path,
            what,
            source: source.into(),
        }
    }

    /// Builds the `map_err` closure for SQL on the database at `path`.
    pub fn database(path: impl Into<PathBuf>) -> impl FnOnce(rusqlite::Error) -> Error {
        let path = path.into();
        // The index of the log cannot grow.
        let is_index = |code| code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
        move |source| match source.sqlite_error() {
            Some(error) if error.code == rusqlite::ErrorCode::DiskFull => Error::Full { path },
            Some(error) if is_index(error.extended_code) => Error::Full { path },
            _ => Error::Database { path, source },
        }
    }
}
