//! Where a job runs, and what spoils its measurement.
//!
//! ```text
//! machine   kernel, processor, memory, clock; governor and battery
//! storage   what is below the target that makes figures differ
//! others    whose I/O it was, while the job ran
//! activity  what happened while the job ran: others, swap, the job's own limits
//! ```
//! Whatever cannot be read is left out, not guessed: a container hides half of /sys. Readers take
//! the root of /proc and /sys, `/` but for tests.

mod activity;
mod machine;
pub mod others;
mod storage;
mod text;

use std::path::{Path, PathBuf};

use iostep_model::bench::{Environment, Job, Run, Warning};
use iostep_model::host::Host;

use crate::sandbox;
use activity::Activity;
pub use machine::is_android_app;

/// What is known of the machine. Filesystem, device and SQLite are the caller's to add.
pub fn here(root: &Path) -> Environment {
    Environment {
        host: Host {
            processor: machine::processor(root),
            cpus: machine::cpus(),
            ..Host::running()
        },
        memory_bytes: machine::memory_bytes(root),
        clock_source: machine::clock_source(root),
        filesystem: None,
        device: None,
        flushes_of: Vec::new(),
        disks: Vec::new(),
        sqlite: None,
    }
}

/// A look at the machine before a job runs.
#[derive(Debug)]
pub struct Before {
    root: PathBuf,
    activity: Activity,
}

impl Before {
    /// To be taken right before the first run: what was done until then is nobody's fault.
    pub fn take(root: &Path) -> Before {
        Before {
            root: root.to_owned(),
            activity: Activity::now(root),
        }
    }

    /// What spoils the measurement, as it is seen now. To be called after the last run and before
    /// the work files are removed, since they take part in filling the filesystem.
    ///
    /// `environment` has filesystem and device already. That a run was not steady, or that runs
    /// differ, is not found here but from the numbers.
    pub fn warnings(&self, job: &Job, environment: &Environment, runs: &[Run]) -> Vec<Warning> {
        let mut warnings = machine::warnings(&self.root);
        warnings.extend(machine::unreadable(&self.root));
        warnings.extend(sandbox::refused());
        storage::warn(&self.root, environment, &mut warnings);
        let now = Activity::now(&self.root);
        activity::warn(&now.since(self.activity), job, runs, &mut warnings);
        activity::warn_of_job(job, environment, runs, &mut warnings);
        warnings
    }
}

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;
