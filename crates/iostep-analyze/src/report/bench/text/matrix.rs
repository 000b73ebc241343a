//! Many benches in one table: a row for each.

use iostep_model::bench::{Document, RunState, Step};
use iostep_model::printable;

use crate::bench::{Measure, Quantile, Summary, varying};
use crate::report::quantity::{bytes, decimal, duration, percent};
use crate::report::text::Style;
use crate::report::text::grid::grid;

/// One of the benches.
#[derive(Clone, Copy, Debug)]
pub struct Cell<'a> {
    /// Its name.
    pub name: &'a str,
    /// What was done.
    pub document: &'a Document,
    /// The numbers.
    pub summary: &'a Summary,
}

const NUMBERS: [&str; 11] = [
    ">per second",
    ">spread",
    ">time each",
    ">p50",
    ">p99",
    ">sync p50",
    ">written",
    ">read",
    ">flushes",
    ">runs",
    "state",
];

/// The table: name, the settings in which the cells differ, medians over the runs, state. Bytes
/// that the device wrote and read, and flushes, are of one operation. Nothing without cells.
pub fn render(cells: &[Cell<'_>], style: Style) -> String {
    let documents: Vec<&Document> = cells.iter().map(|cell| cell.document).collect();
    let columns = varying(&documents);
    let mut names = vec!["name".to_owned()];
    names.extend(columns.iter().map(|(name, _)| printable(name).into_owned()));
    names.extend(NUMBERS.map(str::to_owned));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut table = grid(style, &names);
    for (place, cell) in cells.iter().enumerate() {
        let mut row = vec![printable(cell.name).into_owned()];
        let settings = columns.iter().map(|(_, values)| &values[place]);
        row.extend(settings.map(|value| printable(value).into_owned()));
        row.extend(numbers(cell.summary));
        table.row_of(row);
    }
    table.untitled().trim_start_matches('\n').to_owned()
}

fn numbers(summary: &Summary) -> [String; 11] {
    let median = |measure: Measure, show: fn(f64) -> String| {
        let estimate = summary.estimate(measure);
        estimate.map_or_else(|| "-".into(), |estimate| show(estimate.median))
    };
    let time = |ns: f64| duration(ns.round() as u64);
    let size = |amount: f64| bytes(amount.round() as u64);
    let whole = whole_step(summary);
    let rate = summary.estimate(Measure::OperationsPerSecond);
    [
        median(Measure::OperationsPerSecond, decimal),
        percent(rate.and_then(|estimate| estimate.spread)),
        median(Measure::TimePerOperation, time),
        median(Measure::Latency(whole, Quantile::P50), time),
        median(Measure::Latency(whole, Quantile::P99), time),
        median(Measure::Latency(Step::Sync, Quantile::P50), time),
        median(Measure::WrittenPerOperation, size),
        median(Measure::ReadPerOperation, size),
        median(Measure::FlushesPerOperation, decimal),
        summary.runs.len().to_string(),
        state(summary),
    ]
}

/// The step that is the whole operation.
pub(in crate::report::bench) fn whole_step(summary: &Summary) -> Step {
    let known = |step: &Step| {
        let measure = Measure::Latency(*step, Quantile::P50);
        summary.estimate(measure).is_some()
    };
    let steps = [Step::Total, Step::Transaction, Step::Write, Step::Read];
    steps.into_iter().find(known).unwrap_or(Step::Total)
}

fn state(summary: &Summary) -> String {
    let of = |state| summary.runs.iter().any(|run| run.state == state);
    let warnings = summary.warnings.len();
    match () {
        () if summary.runs.is_empty() => "no run".into(),
        () if of(RunState::Failed) => "FAILED".into(),
        () if of(RunState::Interrupted) => "interrupted".into(),
        () if !summary.is_whole() => "WRONG CONTENT".into(),
        () if warnings == 1 => "1 warning".into(),
        () if warnings > 1 => format!("{warnings} warnings"),
        () => "ok".into(),
    }
}
