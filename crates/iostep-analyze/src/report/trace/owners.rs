//! Tables about files, processes and sync calls.

use iostep_report::document::{Bar, Cell, Detail, Table};
use iostep_report::quantity::{bytes, percent};
use rustc_hash::FxHashMap;

use super::requests::percentile_cells;
use crate::stats::syncs::Caused;
use crate::stats::{FileRow, Summary};

/// Single sync calls that a text shows.
const CALLS_SHOWN: usize = 5;

/// A path, and how many files had it one after the other.
fn path_of(path: &str, files: u64) -> String {
    match files {
        1 => path.to_owned(),
        files => format!("{path} ({files} files)"),
    }
}

fn title_of(file: &FileRow) -> String {
    match &file.user_first_path {
        Some(first) => format!("inode {}, first seen as {first}", file.inode),
        None => format!("inode {}", file.inode),
    }
}

/// What became of a file: that it is gone, or how many of that path are, and what of its path was another first. The directories
/// above and the names below that are the same are left out.
fn fate_of(file: &FileRow) -> String {
    let deleted = match file.deleted_files {
        0 => None,
        all if all == file.files => Some("deleted".to_owned()),
        some => Some(format!("{some} deleted")),
    };
    let first = file.user_first_path.as_deref();
    let was = first.map(|first| format!("was {}", difference(first, &file.user_path)));
    let all: Vec<String> = deleted.into_iter().chain(was).collect();
    all.join(", ")
}

/// The part of a path that is another than that of a second path, from the first name to the last.
fn difference(path: &str, other: &str) -> String {
    let names: Vec<&str> = path.split('/').collect();
    let others: Vec<&str> = other.split('/').collect();
    let pairs = || names.iter().zip(&others);
    let above = pairs().take_while(|(one, other)| one == other).count();
    let most = names.len().min(others.len()) - above;
    let from_end = names.iter().rev().zip(others.iter().rev());
    let below = from_end.take(most).take_while(|(a, b)| a == b).count();
    let part = names[above..names.len() - below].join("/");
    match (part.as_str(), below) {
        // A part was put in between, or above.
        ("", _) => path.to_owned(),
        (_, 0) => part,
        _ => format!("{part}/…"),
    }
}

pub(super) fn files(summary: &Summary) -> Table {
    let columns = [
        "~file", "type", "+reads", "+read", "+writes", "+written", "+syncs", "",
    ];
    let rows = summary.files_by_path().into_iter().map(|file| {
        let name = Cell::text(path_of(&file.user_path, file.files));
        vec![
            name.titled(title_of(&file)),
            Cell::text(file.file_type.name()),
            Cell::count(file.amounts.read.requests),
            Cell::bytes(file.amounts.read.bytes),
            Cell::count(file.amounts.write.requests),
            Cell::bytes(file.amounts.write.bytes),
            Cell::count(file.syncs),
            Cell::text(fate_of(&file)),
        ]
    });
    Table::new("Files", columns)
        .note("Their data, and metadata that is theirs alone.")
        .long("names")
        .rows(rows)
}

pub(super) fn processes(summary: &Summary) -> Table {
    let columns = [
        "process",
        "+writes dirtied",
        "+dirtied",
        "+writes submitted",
        "+submitted",
        "+reads",
        "+read",
        "+syncs",
        "",
    ];
    let rows = summary.processes.iter().map(|process| {
        let name = Cell::text(format!("{}:{}", process.name, process.pid));
        vec![
            match &process.command_line {
                Some(command) => name.titled(command),
                None => name,
            },
            Cell::count(process.dirtied.requests),
            Cell::bytes(process.dirtied.bytes),
            Cell::count(process.submitted.write.requests),
            Cell::bytes(process.submitted.write.bytes),
            Cell::count(process.submitted.read.requests),
            Cell::bytes(process.submitted.read.bytes),
            Cell::count(process.syncs),
            Cell::text(if process.kernel { "kernel" } else { "" }),
        ]
    });
    let title = "Processes: written bytes by who dirtied and by who submitted them";
    Table::new(title, columns)
        .from(
            Detail::Page,
            &["writes dirtied", "writes submitted", "reads"],
        )
        .long("processes")
        .rows(rows)
}

fn caused(caused: &Caused) -> [Cell; 5] {
    [
        Cell::count(caused.writes),
        Cell::bytes(caused.data_bytes),
        Cell::bytes(caused.journal_bytes),
        Cell::bytes(caused.metadata_bytes),
        Cell::count(caused.flushes),
    ]
}

