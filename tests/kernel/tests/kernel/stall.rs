//! A reader that does not keep up: the buffer takes what it can hold, and what it cannot is told.

use std::path::{Path, PathBuf};

use anyhow::Context;
use iostep_kernel_tests::iostep::{self, Outcome, Running};
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::image::{LoopImage, Options};
use iostep_model::store;
use iostep_model::table::Trace;
use rustix::process::Signal;

use crate::case::Case;
use crate::faults::wait_until;

const NEEDS: &[Requirement] = &[
    Requirement::Root,
    Requirement::Btf,
    Requirement::Loop,
    Requirement::Program("fio"),
];

/// Small random writes, as many as the machine can.
const FIO: &str = "fio --name=load --rw=randwrite --bs=512 --direct=1 --ioengine=io_uring \
                   --iodepth=64 --randrepeat=1 --output=/dev/null";

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new(
            "a reader that stalls for 4 s loses nothing",
            NEEDS,
            four_seconds,
        ),
        Case::new(
            "lost events are the first thing that is said",
            NEEDS,
            too_long,
        ),
    ]
}

/// 200,000 events in a second, of which each write makes three.
fn four_seconds() -> anyhow::Result<()> {
    let stalled = Stalled::run(&[], "--time_based --runtime=4 --rate_iops=66000 --size=64m")?;
    let outcome = stalled.outcome.clone().success()?;
    let trace = stalled.trace()?;
    let check = &trace.manifest.check;
    println!("    {} writes without loss", trace.requests.len());
    anyhow::ensure!(check.passed(), "{check:?}\n{}", outcome.stdout);
    Ok(())
}

fn too_long() -> anyhow::Result<()> {
    let load = "--loops=8 --size=64m";
    let stalled = Stalled::run(&["--allow-loss"], load)?;
    let outcome = stalled.outcome.clone().success()?;
    let lost = stalled.trace()?.manifest.check.lost_events;
    anyhow::ensure!(
        lost > 0,
        "the buffer held everything; the test needs more load"
    );
    first_line_tells(&outcome)?;
    let report = iostep::run([Path::new("report"), &stalled.output])?.status(1)?;
    first_line_tells(&report)?;
    let json = iostep::run([Path::new("report"), &stalled.output, Path::new("--json")])?;
    let json = json.status(1)?.stdout;
    let value: serde_json::Value = serde_json::from_str(&json).context("report --json")?;
    anyhow::ensure!(value.is_object(), "no object");
    Ok(())
}

fn first_line_tells(outcome: &Outcome) -> anyhow::Result<()> {
    let first = outcome.stdout.lines().next().unwrap_or("");
    println!("    {first}");
    anyhow::ensure!(first.contains("lost"), "the first line is: {first}");
    Ok(())
}

/// A trace whose recorder was stopped while the load ran.
struct Stalled {
    outcome: Outcome,
    output: PathBuf,
    _directory: tempfile::TempDir,
}

impl Stalled {
    fn run(flags: &[&str], load: &str) -> anyhow::Result<Stalled> {
        let image = LoopImage::create(&Options::default())?;
        let device = image.device().to_string_lossy().into_owned();
        let directory = tempfile::tempdir()?;
        let output = directory.path().join("run.iostep");
        let place = directory.path().display();
        let script = format!(
            "touch {place}/ready; while [ ! -e {place}/go ]; do sleep 0.05; done; \
             {FIO} --filename={device} {load}; touch {place}/done"
        );
        let output_text = output.to_string_lossy();
        let mut words = vec!["trace", &device, "-o", &output_text];
        words.extend(flags);
        words.extend(["--", "sh", "-c", &script]);
        let running = Running::start(words)?;
        wait_until("the command", || directory.path().join("ready").exists())?;
        running.signal(Signal::STOP)?;
        std::fs::write(directory.path().join("go"), "")?;
        let loaded = wait_until("the load", || directory.path().join("done").exists());
        running.signal(Signal::CONT)?;
        loaded?;
        Ok(Stalled {
            outcome: running.finish()?,
            output,
            _directory: directory,
        })
    }

    fn trace(&self) -> anyhow::Result<Trace> {
        Ok(store::read(&self.output)?)
    }
}
