//! The reader of job files over any text.

use std::collections::HashSet;

#[path = "../../crates/iostep/src/command/bench/job_file.rs"]
mod reader;

/// Reads the text, and checks that each combination is there once, with its target.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let cells = match reader::cells("jobs.toml", text) {
        Ok(cells) => cells,
        Err(error) => {
            let line = error.to_string();
            assert!(
                line.starts_with("jobs.toml: ") && !line.contains('\n'),
                "{line}"
            );
            return;
        }
    };
    assert!((1..=iostep_lab::matrix::MAX_CELLS).contains(&cells.len()));
    let mut jobs = HashSet::new();
    for cell in &cells {
        jobs.insert(cell.job);
        assert!(cell.arguments.len() >= 2 && !cell.name.contains('/'));
        assert!(
            cell.arguments[2..]
                .iter()
                .all(|argument| argument.starts_with("--"))
        );
        assert!(cell.varied.iter().all(|(key, _)| !key.is_empty()));
    }
    assert_eq!(jobs.len(), cells.last().map_or(0, |cell| cell.job));
}
