//! Whether the seconds of a run tell one rate, and when they begin to.

use std::fmt;

use serde::Serialize;

use super::sample::mean;

/// A run is looked at in so many parts of equal length.
const ROUNDS: usize = 5;
/// With fewer operations than this the rounds differ because operations are whole.
const LEAST_OPERATIONS: f64 = 100.0;
/// The rounds may differ by this share of their mean.
const RANGE: f64 = 0.20;
/// The best line through the rounds may rise or fall by this share of their mean.
const TREND: f64 = 0.10;
/// From so many seconds on the start is looked for in means of five, which are less noisy.
const BATCHED_FROM: usize = 50;
const BATCH: usize = 5;

/// Whether throughput had settled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Steadiness {
    /// Less than five whole seconds, or less than a hundred operations in them: nobody knows.
    TooShort,
    Steady,
    /// It had not.
    NotSteady {
        /// Why not.
        reason: Unsteadiness,
    },
}

/// In which way throughput had not settled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Unsteadiness {
    /// Only the beginning was different.
    Transient {
        /// Length of the beginning, seconds.
        seconds: u64,
        /// Its throughput over that of the rest, less 1.
        change: f64,
    },
    /// It rose or fell.
    Trend {
        /// Change along the best line from the first fifth to the last, over the mean.
        change: f64,
    },
    /// It went up and down.
    Range {
        /// The greatest fifth less the least, over the mean.
        share: f64,
    },
}

impl Steadiness {
    /// Of the operations a second in each whole second of a run.
    ///
    /// Steady is a run whose fifths differ by at most 20 % of their mean and whose best line
    /// through the fifths changes by at most 10 %. Source: SNIA, Solid State Storage Performance
    /// Test Specification 2.0.1, section 2.1.24, with the run's fifths as its five rounds.
    pub fn of(per_second: &[f64]) -> Steadiness {
        if per_second.len() < ROUNDS || per_second.iter().sum::<f64>() < LEAST_OPERATIONS {
            return Steadiness::TooShort;
        }
        let Some(reason) = unsteadiness(per_second) else {
            return Steadiness::Steady;
        };
        let (start, rest) = per_second.split_at(transient(per_second));
        let settled = rest.len() >= ROUNDS && unsteadiness(rest).is_none();
        let reason = match (mean(start), mean(rest)) {
            (Some(before), Some(after)) if settled && after > 0.0 => Unsteadiness::Transient {
                seconds: start.len() as u64,
                change: before / after - 1.0,
            },
            _ => reason,
        };
        Steadiness::NotSteady { reason }
    }
}

/// What is wrong with the fifths of a series; `None` if nothing is.
fn unsteadiness(per_second: &[f64]) -> Option<Unsteadiness> {
    let length = per_second.len();
    let rounds: Vec<f64> = (0..ROUNDS)
        .filter_map(|round| {
            mean(&per_second[round * length / ROUNDS..(round + 1) * length / ROUNDS])
        })
        .collect();
    let middle = mean(&rounds).filter(|mean| *mean > 0.0)?;
    let change = rise(&rounds) / middle;
    let least = rounds.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = rounds.iter().copied().fold(0.0, f64::max);
    let share = (greatest - least) / middle;
    if change.abs() > TREND {
        return Some(Unsteadiness::Trend { change });
    }
    (share > RANGE).then_some(Unsteadiness::Range { share })
}

/// How far the best line through the values rises from the first to the last.
fn rise(values: &[f64]) -> f64 {
    let last = values.len() as f64 - 1.0;
    let offsets = (0..values.len()).map(|place| place as f64 - last / 2.0);
    let square: f64 = offsets.clone().map(|offset| offset * offset).sum();
    let product: f64 = offsets
        .zip(values)
        .map(|(offset, value)| offset * value)
        .sum();
    product / square * last
}

