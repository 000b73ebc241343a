//! The threads of a run, from their start to their sum.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use iostep_model::bench::{
    Failure, MachineTime, Measurement, OthersIo, Pace, Run, RunState, ThreadRun,
};
use iostep_model::manifest::Counters;

use super::record::{Operation, Record};
use super::thread::{Fault, Padded, Shared, Thread};
use super::usage::{self, Usage};
use crate::error::{Error, Result};
use iostep_model::clock::{mono_ns, wall_ns};

/// Stacks hold no buffers; a thousand of them must not matter.
const STACK_BYTES: usize = 256 << 10;
/// How often progress is told and interruption looked for.
const LOOK_NS: u64 = 100_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// One thread's work.
pub trait Worker: Send {
    /// What has to happen in the thread itself before everybody starts.
    ///
    /// Errors: end the run before it begins.
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    /// Does the work, until it is done or [`Thread::begin`] says that the run is over.
    ///
    /// Errors: the operation that failed; every thread then ends.
    fn work(&mut self, thread: &mut Thread<'_>) -> std::result::Result<(), Fault>;
}

/// Who watches a run.
pub trait Observer {
    /// The device's counters now; `None` where nothing counts.
    fn device(&mut self) -> Option<Counters>;

    /// Notice right before the counters are read from which a run is measured.
    fn begin(&mut self) {}

    /// What others did since [`Observer::begin`]; `None` where nobody looked.
    fn others(&mut self) -> Option<OthersIo> {
        None
    }

    /// Notice about ten times a second.
    fn progress(&mut self, progress: Progress);

    /// Notice while files or databases are made: bytes or rows that are there, of how many.
    fn preparing(&mut self, _done: u64, _total: u64) {}

    /// True if every single operation is asked for.
    fn wants_operations(&self) -> bool {
        false
    }

    /// A thread's operations of the measured part, after its end; only if they were asked for.
    fn operations(&mut self, _thread: u32, _operations: &[Operation]) {}
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Operations that have ended, ramp included.
    pub operations: u64,
    /// Since the start, ramp included, nanoseconds.
    pub elapsed_ns: u64,
}

/// How a run's threads are started and ended.
#[derive(Clone, Copy, Debug)]
pub struct Pool<'a> {
    /// When the run ends, how fast it goes, and which CPUs its threads are pinned to.
    pub measurement: &'a Measurement,
    /// Set by whoever wants the run to end early.
    pub interrupted: &'a AtomicBool,
}

/// What a thread tells the one that started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notice {
    /// It is prepared.
    Ready,
    /// It has ended, or will not begin.
    Ended,
}

/// Holds prepared threads back.
#[derive(Default)]
struct Gate {
    start: Mutex<Option<Start>>,
    opened: Condvar,
}

/// What becomes of prepared threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Now,
    Never,
}

impl Gate {
    fn open(&self, start: Start) {
        *self.start.lock().unwrap_or_else(PoisonError::into_inner) = Some(start);
        self.opened.notify_all();
    }

