//! What the figures themselves say against a measurement.

use std::mem::discriminant;

use iostep_model::bench::figures::{self, is_too_short};
use iostep_model::bench::{
    CheckpointPolicy, Document, Job, Pace, ReadWritten, Run, RunState, SqliteOperation, Step,
    Warning,
};
use iostep_model::quantile::median;

use super::cost::{syncs, writes};
use super::run::RunSummary;
use super::steady::Steadiness;

/// So many processes are named.
const NAMED: usize = 3;
/// A rate is reached within this share.
const RATE: f64 = 0.05;
/// From this share of the machine on others matter. The kernel's own threads that write for the
/// load are among them, so it is not small.
const OTHERS: f64 = 0.25;
/// From this share on the hypervisor matters.
const STEAL: f64 = 0.02;

/// The warnings of a document, and those of its runs that it does not have yet.
pub(super) fn of(document: &Document, runs: &[RunSummary]) -> Vec<Warning> {
    let mut warnings = document.warnings.clone();
    let known: Vec<_> = warnings.iter().map(discriminant).collect();
    let single = [
        short(runs),
        missed_rate(document.job.measurement().pace, runs),
        others(runs),
        steal(runs),
    ];
    let of_device = [
        busy_device(document),
        stayed_in_memory(document),
        without_checkpoint(document),
    ];
    let single = single.into_iter().chain(of_device);
    let found = single.flatten().chain(unsteady(runs));
    warnings.extend(found.filter(|warning| !known.contains(&discriminant(warning))));
    warnings
}

fn short(runs: &[RunSummary]) -> Option<Warning> {
    let elapsed_ns = runs.iter().map(|run| run.elapsed_ns).min()?;
    is_too_short(elapsed_ns).then_some(Warning::TooShort { elapsed_ns })
}

fn missed_rate(pace: Pace, runs: &[RunSummary]) -> Option<Warning> {
    let asked = pace.operations_per_second?;
    let rates: Vec<f64> = runs
        .iter()
        .filter_map(|run| Some(run.throughput?.operations_per_second))
        .collect();
    let reached = median(&rates)?;
    (reached < asked * (1.0 - RATE)).then_some(Warning::RateNotReached { asked, reached })
}

fn others(runs: &[RunSummary]) -> Option<Warning> {
    let shares = runs.iter().filter_map(|run| Some(run.cpu.machine?.others));
    let others = shares.reduce(f64::max)?;
    (others >= OTHERS).then_some(Warning::BusyMachine { others })
}

fn steal(runs: &[RunSummary]) -> Option<Warning> {
    let shares = runs.iter().filter_map(|run| Some(run.cpu.machine?.steal));
    let share = shares.reduce(f64::max)?;
    (share >= STEAL).then_some(Warning::Steal { share })
}

/// Of all runs that others disturbed, and of their bytes.
fn busy_device(document: &Document) -> Option<Warning> {
    let is_own = |run: &&Run| figures::writes_are_own(run) && figures::reads_are_own(run);
    let disturbed: Vec<&Run> = document.runs.iter().filter(|run| !is_own(run)).collect();
    let mut sums = [ReadWritten::default(); 2];
    for run in &disturbed {
        let device = run.device.unwrap_or_default();
        let device = ReadWritten {
            read_bytes: device.read.bytes,
            written_bytes: device.write.bytes,
        };
        for (sum, more) in sums.iter_mut().zip([figures::others(run), device]) {
            sum.read_bytes = sum.read_bytes.saturating_add(more.read_bytes);
            sum.written_bytes = sum.written_bytes.saturating_add(more.written_bytes);
        }
    }
    let mut processes: Vec<String> = Vec::new();
    for process in disturbed
        .iter()
        .flat_map(|run| &run.others)
        .flat_map(|of| &of.processes)
    {
        if !processes.contains(&process.name) && processes.len() < NAMED {
            processes.push(process.name.clone());
        }
    }
    let [others, device] = sums;
    (!disturbed.is_empty()).then_some(Warning::BusyDevice {
        others,
        device,
        processes,
    })
}

/// A job that writes without syncing, most of whose payload no device has got.
fn stayed_in_memory(document: &Document) -> Option<Warning> {
    let stays = |run: &&Run| {
        let written = run.device.map(|device| device.write.bytes);
        let is_little = |written: u64| written.saturating_mul(2) < run.bytes;
        run.state == RunState::Complete && written.is_some_and(is_little)
    };
    let run = document.runs.iter().find(stays)?;
    (writes(&document.job) && !syncs(&document.job)).then(|| Warning::StayedInMemory {
        payload_bytes: run.bytes,
        written_bytes: run.device.map_or(0, |device| device.write.bytes),
    })
}

