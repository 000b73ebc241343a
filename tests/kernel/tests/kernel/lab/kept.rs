//! What is kept, gone on with, and joined.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use iostep_kernel_tests::iostep::{self, Running};
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use iostep_model::lab::{CellResult, State};
use rustix::process::{Pid, Signal};
use serde_json::Value;

use super::{Bench, LOOP, QUICK, at, ensure_complete};
use crate::case::Case;
use crate::faults::wait_until;
use crate::stage::{self, Stage};

pub fn cases() -> Vec<Case> {
    let terminal = [LOOP, &[Requirement::Program("script")]].concat();
    vec![
        Case::new(
            "repetitions are counted, and the report is JSON and a page",
            LOOP,
            repeated,
        ),
        Case::new("a terminal is shown how far it is", terminal, progress),
        Case::new(
            "a signal keeps what is there and takes the rest down",
            LOOP,
            interrupted,
        ),
        Case::new("after kill -9 the same command goes on", LOOP, killed),
        Case::new(
            "what kill -9 leaves is swept by the next run",
            stage::requirements(Kind::Ext4),
            swept,
        ),
    ]
}

/// When each result was written.
fn times(results: &Path) -> anyhow::Result<BTreeMap<PathBuf, std::time::SystemTime>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(results.join("cells"))? {
        let entry = entry?;
        all.insert(entry.path(), entry.metadata()?.modified()?);
    }
    Ok(all)
}

fn repeated() -> anyhow::Result<()> {
    let bench = Bench::new(QUICK)?;
    let page = bench.path("page.html");
    let page_text = page.to_string_lossy().into_owned();
    let flags = ["--repeat", "3", "--json", "--html", &page_text];
    let outcome = bench.run("out", &flags)?.status(0)?;
    let report: Value = serde_json::from_str(&outcome.stdout)?;
    anyhow::ensure!(report.is_object(), "{report}");
    let html = std::fs::read_to_string(&page)?;
    anyhow::ensure!(html.starts_with("<!doctype html>"), "no page");
    let all = bench.read("out")?;
    let runs: Vec<usize> = all.iter().map(|result| result.runs.len()).collect();
    anyhow::ensure!(runs == [3; 4], "{runs:?}");
    // Cells with another number of repetitions are other cells.
    bench.run("out", &["--shard", "1/4"])?.status(0)?;
    let all = bench.read("out")?;
    anyhow::ensure!(all.len() == 5, "{} results", all.len());
    for table in ["cells.parquet", "classes.parquet"] {
        let bytes = std::fs::read(bench.path("out").join(table))?;
        let is_parquet = bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1");
        anyhow::ensure!(is_parquet, "{table} is no table");
    }
    Ok(())
}

fn progress() -> anyhow::Result<()> {
    let bench = Bench::new(QUICK)?;
    let words: Vec<String> = bench
        .words("out", &[])
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let line = format!("{} {}", iostep::binary()?.display(), words.join(" "));
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .output()?;
    let shown = String::from_utf8_lossy(&output.stdout);
    anyhow::ensure!(output.status.success(), "{shown}");
    anyhow::ensure!(shown.contains("of 4 cells"), "{shown}");
    Ok(())
}

/// Loop devices that have a file behind them.
fn attached() -> anyhow::Result<usize> {
    let mut count = 0;
    for entry in std::fs::read_dir("/sys/block")? {
        count += usize::from(entry?.path().join("loop/backing_file").exists());
    }
    Ok(count)
}

/// A quick cell and one that takes a minute.
const LONG: &str = "[[cells]]\nworkload='file'\nfilesystem='ext4'\nsize='16KiB'\n\
                    time=[0.1, 60]\ndevice-size='64MiB'\n";

