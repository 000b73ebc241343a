//! The results of a lab as a report: the papers' tables and figures with their numbers beside,
//! block patterns, the papers' claims, and the cells that have no result.

mod bars;
mod patterns;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use iostep_report::document::{
    Block, Cell, Column, Detail, Document, Item, Section, Standing, Table,
};
use iostep_report::quantity::Show as _;
use iostep_report::quantity::{count, factor, percent};

use crate::lab::{
    Column as Measured, Entry, Evidence, Finding, Grid, Incomplete, Measure, Missing, PaperValue,
    Report, Row, Verdict,
};

/// Behind a time that was measured on an emulated processor.
const EMULATED: &str = "*";
/// Before a paper's number that is not exact.
const ABOUT: &str = "≈";
/// A spread below this says nothing.
const LEAST_SPREAD: f64 = 0.005;

/// The report of a lab. Names in it come from the lab's file, which anybody may have written.
pub fn document(report: &Report) -> Document {
    let mut body = Section::new(format!("{}: {}", report.name, report.title));
    let open = report.incomplete.iter().filter(|cell| !cell.not_applicable);
    match open.count() {
        0 => {}
        open => body.alarms.push(format!(
            "{} of {} cells have no complete result",
            count(open as u64),
            count(report.cells as u64)
        )),
    }
    body.push(Block::Lines(lines(report)));
    let is_own = report.findings.iter().all(|f| f.source.is_empty());
    let title = if is_own {
        "Claims"
    } else {
        "What the papers found"
    };
    let mut found = Section::new(title);
    found.push(Block::Items(report.findings.iter().map(finding).collect()));
    let not_applicable = missing("Not applicable", &report.incomplete, true);
    let open = missing("No complete result", &report.incomplete, false);
    let stock = missing("Logs that waldio left to SQLite", &report.stock_logs, false);
    let together = [found, not_applicable, open, stock].into_iter();
    let together = together.filter(|section| !section.blocks.is_empty());
    body.push(Block::Together(together.map(Block::Section).collect()));
    let grids = report.grids.iter();
    grids.for_each(|grid| body.push(Block::Section(section(grid))));
    body.push_from(
        Detail::Page,
        Block::Section(patterns::plots(&report.patterns)),
    );
    let tables = report.patterns.iter().filter_map(patterns::last_operation);
    tables.for_each(|table| body.push(Block::InText(table)));
    Document::of(body)
}

