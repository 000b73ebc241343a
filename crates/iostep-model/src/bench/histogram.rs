//! Latencies in buckets.

use histogram::{Bucket, Config, Histogram, SparseHistogram, SparseHistogramRef};
use serde::{Deserialize, Serialize, Serializer};

/// 2^8 buckets between a power of two and the next: a value is known to 0.4 %.
const GROUPING_POWER: u8 = 8;
/// Values up to 2^40 ns, 18 minutes; what is larger counts as that.
const MAX_VALUE_POWER: u8 = 40;

/// How often each latency occurred, in H2 buckets, with exact count, sum, least and greatest.
///
/// It holds only buckets with something in them. [`LatencyRecorder`] counts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Stored")]
pub struct LatencyHistogram {
    buckets: SparseHistogram,
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        LatencyRecorder::new().into()
    }
}

impl LatencyHistogram {
    /// Adds another's counts.
    pub fn merge(&mut self, other: &LatencyHistogram) {
        self.buckets = self
            .buckets
            .checked_add(&other.buckets)
            .expect("same buckets, and counts of real events do not overflow");
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// The mean, nanoseconds; `None` without any.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }

    /// The least; `None` without any.
    pub fn min_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min_ns)
    }

    /// The greatest; `None` without any.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// The nearest-rank quantile, `share` from 0 to 1: the upper end of its bucket, but never
    /// above the greatest value. `None` without any.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let rank = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count.max(1));
        let mut passed = 0;
        let place = self.buckets.count().iter().position(|count| {
            passed += count;
            passed >= rank
        })?;
        // Only of this one bucket the ends are worked out: servers ask for many quantiles.
        let (config, index) = (self.buckets.config(), [self.buckets.index()[place]]);
        let one = SparseHistogramRef::from_parts(config, &index, &[1]).ok()?;
        let bucket = one.iter().next()?;
        Some(bucket.end().min(self.max_ns))
    }

    /// The buckets that hold something: first and last latency, and how many.
    pub fn occupied(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let ends = |bucket: Bucket| (bucket.start(), bucket.end(), bucket.count());
        self.buckets.iter().map(ends)
    }
}

impl FromIterator<u64> for LatencyHistogram {
    /// Of latencies, nanoseconds.
    fn from_iter<T: IntoIterator<Item = u64>>(latencies_ns: T) -> LatencyHistogram {
        let mut recorder = LatencyRecorder::new();
        for latency_ns in latencies_ns {
            recorder.record(latency_ns);
        }
        recorder.into()
    }
}

/// Counts latencies as they come: it has room for every bucket.
#[derive(Clone, Debug)]
pub struct LatencyRecorder {
    buckets: Histogram,
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Default for LatencyRecorder {
    fn default() -> Self {
        LatencyRecorder::new()
    }
}

impl LatencyRecorder {
    /// Takes 66 KiB, of which the kernel gives what is touched.
    pub fn new() -> LatencyRecorder {
        LatencyRecorder {
            buckets: Histogram::new(GROUPING_POWER, MAX_VALUE_POWER)
                .expect("the two constants fit each other"),
            count: 0,
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }

    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        let bucketed = latency_ns.min((1 << MAX_VALUE_POWER) - 1);
        self.buckets
            .increment(bucketed)
            .expect("the value is within the range");
        self.count += 1;
        self.sum_ns += latency_ns;
        self.min_ns = self.min_ns.min(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
    }
}

impl From<LatencyRecorder> for LatencyHistogram {
    fn from(recorder: LatencyRecorder) -> LatencyHistogram {
        LatencyHistogram {
            buckets: SparseHistogram::from(&recorder.buckets),
            count: recorder.count,
            sum_ns: recorder.sum_ns,
            min_ns: recorder.min_ns,
            max_ns: recorder.max_ns,
        }
    }
}

/// The form in JSON.
#[derive(Debug, Serialize, Deserialize)]
struct Stored<I = Vec<u32>, C = Vec<u64>> {
    grouping_power: u8,
    max_value_power: u8,
    index: I,
    buckets: C,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Serialize for LatencyHistogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = Stored {
            grouping_power: GROUPING_POWER,
            max_value_power: MAX_VALUE_POWER,
            index: self.buckets.index(),
            buckets: self.buckets.count(),
            sum_ns: self.sum_ns,
            min_ns: if self.count > 0 { self.min_ns } else { 0 },
            max_ns: self.max_ns,
        };
        stored.serialize(serializer)
    }
}

impl TryFrom<Stored> for LatencyHistogram {
    type Error = String;

