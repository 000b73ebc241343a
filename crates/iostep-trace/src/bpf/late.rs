//! Which requests came back unseen: what the device counted beyond what was seen to complete is
//! looked for among the requests that the programs think are still at the driver.

use iostep_model::event::Completion;
use iostep_model::manifest::{Counters, Totals};

/// A request at the driver.
pub(crate) struct Pending {
    /// Where in the map.
    pub slot: Vec<u8>,
    pub bytes: Vec<u8>,
    /// The device's index.
    pub device: u8,
    /// When it went there.
    pub issue_ns: u64,
    /// Its end, as if it came now.
    pub completion: Completion,
}

/// What the device counted and nobody saw.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Missing {
    pub counters: Counters,
    /// Of what was told late already, what the device may have counted before the trace began: it
    /// may make up for as much that is missing now.
    pub ambiguous: Counters,
}

/// Those that came back unseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unseen {
    /// So many of the oldest.
    pub requests: usize,
    /// And so many ends without bytes: the second of a write in a flush sequence, or that of a bio
    /// that only flushes.
    pub empty: u64,
}

/// Finds what is missing among the requests at the driver, the oldest first, and among so many bios that
/// only flush: all of them, or so many of those that were issued before `certain_ns`.
///
/// A scheduler with tags of its own may give a tag away again much later, so that a request that came
/// back unseen is there for long, beside those that a slow device still has. After a while those that
/// came back are the oldest, and have to add up to what is missing, or to more by no more than what may
/// have come back before the trace.
pub(crate) fn unseen(
    pending: &[Pending],
    flushes: u64,
    (began_ns, certain_ns): (u64, Option<u64>),
    missing: Missing,
) -> Option<Unseen> {
    let certain = certain_ns.map(|certain_ns| {
        let certain = pending.partition_point(|request| request.issue_ns < certain_ns);
        0..=certain
    });
    let mut within = None;
    for requests in std::iter::once(pending.len()).chain(certain.into_iter().flatten()) {
        let these = &pending[..requests];
        let [mut completed, of_before] = sums(these, began_ns);
        let again = these.iter().filter(|it| it.completion.in_flush_sequence);
        let wanted = missing.counters.write.ios;
        let empty = wanted.saturating_sub(completed.write.ios);
        if empty > again.count() as u64 + flushes {
            continue;
        }
        completed.write.ios += empty;
        let found = Unseen { requests, empty };
        if completed == missing.counters {
            return Some(found);
        }
        let spare = missing.ambiguous.and(of_before);
        if within.is_none() && is_within(completed, missing.counters, spare) {
            within = Some(found);
        }
    }
    within
}

/// The sums of requests, and of those that were issued before the trace began: they may have come back
/// before, too.
pub(crate) fn sums(pending: &[Pending], began_ns: u64) -> [Counters; 2] {
    let mut sums = [Counters::default(); 2];
    for request in pending {
        add(&mut sums[0], &request.completion);
        if request.issue_ns < began_ns {
            add(&mut sums[1], &request.completion);
        }
    }
    sums
}

fn add(counters: &mut Counters, completion: &Completion) {
    let transfer = &completion.transfer;
    let bytes = u64::from(transfer.bytes);
    match completion.in_flush_sequence {
        true => counters.add_part(transfer.operation, bytes),
        false => counters.add(transfer.operation, bytes),
    }
}

/// True if `found` is `missing` and at most so much more.
fn is_within(found: Counters, missing: Counters, more: Counters) -> bool {
    let groups: [fn(&Counters) -> Totals; 4] =
        [|c| c.read, |c| c.write, |c| c.discard, |c| c.flush];
    groups.iter().all(|of| {
        let (found, missing, more) = (of(&found), of(&missing), of(&more));
        let within = |found: u64, missing: u64, more: u64| {
            (missing..=missing.saturating_add(more)).contains(&found)
        };
        within(found.ios, missing.ios, more.ios) && within(found.bytes, missing.bytes, more.bytes)
    })
}

#[cfg(test)]
mod tests {
    use iostep_model::event::Transfer;
    use iostep_model::{Flags, Operation};

    use super::*;

