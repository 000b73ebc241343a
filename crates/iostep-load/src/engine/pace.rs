//! When an operation may begin.

use std::sync::atomic::{AtomicBool, Ordering};

use iostep_model::bench::Pace;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

use iostep_model::clock::mono_ns;

/// The last stretch before a moment is waited for awake: a sleeping thread is woken late by tens
/// of microseconds.
const SPIN_NS: u64 = 100_000;
/// A sleep is cut into pieces of this length, so that whoever asks for the end is heard.
const NAP_NS: u64 = 50_000_000;

/// Waits until `moment_ns` of `CLOCK_MONOTONIC`: asleep, and the last 100 µs awake. False if
/// `stop` became true first.
pub fn sleep_until(moment_ns: u64, stop: &AtomicBool) -> bool {
    while moment_ns.saturating_sub(mono_ns()) > SPIN_NS {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        nap_until(moment_ns - SPIN_NS);
    }
    spin_until(moment_ns);
    !stop.load(Ordering::Relaxed)
}

/// Sleeps until a moment, but not longer than a nap. A signal ends it early.
fn nap_until(wake_ns: u64) {
    let wake_ns = wake_ns.min(mono_ns() + NAP_NS);
    let wake = Timespec {
        tv_sec: (wake_ns / 1_000_000_000) as i64,
        tv_nsec: (wake_ns % 1_000_000_000) as i64,
    };
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &wake);
}

fn spin_until(moment_ns: u64) {
    while mono_ns() < moment_ns {
        std::hint::spin_loop();
    }
}

/// Waits of one thread that knows how late it is woken, and stays awake no longer than that.
#[derive(Clone, Debug)]
pub struct Pacer {
    spin_ns: u64,
    blocked_ns: u64,
}

/// The bounds of the time that a [`Pacer`] stays awake. The lower one is what entering and leaving
/// a sleep takes.
const PACER_SPIN_NS: std::ops::RangeInclusive<u64> = 4_000..=200_000;
/// After a wake-up that came too late the stretch grows by a 16th, after any other it shrinks by a
/// 512th: so 97 of 100 come in time.
const GROW: u64 = 16;
const SHRINK: u64 = 512;
/// Sleeps that a calibration measures, and how long they are: 20 ms in all.
const PROBES: u64 = 40;
const PROBE_NS: u64 = 500_000;

impl Pacer {
    /// Measures how late this thread is woken here.
    pub fn calibrated() -> Pacer {
        let late = |_| {
            let wake_ns = mono_ns() + PROBE_NS;
            nap_until(wake_ns);
            mono_ns().saturating_sub(wake_ns)
        };
        let mut late_ns: Vec<u64> = (0..PROBES).map(late).collect();
        late_ns.sort_unstable();
        let most_ns = late_ns[late_ns.len() - 2];
        Pacer {
            spin_ns: most_ns.clamp(*PACER_SPIN_NS.start(), *PACER_SPIN_NS.end()),
            blocked_ns: 0,
        }
    }

    /// Waits until `moment_ns` of `CLOCK_MONOTONIC`. False if `stop` became true first.
    pub fn wait_until(&mut self, moment_ns: u64, stop: &AtomicBool) -> bool {
        loop {
            if stop.load(Ordering::Relaxed) {
                return false;
            }
            let now_ns = mono_ns();
            let left_ns = moment_ns.saturating_sub(now_ns);
            if left_ns <= self.spin_ns {
                break;
            }
            let wake_ns = (moment_ns - self.spin_ns).min(now_ns + NAP_NS);
            let used_ns = thread_cpu_ns();
            nap_until(wake_ns);
            let used_ns = thread_cpu_ns() - used_ns;
            let woken_ns = mono_ns();
            self.blocked_ns += (woken_ns - now_ns).saturating_sub(used_ns);
            self.learn(woken_ns.saturating_sub(wake_ns));
        }
        spin_until(moment_ns);
        true
    }

    /// How long this thread slept in all, in nanoseconds.
    pub fn blocked_ns(&self) -> u64 {
        self.blocked_ns
    }

