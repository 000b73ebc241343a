//! Several jobs side by side.

use askama::Template;
use iostep_model::bench::Document;

use super::axis::{Axis, Px, Tick};
use super::figure::{self, in_unit};
use super::tables::cell;
use crate::bench::{Estimate, Measure, Quantile, Summary, varying};
use crate::report::bench::text::matrix::whole_step;
use crate::report::html::table::{Cell, Head, Table, heads};
use crate::report::quantity;

/// Pixels: the ends of the axis, and the height of a bar with the space around it.
const ACROSS_PX: (f64, f64) = (330.0, 880.0);
const ROW_PX: f64 = 22.0;

/// A job's throughput.
struct Bar {
    name: String,
    value: String,
    y: Px,
    end: Px,
    /// The ends of the confidence interval.
    interval: Option<(Px, Px)>,
    title: String,
}

/// The jobs of a page that has several.
#[derive(Template)]
#[template(path = "matrix.html")]
pub(super) struct Matrix {
    table: Table,
    across: Vec<Tick>,
    bars: Vec<Bar>,
    height: Px,
}

impl Matrix {
    pub(super) fn of(documents: &[(Document, Summary)]) -> Matrix {
        let columns = columns(documents);
        let greatest = |estimate: &Estimate| {
            let high = estimate.interval.map_or(0.0, |interval| interval.high);
            estimate.median.max(high)
        };
        let rates = documents.iter().filter_map(|(_, summary)| rate(summary));
        let across = Axis::linear(rates.map(greatest).fold(0.0, f64::max), 1.0, ACROSS_PX);
        let bars = documents.iter().enumerate().map(|(place, (_, summary))| {
            let values: Vec<&str> = columns.iter().map(|c| c.values[place].1.as_str()).collect();
            bar(place, values.join(", "), rate(summary), &across)
        });
        Matrix {
            bars: bars.collect(),
            across: across.ticks(|rate| figure::tick(&quantity::decimal(rate))),
            height: Px(documents.len() as f64 * ROW_PX),
            table: table(documents, &columns),
        }
    }

    fn bottom(&self) -> Px {
        Px(self.height.0 + 18.0)
    }

    /// With the ticks' texts.
    fn whole_height(&self) -> Px {
        Px(self.height.0 + 26.0)
    }
}

fn rate(summary: &Summary) -> Option<&Estimate> {
    summary.estimate(Measure::OperationsPerSecond)
}

fn bar(place: usize, values: String, rate: Option<&Estimate>, across: &Axis) -> Bar {
    let unit = Measure::OperationsPerSecond.unit();
    let interval = rate.and_then(|rate| rate.interval);
    let title = match (rate, interval) {
        (None, _) => "no complete run".to_owned(),
        (Some(rate), None) => format!("{}, one run", in_unit(rate.median, unit)),
        (Some(rate), Some(interval)) => format!(
            "median {} of {} runs, mean within {} to {}",
            in_unit(rate.median, unit),
            rate.runs,
            in_unit(interval.low, unit),
            in_unit(interval.high, unit)
        ),
    };
    Bar {
        name: format!("{} {values}", place + 1),
        value: figure::or_dash(rate.map(|rate| rate.median), unit),
        y: Px(place as f64 * ROW_PX),
        end: Px(across.at(rate.map_or(0.0, |rate| rate.median))),
        interval: interval.map(|ends| (Px(across.at(ends.low)), Px(across.at(ends.high)))),
        title,
    }
}

/// Something that differs between the jobs.
struct Column {
    name: String,
    /// Each job's value as it is, and as people read it.
    values: Vec<(String, String)>,
}

impl Column {
    /// The unit of values is the end of their name.
    fn of((name, values): (String, Vec<String>)) -> Column {
        let readable = |value: String| {
            let shown = match value.parse::<u64>() {
                Ok(bytes) if name.ends_with("_bytes") => quantity::bytes(bytes),
                Ok(ns) if name.ends_with("_ns") => quantity::duration(ns),
                _ => value.clone(),
            };
            (value, shown)
        };
        let values = values.into_iter().map(readable).collect();
        let name = name.trim_end_matches("_bytes").trim_end_matches("_ns");
        Column {
            name: name.replace(['_', '.'], " "),
            values,
        }
    }

    fn is_number(&self) -> bool {
        let mut values = self.values.iter();
        values.all(|(value, _)| value == "-" || value.parse::<f64>().is_ok())
    }

    fn cell(&self, place: usize) -> Cell {
        let (value, shown) = &self.values[place];
        Cell {
            sort: self.is_number().then(|| value.parse().unwrap_or(-1.0)),
            ..Cell::text(shown.as_str())
        }
    }
}

fn columns(documents: &[(Document, Summary)]) -> Vec<Column> {
    let documents: Vec<&Document> = documents.iter().map(|(document, _)| document).collect();
    varying(&documents).into_iter().map(Column::of).collect()
}

/// The numbers of a job, in the order of the table's heads.
fn found(summary: &Summary) -> Vec<Cell> {
    let median = |measure: Measure| {
        let estimate = summary.estimate(measure);
        cell(estimate.map(|estimate| estimate.median), measure.unit())
    };
    let spread = rate(summary).and_then(|rate| rate.spread);
    let whole = whole_step(summary);
    vec![
        median(Measure::OperationsPerSecond),
        Cell {
            text: quantity::percent(spread),
            sort: Some(spread.unwrap_or(-1.0)),
            ..Cell::default()
        },
        median(Measure::Latency(whole, Quantile::P50)),
        median(Measure::Latency(whole, Quantile::P99)),
        median(Measure::BytesPerSecond),
        median(Measure::TimePerOperation),
        median(Measure::CpuPerOperation),
        median(Measure::WrittenPerOperation),
        median(Measure::ReadPerOperation),
        median(Measure::FlushesPerOperation),
        Cell::count(summary.warnings.len() as u64),
    ]
}

fn table(documents: &[(Document, Summary)], columns: &[Column]) -> Table {
    let mut columns_heads = heads(&["#job"]);
    columns_heads.extend(columns.iter().map(|column| Head {
        name: column.name.clone().into(),
        number: column.is_number(),
    }));
    columns_heads.extend(heads(&[
        "#throughput",
        "#spread",
        "#p50",
        "#p99",
        "#payload",
        "#mean time",
        "#CPU each",
        "#written each",
        "#read each",
        "#flushes each",
        "#warnings",
    ]));
    let rows = documents.iter().enumerate().map(|(place, (_, summary))| {
        let mut cells = vec![Cell::count(place as u64 + 1)];
        cells.extend(columns.iter().map(|column| column.cell(place)));
        cells.extend(found(summary));
        cells
    });
    Table {
        title: "Jobs".to_owned(),
        note: "Medians of the complete runs; the spread is half the 95 % confidence interval over \
               the median. A click on a head sorts."
            .to_owned(),
        heads: columns_heads,
        rows: rows.collect(),
        rest: None,
        sortable: true,
    }
}
