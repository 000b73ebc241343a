//! Small documents, made by hand, for tests of reports.

use iostep_model::bench::{
    Access, Cpu, Document, Environment, FileJob, Job, Latency, LatencyRecorder, MachineTime,
    PageCacheState, Run, RunState, SCHEMA_VERSION, Second, SqliteJob, SqliteLibrary, Step, Sync,
    Target, ThreadRun,
};
use iostep_model::host::Host;
use iostep_model::manifest::{Counters, Device, Filesystem, Totals};
use iostep_model::pragma::Journal;

const SECOND_NS: u64 = 1_000_000_000;
const RECORD_BYTES: u64 = 4096;

/// Two threads that write 4 KiB and call fdatasync(2) after each, for so many runs of six and a
/// half seconds; each run is a little slower than the one before.
pub fn write_fdatasync(runs: u32) -> Document {
    let runs = (0..runs)
        .map(|number| run(1000 - 10 * u64::from(number), &file_steps))
        .collect();
    document(Job::File(file_job()), None, runs)
}

/// Inserts in WAL mode, for so many runs.
pub fn sqlite_wal(runs: u32) -> Document {
    let runs = (0..runs)
        .map(|number| {
            let mut run = run(400 - 4 * u64::from(number), &sqlite_steps);
            run.page_cache = None;
            run
        })
        .collect();
    document(Job::Sqlite(sqlite_job()), Some(sqlite_library()), runs)
}

/// The job of [`write_fdatasync`].
pub fn file_job() -> FileJob {
    FileJob {
        access: Access::RandomWrite,
        record_bytes: RECORD_BYTES,
        threads: 2,
        sync: Sync::Fdatasync,
        ..FileJob::new(Target::Directory("/mnt/test".into()))
    }
}

/// The job of [`sqlite_wal`].
pub fn sqlite_job() -> SqliteJob {
    SqliteJob {
        journal: Journal::Wal,
        threads: 2,
        ..SqliteJob::new("/mnt/test")
    }
}

