//! The one error type of this crate. It crosses a pipe, so it holds only text.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What can go wrong while I/O is driven.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Error {
    /// The operating system refused: `what` names the attempt, `path` the object.
    #[error("{path}: cannot {what}: {reason}", path = path.display())]
    Io {
        /// The file, directory or pipe.
        path: PathBuf,
        /// What was attempted, as a verb phrase.
        what: String,
        reason: String,
    },
    /// The caller asked for something that makes no sense.
    #[error("{what}; {hint}")]
    Usage {
        what: String,
        /// What to do instead.
        hint: String,
    },
    /// This machine, filesystem or device cannot do it.
    #[error("{what}; {hint}")]
    Unsupported {
        /// What is missing, and where.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// It could be done, but not now and here: no space, a device in use.
    #[error("{what}; {hint}")]
    Refused {
        /// What stands against it.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// SQLite cannot use the database.
    #[error("{path}: {what}; {hint}", path = path.display())]
    Database {
        /// The database.
        path: PathBuf,
        /// What is the matter with it.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// A statement of the script failed.
    #[error(
        "statement {number} of {total}: {message}: {text}; {standing}",
        standing = Standing(*first_of_transaction, *number)
    )]
    Statement {
        /// Its number, from 1.
        number: usize,
        /// How many the script has.
        total: usize,
        /// Its beginning.
        text: String,
        /// What SQLite says.
        message: String,
        /// Where the transaction that it ended began; equal to `number` outside of one. What is
        /// before is committed, what is from here on is rolled back.
        first_of_transaction: usize,
    },
    /// The process that runs the script ended early.
    #[error("the process that runs the SQL ended early ({how})")]
    ChildDied {
        /// Its exit status or signal.
        how: String,
    },
    /// Somebody asked for the end.
    #[error("interrupted")]
    Interrupted,
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Builds the `map_err` closure for an operation on `path`.
    pub(crate) fn io(
        path: impl AsRef<Path>,
        what: &'static str,
    ) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.as_ref().to_owned();
        move |source| Error::Io {
            path,
            what: what.into(),
            reason: source.to_string(),
        }
    }
}

impl Error {
    /// The same of a file by another name, as one that people know.
    pub fn named(mut self, path: &Path, name: &Path) -> Error {
        let (known, shown) = (path.to_string_lossy(), name.to_string_lossy());
        match &mut self {
            Error::Io { path, .. } | Error::Database { path, .. } => {
                *path = path.to_string_lossy().replace(&*known, &shown).into();
            }
            Error::Usage { what, .. }
            | Error::Unsupported { what, .. }
            | Error::Refused { what, .. } => *what = what.replace(&*known, &shown),
            Error::Statement { .. } | Error::ChildDied { .. } | Error::Interrupted => {}
        }
        self
    }
}

impl From<iostep_model::UnknownName> for Error {
    fn from(unknown: iostep_model::UnknownName) -> Error {
        Error::Usage {
            what: format!("{}: no {}", unknown.name, unknown.what),
            hint: format!("choose {}", unknown.choices),
        }
    }
}

/// What became of the statements before the failed one.
struct Standing(usize, usize);

impl std::fmt::Display for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let &Standing(first, number) = self;
        if number == 1 {
            return f.write_str("nothing was changed");
        }
        if first > 1 {
            write!(f, "{} committed", count(1, first - 1))?;
        }
        if first < number {
            let separator = if first > 1 { ", " } else { "" };
            write!(f, "{separator}{} rolled back", count(first, number - 1))?;
        }
        Ok(())
    }
}

fn count(first: usize, last: usize) -> String {
    if first == last {
        format!("statement {first} is")
    } else {
        format!("statements {first} to {last} are")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_became_of_the_statements_before_it() {
        let standing = |first, number| Standing(first, number).to_string();
        assert_eq!(standing(1, 1), "nothing was changed");
        assert_eq!(standing(3, 3), "statements 1 to 2 are committed");
        assert_eq!(standing(1, 3), "statements 1 to 2 are rolled back");
        assert_eq!(
            standing(2, 4),
            "statement 1 is committed, statements 2 to 3 are rolled back"
        );
    }
}
