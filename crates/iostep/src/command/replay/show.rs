//! What is printed at the end.

use std::path::Path;

use iostep_analyze::replay::Document;
use iostep_analyze::report::replay::{comparison, text};

use iostep_model::printable;

use crate::terminal::{self, Content};

/// The whole result for programs.
pub fn json(document: &Document) -> String {
    serde_json::to_string_pretty(document).expect("a result has only JSON's types")
}

/// Prints the result beside those in files. Of several runs, those that went wrong come first, a
/// line each complaint; details are the last run's of each directory.
///
/// Errors: those of the terminal.
pub fn print<P: AsRef<Path>>(
    document: &Document,
    as_json: bool,
    files: impl IntoIterator<Item = P>,
) -> anyhow::Result<()> {
    let (content, text) = match as_json {
        true => (Content::Json, format!("{}\n", json(document))),
        false => (Content::Text, whole(document)),
    };
    terminal::print_beside(files, content, &text)
}

fn whole(document: &Document) -> String {
    let style = terminal::style();
    let mut parts = Vec::new();
    let many = document
        .targets
        .iter()
        .map(|target| target.runs.len())
        .sum::<usize>()
        > 1;
    for target in &document.targets {
        let Some((last, earlier)) = target.runs.split_last() else {
            continue;
        };
        for (number, run) in (1..).zip(earlier) {
            for complaint in text::complaints(&run.summary) {
                let line = format!("{}, run {number}: {complaint}", target.directory);
                parts.push(style.alarm(&printable(&line)) + "\n");
            }
        }
        let kind = target.filesystem.as_deref().unwrap_or("?");
        let mut title = format!(
            "{} in {} ({kind})",
            document.recording.path, target.directory
        );
        if !earlier.is_empty() {
            title += &format!(", run {} of {}", earlier.len() + 1, target.runs.len());
        }
        if last.block.as_ref().is_some_and(|block| !block.whole) {
            let line = "LOST: the recording of block I/O has holes; its numbers are too small";
            parts.push(style.alarm(line) + "\n");
        }
        parts.push(text::render(&last.summary, &title, style) + "\n");
    }
    let traced = !document.comparison.block.is_empty();
    if many || traced {
        parts.push(comparison::render(document, style));
    }
    parts.concat()
}
