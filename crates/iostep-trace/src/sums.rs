//! What a probe adds up, to compare with the device's own counters.

use iostep_model::manifest::Counters;

/// Sums at the points of a request's way, from the programs themselves: they count even what
/// found no room in the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Bios queued.
    pub queued: Counters,
    /// Requests issued, less requeued.
    pub issued: Counters,
    /// Requests completed.
    pub completed: Counters,
    /// Of the completed, those that were issued before the trace began.
    pub before: Counters,
    /// Of the completed, those that were told late and issued before the trace began: they may have
    /// come back before it, too.
    pub late_of_before: Counters,
    /// Of the completed, those that may be of another partition of the disk.
    pub perhaps_others: Counters,
    /// Of the completed, those that nobody saw go to the driver: a fault.
    pub unissued: Counters,
    /// Of the completed, those that came back with another size than they went out: a fault.
    pub uneven: Counters,
    /// Bios merged into others' requests.
    pub merges: u64,
    /// Bios cut in two.
    pub splits: u64,
    /// Completions that were told late: after the fact, because no program saw them.
    pub late: u64,
}

impl Sums {
    /// What completed without those that may be of another partition: beside one that is busy it
    /// stands still against the device's counters, as the sum of all does not.
    pub(crate) fn surely_ours(&self) -> Counters {
        self.completed.since(self.perhaps_others)
    }

    /// Of the completed, those that the device may not have counted during the trace.
    pub(crate) fn ambiguous(&self) -> Counters {
        self.late_of_before.and(self.perhaps_others)
    }
}
