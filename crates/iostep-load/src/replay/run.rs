//! The threads of a replay and their clock.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use iostep_model::replay::{Performed, Prepared, Replay, Settings, Skip, State, Timing};
use iostep_model::syscall::{Call, Operation, Recording};
use rustix::time::{ClockId, clock_gettime};

use super::Watch;
use super::fence;
use super::handles::allow_descriptors;
use super::perform::{Performer, transfer_bytes};
use super::plan::{Plan, Step, order_violations};
use super::progress::{AWAKE_NS, Progress};
use super::root::Root;
use super::transfer::Buffer;
use crate::engine::{Pacer, between, machine_time};
use crate::error::{Error, Result};
use iostep_model::clock::mono_ns;

/// From the last thread's readiness to time 0, so that all are waiting for it: this, and as much
/// again for each thread.
const LEAD_NS: u64 = 2_000_000;
const LEAD_EACH_NS: u64 = 20_000;
/// Between two looks whether all threads are ready, and of one that waits for an interruption.
const READY_NAP: Duration = Duration::from_micros(500);
const START_NAP: Duration = Duration::from_millis(500);
/// Stack of a thread; a recording may have thousands.
const STACK_BYTES: usize = 256 * 1024;

/// What all threads share.
struct Shared<'a> {
    recording: &'a Recording,
    plan: &'a Plan,
    settings: Settings,
    performer: Performer<'a>,
    progress: Progress,
    watch: &'a Watch,
    /// Threads that have their memory and wait.
    ready: AtomicU32,
    /// Time 0 of the replay on the monotonic clock, nanoseconds; 0 until all are ready. Thousands
    /// that looked for it again and again would keep those that start from starting.
    start_ns: Mutex<u64>,
    started: Condvar,
}

/// What a thread gives back.
struct Part {
    performed: Vec<Performed>,
    cpu_ns: u64,
    user_ns: u64,
}

