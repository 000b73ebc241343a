//! The SQLite generator, judged by an independent connection.

mod locks;
mod operations;
mod other_library;
mod refusals;
mod waldio;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::thread::ScopedJoinHandle;

use iostep_load::engine::{Observer, Progress};
use iostep_load::transactions::Bench;
use iostep_load::{Error, Result};
use iostep_model::bench::{
    CheckpointPolicy, KeyOrder, Measurement, Run, SqliteJob, SqliteOperation, Step, WalFile,
};
use iostep_model::manifest::Counters;
use iostep_model::pragma::{Journal, Synchronous};
use rusqlite::{Connection, OpenFlags};

/// Watches without a word.
struct Quiet;

impl Observer for Quiet {
    fn device(&mut self) -> Option<Counters> {
        None
    }

    fn progress(&mut self, _: Progress) {}
}

/// Tells when the connections are set up and the threads are about to begin. Who comes before can
/// be in the way of a setting.
struct Begun(Sender<()>);

impl Observer for Begun {
    fn device(&mut self) -> Option<Counters> {
        // Nobody waits for the second time.
        let _ = self.0.send(());
        None
    }

    fn progress(&mut self, _: Progress) {}
}

/// Runs a bench in a thread, and calls `meddle` when its threads begin.
fn run_and(bench: &mut Bench, meddle: impl FnOnce(&Running)) -> Result<Run> {
    let (begun, wait) = channel();
    std::thread::scope(|scope| {
        let running = scope.spawn(move || bench.run(&mut Begun(begun)));
        // It fails if the run has ended without having begun.
        let _ = wait.recv();
        meddle(&Running(&running));
        running.join().expect("no panic")
    })
}

/// A run in a thread of its own.
struct Running<'a>(&'a ScopedJoinHandle<'a, Result<Run>>);

impl Running<'_> {
    /// Waits until something is so, or the run has ended, after which it never would be.
    fn until(&self, mut fact: impl FnMut() -> bool) {
        while !self.0.is_finished() && !fact() {
            std::thread::yield_now();
        }
    }
}

static GO_ON: AtomicBool = AtomicBool::new(false);

/// Twenty inserts into an empty table, one for each transaction, verified and kept.
fn job(directory: &Path) -> SqliteJob {
    let mut job = SqliteJob {
        transactions: 20,
        keep: true,
        ..SqliteJob::new(directory)
    };
    job.measurement.verify = true;
    job
}

/// For so long, and verified.
fn timed(time_ns: u64) -> Measurement {
    let mut measurement = Measurement {
        verify: true,
        ..Measurement::default()
    };
    measurement.limits.time_ns = Some(time_ns);
    measurement
}

/// For so long, with moments in which another connection gets the lock.
fn with_gaps(time_ns: u64) -> Measurement {
    let mut measurement = Measurement {
        verify: false,
        ..timed(time_ns)
    };
    measurement.pace.think_ns = 2_000_000;
    measurement
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

fn open(job: &SqliteJob) -> Result<Bench<'static>> {
    Bench::open(job, &GO_ON, &mut Quiet)
}

fn run(job: &SqliteJob) -> Run {
    let run = open(job).and_then(|mut bench| bench.run(&mut Quiet));
    run.unwrap_or_else(|error| panic!("{job:?}: {error}"))
}

/// Runs a job that has to be verified without a fault.
fn run_well(job: &SqliteJob) -> Run {
    let run = run(job);
    assert_eq!(run.failures, [], "{job:?}");
    let verification = run.verification.as_ref().expect("verified");
    assert_eq!(verification.wrong, 0, "{:?} {job:?}", verification.examples);
    run
}

fn refusal(job: &SqliteJob) -> Error {
    open(job).map(|_| ()).expect_err("refused")
}

fn path(job: &SqliteJob, set: u32, number: u32) -> PathBuf {
    let name = format!("iostep-bench/sqlite-{set}-{number}.db");
    job.directory.join(name)
}

/// Asks a database through a connection that knows nothing of the generator.
fn ask<T: rusqlite::types::FromSql>(path: &Path, sql: &str) -> T {
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).expect("open");
    db.query_row(sql, [], |row| row.get(0)).expect(sql)
}

fn rows(job: &SqliteJob, set: u32, number: u32, table: u32) -> i64 {
    let sql = format!("SELECT count(*) FROM t{table}");
    ask(&path(job, set, number), &sql)
}

/// How often a step was timed.
fn steps(run: &Run, step: Step) -> u64 {
    let found = run.latencies.iter().find(|latency| latency.step == step);
    found.map_or(0, |latency| latency.histogram.count())
}
