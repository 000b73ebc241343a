use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use iostep_model::bench::{
    Access, Engine, FileJob, Limits, Measurement, PayloadKind, Run, RunState, Sharing, Step, Sync,
};
use iostep_model::manifest::Counters;

use crate::engine::{Observer, Progress};
use crate::file::Bench;
use crate::file::sample::job as sample;
use crate::file::stamp::{self, Stamp, UNIT_BYTES};

struct Nobody;

impl Observer for Nobody {
    fn device(&mut self) -> Option<Counters> {
        None
    }

    fn progress(&mut self, _: Progress) {}
}

fn job(directory: &Path, engine: Engine, depth: u32) -> FileJob {
    FileJob {
        engine,
        depth,
        file_bytes: 100 * 4096,
        keep: true,
        ..sample(directory)
    }
}

/// Runs a job in a directory of its own. The answer is the run and the files that it left.
fn run(engine: Engine, depth: u32, change: impl Fn(&mut FileJob)) -> (Run, Vec<Vec<u8>>) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut job = job(directory.path(), engine, depth);
    change(&mut job);
    let interrupted = AtomicBool::new(false);
    let mut bench = Bench::open(&job, &interrupted, &mut Nobody).expect("a bench");
    let run = bench.run(&mut Nobody).expect("a run");
    drop(bench);
    let mut paths: Vec<_> = std::fs::read_dir(directory.path().join("iostep-bench"))
        .expect("the files are kept")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let files = paths
        .iter()
        .map(|path| std::fs::read(path).expect("a file"));
    (run, files.collect())
}

fn counts(run: &Run) -> (RunState, u64, u64, BTreeMap<Step, u64>) {
    let steps = run.latencies.iter();
    let steps = steps.map(|latency| (latency.step, latency.histogram.count()));
    (run.state, run.operations, run.bytes, steps.collect())
}

/// Who wrote what is there: all of the stamps but the buffers that they came from, which depend
/// on the order in which operations completed.
fn writers(file: &[u8]) -> Vec<Option<(u64, u64, u32, u32)>> {
    let writer = |(number, unit): (usize, &[u8])| {
        let stamp = Stamp::take(unit)?;
        assert_eq!(stamp.offset_bytes, (number * UNIT_BYTES) as u64);
        assert!(
            stamp::body_is_intact(unit, true, &stamp, 0),
            "unit {number}"
        );
        Some((stamp.seed, stamp.sequence, stamp.file, stamp.thread))
    };
    file.chunks(UNIT_BYTES).enumerate().map(writer).collect()
}

const CHANGES: [fn(&mut FileJob); 7] = [
    |_| {},
    |job| job.sync = Sync::Fdatasync,
    |job| {
        job.sync = Sync::Fsync;
        job.sync_every = 7;
        job.end_sync = true;
    },
    |job| {
        job.sync = Sync::SyncFileRange;
        job.sync_every = 3;
        job.access = Access::RandomWrite;
    },
    |job| {
        job.sync = Sync::RwfDsync;
        job.threads = 3;
        job.file_bytes = 20 * 4096;
    },
    |job| {
        job.access = Access::Append;
        job.sync = Sync::ODsync;
    },
    |job| {
        job.access = Access::Write;
        job.sharing = Sharing::SharedFile;
        job.threads = 4;
    },
];

#[test]
fn one_operation_at_a_time_leaves_byte_for_byte_what_psync_leaves() {
    for (number, change) in CHANGES.into_iter().enumerate() {
        let (by_calls, expected) = run(Engine::Psync, 1, change);
        let (by_ring, found) = run(Engine::Uring, 1, change);
        assert_eq!(counts(&by_ring), counts(&by_calls), "change {number}");
        assert_eq!(by_ring.state, RunState::Complete);
        assert!(found == expected, "change {number}");
    }
}

