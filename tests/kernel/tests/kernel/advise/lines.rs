//! The lines of the advice, typed into the sqlite3 shell.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use iostep_kernel_tests::requirement::Requirement;
use serde_json::Value;

use super::{CONTENT, advice, ext4, needs, sqlite3};
use crate::case::Case;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut with_waldio = needs();
    with_waldio.push(Requirement::Program("make"));
    vec![Case::new(
        "the lines of every row do in sqlite3 what they say",
        with_waldio,
        lines,
    )]
}

/// Builds waldio.so, as its users do.
fn waldio() -> anyhow::Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../waldio");
    let output = Command::new("make").arg("-C").arg(&source).output()?;
    anyhow::ensure!(
        output.status.success(),
        "make: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(source.join("waldio.so"))
}

fn lines() -> anyhow::Result<()> {
    let stage = ext4()?;
    let database = stage.root().join("a database?.db");
    sqlite3(
        stage.root(),
        &database,
        &format!("PRAGMA page_size=1024; {CONTENT}"),
    )?;
    let original = std::fs::read(&database)?;
    std::fs::copy(waldio()?, stage.root().join("waldio.so"))?;
    let found = advice(&database, "--candidates wal-full")?;
    // All rows have lines, whatever is measured; so they are asked for without measuring.
    let all = all_rows(&database)?;
    anyhow::ensure!(all.len() > 10, "{} rows", all.len());
    for row in all.iter().chain([&found["present"]]) {
        let key = row["key"].as_str().context("no key")?;
        if key.starts_with("mount") {
            continue;
        }
        std::fs::write(&database, &original)?;
        try_lines(stage.root(), &database, key, row).with_context(|| key.to_owned())?;
        for suffix in ["-wal", "-shm", "-journal"] {
            let mut name = database.clone().into_os_string();
            name.push(suffix);
            let _ = std::fs::remove_file(name);
        }
    }
    Ok(())
}

/// The rows of a run that is ended at once.
fn all_rows(database: &Path) -> anyhow::Result<Vec<Value>> {
    use iostep_kernel_tests::iostep::Running;
    let running = Running::start(super::words(database, "--time 5 --json"))?;
    let directory = database.parent().context("no directory")?;
    crate::faults::wait_until("a directory of its own", || {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        let mut names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
        names.any(|name| name.to_string_lossy().starts_with(".iostep-advise-"))
    })?;
    running.signal(rustix::process::Signal::INT)?;
    let outcome = running.finish()?.status(1)?;
    let found: Value = serde_json::from_str(&outcome.stdout)?;
    Ok(found["rows"].as_array().context("no rows")?.clone())
}

fn try_lines(directory: &Path, database: &Path, key: &str, row: &Value) -> anyhow::Result<()> {
    let lines = row["lines"].as_array().context("no lines")?;
    let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
    let setting = &row["setting"];
    let check = "
        INSERT INTO note(text, body) VALUES ('milk', randomblob(10));
        SELECT '=', count(*) FROM note;
        SELECT '=', journal_mode FROM pragma_journal_mode;
        SELECT '=', page_size FROM pragma_page_size;
        SELECT '=', synchronous FROM pragma_synchronous;
        SELECT '=', integrity_check FROM pragma_integrity_check;
        PRAGMA wal_autocheckpoint;
    ";
    let is_waldio = setting["journal"] == "waldio";
    // The shell opens the database by itself, except where the lines do.
    let opened = if is_waldio {
        Path::new(":memory:")
    } else {
        database
    };
    let script = format!("{}\n{check}", lines.join("\n"));
    let output = sqlite3(directory, opened, &script)?;
    let answers = output.lines().filter_map(|line| line.strip_prefix("=|"));
    // No function of SQLite's tells the checkpoint's size, only the pragma.
    let answers: Vec<&str> = answers.chain(output.lines().last()).collect();
    let synchronous = match setting["synchronous"].as_str() {
        Some("off") => "0",
        Some("normal") => "1",
        Some("full") => "2",
        other => anyhow::bail!("synchronous {other:?}"),
    };
    let text = |name: &str| setting[name].to_string().trim_matches('"').to_owned();
    let expected = [
        "2001".to_owned(),
        text("journal"),
        text("page_bytes"),
        synchronous.to_owned(),
        "ok".to_owned(),
        text("checkpoint_pages"),
    ];
    println!("    {key}: {answers:?}");
    anyhow::ensure!(answers == expected, "{answers:?}, expected {expected:?}");
    if let Some(sync) = setting["waldio_sync"].as_str() {
        let script = format!("{}\nPRAGMA waldio_sync;", lines.join("\n"));
        let output = sqlite3(directory, opened, &script)?;
        anyhow::ensure!(output.lines().last() == Some(sync), "{output}");
    }
    Ok(())
}
