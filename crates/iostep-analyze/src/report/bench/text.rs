//! A bench as text: what `iostep bench` prints at its end.

pub mod comparison;
mod cost;
mod latency;
pub mod matrix;
mod plot;
mod result;
mod runs;
#[cfg(test)]
mod tests;

use iostep_model::bench::{Document, RunState};
use iostep_model::printable;

use super::{advice, job};
use crate::bench::{Measure, RunSummary, Summary};
use crate::report::quantity::count;
use crate::report::text::Style;

/// The whole result. What went wrong comes first, then the result in a line, then what was done,
/// then what spoils the figures, then the figures. `verbose` adds every setting of SQLite.
pub fn render(document: &Document, summary: &Summary, verbose: bool, style: Style) -> String {
    let mut text: String = complaints(summary)
        .iter()
        .map(|complaint| style.alarm(&printable(complaint)) + "\n")
        .collect();
    let shown = typical(summary);
    text.extend(shown.map(|shown| style.bold(&result::line(summary, shown)) + "\n"));
    let lines = job::lines(document, verbose).into_iter();
    text.extend(lines.map(|line| format!(" {line}\n")));
    for warning in &summary.warnings {
        let (fact, advice) = advice::of(warning);
        let fact = printable(&fact);
        text.push_str(&format!("{} {fact}; {advice}\n", style.bold("warning:")));
    }
    text.push_str(&runs::table(summary, style));
    let Some(shown) = shown else {
        return text;
    };
    if summary.runs.len() > 1 {
        text.push_str(&format!(
            " shown below: run {}, the nearest to the median\n",
            shown.run
        ));
    }
    text.push_str(&latency::table(summary, shown, style));
    if let Some(run) = document.runs.get(shown.run as usize - 1) {
        text.push_str(&plot::of(
            run,
            &title_of(summary, shown, "Throughput"),
            style,
        ));
    }
    text.push_str(&cost::table(summary, style));
    text.push_str(&cost::lines(summary, shown, style));
    text
}

/// What went wrong, a line each: incomplete runs first, then failed operations and wrong content.
pub(super) fn complaints(summary: &Summary) -> Vec<String> {
    let runs = &summary.runs;
    let mut complaints = Vec::new();
    if runs.is_empty() {
        complaints.push("NOTHING MEASURED: there is no run".to_owned());
    }
    complaints.extend(runs.iter().filter_map(|run| partial(summary.work, run)));
    for run in runs {
        complaints.extend(run.failures.iter().map(|failure| {
            format!(
                "FAILED: run {}, thread {}, {} {}: {}: {}",
                run.run,
                failure.thread,
                summary.work,
                count(failure.operation),
                failure.attempt,
                failure.reason
            )
        }));
        let found = run.verification.as_ref().filter(|found| found.wrong > 0);
        complaints.extend(found.map(|found| {
            format!(
                "WRONG CONTENT: run {}: {} of {} that were read back; {}",
                run.run,
                count(found.wrong),
                count(found.compared),
                found.examples.join("; ")
            )
        }));
    }
    complaints
}

fn partial(work: &str, run: &RunSummary) -> Option<String> {
    let why = match run.state {
        RunState::Complete => return None,
        RunState::Interrupted => "was interrupted",
        RunState::Failed => "failed",
    };
    Some(format!(
        "PARTIAL: run {} {why}; what is here is what was done until then, {} {work}s",
        run.run,
        count(run.operations)
    ))
}

/// The run that stands for all: the complete one whose throughput is nearest to the median, or
/// the last one if none is complete.
fn typical(summary: &Summary) -> Option<&RunSummary> {
    let Some(estimate) = summary.estimate(Measure::OperationsPerSecond) else {
        return summary.runs.last();
    };
    let distance = |run: &RunSummary| {
        let rate = Measure::OperationsPerSecond
            .of(run)
            .unwrap_or(f64::INFINITY);
        (rate - estimate.median).abs()
    };
    let complete = summary.runs.iter();
    complete
        .filter(|run| run.state == RunState::Complete)
        .min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// A title that says which run a table is of, where there are several.
fn title_of(summary: &Summary, run: &RunSummary, what: &str) -> String {
    match summary.runs.len() {
        1 => what.to_owned(),
        _ => format!("{what} of run {}", run.run),
    }
}
