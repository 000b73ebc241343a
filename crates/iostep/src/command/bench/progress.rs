//! Progress as lines for a program that runs this one, as an Android app does.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::terminal::say;

/// More lines help nobody who draws a bar.
const APART: Duration = Duration::from_millis(200);

/// Where a run is: one line of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Progress {
    /// The run under way, from 1.
    pub run: u32,
    /// How many there are at most.
    pub runs: u32,
    pub phase: Phase,
    /// Of this phase of this run, 0 to 1.
    pub done: f64,
    /// In this phase until now.
    pub elapsed_ns: u64,
    /// As long as it goes on as it did; null before anything is done.
    pub left_ns: Option<u64>,
    pub operations: u64,
}

/// What a run is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Preparing,
    Running,
}

/// Says it on standard error, not more often than somebody looks.
#[derive(Debug, Default)]
pub struct Lines {
    /// When the last line was said, and of which phase of which run.
    last: Option<(Instant, Phase, u32)>,
}

impl Lines {
    /// Says a line, unless one of the same phase was said just now.
    pub fn say(&mut self, progress: Progress) {
        let now = Instant::now();
        let key = (progress.phase, progress.run);
        let is_early = self
            .last
            .is_some_and(|(at, phase, run)| (phase, run) == key && now - at < APART);
        if is_early {
            return;
        }
        self.last = Some((now, progress.phase, progress.run));
        if let Ok(line) = serde_json::to_string(&progress) {
            say!("{line}");
        }
    }
}

/// What is left of `elapsed_ns` if `done` of it, 0 to 1, took that long.
pub fn left_ns(elapsed_ns: u64, done: f64) -> Option<u64> {
    (done > 0.0).then(|| (elapsed_ns as f64 * (1.0 - done.min(1.0)) / done) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_from_what_was_done() {
        assert_eq!(left_ns(1000, 0.25), Some(3000));
        assert_eq!(left_ns(1000, 1.5), Some(0));
        assert_eq!(left_ns(1000, 0.0), None);
    }

    #[test]
    fn a_line_names_its_fields() {
        let progress = Progress {
            run: 1,
            runs: 5,
            phase: Phase::Running,
            done: 0.5,
            elapsed_ns: 7,
            left_ns: None,
            operations: 3,
        };
        let line = serde_json::to_string(&progress).expect("JSON");
        let expected = r#"{"run":1,"runs":5,"phase":"running","done":0.5,"elapsed_ns":7,"left_ns":null,"operations":3}"#;
        assert_eq!(line, expected);
    }
}
