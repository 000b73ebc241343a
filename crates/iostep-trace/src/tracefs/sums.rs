//! Sums at the points of a request's way, to compare with the device's own counters.

use iostep_model::manifest::{Counters, Totals};
use iostep_model::operation::Counter;

use crate::sums::Sums;
use crate::tracefs::seen::Range;

/// A point of a request's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    Queued,
    Issued,
    Requeued,
    Completed,
}

/// The sums so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    sums: Sums,
}

impl Tally {
    /// Adds a range; it counts as an I/O only if `whole`.
    pub fn add(&mut self, point: Point, range: &Range, whole: bool) {
        let counters = match point {
            Point::Queued => &mut self.sums.queued,
            Point::Issued | Point::Requeued => &mut self.sums.issued,
            Point::Completed => &mut self.sums.completed,
        };
        let Some(totals) = group(counters, range.operation.counter()) else {
            return;
        };
        let (ios, bytes) = (u64::from(whole), u64::from(range.bytes));
        if point == Point::Requeued {
            // A request that was issued before the trace began may come back in it.
            totals.ios = totals.ios.wrapping_sub(ios);
            totals.bytes = totals.bytes.wrapping_sub(bytes);
        } else {
            totals.ios = totals.ios.wrapping_add(ios);
            totals.bytes = totals.bytes.wrapping_add(bytes);
        }
    }

    /// A completion was added that may be of another partition.
    pub fn doubt(&mut self, range: &Range) {
        if let Some(totals) = group(&mut self.sums.perhaps_others, range.operation.counter()) {
            totals.ios += 1;
        }
    }

    /// A bio or a request was merged.
    pub fn merge(&mut self) {
        self.sums.merges += 1;
    }

    /// A bio was cut in two.
    pub fn split(&mut self) {
        self.sums.splits += 1;
    }

    pub fn sums(&self) -> Sums {
        self.sums
    }
}

fn group(counters: &mut Counters, counter: Counter) -> Option<&mut Totals> {
    match counter {
        Counter::Read => Some(&mut counters.read),
        Counter::Write => Some(&mut counters.write),
        Counter::Discard => Some(&mut counters.discard),
        Counter::Flush => Some(&mut counters.flush),
        Counter::None => None,
    }
}
