//! Medians and their spread, and ratios within a round.

use serde::Serialize;

use crate::sample::Sample;

/// A figure over the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The middle one.
    pub median: f64,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
}

impl Spread {
    /// Of these values, or `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (&least, &most) = (values.first()?, values.last()?);
        let above = values.len() / 2;
        let below = (values.len() - 1) / 2;
        let median = (values[below] + values[above]) / 2.0;
        Some(Spread {
            median,
            least,
            most,
        })
    }

    /// Of the pairs' quotients; pairs are of the same round.
    pub fn of_ratios(ours: &[f64], theirs: &[f64]) -> Option<Spread> {
        Spread::of(ours.iter().zip(theirs).map(|(our, their)| our / their))
    }
}

/// One column of samples, of all rounds, or empty if a round lacks it.
pub fn column(samples: &[Sample], of: impl Fn(&Sample) -> Option<f64>) -> Vec<f64> {
    let values: Option<Vec<f64>> = samples.iter().map(of).collect();
    values.unwrap_or_default()
}

/// In which order a round of `count` programs goes. Each round begins with another program, and
/// every other one goes backwards, so that neither a drift nor a neighbour favours anybody.
pub fn order(round: usize, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).map(|i| (i + round / 2) % count).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_two_in_the_middle() {
        let odd = Spread::of([3.0, 1.0, 2.0]).expect("values");
        assert_eq!((odd.median, odd.least, odd.most), (2.0, 1.0, 3.0));
        let even = Spread::of([4.0, 1.0, 2.0, 3.0]).expect("values");
        assert_eq!(even.median, 2.5);
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine got twice as fast meanwhile: both alike, so the ratio stands.
        let ratio = Spread::of_ratios(&[20.0, 40.0], &[10.0, 20.0]).expect("rounds");
        assert_eq!((ratio.least, ratio.most), (2.0, 2.0));
    }

    #[test]
    fn every_program_has_its_turn_once_a_round() {
        for count in 1..6 {
            for round in 0..7 {
                let mut order = order(round, count);
                order.sort_unstable();
                assert_eq!(order, (0..count).collect::<Vec<_>>());
            }
        }
        assert_eq!(order(0, 3), [0, 1, 2]);
        assert_eq!(order(1, 3), [2, 1, 0]);
        assert_eq!(order(2, 3), [1, 2, 0]);
    }

    #[test]
    fn a_column_is_whole_or_empty() {
        let sample = |kb| Sample {
            per_second: 1.0,
            p50_us: 1.0,
            slowest_ms: 1.0,
            kb,
            flushes: None,
            note: None,
        };
        let samples = [sample(Some(1.0)), sample(Some(2.0))];
        assert_eq!(column(&samples, |s| s.kb), [1.0, 2.0]);
        assert!(column(&[sample(Some(1.0)), sample(None)], |s| s.kb).is_empty());
    }
}
