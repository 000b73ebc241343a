//! Two documents side by side: do they differ, and by how much?

use iostep_model::bench::figures::whole_seconds;
use iostep_model::bench::{Document, Job, Run};
use iostep_model::disk::Disk;
use iostep_model::quantile::median;
use iostep_model::unit::Unit;
use serde::Serialize;

use super::difference::{self, Difference};
use super::measure::{Better, Measure};
use super::rank_test;
use super::run::per_second;
use super::sample::Interval;
use super::series::SeriesMean;
use super::student::welch_95;
use super::summary::Summary;

/// Differences that chance makes in less than one case of so many are found.
const SIGNIFICANT: f64 = 0.05;
/// More runs than anybody does: what a damaged file may cost.
const MOST_RUNS: usize = 1000;

/// What two documents have in common and what not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// What is counted: `operation` or `transaction`.
    pub work: &'static str,
    /// What else differs: if jobs do, the figures are of different things.
    pub differences: Vec<Difference>,
    /// The disks of both, where they are not the same kind of hardware; `None` where they are, or
    /// where either is not known. Two of a kind look the same.
    pub different_disks: Option<[Vec<Disk>; 2]>,
    /// Runs of the first and the second document that came to their end.
    pub runs: [u64; 2],
    /// Runs of either that did not, or found something wrong.
    pub broken_runs: [u64; 2],
    /// The measures that either has. Each is tested by itself: among twenty that do not differ,
    /// one is expected to look as if it did.
    pub rows: Vec<Row>,
    /// The measure that the whole is judged by: operations a second, or the time per operation
    /// where a rate was asked for.
    pub headline: Measure,
}

/// One measure of two documents.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    pub measure: Measure,
    pub unit: Unit,
    /// Which of two values is the better one.
    pub better: Better,
    /// The median of the first document's runs; `None` if they do not have it.
    pub first: Option<f64>,
    /// Of the second's.
    pub second: Option<f64>,
    /// The second over the first, the median of all pairs of runs; `None` without a positive
    /// value on both sides.
    pub ratio: Option<f64>,
    /// The 95 % confidence interval of the ratio.
    pub interval: Option<Interval>,
    /// The probability that chance alone makes such a difference; only from runs.
    pub probability: Option<f64>,
    /// What that rests on.
    pub basis: Basis,
    /// What it means.
    pub verdict: Verdict,
}

/// What a verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The runs, by the exact test of Mann and Whitney.
    Runs,
    /// The seconds of one run on each side, corrected for autocorrelation. Weaker: what differs
    /// from run to run (where files lie, what the machine does besides) is not in it.
    Seconds,
    /// Counts of jobs that end after a number of operations: the same work has the same counts in
    /// every run, so values that do not overlap differ, also with one run on each side.
    Counts,
    Nothing,
}

/// What a comparison of one measure means.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Verdict {
    /// The second is better.
    Better,
    /// The second is worse.
    Worse,
    /// No difference was found.
    NoDifference {
        /// A difference by more than this share would have been; `None` without an interval.
        seen_above: Option<f64>,
    },
    /// Too few runs to tell.
    TooFewRuns {
        /// So many on each side could.
        needed: u32,
    },
    /// Others used the device in every run of either, so that it is not known.
    Disturbed,
    /// Only one document has it.
    Missing,
}

/// One document is of files, the other of SQLite: no number of them is of the same thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("one is of files, the other of SQLite: they cannot be compared")]
pub struct DifferentWork;

/// Whether a measure is worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Judged {
    /// By this share: 0.1 is a tenth more, or a tenth fewer operations a second. 0 if it is not.
    WorseBy(f64),
    /// So many runs on each side could tell.
    TooFewRuns(u32),
    /// Others used the device, so that it is not known.
    Disturbed,
    /// Not both documents have it.
    Missing,
}

fn different_disks(first: &Document, second: &Document) -> Option<[Vec<Disk>; 2]> {
    let [one, other] = [first, second].map(|document| &document.environment.disks);
    let is_known = !one.is_empty() && !other.is_empty();
    let mut pairs = one.iter().zip(other);
    let is_same = one.len() == other.len() && pairs.all(|(a, b)| a.is_like(b));
    (is_known && !is_same).then(|| [one.clone(), other.clone()])
}

