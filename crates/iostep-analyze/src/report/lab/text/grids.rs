//! A lab's tables as text: the paper's numbers below the measured ones.

use iostep_model::printable;

use crate::lab::{Column, Entry, Grid, Measure, PaperValue, Row};
use crate::report::lab::number::{factor, shown};
use crate::report::quantity::percent;
use crate::report::text::Style;
use crate::report::text::grid::grid;

/// Behind a time that was measured on an emulated processor.
pub(in crate::report::lab) const EMULATED: &str = "*";
/// Before a paper's number that is not exact.
const ABOUT: &str = "≈";
/// A spread below this says nothing.
const LEAST_SPREAD: f64 = 0.005;

/// The table below its title and what the paper says.
pub(super) fn of(table: &Grid, style: Style) -> String {
    let names = heads(table);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut lines = grid(style, &names);
    for row in &table.rows {
        let mut cells = labels(row);
        let values = row.entries.iter().zip(&table.columns);
        cells.extend(values.map(|(entry, column)| measured(entry.as_ref(), column)));
        lines.row_of(cells);
        if row
            .entries
            .iter()
            .flatten()
            .any(|entry| entry.paper.is_some())
        {
            lines.row_of(paper_row(row, table));
        }
    }
    let mut text = format!(
        "\n{}{}\n",
        style.bold(&printable(&table.title)),
        source(table)
    );
    for (word, sentence) in [("paper: ", &table.found), ("differs: ", &table.differs)] {
        if !sentence.is_empty() {
            text.push_str(&format!(" {word}{sentence}\n"));
        }
    }
    if !table.baseline.is_empty() {
        text.push_str(&format!(" ratios are to {}\n", table.baseline));
    }
    text + &lines.untitled()
}

fn source(table: &Grid) -> String {
    match table.source.as_str() {
        "" => String::new(),
        source => format!(" ({source})"),
    }
}

/// What marks in the tables mean, if there are any.
pub(super) fn legend(tables: &[Grid]) -> String {
    let rows = tables
        .iter()
        .flat_map(|table| table.rows.iter().map(move |row| (table, row)));
    let is_marked = |(table, row): (&Grid, &Row)| {
        let mut entries = row.entries.iter().zip(&table.columns);
        entries.any(|(entry, column)| entry.as_ref().is_some_and(|e| emulated(e, column)))
    };
    match rows.into_iter().any(is_marked) {
        true => format!("\n{EMULATED} the time of an emulated processor: no hardware's\n"),
        false => String::new(),
    }
}

fn heads(table: &Grid) -> Vec<String> {
    let mut heads: Vec<String> = table.row_axes.clone();
    heads.extend(
        table
            .columns
            .iter()
            .map(|column| format!(">{}", head(table, column))),
    );
    heads
}

/// A column's name: its values, and its measure where columns have several.
pub(in crate::report::lab) fn head(table: &Grid, column: &Column) -> String {
    let first = table.columns.first().map(|column| column.measure);
    let differ = table
        .columns
        .iter()
        .any(|other| Some(other.measure) != first);
    let mut words: Vec<&str> = column.values.iter().map(|value| label(value)).collect();
    if differ || words.is_empty() {
        words.push(column.measure.name());
    }
    printable(&words.join(", ")).into_owned()
}

/// The name of a value; the empty text is that of no switches, or of a flag that is not given.
pub(in crate::report::lab) fn label(value: &str) -> &str {
    match value {
        "" => "-",
        value => value,
    }
}

fn labels(row: &Row) -> Vec<String> {
    let labels = row.values.iter().map(|value| label(value));
    labels.map(|value| printable(value).into_owned()).collect()
}

fn emulated(entry: &Entry, column: &Column) -> bool {
    let is_emulated = entry.ground.as_ref().is_some_and(|ground| ground.emulated);
    is_emulated && column.measure.is_time() && entry.value.is_some()
}

/// `4,512/s ±3.0 % 1.18x`, or why there is none.
fn measured(entry: Option<&Entry>, column: &Column) -> String {
    let Some(entry) = entry else {
        return String::new();
    };
    let Some(value) = entry.value else {
        return without_value(entry).to_owned();
    };
    let mut text = shown(column.measure, value.median);
    if emulated(entry, column) {
        text.push_str(EMULATED);
    }
    if let Some(spread) = value.spread().filter(|spread| *spread >= LEAST_SPREAD) {
        text.push_str(&format!(" ±{}", percent(Some(spread))));
    }
    if let Some(ratio) = entry.ratio {
        text.push_str(&format!(" {}", factor(ratio)));
    }
    text
}

/// What stands in place of a number.
pub(in crate::report::lab) fn without_value(entry: &Entry) -> &'static str {
    match (entry.not_applicable, &entry.state) {
        (true, _) => "n/a",
        (false, Some(_)) => "FAILED",
        (false, None) => "-",
    }
}

fn paper_row(row: &Row, table: &Grid) -> Vec<String> {
    let mut cells = vec![String::new(); row.values.len()];
    match cells.last_mut() {
        Some(last) => "  paper".clone_into(last),
        None => return cells,
    }
    cells.extend(
        row.entries
            .iter()
            .zip(&table.columns)
            .map(|(entry, column)| {
                let entry = entry.as_ref();
                let paper = entry.and_then(|entry| entry.paper.as_ref());
                let ratio = entry.and_then(|entry| entry.paper_ratio);
                paper.map_or_else(String::new, |paper| of_paper(paper, ratio, column.measure))
            }),
    );
    cells
}

/// `46.0/s 1.18x`, `≈1.50x`.
pub(in crate::report::lab) fn of_paper(
    paper: &PaperValue,
    ratio: Option<f64>,
    measure: Measure,
) -> String {
    let about = if paper.approximate { ABOUT } else { "" };
    if paper.ratio {
        return format!("{about}{}", factor(paper.value));
    }
    let value = shown(measure, paper.value);
    match ratio {
        Some(ratio) => format!("{about}{value} {}", factor(ratio)),
        None => format!("{about}{value}"),
    }
}
