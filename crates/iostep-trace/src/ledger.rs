//! What was queued and did not go to the driver yet, byte by byte.
//!
//! The sums of the BPF programs cannot tell a bio that still waits in the elevator from one whose
//! request was never seen. Here each bio is kept until requests have taken all of it.

mod places;

use std::collections::HashMap;

use iostep_model::manifest::{Counters, Totals};
use places::{Places, Taken, Taker};

pub(crate) use places::Extent;

/// Bios, or parts of them, that wait though they were queued before a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Old {
    /// Those that stay whatever comes and goes at their place.
    pub stuck: Totals,
    /// Those that wait together with later ones: it cannot be said which of them will go first.
    pub unsure: Totals,
}

/// A device, by its index, and the address of a bio: there is one at a time.
type FlushBio = (u8, u64);

/// Bios that wait for their requests.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    waiting: Places,
    /// What a request from before the trace took of a bio that came later to the same place: if it is
    /// another request's, that one will find nothing there.
    doubtful: Places,
    longest_wait_ns: u64,
    /// When every program was there: of an older bio, the request may have gone unseen.
    since_ns: u64,
    /// When the trace began, and the device's counters were read.
    begun_ns: u64,
    /// When each of the bios that only flush was queued, the oldest first.
    flushes: HashMap<FlushBio, Vec<u64>>,
    events: Events,
    unqueued: Totals,
    before_bytes: u64,
}

/// What the recorded events add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Events {
    pub queued: Counters,
    pub issued: Counters,
    pub requeued: Counters,
    pub completed: Counters,
}

impl Ledger {
    /// An empty ledger, of bios that are queued from this moment on.
    pub(crate) fn since(since_ns: u64) -> Ledger {
        Ledger {
            since_ns,
            ..Ledger::default()
        }
    }

    /// The trace begins. A bio that only flushes and that was queued before may have come back before,
    /// unseen, too; if it comes back unseen from now on, the device's counters tell.
    pub(crate) fn begin(&mut self, begun_ns: u64) {
        self.begun_ns = begun_ns;
    }

    /// A bio was queued.
    pub(crate) fn queue(&mut self, extent: Extent, queued_ns: u64) {
        self.events.queued.add(extent.operation, extent.bytes);
        if queued_ns >= self.since_ns {
            self.wait(extent, queued_ns);
        }
    }

    fn wait(&mut self, extent: Extent, queued_ns: u64) {
        self.waiting.push(extent, queued_ns, false);
    }

    fn take(&mut self, extent: Extent, now_ns: u64, by: Taker) -> Taken {
        let taken = self.waiting.take(extent, now_ns, by);
        self.longest_wait_ns = self.longest_wait_ns.max(taken.longest_wait_ns);
        taken
    }

    /// A bio that only flushes was queued: its request has no extent, and merges with no other.
    pub(crate) fn queue_flush(&mut self, bio: FlushBio, queued_ns: u64) {
        if queued_ns >= self.since_ns {
            self.flushes.entry(bio).or_default().push(queued_ns);
        }
    }

    /// A bio that only flushes is over by now; it was seen queued if that `is_expected`.
    pub(crate) fn end_flush(&mut self, bio: FlushBio, is_expected: bool, now_ns: u64) {
        let queued = self.flushes.get_mut(&bio).and_then(Vec::pop);
        if let Some(queued_ns) = queued {
            let waited_ns = now_ns.saturating_sub(queued_ns);
            self.longest_wait_ns = self.longest_wait_ns.max(waited_ns);
        } else if is_expected {
            self.unqueued.ios += 1;
        }
        if self.flushes.get(&bio).is_some_and(Vec::is_empty) {
            self.flushes.remove(&bio);
        }
    }

    /// Bios that only flush, of which no end was seen, though each was queued before a moment or
    /// its address is another's since: those of the trace first, then the oldest first.
    fn unended_flushes(&self, before_ns: u64) -> Vec<(u64, FlushBio)> {
        let mut over = Vec::new();
        for (bio, queued) in &self.flushes {
            let newest = queued.last().copied();
            let queued = queued.iter().copied();
            let is_over = |at: &u64| *at < before_ns || Some(*at) != newest;
            over.extend(queued.filter(is_over).map(|at| (at, *bio)));
        }
        over.sort_unstable_by_key(|(at, bio)| (*at < self.begun_ns, *at, *bio));
        over
    }