    fn try_from(stored: Stored) -> Result<LatencyHistogram, String> {
        if (stored.grouping_power, stored.max_value_power) != (GROUPING_POWER, MAX_VALUE_POWER) {
            return Err(format!(
                "a histogram with powers {} and {}, expected {GROUPING_POWER} and {MAX_VALUE_POWER}",
                stored.grouping_power, stored.max_value_power
            ));
        }
        let config = Config::new(GROUPING_POWER, MAX_VALUE_POWER).map_err(|e| e.to_string())?;
        let count = stored
            .buckets
            .iter()
            .try_fold(0u64, |sum, &count| sum.checked_add(count))
            .ok_or("a histogram with more than 2^64 values")?;
        let buckets = SparseHistogram::from_parts(config, stored.index, stored.buckets)
            .map_err(|e| format!("a damaged histogram: {e}"))?;
        Ok(LatencyHistogram {
            buckets,
            count,
            sum_ns: stored.sum_ns,
            min_ns: if count > 0 { stored.min_ns } else { u64::MAX },
            max_ns: stored.max_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> LatencyHistogram {
        values.iter().copied().collect()
    }

    #[test]
    fn nothing_has_no_quantile_and_reads_back() {
        let empty = LatencyHistogram::default();
        assert_eq!(empty.quantile_ns(0.5), None);
        assert_eq!(empty.mean_ns(), None);
        let text = serde_json::to_string(&empty).expect("JSON");
        assert_eq!(
            serde_json::from_str::<LatencyHistogram>(&text).expect("read"),
            empty
        );
    }

    #[test]
    fn what_is_beyond_the_range_is_still_counted_and_is_the_maximum() {
        let histogram = of(&[5, 1 << 50]);
        assert_eq!(histogram.count(), 2);
        assert_eq!(histogram.max_ns(), Some(1 << 50));
    }

    #[test]
    fn hostile_json_is_an_error() {
        for text in [
            r#"{"grouping_power":70,"max_value_power":64,"index":[],"buckets":[],"sum_ns":0,"min_ns":0,"max_ns":0}"#,
            r#"{"grouping_power":8,"max_value_power":40,"index":[4000000000],"buckets":[1],"sum_ns":0,"min_ns":0,"max_ns":0}"#,
            r#"{"grouping_power":8,"max_value_power":40,"index":[2,1],"buckets":[1,1],"sum_ns":0,"min_ns":0,"max_ns":0}"#,
            r#"{"grouping_power":8,"max_value_power":40,"index":[1,2],"buckets":[0,3],"sum_ns":6,"min_ns":2,"max_ns":2}"#,
            r#"{"grouping_power":8,"max_value_power":40,"index":[1],"buckets":[],"sum_ns":0,"min_ns":0,"max_ns":0}"#,
            r#"{"grouping_power":8,"max_value_power":40,"index":[1,2],"buckets":[18446744073709551615,1],"sum_ns":0,"min_ns":0,"max_ns":0}"#,
        ] {
            assert!(
                serde_json::from_str::<LatencyHistogram>(text).is_err(),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn quantiles_are_within_a_bucket_of_the_sorted_values(
            mut values in vec(0u64..1 << 39, 1..200), share in 0.0f64..=1.0
        ) {
            let found = of(&values).quantile_ns(share).expect("values");
            values.sort_unstable();
            let rank = ((values.len() as f64 * share).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1];
            prop_assert!(found >= exact);
            prop_assert!(found - exact <= exact / 256 + 1, "{found} for {exact}");
        }

        #[test]
        fn merging_the_parts_equals_the_whole(
            left in vec(any::<u64>().prop_map(|v| v >> 8), 0..50),
            right in vec(any::<u64>().prop_map(|v| v >> 8), 0..50),
        ) {
            let mut merged = of(&left);
            merged.merge(&of(&right));
            let whole = of(&[left, right].concat());
            prop_assert_eq!(&merged, &whole);
            let text = serde_json::to_string(&whole).expect("JSON");
            prop_assert_eq!(&serde_json::from_str::<LatencyHistogram>(&text).expect("read"), &whole);
        }
    }
}