/// A log that is checkpointed, but in some run was not before its end.
fn without_checkpoint(document: &Document) -> Option<Warning> {
    let Job::Sqlite(job) = &document.job else {
        return None;
    };
    let checkpoints = |run: &Run| {
        let mut latencies = run.latencies.iter();
        let found = latencies.find(|latency| latency.step == Step::Checkpoint);
        found.map_or(0, |latency| latency.histogram.count())
    };
    let of_part = |run: &Run| {
        let is_counted = run.state == RunState::Complete && run.device.is_some();
        is_counted && !figures::saw_a_cycle(checkpoints(run))
    };
    let is_checkpointed = job.journal.is_log()
        && job.checkpoint != CheckpointPolicy::Never
        && job.operation != SqliteOperation::Read
        && syncs(&document.job);
    let is_part = is_checkpointed && document.runs.iter().any(of_part);
    is_part.then_some(Warning::WithoutCheckpoint)
}

fn unsteady(runs: &[RunSummary]) -> impl Iterator<Item = Warning> + '_ {
    runs.iter().filter_map(|run| match run.steadiness {
        Steadiness::NotSteady { reason } => Some(Warning::NotSteady {
            run: run.run,
            reason: reason.to_string(),
        }),
        Steadiness::Steady | Steadiness::TooShort => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Summary, fixture};

    #[test]
    fn a_quiet_steady_run_has_no_warning() {
        assert_eq!(Summary::of(&fixture::write_fdatasync(3)).warnings, []);
    }

    #[test]
    fn what_the_figures_show_is_warned_of() {
        let mut document = fixture::write_fdatasync(2);
        let iostep_model::bench::Job::File(job) = &mut document.job else {
            panic!("a file job")
        };
        job.measurement.pace.operations_per_second = Some(5000.0);
        for second in &mut document.runs[1].seconds[..2] {
            second.operations *= 3;
        }
        let machine = document.runs[0].cpu.machine.as_mut().expect("a machine");
        machine.user_ns *= 20;
        machine.steal_ns *= 10;
        let warnings = Summary::of(&document).warnings;
        let [rate, others, steal, unsteady] = &warnings[..] else {
            panic!("{warnings:?}");
        };
        assert!(matches!(
            rate,
            Warning::RateNotReached { asked: 5000.0, .. }
        ));
        assert!(matches!(others, Warning::BusyMachine { .. }));
        assert!(matches!(steal, Warning::Steal { .. }));
        assert!(matches!(unsteady, Warning::NotSteady { run: 2, .. }));
    }

    #[test]
    fn a_log_that_was_not_checkpointed_within_a_run_is_warned_of() {
        let mut document = fixture::sqlite_wal(2);
        let warned = |document: &Document| {
            let warnings = Summary::of(document).warnings;
            warnings.contains(&Warning::WithoutCheckpoint)
        };
        assert!(!warned(&document));
        let latencies = &mut document.runs[1].latencies;
        latencies.retain(|latency| latency.step != Step::Checkpoint);
        assert!(warned(&document));
        let Job::Sqlite(job) = &mut document.job else {
            panic!("a SQLite job")
        };
        job.checkpoint = CheckpointPolicy::Never;
        assert!(!warned(&document));
    }

    #[test]
    fn what_stayed_in_memory_is_warned_of_unless_it_was_synced() {
        let mut document = fixture::write_fdatasync(1);
        let run = &mut document.runs[0];
        let written = run.bytes / 80;
        run.device.as_mut().expect("a device").write.bytes = written;
        let stayed = |document: &Document| {
            let mut warnings = Summary::of(document).warnings.into_iter();
            warnings.find(|warning| matches!(warning, Warning::StayedInMemory { .. }))
        };
        assert_eq!(stayed(&document), None);
        let iostep_model::bench::Job::File(job) = &mut document.job else {
            panic!("a file job")
        };
        job.sync = iostep_model::bench::Sync::None;
        let expected = Warning::StayedInMemory {
            payload_bytes: document.runs[0].bytes,
            written_bytes: written,
        };
        assert_eq!(stayed(&document), Some(expected));
    }

    #[test]
    fn whose_io_it_was_is_warned_of_by_name() {
        use iostep_model::bench::{OtherProcess, OthersIo};
        let mut document = fixture::write_fdatasync(2);
        let done = ReadWritten {
            written_bytes: 10 << 20,
            ..ReadWritten::default()
        };
        let process = |name: &str| OtherProcess {
            pid: 7,
            name: name.into(),
            done,
        };
        document.runs[1].others = Some(OthersIo {
            here: done,
            processes: vec![process("dd")],
            ..OthersIo::default()
        });
        let warnings = Summary::of(&document).warnings;
        let [
            Warning::BusyDevice {
                others, processes, ..
            },
        ] = &warnings[..]
        else {
            panic!("{warnings:?}");
        };
        assert_eq!(
            (*others, processes.as_slice()),
            (done, &["dd".to_owned()][..])
        );
    }

    #[test]
    fn a_warning_that_is_there_is_not_given_again() {
        let mut document = fixture::write_fdatasync(1);
        document.runs[0].elapsed_ns = 10;
        let known = Warning::TooShort { elapsed_ns: 7 };
        document.warnings = vec![Warning::OnBattery, known.clone()];
        let found = Summary::of(&document).warnings;
        let short = found
            .iter()
            .filter(|w| matches!(w, Warning::TooShort { .. }));
        assert_eq!(short.collect::<Vec<_>>(), [&known]);
    }
}
