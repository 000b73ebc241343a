//! The one error type of this crate.

use std::path::{Path, PathBuf};

use crate::console::Console;

/// What can go wrong with an environment.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused: `what` names the attempt, `path` the object.
    #[error("{path}: cannot {what}: {source}", path = path.display())]
    Io {
        /// The device, file or directory.
        path: PathBuf,
        /// What was attempted, as a verb phrase.
        what: &'static str,
        source: std::io::Error,
    },
    /// The machine lacks something.
    #[error("{what}; {hint}")]
    Unsupported {
        /// What is missing.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// The caller asked for something that is never done.
    #[error("{what}; {hint}")]
    Usage {
        what: String,
        /// What to do instead.
        hint: String,
    },
    /// It cannot be done as things are.
    #[error("{what}; {hint}")]
    Refused {
        /// What stands against it.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// A file of ours cannot be read or written.
    #[error(transparent)]
    File(#[from] iostep_model::Error),
    /// A program that was run failed.
    #[error("{program} failed ({status}): {message}")]
    Program {
        program: String,
        /// How it ended.
        status: std::process::ExitStatus,
        /// The last line that it wrote to its standard error.
        message: String,
    },
    /// A guest did not come up, broke down, or took too long.
    #[error("{what}{console}")]
    Guest {
        /// What happened.
        what: String,
        /// False if it had not even come up.
        came_up: bool,
        /// True if it had stopped saying anything before the command started.
        silent: bool,
        /// What it said last.
        console: Console,
    },
    /// A guest that is up cannot run the command.
    #[error("in the guest: {message}")]
    Agent {
        /// The guest's own error.
        message: String,
    },
    /// The caller wanted the end.
    #[error("interrupted")]
    Interrupted,
}

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// For a program that could not be started; one that is not there has its package named.
    pub(crate) fn not_runnable(program: &str, package: &str, error: std::io::Error) -> Error {
        if error.kind() == std::io::ErrorKind::NotFound {
            return Error::Unsupported {
                what: format!("{program}: not installed"),
                hint: format!("on Debian and Ubuntu: apt install {package}"),
            };
        }
        Error::io(program, "run")(error)
    }

    /// Builds the `map_err` closure for an operation on `path`.
    pub(crate) fn io<E: Into<std::io::Error>>(
        path: impl AsRef<Path>,
        what: &'static str,
    ) -> impl FnOnce(E) -> Error {
        let path = path.as_ref().to_owned();
        move |source| Error::Io {
            path,
            what,
            source: source.into(),
        }
    }
}
