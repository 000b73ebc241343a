//! The tables of a result.

use iostep_model::bench::RunState;
use iostep_model::unit::Unit;
use iostep_report::document::{Cell, Detail, Table};
use iostep_report::quantity::Show as _;
use iostep_report::quantity::{count, decimal, percent};

use super::matrix::whole_step;
use crate::bench::{Estimate, Measure, RunSummary, Steadiness, Summary};

/// A measure, in the unit that a column's name has.
fn measured(measure: Measure, value: Option<f64>) -> Cell {
    match measure {
        Measure::BytesPerSecond => Cell::number(Unit::Mean, value.map(|value| value / 1024.0)),
        Measure::OperationsPerSecond => Cell::number(Unit::Mean, value),
        _ => Cell::number(measure.unit(), value),
    }
}

/// What all runs are told by.
const MEASURES: [Measure; 3] = [
    Measure::OperationsPerSecond,
    Measure::BytesPerSecond,
    Measure::TimePerOperation,
];

/// A line for each run, and what they say together.
pub(super) fn throughput(summary: &Summary, shown: &RunSummary) -> Table {
    let work = summary.work;
    let columns = [
        "run".to_owned(),
        ">elapsed".to_owned(),
        format!(">{work}s"),
        format!(">{work}s/s"),
        ">KiB/s".to_owned(),
        format!(">mean time per {work}"),
        ">p50".to_owned(),
        ">p99".to_owned(),
        ">p99.9".to_owned(),
        ">max".to_owned(),
        String::new(),
    ];
    let whole = whole_step(summary);
    let row = |run: &RunSummary| {
        let mut cells = vec![
            Cell::text(run.run.to_string()),
            Cell::duration(run.elapsed_ns),
            Cell::count(run.operations),
        ];
        cells.extend(MEASURES.map(|measure| measured(measure, measure.of(run))));
        let latency = run.latency(whole);
        cells.extend([
            Cell::duration(latency.map(|latency| latency.p50_ns)),
            Cell::duration(latency.map(|latency| latency.p99_ns)),
            Cell::duration(latency.map(|latency| latency.p99_9_ns)),
            Cell::duration(latency.map(|latency| latency.max_ns)),
            Cell::text(remark(run)),
        ]);
        cells
    };
    let mut table = Table::new("Throughput", columns)
        .note(format!("Latency is that of the step \"{}\".", whole.name()))
        .from(Detail::Page, &["p50", "p99", "p99.9", "max"])
        .in_order()
        .rows(summary.runs.iter().map(row));
    table.lines = notes(summary);
    if summary.runs.len() > 1 {
        table.rows.extend(together(summary));
        let run = shown.run;
        let line = format!("shown below: run {run}, the nearest to the median");
        table.lines.push(line);
    }
    table
}

/// What a row says of all runs: its name, and a number of an estimate.
type Together = (&'static str, fn(&Estimate) -> f64);

fn together(summary: &Summary) -> impl Iterator<Item = Vec<Cell>> {
    let rows: [Together; 4] = [
        ("median", |e| e.median),
        ("least", |e| e.minimum),
        ("greatest", |e| e.maximum),
        ("mean, 95 %", |e| e.mean),
    ];
    rows.into_iter().map(|(name, of)| {
        let is_mean = name == "mean, 95 %";
        let empty = |cells: usize| (0..cells).map(|_| Cell::default());
        let mut row = vec![Cell::text(name)];
        row.extend(empty(2));
        row.extend(MEASURES.map(|measure| {
            let estimate = summary.estimate(measure);
            let cell = measured(measure, estimate.map(of));
            let interval = estimate.and_then(|estimate| estimate.interval);
            match interval.filter(|_| is_mean) {
                None => cell,
                Some(interval) => {
                    let half = measured(measure, Some(interval.half_width()));
                    let text = format!("{} ± {}", cell.text, half.text);
                    cell.saying(text)
                }
            }
        }));
        row.extend(empty(4));
        let rate = summary.estimate(Measure::OperationsPerSecond);
        let spread = rate.and_then(|rate| rate.spread).filter(|_| is_mean);
        row.push(spread.map_or_else(Cell::default, |spread| {
            Cell::text(format!("spread {}", percent(Some(spread))))
        }));
        row
    })
}

fn remark(run: &RunSummary) -> &'static str {
    match run.state {
        RunState::Complete if !run.is_whole() => "wrong content",
        RunState::Complete => match run.steadiness {
            Steadiness::Steady => "steady",
            Steadiness::NotSteady { .. } => "not steady",
            Steadiness::TooShort => "",
        },
        RunState::Interrupted => "interrupted",
        RunState::Failed => "failed",
    }
}

