//! Whether two sets of values differ, without assuming how they are distributed.

use iostep_model::quantile::median;

use super::sample::Interval;

/// Up to so many values together the probabilities are counted out; beyond, the normal
/// distribution is as good.
const EXACT: usize = 60;
/// 97.5 % of the normal distribution.
const NORMAL_95: f64 = 1.959_964;

/// The probability that two samples of one population differ in their ranks by as much as these:
/// the two-sided test of Mann and Whitney, exact also where values are equal. 1 without values.
///
/// Source: H. B. Mann, D. R. Whitney, On a Test of Whether One of Two Random Variables is
/// Stochastically Larger than the Other, Annals of Mathematical Statistics 18 (1947); equal
/// values take the mean of their ranks.
pub(super) fn probability(first: &[f64], second: &[f64]) -> f64 {
    if first.is_empty() || second.is_empty() {
        return 1.0;
    }
    let ranks = doubled_ranks(first, second);
    let sum: u64 = ranks[..first.len()].iter().sum();
    let all: u64 = ranks.iter().sum();
    let expected = all as f64 * first.len() as f64 / ranks.len() as f64;
    let off = (sum as f64 - expected).abs();
    if ranks.len() > EXACT {
        let variance = variance_of_sum(&ranks, first.len());
        return if variance > 0.0 {
            two_tails(off / variance.sqrt())
        } else {
            1.0
        };
    }
    let ways = ways_to_sum(&ranks, first.len());
    let as_far = ways
        .iter()
        .enumerate()
        .filter(|&(sum, _)| (sum as f64 - expected).abs() >= off - 1e-6);
    as_far.map(|(_, ways)| ways).sum::<f64>() / ways.iter().sum::<f64>()
}

/// The least probability that so many values can have: when all of one side are above all of the
/// other.
pub(super) fn least_probability(first: usize, second: usize) -> f64 {
    if first == 0 || second == 0 {
        return 1.0;
    }
    let fewer = first.min(second).min(EXACT);
    let all = first + second;
    let ways = (1..=fewer).map(|k| (all - fewer + k) as f64 / k as f64);
    (2.0 / ways.product::<f64>()).min(1.0)
}

/// The median of all ratios of a second to a first value, and its interval of at least 95 %.
/// `None` if a value is not above 0; no interval for so few values that there is none.
///
/// Source: Hodges and Lehmann, Estimates of Location Based on Rank Tests, Annals of Mathematical
/// Statistics 34 (1963), of logarithms; the interval is where [`probability`] is above 5 %.
pub(super) fn ratio(first: &[f64], second: &[f64]) -> Option<(f64, Option<Interval>)> {
    if !first.iter().chain(second).all(|value| *value > 0.0) {
        return None;
    }
    let mut ratios: Vec<f64> = first
        .iter()
        .flat_map(|first| second.iter().map(move |second| second / first))
        .collect();
    ratios.sort_by(f64::total_cmp);
    let middle = median(&ratios)?;
    let interval = cut(first.len(), second.len()).and_then(|cut| {
        Some(Interval {
            low: *ratios.get(cut)?,
            high: *ratios.get(ratios.len().checked_sub(1 + cut)?)?,
        })
    });
    Some((middle, interval))
}

/// How many ratios at either end are outside of the interval; `None` if even all of them are too
/// few.
fn cut(first: usize, second: usize) -> Option<usize> {
    let all = first + second;
    if all > EXACT {
        let (first, second, all) = (first as f64, second as f64, all as f64);
        let deviation = (first * second * (all + 1.0) / 12.0).sqrt();
        return Some((first * second / 2.0 - NORMAL_95 * deviation).max(0.0) as usize);
    }
    let ranks: Vec<u64> = (1..=all as u64).map(|rank| 2 * rank).collect();
    let ways = ways_to_sum(&ranks, first);
    let total: f64 = ways.iter().sum();
    let least = first * (first + 1);
    let mut passed = 0.0;
    let beyond = ways[least..].iter().step_by(2).take_while(|ways| {
        passed += **ways;
        passed / total <= 0.025
    });
    beyond.count().checked_sub(1)
}

/// Twice the rank of each value among all, those of `first` before those of `second`: twice, so
/// that the mean rank of equal values is a whole number.
fn doubled_ranks(first: &[f64], second: &[f64]) -> Vec<u64> {
    let values: Vec<f64> = first.iter().chain(second).copied().collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0; values.len()];
    let mut before = 0;
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = 2 * before + equal.len() as u64 + 1;
        equal.iter().for_each(|&place| ranks[place] = rank);
        before += equal.len() as u64;
    }
    ranks
}

/// In how many ways `chosen` of the ranks have each sum.
fn ways_to_sum(ranks: &[u64], chosen: usize) -> Vec<f64> {
    let sums = ranks.iter().sum::<u64>() as usize + 1;
    // ways[k][s]: in how many ways k of the ranks so far have the sum s.
    let mut ways = vec![vec![0.0; sums]; chosen + 1];
    ways[0][0] = 1.0;
    for &rank in ranks {
        let rank = rank as usize;
        for k in (1..=chosen).rev() {
            let (fewer, one_more) = ways.split_at_mut(k);
            for sum in (rank..sums).rev() {
                one_more[0][sum] += fewer[k - 1][sum - rank];
            }
        }
    }
    ways.pop().unwrap_or_default()
}