/// How many values at the start are best left out: the number that makes the standard error of
/// the mean of the rest least; 0 if that would be half of them or more.
///
/// Source: K. P. White, An effective truncation heuristic for bias reduction in simulation
/// output, Simulation 69 (1997), MSER; in batches of five it is the MSER-5 of White, Cobb and
/// Spratt, A comparison of five steady-state truncation heuristics, Winter Simulation Conference
/// 2000.
fn transient(values: &[f64]) -> usize {
    let batch = if values.len() < BATCHED_FROM {
        1
    } else {
        BATCH
    };
    let means: Vec<f64> = values.chunks_exact(batch).filter_map(mean).collect();
    let half = means.len() / 2;
    // From the end to the start, sums over what would be left; Welford's update is exact enough
    // where a sum of squares is not.
    let (mut kept, mut center, mut squares) = (0.0, 0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for (cut, value) in means.iter().enumerate().rev() {
        kept += 1.0;
        let off = value - center;
        center += off / kept;
        squares += off * (value - center);
        let error = squares / (kept * kept);
        // Of equal ones the shortest cut.
        if cut <= half && error <= best.0 {
            best = (error, cut);
        }
    }
    match best.1 {
        cut if cut == half => 0,
        cut => cut * batch,
    }
}

impl fmt::Display for Unsteadiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faster = |change: f64| if change > 0.0 { "faster" } else { "slower" };
        match *self {
            Unsteadiness::Transient { seconds, change } => write!(
                f,
                "the first {seconds} s were {:.0} % {} than the rest",
                change.abs() * 100.0,
                faster(change)
            ),
            Unsteadiness::Trend { change } => write!(
                f,
                "it became {:.0} % {} from start to end",
                change.abs() * 100.0,
                faster(change)
            ),
            Unsteadiness::Range { share } => {
                write!(f, "its fifths differ by {:.0} %", share * 100.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn the_limits_are_twenty_percent_of_range_and_ten_of_trend() {
        // Range 0.2 and no trend: just steady.
        let level = [100.0, 110.0, 90.0, 110.0, 90.0].map(|v| v * 10.0);
        assert_eq!(rise(&level).round(), -80.0);
        assert_eq!(Steadiness::of(&level), Steadiness::Steady);
        let apart = [100.0, 112.0, 90.0, 110.0, 90.0];
        let Steadiness::NotSteady {
            reason: Unsteadiness::Range { share },
        } = Steadiness::of(&apart)
        else {
            panic!("{:?}", Steadiness::of(&apart));
        };
        assert!((share - 22.0 / 100.4).abs() < 1e-9, "{share}");
        let rising = [100.0, 103.0, 106.0, 109.0, 112.0];
        let Steadiness::NotSteady {
            reason: Unsteadiness::Trend { change },
        } = Steadiness::of(&rising)
        else {
            panic!("{:?}", Steadiness::of(&rising));
        };
        assert!((change - 12.0 / 106.0).abs() < 1e-9, "{change}");
    }

    #[test]
    fn a_fast_beginning_is_told_with_its_length() {
        let mut series = vec![300.0; 4];
        series.extend((0..26).map(|second| 100.0 + f64::from(second % 3)));
        let Steadiness::NotSteady { reason } = Steadiness::of(&series) else {
            panic!("the beginning is three times as fast");
        };
        assert_eq!(
            reason.to_string(),
            "the first 4 s were 197 % faster than the rest"
        );
    }

    #[test]
    fn the_cut_is_where_the_marginal_standard_error_is_least() {
        // By hand, squares over the squared number of what is left:
        // 62/36, 3.2/25, 0.75/16, 0.67/9.
        assert_eq!(transient(&[10.0, 3.0, 1.0, 1.0, 2.0, 1.0]), 2);
        assert_eq!(transient(&[5.0; 40]), 0);
        // A step in the middle is no beginning.
        assert_eq!(transient(&[9.0, 9.0, 9.0, 1.0, 1.0, 1.0]), 0);
        let mut long = vec![50.0; 10];
        long.extend([10.0; 90]);
        assert_eq!(transient(&long), 10);
    }

    #[test]
    fn a_run_that_stops_altogether_has_no_beginning() {
        let mut series = vec![100.0; 4];
        series.extend([0.0; 20]);
        let Steadiness::NotSteady { reason } = Steadiness::of(&series) else {
            panic!("it stopped");
        };
        assert!(
            matches!(reason, Unsteadiness::Trend { change } if change < -1.0),
            "{reason}"
        );
    }

    #[test]
    fn little_is_too_short_to_tell() {
        assert_eq!(Steadiness::of(&[1e6; 4]), Steadiness::TooShort);
        assert_eq!(Steadiness::of(&[2.0; 10]), Steadiness::TooShort);
        assert_eq!(Steadiness::of(&[]), Steadiness::TooShort);
    }

    proptest! {
        #[test]
        fn the_scale_does_not_matter(
            series in vec(50.0f64..200.0, 5..120), power in 1i32..20,
        ) {
            let scaled: Vec<f64> = series.iter().map(|value| value * 2f64.powi(power)).collect();
            prop_assert_eq!(Steadiness::of(&series), Steadiness::of(&scaled));
        }

        #[test]
        fn noise_of_a_few_percent_is_steady(series in vec(96.1f64..103.9, 5..200)) {
            prop_assert_eq!(Steadiness::of(&series), Steadiness::Steady);
        }
    }
}
