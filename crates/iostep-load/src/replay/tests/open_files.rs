//! Calls that name a file by what is open.

use std::os::unix::fs::MetadataExt;

use super::*;

#[test]
fn what_is_open_is_opened_again_and_linked_when_its_name_is_gone() {
    let mut script = Script::default();
    script.initially("/data", InitialKind::Directory);
    script.open(1, "/data/f", create(), 1);
    script.transfer(1, Direction::Write, 1, 10, None);
    let path = script.path("/data/f");
    script.ok(Syscall::Unlink, Operation::Unlink { path });
    let reopen = |flags| Operation::Reopen {
        handle: HandleId(1),
        flags,
        mode: 0,
    };
    let opened = |handle| Outcome::Handle(HandleId(handle));
    script.call(1, Syscall::Openat, reopen(OpenFlags::O_RDWR), opened(2));
    script.transfer(1, Direction::Read, 2, 100, None);
    script.transfer(1, Direction::Write, 2, 5, None);
    let target = Target::Handle(HandleId(2));
    script.ok(Syscall::Access, Operation::Access { target, mode: 4 });
    let gone = script.path("/data/g");
    let (from, to, flags) = (target, gone, 0x400);
    script.ok(Syscall::Linkat, Operation::Link { from, to, flags });
    let parent = tempfile::tempdir().expect("a directory");
    let replay = script.perform(parent.path(), Threads::Original);
    // It is read from its beginning, and has no name that a link could be made of any more.
    assert_eq!(done(&replay), [0, 10, 0, 0, 10, 5, 0, -2]);
}

#[test]
fn a_file_that_never_had_a_name_gets_one() {
    let mut script = Script::default();
    let temporary = OpenFlags::O_RDWR.with(OpenFlags::O_TMPFILE);
    script.open(1, "/", temporary, 1);
    script.transfer(1, Direction::Write, 1, 3000, None);
    let (from, to) = (Target::Handle(HandleId(1)), script.path("/final"));
    let flags = 0x400;
    script.ok(Syscall::Linkat, Operation::Link { from, to, flags });
    let parent = tempfile::tempdir().expect("a directory");
    let replay = script.perform(parent.path(), Threads::Original);
    assert_eq!(done(&replay), [0, 3000, 0]);
    let found = std::fs::metadata(parent.path().join("iostep-replay/final"));
    assert_eq!(found.expect("the file").len(), 3000);
}

#[test]
fn nodes_are_made_and_an_open_of_a_fifo_that_failed_fails_again() {
    let mut script = Script::default();
    for (path, mode) in [
        ("/fifo", 0o010_644),
        ("/socket", 0o140_600),
        ("/file", 0o600),
    ] {
        let path = script.path(path);
        script.ok(Syscall::Mknod, Operation::MakeNode { path, mode });
    }
    // A replay makes no device.
    let (path, mode) = (script.path("/null"), 0o020_666);
    script.ok(Syscall::Mknod, Operation::MakeNode { path, mode });
    let open = |script: &mut Script, flags, outcome| {
        let path = script.path("/fifo");
        let open = Operation::Open {
            path,
            flags,
            mode: 0,
        };
        script.call(1, Syscall::Open, open, outcome);
    };
    // Without a reader; and one that waited for the other end.
    let writes = OpenFlags::O_WRONLY.with(OpenFlags::O_NONBLOCK);
    open(&mut script, writes, Outcome::Failed(Errno::ENXIO));
    let opened = Outcome::Handle(HandleId(1));
    open(&mut script, OpenFlags::O_WRONLY, opened);
    let parent = tempfile::tempdir().expect("a directory");
    let replay = script.perform(parent.path(), Threads::Original);
    assert_eq!(done(&replay), [0, 0, 0, 0, -6, 0]);
    let kinds = ["fifo", "socket", "file", "null"].map(|name| {
        let found = std::fs::symlink_metadata(parent.path().join("iostep-replay").join(name));
        found.expect("a node").mode() & libc::S_IFMT
    });
    let (fifo, socket, file) = (libc::S_IFIFO, libc::S_IFSOCK, libc::S_IFREG);
    assert_eq!(kinds, [fifo, socket, file, file]);
}
