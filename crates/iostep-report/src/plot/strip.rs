//! How the values of a table's row lie, as a small plot in the row.

use askama::Template;

use super::axis::{Axis, Px};

/// What an axis of strips goes from and to.
pub const STRIP_PX: (f64, f64) = (4.0, 196.0);
/// More dots than this are one line.
const DOTS: usize = 60;
/// Values that are further apart than this are told apart by their logarithms.
const WIDE: f64 = 20.0;

/// A dot for each value, their median, and its interval.
#[derive(Template)]
#[template(path = "strip.html")]
pub struct Strip {
    /// The same in words, for who does not see it.
    label: String,
    dots: Vec<Px>,
    range: (Px, Px),
    median: Px,
    interval: Option<(Px, Px)>,
}

impl Strip {
    /// Of ascending values; of very many, those that are [`shown`]. `None` without values.
    pub fn of(
        axis: &Axis,
        ascending: &[f64],
        median: f64,
        interval: Option<[f64; 2]>,
        label: impl Into<String>,
    ) -> Option<Strip> {
        let (first, last) = (*ascending.first()?, *ascending.last()?);
        let dots = shown(ascending).into_iter();
        Some(Strip {
            label: label.into(),
            dots: dots.map(|value| axis.at(value)).collect(),
            range: (axis.at(first), axis.at(last)),
            median: axis.at(median),
            interval: interval.map(|[low, high]| (axis.at(low), axis.at(high))),
        })
    }

    fn width(&self, (from, to): &(Px, Px)) -> Px {
        Px(to.0 - from.0)
    }
}

/// The values that have dots: of very many ascending ones, as many as can be told apart, in equal
/// distances, the first and the last among them.
pub fn shown(ascending: &[f64]) -> Vec<f64> {
    let count = ascending.len();
    let shown = count.min(DOTS);
    let at = |dot: usize| ascending[dot * (count - 1) / (shown - 1).max(1)];
    (0..shown).map(at).collect()
}

/// An axis that strips of values between these two share, and true if it is one of logarithms.
pub fn axis(least: f64, greatest: f64) -> (Axis, bool) {
    match least >= 1.0 && greatest > WIDE * least {
        true => (Axis::logarithms(least, greatest, STRIP_PX), true),
        false => (Axis::linear(greatest, 1.0, STRIP_PX), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strip_has_the_ends_of_its_values_however_many_there_are() {
        for count in [1, 2, 60, 61, 10_000] {
            let values: Vec<f64> = (1..=count).map(f64::from).collect();
            let (axis, _) = axis(1.0, f64::from(count));
            let strip = Strip::of(&axis, &values, 1.0, None, "").expect("values");
            assert_eq!(strip.dots.len(), values.len().min(DOTS));
            assert!(strip.dots[0] == axis.at(1.0));
            assert!(*strip.dots.last().expect("dots") == axis.at(f64::from(count)));
        }
        let (axis, _) = axis(1.0, 2.0);
        assert!(Strip::of(&axis, &[], 1.0, None, "").is_none());
    }

    #[test]
    fn values_far_apart_have_an_axis_of_logarithms() {
        assert!(!axis(10.0, 199.0).1);
        assert!(axis(10.0, 201.0).1);
        assert!(!axis(0.001, 4.0).1);
    }
}
