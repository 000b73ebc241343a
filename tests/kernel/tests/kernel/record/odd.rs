//! Files that a program reaches in ways that name none.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_model::syscall::{Direction, Operation, Outcome, Recording, Syscall, text};
use tempfile::TempDir;

use crate::case::Case;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/odd.c");
/// What its functions say that they write and sync.
const WRITTEN: u64 =
    100 + 4096 + 2048 + 1000 + 500 + 3000 + 40 + 60 + 700 + 5 + 16384 + 1536 + 16384;
const SYNCS: usize = 4;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let cc = Requirement::Program("cc");
    let bpf = [Requirement::Root, Requirement::Btf, cc];
    let strace = [cc, Requirement::Program("strace")];
    vec![
        Case::new(
            "links of /proc, io_submit and an untraced child by BPF",
            bpf,
            || recorded("bpf"),
        ),
        Case::new(
            "links of /proc, io_submit and an untraced child by ptrace",
            [cc],
            || recorded("ptrace"),
        ),
        Case::new(
            "links of /proc and io_submit in strace's text",
            strace,
            by_strace,
        ),
    ]
}

struct Place(TempDir);

impl Place {
    fn new() -> anyhow::Result<Place> {
        let place = Place(TempDir::new()?);
        let mut compile = Command::new("cc");
        compile.args(["-O1", "-o"]).arg(place.of("odd")).arg(SOURCE);
        ensure!(compile.status()?.success(), "cc failed");
        std::fs::create_dir(place.of("files"))?;
        Ok(place)
    }

    fn of(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn recording(&self) -> anyhow::Result<Recording> {
        Ok(text::read(&self.of("trace"))?)
    }
}

/// Bytes that a recording has written, and how often it synced.
fn sums(recording: &Recording) -> (u64, usize) {
    let written = recording
        .calls
        .iter()
        .filter_map(|call| match (&call.operation, call.outcome) {
            (
                Operation::Transfer {
                    direction: Direction::Write,
                    size,
                    ..
                },
                outcome,
            ) => match outcome {
                Outcome::Value(bytes) => Some(bytes.unsigned_abs()),
                Outcome::Unknown => Some(*size),
                _ => None,
            },
            _ => None,
        });
    let syncs = recording.calls.iter();
    let syncs = syncs.filter(|call| matches!(call.operation, Operation::Sync { .. }));
    (written.sum(), syncs.count())
}

fn recorded(way: &str) -> anyhow::Result<()> {
    let place = Place::new()?;
    let mut words: Vec<PathBuf> = ["record", "--via", way, "-o"].map(PathBuf::from).into();
    words.extend([
        place.of("trace"),
        "--".into(),
        place.of("odd"),
        place.of("files"),
    ]);
    iostep::run(words)?.success()?;
    let recording = place.recording()?;
    ensure!(
        sums(&recording) == (WRITTEN, SYNCS),
        "{:?}",
        sums(&recording)
    );
    let requests = recording
        .calls
        .iter()
        .filter(|call| (Syscall::AioPread..=Syscall::AioFdsync).contains(&call.syscall));
    let told = requests.map(|call| match call.outcome {
        Outcome::Value(value) => Some(value),
        _ => None,
    });
    let mut told: Vec<_> = told.collect();
    told.sort();
    ensure!(
        told == [None, Some(0), Some(0), Some(1536), Some(16384)],
        "{told:?}"
    );
    replayed(&place)
}

fn by_strace() -> anyhow::Result<()> {
    let place = Place::new()?;
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-ttt", "-T", "-o"])
        .arg(place.of("strace"));
    let status = strace
        .arg(place.of("odd"))
        .arg(place.of("files"))
        .status()?;
    ensure!(status.success(), "strace: {status}");
    let words = [
        "clean".into(),
        place.of("strace"),
        "-o".into(),
        place.of("trace"),
    ];
    iostep::run(words)?.success()?;
    let recording = place.recording()?;
    // strace does not see the child that asks for that.
    ensure!(
        sums(&recording) == (WRITTEN - 5, SYNCS),
        "{:?}",
        sums(&recording)
    );
    replayed(&place)
}

/// What went from files to a socket and a pipe, and back.
fn moved(recording: &Recording) -> Vec<(Syscall, u64)> {
    let calls = recording.calls.iter();
    let moved = calls.filter_map(|call| match call.operation {
        Operation::Transfer { size, .. } if call.syscall >= Syscall::SendfileRead => {
            Some((call.syscall, size))
        }
        _ => None,
    });
    moved.collect()
}

/// A replay writes the same bytes into the same files.
fn replayed(place: &Place) -> anyhow::Result<()> {
    let moved = moved(&place.recording()?);
    let expected = [
        (Syscall::SendfileRead, 3000),
        (Syscall::SendfileRead, 1000),
        (Syscall::SpliceRead, 700),
        (Syscall::SpliceWrite, 700),
    ];
    ensure!(moved == expected, "{moved:?}");
    let to = place.of("to");
    std::fs::create_dir(&to)?;
    let words = [
        Path::new("replay"),
        &place.of("trace"),
        Path::new("--to"),
        &to,
    ];
    let words = words
        .into_iter()
        .chain(["--timing", "fast", "--keep"].map(Path::new));
    iostep::run(words)?.success()?;
    let files = place.of("files");
    let below = to.join("iostep-replay").join(files.strip_prefix("/")?);
    let types = ["moved", "node"].map(|name| below.join(name).metadata());
    let [Ok(fifo), Ok(node)] = types else {
        anyhow::bail!("{types:?}");
    };
    ensure!(fifo.file_type().is_fifo() && node.is_file());
    for name in ["data", "final", "linked", "spliced", "submitted"] {
        let sizes = [&files, &below].map(|at| at.join(name).metadata().map(|found| found.len()));
        let [Ok(here), Ok(there)] = sizes else {
            anyhow::bail!("{name}: {sizes:?}");
        };
        ensure!(here == there, "{name}: {here} and {there} bytes");
    }
    Ok(())
}
