//! The mean of values that follow each other in time.

use serde::Serialize;

use super::sample::{Interval, mean, variance};
use super::student::t_95;

/// Longer series are shortened by halves first, so that the work stays small.
const VALUES: usize = 2048;

/// Of fewer values nobody can tell how much neighbours resemble each other.
const LEAST_VALUES: usize = 10;

/// The mean of a series whose neighbours resemble each other, as the seconds of a run do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SeriesMean {
    /// How many values.
    pub values: u64,
    /// How many independent ones would tell the mean as well.
    pub effective_values: f64,
    pub mean: f64,
    /// The standard error of the mean; `None` for less than ten values, or if they are worth less
    /// than two independent ones.
    pub standard_error: Option<f64>,
    /// The 95 % confidence interval of the mean; `None` without a standard error.
    pub interval: Option<Interval>,
}

impl SeriesMean {
    /// Of a series; `None` if it is empty.
    ///
    /// The variance of the mean is that of the values divided by the effective number of values
    /// and not by their number, which would make the interval too narrow. It still is for short
    /// series: where neighbours correlate by 0.7, the interval holds the true mean in 93 % of
    /// cases for 300 values, in 90 % for 60 and in 77 % for 10; without correlation in 96 %.
    pub fn of(values: &[f64]) -> Option<SeriesMean> {
        let mean = mean(values)?;
        let effective_values = effective(values);
        let standard_error = variance(values)
            .filter(|_| values.len() >= LEAST_VALUES && effective_values >= 2.0)
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

/// How many independent values a series is worth: their variance over that of their mean.
///
/// The autocorrelations are summed in pairs of neighbouring lags as long as a pair is positive.
/// Source: C. J. Geyer, Practical Markov Chain Monte Carlo, Statistical Science 7 (1992), section
/// 3.3, the initial positive sequence.
fn effective(values: &[f64]) -> f64 {
    let all = values.len() as f64;
    let mut merged = values.to_vec();
    while merged.len() > VALUES {
        merged = merged
            .chunks_exact(2)
            .map(|pair| (pair[0] + pair[1]) / 2.0)
            .collect();
    }
    let whole = covariance(&merged, 0);
    let mut time = -1.0;
    for lag in (0..merged.len().saturating_sub(1)).step_by(2) {
        let pair = (covariance(&merged, lag) + covariance(&merged, lag + 1)) / whole;
        if pair <= 0.0 || pair.is_nan() {
            break;
        }
        time += 2.0 * pair;
    }
    let of_mean = whole * f64::max(time, 1.0) / merged.len() as f64;
    let worth = covariance(values, 0) / of_mean;
    // A constant series has neither variance.
    if worth.is_finite() {
        worth.min(all)
    } else {
        all
    }
}

/// Of values that are `lag` apart.
fn covariance(values: &[f64], lag: usize) -> f64 {
    let center = mean(values).unwrap_or_default();
    let later = values.iter().skip(lag);
    let products = values.iter().zip(later);
    products
        .map(|(a, b)| (a - center) * (b - center))
        .sum::<f64>()
        / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from 0 to 1 without order, from a shift register.
    fn noise(seed: u64, length: usize) -> Vec<f64> {
        let mut state = 0x9e37_79b9_7f4a_7c15 ^ (seed << 20);
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn intervals_hold_the_true_mean_about_as_often_as_they_say() {
        // Each value is seven tenths of the one before and a random part; the true mean is 0.
        let series = |seed| {
            let mut value = 0.0;
            let noise = noise(seed, 350).into_iter().skip(50);
            let values = noise.map(|part| {
                value = 0.7 * value + part - 0.5;
                value
            });
            values.collect::<Vec<f64>>()
        };
        let holds = |interval: Interval| interval.low < 0.0 && 0.0 < interval.high;
        let (mut corrected, mut naive) = (0, 0);
        for seed in 0..400 {
            let values = series(seed);
            let found = SeriesMean::of(&values).expect("values");
            corrected += usize::from(found.interval.is_some_and(holds));
            let error = (variance(&values).expect("many") / 300.0).sqrt();
            naive += usize::from(holds(Interval::around(found.mean, 1.96 * error)));
        }
        assert!((352..=396).contains(&corrected), "{corrected} of 400");
        assert!(naive < 300, "{naive} of 400 without the correction");
    }

    #[test]
    fn a_long_series_is_worth_what_it_is() {
        let long = SeriesMean::of(&noise(1, 10_000)).expect("values");
        assert!(long.effective_values > 7_000.0, "{long:?}");
    }

    #[test]
    fn values_without_order_count_nearly_in_full() {
        let found = SeriesMean::of(&noise(1, 400)).expect("values");
        assert!(found.effective_values > 300.0, "{found:?}");
        let interval = found.interval.expect("an interval");
        assert!(interval.low < 0.5 && 0.5 < interval.high, "{found:?}");
    }

    #[test]
    fn values_told_ten_times_each_are_worth_a_tenth() {
        let repeated: Vec<f64> = noise(1, 100)
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
    fn few_values_have_no_interval() {
        let few = SeriesMean::of(&noise(1, 9)).expect("values");
        assert_eq!((few.values, few.interval), (9, None));
        assert_eq!(SeriesMean::of(&[]), None);
        let one = SeriesMean::of(&[3.0]).expect("a value");
        assert_eq!((one.mean, one.interval), (3.0, None));
    }
}
