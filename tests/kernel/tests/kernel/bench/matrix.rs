//! Job files: cells that end badly, and a matrix that goes on where it was.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use anyhow::Context;
use iostep_kernel_tests::iostep::{self, Running};
use iostep_model::bench::{Document, Job};
use rustix::process::{Pid, Signal, kill_process};

use super::{TMPFS, brief, ensure_removed, has_thread, wait_for};
use crate::bad_input::TempMount;
use crate::case::Case;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("a matrix does what its job file says", TMPFS, every_cell),
        Case::new(
            "a matrix goes on when the process of a cell is killed",
            TMPFS,
            killed_cell,
        ),
        Case::new("a killed matrix goes on where it was", TMPFS, killed_matrix),
        Case::new("a failed cell is marked", TMPFS, failed_cell),
    ]
}

/// A directory to work in, and one for results.
struct Place {
    mount: TempMount,
}

impl Place {
    fn new() -> anyhow::Result<Place> {
        let mount = TempMount::new("tmpfs", "")?;
        std::fs::create_dir(mount.path().join("target"))?;
        Ok(Place { mount })
    }

    fn target(&self) -> PathBuf {
        self.mount.path().join("target")
    }

    /// The words that run a job file, whose jobs all have this target.
    fn words(&self, jobs: &str) -> anyhow::Result<Vec<PathBuf>> {
        let file = self.mount.path().join("jobs.toml");
        let target = self.target();
        let defaults = format!("[defaults]\ntarget = \"{}\"\n", target.display());
        std::fs::write(&file, format!("{defaults}{jobs}"))?;
        let results = self.mount.path().join("results");
        Ok(vec![
            "bench".into(),
            "run".into(),
            file,
            "--results".into(),
            results,
        ])
    }

    /// Every complete result with its inode, by its name.
    fn results(&self) -> anyhow::Result<BTreeMap<String, (u64, Document)>> {
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir(self.mount.path().join("results"))? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "json") {
                let name = path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                let inode = path.metadata()?.ino();
                found.insert(name, (inode, Document::read(&path)?));
            }
        }
        Ok(found)
    }
}

const CROSSED: &str = r#"
[[job]]
name = "files"
workload = "file"
size = "64KiB"
access = ["write", "random-write"]
threads = [1, 2]
verify = true

[[job]]
name = "rows"
workload = "sqlite"
journal = ["wal", "delete"]
transactions = 7
"#;

fn every_cell() -> anyhow::Result<()> {
    let place = Place::new()?;
    let words = place.words(CROSSED)?;
    let outcome = iostep::run(&words)?.success()?;
    println!("{}", outcome.stdout);
    let results = place.results()?;
    anyhow::ensure!(results.len() == 6, "{:?}", results.keys());
    let mut asked = Vec::new();
    for (_, document) in results.values() {
        asked.push(match &document.job {
            Job::File(job) => format!("{} {}", job.access, job.threads),
            Job::Sqlite(job) => format!("{:?} {}", job.journal, job.transactions),
        });
        let run = super::only_run(document)?;
        let expected = match &document.job {
            Job::File(job) => 16 * u64::from(job.threads),
            Job::Sqlite(job) => job.transactions,
        };
        anyhow::ensure!(
            run.operations == expected,
            "{:?}: {}",
            document.job,
            brief(run)
        );
    }
    asked.sort();
    let expected = [
        "Delete 7",
        "Wal 7",
        "random-write 1",
        "random-write 2",
        "write 1",
        "write 2",
    ];
    anyhow::ensure!(asked == expected, "{asked:?}");
    // Nothing is left to be done.
    let again = iostep::run(words.iter().chain([&"--json".into()]))?.success()?;
    let rows: serde_json::Value = serde_json::from_str(&again.stdout)?;
    anyhow::ensure!(rows.as_array().map(Vec::len) == Some(6), "{rows}");
    let inodes = |found: &BTreeMap<String, (u64, Document)>| -> Vec<u64> {
        found.values().map(|(inode, _)| *inode).collect()
    };
    anyhow::ensure!(
        inodes(&place.results()?) == inodes(&results),
        "cells ran again"
    );
    ensure_removed(&place.target())
}

/// Processes whose parent is this one.
fn children(parent: Pid) -> Vec<Pid> {
    let id = parent.as_raw_nonzero();
    let list = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
    let list = list.unwrap_or_default();
    let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
    pids.filter_map(Pid::from_raw).collect()
}

