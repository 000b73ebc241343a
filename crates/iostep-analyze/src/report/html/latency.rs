//! Latency percentiles on a logarithmic scale.

use crate::report::quantity;
use crate::stats::{Latency, Percentiles};

/// A percentile on the scale.
pub(super) struct Point {
    pub name: &'static str,
    pub text: String,
    /// Percent of the scale's length.
    pub at: f64,
}

/// The percentiles of one operation and stage.
pub(super) struct Row {
    pub name: String,
    pub count: String,
    pub points: Vec<Point>,
}

/// A decade of the scale.
pub(super) struct Tick {
    pub text: String,
    pub at: f64,
}

/// The plot.
#[derive(Default)]
pub(super) struct Plot {
    pub ticks: Vec<Tick>,
    pub rows: Vec<Row>,
}

impl Plot {
    pub(super) fn of(latencies: &[Latency]) -> Plot {
        let values = || latencies.iter().flat_map(|l| values(&l.percentiles));
        let (Some(least), Some(most)) = (values().min(), values().max()) else {
            return Plot::default();
        };
        let first = least.max(1).ilog10();
        let last = most.max(1).ilog10() + 1;
        let at = |ns: u64| {
            let decades = (ns.max(1) as f64).log10() - f64::from(first);
            decades / f64::from(last - first) * 100.0
        };
        let tick = |decade: u32| {
            let ns = 10u64.checked_pow(decade)?;
            Some(Tick {
                text: quantity::duration(ns),
                at: at(ns),
            })
        };
        Plot {
            ticks: (first..=last).filter_map(tick).collect(),
            rows: latencies.iter().map(|latency| row(latency, at)).collect(),
        }
    }
}

fn values(percentiles: &Percentiles) -> [u64; 5] {
    [
        percentiles.p50_ns,
        percentiles.p90_ns,
        percentiles.p99_ns,
        percentiles.p99_9_ns,
        percentiles.max_ns,
    ]
}

fn row(latency: &Latency, at: impl Fn(u64) -> f64) -> Row {
    let names = ["p50", "p90", "p99", "p99.9", "max"];
    let points = names.into_iter().zip(values(&latency.percentiles));
    Row {
        name: format!("{}, {}", latency.operation.name(), latency.stage.name()),
        count: quantity::count(latency.percentiles.count),
        points: points
            .map(|(name, ns)| Point {
                name,
                text: quantity::duration(ns),
                at: at(ns),
            })
            .collect(),
    }
}
