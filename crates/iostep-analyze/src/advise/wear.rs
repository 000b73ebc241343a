//! What a commit writes, over what one writes with the present setting.

use serde::Serialize;

use super::turns::{Observation, Turn};
use crate::bench::{Interval, mean};

/// Less is said only from a tenth on: what a filesystem writes besides differs by some percent.
const LESS: f64 = 0.9;

/// Bytes that the device wrote for a commit, over those with the present setting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Wear {
    /// Turns that it was counted in.
    pub turns: u64,
    /// The geometric mean over the turns.
    pub ratio: f64,
    /// What it is at least: the lower end of the 95 % interval, with what a log that was not
    /// checkpointed within a run writes at least.
    pub at_least: f64,
    /// What it is at most; `None` for a single turn, of which nothing is certain.
    pub at_most: Option<f64>,
}

impl Wear {
    /// Of all turns of one candidate; `None` without any in which both wrote something.
    pub(super) fn of(turns: &[&Turn]) -> Option<Wear> {
        let most = |run: &Observation| run.cost.map(|cost| cost.written_bytes);
        let least = |run: &Observation| run.written_least;
        let logarithms = |own: Of, present: Of| -> Vec<f64> {
            let ratios = turns.iter().filter_map(|turn| ratio(turn, own, present));
            ratios.map(f64::ln).collect()
        };
        let middle = logarithms(most, most);
        let lower = logarithms(least, most);
        let upper = logarithms(most, least);
        let at_least = Interval::of_mean(&lower).map_or(0.0, |interval| interval.low.exp());
        let at_most = Interval::of_mean(&upper).map(|interval| interval.high.exp());
        Some(Wear {
            turns: middle.len() as u64,
            ratio: mean(&middle)?.exp(),
            // A turn in which nothing is certain to have been written has no logarithm.
            at_least: match lower.len() == middle.len() {
                true => at_least,
                false => 0.0,
            },
            at_most: at_most.filter(|_| upper.len() == middle.len()),
        })
    }

    /// True if it is certain that less is written than with the present setting.
    pub fn is_less(&self) -> bool {
        self.at_most.is_some_and(|most| most < LESS)
    }

    /// True if it is certain that more is written than with the present setting.
    pub fn is_more(&self) -> bool {
        self.turns > 1 && self.at_least > 1.0
    }

    /// True if it is certain which of two writes less.
    pub(super) fn is_told_from(&self, other: &Wear) -> bool {
        let less = |one: &Wear, other: &Wear| one.at_most.is_some_and(|at| at < other.at_least);
        less(self, other) || less(other, self)
    }
}

/// What of a run.
type Of = fn(&Observation) -> Option<f64>;

fn ratio(turn: &Turn, own: Of, present: Of) -> Option<f64> {
    let sum = |of: Of, runs: [&Observation; 2]| {
        let sum = of(runs[0])? + of(runs[1])?;
        (sum > 0.0).then_some(sum)
    };
    let own = sum(own, [&turn.own[0], &turn.own[1]])?;
    Some(own / sum(present, [&turn.before, &turn.after])?)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::wearing;
    use super::*;

    fn of(turns: &[Turn]) -> Wear {
        Wear::of(&turns.iter().collect::<Vec<_>>()).expect("turns")
    }

    #[test]
    fn a_log_without_a_whole_cycle_is_less_if_it_is_so_at_most() {
        let present = (64_000.0, 64_000.0);
        let log = [
            wearing((12_000.0, 8_000.0), present),
            wearing((12_100.0, 8_000.0), present),
        ];
        let wear = of(&log);
        assert!(wear.is_less() && !wear.is_more(), "{wear:?}");
        assert!((wear.ratio - 0.188).abs() < 0.001, "{wear:?}");
        assert!(wear.at_least <= 0.125 + 1e-9, "{wear:?}");
    }

    #[test]
    fn what_may_be_more_than_the_least_of_the_present_log_is_not_less() {
        // The present log writes 8,000 to 12,000 bytes, so 9,000 may be more.
        let turns = [(); 3].map(|()| wearing((9_000.0, 9_000.0), (12_000.0, 8_000.0)));
        assert!(!of(&turns).is_less());
        let turns = [(); 3].map(|()| wearing((7_000.0, 7_000.0), (12_000.0, 8_000.0)));
        assert!(of(&turns).is_less());
        // Nothing was written before the end.
        let turns = [(); 3].map(|()| wearing((7_000.0, 7_000.0), (12_000.0, 0.0)));
        let wear = of(&turns);
        assert!(!wear.is_less() && !wear.is_more(), "{wear:?}");
    }

    #[test]
    fn one_turn_is_certain_of_nothing() {
        let wear = of(&[wearing((1.0, 1.0), (64_000.0, 64_000.0))]);
        assert!(!wear.is_less() && !wear.is_more());
    }

    #[test]
    fn ranges_that_overlap_are_not_told_apart() {
        let present = (64_000.0, 64_000.0);
        let small = of(&[(); 3].map(|()| wearing((12_000.0, 8_000.0), present)));
        let large = of(&[(); 3].map(|()| wearing((14_000.0, 9_000.0), present)));
        let other = of(&[(); 3].map(|()| wearing((48_000.0, 48_000.0), present)));
        assert!(!small.is_told_from(&large) && !large.is_told_from(&small));
        assert!(small.is_told_from(&other) && other.is_told_from(&large));
    }
}
