//! Extents that wait for something, each at its place on the disk.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use iostep_model::{Operation, SECTOR_BYTES};

use super::Old;

/// Where a bio or a request lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    device: u8,
    pub(super) operation: Operation,
    begin: u64,
    pub(super) bytes: u64,
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

    /// The same of another range of bytes.
    pub(super) fn part(self, range: &Range<u64>) -> Extent {
        Extent {
            begin: range.start,
            bytes: range.end - range.start,
            ..self
        }
    }
}

/// A device, by its index, an operation, and a byte of the disk.
type WaitingKey = (u8, Operation, u64);

/// A bio, or what requests have left of it. It ends before the byte `end` of its disk.
#[derive(Clone, Copy, Debug)]
struct Piece {
    end: u64,
    queued_ns: u64,
    /// Of a request from before the trace.
    is_older: bool,
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
        if piece.is_older {
            self.put_back(piece);
            return;
        }
        self.newest_ns = self.newest_ns.max(piece.queued_ns);
        self.pieces.push_back(piece);
    }

    /// Puts what a request left of a bio behind those that came later.
    fn put_back(&mut self, piece: Piece) {
        self.newest_ns = self.newest_ns.max(piece.queued_ns);
        self.pieces.push_front(piece);
    }

    /// Takes the newest piece that covers a byte, which waited until now, or for a request from before
    /// the trace the oldest; gives for how long.
    fn take(&mut self, at: u64, now_ns: u64, by: Taker) -> Option<(Piece, u64)> {
        let covers = |piece: &Piece| piece.end > at;
        let index = match by {
            Taker::Later => self.pieces.iter().rposition(covers)?,
            Taker::Older { .. } => self.pieces.iter().position(covers)?,
        };
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

/// What waits, by where it begins.
#[derive(Debug, Default)]
pub(super) struct Places {
    queues: BTreeMap<WaitingKey, Queue>,
    /// The longest piece so far: how far before a byte one that covers it may begin.
    longest: u64,
}

/// Who takes what waits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Taker {
    Later,
    /// A request from before the trace, which began at a moment: what it carries was queued before,
    /// or joined it later.
    Older {
        begun_ns: u64,
    },
}

/// What was taken off a piece.
struct Cut {
    end: u64,
    waited_ns: u64,
    is_doubtful: bool,
}

/// What was found of an extent.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Bytes of the disk that did not wait.
    pub(super) missing: Vec<Range<u64>>,
    /// Those that waited and are perhaps another request's.
    pub(super) doubtful: Vec<Range<u64>>,
    pub(super) longest_wait_ns: u64,
}

impl Taken {
    pub(super) fn missing_bytes(&self) -> u64 {
        self.missing
            .iter()
            .map(|range| range.end - range.start)
            .sum()
    }
}

impl Places {
    /// An extent waits from a moment on; `is_older` if it is a request's from before the trace. What
    /// has no bytes or no sector never waits.
    pub(super) fn push(&mut self, extent: Extent, queued_ns: u64, is_older: bool) {
        let end = extent.end();
        if end == extent.begin || !extent.operation.has_sector() {
            return;
        }
        self.longest = self.longest.max(extent.bytes);
        let place = extent.place(extent.begin);
        let queue = self.queues.entry(place).or_default();
        queue.push(Piece {
            end,
            queued_ns,
            is_older,
        });
    }

    /// Takes an extent off what waits at a moment.
    pub(super) fn take(&mut self, extent: Extent, now_ns: u64, by: Taker) -> Taken {
        let mut taken = Taken::default();
        if !extent.operation.has_sector() {
            return taken;
        }
        let (mut at, end) = (extent.begin, extent.end());
        while at < end {
            if let Some(begin) = self.begin_of_cover(extent.place(at)) {
                let cut = self.cut(extent.place(begin), at..end, now_ns, by);
                taken.longest_wait_ns = taken.longest_wait_ns.max(cut.waited_ns);
                if cut.is_doubtful {
                    taken.doubtful.push(at..cut.end);
                }
                at = cut.end;
                continue;
            }
            let rest = extent.place(at + 1)..extent.place(end);
            let next = self.queues.range(rest).next();
            let next = next.map_or(end, |((.., begin), _)| *begin);
            taken.missing.push(at..next);
            at = next;
        }
        taken
    }

    /// Where a piece begins that covers a byte.
    fn begin_of_cover(&self, (device, operation, at): WaitingKey) -> Option<u64> {
        let first = (at + 1).saturating_sub(self.longest);
        let near = (device, operation, first)..=(device, operation, at);
        let mut near = self.queues.range(near).rev();
        near.find(|(_, queue)| queue.pieces.iter().any(|piece| piece.end > at))
            .map(|((.., begin), _)| *begin)
    }

    /// Takes a range off a piece at a place that covers its beginning. Of several, a bio too many is
    /// the one that stays, whatever is written later.
    fn cut(&mut self, place: WaitingKey, of: Range<u64>, now_ns: u64, by: Taker) -> Cut {
        let mut cut = Cut {
            end: of.end,
            waited_ns: 0,
            is_doubtful: false,
        };
        let Some(queue) = self.queues.get_mut(&place) else {
            return cut;
        };
        let Some((piece, waited_ns)) = queue.take(of.start, now_ns, by) else {
            return cut;
        };
        if place.2 < of.start {
            queue.put_back(Piece {
                end: of.start,
                ..piece
            });
        }
        if queue.pieces.is_empty() {
            self.queues.remove(&place);
        }
        if piece.end > of.end {
            let rest = self.queues.entry((place.0, place.1, of.end)).or_default();
            rest.put_back(piece);
        }
        cut.end = piece.end.min(of.end);
        cut.waited_ns = waited_ns;
        cut.is_doubtful = match by {
            Taker::Later => false,
            Taker::Older { begun_ns } => !piece.is_older && piece.queued_ns >= begun_ns,
        };
        cut
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> u64 {
        let queues = self.queues.iter();
        let bytes = queues.flat_map(|((.., begin), queue)| {
            queue.pieces.iter().map(move |piece| piece.end - begin)
        });
        bytes.sum()
    }

    /// What waits since before a moment.
    pub(super) fn old(&self, before_ns: u64, now_ns: u64) -> Old {
        let mut old = Old::default();
        for ((.., begin), queue) in &self.queues {
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
        old
    }
}
