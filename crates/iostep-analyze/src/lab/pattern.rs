//! The requests of the last sync calls of a cell: ATC'13 figure 3.

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
    /// The requests in the order of issue.
    pub requests: Vec<PatternRequest>,
}

impl Pattern {
    /// Of the last run that has one.
    pub(super) fn of(result: &CellResult) -> Option<Pattern> {
        let mut patterns = result.runs.iter().filter_map(|run| run.pattern.as_ref());
        let requests = patterns.next_back()?;
        (!requests.is_empty()).then(|| Pattern {
            key: result.cell.key.clone(),
            title: super::label(&result.cell),
            ground: Ground::of_result(result),
            requests: requests.clone(),
        })
    }
}
