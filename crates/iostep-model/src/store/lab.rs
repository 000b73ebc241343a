//! A lab's results as tables, for whoever reads Parquet.
//!
//! | file | a row is |
//! |---|---|
//! | `cells.parquet` | a run of a cell, or a cell without one |
//! | `classes.parquet` | what a run asked the device for of one class with one operation |
//!
//! They are made of the JSON files and say less; nothing here reads them back.

use std::path::Path;

use super::checksums::Checksums;
use super::parquet_file;
use crate::error::Result;
use crate::lab::{CellResult, ClassCount, Environment, Lab, Run};
use crate::manifest::Counters;

/// A row of `cells.parquet`. Columns of runs are null where a cell has none.
pub(super) struct CellRow<'a> {
    pub lab: &'a Lab,
    pub result: &'a CellResult,
    /// Which run, from 1.
    pub run: Option<(u32, &'a Run)>,
}

/// A row of `classes.parquet`.
pub(super) struct ClassRow<'a> {
    pub result: &'a CellResult,
    pub run: u32,
    pub count: &'a ClassCount,
}

impl CellRow<'_> {
    /// What the row's run has, if it has one.
    pub fn of_run<T>(&self, of: impl FnOnce(&Run) -> T) -> Option<T> {
        self.run.map(|(_, run)| of(run))
    }

    pub fn of_device<T>(&self, of: impl FnOnce(&Counters) -> T) -> Option<T> {
        self.run.and_then(|(_, run)| run.device.as_ref()).map(of)
    }

    /// What the place has where it ran.
    pub fn of_place<T>(&self, of: impl FnOnce(&Environment) -> T) -> Option<T> {
        self.result.environment.as_ref().map(of)
    }
}

/// Writes both tables into `directory`. Each appears whole or not at all.
///
/// Errors: `Io`.
pub fn write(directory: &Path, lab: &Lab, results: &[CellResult]) -> Result<()> {
    let cells: Vec<CellRow<'_>> = results
        .iter()
        .flat_map(|result| cell_rows(lab, result))
        .collect();
    let classes: Vec<ClassRow<'_>> = results.iter().flat_map(class_rows).collect();
    // They are not a trace's tables, and nobody reads them here.
    let mut unused = Checksums::default();
    parquet_file::write(directory, &cells, &mut unused)?;
    parquet_file::write(directory, &classes, &mut unused)
}

fn cell_rows<'a>(lab: &'a Lab, result: &'a CellResult) -> Vec<CellRow<'a>> {
    let row = |run| CellRow { lab, result, run };
    match result.runs.is_empty() {
        true => vec![row(None)],
        false => (1..).zip(&result.runs).map(|run| row(Some(run))).collect(),
    }
}

fn class_rows(result: &CellResult) -> impl Iterator<Item = ClassRow<'_>> {
    let numbered = (1..).zip(&result.runs);
    numbered.flat_map(move |(run, found)| {
        let classes = found.classes.iter().flatten();
        classes.map(move |count| ClassRow { result, run, count })
    })
}