    /// How many bios that only flush may have come back unseen: those that were queued before a
    /// moment, and those whose address is another's since.
    pub(crate) fn flushes_over(&self, before_ns: u64) -> usize {
        self.unended_flushes(before_ns).len()
    }

    /// So many of [`Ledger::flushes_over`] did come back.
    pub(crate) fn forget_flushes(&mut self, count: usize, before_ns: u64) {
        for (at, bio) in self.unended_flushes(before_ns).into_iter().take(count) {
            if let Some(queued) = self.flushes.get_mut(&bio) {
                queued.retain(|queued_ns| *queued_ns != at);
            }
        }
        self.flushes.retain(|_, queued| !queued.is_empty());
    }

    /// A bio that was queued before the programs were there gets a request, or joins one, now: it waits
    /// as any other. `flush_bio` is one that only flushes.
    pub(crate) fn arrive_late(&mut self, extent: Extent, flush_bio: Option<FlushBio>, now_ns: u64) {
        if now_ns < self.since_ns {
            return;
        }
        self.before_bytes += extent.bytes;
        self.wait(extent, now_ns);
        if let Some(bio) = flush_bio {
            self.queue_flush(bio, now_ns);
        }
    }

    /// A bio ended without a request.
    pub(crate) fn end(&mut self, extent: Extent) {
        self.take(extent, 0, Taker::Later);
    }

    /// A request went to the driver; `began_before` if it was made before the trace began.
    pub(crate) fn issue(&mut self, extent: Extent, mono_ns: u64, began_before: bool) {
        self.events.issued.add(extent.operation, extent.bytes);
        if began_before {
            let begun_ns = self.begun_ns;
            let taken = self.take(extent, mono_ns, Taker::Older { begun_ns });
            self.before_bytes += taken.missing_bytes();
            for range in &taken.doubtful {
                self.doubtful.push(extent.part(range), mono_ns, false);
            }
            return;
        }
        let taken = self.take(extent, mono_ns, Taker::Later);
        let mut unseen = 0;
        for range in &taken.missing {
            let settled = self
                .doubtful
                .take(extent.part(range), mono_ns, Taker::Later);
            unseen += settled.missing_bytes();
        }
        self.before_bytes += taken.missing_bytes() - unseen;
        if unseen > 0 {
            self.unqueued.ios += 1;
            self.unqueued.bytes += unseen;
        }
    }

    /// A request was given back: it waits again.
    pub(crate) fn requeue(&mut self, extent: Extent, mono_ns: u64, began_before: bool) {
        self.events.requeued.add(extent.operation, extent.bytes);
        self.waiting.push(extent, mono_ns, began_before);
    }

    /// A request came back, or a part of it; `whole` if the kernel counts it as an I/O now.
    pub(crate) fn complete(&mut self, extent: Extent, whole: bool) {
        let completed = &mut self.events.completed;
        match whole {
            true => completed.add(extent.operation, extent.bytes),
            false => completed.add_part(extent.operation, extent.bytes),
        }
    }

    /// What the events until now add up to.
    pub(crate) fn events(&self) -> Events {
        self.events
    }

    /// Requests, and how much of them no bio was queued for.
    pub(crate) fn unqueued(&self) -> Totals {
        self.unqueued
    }

    /// Bytes that were queued before the trace, and not seen then.
    pub(crate) fn before_bytes(&self) -> u64 {
        self.before_bytes
    }

    /// How long a bio waited at most until its request went to the driver, or until it was over if it
    /// only flushes: such a bio waits for the flush under way first.
    pub(crate) fn longest_wait_ns(&self) -> u64 {
        self.longest_wait_ns
    }

