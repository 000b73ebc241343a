//! Whether a second result is worse than is allowed.

use serde::Serialize;

use super::compare::{Comparison, Judged};
use super::measure::Measure;

/// The verdict on some measures of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gate {
    /// Of all measures together.
    pub verdict: Passage,
    /// A measure passes if it is worse by no more than this share.
    pub allowed: f64,
    /// Each measure, in the order that was asked for.
    pub judged: Vec<Judgement>,
}

/// Whether something passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Passage {
    /// Nothing is worse than is allowed.
    Pass,
    /// Something is.
    Fail,
    /// Nothing that can be told is, and something cannot be told.
    CannotTell,
}

/// The verdict on one measure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Judgement {
    pub measure: Measure,
    pub verdict: Passage,
    /// What the comparison's row says.
    #[serde(skip)]
    pub judged: Judged,
}

impl Gate {
    /// Judges measures by the rows of a comparison.
    pub fn of(comparison: &Comparison, measures: &[Measure], allowed: f64) -> Gate {
        let judgement = |&measure: &Measure| {
            let judged = comparison.judge(measure);
            let verdict = match judged {
                Judged::WorseBy(share) if share > allowed => Passage::Fail,
                Judged::WorseBy(_) => Passage::Pass,
                Judged::TooFewRuns(_) | Judged::Disturbed | Judged::Missing => Passage::CannotTell,
            };
            Judgement {
                measure,
                verdict,
                judged,
            }
        };
        let judged: Vec<Judgement> = measures.iter().map(judgement).collect();
        let any = |verdict| judged.iter().any(|judgement| judgement.verdict == verdict);
        Gate {
            verdict: match (any(Passage::Fail), any(Passage::CannotTell)) {
                (true, _) => Passage::Fail,
                (false, true) => Passage::CannotTell,
                (false, false) => Passage::Pass,
            },
            allowed,
            judged,
        }
    }
}
