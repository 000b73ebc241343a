//! The tables by owner: journaling of journal, files, processes, sync calls.

use iostep_model::table::Trace;

use super::table::{Bar, Cell, Table, heads, top};
use crate::report::quantity;
use crate::stats::syncs::Caused;
use crate::stats::{FileRow, Joj, JojRow, ProcessRow, Split, Summary, SyncKindRow, SyncRow};

/// All of them, the main one first.
pub(super) fn of(trace: &Trace, summary: &Summary) -> Vec<Table> {
    vec![
        joj(&summary.joj),
        files(&summary.files),
        processes(&summary.processes),
        sync_kinds(&summary.sync_kinds),
        sync_calls(trace, &summary.sync_calls),
    ]
}

/// The table of `items`: the first rows by `row`, the rest as one row by `rest`.
fn build<T>(
    title: &str,
    note: String,
    names: &[&'static str],
    items: &[T],
    row: impl Fn(&T) -> Vec<Cell>,
    rest: impl Fn(&[T]) -> Vec<Cell>,
) -> Table {
    let (shown, hidden) = top(items);
    Table {
        title: title.to_owned(),
        note,
        heads: heads(names),
        rows: shown.iter().map(row).collect(),
        rest: (!hidden.is_empty()).then(|| rest(hidden)),
        sortable: true,
    }
}

fn sum<T>(items: &[T], of: impl Fn(&T) -> u64) -> u64 {
    items.iter().map(of).fold(0, u64::saturating_add)
}

fn joj(joj: &Joj) -> Table {
    let total = joj.data_bytes + joj.journal_bytes;
    let share = quantity::percent(joj.joj_share);
    let note = format!(
        "What each file's data cost in the filesystem's journal, through the sync calls on it. \
         Of {} of data and journal, {} ({share}) are journaling of journal: caused by syncs of a \
         database's own log. {} of the journal were caused by no sync call on a known file.",
        quantity::bytes(total),
        quantity::bytes(joj.joj_bytes),
        quantity::bytes(joj.uncaused_journal_bytes),
    );
    let cells = |name: Cell, kind: &str, syncs, [data, journal, metadata]: [u64; 3]| {
        let written = data + journal + metadata;
        vec![
            name,
            Cell::text(kind),
            Cell::count(syncs),
            Cell::bytes(data),
            Cell::bytes(journal).with_share(Bar::Other, journal, joj.journal_bytes),
            Cell::bytes(metadata),
            Cell::factor((data > 0).then(|| written as f64 / data as f64)),
        ]
    };
    build(
        "Journaling of journal",
        note,
        &[
            "file",
            "type",
            "#syncs",
            "#data",
            "#journal caused",
            "#metadata caused",
            "#amplification",
        ],
        &joj.files,
        |row| {
            let bytes = [row.data_bytes, row.journal_bytes, row.metadata_bytes];
            cells(
                Cell::text(&row.path),
                row.file_type.name(),
                row.syncs,
                bytes,
            )
        },
        |rows| {
            let of = |field: fn(&JojRow) -> u64| sum(rows, field);
            let bytes = [
                of(|r| r.data_bytes),
                of(|r| r.journal_bytes),
                of(|r| r.metadata_bytes),
            ];
            cells(more(rows, "files"), "", of(|r| r.syncs), bytes)
        },
    )
}

/// The name of a row that stands for many.
fn more<T>(rows: &[T], what: &str) -> Cell {
    Cell::text(format!(
        "{} more {what}",
        quantity::count(rows.len() as u64)
    ))
}

fn split(amounts: &Split) -> [Cell; 4] {
    [
        Cell::count(amounts.write.requests),
        Cell::bytes(amounts.write.bytes),
        Cell::count(amounts.read.requests),
        Cell::bytes(amounts.read.bytes),
    ]
}

fn sum_splits<'a>(splits: impl Iterator<Item = &'a Split>) -> Split {
    let mut sum = Split::default();
    for split in splits {
        sum.read.requests += split.read.requests;
        sum.read.bytes += split.read.bytes;
        sum.write.requests += split.write.requests;
        sum.write.bytes += split.write.bytes;
    }
    sum
}

fn files(files: &[FileRow]) -> Table {
    let cells = |name: Cell, kind: &str, amounts: &Split, syncs: u64| {
        let mut row = vec![name, Cell::text(kind)];
        row.extend(split(amounts));
        row.push(Cell::count(syncs));
        row
    };
    build(
        "Files",
        "Their data, and metadata that is theirs alone.".to_owned(),
        &[
            "file", "type", "#writes", "#written", "#reads", "#read", "#syncs",
        ],
        files,
        |row| {
            let gone = if row.deleted { " (deleted)" } else { "" };
            let name = Cell {
                title: Some(format!("inode {}", row.inode)),
                ..Cell::text(format!("{}{gone}", row.path))
            };
            cells(name, row.file_type.name(), &row.amounts, row.syncs)
        },
        |rows| {
            let amounts = sum_splits(rows.iter().map(|row| &row.amounts));
            cells(
                more(rows, "files"),
                "",
                &amounts,
                sum(rows, |row| row.syncs),
            )
        },
    )
}

