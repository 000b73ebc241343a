//! Block patterns as text: the requests of the last operation.

use crate::lab::{Pattern, WholeRequest};
use crate::report::quantity::{bytes, count, duration, printable};
use crate::report::text::Style;
use crate::report::text::grid::grid;

/// An operation that makes more requests than this is cut.
const MOST_REQUESTS: usize = 40;

/// All patterns, one table each.
pub(super) fn of(patterns: &[Pattern], style: Style) -> String {
    patterns.iter().map(|pattern| one(pattern, style)).collect()
}

fn one(pattern: &Pattern, style: Style) -> String {
    let requests: Vec<&WholeRequest> = pattern.last_operation().collect();
    let Some(first) = requests.first() else {
        return String::new();
    };
    let mut table = grid(
        style,
        &[">after", "what", ">bytes", ">sector", "class", "file"],
    );
    for request in requests.iter().take(MOST_REQUESTS) {
        table.row([
            duration(request.issue_ns.saturating_sub(first.issue_ns)),
            operation(request),
            length(request),
            match request.sectors {
                0 => String::new(),
                _ => count(request.sector),
            },
            classes(request),
            printable(&request.files.join(", ")).into_owned(),
        ]);
    }
    let rest = requests.len().saturating_sub(MOST_REQUESTS);
    let more = match rest {
        0 => String::new(),
        rest => format!(" and {} more\n", count(rest as u64)),
    };
    let title = format!(
        "Requests of the last operation: {}",
        printable(&pattern.title)
    );
    table.titled(&title) + &more
}

/// `log descriptor, logged block`.
pub(in crate::report::lab) fn classes(request: &WholeRequest) -> String {
    let names = request.classes.iter().map(|class| class.name());
    names.collect::<Vec<_>>().join(", ")
}

/// `write`, `write, forced`.
pub(in crate::report::lab) fn operation(request: &WholeRequest) -> String {
    let forced = if request.fua { ", forced" } else { "" };
    format!("{}{forced}", request.operation.name().replace('_', " "))
}

pub(in crate::report::lab) fn length(request: &WholeRequest) -> String {
    match request.sectors {
        0 => String::new(),
        sectors => bytes(sectors.saturating_mul(512)),
    }
}
