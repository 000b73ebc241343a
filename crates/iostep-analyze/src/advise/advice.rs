//! Everything that was found out, ranked.

use std::path::{Path, PathBuf};

use iostep_model::bench::{Environment, Warning};
use iostep_model::database::DatabaseFacts;
use iostep_model::durability::{Durability, Loss};
use iostep_model::goal::Goal;
use iostep_model::quantile::median;
use serde::Serialize;

use super::candidate::Candidate;
use super::gain::{Gain, Verdict};
use super::lines::lines;
use super::recording::Habit;
use super::setting::Setting;
use super::turns::{CommitCost, Observation, Setback, Turns};
use super::wear::Wear;
use super::workload::Workload;
use crate::bench::{Estimate, Measure};

/// Version of the JSON.
pub const SCHEMA_VERSION: u32 = 2;

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
    /// What a setting is chosen for.
    pub goal: Goal,
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
    /// The candidates, the best for the goal first. Those that give nothing up come before those
    /// that do; among these the one that gains most for certain, by [`Gain::at_least`], or that
    /// writes least, by [`Wear::at_most`]. For durability the least loss comes before both.
    pub rows: Vec<Row>,
    /// [`Row::key`] of the one to take; `None` for keeping what there is. It gives nothing up, and
    /// it is faster for certain, writes less for certain, or loses less, as the goal is.
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
    /// What a commit writes, over the present setting; `None` where no device counted.
    pub wear: Option<Wear>,
    /// [`Row::key`] of those with an equal claim to their place of which the turns do not tell
    /// whether they are better or worse than this one.
    pub not_told_from: Vec<String>,
    /// What to put into the application, as the sqlite3 shell takes it.
    pub lines: Vec<String>,
}

