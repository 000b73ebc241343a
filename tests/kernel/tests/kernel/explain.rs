//! `iostep explain` and `iostep demo` beside what the kernel counts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use iostep_kernel_tests::counters;
use iostep_kernel_tests::iostep::{self, Outcome, Running};
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::image::Options;
use iostep_lab::{Kind, LoopImage, Mount, mkfs};
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::bench::wait_for;
use crate::case::Case;
use crate::faults::wait_until;

const INSERT: &str = "INSERT INTO t VALUES (printf('%.100c', 'x'))";
const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
/// A page and at most a sector of padding.
const WALDIO_COMMIT_BYTES: u64 = 4096 + 512;
const MODES: [&str; 7] = [
    "delete", "truncate", "persist", "wal", "waldio", "memory", "off",
];

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let case =
        |name: &str, body: fn() -> anyhow::Result<()>| Case::new(name, needs(Kind::Ext4), body);
    let cases = [
        case("each mode costs what the kernel counted on ext4", ext4),
        Case::new(
            "each mode costs what the kernel counted on xfs",
            needs(Kind::Xfs),
            xfs,
        ),
        case(
            "the demo shows the shape of the paper's table and cleans up",
            demo,
        ),
        case("reads are a statement's cost with a cold cache", reads),
        Case::new(
            "a mode that cannot be used is a marked row",
            needs(Kind::Btrfs),
            not_here,
        ),
        case(
            "the original stays as it is and --in-place changes it",
            original,
        ),
        case(
            "every bad input has its error and leaves nothing",
            bad_input,
        ),
        case(
            "a database that waldio has in use or left in a crash is explained",
            in_use_by_waldio,
        ),
        case(
            "hostile SQL and names steer no terminal and forge no line",
            hostile,
        ),
        case("a full disk is an error and leaves nothing", full_disk),
        case("a signal ends it and leaves nothing", signals),
    ];
    cases.map(|case| case.about("explain")).into()
}

fn needs(kind: Kind) -> Vec<Requirement> {
    let program = Requirement::Program(iostep_lab::tool(kind).program);
    let filesystem = Requirement::Filesystem(kind.name());
    vec![
        Requirement::Root,
        Requirement::Btf,
        Requirement::Loop,
        filesystem,
        program,
    ]
}

/// A filesystem of its own with a database on it.
struct Lab {
    mount: Mount,
    image: LoopImage,
    /// Where explain keeps its recording.
    temporary: TempDir,
}

impl Lab {
    /// On one block group: with several, ext4 spreads directories over them by their names, and
    /// then two runs need not touch as many bitmaps. Nothing is left for the kernel to zero later.
    fn new(kind: Kind, megabytes: u64) -> anyhow::Result<Lab> {
        let image = LoopImage::create(&Options {
            bytes: megabytes << 20,
            ..Options::default()
        })?;
        let options: &[&str] = match kind {
            Kind::Ext4 => &["-b", "4096", "-E", "lazy_itable_init=0"],
            _ => &[],
        };
        mkfs(kind, &image, options)?;
        let mount = Mount::new(kind, &image, "")?;
        let lab = Lab {
            mount,
            image,
            temporary: TempDir::new_in("/dev/shm")?,
        };
        lab.connect()?.execute_batch("CREATE TABLE t (v)")?;
        Ok(lab)
    }

    fn database(&self) -> PathBuf {
        self.mount.path().join("app.db")
    }

    fn connect(&self) -> anyhow::Result<Connection> {
        Ok(Connection::open(self.database())?)
    }

    fn rows(&self) -> anyhow::Result<i64> {
        Ok(self
            .connect()?
            .query_row("SELECT count(*) FROM t", [], |row| row.get(0))?)
    }

