//! The one error type of this crate.

use std::path::PathBuf;

/// What can go wrong while a recording is made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused: `what` names the attempt, `path` the object.
    #[error("{path}: cannot {what}: {source}", path = path.display())]
    Io {
        path: PathBuf,
        /// What was attempted, as a verb phrase.
        what: &'static str,
        /// The reason given.
        source: std::io::Error,
    },
    /// The text is not what it was taken for.
    #[error("{path}: {what}; {hint}", path = path.display())]
    Foreign {
        path: PathBuf,
        /// What was found.
        what: String,
        /// What to do.
        hint: &'static str,
    },
    /// More of something than a recording can number.
    #[error("more than 4294967295 {what}; record a shorter time")]
    TooMany {
        /// Of what.
        what: &'static str,
    },
    /// Somebody asked for the end.
    #[error("interrupted")]
    Interrupted,
    /// The trace file could not be written.
    #[error(transparent)]
    Model(#[from] iostep_model::Error),
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;
