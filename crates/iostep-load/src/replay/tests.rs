//! Recordings written by hand are performed in a directory of their own.

use std::path::Path;

use iostep_model::replay::{Performed, Skip, State, Threads, Timing};
use iostep_model::syscall::*;

use super::*;

mod open_files;
mod refused;

type Op = Operation<HandleId, PathId>;

/// A recording that grows call by call, 1 µs each.
#[derive(Default)]
struct Script {
    recording: Recording,
}

impl Script {
    fn path(&mut self, path: &str) -> PathId {
        self.recording.paths.intern(path.as_bytes())
    }

    fn call(&mut self, thread: u32, syscall: Syscall, operation: Op, outcome: Outcome) {
        while self.recording.threads.len() < thread as usize {
            let id = self.recording.threads.len() as u32 + 1;
            self.recording.threads.push(Thread {
                id: ThreadId(id),
                process: ProcessId(1),
                tid: id,
                name: String::new(),
            });
        }
        let start_ns = 1000 * self.recording.calls.len() as u64;
        self.recording.calls.push(Call {
            start_ns,
            duration_ns: Some(900),
            thread: ThreadId(thread),
            syscall,
            operation,
            outcome,
        });
    }

    fn ok(&mut self, syscall: Syscall, operation: Op) {
        self.call(1, syscall, operation, Outcome::Value(0));
    }

    fn open(&mut self, thread: u32, path: &str, flags: OpenFlags, handle: u32) {
        let operation = Operation::Open {
            path: self.path(path),
            flags,
            mode: 0o644,
        };
        self.call(
            thread,
            Syscall::Openat,
            operation,
            Outcome::Handle(HandleId(handle)),
        );
    }

    fn transfer(
        &mut self,
        thread: u32,
        direction: Direction,
        handle: u32,
        size: u64,
        at: Option<i64>,
    ) {
        let handle = HandleId(handle);
        let operation = Operation::Transfer {
            direction,
            handle,
            size,
            buffers: 1,
            offset: at,
            flags: 0,
        };
        let outcome = Outcome::Value(size as i64);
        self.call(thread, Syscall::Pwrite64, operation, outcome);
    }

    fn initially(&mut self, path: &str, kind: InitialKind) {
        let path = self.path(path);
        self.recording.initial.push(InitialFile {
            path,
            kind,
            mode: None,
            seen: true,
        });
    }

    fn perform(&self, parent: &Path, threads: Threads) -> Replay {
        let watch = Watch::default();
        let stage = Stage::set(&self.recording, parent, None, true, &watch).expect("a stage");
        let plan = Plan::new(&self.recording, threads);
        let settings = Settings {
            timing: Timing::Fast,
            speed: 1.0,
            threads,
        };
        stage
            .perform(&self.recording, &plan, settings, &watch)
            .expect("a replay")
    }
}

fn create() -> OpenFlags {
    OpenFlags::O_RDWR.with(OpenFlags::O_CREAT)
}

fn done(replay: &Replay) -> Vec<i64> {
    let value = |performed: &Performed| match performed.state {
        State::Done(value) => value,
        State::Skipped(_) => i64::MIN,
    };
    replay.calls.iter().map(value).collect()
}

