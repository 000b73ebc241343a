//! Percentiles of how long things take.

use iostep_model::operation::Operation;
use iostep_model::quantile::nearest_rank;
use iostep_model::table::Request;
use serde::Serialize;

/// Percentiles by nearest rank: each is a value that occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// Values that were looked at.
    pub count: u64,
    /// Half of the values are at most this, in nanoseconds.
    pub p50_ns: u64,
    /// 90 %.
    pub p90_ns: u64,
    /// 99 %.
    pub p99_ns: u64,
    /// 99.9 %.
    pub p99_9_ns: u64,
    /// The largest.
    pub max_ns: u64,
}

impl Percentiles {
    /// Of plain values; sorts them. `None` without any.
    pub fn of(values_ns: &mut [u64]) -> Option<Percentiles> {
        values_ns.sort_unstable();
        let max_ns = *values_ns.last()?;
        let values = values_ns.iter().map(|value_ns| (*value_ns, 1));
        Some(Percentiles::of_ascending(
            values,
            values_ns.len() as u64,
            max_ns,
        ))
    }

    /// Of values that each occurred a number of times; sorts them. `None` without any.
    pub fn of_weighted(values: &mut [(u64, u64)]) -> Option<Percentiles> {
        values.sort_unstable();
        let (max_ns, _) = *values.last()?;
        let count = values.iter().map(|(_, weight)| weight).sum();
        Some(Percentiles::of_ascending(
            values.iter().copied(),
            count,
            max_ns,
        ))
    }

    fn of_ascending(
        values: impl Iterator<Item = (u64, u64)>,
        count: u64,
        max_ns: u64,
    ) -> Percentiles {
        let [p50_ns, p90_ns, p99_ns, p99_9_ns] = nearest_rank(values, count, [500, 900, 990, 999]);
        Percentiles {
            count,
            p50_ns,
            p90_ns,
            p99_ns,
            p99_9_ns,
            max_ns,
        }
    }
}

/// A part of a request's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// From the first bio's queueing to the driver: merging, scheduling, waiting for a tag.
    QueueToIssue,
    /// From the driver to completion: the device.
    IssueToComplete,
}

iostep_model::listed! { Stage,
    QueueToIssue = "queue to issue",
    IssueToComplete = "issue to completion",
}

/// How long requests of one operation take on one part of their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Which requests.
    pub operation: Operation,
    /// Which part.
    pub stage: Stage,
    #[serde(flatten)]
    pub percentiles: Percentiles,
}

#[derive(Default)]
pub(super) struct Collector {
    values_ns: [[Vec<u64>; 2]; Operation::ALL.len()],
}

impl Collector {
    pub(super) fn add(&mut self, request: &Request) {
        let [waiting, service] = &mut self.values_ns[request.operation as usize];
        // Without a queue event (merged away, or an import) the wait is not known.
        if request.bios > 0 {
            waiting.push(request.issue_ns.saturating_sub(request.queue_ns));
        }
        if let Some(complete_ns) = request.complete_ns {
            service.push(complete_ns.saturating_sub(request.issue_ns));
        }
    }

    pub(super) fn finish(self) -> Vec<Latency> {
        let mut rows = Vec::new();
        for (operation, stages) in Operation::ALL.into_iter().zip(self.values_ns) {
            for (stage, mut values_ns) in Stage::ALL.into_iter().zip(stages) {
                if let Some(percentiles) = Percentiles::of(&mut values_ns) {
                    rows.push(Latency {
                        operation,
                        stage,
                        percentiles,
                    });
                }
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_by_nearest_rank() {
        let mut values: Vec<u64> = (1..=1000).rev().collect();
        let found = Percentiles::of(&mut values).expect("values");
        let all = (
            found.p50_ns,
            found.p90_ns,
            found.p99_ns,
            found.p99_9_ns,
            found.max_ns,
        );
        assert_eq!(all, (500, 900, 990, 999, 1000));
        assert_eq!(Percentiles::of(&mut [7]).expect("a value").p50_ns, 7);
        assert_eq!(Percentiles::of(&mut []), None);
    }
}
