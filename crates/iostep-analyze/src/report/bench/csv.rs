//! Comma-separated values (RFC 4180): a line for each run, or for each second.
//!
//! The columns are the same for every job, so that files can be put together; a number that a run
//! does not have is empty.

use std::io::{self, Write};

use iostep_model::bench::{Document, RunState, Step};
use iostep_model::manifest::Counters;

use crate::bench::{RunSummary, SeriesMean, Steadiness, StepLatency, Summary, Throughput};
use crate::report::export::csv::cell;
use crate::stats::amount::ratio;

const SECOND_COLUMNS: [&str; 12] = [
    "run",
    "second",
    "length_ns",
    "operations",
    "bytes",
    "operations_per_second",
    "latency_mean_ns",
    "latency_max_ns",
    "device_written_bytes",
    "device_writes",
    "device_read_bytes",
    "device_flushes",
];

/// A column: its name, which ends in its unit, and its value.
type Field = (String, String);

/// A column of a step: the end of its name, and its value.
type LatencyColumn = (&'static str, fn(&StepLatency) -> String);

/// A line for each run with all of its numbers and the command's arguments, below a line of names.
pub fn render(document: &Document, summary: &Summary) -> String {
    let mut out = Vec::new();
    runs(&mut out, document, summary).expect("a vector takes everything");
    String::from_utf8(out).expect("only text was written")
}

/// Writes what [`render`] says.
///
/// Errors: those of `out`.
pub fn runs(out: &mut impl Write, document: &Document, summary: &Summary) -> io::Result<()> {
    let arguments = document.arguments.join(" ");
    let rows: Vec<Vec<Field>> = summary
        .runs
        .iter()
        .map(|run| fields(&arguments, run))
        .collect();
    let names = match rows.first() {
        Some(row) => row.iter().map(|(name, _)| name.clone()).collect(),
        None => vec!["arguments".to_owned(), "run".to_owned()],
    };
    line(out, &names)?;
    for row in rows {
        let values: Vec<String> = row.into_iter().map(|(_, value)| value).collect();
        line(out, &values)?;
    }
    Ok(())
}

/// Writes a line for each second of each run, below a line of names. A last second that is
/// shorter has its real length, to which its rate refers.
///
/// Errors: those of `out`.
pub fn seconds(out: &mut impl Write, document: &Document) -> io::Result<()> {
    line(out, &SECOND_COLUMNS.map(str::to_owned))?;
    for (run, seconds) in (1..).zip(document.runs.iter().map(|run| &run.seconds)) {
        for (number, second) in (1..).zip(seconds) {
            let rate = ratio(second.operations, second.length_ns).map(|rate| rate * 1e9);
            let mean = ratio(second.latency_sum_ns, second.operations);
            let device = |value: fn(&Counters) -> u64| optional(second.device.as_ref().map(value));
            let numbers: [u64; 2] = [run, number];
            let mut values: Vec<String> = numbers.map(|number| number.to_string()).into();
            let done = [second.length_ns, second.operations, second.bytes];
            values.extend(done.map(|number| number.to_string()));
            values.extend([optional(rate), optional(mean)]);
            values.push(second.latency_max_ns.to_string());
            values.extend([
                device(|counters| counters.write.bytes),
                device(|counters| counters.write.ios),
                device(|counters| counters.read.bytes),
                device(|counters| counters.flush.ios),
            ]);
            line(out, &values)?;
        }
    }
    Ok(())
}

fn line(out: &mut impl Write, values: &[String]) -> io::Result<()> {
    for (place, value) in values.iter().enumerate() {
        let separator = if place > 0 { "," } else { "" };
        write!(out, "{separator}{}", cell(value))?;
    }
    out.write_all(b"\r\n")
}

fn optional(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn fields(arguments: &str, run: &RunSummary) -> Vec<Field> {
    let mut fields = Vec::new();
    let mut add = |name: &str, value: String| fields.push((name.to_owned(), value));
    add("arguments", arguments.to_owned());
    add("run", run.run.to_string());
    add("state", state(run.state).into());
    add("start_wall_ns", run.start_wall_ns.to_string());
    add("elapsed_ns", run.elapsed_ns.to_string());
    add("operations", run.operations.to_string());
    add("bytes", run.bytes.to_string());
    for (name, throughput) in [("", run.throughput), ("busy_", run.busy_throughput)] {
        let value = |of: fn(&Throughput) -> f64| optional(throughput.as_ref().map(of));
        add(
            &format!("{name}operations_per_second"),
            value(|t| t.operations_per_second),
        );
        add(
            &format!("{name}bytes_per_second"),
            value(|t| t.bytes_per_second),
        );
    }
    add("time_per_operation_ns", optional(run.time_per_operation_ns));
    add("steadiness", steadiness(run));
    add(
        "effective_seconds",
        optional(
            run.per_second
                .map(|series: SeriesMean| series.effective_values),
        ),
    );
    for step in Step::ALL {
        latency(&mut add, step, run.latency(step));
    }
    cpu(&mut add, run);
    device(&mut add, run);
    rest(&mut add, run);
    fields
}

fn latency(add: &mut impl FnMut(&str, String), step: Step, found: Option<&StepLatency>) {
    let values: [LatencyColumn; 10] = [
        ("count", |l| l.count.to_string()),
        ("mean_ns", |l| l.mean_ns.to_string()),
        ("min_ns", |l| l.min_ns.to_string()),
        ("p50_ns", |l| l.p50_ns.to_string()),
        ("p90_ns", |l| l.p90_ns.to_string()),
        ("p95_ns", |l| l.p95_ns.to_string()),
        ("p99_ns", |l| l.p99_ns.to_string()),
        ("p99_9_ns", |l| l.p99_9_ns.to_string()),
        ("p99_99_ns", |l| l.p99_99_ns.to_string()),
        ("max_ns", |l| l.max_ns.to_string()),
    ];
    let step = step.name().replace(' ', "_");
    for (name, value) in values {
        add(&format!("{step}_{name}"), optional(found.map(value)));
    }
}

fn cpu(add: &mut impl FnMut(&str, String), run: &RunSummary) {
    let cpu = &run.cpu;
    add("user_ns_per_operation", optional(cpu.user_ns_per_operation));
    add(
        "system_ns_per_operation",
        optional(cpu.system_ns_per_operation),
    );
    add("user_cpus", optional(cpu.user_cpus));
    add("system_cpus", optional(cpu.system_cpus));
    add("voluntary_switches", cpu.voluntary_switches.to_string());
    add("involuntary_switches", cpu.involuntary_switches.to_string());
    let machine = cpu.machine.as_ref();
    add("machine_active_share", optional(machine.map(|m| m.active)));
    add("machine_idle_share", optional(machine.map(|m| m.idle)));
    add("machine_iowait_share", optional(machine.map(|m| m.iowait)));
    add("machine_irq_share", optional(machine.map(|m| m.irq)));
    add(
        "machine_softirq_share",
        optional(machine.map(|m| m.softirq)),
    );
    add("machine_steal_share", optional(machine.map(|m| m.steal)));
    add("machine_others_share", optional(machine.map(|m| m.others)));
}

fn device(add: &mut impl FnMut(&str, String), run: &RunSummary) {
    let device = run.device.as_ref();
    let counter = |value: fn(&Counters) -> u64| optional(device.map(|d| value(&d.counters)));
    add("device_written_bytes", counter(|c| c.write.bytes));
    add("device_writes", counter(|c| c.write.ios));
    add("device_read_bytes", counter(|c| c.read.bytes));
    add("device_reads", counter(|c| c.read.ios));
    add("device_discarded_bytes", counter(|c| c.discard.bytes));
    add("device_flushes", counter(|c| c.flush.ios));
    let share = device.and_then(|d| d.written_bytes_per_operation);
    add("device_written_bytes_per_operation", optional(share));
    let share = device.and_then(|d| d.read_bytes_per_operation);
    add("device_read_bytes_per_operation", optional(share));
    let share = device.and_then(|d| d.flushes_per_operation);
    add("device_flushes_per_operation", optional(share));
    let share = device.and_then(|d| d.write_amplification);
    add("write_amplification", optional(share));
}

fn rest(add: &mut impl FnMut(&str, String), run: &RunSummary) {
    let cache = run.page_cache.as_ref();
    add("page_cache_pages", optional(cache.map(|c| c.pages)));
    add(
        "page_cache_resident_pages",
        optional(cache.map(|c| c.resident_pages)),
    );
    add(
        "page_cache_dirty_pages",
        optional(cache.and_then(|c| c.dirty_pages)),
    );
    let threads = run.threads.as_ref();
    add(
        "slowest_thread_operations_per_second",
        optional(threads.map(|t| t.slowest_per_second)),
    );
    add(
        "fastest_thread_operations_per_second",
        optional(threads.map(|t| t.fastest_per_second)),
    );
    let read_back = run.verification.as_ref();
    add("verified", optional(read_back.map(|found| found.compared)));
    add(
        "verified_wrong",
        optional(read_back.map(|found| found.wrong)),
    );
    add("failures", run.failures.len().to_string());
    let first = run.failures.first();
    add(
        "failed_thread",
        optional(first.map(|failure| failure.thread)),
    );
    add(
        "failed_operation",
        optional(first.map(|failure| failure.operation)),
    );
    add(
        "failed_attempt",
        optional(first.map(|failure| &failure.attempt)),
    );
    add(
        "failed_reason",
        optional(first.map(|failure| &failure.reason)),
    );
}

fn state(state: RunState) -> &'static str {
    match state {
        RunState::Complete => "complete",
        RunState::Interrupted => "interrupted",
        RunState::Failed => "failed",
    }
}

fn steadiness(run: &RunSummary) -> String {
    match run.steadiness {
        Steadiness::TooShort => "too short to tell".into(),
        Steadiness::Steady => "steady".into(),
        Steadiness::NotSteady { reason } => reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fixture;
    use iostep_model::bench::Failure;

    fn text(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).expect("a vector takes it");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn every_job_has_the_same_columns_and_every_line_all_of_them() {
        let [file, sqlite] = [fixture::write_fdatasync(3), fixture::sqlite_wal(2)]
            .map(|document| render(&document, &Summary::of(&document)));
        assert_eq!(file.split("\r\n").count(), 1 + 3 + 1);
        assert_eq!(file.lines().next(), sqlite.lines().next());
        let columns = |line: &str| line.split(',').count();
        let header = file.lines().next().map(columns);
        assert!(file.lines().all(|line| Some(columns(line)) == header));
        insta::assert_snapshot!(file.lines().next().unwrap_or_default().replace(',', "\n"));
    }

    #[test]
    fn words_with_commas_and_quotes_are_one_field() {
        let mut document = fixture::write_fdatasync(1);
        document.runs[0].failures = vec![Failure {
            thread: 0,
            operation: 7,
            attempt: "write of \"a,b\"".into(),
            reason: "no\nspace".into(),
        }];
        let text = render(&document, &Summary::of(&document));
        let end = ",1,0,7,\"write of \"\"a,b\"\"\",\"no\nspace\"\r\n";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn the_seconds_of_all_runs_add_up_to_their_operations() {
        let document = fixture::write_fdatasync(2);
        let text = text(|out| seconds(out, &document));
        let lines: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(lines.len(), 1 + 2 * 7);
        let place = SECOND_COLUMNS.iter().position(|name| *name == "operations");
        let sum: u64 = lines[1..]
            .iter()
            .filter_map(|line| line.split(',').nth(place?)?.parse::<u64>().ok())
            .sum();
        let expected: u64 = document.runs.iter().map(|run| run.operations).sum();
        assert_eq!(sum, expected);
        assert!(lines[7].starts_with("1,7,500000000,510,"), "{}", lines[7]);
    }

    #[test]
    fn without_runs_there_are_only_names() {
        let document = fixture::write_fdatasync(0);
        let text = render(&document, &Summary::of(&document));
        assert_eq!(text, "arguments,run\r\n");
    }
}
