//! `iostep record`, against strace: two ways to see the same calls.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use iostep_kernel_tests::iostep::{self, Outcome, Running};
use iostep_kernel_tests::requirement::Requirement;
use iostep_model::syscall::{
    self as calls, Call, InitialKind, OpenFlags, Operation, Recording, Syscall, text,
};
use tempfile::TempDir;

use crate::case::Case;
use crate::faults::wait_until;

mod cut;
mod odd;
mod overlay;
mod received;
mod strace;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/calls.c");

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let needs = [
        Requirement::Root,
        Requirement::Btf,
        Requirement::Program("cc"),
    ];
    let with_strace = [&needs[..], &[Requirement::Program("strace")]].concat();
    let mut cases = vec![
        Case::new("every call is what strace saw", with_strace, as_strace_saw),
        Case::new(
            "200,000 quick calls of two threads are all there",
            needs,
            quick,
        ),
        Case::new(
            "a running process has what it opened before",
            needs,
            attached,
        ),
        Case::new(
            "a call that its thread died in is unfinished",
            needs,
            killed,
        ),
        Case::new("a command that is not there is an error", needs, no_command),
        Case::new("ptrace and BPF record the same", needs, both_ways),
    ];
    cases.extend(cut::cases());
    cases.extend(odd::cases());
    cases.extend(overlay::cases());
    cases.extend(received::cases());
    cases.into_iter().map(|case| case.about("record")).collect()
}

/// A directory with the program of this file's tests, and one for its files.
pub struct Fixture {
    directory: TempDir,
}

impl Fixture {
    pub fn new() -> anyhow::Result<Fixture> {
        let directory = TempDir::new()?;
        let place = Fixture { directory };
        let mut compile = Command::new("cc");
        compile.args(["-O1", "-pthread", "-o"]).arg(place.program());
        ensure!(compile.arg(SOURCE).status()?.success(), "cc failed");
        std::fs::create_dir(place.files())?;
        Ok(place)
    }

    fn program(&self) -> PathBuf {
        self.directory.path().join("calls")
    }

    pub fn files(&self) -> PathBuf {
        self.directory.path().join("files")
    }

    pub fn trace(&self) -> PathBuf {
        self.directory.path().join("trace")
    }

    pub fn command(&self, what: &str) -> Vec<PathBuf> {
        vec![self.program(), self.files(), what.into()]
    }

    /// Records the program.
    fn record(&self, what: &str) -> anyhow::Result<Recording> {
        self.record_via("bpf", what)
    }

    fn record_via(&self, way: &str, what: &str) -> anyhow::Result<Recording> {
        let mut words: Vec<PathBuf> = ["record", "--via", way, "-o"].map(PathBuf::from).into();
        words.extend([self.trace(), "--".into()]);
        words.extend(self.command(what));
        let outcome = iostep::run(words)?;
        self.whole(&outcome)
    }

    /// The recording of a run that lost nothing.
    fn whole(&self, outcome: &Outcome) -> anyhow::Result<Recording> {
        ensure!(outcome.code == Some(0), "{outcome:?}");
        let recording = text::read(&self.trace())?;
        ensure!(recording.ledger.lost == 0, "{}", outcome.stdout);
        Ok(recording)
    }
}

/// How often each fact occurs.
pub fn counted(facts: impl IntoIterator<Item = String>) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    for fact in facts {
        *counts.entry(fact).or_default() += 1;
    }
    counts
}

fn as_strace_saw() -> anyhow::Result<()> {
    let place = Fixture::new()?;
    let output = place.directory.path().join("strace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-s", "64", "-o"]).arg(&output);
    let status = strace.args(place.command("all")).status()?;
    ensure!(status.success(), "strace: {status}");
    std::fs::remove_dir_all(place.files())?;
    std::fs::create_dir(place.files())?;
    let recording = place.record("all")?;
    let theirs = counted(strace::facts(&std::fs::read_to_string(output)?));
    let ours = counted(strace::facts_of(&recording));
    let mut differences = Vec::new();
    for fact in theirs.keys().chain(ours.keys()) {
        let of = |counts: &BTreeMap<String, i64>| counts.get(fact).copied().unwrap_or(0);
        if of(&theirs) != of(&ours) {
            differences.push(format!(
                "{fact}: strace {}, record {}",
                of(&theirs),
                of(&ours)
            ));
        }
    }
    differences.dedup();
    ensure!(differences.is_empty(), "{differences:#?}");
    // arm64 has fewer: none that openat, renameat2 and others replaced.
    ensure!(ours.len() > 70, "only {} different calls", ours.len());
    Ok(())
}

/// Names, arguments and outcomes of all calls, and where every event went. Threads take turns as
/// they like, so the numbers of open files and threads say nothing.
fn both_ways() -> anyhow::Result<()> {
    let place = Fixture::new()?;
    let mut ways = Vec::new();
    for way in ["bpf", "ptrace"] {
        let recording = place.record_via(way, "all")?;
        std::fs::remove_dir_all(place.files())?;
        std::fs::create_dir(place.files())?;
        let mut ledger = recording.ledger.lines.clone();
        // How often the loader takes back what it reserved is a matter of where that lay.
        ledger.retain(|line| line.reason != "memory without a file");
        ledger.sort_by(|a, b| a.reason.cmp(&b.reason));
        ways.push((counted(without_numbers(&recording)), ledger));
    }
    let [(bpf, kept), (ptrace, also_kept)] = &ways[..] else {
        anyhow::bail!("two ways");
    };
    let differ = |call: &&String| bpf.get(*call) != ptrace.get(*call);
    let differences: Vec<&String> = bpf.keys().chain(ptrace.keys()).filter(differ).collect();
    ensure!(differences.is_empty(), "{differences:#?}");
    ensure!(kept == also_kept, "{kept:?}\n{also_kept:?}");
    ensure!(bpf.len() > 80, "only {} different calls", bpf.len());
    Ok(())
}

