//! A file reads back as what was written, and nothing hostile does harm.

use std::path::Path;

use proptest::prelude::*;

use super::super::identity::*;
use super::super::recording::*;
use super::super::{Direction, LockKind, OpenFlags, Operation, Syscall, Target, Whence};
use super::*;

fn call(start_ns: u64, syscall: Syscall, operation: Operation<HandleId, PathId>) -> Call {
    Call {
        start_ns,
        duration_ns: Some(7),
        thread: ThreadId(1),
        syscall,
        operation,
        outcome: Outcome::Value(0),
    }
}

type Asked = (Syscall, Operation<HandleId, PathId>);

const H: HandleId = HandleId(1);
const G: HandleId = HandleId(2);
const FILE: Target<HandleId, PathId> = Target::Handle(H);
const DIRECT: OpenFlags = OpenFlags(OpenFlags::O_RDWR.0 | OpenFlags::O_DIRECT.0);

fn transfer(
    direction: Direction,
    offset: Option<i64>,
    buffers: u32,
    flags: u32,
) -> Operation<HandleId, PathId> {
    Operation::Transfer {
        direction,
        handle: H,
        size: u64::MAX,
        buffers,
        offset,
        flags,
    }
}

fn lock(kind: LockKind, wait: bool) -> Operation<HandleId, PathId> {
    Operation::Lock {
        handle: H,
        kind,
        lock: 2,
        wait,
        offset: 0,
        size: 0,
    }
}

#[rustfmt::skip]
fn opens_and_closes(a: PathId, b: PathId) -> Vec<Asked> {
    use Operation as O;
    vec![
        (Syscall::Openat, O::Open { path: a, flags: DIRECT, mode: 0o644 }),
        (Syscall::Present, O::Open { path: b, flags: OpenFlags::NONE, mode: 0 }),
        (Syscall::Present, O::Seek { handle: H, offset: 5, whence: Whence::Start }),
        (Syscall::Present, O::Duplicate { handle: H, replaces: None }),
        (Syscall::Openat, O::Reopen { handle: H, flags: DIRECT, mode: 0 }),
        (Syscall::UringOpenat, O::Reopen { handle: G, flags: OpenFlags::O_PATH, mode: 0o600 }),
        (Syscall::Close, O::Close { handle: H }),
        (Syscall::Exit, O::CloseMany { handles: [H, G, H].into() }),
        (Syscall::CloseRange, O::CloseMany { handles: [].into() }),
        (Syscall::Dup2, O::Duplicate { handle: H, replaces: Some(G) }),
        (Syscall::Fcntl, O::Duplicate { handle: H, replaces: None }),
    ]
}

#[rustfmt::skip]
fn inherits_and_seeks() -> Vec<Asked> {
    use Operation as O;
    vec![
        (Syscall::Clone, O::Inherit { child: ThreadId(1), handles: [H].into() }),
        (Syscall::Execve, O::Inherit { child: ThreadId(1), handles: [H].into() }),
        (Syscall::Lseek, O::Seek { handle: H, offset: -9, whence: Whence::Hole }),
    ]
}

#[rustfmt::skip]
fn transfers(a: PathId) -> Vec<Asked> {
    use Operation as O;
    vec![
        (Syscall::Pread64, transfer(Direction::Read, Some(-1), 1, 0)),
        (Syscall::Pwritev2, transfer(Direction::Write, Some(i64::MAX), 3, 2)),
        (Syscall::UringWrite, transfer(Direction::Write, None, 1, 0)),
        (Syscall::AioPread, transfer(Direction::Read, Some(4096), 1, 0)),
        (Syscall::AioPwritev, transfer(Direction::Write, Some(0), 2, 2)),
        (Syscall::AioFdsync, O::Sync { handle: H }),
        (Syscall::Ftruncate, O::Truncate { target: FILE, size: -1 }),
        (Syscall::Truncate, O::Truncate { target: Target::Path(a), size: 1 }),
        (Syscall::Fallocate, O::Allocate { handle: H, mode: 3, offset: 1, size: 2 }),
        (Syscall::Fadvise64, O::Advise { handle: H, offset: 0, size: 0, advice: 4 }),
        (Syscall::CopyFileRange, O::Copy { from: H, from_offset: None, to: G, to_offset: Some(3), size: 8 }),
    ]
}

#[rustfmt::skip]
fn syncs() -> Vec<Asked> {
    use Operation as O;
    vec![
        (Syscall::Fdatasync, O::Sync { handle: H }),
        (Syscall::SyncFileRange, O::SyncRange { handle: H, offset: 1, size: 2, flags: 7 }),
        (Syscall::Sync, O::SyncAll),
        (Syscall::Mmap, O::Map { handle: H, offset: 0, size: 9, protection: 3, flags: 1 }),
        (Syscall::Munmap, O::Unmap { handle: H, offset: 0, size: 9 }),
        (Syscall::Msync, O::SyncMap { handle: H, offset: 0, size: 9, flags: 4 }),
    ]
}

