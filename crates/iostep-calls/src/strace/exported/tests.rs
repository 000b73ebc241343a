//! A trace comes back from strace's text byte for byte, and hostile text does no harm.

use std::path::Path;

use iostep_model::syscall::text::{Reader, Writer};
use iostep_model::syscall::*;
use proptest::prelude::*;

use super::*;

mod operations;

type Op = Operation<HandleId, PathId>;

/// A trace's file of these calls, and the words of its paths.
fn written(calls: &[(Syscall, Op, Outcome)], paths: &Paths, wall: Option<i128>) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("x");
    let header = Header {
        recorder: "strace".into(),
        machine: "Linux \"x\"".into(),
        command: vec![b"a \xff".to_vec()],
        clock: Clock {
            start_wall_ns: wall,
            resolution_ns: 1,
        },
    };
    let mut writer = Writer::create(&path, header).expect("create");
    for (id, tid) in [(1, 4711), (2, 4712), (3, 99), (4, 99)] {
        writer.thread(&Thread {
            id: ThreadId(id),
            process: ProcessId(id.min(2)),
            tid,
            name: "t9 \"tid=1\"".into(),
        });
    }
    for (n, (syscall, operation, outcome)) in calls.iter().enumerate() {
        let call = Call {
            start_ns: 1_500_000_001 * n as u64,
            duration_ns: (n % 3 != 0).then_some(n as u64 * 999_999_999),
            thread: ThreadId(if n % 17 == 5 { 4 } else { 1 + n as u32 % 2 }),
            syscall: *syscall,
            operation: operation.clone(),
            outcome: *outcome,
        };
        writer.call(&call, paths).expect("write");
    }
    let mut ledger = Ledger::default();
    ledger.add(false, "socket", 3);
    let initial = paths.is_empty().then(Vec::new).unwrap_or_else(|| {
        let path = PathId(0);
        let kind = InitialKind::Directory;
        vec![InitialFile {
            path,
            kind,
            seen: true,
        }]
    });
    writer.finish(&initial, &ledger, paths).expect("finish");
    std::fs::read(path).expect("read")
}

fn exported(trace: &[u8]) -> String {
    let reader = Reader::new(
        Path::new("x"),
        Box::new(std::io::Cursor::new(trace.to_vec())),
    );
    let mut text = Vec::new();
    export(reader.expect("a trace"), Path::new("out"), &mut text).expect("export");
    String::from_utf8(text).expect("UTF-8")
}

fn restored(text: &str) -> Vec<u8> {
    let text = std::io::Cursor::new(text.as_bytes().to_vec());
    let mut reader = restore(Path::new("x"), text).expect("an exported trace");
    let mut trace = format!("{}\n{}", text::MAGIC, reader.declarations());
    let mut calls = 0;
    while let Some(call) = reader.next_call().expect("a call") {
        text::write_call(&call, reader.paths(), &mut trace);
        trace.push('\n');
        calls += 1;
    }
    if reader.cut_at_line().is_none() {
        trace += &format!("@end calls={calls}\n");
    }
    trace.into_bytes()
}

fn handle() -> impl Strategy<Value = HandleId> {
    (1_u32..2_000_000).prop_map(HandleId)
}

fn path() -> impl Strategy<Value = Vec<u8>> {
    let odd = proptest::collection::vec(any::<u8>(), 0..12);
    prop_oneof![
        Just(b"/data/app.db".to_vec()),
        odd.prop_map(|tail| [b"/", &tail[..]].concat())
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        (0..i64::MAX).prop_map(Outcome::Value),
        handle().prop_map(Outcome::Handle),
        (1_i32..600).prop_map(|errno| Outcome::Failed(Errno(errno))),
        Just(Outcome::Unfinished),
        Just(Outcome::Unknown),
    ]
}

#[derive(Clone, Debug)]
struct Seed {
    handle: HandleId,
    other: HandleId,
    from: Vec<u8>,
    to: Vec<u8>,
    number: u32,
    offset: i64,
    size: u64,
    flags: u32,
    yes: bool,
    outcomes: Vec<Outcome>,
    wall: Option<i128>,
}

prop_compose! {
    fn seeds()(
        handle in handle(), other in handle(), from in path(), to in path(), number in any::<u32>(),
        offset in any::<i64>(), size in any::<u64>(), flags in any::<u32>(), yes in any::<bool>(),
        outcomes in proptest::collection::vec(outcome(), 7),
        wall in proptest::option::of(prop_oneof![
            any::<i64>().prop_map(i128::from), Just(1_795_316_400_123_456_789)
        ]),
    ) -> Seed {
        Seed { handle, other, from, to, number, offset, size, flags, yes, outcomes, wall }
    }
}

