//! One document in numbers.

use iostep_model::bench::{Document, Job, RunState, Warning};
use serde::Serialize;

use super::estimate::Estimate;
use super::measure::Measure;
use super::run::RunSummary;
use super::spoilers;

/// Everything that a report prints of a document, and what `summary` of a result file holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// What is counted: `operation` or `transaction`.
    pub work: &'static str,
    pub runs: Vec<RunSummary>,
    /// Every measure over the complete runs, in the order of [`Measure::all`].
    pub estimates: Vec<Estimate>,
    /// What spoils the figures: the document's warnings, and those that the figures themselves
    /// give rise to.
    pub warnings: Vec<Warning>,
}

impl Summary {
    /// Works out the numbers of a document.
    pub fn of(document: &Document) -> Summary {
        let runs: Vec<RunSummary> = (1..)
            .zip(&document.runs)
            .map(|(number, run)| RunSummary::of(&document.job, number, run))
            .collect();
        Summary {
            work: work(&document.job),
            estimates: Measure::all()
                .filter_map(|measure| Estimate::of(measure, &values(&runs, measure)))
                .collect(),
            warnings: spoilers::of(document, &runs),
            runs,
        }
    }

    /// A measure over the complete runs; `None` if none has it.
    pub fn estimate(&self, measure: Measure) -> Option<&Estimate> {
        self.estimates
            .iter()
            .find(|estimate| estimate.measure == measure)
    }

    /// A measure's value in each complete run that has it.
    pub fn values(&self, measure: Measure) -> Vec<f64> {
        values(&self.runs, measure)
    }

    /// True if there is a run, and every run came to its end with nothing wrong.
    pub fn is_whole(&self) -> bool {
        !self.runs.is_empty() && self.runs.iter().all(RunSummary::is_whole)
    }
}

/// What an operation of a job is called.
pub fn work(job: &Job) -> &'static str {
    match job {
        Job::File(_) => "operation",
        Job::Sqlite(_) => "transaction",
    }
}

fn values(runs: &[RunSummary], measure: Measure) -> Vec<f64> {
    let complete = runs.iter().filter(|run| run.state == RunState::Complete);
    complete.filter_map(|run| measure.of(run)).collect()
}

#[cfg(test)]
mod tests;
