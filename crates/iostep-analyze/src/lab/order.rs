//! Comparing cells that differ on one axis. Those that took turns are compared round by round, and
//! the median of the rounds decides.

use iostep_model::lab::{CellResult, Measure, State};

use super::Value;
use super::finding::{Answer, Evidence, Gap, Number};
use super::results::{At, Platform, Results};

/// Which of several is asked for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Extreme {
    Least,
    Greatest,
}

/// Cells that differ on one axis only.
#[derive(Clone, Copy)]
pub(super) struct Series<'a> {
    pub results: Results<'a>,
    /// What they have in common.
    pub at: &'a At<'a>,
    /// On which axis they differ.
    pub axis: &'a str,
    pub measure: Measure,
}

/// A value of the axis with its number.
struct Named<'a> {
    name: &'a str,
    value: Value,
    result: &'a CellResult,
}

/// A ratio of two numbers.
#[derive(Clone, Copy)]
pub(super) struct Factor {
    /// Of the medians, or the median of the rounds.
    pub median: f64,
    /// The least and the greatest that the runs allow; the median itself for a count, and of cells
    /// that took turns.
    pub range: (f64, f64),
    /// Over the rounds, if they took turns.
    rounds: Option<Value>,
}

impl Factor {
    /// What a condition says of it; `None` if that depends on the runs that are taken.
    fn decide(self, holds: impl Fn(f64) -> bool) -> Option<bool> {
        let (low, high) = self.range;
        (holds(low) == holds(high)).then(|| holds(self.median))
    }

    fn named(self, name: &str) -> Number {
        Number {
            rounds: self.rounds.map(|rounds| (rounds.minimum, rounds.maximum)),
            ..Number::ratio(name, self.median)
        }
    }
}

/// What a condition says of two ratios of one place, which move against each other.
pub(super) fn both(
    place: String,
    [one, other]: [(&str, Factor); 2],
    holds: impl Fn(f64, f64) -> bool,
) -> Answer {
    let ranges = (one.1.range, other.1.range);
    let outer = holds(ranges.0.0, ranges.1.1);
    let inner = holds(ranges.0.1, ranges.1.0);
    if outer != inner {
        return Err(Gap {
            place,
            reason: TOO_FAR_APART.to_owned(),
        });
    }
    Ok(Evidence {
        holds: holds(one.1.median, other.1.median),
        place,
        numbers: [one, other].map(|(name, factor)| factor.named(name)).into(),
    })
}

/// Why a claim stays open whose answer depends on the runs that are taken.
const TOO_FAR_APART: &str = "the runs differ too much to tell";

impl<'a> Series<'a> {
    fn number(&self, name: &'a str) -> Result<Named<'a>, Gap> {
        let at: Vec<(&str, &str)> = self.at.iter().copied().chain([(self.axis, name)]).collect();
        let found = self.results.value(&at, self.measure);
        let (value, result) = found.ok_or_else(|| Gap {
            place: words(&at),
            reason: match self.results.first(&at) {
                None => "no result".to_owned(),
                Some(result) => result.state.reason().unwrap_or("no number").to_owned(),
            },
        })?;
        Ok(Named {
            name,
            value,
            result,
        })
    }

    /// Times of different places say nothing about each other.
    fn comparable(&self, a: &Named<'_>, b: &Named<'_>) -> Result<(), Gap> {
        match (Platform::of_result(a.result), Platform::of_result(b.result)) {
            (Some(one), Some(other)) if self.measure.is_time() && one != other => Err(Gap {
                place: words(self.at),
                reason: format!(
                    "{} was measured on {}, {} on {}",
                    label(a.name),
                    one.kind(),
                    label(b.name),
                    other.kind_beside(&one)
                ),
            }),
            _ => Ok(()),
        }
    }

    /// Whether `winner` has the least or the greatest number among `others`. One that beats it
    /// refutes that; it is confirmed only if every other that there is could be compared.
    pub fn extreme(&self, extreme: Extreme, winner: &'a str, others: &[&'a str]) -> Answer {
        let first = self.number(winner)?;
        let mut holds = true;
        let mut numbers = vec![self.numbered(&first)];
        let mut open = None;
        for other in others.iter().filter(|other| **other != winner) {
            if !self.can_have(other) {
                continue;
            }
            let compared = self.number(other).and_then(|second| {
                self.comparable(&first, &second)?;
                let rounds = self.by_turns(&[&first, &second], |both| both[0] - both[1]);
                match self.measure.is_time() && overlap(&first.value, &second.value) {
                    true if rounds.is_none() => Err(self.too_far_apart()),
                    _ => Ok((second, rounds)),
                }
            });
            match compared {
                Ok((second, rounds)) => {
                    let above = first.value.median - second.value.median;
                    let above = rounds.map_or(above, |rounds| rounds.median);
                    holds &= match extreme {
                        Extreme::Least => above < 0.0,
                        Extreme::Greatest => above > 0.0,
                    };
                    numbers.push(self.numbered(&second));
                }
                Err(reason) => open = open.or(Some(reason)),
            }
        }
        match (open, numbers.len()) {
            (Some(reason), _) if holds => Err(reason),
            (None, 1) => Err(Gap {
                place: words(self.at),
                reason: "nothing to compare with".to_owned(),
            }),
            _ => Ok(self.evidence(holds, numbers)),
        }
    }

    /// False if the lab has no such cell, or if it means nothing.
    fn can_have(&self, name: &str) -> bool {
        let at: Vec<(&str, &str)> = self.at.iter().copied().chain([(self.axis, name)]).collect();
        let found = self.results.first(&at);
        found.is_some_and(|result| !matches!(result.state, State::NotApplicable { .. }))
    }

