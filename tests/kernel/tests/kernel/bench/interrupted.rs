//! Signals in the middle.

use std::collections::BTreeSet;

use iostep_model::bench::RunState;
use rustix::process::Signal;

use super::{TMPFS, document, ensure_removed, only_run, start, threads_named, wait_for};
use crate::bad_input::TempMount;
use crate::case::Case;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new(
            "SIGINT and SIGTERM keep what was measured, and clean up",
            TMPFS,
            while_measuring,
        ),
        Case::new(
            "a signal is heard while threads pause",
            TMPFS,
            while_pausing,
        ),
        Case::new(
            "a signal between repetitions keeps the whole ones",
            TMPFS,
            while_repeating,
        ),
    ]
}

fn while_measuring() -> anyhow::Result<()> {
    for (workload, flags) in [
        ("file", "--size 1MiB --threads 4 --verify"),
        (
            "file",
            "--size 1MiB --threads 2 --transfer mmap --sync msync",
        ),
        ("file", "--size 1MiB --engine uring --depth 16 --verify"),
        ("sqlite", "--journal wal --threads 2 --verify"),
        (
            "sqlite",
            "--operation mix --rows 100 --shared --threads 3 --verify",
        ),
    ] {
        for signal in [Signal::INT, Signal::TERM] {
            let place = TempMount::new("tmpfs", "")?;
            let running = start(workload, place.path(), &format!("--time 60 {flags}"))?;
            std::thread::sleep(std::time::Duration::from_millis(150));
            running.signal(signal)?;
            let outcome = running.finish()?.status(1)?;
            let document = document(&outcome)?;
            let run = only_run(&document)?;
            println!("    {workload} {flags}: {} operations", run.operations);
            anyhow::ensure!(run.state == RunState::Interrupted, "{:?}", run.state);
            anyhow::ensure!(run.operations > 0, "{flags}: nothing was kept");
            anyhow::ensure!(run.failures.is_empty(), "{flags}: {:?}", run.failures);
            let wrong = run.verification.as_ref().map_or(0, |found| found.wrong);
            anyhow::ensure!(wrong == 0, "{flags}: {:?}", run.verification);
            ensure_removed(place.path())?;
        }
    }
    Ok(())
}

fn while_pausing() -> anyhow::Result<()> {
    for flags in [
        "--think 1h",
        "--rate 0.001",
        "--time 1h --rate 0.001",
        "--ramp 1h --time 1h",
    ] {
        let place = TempMount::new("tmpfs", "")?;
        let flags = format!("--size 1MiB {flags}");
        let running = start("file", place.path(), &flags)?;
        running.signal(Signal::INT)?;
        let document = document(&running.finish()?.status(1)?)?;
        let state = only_run(&document)?.state;
        anyhow::ensure!(state == RunState::Interrupted, "{flags}: {state:?}");
        ensure_removed(place.path())?;
    }
    Ok(())
}

fn while_repeating() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    let flags = "--size 64KiB --repeat 10000 --think 1ms";
    let running = start("file", place.path(), flags)?;
    // Each run has a thread of its own.
    let mut threads = BTreeSet::new();
    wait_for(&running, "four runs", || {
        threads.extend(threads_named(running.pid(), "load-0"));
        threads.len() >= 4
    })?;
    running.signal(Signal::TERM)?;
    let document = document(&running.finish()?.status(1)?)?;
    let runs = document.runs.len();
    let whole = document
        .runs
        .iter()
        .filter(|run| run.state == RunState::Complete);
    let whole = whole.count();
    println!("    {whole} whole runs of {runs}");
    anyhow::ensure!(whole >= 3, "{whole} whole runs");
    anyhow::ensure!(runs < 10_000, "the signal was not heard");
    anyhow::ensure!(runs - whole <= 1, "more than one is cut short");
    ensure_removed(place.path())
}
