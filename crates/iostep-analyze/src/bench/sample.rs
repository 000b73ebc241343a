//! What values that were drawn say of all that there are.

use serde::Serialize;

use super::student::t_95;

/// The mean; `None` without values.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The variance of the population that the values are a sample of; `None` for less than two.
pub(crate) fn variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some(squares / (values.len() - 1) as f64)
}

/// From where to where a number is believed to be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// The 95 % confidence interval of the mean of what independent values are drawn from, by
    /// Student's distribution; `None` for less than two.
    pub(crate) fn of_mean(values: &[f64]) -> Option<Interval> {
        let count = values.len() as f64;
        let error = (variance(values)? / count).sqrt();
        Some(Interval::around(mean(values)?, t_95(count - 1.0) * error))
    }

    /// As far to the one side of `center` as to the other.
    pub(super) fn around(center: f64, half_width: f64) -> Interval {
        Interval {
            low: center - half_width,
            high: center + half_width,
        }
    }

    /// Half of its length.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}
