//! What one measurement says, and how the programs that measure write it.

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use serde_json::Value;

/// One measurement of one program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Commits in a second, or whatever the program counts.
    pub per_second: f64,
    /// Median of a commit's time.
    pub p50_us: f64,
    /// The slowest commit.
    pub slowest_ms: f64,
    /// Bytes that the device was given for a commit, in KiB; none without a device.
    pub kb: Option<f64>,
    /// Flushes of the device for a commit.
    pub flushes: Option<f64>,
    /// Where the frames of waldio's log were, or why they were in a stock log.
    pub note: Option<String>,
}

impl Sample {
    /// From the line of a driver, `bench/waldio-drivers/driver.h`.
    pub fn from_driver(text: &str) -> Result<Sample> {
        let line: Value = serde_json::from_str(text).context("not a driver's line")?;
        let commits = number(&line, "/commits")?;
        ensure!(commits > 0.0, "no commit was counted");
        let of_a_commit = |name| {
            line.pointer(name)
                .and_then(Value::as_f64)
                .map(|n| n / commits)
        };
        Ok(Sample {
            per_second: commits * 1e9 / number(&line, "/elapsed_ns")?,
            p50_us: number(&line, "/p50_ns")? / 1e3,
            slowest_ms: number(&line, "/slowest_ns")? / 1e6,
            kb: of_a_commit("/bytes").map(|bytes| bytes / 1024.0),
            flushes: of_a_commit("/flushes"),
            note: None,
        })
    }

    /// From what `iostep bench sqlite --json` prints; the last of its runs counts.
    pub fn from_iostep(text: &str) -> Result<Sample> {
        let document: Value = serde_json::from_str(text).context("not iostep's JSON")?;
        let last = |pointer| {
            let runs = document.pointer(pointer).and_then(Value::as_array);
            runs.and_then(|runs| runs.last())
                .with_context(|| format!("no run in {pointer}"))
        };
        let summary = last("/summary/runs")?;
        if summary.pointer("/state") != Some(&Value::from("complete")) {
            bail!("the run did not come to its end: {}", failure(summary));
        }
        let total = step(summary, "total")?;
        let device = |name| summary.pointer(name).and_then(Value::as_f64);
        Ok(Sample {
            per_second: number(summary, "/throughput/operations_per_second")?,
            p50_us: number(total, "/p50_ns")? / 1e3,
            slowest_ms: number(total, "/max_ns")? / 1e6,
            kb: device("/device/written_bytes_per_operation").map(|bytes| bytes / 1024.0),
            flushes: device("/device/flushes_per_operation"),
            note: note(last("/result/runs")?),
        })
    }
}

fn number(value: &Value, pointer: &str) -> Result<f64> {
    let found = value.pointer(pointer).and_then(Value::as_f64);
    found.with_context(|| format!("no number at {pointer}"))
}

fn step<'a>(run: &'a Value, name: &str) -> Result<&'a Value> {
    let steps = run.pointer("/latencies").and_then(Value::as_array);
    let mut named = steps.into_iter().flatten().filter(|s| s["step"] == name);
    named
        .next()
        .with_context(|| format!("no latency of step {name}"))
}

fn failure(run: &Value) -> String {
    let reason = run.pointer("/failures/0/reason").and_then(Value::as_str);
    reason.unwrap_or("no reason given").to_owned()
}

/// Why the log was a stock one, or else the layout that waldio chose.
fn note(run: &Value) -> Option<String> {
    let first = |pointer| run.pointer(pointer).and_then(Value::as_str);
    let reason = first("/waldio/reasons/0").map(|why| format!("stock log: {why}"));
    reason.or_else(|| first("/waldio/layouts/0").map(|name| format!("layout {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"commits":2000,"elapsed_ns":500000000,"p50_ns":50000,"p99_ns":60000,
        "slowest_ns":4000000,"bytes":8192000,"flushes":2000}"#;

    #[test]
    fn a_drivers_line_is_counted_for_each_commit() {
        let sample = Sample::from_driver(LINE).expect("a good line");
        assert_eq!(sample.per_second, 4000.0);
        assert_eq!(sample.p50_us, 50.0);
        assert_eq!(sample.slowest_ms, 4.0);
        assert_eq!(sample.kb, Some(4.0));
        assert_eq!(sample.flushes, Some(1.0));
    }

    #[test]
    fn without_a_device_nothing_is_said_about_it() {
        let line = LINE.replace("8192000", "null").replace(":2000}", ":null}");
        let sample = Sample::from_driver(&line).expect("a good line");
        assert_eq!((sample.kb, sample.flushes), (None, None));
    }

    #[test]
    fn a_driver_that_says_nothing_is_an_error() {
        assert!(Sample::from_driver("").is_err());
        assert!(Sample::from_driver(&LINE.replace("2000,", "0,")).is_err());
    }

    fn document(state: &str, waldio: &str) -> String {
        format!(
            r#"{{"summary":{{"runs":[{{"state":"{state}",
                "throughput":{{"operations_per_second":1000.5}},
                "latencies":[{{"step":"sync","p50_ns":1,"max_ns":1}},
                             {{"step":"total","p50_ns":70000,"max_ns":9000000}}],
                "device":{{"written_bytes_per_operation":4096,"flushes_per_operation":1.5}},
                "failures":[{{"reason":"disk full"}}]}}]}},
                "result":{{"runs":[{{"waldio":{waldio}}}]}}}}"#
        )
    }

    #[test]
    fn iosteps_last_run_is_the_sample() {
        let text = document("complete", r#"{"layouts":["W"],"reasons":[]}"#);
        let sample = Sample::from_iostep(&text).expect("a good document");
        assert_eq!(sample.per_second, 1000.5);
        assert_eq!(sample.p50_us, 70.0);
        assert_eq!(sample.slowest_ms, 9.0);
        assert_eq!((sample.kb, sample.flushes), (Some(4.0), Some(1.5)));
        assert_eq!(sample.note.as_deref(), Some("layout W"));
    }

    #[test]
    fn a_stock_log_is_said_with_its_reason() {
        let text = document("complete", r#"{"layouts":["stock"],"reasons":["tmpfs"]}"#);
        let sample = Sample::from_iostep(&text).expect("a good document");
        assert_eq!(sample.note.as_deref(), Some("stock log: tmpfs"));
        let text = document("complete", "null");
        assert_eq!(Sample::from_iostep(&text).expect("stock SQLite").note, None);
    }

    #[test]
    fn a_failed_run_is_an_error_with_its_reason() {
        let error = Sample::from_iostep(&document("failed", "null")).expect_err("failed");
        assert!(error.to_string().contains("disk full"), "{error}");
    }
}
