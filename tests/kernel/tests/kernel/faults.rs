//! What goes wrong while tracing.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context;
use iostep_kernel_tests::compare::Comparison;
use iostep_kernel_tests::facts::Facts;
use iostep_kernel_tests::iostep::{self, Running};
use iostep_kernel_tests::requirement::Requirement;
use iostep_kernel_tests::score::Score;
use iostep_kernel_tests::truth::Truth;
use iostep_kernel_tests::written::Written;
use iostep_lab::Kind;
use iostep_model::manifest::State;
use iostep_model::store;
use iostep_model::table::Trace;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tempfile::TempDir;

use crate::bad_input::TempMount;
use crate::case::Case;
use crate::stage::{self, Stage};

/// How long something that will surely come may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut needs = stage::requirements(Kind::Ext4);
    needs.push(Requirement::Btf);
    let case = |name: &str, body: fn() -> anyhow::Result<()>| Case::new(name, needs.clone(), body);
    vec![
        case("a command that does not exist is an error", no_such_command),
        case(
            "a command that fails is recorded with its status",
            failing_command,
        ),
        case(
            "a command that dies by a signal is recorded with it",
            dying_command,
        ),
        case(
            "a child that outlives the command is traced to its end",
            outliving_child,
        ),
        case(
            "without a command, a trace ends after its duration",
            duration,
        ),
        case("Ctrl-C keeps what was recorded", interrupted),
        case("what a signal cut short has the signal's status", signals),
        case("after kill -9, report recovers what was recorded", killed),
        case(
            "a full disk is an error, and the command goes on",
            full_disk,
        ),
        case(
            "a trace on the traced device marks its own I/O",
            trace_on_its_own_device,
        ),
        case("two traces of one device see the same", two_traces),
        case("a loop device detached meanwhile does no harm", detached),
    ]
}

/// A filesystem and a place for a trace.
struct Fixture {
    stage: Stage,
    directory: TempDir,
}

impl Fixture {
    fn new() -> anyhow::Result<Fixture> {
        Ok(Fixture {
            stage: Stage::new(Kind::Ext4, &[], "")?,
            directory: tempfile::tempdir()?,
        })
    }

    fn output(&self) -> PathBuf {
        self.directory.path().join("run.iostep")
    }

    fn shell(&self, flags: &[&str], script: &str) -> Vec<String> {
        let command = ["sh", "-c", script].map(str::to_owned);
        self.stage.trace(&self.output(), flags, &command)
    }
}

/// The share of the stamped bytes on the image that a trace gives to their file.
fn files_score(ground: Fixture, trace: &Trace) -> anyhow::Result<Score> {
    let remains = ground.stage.unmount()?;
    let (stamps, truth) = (remains.image.stamp_map()?, Truth::default());
    let written = Written::of(trace);
    let facts: &Facts = &remains.facts;
    Ok(Comparison::new(trace, &written, facts, &stamps, &truth).files())
}

