//! What the runs of a cell say about a number.

use iostep_model::lab::{CellResult, Measure};
use iostep_model::quantile::median;
use serde::Serialize;

/// A number over the runs of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Value {
    pub median: f64,
    /// The least.
    pub minimum: f64,
    /// The greatest.
    pub maximum: f64,
    /// How many runs have it.
    pub runs: u64,
}

impl Value {
    /// Of a cell; `None` if no run has the number. Runs of a cell that failed or was interrupted
    /// count: each was complete itself.
    pub fn of(measure: Measure, result: &CellResult) -> Option<Value> {
        let numbers = result.runs.iter().filter_map(|run| measure.of(run));
        Value::of_numbers(&numbers.collect::<Vec<f64>>())
    }

    fn of_numbers(numbers: &[f64]) -> Option<Value> {
        let values = numbers.iter().copied().filter(|value| value.is_finite());
        let values: Vec<f64> = values.collect();
        Some(Value {
            median: median(&values)?,
            minimum: values.iter().copied().fold(f64::INFINITY, f64::min),
            maximum: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            runs: values.len() as u64,
        })
    }

    /// What `combine` makes of the numbers of cells that took turns, round by round; `None` if they
    /// did not, or if a run lacks the number.
    pub(super) fn by_turns(
        measure: Measure,
        results: &[&CellResult],
        combine: impl Fn(&[f64]) -> f64,
    ) -> Option<Value> {
        let (first, others) = results.split_first()?;
        let together = others.iter().all(|other| other.shares_rounds_with(first));
        let rounds = results.iter().map(|result| result.runs.len()).min()?;
        let round = |number: usize| -> Option<Vec<f64>> {
            let runs = results
                .iter()
                .map(|result| measure.of(&result.runs[number]));
            runs.collect()
        };
        let values: Option<Vec<f64>> = (0..rounds)
            .map(|number| round(number).map(|numbers| combine(&numbers)))
            .collect();
        Value::of_numbers(&values.filter(|_| together)?)
    }

    /// Half of the range over the median: how far apart the runs were. `None` for a single run and
    /// for a median of 0.
    pub fn spread(&self) -> Option<f64> {
        let several = self.runs > 1 && self.median > 0.0;
        several.then(|| (self.maximum - self.minimum) / 2.0 / self.median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::fixture;

    #[test]
    fn the_median_is_that_of_the_runs_that_have_the_number() {
        let mut result = fixture::cell(&[("filesystem", "ext4")]);
        result.runs = [1, 4, 2]
            .map(|writes| fixture::run(10, writes, 4096))
            .into();
        result.runs[1].device = None;
        let value = Value::of(Measure::Ios, &result).expect("two runs with counters");
        assert_eq!((value.median, value.runs), (1.5, 2));
        assert_eq!((value.minimum, value.maximum), (1.0, 2.0));
        assert_eq!(value.spread(), Some(1.0 / 3.0));
        assert_eq!(Value::of(Measure::DataBytes, &result), None);
    }
}
