//! Files that come from another process: through a socket.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_model::syscall::{Call, HandleId, Operation, Outcome, Recording, Syscall, text};
use tempfile::TempDir;

use crate::case::Case;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/receive.c");

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let all = [
        Requirement::Root,
        Requirement::Btf,
        Requirement::Program("cc"),
    ];
    vec![
        Case::new("files that came through a socket are followed", all, by_bpf),
        Case::new(
            "files that came through a socket have their paths by ptrace",
            [Requirement::Program("cc")],
            by_ptrace,
        ),
    ]
}

/// A recording of the program, which gets one of these files from outside of the recording, and
/// passes one on with a pipe, a memfd and an eventfd; and the directory with the program, `receive`.
pub fn record(way: &str, files: &Path) -> anyhow::Result<(Recording, TempDir)> {
    let directory = TempDir::new()?;
    let path = |name: &str| directory.path().join(name);
    let program = path("receive");
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-o"]).arg(&program).arg(SOURCE);
    ensure!(compile.status()?.success(), "cc failed");
    let mut give = Command::new(&program);
    give.arg(files).arg("give");
    give.arg(iostep::binary()?)
        .args(["record", "--via", way, "-o"]);
    give.args([path("trace"), "--".into(), program]);
    give.args([files, Path::new("take")]);
    let status = give.stdout(Stdio::null()).status()?;
    ensure!(status.success(), "iostep record: {status}");
    Ok((text::read(&path("trace"))?, directory))
}

/// The open file of the only call of a name with a size, and what opened it.
fn opened(
    recording: &Recording,
    syscall: Syscall,
    bytes: u64,
) -> anyhow::Result<(HandleId, &Call)> {
    let mut found = recording
        .calls
        .iter()
        .filter_map(|call| match call.operation {
            Operation::Transfer { handle, size, .. } if size == bytes => {
                (call.syscall == syscall).then_some(handle)
            }
            _ => None,
        });
    let handle = found.next().with_context(|| format!("no {syscall:?}"))?;
    let open = recording.calls.iter().find(|call| {
        matches!(call.operation, Operation::Open { .. }) && call.outcome == Outcome::Handle(handle)
    });
    Ok((handle, open.context("nothing opens it")?))
}

fn path_of(recording: &Recording, open: &Call) -> PathBuf {
    let Operation::Open { path, .. } = open.operation else {
        return PathBuf::new();
    };
    String::from_utf8_lossy(recording.paths.get(path))
        .as_ref()
        .into()
}

/// What holds by either way.
pub fn check(recording: &Recording, files: &Path) -> anyhow::Result<()> {
    let (outside, open) = opened(recording, Syscall::Pread64, 4)?;
    ensure!(open.syscall == Syscall::Present, "{open:?}");
    ensure!(path_of(recording, open) == files.join("outside"));
    let at = recording
        .calls
        .iter()
        .find_map(|call| match call.operation {
            Operation::Seek { handle, offset, .. } if handle == outside => Some(offset),
            _ => None,
        });
    ensure!(at == Some(12), "its position: {at:?}");
    let (_, open) = opened(recording, Syscall::Write, 5)?;
    ensure!(path_of(recording, open) == files.join("own"));
    let writes = recording.calls.iter();
    let writes = writes.filter(|call| call.syscall == Syscall::Write);
    let sizes: Vec<_> = writes.map(|call| call.outcome).collect();
    ensure!(sizes == [6, 5, 5].map(Outcome::Value), "{sizes:?}");
    let count = |kept, reason: &str| {
        let mut lines = recording.ledger.lines.iter();
        let line = lines.find(|line| line.kept == kept && line.reason == reason);
        line.map_or(0, |line| line.count)
    };
    ensure!(count(true, "came from another process") == 2);
    ensure!(count(true, "call that needed an open") == 0);
    // Each was made, came through the socket, and was written to once; the pipe was closed twice.
    ensure!(count(false, "memory") == 3, "{:?}", recording.ledger);
    ensure!(
        count(false, "event descriptor") == 3,
        "{:?}",
        recording.ledger
    );
    Ok(())
}

fn by_bpf() -> anyhow::Result<()> {
    let files = TempDir::new()?;
    let (recording, _) = record("bpf", files.path())?;
    check(&recording, files.path())?;
    let (parents, _) = opened(&recording, Syscall::Write, 6)?;
    let (childs, _) = opened(&recording, Syscall::Write, 5)?;
    ensure!(parents == childs, "one open file: {parents:?} {childs:?}");
    Ok(())
}

fn by_ptrace() -> anyhow::Result<()> {
    let files = TempDir::new()?;
    let (recording, _) = record("ptrace", files.path())?;
    check(&recording, files.path())
}