/// Waits for something that another process does.
pub fn wait_until(what: &str, mut ready: impl FnMut() -> bool) -> anyhow::Result<()> {
    let began = Instant::now();
    while !ready() {
        anyhow::ensure!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn no_such_command() -> anyhow::Result<()> {
    let ground = Fixture::new()?;
    let command = ["/no/such/program".to_owned()];
    let words = ground.stage.trace(&ground.output(), &[], &command);
    iostep::run(words)?.refused(&[1, 2], "/no/such/program")?;
    anyhow::ensure!(
        !ground.output().exists(),
        "{} was left",
        ground.output().display()
    );
    Ok(())
}

fn failing_command() -> anyhow::Result<()> {
    let ground = Fixture::new()?;
    let outcome = iostep::run(ground.shell(&[], "exit 7"))?;
    println!("    status {:?}", outcome.code);
    anyhow::ensure!(outcome.code == Some(7), "{:?}", outcome.code);
    anyhow::ensure!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    let command = store::read(&ground.output())?.manifest.command;
    let command = command.context("the manifest has no command")?;
    anyhow::ensure!(command.exit_status == Some(7), "{command:?}");
    Ok(())
}

fn dying_command() -> anyhow::Result<()> {
    let ground = Fixture::new()?;
    let outcome = iostep::run(ground.shell(&[], "kill -SEGV $$"))?;
    println!("    status {:?}", outcome.code);
    anyhow::ensure!(outcome.code == Some(128 + 11), "{:?}", outcome.code);
    anyhow::ensure!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    let command = store::read(&ground.output())?.manifest.command;
    let command = command.context("the manifest has no command")?;
    anyhow::ensure!(command.signal == Some(11), "{command:?}");
    Ok(())
}

/// A process that a test started; it is killed, if it still lives, when the value goes. By a
/// descriptor: the number may be another's by then.
struct Stray(OwnedFd);

impl Stray {
    fn read(path: &Path) -> anyhow::Result<Stray> {
        let text = std::fs::read_to_string(path)?;
        let pid = Pid::from_raw(text.trim().parse()?).context("no process has id 0")?;
        Ok(Stray(pidfd_open(pid, PidfdFlags::empty())?))
    }
}

impl Drop for Stray {
    fn drop(&mut self) {
        // ESRCH if it has ended, which is as good.
        let _ = pidfd_send_signal(&self.0, Signal::KILL);
    }
}

fn outliving_child() -> anyhow::Result<()> {
    let ground = Fixture::new()?;
    let words = ground.stage.workload(&["append-fsync"]).join(" ");
    // The command itself ends at once.
    let script = format!("(sleep 1; exec {words}) <&- >&- 2>&- &");
    let outcome = iostep::run(ground.shell(&["--settle"], &script))?.success()?;
    println!("    {}", outcome.stderr.trim_end());
    anyhow::ensure!(
        outcome.stderr.contains("go on"),
        "nothing is said about the child"
    );
    let trace = store::read(&ground.output())?;
    files_score(ground, &trace)?.require("data to file", 99.9)
}

fn duration() -> anyhow::Result<()> {
    let ground = Fixture::new()?;
    let (root, output) = (ground.stage.root(), ground.output());
    let flags = ["--duration", "500ms"].map(Path::new);
    let words = [
        Path::new("trace"),
        root,
        Path::new("-o"),
        &output,
        flags[0],
        flags[1],
    ];
    iostep::run(words)?.success()?;
    let manifest = store::read(&output)?.manifest;
    anyhow::ensure!(manifest.command.is_none(), "{:?}", manifest.command);
    anyhow::ensure!(manifest.state == State::Complete, "{:?}", manifest.state);
    Ok(())
}

/// Starts a trace of a workload that then waits, until its first part is recorded.
fn start_and_wait(ground: &Fixture) -> anyhow::Result<(Running, Stray)> {
    let note = ground.directory.path().join("command.pid");
    let words = ground
        .stage
        .workload(&["append-fsync", "direct-4k"])
        .join(" ");
    // The shell's own id stays that of the sleep, which the note names.
    let script = format!(
        "{words} && echo $$ > {0}.new && mv {0}.new {0} && exec sleep 600",
        note.display()
    );
    let running = Running::start(ground.shell(&[], &script))?;
    wait_until("the workload", || note.exists())?;
    Ok((running, Stray::read(&note)?))
}

/// Starts a trace without a command, until it records.
fn start_open(ground: &Fixture, flags: &[&str]) -> anyhow::Result<Running> {
    let words = [Path::new("trace"), ground.stage.root(), Path::new("-o")];
    let output = ground.output();
    let flags = flags.iter().map(Path::new);
    let running = Running::start(words.into_iter().chain([&*output]).chain(flags))?;
    wait_until("the recording", || running.says("recording"))?;
    Ok(running)
}

fn signals() -> anyhow::Result<()> {
    const HOUR: &[&str] = &["--duration", "1h"];
    for (signal, cut) in [(Signal::INT, 0), (Signal::TERM, 143), (Signal::HUP, 129)] {
        for (flags, status) in [(&[][..], 0), (HOUR, cut)] {
            let ground = Fixture::new()?;
            let running = start_open(&ground, flags)?;
            running.signal(signal)?;
            running.finish()?.status(status)?;
            let state = store::read(&ground.output())?.manifest.state;
            anyhow::ensure!(state == State::Complete, "{state:?}");
        }
    }
    for (signal, status) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let ground = Fixture::new()?;
        let (running, _command) = start_and_wait(&ground)?;
        running.signal(signal)?;
        running.finish()?.status(status)?;
        let state = store::read(&ground.output())?.manifest.state;
        anyhow::ensure!(state == State::Complete, "{state:?}");
    }
    Ok(())
}

fn interrupted() -> anyhow::Result<()> {
    let ground = Fixture::new()?;
    let (running, _command) = start_and_wait(&ground)?;
    running.signal(Signal::INT)?;
    running.finish()?.success()?;
    let trace = store::read(&ground.output())?;
    anyhow::ensure!(
        trace.manifest.state == State::Complete,
        "{:?}",
        trace.manifest.state
    );
    anyhow::ensure!(trace.manifest.check.passed(), "{:?}", trace.manifest.check);
    files_score(ground, &trace)?.require("data to file", 99.9)
}

fn killed() -> anyhow::Result<()> {
    let ground = Fixture::new()?;
    let (running, _command) = start_and_wait(&ground)?;
    // At most the last second may be lost.
    std::thread::sleep(Duration::from_millis(1200));
    running.signal(Signal::KILL)?;
    running.finish()?;
    let output = ground.output();
    anyhow::ensure!(store::read(&output).is_err(), "tables exist already");
    let report = iostep::run([Path::new("report"), &output])?;
    println!(
        "    {:?}: {}",
        report.code,
        report.stdout.lines().next().unwrap_or("")
    );
    anyhow::ensure!(!report.stderr.contains("panicked"), "{}", report.stderr);
    let trace = store::read(&output).context("after report")?;
    anyhow::ensure!(
        trace.manifest.state == State::Recovered,
        "{:?}",
        trace.manifest.state
    );
    anyhow::ensure!(
        !output.join("events.log").exists(),
        "events.log is still there"
    );
    let first = report.stdout.lines().next().unwrap_or("");
    anyhow::ensure!(
        first.contains("the recorder was killed"),
        "the first line is: {first}"
    );
    files_score(ground, &trace)?.require("data to file", 99.9)
}

fn full_disk() -> anyhow::Result<()> {
    let ground = Fixture::new()?;
    let small = TempMount::new("tmpfs", "size=64k")?;
    let output = small.path().join("run.iostep");
    let done = ground.directory.path().join("done");
    let words = ground.stage.workload(&[]).join(" ");
    let script = format!("{words} && touch {}", done.display());
    let command = ["sh", "-c", &script].map(str::to_owned);
    let outcome = iostep::run(ground.stage.trace(&output, &[], &command))?;
    let outcome = outcome.refused(&[1], "No space left")?;
    for words in ["the command goes on", "is kept"] {
        anyhow::ensure!(outcome.stderr.contains(words), "{}", outcome.stderr);
    }
    wait_until("the command to end by itself", || done.exists())?;
    let kept = ground.output();
    std::fs::create_dir(&kept)?;
    for entry in std::fs::read_dir(&output)? {
        let name = entry?.file_name();
        let whole = name == "events.log" || name == "manifest.json";
        anyhow::ensure!(whole, "a half-written {name:?} was left");
        std::fs::copy(output.join(&name), kept.join(&name))?;
    }
    // Where there is room it is a trace.
    let report = iostep::run([Path::new("report"), "--json".as_ref(), &kept])?;
    let report: serde_json::Value = serde_json::from_str(&report.stdout)?;
    anyhow::ensure!(report.is_object(), "{report}");
    Ok(())
}

fn trace_on_its_own_device() -> anyhow::Result<()> {
    let ground = Fixture::new()?;
    let output = ground.stage.root().join("run.iostep");
    let workload = ground.stage.workload(&["append-fsync", "direct-big"]);
    iostep::run(ground.stage.trace(&output, &["--settle"], &workload))?.success()?;
    let trace = store::read(&output)?;
    let mut own = 0;
    for request in trace.requests.iter().filter(|r| r.by_tracer) {
        own += u64::from(request.bytes);
        for segment in trace.segments_of(request) {
            let path = segment
                .file
                .and_then(|f| trace.files[f as usize].path.as_deref());
            let stranger = path.is_some_and(|p| !p.starts_with("/run.iostep"));
            anyhow::ensure!(!stranger, "{path:?} counts as the tracer's");
        }
    }
    println!("    {own} bytes are the tracer's own");
    anyhow::ensure!(own > 0, "no I/O is marked as the tracer's");
    files_score(ground, &trace)?.require("data to file", 99.9)
}

fn two_traces() -> anyhow::Result<()> {
    let ground = Fixture::new()?;
    let inner = ground.directory.path().join("inner.iostep");
    let workload = ground.stage.workload(&["append-fsync", "direct-4k"]);
    let mut command = vec![iostep::binary()?.to_string_lossy().into_owned()];
    command.extend(ground.stage.trace(&inner, &["--settle"], &workload));
    let outer = ground.output();
    iostep::run(ground.stage.trace(&outer, &[], &command))?.success()?;
    let (outer, inner) = (store::read(&outer)?, store::read(&inner)?);
    for trace in [&outer, &inner] {
        anyhow::ensure!(trace.manifest.check.passed(), "{:?}", trace.manifest.check);
    }
    let bytes = |trace: &Trace| trace.manifest.check.completed.write.bytes;
    println!(
        "    {} bytes outside, {} inside",
        bytes(&outer),
        bytes(&inner)
    );
    anyhow::ensure!(bytes(&outer) >= bytes(&inner), "the longer trace has less");
    files_score(ground, &inner)?.require("data to file", 99.9)
}

fn detached() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let backing = directory.path().join("image");
    std::fs::File::create(&backing)?.set_len(16 << 20)?;
    let attached = Command::new("losetup")
        .args(["--find", "--show"])
        .arg(&backing)
        .output()?;
    let device = String::from_utf8(attached.stdout)?.trim().to_owned();
    anyhow::ensure!(attached.status.success(), "losetup: {}", attached.status);
    let output = directory.path().join("run.iostep");
    let script = format!(
        "dd if=/dev/zero of={device} bs=64k count=23 oflag=direct 2>/dev/null; losetup -d {device}"
    );
    let words = [
        "trace",
        &device,
        "-o",
        &output.to_string_lossy(),
        "--",
        "sh",
        "-c",
        &script,
    ];
    let outcome = iostep::run(words)?;
    println!("    {:?}: {}", outcome.code, outcome.stderr.trim_end());
    anyhow::ensure!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    let trace = store::read(&output)?;
    let written = trace.requests.iter().filter(|r| r.operation.is_write());
    let bytes: u64 = written.map(|r| u64::from(r.bytes)).sum();
    anyhow::ensure!(bytes == 23 * 65_536, "{bytes} bytes were kept");
    Ok(())
}
