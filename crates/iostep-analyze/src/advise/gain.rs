//! How much faster one setting is than another that was measured before and after it.

use serde::Serialize;

use super::turns::Turn;
use crate::bench::{Interval, mean, t_95, welch_95};

/// A ratio of commits a second, over that of the present setting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// Turns that it was measured in.
    pub turns: u64,
    /// The ratio: the geometric mean over the turns.
    pub ratio: f64,
    /// Its 95 % confidence interval; `None` for a single turn.
    pub interval: Option<Interval>,
    /// What that means.
    pub verdict: Verdict,
}

/// What a gain means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval is above 1.
    Faster,
    /// The whole interval is below 1.
    Slower,
    /// 1 is in the interval: no gain.
    NoGain,
    /// A single turn says nothing of what chance does.
    TooFewTurns,
}

impl Gain {
    /// Of all turns of one candidate; `None` without any that can be compared.
    ///
    /// A turn's ratio is that of two runs to the runs before and after them, so a drift that is
    /// steady over a turn changes nothing. The interval is Student's of the ratios' logarithms.
    pub fn of(turns: &[&Turn]) -> Option<Gain> {
        let ratios = turns.iter().filter_map(|turn| turn.ratio());
        let logarithms: Vec<f64> = ratios.map(f64::ln).collect();
        let middle = mean(&logarithms)?;
        let interval = Interval::of_mean(&logarithms).map(|of_logarithms| Interval {
            low: of_logarithms.low.exp(),
            high: of_logarithms.high.exp(),
        });
        Some(Gain {
            turns: logarithms.len() as u64,
            ratio: middle.exp(),
            interval,
            verdict: match interval {
                None => Verdict::TooFewTurns,
                Some(interval) if interval.low > 1.0 => Verdict::Faster,
                Some(interval) if interval.high < 1.0 => Verdict::Slower,
                Some(_) => Verdict::NoGain,
            },
        })
    }
}

impl Gain {
    /// What it is at least, with 95 % certainty that it is within its interval; 0 for a single
    /// turn, of which nothing is certain.
    pub fn at_least(&self) -> f64 {
        self.interval.map_or(0.0, |interval| interval.low)
    }

    /// True if the turns tell which of two gains is the larger one, with 95 % certainty: Welch's
    /// test of the ratios' logarithms.
    pub fn is_told_from(&self, other: &Gain) -> bool {
        let (Some(own), Some(others)) = (self.error(), other.error()) else {
            return false;
        };
        let apart = (self.ratio.ln() - other.ratio.ln()).abs();
        apart > welch_95([(own, self.turns as f64), (others, other.turns as f64)])
    }

    /// The standard error of the ratio's logarithm.
    fn error(&self) -> Option<f64> {
        let half = (self.interval?.high / self.ratio).ln();
        Some(half / t_95(self.turns as f64 - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::turn;
    use super::*;

    #[test]
    fn a_steady_drift_changes_nothing() {
        // Every run is a tenth of the first one slower than the one before.
        let drifting = turn(100.0, [2.0 * 90.0, 2.0 * 80.0], 70.0);
        let gain = Gain::of(&[&drifting, &drifting]).expect("two turns");
        assert!((gain.ratio - 2.0).abs() < 1e-9, "{gain:?}");
        assert_eq!(gain.verdict, Verdict::Faster);
    }

    #[test]
    fn an_interval_around_one_is_no_gain() {
        let faster = turn(100.0, [120.0, 120.0], 100.0);
        let slower = turn(100.0, [90.0, 90.0], 100.0);
        let gain = Gain::of(&[&faster, &slower, &faster, &slower]).expect("turns");
        assert_eq!(gain.verdict, Verdict::NoGain);
        let interval = gain.interval.expect("several turns");
        assert!(interval.low < 1.0 && gain.ratio > 1.0 && interval.high > 1.0);
    }

    #[test]
    fn the_interval_is_students_of_the_logarithms() {
        let of = |ratio: f64| turn(1.0, [ratio, ratio], 1.0);
        let turns = [of(1f64.exp()), of(2f64.exp()), of(3f64.exp())];
        let gain = Gain::of(&turns.each_ref()).expect("turns");
        assert!((gain.ratio.ln() - 2.0).abs() < 1e-9);
        // 4.303 * sqrt(1 / 3)
        let high = gain.interval.expect("several turns").high.ln();
        assert!((high - 2.0 - 2.4843).abs() < 0.001, "{high}");
    }

    #[test]
    fn gains_are_told_apart_if_their_difference_is_beyond_chance() {
        let of = |ratios: &[f64]| {
            let turns: Vec<_> = ratios.iter().map(|&r| turn(1.0, [r, r], 1.0)).collect();
            Gain::of(&turns.iter().collect::<Vec<_>>()).expect("turns")
        };
        let wild = of(&[2.0, 30.0, 10.0]);
        let steady = of(&[4.1, 4.2, 4.3]);
        let slower = of(&[2.1, 2.2, 2.3]);
        assert!(wild.ratio > steady.ratio && wild.at_least() < steady.at_least());
        assert!(!wild.is_told_from(&steady) && !steady.is_told_from(&wild));
        assert!(steady.is_told_from(&slower) && slower.is_told_from(&steady));
        assert!(!of(&[9.0]).is_told_from(&slower));
        assert_eq!(of(&[9.0]).at_least(), 0.0);
        let exact = of(&[4.0, 4.0]);
        assert!(!exact.is_told_from(&exact) && exact.is_told_from(&of(&[5.0, 5.0])));
    }

    #[test]
    fn one_turn_is_too_few_and_stalled_runs_are_no_turn() {
        let one = turn(100.0, [500.0, 500.0], 100.0);
        let gain = Gain::of(&[&one]).expect("a turn");
        assert_eq!((gain.verdict, gain.interval), (Verdict::TooFewTurns, None));
        let stalled = turn(0.0, [500.0, 500.0], 0.0);
        assert_eq!(Gain::of(&[&stalled]), None);
    }
}
