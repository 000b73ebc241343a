//! Which call waits for which.
//!
//! Calls of one thread keep their order by themselves. Between threads a call waits for another
//! if both touch the same resource in ways that do not commute and the other had *ended* in the
//! recording before this one *began*: calls that overlapped were not ordered then either, and to
//! order them could stop a replay for ever (one waits for a lock, the other gives it back). The
//! resources and rules are those of ROOT ("ROOT: Replaying Multithreaded Traces with
//! Resource-Oriented Ordering", SOSP 2013), in `touch`.
//!
//! A wait names a thread and how many of its calls must be done. Waits that follow from others
//! are left out: those on what the same thread waited for before.

mod check;
mod order;
mod touch;

use std::ops::Range;

use iostep_model::replay::Threads;
use iostep_model::syscall::{Recording, ThreadId};

pub use check::order_violations;

/// Who makes which calls, and what they wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The replay's threads.
    pub threads: Vec<ThreadPlan>,
    /// What [`Step::waits`] points into.
    pub waits: Vec<Wait>,
}

/// One thread of the replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadPlan {
    /// The thread of the recording; the first, if all are merged.
    pub thread: ThreadId,
    /// Its calls, in order.
    pub steps: Vec<Step>,
}

/// One call of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its place in the recording's calls.
    pub call: u32,
    /// Its waits in [`Plan::waits`].
    pub waits: Range<u32>,
}

/// A wait until another thread has done this many of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The thread's place in [`Plan::threads`].
    pub thread: u32,
    /// How many of its steps must be done.
    pub steps: u32,
}

impl Plan {
    /// Makes the plan of a recording, which has fewer than 2^32 calls.
    ///
    /// Takes time in proportion to the calls, and memory for two waits each at most times the
    /// threads that share what they touch.
    pub fn new(recording: &Recording, threads: Threads) -> Plan {
        match threads {
            Threads::Original => order::plan(recording),
            Threads::Merge => merged(recording),
        }
    }

    pub fn waits(&self, step: &Step) -> &[Wait] {
        &self.waits[step.waits.start as usize..step.waits.end as usize]
    }
}

/// One thread for all calls: their order is the recording's, and nothing is waited for.
fn merged(recording: &Recording) -> Plan {
    let count = u32::try_from(recording.calls.len()).unwrap_or(u32::MAX);
    let steps = (0..count).map(|call| Step { call, waits: 0..0 }).collect();
    Plan {
        threads: vec![ThreadPlan {
            thread: ThreadId(1),
            steps,
        }],
        waits: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
