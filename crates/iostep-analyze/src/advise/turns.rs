//! What came of each run of a setting, by turns with the present one.

use iostep_model::bench::{Document, Run, RunState, Step, Warning, figures};
use iostep_model::manifest::Counters;
use serde::Serialize;

use crate::bench::{Measure, RunSummary, Summary};
use crate::stats::amount::ratio;

/// One run of one setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Observation {
    /// Commits a second of all threads, each with its share of the checkpoints, also of one that
    /// came after the end.
    pub commits_per_second: f64,
    /// What the device did for a commit, with its share of the checkpoints; `None` where none
    /// counted.
    pub cost: Option<CommitCost>,
    /// Bytes that the device wrote for a commit at least: without the checkpoint after the end
    /// where that was the only one, since a longer log shares it among more commits.
    pub written_least: Option<f64>,
    /// Checkpoints of the log, with the one after the end.
    pub checkpoints: u64,
}

/// What the device did for a commit, with its share of the checkpoints, also of one that came after
/// the end of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CommitCost {
    /// Bytes written.
    pub written_bytes: f64,
    /// Writes.
    pub writes: f64,
    /// Flushes; `None` if others may have asked for some.
    pub flushes: Option<f64>,
}

impl CommitCost {
    fn of(counted: &Counters, measured: &Run) -> Option<CommitCost> {
        let commits = measured.operations;
        let flushes = ratio(counted.flush.ios, commits);
        Some(CommitCost {
            written_bytes: ratio(counted.write.bytes, commits)?,
            writes: ratio(counted.write.ios, commits)?,
            flushes: flushes.filter(|_| figures::flushes_are_own(measured)),
        })
    }
}

/// Why a setting has no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setback {
    /// It means nothing here.
    NotApplicable(String),
    /// A run failed.
    Failed(String),
    /// A signal ended the run.
    Interrupted,
}

impl Observation {
    /// Of the document of a single run.
    ///
    /// Errors: a run that did not come to its end, and a log that waldio left to SQLite.
    pub fn of(document: &Document) -> Result<Observation, Setback> {
        let summary = Summary::of(document);
        let stock = summary.warnings.iter().find_map(|warning| match warning {
            Warning::StockLog { reason } => Some(reason),
            _ => None,
        });
        if let Some(reason) = stock {
            let why = format!("waldio leaves the log to SQLite: {reason}");
            return Err(Setback::NotApplicable(why));
        }
        let [run] = &summary.runs[..] else {
            return Err(Setback::Failed("not the result of one run".into()));
        };
        if run.state == RunState::Interrupted {
            return Err(Setback::Interrupted);
        }
        if let Some(failure) = run.failures.first() {
            let why = format!("{}: {}", failure.attempt, failure.reason);
            return Err(Setback::Failed(why));
        }
        let measured = document.runs.first();
        measured
            .and_then(|measured| Observation::of_run(run, measured))
            .ok_or_else(|| Setback::Failed("no transaction was committed".into()))
    }

    fn of_run(run: &RunSummary, measured: &Run) -> Option<Observation> {
        let time_ns = Measure::TimePerOperation.of(run).filter(|ns| *ns > 0.0)?;
        let checkpoints = run.latency(Step::Checkpoint).map_or(0, |found| found.count);
        let last = measured.last_checkpoint.unwrap_or_default();
        let all = measured.device.map(|device| device.and(last));
        let least = match figures::saw_a_cycle(checkpoints) {
            true => all,
            false => measured.device,
        };
        let cost = |counted: Counters| {
            let cost = CommitCost::of(&counted, measured);
            cost.filter(|_| figures::writes_are_own(measured))
        };
        Some(Observation {
            commits_per_second: measured.threads.len().max(1) as f64 * 1e9 / time_ns,
            cost: all.and_then(cost),
            written_least: least.and_then(cost).map(|cost| cost.written_bytes),
            checkpoints,
        })
    }

    /// True if a log's figures are with a checkpoint of as many commits as come between two.
    pub(super) fn is_of_a_cycle(&self) -> bool {
        figures::saw_a_cycle(self.checkpoints)
    }
}

/// Two runs of a candidate, with one of the present setting before and one after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Turn {
    /// Number of the candidate, from 0.
    pub candidate: usize,
    /// The present setting before.
    pub before: Observation,
    /// The candidate.
    pub own: [Observation; 2],
    /// The present setting after.
    pub after: Observation,
}

