//! Performs the calls of a recording again, inside one directory.
//!
//! ```text
//! plan      which thread makes which calls, and what each waits for
//! root      the directory: every path is looked up beneath it, whatever it says
//! initial   what was there before the first call
//! fence     the second belt: what the kernel allows the threads
//! handles   open files, by their number in the recording
//! perform   one call
//! transfer  reads and writes, and their memory
//! progress  how far each thread is, for those that wait
//! run       the threads and their clock
//! ```
//!
//! A recording is hostile input. Nothing outside of the directory is read, written, made or
//! removed; no program is run, and an ioctl only if it is on a short list.

mod fence;
mod handles;
mod initial;
mod perform;
pub mod plan;
mod progress;
mod reflink;
mod root;
mod run;
mod transfer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};

use iostep_model::replay::{Prepared, Replay, Settings};
use iostep_model::syscall::Recording;

use crate::error::{Error, Result};
use crate::work_directory::WorkDirectory;
use plan::Plan;
use root::Root;

/// The directory below the one that somebody chose.
const NAME: &str = "iostep-replay";

/// How a replay is watched and ended.
#[derive(Debug, Default)]
pub struct Watch {
    /// Set by whoever wants it to end early.
    pub interrupted: AtomicBool,
    /// Calls that are done.
    pub calls: AtomicU64,
    /// Bytes of the initial state that are written.
    pub prepared_bytes: AtomicU64,
}

/// A recording whose initial state is there, ready to be performed once.
#[derive(Debug)]
pub struct Stage {
    root: Root,
    prepared: Prepared,
    keep: bool,
    // Behind the root, since it can only be removed empty.
    directory: WorkDirectory,
}

impl Stage {
    /// Makes the initial state of a recording in `iostep-replay` below `parent`: whatever a
    /// replay left there before is removed, and nothing else. `kept_data` is the directory of a recording's kept
    /// content. The files are durable then, and not in the page cache.
    ///
    /// Errors: `Usage`, `Refused` (`parent` cannot be used, or has too little space),
    /// `Unsupported` (no openat2), `Io`, `Interrupted`.
    pub fn set(
        recording: &Recording,
        parent: &Path,
        kept_data: Option<&Path>,
        keep: bool,
        watch: &Watch,
    ) -> Result<Stage> {
        let mut directory = WorkDirectory::open(parent, NAME)?;
        directory.mark()?;
        let root = Root::open(&directory)?;
        root.clear()?;
        // It is gone if it was a file.
        directory.mark()?;
        let mut stage = Stage {
            root,
            prepared: Prepared::default(),
            keep,
            directory,
        };
        stage.prepared = initial::make(recording, &stage.root, kept_data, watch)?;
        Ok(stage)
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().to_owned()
    }

    pub fn prepared(&self) -> Prepared {
        self.prepared
    }

    /// Performs the calls of `plan`, which is one of this recording.
    ///
    /// Errors: `Io` where a thread cannot be started, `Usage` for a speed that is none. A call
    /// that fails is a result, not an error; so is a replay that `watch` interrupted.
    pub fn perform(
        &self,
        recording: &Recording,
        plan: &Plan,
        settings: Settings,
        watch: &Watch,
    ) -> Result<Replay> {
        if !(settings.speed > 0.0 && settings.speed.is_finite()) {
            return Err(Error::Usage {
                what: format!("--speed {}: not a speed", settings.speed),
                hint: "give a number above 0, as 2 for twice as fast".into(),
            });
        }
        let mut replay = run::run(recording, plan, &self.root, settings, watch)?;
        replay.prepared = self.prepared;
        Ok(replay)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.keep {
            // What cannot be removed is found by the next replay.
            let _ = self.root.clear();
        }
    }
}

#[cfg(test)]
mod tests;
