//! One run in numbers.

use iostep_model::bench::{
    Failure, Job, PageCacheState, Run, RunState, Step, ThreadRun, Verification, WaldioRun, figures,
    figures::whole_seconds,
};
use serde::Serialize;

use super::cost::{CpuCost, DeviceCost};
use super::latency::{StepLatency, time_per_operation_ns};
use super::series::SeriesMean;
use super::steady::Steadiness;

/// One run in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    /// Its number, from 1.
    pub run: u32,
    /// Whether it came to its end.
    pub state: RunState,
    /// `CLOCK_REALTIME` at the start of the measured part, ns since the epoch.
    pub start_wall_ns: u64,
    /// Length of the measured part.
    pub elapsed_ns: u64,
    /// Operations that succeeded.
    pub operations: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Over the measured part; `None` if it has no length.
    pub throughput: Option<Throughput>,
    /// Over the time that the threads were neither thinking nor waiting for their schedule; `None`
    /// if they never did.
    pub busy_throughput: Option<Throughput>,
    /// Mean time of an operation with its share of the syncs; for SQLite of a transaction with
    /// its share of the checkpoints. Nanoseconds.
    pub time_per_operation_ns: Option<f64>,
    /// The steps that were timed, in their order.
    pub latencies: Vec<StepLatency>,
    /// Operations a second, from the values of the whole seconds; the interval takes into account
    /// that neighbours resemble each other. `None` without a whole second.
    pub per_second: Option<SeriesMean>,
    /// Whether the throughput had settled.
    pub steadiness: Steadiness,
    /// Processor time and context switches.
    pub cpu: CpuCost,
    /// What the device did; `None` where none counted.
    pub device: Option<DeviceCost>,
    /// The page cache of the files at the start.
    pub page_cache: Option<PageCacheState>,
    /// What waldio said, if it was asked for.
    pub waldio: Option<WaldioRun>,
    /// Transactions that were committed by batch atomic writes, if those were asked for.
    pub atomic_commits: Option<u64>,
    /// How unequal the threads were; `None` for less than two.
    pub threads: Option<ThreadSpread>,
    /// Operations that failed.
    pub failures: Vec<Failure>,
    /// What reading back found.
    pub verification: Option<Verification>,
}

/// Work over time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Throughput {
    /// Operations or transactions a second.
    pub operations_per_second: f64,
    /// Payload bytes a second.
    pub bytes_per_second: f64,
}

/// How unequal threads were.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ThreadSpread {
    /// How many threads.
    pub threads: u64,
    /// Operations a second of the slowest, over the time that it ran.
    pub slowest_per_second: f64,
    pub fastest_per_second: f64,
    /// The slowest over the fastest, 0 to 1; `None` if none did anything.
    pub slowest_over_fastest: Option<f64>,
}

impl RunSummary {
    pub(super) fn of(job: &Job, number: u32, run: &Run) -> RunSummary {
        let mut latencies: Vec<StepLatency> =
            run.latencies.iter().filter_map(StepLatency::of).collect();
        latencies.sort_by_key(|latency| latency.step);
        let per_second = per_second(run);
        RunSummary {
            run: number,
            state: run.state,
            start_wall_ns: run.start_wall_ns,
            elapsed_ns: run.elapsed_ns,
            operations: run.operations,
            bytes: run.bytes,
            throughput: Throughput::over(run, run.elapsed_ns as f64),
            busy_throughput: Throughput::over(run, busy_ns(run)).filter(|_| run.idle_ns > 0),
            time_per_operation_ns: time_per_operation_ns(&run.latencies),
            latencies,
            per_second: SeriesMean::of(&per_second),
            steadiness: Steadiness::of(&per_second),
            cpu: CpuCost::of(run),
            device: DeviceCost::of(job, run),
            page_cache: run.page_cache,
            waldio: run.waldio.clone(),
            atomic_commits: run.atomic_commits,
            threads: ThreadSpread::of(&run.threads),
            failures: run.failures.clone(),
            verification: run.verification.clone(),
        }
    }

    /// How long a step took; `None` if it never happened.
    pub fn latency(&self, step: Step) -> Option<&StepLatency> {
        self.latencies.iter().find(|latency| latency.step == step)
    }

    /// True if it came to its end, nothing failed, and nothing that was read back was wrong.
    pub fn is_whole(&self) -> bool {
        let wrong = self.verification.as_ref().map_or(0, |found| found.wrong);
        self.state == RunState::Complete && self.failures.is_empty() && wrong == 0
    }
}

/// Operations a second in each whole second.
pub(super) fn per_second(run: &Run) -> Vec<f64> {
    whole_seconds(run)
        .filter_map(|second| figures::rate(second.operations, second, &run.seconds))
        .collect()
}

/// The mean over the threads of the time in which each was not idle, nanoseconds.
fn busy_ns(run: &Run) -> f64 {
    let elapsed_ns: f64 = run.threads.iter().map(|t| t.elapsed_ns as f64).sum();
    (elapsed_ns - run.idle_ns as f64) / run.threads.len().max(1) as f64
}

impl Throughput {
    fn over(run: &Run, time_ns: f64) -> Option<Throughput> {
        (time_ns > 0.0).then(|| Throughput {
            operations_per_second: run.operations as f64 / time_ns * 1e9,
            bytes_per_second: run.bytes as f64 / time_ns * 1e9,
        })
    }

    /// KiB a second, which Mobibench and others call KB/s.
    pub fn kib_per_second(&self) -> f64 {
        self.bytes_per_second / 1024.0
    }
}

impl ThreadSpread {
    fn of(threads: &[ThreadRun]) -> Option<ThreadSpread> {
        let rates: Vec<f64> = threads
            .iter()
            .filter(|thread| thread.elapsed_ns > 0)
            .map(|thread| thread.operations as f64 / thread.elapsed_ns as f64 * 1e9)
            .collect();
        let slowest = rates.iter().copied().reduce(f64::min)?;
        let fastest = rates.iter().copied().reduce(f64::max)?;
        (threads.len() > 1).then(|| ThreadSpread {
            threads: threads.len() as u64,
            slowest_per_second: slowest,
            fastest_per_second: fastest,
            slowest_over_fastest: (fastest > 0.0).then(|| slowest / fastest),
        })
    }
}
