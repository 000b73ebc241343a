//! What is in the databases afterwards, as sqlite3 reads it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use iostep_model::bench::{RunState, Step};

use super::{
    Ground, TMPFS, attempt, brief, count, document, ensure_removed, ground_needs, measure,
    only_run, start, wait_for, work_files,
};
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
        case("every update changes a row of its own", updates),
        case(
            "updates of a big database meet rows that are there",
            big_updates,
        ),
        case("every delete takes a row away", deletes),
        case("inserts reach every table of every database", inserts),
        case(
            "each database of a transaction gets its rows",
            many_databases,
        ),
        case("a mix does what its weights say", mix),
        case(
            "the journal mode reaches every attached database",
            journal_of_attached,
        ),
        case("settings are told as sqlite3 finds them", settings),
        case("checkpoints come when they should", checkpoints),
        case("an SQL error ends the run", sql_error),
        case("a lock that is never released ends the run", lock),
        case("databases go unless they are to be kept", removed),
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
pub struct Table {
    pub name: String,
    /// The column with the bytes.
    pub value: String,
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

pub fn only_table(database: &Path) -> anyhow::Result<Table> {
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

fn updates() -> anyhow::Result<()> {
    for keys in ["sequential", "random"] {
        for (transactions, statements) in [(500, 1), (250, 1), (50, 5)] {
            let flags = format!(
                "--operation update --keys {keys} --transactions {transactions} \
                 --statements {statements}"
            );
            let found = around(500, &flags)?;
            let same_keys = found[0].keys().eq(found[1].keys());
            anyhow::ensure!(same_keys, "{flags}: other keys");
            let changed = changed(&found);
            let expected = transactions * statements;
            anyhow::ensure!(changed == expected, "{flags}: {changed} rows changed");
        }
    }
    Ok(())
}

fn big_updates() -> anyhow::Result<()> {
    let flags = "--operation update --keys random --transactions 400 --journal wal";
    let found = around(60_000, flags)?;
    let changed = changed(&found);
    anyhow::ensure!(changed == 400, "{changed} rows changed");
    Ok(())
}

fn deletes() -> anyhow::Result<()> {
    for keys in ["sequential", "random"] {
        let flags = format!("--operation delete --keys {keys} --transactions 200");
        let [before, after] = around(300, &flags)?;
        anyhow::ensure!(after.len() == 100, "{flags}: {} rows left", after.len());
        let old = after
            .iter()
            .all(|(id, value)| before.get(id) == Some(value));
        anyhow::ensure!(old, "{flags}: a row that is left changed");
    }
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

fn inserts() -> anyhow::Result<()> {
    for (flags, expected, bytes) in [
        ("--transactions 120", [1, 1, 120], 100),
        (
            "--transactions 60 --tables 3 --statements 2",
            [1, 3, 120],
            100,
        ),
        (
            "--transactions 30 --databases 4 --threads 2 --record 1000",
            [8, 1, 30],
            1000,
        ),
        (
            "--transactions 40 --threads 3 --shared --journal wal",
            [1, 1, 120],
            100,
        ),
        (
            "--transactions 50 --keys random --rows 70",
            [1, 1, 120],
            100,
        ),
        // The original crashed with these.
        (
            "--transactions 5 --tables 20 --databases 3",
            [3, 20, 5],
            100,
        ),
    ] {
        let place = TempMount::new("tmpfs", "")?;
        measure("sqlite", place.path(), &format!("{flags} --keep --verify"))?;
        ensure_rows(place.path(), expected, bytes).context(flags)?;
    }
    Ok(())
}

fn many_databases() -> anyhow::Result<()> {
    // SQLite attaches ten databases to the first, unless it was built for more.
    for wanted in [2, 10, 11, 12, 40, 127] {
        let place = TempMount::new("tmpfs", "")?;
        let flags = format!("--databases {wanted} --transactions 6 --keep");
        let outcome = attempt("sqlite", place.path(), &format!("{flags} --json"))?;
        println!(
            "    {wanted}: {:?} {}",
            outcome.code,
            outcome.stderr.trim_end()
        );
        if wanted > 11 && outcome.code != Some(0) {
            outcome.refused(&[2, 4], "databases")?;
            ensure_removed(place.path())?;
            continue;
        }
        let operations = only_run(&document(&outcome.success()?)?)?.operations;
        anyhow::ensure!(operations == 6, "{wanted}: {operations} transactions");
        ensure_rows(place.path(), [wanted, 1, 6], 100)?;
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

fn settings() -> anyhow::Result<()> {
    for (flags, pragma, expected) in [
        ("--page-size 8KiB", "page_size", "8192"),
        ("--journal wal", "journal_mode", "wal"),
    ] {
        let place = TempMount::new("tmpfs", "")?;
        let flags = format!("{flags} --transactions 3 --keep");
        let document = measure("sqlite", place.path(), &flags)?;
        let library = document.environment.sqlite.context("no library")?;
        anyhow::ensure!(!library.compile_options.is_empty(), "{library:?}");
        anyhow::ensure!(library.version.starts_with("3."), "{library:?}");
        let told = library.settings.iter().find(|(name, _)| name == pragma);
        let told = told.map(|(_, value)| value.as_str());
        let found = sqlite3(&databases(place.path())[0], &format!("PRAGMA {pragma};"))?;
        anyhow::ensure!(found.trim() == expected, "{flags}: {found}");
        anyhow::ensure!(told == Some(expected), "{flags}: told as {told:?}");
    }
    Ok(())
}

fn checkpoints() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    let done = |flags: &str| -> anyhow::Result<(u64, u64)> {
        let flags = format!("--journal wal --transactions 100 --keep {flags}");
        let document = measure("sqlite", place.path(), &flags)?;
        let run = only_run(&document)?;
        anyhow::ensure!(count(run, Step::Transaction) == 100, "{}", brief(run));
        let wal = work_files(place.path());
        let wal = wal
            .iter()
            .find(|path| path.to_string_lossy().ends_with("-wal"));
        let wal_bytes = wal.map_or(0, |path| path.metadata().map_or(0, |found| found.len()));
        Ok((count(run, Step::Checkpoint), wal_bytes))
    };
    // The last connection to leave takes the WAL away.
    let (never, _) = done("--checkpoint never")?;
    anyhow::ensure!(never == 0, "{never} checkpoints");
    // Ten within the run, and one at its end.
    let (every, _) = done("--checkpoint every:10")?;
    anyhow::ensure!((10..=11).contains(&every), "{every} checkpoints");
    let (pages, _) = done("--checkpoint 100000")?;
    anyhow::ensure!(pages <= 1, "{pages} checkpoints");
    Ok(())
}

fn sql_error() -> anyhow::Result<()> {
    for threads in [1, 3] {
        let place = TempMount::new("tmpfs", "")?;
        let flags = format!("--journal wal --time 60 --think 2ms --threads {threads}");
        let running = start("sqlite", place.path(), &flags)?;
        let database = databases(place.path()).pop().context("no database")?;
        let name = only_table(&database)?.name;
        wait_for(&running, "ten rows", || {
            let sql = format!("SELECT count(*) FROM {name};");
            number(&database, &sql).is_ok_and(|rows| rows >= 10)
        })?;
        sqlite3(&database, &format!("DROP TABLE {name};"))?;
        let outcome = running.finish()?.status(1)?;
        let document = document(&outcome)?;
        let run = only_run(&document)?;
        println!("    {:?}", run.failures);
        anyhow::ensure!(run.state == RunState::Failed, "{:?}", run.state);
        anyhow::ensure!(run.operations >= 10, "{} transactions", run.operations);
        let failure = run.failures.first().context("no failure")?;
        anyhow::ensure!(failure.reason.contains(&name), "{failure:?}");
        anyhow::ensure!(failure.operation >= 10, "{failure:?}");
        ensure_removed(place.path())?;
    }
    Ok(())
}

fn lock() -> anyhow::Result<()> {
    use std::io::Write;
    let place = TempMount::new("tmpfs", "")?;
    let flags = "--time 60 --think 5ms --busy-timeout 100ms";
    let running = start("sqlite", place.path(), flags)?;
    let database = databases(place.path()).pop().context("no database")?;
    let name = only_table(&database)?.name;
    wait_for(&running, "three rows", || {
        let sql = format!("SELECT count(*) FROM {name};");
        number(&database, &sql).is_ok_and(|rows| rows >= 3)
    })?;
    let mut holder = Command::new("sqlite3")
        .args(["-batch", "-cmd", ".timeout 20000"])
        .arg(&database)
        .stdin(std::process::Stdio::piped())
        .spawn()?;
    let mut stdin = holder.stdin.take().context("no pipe")?;
    stdin.write_all(b"BEGIN EXCLUSIVE;\n")?;
    let outcome = running.finish();
    // It ends with its input.
    drop(stdin);
    holder.wait()?;
    let document = document(&outcome?.status(1)?)?;
    let run = only_run(&document)?;
    println!("    {:?}", run.failures);
    anyhow::ensure!(run.state == RunState::Failed, "{:?}", run.state);
    let failure = run.failures.first().context("no failure")?;
    anyhow::ensure!(failure.reason.contains("locked"), "{failure:?}");
    anyhow::ensure!(run.operations >= 3, "{} transactions", run.operations);
    Ok(())
}

fn shared() -> anyhow::Result<()> {
    // Whoever commits sleeps until the device is done, and the others find the lock taken.
    let ground = Ground::new(Kind::Ext4)?;
    let flags = "--shared --threads 4 --transactions 50 --statements 2 --keep --verify";
    let document = measure("sqlite", ground.root(), flags)?;
    let run = only_run(&document)?;
    anyhow::ensure!(run.operations == 200, "{} transactions", run.operations);
    anyhow::ensure!(count(run, Step::BusyWait) > 0, "nobody waited");
    ensure_rows(ground.root(), [1, 1, 400], 100)
}

fn removed() -> anyhow::Result<()> {
    for journal in ["delete", "persist", "wal"] {
        let place = TempMount::new("tmpfs", "")?;
        let flags = format!("--journal {journal} --transactions 5 --threads 2 --databases 2");
        measure("sqlite", place.path(), &format!("{flags} --keep"))?;
        let kept = databases(place.path()).len();
        anyhow::ensure!(kept == 4, "{journal}: {kept} kept");
        measure("sqlite", place.path(), &flags)?;
        ensure_removed(place.path())?;
    }
    Ok(())
}