    fn names(&self) -> anyhow::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.mount.path())? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    fn explain(&self, arguments: &[&str]) -> anyhow::Result<Outcome> {
        self.start(&self.database(), arguments)?.finish()
    }

    fn start(&self, database: &Path, arguments: &[&str]) -> anyhow::Result<Running> {
        let mut command = Command::new(iostep::binary()?);
        command.arg("explain").arg(database).args(arguments);
        command.env("TMPDIR", self.temporary.path());
        Running::spawn(command)
    }

    /// True if there is nothing but these beside the database, and no recording.
    fn has_only(&self, names: &[String]) -> anyhow::Result<bool> {
        Ok(self.names()? == names && is_empty(self.temporary.path())?)
    }

    fn is_recording(&self) -> anyhow::Result<bool> {
        let mut entries = fs::read_dir(self.temporary.path())?.flatten();
        Ok(entries.any(|entry| entry.path().join("trace/events.log").exists()))
    }

    fn settle(&self) -> anyhow::Result<()> {
        rustix::fs::syncfs(fs::File::open(self.mount.path())?)?;
        Ok(())
    }

    /// What one insert costs in a mode by the kernel's count, done as explain does it: a copy to
    /// start from, and a copy of that to work on.
    fn count_insert(&self, mode: &str) -> anyhow::Result<[u64; 2]> {
        let (_start, start) = self.copy_of(&self.database())?;
        let (_work, work) = self.copy_of(&start)?;
        let connection = match mode {
            "waldio" => waldio::open(&work)?,
            _ => Connection::open(&work)?,
        };
        connection.execute_batch(&format!(
            "PRAGMA journal_mode = {mode}; PRAGMA user_version = 0"
        ))?;
        self.settle()?;
        let before = counters::read(self.image.device())?;
        connection.execute_batch(INSERT)?;
        let counted = counters::difference(before, counters::read(self.image.device())?);
        Ok([counted.write.bytes, counted.flush.ios])
    }

    fn copy_of(&self, source: &Path) -> anyhow::Result<(TempDir, PathBuf)> {
        let directory = tempfile::Builder::new()
            .prefix(".iostep-explain-")
            .tempdir_in(self.mount.path())?;
        // As the command's own: what a commit has to write depends on what lies beside.
        fs::write(directory.path().join(".iostep-temporary"), "")?;
        let copy = directory.path().join("app.db");
        fs::write(&copy, fs::read(source)?)?;
        fs::File::open(&copy)?.sync_all()?;
        Ok((directory, copy))
    }
}

fn json(outcome: Outcome) -> anyhow::Result<Value> {
    Ok(serde_json::from_str(&outcome.success()?.stdout)?)
}

fn ext4() -> anyhow::Result<()> {
    costs_what_the_kernel_counted(Kind::Ext4, 64, 0)
}

fn xfs() -> anyhow::Result<()> {
    // Two runs do not log the same: a record holds what changed until it is sealed.
    costs_what_the_kernel_counted(Kind::Xfs, 320, 4096)
}

fn costs_what_the_kernel_counted(
    kind: Kind,
    megabytes: u64,
    tolerance_bytes: u64,
) -> anyhow::Result<()> {
    for mode in MODES {
        let lab = Lab::new(kind, megabytes)?;
        let explanation = json(lab.explain(&[INSERT, "--json", "--journal", mode])?)?;
        let transaction = &explanation["runs"][0]["transactions"][0];
        let cost = &transaction["cost"];
        let explained = [&cost["bytes"], &cost["flushes"]].map(|v| v.as_u64().unwrap_or(0));
        // A filesystem in another state can need another bitmap.
        let counted = Lab::new(kind, megabytes)?.count_insert(mode)?;
        let off_by = explained[0].abs_diff(counted[0]);
        anyhow::ensure!(
            off_by <= tolerance_bytes && explained[1] == counted[1],
            "{mode}: explained {explained:?}, the kernel counted {counted:?}"
        );
        anyhow::ensure!(transaction["asked"]["user_bytes"] == 100, "not 100 bytes");
        anyhow::ensure!(cost["background_bytes"] == 0, "somebody else wrote");
    }
    Ok(())
}

/// The files of a directory but for the shared memory, which holds locks and marks.
fn files(directory: &Path) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && !name.ends_with("-shm") {
            files.push((name, fs::read(entry.path())?));
        }
    }
    files.sort();
    Ok(files)
}

