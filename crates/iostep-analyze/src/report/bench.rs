//! The runs of a generator as a report: what `iostep bench` prints at its end, and its page.

pub mod advice;
mod comparison;
pub mod csv;
mod distribution;
pub mod job;
mod matrix;
mod tables;
#[cfg(test)]
mod tests;
mod timeline;
mod totals;

use iostep_model::bench::{Document as Result, RunState, Step};
use iostep_model::unit::Unit;
use iostep_report::document::{Block, Detail, Document, Section};
use iostep_report::plot::drawing;
use iostep_report::quantity::Show as _;
use iostep_report::quantity::{count, decimal, percent};

use crate::bench::{Measure, Quantile, RunSummary, Summary};
use timeline::Timeline;

pub use comparison::document as comparison;
pub use matrix::{Cell, document as matrix, page as matrix_page};

/// The report of a result. What went wrong comes first, then the result in a line, then what was
/// done, then what spoils the figures, then the figures. `verbose` adds every setting of SQLite.
pub fn document(result: &Result, summary: &Summary, verbose: bool) -> Document {
    Document::of(section(result, summary, verbose))
}

fn section(result: &Result, summary: &Summary, verbose: bool) -> Section {
    let mut lines = job::lines(result, verbose);
    let mut section = Section::new(lines.remove(0));
    section.alarms = complaints(summary);
    let shown = typical(summary);
    section.headline = shown.map_or_else(String::new, |shown| headline(summary, shown));
    section.push(Block::Lines(lines));
    let version = &result.iostep_version;
    let arguments = format!("{} (iostep {version})", result.arguments.join(" "));
    section.push_from(Detail::Page, Block::Lines(vec![arguments]));
    section.push(Block::Warnings(
        summary.warnings.iter().map(advice::of).collect(),
    ));
    section.push_from(Detail::Page, Block::Totals(few(summary)));
    let mut plots = Timeline::of(result, summary.work).plots();
    plots.extend(distribution::plot(result));
    section.push(Block::Plots(plots));
    let Some(shown) = shown else {
        return section;
    };
    section.push(Block::Table(tables::throughput(summary, shown)));
    let title = title_of(summary, shown, "Latency");
    section.push(Block::InText(tables::latency(title, [shown])));
    let all = tables::latency("Latency".to_owned(), &summary.runs);
    section.push_from(Detail::Page, Block::Table(all));
    let rates = result.runs.get(shown.run as usize - 1).map(timeline::rates);
    let drawing = rates.and_then(|rates| drawing::blocks(&rates));
    let title = title_of(summary, shown, "Throughput") + ", by second";
    section.push(Block::Drawing(title, drawing.unwrap_or_default()));
    section.push(Block::Table(tables::cost(summary)));
    let mut totals = Section::new(title_of(summary, shown, "Totals"));
    totals.push(Block::Lines(totals::lines(
        &result.environment,
        summary,
        shown,
    )));
    section.push(Block::Section(totals));
    if summary.runs.len() > 1 {
        section.push_from(Detail::Page, Block::Table(tables::estimates(summary)));
    }
    section
}

/// What went wrong, a line each: incomplete runs first, then failed operations and wrong content.
fn complaints(summary: &Summary) -> Vec<String> {
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

/// The step that is the whole operation.
fn whole_step(is_known: impl Fn(Step) -> bool) -> Option<Step> {
    let steps = [Step::Total, Step::Transaction, Step::Write, Step::Read];
    steps.into_iter().find(|step| is_known(*step))
}

/// `4,050 transactions/s, p50 206 µs, p99 750 µs; each 60.7 KiB written, 4.03 flushes`. Medians of
/// the complete runs; where none is complete, the values of `shown`.
fn headline(summary: &Summary, shown: &RunSummary) -> String {
    let value = |measure: Measure| {
        let estimate = summary.estimate(measure);
        estimate.map_or_else(|| measure.of(shown), |estimate| Some(estimate.median))
    };
    let told = |measure: Measure| Some(measure.unit().show(value(measure)?));
    let mut words = Vec::new();
    let rate = value(Measure::OperationsPerSecond).map_or_else(|| "-".into(), decimal);
    if summary.work == "operation" {
        words.push(format!("{rate} IOPS"));
        words.extend(told(Measure::BytesPerSecond));
    } else {
        words.push(format!("{rate} {}s/s", summary.work));
    }
    let step = whole_step(|step| shown.latency(step).is_some());
    for (name, quantile) in [("p50", Quantile::P50), ("p99", Quantile::P99)] {
        let latency = step.and_then(|step| told(Measure::Latency(step, quantile)));
        words.extend(latency.map(|latency| format!("{name} {latency}")));
    }
    let mut text = words.join(", ");
    let each = [
        (Measure::ReadPerOperation, "read"),
        (Measure::WrittenPerOperation, "written"),
        (Measure::FlushesPerOperation, "flushes"),
    ];
    let each: Vec<String> = each
        .into_iter()
        .filter(|(measure, _)| value(*measure).is_some_and(|amount| amount > 0.0))
        .filter_map(|(measure, what)| Some(format!("{} {what}", told(measure)?)))
        .collect();
    if !each.is_empty() {
        text.push_str(&format!("; each {}", each.join(", ")));
    }
    if let Some(device) = shown.device.as_ref().filter(|device| !device.is_own) {
        let whose = match device.others.written_bytes {
            0 => "reads",
            _ => "writes",
        };
        text.push_str(&format!(
            "; what each {whose} is not known: others used the device"
        ));
    }
    if let Some(rate) = summary.estimate(Measure::OperationsPerSecond)
        && rate.runs > 1
    {
        let spread = rate.spread.map_or_else(String::new, |spread| {
            format!(", spread {}", percent(Some(spread)))
        });
        text.push_str(&format!(" (medians of {} runs{spread})", rate.runs));
    }
    text
}

/// The few numbers that matter most.
fn few(summary: &Summary) -> Vec<(&'static str, String)> {
    let whole = matrix::whole_step(summary);
    let measures = [
        ("throughput", Measure::OperationsPerSecond),
        ("payload", Measure::BytesPerSecond),
        ("mean time", Measure::TimePerOperation),
        ("p50", Measure::Latency(whole, Quantile::P50)),
        ("p99", Measure::Latency(whole, Quantile::P99)),
        ("device written each", Measure::WrittenPerOperation),
        ("flushes each", Measure::FlushesPerOperation),
    ];
    let found = measures.into_iter().filter_map(|(name, measure)| {
        let median = summary.estimate(measure)?.median;
        Some((name, measure.unit().show(median)))
    });
    let rate = summary.estimate(Measure::OperationsPerSecond);
    let spread = rate.and_then(|rate| rate.spread);
    let spread = spread.map(|spread| ("95 % interval", format!("± {}", Unit::Share.show(spread))));
    found.chain(spread).collect()
}
