//! The result in a line.

use iostep_model::bench::Step;

use crate::bench::{Measure, Quantile, RunSummary, Summary};
use crate::report::quantity::{bytes, decimal, duration, percent};

/// `4,050 transactions/s, p50 206 µs, p99 750 µs; each 60.7 KiB written, 4.03 flushes`. Medians of
/// the complete runs; where none is complete, the values of `shown`.
pub(super) fn line(summary: &Summary, shown: &RunSummary) -> String {
    let value = |measure| {
        let estimate = summary.estimate(measure);
        estimate.map_or_else(|| measure.of(shown), |estimate| Some(estimate.median))
    };
    let mut words = Vec::new();
    let rate = value(Measure::OperationsPerSecond).map_or_else(|| "-".into(), decimal);
    if summary.work == "operation" {
        words.push(format!("{rate} IOPS"));
        let payload = value(Measure::BytesPerSecond);
        words.extend(payload.map(|rate| format!("{}/s", size(rate))));
    } else {
        words.push(format!("{rate} {}s/s", summary.work));
    }
    let whole = [Step::Total, Step::Transaction, Step::Read, Step::Write];
    let step = whole
        .into_iter()
        .find(|step| shown.latency(*step).is_some());
    for (name, quantile) in [("p50", Quantile::P50), ("p99", Quantile::P99)] {
        let latency = step.and_then(|step| value(Measure::Latency(step, quantile)));
        words.extend(latency.map(|ns| format!("{name} {}", duration(ns.round() as u64))));
    }
    let mut text = words.join(", ");
    let each = [
        (Measure::ReadPerOperation, size as fn(f64) -> String, "read"),
        (Measure::WrittenPerOperation, size, "written"),
        (Measure::FlushesPerOperation, decimal, "flushes"),
    ];
    let each: Vec<String> = each
        .into_iter()
        .filter_map(|(measure, show, what)| Some((value(measure)?, show, what)))
        .filter(|(amount, ..)| *amount > 0.0)
        .map(|(amount, show, what)| format!("{} {what}", show(amount)))
        .collect();
    if !each.is_empty() {
        text.push_str(&format!("; each {}", each.join(", ")));
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

fn size(amount: f64) -> String {
    bytes(amount.round() as u64)
}