fn listing(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .expect("list")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

/// Two files in `/data`: one that is made, mapped, duplicated and renamed, one that was there.
fn everyday() -> Script {
    let mut script = Script::default();
    script.initially("/data", InitialKind::Directory);
    let (size, content) = (5000, Content::Data);
    script.initially("/data/old", InitialKind::File { size, content });
    script.open(1, "/data/new", create(), 1);
    script.transfer(1, Direction::Write, 1, 100, Some(8192));
    script.open(1, "/data/old", OpenFlags::O_RDWR, 2);
    script.transfer(1, Direction::Read, 2, 10_000, None);
    let handle = HandleId(1);
    script.ok(Syscall::Fdatasync, Operation::Sync { handle });
    let (offset, size, flags) = (0, 8192, 1);
    let protection = 3;
    script.ok(
        Syscall::Mmap,
        Operation::Map {
            handle,
            offset,
            size,
            protection,
            flags,
        },
    );
    let (offset, size, flags) = (4096, 4096, 4);
    script.ok(
        Syscall::Msync,
        Operation::SyncMap {
            handle,
            offset,
            size,
            flags,
        },
    );
    script.ok(
        Syscall::Munmap,
        Operation::Unmap {
            handle,
            offset,
            size,
        },
    );
    let replaces = None;
    script.ok(Syscall::Dup, Operation::Duplicate { handle, replaces });
    script.ok(Syscall::Close, Operation::Close { handle });
    script.transfer(1, Direction::Write, 1, 3 << 20, Some(0));
    script.ok(Syscall::Close, Operation::Close { handle });
    script.transfer(1, Direction::Write, 1, 1, Some(0));
    let (from, to) = (script.path("/data/new"), script.path("/data/renamed"));
    script.ok(Syscall::Rename, Operation::Rename { from, to, flags: 0 });
    let (target, mode) = (Target::Path(from), 0);
    script.ok(Syscall::Access, Operation::Access { target, mode });
    let (target, mode) = (Target::Path(to), 0o4600);
    script.ok(Syscall::Chmod, Operation::SetMode { target, mode });
    script.ok(Syscall::Truncate, Operation::Truncate { target, size: 77 });
    script
}

#[test]
fn calls_do_what_they_did() {
    let parent = tempfile::tempdir().expect("a directory");
    let replay = everyday().perform(parent.path(), Threads::Original);
    // The write behind the last close is not issued, and the old name is gone (ENOENT).
    let before = [0, 100, 0, 5000, 0, 0, 0, 0, 0, 0, 3 << 20, 0, i64::MIN];
    let expected = [&before[..], &[0, -2, 0, 0]].concat();
    assert_eq!(done(&replay), expected);
    assert_eq!(replay.calls[12].state, State::Skipped(Skip::NotOpen));
    assert_eq!((replay.prepared.directories, replay.prepared.files), (1, 1));
    assert_eq!(replay.prepared.bytes, 5000);
    let data = parent.path().join("iostep-replay/data");
    assert_eq!(listing(&data), ["old", "renamed"]);
    let found = std::fs::metadata(data.join("renamed")).expect("the file");
    assert_eq!(found.len(), 77);
    use std::os::unix::fs::PermissionsExt;
    let mode = found.permissions().mode() & 0o7777;
    assert_eq!(mode, 0o600, "no set-user-id file is made");
}

/// Every call that could change or remove what a path stands for.
fn try_everything(script: &mut Script, way: &str, handle: u32) {
    let (path, other) = (script.path(way), script.path("/harmless"));
    script.open(1, way, create().with(OpenFlags::O_TRUNC), handle);
    script.transfer(1, Direction::Write, handle, 5, Some(0));
    let target = Target::Path(path);
    script.ok(Syscall::Truncate, Operation::Truncate { target, size: 0 });
    script.ok(Syscall::Chmod, Operation::SetMode { target, mode: 0 });
    script.ok(Syscall::Utimes, Operation::SetTimes { target });
    let (from, to, flags) = (target, other, 0x400);
    script.ok(Syscall::Link, Operation::Link { from, to, flags });
    for (from, to) in [(path, other), (other, path)] {
        script.ok(Syscall::Rename, Operation::Rename { from, to, flags: 0 });
    }
    script.ok(Syscall::Unlink, Operation::Unlink { path });
    let mode = 0o777;
    script.ok(Syscall::Mkdir, Operation::MakeDirectory { path, mode });
    script.ok(Syscall::Rmdir, Operation::RemoveDirectory { path });
}

/// A victim beside the directory, and every way out that a recording may try.
#[test]
fn nothing_outside_of_the_directory_is_touched() {
    let outside = tempfile::tempdir().expect("a directory");
    let parent = outside.path().join("target");
    std::fs::create_dir(&parent).expect("make");
    let victim = outside.path().join("victim");
    std::fs::write(&victim, "precious").expect("write");
    let absolute = victim.to_str().expect("UTF-8").to_owned();
    let mut script = Script::default();
    let content = script.path(outside.path().to_str().expect("UTF-8"));
    script.initially("/absolute", InitialKind::Symlink { content });
    let content = script.path("../../..");
    script.initially("/up", InitialKind::Symlink { content });
    let up = "/../".repeat(40);
    let ways = [
        absolute.clone(),
        format!("{up}{absolute}"),
        "/../../victim".into(),
        "/absolute/victim".into(),
        "/up/victim".into(),
        "/made/victim".into(),
    ];
    let made = script.path("/made");
    script.ok(
        Syscall::Symlink,
        Operation::Symlink {
            content,
            path: made,
        },
    );
    for (way, handle) in ways.iter().zip(1..) {
        try_everything(&mut script, way, handle);
    }
    let before = std::fs::metadata(&victim).expect("the victim");
    let replay = script.perform(&parent, Threads::Original);
    assert!(
        done(&replay).iter().any(|value| *value >= 0),
        "something was performed"
    );
    let after = std::fs::metadata(&victim).expect("the victim is there");
    assert_eq!(std::fs::read(&victim).expect("read"), b"precious");
    assert_eq!(after.permissions(), before.permissions());
    assert_eq!(
        after.modified().expect("a time"),
        before.modified().expect("a time")
    );
    assert_eq!(listing(outside.path()), ["target", "victim"]);
    assert_eq!(listing(&parent), ["iostep-replay"]);
}

#[test]
fn a_link_planted_in_place_of_the_directory_is_refused() {
    let parent = tempfile::tempdir().expect("a directory");
    let elsewhere = tempfile::tempdir().expect("a directory");
    std::fs::write(elsewhere.path().join("precious"), "x").expect("write");
    let link = parent.path().join("iostep-replay");
    std::os::unix::fs::symlink(elsewhere.path(), link).expect("plant");
    let script = Script::default();
    let watch = Watch::default();
    let refused = Stage::set(&script.recording, parent.path(), None, false, &watch);
    assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
    assert_eq!(listing(elsewhere.path()), ["precious"]);
}

#[test]
fn what_no_replay_has_made_is_not_removed() {
    let parent = tempfile::tempdir().expect("a directory");
    let foreign = parent.path().join("iostep-replay");
    std::fs::create_dir(&foreign).expect("made");
    std::fs::write(foreign.join("precious"), "x").expect("write");
    let mut script = Script::default();
    script.open(1, "/a", create(), 1);
    let watch = Watch::default();
    let set = || Stage::set(&script.recording, parent.path(), None, false, &watch);
    let refused = set();
    assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
    assert_eq!(std::fs::read(foreign.join("precious")).expect("read"), b"x");
    std::fs::remove_file(foreign.join("precious")).expect("removed");
    // Nobody loses anything by a replay in an empty one, which is not ours to remove.
    drop(set().expect("a stage"));
    assert!(foreign.is_dir());
    // What a replay has left is marked.
    script.perform(parent.path(), Threads::Original);
    assert!(foreign.join("a").exists());
    drop(set().expect("a stage"));
    assert!(!foreign.join("a").exists());
}

#[test]
fn descriptors_shared_by_threads_are_used_in_order() {
    let parent = tempfile::tempdir().expect("a directory");
    let mut script = Script::default();
    let rounds = 300;
    for round in 0..rounds {
        let handle = round + 1;
        script.open(
            1 + round % 4,
            &format!("/file-{}", round % 3),
            create(),
            handle,
        );
        script.transfer(1 + (round + 1) % 4, Direction::Write, handle, 10, None);
        script.transfer(1 + (round + 2) % 4, Direction::Write, handle, 10, None);
        let close = Operation::Close {
            handle: HandleId(handle),
        };
        script.call(
            1 + (round + 3) % 4,
            Syscall::Close,
            close,
            Outcome::Value(0),
        );
    }
    for threads in [Threads::Original, Threads::Merge] {
        let replay = script.perform(parent.path(), threads);
        assert_eq!(replay.order_violations, 0);
        let expected = [0, 10, 10, 0].iter().cycle().copied();
        assert!(
            done(&replay)
                .into_iter()
                .eq(expected.take(4 * rounds as usize))
        );
    }
}

/// Nothing is issued while others are made ready: times before the start would all be 0.
#[test]
fn calls_begin_at_the_start_in_every_timing() {
    let parent = tempfile::tempdir().expect("a directory");
    let mut script = Script::default();
    for handle in 1..=20 {
        script.open(1, "/a", create(), handle);
    }
    let replay = script.perform(parent.path(), Threads::Original);
    let ends: Vec<u64> = replay.calls.iter().map(|call| call.ended_ns).collect();
    assert!(ends.is_sorted_by(|a, b| a < b), "{ends:?}");
    assert!(ends[0] > 0);
}

#[test]
fn one_thread_that_waits_for_its_own_lock_goes_on() {
    let parent = tempfile::tempdir().expect("a directory");
    let mut script = Script::default();
    script.open(1, "/a", create(), 1);
    script.open(1, "/a", create(), 2);
    for handle in [1, 2] {
        let (handle, kind) = (HandleId(handle), LockKind::Whole);
        let lock = Operation::Lock {
            handle,
            kind,
            lock: 2,
            wait: true,
            offset: 0,
            size: 0,
        };
        script.ok(Syscall::Flock, lock);
    }
    let replay = script.perform(parent.path(), Threads::Merge);
    assert_eq!(done(&replay), [0, 0, 0, -i64::from(libc::EAGAIN)]);
}

#[test]
fn sizes_that_no_machine_has_are_refused_before_anything_is_made() {
    let parent = tempfile::tempdir().expect("a directory");
    let mut script = Script::default();
    let (size, content) = (1 << 60, Content::Data);
    script.initially("/huge", InitialKind::File { size, content });
    let watch = Watch::default();
    let refused = Stage::set(&script.recording, parent.path(), None, false, &watch);
    let Err(Error::Refused { what, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(what.contains("1152921504607895552 bytes"), "{what}");
    assert_eq!(listing(parent.path()), Vec::<String>::new());

    let mut script = Script::default();
    script.open(1, "/a", create(), 1);
    script.transfer(1, Direction::Read, 1, u64::MAX, Some(0));
    script.transfer(1, Direction::Write, 1, 1, Some(i64::MIN));
    let replay = script.perform(parent.path(), Threads::Original);
    assert_eq!(replay.calls[1].state, State::Skipped(Skip::Bounds));
    assert_eq!(replay.calls[2].state, State::Done(-i64::from(libc::EINVAL)));

    // cat asks for as much as one call can copy.
    let mut script = Script::default();
    script.open(1, "/a", create(), 1);
    script.open(1, "/b", create(), 2);
    script.transfer(1, Direction::Write, 1, 5000, Some(0));
    let copy = Operation::Copy {
        from: HandleId(1),
        from_offset: Some(0),
        to: HandleId(2),
        to_offset: None,
        size: i64::MAX as u64,
    };
    script.ok(Syscall::Sendfile, copy);
    let replay = script.perform(parent.path(), Threads::Original);
    assert_eq!(done(&replay)[3], 5000);
}

/// A script with one mapping of an open file.
fn mapped(offset: i64, size: u64) -> Script {
    let mut script = Script::default();
    script.open(1, "/a", create(), 1);
    script.transfer(1, Direction::Write, 1, 1 << 20, Some(0));
    let map = Operation::Map {
        handle: HandleId(1),
        offset,
        size,
        protection: 1,
        flags: 1,
    };
    script.ok(Syscall::Mmap, map);
    script
}

#[test]
fn a_mapping_gets_another_size() {
    let parent = tempfile::tempdir().expect("a directory");
    let (handle, page) = (HandleId(1), rustix::param::page_size() as u64);
    let offset = page as i64;
    let mut script = mapped(offset, 2 * page);
    for (size, new_size) in [(2, 10), (10, 1), (2, 1)] {
        let (size, new_size) = (size * page, new_size * page);
        script.ok(
            Syscall::Mremap,
            Operation::Remap {
                handle,
                offset,
                size,
                new_size,
            },
        );
    }
    let (size, flags) = (page, 4);
    script.ok(
        Syscall::Msync,
        Operation::SyncMap {
            handle,
            offset,
            size,
            flags,
        },
    );
    let replay = script.perform(parent.path(), Threads::Original);
    assert_eq!(done(&replay), [0, 1 << 20, 0, 0, 0, i64::MIN, 0]);
    assert_eq!(replay.calls[5].state, State::Skipped(Skip::NotOpen));
}

/// Where pages are of 4 KiB, too, this is a mapping like any other.
#[test]
fn what_small_pages_allow_is_done_with_larger_ones() {
    let parent = tempfile::tempdir().expect("a directory");
    let handle = HandleId(1);
    let mut script = mapped(3 << 12, 5 << 12);
    let remap = Operation::Remap {
        handle,
        offset: 3 << 12,
        size: 5 << 12,
        new_size: 40 << 12,
    };
    script.ok(Syscall::Mremap, remap);
    for (offset, size) in [(5, 1), (20, 10)] {
        let (offset, size, flags) = (offset << 12, size << 12, 4);
        let sync = Operation::SyncMap {
            handle,
            offset,
            size,
            flags,
        };
        script.ok(Syscall::Msync, sync);
    }
    for (offset, size) in [(20, 3), (3, 17), (23, 20)] {
        let (offset, size) = (offset << 12, size << 12);
        let unmap = Operation::Unmap {
            handle,
            offset,
            size,
        };
        script.ok(Syscall::Munmap, unmap);
    }
    // What no page allows is refused as ever.
    let odd = Operation::Map {
        handle,
        offset: 100,
        size: 4096,
        protection: 1,
        flags: 1,
    };
    script.ok(Syscall::Mmap, odd);
    let replay = script.perform(parent.path(), Threads::Original);
    assert_eq!(done(&replay)[2..], [0, 0, 0, 0, 0, 0, 0, -22]);
}

/// The data of the first file is shorter than the file, that of the second far longer.
#[test]
fn kept_data_is_put_into_files_as_far_as_their_size_goes() {
    let parent = tempfile::tempdir().expect("a directory");
    let trace = parent.path().join("trace");
    let mut writer = kept::Writer::create(&trace, u64::MAX).expect("a directory");
    writer.keep(&mut &b"short"[..], 5).expect("room");
    let mut zeros = std::io::repeat(0);
    writer.keep(&mut zeros, 1 << 26).expect("room");
    writer.publish().expect("a place");
    let mut script = Script::default();
    for (path, number) in [("/short", 1), ("/long", 2)] {
        let (size, content) = (10, Content::Kept(number));
        script.initially(path, InitialKind::File { size, content });
    }
    let set = |data: Option<&Path>| {
        let watch = Watch::default();
        Stage::set(&script.recording, parent.path(), data, false, &watch)
    };
    let stage = set(Some(&kept::directory_of(&trace))).expect("a stage");
    let read = |name| std::fs::read(stage.path().join(name)).expect("a file");
    let short = read("short");
    assert_eq!((&short[..5], short.len()), (&b"short"[..], 10));
    assert_eq!(read("long"), [0; 10]);
    assert_eq!(stage.prepared().bytes, 20);
    drop(stage);
    let missing = set(None).expect_err("no data").to_string();
    assert!(missing.contains("not beside the recording"), "{missing}");
}

#[test]
fn only_ioctls_of_the_list_are_made() {
    let parent = tempfile::tempdir().expect("a directory");
    let mut script = Script::default();
    script.open(1, "/a", create(), 1);
    let handle = HandleId(1);
    // FS_IOC_SETFLAGS, which could make a file immutable.
    let request = 0x4008_6602;
    script.ok(Syscall::Ioctl, Operation::Control { handle, request });
    script.ok(Syscall::Ioctl, Operation::Control { handle, request: 2 });
    let replay = script.perform(parent.path(), Threads::Original);
    assert_eq!(replay.calls[1].state, State::Skipped(Skip::Control));
    assert_eq!(replay.calls[2].state, State::Done(0));
}

#[test]
fn a_file_that_is_no_link_is_told_from_one_that_is_missing() {
    let parent = tempfile::tempdir().expect("a directory");
    let mut script = Script::default();
    script.open(1, "/a", create(), 1);
    let content = script.path("somewhere");
    let path = script.path("/link");
    script.ok(Syscall::Symlink, Operation::Symlink { content, path });
    for path in ["/a", "/link", "/missing"] {
        let path = script.path(path);
        script.ok(Syscall::Readlink, Operation::ReadLink { path, size: 100 });
    }
    let replay = script.perform(parent.path(), Threads::Original);
    let (invalid, missing) = (-i64::from(libc::EINVAL), -i64::from(libc::ENOENT));
    assert_eq!(done(&replay)[2..], [invalid, 9, missing]);
}

#[test]
fn two_thousand_threads_are_started_and_keep_the_order() {
    let parent = tempfile::tempdir().expect("a directory");
    let mut script = Script::default();
    script.open(1, "/a", create().with(OpenFlags::O_APPEND), 1);
    for thread in 2..=2000 {
        script.transfer(thread, Direction::Write, 1, 3, None);
    }
    script.transfer(1, Direction::Read, 1, 1, Some(0));
    let replay = script.perform(parent.path(), Threads::Original);
    assert!(done(&replay)[1..2000].iter().all(|value| *value == 3));
    assert_eq!(replay.order_violations, 0);
    let found = std::fs::metadata(parent.path().join("iostep-replay/a")).expect("the file");
    assert_eq!(found.len(), 3 * 1999);
}

/// Takes all rights from the directories `d/d/...` at these depths, which are in order.
fn take_rights(root: &Path, depths: &[usize]) {
    use std::os::unix::fs::PermissionsExt;
    // The deepest first: below it nothing can be reached any more.
    for depth in depths.iter().rev() {
        let directory = root.join(vec!["d"; *depth].join("/"));
        let none = std::fs::Permissions::from_mode(0o000);
        std::fs::set_permissions(directory, none).expect("the directory is ours");
    }
}

#[test]
fn a_deep_tree_is_removed_whole() {
    let parent = tempfile::tempdir().expect("a directory");
    let mut script = Script::default();
    let mut path = String::new();
    for _ in 0..700 {
        path.push_str("/d");
        let path = script.path(&path);
        let mode = 0o700;
        script.ok(Syscall::Mkdir, Operation::MakeDirectory { path, mode });
    }
    let replay = script.perform(parent.path(), Threads::Original);
    assert!(done(&replay).iter().all(|value| *value == 0));
    take_rights(&parent.path().join("iostep-replay"), &[1, 300, 700]);
    let watch = Watch::default();
    let empty = Recording::default();
    drop(Stage::set(&empty, parent.path(), None, false, &watch).expect("a stage"));
    assert_eq!(listing(parent.path()), Vec::<String>::new());
}

/// A replay that is interrupted a moment after one of its threads is done.
fn interrupted_once_some_are_done(script: &Script, parent: &Path, timing: Timing) -> Replay {
    use std::sync::atomic::Ordering::Relaxed;
    let watch = Watch::default();
    let stage = Stage::set(&script.recording, parent, None, false, &watch).expect("a stage");
    let plan = Plan::new(&script.recording, Threads::Original);
    let settings = Settings {
        timing,
        speed: 1.0,
        threads: Threads::Original,
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while watch.calls.load(Relaxed) == 0 {
                std::thread::yield_now();
            }
            std::thread::sleep(std::time::Duration::from_millis(200));
            watch.interrupted.store(true, Relaxed);
        });
        stage
            .perform(&script.recording, &plan, settings, &watch)
            .expect("a replay")
    })
}

