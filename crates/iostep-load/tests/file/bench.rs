//! Jobs to change, and what watches them.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use iostep_load::Result;
use iostep_load::engine::{Observer, Progress};
use iostep_load::file::Bench;
use iostep_model::bench::{FileJob, Run, Step, Target};
use iostep_model::manifest::Counters;

/// Watches nothing.
#[derive(Default)]
pub struct Nobody;

impl Observer for Nobody {
    fn device(&mut self) -> Option<Counters> {
        None
    }

    fn progress(&mut self, _: Progress) {}
}

/// Sixteen records of 4 KiB, written in order by one thread; the file is kept.
pub fn job(directory: &Path) -> FileJob {
    FileJob {
        file_bytes: 16 * 4096,
        keep: true,
        ..FileJob::new(Target::Directory(directory.to_owned()))
    }
}

/// Makes the files and runs the job once.
pub fn run(job: &FileJob) -> Result<Run> {
    run_watched(job, &mut Nobody)
}

/// As [`run`], with somebody who watches.
pub fn run_watched(job: &FileJob, observer: &mut dyn Observer) -> Result<Run> {
    let interrupted = AtomicBool::new(false);
    Bench::open(job, &interrupted, &mut Nobody)?.run(observer)
}

/// A work file.
pub fn file(directory: &Path, name: &str) -> PathBuf {
    directory.join("iostep-bench").join(name)
}

/// How often a step was timed.
pub fn count(run: &Run, step: Step) -> u64 {
    let found = run.latencies.iter().find(|latency| latency.step == step);
    found.map_or(0, |latency| latency.histogram.count())
}

/// Offset, sequence number, file and thread of the stamps that a record begins with.
pub fn stamps(bytes: &[u8], record_bytes: usize) -> Vec<(u64, u64, u32, u32)> {
    let word = |record: &[u8], at: usize| {
        u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"))
    };
    let stamp = |record: &[u8]| {
        assert_eq!(&record[..8], b"iostepB1");
        let both = word(record, 32);
        (
            word(record, 16),
            word(record, 24),
            both as u32,
            (both >> 32) as u32,
        )
    };
    bytes.chunks(record_bytes).map(stamp).collect()
}
