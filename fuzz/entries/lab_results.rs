//! Whatever makes numbers, text and a page of a lab's results, over any bytes.

use iostep_analyze::lab::Report;
use iostep_analyze::report::lab;
use iostep_model::lab::{CellResult, Lab};
use iostep_model::printable::is_printable;
use iostep_report::document::Detail;
use iostep_report::text::Style;

/// Reads the bytes as JSON, `lab` and `cells`, and shows what they say in every form.
pub fn run(bytes: &[u8]) {
    let Ok((lab, cells)) = read(bytes) else {
        return;
    };
    let report = Report::of(&lab, &cells);
    let document = lab::document(&report);
    let shown = document.text(Detail::Full, Style::default());
    assert!(shown.chars().all(|c| c == '\n' || is_printable(c)));
    let page = document.html();
    assert!(!page.is_empty());
    let _ = serde_json::to_string(&report);
}

fn read(bytes: &[u8]) -> serde_json::Result<(Lab, Vec<CellResult>)> {
    let mut all: serde_json::Value = serde_json::from_slice(bytes)?;
    let mut take = |name| {
        all.get_mut(name)
            .map(serde_json::Value::take)
            .unwrap_or_default()
    };
    let lab = serde_json::from_value(take("lab"))?;
    Ok((lab, serde_json::from_value(take("cells"))?))
}
