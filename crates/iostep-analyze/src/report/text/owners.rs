//! Tables about files, processes and sync calls.

use rustc_hash::FxHashMap;

use iostep_model::printable;

use super::Style;
use super::blocks::percentile_cells;
use super::grid::grid;
use crate::report::quantity::{bytes, count, duration};
use crate::stats::Summary;

/// Rows of the longer tables where all tables are shown.
pub(super) const MANY: usize = 20;
/// Rows of the longer tables on a screen.
pub(super) const FEW: usize = 3;
/// Single sync calls that are shown.
const CALLS_SHOWN: usize = 5;

/// A title that says how many rows are missing; `--json` has all.
fn title(text: &str, rows: usize, shown: usize) -> String {
    match rows > shown {
        true => format!("{text} ({shown} of {})", count(rows as u64)),
        false => text.to_owned(),
    }
}

/// A path, and how many files had it one after the other.
fn path_of(path: &str, files: u64) -> String {
    match files {
        1 => printable(path).into(),
        files => format!("{} ({files} files)", printable(path)),
    }
}

pub(super) fn files(summary: &Summary, shown: usize, style: Style) -> String {
    let names = [
        "~file", "type", ">reads", ">read", ">writes", ">written", ">syncs", "",
    ];
    let mut table = grid(style, &names);
    let files = summary.files_by_path();
    for file in files.iter().take(shown) {
        table.row([
            path_of(&file.user_path, file.files),
            file.file_type.name().into(),
            count(file.amounts.read.requests),
            bytes(file.amounts.read.bytes),
            count(file.amounts.write.requests),
            bytes(file.amounts.write.bytes),
            count(file.syncs),
            if file.deleted {
                "deleted".into()
            } else {
                String::new()
            },
        ]);
    }
    table.titled(&title("Files", files.len(), shown))
}

pub(super) fn processes(summary: &Summary, shown: usize, style: Style) -> String {
    let names = ["process", ">dirtied", ">submitted", ">read", ">syncs", ""];
    let mut table = grid(style, &names);
    for process in summary.processes.iter().take(shown) {
        table.row([
            format!("{}:{}", printable(&process.name), process.pid),
            bytes(process.dirtied.bytes),
            bytes(process.submitted.write.bytes),
            bytes(process.submitted.read.bytes),
            count(process.syncs),
            if process.kernel {
                "kernel".into()
            } else {
                String::new()
            },
        ]);
    }
    let text = "Processes: written bytes by who dirtied and by who submitted them";
    table.titled(&title(text, summary.processes.len(), shown))
}

/// All columns make a table that is wider than a screen; `full` has them.
pub(super) fn sync_kinds(summary: &Summary, full: bool, style: Style) -> String {
    let has_failed = summary.sync_kinds.iter().any(|kind| kind.failed > 0);
    let shown = |column: usize| match column {
        2 => full || has_failed,
        8 | 10 | 11 => full,
        _ => true,
    };
    let names = [
        "sync call",
        ">calls",
        ">failed",
        ">data",
        ">journal",
        ">metadata",
        ">flushes",
        ">p50",
        ">p90",
        ">p99",
        ">p99.9",
        ">max",
    ];
    let names = names
        .into_iter()
        .enumerate()
        .filter(|(column, _)| shown(*column));
    let names: Vec<&str> = names.map(|(_, name)| name).collect();
    let mut table = grid(style, &names);
    for kind in &summary.sync_kinds {
        let unknown = || std::array::from_fn(|_| "-".to_owned());
        let [p50, p90, p99, p99_9, max] = kind
            .duration
            .as_ref()
            .map_or_else(unknown, percentile_cells);
        let cells = [
            kind.kind.name().into(),
            count(kind.calls),
            count(kind.failed),
            bytes(kind.caused.data_bytes),
            bytes(kind.caused.journal_bytes),
            bytes(kind.caused.metadata_bytes),
            count(kind.caused.flushes),
            p50,
            p90,
            p99,
            p99_9,
            max,
        ];
        let cells = cells
            .into_iter()
            .enumerate()
            .filter(|(column, _)| shown(*column));
        table.row_of(cells.map(|(_, cell)| cell).collect());
    }
    table.titled("Sync calls, and the bytes written because of them")
}

pub(super) fn slowest_syncs(summary: &Summary, style: Style) -> String {
    let paths: FxHashMap<u32, &str> = summary
        .files
        .iter()
        .map(|file| (file.file, file.user_path.as_str()))
        .collect();
    let mut calls: Vec<_> = summary.sync_calls.iter().collect();
    calls.sort_by_key(|call| (std::cmp::Reverse(call.duration_ns), call.sync));
    let names = [
        ">at",
        ">took",
        "sync call",
        "~file",
        ">data",
        ">journal",
        ">metadata",
    ];
    let mut table = grid(style, &names);
    for call in calls.into_iter().take(CALLS_SHOWN) {
        let path = call.file.and_then(|file| paths.get(&file).copied());
        table.row([
            duration(call.enter_ns),
            call.duration_ns.map_or_else(|| "-".into(), duration),
            call.kind.name().into(),
            path.map_or_else(|| "-".into(), |path| printable(path).into()),
            bytes(call.caused.data_bytes),
            bytes(call.caused.journal_bytes),
            bytes(call.caused.metadata_bytes),
        ]);
    }
    table.titled(&title(
        "The slowest sync calls",
        summary.sync_calls.len(),
        CALLS_SHOWN,
    ))
}

pub(super) fn joj(summary: &Summary, shown: usize, style: Style) -> String {
    let names = [
        "~file",
        "type",
        ">syncs",
        ">data",
        ">journal",
        ">metadata",
        ">amplified",
    ];
    let mut table = grid(style, &names);
    let files = summary.joj.by_path();
    for file in files.iter().take(shown) {
        table.row([
            path_of(&file.user_path, file.files),
            file.file_type.name().into(),
            count(file.syncs),
            bytes(file.data_bytes),
            bytes(file.journal_bytes),
            bytes(file.metadata_bytes),
            file.amplification
                .map_or_else(|| "-".into(), |times| format!("{times:.2}x")),
        ]);
    }
    let text = "Journaling of journal: what each file's data and syncs cost";
    table.titled(&title(text, files.len(), shown))
}
