//! A lab's results as one HTML page with the papers' figures: no network, no other file.

mod bars;
mod scatter;
mod tables;
#[cfg(test)]
mod tests;

use askama::Template;

use super::text::{findings, lines, open};
use crate::lab::{Evidence, Finding, Grid, Missing, Report, Verdict};
use crate::report::bench::html::{SCRIPT, STYLE};
use crate::report::html::table::Table;
use crate::report::quantity::count;
use bars::Bars;
use scatter::Scatter;

const OWN_STYLE: &str = include_str!("lab.css");

/// A table with its figures.
struct Section {
    table: Table,
    found: String,
    differs: String,
    charts: Vec<Bars>,
}

#[derive(Template)]
#[template(path = "lab.html")]
struct Page<'a> {
    title: String,
    version: &'static str,
    style: String,
    script: &'static str,
    /// What makes the result less than it seems.
    alarms: Vec<String>,
    /// Where it was measured.
    lines: Vec<String>,
    findings: &'a [Finding],
    sections: Vec<Section>,
    patterns: Vec<Scatter>,
    missing: Option<Table>,
}

impl Page<'_> {
    fn numbers(&self, evidence: &Evidence) -> String {
        findings::numbers(evidence)
    }

    fn absent(&self, missing: &Missing) -> String {
        findings::absent(missing)
    }

    fn class(&self, finding: &Finding) -> &'static str {
        match finding.verdict {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does-not-hold",
            Verdict::Open => "open",
        }
    }
}

/// The page of a lab.
///
/// Names in it come from the lab's file, which anybody may have written, and are escaped.
pub fn render(report: &Report) -> String {
    let page = Page {
        title: format!("{}: {}", report.name, report.title),
        version: env!("CARGO_PKG_VERSION"),
        style: [STYLE, OWN_STYLE].concat(),
        script: &SCRIPT,
        alarms: alarms(report),
        lines: lines(report),
        findings: &report.findings,
        sections: report.grids.iter().map(section).collect(),
        patterns: report.patterns.iter().filter_map(Scatter::of).collect(),
        missing: tables::missing(&report.incomplete),
    };
    page.render()
        .expect("writing to memory cannot fail, and the template has no errors of its own")
}

fn alarms(report: &Report) -> Vec<String> {
    match open(&report.incomplete).count() {
        0 => Vec::new(),
        cells => vec![format!(
            "{} of {} cells have no complete result",
            count(cells as u64),
            count(report.cells as u64)
        )],
    }
}

fn section(grid: &Grid) -> Section {
    Section {
        table: tables::of(grid),
        found: grid.found.clone(),
        differs: grid.differs.clone(),
        charts: bars::of(grid),
    }
}
