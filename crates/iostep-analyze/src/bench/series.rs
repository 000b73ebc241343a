//! The mean of values that follow each other in time.

use serde::Serialize;

use super::estimate::{Interval, mean, variance};
use super::student::t_95;

/// Longer series are shortened by halves first, so that the work stays small.
const VALUES: usize = 2048;

/// The mean of a series whose neighbours resemble each other, as the seconds of a run do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SeriesMean {
    /// How many values.
    pub values: u64,
    /// How many independent ones would tell the mean as well.
    pub effective_values: f64,
    /// The mean.
    pub mean: f64,
    /// The standard error of the mean; `None` if the series is worth less than two independent
    /// values.
    pub standard_error: Option<f64>,
    /// The 95 % confidence interval of the mean; `None` without a standard error.
    pub interval: Option<Interval>,
}

impl SeriesMean {
    /// Of a series; `None` if it is empty.
    ///
    /// The variance of the mean is that of the values divided by the effective number of values
    /// and not by their number, which would make the interval too narrow.
    pub fn of(values: &[f64]) -> Option<SeriesMean> {
        let mean = mean(values)?;
        let effective_values = effective(values);
        let standard_error = variance(values)
            .filter(|_| effective_values >= 2.0)
            .map(|variance| (variance / effective_values).sqrt());
        let interval = standard_error
            .map(|error| Interval::around(mean, t_95(effective_values - 1.0) * error));
        Some(SeriesMean {
            values: values.len() as u64,
            effective_values,
            mean,
            standard_error,
            interval,
        })
    }
}

/// How many independent values a series is worth: its length over its autocorrelation time.
///
/// The autocorrelations are summed in pairs of neighbouring lags as long as a pair is positive.
/// Source: C. J. Geyer, Practical Markov Chain Monte Carlo, Statistical Science 7 (1992), section
/// 3.3, the initial positive sequence.
fn effective(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    let mut merged = 1.0;
    while values.len() > VALUES {
        values = values
            .chunks_exact(2)
            .map(|pair| (pair[0] + pair[1]) / 2.0)
            .collect();
        merged *= 2.0;
    }
    let length = values.len() as f64;
    let center = mean(&values).unwrap_or_default();
    let covariance = |lag: usize| {
        let later = values.iter().skip(lag);
        let products = values.iter().zip(later);
        products
            .map(|(a, b)| (a - center) * (b - center))
            .sum::<f64>()
            / length
    };
    let whole = covariance(0);
    if values.len() < 2 || whole <= 0.0 {
        return length;
    }
    let mut time = -1.0;
    for lag in (0..values.len() - 1).step_by(2) {
        let pair = (covariance(lag) + covariance(lag + 1)) / whole;
        if pair <= 0.0 || pair.is_nan() {
            break;
        }
        time += 2.0 * pair;
    }
    // What was merged stands for so many values only if they were alike.
    let worth = length / time.max(1.0);
    if time > 1.5 { worth } else { worth * merged }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without order, from a multiplicative generator.
    fn noise(length: usize) -> Vec<f64> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn values_without_order_count_nearly_in_full() {
        let found = SeriesMean::of(&noise(400)).expect("values");
        assert!(found.effective_values > 300.0, "{found:?}");
        let interval = found.interval.expect("an interval");
        assert!(interval.low < 0.5 && 0.5 < interval.high, "{found:?}");
    }

    #[test]
    fn values_told_ten_times_each_are_worth_a_tenth() {
        let repeated: Vec<f64> = noise(100)
            .into_iter()
            .flat_map(|value| [value; 10])
            .collect();
        let found = SeriesMean::of(&repeated).expect("values");
        assert!((50.0..200.0).contains(&found.effective_values), "{found:?}");
    }

    #[test]
    fn a_constant_series_is_known_exactly() {
        let found = SeriesMean::of(&[7.0; 20]).expect("values");
        let exact = Interval {
            low: 7.0,
            high: 7.0,
        };
        assert_eq!((found.mean, found.interval), (7.0, Some(exact)));
    }

    #[test]
    fn one_value_has_no_interval() {
        assert_eq!(SeriesMean::of(&[]), None);
        let one = SeriesMean::of(&[3.0]).expect("a value");
        assert_eq!((one.mean, one.interval), (3.0, None));
    }
}
