//! Latencies of the steps of an operation.

use iostep_model::bench::{Latency, LatencyHistogram, Step};
use serde::Serialize;

/// How long one step took. Percentiles are upper ends of buckets, 0.4 % wide.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StepLatency {
    pub step: Step,
    /// How often it was done.
    pub count: u64,
    /// The mean, nanoseconds.
    pub mean_ns: f64,
    /// The least.
    pub min_ns: u64,
    /// Half of the values are at most this.
    pub p50_ns: u64,
    /// 90 %.
    pub p90_ns: u64,
    /// 95 %.
    pub p95_ns: u64,
    /// 99 %.
    pub p99_ns: u64,
    /// 99.9 %.
    pub p99_9_ns: u64,
    /// 99.99 %.
    pub p99_99_ns: u64,
    /// The greatest.
    pub max_ns: u64,
}

impl StepLatency {
    /// Of one step's histogram; `None` if it is empty.
    pub(super) fn of(latency: &Latency) -> Option<StepLatency> {
        let histogram = &latency.histogram;
        let at = |share: f64| histogram.quantile_ns(share);
        Some(StepLatency {
            step: latency.step,
            count: histogram.count(),
            mean_ns: histogram.mean_ns()?,
            min_ns: histogram.min_ns()?,
            p50_ns: at(0.5)?,
            p90_ns: at(0.9)?,
            p95_ns: at(0.95)?,
            p99_ns: at(0.99)?,
            p99_9_ns: at(0.999)?,
            p99_99_ns: at(0.9999)?,
            max_ns: histogram.max_ns()?,
        })
    }
}

/// Mean time of one operation with its share of the syncs, nanoseconds; `None` without any.
///
/// For files the mean of the read or write plus the syncs' sum over all operations, as fio's
/// completion latency and sync latency add up; the sync at the end is left out. For SQLite the
/// mean transaction plus the checkpoints' sum over all transactions.
pub(super) fn time_per_operation_ns(latencies: &[Latency]) -> Option<f64> {
    let of = |step: Step| {
        let found = latencies.iter().find(|latency| latency.step == step);
        found.map(|latency| &latency.histogram)
    };
    let sum_ns =
        |histogram: Option<&LatencyHistogram>| histogram.map_or(0.0, |h| h.sum_ns() as f64);
    let (whole, extra) = match of(Step::Transaction) {
        Some(transactions) => (vec![transactions], of(Step::Checkpoint)),
        None => {
            let calls = [of(Step::Read), of(Step::Write)];
            (calls.into_iter().flatten().collect(), of(Step::Sync))
        }
    };
    let count: f64 = whole.iter().map(|histogram| histogram.count() as f64).sum();
    let whole_ns: f64 = whole
        .into_iter()
        .map(|histogram| sum_ns(Some(histogram)))
        .sum();
    (count > 0.0).then(|| (whole_ns + sum_ns(extra)) / count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn latency(step: Step, values_ns: &[u64]) -> Latency {
        Latency {
            step,
            histogram: values_ns.iter().copied().collect(),
        }
    }

    #[test]
    fn a_sync_is_shared_by_the_operations_before_it() {
        let latencies = [
            latency(Step::Total, &[10, 10, 10, 1000]),
            latency(Step::Write, &[10, 20, 10, 20]),
            latency(Step::Sync, &[1000]),
            latency(Step::EndSync, &[77]),
        ];
        assert_eq!(time_per_operation_ns(&latencies), Some(265.0));
        assert_eq!(time_per_operation_ns(&latencies[2..]), None);
    }

    #[test]
    fn a_checkpoint_is_shared_by_the_transactions_and_their_syncs_count_once() {
        let latencies = [
            latency(Step::Sync, &[80, 90]),
            latency(Step::Transaction, &[100, 100]),
            latency(Step::Checkpoint, &[50]),
        ];
        assert_eq!(time_per_operation_ns(&latencies), Some(125.0));
    }

    proptest! {
        #[test]
        fn quantiles_ascend_from_the_least_to_the_greatest(
            values in proptest::collection::vec(0u64..1 << 45, 1..300),
        ) {
            let found = StepLatency::of(&latency(Step::Sync, &values)).expect("values");
            let quantiles = [
                found.p50_ns, found.p90_ns, found.p95_ns, found.p99_ns, found.p99_9_ns,
                found.p99_99_ns, found.max_ns,
            ];
            prop_assert!(quantiles.is_sorted(), "{:?}", found);
            prop_assert!(found.min_ns as f64 <= found.mean_ns);
            prop_assert!(found.mean_ns <= found.max_ns as f64);
        }
    }
}