/// The variance of the sum of `chosen` ranks drawn without putting back.
fn variance_of_sum(ranks: &[u64], chosen: usize) -> f64 {
    let (all, chosen) = (ranks.len() as f64, chosen as f64);
    let mean = ranks.iter().sum::<u64>() as f64 / all;
    let squares: f64 = ranks.iter().map(|&rank| (rank as f64 - mean).powi(2)).sum();
    chosen * (all - chosen) / (all * (all - 1.0)) * squares
}

/// The probability that a normal variable is `off` or more standard deviations from its mean.
///
/// Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.2.17; error below 2e-7.
fn two_tails(off: f64) -> f64 {
    const FACTORS: [f64; 5] = [
        0.319_381_530,
        -0.356_563_782,
        1.781_477_937,
        -1.821_255_978,
        1.330_274_429,
    ];
    let t = 1.0 / (1.0 + 0.231_641_9 * off);
    let sum = FACTORS
        .iter()
        .rev()
        .fold(0.0, |sum, factor| (sum + factor) * t);
    2.0 * (-off * off / 2.0).exp() / std::f64::consts::TAU.sqrt() * sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn the_probabilities_are_those_of_the_tables() {
        // U = 0 for 3 and 3, 4 and 4, 5 and 5.
        let up =
            |from: i32, count: i32| -> Vec<f64> { (from..from + count).map(f64::from).collect() };
        for (count, expected) in [(3, 2.0 / 20.0), (4, 2.0 / 70.0), (5, 2.0 / 252.0)] {
            let found = probability(&up(1, count), &up(100, count));
            assert!((found - expected).abs() < 1e-12, "{found} for {expected}");
            let least = least_probability(count as usize, count as usize);
            assert!((least - expected).abs() < 1e-12, "{least}");
        }
        // Hollander and Wolfe, example 4.1: P(W >= 30) = 0.127 on one side.
        let term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let earlier = [1.15, 0.88, 0.90, 0.74, 1.21];
        let found = probability(&term, &earlier);
        assert!((found - 0.2544).abs() < 0.0005, "{found}");
    }

    #[test]
    fn the_critical_values_are_those_of_the_tables() {
        // The largest U that is significant at 5 % on both sides is one less than what is cut
        // plus one: 5 and 5: 2, 8 and 8: 13, 10 and 10: 23, 20 and 20: 127.
        for (count, expected) in [
            (4, Some(0)),
            (5, Some(2)),
            (8, Some(13)),
            (10, Some(23)),
            (20, Some(127)),
            (3, None),
        ] {
            assert_eq!(cut(count, count), expected, "{count}");
        }
    }

    #[test]
    fn many_values_are_judged_by_the_normal_distribution() {
        let first: Vec<f64> = (0..35).map(f64::from).collect();
        let second: Vec<f64> = (0..35).map(|value| f64::from(value) + 9.5).collect();
        let large = probability(&first, &second);
        let small = probability(&first[..29], &second[..29]);
        assert!(large < 0.01 && small < 0.05, "{large} {small}");
        assert!((two_tails(1.959_964) - 0.05).abs() < 1e-6);
    }

    #[test]
    fn equal_values_differ_in_nothing() {
        assert_eq!(probability(&[2.0; 5], &[2.0; 5]), 1.0);
        assert_eq!(probability(&[], &[1.0]), 1.0);
        let all_apart = probability(&[1.0; 5], &[2.0; 5]);
        assert!((all_apart - 2.0 / 252.0).abs() < 1e-12, "{all_apart}");
    }

    #[test]
    fn a_ratio_needs_values_above_zero() {
        assert_eq!(ratio(&[0.0, 1.0], &[1.0]), None);
        let (middle, interval) = ratio(&[1.0; 5], &[2.0; 5]).expect("positive");
        assert_eq!(middle, 2.0);
        assert_eq!(interval.map(|i| (i.low, i.high)), Some((2.0, 2.0)));
    }

    proptest! {
        #[test]
        fn the_sides_can_be_exchanged(
            first in vec(1.0f64..100.0, 1..12), second in vec(1.0f64..100.0, 1..12),
        ) {
            let there = probability(&first, &second);
            prop_assert!((there - probability(&second, &first)).abs() < 1e-9);
            prop_assert!((0.0..=1.0 + 1e-9).contains(&there));
            prop_assert!(there >= least_probability(first.len(), second.len()) - 1e-9);
        }

        #[test]
        fn the_interval_excludes_one_exactly_where_the_test_is_significant(
            first in vec(1.0f64..10.0, 4..9), second in vec(2.0f64..12.0, 4..9),
        ) {
            let (_, interval) = ratio(&first, &second).expect("positive");
            let interval = interval.expect("enough values");
            let excluded = interval.low > 1.0 || interval.high < 1.0;
            prop_assert_eq!(excluded, probability(&first, &second) <= 0.05);
        }
    }
}
