//! Fork, exec, exit, and what threads share.

use iostep_model::syscall::Content;
use iostep_model::syscall::raw::{Seen, SeenKind};

use super::*;

#[test]
fn a_fork_copies_descriptors_and_a_thread_shares_them() {
    let mut program = Program::new();
    program.open(10, path("/a"), READ, 3);
    program.clone(10, 11, true);
    program.clone(10, 12, false);
    program.close(11, 3);
    program.read(12, 3);
    let finished = program.finish();
    assert_eq!(
        lines(&finished)[1..],
        [
            "t1 clone child=t2 h1 = 0",
            "t3 close h1 = 0",
            "t2 pread64 h1 size=10 offset=0 = 10"
        ]
    );
    let threads = &finished.sink.threads;
    let of = |index: usize| (threads[index].tid, threads[index].process.0);
    assert_eq!([of(0), of(1), of(2)], [(10, 1), (12, 2), (11, 1)]);
}

#[test]
fn exec_closes_what_is_marked_and_ends_other_threads() {
    let mut program = Program::new();
    program.open(1, path("/a"), OpenFlags::O_CLOEXEC, 3);
    program.open(1, path("/b"), READ, 4);
    program.open(1, path("/c"), READ, 5);
    let mark = Action::CloseOnExec {
        of: number(5),
        on: true,
    };
    program.act(1, mark, OK);
    program.clone(1, 2, true);
    program.act(1, Action::Execute { name: "sh".into() }, OK);
    program.read(1, 4);
    program.exit(2, false);
    let finished = program.finish();
    let calls = lines(&finished);
    assert_eq!(calls[3], "t1 execve h1 h3 = 0");
    assert_eq!(calls[4], "t1 pread64 h2 size=10 offset=0 = 10");
    assert_eq!(finished.sink.threads[0].name, "sh");
}

#[test]
fn the_last_thread_closes_what_is_open() {
    let mut program = Program::new();
    program.open(1, path("/a"), READ, 3);
    program.clone(1, 2, true);
    program.exit(1, false);
    program.read(2, 3);
    program.exit(2, true);
    let calls = lines(&program.finish());
    assert_eq!(
        calls[1..],
        ["t2 pread64 h1 size=10 offset=0 = 10", "t2 exit h1 = 0"]
    );
}

#[test]
fn a_child_that_ran_before_its_clone_was_told_has_its_parents_files() {
    let mut program = Program::new();
    program.open(1, path("/a"), READ, 3);
    program.open(2, path("/b"), READ, 4);
    program.clone(1, 2, false);
    program.read(2, 3);
    program.read(2, 4);
    let finished = program.finish();
    let calls = lines(&finished);
    assert_eq!(
        calls[2..],
        [
            "t1 clone child=t2 h1 = 0",
            "t2 pread64 h1 size=10 offset=0 = 10",
            "t2 pread64 h2 size=10 offset=0 = 10"
        ]
    );
}

#[test]
fn a_thread_whose_clone_is_told_late_shares_from_then_on() {
    let mut program = Program::new();
    program.open(1, path("/a"), READ, 3);
    program.open(2, path("/b"), READ, 4);
    program.clone(1, 2, true);
    program.read(2, 3);
    program.read(1, 4);
    let finished = program.finish();
    assert_eq!(finished.sink.calls[2].operation.handles(), [HandleId(1)]);
    assert_eq!(finished.sink.calls[3].operation.handles(), [HandleId(2)]);
}

#[test]
fn a_thread_number_that_is_used_again_is_another_thread() {
    let mut program = Program::new();
    program.clone(1, 2, true);
    program.open(2, path("/a"), READ, 3);
    program.exit(2, false);
    program.clone(1, 2, false);
    program.read(2, 3);
    let finished = program.finish();
    let tids: Vec<u32> = finished
        .sink
        .threads
        .iter()
        .map(|thread| thread.tid)
        .collect();
    assert_eq!(tids, [2, 1, 2]);
    assert_eq!(lines(&finished)[2], "t3 pread64 h1 size=10 offset=0 = 10");
}

#[test]
fn what_was_open_already_is_opened_with_its_position() {
    let mut program = Program::new();
    let present = |number, same_as| Action::Present {
        received: false,
        number,
        is: known(DescriptorKind::File, Some("/db")).expect("known"),
        flags: OpenFlags::O_RDWR
            .with(OpenFlags::O_TRUNC)
            .with(OpenFlags::O_CREAT),
        position: 100,
        same_as,
    };
    program.act(1, present(3, 7), OK);
    program.act(1, present(4, 7), OK);
    program.act(1, present(5, 0), OK);
    let finished = program.finish();
    assert_eq!(
        lines(&finished),
        [
            "t1 present path=\"/db\" flags=O_RDWR mode=0000 = h1",
            "t1 present h1 offset=100 whence=set = 100",
            "t1 present h1 = h1",
            "t1 present path=\"/db\" flags=O_RDWR mode=0000 = h2",
            "t1 present h2 offset=100 whence=set = 100",
        ]
    );
    assert_eq!(counts(&finished, true), [("open already", 3)]);
}

#[test]
fn a_file_that_came_from_another_process_is_the_open_one_as_long_as_it_is_open() {
    let mut program = Program::new();
    let open = Operation::Open {
        path: path("/own"),
        flags: OpenFlags::O_RDWR,
        mode: 0,
    };
    program.event(Event {
        tid: 1,
        start_ns: 0,
        duration_ns: Some(0),
        action: Action::Operation(Syscall::Openat, open),
        returned: Returned::Value(3),
        seen: Some(Seen {
            identity: Some((1, 2)),
            names: None,
            kind: SeenKind::File {
                size: Some(10),
                content: Content::Data,
            },
            mode: None,
            open_file: 0xffff_8880_0000_1000,
        }),
    });
    let received = |number, kind, path| Action::Present {
        number,
        is: known(kind, path).expect("known"),
        flags: OpenFlags::O_RDWR,
        position: 0,
        same_as: 0xffff_8880_0000_1000,
        received: true,
    };
    program.act(2, received(5, DescriptorKind::File, None), OK);
    program.close(1, 3);
    program.read(2, 5);
    program.close(2, 5);
    program.act(2, received(5, DescriptorKind::File, Some("/own")), OK);
    program.act(2, received(6, DescriptorKind::Pipe, None), OK);
    program.read(2, 6);
    let finished = program.finish();
    assert_eq!(
        lines(&finished),
        [
            "t1 openat path=\"/own\" flags=O_RDWR mode=0000 = h1",
            "t2 present h1 = h1",
            "t1 close h1 = 0",
            "t2 pread64 h1 size=10 offset=0 = 10",
            "t2 close h1 = 0",
            "t2 present path=\"/own\" flags=O_RDWR mode=0000 = h2",
        ]
    );
    let kept = [("call", 4), ("came from another process", 2)];
    assert_eq!(counts(&finished, true), kept);
    assert_eq!(counts(&finished, false), [("pipe", 2)]);
}
