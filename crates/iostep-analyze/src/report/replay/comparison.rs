//! Replays on several targets, or repeated ones, as text.

use iostep_model::printable;

use crate::replay::{Document, Row, Spread, Unit};
use crate::report::quantity::{bytes, count, duration};
use crate::report::text::Style;
use crate::report::text::grid::grid;

/// System calls that are shown; the rest is in JSON.
const MOST_CALLS: usize = 12;

/// The tables: a column for each target. Medians, and from which to which value runs went.
pub fn render(document: &Document, style: Style) -> String {
    let comparison = &document.comparison;
    let calls = &comparison.calls[..comparison.calls.len().min(MOST_CALLS)];
    let runs = document.targets.iter().map(|target| target.runs.len());
    let title = match runs.max().unwrap_or(0) {
        0 | 1 => "Side by side".to_owned(),
        most => format!("Side by side: medians of {most} runs (least to greatest)"),
    };
    [
        table(document, &comparison.totals, &title, style),
        table(document, calls, "Time in system calls", style),
        table(
            document,
            &comparison.block,
            "Block I/O until everything was on the device",
            style,
        ),
    ]
    .concat()
}

fn table(document: &Document, rows: &[Row], title: &str, style: Style) -> String {
    let columns: Vec<String> = document
        .targets
        .iter()
        .map(|target| {
            let kind = target.filesystem.as_deref().unwrap_or("?");
            format!(">{} ({kind})", printable(&target.directory))
        })
        .collect();
    let mut names = vec![""];
    names.extend(columns.iter().map(String::as_str));
    let mut table = grid(style, &names);
    for row in rows {
        let cells = row.values.iter().map(|value| cell(*value, row.unit));
        table.row_of(std::iter::once(row.name.clone()).chain(cells).collect());
    }
    table.titled(title)
}

/// A value as people read it, with its spread if it has one.
pub(super) fn cell(value: Option<Spread>, unit: Unit) -> String {
    let Some(spread) = value else {
        return "-".to_owned();
    };
    let show = match unit {
        Unit::Nanoseconds => duration,
        Unit::Bytes => bytes,
        Unit::Count => count,
    };
    let median = show(spread.median);
    if spread.least == spread.greatest {
        return median;
    }
    format!(
        "{median} ({} to {})",
        show(spread.least),
        show(spread.greatest)
    )
}
