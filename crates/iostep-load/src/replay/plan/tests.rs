//! Plans are run by a scheduler that takes every freedom they leave.

use iostep_model::replay::{Performed, State};
use iostep_model::syscall::*;
use proptest::prelude::*;

use super::*;

/// A call without its thread and times.
type What = (Syscall, Operation<HandleId, PathId>, Outcome);

fn open(paths: &mut Paths, name: &[u8], handle: u32) -> What {
    let path = paths.intern(name);
    let (flags, mode) = (OpenFlags::O_RDWR.with(OpenFlags::O_CREAT), 0o644);
    let operation = Operation::Open { path, flags, mode };
    (
        Syscall::Openat,
        operation,
        Outcome::Handle(HandleId(handle)),
    )
}

fn write(handle: u32, offset: Option<i64>) -> What {
    let operation = Operation::Transfer {
        direction: Direction::Write,
        handle: HandleId(handle),
        size: 10,
        buffers: 1,
        offset,
        flags: 0,
    };
    (Syscall::Write, operation, Outcome::Value(10))
}

/// Calls of `(thread, start, duration, what)`.
fn recording(paths: Paths, threads: u32, calls: Vec<(u32, u64, u64, What)>) -> Recording {
    let calls = calls
        .into_iter()
        .map(|(thread, start_ns, duration, what)| Call {
            start_ns,
            duration_ns: Some(duration),
            thread: ThreadId(thread),
            syscall: what.0,
            operation: what.1,
            outcome: what.2,
        });
    let mut calls: Vec<Call> = calls.collect();
    calls.sort_by_key(|call| call.start_ns);
    let threads = (1..=threads).map(|id| Thread {
        id: ThreadId(id),
        process: ProcessId(1),
        tid: id,
        name: String::new(),
    });
    Recording {
        paths,
        threads: threads.collect(),
        calls,
        ..Recording::default()
    }
}

/// Runs a plan with the choices of `random`; none if it stops for ever.
fn run(
    plan: &Plan,
    calls: usize,
    mut random: impl FnMut(usize) -> usize,
) -> Option<Vec<Performed>> {
    let nothing = Performed {
        due_ns: 0,
        ready_ns: 0,
        issued_ns: 0,
        ended_ns: 0,
        state: State::Done(0),
    };
    let mut performed = vec![nothing; calls];
    let mut done = vec![0usize; plan.threads.len()];
    let mut running = vec![false; plan.threads.len()];
    let mut now_ns = 0;
    loop {
        now_ns += 1;
        let may_go = |thread: usize| {
            let step = plan.threads[thread].steps.get(done[thread]);
            let free = |w: &Wait| done[w.thread as usize] >= w.steps as usize;
            running[thread] || step.is_some_and(|step| plan.waits(step).iter().all(free))
        };
        let choices: Vec<usize> = (0..plan.threads.len()).filter(|t| may_go(*t)).collect();
        if choices.is_empty() {
            let all = plan
                .threads
                .iter()
                .zip(&done)
                .all(|(t, done)| t.steps.len() == *done);
            return all.then_some(performed);
        }
        let thread = choices[random(choices.len())];
        let call = plan.threads[thread].steps[done[thread]].call as usize;
        running[thread] = !running[thread];
        if running[thread] {
            performed[call].issued_ns = now_ns;
        } else {
            performed[call].ended_ns = now_ns;
            done[thread] += 1;
        }
    }
}

#[test]
fn a_descriptor_opened_by_one_thread_is_used_and_closed_after_it_by_others() {
    let mut paths = Paths::default();
    let close = Operation::Close {
        handle: HandleId(1),
    };
    let opened = open(&mut paths, b"/a", 1);
    let recording = recording(
        paths,
        3,
        vec![
            (1, 0, 5, opened),
            (2, 10, 5, write(1, Some(0))),
            (3, 20, 5, (Syscall::Close, close, Outcome::Value(0))),
        ],
    );
    let plan = Plan::new(&recording, Threads::Original);
    let waits = |thread: usize| plan.waits(&plan.threads[thread].steps[0]).to_vec();
    assert_eq!(
        waits(1),
        [Wait {
            thread: 0,
            steps: 1
        }]
    );
    let both = [
        Wait {
            thread: 0,
            steps: 1,
        },
        Wait {
            thread: 1,
            steps: 1,
        },
    ];
    assert_eq!(waits(2), both);
}

