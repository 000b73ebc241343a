//! Everything that was found out, ranked.

use std::path::{Path, PathBuf};

use iostep_model::bench::{Environment, Warning};
use iostep_model::database::DatabaseFacts;
use iostep_model::durability::Durability;
use iostep_model::quantile::median;
use serde::Serialize;

use super::candidate::Candidate;
use super::gain::{Gain, Verdict};
use super::lines::lines;
use super::recording::Habit;
use super::setting::Setting;
use super::turns::{Observation, Setback, Turns};
use super::workload::Workload;
use crate::bench::{Estimate, Measure};

/// Version of the JSON.
pub const SCHEMA_VERSION: u32 = 1;

/// What is known before anything is measured, and where it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Situation {
    /// The directory whose filesystem and device are measured.
    pub directory: PathBuf,
    /// Where that filesystem is mounted.
    pub mount_point: PathBuf,
    /// The database, if one was named.
    pub database: Option<DatabaseFacts>,
    /// What a recording says, if one was named.
    pub recording: Option<Habit>,
    /// The transactions.
    pub workload: Workload,
    /// The setting that others are compared with.
    pub present: Setting,
    /// Where it is known from, in words.
    pub present_basis: Vec<String>,
    /// Length of a run, nanoseconds.
    pub run_ns: u64,
    /// How many turns each candidate was to have.
    pub rounds: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of the iostep that wrote it.
    pub iostep_version: String,
    pub place: Situation,
    /// Where it was measured; `None` if nothing was.
    pub environment: Option<Environment>,
    /// What spoils the figures.
    pub warnings: Vec<Warning>,
    /// True if a signal ended it: what is here was measured until then.
    pub interrupted: bool,
    /// The present setting.
    pub present: Row,
    /// The candidates, the best first: those that give nothing up come before those that do, and
    /// among these the one that gains most for certain, by [`Gain::at_least`].
    pub rows: Vec<Row>,
    /// [`Row::key`] of the best one that gives nothing up and is faster; `None` for keeping what
    /// there is.
    pub recommended: Option<String>,
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What `--candidates` names it by; `present` for the present one.
    pub key: String,
    /// Its name for people.
    pub name: String,
    pub setting: Setting,
    /// What a commit can still lose.
    pub durability: Durability,
    /// True if that is more than with the present setting.
    pub gives_up: bool,
    /// True if it is here for what it would give only.
    pub only_shown: bool,
    /// Whether it was measured.
    pub state: State,
    /// Commits a second over the runs, each with its share of the checkpoints.
    pub commits_per_second: Option<Estimate>,
    /// What a commit cost the device.
    pub device: DeviceCosts,
    /// Over the present setting.
    pub gain: Option<Gain>,
    /// [`Row::key`] of those with an equal claim to their place of which the turns do not tell
    /// whether they are faster or slower than this one.
    pub not_told_from: Vec<String>,
    /// What to put into the application, as the sqlite3 shell takes it.
    pub lines: Vec<String>,
}

/// What a commit cost the device: medians over the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DeviceCosts {
    /// Bytes written; `None` where no device counted.
    pub written_bytes: Option<f64>,
    pub writes: Option<f64>,
    pub flushes: Option<f64>,
    /// True if the log was never checkpointed within a run, so that these are without it.
    pub without_checkpoint: bool,
}

/// Whether a setting was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum State {
    Measured,
    /// It was not, on purpose or since a signal came.
    NotMeasured {
        reason: String,
    },
    /// It means nothing here.
    NotApplicable {
        reason: String,
    },
    /// A run failed.
    Failed {
        reason: String,
    },
}

/// A candidate, and why it is not to be measured if it is not.
pub type Planned = (Candidate, Option<String>);

