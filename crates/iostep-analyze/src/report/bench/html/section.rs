//! Everything about one job.

use askama::Template;
use iostep_model::bench::Document;

use super::distribution;
use super::figure::{self, in_unit};
use super::plot::Plot;
use super::tables;
use super::timeline::Timeline;
use crate::bench::{Measure, Quantile, Summary};
use crate::report::bench::text::{self, matrix::whole_step};
use crate::report::bench::{advice, job};
use crate::report::html::header::Fact;
use crate::report::html::table::Table;
use crate::report::quantity;

/// A warning with what to do about it.
struct Warned {
    fact: String,
    advice: &'static str,
}

/// One document of the page.
#[derive(Template)]
#[template(path = "section.html")]
pub(super) struct Section {
    /// What is wrong with the runs; empty if nothing is.
    alarms: Vec<String>,
    warnings: Vec<Warned>,
    /// What was done and where.
    lines: Vec<String>,
    totals: Vec<Fact>,
    plots: Vec<Plot>,
    tables: Vec<Table>,
}

impl Section {
    pub(super) fn of(document: &Document, summary: &Summary) -> Section {
        let mut plots = Timeline::of(document, summary.work).plots();
        plots.extend(distribution::plot(document));
        Section {
            alarms: text::complaints(summary),
            warnings: warnings(summary),
            lines: lines(document),
            totals: totals(summary),
            plots,
            tables: tables::of(summary),
        }
    }
}

fn warnings(summary: &Summary) -> Vec<Warned> {
    let warned = |(fact, advice)| Warned { fact, advice };
    summary
        .warnings
        .iter()
        .map(|warning| warned(advice::of(warning)))
        .collect()
}

/// The few numbers that matter most.
fn totals(summary: &Summary) -> Vec<Fact> {
    let whole = whole_step(summary);
    let measures = [
        ("throughput", Measure::OperationsPerSecond),
        ("payload", Measure::BytesPerSecond),
        ("mean time", Measure::TimePerOperation),
        ("p50", Measure::Latency(whole, Quantile::P50)),
        ("p99", Measure::Latency(whole, Quantile::P99)),
        ("device written each", Measure::WrittenPerOperation),
        ("flushes each", Measure::FlushesPerOperation),
    ];
    let mut totals: Vec<Fact> = measures
        .into_iter()
        .filter_map(|(name, measure)| {
            let value = in_unit(summary.estimate(measure)?.median, measure.unit());
            Some(Fact { name, value })
        })
        .collect();
    let rate = summary.estimate(Measure::OperationsPerSecond);
    if let Some(spread) = rate.and_then(|rate| rate.spread) {
        totals.push(Fact {
            name: "95 % interval",
            value: format!("± {}", quantity::percent(Some(spread))),
        });
    }
    totals
}

/// What was done and where, and by what; the first line is the title of the section.
fn lines(document: &Document) -> Vec<String> {
    let mut lines = job::lines(document, true);
    lines.remove(0);
    let version = &document.iostep_version;
    lines.push(format!(
        "{} (iostep {version})",
        document.arguments.join(" ")
    ));
    lines
}

/// What was done, in a line.
pub(super) fn title(document: &Document) -> String {
    job::lines(document, true).swap_remove(0)
}

/// Throughput and what it is known to, for a heading.
pub(super) fn throughput(summary: &Summary) -> String {
    let measure = Measure::OperationsPerSecond;
    let estimate = summary.estimate(measure);
    let rate = estimate.map(|estimate| estimate.median);
    figure::or_dash(rate, measure.unit())
}
