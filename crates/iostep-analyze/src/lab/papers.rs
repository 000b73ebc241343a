//! What papers have for the cells of a lab.

use iostep_model::lab::{Cell, Measure, PaperTable};
use serde::Serialize;

/// A number of a paper.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PaperValue {
    pub paper: String,
    /// Section, and table or figure.
    pub place: String,
    /// The number, in the unit of its measure, or a ratio.
    pub value: f64,
    /// True for a ratio to the baseline, where the paper gives nothing else.
    pub ratio: bool,
    /// True if a plot or words like "about" are the source.
    pub approximate: bool,
}

/// The first number for a cell, if there is one.
pub(super) fn find(papers: &[PaperTable], cell: &Cell, measure: Measure) -> Option<PaperValue> {
    let mut of_measure = papers.iter().filter(|table| table.measure == measure);
    of_measure.find_map(|table| {
        Some(PaperValue {
            paper: table.paper.clone(),
            place: table.place.clone(),
            value: table.number(cell)?,
            ratio: table.ratio,
            approximate: table.approximate,
        })
    })
}
