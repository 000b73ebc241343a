//! What advise says of a database, and that it changes nothing of it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use serde_json::Value;

use super::{CONTENT, advice, ensure_same, ext4, files, needs, sqlite3};
use crate::bad_input::TempMount;
use crate::case::Case;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut and_tmpfs = needs();
    and_tmpfs.push(Requirement::Filesystem("tmpfs"));
    vec![
        Case::new(
            "pages, rows and indexes are those of sqlite3, and nothing changes",
            needs(),
            facts,
        ),
        Case::new("a database in use is read and goes on", needs(), in_use),
        Case::new(
            "a link leads to the filesystem of the database",
            and_tmpfs,
            link,
        ),
    ]
}

/// A measurement that is over soon.
const SHORT: &str = "--candidates truncate-full";

fn facts() -> anyhow::Result<()> {
    let stage = ext4()?;
    for (page_bytes, mode) in [(1024, "delete"), (4096, "wal"), (32768, "persist")] {
        let database = stage.root().join(format!("app {page_bytes}.db"));
        let script =
            format!("PRAGMA page_size={page_bytes}; PRAGMA journal_mode={mode}; {CONTENT}");
        sqlite3(stage.root(), &database, &script)?;
        let before = files(stage.root())?;
        let found = advice(&database, SHORT)?;
        ensure_same(stage.root(), &before)?;
        let own_mode = if mode == "wal" { "wal" } else { "delete" };
        anyhow::ensure!(found["place"]["present"]["journal"] == own_mode, "{found}");
        compare(stage.root(), &database, &found["place"]["database"])?;
    }
    Ok(())
}

/// Compares with sqlite3.
fn compare(directory: &Path, database: &Path, found: &Value) -> anyhow::Result<()> {
    let ask = |sql: &str| -> anyhow::Result<u64> {
        let answer = sqlite3(directory, database, sql)?;
        answer
            .trim()
            .parse()
            .with_context(|| format!("{sql}: {answer}"))
    };
    anyhow::ensure!(found["page_bytes"] == ask("PRAGMA page_size;")?, "{found}");
    anyhow::ensure!(found["pages"] == ask("PRAGMA page_count;")?, "{found}");
    anyhow::ensure!(found["unread"].is_null(), "{found}");
    let tables = found["tables"].as_array().context("no tables")?;
    anyhow::ensure!(tables.len() == 2, "{found}");
    for table in tables {
        let name = table["name"].as_str().context("no name")?;
        let rows = ask(&format!("SELECT count(*) FROM {name};"))?;
        let indexes = ask(&format!(
            "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND tbl_name = '{name}';"
        ))?;
        println!("    {name}: {rows} rows, {indexes} indexes");
        anyhow::ensure!(
            table["rows"] == rows && table["indexes"] == indexes,
            "{table}"
        );
        anyhow::ensure!(table["whole"] == true, "{table}");
    }
    Ok(())
}

/// A sqlite3 shell that stays.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Shell {
    fn open(database: &Path) -> anyhow::Result<Shell> {
        let mut child = Command::new("sqlite3")
            .arg("-batch")
            .arg(database)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Shell {
            input: child.stdin.take().context("no pipe")?,
            output: BufReader::new(child.stdout.take().context("no pipe")?),
            child,
        })
    }

    /// Runs SQL that answers with a line.
    fn ask(&mut self, sql: &str) -> anyhow::Result<String> {
        writeln!(self.input, "{sql}")?;
        self.input.flush()?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    fn close(self) -> anyhow::Result<()> {
        let Shell {
            mut child, input, ..
        } = self;
        drop(input);
        let status = child.wait()?;
        anyhow::ensure!(status.success(), "sqlite3: {status}");
        Ok(())
    }
}

fn in_use() -> anyhow::Result<()> {
    for mode in ["wal", "delete"] {
        let stage = ext4()?;
        let database = stage.root().join("app.db");
        let mut shell = Shell::open(&database)?;
        shell.ask(&format!("PRAGMA journal_mode={mode};"))?;
        let rows = shell.ask(&format!("{CONTENT} SELECT count(*) FROM note;"))?;
        anyhow::ensure!(rows == "2000", "{rows}");
        // What is not committed has the writer's lock, and is nobody else's to see.
        let open = shell.ask("BEGIN IMMEDIATE; DELETE FROM tag; SELECT count(*) FROM tag;")?;
        anyhow::ensure!(open == "0", "{open}");
        let before = files(stage.root())?;
        let found = advice(&database, SHORT)?;
        ensure_same(stage.root(), &before)?;
        let facts = &found["place"]["database"];
        let rows = |name: &str| {
            let tables = facts["tables"].as_array();
            let mut tables = tables.into_iter().flatten();
            tables
                .find(|t| t["name"] == name)
                .map(|t| t["rows"].clone())
        };
        anyhow::ensure!(rows("note") == Some(2000.into()), "{mode}: {facts}");
        anyhow::ensure!(rows("tag") == Some(700.into()), "{mode}: {facts}");
        let left = shell.ask("COMMIT; SELECT count(*) FROM tag;")?;
        anyhow::ensure!(left == "0", "{left}");
        let integrity = shell.ask("PRAGMA integrity_check;")?;
        anyhow::ensure!(integrity == "ok", "{integrity}");
        shell.close()?;
    }
    Ok(())
}

fn link() -> anyhow::Result<()> {
    let stage = ext4()?;
    let database = stage.root().join("app.db");
    sqlite3(stage.root(), &database, CONTENT)?;
    let elsewhere = TempMount::new("tmpfs", "")?;
    let link = elsewhere.path().join("link.db");
    std::os::unix::fs::symlink(&database, &link)?;
    let before = files(elsewhere.path())?;
    let found = advice(&link, SHORT)?;
    ensure_same(elsewhere.path(), &before)?;
    let filesystem = &found["environment"]["filesystem"]["kind"];
    anyhow::ensure!(filesystem == Kind::Ext4.name(), "{filesystem}");
    let path = found["place"]["database"]["path"].as_str();
    anyhow::ensure!(path == database.to_str(), "{path:?}");
    Ok(())
}
