//! What was there before.

use iostep_model::syscall::raw::{Seen, SeenKind};
use iostep_model::syscall::{Content, Target};

use super::*;

fn rename<'a>(from: &'a str, to: &'a str) -> Operation<Descriptor<'a>, Path<'a>> {
    Operation::Rename {
        from: path(from),
        to: path(to),
        flags: 0,
    }
}

fn unlink(at: &str) -> Operation<Descriptor<'_>, Path<'_>> {
    Operation::Unlink { path: path(at) }
}

fn mkdir(at: &str) -> Operation<Descriptor<'_>, Path<'_>> {
    Operation::MakeDirectory {
        path: path(at),
        mode: 0o755,
    }
}

fn stat(at: &str) -> Operation<Descriptor<'_>, Path<'_>> {
    Operation::Stat {
        target: Target::Path(path(at)),
        follow: true,
    }
}

const CREATE: OpenFlags = OpenFlags(OpenFlags::O_RDWR.0 | OpenFlags::O_CREAT.0);

#[test]
fn an_open_that_worked_says_that_the_file_and_its_directories_were_there() {
    let mut program = Program::new();
    program.open(1, path("/data/app/db"), READ, 3);
    program.transfer(1, 3, Direction::Read, Some(4096), 100);
    program.transfer(1, 3, Direction::Read, Some(0), 100);
    program.open(1, path("/data/app/none"), READ, -2);
    program.open(1, path("/other/none"), READ, -2);
    let expected = [
        "/data directory",
        "/data/app directory",
        "/data/app/db file 4196",
        "/data/app/none absent",
        "/other/none absent",
    ];
    assert_eq!(beginning(&program.finish()), expected);
}

#[test]
fn data_that_the_recording_wrote_was_not_there_before() {
    let mut program = Program::new();
    program.open(1, path("/f"), CREATE, 3);
    program.transfer(1, 3, Direction::Write, Some(0), 8192);
    program.transfer(1, 3, Direction::Read, Some(4096), 4096);
    assert_eq!(beginning(&program.finish()), [""; 0]);

    let mut program = Program::new();
    program.open(1, path("/f"), CREATE, 3);
    program.transfer(1, 3, Direction::Read, Some(0), 16);
    program.transfer(1, 3, Direction::Write, Some(0), 8192);
    program.transfer(1, 3, Direction::Read, Some(8000), 192);
    assert_eq!(beginning(&program.finish()), ["/f file 16"]);
}

#[test]
fn an_emptied_file_tells_nothing_of_its_size() {
    let mut program = Program::new();
    program.open(1, path("/f"), OpenFlags::O_RDWR.with(OpenFlags::O_TRUNC), 3);
    program.transfer(1, 3, Direction::Read, Some(0), 100);
    assert_eq!(beginning(&program.finish()), ["/f file 0"]);
}

#[test]
fn positions_count_for_reads_without_an_offset() {
    let mut program = Program::new();
    program.open(1, path("/f"), READ, 3);
    program.transfer(1, 3, Direction::Read, None, 100);
    program.transfer(1, 3, Direction::Read, None, 50);
    let end = Operation::Seek {
        handle: number(3),
        offset: -10,
        whence: iostep_model::syscall::Whence::End,
    };
    program.open(1, path("/g"), READ, 4);
    program.call(1, Syscall::Lseek, end.clone(), Returned::Value(990));
    assert_eq!(
        beginning(&program.finish()),
        ["/f file 1000 seen", "/g file 0"]
    );
}

#[test]
fn an_exclusive_open_and_mkdir_say_that_nothing_was_there() {
    let mut program = Program::new();
    program.open(1, path("/new"), CREATE.with(OpenFlags::O_EXCL), 3);
    program.call(1, Syscall::Mkdir, mkdir("/dir"), OK);
    program.open(1, path("/dir/inside"), CREATE, 4);
    program.open(1, path("/dir/missing"), READ, -2);
    program.call(
        1,
        Syscall::Mkdir,
        mkdir("/old"),
        Returned::Failed(Errno::EEXIST),
    );
    let expected = ["/dir absent", "/new absent", "/old directory"];
    assert_eq!(beginning(&program.finish()), expected);
}

#[test]
fn a_directory_in_which_nothing_was_found_need_not_have_been_there() {
    let mut program = Program::new();
    program.call(1, Syscall::Stat, stat("/cache/f"), ENOENT);
    program.call(1, Syscall::Stat, stat("/cache"), ENOENT);
    program.call(1, Syscall::Stat, stat("/state/f"), ENOENT);
    program.call(1, Syscall::Mkdir, mkdir("/state"), OK);
    program.open(1, path("/state/f"), CREATE, 3);
    let expected = [
        "/cache absent",
        "/cache/f absent",
        "/state absent",
        "/state/f absent",
    ];
    assert_eq!(beginning(&program.finish()), expected);
}