fn without_numbers(recording: &Recording) -> impl Iterator<Item = String> {
    let calls = recording.calls.iter();
    let calls = calls.filter(|call| call.syscall != Syscall::Present);
    calls.map(|call| unnumbered(call, &recording.paths))
}

/// A call without its time, and without the numbers of threads and open files.
pub fn unnumbered(call: &Call, paths: &calls::Paths) -> String {
    let mut line = String::new();
    text::write_call(call, paths, &mut line);
    let words = line.split_whitespace().skip(3);
    let unnumbered = words.map(|word| {
        let name = word.trim_end_matches(|c: char| c.is_ascii_digit());
        match name {
            "h" | "replaces=h" | "child=t" => name,
            _ => word,
        }
    });
    unnumbered.collect::<Vec<_>>().join(" ")
}

fn quick() -> anyhow::Result<()> {
    let place = Fixture::new()?;
    let recording = place.record("quick")?;
    let mut reads: BTreeMap<_, u64> = BTreeMap::new();
    for call in of(&recording, Syscall::Pread64) {
        let whole = call.outcome == calls::Outcome::Value(1) && call.duration_ns.is_some();
        // The loader reads libc's header so, too.
        *reads.entry((call.thread, whole)).or_default() += u64::from(whole);
    }
    let mut reads: Vec<u64> = reads.into_values().filter(|count| *count > 0).collect();
    reads.sort_unstable();
    ensure!(reads == [100_000, 100_000], "{reads:?}");
    Ok(())
}

fn of(recording: &Recording, syscall: Syscall) -> impl Iterator<Item = &Call> {
    let calls = recording.calls.iter();
    calls.filter(move |call| call.syscall == syscall)
}

/// The program, ended with the test.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn attached() -> anyhow::Result<()> {
    let place = Fixture::new()?;
    let command = place.command("wait");
    let mut program = Command::new(&command[0]);
    program.args(&command[1..]);
    program.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Guard(program.spawn()?);
    let output = program.0.stdout.take().context("its output")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    ensure!(line == "ready\n", "{line}");
    let running = Running::start([
        "record",
        "-o",
        place.trace().to_str().context("a path")?,
        "-p",
        &program.0.id().to_string(),
    ])?;
    wait_until("the recording", || running.says("recording process"))?;
    let mut input = program.0.stdin.take().context("its input")?;
    input.write_all(b"\n")?;
    let recording = place.whole(&running.finish()?)?;
    let path = place.files().join("before");
    let open: Vec<&Call> = of(&recording, Syscall::Present).collect();
    let opens = open
        .iter()
        .filter_map(|call| match (&call.operation, call.outcome) {
            (Operation::Open { path: p, .. }, calls::Outcome::Handle(handle)) => {
                let is_it = recording.paths.get(*p) == path.as_os_str().as_encoded_bytes();
                is_it.then_some(handle)
            }
            _ => None,
        });
    let opens: Vec<_> = opens.collect();
    ensure!(opens.len() == 2, "two open files: {open:#?}");
    let twins = open.iter().filter(|call| {
        matches!(call.operation, Operation::Duplicate { handle, .. } if opens.contains(&handle))
    });
    ensure!(twins.count() == 1, "one of them twice: {open:#?}");
    let at: Vec<i64> = open
        .iter()
        .filter_map(|call| match call.operation {
            Operation::Seek { offset, handle, .. } if opens.contains(&handle) => Some(offset),
            _ => None,
        })
        .collect();
    ensure!(at == [1000], "its position: {at:?}");
    let write = of(&recording, Syscall::Write).next().context("a write")?;
    ensure!(write.outcome == calls::Outcome::Value(10), "{write:?}");
    let after = of(&recording, Syscall::Openat).next().context("an open")?;
    ensure!(
        matches!(after.operation, Operation::Open { flags, .. } if flags.has(OpenFlags::O_CREAT)),
        "{after:?}"
    );
    let initial = recording
        .initial
        .iter()
        .find(|file| recording.paths.get(file.path) == path.as_os_str().as_encoded_bytes());
    let initial = initial.context("the file is part of the beginning")?;
    ensure!(
        matches!(initial.kind, InitialKind::File { size: 1000, .. }) && initial.seen,
        "{initial:?}"
    );
    Ok(())
}

fn killed() -> anyhow::Result<()> {
    let recording = Fixture::new()?.record("killed")?;
    let locks: Vec<_> = of(&recording, Syscall::Flock).collect();
    ensure!(locks.len() == 2, "{locks:#?}");
    let unfinished = locks
        .iter()
        .filter(|call| call.outcome == calls::Outcome::Unfinished && call.duration_ns.is_none());
    ensure!(unfinished.count() == 1, "{locks:#?}");
    Ok(())
}

fn no_command() -> anyhow::Result<()> {
    let place = Fixture::new()?;
    let trace = place.trace();
    let missing = Path::new("/no/such/program");
    let words = [
        Path::new("record"),
        Path::new("-o"),
        &trace,
        Path::new("--"),
        missing,
    ];
    let outcome = iostep::run(words)?;
    ensure!(outcome.code == Some(2), "{outcome:?}");
    ensure!(
        outcome
            .stderr
            .contains("/no/such/program: cannot run the command"),
        "{outcome:?}"
    );
    ensure!(!trace.exists(), "a trace of nothing");
    Ok(())
}