fn sqlite_library() -> SqliteLibrary {
    SqliteLibrary {
        path: None,
        version: "3.51.0".into(),
        source_id: "2026-01-01 00:00:00 0123456789abcdef".into(),
        compile_options: vec!["THREADSAFE=1".into()],
        vfs: "unix".into(),
        settings: [
            ("journal_mode", "wal"),
            ("synchronous", "2"),
            ("page_size", "4096"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
    }
}

fn document(job: Job, sqlite: Option<SqliteLibrary>, runs: Vec<Run>) -> Document {
    Document {
        schema_version: SCHEMA_VERSION,
        iostep_version: "0.1.0".into(),
        arguments: vec!["iostep".into(), "bench".into()],
        job,
        environment: environment(sqlite),
        runs,
        warnings: Vec::new(),
    }
}

fn environment(sqlite: Option<SqliteLibrary>) -> Environment {
    Environment {
        host: Host {
            kernel: "6.18.0".into(),
            machine: "x86_64".into(),
            processor: "Example CPU".into(),
            cpus: 2,
            android: None,
        },
        memory_bytes: 8 << 30,
        clock_source: "tsc".into(),
        filesystem: Some(Filesystem {
            kind: "ext4".into(),
            mount_point: "/mnt/test".into(),
            options: "rw,relatime".into(),
            block_bytes: 4096,
            ..Filesystem::default()
        }),
        device: Some(Device {
            name: "nvme0n1p2".into(),
            major: 259,
            minor: 2,
            part_of: Some("nvme0n1".into()),
            start_sector: 2048,
            sectors: 1 << 27,
            logical_block_bytes: Some(512),
            physical_block_bytes: Some(4096),
            volatile_write_cache: Some(true),
            fua: Some(true),
            scheduler: Some("none".into()),
            rotational: Some(false),
        }),
        flushes_of: vec!["nvme0n1".into()],
        disks: Vec::new(),
        sqlite,
    }
}

/// A run of six and a half seconds with about so many operations in each, whose steps `steps_of`
/// tells for an operation's number.
fn run(rate: u64, steps_of: &dyn Fn(u64) -> Vec<(Step, u64)>) -> Run {
    let seconds: Vec<Second> = (0..7).map(|number| second(rate, number)).collect();
    let operations: u64 = seconds.iter().map(|second| second.operations).sum();
    let elapsed_ns = seconds.iter().map(|second| second.length_ns).sum();
    let thread = |operations| ThreadRun {
        operations,
        bytes: operations * RECORD_BYTES,
        elapsed_ns,
    };
    let slower = operations * 48 / 100;
    Run {
        state: RunState::Complete,
        start_wall_ns: 1_780_000_000 * SECOND_NS,
        elapsed_ns,
        operations,
        bytes: operations * RECORD_BYTES,
        idle_ns: 0,
        latencies: latencies(operations, steps_of),
        cpu: cpu(operations, elapsed_ns),
        device: Some(counters(operations)),
        waldio: None,
        atomic_commits: None,
        others: None,
        last_checkpoint: None,
        page_cache: Some(PageCacheState {
            pages: 32_768,
            resident_pages: 0,
            dirty_pages: None,
        }),
        threads: vec![thread(slower), thread(operations - slower)],
        failures: Vec::new(),
        verification: None,
        seconds,
    }
}

fn second(rate: u64, number: u64) -> Second {
    // A little up and down, without a trend.
    const PERCENT: [u64; 7] = [100, 98, 103, 97, 101, 99, 51];
    let operations = rate * PERCENT[number as usize % 7] / 100;
    Second {
        length_ns: if number == 6 {
            SECOND_NS / 2
        } else {
            SECOND_NS
        },
        operations,
        bytes: operations * RECORD_BYTES,
        latency_sum_ns: 2 * SECOND_NS - 1_000 * operations,
        latency_max_ns: 9_000_000,
        device: Some(counters(operations)),
    }
}

fn counters(operations: u64) -> Counters {
    Counters {
        write: Totals {
            ios: 2 * operations,
            bytes: 3 * RECORD_BYTES * operations,
        },
        flush: Totals {
            ios: operations,
            bytes: 0,
        },
        ..Counters::default()
    }
}

fn cpu(operations: u64, elapsed_ns: u64) -> Cpu {
    Cpu {
        user_ns: 2_000 * operations,
        system_ns: 30_000 * operations,
        voluntary_switches: operations,
        involuntary_switches: operations / 100,
        machine: Some(MachineTime {
            user_ns: elapsed_ns / 20,
            system_ns: elapsed_ns / 5,
            idle_ns: elapsed_ns,
            iowait_ns: elapsed_ns * 7 / 10,
            irq_ns: elapsed_ns / 100,
            softirq_ns: elapsed_ns / 50,
            steal_ns: elapsed_ns / 50,
        }),
    }
}

fn latencies(operations: u64, steps_of: &dyn Fn(u64) -> Vec<(Step, u64)>) -> Vec<Latency> {
    let mut latencies: Vec<(Step, LatencyRecorder)> = Vec::new();
    for (step, latency_ns) in (0..operations).flat_map(steps_of) {
        let found = latencies.iter().position(|latency| latency.0 == step);
        let place = found.unwrap_or_else(|| {
            latencies.push((step, LatencyRecorder::new()));
            latencies.len() - 1
        });
        latencies[place].1.record(latency_ns);
    }
    let latencies = latencies.into_iter();
    let latency = |(step, recorder): (Step, LatencyRecorder)| Latency {
        step,
        histogram: recorder.into(),
    };
    latencies.map(latency).collect()
}

fn file_steps(number: u64) -> Vec<(Step, u64)> {
    let write_ns = 5_000 + 10 * (number % 100);
    let slow_ns = if number % 500 == 499 { 8_000_000 } else { 0 };
    let sync_ns = 1_900_000 + 2_000 * (number % 97) + slow_ns;
    vec![
        (Step::Total, write_ns + sync_ns),
        (Step::Write, write_ns),
        (Step::Sync, sync_ns),
    ]
}

fn sqlite_steps(number: u64) -> Vec<(Step, u64)> {
    let commit_ns = 2_000_000 + 3_000 * (number % 89);
    let mut steps = vec![
        (Step::Sync, commit_ns - 100_000),
        (Step::Transaction, commit_ns + 30_000),
        (Step::Commit, commit_ns),
    ];
    if number % 300 == 299 {
        steps.push((Step::Checkpoint, 25_000_000));
    }
    steps
}