/// Performs the calls of a plan.
pub(super) fn run(
    recording: &Recording,
    plan: &Plan,
    root: &Root,
    settings: Settings,
    watch: &Watch,
) -> Result<Replay> {
    allow_descriptors(opened(recording));
    let shared = Shared {
        recording,
        plan,
        settings,
        performer: Performer::new(recording, root, plan.threads.len() == 1, &watch.interrupted),
        progress: Progress::of(plan.threads.len()),
        watch,
        ready: AtomicU32::new(0),
        start_ns: Mutex::new(0),
        started: Condvar::new(),
    };
    let machine_before = machine_time();
    let parts = std::thread::scope(|scope| {
        // A thread of its own, since a fence cannot be taken down; those it starts are behind it.
        let fenced = scope.spawn(|| {
            fence::raise(root);
            run_threads(&shared)
        });
        let joined = fenced.join();
        joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    let machine = machine_before.zip(machine_time());
    let cpu_ns = parts.iter().map(|part| part.cpu_ns).sum();
    let others_cpu = machine.map_or(0.0, |(before, after)| between(before, after).others(cpu_ns));
    let mut replay = Replay {
        settings,
        calls: vec![skipped(); recording.calls.len()],
        prepared: Prepared::default(),
        order_violations: 0,
        cpu_ns,
        user_ns: parts.iter().map(|part| part.user_ns).sum(),
        others_cpu,
        interrupted: watch.interrupted.load(Ordering::Relaxed),
    };
    for (thread, part) in plan.threads.iter().zip(parts) {
        for (step, performed) in thread.steps.iter().zip(part.performed) {
            replay.calls[step.call as usize] = performed;
        }
    }
    replay.order_violations = order_violations(recording, &replay.calls);
    Ok(replay)
}

/// The most descriptors that can be open at once.
fn opened(recording: &Recording) -> u64 {
    let each = recording.calls.iter().map(|call| match &call.operation {
        Operation::Open { .. } | Operation::Reopen { .. } | Operation::Duplicate { .. } => 1,
        Operation::Inherit { handles, .. } => handles.len() as u64,
        _ => 0,
    });
    each.sum()
}

fn skipped() -> Performed {
    Performed {
        due_ns: 0,
        ready_ns: 0,
        issued_ns: 0,
        ended_ns: 0,
        state: State::Skipped(Skip::Interrupted),
    }
}

fn run_threads(shared: &Shared<'_>) -> Result<Vec<Part>> {
    let count = shared.plan.threads.len();
    precise_timers();
    let pacer = &Pacer::calibrated();
    std::thread::scope(|scope| {
        let mut started = Vec::with_capacity(count);
        for number in 0..count {
            let builder = std::thread::Builder::new()
                .name(format!("replay-{}", number + 1))
                .stack_size(STACK_BYTES);
            let thread =
                builder.spawn_scoped(scope, move || run_thread(shared, number, pacer.clone()));
            started.push(thread.map_err(|source| {
                // Ends those that wait.
                shared.watch.interrupted.store(true, Ordering::Relaxed);
                Error::io(format!("thread {} of {count}", number + 1), "start")(source)
            })?);
        }
        while (shared.ready.load(Ordering::Acquire) as usize) < count {
            std::thread::sleep(READY_NAP);
        }
        let lead_ns = LEAD_NS + LEAD_EACH_NS * count as u64;
        *lock(&shared.start_ns) = mono_ns() + lead_ns;
        shared.started.notify_all();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Part>| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        Ok(started.into_iter().map(join).collect())
    })
}

/// Time 0, once all threads are ready; none if the replay ends before.
fn wait_for_start(shared: &Shared<'_>) -> Option<u64> {
    shared.ready.fetch_add(1, Ordering::AcqRel);
    let mut start_ns = lock(&shared.start_ns);
    while *start_ns == 0 && !shared.watch.interrupted.load(Ordering::Relaxed) {
        let woken = shared.started.wait_timeout(start_ns, START_NAP);
        start_ns = woken.unwrap_or_else(PoisonError::into_inner).0;
    }
    Some(*start_ns).filter(|start_ns| *start_ns > 0)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The default slack of 50 µs would make every call late.
fn precise_timers() {
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

fn run_thread(shared: &Shared<'_>, number: usize, mut pacer: Pacer) -> Part {
    let steps = &shared.plan.threads[number].steps;
    let calls = &shared.recording.calls;
    precise_timers();
    let sizes = steps
        .iter()
        .map(|step| transfer_bytes(&calls[step.call as usize]));
    let mut buffer = Buffer::new(sizes.max().unwrap_or(0), number as u64);
    let mut performed = Vec::with_capacity(steps.len());
    let Some(start_ns) = wait_for_start(shared) else {
        return Part {
            performed,
            cpu_ns: 0,
            user_ns: 0,
        };
    };
    if !pacer.wait_until(start_ns, &shared.watch.interrupted) {
        return Part {
            performed,
            cpu_ns: 0,
            user_ns: 0,
        };
    }
    let slept_before_ns = pacer.blocked_ns();
    let mut clock = Clock::new(shared, start_ns);
    let cpu_before_ns = thread_cpu_ns();
    let (mut in_calls_ns, mut held_ns, mut told) = (0, 0, 0);
    let began_ns = mono_ns();
    for (index, step) in steps.iter().enumerate() {
        let call = &calls[step.call as usize];
        held_ns += match hold(shared, step) {
            Some(held_ns) => held_ns,
            None => break,
        };
        let Some((due_ns, ready_ns)) = wait_for(shared, &clock, &mut pacer, step, call) else {
            break;
        };
        let before_ns = mono_ns();
        let state = shared.performer.perform(call, &mut buffer);
        let after_ns = mono_ns();
        shared.progress.done(number, index as u32 + 1);
        in_calls_ns += after_ns - before_ns;
        clock.ended(call, after_ns);
        performed.push(Performed {
            due_ns: clock.since_start(due_ns),
            ready_ns: clock.since_start(ready_ns),
            issued_ns: clock.since_start(before_ns),
            ended_ns: clock.since_start(after_ns),
            state,
        });
        if index % TELL_CALLS == TELL_CALLS - 1 {
            told += TELL_CALLS;
            shared
                .watch
                .calls
                .fetch_add(TELL_CALLS as u64, Ordering::Relaxed);
        }
    }
    let rest = performed.len() - told.min(performed.len());
    shared.watch.calls.fetch_add(rest as u64, Ordering::Relaxed);
    let cpu_ns = thread_cpu_ns() - cpu_before_ns;
    let slept_ns = pacer.blocked_ns() - slept_before_ns;
    let idle_ns = in_calls_ns + held_ns + slept_ns;
    let user_ns = (mono_ns() - began_ns).saturating_sub(idle_ns);
    Part {
        performed,
        cpu_ns,
        user_ns: user_ns.min(cpu_ns),
    }
}

/// Calls between two notes of how far a thread is.
const TELL_CALLS: usize = 64;

/// Waits for what a step must follow. How long, without what it was awake; none if interrupted.
fn hold(shared: &Shared<'_>, step: &Step) -> Option<u64> {
    let waits = shared.plan.waits(step);
    if waits.is_empty() {
        return Some(0);
    }
    let began_ns = mono_ns();
    for wait in waits {
        if !shared.progress.wait(*wait, &shared.watch.interrupted) {
            return None;
        }
    }
    Some((mono_ns() - began_ns).saturating_sub(AWAKE_NS))
}

/// Waits until a step shall be done. Its due and ready times; none if interrupted.
fn wait_for(
    shared: &Shared<'_>,
    clock: &Clock<'_>,
    pacer: &mut Pacer,
    step: &Step,
    call: &Call,
) -> Option<(u64, u64)> {
    let now_ns = mono_ns();
    let due_ns = clock.due_ns(call).unwrap_or(now_ns);
    let ready_ns = if step.waits.is_empty() {
        due_ns
    } else {
        now_ns.max(due_ns)
    };
    pacer
        .wait_until(due_ns, &shared.watch.interrupted)
        .then_some((due_ns, ready_ns))
}

/// When a thread's calls are due.
struct Clock<'a> {
    settings: &'a Settings,
    start_ns: u64,
    /// The recording's begin: the start of its first call.
    first_ns: u64,
    /// When the thread's call before ended, here and in the recording.
    before: (u64, u64),
}

impl<'a> Clock<'a> {
    fn new(shared: &'a Shared<'_>, start_ns: u64) -> Clock<'a> {
        let first_ns = shared
            .recording
            .calls
            .first()
            .map_or(0, |call| call.start_ns);
        Clock {
            settings: &shared.settings,
            start_ns,
            first_ns,
            before: (start_ns, first_ns),
        }
    }

    /// None: now.
    fn due_ns(&self, call: &Call) -> Option<u64> {
        let scaled = |ns: u64| (ns as f64 / self.settings.speed) as u64;
        match self.settings.timing {
            Timing::Original => Some(self.start_ns + scaled(call.start_ns - self.first_ns)),
            Timing::Fast => None,
            Timing::Think => {
                let (here_ns, recorded_ns) = self.before;
                Some(here_ns + scaled(call.start_ns.saturating_sub(recorded_ns)))
            }
        }
    }

    fn ended(&mut self, call: &Call, now_ns: u64) {
        let recorded_ns = call.start_ns.saturating_add(call.duration_ns.unwrap_or(0));
        self.before = (now_ns, recorded_ns);
    }

    fn since_start(&self, moment_ns: u64) -> u64 {
        moment_ns.saturating_sub(self.start_ns)
    }
}

fn thread_cpu_ns() -> u64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}