    fn pending(issue_ns: u64, blocks: u32, in_flush_sequence: bool) -> Pending {
        Pending {
            slot: Vec::new(),
            bytes: Vec::new(),
            device: 0,
            issue_ns,
            completion: Completion {
                transfer: Transfer {
                    mono_ns: 100,
                    sector: 8 * issue_ns,
                    bytes: blocks * 4096,
                    operation: Operation::Write,
                    flags: Flags::default(),
                },
                status: 0,
                in_flush_sequence,
            },
        }
    }

    fn writes(ios: u64, blocks: u64) -> Counters {
        Counters {
            write: Totals {
                ios,
                bytes: blocks * 4096,
            },
            ..Counters::default()
        }
    }

    fn missing(counters: Counters, ambiguous: Counters) -> Missing {
        Missing {
            counters,
            ambiguous,
        }
    }

    /// As after a while, when all that is older than 10 ns is certain to have come back.
    fn later(
        pending: &[Pending],
        flushes: u64,
        began_ns: u64,
        missing: Missing,
    ) -> Option<(usize, u64)> {
        let found = unseen(pending, flushes, (began_ns, Some(10)), missing);
        found.map(|found| (found.requests, found.empty))
    }

    #[test]
    fn beside_requests_of_a_slow_device_the_oldest_are_those_that_came_back() {
        let all = [1, 2, 3, 4].map(|at| pending(at, at as u32, false));
        let none = writes(0, 0);
        assert_eq!(later(&all, 0, 0, missing(writes(2, 3), none)), Some((2, 0)));
        let at_once = |counters| unseen(&all, 0, (0, None), missing(counters, none));
        assert_eq!(at_once(writes(2, 3)), None);
        assert_eq!(at_once(writes(4, 10)).map(|it| it.requests), Some(4));
        let not_so_old = [1, 22].map(|at| pending(at, 1, false));
        let found = later(&not_so_old, 0, 0, missing(writes(1, 1), none));
        assert_eq!(found, Some((1, 0)));
        let too_young = [21, 22].map(|at| pending(at, 1, false));
        let found = later(&too_young, 0, 0, missing(writes(1, 1), none));
        assert_eq!(found, None);
        // Not the oldest, or no sum of them.
        assert_eq!(later(&all, 0, 0, missing(writes(2, 5), none)), None);
        assert_eq!(later(&all, 0, 0, missing(writes(9, 99), none)), None);
    }

    #[test]
    fn an_end_without_bytes_is_a_flushs_or_the_second_of_a_write() {
        let none = writes(0, 0);
        let all = [pending(1, 1, true), pending(2, 1, false)];
        assert_eq!(later(&all, 0, 0, missing(writes(1, 1), none)), Some((1, 1)));
        assert_eq!(later(&[], 2, 0, missing(writes(2, 0), none)), Some((0, 2)));
        assert_eq!(later(&[], 1, 0, missing(writes(2, 0), none)), None);
    }

    /// Three came back before the trace and were told late in it, which hides as many of those that
    /// are missing now.
    #[test]
    fn what_came_before_the_trace_may_hide_what_is_missing() {
        let all = [5, 6, 7, 8, 9].map(|at| pending(at, 1, false));
        let hidden = missing(writes(2, 2), writes(3, 3));
        let at_once = unseen(&all, 0, (4, None), hidden);
        assert_eq!(at_once.map(|it| it.requests), Some(5));
        let too_few = missing(writes(2, 2), writes(2, 2));
        assert_eq!(unseen(&all, 0, (4, None), too_few), None);
        // A sum that agrees is the better one.
        assert_eq!(later(&all, 0, 4, hidden), Some((2, 0)));
    }

    #[test]
    fn requests_from_before_the_trace_may_have_come_back_before_it() {
        let mixed = [pending(1, 2, false), pending(8, 3, false)];
        let found = unseen(&mixed, 0, (4, None), missing(writes(1, 3), writes(0, 0)));
        assert_eq!(found.map(|it| it.requests), Some(2));
        assert_eq!(sums(&mixed, 4), [writes(2, 5), writes(1, 2)]);
    }
}
