//! What a lab shows beside its numbers: tables, claims, and the numbers of papers.

use iostep_model::lab::{Analysis, Bounds, Cell, Condition, Measure};
use serde::de::DeserializeOwned;
use toml::Table;

use super::shown_line;
use crate::matrix::{self, Problem, shown};

const HINT: &str = "docs/lab.md has its keys";

/// Takes it out of a lab's text.
///
/// Errors: a key that is unknown or missing, or a value of another type.
pub(super) fn take(rest: &mut Table) -> Result<Analysis, Problem> {
    Ok(Analysis {
        views: part(rest, "view-defaults", "views")?,
        claims: part(rest, "claim-defaults", "claims")?,
        papers: part(rest, "paper-defaults", "papers")?,
    })
}

fn part<T: DeserializeOwned>(
    rest: &mut Table,
    defaults: &str,
    name: &str,
) -> Result<Vec<T>, Problem> {
    let tables = (1..).zip(matrix::merged(rest, defaults, name)?);
    let read = tables.map(|(number, table)| {
        let bad = |error: toml::de::Error| {
            let what = shown_line(error.message());
            (format!("{name} {number}: {what}"), HINT)
        };
        table.try_into().map_err(bad)
    });
    read.collect()
}

/// Refuses axes that no cell has, numbers without an axis, and conditions that judge nothing.
pub(super) fn check(analysis: &Analysis, cells: &[Cell]) -> Result<(), Problem> {
    for (number, view) in (1..).zip(&analysis.views) {
        let axes = view.rows.iter().chain(&view.columns);
        let axes = axes.chain(view.at.keys()).chain(view.baseline.keys());
        check_axes(&format!("views {number}"), axes, cells)?;
    }
    for (number, claim) in (1..).zip(&analysis.claims) {
        let name = format!("claims {number}");
        for condition in &claim.conditions {
            let sides = condition.pair.iter().flatten();
            let axes = condition.each.keys().chain(condition.at.keys());
            let axes = axes.chain(sides.flat_map(|side| side.at.keys()));
            let axis = Some(&condition.axis).filter(|axis| !axis.is_empty());
            check_axes(&name, axes.chain(axis), cells)?;
            if let Some(what) = missing(condition) {
                return Err((format!("{name}: a condition {what}"), HINT));
            }
        }
    }
    for (number, paper) in (1..).zip(&analysis.papers) {
        let name = format!("papers {number}");
        check_axes(&name, paper.axes.iter().chain(paper.at.keys()), cells)?;
        if !paper.numbers.have_axes(paper.axes.len()) {
            let what = format!("{name}: numbers: they have not as many names as there are axes");
            return Err((what, HINT));
        }
    }
    Ok(())
}

fn check_axes<'a>(
    name: &str,
    mut axes: impl Iterator<Item = &'a String>,
    cells: &[Cell],
) -> Result<(), Problem> {
    let is_unknown = |axis: &&String| cells.iter().all(|cell| cell.value(axis).is_none());
    match axes.find(is_unknown) {
        None => Ok(()),
        Some(axis) => {
            let what = format!("{name}: {}: no cell has it", shown(axis));
            Err((what, "name keys of the cells"))
        }
    }
}

/// What keeps a condition from being judged.
fn missing(condition: &Condition) -> Option<&'static str> {
    let is_extreme = condition.least_of.is_some() || condition.greatest_of.is_some();
    let ways = [
        condition.least_of.is_some(),
        condition.greatest_of.is_some(),
        condition.pair.is_some(),
        condition.is != Bounds::default(),
    ];
    let is_share = !condition.share_of.is_empty();
    if ways.into_iter().filter(|way| *way).count() != 1 {
        return Some("needs one of least-of, greatest-of, is and pair");
    }
    if is_extreme && (is_share || condition.over.is_some()) {
        return Some("with least-of or greatest-of takes neither over nor share-of");
    }
    if condition.pair.is_some() && condition.over.is_none() {
        return Some("with pair needs over");
    }
    if is_share && (condition.over.is_some() || condition.pair.is_some()) {
        return Some("with share-of takes neither over nor pair");
    }
    if !condition.less.is_empty() && (condition.is == Bounds::default() || condition.over.is_some())
    {
        return Some("with less needs is, and takes no over");
    }
    if !condition.allowed_by.is_empty()
        && (condition.over.is_none() || condition.measure != Measure::Throughput)
    {
        return Some("with allowed-by needs over and the measure throughput");
    }
    if condition.order.is_some() && condition.pair.is_none() {
        return Some("with order needs pair");
    }
    let has_value = !condition.axis.is_empty() && !condition.value.0.is_empty();
    (!is_share && !has_value).then_some("needs axis and value")
}