/// The child that measures, as soon as there is one.
fn measuring_child(matrix: &Running) -> anyhow::Result<Pid> {
    let mut found = None;
    wait_for(matrix, "a cell", || {
        let all = children(matrix.pid());
        found = all.into_iter().find(|pid| has_thread(*pid, "load-0"));
        found.is_some()
    })?;
    found.context("no cell")
}

/// Cells of a moment, of which the second is slow.
const SLOW_MIDDLE: &str = r#"
[[job]]
name = "first"
workload = "file"
size = "64KiB"

[[job]]
name = "middle"
workload = "file"
size = "64KiB"
think = "20ms"
repeat = 5

[[job]]
name = "last"
workload = "file"
size = "64KiB"
"#;

/// Waits until the first cell is done and the slow one is at work.
fn slow_cell(place: &Place, matrix: &Running) -> anyhow::Result<Pid> {
    wait_for(matrix, "the first result", || {
        place.results().is_ok_and(|found| !found.is_empty())
    })?;
    measuring_child(matrix)
}

fn ensure_complete(place: &Place, expected: &[&str]) -> anyhow::Result<()> {
    let results = place.results()?;
    let names: Vec<&str> = results
        .keys()
        .filter_map(|name| Some(name.split_once('-')?.0))
        .collect();
    anyhow::ensure!(names == expected, "{names:?}");
    Ok(())
}

fn killed_cell() -> anyhow::Result<()> {
    let place = Place::new()?;
    let words = place.words(SLOW_MIDDLE)?;
    let matrix = Running::start(&words)?;
    kill_process(slow_cell(&place, &matrix)?, Signal::KILL)?;
    let outcome = matrix.finish()?.status(1)?;
    println!("    {}", outcome.stderr.trim_end());
    anyhow::ensure!(outcome.stderr.contains("middle"), "{}", outcome.stderr);
    ensure_complete(&place, &["first", "last"])?;
    let before = place.results()?;
    iostep::run(&words)?.success()?;
    ensure_complete(&place, &["first", "last", "middle"])?;
    let after = place.results()?;
    for (name, (inode, _)) in &before {
        anyhow::ensure!(after[name].0 == *inode, "{name} ran again");
    }
    ensure_removed(&place.target())
}

fn killed_matrix() -> anyhow::Result<()> {
    for signal in [Signal::KILL, Signal::TERM, Signal::INT] {
        let place = Place::new()?;
        let words = place.words(SLOW_MIDDLE)?;
        let matrix = Running::start(&words)?;
        let cell = slow_cell(&place, &matrix)?;
        matrix.signal(signal)?;
        let outcome = matrix.finish()?;
        let expected = (signal != Signal::KILL).then_some(1);
        anyhow::ensure!(outcome.code == expected, "{:?}", outcome.code);
        // The cell ends with its matrix, and cleans up.
        let process = PathBuf::from(format!("/proc/{}", cell.as_raw_nonzero()));
        crate::faults::wait_until("the cell's end", || !process.exists())?;
        ensure_complete(&place, &["first"])?;
        ensure_removed(&place.target())?;
        let inode = place.results()?.into_values().next().context("none")?.0;
        iostep::run(&words)?.success()?;
        ensure_complete(&place, &["first", "last", "middle"])?;
        let results = place.results()?;
        let first = results.iter().find(|(name, _)| name.starts_with("first"));
        let kept = first.is_some_and(|(_, (now, _))| *now == inode);
        anyhow::ensure!(kept, "the first cell ran again");
        for (name, (_, document)) in results {
            let runs = if name.starts_with("middle") { 5 } else { 1 };
            anyhow::ensure!(
                document.runs.len() == runs,
                "{name}: {}",
                document.runs.len()
            );
        }
    }
    Ok(())
}

fn failed_cell() -> anyhow::Result<()> {
    let place = Place::new()?;
    // A tmpfs has no O_DIRECT.
    let jobs = r#"
        [[job]]
        name = "cells"
        workload = "file"
        size = "64KiB"
        transfer = ["direct", "buffered"]
    "#;
    let mut words = place.words(jobs)?;
    words.push("--json".into());
    let outcome = iostep::run(&words)?.status(1)?;
    anyhow::ensure!(outcome.stderr.contains("O_DIRECT"), "{}", outcome.stderr);
    let rows: serde_json::Value = serde_json::from_str(&outcome.stdout)?;
    let complete: Vec<bool> = rows
        .as_array()
        .context("no list")?
        .iter()
        .filter_map(|row| row["complete"].as_bool())
        .collect();
    anyhow::ensure!(complete == [false, true], "{rows}");
    anyhow::ensure!(place.results()?.len() == 1, "a failed cell has a result");
    Ok(())
}
