//! What became of the claims of a lab.

use iostep_model::lab::{Claim, Measure};
use serde::Serialize;

/// Whether what a paper found is so here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everywhere that it was looked for.
    Holds,
    /// Not everywhere.
    DoesNotHold,
    /// The cells that would tell are not there, or their runs differ too much.
    Open,
}

impl Verdict {
    /// The words shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::Open => "open",
        }
    }
}

/// The numbers of one place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// True if they agree with the claim.
    pub holds: bool,
    /// What the cells have in common: `ext4, insert`; may be empty.
    pub place: String,
    pub numbers: Vec<Number>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Number {
    /// What it is of: `wal`.
    pub name: String,
    /// What was measured; `None` for a ratio.
    pub measure: Option<Measure>,
    /// In the unit of its measure.
    pub value: f64,
    /// The least and the greatest of the rounds that it is the median of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<(f64, f64)>,
}

impl Number {
    pub(super) fn ratio(name: &str, value: f64) -> Number {
        Number {
            name: name.to_owned(),
            measure: None,
            value,
            rounds: None,
        }
    }
}

/// Places that have no numbers, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    pub reason: String,
    /// As [`Evidence::place`].
    pub places: Vec<String>,
}

/// A claim of a paper, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Its name: `wal-first`.
    pub name: String,
    /// What the paper found, in a sentence.
    pub claim: String,
    /// Paper, section, table or figure.
    pub source: String,
    /// Whether it is there.
    pub verdict: Verdict,
    /// The numbers, one entry for each place where it was looked for.
    pub evidence: Vec<Evidence>,
    /// Where else it was not looked for.
    pub missing: Vec<Missing>,
    /// Why today's kernel may differ; empty where it is not known to.
    pub explanation: String,
}

/// Why a place has no numbers.
#[derive(Debug)]
pub(super) struct Gap {
    pub place: String,
    pub reason: String,
}

/// What one place says: its numbers, or why it has none.
pub(super) type Answer = Result<Evidence, Gap>;

impl Finding {
    /// A claim holds if there are numbers and all agree.
    pub(super) fn of(claim: &Claim, answers: impl IntoIterator<Item = Answer>) -> Finding {
        let mut evidence = Vec::new();
        let mut missing: Vec<Missing> = Vec::new();
        for answer in answers {
            match answer {
                Ok(numbers) => evidence.push(numbers),
                Err(gap) => match missing.iter_mut().find(|m| m.reason == gap.reason) {
                    Some(known) => known.places.push(gap.place),
                    None => missing.push(Missing {
                        reason: gap.reason,
                        places: vec![gap.place],
                    }),
                },
            }
        }
        let verdict = match evidence.iter().all(|numbers| numbers.holds) {
            _ if evidence.is_empty() => Verdict::Open,
            true => Verdict::Holds,
            false => Verdict::DoesNotHold,
        };
        Finding {
            name: claim.name.clone(),
            claim: claim.claim.clone(),
            source: claim.source.clone(),
            verdict,
            evidence,
            missing,
            explanation: claim.explanation.clone(),
        }
    }
}
