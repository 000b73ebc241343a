//! Numbers of documents made by hand.

use iostep_model::bench::{Step, Verification};

use super::*;
use crate::bench::fixture;

fn near(found: f64, expected: f64) {
    let error = (found - expected).abs();
    assert!(error <= 1e-9 * expected.abs(), "{found} for {expected}");
}

#[test]
fn throughput_is_what_was_done_over_the_whole_time() {
    let document = fixture::write_fdatasync(1);
    let run = &Summary::of(&document).runs[0];
    let throughput = run.throughput.expect("time passed");
    assert_eq!((run.operations, run.elapsed_ns), (6490, 6_500_000_000));
    near(throughput.operations_per_second, 6490.0 / 6.5);
    near(throughput.kib_per_second(), 4.0 * 6490.0 / 6.5);
    assert_eq!(run.busy_throughput, None);
}

#[test]
fn busy_throughput_leaves_idle_time_out() {
    let mut document = fixture::write_fdatasync(1);
    // Both threads slept half of their time.
    document.runs[0].idle_ns = 6_500_000_000;
    let run = &Summary::of(&document).runs[0];
    let [whole, busy] = [run.throughput, run.busy_throughput]
        .map(|throughput| throughput.expect("time passed").operations_per_second);
    near(busy, 2.0 * whole);
}

#[test]
fn what_an_operation_costs_times_operations_is_the_sum() {
    let document = fixture::write_fdatasync(1);
    let run = &Summary::of(&document).runs[0];
    let device = run.device.as_ref().expect("a device");
    let times = |value: Option<f64>| value.expect("operations") * run.operations as f64;
    near(
        times(device.written_bytes_per_operation),
        device.counters.write.bytes as f64,
    );
    near(
        times(device.flushes_per_operation),
        device.counters.flush.ios as f64,
    );
    near(
        times(run.cpu.voluntary_switches_per_operation),
        run.cpu.voluntary_switches as f64,
    );
    assert_eq!(run.cpu.ns_per_operation(), Some(32_000.0));
}

#[test]
fn the_slowest_thread_is_told_beside_the_fastest() {
    let document = fixture::write_fdatasync(1);
    let threads = Summary::of(&document).runs[0].threads.expect("two threads");
    near(threads.slowest_over_fastest.expect("work"), 3115.0 / 3375.0);
}

#[test]
fn estimates_are_of_complete_runs_only() {
    let mut document = fixture::write_fdatasync(4);
    document.runs[3].state = RunState::Interrupted;
    document.runs[3].operations = 1;
    let summary = Summary::of(&document);
    let estimate = summary
        .estimate(Measure::OperationsPerSecond)
        .expect("complete runs");
    assert_eq!(estimate.runs, 3);
    let middle = summary.runs[1].throughput.expect("time passed");
    assert_eq!(estimate.median, middle.operations_per_second);
    assert!(!summary.is_whole());
}

#[test]
fn a_document_without_runs_has_a_summary() {
    let mut document = fixture::write_fdatasync(0);
    assert_eq!(Summary::of(&document).estimates, []);
    assert!(!Summary::of(&document).is_whole());
    let mut run = fixture::write_fdatasync(1).runs.remove(0);
    run.elapsed_ns = 0;
    run.operations = 0;
    run.threads.clear();
    run.seconds.clear();
    run.latencies.clear();
    document.runs.push(run);
    let summary = Summary::of(&document);
    assert_eq!(summary.runs[0].throughput, None);
    assert_eq!(summary.runs[0].per_second, None);
}

#[test]
fn a_transaction_is_called_one() {
    let summary = Summary::of(&fixture::sqlite_wal(1));
    assert_eq!(summary.work, "transaction");
    let run = &summary.runs[0];
    let transaction = run.latency(Step::Transaction).expect("transactions");
    let time_ns = run.time_per_operation_ns.expect("transactions");
    assert!(time_ns > transaction.mean_ns, "checkpoints are in it");
}

/// The paths of all values, once each, whatever the number of a list's element.
fn paths(name: &str, value: &serde_json::Value, found: &mut std::collections::BTreeSet<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (field, value) in fields {
                paths(&format!("{name}.{field}"), value, found);
            }
        }
        serde_json::Value::Array(values) => {
            for value in values {
                paths(&format!("{name}[]"), value, found);
            }
        }
        _ => drop(found.insert(name.to_owned())),
    }
}

#[test]
fn the_names_in_json_stay_what_scripts_expect() {
    let mut document = fixture::write_fdatasync(4);
    document.runs[0].verification = Some(Verification::default());
    for second in &mut document.runs[3].seconds[..2] {
        second.operations *= 3;
    }
    let summary = serde_json::to_value(Summary::of(&document)).expect("JSON");
    let mut found = std::collections::BTreeSet::new();
    paths("summary", &summary, &mut found);
    insta::assert_snapshot!(found.into_iter().collect::<Vec<_>>().join("\n"));
}
