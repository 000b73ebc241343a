//! What the papers themselves measured, as far as their texts and tables tell it.
//!
//! Most of their figures are plots without numbers; what is read off a plot, or said in words
//! like "as much as", is marked as approximate. Sizes in KB and MB of the papers count 1024.

mod atc13;
mod atc15;

use iostep_model::lab::Cell;
use serde::Serialize;

use super::Measure;
use super::results::{At, is_at, value_of};

/// A paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Paper {
    /// Jeong et al., I/O Stack Optimization for Smartphones, USENIX ATC 2013. Galaxy S3, Linux
    /// 3.0.15; where not said otherwise on a 16 GB SD card, the external journal on the phone's
    /// eMMC.
    #[serde(rename = "ATC'13")]
    Atc13,
    /// Lee et al., WALDIO, USENIX ATC 2015. Galaxy S5, ext4 on its eMMC.
    #[serde(rename = "ATC'15")]
    Atc15,
}

impl Paper {
    /// The name shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Paper::Atc13 => "ATC'13",
            Paper::Atc15 => "ATC'15",
        }
    }
}

/// Numbers of one table or paragraph of a paper.
struct PaperTable {
    paper: Paper,
    /// Section, and table or figure.
    place: &'static str,
    /// The lab that repeats it.
    lab: &'static str,
    measure: Measure,
    /// True for ratios to the view's baseline, where the paper gives nothing else.
    ratio: bool,
    /// True if a plot or words like "about" are the source.
    approximate: bool,
    /// What all rows have in common.
    at: &'static At<'static>,
    /// The axes of the rows.
    axes: &'static [&'static str],
    /// A value for each axis, and the number.
    rows: &'static [(&'static [&'static str], f64)],
}

/// A number of a paper.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PaperValue {
    /// Which paper.
    pub paper: Paper,
    /// Section, and table or figure.
    pub place: &'static str,
    /// The number, in the unit of its measure, or a ratio.
    pub value: f64,
    /// True for a ratio to the baseline, where the paper gives nothing else.
    pub ratio: bool,
    /// True if a plot or words like "about" are the source.
    pub approximate: bool,
}

impl PaperTable {
    fn find(&self, cell: &Cell) -> Option<PaperValue> {
        if !is_at(cell, self.at) {
            return None;
        }
        let is_row = |values: &[&str]| {
            let mut pairs = self.axes.iter().zip(values);
            pairs.all(|(axis, value)| value_of(cell, axis) == *value)
        };
        let (_, value) = self.rows.iter().find(|(values, _)| is_row(values))?;
        Some(PaperValue {
            paper: self.paper,
            place: self.place,
            value: *value,
            ratio: self.ratio,
            approximate: self.approximate,
        })
    }
}

/// The paper's number for a cell of a lab, if it has one.
pub(super) fn find(lab: &str, cell: &Cell, measure: Measure) -> Option<PaperValue> {
    [atc13::TABLES, atc15::TABLES]
        .into_iter()
        .flatten()
        .filter(|table| table.lab == lab && table.measure == measure)
        .find_map(|table| table.find(cell))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_value_for_each_axis_and_no_row_comes_twice() {
        for table in [atc13::TABLES, atc15::TABLES].into_iter().flatten() {
            let place = table.place;
            for (number, (values, amount)) in table.rows.iter().enumerate() {
                assert_eq!(values.len(), table.axes.len(), "{place}: {values:?}");
                assert!(*amount >= 0.0, "{place}: {values:?}");
                let before = &table.rows[..number];
                assert!(
                    before.iter().all(|(other, _)| other != values),
                    "{place}: {values:?}"
                );
            }
        }
    }
}
