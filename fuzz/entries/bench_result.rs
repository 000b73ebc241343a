//! The reader of a result of a bench, and whatever makes numbers and text of it, over any bytes.

use std::path::Path;

use iostep_analyze::bench::{Comparison, Summary};
use iostep_analyze::report::bench::{self, csv};
use iostep_model::bench::Document;
use iostep_model::printable::is_printable;
use iostep_report::document::Detail;
use iostep_report::text::Style;

/// Reads the bytes, and shows what they say in every form.
pub fn run(bytes: &[u8]) {
    let Ok(document) = Document::parse(Path::new("result.json"), bytes) else {
        return;
    };
    let summary = Summary::of(&document);
    let style = Style::default();
    let report = bench::document(&document, &summary, true);
    let shown = report.text(Detail::Full, style);
    assert!(shown.chars().all(|c| c == '\n' || is_printable(c)));
    let _ = csv::runs(&document, &summary) + &csv::seconds(&document);
    let comparison = Comparison::of(&document, &document).expect("the same work");
    let _ = bench::comparison(&comparison, None, ["a", "b"]).text(Detail::Full, style);
    assert!(!report.html().is_empty());
}
