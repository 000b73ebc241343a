//! Descriptors and paths of one process.

use super::*;

#[test]
fn a_path_is_joined_to_where_the_process_is() {
    let mut program = Program::new();
    program.act(1, Action::ChangeDirectory(path("/data/app")), OK);
    program.open(1, path("./db//main.db"), READ, 3);
    program.open(1, path(".."), OpenFlags::O_DIRECTORY, 4);
    program.open(1, beneath(4, "x"), READ, 5);
    program.open(1, beneath(4, "/abs"), READ, 6);
    program.act(1, Action::ChangeDirectory(beneath(4, "")), OK);
    program.open(1, path("y"), READ, 7);
    let finished = program.finish();
    assert_eq!(
        lines(&finished),
        [
            "t1 openat path=\"/data/app/db/main.db\" flags=O_RDONLY mode=0644 = h1",
            "t1 openat path=\"/data/app/..\" flags=O_RDONLY|O_DIRECTORY mode=0644 = h2",
            "t1 openat path=\"/data/app/../x\" flags=O_RDONLY mode=0644 = h3",
            "t1 openat path=\"/abs\" flags=O_RDONLY mode=0644 = h4",
            "t1 openat path=\"/data/app/../y\" flags=O_RDONLY mode=0644 = h5",
        ]
    );
}

#[test]
fn a_renamed_directory_has_its_new_name_in_later_paths() {
    let mut program = Program::new();
    program.open(1, path("/a"), OpenFlags::O_DIRECTORY, 3);
    let rename = Operation::Rename {
        from: path("/a"),
        to: path("/b"),
        flags: 0,
    };
    program.call(1, Syscall::Rename, rename, OK);
    program.open(1, beneath(3, "f"), READ, 4);
    let last = lines(&program.finish()).pop();
    let expected = "t1 openat path=\"/b/f\" flags=O_RDONLY mode=0644 = h2";
    assert_eq!(last.as_deref(), Some(expected));
}

#[test]
fn what_is_no_file_is_left_out_and_counted_by_kind() {
    let mut program = Program::new();
    let pipe = Action::MakeOther {
        name: "pipe2".into(),
        kind: DescriptorKind::Pipe,
        descriptors: vec![3, 4],
        close_on_exec: false,
    };
    program.act(1, pipe, OK);
    program.read(1, 3);
    program.dup(1, Syscall::Dup, 4, 5);
    program.read(1, 5);
    program.open(1, path("/proc/self/maps"), READ, 6);
    program.read(1, 6);
    program.close(1, 6);
    program.open(1, path("/dev/ashmem"), OpenFlags::O_RDWR, 6);
    program.read(1, 6);
    program.read(1, 0);
    program.open(1, path("/file"), READ, 7);
    program.read(1, 7);
    let finished = program.finish();
    assert_eq!(finished.sink.calls.len(), 2);
    let expected = [
        ("pipe", 4),
        ("kernel file", 3),
        ("ashmem", 2),
        ("standard stream", 1),
    ];
    assert_eq!(counts(&finished, false), expected);
    assert_eq!(counts(&finished, true), [("call", 2)]);
}

#[test]
fn a_descriptor_that_was_never_opened_gets_an_open_that_destroys_nothing() {
    let mut program = Program::new();
    program.read(1, 9);
    program.transfer(1, 9, Direction::Write, Some(0), 5);
    let hinted = Descriptor {
        number: 10,
        known: known(DescriptorKind::File, Some("/data/log")),
    };
    let read = transfer(hinted, Direction::Read, None, 7);
    program.call(1, Syscall::Read, read, Returned::Value(7));
    let socket = Descriptor {
        number: 11,
        known: known(DescriptorKind::Socket, None),
    };
    let read = transfer(socket, Direction::Read, None, 7);
    program.call(1, Syscall::Read, read, Returned::Value(7));
    program.close(1, 11);
    let finished = program.finish();
    assert_eq!(
        lines(&finished),
        [
            "t1 present path=\"/iostep.never-opened/1-1\" flags=O_RDWR mode=0000 = h1",
            "t1 pread64 h1 size=10 offset=0 = 10",
            "t1 pread64 h1 size=5 offset=0 = 5",
            "t1 present path=\"/data/log\" flags=O_RDWR mode=0000 = h2",
            "t1 read h2 size=7 = 7",
        ]
    );
    let expected = [("call that needed an open", 2), ("call", 1)];
    assert_eq!(counts(&finished, true), expected);
    assert_eq!(counts(&finished, false), [("socket", 2)]);
}

#[test]
fn a_call_on_a_closed_descriptor_touches_no_file() {
    let mut program = Program::new();
    program.open(1, path("/f"), READ, 3);
    program.close(1, 3);
    let failed = Returned::Failed(Errno::EBADF);
    let read = transfer(number(3), Direction::Read, None, 7);
    program.call(1, Syscall::Read, read, failed);
    let write = transfer(number(-1), Direction::Write, None, 7);
    program.call(1, Syscall::Write, write, failed);
    program.close(1, 77);
    let finished = program.finish();
    let expected = [
        ("closed descriptor", 1),
        ("no descriptor", 1),
        ("close of what was never opened", 1),
    ];
    assert_eq!(counts(&finished, false), expected);
}

#[test]
fn a_write_to_a_descriptor_open_for_reading_is_kept_with_its_error() {
    let mut program = Program::new();
    program.open(1, path("/f"), READ, 3);
    let failed = Returned::Failed(Errno::EBADF);
    let write = transfer(number(3), Direction::Write, None, 7);
    program.call(1, Syscall::Write, write, failed);
    let last = lines(&program.finish()).pop();
    assert_eq!(last.as_deref(), Some("t1 write h1 size=7 = -EBADF"));
}