impl Advice {
    /// Ranks what was measured; the numbers in `turns` are those of `planned`.
    pub fn new(
        place: Situation,
        planned: &[Planned],
        turns: &Turns,
        environment: Option<Environment>,
        warnings: Vec<Warning>,
    ) -> Advice {
        let ranking = Ranking {
            place: &place,
            turns,
        };
        let numbered = planned.iter().enumerate();
        let mut rows: Vec<Row> = numbered
            .map(|(number, (candidate, skipped))| ranking.row(number, candidate, skipped.as_ref()))
            .collect();
        rows.sort_by(|a, b| {
            a.rank()
                .partial_cmp(&b.rank())
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        let alike: Vec<Vec<String>> = rows.iter().map(|row| row.alike(&rows)).collect();
        for (row, alike) in rows.iter_mut().zip(alike) {
            row.not_told_from = alike;
        }
        let recommended = rows.iter().find(|row| row.is_recommendable());
        let interrupted = turns.interrupted;
        Advice {
            schema_version: SCHEMA_VERSION,
            iostep_version: env!("CARGO_PKG_VERSION").into(),
            environment,
            warnings,
            interrupted,
            present: ranking.present(),
            recommended: recommended.map(|row| row.key.clone()),
            rows,
            place,
        }
    }

    /// True if a candidate's run failed.
    pub fn has_failures(&self) -> bool {
        let mut rows = self.rows.iter();
        rows.any(|row| matches!(row.state, State::Failed { .. }))
    }
}

impl Row {
    /// Smaller is better.
    fn rank(&self) -> (bool, bool, bool, f64) {
        let measured = self.state == State::Measured;
        let at_least = self.gain.map_or(0.0, |gain| gain.at_least());
        (!measured, self.gives_up, self.only_shown, -at_least)
    }

    fn alike(&self, rows: &[Row]) -> Vec<String> {
        let group = |row: &Row| (row.state.clone(), row.gives_up, row.only_shown);
        let is_alike = |row: &&Row| {
            let gains = self.gain.zip(row.gain);
            row.key != self.key
                && group(row) == group(self)
                && gains.is_some_and(|(own, other)| !own.is_told_from(&other))
        };
        let alike = rows.iter().filter(is_alike);
        alike.map(|row| row.key.clone()).collect()
    }

    fn is_recommendable(&self) -> bool {
        let faster = self
            .gain
            .is_some_and(|gain| gain.verdict == Verdict::Faster);
        self.state == State::Measured && faster && !self.gives_up && !self.only_shown
    }
}

struct Ranking<'a> {
    place: &'a Situation,
    turns: &'a Turns,
}

impl Ranking<'_> {
    fn present(&self) -> Row {
        let setting = self.place.present;
        Row {
            key: "present".into(),
            name: setting.name(),
            setting,
            durability: setting.durability(),
            gives_up: false,
            only_shown: false,
            state: match self.turns.present.is_empty() {
                true => not_measured("a signal came before"),
                false => State::Measured,
            },
            commits_per_second: commits(&self.turns.present),
            device: device(&self.turns.present, setting.journal.is_log()),
            gain: None,
            not_told_from: Vec::new(),
            lines: self.lines(&setting),
        }
    }

    fn row(&self, number: usize, candidate: &Candidate, skipped: Option<&String>) -> Row {
        let setting = candidate.setting;
        let turns = self.turns.of(number);
        let runs: Vec<Observation> = turns.iter().flat_map(|turn| turn.own).collect();
        let loss = |setting: &Setting| setting.durability().worst();
        Row {
            key: candidate.key.clone(),
            name: candidate.name.clone(),
            setting,
            durability: setting.durability(),
            gives_up: loss(&setting) > loss(&self.place.present),
            only_shown: candidate.only_shown,
            state: self.state(number, turns.is_empty(), skipped),
            commits_per_second: commits(&runs),
            device: device(&runs, setting.journal.is_log()),
            gain: Gain::of(&turns),
            not_told_from: Vec::new(),
            lines: self.lines(&setting),
        }
    }

    fn state(&self, number: usize, without_turn: bool, skipped: Option<&String>) -> State {
        match (skipped, self.turns.setback(number)) {
            (Some(reason), _) => not_measured(reason),
            (None, Some(Setback::NotApplicable(reason))) => State::NotApplicable {
                reason: reason.clone(),
            },
            (None, Some(Setback::Failed(reason))) => State::Failed {
                reason: reason.clone(),
            },
            (None, Some(Setback::Interrupted) | None) if without_turn => {
                not_measured("a signal came before")
            }
            (None, _) => State::Measured,
        }
    }

    fn lines(&self, setting: &Setting) -> Vec<String> {
        let named = self
            .place
            .database
            .as_ref()
            .map(|facts| facts.path.as_path());
        let database = named.unwrap_or(Path::new("app.db"));
        lines(
            setting,
            &self.place.present,
            database,
            &self.place.mount_point,
        )
    }
}

fn not_measured(reason: &str) -> State {
    State::NotMeasured {
        reason: reason.to_owned(),
    }
}

fn commits(runs: &[Observation]) -> Option<Estimate> {
    let rates: Vec<f64> = runs.iter().map(|run| run.commits_per_second).collect();
    Estimate::of(Measure::OperationsPerSecond, &rates)
}

