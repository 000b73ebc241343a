//! All tables of `bench/waldio`.

use iostep_lab::Kind;

use crate::goal::Goal;
use crate::table::{Engine, Place, Table, Work};

const EXT4: Place = Place::Image(Kind::Ext4);
const XFS: Place = Place::Image(Kind::Xfs);
const BTRFS: Place = Place::Image(Kind::Btrfs);

/// A log that grows: what a new database has until its first checkpoint.
const FRESH: &str = "--wal-file fresh --checkpoint never --transactions {count}";
/// A log that is written from its beginning again and again.
const STEADY: &str = "--wal-file steady --time {ms}";

/// Every table, in the order of the page.
pub fn all() -> Vec<Table> {
    vec![
        fresh("fresh", EXT4, 2.3),
        fresh("fresh-xfs", XFS, 1.9),
        steady("steady", EXT4),
        steady("steady-xfs", XFS),
        random_updates(),
        recycled(),
        writers(),
        slow_flush(),
        slower_flush(),
        processes(),
        peers(),
        reads(),
        operations(
            "insert",
            ["98", "99", "213", "587"],
            ["1219", "1290", "2907", "2729"],
        ),
        operations(
            "update",
            ["97", "98", "212", "556"],
            ["1254", "1380", "2973", "2867"],
        ),
        operations(
            "delete",
            ["96", "97", "203", "596"],
            ["1197", "1224", "2930", "2546"],
        ),
        layouts(),
        fallback("fallback-btrfs", BTRFS),
        fallback("fallback-tmpfs", Place::Tmpfs),
    ]
}

fn sqlite(flags: &str, more: &str) -> Work {
    Work::Sqlite(format!("{flags} {more}"))
}

fn stock(more: &str) -> Work {
    sqlite("--journal wal", more)
}

fn waldio(more: &str) -> Work {
    sqlite("--journal waldio", more)
}

fn faster(than: usize, name: &'static str, by: f64) -> Goal {
    Goal::Faster {
        than,
        name,
        by,
        floor: Vec::new(),
    }
}

/// Rows that fresh and steady have in common: the modes of synchronous, and the floor.
struct Modes {
    ours: usize,
    normal: usize,
    floor: usize,
}

fn modes(table: &mut Table, log: &str, full_by: f64, no_flush_by: f64) -> Modes {
    let full = table.row("stock WAL, FULL", stock(log), None);
    let ours = table.row("waldio, FULL", waldio(log), Some(full));
    let no_flush = format!("{log} --waldio-sync normal");
    table.row(
        "waldio, FULL without its flush",
        waldio(&no_flush),
        Some(full),
    );
    table.goal(faster(full, "stock FULL", no_flush_by));
    let log = format!("{log} --synchronous normal");
    let normal = table.row("stock WAL, NORMAL", stock(&log), Some(full));
    table.row("waldio, NORMAL", waldio(&log), Some(full));
    table.goal(faster(normal, "stock NORMAL", 1.0));
    let floor = table.row(
        "floor: O_DIRECT, fdatasync",
        Work::Floor("fdatasync"),
        Some(full),
    );
    table.row(
        "floor: O_DIRECT, RWF_DSYNC",
        Work::Floor("dsync"),
        Some(full),
    );
    table.rows[ours].goals.push(Goal::Faster {
        than: full,
        name: "stock FULL",
        by: full_by,
        floor: vec![floor, normal],
    });
    Modes {
        ours,
        normal,
        floor,
    }
}

fn fresh(name: &str, place: Place, by: f64) -> Table {
    let title = format!("One writer, a fresh log, {}", place.name());
    let mut table = Table::new(name, place, &title);
    modes(&mut table, FRESH, by, 4.0);
    table
}

fn steady(name: &str, place: Place) -> Table {
    let title = format!("One writer, a steady log, {}", place.name());
    let mut table = Table::new(name, place, &title);
    let modes = modes(&mut table, STEADY, 1.0, 1.9);
    table.rows[modes.ours].goals.extend([
        Goal::P50 {
            of: vec![modes.floor, modes.normal],
            name: "that of the floor, that of stock NORMAL",
            plus_us: 3.0,
        },
        Goal::Kb(4.4),
        Goal::Flushes(1.003),
    ]);
    table
}

/// Nearly each commit writes another page, so that a checkpoint has as many pages as the log.
fn random_updates() -> Table {
    let title = "One writer, updates at random in 100,000 rows, FULL, a steady log, ext4";
    let mut table = Table::new("random-updates", EXT4, title);
    let flags = format!("--operation update --keys random --rows 100000 {STEADY}");
    let base = table.row("stock WAL", stock(&flags), None);
    table.row("waldio", waldio(&flags), Some(base));
    table
}

