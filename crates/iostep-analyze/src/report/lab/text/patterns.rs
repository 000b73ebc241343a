//! Block patterns as text: the requests of the last operation.

use iostep_model::printable;

use crate::lab::{Pattern, WholeRequest};
use crate::report::quantity::{bytes, count, duration};
use crate::report::text::Style;
use crate::report::text::grid::grid;

/// An operation that makes more requests than this is cut.
const MOST_REQUESTS: usize = 40;
const MOST_CLASSES: usize = 3;

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

/// `log descriptor, logged block`; a segment of nilfs2 has more classes than a line.
pub(in crate::report::lab) fn classes(request: &WholeRequest) -> String {
    let names = request.classes.iter().take(MOST_CLASSES);
    let names: Vec<&str> = names.map(|class| class.name()).collect();
    match request.classes.len().saturating_sub(MOST_CLASSES) {
        0 => names.join(", "),
        rest => format!("{} and {rest} more", names.join(", ")),
    }
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
