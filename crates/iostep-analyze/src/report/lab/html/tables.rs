//! A lab's tables of a page: the paper's numbers stand behind the measured ones.

use crate::lab::{Column, Entry, Grid, Incomplete, Row};
use crate::report::html::table::{Cell, Head, Table, heads};
use crate::report::lab::number::{factor, shown};
use crate::report::lab::text::grids::{EMULATED, head, label, of_paper, without_value};
use crate::report::quantity::percent;

pub(super) fn of(grid: &Grid) -> Table {
    let mut columns: Vec<Head> = grid
        .row_axes
        .iter()
        .map(|axis| Head {
            name: axis.clone().into(),
            number: false,
        })
        .collect();
    let has_paper: Vec<bool> = (0..grid.columns.len())
        .map(|place| grid.rows.iter().any(|row| paper(row, place).is_some()))
        .collect();
    for (column, has_paper) in grid.columns.iter().zip(&has_paper) {
        let number = |name: String| Head {
            name: name.into(),
            number: true,
        };
        columns.push(number(head(grid, column)));
        if *has_paper {
            columns.push(number("paper".to_owned()));
        }
    }
    Table {
        title: grid.title.clone(),
        note: note(grid),
        heads: columns,
        rows: grid
            .rows
            .iter()
            .map(|row| cells(row, grid, &has_paper))
            .collect(),
        rest: None,
        sortable: true,
    }
}

fn note(grid: &Grid) -> String {
    let mut sentences = Vec::new();
    if !grid.source.is_empty() {
        sentences.push(format!("{}.", grid.source));
    }
    sentences.push("Medians of the runs, ± half of their range.".to_owned());
    if !grid.baseline.is_empty() {
        sentences.push(format!("Ratios are to {}.", grid.baseline));
    }
    let mut entries = grid
        .rows
        .iter()
        .flat_map(|row| row.entries.iter().flatten());
    let has_times = grid.columns.iter().any(|column| column.measure.is_time());
    let emulated = |entry: &Entry| entry.ground.as_ref().is_some_and(|ground| ground.emulated);
    if has_times && entries.any(emulated) {
        sentences.push(format!(
            "{EMULATED}: the time of an emulated processor, no hardware's."
        ));
    }
    sentences.join(" ")
}

fn paper(row: &Row, place: usize) -> Option<(&Entry, &crate::lab::PaperValue)> {
    let entry = row.entries.get(place)?.as_ref()?;
    Some((entry, entry.paper.as_ref()?))
}

fn cells(row: &Row, grid: &Grid, has_paper: &[bool]) -> Vec<Cell> {
    let mut cells: Vec<Cell> = row
        .values
        .iter()
        .map(|value| Cell::text(label(value)))
        .collect();
    for (place, column) in grid.columns.iter().enumerate() {
        let entry = row.entries.get(place).and_then(Option::as_ref);
        cells.push(measured(entry, column));
        if has_paper[place] {
            cells.push(match paper(row, place) {
                None => Cell::text(""),
                Some((entry, value)) => Cell {
                    text: of_paper(value, entry.paper_ratio, column.measure),
                    sort: Some(value.value),
                    title: Some(format!("{} {}", value.paper, value.place)),
                    ..Cell::default()
                },
            });
        }
    }
    cells
}

fn measured(entry: Option<&Entry>, column: &Column) -> Cell {
    let Some(entry) = entry else {
        return Cell::text("");
    };
    let Some(value) = entry.value else {
        return Cell {
            title: entry.state.clone(),
            sort: Some(-1.0),
            ..Cell::text(without_value(entry))
        };
    };
    let emulated = entry.ground.as_ref().is_some_and(|ground| ground.emulated);
    let mark = match emulated && column.measure.is_time() {
        true => EMULATED,
        false => "",
    };
    let ratio = entry
        .ratio
        .map_or_else(String::new, |ratio| format!(" {}", factor(ratio)));
    let spread = value.spread();
    let spread = spread.map_or_else(String::new, |spread| format!(" ±{}", percent(Some(spread))));
    Cell {
        text: format!("{}{mark}{ratio}", shown(column.measure, value.median)),
        sort: Some(value.median),
        title: Some(format!(
            "{} to {}, {} runs{spread}; cell {}",
            shown(column.measure, value.minimum),
            shown(column.measure, value.maximum),
            value.runs,
            entry.key
        )),
        ..Cell::default()
    }
}

/// The cells without a complete result.
pub(super) fn missing(cells: &[Incomplete]) -> Option<Table> {
    let row = |cell: &Incomplete| {
        let kind = if cell.not_applicable {
            "not applicable"
        } else {
            "open"
        };
        vec![
            Cell::text(kind),
            Cell::text(cell.cell.as_str()),
            Cell::text(cell.reason.as_str()),
            Cell::text(cell.key.as_str()),
        ]
    };
    (!cells.is_empty()).then(|| Table {
        title: "Cells without a complete result".to_owned(),
        note:
            "What is not applicable means nothing on any machine; the others are run by the next \
               iostep lab run."
                .to_owned(),
        heads: heads(&["state", "cell", "reason", "key"]),
        rows: cells.iter().map(row).collect(),
        rest: None,
        sortable: true,
    })
}
