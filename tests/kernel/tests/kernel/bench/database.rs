//! What is in the databases afterwards, as sqlite3 reads it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use iostep_model::bench::Step;

use super::{Fixture, TMPFS, count, ground_needs, measure, only_run, work_files};
use crate::bad_input::TempMount;
use crate::case::Case;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let needs = || [TMPFS, &[Requirement::Program("sqlite3")]].concat();
    let case = |name: &str, body: fn() -> anyhow::Result<()>| Case::new(name, needs(), body);
    let on_disk = ground_needs(Kind::Ext4, &["sqlite3"]);
    vec![
        Case::new(
            "threads with one database wait for each other",
            on_disk,
            shared,
        ),
        case(
            "sqlite3 finds what updates, deletes and inserts leave",
            operations,
        ),
        case(
            "updates of a big database meet rows that are there",
            big_updates,
        ),
        case("a mix does what its weights say", mix),
        case(
            "the journal mode reaches every attached database",
            journal_of_attached,
        ),
    ]
}

/// What sqlite3 answers, as it prints it.
pub fn sqlite3(database: &Path, sql: &str) -> anyhow::Result<String> {
    let output = Command::new("sqlite3")
        .args(["-batch", "-noheader", "-cmd", ".timeout 5000"])
        .arg(database)
        .arg(sql)
        .output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success() && error.is_empty(),
        "{sql}: {error}"
    );
    Ok(String::from_utf8(output.stdout)?)
}

fn number(database: &Path, sql: &str) -> anyhow::Result<u64> {
    let answer = sqlite3(database, sql)?;
    answer
        .trim()
        .parse()
        .with_context(|| format!("{sql}: {answer}"))
}

/// A table and the last of its columns.
struct Table {
    name: String,
    /// The column with the bytes.
    value: String,
}

fn tables(database: &Path) -> anyhow::Result<Vec<Table>> {
    let sql = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name;";
    let names = sqlite3(database, sql)?;
    let table = |name: &str| {
        let sql =
            format!("SELECT name FROM pragma_table_info('{name}') ORDER BY cid DESC LIMIT 1;");
        Ok(Table {
            name: name.to_owned(),
            value: sqlite3(database, &sql)?.trim().to_owned(),
        })
    };
    names.lines().map(table).collect()
}

fn only_table(database: &Path) -> anyhow::Result<Table> {
    let mut all = tables(database)?;
    anyhow::ensure!(all.len() == 1, "{} tables", all.len());
    all.pop().context("no table")
}

/// Every kept database.
fn databases(target: &Path) -> Vec<PathBuf> {
    let is_database = |path: &PathBuf| {
        std::fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"SQLite format 3\0"))
    };
    work_files(target).into_iter().filter(is_database).collect()
}

/// The rows of the only table of the only database.
fn rows(target: &Path) -> anyhow::Result<BTreeMap<u64, String>> {
    let all = databases(target);
    anyhow::ensure!(all.len() == 1, "{all:?}");
    let Table { name, value } = only_table(&all[0])?;
    let text = sqlite3(&all[0], &format!("SELECT rowid, hex({value}) FROM {name};"))?;
    let row = |line: &str| {
        let (id, value) = line.split_once('|').context("no row")?;
        Ok((id.parse()?, value.to_owned()))
    };
    text.lines().map(row).collect()
}

/// The rows before and after a run on the same database.
fn around(rows_before: u64, flags: &str) -> anyhow::Result<[BTreeMap<u64, String>; 2]> {
    let place = TempMount::new("tmpfs", "")?;
    let made = format!("--operation read --transactions 1 --rows {rows_before} --keep");
    measure("sqlite", place.path(), &made)?;
    let before = rows(place.path())?;
    anyhow::ensure!(before.len() as u64 == rows_before, "{} rows", before.len());
    let flags = format!("{flags} --rows {rows_before} --keep --reuse");
    measure("sqlite", place.path(), &flags)?;
    Ok([before, rows(place.path())?])
}

fn changed([before, after]: &[BTreeMap<u64, String>; 2]) -> usize {
    let same = before
        .iter()
        .filter(|(id, value)| after.get(id) == Some(value));
    before.len() - same.count()
}

fn operations() -> anyhow::Result<()> {
    for keys in ["sequential", "random"] {
        let flags = "--operation update --transactions 50 --statements 5";
        let found = around(500, &format!("{flags} --keys {keys}"))?;
        let same_keys = found[0].keys().eq(found[1].keys());
        anyhow::ensure!(same_keys, "{keys} updates: other keys");
        let changed = changed(&found);
        anyhow::ensure!(changed == 250, "{keys} updates: {changed} rows changed");
        let flags = "--operation delete --transactions 200";
        let [before, after] = around(300, &format!("{flags} --keys {keys}"))?;
        anyhow::ensure!(after.len() == 100, "{keys}: {} rows left", after.len());
        let old = after
            .iter()
            .all(|(id, value)| before.get(id) == Some(value));
        anyhow::ensure!(old, "{keys} deletes: a row that is left changed");
    }
    let place = TempMount::new("tmpfs", "")?;
    let flags = "--transactions 5 --tables 20 --databases 3 --threads 2 --record 1000 --keep";
    measure("sqlite", place.path(), flags)?;
    ensure_rows(place.path(), [6, 20, 5], 1000)
}