#[test]
fn calls_that_overlapped_do_not_wait_for_each_other() {
    let mut paths = Paths::default();
    let opened = open(&mut paths, b"/a", 1);
    let lock = |lock| {
        let handle = HandleId(1);
        let kind = LockKind::Whole;
        let operation = Operation::Lock {
            handle,
            kind,
            lock,
            wait: true,
            offset: 0,
            size: 0,
        };
        (Syscall::Flock, operation, Outcome::Value(0))
    };
    // Thread 2 gets the lock when thread 1 gives it back: to order them would never end.
    let recording = recording(
        paths,
        2,
        vec![
            (1, 0, 5, opened),
            (1, 10, 5, lock(2)),
            (2, 20, 30, lock(2)),
            (1, 40, 5, lock(8)),
        ],
    );
    let plan = Plan::new(&recording, Threads::Original);
    let step = &plan.threads[0].steps[2];
    assert_eq!(plan.waits(step), []);
    let second = &plan.threads[1].steps[0];
    assert_eq!(
        plan.waits(second),
        [Wait {
            thread: 0,
            steps: 2
        }]
    );
}

#[test]
fn a_name_below_a_directory_waits_for_the_directory() {
    let mut paths = Paths::default();
    let directory = Operation::MakeDirectory {
        path: paths.intern(b"/d"),
        mode: 0o755,
    };
    let opened = open(&mut paths, b"/d/a", 1);
    let recording = recording(
        paths,
        2,
        vec![
            (1, 0, 5, (Syscall::Mkdir, directory, Outcome::Value(0))),
            (2, 10, 5, opened),
        ],
    );
    let plan = Plan::new(&recording, Threads::Original);
    assert_eq!(
        plan.waits(&plan.threads[1].steps[0]),
        [Wait {
            thread: 0,
            steps: 1
        }]
    );
}

/// Whether an open by thread 2 of `/d/a`, which thread 1 makes after `before`, waits for that.
fn waits_for_the_making(before: impl Fn(&mut Paths) -> Vec<What>) -> bool {
    let mut paths = Paths::default();
    let mut calls = before(&mut paths);
    calls.push(open(&mut paths, b"/d/a", 1));
    let makes = calls.len() as u32;
    let path = paths.intern(b"/d/a");
    let (flags, mode) = (OpenFlags::O_RDWR, 0);
    let opens = Operation::Open { path, flags, mode };
    let mut calls: Vec<_> = (0..)
        .zip(calls)
        .map(|(at, what)| (1, at * 10, 5, what))
        .collect();
    let opened = Outcome::Handle(HandleId(2));
    calls.push((2, 1000, 5, (Syscall::Openat, opens, opened)));
    let plan = Plan::new(&recording(paths, 2, calls), Threads::Original);
    let made = Wait {
        thread: 0,
        steps: makes,
    };
    plan.waits(&plan.threads[1].steps[0]).contains(&made)
}

#[test]
fn an_open_waits_for_the_one_that_made_the_file_whatever_was_asked_before() {
    let ask = |paths: &mut Paths, outcome| {
        let path = Target::Path(paths.intern(b"/d/a"));
        let stat = Operation::Stat {
            target: path,
            follow: true,
        };
        (Syscall::Stat, stat, outcome)
    };
    let remove = |paths: &mut Paths, outcome| {
        let path = paths.intern(b"/d/a");
        (Syscall::Unlink, Operation::Unlink { path }, outcome)
    };
    let rename = |paths: &mut Paths, from: &[u8], to: &[u8]| {
        let (from, to) = (paths.intern(from), paths.intern(to));
        let flags = 0;
        let rename = Operation::Rename { from, to, flags };
        (Syscall::Rename, rename, Outcome::Value(0))
    };
    let (none, done) = (Outcome::Failed(Errno::ENOENT), Outcome::Value(0));
    assert!(waits_for_the_making(|_| Vec::new()));
    assert!(waits_for_the_making(|paths| vec![ask(paths, none)]));
    assert!(waits_for_the_making(|paths| vec![
        ask(paths, done),
        remove(paths, none),
        remove(paths, done),
        ask(paths, none),
    ]));
    assert!(waits_for_the_making(|paths| vec![
        ask(paths, done),
        rename(paths, b"/d/a", b"/d/b"),
    ]));
    assert!(
        waits_for_the_making(|paths| vec![ask(paths, done), rename(paths, b"/d", b"/e")]),
        "what is below a directory has another name, too"
    );
    assert!(
        !waits_for_the_making(|paths| vec![ask(paths, done)]),
        "opens of what is there already commute"
    );
}

