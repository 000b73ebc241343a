//! What several runs say about a number.

use iostep_model::bench::{Run, RunState};
use iostep_model::quantile::median;
use serde::Serialize;

use super::measure::Measure;
use super::sample::{Interval, mean};

/// One number over all complete runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Which number.
    pub measure: Measure,
    /// Complete runs that have it.
    pub runs: u64,
    pub median: f64,
    /// The least.
    pub minimum: f64,
    /// The greatest.
    pub maximum: f64,
    pub mean: f64,
    /// The 95 % confidence interval of the mean; `None` for a single run.
    pub interval: Option<Interval>,
    /// Half the interval over the median; `None` for a single run or a median of 0.
    pub spread: Option<f64>,
}

impl Estimate {
    /// Of the runs' values; `None` without any.
    ///
    /// Source of the interval: Georges, Buytaert, Eeckhout, Statistically Rigorous Java
    /// Performance Evaluation, OOPSLA 2007, section 3.2: Student's t over the runs' values, since
    /// what is inside of one run is not independent.
    pub(crate) fn of(measure: Measure, values: &[f64]) -> Option<Estimate> {
        let mean = mean(values)?;
        let median = median(values)?;
        let interval = Interval::of_mean(values);
        Some(Estimate {
            measure,
            runs: values.len() as u64,
            median,
            minimum: values.iter().copied().fold(f64::INFINITY, f64::min),
            maximum: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            mean,
            interval,
            spread: interval
                .filter(|_| median > 0.0)
                .map(|interval| interval.half_width() / median),
        })
    }
}

/// Half of the 95 % confidence interval of the throughput over its median, from 0 on: what a
/// bound on the spread is compared with. `None` for less than two complete runs.
pub fn spread(runs: &[Run]) -> Option<f64> {
    let complete = runs.iter().filter(|run| run.state == RunState::Complete);
    let rates: Vec<f64> = complete
        .filter(|run| run.elapsed_ns > 0)
        .map(|run| run.operations as f64 / run.elapsed_ns as f64)
        .collect();
    Estimate::of(Measure::OperationsPerSecond, &rates)?.spread
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fixture;

    #[test]
    fn the_interval_is_the_textbooks() {
        let values = [10.0, 12.0, 11.0, 13.0, 14.0];
        let found = Estimate::of(Measure::OperationsPerSecond, &values).expect("values");
        assert_eq!((found.median, found.mean), (12.0, 12.0));
        let interval = found.interval.expect("five runs");
        // 2.776 * sqrt(2.5 / 5)
        assert!((interval.high - 13.963).abs() < 0.001, "{interval:?}");
        assert!((found.spread.expect("a median") - 1.963 / 12.0).abs() < 1e-4);
    }

    #[test]
    fn one_run_has_no_spread_and_incomplete_runs_do_not_count() {
        let mut runs = fixture::write_fdatasync(3).runs;
        assert!(spread(&runs).is_some_and(|spread| spread > 0.0));
        assert_eq!(spread(&runs[..1]), None);
        assert_eq!(spread(&[]), None);
        for run in &mut runs[1..] {
            run.state = RunState::Interrupted;
        }
        assert_eq!(spread(&runs), None);
    }
}