    /// Whether `to` has a number of `from`'s times a factor that `holds`. Beside a ratio of
    /// throughputs stands what it would be for a program that does what all of `allowed` do, one
    /// after the other.
    pub fn ratio(
        &self,
        from: &'a str,
        to: &'a str,
        allowed: &'a [String],
        holds: impl Fn(f64) -> bool,
    ) -> Answer {
        let base = self.number(from)?;
        let found = self.number(to)?;
        let factor = self.over(&base, &found)?;
        let holds = factor.decide(holds).ok_or_else(|| self.too_far_apart())?;
        let mut numbers = vec![
            self.numbered(&base),
            self.numbered(&found),
            factor.named("ratio"),
        ];
        if !allowed.is_empty() {
            let most = self.beside(&base, allowed, |rates| {
                let seconds: f64 = rates[1..].iter().map(|rate| 1.0 / rate).sum();
                1.0 / seconds / rates[0]
            })?;
            numbers.push(Number::ratio("the floor allows", most.median));
        }
        Ok(self.evidence(holds, numbers))
    }

    /// Whether what the number of `value` has more than those of `others` together `holds`.
    pub fn above(
        &self,
        value: &'a str,
        others: &'a [String],
        holds: impl Fn(f64) -> bool,
    ) -> Answer {
        let found = self.number(value)?;
        let sum = |numbers: &[f64]| numbers[0] - numbers[1..].iter().sum::<f64>();
        let more = self.beside(&found, others, sum)?;
        let above = Number {
            measure: Some(self.measure),
            rounds: Some((more.minimum, more.maximum)),
            ..Number::ratio(&format!("above {}", others.join(" and ")), more.median)
        };
        let numbers = vec![self.numbered(&found), above];
        Ok(self.evidence(holds(more.median), numbers))
    }

    /// Cells that took turns, and what is made of their numbers.
    fn beside(
        &self,
        first: &Named<'a>,
        others: &'a [String],
        combine: impl Fn(&[f64]) -> f64,
    ) -> Result<Value, Gap> {
        let named = others.iter().map(|other| self.number(other));
        let named: Vec<Named<'_>> = named.collect::<Result<_, _>>()?;
        let all: Vec<&Named<'_>> = std::iter::once(first).chain(&named).collect();
        self.by_turns(&all, combine).ok_or_else(|| Gap {
            place: words(self.at),
            reason: "they did not take turns".to_owned(),
        })
    }

    fn by_turns(&self, all: &[&Named<'_>], combine: impl Fn(&[f64]) -> f64) -> Option<Value> {
        let results: Vec<&CellResult> = all.iter().map(|named| named.result).collect();
        Value::by_turns(self.measure, &results, combine)
    }

    /// Whether the number of `value` itself `holds`.
    pub fn alone(&self, value: &'a str, holds: impl Fn(f64) -> bool) -> Answer {
        let found = self.number(value)?;
        let holds = holds(found.value.median);
        Ok(self.evidence(holds, vec![self.numbered(&found)]))
    }

    /// The ratio itself, for claims about two of them.
    pub fn factor(&self, from: &'a str, to: &'a str) -> Result<Factor, Gap> {
        self.over(&self.number(from)?, &self.number(to)?)
    }

    fn over(&self, base: &Named<'_>, found: &Named<'_>) -> Result<Factor, Gap> {
        self.comparable(base, found)?;
        let rounds = self.by_turns(&[found, base], |both| both[0] / both[1]);
        let (base, name, found) = (&base.value, label(base.name), &found.value);
        let is_time = self.measure.is_time();
        let least = if is_time { base.minimum } else { base.median };
        if least <= 0.0 {
            return Err(Gap {
                place: words(self.at),
                reason: format!("{name} has none"),
            });
        }
        let median = rounds.map_or(found.median / base.median, |rounds| rounds.median);
        let range = match is_time && rounds.is_none() {
            true => (found.minimum / base.maximum, found.maximum / base.minimum),
            false => (median, median),
        };
        Ok(Factor {
            median,
            range,
            rounds,
        })
    }

    fn too_far_apart(&self) -> Gap {
        Gap {
            place: words(self.at),
            reason: TOO_FAR_APART.to_owned(),
        }
    }

    fn numbered(&self, named: &Named<'_>) -> Number {
        Number {
            name: label(named.name).to_owned(),
            measure: Some(self.measure),
            value: named.value.median,
            rounds: None,
        }
    }

    fn evidence(&self, holds: bool, numbers: Vec<Number>) -> Evidence {
        Evidence {
            holds,
            place: words(self.at),
            numbers,
        }
    }
}

fn overlap(one: &Value, other: &Value) -> bool {
    one.minimum <= other.maximum && other.minimum <= one.maximum
}

/// The name of a value; the empty text is the one of no switches.
pub(super) fn label(value: &str) -> &str {
    match value {
        "" => "baseline",
        value => value,
    }
}

/// `ext4, insert`.
pub(super) fn words(at: &At<'_>) -> String {
    let values = at.iter().filter_map(|(axis, value)| match (*axis, *value) {
        ("traced", _) => None,
        ("threads", value) => Some(format!("threads {value}")),
        ("cpu-load", value) => Some(format!("CPU load {value}")),
        ("switches", value) => Some(label(value).to_owned()),
        (_, "") => None,
        (_, value) => Some(value.to_owned()),
    });
    values.collect::<Vec<_>>().join(", ")
}