    fn wait(&self) -> Start {
        let mut start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(start) = *start {
                return start;
            }
            start = self
                .opened
                .wait(start)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// What one thread brings back.
struct Finished {
    record: Record,
    end_ns: u64,
    begun: u64,
    fault: Option<Fault>,
}

/// Readings of the load, the whole machine and the device.
#[derive(Clone, Copy, Default)]
struct Reading {
    load: Usage,
    machine: Option<MachineTime>,
    device: Option<Counters>,
}

impl Reading {
    fn take(observer: &mut dyn Observer) -> Reading {
        Reading {
            load: Usage::of_the_load(),
            machine: usage::machine_time(),
            device: observer.device(),
        }
    }
}

impl Pool<'_> {
    /// Runs each worker in a thread of its own. All begin at once; the answer says what they did
    /// together, without page cache and verification, which the caller adds.
    ///
    /// Errors: only from before the start: a thread that cannot be made, pinned or prepared. What
    /// fails later is in the run.
    pub fn run<W: Worker>(&self, workers: &mut [W], observer: &mut dyn Observer) -> Result<Run> {
        let shared = Shared {
            stop: AtomicBool::new(false),
            logs: observer.wants_operations(),
            done: workers.iter().map(|_| Padded::default()).collect(),
        };
        let gate = Gate::default();
        let (notify, notices) = channel();
        let threads = workers.len() as u32;
        std::thread::scope(|scope| {
            let mut handles = Vec::with_capacity(workers.len());
            let mut refused = None;
            for (number, worker) in (0..).zip(workers) {
                let (shared, gate, notify) = (&shared, &gate, notify.clone());
                let builder = std::thread::Builder::new()
                    .name(format!("load-{number}"))
                    .stack_size(STACK_BYTES);
                let body = move || self.one((number, threads), worker, shared, gate, &notify);
                match builder.spawn_scoped(scope, body) {
                    Ok(handle) => handles.push(handle),
                    Err(error) => {
                        refused = Some(Error::io("/proc/self/task", "start a thread in")(error));
                        break;
                    }
                }
            }
            drop(notify);
            // First everybody is prepared, then everybody begins, or nobody.
            let ready = handles
                .iter()
                .filter(|_| notices.recv() == Ok(Notice::Ready))
                .count();
            observer.begin();
            let before = Reading::take(observer);
            let start_ns = mono_ns();
            let start_wall_ns = wall_ns() + self.measurement.limits.ramp_ns;
            gate.open(if ready < threads as usize {
                Start::Never
            } else {
                Start::Now
            });
            let watched = (ready == threads as usize)
                .then(|| self.watch(&shared, &notices, threads, (start_ns, before), observer));
            let mut finished = Vec::with_capacity(handles.len());
            for handle in handles {
                finished.extend(handle.join().expect("panics are caught inside")?);
            }
            match (refused, watched) {
                (None, Some(watched)) => {
                    for (number, thread) in (0..).zip(&finished) {
                        if let Some(operations) = thread.record.log() {
                            observer.operations(number, operations);
                        }
                    }
                    Ok(self.add_up(finished, start_ns, start_wall_ns, watched))
                }
                (refused, _) => Err(refused.unwrap_or(Error::Interrupted)),
            }
        })
    }

    /// A thread's life; `None` if the run never started.
    fn one<W: Worker>(
        &self,
        (number, threads): (u32, u32),
        worker: &mut W,
        shared: &Shared,
        gate: &Gate,
        notify: &Sender<Notice>,
    ) -> Result<Option<Finished>> {
        let prepared = self.pin(number).and_then(|()| worker.prepare());
        // The receiver outlives every thread.
        let _ = notify.send(match prepared {
            Ok(()) => Notice::Ready,
            Err(_) => Notice::Ended,
        });
        prepared?;
        if gate.wait() == Start::Never {
            return Ok(None);
        }
        let finished = self.work((number, threads), worker, shared);
        let _ = notify.send(Notice::Ended);
        Ok(Some(finished))
    }

    fn work<W: Worker>(
        &self,
        (number, threads): (u32, u32),
        worker: &mut W,
        shared: &Shared,
    ) -> Finished {
        if self.measurement.pace != Pace::default() {
            // The default slack of 50 µs would make every paced operation late.
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        }
        let mut thread = Thread::new(
            shared,
            (number, threads),
            self.measurement.limits,
            &self.measurement.pace,
            mono_ns(),
        );
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| worker.work(&mut thread)));
        let end_ns = mono_ns();
        let fault = match result {
            Ok(Ok(())) => None,
            Ok(Err(fault)) => Some(fault),
            Err(panic) => Some(Fault {
                attempt: format!("thread {number}"),
                reason: format!("it died: {}", panic_text(&*panic)),
                operation: None,
            }),
        };
        if fault.is_some() {
            shared.stop.store(true, Ordering::Relaxed);
        }
        usage::account_this_thread();
        let begun = thread.begun();
        let record = thread.finish();
        Finished {
            begun,
            record,
            end_ns,
            fault,
        }
    }

    fn pin(&self, number: u32) -> Result<()> {
        let Some(&cpu) = self
            .measurement
            .cpus
            .get(number as usize % self.measurement.cpus.len().max(1))
        else {
            return Ok(());
        };
        let mut set = rustix::thread::CpuSet::new();
        let usage = |reason: &str| Error::Usage {
            what: format!("CPU {cpu}: {reason}"),
            hint: "see /proc/self/status for Cpus_allowed_list".into(),
        };
        if cpu as usize >= rustix::thread::CpuSet::MAX_CPU {
            return Err(usage("there is none"));
        }
        set.set(cpu as usize);
        rustix::thread::sched_setaffinity(None, &set)
            .map_err(|errno| usage(&std::io::Error::from(errno).to_string()))
    }

    /// Samples until every thread has ended.
    fn watch(
        &self,
        shared: &Shared,
        notices: &Receiver<Notice>,
        threads: u32,
        (start_ns, before): (u64, Reading),
        observer: &mut dyn Observer,
    ) -> Watched {
        let measured_ns = start_ns + self.measurement.limits.ramp_ns;
        let mut watched = Watched {
            before,
            ramped: self.measurement.limits.ramp_ns == 0,
            ..Watched::default()
        };
        watched
            .samples
            .extend(watched.ramped.then_some(before.device));
        let mut running = threads;
        let mut next_look_ns = start_ns + LOOK_NS;
        while running > 0 {
            let next_second_ns = measured_ns + watched.samples.len() as u64 * SECOND_NS;
            let wake_ns = next_second_ns.min(next_look_ns);
            let wait = Duration::from_nanos(wake_ns.saturating_sub(mono_ns()));
            match notices.recv_timeout(wait) {
                Ok(_) => running -= 1,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now_ns = mono_ns();
            if now_ns >= next_second_ns {
                if !watched.ramped {
                    watched.ramped = true;
                    observer.begin();
                    watched.before = Reading::take(observer);
                    watched.samples.push(watched.before.device);
                } else {
                    watched.samples.push(observer.device());
                }
            }
            if now_ns >= next_look_ns {
                next_look_ns = now_ns + LOOK_NS;
                if self.interrupted.load(Ordering::Relaxed) {
                    shared.stop.store(true, Ordering::Relaxed);
                    watched.interrupted = true;
                }
                observer.progress(Progress {
                    operations: shared
                        .done
                        .iter()
                        .map(|d| d.0.load(Ordering::Relaxed))
                        .sum(),
                    elapsed_ns: now_ns - start_ns,
                });
            }
        }
        watched.after = Reading::take(observer);
        watched.others = observer.others();
        if !watched.ramped {
            watched.before = watched.after;
        }
        watched.samples.push(watched.after.device);
        watched
    }

    fn add_up(
        &self,
        finished: Vec<Finished>,
        start_ns: u64,
        start_wall_ns: u64,
        watched: Watched,
    ) -> Run {
        let measured_ns = start_ns + self.measurement.limits.ramp_ns;
        let end_ns = finished
            .iter()
            .map(|f| f.end_ns)
            .max()
            .unwrap_or(measured_ns);
        let mut run = Run {
            elapsed_ns: end_ns.saturating_sub(measured_ns),
            ..Run::empty(RunState::Complete, start_wall_ns)
        };
        for (number, thread) in (0..).zip(finished) {
            add_thread(&mut run, number, thread);
        }
        run.state = match () {
            () if !run.failures.is_empty() => RunState::Failed,
            () if watched.interrupted => RunState::Interrupted,
            () => RunState::Complete,
        };
        finish_seconds(&mut run, &watched.samples);
        run.others = watched.others;
        let Watched { before, after, .. } = watched;
        let machine = after.machine.zip(before.machine);
        let machine = machine.map(|(after, before)| usage::between(before, after));
        run.cpu = after.load.since(&before.load).into_cpu(machine);
        let device = after.device.zip(before.device);
        run.device = device.map(|(after, before)| after.since(before));
        run
    }
}