fn in_use_by_waldio() -> anyhow::Result<()> {
    let lab = Lab::new(Kind::Ext4, 64)?;
    let connection = waldio::open(lab.database())?;
    connection.execute_batch(INSERT)?;
    let crashed = tempfile::tempdir_in(lab.mount.path())?;
    for (name, bytes) in files(lab.mount.path())? {
        fs::write(crashed.path().join(name), bytes)?;
    }
    for directory in [lab.mount.path(), crashed.path()] {
        let before = files(directory)?;
        let arguments = [INSERT, "--json", "--journal", "delete,wal,waldio"];
        let running = lab.start(&directory.join("app.db"), &arguments)?;
        let explanation = json(running.finish()?)?;
        let runs = explanation["runs"].as_array().context("no runs")?;
        anyhow::ensure!(runs.len() == 3, "not every mode");
        for row in runs {
            let bytes = row["transactions"][0]["asked"]["user_bytes"].as_u64();
            anyhow::ensure!(bytes == Some(100), "{}", row);
        }
        anyhow::ensure!(files(directory)? == before, "the original has changed");
    }
    drop(connection);
    let left = waldio::open(crashed.path().join("app.db"))?;
    let rows: i64 = left.query_row("SELECT count(*) FROM t", [], |row| row.get(0))?;
    anyhow::ensure!(rows == 1 && lab.rows()? == 1, "{rows} rows");
    Ok(())
}

fn demo() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let page = directory.path().join("report.html");
    let temporary = directory.path().join("tmp");
    fs::create_dir(&temporary)?;
    let mut command = Command::new(iostep::binary()?);
    command.args(["demo", "--json", "--keep"]).arg(&page);
    command.env("TMPDIR", &temporary);
    let explanation = json(Running::spawn(command)?.finish()?)?;
    let rows = explanation["comparison"].as_array().context("no table")?;
    anyhow::ensure!(rows.len() == MODES.len(), "not every mode");
    // The log of so few commits is extended by each, as SQLite's is, and its filesystem journals that.
    let of = |mode: &str, column: &str| {
        let row = rows.iter().find(|row| row["mode"] == mode);
        row.and_then(|row| row[column].as_u64())
            .context("no figure")
    };
    for column in ["data_bytes", "total_bytes", "flushes"] {
        let (waldio, stock) = (of("waldio", column)?, of("wal", column)?);
        anyhow::ensure!(waldio <= stock, "{column}: {waldio}, with wal {stock}");
    }
    for row in rows {
        let [data, journal, joj, total] =
            ["data_bytes", "journal_bytes", "joj_bytes", "total_bytes"]
                .map(|column| row[column].as_u64().unwrap_or(0));
        let mode = row["mode"].as_str().unwrap_or_default();
        anyhow::ensure!(data + journal == total && joj <= journal, "{mode}: {row}");
        match mode {
            "memory" | "off" => anyhow::ensure!(joj == 0, "{mode}: there is no SQLite journal"),
            "waldio" => anyhow::ensure!(data <= WALDIO_COMMIT_BYTES, "{mode}: {row}"),
            // ATC'15 section 3: more than half of the I/O of these is the filesystem's journaling.
            "delete" | "truncate" | "wal" => anyhow::ensure!(2 * journal > total, "{mode}: {row}"),
            _ => anyhow::ensure!(joj > 0, "{mode}: {row}"),
        }
    }
    // Of the journal modes that lose no more than delete, the one that writes least.
    let safe = ["truncate", "persist", "wal", "waldio"];
    let written = |mode| Ok((of(mode, "total_bytes")? + of(mode, "later_bytes")?, mode));
    let written: anyhow::Result<Vec<(u64, &str)>> = safe.into_iter().map(written).collect();
    let (least, _) = *written?.iter().min().context("no mode")?;
    let advice = explanation["advice"].as_str().unwrap_or("");
    let (best, _) = advice.split_once(" instead of delete ").context("advice")?;
    let of_best = of(best, "total_bytes")? + of(best, "later_bytes")?;
    anyhow::ensure!(of_best == least && safe.contains(&best), "{advice}");
    let page = fs::read_to_string(&page)?;
    anyhow::ensure!(page.contains("Written under each journal mode"), "no page");
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    anyhow::ensure!(
        !mounts.contains(&*temporary.to_string_lossy()),
        "a mount is left"
    );
    anyhow::ensure!(is_empty(&temporary)?, "a directory is left");
    Ok(())
}

fn is_empty(directory: &Path) -> anyhow::Result<bool> {
    Ok(fs::read_dir(directory)?.next().is_none())
}

