//! Requests of io_uring in recordings: every one is there, or counted by its reason.

use std::path::PathBuf;

use anyhow::ensure;
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_model::syscall::{Call, InitialKind, Outcome, Recording, Syscall, text};
use tempfile::TempDir;

use crate::case::Case;
use crate::record::unnumbered;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let needs = [Requirement::Root, Requirement::Btf];
    let cases = [
        Case::new(
            "requests with paths are recorded and replayed",
            needs,
            names,
        ),
        Case::new(
            "requests on registered files are recorded, or counted",
            needs,
            files,
        ),
        Case::new(
            "requests that a kernel thread takes are recorded",
            needs,
            polled,
        ),
        Case::new(
            "requests that complete in silence are recorded",
            needs,
            silent,
        ),
        Case::new(
            "a request that is never complete is unfinished",
            needs,
            pending,
        ),
        Case::new("by ptrace, requests are counted", [], by_ptrace),
    ];
    cases.map(|case| case.about("record io_uring")).into()
}

struct Fixture {
    directory: TempDir,
}

impl Fixture {
    fn new() -> anyhow::Result<Fixture> {
        let directory = tempfile::tempdir()?;
        std::fs::create_dir(directory.path().join("files"))?;
        Ok(Fixture { directory })
    }

    fn files(&self) -> PathBuf {
        self.directory.path().join("files")
    }

    fn trace(&self) -> PathBuf {
        self.directory.path().join("trace")
    }

    fn record(&self, via: &str, what: &str) -> anyhow::Result<Recording> {
        let mut words: Vec<PathBuf> = ["record", "--via", via, "-o"].map(PathBuf::from).into();
        words.extend([self.trace(), "--".into()]);
        words.push(env!("CARGO_BIN_EXE_requests").into());
        words.extend([self.files(), what.into()]);
        let outcome = iostep::run(words)?.success()?;
        let recording = text::read(&self.trace())?;
        ensure!(recording.ledger.lost == 0, "{}", outcome.stdout);
        Ok(recording)
    }

    /// The requests as lines of a trace, without numbers, and without where the files are.
    fn requests(&self, recording: &Recording) -> Vec<String> {
        let requests = recording.calls.iter().filter(is_request);
        let lines = requests.map(|call| unnumbered(call, &recording.paths));
        let files = format!("{}/", self.files().display());
        let lines = lines.map(|line| line.replace(&files, ""));
        lines.map(|line| line.replace("io_uring_", "")).collect()
    }
}

fn is_request(call: &&Call) -> bool {
    call.syscall.name().starts_with("io_uring_")
}

/// How often events were left out for a reason with these words.
fn left_out(recording: &Recording, words: &str) -> u64 {
    let lines = recording.ledger.lines.iter();
    let lines = lines.filter(|line| !line.kept && line.reason.contains(words));
    lines.map(|line| line.count).sum()
}

fn names() -> anyhow::Result<()> {
    let place = Fixture::new()?;
    let recording = place.record("bpf", "names")?;
    let expected = [
        "openat path=\"file\" flags=O_RDWR|O_CREAT mode=0640 = h",
        "openat path=\"FILES\" flags=O_RDONLY|O_DIRECTORY mode=0000 = h",
        "openat path=\"missing\" flags=O_RDONLY mode=0000 = -ENOENT",
        "statx path=\"file\" = 0",
        "statx h = 0",
        "mkdirat path=\"dir\" mode=0750 = 0",
        "linkat from=\"file\" to=\"dir/link\" = 0",
        "symlinkat content=\"dir/link\" path=\"soft\" = 0",
        "renameat from=\"dir/link\" to=\"renamed\" flags=0x1 = 0",
        "unlinkat path=\"renamed\" = 0",
        "unlinkat path=\"dir\" directory = 0",
        "close h = 0",
        "close h = 0",
    ];
    let files = place.files().display().to_string();
    let found = place.requests(&recording);
    let found: Vec<String> = found
        .into_iter()
        .map(|line| line.replace(&files, "FILES"))
        .collect();
    ensure!(found == expected, "{found:#?}");
    let made = place.files().join("file");
    let mut initial = recording.initial.iter();
    let was =
        initial.find(|file| recording.paths.get(file.path) == made.as_os_str().as_encoded_bytes());
    ensure!(
        was.is_some_and(|file| file.kind == InitialKind::Absent && file.seen),
        "{was:?}"
    );
    let target = tempfile::tempdir()?;
    let words = [
        "replay".into(),
        place.trace(),
        "--to".into(),
        target.path().into(),
    ];
    let outcome = iostep::run(words.iter().chain(&["--json".into()]))?.success()?;
    let document: serde_json::Value = serde_json::from_str(&outcome.stdout)?;
    let totals = &document["targets"][0]["runs"][0]["summary"]["totals"];
    ensure!(totals["differing"] == 0, "{totals}");
    ensure!(totals["done"] == totals["expected"], "{totals}");
    Ok(())
}