/// What the sampling thread saw.
#[derive(Default)]
struct Watched {
    before: Reading,
    after: Reading,
    others: Option<OthersIo>,
    /// The device at the start of each second, and at the end.
    samples: Vec<Option<Counters>>,
    ramped: bool,
    interrupted: bool,
}

fn add_thread(run: &mut Run, number: u32, thread: Finished) {
    let Finished {
        mut record,
        end_ns,
        begun,
        fault,
    } = thread;
    run.threads.push(ThreadRun {
        operations: record.operations,
        bytes: record.bytes,
        elapsed_ns: end_ns.saturating_sub(record.start_ns()),
    });
    run.operations += record.operations;
    run.bytes += record.bytes;
    run.idle_ns += record.idle_ns;
    record.add_seconds_to(&mut run.seconds);
    record.add_latencies_to(&mut run.latencies);
    run.failures.extend(fault.map(|fault| Failure {
        thread: number,
        operation: fault.operation.unwrap_or(begun),
        attempt: fault.attempt,
        reason: fault.reason,
    }));
}

/// Gives every second its length and its device counters.
fn finish_seconds(run: &mut Run, samples: &[Option<Counters>]) {
    let wanted = run.elapsed_ns.div_ceil(SECOND_NS) as usize;
    run.seconds
        .resize(wanted.max(run.seconds.len()), Default::default());
    let mut rest_ns = run.elapsed_ns;
    for (number, second) in run.seconds.iter_mut().enumerate() {
        second.length_ns = rest_ns.min(SECOND_NS);
        rest_ns -= second.length_ns;
        let from = samples.get(number).copied().flatten();
        let to = samples.get(number + 1).copied().flatten();
        second.device = to.zip(from).map(|(to, from)| to.since(from));
    }
    // An operation that ended in the very nanosecond of the end.
    while run
        .seconds
        .last()
        .is_some_and(|s| s.length_ns == 0 && s.operations == 0)
    {
        run.seconds.pop();
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given")
}

#[cfg(test)]
mod tests;
