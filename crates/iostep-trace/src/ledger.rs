//! What was queued and did not go to the driver yet, byte by byte.
//!
//! The sums of the BPF programs cannot tell a bio that still waits in the elevator from one whose
//! request was never seen. Here each bio is kept until requests have taken all of it.

use std::collections::{BTreeMap, HashMap, VecDeque};

use iostep_model::manifest::{Counters, Totals};
use iostep_model::{Operation, SECTOR_BYTES};

/// A bio, or what requests have left of it. It ends before the byte `end` of its disk.
#[derive(Clone, Copy, Debug)]
struct Piece {
    end: u64,
    queued_ns: u64,
}

/// What waits at one place, one piece at least.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// The newest is last, and taken first.
    pieces: VecDeque<Piece>,
    /// When the last bio came, whether it waits or not.
    newest_ns: u64,
    /// How long those waited, together, that were taken and left older ones behind.
    passed_ns: u64,
}

impl Queue {
    fn push(&mut self, piece: Piece) {
        self.newest_ns = self.newest_ns.max(piece.queued_ns);
        self.pieces.push_back(piece);
    }

    /// Puts what a request left of a bio behind those that came later.
    fn put_back(&mut self, piece: Piece) {
        self.newest_ns = self.newest_ns.max(piece.queued_ns);
        self.pieces.push_front(piece);
    }

    /// Takes the newest piece that covers a byte, which waited until now; gives for how long.
    fn take(&mut self, at: u64, now_ns: u64) -> Option<(Piece, u64)> {
        let index = self.pieces.iter().rposition(|piece| piece.end > at)?;
        let piece = self.pieces.remove(index)?;
        let waited_ns = now_ns.saturating_sub(piece.queued_ns);
        if !self.pieces.is_empty() {
            self.passed_ns += waited_ns;
        }
        Some((piece, waited_ns))
    }

    /// True if what was queued before a moment waits for itself: nothing came since then, or what
    /// came was gone again for most of the time. Else bios overlap there, and it cannot be said
    /// which of them wait.
    fn is_stuck(&self, before_ns: u64, now_ns: u64) -> bool {
        let wait_ns = |piece: &Piece| now_ns.saturating_sub(piece.queued_ns);
        let later = self
            .pieces
            .iter()
            .filter(|piece| piece.queued_ns >= before_ns);
        let later_ns = self.passed_ns + later.map(wait_ns).sum::<u64>();
        let longest_ns = self.pieces.iter().map(wait_ns).max();
        self.newest_ns < before_ns || longest_ns.is_some_and(|longest_ns| later_ns * 2 < longest_ns)
    }
}

/// Bios, or parts of them, that wait though they were queued before a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Old {
    /// Those that stay whatever comes and goes at their place.
    pub stuck: Totals,
    /// Those that wait together with later ones: it cannot be said which of them will go first.
    pub unsure: Totals,
}

/// A device, by its index, an operation, and a byte of the disk.
type WaitingKey = (u8, Operation, u64);

/// A device, by its index, and the address of a bio: there is one at a time.
type FlushBio = (u8, u64);

/// Bios that wait for their requests.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// By where they begin.
    waiting: BTreeMap<WaitingKey, Queue>,
    /// The longest bio so far: how far before a byte a piece that covers it may begin.
    longest: u64,
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

/// Where a bio or a request lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    device: u8,
    operation: Operation,
    begin: u64,
    bytes: u64,
}

impl Extent {
    /// An extent of a device, an operation and a first sector; a flush has no place and no bytes.
    pub(crate) fn new((device, operation, sector): (u8, Operation, u64), bytes: u32) -> Extent {
        Extent {
            device,
            operation,
            begin: sector.wrapping_mul(SECTOR_BYTES),
            bytes: u64::from(bytes),
        }
    }

    fn end(self) -> u64 {
        self.begin.saturating_add(self.bytes)
    }