#[test]
fn a_number_used_again_before_its_close_ended_keeps_both_files_apart() {
    let mut program = Program::new();
    program.clone(1, 2, true);
    program.open(1, path("/old"), READ, 3);
    let at = |start_ns, end_ns, tid, operation, returned| Event {
        tid,
        start_ns,
        duration_ns: Some(end_ns - start_ns),
        action: Action::Operation(Syscall::Close, operation),
        returned,
        seen: None,
    };
    let open = Operation::Open {
        path: path("/new"),
        flags: READ,
        mode: 0,
    };
    let close = Operation::Close { handle: number(3) };
    program.event(at(10_100, 10_200, 2, open, Returned::Value(3)));
    // Began before the open, read the old file, ended after it.
    let read = transfer(number(3), Direction::Read, None, 4);
    program.event(at(10_000, 10_300, 1, read, Returned::Value(4)));
    program.event(at(10_050, 10_400, 1, close, OK));
    program.now_ns = 20_000;
    program.read(2, 3);
    let finished = program.finish();
    let got: Vec<String> = lines(&finished).split_off(2);
    assert_eq!(
        got,
        [
            "t1 close h1 size=4 = 4".to_owned(),
            "t1 close h1 = 0".to_owned(),
            "t2 pread64 h2 size=10 offset=0 = 10".to_owned(),
        ]
    );
}

#[test]
fn dup2_closes_what_it_replaces() {
    let mut program = Program::new();
    program.open(1, path("/a"), READ, 3);
    program.open(1, path("/b"), READ, 4);
    program.dup(1, Syscall::Dup2, 3, 4);
    program.dup(1, Syscall::Dup2, 3, 3);
    program.close(1, 3);
    program.read(1, 4);
    let calls = lines(&program.finish());
    assert_eq!(calls[2], "t1 dup2 h1 replaces=h2 = h1");
    assert_eq!(
        calls[3..],
        ["t1 close h1 = 0", "t1 pread64 h1 size=10 offset=0 = 10"]
    );
}

#[test]
fn memory_goes_back_to_the_file_that_is_mapped_there() {
    let mut program = Program::new();
    program.open(1, path("/a"), OpenFlags::O_RDWR, 3);
    let map = Operation::Map {
        handle: number(3),
        offset: 0x4000,
        size: 0x3000,
        protection: 3,
        flags: 1,
    };
    program.call(1, Syscall::Mmap, map, Returned::Value(0x7000_0000));
    program.close(1, 3);
    let sync = Action::SyncMap {
        address: 0x7000_1000,
        size: 0x1000,
        flags: 4,
    };
    program.act(1, sync, OK);
    let unmap = |address, size| Action::Unmap { address, size };
    program.act(1, unmap(0x7000_0000, 0x3000), OK);
    program.act(1, unmap(0x7000_0000, 0x3000), OK);
    let finished = program.finish();
    let calls = lines(&finished);
    assert_eq!(
        calls[3..],
        [
            "t1 msync h1 offset=20480 size=4096 flags=0x4 = 0".to_owned(),
            "t1 munmap h1 offset=16384 size=12288 = 0".to_owned(),
        ]
    );
    assert_eq!(counts(&finished, false), [("memory without a file", 1)]);
}

#[test]
fn a_mapping_that_grew_or_moved_is_followed() {
    let mut program = Program::new();
    program.open(1, path("/a"), OpenFlags::O_RDWR, 3);
    let map = Operation::Map {
        handle: number(3),
        offset: 0x4000,
        size: 0x3000,
        protection: 3,
        flags: 1,
    };
    program.call(1, Syscall::Mmap, map, Returned::Value(0x7000_0000));
    let remap = |address, size, new_size| Action::Remap {
        address,
        size,
        new_size,
    };
    let no_memory = Returned::Failed(Errno(12));
    program.act(1, remap(0x7000_0000, 0x3000, 1 << 60), no_memory);
    let moved = Returned::Value(0x8000_0000);
    program.act(1, remap(0x7000_0000, 0x3000, 0x9000), moved);
    program.act(1, remap(0x7000_0000, 0x3000, 0x9000), no_memory);
    let unmap = |address, size| Action::Unmap { address, size };
    program.act(1, unmap(0x8000_0000, 0x9000), OK);
    let finished = program.finish();
    let calls = lines(&finished);
    assert_eq!(
        calls[2..],
        [
            format!(
                "t1 mremap h1 offset=16384 size=12288 new_size={} = -ENOMEM",
                1u64 << 60
            ),
            "t1 mremap h1 offset=16384 size=12288 new_size=36864 = 0".to_owned(),
            "t1 munmap h1 offset=16384 size=36864 = 0".to_owned(),
        ]
    );
    assert_eq!(counts(&finished, false), [("memory without a file", 1)]);
}

#[test]
fn an_empty_path_beside_a_descriptor_means_the_descriptor() {
    let mut program = Program::new();
    program.open(1, path("/a"), READ, 3);
    let stat = |path| Operation::Stat {
        target: iostep_model::syscall::Target::Path(path),
        follow: true,
    };
    program.call(1, Syscall::Newfstatat, stat(beneath(3, "")), OK);
    program.call(1, Syscall::Stat, stat(path("")), ENOENT);
    let finished = program.finish();
    assert_eq!(finished.sink.calls[1].operation.handles(), [HandleId(1)]);
    assert_eq!(counts(&finished, false), [("empty path", 1)]);
}

#[test]
fn a_path_that_grows_without_end_is_left_out() {
    let mut program = Program::new();
    for _ in 0..100_000 {
        program.act(1, Action::ChangeDirectory(path("deeper/and/deeper")), OK);
    }
    program.open(1, path("f"), READ, 3);
    let finished = program.finish();
    assert!(counts(&finished, false)[0].1 > 90_000);
}
