//! How much of something was right: bytes, or calls.

use std::collections::BTreeMap;
use std::fmt;

const EXAMPLES: usize = 8;

/// What was right, of all whose truth is known.
#[derive(Clone, Debug, Default)]
pub struct Score {
    right: u64,
    total: u64,
    /// Wrong answers by what is wrong with them, with one place each.
    faults: BTreeMap<String, (u64, String)>,
}

impl Score {
    /// Counts an answer by its size; `fault` says what is wrong with it, `place` where it is.
    pub fn count(&mut self, size: u64, fault: Option<String>, place: impl FnOnce() -> String) {
        self.total += size;
        match fault {
            None => self.right += size,
            Some(fault) => self.faults.entry(fault).or_insert_with(|| (0, place())).0 += size,
        }
    }

    /// The size of all answers.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The right share in percent; nothing known counts as 0.
    pub fn percent(&self) -> f64 {
        match self.total {
            0 => 0.0,
            total => 100.0 * self.right as f64 / total as f64,
        }
    }

    /// Prints the score and the biggest faults, and fails if the share is below `minimum` percent
    /// or nothing was compared.
    pub fn require(&self, what: &str, minimum: f64) -> anyhow::Result<()> {
        let faults = self.biggest_faults();
        println!("    {what}: {self} (goal {minimum} %){faults}");
        anyhow::ensure!(
            self.percent() >= minimum,
            "{what}: {self}, expected at least {minimum} %{faults}"
        );
        Ok(())
    }

    fn biggest_faults(&self) -> String {
        let mut faults: Vec<_> = self.faults.iter().collect();
        faults.sort_by_key(|(_, (size, _))| std::cmp::Reverse(*size));
        let mut text = String::new();
        for (fault, (size, place)) in faults.iter().take(EXAMPLES) {
            text += &format!("\n  {size}: {fault}; first at {place}");
        }
        if faults.len() > EXAMPLES {
            text += &format!("\n  and {} more kinds", faults.len() - EXAMPLES);
        }
        text
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.percent();
        write!(f, "{percent:.3} % of {} right", self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_compared_is_a_failure() {
        assert!(Score::default().require("class", 0.1).is_err());
    }

    #[test]
    fn a_failure_names_the_biggest_fault_first() {
        let mut score = Score::default();
        score.count(4096, None, String::new);
        score.count(512, Some("no file".into()), || "sector 8".into());
        score.count(4096, Some("wrong file".into()), || "sector 16".into());
        let error = score
            .require("file", 99.9)
            .expect_err("half is wrong")
            .to_string();
        let lines: Vec<_> = error.lines().collect();
        assert!(lines[0].contains("47.059 % of 8704"), "{error}");
        assert!(
            lines[1].contains("wrong file; first at sector 16"),
            "{error}"
        );
    }
}
