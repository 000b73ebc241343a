//! How long a recording of 1,000,000 calls takes to be read and planned:
//! `cargo run --release -p iostep-load --example replay_load`.
//!
//! Eight threads open, write, read, sync and close 1,000 files, each open file used by two of
//! them. Goal: under 2 s for both.

use std::time::{Duration, Instant};

use iostep_load::replay::plan::Plan;
use iostep_model::replay::Threads;
use iostep_model::syscall::text::{self, Writer};
use iostep_model::syscall::{
    Call, Direction, HandleId, Header, Ledger, OpenFlags, Operation, Outcome, Paths, ProcessId,
    Syscall, Thread, ThreadId,
};

const CALLS: u32 = 1_000_000;
const THREADS: u32 = 8;
const FILES: u32 = 1_000;
/// Calls on an open file, its open and close included.
const EACH: u32 = 50;
const GOAL: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("large.trace");
    write(&path)?;
    let bytes = std::fs::metadata(&path)?.len();
    let began = Instant::now();
    let recording = text::read(&path)?;
    let read = began.elapsed();
    let plan = Plan::new(&recording, Threads::Original);
    let planned = began.elapsed() - read;
    println!(
        "{} calls, {} MiB: read in {:.2} s, planned in {:.2} s ({} waits); goal under {} s: {}",
        recording.calls.len(),
        bytes >> 20,
        read.as_secs_f64(),
        planned.as_secs_f64(),
        plan.waits.len(),
        GOAL.as_secs(),
        if read + planned < GOAL {
            "met"
        } else {
            "missed"
        }
    );
    Ok(())
}

fn write(path: &std::path::Path) -> iostep_model::Result<()> {
    let mut paths = Paths::default();
    let mut writer = Writer::create(path, Header::default())?;
    for id in 1..=THREADS {
        writer.thread(&Thread {
            id: ThreadId(id),
            process: ProcessId(1),
            tid: id,
            name: "writer".to_owned(),
        });
    }
    for number in 0..CALLS {
        let file = number / EACH;
        let name = format!("/data/directory-{}/file-{}", file % 10, file % FILES);
        let path = paths.intern(name.as_bytes());
        let handle = HandleId(file + 1);
        let (syscall, operation, outcome) = call(number % EACH, path, handle);
        let call = Call {
            start_ns: u64::from(number) * 1_000,
            duration_ns: Some(900),
            thread: ThreadId(1 + (file + number % 2) % THREADS),
            syscall,
            operation,
            outcome,
        };
        writer.call(&call, &paths)?;
    }
    writer.finish(&[], &Ledger::default(), &paths)
}

fn call(
    place: u32,
    path: iostep_model::syscall::PathId,
    handle: HandleId,
) -> (
    Syscall,
    Operation<HandleId, iostep_model::syscall::PathId>,
    Outcome,
) {
    let transfer = |direction| Operation::Transfer {
        direction,
        handle,
        size: 4096,
        buffers: 1,
        offset: Some(i64::from(place) * 4096),
        flags: 0,
    };
    match place {
        0 => {
            let flags = OpenFlags::O_RDWR.with(OpenFlags::O_CREAT);
            let mode = 0o644;
            let open = Operation::Open { path, flags, mode };
            (Syscall::Openat, open, Outcome::Handle(handle))
        }
        49 => (
            Syscall::Close,
            Operation::Close { handle },
            Outcome::Value(0),
        ),
        n if n % 10 == 9 => (
            Syscall::Fdatasync,
            Operation::Sync { handle },
            Outcome::Value(0),
        ),
        n if n % 2 == 0 => (
            Syscall::Pread64,
            transfer(Direction::Read),
            Outcome::Value(4096),
        ),
        _ => (
            Syscall::Pwrite64,
            transfer(Direction::Write),
            Outcome::Value(4096),
        ),
    }
}