impl Comparison {
    /// Compares two documents; ratios are the second's over the first's.
    ///
    /// Errors: [`DifferentWork`].
    pub fn of(first: &Document, second: &Document) -> Result<Comparison, DifferentWork> {
        if std::mem::discriminant(&first.job) != std::mem::discriminant(&second.job) {
            return Err(DifferentWork);
        }
        let documents = [first, second];
        let summaries = documents.map(Summary::of);
        let sides = [0, 1].map(|side| Side {
            document: documents[side],
            summary: &summaries[side],
        });
        let paced = |job: &Job| job.measurement().pace.operations_per_second.is_some();
        Ok(Comparison {
            work: summaries[0].work,
            differences: difference::between(first, second),
            different_disks: different_disks(first, second),
            runs: sides.each_ref().map(|side| side.complete() as u64),
            broken_runs: sides.each_ref().map(Side::broken),
            rows: Measure::all()
                .filter_map(|measure| Row::of(measure, &sides))
                .collect(),
            headline: match paced(&first.job) || paced(&second.job) {
                true => Measure::TimePerOperation,
                false => Measure::OperationsPerSecond,
            },
        })
    }

    /// The row of [`Comparison::headline`]; `None` if neither document has it.
    pub fn headline(&self) -> Option<&Row> {
        self.rows.iter().find(|row| row.measure == self.headline)
    }

    /// Whether the second document is worse in a measure: what its row says, in a number.
    pub fn judge(&self, measure: Measure) -> Judged {
        let row = self.rows.iter().find(|row| row.measure == measure);
        let Some(row) = row else {
            return Judged::Missing;
        };
        match row.verdict {
            Verdict::Missing => Judged::Missing,
            Verdict::Disturbed => Judged::Disturbed,
            Verdict::Worse => Judged::WorseBy(row.worse_by()),
            Verdict::Better | Verdict::NoDifference { .. } => Judged::WorseBy(0.0),
            Verdict::TooFewRuns { needed } => Judged::TooFewRuns(needed),
        }
    }
}

/// A document and its numbers.
struct Side<'a> {
    document: &'a Document,
    summary: &'a Summary,
}

impl Side<'_> {
    /// True if it ends after a number of operations, which is what counts are the same for.
    fn is_of_a_number(&self) -> bool {
        let limits = &self.document.job.measurement().limits;
        limits.time_ns.is_none() && limits.ramp_ns == 0
    }

    /// True if others used the device in a run.
    fn is_disturbed(&self) -> bool {
        let mut devices = self
            .summary
            .runs
            .iter()
            .filter_map(|run| run.device.as_ref());
        devices.any(|device| !device.is_own)
    }

    fn values(&self, measure: Measure) -> Vec<f64> {
        let mut values = self.summary.values(measure);
        values.truncate(MOST_RUNS);
        values
    }

    fn complete(&self) -> usize {
        self.values(Measure::OperationsPerSecond).len()
    }

    fn broken(&self) -> u64 {
        let runs = self.summary.runs.iter();
        runs.filter(|run| !run.is_whole()).count() as u64
    }

    /// The measure second by second, if there is a single run and its seconds tell it.
    fn seconds(&self, measure: Measure) -> Option<SeriesMean> {
        let [run] = &self.document.runs[..] else {
            return None;
        };
        match measure {
            Measure::OperationsPerSecond => SeriesMean::of(&per_second(run)),
            Measure::TimePerOperation => SeriesMean::of(&time_per_second_ns(run)),
            _ => None,
        }
    }
}

/// The mean time of the operations of each whole second that has any.
fn time_per_second_ns(run: &Run) -> Vec<f64> {
    let busy = whole_seconds(run).filter(|second| second.operations > 0);
    busy.map(|second| second.latency_sum_ns as f64 / second.operations as f64)
        .collect()
}

