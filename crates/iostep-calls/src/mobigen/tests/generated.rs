//! A script made of a recording, as MobiGen would have made it, gives the recording again.

use std::collections::BTreeMap;

use iostep_model::syscall::text::{quote, write_call};
use iostep_model::syscall::{
    Call, Direction, HandleId, OpenFlags, Operation, Outcome, PathId, Paths, Recording, Syscall,
    Target, Thread, ThreadId,
};
use proptest::prelude::*;

use super::{clean, lines, total};

/// A call of a recording, with what is chosen of that which is there then.
#[derive(Clone, Debug)]
struct Step {
    thread: u32,
    after_us: u64,
    kind: usize,
    which: usize,
    path: Vec<u8>,
    number: u64,
    size: u64,
    fails: bool,
}

prop_compose! {
    fn step()(
        thread in prop_oneof![0_u32..4, any::<u32>()],
        // Of calls in one microsecond the script keeps the order of the threads.
        after_us in 1_u64..50_000,
        kind in 0_usize..11,
        which in any::<usize>(),
        path in proptest::collection::vec(any::<u8>(), 1..20),
        number in 0_u64..u64::MAX / 2,
        size in any::<u32>(),
        fails in any::<bool>(),
    ) -> Step {
        Step { thread, after_us, kind, which, path, number, size: size.into(), fails }
    }
}

/// What a script can say of what these steps do.
fn recording(steps: &[Step]) -> Recording {
    let mut recording = Recording::default();
    let mut open: Vec<HandleId> = Vec::new();
    let (mut handles, mut start_ns) = (0, 0);
    let flags = OpenFlags::O_LARGEFILE;
    for step in steps {
        let handle = (!open.is_empty()).then(|| open[step.which % open.len()]);
        let path = recording.paths.intern(&absolute(&step.path));
        let ended = match step.fails {
            true => Outcome::Unknown,
            false => Outcome::Value(0),
        };
        let (syscall, operation, outcome) = match (step.kind, handle) {
            (0, _) => {
                handles += 1;
                open.push(HandleId(handles));
                let operation = Operation::Open {
                    path,
                    flags,
                    mode: 0o600,
                };
                (Syscall::Open, operation, Outcome::Handle(HandleId(handles)))
            }
            (1, Some(handle)) => {
                open.retain(|other| *other != handle);
                (
                    Syscall::Close,
                    Operation::Close { handle },
                    Outcome::Value(0),
                )
            }
            (kind @ 2..=7, Some(handle)) => on_handle(kind, handle, step, ended),
            (kind, _) => on_path(kind, path, ended),
        };
        start_ns += 1000 * step.after_us;
        recording.calls.push(Call {
            start_ns,
            duration_ns: None,
            thread: thread(&mut recording.threads, step.thread),
            syscall,
            operation,
            outcome,
        });
    }
    recording
}

/// The words are never in a directory whose calls are left out.
fn absolute(words: &[u8]) -> Vec<u8> {
    let words = words.iter().map(|byte| match byte {
        0 | b'/' | b'.' => b'x',
        other => *other,
    });
    b"/data/".iter().copied().chain(words).collect()
}

fn on_handle(
    kind: usize,
    handle: HandleId,
    step: &Step,
    ended: Outcome,
) -> (Syscall, Operation<HandleId, PathId>, Outcome) {
    let transfer = |syscall, direction, offset| {
        let operation = Operation::Transfer {
            direction,
            handle,
            size: step.size,
            buffers: 1,
            offset,
            flags: 0,
        };
        (syscall, operation, Outcome::Value(step.size as i64))
    };
    let at = Some(step.number as i64);
    match kind {
        2 => transfer(Syscall::Read, Direction::Read, None),
        3 => transfer(Syscall::Pread64, Direction::Read, at),
        4 => transfer(Syscall::Write, Direction::Write, None),
        5 => transfer(Syscall::Pwrite64, Direction::Write, at),
        6 => (Syscall::Fdatasync, Operation::Sync { handle }, ended),
        _ => {
            let target = Target::Handle(handle);
            let follow = true;
            (Syscall::Fstat, Operation::Stat { target, follow }, ended)
        }
    }
}

