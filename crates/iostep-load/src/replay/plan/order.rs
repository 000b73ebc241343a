//! The waits of every call.

use iostep_model::syscall::{Call, Recording};
use rustc_hash::FxHashMap;

use super::touch::{Resource, Touches, Use};
use super::{Plan, Step, ThreadPlan, Wait};

/// A call that others may have to wait for.
#[derive(Clone, Copy)]
struct Past {
    thread: u32,
    /// Steps its thread has done when it is done.
    steps: u32,
    start_ns: u64,
    /// When it ended in the recording; the end of time, if it never did.
    end_ns: u64,
    how: Use,
}

/// The calls on one resource that later ones may have to wait for, by their begin.
#[derive(Default)]
struct History {
    past: Vec<Past>,
    /// When to look again for those that nobody waits for any more.
    prune_at: usize,
}

/// A history this long is pruned.
const PRUNE_CALLS: usize = 16;

impl History {
    /// Adds to `waits` what `next` must wait for, then `next` itself.
    fn push(&mut self, next: Past, waits: &mut Vec<Wait>) {
        for past in &self.past {
            let ordered = past.end_ns <= next.start_ns;
            let conflict = past.how == Use::Exclusive || next.how == Use::Exclusive;
            if ordered && conflict && past.thread != next.thread {
                waits.push(Wait {
                    thread: past.thread,
                    steps: past.steps,
                });
            }
        }
        self.past.push(next);
        if self.past.len() >= self.prune_at.max(PRUNE_CALLS) {
            self.prune(next.start_ns);
            self.prune_at = 2 * self.past.len();
        }
    }

    /// Forgets calls that whoever comes at `now_ns` or later waits for by way of others.
    fn prune(&mut self, now_ns: u64) {
        self.forget_before_exclusive(now_ns);
        self.forget_within_threads(now_ns);
    }

    /// What ended before an exclusive call began that is over itself: that one waited for it.
    fn forget_before_exclusive(&mut self, now_ns: u64) {
        let over = |past: &Past| past.how == Use::Exclusive && past.end_ns <= now_ns;
        let Some(last) = self.past.iter().rposition(over) else {
            return;
        };
        let before_ns = self.past[last].start_ns;
        let mut index = 0;
        self.past.retain(|past| {
            index += 1;
            index > last || past.end_ns > before_ns
        });
    }

    /// What the same thread followed by a call that is over and conflicts with as much.
    fn forget_within_threads(&mut self, now_ns: u64) {
        let mut later: FxHashMap<u32, Use> = FxHashMap::default();
        let mut kept = Vec::with_capacity(self.past.len());
        for past in self.past.drain(..).rev() {
            let covered = match later.get(&past.thread) {
                Some(Use::Exclusive) => true,
                Some(Use::Shared) => past.how == Use::Shared,
                None => false,
            };
            if past.end_ns <= now_ns && later.get(&past.thread) != Some(&Use::Exclusive) {
                later.insert(past.thread, past.how);
            }
            if !covered {
                kept.push(past);
            }
        }
        kept.reverse();
        self.past = kept;
    }
}

/// The plan of a recording, a thread for each of its threads.
pub(super) fn plan(recording: &Recording) -> Plan {
    let mut plan = Plan::default();
    let numbers = recording.threads.iter().map(|thread| thread.id);
    plan.threads = numbers
        .map(|thread| ThreadPlan {
            thread,
            steps: Vec::new(),
        })
        .collect();
    let mut touches = Touches::new(recording);
    let mut histories: FxHashMap<Resource, History> = FxHashMap::default();
    let mut waited = Waited::default();
    let (mut touched, mut waits) = (Vec::new(), Vec::new());
    for (index, call) in recording.calls.iter().enumerate() {
        let Some(thread) = (call.thread.0 as usize).checked_sub(1) else {
            continue;
        };
        let Some(steps) = plan.threads.get(thread).map(|t| t.steps.len() as u32) else {
            continue;
        };
        waits.clear();
        touches.of(call, &mut touched);
        for &(resource, how) in &touched {
            let next = Past {
                thread: thread as u32,
                steps: steps + 1,
                start_ns: call.start_ns,
                end_ns: end_ns(call),
                how,
            };
            histories
                .entry(resource)
                .or_default()
                .push(next, &mut waits);
        }
        let from = plan.waits.len() as u32;
        waited.reduce(thread as u32, &mut waits);
        plan.waits.append(&mut waits);
        let waits = from..plan.waits.len() as u32;
        let call = index as u32;
        plan.threads[thread].steps.push(Step { call, waits });
    }
    plan
}

/// When a call ended. One of unknown length is taken to have ended at once: a source without
/// durations has no overlaps to respect.
pub(super) fn end_ns(call: &Call) -> u64 {
    use iostep_model::syscall::Outcome;
    match (call.duration_ns, call.outcome) {
        (Some(duration), _) => call.start_ns.saturating_add(duration),
        (None, Outcome::Unfinished) => u64::MAX,
        (None, _) => call.start_ns,
    }
}

/// What each thread has waited for already.
#[derive(Default)]
struct Waited {
    steps: FxHashMap<(u32, u32), u32>,
}

impl Waited {
    /// Keeps the last wait on each thread, and none that the thread waited for before.
    fn reduce(&mut self, thread: u32, waits: &mut Vec<Wait>) {
        waits.sort_by_key(|wait| (wait.thread, std::cmp::Reverse(wait.steps)));
        waits.dedup_by_key(|wait| wait.thread);
        waits.retain(|wait| {
            let known = self.steps.entry((thread, wait.thread)).or_default();
            let new = wait.steps > *known;
            *known = wait.steps.max(*known);
            new
        });
    }
}
