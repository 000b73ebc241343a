//! `iostep advise` beside what sqlite3, the device's counters and the directory say.

mod facts;
mod lines;
mod measured;
mod recorded;
mod refused;
mod remounted;
mod remounted_others;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use iostep_kernel_tests::iostep::{self, Outcome};
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use serde_json::Value;

use crate::case::Case;
use crate::stage::{self, Stage};

/// Rows of two sizes, in a rowid table with two indexes and in one without row ids.
const CONTENT: &str = "
    CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT, body BLOB);
    CREATE INDEX note_text ON note(text);
    CREATE INDEX note_length ON note(length(body));
    CREATE TABLE tag(name TEXT PRIMARY KEY, uses INTEGER) WITHOUT ROWID;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
        INSERT INTO note SELECT i, 'note ' || i, randomblob(i % 1000) FROM n;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 700)
        INSERT INTO tag SELECT 'tag ' || i, i FROM n;
";

/// Every test of `iostep advise`.
pub fn cases() -> Vec<Case> {
    let mut all = facts::cases();
    all.extend(lines::cases());
    all.extend(measured::cases());
    all.extend(recorded::cases());
    all.extend(refused::cases());
    all.extend(remounted::cases());
    all.extend(remounted_others::cases());
    all.into_iter().map(|case| case.about("advise")).collect()
}

/// Those on filesystems that this machine's own kernel may lack.
pub fn cases_for_guests() -> Vec<Case> {
    let all = remounted_others::cases_for_guests();
    all.into_iter().map(|case| case.about("advise")).collect()
}

/// What a test on ext4 with the sqlite3 shell needs.
fn needs() -> Vec<Requirement> {
    let mut needs = stage::requirements(Kind::Ext4);
    needs.push(Requirement::Program("sqlite3"));
    needs
}

fn ext4() -> anyhow::Result<Stage> {
    Stage::new(Kind::Ext4, &[], "")
}

/// Runs `iostep advise TARGET FLAGS`, whatever comes of it.
fn attempt(target: &Path, flags: &str) -> anyhow::Result<Outcome> {
    iostep::run(words(target, flags))
}

fn words(target: &Path, flags: &str) -> Vec<PathBuf> {
    let mut words = vec![PathBuf::from("advise"), target.to_owned()];
    words.extend(flags.split_whitespace().map(PathBuf::from));
    words
}

/// What `--json` says of a run that must succeed, as short as it can be.
fn advice(target: &Path, flags: &str) -> anyhow::Result<Value> {
    let flags = format!("--rounds 2 --time 200ms --json {flags}");
    let outcome = attempt(target, &flags)?.success()?;
    serde_json::from_str(&outcome.stdout).context("no JSON")
}

/// The row of a candidate.
fn row<'a>(advice: &'a Value, key: &str) -> anyhow::Result<&'a Value> {
    let rows = advice["rows"].as_array().context("no rows")?;
    let mut all = rows.iter().chain([&advice["present"]]);
    let found = all.find(|row| row["key"] == key);
    found.with_context(|| format!("no row {key}"))
}

/// A figure of the device, of a commit.
fn number(row: &Value, name: &str) -> anyhow::Result<f64> {
    row["device"][name]
        .as_f64()
        .with_context(|| format!("no {name} in {row}"))
}

/// What the sqlite3 shell prints, in a directory.
fn sqlite3(directory: &Path, database: &Path, script: &str) -> anyhow::Result<String> {
    let mut child = Command::new("sqlite3")
        .arg("-batch")
        .arg(database)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().context("no pipe")?;
    stdin.write_all(script.as_bytes())?;
    drop(stdin);
    let output = child.wait_with_output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success() && stderr.is_empty(),
        "sqlite3: {}: {stderr}",
        output.status
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// Everything in a directory but lost+found, with what the files hold.
fn files(directory: &Path) -> anyhow::Result<BTreeMap<OsString, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name() == "lost+found" {
            continue;
        }
        let content = match entry.file_type()?.is_file() {
            true => std::fs::read(entry.path())?,
            false => Vec::new(),
        };
        files.insert(entry.file_name(), content);
    }
    Ok(files)
}

/// Fails unless a directory is as it was.
fn ensure_same(directory: &Path, before: &BTreeMap<OsString, Vec<u8>>) -> anyhow::Result<()> {
    let after = files(directory)?;
    anyhow::ensure!(
        after.keys().eq(before.keys()),
        "{:?} became {:?}",
        before.keys(),
        after.keys()
    );
    let changed = after
        .iter()
        .filter(|(name, content)| before[*name] != **content);
    let changed: Vec<_> = changed.map(|(name, _)| name).collect();
    anyhow::ensure!(changed.is_empty(), "{changed:?} changed");
    Ok(())
}