#[rustfmt::skip]
fn names(a: PathId, b: PathId) -> Vec<Asked> {
    use Operation as O;
    vec![
        (Syscall::Renameat2, O::Rename { from: a, to: b, flags: 1 }),
        (Syscall::Linkat, O::Link { from: Target::Path(a), to: b, flags: 0 }),
        (Syscall::Linkat, O::Link { from: FILE, to: b, flags: 0x1000 }),
        (Syscall::Symlink, O::Symlink { content: b, path: a }),
        (Syscall::Unlinkat, O::Unlink { path: a }),
        (Syscall::Unlinkat, O::RemoveDirectory { path: a }),
        (Syscall::Rmdir, O::RemoveDirectory { path: a }),
        (Syscall::Mkdir, O::MakeDirectory { path: a, mode: 0o755 }),
        (Syscall::Faccessat, O::Access { target: Target::Path(a), mode: 6 }),
        (Syscall::Faccessat2, O::Access { target: FILE, mode: 4 }),
        (Syscall::Readlink, O::ReadLink { path: a, size: 99 }),
    ]
}

#[rustfmt::skip]
fn attributes(a: PathId) -> Vec<Asked> {
    use Operation as O;
    vec![
        (Syscall::Newfstatat, O::Stat { target: Target::Path(a), follow: false }),
        (Syscall::Fstat, O::Stat { target: FILE, follow: true }),
        (Syscall::Fstatfs, O::StatFilesystem { target: FILE }),
        (Syscall::Getdents64, O::ReadDirectory { handle: H, size: 32768 }),
        (Syscall::Fchmod, O::SetMode { target: FILE, mode: 0o600 }),
        (Syscall::Chown, O::SetOwner { target: Target::Path(a), user: -1, group: 5 }),
        (Syscall::Utimensat, O::SetTimes { target: Target::Path(a) }),
    ]
}

#[rustfmt::skip]
fn controls() -> Vec<Asked> {
    use Operation as O;
    vec![
        (Syscall::Flock, lock(LockKind::Whole, true)),
        (Syscall::Fcntl, lock(LockKind::Process, false)),
        (Syscall::Fcntl, lock(LockKind::Query, false)),
        (Syscall::Fcntl, O::StatusFlags { handle: H, set: None }),
        (Syscall::Fcntl, O::StatusFlags { handle: H, set: Some(DIRECT) }),
        (Syscall::Ioctl, O::Control { handle: H, request: 0xf501 }),
        (Syscall::Ioctl, O::Reflink { from: H, to: G, size: 0, from_offset: 0, to_offset: 0 }),
        (Syscall::Ioctl, O::Reflink { from: G, to: H, size: 4096, from_offset: 1, to_offset: 2 }),
        (Syscall::UringOther, O::Other { handle: H, code: 40 }),
    ]
}

/// What io_uring does by other names.
#[rustfmt::skip]
fn requests(from: PathId, to: PathId) -> Vec<Asked> {
    use Operation as O;
    let (path, handle) = (from, H);
    let target = Target::Path(path);
    let flags = 1;
    vec![
        (Syscall::UringFdatasync, O::Sync { handle }),
        (Syscall::UringFtruncate, O::Truncate { target: Target::Handle(handle), size: 9 }),
        (Syscall::UringFadvise, O::Advise { handle, offset: 1, size: 2, advice: 4 }),
        (Syscall::UringStatx, O::Stat { target, follow: false }),
        (Syscall::UringRenameat, O::Rename { from, to, flags }),
        (Syscall::UringLinkat, O::Link { from: target, to, flags }),
        (Syscall::UringSymlinkat, O::Symlink { content: to, path }),
        (Syscall::UringUnlinkat, O::Unlink { path }),
        (Syscall::Mremap, O::Remap { handle, offset: 4096, size: 1, new_size: 2 }),
        (Syscall::UringUnlinkat, O::RemoveDirectory { path }),
        (Syscall::UringMkdirat, O::MakeDirectory { path, mode: 0o750 }),
    ]
}