fn on_path(
    kind: usize,
    path: PathId,
    ended: Outcome,
) -> (Syscall, Operation<HandleId, PathId>, Outcome) {
    let target = Target::Path(path);
    match kind {
        8 => (
            Syscall::Access,
            Operation::Access {
                target: Target::Path(path),
                mode: 0,
            },
            ended,
        ),
        9 => (Syscall::Unlink, Operation::Unlink { path }, ended),
        _ => {
            let follow = false;
            (Syscall::Lstat, Operation::Stat { target, follow }, ended)
        }
    }
}

fn thread(threads: &mut Vec<Thread>, tid: u32) -> ThreadId {
    if let Some(known) = threads.iter().find(|thread| thread.tid == tid) {
        return known.id;
    }
    let id = ThreadId(threads.len() as u32 + 1);
    threads.push(Thread {
        id,
        process: iostep_model::syscall::ProcessId(1),
        tid,
        name: String::new(),
    });
    id
}

/// The script: sorted by thread, descriptors by their lowest free number.
fn script(recording: &Recording) -> Vec<u8> {
    let mut numbers: BTreeMap<HandleId, u32> = BTreeMap::new();
    let mut by_thread: BTreeMap<u32, String> = BTreeMap::new();
    for call in &recording.calls {
        let tid = recording.threads[call.thread.0 as usize - 1].tid;
        if let Outcome::Handle(handle) = call.outcome {
            let free = (3..).find(|n| !numbers.values().any(|used| used == n));
            numbers.insert(handle, free.expect("a number"));
        }
        let line = line(call, &recording.paths, &numbers);
        if let Operation::Close { handle } = call.operation {
            numbers.remove(&handle);
        }
        let at_us = call.start_ns / 1000;
        *by_thread.entry(tid).or_default() += &format!("{tid} {at_us} {line}\n");
    }
    by_thread.into_values().collect::<String>().into_bytes()
}

fn line(call: &Call, paths: &Paths, numbers: &BTreeMap<HandleId, u32>) -> String {
    let name = call.syscall.name().trim_end_matches("64");
    let result = match call.outcome {
        Outcome::Handle(handle) => numbers[&handle].into(),
        Outcome::Value(value) => value,
        _ => -1,
    };
    let mut text = format!("{name} ");
    if let Some(path) = call.operation.paths().first() {
        quote(paths.get(*path), &mut text);
    }
    match call.operation {
        Operation::Open { flags, .. } => text += &format!(" {flags}"),
        Operation::Transfer { handle, offset, .. } => {
            text += &numbers[&handle].to_string();
            text += &offset.map_or(String::new(), |at| format!(" {at}"));
        }
        _ => {
            if let Some(handle) = call.operation.handles().first() {
                text += &numbers[handle].to_string();
            }
        }
    }
    format!("{text} {result}")
}

proptest! {
    #[test]
    fn a_script_of_a_recording_is_the_recording_again(
        steps in proptest::collection::vec(step(), 1..60)
    ) {
        let recording = recording(&steps);
        let script = script(&recording);
        let cleaned = clean(&script).expect("a script");
        let rendered = recording.calls.iter().map(|call| {
            let mut line = String::new();
            write_call(call, &recording.paths, &mut line);
            line
        });
        prop_assert_eq!(lines(&cleaned), rendered.collect::<Vec<_>>());
        let calls = recording.calls.len() as u64;
        prop_assert_eq!(cleaned.ledger.totals(), (calls, 0));
        prop_assert_eq!(total(&cleaned.ledger), calls);
        let tids = |threads: &[Thread]| threads.iter().map(|t| (t.id, t.tid)).collect::<Vec<_>>();
        prop_assert_eq!(tids(&cleaned.sink.threads), tids(&recording.threads));
    }
}