    /// Bytes of bios that wait.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.waiting.bytes()
    }

    /// What was queued before a moment and waits now.
    pub(crate) fn old(&self, before_ns: u64, now_ns: u64) -> Old {
        let mut old = self.waiting.old(before_ns, now_ns);
        let of_trace = self.begun_ns..before_ns;
        let flushes = self.flushes.values().flatten();
        old.stuck.ios += flushes.filter(|at| of_trace.contains(at)).count() as u64;
        old
    }
}

#[cfg(test)]
mod tests {
    use iostep_model::{Operation, SECTOR_BYTES};

    use super::*;

    fn write(sector: u64, sectors: u32) -> Extent {
        Extent::new((0, Operation::Write, sector), sectors * 512)
    }

    fn waiting(ledger: &Ledger) -> u64 {
        ledger.waiting_bytes() / SECTOR_BYTES
    }

    #[test]
    fn a_request_takes_the_bios_that_were_merged_into_it() {
        let mut ledger = Ledger::default();
        ledger.queue(write(8, 8), 1);
        ledger.queue(write(0, 8), 2);
        ledger.queue(write(16, 8), 3);
        ledger.issue(write(0, 16), 9, false);
        assert_eq!(ledger.unqueued(), Totals::default());
        assert_eq!(waiting(&ledger), 8);
        assert_eq!(ledger.old(3, 20), Old::default());
    }

    #[test]
    fn the_parts_of_a_bio_may_go_in_any_order() {
        let mut ledger = Ledger::default();
        ledger.queue(write(0, 24), 1);
        for sector in [8, 16, 0] {
            ledger.issue(write(sector, 8), 9, false);
        }
        assert_eq!(ledger.unqueued(), Totals::default());
        assert_eq!(waiting(&ledger), 0);
    }

    #[test]
    fn two_bios_for_one_place_are_two() {
        let mut ledger = Ledger::default();
        ledger.queue(write(0, 16), 1);
        ledger.queue(write(0, 8), 2);
        ledger.issue(write(0, 8), 9, false);
        ledger.issue(write(0, 16), 9, false);
        assert_eq!(ledger.unqueued(), Totals::default());
        assert_eq!(waiting(&ledger), 0);
        ledger.issue(write(0, 8), 9, false);
        assert_eq!(ledger.unqueued().bytes, 4096);
    }

    #[test]
    fn a_request_that_was_given_back_waits_again() {
        let mut ledger = Ledger::default();
        ledger.queue(write(0, 8), 1);
        ledger.issue(write(0, 8), 9, false);
        ledger.requeue(write(0, 8), 5, false);
        assert_eq!(waiting(&ledger), 8);
        ledger.issue(write(0, 8), 9, false);
        assert_eq!(ledger.unqueued(), Totals::default());
    }

    #[test]
    fn a_bio_that_was_not_queued_is_found_unless_it_is_older_than_the_trace() {
        let mut ledger = Ledger::default();
        ledger.queue(write(8, 8), 1);
        ledger.issue(write(0, 24), 9, true);
        assert_eq!((ledger.before_bytes(), waiting(&ledger)), (8192, 0));
        ledger.issue(write(0, 8), 9, false);
        let unqueued = ledger.unqueued();
        assert_eq!((unqueued.ios, unqueued.bytes), (1, 4096));
    }

    /// The request of one place waits since before the trace; a bio comes to the same place, and each
    /// may go first.
    #[test]
    fn a_request_from_before_the_trace_takes_no_later_bio_from_its_own_request() {
        for old_goes_first in [true, false] {
            let mut ledger = Ledger::default();
            ledger.begin(10);
            ledger.queue(write(0, 8), 20);
            ledger.issue(write(0, 8), 30, old_goes_first);
            ledger.issue(write(0, 8), 40, !old_goes_first);
            assert_eq!(ledger.unqueued(), Totals::default(), "{old_goes_first}");
            assert_eq!((ledger.before_bytes(), waiting(&ledger)), (4096, 0));
            // One more is one too many.
            ledger.issue(write(0, 8), 50, false);
            assert_eq!(ledger.unqueued().bytes, 4096);
        }
    }

