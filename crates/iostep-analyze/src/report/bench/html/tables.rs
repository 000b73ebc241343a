//! The tables of one job.

use iostep_model::bench::{RunState, Step};

use super::figure::{in_unit, or_dash};
use crate::bench::{Estimate, Measure, RunSummary, StepLatency, Summary, Unit};
use crate::report::bench::text::matrix::whole_step;
use crate::report::html::table::{Cell, Table, heads};
use crate::report::quantity;

/// Runs, steps and, of several runs, what they say together.
pub(super) fn of(summary: &Summary) -> Vec<Table> {
    let mut tables = vec![runs(summary), steps(summary)];
    if summary.runs.len() > 1 {
        tables.push(estimates(summary));
    }
    tables
}

/// A number's cell; what is not there sorts first.
pub(super) fn cell(value: Option<f64>, unit: Unit) -> Cell {
    Cell {
        text: or_dash(value, unit),
        sort: Some(value.unwrap_or(-1.0)),
        ..Cell::default()
    }
}

/// A measure's cell, in a run that may not have it.
fn measured(run: &RunSummary, measure: Measure) -> Cell {
    cell(measure.of(run), measure.unit())
}

fn runs(summary: &Summary) -> Table {
    let whole = whole_step(summary);
    Table {
        title: "Runs".to_owned(),
        note: format!(
            "Latency is that of the step \"{}\". Each is one {}; CPU is that of the load's own \
             threads. Machine is the share of all CPUs that was active; others is what of it \
             was not the load's, with the kernel's own threads.",
            whole.name(),
            summary.work
        ),
        heads: heads(&[
            "#run",
            "state",
            "#measured",
            "#done",
            "#throughput",
            "#payload",
            "#mean time",
            "#p50",
            "#p99",
            "#p99.9",
            "#maximum",
            "#CPU each",
            "#switches each",
            "#written each",
            "#flushes each",
            "#machine",
            "#others",
        ]),
        rows: summary.runs.iter().map(|run| row(run, whole)).collect(),
        rest: None,
        sortable: summary.runs.len() > 1,
    }
}

fn row(run: &RunSummary, whole: Step) -> Vec<Cell> {
    let latency = run.latency(whole);
    let percentile = |of: fn(&StepLatency) -> u64| Cell::duration(latency.map(of));
    let share = |share: Option<f64>| Cell {
        text: quantity::percent(share),
        sort: Some(share.unwrap_or(-1.0)),
        ..Cell::default()
    };
    let machine = run.cpu.machine;
    vec![
        Cell::count(run.run.into()),
        Cell::text(state(run.state)),
        Cell::duration(Some(run.elapsed_ns)),
        Cell::count(run.operations),
        measured(run, Measure::OperationsPerSecond),
        measured(run, Measure::BytesPerSecond),
        measured(run, Measure::TimePerOperation),
        percentile(|latency| latency.p50_ns),
        percentile(|latency| latency.p99_ns),
        percentile(|latency| latency.p99_9_ns),
        percentile(|latency| latency.max_ns),
        measured(run, Measure::CpuPerOperation),
        measured(run, Measure::SwitchesPerOperation),
        measured(run, Measure::WrittenPerOperation),
        measured(run, Measure::FlushesPerOperation),
        share(machine.map(|machine| machine.active)),
        share(machine.map(|machine| machine.others)),
    ]
}

fn state(state: RunState) -> &'static str {
    match state {
        RunState::Complete => "complete",
        RunState::Interrupted => "interrupted",
        RunState::Failed => "failed",
    }
}

fn steps(summary: &Summary) -> Table {
    let rows = summary.runs.iter().flat_map(|run| {
        run.latencies.iter().map(|latency| {
            let mut cells = vec![
                Cell::text(latency.step.name()),
                Cell::count(run.run.into()),
                Cell::count(latency.count),
                cell(Some(latency.mean_ns), Unit::Nanoseconds),
            ];
            cells.extend(values(latency).map(|ns| Cell::duration(Some(ns))));
            cells
        })
    });
    Table {
        title: "Steps".to_owned(),
        note: "Nearest rank, to 0.4 %.".to_owned(),
        heads: heads(&[
            "step", "#run", "#count", "#mean", "#minimum", "#p50", "#p90", "#p95", "#p99",
            "#p99.9", "#p99.99", "#maximum",
        ]),
        rows: rows.collect(),
        rest: None,
        sortable: true,
    }
}

fn values(latency: &StepLatency) -> [u64; 8] {
    [
        latency.min_ns,
        latency.p50_ns,
        latency.p90_ns,
        latency.p95_ns,
        latency.p99_ns,
        latency.p99_9_ns,
        latency.p99_99_ns,
        latency.max_ns,
    ]
}

fn estimates(summary: &Summary) -> Table {
    let row = |estimate: &Estimate| {
        let unit = estimate.measure.unit();
        let interval = estimate.interval.map_or_else(
            || "-".to_owned(),
            |ends| {
                format!(
                    "{} to {}",
                    in_unit(ends.low, unit),
                    in_unit(ends.high, unit)
                )
            },
        );
        vec![
            Cell::text(estimate.measure.label(summary.work)),
            Cell::count(estimate.runs),
            cell(Some(estimate.median), unit),
            Cell {
                text: interval,
                sort: Some(estimate.mean),
                ..Cell::default()
            },
            Cell {
                text: quantity::percent(estimate.spread),
                sort: Some(estimate.spread.unwrap_or(-1.0)),
                ..Cell::default()
            },
            cell(Some(estimate.minimum), unit),
            cell(Some(estimate.maximum), unit),
        ]
    };
    Table {
        title: "All runs together".to_owned(),
        note: "Complete runs. The interval is that of the mean, by Student's t over the runs; the \
               spread is half of it over the median."
            .to_owned(),
        heads: heads(&[
            "measure",
            "#runs",
            "#median",
            "#95 % interval",
            "#spread",
            "#least",
            "#greatest",
        ]),
        rows: summary.estimates.iter().map(row).collect(),
        rest: None,
        sortable: false,
    }
}