fn device(runs: &[Observation], has_log: bool) -> DeviceCosts {
    let of = |amount: fn(&Observation) -> Option<f64>| {
        let amounts: Vec<f64> = runs.iter().filter_map(amount).collect();
        median(&amounts)
    };
    DeviceCosts {
        written_bytes: of(|run| run.written_bytes),
        writes: of(|run| run.writes),
        flushes: of(|run| run.flushes),
        // The last one comes after the end.
        without_checkpoint: has_log
            && !runs.is_empty()
            && runs.iter().all(|run| run.checkpoints <= 1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    fn keys(advice: &Advice) -> Vec<&str> {
        advice.rows.iter().map(|row| row.key.as_str()).collect()
    }

    #[test]
    fn what_gives_nothing_up_comes_first() {
        let advice = fixture::advice();
        assert_eq!(
            keys(&advice),
            [
                "waldio-full",
                "wal-normal",
                "delete-full",
                "wal-off",
                "mount-data=writeback"
            ]
        );
        assert_eq!(advice.recommended.as_deref(), Some("waldio-full"));
        let given_up: Vec<bool> = advice.rows.iter().map(|row| row.gives_up).collect();
        assert_eq!(given_up, [false, true, true, true, false]);
    }

    #[test]
    fn what_is_certain_ranks_and_what_chance_made_does_not() {
        let lucky = [1.4, 40.0, 2.0, 55.0, 8.0];
        let advice = fixture::advice_of(&|candidate, round| match candidate {
            0 => lucky[round as usize],
            _ => 4.0,
        });
        let given_up: Vec<&Row> = advice
            .rows
            .iter()
            .filter(|row| row.gives_up && !row.only_shown)
            .collect();
        let wild = given_up
            .iter()
            .position(|row| row.gain.is_some_and(|gain| gain.ratio > 5.0))
            .expect("the lucky one gives something up");
        assert_eq!(wild, given_up.len() - 1);
        let alike = &given_up[wild].not_told_from;
        assert_eq!(alike.len(), given_up.len() - 1, "{alike:?}");
        let best = &advice.rows[0];
        assert!(best.not_told_from.is_empty(), "{:?}", best.not_told_from);
    }

    #[test]
    fn nothing_is_recommended_without_a_certain_gain() {
        let advice = fixture::advice_of(&|_, _| 1.0);
        assert_eq!(advice.recommended, None);
        let verdicts = advice.rows.iter().filter_map(|row| Some(row.gain?.verdict));
        assert!(
            verdicts
                .into_iter()
                .all(|verdict| verdict == Verdict::NoGain)
        );
    }

    #[test]
    fn a_signal_leaves_what_was_measured_and_marks_the_rest() {
        let mut turns = fixture::turns(&|_, _| 2.0);
        turns.turns.truncate(1);
        turns.interrupted = true;
        let advice = fixture::advice_with(&turns);
        assert!(advice.interrupted && !advice.has_failures());
        let measured = advice
            .rows
            .iter()
            .filter(|row| row.state == State::Measured);
        let measured: Vec<_> = measured.collect();
        assert_eq!(measured.len(), 1);
        let gain = measured[0].gain.expect("a turn");
        assert_eq!(gain.verdict, Verdict::TooFewTurns);
        assert_eq!(advice.recommended, None);
    }

    #[test]
    fn failures_and_what_means_nothing_have_their_reasons() {
        let mut turns = fixture::turns(&|_, _| 2.0);
        turns.setbacks = vec![
            (0, Setback::Failed("disk full".into())),
            (1, Setback::NotApplicable("tmpfs has no disk".into())),
        ];
        let advice = fixture::advice_with(&turns);
        assert!(advice.has_failures());
        let failed = advice.rows.iter().find(|row| row.key == "delete-full");
        let reason = "disk full".to_owned();
        assert_eq!(failed.expect("a row").state, State::Failed { reason });
    }

    #[test]
    fn a_log_that_was_never_checkpointed_says_so() {
        let run = |checkpoints| Observation {
            checkpoints,
            ..Observation::default()
        };
        assert!(device(&[run(1), run(1)], true).without_checkpoint);
        assert!(!device(&[run(1), run(3)], true).without_checkpoint);
        assert!(!device(&[run(0)], false).without_checkpoint);
        assert!(!device(&[], true).without_checkpoint);
    }
}
