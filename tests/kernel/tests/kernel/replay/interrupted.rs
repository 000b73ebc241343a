//! Signals in the middle of a replay.

use std::path::{Path, PathBuf};

use anyhow::Context;
use iostep_kernel_tests::iostep::{Outcome, Running};
use iostep_kernel_tests::requirement::Requirement;
use rustix::process::Signal;
use serde_json::Value;

use super::{ensure_removed, written_trace};
use crate::bad_input::TempMount;
use crate::case::Case;
use crate::faults::wait_until;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let tmpfs = [Requirement::Root, Requirement::Filesystem("tmpfs")];
    vec![
        Case::new(
            "SIGINT, SIGTERM and SIGHUP keep what was measured, and clean up",
            tmpfs,
            while_waiting_for_time,
        ),
        Case::new("a signal keeps the whole runs", tmpfs, while_repeating),
        Case::new(
            "a signal is heard while files are made",
            tmpfs,
            while_preparing,
        ),
    ]
}

struct Fixture {
    place: TempMount,
    directory: tempfile::TempDir,
}

impl Fixture {
    fn new(initial: &str, calls: &[&str]) -> anyhow::Result<Fixture> {
        let ground = Fixture {
            place: TempMount::new("tmpfs", "")?,
            directory: tempfile::tempdir()?,
        };
        let calls: Vec<String> = calls.iter().map(|call| (*call).to_owned()).collect();
        written_trace(&ground.trace(), 1, initial, &calls)?;
        Ok(ground)
    }

    fn trace(&self) -> PathBuf {
        self.directory.path().join("app.trace")
    }

    fn start(&self, flags: &[&str]) -> anyhow::Result<Running> {
        let trace = self.trace();
        let words = [
            Path::new("replay"),
            &trace,
            "--to".as_ref(),
            self.place.path(),
        ];
        let flags = flags.iter().chain(&["--json"]).map(Path::new);
        Running::start(words.into_iter().chain(flags))
    }

    /// Waits until a call made this.
    fn wait_for(&self, name: &str) -> anyhow::Result<()> {
        let path = self.place.path().join("iostep-replay").join(name);
        wait_until(name, || path.exists())
    }

    /// The runs of a replay that a signal ended.
    fn runs(&self, outcome: Outcome) -> anyhow::Result<Vec<Value>> {
        let outcome = outcome.status(1)?;
        ensure_removed(self.place.path())?;
        let document: Value = serde_json::from_str(&outcome.stdout)?;
        let runs = document["targets"][0]["runs"].as_array();
        let runs = runs.context("runs")?.iter();
        Ok(runs.map(|run| run["summary"].clone()).collect())
    }
}

fn while_waiting_for_time() -> anyhow::Result<()> {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let ground = Fixture::new(
            "",
            &[
                "0 10 t1 mkdir path=\"/made\" mode=0700 = 0",
                "3600000000000 10 t1 rmdir path=\"/made\" = 0",
            ],
        )?;
        let running = ground.start(&[])?;
        ground.wait_for("made")?;
        running.signal(signal)?;
        let runs = ground.runs(running.finish()?)?;
        let [run] = &runs[..] else {
            anyhow::bail!("{} runs", runs.len());
        };
        anyhow::ensure!(run["interrupted"] == true, "{run}");
        anyhow::ensure!(run["totals"]["done"] == 1, "{}", run["totals"]);
        anyhow::ensure!(run["skipped"][0]["reason"] == "interrupted", "{run}");
    }
    Ok(())
}

fn while_repeating() -> anyhow::Result<()> {
    let ground = Fixture::new(
        "",
        &[
            "0 10 t1 mkdir path=\"/made\" mode=0700 = 0",
            "20000000 10 t1 rmdir path=\"/made\" = 0",
        ],
    )?;
    let running = ground.start(&["--repeat", "10000"])?;
    let made = ground.place.path().join("iostep-replay/made");
    for _ in 0..3 {
        wait_until("a run", || made.exists())?;
        wait_until("its end", || !made.exists())?;
    }
    running.signal(Signal::TERM)?;
    let runs = ground.runs(running.finish()?)?;
    let whole = runs.iter().filter(|run| run["totals"]["same"] == 2).count();
    println!("    {whole} whole runs of {}", runs.len());
    anyhow::ensure!(whole >= 2, "{whole} whole runs");
    anyhow::ensure!(runs.len() < 10_000, "the signal was not heard");
    anyhow::ensure!(runs.len() - whole <= 1, "more than one is cut short");
    Ok(())
}

/// So many files that making them all takes seconds: a busy machine may let the test wait for its
/// turn while half a gigabyte is written.
fn while_preparing() -> anyhow::Result<()> {
    let file = |number: u32| {
        format!(
            "@initial file path=\"/{number}\" size={} content=data seen\n",
            200 << 20
        )
    };
    let initial: String = (0..20).map(file).collect();
    let ground = Fixture::new(&initial, &["0 10 t1 mkdir path=\"/made\" mode=0700 = 0"])?;
    let running = ground.start(&[])?;
    ground.wait_for("0")?;
    running.signal(Signal::INT)?;
    let runs = ground.runs(running.finish()?)?;
    anyhow::ensure!(runs.is_empty(), "{runs:?}");
    Ok(())
}
