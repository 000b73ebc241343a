//! What is printed at the end.

use std::path::Path;

use iostep_analyze::replay::Document;
use iostep_analyze::report::replay;
use iostep_report::document::Detail;

use crate::terminal::{self, Content};

/// Prints the result beside those in files.
///
/// Errors: those of the terminal.
pub fn print<P: AsRef<Path>>(
    document: &Document,
    as_json: bool,
    files: impl IntoIterator<Item = P>,
) -> anyhow::Result<()> {
    let (content, text) = match as_json {
        true => (Content::Json, format!("{}\n", terminal::json(document))),
        false => {
            let report = replay::document(document);
            (Content::Text, report.text(Detail::Full, terminal::style()))
        }
    };
    terminal::print_beside(files, content, &text)
}
