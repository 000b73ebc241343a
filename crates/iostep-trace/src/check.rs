//! The self-check: what the probe saw against what the device counted, at each point of a
//! request's way.
//!
//! Nothing is compared with a tolerance. What was under way at either end is known request by
//! request: a completion of a request that was never issued is a fault unless the request is older
//! than the trace, and a bio that is queued before the end is followed until its request goes out.

use iostep_model::manifest::{Check, Counters, Totals};

use crate::counters::Lead;
use crate::ledger::Events;
use crate::sums::Sums;

/// One end of a trace.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Snapshot {
    /// From the probe.
    pub(crate) sums: Sums,
    /// How far what is surely the device's is ahead of its counters; `None` where it does not count.
    pub(crate) lead: Option<Lead>,
    /// Nothing was under way.
    pub(crate) idle: bool,
    /// What was queued and not issued; `None` where the probe does not follow bios.
    pub(crate) waiting: Option<Waiting>,
    /// System calls that nobody looked at.
    pub(crate) unseen_calls: u64,
}

impl Snapshot {
    /// How far all that completed since `earlier` is ahead of what the device counted.
    pub(crate) fn change(&self, earlier: &Snapshot) -> Option<Lead> {
        let perhaps_others = self.sums.perhaps_others.since(earlier.sums.perhaps_others);
        let sure = self.lead?.since(earlier.lead?);
        Some(sure.and(perhaps_others))
    }

    /// True if what is wrong stays wrong, however long one waits.
    pub(crate) fn is_hopeless(&self) -> bool {
        let unqueued = self.waiting.is_some_and(|waiting| waiting.unqueued.ios > 0);
        let faults = self.sums.unissued.and(self.sums.uneven);
        unqueued || faults != Counters::default()
    }
}

/// Bios between the queue and the driver.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waiting {
    /// Those that were queued before the end of the trace, and still wait.
    pub(crate) stuck: Totals,
    /// Those that may be such, but later ones wait at the same place.
    pub(crate) unsure: Totals,
    /// All that wait.
    pub(crate) bytes: u64,
    /// Requests, and bytes in them that no bio was queued for.
    pub(crate) unqueued: Totals,
    /// Bytes of requests from before the trace that were not seen queued.
    pub(crate) before_bytes: u64,
    /// How long a bio waited at most.
    pub(crate) longest_ns: u64,
}

/// The last word of a probe: everything it summed and everything it told.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    /// When the programs were gone.
    pub(crate) sums: Sums,
    /// What the recorded events add up to; `None` where sums are made of them.
    pub(crate) events: Option<Events>,
    /// Programs that the kernel did not run because they ran already, and how often.
    pub(crate) skipped: Vec<(String, u64)>,
}

/// Compares the two ends.
pub(crate) fn compare(before: &Snapshot, after: &Snapshot, lost_events: u64) -> Check {
    let change = after.change(before);
    let completed = after.sums.completed.since(before.sums.completed);
    let ambiguous = after.sums.ambiguous().since(before.sums.ambiguous());
    let earlier = change.map(|lead| not_ours(lead.excess(), ambiguous));
    let earlier = earlier.unwrap_or_default();
    let mut check = Check {
        device: change.map(|lead| completed.and(lead.missing()).since(lead.excess())),
        queued: after.sums.queued.since(before.sums.queued),
        issued: after.sums.issued.since(before.sums.issued),
        completed: completed.since(earlier),
        in_flight_before_bytes: earlier.bytes(),
        merges: after.sums.merges - before.sums.merges,
        splits: after.sums.splits - before.sums.splits,
        late_completions: after.sums.late - before.sums.late,
        unseen_calls: after.unseen_calls - before.unseen_calls,
        lost_events,
        ..Check::default()
    };
    compare_with_device(&mut check);
    for (name, of) in GROUPS {
        compare_requests(
            &mut check,
            name,
            of(&after.sums.unissued),
            of(&after.sums.uneven),
        );
    }
    match &after.waiting {
        Some(waiting) => compare_bios(&mut check, &after.sums, waiting),
        None => compare_idle(&mut check, before.idle && after.idle),
    }
    check
}

/// Of what the device did not count during the trace, what it counted before, as completions that no
/// program saw then and that were told since; or what it counted for another partition. More than may
/// be such is a difference.
fn not_ours(uncounted: Counters, ambiguous: Counters) -> Counters {
    let group = |uncounted: Totals, ambiguous: Totals| {
        let may = uncounted.ios <= ambiguous.ios && uncounted.bytes <= ambiguous.bytes;
        if may { uncounted } else { Totals::default() }
    };
    Counters {
        read: group(uncounted.read, ambiguous.read),
        write: group(uncounted.write, ambiguous.write),
        discard: group(uncounted.discard, ambiguous.discard),
        flush: group(uncounted.flush, ambiguous.flush),
    }
}

type Group = fn(&Counters) -> Totals;

const GROUPS: [(&str, Group); 4] = [
    ("read", |c| c.read),
    ("written", |c| c.write),
    ("discarded", |c| c.discard),
    ("flushes", |c| c.flush),
];

