//! Throughput: a line for each run, and what they say together.

use iostep_model::bench::RunState;

use crate::bench::{Estimate, Measure, RunSummary, Steadiness, Summary, Throughput};
use crate::report::quantity::{count, decimal, duration, percent};
use crate::report::text::Style;
use crate::report::text::grid::{Grid, grid};

/// A run's share of each column, or what the runs have together.
const MEASURES: [Measure; 3] = [
    Measure::OperationsPerSecond,
    Measure::BytesPerSecond,
    Measure::TimePerOperation,
];

/// What a row says of all runs: its name, and how an estimate is shown in it.
type Together = (&'static str, fn(&Estimate) -> String);

pub(super) fn table(summary: &Summary, style: Style) -> String {
    let work = summary.work;
    let (rate, time) = (format!(">{work}s/s"), format!(">mean time per {work}"));
    let names = [
        "run",
        ">elapsed",
        &format!(">{work}s"),
        &rate,
        ">KiB/s",
        &time,
        "",
    ];
    let mut table = grid(style, &names);
    for run in &summary.runs {
        let throughput = |value: fn(&Throughput) -> f64| {
            run.throughput
                .map_or_else(|| "-".into(), |throughput| decimal(value(&throughput)))
        };
        table.row([
            run.run.to_string(),
            duration(run.elapsed_ns),
            count(run.operations),
            throughput(|t| t.operations_per_second),
            throughput(Throughput::kib_per_second),
            run.time_per_operation_ns
                .map_or_else(|| "-".into(), |ns| duration(ns.round() as u64)),
            remark(run),
        ]);
    }
    if summary.runs.len() > 1 {
        together(summary, &mut table);
    }
    table.titled("Throughput") + &notes(summary)
}

fn together(summary: &Summary, table: &mut Grid) {
    let estimates = MEASURES.map(|measure| summary.estimate(measure));
    let rows: [Together; 4] = [
        ("median", |e| shown(e.measure, e.median)),
        ("least", |e| shown(e.measure, e.minimum)),
        ("greatest", |e| shown(e.measure, e.maximum)),
        ("mean, 95 %", |e| {
            let half = e.interval.map(|interval| interval.half_width());
            let half =
                half.map_or_else(String::new, |half| format!(" ± {}", shown(e.measure, half)));
            shown(e.measure, e.mean) + &half
        }),
    ];
    for (name, show) in rows {
        let mut row = vec![name.to_owned(), String::new(), String::new()];
        row.extend(estimates.map(|estimate| estimate.map_or_else(|| "-".into(), show)));
        let spread = estimates[0].and_then(|estimate| estimate.spread);
        row.push(match spread {
            Some(_) if name == "mean, 95 %" => format!("spread {}", percent(spread)),
            _ => String::new(),
        });
        table.row_of(row);
    }
}

fn shown(measure: Measure, value: f64) -> String {
    match measure {
        Measure::BytesPerSecond => decimal(value / 1024.0),
        Measure::TimePerOperation => duration(value.round() as u64),
        _ => decimal(value),
    }
}

fn remark(run: &RunSummary) -> String {
    match run.state {
        RunState::Complete if !run.is_whole() => "wrong content".into(),
        RunState::Complete => match run.steadiness {
            Steadiness::Steady => "steady".into(),
            Steadiness::NotSteady { .. } => "not steady".into(),
            Steadiness::TooShort => String::new(),
        },
        RunState::Interrupted => "interrupted".into(),
        RunState::Failed => "failed".into(),
    }
}

/// What is not in every result: idle time, and what a single run's seconds say of its precision.
fn notes(summary: &Summary) -> String {
    let mut notes = String::new();
    let rates: Vec<String> = summary
        .runs
        .iter()
        .filter_map(|run| Some(decimal(run.busy_throughput?.operations_per_second)))
        .collect();
    if !rates.is_empty() {
        notes.push_str(&format!(
            " without thinking and waiting for the schedule: {} {}s/s\n",
            rates.join(", "),
            summary.work
        ));
    }
    if let [run] = &summary.runs[..]
        && let Some((series, interval)) = run.per_second.and_then(|s| Some((s, s.interval?)))
    {
        notes.push_str(&format!(
            " its {} whole seconds: {} to {} {}s/s (95 %, inside this run; other runs may \
             differ by more: --repeat)\n",
            count(series.values),
            decimal(interval.low.max(0.0)),
            decimal(interval.high),
            summary.work
        ));
    }
    notes
}
