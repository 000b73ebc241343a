//! What one thread works on.

use std::fs::File;
use std::path::PathBuf;

use iostep_model::bench::FileJob;

use super::offsets::Offsets;
use crate::engine::Fault;

/// A thread's file, opened as transfer and sync mode demand, and where its operations go.
#[derive(Debug)]
pub struct Lane {
    /// What to do.
    pub job: FileJob,
    /// The thread's own open file.
    pub file: File,
    /// How it is called, for errors.
    pub path: PathBuf,
    /// Number of the file: 0 if it is shared.
    pub file_number: u32,
    /// Number of the thread.
    pub thread: u32,
    /// Where the operations go.
    pub offsets: Offsets,
}

impl Lane {
    /// An operation that failed; `attempt` says which, as `write of 4096 bytes at 0`.
    #[cold]
    pub fn fault(&self, attempt: &str, reason: impl std::fmt::Display) -> Fault {
        Fault {
            attempt: format!("{attempt} of {}", self.path.display()),
            reason: reason.to_string(),
        }
    }
}