#[test]
fn names_that_the_recording_gave_are_not_initial() {
    let mut program = Program::new();
    program.call(1, Syscall::Stat, stat("/target"), ENOENT);
    program.call(1, Syscall::Rename, rename("/source", "/target"), OK);
    program.open(1, path("/target"), READ, 3);
    program.transfer(1, 3, Direction::Read, Some(0), 77);
    program.open(1, path("/source"), READ, -2);
    program.call(1, Syscall::Unlink, unlink("/target"), OK);
    program.open(1, path("/target"), READ, -2);
    let expected = ["/source file 77", "/target absent"];
    assert_eq!(beginning(&program.finish()), expected);
}

#[test]
fn a_renamed_directory_takes_its_untouched_names_along() {
    let mut program = Program::new();
    program.open(1, path("/a"), OpenFlags::O_DIRECTORY, 3);
    program.call(1, Syscall::Rename, rename("/a", "/b"), OK);
    program.open(1, path("/b/deep/file"), READ, 4);
    program.call(1, Syscall::Stat, stat("/b/none"), ENOENT);
    let expected = [
        "/a directory",
        "/a/deep directory",
        "/a/deep/file file 0",
        "/a/none absent",
    ];
    assert_eq!(beginning(&program.finish()), expected);
}

#[test]
fn links_lead_to_the_file_they_were_made_of() {
    let mut program = Program::new();
    let link = Operation::Link {
        from: Target::Path(path("/f")),
        to: path("/hard"),
        flags: 0,
    };
    program.call(1, Syscall::Link, link, OK);
    let symlink = Operation::Symlink {
        content: path("f"),
        path: path("/soft"),
    };
    program.call(1, Syscall::Symlink, symlink, OK);
    program.open(1, path("/hard"), READ, 3);
    program.transfer(1, 3, Direction::Read, Some(0), 5);
    program.open(1, path("/soft"), READ, 4);
    program.transfer(1, 4, Direction::Read, Some(0), 9);
    let expected = ["/f file 9", "/hard absent", "/soft absent"];
    assert_eq!(beginning(&program.finish()), expected);
}

#[test]
fn symbolic_links_in_a_circle_end() {
    let mut program = Program::new();
    for (content, at) in [("/b", "/a"), ("/a", "/b"), ("x/x/x/x", "/x")] {
        let symlink = Operation::Symlink {
            content: path(content),
            path: path(at),
        };
        program.call(1, Syscall::Symlink, symlink, OK);
    }
    program.call(1, Syscall::Stat, stat("/a/f"), Returned::Failed(Errno(40)));
    program.call(1, Syscall::Stat, stat("/x/f"), OK);
    assert_eq!(program.finish().sink.calls.len(), 5);
}

#[test]
fn what_was_seen_counts_more_than_what_was_concluded() {
    let mut program = Program::new();
    let mut open = |at: &'static str, fd: u64, identity, kind| {
        let open = Operation::Open {
            path: path(at),
            flags: CREATE,
            mode: 0,
        };
        program.event(Event {
            tid: 1,
            start_ns: fd * 1000,
            duration_ns: Some(1),
            action: Action::Operation(Syscall::Openat, open),
            returned: Returned::Value(fd),
            seen: Some(Seen {
                identity: Some(identity),
                names: None,
                kind,
                mode: None,
                open_file: 0,
            }),
        });
    };
    let file = |size| SeenKind::File {
        size: Some(size),
        content: Content::Hole,
    };
    open("/f", 3, (1, 5), file(5000));
    open("/f", 4, (1, 5), file(9000));
    open("/again", 5, (1, 5), file(9000));
    open("/new", 6, (1, 6), SeenKind::Absent);
    program.now_ns = 100_000;
    program.transfer(1, 3, Direction::Read, Some(0), 6000);
    let expected = [
        "/again link /f seen",
        "/f file 5000 seen",
        "/new absent seen",
    ];
    assert_eq!(beginning(&program.finish()), expected);
}

#[test]
fn a_link_that_was_read_leads_where_it_says() {
    let mut program = Program::new();
    let says = |at: &'static str, content: &'static str| Action::LinkSays {
        path: path(at),
        content: Cow::Borrowed(content.as_bytes()),
    };
    let read = |at| Operation::ReadLink {
        path: path(at),
        size: 100,
    };
    program.act(1, says("/lib/link", "real/file"), OK);
    program.call(1, Syscall::Readlink, read("/lib/link"), Returned::Value(9));
    program.open(1, path("/lib/link"), READ, 3);
    program.transfer(1, 3, Direction::Read, Some(0), 70);
    // What was opened before without asking is what the link leads to.
    program.open(1, path("/plain"), OpenFlags::O_RDWR, 4);
    program.transfer(1, 4, Direction::Read, Some(0), 8);
    program.act(1, says("/plain", "else"), OK);
    // What a link says is no call.
    program.events -= 2;
    let finished = program.finish();
    let expected = [
        "/else file 8",
        "/lib directory",
        "/lib/link symlink seen",
        "/lib/real directory",
        "/lib/real/file file 70",
        "/plain symlink seen",
    ];
    assert_eq!(beginning(&finished), expected);
    assert_eq!(counts(&finished, true), [("call", 5)]);
}