impl Row {
    fn of(measure: Measure, sides: &[Side<'_>; 2]) -> Option<Row> {
        let [first, second] = sides.each_ref().map(|side| side.values(measure));
        let is_disturbed = measure.is_counted() && sides.iter().any(Side::is_disturbed);
        if first.is_empty() && second.is_empty() && !is_disturbed {
            return None;
        }
        let mut row = Row {
            measure,
            unit: measure.unit(),
            better: measure.better(),
            first: median(&first),
            second: median(&second),
            ratio: None,
            interval: None,
            probability: None,
            basis: Basis::Nothing,
            verdict: Verdict::Missing,
        };
        if first.is_empty() || second.is_empty() {
            if is_disturbed {
                row.verdict = Verdict::Disturbed;
            }
            return Some(row);
        }
        let [few, many] = [first.len().min(second.len()), first.len().max(second.len())];
        let enough = few >= 3 && rank_test::least_probability(few, many) <= SIGNIFICANT;
        let series = sides.each_ref().map(|side| side.seconds(measure));
        Some(match series {
            _ if enough => row.judged_by_runs(&first, &second),
            [Some(first), Some(second)] => row.judged_by_seconds(&first, &second),
            _ if measure.is_counted() && sides.iter().all(Side::is_of_a_number) => {
                row.judged_by_counts(&first, &second)
            }
            _ => row.too_few(&first, &second),
        })
    }

    fn judged_by_runs(mut self, first: &[f64], second: &[f64]) -> Row {
        let ratio = rank_test::ratio(first, second);
        let probability = rank_test::probability(first, second);
        self.ratio = ratio.map(|(middle, _)| middle);
        self.interval = ratio.and_then(|(_, interval)| interval);
        self.probability = Some(probability);
        self.basis = Basis::Runs;
        let risen = match self.ratio {
            Some(ratio) => ratio > 1.0,
            None => self.second > self.first,
        };
        self.verdict = match probability <= SIGNIFICANT {
            true => self.changed(risen),
            false => self.unchanged(),
        };
        self
    }

    /// Source: the delta method for the logarithm of a ratio of two means.
    fn judged_by_seconds(mut self, first: &SeriesMean, second: &SeriesMean) -> Row {
        let relative = |series: &SeriesMean| {
            let error = series.standard_error.filter(|_| series.mean > 0.0)?;
            Some((error / series.mean, series.effective_values))
        };
        let (Some(a), Some(b)) = (relative(first), relative(second)) else {
            return self.too_few(&[first.mean], &[second.mean]);
        };
        let ratio = second.mean / first.mean;
        let factor = welch_95([a, b]).exp();
        let interval = Interval {
            low: ratio / factor,
            high: ratio * factor,
        };
        self.ratio = Some(ratio);
        self.interval = Some(interval);
        self.basis = Basis::Seconds;
        self.verdict = match interval.low > 1.0 || interval.high < 1.0 {
            true => self.changed(ratio > 1.0),
            false => self.unchanged(),
        };
        self
    }

    fn judged_by_counts(mut self, first: &[f64], second: &[f64]) -> Row {
        let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.ratio = rank_test::ratio(first, second).map(|(middle, _)| middle);
        self.basis = Basis::Counts;
        let (risen, fallen) = (least(second) > most(first), most(second) < least(first));
        self.verdict = match risen || fallen {
            true => self.changed(risen),
            false => self.unchanged(),
        };
        self
    }

    /// By which share a worse second one is worse; infinite for something beside nothing.
    fn worse_by(&self) -> f64 {
        let (first, second) = (self.first.unwrap_or(0.0), self.second.unwrap_or(0.0));
        self.ratio
            .map_or_else(|| second / first - 1.0, |ratio| ratio - 1.0)
            .abs()
    }

    fn too_few(mut self, first: &[f64], second: &[f64]) -> Row {
        self.ratio = rank_test::ratio(first, second).map(|(middle, _)| middle);
        let enough = |runs: &u32| {
            let runs = *runs as usize;
            rank_test::least_probability(runs, runs) <= SIGNIFICANT
        };
        self.verdict = Verdict::TooFewRuns {
            needed: (3..)
                .find(enough)
                .expect("four runs on each side are enough"),
        };
        self
    }

    fn changed(&self, risen: bool) -> Verdict {
        match risen == (self.better == Better::Higher) {
            true => Verdict::Better,
            false => Verdict::Worse,
        }
    }

    fn unchanged(&self) -> Verdict {
        let seen_above = |interval: Interval| (interval.high - 1.0).max(1.0 - interval.low);
        Verdict::NoDifference {
            seen_above: self.interval.map(seen_above),
        }
    }
}

#[cfg(test)]
mod tests;
