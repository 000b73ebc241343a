//! What the recorded filesystems refused.

use super::*;

/// mv and cp between two filesystems: rename, link and copy_file_range fail there, and the program
/// copies.
#[test]
fn what_led_to_another_filesystem_is_not_done_twice_on_one() {
    let mut script = Script::default();
    let size = 3000;
    let content = Content::Data;
    script.initially("/one/a", InitialKind::File { size, content });
    script.initially("/two", InitialKind::Directory);
    let (from, to) = (script.path("/one/a"), script.path("/two/a"));
    let failed = Outcome::Failed(Errno::EXDEV);
    let rename = Operation::Rename { from, to, flags: 0 };
    script.call(1, Syscall::Rename, rename, failed);
    let link = Operation::Link {
        from: Target::Path(from),
        to,
        flags: 0,
    };
    script.call(1, Syscall::Link, link, failed);
    script.open(1, "/one/a", OpenFlags::NONE, 1);
    script.open(1, "/two/a", create().with(OpenFlags::O_EXCL), 2);
    let copy = Operation::Copy {
        from: HandleId(1),
        to: HandleId(2),
        size: 1 << 30,
        from_offset: None,
        to_offset: None,
    };
    for errno in [
        Errno::EXDEV,
        Errno::EOPNOTSUPP,
        Errno::ENOSYS,
        Errno::EINVAL,
    ] {
        script.call(
            1,
            Syscall::CopyFileRange,
            copy.clone(),
            Outcome::Failed(errno),
        );
    }
    script.transfer(1, Direction::Read, 1, size, None);
    script.transfer(1, Direction::Write, 2, size, None);
    script.ok(Syscall::Unlink, Operation::Unlink { path: from });
    let parent = tempfile::tempdir().expect("a directory");
    let replay = script.perform(parent.path(), Threads::Original);
    let refused = State::Skipped(Skip::Refused);
    let states: Vec<State> = replay.calls.iter().map(|call| call.state).collect();
    assert_eq!(states[..2], [refused; 2]);
    assert_eq!(states[4..8], [refused; 4]);
    let all = size as i64;
    assert_eq!(
        states[8..],
        [State::Done(all), State::Done(all), State::Done(0)]
    );
    assert_eq!(listing(&parent.path().join("iostep-replay/two")), ["a"]);
    let copied = parent.path().join("iostep-replay/two/a");
    assert_eq!(std::fs::metadata(copied).expect("a file").len(), size);
}
