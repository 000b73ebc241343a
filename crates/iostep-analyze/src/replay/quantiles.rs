//! Quantiles of times, exact.

use iostep_model::quantile::nearest_rank;
use serde::{Deserialize, Serialize};

/// Quantiles of a list of times in nanoseconds, by the nearest rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// How many there are.
    pub count: u64,
    pub mean_ns: f64,
    /// The median.
    pub p50_ns: u64,
    /// Nine of ten are not above.
    pub p90_ns: u64,
    /// 99 of 100 are not above.
    pub p99_ns: u64,
    /// The greatest.
    pub max_ns: u64,
}

impl Quantiles {
    /// Of a list, which is sorted by this; none of an empty one.
    pub fn of(times_ns: &mut [u64]) -> Option<Quantiles> {
        times_ns.sort_unstable();
        let max_ns = *times_ns.last()?;
        let count = times_ns.len() as u64;
        let times = times_ns.iter().map(|ns| (*ns, 1));
        let [p50_ns, p90_ns, p99_ns] = nearest_rank(times, count, [500, 900, 990]);
        let sum: f64 = times_ns.iter().map(|ns| *ns as f64).sum();
        Some(Quantiles {
            count,
            mean_ns: sum / count as f64,
            p50_ns,
            p90_ns,
            p99_ns,
            max_ns,
        })
    }
}
