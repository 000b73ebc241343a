//! A job for tests to change.

use std::path::Path;

use iostep_model::bench::{FileJob, Target};

/// Eight records of 4 KiB, written in order by one thread.
pub fn job(directory: impl AsRef<Path>) -> FileJob {
    FileJob {
        file_bytes: 8 * 4096,
        ..FileJob::new(Target::Directory(directory.as_ref().to_owned()))
    }
}