    /// It is given back, and what it then takes is its own.
    #[test]
    fn a_request_from_before_the_trace_that_is_given_back_hides_no_missing_bio() {
        let mut ledger = Ledger::default();
        ledger.begin(10);
        ledger.issue(write(0, 8), 20, true);
        ledger.requeue(write(0, 8), 21, true);
        ledger.queue(write(0, 8), 22);
        ledger.issue(write(0, 8), 23, true);
        ledger.issue(write(0, 8), 24, false);
        assert_eq!((ledger.unqueued().bytes, waiting(&ledger)), (0, 0));
        ledger.issue(write(0, 8), 25, false);
        assert_eq!(ledger.unqueued().bytes, 4096);
    }

    #[test]
    fn a_bio_from_before_the_programs_that_gets_its_request_later_is_no_difference() {
        let mut ledger = Ledger::since(5);
        ledger.begin(10);
        ledger.arrive_late(write(0, 8), None, 20);
        ledger.arrive_late(write(8, 0), Some((0, 0x1000)), 20);
        ledger.queue(write(8, 8), 21);
        ledger.issue(write(0, 16), 22, false);
        ledger.end_flush((0, 0x1000), true, 23);
        assert_eq!(ledger.unqueued(), Totals::default());
        assert_eq!((ledger.before_bytes(), waiting(&ledger)), (4096, 0));
        assert_eq!(ledger.events().queued.write.ios, 1);
        ledger.issue(write(16, 8), 24, false);
        assert_eq!(ledger.unqueued().ios, 1);
    }

    #[test]
    fn a_bio_from_before_the_programs_that_never_goes_to_the_driver_is_stuck() {
        let mut ledger = Ledger::since(5);
        ledger.arrive_late(write(0, 8), None, 20);
        assert_eq!(ledger.old(21, 30).stuck.ios, 1);
    }

    #[test]
    fn a_bio_too_many_waits_until_it_ends_without_a_request() {
        let mut ledger = Ledger::default();
        ledger.queue(write(0, 8), 1);
        ledger.queue(write(0, 8), 1);
        ledger.issue(write(0, 8), 9, false);
        assert_eq!(ledger.old(2, 20).stuck.ios, 1);
        ledger.end(write(0, 8));
        assert_eq!(ledger.old(2, 20).stuck.ios, 0);
    }

    /// Rewrites a place every 100 ns from 1,000 to 10,000, each time for so long; gives what waits
    /// of a bio from 1 while the last one does, and afterwards.
    fn rewritten(bios: usize, waits_ns: u64) -> [Old; 2] {
        let mut ledger = Ledger::default();
        for _ in 0..bios {
            ledger.queue(write(0, 8), 1);
        }
        ledger.issue(write(0, 8), 9, false);
        let mut is_last = Old::default();
        for queued_ns in (1_000..=10_000).step_by(100) {
            ledger.queue(write(0, 8), queued_ns);
            is_last = ledger.old(500, queued_ns + 1);
            ledger.issue(write(0, 8), queued_ns + waits_ns, false);
        }
        assert_eq!(ledger.unqueued(), Totals::default());
        [is_last, ledger.old(500, 10_000 + waits_ns)]
    }

    #[test]
    fn a_bio_too_many_is_not_hidden_by_the_next_ones_for_its_place() {
        assert_eq!(rewritten(1, 10), [Old::default(); 2]);
        for old in rewritten(2, 10) {
            assert_eq!((old.stuck.ios, old.stuck.bytes), (1, 4096));
            assert_eq!(old.unsure, Totals::default());
        }
    }

    #[test]
    fn of_bios_that_overlap_all_the_time_none_is_called_stuck() {
        for old in rewritten(2, 80) {
            assert_eq!((old.stuck.ios, old.unsure.ios), (0, 1));
        }
    }

