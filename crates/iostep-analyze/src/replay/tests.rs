//! Sums of a replay written by hand.

use iostep_model::replay::*;
use iostep_model::syscall::Target;
use iostep_model::syscall::*;

use super::difference::Reason;
use super::*;

fn call(
    start_ns: u64,
    syscall: Syscall,
    operation: Operation<HandleId, PathId>,
    outcome: Outcome,
) -> Call {
    Call {
        start_ns,
        duration_ns: Some(10),
        thread: ThreadId(1),
        syscall,
        operation,
        outcome,
    }
}

fn read(start_ns: u64, recorded: i64) -> Call {
    let operation = Operation::Transfer {
        direction: Direction::Read,
        handle: HandleId(1),
        size: 100,
        buffers: 1,
        offset: None,
        flags: 0,
    };
    call(start_ns, Syscall::Read, operation, Outcome::Value(recorded))
}

fn performed(due_ns: u64, ready_ns: u64, issued_ns: u64, ended_ns: u64, state: State) -> Performed {
    Performed {
        due_ns,
        ready_ns,
        issued_ns,
        ended_ns,
        state,
    }
}

fn example() -> (Recording, Replay) {
    let mut paths = Paths::default();
    let path = paths.intern(b"/a");
    let flags = OpenFlags::NONE;
    let open = Operation::Open {
        path,
        flags,
        mode: 0,
    };
    let stat = Operation::Stat {
        target: Target::Path(path),
        follow: true,
    };
    let recording = Recording {
        threads: vec![Thread {
            id: ThreadId(1),
            process: ProcessId(1),
            tid: 9,
            name: "x".into(),
        }],
        calls: vec![
            call(1000, Syscall::Openat, open, Outcome::Handle(HandleId(1))),
            read(2000, 100),
            read(3000, 100),
            call(
                4000,
                Syscall::Stat,
                stat.clone(),
                Outcome::Failed(Errno(13)),
            ),
            call(5000, Syscall::Stat, stat, Outcome::Unknown),
            call(
                6000,
                Syscall::Exit,
                Operation::CloseMany { handles: [].into() },
                Outcome::Value(0),
            ),
        ],
        paths,
        ..Recording::default()
    };
    let replay = Replay {
        settings: Settings {
            timing: Timing::Original,
            speed: 1.0,
            threads: Threads::Original,
        },
        calls: vec![
            performed(0, 0, 3, 20, State::Done(0)),
            performed(1000, 1000, 1001, 2500, State::Done(100)),
            // Late already, since the call before took so long.
            performed(2000, 2000, 2502, 2510, State::Done(60)),
            performed(3000, 3400, 3405, 3410, State::Done(0)),
            performed(4000, 4000, 4007, 4010, State::Done(0)),
            performed(5000, 5000, 5000, 5000, State::Skipped(Skip::Bookkeeping)),
        ],
        prepared: Prepared::default(),
        order_violations: 0,
        cpu_ns: 50,
        user_ns: 5,
        others_cpu: 0.25,
        interrupted: false,
    };
    (recording, replay)
}

#[test]
fn calls_are_counted_by_what_became_of_them() {
    let (recording, replay) = example();
    let summary = Summary::of(&recording, &replay);
    let totals = summary.totals;
    assert_eq!((totals.calls, totals.expected, totals.done), (6, 5, 5));
    assert_eq!((totals.same, totals.differing, totals.unknown), (2, 2, 1));
    assert_eq!(totals.recorded.read_bytes, 200);
    assert_eq!(totals.replayed.read_bytes, 160);
    assert_eq!(totals.replayed_io_ns, 17 + 1499 + 8 + 5 + 3);
    let skipped = SkipCount {
        reason: Skip::Bookkeeping,
        count: 1,
    };
    assert_eq!(summary.skipped, [skipped]);
    assert_eq!(summary.recorded_ns, 5010);
    assert_eq!(summary.replayed_ns, 4007);
    assert_eq!(summary.calls[0].syscall, "read");
    assert_eq!(summary.calls[0].done, 2);
}

#[test]
fn a_difference_has_its_reason() {
    let (mut recording, replay) = example();
    let reasons = |recording: &Recording| -> Vec<(String, String, String, Reason)> {
        let differences = Summary::of(recording, &replay).differences.into_iter();
        let mut all: Vec<_> = differences
            .map(|d| (d.syscall, d.recorded, d.replayed, d.reason))
            .collect();
        all.sort_by_key(|found| found.0.clone());
        all
    };
    let short = |reason| ("read".to_owned(), "100".to_owned(), "60".to_owned(), reason);
    let denied = (
        "stat".to_owned(),
        "EACCES".to_owned(),
        "success".to_owned(),
        Reason::Permissions,
    );
    assert_eq!(
        reasons(&recording),
        [short(Reason::Unexplained), denied.clone()]
    );
    let path = recording.paths.intern(b"/a");
    let kind = InitialKind::File {
        size: 160,
        content: Content::Data,
    };
    recording.initial.push(InitialFile {
        path,
        kind,
        mode: None,
        seen: false,
    });
    assert_eq!(reasons(&recording), [short(Reason::InitialSize), denied]);
    // A file that takes part of a write has no room for the rest.
    for call in &mut recording.calls {
        if let Operation::Transfer { direction, .. } = &mut call.operation {
            *direction = Direction::Write;
        }
    }
    assert_eq!(reasons(&recording)[0], short(Reason::Target));
}