fn compare_with_device(check: &mut Check) {
    let Some(device) = check.device else { return };
    for (name, of) in GROUPS {
        let (counted, seen) = (of(&device), of(&check.completed));
        if counted.bytes != seen.bytes {
            check.differences.push(format!(
                "{name}: the device counted {} bytes, {} were seen to complete",
                counted.bytes, seen.bytes
            ));
        } else if counted.ios != seen.ios {
            check.differences.push(format!(
                "{name}: the device counted {} requests, {} were seen to complete",
                counted.ios, seen.ios
            ));
        }
    }
}

/// What the programs found wrong with a request when it came back.
fn compare_requests(check: &mut Check, name: &str, unissued: Totals, uneven: Totals) {
    if unissued.ios > 0 {
        check.differences.push(format!(
            "{name}: {} requests of {} bytes completed that were not seen to be issued",
            unissued.ios, unissued.bytes
        ));
    }
    if uneven.ios > 0 {
        check.differences.push(format!(
            "{name}: {} requests completed with another size than they were issued with",
            uneven.ios
        ));
    }
}

fn compare_bios(check: &mut Check, sums: &Sums, waiting: &Waiting) {
    let Totals { ios, bytes } = waiting.unqueued;
    if ios > 0 {
        check.differences.push(format!(
            "{ios} requests were issued with {bytes} bytes that were not seen to be queued"
        ));
    }
    let Totals { ios, bytes } = waiting.stuck;
    if ios > 0 {
        check.differences.push(format!(
            "{ios} bios or parts of bios, {bytes} bytes, were queued and not issued"
        ));
    }
    let came = sums.issued.and(sums.before).bytes();
    let at_driver = came.saturating_sub(sums.completed.bytes());
    check.in_flight_before_bytes += waiting.before_bytes + sums.before.bytes();
    check.in_flight_after_bytes = waiting.bytes + at_driver;
}

/// Without a way to follow bios, the points can only be compared if nothing was between them.
fn compare_idle(check: &mut Check, idle: bool) {
    for (name, of) in GROUPS {
        let completed = of(&check.completed).bytes;
        for (point, sum) in [("queued", &check.queued), ("issued", &check.issued)] {
            let seen = of(sum).bytes;
            if seen == completed {
                continue;
            }
            if idle {
                check.differences.push(format!(
                    "{name}: {seen} bytes were {point}, {completed} completed"
                ));
            } else if point == "queued" {
                check.in_flight_before_bytes += completed.saturating_sub(seen);
                check.in_flight_after_bytes += seen.saturating_sub(completed);
            }
        }
    }
}

/// Compares what the programs summed with the events that were recorded. What found no room in
/// the buffer is a difference that has its own words.
pub(crate) fn compare_events(check: &mut Check, ending: &Ending) {
    let Some(events) = ending.events.filter(|_| check.lost_events == 0) else {
        return;
    };
    let issued = events.issued.since(events.requeued);
    let points = [
        ("queued", ending.sums.queued, events.queued),
        ("issued", ending.sums.issued, issued),
        ("completed", ending.sums.completed, events.completed),
    ];
    for (point, summed, recorded) in points {
        for (name, of) in GROUPS {
            let (summed, recorded) = (of(&summed), of(&recorded));
            if summed != recorded {
                check.differences.push(format!(
                    "{name}: {} events of {} bytes were {point}, {} of {} bytes were recorded",
                    summed.ios, summed.bytes, recorded.ios, recorded.bytes
                ));
            }
        }
    }
}