impl Turn {
    /// The candidate's commits a second over those of the present setting; `None` if one of them
    /// has none.
    pub(super) fn ratio(&self) -> Option<f64> {
        let rate = |a: &Observation, b: &Observation| a.commits_per_second + b.commits_per_second;
        let (own, present) = (
            rate(&self.own[0], &self.own[1]),
            rate(&self.before, &self.after),
        );
        (own > 0.0 && present > 0.0).then(|| own / present)
    }
}

/// Everything that was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turns {
    /// Each run of the present setting, in order.
    pub present: Vec<Observation>,
    /// Turns, in order.
    pub turns: Vec<Turn>,
    /// Candidates that have no figures, or no further ones, and why.
    pub setbacks: Vec<(usize, Setback)>,
    /// True if a signal ended it.
    pub interrupted: bool,
}

impl Turns {
    pub(super) fn of(&self, candidate: usize) -> Vec<&Turn> {
        let turns = self.turns.iter();
        turns.filter(|turn| turn.candidate == candidate).collect()
    }

    /// Why a candidate was given up.
    pub fn setback(&self, candidate: usize) -> Option<&Setback> {
        let mut setbacks = self.setbacks.iter();
        let found = setbacks.find(|(number, _)| *number == candidate);
        found.map(|(_, setback)| setback)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fixture;
    use iostep_model::bench::{Latency, LatencyRecorder};

    #[test]
    fn commits_a_second_hold_the_checkpoints() {
        let document = fixture::sqlite_wal(1);
        let found = Observation::of(&document).expect("a run");
        let summary = Summary::of(&document);
        let transaction = summary.runs[0].latency(Step::Transaction).expect("timed");
        let without = 2.0 * 1e9 / transaction.mean_ns;
        assert!(found.commits_per_second < without, "{found:?} {without}");
        assert!(
            found.commits_per_second > 0.9 * without,
            "{found:?} {without}"
        );
        assert!(found.checkpoints > 0);
        let cost = found.cost.expect("a device");
        assert_eq!((cost.flushes, cost.writes), (Some(1.0), 2.0));
    }

    #[test]
    fn flushes_that_may_be_another_partitions_are_no_cost_of_a_commit() {
        let mut document = fixture::sqlite_wal(1);
        let run = &mut document.runs[0];
        let mut others = iostep_model::bench::OthersIo::default();
        others.beside.write.ios = run.operations;
        run.others = Some(others);
        let found = Observation::of(&document).expect("a run");
        let cost = found.cost.expect("a device");
        assert_eq!((cost.flushes, cost.writes), (None, 2.0));
    }

    #[test]
    fn a_commit_holds_its_share_of_the_checkpoint_after_the_end() {
        let mut document = fixture::sqlite_wal(1);
        let without = Observation::of(&document).expect("a run");
        let run = &mut document.runs[0];
        let mut last = Counters::default();
        last.write.bytes = 1000 * run.operations;
        last.flush.ios = 2 * run.operations;
        run.last_checkpoint = Some(last);
        let many = Observation::of(&document).expect("a run");
        let written = |of: &Observation| of.cost.expect("a device").written_bytes;
        assert_eq!(written(&many), written(&without) + 1000.0);
        assert_eq!(many.cost.expect("a device").flushes, Some(3.0));
        assert_eq!(many.written_least, Some(written(&many)));
        let checkpoint = |latency: &&mut Latency| latency.step == Step::Checkpoint;
        let mut one = LatencyRecorder::new();
        one.record(1000);
        let latencies = document.runs[0].latencies.iter_mut();
        latencies
            .into_iter()
            .find(checkpoint)
            .expect("timed")
            .histogram = one.into();
        let single = Observation::of(&document).expect("a run");
        assert!(!single.is_of_a_cycle() && many.is_of_a_cycle());
        assert_eq!(written(&single), written(&many));
        assert_eq!(single.written_least, Some(written(&without)));
    }

    #[test]
    fn a_run_that_is_not_whole_has_no_figures() {
        let setback = |change: fn(&mut Document)| {
            let mut document = fixture::sqlite_wal(1);
            change(&mut document);
            Observation::of(&document).expect_err("a setback")
        };
        let interrupted = setback(|document| document.runs[0].state = RunState::Interrupted);
        assert_eq!(interrupted, Setback::Interrupted);
        assert!(matches!(setback(|d| d.runs.clear()), Setback::Failed(_)));
        let stock = setback(|document| {
            let reason = "tmpfs has no disk".into();
            document.warnings.push(Warning::StockLog { reason });
        });
        assert!(matches!(stock, Setback::NotApplicable(why) if why.contains("tmpfs")));
    }
}