#[test]
fn many_operations_at_a_time_do_what_psync_does() {
    for depth in [8, 64] {
        for (number, change) in CHANGES.into_iter().enumerate() {
            let (by_calls, expected) = run(Engine::Psync, 1, change);
            let (by_ring, found) = run(Engine::Uring, depth, change);
            assert_eq!(counts(&by_ring), counts(&by_calls), "change {number}");
            let expected: Vec<_> = expected.iter().map(|file| writers(file)).collect();
            let found: Vec<_> = found.iter().map(|file| writers(file)).collect();
            assert_eq!(found, expected, "change {number}, depth {depth}");
        }
    }
}

#[test]
fn reads_bring_what_was_written() {
    for depth in [1, 8, 64] {
        for access in [Access::Read, Access::RandomRead] {
            let (run, _) = run(Engine::Uring, depth, |job| {
                job.access = access;
                job.measurement.verify = true;
            });
            assert_eq!((run.state, run.operations), (RunState::Complete, 100));
            assert_eq!(run.bytes, 100 * 4096);
            let verification = run.verification.expect("it was asked for");
            // Each record when it was read, and once more at the end.
            assert_eq!((verification.compared, verification.wrong), (200, 0));
        }
    }
}

#[test]
fn writes_to_one_place_that_are_verified_keep_their_order() {
    for access in [Access::RandomWrite, Access::Write] {
        let (run, _) = run(Engine::Uring, 64, |job| {
            job.access = access;
            job.file_bytes = 20 * 4096;
            job.overlap_percent = if access.random() { 60.0 } else { 0.0 };
            job.measurement.verify = true;
            job.measurement.limits.time_ns = Some(100_000_000);
        });
        assert_eq!(run.state, RunState::Complete);
        assert!(run.operations > 64);
        let verification = run.verification.expect("it was asked for");
        assert_eq!((verification.compared, verification.wrong), (20, 0));
    }
}

#[test]
fn an_append_that_starts_over_leaves_only_its_last_pass() {
    let (run, files) = run(Engine::Uring, 8, |job| {
        job.access = Access::Append;
        job.file_bytes = 10 * 4096;
        job.measurement.limits = Limits {
            time_ns: Some(200_000_000),
            ramp_ns: 0,
        };
    });
    assert_eq!(run.state, RunState::Complete);
    assert!(run.operations > 20, "{}", run.operations);
    let passes = run.operations / 10;
    let writers = writers(&files[0]);
    assert_eq!(writers.len() as u64, run.operations % 10);
    for (number, writer) in writers.into_iter().enumerate() {
        let (_, sequence, _, _) = writer.expect("a stamp");
        assert_eq!(sequence, passes * 10 + number as u64 + 1);
    }
}

#[test]
fn a_rate_is_kept_while_operations_are_under_way() {
    let (run, _) = run(Engine::Uring, 8, |job| {
        job.sync = Sync::Fdatasync;
        job.measurement.pace.operations_per_second = Some(500.0);
    });
    assert_eq!(counts(&run).3[&Step::Lateness], 100);
    assert!(run.elapsed_ns >= 198_000_000, "{}", run.elapsed_ns);
}

#[test]
fn whoever_asks_for_the_end_gets_what_was_done() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut job = job(directory.path(), Engine::Uring, 16);
    job.measurement.limits.time_ns = Some(3_600_000_000_000);
    let interrupted = AtomicBool::new(false);
    let mut bench = Bench::open(&job, &interrupted, &mut Nobody).expect("a bench");
    interrupted.store(true, std::sync::atomic::Ordering::Relaxed);
    let run = bench.run(&mut Nobody).expect("a run");
    assert_eq!(run.state, RunState::Interrupted);
    let total = run
        .latencies
        .iter()
        .find(|latency| latency.step == Step::Total);
    assert_eq!(
        total.expect("it did something").histogram.count(),
        run.operations
    );
}