    fn learn(&mut self, late_ns: u64) {
        let changed_ns = match late_ns > self.spin_ns {
            true => self.spin_ns + self.spin_ns / GROW,
            false => self.spin_ns - self.spin_ns / SHRINK,
        };
        self.spin_ns = changed_ns.clamp(*PACER_SPIN_NS.start(), *PACER_SPIN_NS.end());
    }
}

/// CPU time of this thread.
fn thread_cpu_ns() -> u64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}

/// One thread's part of a schedule.
#[derive(Debug)]
pub(super) struct Schedule {
    think_ns: u64,
    /// When the next operation is due; `None` without a rate.
    due_ns: Option<f64>,
    interval_ns: f64,
    /// When the thinking under way ends.
    thought_ns: Option<u64>,
}

impl Schedule {
    /// Thread `number` of `threads`: they take turns in the schedule of the whole.
    pub fn new(pace: &Pace, number: u32, threads: u32, start_ns: u64) -> Schedule {
        let step_ns = pace.operations_per_second.map(|rate| 1e9 / rate);
        Schedule {
            think_ns: pace.think_ns,
            due_ns: step_ns.map(|step_ns| start_ns as f64 + step_ns * f64::from(number)),
            interval_ns: step_ns.unwrap_or(0.0) * f64::from(threads),
            thought_ns: None,
        }
    }

    /// True if operations follow each other without a pause.
    pub fn is_free(&self) -> bool {
        self.think_ns == 0 && self.due_ns.is_none()
    }

    /// The next operation's moment. Asking begins the thinking before it; asking again does not
    /// move it.
    pub fn next_ns(&mut self, first: bool) -> u64 {
        let think_ns = if first { 0 } else { self.think_ns };
        let thought_ns = match think_ns {
            0 => 0,
            _ => *self.thought_ns.get_or_insert_with(|| mono_ns() + think_ns),
        };
        thought_ns.max(self.due_ns.unwrap_or(0.0) as u64)
    }

    /// Waits for the next operation's moment. `None` if `stop` came first; else the moment that
    /// was due, if there is a rate.
    pub fn wait(&mut self, first: bool, stop: &AtomicBool) -> Option<Option<u64>> {
        let next_ns = self.next_ns(first);
        self.thought_ns = None;
        let due_ns = self.due_ns;
        self.due_ns = due_ns.map(|due_ns| due_ns + self.interval_ns);
        sleep_until(next_ns, stop).then_some(due_ns.map(|due_ns| due_ns as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_take_turns_and_a_late_operation_does_not_move_the_next() {
        let pace = Pace {
            operations_per_second: Some(1e9),
            ..Pace::default()
        };
        let stop = AtomicBool::new(false);
        let mut second = Schedule::new(&pace, 1, 4, 1000);
        let due: Vec<_> = (0..3).map(|_| second.wait(false, &stop)).collect();
        assert_eq!(due, [1001, 1005, 1009].map(|ns| Some(Some(ns))));
    }

    #[test]
    fn asking_for_a_moment_does_not_move_it() {
        let pace = Pace {
            operations_per_second: Some(1e9),
            ..Pace::default()
        };
        let mut rated = Schedule::new(&pace, 0, 1, 1000);
        assert_eq!([rated.next_ns(true), rated.next_ns(true)], [1000, 1000]);
        let pace = Pace {
            think_ns: 1_000_000,
            ..Pace::default()
        };
        let stop = AtomicBool::new(false);
        let mut thinking = Schedule::new(&pace, 0, 1, 1000);
        assert_eq!(thinking.next_ns(true), 0);
        let moment_ns = thinking.next_ns(false);
        assert_eq!(thinking.next_ns(false), moment_ns);
        assert_eq!(thinking.wait(false, &stop), Some(None));
        assert!(mono_ns() >= moment_ns);
        assert!(thinking.next_ns(false) > moment_ns);
    }

    #[test]
    fn a_wait_is_never_over_before_its_moment() {
        let stop = AtomicBool::new(false);
        for wait_ns in [0, 1_000, 150_000, 3_000_000] {
            let moment_ns = mono_ns() + wait_ns;
            assert!(sleep_until(moment_ns, &stop));
            assert!(mono_ns() >= moment_ns);
        }
    }

    #[test]
    fn whoever_asks_for_the_end_is_heard() {
        let stop = AtomicBool::new(true);
        assert!(!sleep_until(u64::MAX, &stop));
    }
}