    #[test]
    fn the_part_that_is_too_many_is_not_hidden_by_the_next_bio() {
        let mut ledger = Ledger::default();
        ledger.queue(Extent::new((0, Operation::Write, 0), 4097), 1);
        ledger.issue(write(0, 8), 9, false);
        for queued_ns in (1_000..=10_000).step_by(1_000) {
            ledger.queue(write(8, 8), queued_ns);
            ledger.issue(write(8, 8), queued_ns + 10, false);
            ledger.requeue(write(8, 8), queued_ns + 20, false);
            ledger.issue(write(8, 8), queued_ns + 30, false);
        }
        ledger.queue(write(8, 8), 11_000);
        assert_eq!(ledger.old(500, 11_001).stuck.bytes, 1);
    }

    #[test]
    fn a_bio_from_before_the_last_program_does_not_wait() {
        let mut ledger = Ledger::since(5);
        ledger.queue(write(0, 8), 4);
        assert_eq!(waiting(&ledger), 0);
        assert_eq!(ledger.events().queued.write.ios, 1);
    }

    #[test]
    fn a_single_byte_counts() {
        let mut ledger = Ledger::default();
        ledger.queue(Extent::new((0, Operation::Write, 0), 4097), 1);
        ledger.issue(write(0, 8), 9, false);
        assert_eq!(ledger.old(2, 20).stuck.bytes, 1);
        ledger.issue(Extent::new((0, Operation::Write, 64), 1), 9, false);
        assert_eq!(ledger.unqueued().bytes, 1);
    }

    #[test]
    fn each_bio_that_only_flushes_comes_back_once() {
        let mut ledger = Ledger::since(5);
        let stuck = |ledger: &Ledger| ledger.old(10, 20).stuck.ios;
        ledger.queue_flush((0, 0x1000), 4);
        ledger.end_flush((0, 0x1000), false, 9);
        assert_eq!((stuck(&ledger), ledger.unqueued().ios), (0, 0));
        // The same bio again and again, the end of one of them unseen.
        for queued_ns in [6, 7, 11] {
            ledger.queue_flush((0, 0x1000), queued_ns);
        }
        ledger.end_flush((0, 0x1000), true, 9);
        assert_eq!((stuck(&ledger), ledger.unqueued().ios), (2, 0));
        assert_eq!((ledger.flushes_over(6), ledger.flushes_over(8)), (1, 2));
        ledger.forget_flushes(1, 6);
        assert_eq!((stuck(&ledger), ledger.flushes_over(6)), (1, 0));
        ledger.end_flush((0, 0x1000), true, 9);
        ledger.end_flush((0, 0x1000), true, 9);
        assert_eq!((stuck(&ledger), ledger.unqueued().ios), (0, 1));
    }

    #[test]
    fn a_bio_that_only_flushes_from_before_the_trace_is_not_stuck() {
        let mut ledger = Ledger::since(5);
        for queued_ns in [6, 12] {
            ledger.queue_flush((0, 0x1000), queued_ns);
        }
        assert_eq!(ledger.old(20, 30).stuck.ios, 2);
        ledger.begin(10);
        assert_eq!(ledger.old(20, 30).stuck.ios, 1);
        // One came back unseen after the trace began: the younger, as far as one can know.
        ledger.forget_flushes(1, 20);
        assert_eq!(ledger.old(20, 30).stuck.ios, 0);
        ledger.end_flush((0, 0x1000), true, 31);
        assert_eq!(ledger.unqueued().ios, 0);
    }

    #[test]
    fn the_longest_wait_is_a_flushs_too() {
        let mut ledger = Ledger::default();
        ledger.queue(write(0, 8), 1);
        ledger.issue(write(0, 8), 3, false);
        ledger.queue_flush((0, 0x1000), 10);
        assert_eq!(ledger.longest_wait_ns(), 2);
        ledger.end_flush((0, 0x1000), true, 50);
        assert_eq!(ledger.longest_wait_ns(), 40);
    }

    #[test]
    fn reads_and_writes_of_one_place_are_told_apart() {
        let mut ledger = Ledger::default();
        ledger.queue(write(0, 8), 1);
        ledger.issue(Extent::new((0, Operation::Read, 0), 4096), 9, false);
        assert_eq!((ledger.unqueued().ios, waiting(&ledger)), (1, 8));
    }
}
