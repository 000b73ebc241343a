//! Comparing cells that differ on one axis.

use iostep_model::lab::State;

use super::Measure;
use super::finding::{Answer, Evidence, Gap, Number};
use super::results::{At, Ground, Results};

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

/// A value of the axis with its median.
struct Named<'a> {
    name: &'a str,
    median: f64,
    ground: Option<Ground>,
}

impl<'a> Series<'a> {
    fn number(&self, name: &'a str) -> Result<Named<'a>, Gap> {
        let at: Vec<(&str, &str)> = self.at.iter().copied().chain([(self.axis, name)]).collect();
        let found = self.results.value(&at, self.measure);
        let (value, ground) = found.ok_or_else(|| Gap {
            place: words(&at),
            reason: match self.results.first(&at) {
                None => "no result".to_owned(),
                Some(result) => result.state.reason().unwrap_or("no number").to_owned(),
            },
        })?;
        Ok(Named {
            name,
            median: value.median,
            ground,
        })
    }

    /// Times of different places say nothing about each other.
    fn comparable(&self, a: &Named<'_>, b: &Named<'_>) -> Result<(), Gap> {
        match (&a.ground, &b.ground) {
            (Some(one), Some(other)) if self.measure.is_time() && one != other => Err(Gap {
                place: words(self.at),
                reason: format!(
                    "{} was measured on {}, {} on {}",
                    label(a.name),
                    one.kind(),
                    label(b.name),
                    other.kind_beside(one)
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
                Ok(second)
            });
            match compared {
                Ok(second) => {
                    holds &= match extreme {
                        Extreme::Least => first.median < second.median,
                        Extreme::Greatest => first.median > second.median,
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

    /// Whether `to` has a number of `from`'s times a factor that `holds`.
    pub fn ratio(&self, from: &'a str, to: &'a str, holds: impl Fn(f64) -> bool) -> Answer {
        let base = self.number(from)?;
        let found = self.number(to)?;
        self.comparable(&base, &found)?;
        if base.median == 0.0 {
            return Err(Gap {
                place: words(self.at),
                reason: format!("{} has none", label(from)),
            });
        }
        let ratio = found.median / base.median;
        let numbers = vec![
            self.numbered(&base),
            self.numbered(&found),
            Number::ratio("ratio", ratio),
        ];
        Ok(self.evidence(holds(ratio), numbers))
    }

    /// Whether the number of `value` itself `holds`.
    pub fn alone(&self, value: &'a str, holds: impl Fn(f64) -> bool) -> Answer {
        let found = self.number(value)?;
        Ok(self.evidence(holds(found.median), vec![self.numbered(&found)]))
    }

    /// The ratio itself, for claims about two of them.
    pub fn factor(&self, from: &'a str, to: &'a str) -> Result<f64, Gap> {
        let base = self.number(from)?;
        let found = self.number(to)?;
        self.comparable(&base, &found)?;
        Ok(found.median / base.median)
    }

    fn numbered(&self, named: &Named<'_>) -> Number {
        Number {
            name: label(named.name).to_owned(),
            measure: Some(self.measure),
            value: named.median,
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
