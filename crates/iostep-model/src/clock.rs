//! The clock of every measurement.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`.
#[inline]
pub fn mono_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Nanoseconds of `CLOCK_REALTIME` since the epoch.
pub fn wall_ns() -> u64 {
    nanoseconds(ClockId::Realtime)
}

#[inline]
fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    // The monotonic clock starts at zero with the machine, and the epoch is over.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
