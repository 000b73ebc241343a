//! The one error type of this crate.

use std::path::PathBuf;

/// What can go wrong with a recording.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("{path}: cannot {what}: {source}", path = path.display())]
    Io {
        /// The file, device or directory.
        path: PathBuf,
        /// What was attempted, as a verb phrase.
        what: &'static str,
        source: std::io::Error,
    },
    /// This machine, device or filesystem cannot do it; the text says what would.
    #[error("{object}: {reason}")]
    Unsupported {
        /// What was looked at.
        object: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// What was asked for makes no sense; the text says what does.
    #[error("{object}: {reason}")]
    Usage {
        /// What was given.
        object: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// The kernel refused a BPF operation.
    #[error("the kernel refused to {what}: {reason}")]
    Kernel {
        /// What was attempted, as a verb phrase.
        what: String,
        /// The reason, in libbpf's words.
        reason: String,
    },
    /// The kernel does not take a BPF program without which nothing can be recorded.
    #[error(
        "Linux {kernel} refused the BPF program {program}, without which nothing can be recorded; \
         use --backend tracefs, or see why with iostep trace --verbose"
    )]
    Refused {
        /// The program's name.
        program: String,
        /// `uname -r`.
        kernel: String,
        /// What libbpf and the verifier said.
        log: String,
    },
    /// A file of the trace could not be written or read.
    #[error(transparent)]
    Trace(#[from] iostep_model::Error),
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Builds the `map_err` closure for an operation on `path`.
    pub(crate) fn io<E: Into<std::io::Error>>(
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

    /// Something that this machine cannot do.
    pub(crate) fn unsupported(object: impl ToString, reason: impl ToString) -> Error {
        Error::Unsupported {
            object: object.to_string(),
            reason: reason.to_string(),
        }
    }

    /// Something that was asked for in vain.
    pub(crate) fn usage(object: impl ToString, reason: impl ToString) -> Error {
        Error::Usage {
            object: object.to_string(),
            reason: reason.to_string(),
        }
    }
}
