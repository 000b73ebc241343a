//! What values that were drawn say of all that there are.

use serde::Serialize;

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