/// What a commit cost the device, with its share of the checkpoints: medians over the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DeviceCosts {
    /// Bytes written; `None` where no device counted, and where nothing is synced, so that they are
    /// written after the run.
    pub written_bytes: Option<f64>,
    /// Writes; `None` as for the bytes.
    pub writes: Option<f64>,
    pub flushes: Option<f64>,
    /// True if the log was never checkpointed within a run: the checkpoint after it is shared by
    /// fewer commits than in an application, so that these are upper bounds.
    pub at_most: bool,
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
            a.rank(place.goal)
                .partial_cmp(&b.rank(place.goal))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        let alike: Vec<Vec<String>> = rows
            .iter()
            .map(|row| row.alike(place.goal, &rows))
            .collect();
        for (row, alike) in rows.iter_mut().zip(alike) {
            row.not_told_from = alike;
        }
        let present = ranking.present();
        let mut known = rows.iter();
        let recommended = known.find(|row| row.is_recommendable(place.goal, &present));
        let interrupted = turns.interrupted;
        Advice {
            schema_version: SCHEMA_VERSION,
            iostep_version: env!("CARGO_PKG_VERSION").into(),
            environment,
            warnings,
            interrupted,
            present,
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
    fn rank(&self, goal: Goal) -> (bool, bool, Option<Loss>, bool, f64) {
        let measured = self.state == State::Measured;
        let faster = -self.gain.map_or(0.0, |gain| gain.at_least());
        let (loss, order) = match goal {
            Goal::Speed => (None, faster),
            Goal::Wear => {
                let most = self.wear.and_then(|wear| wear.at_most);
                (None, most.unwrap_or(f64::INFINITY))
            }
            Goal::Durability => (Some(self.durability.worst()), faster),
        };
        (!measured, self.gives_up, loss, self.only_shown, order)
    }

    fn alike(&self, goal: Goal, rows: &[Row]) -> Vec<String> {
        let group = |row: &Row| {
            let (unmeasured, gives_up, loss, only_shown, _) = row.rank(goal);
            (unmeasured, gives_up, loss, only_shown, row.state.clone())
        };
        let is_told = |row: &Row| match goal {
            Goal::Wear => {
                let both = self.wear.zip(row.wear);
                both.map(|(own, other)| own.is_told_from(&other))
            }
            Goal::Speed | Goal::Durability => {
                let both = self.gain.zip(row.gain);
                both.map(|(own, other)| own.is_told_from(&other))
            }
        };
        let is_alike = |row: &&Row| {
            row.key != self.key && group(row) == group(self) && is_told(row) == Some(false)
        };
        let alike = rows.iter().filter(is_alike);
        alike.map(|row| row.key.clone()).collect()
    }

    fn is_recommendable(&self, goal: Goal, present: &Row) -> bool {
        let is_better = match goal {
            Goal::Speed => self
                .gain
                .is_some_and(|gain| gain.verdict == Verdict::Faster),
            Goal::Wear => self.wear.is_some_and(|wear| wear.is_less()),
            Goal::Durability => self.durability.worst() < present.durability.worst(),
        };
        self.state == State::Measured && is_better && !self.gives_up && !self.only_shown
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
            device: device(&self.turns.present, &setting),
            gain: None,
            wear: None,
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
            device: device(&runs, &setting),
            gain: Gain::of(&turns),
            wear: Wear::of(&turns).filter(|_| setting.syncs() && self.place.present.syncs()),
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

fn device(runs: &[Observation], setting: &Setting) -> DeviceCosts {
    let of = |amount: fn(&CommitCost) -> Option<f64>| {
        let costs = runs.iter().filter_map(|run| run.cost.as_ref());
        median(&costs.filter_map(amount).collect::<Vec<f64>>())
    };
    DeviceCosts {
        written_bytes: of(|cost| Some(cost.written_bytes)).filter(|_| setting.syncs()),
        writes: of(|cost| Some(cost.writes)).filter(|_| setting.syncs()),
        flushes: of(|cost| cost.flushes),
        at_most: setting.journal.is_log()
            && !runs.is_empty()
            && !runs.iter().any(Observation::is_of_a_cycle),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;
    use iostep_model::pragma::{Journal, Synchronous};

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
        let of = |journal| Setting::new(journal, Synchronous::Full, 4096);
        let (wal, delete) = (of(Journal::Wal), of(Journal::Delete));
        assert!(device(&[run(1), run(1)], &wal).at_most);
        assert!(!device(&[run(1), run(3)], &wal).at_most);
        assert!(!device(&[run(0)], &delete).at_most);
        assert!(!device(&[], &wal).at_most);
    }

    #[test]
    fn what_is_never_synced_has_no_written_bytes() {
        let advice = fixture::advice();
        let row = |key: &str| advice.rows.iter().find(|row| row.key == key);
        let off = row("wal-off").expect("a row");
        assert_eq!((off.device.written_bytes, off.wear), (None, None));
        let full = row("waldio-full").expect("a row");
        assert!(full.device.written_bytes.is_some() && full.wear.is_some());
    }

    /// Of a present log of 8 KiB; waldio and the rollback journal write so many bytes.
    fn wearing(waldio: (f64, f64), delete: f64) -> Advice {
        let turns = fixture::turns(&|_, _| 1.0);
        let turns = fixture::writing(turns, &|key| match key {
            "waldio-full" => waldio,
            "delete-full" => (delete, delete),
            _ => (8192.0, 8192.0),
        });
        fixture::advice_for(Goal::Wear, &turns)
    }

    #[test]
    fn for_wear_the_one_that_writes_least_for_certain_is_taken() {
        let advice = wearing((5000.0, 4000.0), 48_000.0);
        assert_eq!(advice.recommended.as_deref(), Some("waldio-full"));
        // It may write as much as the present one.
        let advice = wearing((8192.0, 4000.0), 48_000.0);
        assert_eq!(advice.recommended, None);
        // Without the first checkpoint nothing was written.
        let advice = wearing((5000.0, 0.0), 48_000.0);
        assert_eq!(advice.recommended.as_deref(), Some("waldio-full"));
    }

    #[test]
    fn for_durability_the_least_loss_is_taken_however_slow() {
        let turns = fixture::turns(&|_, _| 0.1);
        let advice = fixture::advice_for(Goal::Durability, &turns);
        // The present log loses nothing.
        assert_eq!(advice.recommended, None);
        let losses: Vec<Loss> = advice
            .rows
            .iter()
            .filter(|row| row.state == State::Measured)
            .map(|row| row.durability.worst())
            .collect();
        assert!(losses.is_sorted(), "{losses:?}");
        let place = Situation {
            present: Setting::new(Journal::Wal, Synchronous::Normal, 4096),
            ..advice.place.clone()
        };
        let planned = fixture::planned();
        let advice = Advice::new(place, &planned, &turns, None, Vec::new());
        assert_eq!(advice.recommended.as_deref(), Some("waldio-full"));
    }
}