/// Runs [`LONG`] and sends a signal while the second cell runs. The exit status, and every result.
fn ended_by(
    bench: &Bench,
    results: &str,
    signal: Signal,
) -> anyhow::Result<(Option<i32>, Vec<CellResult>)> {
    let before = attached()?;
    let running = Running::start(bench.words(results, &["--on", "tmpfs"]))?;
    let cells = bench.path(results).join("cells");
    let first_is_there = || std::fs::read_dir(&cells).is_ok_and(|all| all.count() == 1);
    let second_runs = || attached().is_ok_and(|now| now > before);
    wait_until("the second cell", || first_is_there() && second_runs())?;
    running.signal(signal)?;
    let code = running.finish()?.code;
    wait_until("the loop devices to go", || {
        attached().is_ok_and(|now| now <= before)
    })?;
    Ok((code, bench.read(results)?))
}

fn interrupted() -> anyhow::Result<()> {
    let bench = Bench::new(LONG)?;
    for signal in [Signal::INT, Signal::TERM] {
        let (code, all) = ended_by(&bench, &format!("{signal:?}"), signal)?;
        let states: Vec<&State> = all.iter().map(|result| &result.state).collect();
        println!("    {signal:?}: {code:?}, {states:?}");
        anyhow::ensure!(code == Some(1), "{code:?}");
        anyhow::ensure!(states == [&State::Complete, &State::Interrupted]);
    }
    Ok(())
}

fn killed() -> anyhow::Result<()> {
    let in_memory = || std::fs::read_dir("/dev/shm").map_or(0, Iterator::count);
    let before = in_memory();
    let bench = Bench::new(LONG)?;
    let (code, all) = ended_by(&bench, "out", Signal::KILL)?;
    anyhow::ensure!(code.is_none(), "{code:?}");
    anyhow::ensure!(in_memory() <= before, "something was left in memory");
    anyhow::ensure!(all.len() == 1, "{} results", all.len());
    let before = times(&bench.path("out"))?;
    // What it was about to do is done now, as far as a second allows.
    bench
        .run("out", &["--on", "tmpfs", "--time-limit", "1s"])?
        .status(1)?;
    let all = bench.read("out")?;
    ensure_complete(at(&all, "time", "0.1")?)?;
    let second = &at(&all, "time", "60")?.state;
    let ended = matches!(second, State::Failed { reason } if reason.contains("within 1 seconds"));
    anyhow::ensure!(ended, "{second:?}");
    let after = times(&bench.path("out"))?;
    anyhow::ensure!(
        before
            .iter()
            .all(|(path, time)| after.get(path) == Some(time))
    );
    Ok(())
}

/// Directories that a run made for itself.
fn made_by(pid: Pid) -> Vec<PathBuf> {
    let own =
        ["iostep-mount-", "iostep-cell-"].map(|kind| format!("{kind}{}-", pid.as_raw_nonzero()));
    let places = [std::env::temp_dir(), PathBuf::from("/dev/shm")];
    let entries = places
        .iter()
        .filter_map(|place| std::fs::read_dir(place).ok());
    let names = entries.flatten().flatten().map(|entry| entry.path());
    names
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            own.iter().any(|own| name.starts_with(own))
        })
        .collect()
}

/// True while a process is told to write there.
fn is_written_to(directory: &Path) -> bool {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let directory = directory.to_string_lossy();
    lines
        .into_iter()
        .any(|line| String::from_utf8_lossy(&line).contains(&*directory))
}

fn swept() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let directory = stage.root().to_string_lossy();
    for on in ["tmpfs", &directory] {
        let bench = Bench::new(LONG)?;
        let running = Running::start(bench.words("out", &["--on", on]))?;
        let (pid, cells) = (running.pid(), bench.path("out").join("cells"));
        wait_until("the second cell", || {
            let first_is_there = std::fs::read_dir(&cells).is_ok_and(|all| all.count() == 1);
            first_is_there && made_by(pid).iter().any(|path| is_written_to(path))
        })?;
        running.signal(Signal::KILL)?;
        running.finish()?;
        let left = made_by(pid);
        println!("    {left:?}");
        anyhow::ensure!(!left.is_empty(), "nothing was left");
        wait_until("the end of its child", || {
            !left.iter().any(|path| is_written_to(path))
        })?;
        let flags = ["--on", on, "--time-limit", "1s"];
        bench.run("out", &flags)?.status(1)?;
        anyhow::ensure!(made_by(pid).is_empty(), "{left:?}: not swept");
    }
    Ok(())
}