#[test]
fn records_of_any_size_are_transferred() {
    for record_bytes in [1, 511, 5000, 3 << 20] {
        let (run, files) = run(Engine::Uring, 4, |job| {
            job.record_bytes = record_bytes;
            job.file_bytes = 9 * record_bytes;
            job.payload = PayloadKind::Constant(0x5a);
        });
        assert_eq!((run.operations, run.bytes), (9, 9 * record_bytes));
        assert_eq!(files[0].len() as u64, 9 * record_bytes);
        assert!(files[0].iter().all(|&byte| byte == 0x5a));
    }
}

/// Of a region on a file that is not as the job presumes.
mod faults {
    use super::*;

    use std::fs::File;
    use std::sync::Arc;

    use crate::engine::Pool;
    use crate::file::offsets::Offsets;
    use crate::file::region::{Region, Tally};
    use crate::file::uring::Uring;

    fn run_on(file: File, depth: u32, change: impl Fn(&mut FileJob)) -> Run {
        let mut job = job(Path::new("/nowhere"), Engine::Uring, depth);
        change(&mut job);
        let region = Region {
            offsets: Offsets::new(&job, 0, 0, &Arc::default()),
            file,
            path: "/mnt/x".into(),
            file_number: 0,
            thread: 0,
            tally: Tally::default(),
            job,
        };
        let interrupted = AtomicBool::new(false);
        let pool = Pool {
            measurement: &Measurement::default(),
            interrupted: &interrupted,
        };
        pool.run(&mut [Uring::new(region)], &mut Nobody)
            .expect("a run")
    }

    #[test]
    fn a_failing_write_ends_the_run_with_the_systems_words() {
        for depth in [1, 8] {
            let full = File::options()
                .write(true)
                .open("/dev/full")
                .expect("it is there");
            let run = run_on(full, depth, |_| {});
            assert_eq!((run.state, run.operations), (RunState::Failed, 0));
            let [failure] = run.failures.as_slice() else {
                panic!("{:?}", run.failures);
            };
            // Of several under way, the kernel may end any first.
            let mut attempts =
                (0..depth).map(|at| format!("write of 4096 bytes at {} of /mnt/x", at * 4096));
            assert!(
                attempts.any(|attempt| failure.attempt == attempt),
                "{failure:?}"
            );
            assert!(
                failure.reason.contains("No space left"),
                "{}",
                failure.reason
            );
        }
    }

    #[test]
    fn a_write_that_cannot_be_synced_did_not_succeed() {
        for depth in [1, 8] {
            let null = File::options()
                .write(true)
                .open("/dev/null")
                .expect("it is there");
            let run = run_on(null, depth, |job| job.sync = Sync::Fdatasync);
            assert_eq!((run.state, run.operations), (RunState::Failed, 0));
            let failure = &run.failures[0];
            assert_eq!(failure.attempt, "fdatasync of /mnt/x");
            assert!(failure.reason.contains("Invalid argument"), "{failure:?}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_polled_fails_with_the_systems_words() {
        let file = tempfile::tempfile().expect("a file");
        let run = run_on(file, 8, |job| job.polled = true);
        assert_eq!((run.state, run.operations), (RunState::Failed, 0));
        let failure = &run.failures[0];
        assert!(failure.reason.contains("not supported"), "{failure:?}");
    }

    #[test]
    fn a_short_read_is_continued_until_the_end_of_the_file() {
        for depth in [1, 8] {
            let file = tempfile::tempfile().expect("a file");
            file.set_len(50 * 4096 + 100).expect("a length");
            let run = run_on(file, depth, |job| job.access = Access::Read);
            assert_eq!(run.state, RunState::Failed);
            assert!((50 - u64::from(depth)..=50).contains(&run.operations));
            let failure = &run.failures[0];
            let at_end = format!("read of 4096 bytes at {} of /mnt/x", 50 * 4096);
            if depth == 1 {
                assert_eq!(failure.attempt, at_end);
                assert_eq!(failure.reason, "it ended after 100 bytes");
                assert_eq!((run.operations, failure.operation), (50, 51));
            }
            assert!(failure.reason.starts_with("it ended after"), "{failure:?}");
        }
    }
}
