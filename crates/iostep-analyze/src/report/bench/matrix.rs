//! Many results in one table: a row for each.

use iostep_model::bench::{Document as Result, RunState, Step};
use iostep_model::unit::Unit;
use iostep_report::document::{self, Bar, Block, Column, Detail, Document, Section, Table};

use super::section;
use crate::bench::{Measure, Quantile, Summary, varying};

/// One of the results.
#[derive(Clone, Copy, Debug)]
pub struct Cell<'a> {
    pub name: &'a str,
    /// What was done.
    pub document: &'a Result,
    /// The numbers.
    pub summary: &'a Summary,
}

/// The table: name, the settings in which the cells differ, medians over the runs, state. Bytes
/// that the device wrote and read, and flushes, are of one operation. Nothing without cells.
pub fn document(cells: &[Cell<'_>]) -> Document {
    let mut body = Section::default();
    body.push(Block::Table(table("", cells)));
    Document::of(body)
}

/// The page of several results, in their order: the table, and all that is known of each.
pub fn page(results: &[(Result, Summary)]) -> Document {
    if let [(result, summary)] = results {
        return super::document(result, summary, true);
    }
    let mut body = Section::new(format!("{} jobs", results.len()));
    let names: Vec<String> = (1..=results.len()).map(|job| job.to_string()).collect();
    let cells = results.iter().zip(&names);
    let cells: Vec<Cell<'_>> = cells
        .map(|((document, summary), name)| Cell {
            name,
            document,
            summary,
        })
        .collect();
    body.push(Block::Table(table("Jobs", &cells)));
    for ((result, summary), name) in results.iter().zip(&names) {
        let mut job = section(result, summary, true);
        job.title = format!("{name} {}", job.title);
        job.folded = true;
        body.push(Block::Section(job));
    }
    Document::of(body)
}

fn table(title: &str, cells: &[Cell<'_>]) -> Table {
    let documents: Vec<&Result> = cells.iter().map(|cell| cell.document).collect();
    let settings = varying(&documents);
    let rates = cells.iter().filter_map(|cell| {
        let estimate = cell.summary.estimate(Measure::OperationsPerSecond)?;
        let bound = estimate.interval.as_ref().map(|interval| interval.high);
        Some(bound.map_or(estimate.median, |bound| bound.max(estimate.median)))
    });
    let greatest = rates.fold(0.0, f64::max);
    let numbers = [
        ">per second",
        ">spread",
        ">time each",
        ">p50",
        ">p99",
        ">sync p50",
        ">written",
        ">read",
        ">flushes",
        ">payload",
        ">CPU each",
        ">runs",
        "state",
    ];
    let mut table = Table::new(title, ["name"])
        .note(
            "Medians of the complete runs; the spread is half the 95 % confidence interval over \
             the median, and the line below a bar is the interval. A click on a head sorts.",
        )
        .rows(cells.iter().enumerate().map(|(place, cell)| {
            let values = settings
                .iter()
                .map(|(name, values)| setting(name, &values[place]));
            let name = std::iter::once(document::Cell::text(cell.name));
            let numbers = found(cell.summary, greatest);
            name.chain(values).chain(numbers).collect()
        }));
    let settings = settings.iter().map(|(name, _)| Column::of(name.clone()));
    table.columns.extend(settings);
    table.columns.extend(numbers.map(Column::of));
    table.from(Detail::Page, &["payload", "CPU each"])
}

/// A value that is a number is sorted as one; its unit is the end of its name.
fn setting(name: &str, value: &str) -> document::Cell {
    let number = value.parse::<f64>().ok().filter(|n| n.is_finite());
    match number {
        Some(bytes) if name.ends_with("_bytes") => document::Cell::number(Unit::Bytes, bytes),
        Some(ns) if name.ends_with("_ns") => document::Cell::number(Unit::Nanoseconds, ns),
        Some(number) => document::Cell::number(Unit::Mean, number).saying(value),
        None => document::Cell::text(value),
    }
}

fn found(summary: &Summary, greatest: f64) -> Vec<document::Cell> {
    let median = |measure: Measure| summary.estimate(measure).map(|estimate| estimate.median);
    let cell = |measure: Measure| document::Cell::number(measure.unit(), median(measure));
    let whole = whole_step(summary);
    let rate = summary.estimate(Measure::OperationsPerSecond);
    let per_second = document::Cell::number(Unit::Mean, rate.map(|rate| rate.median));
    let mut per_second = per_second.with_bar(Bar::Write, greatest);
    if let Some(interval) = rate.and_then(|rate| rate.interval.as_ref()) {
        per_second = per_second.with_whisker(interval.low, interval.high, greatest);
    }
    vec![
        per_second,
        document::Cell::share(rate.and_then(|estimate| estimate.spread)),
        cell(Measure::TimePerOperation),
        cell(Measure::Latency(whole, Quantile::P50)),
        cell(Measure::Latency(whole, Quantile::P99)),
        cell(Measure::Latency(Step::Sync, Quantile::P50)),
        cell(Measure::WrittenPerOperation),
        cell(Measure::ReadPerOperation),
        cell(Measure::FlushesPerOperation),
        cell(Measure::BytesPerSecond),
        cell(Measure::CpuPerOperation),
        document::Cell::count(summary.runs.len() as u64),
        document::Cell::text(state(summary)),
    ]
}

/// The step that is the whole operation.
pub(super) fn whole_step(summary: &Summary) -> Step {
    let is_known = |step| {
        let measure = Measure::Latency(step, Quantile::P50);
        summary.estimate(measure).is_some()
    };
    super::whole_step(is_known).unwrap_or(Step::Total)
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
