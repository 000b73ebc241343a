//! What became of the cells that were asked for.

use iostep_lab::plan;
use iostep_model::lab::CellResult;

/// How many lines are printed about cells that failed alike.
const SHOWN: usize = 3;

/// What became of the cells that were asked for.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many were asked for.
    asked: usize,
    /// How many are done, those of earlier runs included.
    done: usize,
    /// Reasons why others are not, each with the labels of the cells.
    failures: Vec<(String, Vec<String>)>,
}

impl Outcome {
    /// Of so many cells, of which so many are done already.
    pub fn of(asked: usize, done: usize) -> Outcome {
        Outcome {
            asked,
            done,
            failures: Vec::new(),
        }
    }

    /// Adds what came of one.
    pub fn count(&mut self, result: &CellResult) {
        if result.state.is_final() {
            self.done += 1;
        } else if let Some(reason) = result.state.reason() {
            let label = plan::label(&result.cell);
            let known = self.failures.iter_mut().find(|(known, _)| known == reason);
            match known {
                Some((_, labels)) => labels.push(label),
                None => self.failures.push((reason.to_owned(), vec![label])),
            }
        }
    }

    /// True if every one is done.
    pub fn is_whole(&self) -> bool {
        self.done == self.asked
    }

    /// Why not, as lines.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (reason, labels) in &self.failures {
            let shown = labels.iter().take(SHOWN);
            lines.extend(shown.map(|label| format!("{label}: {reason}")));
            let more = labels.len().saturating_sub(SHOWN);
            if more > 0 {
                lines.push(format!("{more} more: {reason}"));
            }
        }
        let missing = self.asked - self.done;
        if missing > 0 {
            lines.push(format!(
                "{missing} of {} cells have no complete result; the same command runs them",
                self.asked
            ));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostep_model::lab::State;

    fn result(number: usize, state: State) -> CellResult {
        let cell = crate::command::lab::source::load("table1").expect("it is built in");
        CellResult::without_runs(&cell.cells[number], state)
    }

    #[test]
    fn cells_that_fail_alike_are_told_of_together() {
        let mut outcome = Outcome::of(8, 1);
        for number in 0..5 {
            let reason = "no QEMU".into();
            outcome.count(&result(number, State::Failed { reason }));
        }
        outcome.count(&result(5, State::Complete));
        let reason = "no room".into();
        outcome.count(&result(6, State::Failed { reason }));
        assert!(!outcome.is_whole());
        let lines = outcome.lines();
        assert_eq!(lines.len(), SHOWN + 3, "{lines:#?}");
        assert!(
            lines[..SHOWN]
                .iter()
                .all(|line| line.ends_with(": no QEMU"))
        );
        assert_eq!(lines[SHOWN], "2 more: no QEMU");
        assert!(lines[SHOWN + 1].ends_with(": no room"), "{lines:#?}");
        assert!(lines[SHOWN + 2].starts_with("6 of 8 cells"), "{lines:#?}");
    }

    #[test]
    fn a_combination_that_means_nothing_is_no_failure() {
        let mut outcome = Outcome::of(1, 0);
        let reason = "no journal".into();
        outcome.count(&result(0, State::NotApplicable { reason }));
        assert!(outcome.is_whole());
        assert!(outcome.lines().is_empty());
    }
}
