//! Quantiles of times, exact.

use serde::{Deserialize, Serialize};

/// Quantiles of a list of times in nanoseconds, by the nearest rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// How many there are.
    pub count: u64,
    /// Their mean.
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
        let at = |share: f64| {
            let rank = (share * times_ns.len() as f64).ceil() as usize;
            times_ns[rank.clamp(1, times_ns.len()) - 1]
        };
        let sum: f64 = times_ns.iter().map(|ns| *ns as f64).sum();
        Some(Quantiles {
            count: times_ns.len() as u64,
            mean_ns: sum / times_ns.len() as f64,
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            max_ns,
        })
    }
}