fn processes(processes: &[ProcessRow]) -> Table {
    let cells = |name: Cell, dirtied: [u64; 2], submitted: &Split, syncs: u64| {
        let mut row = vec![name, Cell::count(dirtied[0]), Cell::bytes(dirtied[1])];
        row.extend(split(submitted));
        row.push(Cell::count(syncs));
        row
    };
    build(
        "Processes",
        "Dirtied: writes of what the process changed, whoever submitted them.".to_owned(),
        &[
            "process",
            "#writes dirtied",
            "#bytes dirtied",
            "#writes submitted",
            "#written",
            "#reads",
            "#read",
            "#syncs",
        ],
        processes,
        |row| {
            let kernel = if row.kernel { " (kernel)" } else { "" };
            let name = Cell {
                title: row.command_line.clone(),
                ..Cell::text(format!("{}:{}{kernel}", row.name, row.pid))
            };
            let dirtied = [row.dirtied.requests, row.dirtied.bytes];
            cells(name, dirtied, &row.submitted, row.syncs)
        },
        |rows| {
            let dirtied = [
                sum(rows, |row| row.dirtied.requests),
                sum(rows, |row| row.dirtied.bytes),
            ];
            let submitted = sum_splits(rows.iter().map(|row| &row.submitted));
            let syncs = sum(rows, |row| row.syncs);
            cells(more(rows, "processes"), dirtied, &submitted, syncs)
        },
    )
}

fn caused(caused: &Caused) -> [Cell; 5] {
    [
        Cell::count(caused.writes),
        Cell::count(caused.flushes),
        Cell::bytes(caused.data_bytes),
        Cell::bytes(caused.journal_bytes),
        Cell::bytes(caused.metadata_bytes),
    ]
}

fn sync_kinds(kinds: &[SyncKindRow]) -> Table {
    let row = |row: &SyncKindRow| {
        let mut cells = vec![
            Cell::text(row.kind.name()),
            Cell::count(row.calls),
            Cell::count(row.failed),
            Cell::duration(Some(row.total_ns)),
            Cell::duration(row.duration.map(|duration| duration.p50_ns)),
            Cell::duration(row.duration.map(|duration| duration.p99_ns)),
        ];
        cells.extend(caused(&row.caused));
        cells
    };
    build(
        "Sync calls by kind",
        "With the writes that they made necessary.".to_owned(),
        &[
            "call",
            "#calls",
            "#failed",
            "#total time",
            "#p50",
            "#p99",
            "#writes",
            "#flushes",
            "#data",
            "#journal",
            "#metadata",
        ],
        kinds,
        row,
        |_| Vec::new(),
    )
}

fn sync_calls(trace: &Trace, calls: &[SyncRow]) -> Table {
    let mut costliest: Vec<&SyncRow> = calls.iter().collect();
    let bytes = |caused: &Caused| caused.data_bytes + caused.journal_bytes + caused.metadata_bytes;
    costliest.sort_by_key(|call| std::cmp::Reverse(bytes(&call.caused)));
    build(
        "Sync calls",
        "Those that made the most writes necessary.".to_owned(),
        &[
            "call",
            "file",
            "#entered",
            "#took",
            "#writes",
            "#flushes",
            "#data",
            "#journal",
            "#metadata",
        ],
        &costliest,
        |call| {
            let file = call
                .file
                .map_or_else(|| "-".to_owned(), |file| trace.file_name(file));
            let mut row = vec![
                Cell::text(call.kind.name()),
                Cell::text(file),
                Cell::duration(Some(call.enter_ns)),
                Cell::duration(call.duration_ns),
            ];
            row.extend(caused(&call.caused));
            row
        },
        |calls| {
            let mut total = Caused::default();
            for call in calls {
                total.writes += call.caused.writes;
                total.flushes += call.caused.flushes;
                total.data_bytes += call.caused.data_bytes;
                total.journal_bytes += call.caused.journal_bytes;
                total.metadata_bytes += call.caused.metadata_bytes;
            }
            let took = sum(calls, |call| call.duration_ns.unwrap_or(0));
            let mut row = vec![
                more(calls, "calls"),
                Cell::default(),
                Cell::default(),
                Cell::duration(Some(took)),
            ];
            row.extend(caused(&total));
            row
        },
    )
}