/// One call of every operation and of every way to write it, and one of every outcome.
fn every_operation(paths: &mut Paths) -> Vec<Call> {
    let a = paths.intern(b"/a b\"c\\\n\xff = h1");
    let b = paths.intern("/é".as_bytes());
    let list = [
        opens_and_closes(a, b),
        inherits_and_seeks(),
        transfers(a),
        syncs(),
        names(a, b),
        attributes(a),
        controls(),
        requests(a, b),
    ];
    let numbered = list.into_iter().flatten().enumerate();
    let mut calls: Vec<Call> = numbered
        .map(|(n, (syscall, operation))| call(n as u64, syscall, operation))
        .collect();
    let opened = [Outcome::Handle(H), Outcome::Handle(G)];
    let opens = calls
        .iter_mut()
        .filter(|c| matches!(c.operation, Operation::Open { .. }));
    opens
        .zip(opened)
        .for_each(|(call, outcome)| call.outcome = outcome);
    let others = calls
        .iter_mut()
        .filter(|c| matches!(c.operation, Operation::Transfer { .. }));
    let outcomes = [
        Outcome::Failed(Errno(22)),
        Outcome::Unfinished,
        Outcome::Unknown,
    ];
    others.zip(outcomes).for_each(|(call, outcome)| {
        call.outcome = outcome;
        call.duration_ns = call.duration_ns.filter(|_| outcome != Outcome::Unknown);
    });
    if let Some(last) = calls.last_mut() {
        last.outcome = Outcome::Failed(Errno(4000));
    }
    calls
}

/// One of everything that can be at a path.
fn initial(path: PathId) -> Vec<InitialFile> {
    let initial = |kind, seen| InitialFile {
        path,
        mode: matches!(kind, InitialKind::File { .. }).then_some(0o4755),
        kind,
        seen,
    };
    vec![
        initial(InitialKind::Absent, true),
        initial(InitialKind::Directory, false),
        initial(InitialKind::Fifo, true),
        initial(InitialKind::Socket, false),
        initial(InitialKind::Device, false),
        initial(
            InitialKind::File {
                size: 99,
                content: Content::Sparse(7),
            },
            true,
        ),
        initial(InitialKind::Symlink { content: path }, false),
        initial(InitialKind::HardLink { of: path }, false),
        initial(
            InitialKind::File {
                size: 9,
                content: Content::Data,
            },
            true,
        ),
        initial(
            InitialKind::File {
                size: 9,
                content: Content::Hole,
            },
            true,
        ),
        initial(
            InitialKind::File {
                size: 9,
                content: Content::Kept(4),
            },
            true,
        ),
    ]
}

fn recording() -> Recording {
    let mut paths = Paths::default();
    let calls = every_operation(&mut paths);
    let path = paths.intern(b"/x");
    let mut ledger = Ledger {
        lost: 3,
        ..Ledger::default()
    };
    ledger.add(true, "call", calls.len() as u64);
    ledger.add(false, "socket", 12);
    Recording {
        header: Header {
            recorder: "iostep test".into(),
            machine: "Linux".into(),
            command: vec![b"a b".to_vec(), b"\xff".to_vec()],
            clock: Clock {
                start_wall_ns: Some(-5),
                resolution_ns: 1,
            },
        },
        threads: vec![Thread {
            id: ThreadId(1),
            process: ProcessId(1),
            tid: 4711,
            name: "a \"name\"".into(),
        }],
        initial: initial(path),
        ledger,
        calls,
        paths,
        cut_at_line: None,
    }
}

fn written(recording: &Recording, path: &Path, order: impl Iterator<Item = usize>) {
    let mut writer = Writer::create(path, recording.header.clone()).expect("create");
    recording
        .threads
        .iter()
        .for_each(|thread| writer.thread(thread));
    for index in order {
        writer
            .call(&recording.calls[index], &recording.paths)
            .expect("write");
    }
    let finished = writer.finish(&recording.initial, &recording.ledger, &recording.paths);
    finished.expect("finish");
}

/// A recording with its paths spelled out, for numbers of paths depend on who met them first.
fn spelled(recording: &Recording) -> String {
    let mut text = format!("{:?} {:?}", recording.header, recording.ledger);
    for call in &recording.calls {
        write_call(call, &recording.paths, &mut text);
        text.push('\n');
    }
    for file in &recording.initial {
        text += &format!("{:?} {:?}", recording.paths.get(file.path), file.seen);
    }
    text
}

#[test]
fn every_operation_reads_back_plain_and_compressed() {
    let dir = tempfile::tempdir().expect("a directory");
    let original = recording();
    for name in ["x.trace", "x.trace.zst"] {
        let path = dir.path().join(name);
        written(&original, &path, 0..original.calls.len());
        let back = read(&path).expect("read");
        assert_eq!(spelled(&back), spelled(&original));
        assert_eq!(back.threads, original.threads);
        assert_eq!(back.cut_at_line, None);
        for (one, other) in back.calls.iter().zip(&original.calls) {
            assert_eq!(one.operation.handles(), other.operation.handles());
        }
    }
}