fn recycled() -> Table {
    let title = "One writer, the second session, from its first commit on, ext4";
    let mut table = Table::new("recycled", EXT4, title);
    let session = |engine| Work::Writers {
        engine,
        processes: true,
        count: 1,
        again: true,
    };
    let full = table.row("stock WAL, FULL", session(Engine::Stock), None);
    table.row("waldio, FULL", session(Engine::Waldio), Some(full));
    table.goal(Goal::Kb(4.5));
    table
}

/// Adds stock SQLite and waldio with so many writers; the answer is the row of stock SQLite.
fn add_writers(table: &mut Table, count: u32, processes: bool) -> usize {
    let work = |engine| Work::Writers {
        engine,
        processes,
        count,
        again: false,
    };
    let base = table.row(&format!("stock WAL, {count}"), work(Engine::Stock), None);
    table.row(
        &format!("waldio, {count}"),
        work(Engine::Waldio),
        Some(base),
    );
    base
}

fn writers() -> Table {
    let title = "Threads that write to one database, FULL, ext4";
    let mut table = Table::new("writers", EXT4, title);
    for count in [1, 2, 4, 8, 16] {
        let base = add_writers(&mut table, count, false);
        if count > 1 {
            let by = if count == 16 { 5.0 } else { 1.0 };
            table.goal(faster(base, "stock", by));
        }
    }
    table.goal(Goal::SlowestMs(20.0));
    table.goal(Goal::Kb(5.0));
    table
}

fn slow_flush() -> Table {
    let title = "Threads that write to one database, FULL, ext4, a flush takes 1 ms more";
    let mut table = Table::new("slow-flush", EXT4, title);
    table.slow_flush_us = 1000;
    add_writers(&mut table, 1, false);
    let base = add_writers(&mut table, 16, false);
    table.goal(faster(base, "stock", 10.0));
    table.goal(Goal::SlowestMs(20.0));
    table
}

/// What the goals that depend on the device come to on another one: nothing is judged here. A call
/// is slowed, not a flush, so there are but programs whose calls flush once.
fn slower_flush() -> Table {
    let title = "One writer and sixteen, FULL, a steady log, ext4, a flush takes 0.1 ms more";
    let mut table = Table::new("slower-flush", EXT4, title);
    table.slow_flush_us = 100;
    let base = table.row("stock WAL", stock(STEADY), None);
    table.row("waldio", waldio(STEADY), Some(base));
    let floor = Work::Floor("fdatasync");
    table.row("floor: O_DIRECT, fdatasync", floor, Some(base));
    add_writers(&mut table, 4, false);
    add_writers(&mut table, 16, false);
    table
}

fn processes() -> Table {
    let title = "Processes that write to one database, FULL, ext4";
    let mut table = Table::new("processes", EXT4, title);
    for count in [2, 4, 8] {
        let base = add_writers(&mut table, count, true);
        table.goal(faster(base, "stock", 1.0));
    }
    table
}

fn peers() -> Table {
    let title = "Other stores, one writer, each row durable, ext4";
    let mut table = Table::new("peers", EXT4, title);
    let base = table.row("stock WAL, FULL", stock(STEADY), None);
    let lmdb = table.row("LMDB", Work::Peer("lmdb"), Some(base));
    let rocksdb = table.row("RocksDB, sync", Work::Peer("rocksdb"), Some(base));
    table.row("waldio, FULL", waldio(STEADY), Some(base));
    for (than, name) in [(lmdb, "LMDB"), (rocksdb, "RocksDB")] {
        table.goal(faster(than, name, 2.0));
        table.goal(Goal::Lighter {
            than,
            name,
            by: 0.3,
        });
    }
    table
}

fn reads() -> Table {
    let title = "Reads, FULL, a steady log, ext4: transactions/s";
    let mut table = Table::new("reads", EXT4, title);
    let mix = "--operation mix --mix read=95,insert=5 --keys random";
    for (what, flags) in [
        ("95 % reads, 1 thread", mix.to_owned()),
        (
            "95 % reads, 4 threads",
            format!("{mix} --threads 4 --shared"),
        ),
        (
            "reads alone, 1 thread",
            "--operation read --keys random".to_owned(),
        ),
    ] {
        let flags = format!("{flags} {STEADY}");
        let base = table.row(&format!("stock WAL, {what}"), stock(&flags), None);
        table.row(&format!("waldio, {what}"), waldio(&flags), Some(base));
        table.goal(faster(base, "stock", 0.97));
    }
    table
}

