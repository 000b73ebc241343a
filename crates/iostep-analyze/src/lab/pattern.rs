//! The requests of the last operations of a cell: ATC'13 figures 3 and 4.

use iostep_model::class::Class;
use iostep_model::lab::{CellResult, PatternRequest};
use iostep_model::operation::Operation;
use serde::Serialize;

use super::results::Platform;

/// A cell's block pattern.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pattern {
    /// Key of the cell.
    pub key: String,
    /// What the cell is, in words.
    pub title: String,
    /// Where it was measured.
    pub ground: Option<Platform>,
    /// How many operations it is of.
    pub operations: u32,
    /// The requests in the order of issue.
    pub requests: Vec<WholeRequest>,
}

/// A request with all of its parts; results have a [`PatternRequest`] for each class and file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WholeRequest {
    /// When it was issued, since the first of the pattern.
    pub issue_ns: u64,
    /// Which of the kept sync calls it belongs to, from 0.
    pub step: u32,
    /// First sector.
    pub sector: u64,
    /// Length; 0 for a flush.
    pub sectors: u64,
    pub operation: Operation,
    /// It had to be on the medium before it completed.
    pub fua: bool,
    /// What its bytes are, each class once, the first one first; empty for a flush.
    pub classes: Vec<Class>,
    /// Whose they are, each file once; empty where no file is known.
    pub files: Vec<String>,
}

impl WholeRequest {
    fn of(part: &PatternRequest) -> WholeRequest {
        WholeRequest {
            issue_ns: part.issue_ns,
            step: part.step,
            sector: part.sector,
            sectors: part.sectors,
            operation: part.operation,
            fua: part.fua,
            classes: part.class.into_iter().collect(),
            files: part.file.iter().cloned().collect(),
        }
    }

    /// Takes a part that goes on where this ends; two requests are not issued at one nanosecond.
    fn take(&mut self, part: &PatternRequest) -> bool {
        let goes_on = part.issue_ns == self.issue_ns
            && part.operation == self.operation
            && part.sectors > 0
            && Some(part.sector) == self.sector.checked_add(self.sectors);
        if goes_on {
            self.sectors = self.sectors.saturating_add(part.sectors);
            let is_new = |class: &Class| !self.classes.contains(class);
            self.classes.extend(part.class.filter(is_new));
            let new_file = part.file.iter().find(|file| !self.files.contains(file));
            self.files.extend(new_file.cloned());
        }
        goes_on
    }

    fn all(parts: &[PatternRequest]) -> Vec<WholeRequest> {
        let mut whole: Vec<WholeRequest> = Vec::new();
        for part in parts {
            let taken = whole.last_mut().is_some_and(|last| last.take(part));
            if !taken {
                whole.push(WholeRequest::of(part));
            }
        }
        whole
    }
}

impl Pattern {
    /// The requests of the last operation, which may have had several sync calls.
    pub fn last_operation(&self) -> impl Iterator<Item = &WholeRequest> {
        let last = self.requests.iter().map(|request| request.step).max();
        let steps = last.map_or(0, |last| last.saturating_add(1));
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
            ground: Platform::of_result(result),
            operations: result.cell.pattern,
            requests: WholeRequest::all(requests),
        })
    }
}
