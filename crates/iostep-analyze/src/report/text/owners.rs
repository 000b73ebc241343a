//! Tables about files, processes and sync calls.

use rustc_hash::FxHashMap;

use super::Style;
use super::blocks::percentile_cells;
use super::grid::grid;
use crate::report::quantity::{bytes, count, duration, percent, printable};
use crate::stats::Summary;

/// Rows of the longer tables that are shown.
const ROWS_SHOWN: usize = 20;
/// Single sync calls that are shown.
const CALLS_SHOWN: usize = 5;

fn more(rows: usize, shown: usize) -> String {
    match rows.saturating_sub(shown) {
        0 => String::new(),
        hidden => format!(" and {hidden} more; --json has all\n"),
    }
}

/// A path, and how many files had it one after the other.
fn path_of(path: &str, files: u64) -> String {
    match files {
        1 => printable(path).into(),
        files => format!("{} ({files} files)", printable(path)),
    }
}

pub(super) fn files(summary: &Summary, style: Style) -> String {
    let names = [
        "~file", "type", ">reads", ">read", ">writes", ">written", ">syncs", "",
    ];
    let mut table = grid(style, &names);
    let files = summary.files_by_path();
    for file in files.iter().take(ROWS_SHOWN) {
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
    table.titled("Files") + &more(files.len(), ROWS_SHOWN)
}

pub(super) fn processes(summary: &Summary, style: Style) -> String {
    let names = ["process", ">dirtied", ">submitted", ">read", ">syncs", ""];
    let mut table = grid(style, &names);
    for process in summary.processes.iter().take(ROWS_SHOWN) {
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
    table.titled("Processes: written bytes by who dirtied and by who submitted them")
        + &more(summary.processes.len(), ROWS_SHOWN)
}

pub(super) fn sync_kinds(summary: &Summary, style: Style) -> String {
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
    let mut table = grid(style, &names);
    for kind in &summary.sync_kinds {
        let unknown = || std::array::from_fn(|_| "-".to_owned());
        let [p50, p90, p99, p99_9, max] = kind
            .duration
            .as_ref()
            .map_or_else(unknown, percentile_cells);
        table.row([
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
        ]);
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
    table.titled("The slowest sync calls") + &more(summary.sync_calls.len(), CALLS_SHOWN)
}

pub(super) fn joj(summary: &Summary, style: Style) -> String {
    let joj = &summary.joj;
    let names = [
        "~file",
        "type",
        ">syncs",
        ">data",
        ">journal",
        ">metadata",
        ">amplification",
    ];
    let mut table = grid(style, &names);
    let files = joj.by_path();
    for file in files.iter().take(ROWS_SHOWN) {
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
    let text = table.titled("Journaling of journal: what each file's data and syncs cost");
    if text.is_empty() {
        return text;
    }
    let total = format!(
        " data {} + journal {} = {}; journaling of journal {} ({} of both); other metadata {}\n",
        bytes(joj.data_bytes),
        bytes(joj.journal_bytes),
        bytes(joj.data_bytes + joj.journal_bytes),
        bytes(joj.joj_bytes),
        percent(joj.joj_share),
        bytes(joj.metadata_bytes),
    );
    text + &more(files.len(), ROWS_SHOWN) + &total
}
