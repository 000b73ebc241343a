//! What is printed and written: one JSON document, tables and a log.

use std::path::Path;

use anyhow::Context;
use iostep_kernel_tests::iostep;
use iostep_lab::Kind;
use iostep_model::bench::{Document, Step};
use serde_json::Value;

use super::{Fixture, TMPFS, attempt, brief, count, document, ground_needs, measure, only_run};
use crate::bad_input::TempMount;
use crate::case::Case;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("--json prints one document and no stray line", TMPFS, json),
        Case::new("a failed run is printed as JSON, too", TMPFS, failed_json),
        Case::new("the log has every operation", TMPFS, log),
        Case::new(
            "a result that cannot be written is an error",
            TMPFS,
            no_output,
        ),
        Case::new("every repetition is in the result", TMPFS, repetitions),
        Case::new(
            "the profile runs the original's buttons",
            ground_needs(Kind::Ext4, &[]),
            profile,
        ),
    ]
}

const WORKLOADS: [(&str, &str); 3] = [
    ("file", "--size 256KiB --threads 2"),
    ("file", "--size 256KiB --access random-read --cache warm"),
    ("sqlite", "--transactions 20"),
];

fn json() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    for (workload, flags) in WORKLOADS {
        let outcome = attempt(workload, place.path(), &format!("{flags} --json"))?.success()?;
        // A parser of one document refuses anything behind it.
        let value: Value = serde_json::from_str(&outcome.stdout)?;
        let keys = value.as_object().context("no object")?.keys();
        let keys: Vec<&str> = keys.map(String::as_str).collect();
        anyhow::ensure!(keys == ["result", "summary"], "{keys:?}");
        anyhow::ensure!(outcome.stderr.is_empty(), "{flags}: {}", outcome.stderr);
        let found = document(&outcome)?;
        anyhow::ensure!(only_run(&found)?.operations > 0, "{flags}: no operations");
    }
    Ok(())
}

fn failed_json() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    // Before anything ran there is nothing to print.
    let outcome = attempt("file", place.path(), "--transfer direct --json")?.status(4)?;
    anyhow::ensure!(outcome.stdout.is_empty(), "{}", outcome.stdout);
    anyhow::ensure!(outcome.stderr.lines().count() == 1, "{}", outcome.stderr);
    Ok(())
}

fn log() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    let path = place.path().join("log.csv");
    for (workload, flags) in [
        (
            "file",
            "--size 256KiB --threads 2 --sync fdatasync --repeat 2",
        ),
        ("file", "--size 256KiB --engine uring --depth 8"),
        ("file", "--size 256KiB --transfer mmap"),
        ("sqlite", "--transactions 30 --threads 2"),
    ] {
        let flags = format!("{flags} --log {}", path.display());
        let document = measure(workload, place.path(), &flags)?;
        let text = std::fs::read_to_string(&path)?;
        let mut lines = text.lines();
        let header = lines.next().unwrap_or_default();
        anyhow::ensure!(header.contains("latency_ns"), "{header}");
        let rows: Vec<Vec<u64>> = lines
            .map(|line| line.split(',').map(str::parse).collect())
            .collect::<Result<_, _>>()?;
        let operations: u64 = document.runs.iter().map(|run| run.operations).sum();
        anyhow::ensure!(
            rows.len() as u64 == operations,
            "{flags}: {} rows",
            rows.len()
        );
        let column = header.split(',').position(|name| name == "latency_ns");
        let column = column.context("no such column")?;
        let logged: u64 = rows.iter().map(|row| row[column]).sum();
        let step = if workload == "file" {
            Step::Total
        } else {
            Step::Transaction
        };
        let steps = document.runs.iter().flat_map(|run| &run.latencies);
        let summed: u64 = steps
            .filter(|latency| latency.step == step)
            .map(|latency| latency.histogram.sum_ns())
            .sum();
        anyhow::ensure!(logged == summed, "{flags}: {logged} ns, counted {summed}");
    }
    Ok(())
}

fn no_output() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    for flag in ["-o", "--html", "--log"] {
        let flags = format!("--size 64KiB {flag} /no/such/directory/file");
        let outcome = attempt("file", place.path(), &flags)?;
        println!("    {:?}: {}", outcome.code, outcome.stderr.trim_end());
        anyhow::ensure!(matches!(outcome.code, Some(1 | 2)), "{:?}", outcome.code);
        let error = &outcome.stderr;
        anyhow::ensure!(error.contains("/no/such/directory"), "{error}");
        super::ensure_removed(place.path())?;
    }
    Ok(())
}

fn repetitions() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    for (workload, flags) in WORKLOADS {
        let document = measure(workload, place.path(), &format!("{flags} --repeat 3"))?;
        let operations: Vec<u64> = document.runs.iter().map(|run| run.operations).collect();
        anyhow::ensure!(operations == [operations[0]; 3], "{flags}: {operations:?}");
        for run in &document.runs {
            let step = if workload == "file" {
                Step::Total
            } else {
                Step::Transaction
            };
            anyhow::ensure!(count(run, step) == run.operations, "{}", brief(run));
        }
    }
    let document = measure(
        "file",
        place.path(),
        "--size 64KiB --until-spread 1000% --repeat 7",
    )?;
    let runs = document.runs.len();
    anyhow::ensure!((3..=7).contains(&runs), "{runs} runs");
    Ok(())
}

/// Buttons, and how many operations which of the original's tests makes by default.
const BUTTONS: &[(&str, &[(&str, u64)])] = &[
    (
        "--button all",
        &[
            ("seq-write", 2560),
            ("seq-read", 8192),
            ("rand-write", 2560),
            ("rand-read", 8192),
            ("insert", 100),
            ("update", 100),
            ("delete", 100),
        ],
    ),
    (
        "--button file",
        &[
            ("seq-write", 2560),
            ("seq-read", 8192),
            ("rand-write", 2560),
            ("rand-read", 8192),
        ],
    ),
    (
        "--button sqlite",
        &[("insert", 100), ("update", 100), ("delete", 100)],
    ),
    (
        "--button custom --tests rand-read,delete --read-size 1MiB --transactions 30",
        &[("rand-read", 256), ("delete", 30)],
    ),
];

fn profile() -> anyhow::Result<()> {
    // The original's defaults have O_DIRECT, too.
    let ground = Fixture::new(Kind::Ext4)?;
    for (button, expected) in BUTTONS {
        let mut words: Vec<&Path> = ["bench", "--profile", "mobibench"].map(Path::new).to_vec();
        words.push(ground.root());
        words.extend(button.split_whitespace().map(Path::new));
        let table = iostep::run(&words)?.success()?.stdout;
        anyhow::ensure!(table.lines().count() == expected.len() + 1, "{table}");
        words.push(Path::new("--json"));
        let tests: Value = serde_json::from_str(&iostep::run(&words)?.success()?.stdout)?;
        let mut found = Vec::new();
        for test in tests.as_array().context("no list")? {
            let name = test["test"].as_str().context("no name")?;
            let document = Document::parse(Path::new(name), test.to_string().as_bytes())?;
            found.push((name, only_run(&document)?.operations));
        }
        anyhow::ensure!(found == *expected, "{button}: {found:?}");
        super::ensure_removed(ground.root())?;
    }
    Ok(())
}
