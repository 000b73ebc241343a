//! How exactly calls were issued.

use iostep_model::replay::{Performed, Replay, State};
use iostep_model::syscall::Recording;
use serde::{Deserialize, Serialize};

use super::Quantiles;

/// Times between when a call could be issued and when it was.
///
/// A call can be issued when it is due, when all calls that it must follow have ended, and when
/// the thread's own call before has ended. The first is the clock's, the others are the device's:
/// a slower device makes calls late without any fault of the replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Calls that nothing held up: issued this long after they were due. The replay's own error.
    pub waited: Option<Quantiles>,
    /// Calls that were late already when their thread came to them: issued this long after the
    /// call before had ended. What the replay adds.
    pub added: Option<Quantiles>,
    /// How long after it was due a call was issued, of all, the device's part included.
    pub behind: Option<Quantiles>,
    /// Calls that had to wait for calls of other threads.
    pub held_by_order: u64,
}

impl Lateness {
    pub fn of(recording: &Recording, replay: &Replay) -> Lateness {
        let mut before_ns = vec![0; recording.threads.len() + 1];
        let merged = replay.settings.threads == iostep_model::replay::Threads::Merge;
        let (mut waited, mut added, mut behind) = (Vec::new(), Vec::new(), Vec::new());
        let mut held_by_order = 0;
        for (call, performed) in recording.calls.iter().zip(&replay.calls) {
            let thread = if merged { 0 } else { call.thread.0 as usize };
            let Some(ended_ns) = before_ns.get_mut(thread) else {
                continue;
            };
            let before = std::mem::replace(ended_ns, performed.ended_ns.max(*ended_ns));
            if !matches!(performed.state, State::Done(_)) {
                continue;
            }
            let &Performed {
                due_ns,
                ready_ns,
                issued_ns,
                ..
            } = performed;
            behind.push(issued_ns.saturating_sub(due_ns));
            if ready_ns > due_ns.max(before) {
                held_by_order += 1;
            } else if before > due_ns {
                added.push(issued_ns.saturating_sub(before));
            } else {
                waited.push(issued_ns.saturating_sub(due_ns));
            }
        }
        Lateness {
            waited: Quantiles::of(&mut waited),
            added: Quantiles::of(&mut added),
            behind: Quantiles::of(&mut behind),
            held_by_order,
        }
    }
}