fn reads() -> anyhow::Result<()> {
    let lab = Lab::new(Kind::Ext4, 64)?;
    lab.connect()?.execute_batch(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200) \
         INSERT INTO t SELECT zeroblob(3000) FROM n",
    )?;
    let select = "SELECT sum(length(v)) FROM t";
    let database_bytes = fs::metadata(lab.database())?.len();
    for mode in ["delete", "wal"] {
        let read = |more: &[&str]| -> anyhow::Result<u64> {
            let arguments = [&[select, "--json", "--journal", mode], more].concat();
            let explanation = json(lab.explain(&arguments)?)?;
            let cost = &explanation["runs"][0]["transactions"][0]["cost"];
            let reads = cost["reads"].as_u64().unwrap_or(0);
            let bytes = cost["read_bytes"].as_u64().unwrap_or(0);
            anyhow::ensure!((reads > 0) == (bytes > 0), "reads without bytes");
            Ok(bytes)
        };
        anyhow::ensure!(read(&[])? == 0, "the copy was in memory");
        let cold = read(&["--cold-cache"])?;
        anyhow::ensure!(
            // The WAL of the empty transaction is read too: a page with its frame.
            (600_000..=database_bytes + 8192).contains(&cold),
            "{mode}: read {cold} of {database_bytes} bytes"
        );
    }
    Ok(())
}

fn not_here() -> anyhow::Result<()> {
    let lab = Lab::new(Kind::Btrfs, 256)?;
    let explanation = json(lab.explain(&[INSERT, "--json", "--journal", "delete,waldio,wal"])?)?;
    let modes = |list: &str| -> Vec<String> {
        let rows = explanation[list].as_array().cloned().unwrap_or_default();
        let names = rows.iter().filter_map(|row| row["mode"].as_str());
        names.map(str::to_owned).collect()
    };
    anyhow::ensure!(modes("runs") == ["delete", "wal"], "not both");
    anyhow::ensure!(modes("not_run") == ["waldio"], "not marked");
    let alone = lab.explain(&[INSERT, "--journal", "waldio"])?;
    alone
        .refused(&[4], "waldio leaves the log to SQLite: ")
        .map(drop)
}

fn original() -> anyhow::Result<()> {
    let lab = Lab::new(Kind::Ext4, 64)?;
    let before = (fs::read(lab.database())?, lab.names()?);
    lab.explain(&[INSERT, "--journal", "wal,delete"])?
        .success()?;
    anyhow::ensure!(
        (fs::read(lab.database())?, lab.names()?) == before,
        "the original changed"
    );
    lab.explain(&[INSERT, "--in-place"])?.success()?;
    anyhow::ensure!(lab.rows()? == 1, "nothing was inserted");
    anyhow::ensure!(lab.names()? == before.1, "something was left beside it");
    Ok(())
}

fn bad_input() -> anyhow::Result<()> {
    let lab = Lab::new(Kind::Ext4, 64)?;
    let names = lab.names()?;
    let cases: [(&[&str], i32, &str); 4] = [
        (&[" ;; -- nothing"], 2, "the script has no statement"),
        (
            &["--file", "/nowhere.sql"],
            2,
            "/nowhere.sql: cannot read the script",
        ),
        (
            &["SELECT 1; SELECT 2; INSERT INTO nope VALUES (1); SELECT 4; SELECT 5"],
            1,
            "app.db: statement 3 of 5: no such table: nope: INSERT INTO nope VALUES (1); statements 1 to \
             2 are committed",
        ),
        (
            &["SELECT 1", "--journal", "walrus"],
            2,
            "walrus: no journal mode",
        ),
    ];
    for (arguments, status, words) in cases {
        lab.explain(arguments)?.refused(&[status], words)?;
    }
    let locker = lab.connect()?;
    locker.execute_batch("BEGIN EXCLUSIVE")?;
    lab.explain(&["SELECT 1", "--timeout", "100ms"])?
        .refused(&[1], "app.db: database is locked")?;
    drop(locker);
    fs::write(lab.database(), vec![0x5a; 8192])?;
    lab.explain(&["SELECT 1"])?
        .refused(&[2], "app.db: file is not a database")?;
    lab.explain(&["SELECT 1", "--in-place"])?
        .refused(&[2], "app.db: file is not a database")?;
    fs::write(lab.database(), "8,0 1 2 0.000000001 7 Q W 8 + 8 [a]\n")?;
    lab.explain(&["SELECT 1"])?
        .refused(&[2], "app.db: a text of blkparse; iostep import reads it")?;
    fs::remove_file(lab.database())?;
    lab.explain(&["SELECT 1"])?
        .refused(&[2], "app.db: no such file")?;
    fs::create_dir(lab.database())?;
    lab.explain(&["SELECT 1"])?
        .refused(&[2], "app.db: is a directory")?;
    anyhow::ensure!(lab.has_only(&names)?, "something is left");
    Ok(())
}