/// Where it was measured, and by what.
fn lines(report: &Report) -> Vec<String> {
    let mut lines: Vec<String> = report
        .grounds
        .iter()
        .map(|used| {
            let times = match used.ground.emulated {
                true => "; its times (*) are not those of hardware, its counts and bytes are",
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

fn finding(finding: &Finding) -> Item {
    let standing = match finding.verdict {
        Verdict::Holds => Standing::Good,
        Verdict::DoesNotHold => Standing::Bad,
        Verdict::Open => Standing::Open,
    };
    let evidence = finding.evidence.iter().map(|evidence| {
        let mark = if evidence.holds { '+' } else { '-' };
        format!("{mark} {}", numbers(evidence))
    });
    let missing = finding.missing.iter();
    let mut details: Vec<String> = evidence
        .chain(missing.map(|missing| format!("? {}", absent(missing))))
        .collect();
    if finding.verdict == Verdict::DoesNotHold && !finding.explanation.is_empty() {
        details.push(format!("why: {}", finding.explanation));
    }
    let source = match finding.source.as_str() {
        "" => String::new(),
        source => format!(" ({source})"),
    };
    Item {
        verdict: Some((standing, finding.verdict.name())),
        text: format!("{}: {}{source}", finding.name, finding.claim),
        details,
    }
}

/// `insert, wal; insert, delete: no result`.
fn absent(missing: &Missing) -> String {
    let named = missing.places.iter().filter(|place| !place.is_empty());
    let places: Vec<&str> = named.map(String::as_str).collect();
    match places.is_empty() {
        true => missing.reason.clone(),
        false => format!("{}: {}", places.join("; "), missing.reason),
    }
}

/// `ext4, insert: wal 2.01, delete 5.03`.
fn numbers(evidence: &Evidence) -> String {
    let numbers = evidence.numbers.iter().map(|number| {
        let show = |value: f64| match number.measure {
            // A difference may be below 0.
            Some(measure) if value < 0.0 => format!("-{}", measure.unit().show(-value)),
            Some(measure) => measure.unit().show(value),
            None => factor(value),
        };
        let rounds = number
            .rounds
            .map(|rounds| format!(" ({})", ends(rounds, show)));
        format!(
            "{} {}{}",
            number.name,
            show(number.value),
            rounds.unwrap_or_default()
        )
    });
    let numbers = numbers.collect::<Vec<_>>().join(", ");
    match evidence.place.as_str() {
        "" => numbers,
        place => format!("{place}: {numbers}"),
    }
}

/// `1.91x to 3.14x`.
fn ends((least, greatest): (f64, f64), show: impl Fn(f64) -> String) -> String {
    format!("{} to {}", show(least), show(greatest))
}

/// Cells without a complete result by their reason.
fn missing(title: &str, cells: &[Incomplete], not_applicable: bool) -> Section {
    let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for cell in cells
        .iter()
        .filter(|cell| cell.not_applicable == not_applicable)
    {
        let line = format!("{}  {}", cell.key, cell.cell);
        groups.entry(&cell.reason).or_default().push(line);
    }
    let items = groups.into_iter().map(|(reason, details)| Item {
        verdict: None,
        text: reason.to_owned(),
        details,
    });
    let mut section = Section::new(title);
    section.push(Block::Items(items.collect()));
    section
}

/// A table below what the paper says, with its figures.
fn section(grid: &Grid) -> Section {
    let source = match grid.source.as_str() {
        "" => String::new(),
        source => format!(" ({source})"),
    };
    let mut section = Section::new(format!("{}{source}", grid.title));
    let sentences = [
        ("paper: ", &grid.found),
        ("differs: ", &grid.differs),
        ("ratios are to ", &grid.baseline),
    ];
    let said = sentences
        .iter()
        .filter(|(_, sentence)| !sentence.is_empty());
    let lines = said.map(|(word, sentence)| format!("{word}{sentence}"));
    section.push(Block::Lines(lines.collect()));
    section.push(Block::Table(table(grid)));
    section.push(Block::Plots(bars::of(grid)));
    section
}

fn table(grid: &Grid) -> Table {
    let mut table = Table::new("", grid.row_axes.clone())
        .note("Medians of the runs, ± half of their range; the paper's numbers below.")
        .rows(grid.rows.iter().map(|row| cells(row, grid)));
    let numbers = grid
        .columns
        .iter()
        .map(|column| format!(">{}", head(grid, column)));
    table.columns.extend(numbers.map(Column::of));
    table
}

/// A column's name: its values, and its measure where columns have several.
fn head(grid: &Grid, column: &Measured) -> String {
    let first = grid.columns.first().map(|column| column.measure);
    let mut others = grid.columns.iter();
    let differ = others.any(|other| Some(other.measure) != first);
    let mut words: Vec<&str> = column.values.iter().map(|value| label(value)).collect();
    if differ || words.is_empty() {
        words.push(column.measure.name());
    }
    words.join(", ")
}

/// The name of a value; the empty text is that of no switches, or of a flag that is not given.
fn label(value: &str) -> &str {
    match value {
        "" => "-",
        value => value,
    }
}

fn is_emulated(entry: &Entry, measure: Measure) -> bool {
    measure.is_time() && entry.ground.as_ref().is_some_and(|ground| ground.emulated)
}

fn cells(row: &Row, grid: &Grid) -> Vec<Cell> {
    let labels = row.values.iter().map(|value| Cell::text(label(value)));
    let mut cells: Vec<Cell> = labels.collect();
    let mut entries = row.entries.iter().flatten();
    if entries.any(|entry| entry.paper.is_some())
        && let Some(last) = cells.last_mut()
    {
        last.below = "  paper".to_owned();
    }
    let entries = row.entries.iter().zip(&grid.columns);
    cells.extend(entries.map(|(entry, column)| match entry {
        None => Cell::default(),
        Some(entry) => measured(entry, column.measure),
    }));
    cells
}

/// `4,512/s ±3.0 % 1.18x`, or why there is none; below it the paper's number.
fn measured(entry: &Entry, measure: Measure) -> Cell {
    let unit = measure.unit();
    let mut cell = Cell::number(unit, entry.value.map(|value| value.median));
    let mut title = Vec::new();
    match entry.value {
        None => {
            cell.text = without_value(entry).to_owned();
            title.extend(entry.state.clone());
        }
        Some(value) => {
            if is_emulated(entry, measure) {
                cell.text += EMULATED;
            }
            let spread = value.spread().filter(|spread| *spread >= LEAST_SPREAD);
            cell.text +=
                &spread.map_or_else(String::new, |spread| format!(" ±{}", percent(Some(spread))));
            cell.text += &entry
                .ratio
                .map_or_else(String::new, |ratio| format!(" {}", factor(ratio)));
            if let Some(rounds) = entry.ratio_rounds {
                title.push(format!("ratios of the rounds: {}", ends(rounds, factor)));
            }
            let [least, greatest] = [value.minimum, value.maximum].map(|end| unit.show(end));
            title.push(format!("{least} to {greatest}, {} runs", value.runs));
            title.push(format!("cell {}", entry.key));
        }
    }
    if let Some(paper) = &entry.paper {
        cell.below = of_paper(paper, entry.paper_ratio, measure);
        title.push(format!("{} {}", paper.paper, paper.place));
    }
    cell.titled(title.join("; "))
}

/// What stands in place of a number.
fn without_value(entry: &Entry) -> &'static str {
    match (entry.not_applicable, &entry.state) {
        (true, _) => "n/a",
        (false, Some(_)) => "FAILED",
        (false, None) => "-",
    }
}

/// `46.0/s 1.18x`, `≈1.50x`.
fn of_paper(paper: &PaperValue, ratio: Option<f64>, measure: Measure) -> String {
    let about = if paper.approximate { ABOUT } else { "" };
    if paper.ratio {
        return format!("{about}{}", factor(paper.value));
    }
    let value = measure.unit().show(paper.value);
    match ratio {
        Some(ratio) => format!("{about}{value} {}", factor(ratio)),
        None => format!("{about}{value}"),
    }
}
