//! The clocks that a workload, a journal and a trace use.

use std::time::Duration;

use iostep_model::clock::wall_ns;
use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::{Deserialize, Serialize};

fn ns(time: Timespec) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

pub use iostep_model::clock::mono_ns;

/// The clock that filesystems stamp commits with (`ktime_get_coarse_real_ts64`): it moves with the
/// timer's tick, and stands still while that is late. ns since the epoch.
pub fn coarse_wall_ns() -> u64 {
    ns(clock_gettime(ClockId::RealtimeCoarse))
}

/// Sleeps until the coarse clock has passed the present moment, so that what came before and what
/// comes after have different times on disk.
pub fn let_the_coarse_clock_pass() {
    let now = wall_ns();
    while coarse_wall_ns() <= now {
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Two readings of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// `CLOCK_MONOTONIC`, ns.
    pub mono_ns: u64,
    /// `CLOCK_REALTIME`, ns since the epoch.
    pub wall_ns: u64,
}

impl Moment {
    /// Reads both clocks, as close together as a few attempts get them.
    pub fn now() -> Moment {
        let attempt = |_| {
            let before = mono_ns();
            let wall_ns = wall_ns();
            let between = mono_ns() - before;
            let mono_ns = before + between / 2;
            (between, Moment { mono_ns, wall_ns })
        };
        let attempts = (0..100).map(attempt);
        let (_, closest) = attempts
            .min_by_key(|(between, _)| *between)
            .expect("a hundred attempts are some");
        closest
    }

    /// The wall clock's reading at a monotonic time.
    pub fn wall_at(&self, mono_ns: u64) -> u64 {
        self.wall_ns
            .wrapping_add(mono_ns.wrapping_sub(self.mono_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_monotonic_time_is_a_later_wall_time() {
        let moment = Moment {
            mono_ns: 50,
            wall_ns: 1_000,
        };
        assert_eq!(moment.wall_at(50), 1_000);
        assert_eq!(moment.wall_at(70), 1_020);
        assert_eq!(moment.wall_at(20), 970);
    }
}