#[test]
fn an_interrupted_replay_keeps_what_it_did() {
    let parent = tempfile::tempdir().expect("a directory");
    let mut script = Script::default();
    script.open(1, "/a", create(), 1);
    script.transfer(2, Direction::Write, 1, 5, Some(0));
    // An hour later.
    script.recording.calls[1].start_ns = 3_600_000_000_000;
    let replay = interrupted_once_some_are_done(&script, parent.path(), Timing::Original);
    assert!(replay.interrupted);
    assert_eq!(replay.calls[0].state, State::Done(0));
    assert_eq!(replay.calls[1].state, State::Skipped(Skip::Interrupted));
}

/// Two threads lock a file, and nobody gives it back.
#[test]
fn a_wait_for_a_lock_ends_with_an_interruption() {
    for (kind, lock) in [
        (LockKind::Whole, libc::LOCK_EX as u32),
        (LockKind::Description, libc::F_WRLCK as u32),
    ] {
        let parent = tempfile::tempdir().expect("a directory");
        let mut script = Script::default();
        for thread in [1, 2] {
            script.open(thread, "/a", create(), thread);
        }
        let lock = |script: &mut Script, thread: u32| {
            let handle = HandleId(thread);
            let (wait, offset, size) = (true, 0, 0);
            let operation = Operation::Lock {
                handle,
                kind,
                lock,
                wait,
                offset,
                size,
            };
            script.call(thread, Syscall::Fcntl, operation, Outcome::Value(0));
        };
        lock(&mut script, 1);
        // The first thread is done when the second has opened its file.
        script.transfer(1, Direction::Write, 2, 5, Some(0));
        lock(&mut script, 2);
        let replay = interrupted_once_some_are_done(&script, parent.path(), Timing::Fast);
        let states: Vec<State> = replay.calls.iter().map(|call| call.state).collect();
        let done = [0, 0, 0, 5].map(State::Done);
        assert_eq!(states[..4], done, "{kind:?}");
        assert_eq!(states[4], State::Skipped(Skip::Interrupted), "{kind:?}");
    }
}
