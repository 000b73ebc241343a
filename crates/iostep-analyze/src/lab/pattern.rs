//! The requests of the last operations of a cell: ATC'13 figures 3 and 4.

use iostep_model::lab::{CellResult, PatternRequest};
use serde::Serialize;

use super::results::Ground;

/// A cell's block pattern.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pattern {
    /// Key of the cell.
    pub key: String,
    /// What the cell is, in words.
    pub title: String,
    /// Where it was measured.
    pub ground: Option<Ground>,
    /// How many operations it is of.
    pub operations: u32,
    /// The requests in the order of issue.
    pub requests: Vec<PatternRequest>,
}

impl Pattern {
    /// The requests of the last operation, which may have had several sync calls.
    pub fn last_operation(&self) -> impl Iterator<Item = &PatternRequest> {
        let steps = self.requests.iter().map(|request| request.step + 1).max();
        let steps = steps.unwrap_or(0);
        let first = steps - steps.div_ceil(self.operations.max(1));
        self.requests.iter().filter(move |r| r.step >= first)
    }

    /// Of the last run that has one.
    pub(super) fn of(result: &CellResult) -> Option<Pattern> {
        let mut patterns = result.runs.iter().filter_map(|run| run.pattern.as_ref());
        let requests = patterns.next_back()?;
        (!requests.is_empty()).then(|| Pattern {
            key: result.cell.key.clone(),
            title: super::label(&result.cell),
            ground: Ground::of_result(result),
            operations: result.cell.pattern,
            requests: requests.clone(),
        })
    }
}
