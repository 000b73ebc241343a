//! Comma-separated values: a line for each run, or for each second.
//!
//! The columns are the same for every job, so that files can be put together; a number that a run
//! does not have is empty.

use iostep_model::bench::{Document, Step, figures};
use iostep_model::manifest::Counters;
use iostep_report::csv::line;
use serde::Serialize;
use serde_json::Value;

use crate::bench::{RunSummary, Steadiness, Summary};
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

/// Columns: each name, which ends in its unit, and where the number stands in the JSON of a run.
const HEAD: [&str; 11] = [
    "run /run",
    "state /state",
    "start_wall_ns /start_wall_ns",
    "elapsed_ns /elapsed_ns",
    "operations /operations",
    "bytes /bytes",
    "operations_per_second /throughput/operations_per_second",
    "bytes_per_second /throughput/bytes_per_second",
    "busy_operations_per_second /busy_throughput/operations_per_second",
    "busy_bytes_per_second /busy_throughput/bytes_per_second",
    "time_per_operation_ns /time_per_operation_ns",
];
const STEP: [&str; 10] = [
    "count",
    "mean_ns",
    "min_ns",
    "p50_ns",
    "p90_ns",
    "p95_ns",
    "p99_ns",
    "p99_9_ns",
    "p99_99_ns",
    "max_ns",
];
const REST: [&str; 35] = [
    "user_ns_per_operation /cpu/user_ns_per_operation",
    "system_ns_per_operation /cpu/system_ns_per_operation",
    "user_cpus /cpu/user_cpus",
    "system_cpus /cpu/system_cpus",
    "voluntary_switches /cpu/voluntary_switches",
    "involuntary_switches /cpu/involuntary_switches",
    "machine_active_share /cpu/machine/active",
    "machine_idle_share /cpu/machine/idle",
    "machine_iowait_share /cpu/machine/iowait",
    "machine_irq_share /cpu/machine/irq",
    "machine_softirq_share /cpu/machine/softirq",
    "machine_steal_share /cpu/machine/steal",
    "machine_others_share /cpu/machine/others",
    "device_written_bytes /device/counters/write/bytes",
    "device_writes /device/counters/write/ios",
    "device_read_bytes /device/counters/read/bytes",
    "device_reads /device/counters/read/ios",
    "device_discarded_bytes /device/counters/discard/bytes",
    "device_flushes /device/counters/flush/ios",
    "device_written_bytes_per_operation /device/written_bytes_per_operation",
    "device_read_bytes_per_operation /device/read_bytes_per_operation",
    "device_flushes_per_operation /device/flushes_per_operation",
    "write_amplification /device/write_amplification",
    "page_cache_pages /page_cache/pages",
    "page_cache_resident_pages /page_cache/resident_pages",
    "page_cache_dirty_pages /page_cache/dirty_pages",
    "slowest_thread_operations_per_second /threads/slowest_per_second",
    "fastest_thread_operations_per_second /threads/fastest_per_second",
    "verified /verification/compared",
    "verified_wrong /verification/wrong",
    "failures /failures",
    "failed_thread /failures/0/thread",
    "failed_operation /failures/0/operation",
    "failed_attempt /failures/0/attempt",
    "failed_reason /failures/0/reason",
];

/// A line for each run with all of its numbers and the command's arguments, below a line of names.
pub fn runs(document: &Document, summary: &Summary) -> String {
    let arguments = document.arguments.join(" ");
    let rows = summary.runs.iter().map(|run| columns(&arguments, run));
    let (names, rows): (Vec<Vec<String>>, Vec<Vec<String>>) =
        rows.map(|row| row.into_iter().unzip()).unzip();
    let names = match names.into_iter().next() {
        Some(names) => line(names),
        None => line(["arguments", "run"]),
    };
    rows.into_iter().fold(names, |text, row| text + &line(row))
}

/// A line for each second of each run, below a line of names. A last second that is shorter has its
/// real length, and no rate beside whole ones.
pub fn seconds(document: &Document) -> String {
    let mut text = line(SECOND_COLUMNS);
    for (run, seconds) in (1u64..).zip(document.runs.iter().map(|run| &run.seconds)) {
        for (number, second) in (1u64..).zip(seconds) {
            let rate = figures::rate(second.operations, second, seconds);
            let mean = ratio(second.latency_sum_ns, second.operations);
            let device = |value: fn(&Counters) -> u64| optional(second.device.as_ref().map(value));
            text += &line([
                run.to_string(),
                number.to_string(),
                second.length_ns.to_string(),
                second.operations.to_string(),
                second.bytes.to_string(),
                optional(rate),
                optional(mean),
                second.latency_max_ns.to_string(),
                device(|counters| counters.write.bytes),
                device(|counters| counters.write.ios),
                device(|counters| counters.read.bytes),
                device(|counters| counters.flush.ios),
            ]);
        }
    }
    text
}

fn optional(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// The names and values of a run's columns.
fn columns(arguments: &str, run: &RunSummary) -> Vec<(String, String)> {
    let numbers = json(run);
    let of = |column: &str| {
        let (name, place) = column.split_once(' ').expect("a name and a place");
        (name.to_owned(), cell(numbers.pointer(place)))
    };
    let mut row = vec![("arguments".to_owned(), arguments.to_owned())];
    row.extend(HEAD.map(of));
    row.push(("steadiness".into(), steadiness(run)));
    row.push(of("effective_seconds /per_second/effective_values"));
    for step in Step::ALL {
        let latency = run.latency(step).map(json);
        let name = step.name().replace(' ', "_");
        row.extend(STEP.map(|column| {
            let number = latency.as_ref().and_then(|latency| latency.get(column));
            (format!("{name}_{column}"), cell(number))
        }));
    }
    row.extend(REST.map(of));
    row
}

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("a summary has only JSON's types")
}

/// Of a list, how long it is.
fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items.len().to_string(),
        // A whole number that is a mean has no point.
        Some(number) => match (number.as_u64(), number.as_f64()) {
            (None, Some(number)) => number.to_string(),
            _ => number.to_string(),
        },
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

    #[test]
    fn every_job_has_the_same_columns_and_every_line_all_of_them() {
        let [file, sqlite] = [fixture::write_fdatasync(3), fixture::sqlite_wal(2)]
            .map(|document| runs(&document, &Summary::of(&document)));
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
        let text = runs(&document, &Summary::of(&document));
        let end = ",1,0,7,\"write of \"\"a,b\"\"\",\"no\nspace\"\r\n";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn the_seconds_of_all_runs_add_up_to_their_operations() {
        let document = fixture::write_fdatasync(2);
        let text = seconds(&document);
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
        let text = runs(&document, &Summary::of(&document));
        assert_eq!(text, "arguments,run\r\n");
    }
}