    fn place(self, byte: u64) -> WaitingKey {
        (self.device, self.operation, byte)
    }
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
        let end = extent.end();
        if end == extent.begin || !extent.operation.has_sector() {
            return;
        }
        self.longest = self.longest.max(extent.bytes);
        let place = extent.place(extent.begin);
        let queue = self.waiting.entry(place).or_default();
        queue.push(Piece { end, queued_ns });
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
        self.take(extent, 0);
    }

    /// A request went to the driver; `began_before` if it was made before the trace began.
    pub(crate) fn issue(&mut self, extent: Extent, mono_ns: u64, began_before: bool) {
        self.events.issued.add(extent.operation, extent.bytes);
        let unseen = self.take(extent, mono_ns);
        if began_before {
            self.before_bytes += unseen;
        } else if unseen > 0 {
            self.unqueued.ios += 1;
            self.unqueued.bytes += unseen;
        }
    }

    /// A request was given back: it waits again.
    pub(crate) fn requeue(&mut self, extent: Extent, mono_ns: u64) {
        self.events.requeued.add(extent.operation, extent.bytes);
        self.wait(extent, mono_ns);
    }

    /// A request came back, or a part of it; `whole` if the kernel counts it as an I/O now.
    pub(crate) fn complete(&mut self, extent: Extent, whole: bool) {
        let completed = &mut self.events.completed;
        match whole {
            true => completed.add(extent.operation, extent.bytes),
            false => completed.add_part(extent.operation, extent.bytes),
        }
    }

    /// Takes an extent off what waits at a moment; gives the bytes that did not. What has no sector
    /// never waits.
    fn take(&mut self, extent: Extent, now_ns: u64) -> u64 {
        if !extent.operation.has_sector() {
            return 0;
        }
        let (mut at, end) = (extent.begin, extent.end());
        let mut unseen = 0;
        while at < end {
            if let Some(begin) = self.begin_of_cover(extent.place(at)) {
                at = self.cut(extent.place(begin), at, end, now_ns);
                continue;
            }
            let rest = extent.place(at + 1)..extent.place(end);
            let next = self.waiting.range(rest).next();
            let next = next.map_or(end, |((.., begin), _)| *begin);
            unseen += next - at;
            at = next;
        }
        unseen
    }

    /// Where a piece begins that covers a byte.
    fn begin_of_cover(&self, (device, operation, at): WaitingKey) -> Option<u64> {
        let first = (at + 1).saturating_sub(self.longest);
        let near = (device, operation, first)..=(device, operation, at);
        let mut near = self.waiting.range(near).rev();
        near.find(|(_, queue)| queue.pieces.iter().any(|piece| piece.end > at))
            .map(|((.., begin), _)| *begin)
    }

    /// Takes `at..end` off the newest piece at a place that covers `at`; gives where what was
    /// taken ends. Of several, a bio too many is the one that stays, whatever is written later.
    fn cut(&mut self, place: WaitingKey, at: u64, end: u64, now_ns: u64) -> u64 {
        let Some(queue) = self.waiting.get_mut(&place) else {
            return end;
        };
        let Some((piece, waited_ns)) = queue.take(at, now_ns) else {
            return end;
        };
        self.longest_wait_ns = self.longest_wait_ns.max(waited_ns);
        if place.2 < at {
            queue.put_back(Piece { end: at, ..piece });
        }
        if queue.pieces.is_empty() {
            self.waiting.remove(&place);
        }
        if piece.end > end {
            let rest = self.waiting.entry((place.0, place.1, end)).or_default();
            rest.put_back(piece);
        }
        piece.end.min(end)
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
        let waiting = self.waiting.iter();
        let bytes = waiting.flat_map(|((.., begin), queue)| {
            queue.pieces.iter().map(move |piece| piece.end - begin)
        });
        bytes.sum()
    }

    /// What was queued before a moment and waits now.
    pub(crate) fn old(&self, before_ns: u64, now_ns: u64) -> Old {
        let mut old = Old::default();
        for ((.., begin), queue) in &self.waiting {
            let totals = match queue.is_stuck(before_ns, now_ns) {
                true => &mut old.stuck,
                false => &mut old.unsure,
            };
            let pieces = queue.pieces.iter();
            for piece in pieces.filter(|piece| piece.queued_ns < before_ns) {
                totals.ios += 1;
                totals.bytes += piece.end - begin;
            }
        }
        let of_trace = self.begun_ns..before_ns;
        let flushes = self.flushes.values().flatten();
        old.stuck.ios += flushes.filter(|at| of_trace.contains(at)).count() as u64;
        old
    }
}

#[cfg(test)]
mod tests {
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
        ledger.requeue(write(0, 8), 5);
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
            ledger.requeue(write(8, 8), queued_ns + 20);
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
