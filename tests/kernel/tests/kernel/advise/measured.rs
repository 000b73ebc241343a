//! What advise measures, and that it ends cleanly.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use iostep_kernel_tests::iostep::{self, Running};
use rustix::process::Signal;
use serde_json::Value;

use super::{
    CONTENT, advice, attempt, ensure_same, ext4, files, needs, number, row, sqlite3, words,
};
use crate::case::Case;
use crate::faults::wait_until;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new(
            "every candidate is measured, and logs write less than journals",
            needs(),
            candidates,
        ),
        Case::new(
            "for wear a log is named also where no run saw its second checkpoint",
            needs(),
            wear,
        ),
        Case::new(
            "Ctrl-C keeps what was measured, marks it, and cleans up",
            needs(),
            interrupted,
        ),
    ]
}

/// In the order of the page about them.
const KEYS: [&str; 14] = [
    "truncate-full",
    "persist-full",
    "wal-full",
    "wal-full-checkpoint-250",
    "wal-full-checkpoint-4000",
    "wal-normal",
    "waldio-full",
    "waldio-persistent",
    "waldio-group",
    "waldio-normal",
    "delete-normal",
    "delete-off",
    "mount-barrier=0",
    "mount-data=writeback",
];

fn candidates() -> anyhow::Result<()> {
    let stage = ext4()?;
    let database = stage.root().join("app.db");
    // Rows in one tree, so that a page or two are a commit's.
    let script = "CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(100));";
    sqlite3(stage.root(), &database, script)?;
    let before = files(stage.root())?;
    let found = advice(&database, "")?;
    ensure_same(stage.root(), &before)?;
    let rows = found["rows"].as_array().context("no rows")?;
    anyhow::ensure!(rows.len() == KEYS.len(), "{} rows", rows.len());
    for key in KEYS {
        let row = row(&found, key)?;
        let expected = match key.starts_with("mount") {
            true => "not_measured",
            false => "measured",
        };
        anyhow::ensure!(row["state"]["kind"] == expected, "{key}: {}", row["state"]);
        if expected == "measured" {
            let gain = &row["gain"];
            let [low, high] = ["low", "high"].map(|end| gain["interval"][end].as_f64());
            anyhow::ensure!(low < high && gain["turns"] == 2, "{key}: {gain}");
        }
    }
    let of = |key: &str, name: &str| number(row(&found, key)?, name);
    let journal = of("present", "written_bytes")?;
    for key in ["wal-full", "waldio-full", "wal-normal"] {
        let written = of(key, "written_bytes")?;
        println!("    {key}: {written:.0} B a commit, delete: {journal:.0} B");
        anyhow::ensure!(written < journal, "{key}: {written} B, delete: {journal} B");
    }
    // A durable commit of a log is a flush, or a write with FUA, that of a journal is several.
    anyhow::ensure!(of("wal-full", "flushes")? < of("present", "flushes")?);
    anyhow::ensure!(of("delete-off", "flushes")? < 0.1);
    for key in ["wal-normal", "delete-off", "waldio-group"] {
        anyhow::ensure!(row(&found, key)?["durability"]["power_loss"] != "nothing");
    }
    Ok(())
}

/// Commits of bench that hold several checkpoints of 1000 pages.
const CYCLES: &str = "--transactions 3000 --journal wal --wal-file steady --json";

fn wear() -> anyhow::Result<()> {
    let stage = ext4()?;
    let database = stage.root().join("app.db");
    let script = "CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(100));";
    sqlite3(stage.root(), &database, script)?;
    let keys = "wal-full,persist-full,waldio-full";
    // Runs of 50 ms, and turns enough for a narrow interval.
    let flags = format!("--goal wear --rounds 4 --time 400ms --json --candidates {keys}");
    let outcome = attempt(&database, &flags)?.success()?;
    let found: Value = serde_json::from_str(&outcome.stdout)?;
    let wal = row(&found, "wal-full")?;
    anyhow::ensure!(wal["device"]["at_most"] == true, "a run saw a cycle: {wal}");
    let recommended = &found["recommended"];
    let is_log = recommended == "wal-full" || recommended == "waldio-full";
    anyhow::ensure!(is_log, "{recommended} is recommended");
    // What whole cycles write is no more than what was said, and no less than the runs alone.
    let mut words = vec!["bench".into(), "sqlite".into(), stage.root().to_owned()];
    words.extend(CYCLES.split_whitespace().map(PathBuf::from));
    let outcome = iostep::run(words)?.success()?;
    let document: Value = serde_json::from_str(&outcome.stdout)?;
    let of_cycles = document["summary"]["runs"][0]["device"]["written_bytes_per_operation"]
        .as_f64()
        .context("nothing counted")?;
    let said = number(wal, "written_bytes")?;
    println!("    a commit of whole cycles: {of_cycles:.0} B, at most {said:.0} B");
    anyhow::ensure!(of_cycles <= said * 1.02, "{of_cycles} B, at most {said} B");
    let journal = number(row(&found, "persist-full")?, "written_bytes")?;
    anyhow::ensure!(of_cycles < journal, "{of_cycles} B, persist: {journal} B");
    Ok(())
}

fn interrupted() -> anyhow::Result<()> {
    let stage = ext4()?;
    let database = stage.root().join("app.db");
    sqlite3(stage.root(), &database, CONTENT)?;
    let before = files(stage.root())?;
    for (signal, flags) in [
        (Signal::INT, "--time 5"),
        (Signal::TERM, "--time 5"),
        (Signal::INT, "--time 1 --rounds 10 --candidates wal-full"),
    ] {
        let running = Running::start(words(&database, &format!("{flags} --json")))?;
        wait_until("a directory of its own", || {
            files(stage.root()).is_ok_and(|files| files.len() > before.len())
        })?;
        // Long enough for some turns of the short runs; the longer ones are in their first.
        std::thread::sleep(Duration::from_millis(700));
        running.signal(signal)?;
        let outcome = running.finish()?.status(1)?;
        let found: Value = serde_json::from_str(&outcome.stdout)?;
        anyhow::ensure!(found["interrupted"] == true, "{}", outcome.stdout);
        let rows = found["rows"].as_array().context("no rows")?;
        anyhow::ensure!(!rows.is_empty(), "no rows");
        ensure_same(stage.root(), &before)?;
    }
    Ok(())
}
