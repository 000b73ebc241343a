//! What a worker sees of the engine.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use iostep_model::bench::{Limits, Pace, Step};

use super::pace::Schedule;
use super::record::Record;
use iostep_model::clock::mono_ns;

/// Why a worker ended before its work was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What was attempted, on what.
    pub attempt: String,
    /// Why not, in the system's or SQLite's words.
    pub reason: String,
    /// [`Thread::begun`] right after the operation began; `None` for that of the last to begin.
    pub operation: Option<u64>,
}

/// What all threads of a run share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Set when everybody has to end.
    pub stop: AtomicBool,
    /// True if every operation is logged.
    pub logs: bool,
    /// Operations that have ended, by thread.
    pub done: Vec<Padded>,
}

/// A counter with a cache line of its own, since every operation writes it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Padded(pub AtomicU64);

/// A worker's hold on the run. Each operation is
/// [`begin`](Thread::begin), [`step`](Thread::step) for its parts, [`end`](Thread::end).
#[derive(Debug)]
pub struct Thread<'a> {
    shared: &'a Shared,
    number: u32,
    limits: Limits,
    schedule: Schedule,
    is_free: bool,
    start_ns: u64,
    /// The next moment that changes something: the end of the ramp, then the end of the time.
    edge_ns: u64,
    measuring: bool,
    begun: u64,
    record: Record,
}

impl<'a> Thread<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        (number, threads): (u32, u32),
        limits: Limits,
        pace: &Pace,
        start_ns: u64,
    ) -> Thread<'a> {
        let schedule = Schedule::new(pace, number, threads, start_ns);
        let measuring = limits.ramp_ns == 0;
        let mut thread = Thread {
            shared,
            number,
            limits,
            is_free: schedule.is_free(),
            schedule,
            start_ns,
            edge_ns: start_ns + limits.ramp_ns,
            measuring,
            begun: 0,
            record: Record::new(start_ns + limits.ramp_ns, shared.logs),
        };
        if measuring {
            thread.edge_ns = thread.deadline_ns();
        }
        thread
    }

    /// Ends the thread's part: what it measured. What ended within the ramp did not count.
    pub(super) fn finish(self) -> Record {
        match self.measuring {
            true => self.record,
            false => Record::new(self.start_ns + self.limits.ramp_ns, self.shared.logs),
        }
    }

    /// The number of this thread, from 0.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// How many operations have begun, ramp included.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// True if work that is done once has to be done again, until the time is over.
    pub fn repeats(&self) -> bool {
        self.limits.time_ns.is_some()
    }

    /// True when everybody has to end: for loops that wait for something.
    pub fn must_stop(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// The flag behind [`Thread::must_stop`], for whatever waits by itself.
    pub fn stop_flag(&self) -> &'a AtomicBool {
        &self.shared.stop
    }

    /// When the next operation may begin; 0 for at once. For whoever has something else to wait
    /// for until then: [`Thread::begin`] waits only for this.
    #[inline]
    pub fn next_begin_ns(&mut self) -> u64 {
        if self.is_free {
            return 0;
        }
        self.schedule.next_ns(self.begun == 0)
    }

    /// Waits for the next operation's moment. The answer is when it begins, or `None` if the run
    /// is over.
    #[inline]
    pub fn begin(&mut self) -> Option<u64> {
        if self.must_stop() {
            return None;
        }
        let now_ns = if self.is_free {
            mono_ns()
        } else {
            self.paced_begin()?
        };
        if now_ns >= self.edge_ns && !self.cross(now_ns) {
            return None;
        }
        self.begun += 1;
        Some(now_ns)
    }

    /// As [`Thread::begin`], after an operation that ended at `end_ns`: without a pause between
    /// them this one begins there, which saves a reading of the clock. What is done in between is
    /// then part of its latency, so that latencies add up to the time that passed.
    #[inline]
    pub fn begin_after(&mut self, end_ns: Option<u64>) -> Option<u64> {
        let Some(now_ns) = end_ns.filter(|_| self.is_free) else {
            return self.begin();
        };
        if self.must_stop() || (now_ns >= self.edge_ns && !self.cross(now_ns)) {
            return None;
        }
        self.begun += 1;
        Some(now_ns)
    }

    #[cold]
    fn paced_begin(&mut self) -> Option<u64> {
        let before_ns = mono_ns();
        let due_ns = self.schedule.wait(self.begun == 0, &self.shared.stop)?;
        let now_ns = mono_ns();
        self.record.idle_ns += now_ns - before_ns;
        if let Some(due_ns) = due_ns {
            self.record
                .step(Step::Lateness, now_ns.saturating_sub(due_ns));
        }
        Some(now_ns)
    }

    /// Passes the end of the ramp, or of the time: then false.
    #[cold]
    fn cross(&mut self, now_ns: u64) -> bool {
        if !self.measuring {
            self.measuring = true;
            self.record = Record::new(self.start_ns + self.limits.ramp_ns, self.shared.logs);
            self.edge_ns = self.deadline_ns();
        }
        now_ns < self.edge_ns
    }

    fn deadline_ns(&self) -> u64 {
        let length_ns = self.limits.time_ns.map(|time| time + self.limits.ramp_ns);
        length_ns.map_or(u64::MAX, |length| self.start_ns.saturating_add(length))
    }

    /// Records how long a part of the operation took.
    #[inline]
    pub fn step(&mut self, step: Step, latency_ns: u64) {
        self.record.step(step, latency_ns);
    }

    /// Records an operation that is done, from [`Thread::begin`]'s answer to `end_ns`.
    #[inline]
    pub fn end(&mut self, begin_ns: u64, end_ns: u64, bytes: u64) {
        self.end_after(end_ns, end_ns - begin_ns, bytes);
    }

    /// As [`Thread::end`], for an operation whose latency is not all that passed meanwhile.
    #[inline]
    pub fn end_after(&mut self, end_ns: u64, latency_ns: u64, bytes: u64) {
        self.record.operation(end_ns, latency_ns, bytes);
        let done = &self.shared.done[self.number as usize].0;
        // Only this thread writes it.
        done.store(done.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}
