//! Whether a replay kept the order, found without the plan.

use iostep_model::replay::{Performed, State};
use iostep_model::syscall::Recording;
use rustc_hash::FxHashMap;

use super::order::end_ns;
use super::touch::{Resource, Touches, Use};

/// A call as the recording and the replay have it.
#[derive(Clone, Copy)]
struct Seen {
    recorded_end_ns: u64,
    replayed_end_ns: u64,
}

/// Counts calls that were issued before one had ended that they must follow: of each resource the
/// conflicting calls that had ended in the recording. Calls that were not issued count for none.
///
/// This knows nothing of waits: it takes the latest replayed end among all conflicting calls that
/// ended before in the recording.
pub fn order_violations(recording: &Recording, performed: &[Performed]) -> u64 {
    let mut touches = Touches::new(recording);
    let mut shared: FxHashMap<Resource, Ended> = FxHashMap::default();
    let mut exclusive: FxHashMap<Resource, Ended> = FxHashMap::default();
    let mut touched = Vec::new();
    let mut violations = 0;
    for (call, performed) in recording.calls.iter().zip(performed) {
        touches.of(call, &mut touched);
        if !matches!(performed.state, State::Done(_)) {
            continue;
        }
        let mut latest_ns = 0;
        for &(resource, how) in &touched {
            let past = exclusive.entry(resource).or_default();
            latest_ns = latest_ns.max(past.latest_before(call.start_ns));
            if how == Use::Exclusive {
                let past = shared.entry(resource).or_default();
                latest_ns = latest_ns.max(past.latest_before(call.start_ns));
            }
        }
        violations += u64::from(performed.issued_ns < latest_ns);
        let seen = Seen {
            recorded_end_ns: end_ns(call),
            replayed_end_ns: performed.ended_ns,
        };
        for &(resource, how) in &touched {
            let past = match how {
                Use::Exclusive => exclusive.entry(resource).or_default(),
                Use::Shared => shared.entry(resource).or_default(),
            };
            past.push(seen);
        }
    }
    violations
}

/// Calls on a resource: those that are over in the recording as one latest end, the others apart.
#[derive(Default)]
struct Ended {
    latest_ns: u64,
    running: Vec<Seen>,
}

impl Ended {
    fn push(&mut self, seen: Seen) {
        self.running.push(seen);
    }

    /// The latest replayed end of those that had ended at `now_ns` in the recording. Asked with
    /// times that never decrease.
    fn latest_before(&mut self, now_ns: u64) -> u64 {
        let latest_ns = &mut self.latest_ns;
        self.running.retain(|seen| {
            let over = seen.recorded_end_ns <= now_ns;
            if over {
                *latest_ns = seen.replayed_end_ns.max(*latest_ns);
            }
            !over
        });
        *latest_ns
    }
}
