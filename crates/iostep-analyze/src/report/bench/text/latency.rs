//! Latencies by step.

use super::title_of;
use crate::bench::{RunSummary, Summary};
use crate::report::quantity::{count, duration};
use crate::report::text::Style;
use crate::report::text::grid::grid;

pub(super) fn table(summary: &Summary, run: &RunSummary, style: Style) -> String {
    let names = [
        "step", ">count", ">mean", ">p50", ">p90", ">p95", ">p99", ">p99.9", ">p99.99", ">max",
    ];
    let mut table = grid(style, &names);
    for latency in &run.latencies {
        table.row([
            latency.step.name().into(),
            count(latency.count),
            duration(latency.mean_ns.round() as u64),
            duration(latency.p50_ns),
            duration(latency.p90_ns),
            duration(latency.p95_ns),
            duration(latency.p99_ns),
            duration(latency.p99_9_ns),
            duration(latency.p99_99_ns),
            duration(latency.max_ns),
        ]);
    }
    table.titled(&title_of(summary, run, "Latency"))
}