/// Where a file was at that was open before is known to a recorder, and not from a text.
#[test]
fn a_position_that_nobody_told_is_the_reason_of_what_lies_there() {
    let (mut recording, mut replay) = example();
    let path = recording.paths.intern(b"/a");
    let present = |call: &mut Call, operation| {
        call.syscall = Syscall::Present;
        call.operation = operation;
        call.outcome = Outcome::Handle(HandleId(1));
    };
    let (flags, mode) = (OpenFlags::O_RDWR, 0);
    present(
        &mut recording.calls[0],
        Operation::Open { path, flags, mode },
    );
    replay.calls[0].state = State::Done(0);
    let reason = |recording: &Recording| {
        let differences = Summary::of(recording, &replay).differences;
        let read = differences.iter().find(|found| found.syscall == "read");
        read.map(|found| found.reason)
    };
    recording.header.recorder = "strace".into();
    assert_eq!(reason(&recording), Some(Reason::Position));
    recording.header.recorder = "iostep 0.1.0 bpf".into();
    assert_eq!(reason(&recording), Some(Reason::Unexplained));
}

#[test]
fn the_devices_lateness_is_not_the_replays() {
    let (recording, replay) = example();
    let lateness = Lateness::of(&recording, &replay);
    let of = |quantiles: Option<Quantiles>| quantiles.map(|q| (q.count, q.max_ns));
    assert_eq!(
        of(lateness.waited),
        Some((3, 7)),
        "due, and nothing held them up"
    );
    assert_eq!(
        of(lateness.added),
        Some((1, 2)),
        "behind a call that took too long"
    );
    assert_eq!(lateness.held_by_order, 1);
    assert_eq!(of(lateness.behind), Some((5, 502)));
}

#[test]
fn quantiles_are_those_of_the_nearest_rank() {
    let mut times: Vec<u64> = (1..=100).rev().collect();
    let found = Quantiles::of(&mut times).expect("some");
    assert_eq!(
        (found.p50_ns, found.p90_ns, found.p99_ns, found.max_ns),
        (50, 90, 99, 100)
    );
    assert_eq!(found.mean_ns, 50.5);
    assert_eq!(Quantiles::of(&mut []), None);
}

#[test]
fn sums_are_the_recordings_and_what_was_not_issued_is_a_loss() {
    let (recording, mut replay) = example();
    let run = |replay: &Replay| Run {
        summary: Summary::of(&recording, replay),
        block: None,
    };
    for skip in [Skip::NotOpen, Skip::Bounds] {
        replay.calls[0].state = State::Done(-2);
        replay.calls[1].state = State::Skipped(skip);
        replay.calls[2].state = State::Skipped(skip);
        let run = run(&replay);
        let totals = run.summary.totals;
        assert_eq!(totals.recorded.read_bytes, 200);
        assert_eq!(totals.replayed.read_bytes, 0);
        assert_eq!(totals.not_issued.read_bytes, 200);
        assert_eq!(run.summary.lost_bytes(), 200);
        assert!(!run.is_good());
    }
}

#[test]
fn a_call_that_did_nothing_there_is_no_loss_here() {
    let (mut recording, mut replay) = example();
    recording.calls[1].outcome = Outcome::Failed(Errno::EXDEV);
    replay.calls[1].state = State::Skipped(Skip::Refused);
    replay.calls[2].state = State::Done(100);
    let run = Run {
        summary: Summary::of(&recording, &replay),
        block: None,
    };
    let totals = run.summary.totals;
    assert_eq!((totals.expected, totals.done), (4, 4));
    assert_eq!(
        (totals.recorded.read_bytes, totals.replayed.read_bytes),
        (100, 100)
    );
    assert!(run.is_good());
}

#[test]
fn a_reason_is_never_the_wrong_way_round() {
    let mut paths = Paths::default();
    let path = paths.intern(b"/bin/x");
    let target = Target::Path(path);
    let access = Operation::Access { target, mode: 1 };
    let readlink = Operation::ReadLink { path, size: 99 };
    let failed = |errno| Outcome::Failed(errno);
    let ok = Outcome::Value(0);
    let of = |operation: &Operation<HandleId, PathId>, recorded, replayed, seen| {
        let call = call(0, Syscall::Access, operation.clone(), recorded);
        let known = difference::Known {
            concluded: true,
            seen,
            unplaced: false,
        };
        match difference::compare(&call, replayed, || known) {
            difference::Compared::Differs(reason) => reason,
            _ => panic!("{operation:?} is the same"),
        }
    };
    // Who may execute it was not told, whatever else is known of it.
    for seen in [false, true] {
        assert_eq!(of(&access, ok, -13, seen), Reason::Permissions);
        assert_eq!(
            of(&access, failed(Errno::ETXTBSY), 0, seen),
            Reason::Machine
        );
        assert_eq!(of(&access, failed(Errno::EBUSY), 0, seen), Reason::Machine);
    }
    assert_eq!(of(&access, ok, -2, false), Reason::InitialState);
    assert_eq!(of(&access, ok, -2, true), Reason::Unrecorded);
    // Two errors differ for the same reasons as an error and none.
    assert_eq!(
        of(&readlink, failed(Errno::EINVAL), -2, false),
        Reason::InitialState
    );
    assert_eq!(
        of(&readlink, failed(Errno::EINVAL), -2, true),
        Reason::Unrecorded
    );
}