#[test]
fn writes_into_the_middle_commute_and_a_sync_waits_for_them() {
    let mut paths = Paths::default();
    let opened = open(&mut paths, b"/a", 1);
    let sync = (
        Syscall::Fsync,
        Operation::Sync {
            handle: HandleId(1),
        },
        Outcome::Value(0),
    );
    let recording = recording(
        paths,
        4,
        vec![
            (1, 0, 5, opened),
            (1, 10, 5, write(1, Some(90))),
            (2, 20, 5, write(1, Some(0))),
            (3, 30, 5, write(1, Some(40))),
            (4, 40, 5, sync),
        ],
    );
    let plan = Plan::new(&recording, Threads::Original);
    let on = |thread: usize| -> Vec<u32> {
        let step = &plan.threads[thread].steps[0];
        plan.waits(step).iter().map(|wait| wait.thread).collect()
    };
    assert_eq!(on(1), [0]);
    assert_eq!(on(2), [0], "not for the write of the thread before");
    assert_eq!(on(3), [0, 1, 2]);
}

#[test]
fn an_order_that_was_not_kept_is_counted() {
    let mut paths = Paths::default();
    let opened = open(&mut paths, b"/a", 1);
    let recording = recording(
        paths,
        2,
        vec![(1, 0, 5, opened), (2, 10, 5, write(1, None))],
    );
    let performed = |issued_ns, ended_ns| Performed {
        due_ns: 0,
        ready_ns: 0,
        issued_ns,
        ended_ns,
        state: State::Done(0),
    };
    assert_eq!(
        order_violations(&recording, &[performed(0, 5), performed(5, 9)]),
        0
    );
    assert_eq!(
        order_violations(&recording, &[performed(0, 5), performed(4, 9)]),
        1
    );
}

/// Recordings of four threads over three files, with overlaps.
fn any_recording() -> impl Strategy<Value = Recording> {
    let call = (1u32..5, 0u64..6, 0u64..12, 0u32..8, 0u32..3);
    proptest::collection::vec(call, 1..60).prop_map(|list| {
        let mut paths = Paths::default();
        let mut calls = vec![];
        for file in 1..4 {
            let name = [b"/d/", &[b'a' + file as u8][..]].concat();
            calls.push((1, 0, 0, open(&mut paths, &name, file)));
        }
        let mut free = [0u64; 5];
        for (thread, gap, duration, kind, file) in list {
            let path = PathId(file);
            let handle = HandleId(file + 1);
            let start_ns = free[thread as usize] + gap;
            free[thread as usize] = start_ns + duration;
            let value = Outcome::Value(0);
            let what = match kind {
                0 => write(file + 1, Some(5)),
                1 => write(file + 1, None),
                2 => (Syscall::Fsync, Operation::Sync { handle }, value),
                3 => (Syscall::Unlink, Operation::Unlink { path }, value),
                4 => (
                    Syscall::Access,
                    Operation::Access {
                        target: Target::Path(path),
                        mode: 0,
                    },
                    value,
                ),
                5 => {
                    let to = PathId((file + 1) % 3);
                    (
                        Syscall::Rename,
                        Operation::Rename {
                            from: path,
                            to,
                            flags: 0,
                        },
                        value,
                    )
                }
                6 => (
                    Syscall::Dup,
                    Operation::Duplicate {
                        handle,
                        replaces: None,
                    },
                    value,
                ),
                _ => (
                    Syscall::Fstat,
                    Operation::Stat {
                        target: Target::Handle(handle),
                        follow: true,
                    },
                    value,
                ),
            };
            calls.push((thread, start_ns, duration, what));
        }
        recording(paths, 4, calls)
    })
}

proptest! {
    #[test]
    fn whatever_freedom_is_taken_no_order_is_broken(
        recording in any_recording(),
        choices in proptest::collection::vec(any::<prop::sample::Index>(), 400),
    ) {
        let plan = Plan::new(&recording, Threads::Original);
        let steps: usize = plan.threads.iter().map(|thread| thread.steps.len()).sum();
        prop_assert_eq!(steps, recording.calls.len());
        let mut choices = choices.iter().cycle();
        let choose = |n| choices.next().map_or(0, |choice| choice.index(n));
        let performed = run(&plan, recording.calls.len(), choose);
        prop_assert!(performed.is_some(), "it stops for ever");
        let performed = performed.unwrap_or_default();
        prop_assert_eq!(order_violations(&recording, &performed), 0);
    }
}
