//! What came of each run of a setting, by turns with the present one.

use iostep_model::bench::{Document, RunState, Step, Warning};
use serde::Serialize;

use crate::bench::{Measure, RunSummary, Summary};

/// One run of one setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Observation {
    /// Commits a second of all threads, each with its share of the checkpoints, also of one that
    /// came after the end.
    pub commits_per_second: f64,
    /// Bytes that the device wrote for a commit; `None` where none counted.
    pub written_bytes: Option<f64>,
    /// Writes of the device for a commit.
    pub writes: Option<f64>,
    /// Flushes of the device for a commit.
    pub flushes: Option<f64>,
    /// Checkpoints of the log, with the one after the end.
    pub checkpoints: u64,
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
        let threads = document.runs.first().map_or(1, |run| run.threads.len());
        Observation::of_run(run, threads)
            .ok_or_else(|| Setback::Failed("no transaction was committed".into()))
    }

    fn of_run(run: &RunSummary, threads: usize) -> Option<Observation> {
        let time_ns = Measure::TimePerOperation.of(run).filter(|ns| *ns > 0.0)?;
        let device = run.device.as_ref();
        Some(Observation {
            commits_per_second: threads.max(1) as f64 * 1e9 / time_ns,
            written_bytes: Measure::WrittenPerOperation.of(run),
            writes: device.and_then(|device| device.writes_per_operation),
            flushes: Measure::FlushesPerOperation.of(run),
            checkpoints: run.latency(Step::Checkpoint).map_or(0, |found| found.count),
        })
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
        assert_eq!((found.flushes, found.writes), (Some(1.0), Some(2.0)));
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
