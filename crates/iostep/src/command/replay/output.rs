//! What is printed at the end.

use std::path::Path;

use iostep_analyze::replay::Document;
use iostep_analyze::report::replay;
use iostep_report::document::Detail;

use crate::terminal::{self, Content};

/// The whole result for programs.
pub fn json(document: &Document) -> String {
    serde_json::to_string_pretty(document).expect("a result has only JSON's types")
}

/// Prints the result beside those in files.
///
/// Errors: those of the terminal.
pub fn print<P: AsRef<Path>>(
    document: &Document,
    as_json: bool,
    files: impl IntoIterator<Item = P>,
) -> anyhow::Result<()> {
    let (content, text) = match as_json {
        true => (Content::Json, format!("{}\n", json(document))),
        false => {
            let report = replay::document(document);
            (Content::Text, report.text(Detail::Full, terminal::style()))
        }
    };
    terminal::print_beside(files, content, &text)
}
