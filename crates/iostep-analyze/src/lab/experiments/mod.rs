//! The papers' experiments: the tables of each built-in lab, and the claims that are looked for.

mod combined;
mod fsync_patterns;
mod matrix;
mod polling;
mod replay;
mod table1;
mod waldio;

use super::finding::Finding;
use super::grid::View;
use super::results::Results;

/// What is made of a lab's results.
pub(super) struct Experiment {
    /// The lab's name.
    name: &'static str,
    /// Its tables.
    pub views: &'static [View<'static>],
    /// Looks for the papers' claims.
    pub findings: fn(Results<'_>) -> Vec<Finding>,
}

const ALL: &[Experiment] = &[
    table1::EXPERIMENT,
    fsync_patterns::EXPERIMENT,
    matrix::EXPERIMENT,
    combined::EXPERIMENT,
    polling::EXPERIMENT,
    waldio::EXPERIMENT,
    replay::EXPERIMENT,
];

/// The experiment of a built-in lab; `None` for a lab of somebody else's.
pub(super) fn find(lab: &str) -> Option<&'static Experiment> {
    ALL.iter().find(|experiment| experiment.name == lab)
}