#[test]
fn permissions_of_any_length_read_back() {
    let mut original = recording();
    let path = original.paths.intern(b"/x");
    for mode in [0, 0o644, 0o1777, 0o100_644, u32::MAX] {
        let operation = Operation::MakeDirectory { path, mode };
        original.calls = vec![call(0, Syscall::Mkdir, operation)];
        let back = read_text(text_of(&original).as_bytes()).expect("read");
        assert!(
            matches!(back.calls[0].operation, Operation::MakeDirectory { mode: m, .. } if m == mode)
        );
    }
}

#[test]
fn calls_that_end_out_of_order_are_sorted_by_their_begin() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("x");
    let mut original = recording();
    let sync = call(0, Syscall::Sync, Operation::SyncAll);
    original.calls = vec![sync; 100_000];
    let numbered = original.calls.iter_mut().enumerate();
    numbered.for_each(|(n, call)| call.start_ns = n as u64);
    // The first call of all ends last: it left the window long before.
    let order = (1..100_000).chain([0]);
    written(&original, &path, order);
    let back = read(&path).expect("read");
    assert!(back.calls.iter().map(|call| call.start_ns).eq(0..100_000));
}

fn text_of(recording: &Recording) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("x");
    written(recording, &path, 0..recording.calls.len());
    std::fs::read_to_string(path).expect("read")
}

fn read_text(text: &[u8]) -> crate::Result<Recording> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("x");
    std::fs::write(&path, text).expect("write");
    read(&path)
}

#[test]
fn a_file_cut_at_any_byte_gives_the_whole_calls_before_the_cut_or_an_error() {
    let text = text_of(&recording());
    let head = text.find("\n0 7 t1").expect("the first call") + 1;
    let body = &text[head..];
    for cut in 0..text.len() {
        let Ok(read) = read_text(&text.as_bytes()[..cut]) else {
            continue;
        };
        if cut < head {
            assert!(read.calls.is_empty());
        } else {
            let lines = body.as_bytes()[..cut - head].iter();
            let whole = lines.filter(|byte| **byte == b'\n').count();
            assert!(read.calls.len() <= whole + 1, "{cut}");
        }
        assert!(read.cut_at_line.is_some() || cut + 1 >= text.len());
    }
}

#[test]
fn faults_are_named_with_their_line() {
    let head = format!("{MAGIC}\n@thread t1 p1 tid=1 name=\"x\"\n");
    for (line, expected) in [
        (
            "0 1 t1 opne path=\"/x\" = 0",
            "opne: no system call of a trace",
        ),
        ("0 1 t2 sync = 0", "t2 is not declared"),
        ("0 1 t1 read h1 size=9 = 9", "no call opens h1"),
        (
            "0 1 t1 read h1 size=-9 = 9",
            "size=-9: not a number that fits",
        ),
        ("0 1 t1 sync what=9 = 0", "what=9: not known here"),
        ("0 1 t1 sync", "no outcome"),
        ("0 1 t1 unlink path=\"x = 0", "a quote that is not closed"),
        (
            "0 1 t1 openat path=\"/x\" flags=O_MAGIC mode=0 = h1",
            "O_MAGIC: no flag",
        ),
        (
            "0 1 t1 openat path=\"/x\" flags=O_RDWR mode=0 = h4000000000",
            "without gaps",
        ),
        ("9 1 t1 sync = 0\n8 1 t1 sync = 0", "sort the calls by time"),
        (
            "0 1 t1 sync = 0\n@end calls=2",
            "@end counts 2 calls, 1 are there",
        ),
        ("0 1 t1 clone child=t9 = 0", "t9 is not declared"),
    ] {
        let text = format!("{head}{line}\n@end calls=1\n");
        let error = read_text(text.as_bytes()).expect_err(line).to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = read_text(b"open(\"/x\", O_RDONLY) = 3\n")
        .expect_err("strace's")
        .to_string();
    assert!(error.contains("iostep clean"), "{error}");
    let long = [head.as_bytes(), &vec![b'x'; MAX_LINE_BYTES + 1]].concat();
    let error = read_text(&long).expect_err("long").to_string();
    assert!(error.contains("longer than"), "{error}");
}

proptest! {
    #[test]
    fn a_damaged_file_never_panics(at in 0usize..4000, byte in any::<u8>(), cut in any::<bool>()) {
        let mut text = text_of(&recording()).into_bytes();
        let at = at % text.len();
        text[at] = byte;
        if cut {
            text.truncate(at + 1);
        }
        let _ = read_text(&text);
    }

    #[test]
    fn any_bytes_survive_quotes(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let mut text = String::new();
        quote(&bytes, &mut text);
        prop_assert!(!text.contains('\n'));
        prop_assert_eq!(unquote(text.as_bytes()), Some(bytes));
    }
}