/// A seed under which every call that strace has words for is written in them.
fn plain() -> Seed {
    Seed {
        handle: HandleId(1),
        other: HandleId(2),
        from: b"/data/a \"b\"\\\n\xc3\xa4\xff".to_vec(),
        to: b"/data/c".to_vec(),
        number: 2,
        offset: 4096,
        size: 100,
        flags: 1,
        yes: false,
        outcomes: vec![Outcome::Value(0)],
        wall: Some(1_795_316_400_123_456_789),
    }
}

fn calls(seed: &Seed, paths: &mut Paths) -> Vec<(Syscall, Op, Outcome)> {
    let mut calls = Vec::new();
    for (syscalls, operation) in operations::all(seed, paths) {
        for syscall in syscalls {
            let outcome = seed.outcomes[calls.len() % seed.outcomes.len()];
            calls.push((*syscall, operation.clone(), outcome));
        }
    }
    calls
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_call_of_any_numbers_comes_back(seed in seeds()) {
        let mut paths = Paths::default();
        let calls = calls(&seed, &mut paths);
        let trace = written(&calls, &paths, seed.wall);
        let text = exported(&trace);
        prop_assert_eq!(text.lines().count(), String::from_utf8_lossy(&trace).lines().count());
        let back = String::from_utf8(restored(&text)).expect("UTF-8");
        prop_assert_eq!(back, String::from_utf8(trace).expect("UTF-8"));
    }
}

#[test]
fn what_strace_has_words_for_is_written_in_them() {
    let mut paths = Paths::default();
    let seed = plain();
    let calls = calls(&seed, &mut paths);
    let mut own = Vec::new();
    for (syscall, operation, _) in calls {
        let opens = matches!(
            operation,
            Operation::Open { .. } | Operation::Duplicate { .. }
        );
        let outcome = if opens {
            Outcome::Handle(HandleId(1))
        } else {
            Outcome::Value(0)
        };
        let text = exported(&written(
            &[(syscall, operation, outcome)],
            &paths,
            seed.wall,
        ));
        if text.contains("\n#= ") {
            own.push(syscall.name());
        }
    }
    own.sort_unstable();
    own.dedup();
    // creat has flags of its own; what dup2 replaced is nowhere in strace's text.
    let expected = "clone close_range creat dup2 dup3 execve exit io_uring_close \
                    io_uring_fallocate io_uring_fsync io_uring_openat io_uring_other \
                    io_uring_read mremap msync munmap present";
    assert_eq!(own.join(" "), expected);
}

#[test]
fn an_exported_trace_reads_as_strace() {
    let mut paths = Paths::default();
    let path = paths.intern(b"/data/a b");
    let open = Operation::Open {
        path,
        flags: OpenFlags::O_RDWR.with(OpenFlags::O_CREAT),
        mode: 0o644,
    };
    let read = Operation::Transfer {
        direction: Direction::Read,
        handle: HandleId(1),
        size: 100,
        buffers: 1,
        offset: Some(7),
        flags: 0,
    };
    let failed = Outcome::Failed(Errno(5));
    let text = exported(&written(
        &[
            (Syscall::Openat, open, Outcome::Handle(HandleId(1))),
            (Syscall::Pread64, read, failed),
        ],
        &paths,
        Some(1_795_316_400_123_456_789),
    ));
    let calls: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(
        calls,
        [
            "4711 1795316400.123456789 openat(AT_FDCWD, \"/data/a b\", O_RDWR|O_CREAT, 0644) = 3",
            "4712 1795316401.623456790 pread64(3, \"\"..., 100, 7) = -1 EIO <0.999999999>",
        ]
    );
}

#[test]
fn a_line_that_is_none_of_an_exports_is_named() {
    let text =
        format!("{EXPORTED_MAGIC}\n#@lost 0\n#@thread t1 p1 tid=7 name=\"\"\n7 1.0 nonsense\n");
    let text = std::io::Cursor::new(text.into_bytes());
    let mut reader = restore(Path::new("x.strace"), text).expect("a head");
    let error = reader.next_call().expect_err("nonsense").to_string();
    assert!(error.contains("x.strace: damaged at line 4"), "{error}");
}

proptest! {
    #[test]
    fn damaged_text_never_panics(at in 0_usize..20_000, byte in any::<u8>(), cut in any::<bool>()) {
        let mut paths = Paths::default();
        let calls = calls(&plain(), &mut paths);
        let mut text = exported(&written(&calls, &paths, None)).into_bytes();
        let at = at % text.len();
        text[at] = byte;
        if cut {
            text.truncate(at + 1);
        }
        if let Ok(mut reader) = restore(Path::new("x"), std::io::Cursor::new(text)) {
            while let Ok(Some(_)) = reader.next_call() {}
        }
    }
}