/// What a terminal obeys, what turns words around, and what is not seen.
const HOSTILE: &str = "evil\u{1b}[2J\u{7f}\u{9b}1m\u{202e}\u{2066}\u{200e}\u{2028}\u{200b}\nFORGED";

fn hostile() -> anyhow::Result<()> {
    let lab = Lab::new(Kind::Ext4, 64)?;
    let database = lab.mount.path().join(HOSTILE);
    fs::copy(lab.database(), &database)?;
    let explain = |arguments: &[&str]| lab.start(&database, arguments)?.finish();
    let good = format!("INSERT INTO t VALUES ('{HOSTILE}')");
    let page = lab.temporary.path().join("page.html");
    let page_name = page.to_string_lossy();
    for (arguments, status) in [
        (&[good.as_str()][..], 0),
        (&[&good, "--journal", "wal,waldio,delete"], 0),
        (&[&good, "--keep"], 0),
        (&[&good, "--html", &page_name], 0),
        (&[&format!("INSERT INTO \"{HOSTILE}\" VALUES (1)")], 1),
        (&[HOSTILE], 1),
    ] {
        let outcome = explain(arguments)?.status(status)?;
        let text = outcome.stdout + &outcome.stderr;
        anyhow::ensure!(text.contains("evil\\x1b[2J"), "{arguments:?}: {text}");
        is_harmless(&text)?;
    }
    is_harmless(&fs::read_to_string(&page)?.replace('\t', " "))?;
    // JSON has escapes of its own, and is what it was.
    let outcome = explain(&[&good, "--json"])?;
    is_harmless(&outcome.stdout)?;
    let statement = &json(outcome)?["runs"][0]["transactions"][0]["asked"]["statements"][0];
    let said = statement.as_str().unwrap_or_default();
    anyhow::ensure!(said.contains("evil\u{1b}[2J\u{7f}"), "{statement}");
    Ok(())
}

fn is_harmless(text: &str) -> anyhow::Result<()> {
    // The last is in place of bytes that are no UTF-8.
    let steers = |c: char| c.is_control() && c != '\n' || c == '\u{fffd}';
    let turns = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let found = text.chars().find(|c| steers(*c) || turns(*c));
    anyhow::ensure!(found.is_none(), "{found:?} in {text:?}");
    let forged = text
        .lines()
        .any(|line| line.trim_start().starts_with("FORGED"));
    anyhow::ensure!(!forged, "forged: {text}");
    Ok(())
}

fn full_disk() -> anyhow::Result<()> {
    let lab = Lab::new(Kind::Ext4, 16)?;
    let names = lab.names()?;
    lab.explain(&["INSERT INTO t VALUES (zeroblob(100000000))"])?
        .refused(&[1], "statement 1 of 1: database or disk is full")?;
    anyhow::ensure!(lab.has_only(&names)?, "something is left");
    lab.connect()?
        .execute_batch("INSERT INTO t VALUES (zeroblob(8000000))")?;
    lab.explain(&["SELECT 1"])?
        .refused(&[1], "No space left on device")?;
    anyhow::ensure!(lab.has_only(&names)?, "something is left");
    Ok(())
}

fn signals() -> anyhow::Result<()> {
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let lab = Lab::new(Kind::Ext4, 64)?;
        let names = lab.names()?;
        let running = lab.start(&lab.database(), &[ENDLESS])?;
        // The state that every run starts from, and the copy that this one works on.
        wait_for(&running, "the recording", || {
            let copies = lab.names().is_ok_and(|now| now.len() == names.len() + 2);
            copies && lab.is_recording().unwrap_or(false)
        })?;
        running.signal(signal)?;
        let outcome = running.finish()?;
        anyhow::ensure!(outcome.code != Some(0), "it says that all is well");
        let gone = wait_until("what it left to go", || {
            lab.has_only(&names).unwrap_or(false)
        });
        gone.with_context(|| {
            let left = fs::read_dir(lab.temporary.path());
            let left = left.map(|all| all.flatten().collect::<Vec<_>>());
            format!(
                "after {signal:?}: {:?}, {left:?}, {}",
                lab.names(),
                outcome.stderr
            )
        })?;
    }
    Ok(())
}
