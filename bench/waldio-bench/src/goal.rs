//! What waldio has to reach, and whether it does.

use serde::Serialize;

use crate::sample::Sample;
use crate::stats::{Spread, column};

/// The samples of each row of a table, in the order of the rounds.
pub type Measured = [Vec<Sample>];

/// A bound on a row's median, or on the median of its ratios to another row of the same table.
#[derive(Clone, Debug, PartialEq)]
pub enum Goal {
    /// At least so many times the commits/s of row `than`.
    Faster {
        /// The other row.
        than: usize,
        /// Its name in a sentence.
        name: &'static str,
        /// How many times.
        by: f64,
        /// Rows whose commits take as long, one after the other, as those of the fastest program
        /// that could be; none if that is not known.
        floor: Vec<usize>,
    },
    /// At most that share of the bytes of row `than`.
    Lighter {
        /// The other row.
        than: usize,
        /// Its name in a sentence.
        name: &'static str,
        /// The share.
        by: f64,
    },
    /// At most so many KiB a commit.
    Kb(f64),
    /// At most so many flushes a commit.
    Flushes(f64),
    /// At most so many milliseconds for the slowest commit.
    SlowestMs(f64),
    /// A median commit takes at most as long as those of the rows `of` together, and so much more.
    P50 {
        /// The other rows.
        of: Vec<usize>,
        /// Their name in a sentence.
        name: &'static str,
        /// How much more, in microseconds.
        plus_us: f64,
    },
}

/// A goal beside what was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// What is wanted.
    pub goal: String,
    /// What was measured, in the same unit.
    pub measured: String,
    /// Whether it was reached; not known where the device does not count, or nothing was measured.
    pub met: Option<bool>,
}

impl Verdict {
    /// `met`, `missed` or `not measured`.
    pub fn word(&self) -> &'static str {
        match self.met {
            Some(true) => "met",
            Some(false) => "missed",
            None => "not measured",
        }
    }
}

impl Goal {
    /// Judges the row numbered `row`.
    pub fn judge(&self, row: usize, measured: &Measured) -> Verdict {
        let of_row = |get: fn(&Sample) -> Option<f64>| Spread::of(column(&measured[row], get));
        match self {
            Goal::Faster {
                than,
                name,
                by,
                floor,
            } => {
                let mut verdict = at_least(
                    format!("at least {by:.2} times the commits/s of {name}"),
                    ratio(row, *than, measured, |s| Some(s.per_second)),
                    *by,
                    |x| format!("{x:.2} times"),
                );
                if let Some(most) = Spread::of(possible(*than, floor, measured)) {
                    verdict.measured += &format!("; the floor allows {:.2}", most.median);
                }
                verdict
            }
            Goal::Lighter { than, name, by } => at_most(
                format!("at most {by:.2} times the bytes of {name}"),
                ratio(row, *than, measured, |s| s.kb),
                *by,
                |x| format!("{x:.2} times"),
            ),
            Goal::Kb(most) => {
                let goal = format!("at most {most:.1} KB a commit");
                at_most(goal, of_row(|s| s.kb), *most, |x| format!("{x:.2} KB"))
            }
            Goal::Flushes(most) => {
                let goal = format!("at most {most:.3} flushes a commit");
                at_most(goal, of_row(|s| s.flushes), *most, |x| format!("{x:.3}"))
            }
            Goal::SlowestMs(most) => {
                let goal = format!("the slowest commit at most {most:.0} ms");
                let slowest = of_row(|s| Some(s.slowest_ms));
                at_most(goal, slowest, *most, |x| format!("{x:.1} ms"))
            }
            Goal::P50 { of, name, plus_us } => {
                let goal = format!("a median commit at most {name} and {plus_us:.0} µs");
                let more = Spread::of(beyond(row, of, measured));
                at_most(goal, more, *plus_us, |x| format!("and {x:.1} µs"))
            }
        }
    }
}

/// By how much the median of a row is above the sum of the others', in each round.
fn beyond(row: usize, of: &[usize], measured: &Measured) -> Vec<f64> {
    let p50 = |row: usize| column(&measured[row], |s| Some(s.p50_us));
    let mut more = p50(row);
    for other in of {
        for (value, their) in more.iter_mut().zip(p50(*other)) {
            *value -= their;
        }
    }
    more
}

/// How many times the rate of row `than` it would be to do what the rows `floor` do, one after the
/// other, in each round.
fn possible(than: usize, floor: &[usize], measured: &Measured) -> Vec<f64> {
    let seconds = |row: usize| column(&measured[row], |s| Some(1.0 / s.per_second));
    let mut theirs = seconds(than);
    let mut sum = vec![0.0; theirs.len()];
    for row in floor {
        for (sum, seconds) in sum.iter_mut().zip(seconds(*row)) {
            *sum += seconds;
        }
    }
    for (value, sum) in theirs.iter_mut().zip(sum) {
        *value /= sum;
    }
    theirs.retain(|ratio| ratio.is_finite());
    theirs
}