/// Says why events are missing, where events are missing and the kernel knows of it.
pub(crate) fn explain(check: &mut Check, ending: &Ending) {
    if check.passed() {
        return;
    }
    for (program, times) in &ending.skipped {
        check.notes.push(format!(
            "calls of {program} that the kernel skipped, since it was running on that processor already: {times}; trace again, with less load"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes(ios: u64) -> Counters {
        Counters {
            write: Totals {
                ios,
                bytes: ios * 4096,
            },
            ..Counters::default()
        }
    }

    fn at(ios: u64) -> Snapshot {
        Snapshot {
            sums: Sums {
                queued: writes(ios),
                issued: writes(ios),
                completed: writes(ios),
                ..Sums::default()
            },
            lead: Some(Lead::of(&writes(ios), &writes(100 + ios))),
            idle: true,
            waiting: Some(Waiting::default()),
            unseen_calls: 0,
        }
    }

    fn differences(after: &Snapshot) -> Vec<String> {
        compare(&at(0), after, 0).differences
    }

    #[test]
    fn equal_sums_pass() {
        let check = compare(&at(0), &at(2), 0);
        assert!(check.passed(), "{check:?}");
        assert_eq!(check.device, Some(writes(2)));
    }

    #[test]
    fn what_the_device_counted_and_we_did_not_is_a_difference() {
        let mut after = at(2);
        after.lead = Some(Lead::of(&writes(2), &writes(103)));
        assert!(differences(&after)[0].contains("12288"));
        let mut one_io = writes(102);
        one_io.write.ios += 1;
        after.lead = Some(Lead::of(&writes(2), &one_io));
        assert!(differences(&after)[0].contains("counted 3 requests"));
    }

    #[test]
    fn what_is_told_late_and_was_counted_before_the_trace_is_no_difference() {
        let mut after = at(4);
        after.lead = Some(Lead::of(&writes(4), &writes(102)));
        assert!(differences(&after)[0].contains("8192 bytes, 16384 were seen"));
        after.sums.late_of_before = writes(1);
        assert_eq!(differences(&after).len(), 1);
        after.sums.late_of_before = writes(3);
        let check = compare(&at(0), &after, 0);
        assert!(check.passed(), "{check:?}");
        assert_eq!(check.completed, writes(2));
        assert_eq!(check.in_flight_before_bytes, 8192);
    }

    /// Bios that only flush: `others` by tracefs, of which the device counts `ours`.
    fn beside_flushes(ios: u64, others: u64, ours: u64) -> Snapshot {
        let mut snapshot = at(ios);
        let empty = |ios| Counters {
            write: Totals { ios, bytes: 0 },
            ..Counters::default()
        };
        snapshot.sums.completed = writes(ios).and(empty(others));
        snapshot.sums.perhaps_others = empty(others);
        let counted = writes(100 + ios).and(empty(ours));
        snapshot.lead = Some(Lead::of(&snapshot.sums.surely_ours(), &counted));
        snapshot.idle = false;
        snapshot.waiting = None;
        snapshot
    }

    #[test]
    fn flushes_of_another_partition_are_no_difference_and_ours_are_counted() {
        let before = beside_flushes(0, 50, 0);
        let check = compare(&before, &beside_flushes(2, 5000, 3), 0);
        assert_eq!(check.differences, [""; 0]);
        assert_eq!(check.completed.write.ios, 5);
        assert_eq!(check.device, Some(check.completed));
        let more = compare(&before, &beside_flushes(2, 5000, 4951), 0);
        assert!(more.differences[0].contains("counted 4953 requests, 4952"));
        let mut missing = beside_flushes(2, 5000, 3);
        missing.lead = missing.lead.map(|lead| lead.and(writes(1)));
        assert!(compare(&before, &missing, 0).differences[0].contains("4096 bytes, 8192"));
    }

    #[test]
    fn lost_events_fail_the_check() {
        assert!(!compare(&at(0), &at(2), 1).passed());
    }

    #[test]
    fn what_is_under_way_at_the_end_is_no_difference() {
        let mut after = at(2);
        after.idle = false;
        after.sums.queued = writes(5);
        after.sums.issued = writes(3);
        after.waiting = Some(Waiting {
            bytes: 8192,
            ..Waiting::default()
        });
        let check = compare(&at(0), &after, 0);
        assert!(check.passed(), "{check:?}");
        assert_eq!(check.in_flight_after_bytes, 3 * 4096);
    }

    #[test]
    fn what_was_under_way_before_is_no_difference() {
        let mut after = at(2);
        after.sums.before = writes(1);
        after.sums.issued = writes(1);
        let check = compare(&at(0), &after, 0);
        assert!(check.passed(), "{check:?}");
        assert_eq!(check.in_flight_before_bytes, 4096);
        assert_eq!(check.in_flight_after_bytes, 0);
    }

    #[test]
    fn faults_of_single_requests_and_bios_are_differences() {
        let mut after = at(2);
        after.sums.unissued = writes(1);
        assert_eq!(differences(&after).len(), 1);
        let mut after = at(2);
        after.sums.uneven = writes(1);
        assert_eq!(differences(&after).len(), 1);
        let one = writes(1).write;
        for (stuck, unqueued) in [(one, Totals::default()), (Totals::default(), one)] {
            let mut after = at(2);
            after.waiting = Some(Waiting {
                stuck,
                unqueued,
                ..Waiting::default()
            });
            assert_eq!(differences(&after).len(), 1);
        }
    }

    #[test]
    fn without_following_bios_the_points_are_equal_where_nothing_was_under_way() {
        let mut after = at(2);
        after.waiting = None;
        after.sums.queued = writes(3);
        assert_eq!(differences(&after).len(), 1);
        after.idle = false;
        assert!(differences(&after).is_empty());
    }

    #[test]
    fn an_event_that_was_not_recorded_is_a_difference() {
        let events = Events {
            queued: writes(2),
            issued: writes(3),
            requeued: writes(1),
            completed: writes(2),
        };
        let ending = |completed: u64| Ending {
            sums: at(2).sums,
            events: Some(Events {
                completed: writes(completed),
                ..events
            }),
            skipped: vec![("on_complete".to_owned(), 1)],
        };
        let mut check = Check::default();
        compare_events(&mut check, &ending(2));
        explain(&mut check, &ending(2));
        assert!(check.passed() && check.notes.is_empty(), "{check:?}");
        compare_events(&mut check, &ending(1));
        assert!(check.differences[0].contains("completed"), "{check:?}");
        explain(&mut check, &ending(1));
        assert!(check.notes[0].contains("on_complete"), "{check:?}");
    }
}