/// All columns make a table that is wider than a screen.
pub(super) fn sync_kinds(summary: &Summary) -> Table {
    let columns = [
        "sync call",
        ">calls",
        ">failed",
        ">total time",
        ">writes",
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
    let rows = summary.sync_kinds.iter().map(|kind| {
        let mut cells = vec![
            Cell::text(kind.kind.name()),
            Cell::count(kind.calls),
            Cell::count(kind.failed),
            Cell::duration(kind.total_ns),
        ];
        cells.extend(caused(&kind.caused));
        cells.extend(percentile_cells(kind.duration.as_ref()));
        cells
    });
    let has_failed = summary.sync_kinds.iter().any(|kind| kind.failed > 0);
    let failed = if has_failed {
        Detail::Brief
    } else {
        Detail::Full
    };
    Table::new("Sync calls, and the bytes written because of them", columns)
        .from(Detail::Page, &["total time", "writes"])
        .from(Detail::Full, &["p90", "p99.9", "max"])
        .from(failed, &["failed"])
        .rows(rows)
}

pub(super) fn slowest_syncs(summary: &Summary) -> Table {
    let paths: FxHashMap<u32, &str> = summary
        .files
        .iter()
        .map(|file| (file.file, file.user_path.as_str()))
        .collect();
    let mut calls: Vec<_> = summary.sync_calls.iter().collect();
    calls.sort_by_key(|call| (std::cmp::Reverse(call.duration_ns), call.sync));
    let columns = [
        ">at",
        "+took",
        "sync call",
        "~file",
        "+writes",
        "+data",
        "+journal",
        "+metadata",
        "+flushes",
    ];
    let rows = calls.into_iter().map(|call| {
        let path = call.file.and_then(|file| paths.get(&file).copied());
        let mut cells = vec![
            Cell::duration(call.enter_ns),
            Cell::duration(call.duration_ns),
            Cell::text(call.kind.name()),
            Cell::text(path.unwrap_or("-")),
        ];
        cells.extend(caused(&call.caused));
        cells
    });
    Table::new("The slowest sync calls", columns)
        .from(Detail::Page, &["writes", "flushes"])
        .long("calls")
        .at_most(CALLS_SHOWN)
        .rows(rows)
}

pub(super) fn joj(summary: &Summary) -> Table {
    let columns = [
        "~file",
        "type",
        "+syncs",
        "+data",
        "+journal",
        "+metadata",
        ">amplified",
    ];
    let joj = &summary.joj;
    let rows = joj.by_path().into_iter().map(|file| {
        let journal = Cell::bytes(file.journal_bytes);
        vec![
            Cell::text(path_of(&file.user_path, file.files)),
            Cell::text(file.file_type.name()),
            Cell::count(file.syncs),
            Cell::bytes(file.data_bytes),
            journal.with_bar(Bar::Other, joj.journal_bytes as f64),
            Cell::bytes(file.metadata_bytes),
            Cell::number(iostep_model::unit::Unit::Factor, file.amplification),
        ]
    });
    let note = format!(
        "What each file's data cost in the filesystem's journal, through the sync calls on it. \
         Of {} of data and journal, {} ({}) are journaling of journal: caused by syncs of a \
         database's own log. {} of the journal were caused by no sync call on a known file.",
        bytes(joj.data_bytes + joj.journal_bytes),
        bytes(joj.joj_bytes),
        percent(joj.joj_share),
        bytes(joj.uncaused_journal_bytes),
    );
    let title = "Journaling of journal: what each file's data and syncs cost";
    Table::new(title, columns)
        .note(note)
        .long("names")
        .rows(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_what_of_it_was_another_first() {
        for (first, last, expected) in [
            ("/m/conf.tmp", "/m/conf", "conf.tmp"),
            ("/m/x.tmp", "/m/d/x", "x.tmp"),
            ("/m/a/x", "/m/b/y", "a/x"),
            ("/m/stage/a/deep", "/m/final/a/deep", "stage/…"),
            ("/m/one/two/a/b", "/m/three/a/b", "one/two/…"),
            // A directory was put in between, or fell away.
            ("/m/x", "/m/d/x", "/m/x"),
            ("/m/d/x", "/m/x", "d/…"),
            ("/m/a/a/x", "/m/a/x", "a/…"),
            ("/m/a/x", "/m/a/a/x", "/m/a/x"),
        ] {
            assert_eq!(difference(first, last), expected, "{first} {last}");
        }
    }

    #[test]
    fn a_row_of_several_files_says_how_many_of_them_are_deleted() {
        let summary = Summary::of(&iostep_model::fixture::sqlite_on_ext4(40));
        let mut row = summary.files[0].clone();
        for (files, deleted, expected) in [
            (1, 0, ""),
            (1, 1, "deleted"),
            (3, 0, ""),
            (3, 2, "2 deleted"),
            (3, 3, "deleted"),
        ] {
            (row.files, row.deleted_files) = (files, deleted);
            assert_eq!(fate_of(&row), expected, "{deleted} of {files}");
        }
    }
}
