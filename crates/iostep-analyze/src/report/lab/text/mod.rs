//! A lab's results as text.

pub(in crate::report::lab) mod findings;
pub(in crate::report::lab) mod grids;
pub(in crate::report::lab) mod patterns;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use iostep_model::printable;

use crate::lab::{Incomplete, Report};
use crate::report::quantity::count;
use crate::report::text::Style;

/// The whole report: where it was measured, the tables with the papers' numbers below their own,
/// block patterns, the papers' claims, and the cells that have no result.
pub fn render(report: &Report, style: Style) -> String {
    let mut text = head(report, style);
    for grid in &report.grids {
        text.push_str(&grids::of(grid, style));
    }
    text.push_str(&grids::legend(&report.grids));
    text.push_str(&patterns::of(&report.patterns, style));
    text.push_str(&findings::of(&report.findings, style));
    text.push_str(&missing(&report.incomplete, style));
    text
}

fn head(report: &Report, style: Style) -> String {
    let name = printable(&report.name);
    let title = printable(&report.title);
    let mut text = format!("{}: {title}\n", style.bold(&name));
    for line in lines(report) {
        text.push_str(&format!(" {}\n", printable(&line)));
    }
    let open: Vec<&Incomplete> = open(&report.incomplete).collect();
    if !open.is_empty() {
        let line = format!(
            "{} of {} cells have no complete result",
            count(open.len() as u64),
            count(report.cells as u64)
        );
        text.push_str(&style.alarm(&line));
        text.push('\n');
    }
    text
}

/// Where it was measured, and by what.
pub(in crate::report::lab) fn lines(report: &Report) -> Vec<String> {
    let mut lines: Vec<String> = report
        .grounds
        .iter()
        .map(|used| {
            let times = match used.ground.emulated {
                true => "; its times are not those of hardware, its counts and bytes are",
                false => "",
            };
            let cells = match used.cells {
                1 => "1 cell".to_owned(),
                cells => format!("{} cells", count(cells as u64)),
            };
            let filesystems = used.filesystems.join(", ");
            format!("{filesystems}: {}, {cells}{times}", used.ground)
        })
        .collect();
    if !report.tools.is_empty() {
        lines.push(report.tools.join(", "));
    }
    lines
}

/// Cells that another run of the lab may complete.
pub(in crate::report::lab) fn open(cells: &[Incomplete]) -> impl Iterator<Item = &Incomplete> {
    cells.iter().filter(|cell| !cell.not_applicable)
}

fn missing(cells: &[Incomplete], style: Style) -> String {
    let mut text = String::new();
    for (title, not_applicable) in [("Not applicable", true), ("No complete result", false)] {
        let chosen = cells
            .iter()
            .filter(|cell| cell.not_applicable == not_applicable);
        let groups = by_reason(chosen);
        if groups.is_empty() {
            continue;
        }
        text.push_str(&format!("\n{}\n", style.bold(title)));
        for (reason, cells) in groups {
            text.push_str(&format!(" {}\n", printable(reason)));
            for cell in cells {
                let (key, cell) = (printable(&cell.key), printable(&cell.cell));
                text.push_str(&format!("   {key}  {cell}\n"));
            }
        }
    }
    text
}

/// Cells that share their reason, in the order of the reasons' names.
pub(in crate::report::lab) fn by_reason<'a>(
    cells: impl Iterator<Item = &'a Incomplete>,
) -> BTreeMap<&'a str, Vec<&'a Incomplete>> {
    let mut groups: BTreeMap<&str, Vec<&Incomplete>> = BTreeMap::new();
    for cell in cells {
        groups.entry(&cell.reason).or_default().push(cell);
    }
    groups
}
