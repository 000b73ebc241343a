//! The tables of a replay.

use super::name;
use crate::replay::{Document, Quantiles, Row, Summary};
use crate::report::html::table::{Cell, Head, Table, heads};
use crate::report::replay::comparison;

/// Rows of differences and threads; the rest is in JSON.
const MOST_ROWS: usize = 100;

/// A column for each target.
pub(super) fn side_by_side(document: &Document) -> Vec<Table> {
    let columns = || {
        let targets = document.targets.iter().map(|target| Head {
            name: name(target).into(),
            number: true,
        });
        heads(&[""]).into_iter().chain(targets).collect()
    };
    let table = |title: &str, note: &str, rows: &[Row]| Table {
        title: title.to_owned(),
        note: note.to_owned(),
        heads: columns(),
        rows: rows.iter().map(cells).collect(),
        rest: None,
        sortable: false,
    };
    let comparison = &document.comparison;
    let note = "Medians over the runs, with the least and the greatest.";
    let mut tables = vec![
        table("Side by side", note, &comparison.totals),
        table("Time in system calls", note, &comparison.calls),
    ];
    if !comparison.block.is_empty() {
        let note = "Of the device, from the first call until everything was on it.";
        tables.push(table("Block I/O", note, &comparison.block));
    }
    tables
}

fn cells(row: &Row) -> Vec<Cell> {
    let mut cells = vec![Cell::text(&row.name)];
    cells.extend(row.values.iter().map(|value| Cell {
        text: comparison::cell(*value, row.unit),
        sort: value.map(|spread| spread.median as f64),
        ..Cell::default()
    }));
    cells
}

/// Of one run.
pub(super) fn of(summary: &Summary) -> Vec<Table> {
    let all = [
        calls(summary),
        differences(summary),
        skipped(summary),
        threads(summary),
    ];
    all.into_iter()
        .filter(|table| !table.rows.is_empty())
        .collect()
}

fn calls(summary: &Summary) -> Table {
    let value =
        |quantiles: Option<Quantiles>, of: fn(Quantiles) -> u64| Cell::duration(quantiles.map(of));
    let rows = summary.calls.iter().map(|call| {
        vec![
            Cell::text(&call.syscall),
            Cell::count(call.calls),
            Cell::count(call.done),
            Cell::duration(Some(call.sum_ns)),
            value(call.replayed, |q| q.p50_ns),
            value(call.recorded, |q| q.p50_ns),
            value(call.replayed, |q| q.p90_ns),
            value(call.recorded, |q| q.p90_ns),
            value(call.replayed, |q| q.p99_ns),
            value(call.recorded, |q| q.p99_ns),
            value(call.replayed, |q| q.max_ns),
            value(call.recorded, |q| q.max_ns),
        ]
    });
    Table {
        title: "System calls".to_owned(),
        note: "How long they took here, and beside it how long in the recording.".to_owned(),
        heads: heads(&[
            "call",
            "#recorded",
            "#issued",
            "#time",
            "#p50",
            "#recorded p50",
            "#p90",
            "#recorded p90",
            "#p99",
            "#recorded p99",
            "#maximum",
            "#recorded maximum",
        ]),
        rows: rows.collect(),
        rest: None,
        sortable: true,
    }
}

fn differences(summary: &Summary) -> Table {
    let rows = summary
        .differences
        .iter()
        .take(MOST_ROWS)
        .map(|difference| {
            vec![
                Cell::text(&difference.syscall),
                Cell::text(&difference.recorded),
                Cell::text(&difference.replayed),
                Cell::count(difference.count),
                Cell::count(difference.first_call),
                Cell::text(difference.reason.text()),
            ]
        });
    Table {
        title: "Results that differ".to_owned(),
        note: String::new(),
        heads: heads(&[
            "call",
            "recorded",
            "here",
            "#count",
            "#first at call",
            "why",
        ]),
        rows: rows.collect(),
        rest: None,
        sortable: true,
    }
}

fn skipped(summary: &Summary) -> Table {
    let rows = summary
        .skipped
        .iter()
        .map(|skip| vec![Cell::text(skip.reason.name()), Cell::count(skip.count)]);
    Table {
        title: "Calls that were not issued".to_owned(),
        note: String::new(),
        heads: heads(&["reason", "#count"]),
        rows: rows.collect(),
        rest: None,
        sortable: false,
    }
}

fn threads(summary: &Summary) -> Table {
    let rows = summary.threads.iter().filter(|thread| thread.calls > 0);
    let rows = rows.take(MOST_ROWS).map(|thread| {
        vec![
            Cell::text(format!("t{}", thread.thread)),
            Cell::text(&thread.name),
            Cell::count(thread.calls),
            Cell::count(thread.done),
            Cell::count(thread.differing),
            Cell::duration(Some(thread.replayed_io_ns)),
            Cell::duration(Some(thread.recorded_io_ns)),
            Cell::duration(Some(thread.most_behind_ns)),
        ]
    });
    Table {
        title: "Threads".to_owned(),
        note: String::new(),
        heads: heads(&[
            "thread",
            "name",
            "#calls",
            "#issued",
            "#differing",
            "#I/O time",
            "#recorded",
            "#most behind",
        ]),
        rows: rows.collect(),
        rest: None,
        sortable: true,
    }
}