/// What is not in every result: idle time, and what a single run's seconds say of its precision.
fn notes(summary: &Summary) -> Vec<String> {
    let mut notes = Vec::new();
    let rates: Vec<String> = summary
        .runs
        .iter()
        .filter_map(|run| Some(decimal(run.busy_throughput?.operations_per_second)))
        .collect();
    if !rates.is_empty() {
        notes.push(format!(
            "without thinking and waiting for the schedule: {} {}s/s",
            rates.join(", "),
            summary.work
        ));
    }
    if let [run] = &summary.runs[..]
        && let Some((series, interval)) = run.per_second.and_then(|s| Some((s, s.interval?)))
    {
        notes.push(format!(
            "its {} whole seconds: {} to {} {}s/s (95 %, inside this run; other runs may \
             differ by more: --repeat)",
            count(series.values),
            decimal(interval.low.max(0.0)),
            decimal(interval.high),
            summary.work
        ));
    }
    notes
}

/// The steps of these runs.
pub(super) fn latency<'a>(title: String, runs: impl IntoIterator<Item = &'a RunSummary>) -> Table {
    let columns = [
        "step", ">run", ">count", ">mean", ">min", ">p50", ">p90", ">p95", ">p99", ">p99.9",
        ">p99.99", ">max",
    ];
    let rows = runs.into_iter().flat_map(|run| {
        run.latencies.iter().map(|latency| {
            let mut cells = vec![
                Cell::text(latency.step.name()),
                Cell::count(run.run.into()),
                Cell::count(latency.count),
                Cell::number(Unit::Nanoseconds, latency.mean_ns),
            ];
            let values = [
                latency.min_ns,
                latency.p50_ns,
                latency.p90_ns,
                latency.p95_ns,
                latency.p99_ns,
                latency.p99_9_ns,
                latency.p99_99_ns,
                latency.max_ns,
            ];
            cells.extend(values.map(Cell::duration));
            cells
        })
    });
    Table::new(title, columns)
        .note("Nearest rank, to 0.4 %.")
        .from(Detail::Page, &["run", "min"])
        .rows(rows)
}

/// What an operation cost the processors and the device.
pub(super) fn cost(summary: &Summary) -> Table {
    let columns = [
        "run",
        ">user",
        ">system",
        ">of a CPU",
        ">switches",
        ">forced",
        ">written",
        ">read",
        ">writes",
        ">reads",
        ">flushes",
        ">amplification",
        ">machine",
        ">others",
    ];
    let article = match summary.work {
        "operation" => "an",
        _ => "a",
    };
    let rows = summary.runs.iter().map(|run| {
        let (cpu, device) = (&run.cpu, run.device.as_ref());
        let cpus = cpu.user_cpus.zip(cpu.system_cpus);
        let amplification = device.and_then(|d| d.write_amplification);
        vec![
            Cell::text(run.run.to_string()),
            Cell::number(Unit::Nanoseconds, cpu.user_ns_per_operation),
            Cell::number(Unit::Nanoseconds, cpu.system_ns_per_operation),
            Cell::share(cpus.map(|(user, system)| user + system)),
            Cell::number(Unit::Mean, cpu.voluntary_switches_per_operation),
            Cell::number(Unit::Mean, cpu.involuntary_switches_per_operation),
            Cell::number(
                Unit::Bytes,
                device.and_then(|d| d.written_bytes_per_operation),
            ),
            Cell::number(Unit::Bytes, device.and_then(|d| d.read_bytes_per_operation)),
            Cell::number(Unit::Mean, device.and_then(|d| d.writes_per_operation)),
            Cell::number(Unit::Mean, device.and_then(|d| d.reads_per_operation)),
            Cell::number(Unit::Mean, device.and_then(|d| d.flushes_per_operation)),
            Cell::number(Unit::Factor, amplification),
            Cell::share(cpu.machine.map(|machine| machine.active)),
            Cell::share(cpu.machine.map(|machine| machine.others)),
        ]
    });
    let title = format!(
        "Cost of {article} {}: processor, context switches, device",
        summary.work
    );
    Table::new(title, columns)
        .note(
            "CPU is that of the load's own threads. Machine is the share of all CPUs that was \
             active; others is what of it was not the load's, with the kernel's own threads.",
        )
        .from(Detail::Page, &["machine", "others"])
        .rows(rows)
}

/// What several runs say together of each measure.
pub(super) fn estimates(summary: &Summary) -> Table {
    let columns = [
        "measure",
        ">runs",
        ">median",
        ">95 % interval",
        ">spread",
        ">least",
        ">greatest",
    ];
    let rows = summary.estimates.iter().map(|estimate| {
        let unit = estimate.measure.unit();
        let interval = estimate.interval.map_or_else(
            || "-".to_owned(),
            |ends| format!("{} to {}", unit.show(ends.low), unit.show(ends.high)),
        );
        vec![
            Cell::text(estimate.measure.label(summary.work)),
            Cell::count(estimate.runs),
            Cell::number(unit, estimate.median),
            Cell::number(unit, estimate.mean).saying(interval),
            Cell::share(estimate.spread),
            Cell::number(unit, estimate.minimum),
            Cell::number(unit, estimate.maximum),
        ]
    });
    Table::new("All runs together", columns)
        .note(
            "Complete runs. The interval is that of the mean, by Student's t over the runs; the \
             spread is half of it over the median.",
        )
        .in_order()
        .rows(rows)
}
