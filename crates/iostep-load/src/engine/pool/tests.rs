use iostep_model::bench::{Limits, Step};

use super::*;

#[derive(Default)]
struct Watcher {
    readings: u64,
}

impl Observer for Watcher {
    fn device(&mut self) -> Option<Counters> {
        self.readings += 1;
        let mut counters = Counters::default();
        counters.flush.ios = self.readings;
        Some(counters)
    }

    fn progress(&mut self, _: Progress) {}
}

/// What a worker of these tests does in its operation number `at`.
#[derive(Clone, Copy)]
enum Ends {
    Done,
    Fails,
    Dies,
    IsNotPrepared,
    Never,
}

struct Scripted {
    at: u64,
    ends: Ends,
}

impl Worker for Scripted {
    fn prepare(&mut self) -> Result<()> {
        match self.ends {
            Ends::IsNotPrepared => Err(Error::Usage {
                what: "no".into(),
                hint: "never".into(),
            }),
            _ => Ok(()),
        }
    }

    fn work(&mut self, thread: &mut Thread<'_>) -> std::result::Result<(), Fault> {
        while let Some(begin_ns) = thread.begin() {
            if thread.begun() == self.at {
                match self.ends {
                    Ends::Done => return Ok(()),
                    Ends::Dies => panic!("on purpose"),
                    Ends::Fails => {
                        return Err(Fault {
                            attempt: "a write".into(),
                            reason: "no space".into(),
                            operation: None,
                        });
                    }
                    Ends::IsNotPrepared | Ends::Never => {}
                }
            }
            thread.step(Step::Write, 5);
            thread.end(begin_ns, begin_ns + 5, 10);
        }
        Ok(())
    }
}

fn run(limits: Limits, interrupted: bool, script: &[(u64, Ends)]) -> Result<Run> {
    let interrupted = AtomicBool::new(interrupted);
    let pool = Pool {
        measurement: &Measurement {
            limits,
            ..Measurement::default()
        },
        interrupted: &interrupted,
    };
    let mut workers: Vec<_> = script
        .iter()
        .map(|&(at, ends)| Scripted { at, ends })
        .collect();
    pool.run(&mut workers, &mut Watcher::default())
}

#[test]
fn a_run_is_the_sum_of_its_threads() {
    let run = run(
        Limits::default(),
        false,
        &[(4, Ends::Done), (8, Ends::Done)],
    )
    .expect("a run");
    assert_eq!(run.state, RunState::Complete);
    assert_eq!((run.operations, run.bytes), (10, 100));
    let by_thread: Vec<_> = run.threads.iter().map(|thread| thread.operations).collect();
    assert_eq!(by_thread, [3, 7]);
    assert_eq!(run.latencies[0].histogram.count(), 10);
    let by_second: u64 = run.seconds.iter().map(|second| second.operations).sum();
    assert_eq!(by_second, 10);
    let lengths: u64 = run.seconds.iter().map(|second| second.length_ns).sum();
    assert_eq!(lengths, run.elapsed_ns);
    assert_eq!(run.device.expect("it counts").flush.ios, 1);
}

#[test]
fn a_failure_ends_every_thread_and_names_the_operation() {
    let run = run(
        Limits::default(),
        false,
        &[(0, Ends::Never), (3, Ends::Fails)],
    )
    .expect("a run");
    assert_eq!(run.state, RunState::Failed);
    let [failure] = run.failures.as_slice() else {
        panic!("{:?}", run.failures);
    };
    assert_eq!((failure.thread, failure.operation), (1, 3));
    assert_eq!(run.threads[1].operations, 2);
}

#[test]
fn a_thread_that_dies_is_a_failure_and_keeps_what_it_measured() {
    let run = run(Limits::default(), false, &[(5, Ends::Dies)]).expect("a run");
    assert_eq!(run.state, RunState::Failed);
    assert_eq!(run.operations, 4);
    assert_eq!(run.failures[0].reason, "it died: on purpose");
}

#[test]
fn nobody_begins_if_somebody_is_not_prepared() {
    let script = [(0, Ends::Never), (0, Ends::IsNotPrepared), (0, Ends::Never)];
    let error = run(Limits::default(), false, &script).expect_err("not prepared");
    assert!(matches!(error, Error::Usage { .. }), "{error}");
}

#[test]
fn an_interrupted_run_keeps_what_was_done() {
    let run = run(Limits::default(), true, &[(0, Ends::Never)]).expect("a run");
    assert_eq!(run.state, RunState::Interrupted);
    assert!(run.operations > 0);
}

#[test]
fn the_ramp_does_not_count_and_the_time_ends_the_run() {
    let limits = Limits {
        time_ns: Some(1_200_000_000),
        ramp_ns: 300_000_000,
    };
    let run = run(limits, false, &[(0, Ends::Never)]).expect("a run");
    assert_eq!(run.state, RunState::Complete);
    assert!(run.elapsed_ns >= 1_200_000_000);
    assert!(run.seconds.len() >= 2);
    assert!(run.seconds[1].device.is_some(), "{:?}", run.seconds);
    assert_eq!(run.latencies[0].histogram.count(), run.operations);
}

#[test]
fn work_that_is_done_within_the_ramp_does_not_count() {
    let limits = Limits {
        time_ns: None,
        ramp_ns: 3_600_000_000_000,
    };
    let run = run(limits, false, &[(5, Ends::Done)]).expect("a run");
    assert_eq!((run.operations, run.elapsed_ns), (0, 0));
    assert!(run.latencies.is_empty() && run.seconds.is_empty());
}
