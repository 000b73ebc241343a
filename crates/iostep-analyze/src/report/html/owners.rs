//! The tables by owner: journaling of journal, files, processes, sync calls.

use iostep_model::class::FileType;
use iostep_model::table::Trace;
use rustc_hash::FxHashMap;

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

/// Files that had one name, one after the other: SQLite makes and deletes a journal for each
/// transaction, and a row for each would hide what they cost together.
struct Name<'a, T> {
    path: &'a str,
    file_type: FileType,
    rows: Vec<&'a T>,
}

impl<T> Name<'_, T> {
    fn text(&self) -> String {
        match self.rows.len() {
            1 => self.path.to_owned(),
            files => format!("{} ({} files)", self.path, quantity::count(files as u64)),
        }
    }
}

/// The rows by name, in the order in which names appear.
fn by_name<T>(rows: &[T], name: impl Fn(&T) -> (&String, FileType)) -> Vec<Name<'_, T>> {
    let mut places = FxHashMap::default();
    let mut names: Vec<Name<'_, T>> = Vec::new();
    for row in rows {
        let (path, file_type) = name(row);
        let place = *places.entry((path, file_type)).or_insert(names.len());
        if place == names.len() {
            names.push(Name {
                path,
                file_type,
                rows: Vec::new(),
            });
        }
        names[place].rows.push(row);
    }
    names
}

fn all_rows<'a, T>(names: &[Name<'a, T>]) -> Vec<&'a T> {
    names.iter().flat_map(|name| &name.rows).copied().collect()
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
    let cells = |name: Cell, kind: &str, rows: &[&JojRow]| {
        let of = |field: fn(&JojRow) -> u64| sum(rows, |row| field(row));
        let [data, journal] = [of(|row| row.data_bytes), of(|row| row.journal_bytes)];
        let metadata = of(|row| row.metadata_bytes);
        let written = data + journal + metadata;
        vec![
            name,
            Cell::text(kind),
            Cell::count(of(|row| row.syncs)),
            Cell::bytes(data),
            Cell::bytes(journal).with_share(Bar::Other, journal, joj.journal_bytes),
            Cell::bytes(metadata),
            Cell::factor((data > 0).then(|| written as f64 / data as f64)),
        ]
    };
    let mut names = by_name(&joj.files, |row| (&row.user_path, row.file_type));
    names.sort_by_key(|name| std::cmp::Reverse(sum(&name.rows, |row| row.journal_bytes)));
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
        &names,
        |name| {
            let path = Cell::text(name.text());
            cells(path, name.file_type.name(), &name.rows)
        },
        |names| cells(more(names, "names"), "", &all_rows(names)),
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
    let cells = |name: Cell, kind: &str, rows: &[&FileRow]| {
        let mut cells = vec![name, Cell::text(kind)];
        cells.extend(split(&sum_splits(rows.iter().map(|row| &row.amounts))));
        cells.push(Cell::count(sum(rows, |row| row.syncs)));
        cells
    };
    let mut names = by_name(files, |row| (&row.user_path, row.file_type));
    names.sort_by_key(|name| std::cmp::Reverse(sum(&name.rows, |row| row.amounts.write.bytes)));
    build(
        "Files",
        "Their data, and metadata that is theirs alone.".to_owned(),
        &[
            "file", "type", "#writes", "#written", "#reads", "#read", "#syncs",
        ],
        &names,
        |name| {
            let gone = name.rows.iter().all(|row| row.deleted);
            let gone = if gone { ", deleted" } else { "" };
            let path = Cell {
                title: Some(format!("inode {}", name.rows[0].inode)),
                ..Cell::text(format!("{}{gone}", name.text()))
            };
            cells(path, name.file_type.name(), &name.rows)
        },
        |names| cells(more(names, "names"), "", &all_rows(names)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_name_are_one_row() {
        let mut trace = crate::fixture::sqlite_on_ext4(300);
        // The WAL becomes a second journal of the same name.
        trace.files[2].path = trace.files[1].path.clone();
        trace.files[2].file_type = trace.files[1].file_type;
        let summary = Summary::of(&trace);
        let table = joj(&summary.joj);
        let row = &table.rows[0];
        assert_eq!(row[0].text, "/mnt/app/app/app.db-journal (2 files)");
        let of_journals = summary
            .joj
            .files
            .iter()
            .filter(|f| f.path.ends_with("-journal"));
        let syncs: u64 = of_journals.map(|f| f.syncs).sum();
        assert_eq!(row[2].text, syncs.to_string());
        assert_eq!(table.rows.len() + 1, summary.joj.files.len());
    }
}
