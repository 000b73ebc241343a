//! More open files than most systems allow. A process of its own: it takes every descriptor.

use std::collections::BTreeSet;

use iostep_load::replay::plan::Plan;
use iostep_load::replay::{Stage, Watch};
use iostep_model::replay::{Settings, State, Threads, Timing};
use iostep_model::syscall::{
    Call, HandleId, OpenFlags, Operation, Outcome, ProcessId, Recording, Syscall, Thread, ThreadId,
};

const COUNT: u32 = 200_000;

#[test]
fn open_files_beyond_the_limit_are_results() {
    let parent = tempfile::tempdir().expect("a directory");
    let recording = recording();
    let watch = Watch::default();
    let stage = Stage::set(&recording, parent.path(), None, false, &watch).expect("a stage");
    let settings = Settings {
        timing: Timing::Fast,
        speed: 1.0,
        threads: Threads::Merge,
    };
    let plan = Plan::new(&recording, settings.threads);
    let replay = stage
        .perform(&recording, &plan, settings, &watch)
        .expect("a replay");
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let all_fit = limit
        .current
        .is_none_or(|limit| limit >= u64::from(COUNT) + 1024);
    let states: BTreeSet<i64> = replay
        .calls
        .iter()
        .map(|call| match call.state {
            State::Done(value) => value,
            State::Skipped(reason) => panic!("skipped: {reason}"),
        })
        .collect();
    let full = -i64::from(libc::EMFILE);
    let expected = if all_fit {
        [0].into()
    } else {
        [full, 0].into()
    };
    assert_eq!(states, expected, "{limit:?}");
}

/// Opens, without a close.
fn recording() -> Recording {
    let mut recording = Recording::default();
    let path = recording.paths.intern(b"/a");
    recording.threads.push(Thread {
        id: ThreadId(1),
        process: ProcessId(1),
        tid: 1,
        name: String::new(),
    });
    let call = |number: u32| Call {
        start_ns: u64::from(number),
        duration_ns: None,
        thread: ThreadId(1),
        syscall: Syscall::Openat,
        operation: Operation::Open {
            path,
            flags: OpenFlags::O_RDWR.with(OpenFlags::O_CREAT),
            mode: 0o600,
        },
        outcome: Outcome::Handle(HandleId(number)),
    };
    recording.calls = (1..=COUNT).map(call).collect();
    recording
}