fn big_updates() -> anyhow::Result<()> {
    let flags = "--operation update --keys random --transactions 400 --journal wal";
    let found = around(60_000, flags)?;
    let changed = changed(&found);
    anyhow::ensure!(changed == 400, "{changed} rows changed");
    Ok(())
}

/// Fails unless every table of every database has so many rows, and values of so many bytes.
fn ensure_rows(target: &Path, expected: [u64; 3], bytes: u64) -> anyhow::Result<()> {
    let all = databases(target);
    let [databases, per_database, rows] = expected;
    anyhow::ensure!(all.len() as u64 == databases, "{all:?}");
    for database in &all {
        let tables = tables(database)?;
        anyhow::ensure!(
            tables.len() as u64 == per_database,
            "{} tables",
            tables.len()
        );
        for Table { name, value } in tables {
            let found = number(database, &format!("SELECT count(*) FROM {name};"))?;
            let at = format!("{} {name}", database.display());
            anyhow::ensure!(found == rows, "{at}: {found} rows");
            let sql = format!("SELECT count(*) FROM {name} WHERE length({value}) = {bytes};");
            anyhow::ensure!(number(database, &sql)? == rows, "{at}: other lengths");
            let sql = format!("SELECT count(DISTINCT {value}) FROM {name};");
            anyhow::ensure!(number(database, &sql)? == rows, "{at}: equal values");
        }
        let integrity = sqlite3(database, "PRAGMA integrity_check;")?;
        anyhow::ensure!(integrity.trim() == "ok", "{integrity}");
    }
    Ok(())
}

fn mix() -> anyhow::Result<()> {
    let found = |mix: &str| {
        let flags = format!("--operation mix --transactions 200 --mix {mix}");
        around(300, &flags)
    };
    let [old, now] = found("read=1")?;
    anyhow::ensure!(old == now, "reads changed something");
    let [_, now] = found("insert=1")?;
    anyhow::ensure!(now.len() == 500, "{} rows", now.len());
    let [_, now] = found("delete=1")?;
    anyhow::ensure!(now.len() == 100, "{} rows", now.len());
    let both = found("insert=1,update=1,delete=1,read=1")?;
    let (changed, rows) = (changed(&both), both[1].len());
    println!("    of 300 rows {changed} changed, {rows} are there");
    anyhow::ensure!(
        (1..200).contains(&changed) && rows != 500,
        "{changed}, {rows}"
    );
    Ok(())
}

fn journal_of_attached() -> anyhow::Result<()> {
    for journal in ["wal", "persist", "truncate", "delete", "memory", "off"] {
        let place = TempMount::new("tmpfs", "")?;
        let flags = format!("--databases 3 --transactions 5 --journal {journal} --keep");
        measure("sqlite", place.path(), &flags)?;
        let all = databases(place.path());
        anyhow::ensure!(all.len() == 3, "{all:?}");
        for database in all {
            let at = format!("{journal}: {}", database.display());
            // Bytes 18 and 19 of the header: 2 for a WAL (sqlite.org/fileformat2.html).
            let header = std::fs::read(&database)?;
            let wal = header[18..20] == [2, 2];
            anyhow::ensure!(wal == (journal == "wal"), "{at}: {:?}", &header[18..20]);
            let journal_path = PathBuf::from(format!("{}-journal", database.display()));
            let length = std::fs::metadata(&journal_path)
                .map(|found| found.len())
                .ok();
            let as_expected = match journal {
                // SQLite empties it after a transaction of several databases (pager.c,
                // zeroJournalHdr).
                "persist" => length.is_some(),
                "truncate" => length == Some(0),
                _ => length.is_none(),
            };
            anyhow::ensure!(as_expected, "{at}: the journal has {length:?} bytes");
        }
    }
    Ok(())
}

fn shared() -> anyhow::Result<()> {
    // Whoever commits sleeps until the device is done, and the others find the lock taken.
    let ground = Fixture::new(Kind::Ext4)?;
    let flags = "--shared --threads 4 --transactions 50 --statements 2 --keep --verify";
    let document = measure("sqlite", ground.root(), flags)?;
    let run = only_run(&document)?;
    anyhow::ensure!(run.operations == 200, "{} transactions", run.operations);
    anyhow::ensure!(count(run, Step::BusyWait) > 0, "nobody waited");
    ensure_rows(ground.root(), [1, 1, 400], 100)
}
