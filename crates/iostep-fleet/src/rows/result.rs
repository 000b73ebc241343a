//! `results`.

use bytes::Bytes;
use iostep_model::bench::figures;
use iostep_model::bench::{Document, Job, LatencyHistogram, Run, RunState, Step};
use serde_json::Value;

use super::origin::{Origin, text};
use super::table;
use crate::column::int;
use crate::date::Date;

/// A run of a result of `iostep bench`.
pub(crate) struct ResultRow<'a> {
    pub id: &'a Bytes,
    pub document: &'a Document,
    pub origin: &'a Origin,
    /// From 0.
    pub index: usize,
}

impl ResultRow<'_> {
    fn run(&self) -> &Run {
        &self.document.runs[self.index]
    }

    /// A setting as the result has it; empty where the generator has none of the name.
    fn setting(&self, name: &str) -> Bytes {
        let job = serde_json::to_value(&self.document.job).unwrap_or_default();
        match &job[name] {
            Value::Null => Bytes::new(),
            Value::String(value) => text(Some(value)),
            other => text(Some(&other.to_string())),
        }
    }

    fn kind(&self) -> &'static str {
        match self.document.job {
            Job::File(_) => "file",
            Job::Sqlite(_) => "sqlite",
        }
    }

    fn record_bytes(&self) -> i64 {
        int(match &self.document.job {
            Job::File(job) => job.record_bytes,
            Job::Sqlite(job) => job.record_bytes.into(),
        })
    }

    fn state(&self) -> &'static str {
        match self.run().state {
            RunState::Complete => "complete",
            RunState::Interrupted => "interrupted",
            RunState::Failed => "failed",
        }
    }

    /// Of an operation with its sync, or of a transaction.
    fn latencies(&self) -> Option<&LatencyHistogram> {
        let step = match self.document.job {
            Job::File(_) => Step::Total,
            Job::Sqlite(_) => Step::Transaction,
        };
        let mut latencies = self.run().latencies.iter();
        Some(&latencies.find(|latency| latency.step == step)?.histogram)
    }

    fn quantile_ns(&self, share: f64) -> Option<i64> {
        self.latencies()?.quantile_ns(share).map(int)
    }

    fn device(&self, value: impl Fn(&iostep_model::manifest::Counters) -> u64) -> Option<i64> {
        self.run().device.as_ref().map(value).map(int)
    }
}

table!(ResultRow<'_>, |row| {
    result_id: Bytes = row.id.clone(),
    run: i64 = row.index as i64 + 1,
    wall_ns: i64 = int(row.run().start_wall_ns),
    day: i64 = Date::of_wall_ns(int(row.run().start_wall_ns)).days(),
    iostep_version: Bytes = text(Some(&row.document.iostep_version)),
    kind: &'static str = row.kind(),
    access: Bytes = row.setting("access"),
    operation: Bytes = row.setting("operation"),
    journal: Bytes = row.setting("journal"),
    synchronous: Bytes = row.setting("synchronous"),
    sync: Bytes = row.setting("sync"),
    record_bytes: i64 = row.record_bytes(),
    threads: i64 = row.document.job.threads().into(),
    state: &'static str = row.state(),
    warnings: i64 = row.document.warnings.len() as i64,
    elapsed_ns: i64 = int(row.run().elapsed_ns),
    operations: i64 = int(row.run().operations),
    bytes: i64 = int(row.run().bytes),
    latency_p50_ns: Option<i64> = row.quantile_ns(0.5),
    latency_p95_ns: Option<i64> = row.quantile_ns(0.95),
    latency_p99_ns: Option<i64> = row.quantile_ns(0.99),
    latency_max_ns: Option<i64> = row.latencies().and_then(LatencyHistogram::max_ns).map(int),
    device_write_bytes: Option<i64> = row.device(|device| device.write.bytes),
    device_flushes: Option<i64> =
        row.device(|device| device.flush.ios).filter(|_| figures::flushes_are_counted(row.run())),
} with row.origin);