/// Table 2 and figures 14 and 15: rows 0 to 3 are stock SQLite's journals, then waldio's modes.
fn operations(operation: &str, stocks: [&'static str; 4], waldios: [&'static str; 4]) -> Table {
    let title = format!("{operation} by journal mode, a fresh log, ext4");
    let mut table = Table::new(operation, EXT4, &title);
    let flags = format!("--operation {operation} {FRESH}");
    let stock_journals = ["delete", "truncate", "persist", "wal"];
    for (journal, paper) in stock_journals.into_iter().zip(stocks) {
        let work = sqlite(&format!("--journal {journal}"), &flags);
        table.row(&format!("stock {}", journal.to_uppercase()), work, Some(3));
        table.paper(paper);
    }
    let modes = [
        ("full", "waldio full (WALDIO-FS)"),
        ("persistent", "waldio persistent (WALDIO-PD)"),
        ("normal", "waldio normal (WALDIO-NS)"),
        ("group", "waldio group (WALDIO-FS + GS)"),
    ];
    for ((mode, label), paper) in modes.into_iter().zip(waldios) {
        let work = waldio(&format!("{flags} --waldio-sync {mode}"));
        table.row(label, work, Some(3));
        table.paper(paper);
    }
    table
}

/// Figures 8 and 13.
fn layouts() -> Table {
    let title = "insert by layout of the log, FULL, a fresh log, ext4";
    let mut table = Table::new("layouts", EXT4, title);
    let base = table.row("stock WAL", stock(FRESH), None);
    table.paper("587/s, 29 KB");
    for (flags, label, paper) in [
        (
            "--waldio-padding 512",
            "P, padded to 512",
            "about 1.0 times",
        ),
        ("--waldio-padding 4096", "P, padded to 4096", "1.6 times"),
        ("--waldio-padding 8192", "P, padded to 8192", "2.0 times"),
        ("--waldio-layout T", "T", ""),
        (
            "--waldio-layout W",
            "W (header embedding)",
            "2.1 times, 4.6 KB",
        ),
    ] {
        table.row(label, waldio(&format!("{FRESH} {flags}")), Some(base));
        table.paper(paper);
    }
    table
}

fn fallback(name: &str, place: Place) -> Table {
    let title = format!(
        "Where waldio cannot help: one writer, FULL, {}",
        place.name()
    );
    let mut table = Table::new(name, place, &title);
    let base = table.row("stock WAL", stock(STEADY), None);
    table.row("waldio", waldio(STEADY), Some(base));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that a row and its goals are compared with.
    fn others(table: &Table) -> Vec<usize> {
        let mut others = Vec::new();
        for row in &table.rows {
            others.extend(row.base);
            for goal in &row.goals {
                match goal {
                    Goal::Faster { than, .. } | Goal::Lighter { than, .. } => others.push(*than),
                    Goal::P50 { of, .. } => others.extend(of),
                    Goal::Kb(_) | Goal::Flushes(_) | Goal::SlowestMs(_) => {}
                }
            }
        }
        others
    }

    #[test]
    fn tables_have_names_of_their_own_and_compare_rows_that_exist() {
        let tables = all();
        for (number, table) in tables.iter().enumerate() {
            let same = tables.iter().filter(|other| other.name == table.name);
            assert_eq!(same.count(), 1, "{}", table.name);
            let rows = table.rows.len();
            assert!(others(table).into_iter().all(|row| row < rows), "{number}");
        }
    }

    #[test]
    fn a_row_is_compared_with_stock_sqlite() {
        for table in all() {
            for base in table.rows.iter().filter_map(|row| row.base) {
                assert!(
                    table.rows[base].label.starts_with("stock"),
                    "{}",
                    table.name
                );
            }
        }
    }

    #[test]
    fn every_waldio_row_differs_from_its_base_by_waldios_flags_only() {
        for table in all() {
            for row in &table.rows {
                let (Work::Sqlite(flags), Some(base)) = (&row.work, row.base) else {
                    continue;
                };
                let Work::Sqlite(stock) = &table.rows[base].work else {
                    panic!("{}: {} is compared with no SQLite", table.name, row.label);
                };
                for flag in stock.split(' ').filter(|word| word.starts_with("--")) {
                    assert!(flags.contains(flag), "{}: {flags} lacks {flag}", table.name);
                }
            }
        }
    }
}