fn files() -> anyhow::Result<()> {
    let place = Fixture::new()?;
    let recording = place.record("bpf", "files")?;
    let expected = [
        "openat path=\"kept\" flags=O_RDWR|O_CREAT mode=0640 = h",
        "openat path=\"closed\" flags=O_RDWR|O_CREAT mode=0640 = h",
        "close h = 0",
        "write h size=8000 offset=0 = 8000",
        "write h size=100 offset=0 flags=0x2 = 100",
        "writev h size=6000 offset=100 buffers=2 = 6000",
        "read h size=4096 offset=4 = 4096",
        "write h size=4000 offset=512 = 4000",
        "read h size=2000 offset=0 = 2000",
        "fadvise h offset=0 size=4096 advice=1 = 0",
        "fallocate h flags=0x0 offset=10 size=20000 = 0",
        "ftruncate h size=9000 = 0",
        "fsync h = 0",
        "fdatasync h = 0",
    ];
    let found = place.requests(&recording);
    ensure!(found == expected, "{found:#?}");
    let all = &recording.ledger;
    ensure!(left_out(&recording, "registered file") == 1, "{all:?}");
    ensure!(left_out(&recording, "closed descriptor") == 1, "{all:?}");
    Ok(())
}

fn polled() -> anyhow::Result<()> {
    let place = Fixture::new()?;
    let recording = place.record("bpf", "polled")?;
    let found = place.requests(&recording);
    let mut expected = vec!["openat path=\"polled\" flags=O_RDWR|O_CREAT mode=0640 = h".to_owned()];
    for number in 0..20 {
        expected.push(format!("write h size=100 offset={} = 100", 100 * number));
    }
    expected.push("fsync h = 0".to_owned());
    ensure!(found == expected, "{found:#?}");
    let made_up = recording.calls.iter();
    let made_up = made_up.filter(|call| call.syscall == Syscall::Present);
    let paths = made_up.flat_map(|call| call.operation.paths());
    let paths: Vec<_> = paths.map(|path| recording.paths.get(path)).collect();
    let polled = |path: &&[u8]| path.starts_with(b"/iostep.never-opened");
    ensure!(!paths.iter().any(polled), "{paths:?}");
    Ok(())
}

fn silent() -> anyhow::Result<()> {
    let place = Fixture::new()?;
    let recording = place.record("bpf", "silent")?;
    let requests = recording.calls.iter().filter(is_request);
    let writes: Vec<&Call> = requests
        .filter(|call| call.syscall == Syscall::UringWrite)
        .collect();
    ensure!(writes.len() == 10, "{writes:#?}");
    let unknown = |call: &&Call| call.outcome == Outcome::Unknown && call.duration_ns.is_none();
    ensure!(writes.iter().all(unknown), "{writes:#?}");
    Ok(())
}

fn pending() -> anyhow::Result<()> {
    let place = Fixture::new()?;
    let recording = place.record("bpf", "pending")?;
    ensure!(place.requests(&recording).is_empty());
    // The pipe's request, beside what the loader and the runtime do with pipes.
    ensure!(left_out(&recording, "pipe") >= 1, "{:?}", recording.ledger);
    Ok(())
}

fn by_ptrace() -> anyhow::Result<()> {
    let place = Fixture::new()?;
    let recording = place.record("ptrace", "files")?;
    let counted = left_out(&recording, "request of io_uring");
    ensure!(counted == 16, "{counted}: {:?}", recording.ledger);
    ensure!(place.requests(&recording).is_empty());
    Ok(())
}