/// The ratio to another row, in each round.
pub fn ratio(
    row: usize,
    than: usize,
    measured: &Measured,
    get: impl Fn(&Sample) -> Option<f64>,
) -> Option<Spread> {
    Spread::of_ratios(
        &column(&measured[row], &get),
        &column(&measured[than], &get),
    )
}

fn at_least(goal: String, of: Option<Spread>, bound: f64, text: fn(f64) -> String) -> Verdict {
    verdict(goal, of, |median| median >= bound, text)
}

fn at_most(goal: String, of: Option<Spread>, bound: f64, text: fn(f64) -> String) -> Verdict {
    verdict(goal, of, |median| median <= bound, text)
}

fn verdict(
    goal: String,
    of: Option<Spread>,
    met: impl Fn(f64) -> bool,
    text: fn(f64) -> String,
) -> Verdict {
    let measured = match of {
        Some(s) => format!("{} ({} to {})", text(s.median), bare(s.least), bare(s.most)),
        None => "nothing".to_owned(),
    };
    let met = of.map(|spread| met(spread.median));
    Verdict {
        goal,
        measured,
        met,
    }
}

fn bare(value: f64) -> String {
    if value.abs() >= 10.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(per_second: f64, p50_us: f64, kb: f64) -> Sample {
        Sample {
            per_second,
            p50_us,
            slowest_ms: 15.0,
            kb: Some(kb),
            flushes: Some(1.004),
            note: None,
        }
    }

    fn measured() -> Vec<Vec<Sample>> {
        vec![
            vec![sample(100.0, 50.0, 8.0), sample(200.0, 52.0, 8.0)],
            vec![sample(260.0, 60.0, 4.0), sample(500.0, 61.0, 4.4)],
        ]
    }

    fn faster(by: f64) -> Goal {
        Goal::Faster {
            than: 0,
            name: "stock",
            by,
            floor: Vec::new(),
        }
    }

    #[test]
    fn a_ratio_is_met_or_missed_by_its_median() {
        let verdict = faster(2.5).judge(1, &measured());
        assert_eq!(verdict.met, Some(true));
        assert_eq!(verdict.goal, "at least 2.50 times the commits/s of stock");
        assert_eq!(verdict.measured, "2.55 times (2.50 to 2.60)");
        assert_eq!(faster(2.56).judge(1, &measured()).word(), "missed");
    }

    #[test]
    fn a_ratio_stands_beside_what_the_floor_allows() {
        let goal = Goal::Faster {
            than: 0,
            name: "stock",
            by: 2.0,
            floor: vec![1, 1],
        };
        // 100/s beside twice 1/260 s, 200/s beside twice 1/500 s.
        let verdict = goal.judge(1, &measured());
        let expected = "2.55 times (2.50 to 2.60); the floor allows 1.27";
        assert_eq!(verdict.measured, expected);
    }

    #[test]
    fn bounds_from_above_hold_up_to_their_value() {
        let met = |goal: Goal| goal.judge(1, &measured()).met;
        assert_eq!(met(Goal::Kb(4.2)), Some(true));
        assert_eq!(met(Goal::Kb(4.1)), Some(false));
        assert_eq!(met(Goal::Flushes(1.01)), Some(true));
        assert_eq!(met(Goal::Flushes(1.0)), Some(false));
        assert_eq!(met(Goal::SlowestMs(15.0)), Some(true));
        assert_eq!(met(Goal::SlowestMs(14.0)), Some(false));
        let lighter = |by| Goal::Lighter {
            than: 0,
            name: "stock",
            by,
        };
        assert_eq!(met(lighter(0.55)), Some(true));
        assert_eq!(met(lighter(0.5)), Some(false));
    }

    #[test]
    fn a_median_commit_is_compared_with_the_sum_of_others() {
        let goal = |plus_us| Goal::P50 {
            of: vec![0],
            name: "the floor",
            plus_us,
        };
        let verdict = goal(9.5).judge(1, &measured());
        assert_eq!(verdict.met, Some(true));
        assert_eq!(verdict.measured, "and 9.5 µs (9.00 to 10)");
        assert_eq!(goal(9.4).judge(1, &measured()).met, Some(false));
    }

    #[test]
    fn what_was_not_counted_is_neither_met_nor_missed() {
        let mut measured = measured();
        measured[1][1].kb = None;
        let verdict = Goal::Kb(4.5).judge(1, &measured);
        assert_eq!((verdict.met, verdict.word()), (None, "not measured"));
        measured[0].clear();
        assert_eq!(faster(1.0).judge(1, &measured).met, None);
    }
}
