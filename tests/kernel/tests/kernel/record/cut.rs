//! What a recorder leaves that does not come to its end.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use iostep_kernel_tests::iostep::{self, Running};
use iostep_kernel_tests::requirement::Requirement;
use iostep_model::syscall::{Operation, Recording, text};
use rustix::process::{Pid, Signal, kill_process};

use crate::bad_input::TempMount;
use crate::case::Case;
use crate::faults::wait_until;

/// Both ways to record.
const WAYS: [&str; 2] = ["bpf", "ptrace"];

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let needs = [Requirement::Root, Requirement::Btf];
    let case = |name: &str, body: fn() -> anyhow::Result<()>| Case::new(name, needs, body);
    vec![
        case("a full disk ends the recording and not the program", full),
        case("a killed recorder leaves what it wrote", killed),
        case(
            "a recording for standard output is kept elsewhere until it is whole",
            standard_output,
        ),
        case("a program that is not there leaves nothing", not_there),
        case("a partial recording is not written over", taken),
        case(
            "what a run left that recorded nothing is used again",
            nothing_recorded,
        ),
    ]
}

fn record(way: &str, output: &Path, script: &str) -> Vec<PathBuf> {
    let mut words: Vec<PathBuf> = ["record", "--via", way, "-o"].map(PathBuf::from).into();
    words.push(output.to_owned());
    words.extend(["--", "sh", "-c", script].map(PathBuf::from));
    words
}

/// The trace that `iostep clean` makes of what is left.
fn recovered(partial: &Path) -> anyhow::Result<Recording> {
    let place = tempfile::tempdir()?;
    let trace = place.path().join("trace");
    let words = [Path::new("clean"), partial, Path::new("-o"), &trace];
    iostep::run(words)?.success()?;
    Ok(text::read(&trace)?)
}

/// Files whose names are numbers, as the recorded program made them one after the other.
fn made(recording: &Recording) -> Vec<u64> {
    let calls = recording.calls.iter();
    let paths = calls.filter_map(|call| match call.operation {
        Operation::Open { path, .. } => Some(recording.paths.get(path)),
        _ => None,
    });
    let last = |path: &[u8]| {
        let text = String::from_utf8_lossy(path).into_owned();
        text.rsplit('/').next()?.parse().ok()
    };
    paths.filter_map(last).collect()
}

fn are_the_first(made: &[u64]) -> bool {
    made.iter().copied().eq(1..=made.len() as u64)
}

fn full() -> anyhow::Result<()> {
    for way in WAYS {
        let (small, place) = (TempMount::new("tmpfs", "size=300k")?, tempfile::tempdir()?);
        let trace = small.path().join("trace");
        let script = format!(
            "cd {}; for i in $(seq 3000); do true > $i; done; echo yes > alive",
            place.path().display()
        );
        let outcome = iostep::run(record(way, &trace, &script))?.status(1)?;
        ensure!(fs::read_to_string(place.path().join("alive"))? == "yes\n");
        for words in ["stopped early", "is kept", "iostep clean", "No space left"] {
            ensure!(outcome.stderr.contains(words), "{way}: {}", outcome.stderr);
        }
        ensure!(!trace.exists(), "{way}: half a trace");
        let made = made(&recovered(&small.path().join("trace.partial"))?);
        println!("    {way}: {} of 3000", made.len());
        ensure!(are_the_first(&made) && made.len() > 100, "{made:?}");
    }
    Ok(())
}

fn killed() -> anyhow::Result<()> {
    for way in WAYS {
        let place = tempfile::tempdir()?;
        let of = |name: &str| place.path().join(name);
        let script = format!(
            "cd {}; for i in $(seq 200); do true > $i; done; echo $$ > ready; exec sleep 600",
            place.path().display()
        );
        let running = Running::start(record(way, &of("trace"), &script))?;
        wait_until("the program", || of("ready").exists())?;
        // Nothing but time hands what the kernel recorded to the recorder.
        wait_until("the recording", || {
            let partial = fs::read(of("trace.partial")).unwrap_or_default();
            partial.windows(5).any(|word| word == b"ready")
        })?;
        running.signal(Signal::KILL)?;
        ensure!(running.finish()?.code.is_none());
        let recording = recovered(&of("trace.partial"))?;
        ensure!(made(&recording).iter().copied().eq(1..=200), "{way}");
        let show = iostep::run([Path::new("trace-info"), &of("trace.partial")])?;
        show.refused(&[2], "iostep clean makes a trace of it")?;
        let program = fs::read_to_string(of("ready"))?;
        let program = program.trim();
        ensure!(!is_dead(program), "the program was ended");
        let program = Pid::from_raw(program.parse()?).context("a process")?;
        kill_process(program, Signal::KILL)?;
    }
    Ok(())
}

