//! The one error type of this crate.

use std::path::PathBuf;

use crate::printable::excerpt;

/// What can go wrong with the files of a trace.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused: `what` names the attempt, `path` the object.
    #[error("{path}: cannot {what}: {source}", path = path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was attempted, as a verb phrase.
        what: &'static str,
        source: std::io::Error,
    },
    /// The file is whole but of a kind or version that this build does not read.
    #[error("{path}: {found}; expected {expected}", path = path.display())]
    Unsupported {
        path: PathBuf,
        found: String,
        /// What this build reads.
        expected: String,
    },
    /// The file is broken.
    #[error("{path}: damaged at {place}: {reason}", path = path.display())]
    Corrupt {
        path: PathBuf,
        /// Byte offset, row or field.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Builds the `map_err` closure for an operation on `path`.
    pub fn io(
        path: impl Into<PathBuf>,
        what: &'static str,
    ) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { path, what, source }
    }

    /// A file of a version after `newest`, the last that this build reads. `writer` is the version
    /// of the iostep that wrote it, where the file tells.
    pub fn newer(
        path: impl Into<PathBuf>,
        format: &str,
        found: u64,
        newest: impl std::fmt::Display,
        writer: Option<&str>,
    ) -> Error {
        let reader = match writer {
            Some(writer) => format!(
                "iostep {}, which wrote it, or a newer one",
                excerpt(writer, 40)
            ),
            None => "a newer iostep".into(),
        };
        Error::Unsupported {
            path: path.into(),
            found: format!("{format} {found}"),
            expected: format!("at most {newest}; read it with {reader}"),
        }
    }

    /// A damaged file, with the place and the reason.
    pub fn corrupt(
        path: impl Into<PathBuf>,
        place: impl Into<String>,
        reason: impl ToString,
    ) -> Error {
        Error::Corrupt {
            path: path.into(),
            place: place.into(),
            reason: reason.to_string(),
        }
    }
}
