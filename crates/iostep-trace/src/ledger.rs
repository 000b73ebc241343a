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

/// A device, by its index, an operation, and a byte of the disk.
type Place = (u8, Operation, u64);

/// A device, by its index, and the address of a bio: there is one at a time.
type FlushBio = (u8, u64);

/// Bios that wait for their requests.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// By where they begin.
    waiting: BTreeMap<Place, VecDeque<Piece>>,
    /// The longest bio so far: how far before a byte a piece that covers it may begin.
    longest: u64,
    longest_wait_ns: u64,
    /// When every program was there: of an older bio, the request may have gone unseen.
    since_ns: u64,
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

    fn place(self, byte: u64) -> Place {
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

    /// A bio was queued.
    pub(crate) fn queue(&mut self, extent: Extent, queued_ns: u64) {
        self.events.queued.add(extent.operation, extent.bytes);
        if queued_ns >= self.since_ns {
            self.wait(extent, queued_ns);
        }
    }

    fn wait(&mut self, extent: Extent, queued_ns: u64) {
        let end = extent.end();
        if end == extent.begin {
            return;
        }
        self.longest = self.longest.max(extent.bytes);
        let place = extent.place(extent.begin);
        let pieces = self.waiting.entry(place).or_default();
        pieces.push_back(Piece { end, queued_ns });
    }

    /// A bio that only flushes was queued: its request has no extent, and merges with no other.
    pub(crate) fn queue_flush(&mut self, bio: FlushBio, queued_ns: u64) {
        if queued_ns >= self.since_ns {
            self.flushes.entry(bio).or_default().push(queued_ns);
        }
    }

    /// A bio that only flushes is over; it was seen queued if that `is_expected`.
    pub(crate) fn end_flush(&mut self, bio: FlushBio, is_expected: bool) {
        let queued = self.flushes.get_mut(&bio);
        let is_known = queued.is_some_and(|queued| queued.pop().is_some());
        if !is_known && is_expected {
            self.unqueued.ios += 1;
        }
        if self.flushes.get(&bio).is_some_and(Vec::is_empty) {
            self.flushes.remove(&bio);
        }
    }

    /// Bios that only flush, of which no end was seen, though each was queued before a moment or
    /// its address is another's since: the oldest first.
    fn unended_flushes(&self, before_ns: u64) -> Vec<(u64, FlushBio)> {
        let mut over = Vec::new();
        for (bio, queued) in &self.flushes {
            let newest = queued.last().copied();
            let queued = queued.iter().copied();
            let is_over = |at: &u64| *at < before_ns || Some(*at) != newest;
            over.extend(queued.filter(is_over).map(|at| (at, *bio)));
        }
        over.sort_unstable();
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

    /// Takes an extent off what waits at a moment; gives the bytes that did not.
    fn take(&mut self, extent: Extent, now_ns: u64) -> u64 {
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
    fn begin_of_cover(&self, (device, operation, at): Place) -> Option<u64> {
        let first = (at + 1).saturating_sub(self.longest);
        let near = (device, operation, first)..=(device, operation, at);
        let mut near = self.waiting.range(near).rev();
        near.find(|(_, pieces)| pieces.iter().any(|piece| piece.end > at))
            .map(|((.., begin), _)| *begin)
    }

    /// Takes `at..end` off the newest piece at a place that covers `at`; gives where what was
    /// taken ends. Of several, a bio too many is the one that stays, whatever is written later.
    fn cut(&mut self, place: Place, at: u64, end: u64, now_ns: u64) -> u64 {
        let Some(pieces) = self.waiting.get_mut(&place) else {
            return end;
        };
        let index = pieces.iter().rposition(|piece| piece.end > at);
        let Some(piece) = index.and_then(|index| pieces.remove(index)) else {
            return end;
        };
        let waited_ns = now_ns.saturating_sub(piece.queued_ns);
        self.longest_wait_ns = self.longest_wait_ns.max(waited_ns);
        if place.2 < at {
            pieces.push_front(Piece { end: at, ..piece });
        }
        if pieces.is_empty() {
            self.waiting.remove(&place);
        }
        if piece.end > end {
            let rest = self.waiting.entry((place.0, place.1, end)).or_default();
            rest.push_front(piece);
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

    /// Bytes of requests from before the trace that were not seen queued.
    pub(crate) fn before_bytes(&self) -> u64 {
        self.before_bytes
    }

    /// How long a bio waited at most until its request went to the driver.
    pub(crate) fn longest_wait_ns(&self) -> u64 {
        self.longest_wait_ns
    }

    /// Bios, or parts of them, that were queued before a moment and wait. Where a later bio for
    /// the same place waits too, it cannot be said which of them will go first.
    pub(crate) fn waiting_since(&self, before_ns: u64) -> Totals {
        let mut waiting = Totals::default();
        for ((.., begin), pieces) in &self.waiting {
            if pieces.iter().any(|piece| piece.queued_ns >= before_ns) {
                continue;
            }
            for piece in pieces {
                waiting.ios += 1;
                waiting.bytes += piece.end - begin;
            }
        }
        let flushes = self.flushes.values().flatten();
        waiting.ios += flushes.filter(|queued_ns| **queued_ns < before_ns).count() as u64;
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(sector: u64, sectors: u32) -> Extent {
        Extent::new((0, Operation::Write, sector), sectors * 512)
    }

    fn waiting(ledger: &Ledger) -> u64 {
        ledger.waiting_since(u64::MAX).bytes / SECTOR_BYTES
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
        assert_eq!(ledger.waiting_since(3), Totals::default());
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
    fn a_bio_too_many_waits_until_it_ends_without_a_request() {
        let mut ledger = Ledger::default();
        ledger.queue(write(0, 8), 1);
        ledger.queue(write(0, 8), 1);
        ledger.issue(write(0, 8), 9, false);
        assert_eq!(ledger.waiting_since(2).ios, 1);
        ledger.end(write(0, 8));
        assert_eq!(ledger.waiting_since(2).ios, 0);
    }

    #[test]
    fn a_bio_too_many_is_not_hidden_by_the_next_one_for_its_place() {
        let mut ledger = Ledger::default();
        for queued_ns in [1, 1, 5] {
            ledger.queue(write(0, 8), queued_ns);
        }
        assert_eq!(ledger.waiting_since(2).ios, 0);
        ledger.issue(write(0, 8), 9, false);
        assert_eq!(ledger.longest_wait_ns(), 4);
        ledger.issue(write(0, 8), 9, false);
        assert_eq!(ledger.waiting_since(2).ios, 1);
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
        assert_eq!(ledger.waiting_since(2).bytes, 1);
        ledger.issue(Extent::new((0, Operation::Write, 64), 1), 9, false);
        assert_eq!(ledger.unqueued().bytes, 1);
    }

    #[test]
    fn each_bio_that_only_flushes_comes_back_once() {
        let mut ledger = Ledger::since(5);
        let stuck = |ledger: &Ledger| ledger.waiting_since(10).ios;
        ledger.queue_flush((0, 0x1000), 4);
        ledger.end_flush((0, 0x1000), false);
        assert_eq!((stuck(&ledger), ledger.unqueued().ios), (0, 0));
        // The same bio again and again, the end of one of them unseen.
        for queued_ns in [6, 7, 11] {
            ledger.queue_flush((0, 0x1000), queued_ns);
        }
        ledger.end_flush((0, 0x1000), true);
        assert_eq!((stuck(&ledger), ledger.unqueued().ios), (2, 0));
        assert_eq!((ledger.flushes_over(6), ledger.flushes_over(8)), (1, 2));
        ledger.forget_flushes(1, 6);
        assert_eq!((stuck(&ledger), ledger.flushes_over(6)), (1, 0));
        ledger.end_flush((0, 0x1000), true);
        ledger.end_flush((0, 0x1000), true);
        assert_eq!((stuck(&ledger), ledger.unqueued().ios), (0, 1));
    }

    #[test]
    fn reads_and_writes_of_one_place_are_told_apart() {
        let mut ledger = Ledger::default();
        ledger.queue(write(0, 8), 1);
        ledger.issue(Extent::new((0, Operation::Read, 0), 4096), 9, false);
        assert_eq!((ledger.unqueued().ios, waiting(&ledger)), (1, 8));
    }
}