/// True for a process that has ended, if nobody has waited for it, too.
fn is_dead(process: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    !status.contains("State:") || status.contains("State:\tZ")
}

fn standard_output() -> anyhow::Result<()> {
    for way in WAYS {
        let (small, place) = (TempMount::new("tmpfs", "size=300k")?, tempfile::tempdir()?);
        let run = |steps: u32| {
            let script = format!(
                "cd {}; for i in $(seq {steps}); do true > $i; done",
                place.path().display()
            );
            let words = record(way, Path::new("-"), &script);
            let mut command = std::process::Command::new(iostep::binary()?);
            let command = command.args(words).env("TMPDIR", small.path());
            anyhow::Ok(iostep::Outcome::from(command.output()?))
        };
        let whole = run(10)?.success()?;
        let trace = place.path().join("whole");
        fs::write(&trace, whole.stdout)?;
        ensure!(made(&text::read(&trace)?).len() == 10, "{way}");
        ensure!(fs::read_dir(small.path())?.count() == 0, "{way}");
        let outcome = run(3000)?.status(1)?;
        ensure!(outcome.stdout.is_empty(), "{way}: half a trace");
        let mut left = fs::read_dir(small.path())?.flatten();
        let partial = left.next().context("nothing is left")?.path();
        let name = partial.display().to_string();
        ensure!(outcome.stderr.contains(&name), "{way}: {}", outcome.stderr);
        ensure!(are_the_first(&made(&recovered(&partial)?)), "{way}");
    }
    Ok(())
}

fn not_there() -> anyhow::Result<()> {
    for way in WAYS {
        let place = tempfile::tempdir()?;
        let trace = place.path().join("trace");
        let words = ["record", "--via", way, "-o"].map(PathBuf::from);
        let command = ["--", "/no/such/program"].map(PathBuf::from);
        let words = words.into_iter().chain([trace]).chain(command);
        iostep::run(words)?.refused(&[2], "/no/such/program")?;
        ensure!(fs::read_dir(place.path())?.count() == 0, "{way}");
    }
    Ok(())
}

fn taken() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let partial = place.path().join("trace.partial");
    fs::write(&partial, "precious")?;
    let ran = place.path().join("ran");
    let script = format!("touch {}", ran.display());
    let outcome = iostep::run(record("ptrace", &place.path().join("trace"), &script))?;
    outcome.refused(&[2], "trace.partial")?;
    ensure!(!ran.exists() && fs::read(&partial)? == b"precious");
    Ok(())
}

fn nothing_recorded() -> anyhow::Result<()> {
    for way in WAYS {
        let place = tempfile::tempdir()?;
        let (trace, partial) = (
            place.path().join("trace"),
            place.path().join("trace.partial"),
        );
        let words = record(way, &trace, "exec sleep 5");
        let running = Running::start(&words)?;
        wait_until("the file", || partial.exists())?;
        // It goes on, whatever it has recorded so far.
        iostep::run(&words)?.refused(&[2], "another run is writing it")?;
        running.signal(Signal::KILL)?;
        ensure!(running.finish()?.code.is_none());
        fs::write(&partial, "iostep calls 1\n")?;
        let outcome = iostep::run(record(way, &trace, "true"))?.success()?;
        let said = "a run that was killed before it recorded anything left it";
        ensure!(outcome.stderr.contains(said), "{way}: {}", outcome.stderr);
        ensure!(trace.exists() && !partial.exists(), "{way}");
    }
    Ok(())
}
