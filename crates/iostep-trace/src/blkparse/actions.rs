//! What a recording has no lines of, and what takes its place.
//!
//! blktrace can be told to record some actions only, and a device without requests (device mapper,
//! md, pmem, brd) has no `D` at all: its bios complete themselves. A request is then
//!
//! | recorded | a request is | it is issued, at the latest |
//! |---|---|---|
//! | Q, C; bios were merged, or there are lines of a scheduler | what completes | at the last Q of what it carries |
//! | Q, C; every completion is a bio, or a part of one | a bio, or the part that `X` cut off | at its Q |
//! | Q | a bio | at its Q |
//! | C | what completes | at its C |
//! | D, with Q or C or without | what is issued | at its D |
//!
//! What is not known by that is told in words, and never made up.

use std::collections::BTreeMap;

use iostep_model::event::{Event, IoRef, Queue, Transfer};
use iostep_model::{Flags, Operation, SECTOR_BYTES};

use crate::rwbs;

/// How many bios below a sector are looked at for one that reaches it.
const LOOK_BACK: usize = 64;

/// Which actions a recording has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Actions {
    pub(super) queue: u64,
    pub(super) issue: u64,
    pub(super) complete: u64,
    /// Lines that only a device with requests has: merges, plugs, a scheduler's.
    pub(super) of_requests: u64,
}

impl Actions {
    /// Notes the action that an event is of.
    pub(super) fn count(&mut self, event: &Event) {
        match event.io() {
            Some((_, IoRef::Queue(_))) => self.queue += 1,
            Some((_, IoRef::Issue(_))) => self.issue += 1,
            Some((_, IoRef::Complete(_))) => self.complete += 1,
            _ => {}
        }
    }

    /// True if nothing tells of a request.
    pub(super) fn is_empty(&self) -> bool {
        self.queue == 0 && self.issue == 0 && self.complete == 0
    }
}

/// Events in the order of time, each request with its issue; and what is not known, in words.
pub(super) fn fill(actions: Actions, mut events: Vec<Event>) -> (Vec<Event>, Vec<String>) {
    // blkparse merges what the CPUs recorded, and lets late lines through.
    events.sort_by_key(Event::mono_ns);
    let mut unknown = Vec::new();
    let mut say = |text: &str| unknown.push(text.to_owned());
    if actions.queue == 0 {
        say("no Q (queue): who asked for a request, and how long it waited, is not known");
    }
    if actions.issue == 0 {
        let has = (actions.queue > 0, actions.complete > 0);
        let merged = has == (true, true) && (actions.of_requests > 0 || merges(&events));
        events = match has {
            (true, _) if !merged => by_bios(events),
            (true, _) => by_completions(events),
            (false, _) => at_completions(events),
        };
        say(match has {
            (true, true) if merged => {
                "no D (issue): a request is what completes; when it went to the device is not \
                 known, and the device's latency counts from the last Q of its bios"
            }
            (true, true) => {
                "no D (issue), as on a device without requests (device mapper, pmem, brd): a \
                 request is a bio, and the device's latency counts from its Q"
            }
            (true, false) => {
                "no D (issue): a request is a bio; which were merged, and when they went to the \
                 device, is not known"
            }
            (false, _) => {
                "no D (issue): a request is what completes; the device's latency is not known, \
                 and is shown as 0"
            }
        });
    }
    if actions.complete == 0 {
        say(
            "no C (complete): whether and when requests ended is not known, so there is no latency \
             and no error",
        );
    }
    (events, unknown)
}

/// Where a request begins, among those of its operation.
type Key = (Operation, u64);

fn end_of(transfer: &Transfer) -> u64 {
    transfer.sector + u64::from(transfer.bytes) / SECTOR_BYTES
}

/// A bio, or a part of it, that has not come back.
#[derive(Clone, Debug)]
struct Part {
    /// Where in the events it was queued.
    at: usize,
    transfer: Transfer,
    /// Bytes that have not come back.
    left_bytes: u32,
    status: u8,
}

/// The parts under way, in the order of their places; several at one place in that of time.
#[derive(Default)]
struct Parts {
    all: Vec<Part>,
    open: BTreeMap<Key, Vec<usize>>,
}

impl Parts {
    fn open(&mut self, at: usize, transfer: Transfer) {
        let key = (transfer.operation, transfer.sector);
        self.open.entry(key).or_default().push(self.all.len());
        self.all.push(Part {
            at,
            left_bytes: transfer.bytes,
            transfer,
            status: 0,
        });
    }

    fn close(&mut self, key: Key, index: usize) {
        if let Some(all) = self.open.get_mut(&key) {
            all.retain(|open| *open != index);
            if all.is_empty() {
                self.open.remove(&key);
            }
        }
    }

    /// The oldest part of an operation that is `wanted`, among those that begin at or before a
    /// sector.
    fn find(
        &self,
        (operation, sector): Key,
        wanted: impl Fn(&Part) -> bool,
    ) -> Option<(Key, usize)> {
        let below = (operation, 0)..=(operation, sector);
        let places = self.open.range(below).rev().take(LOOK_BACK);
        let mut parts = places.flat_map(|(key, all)| all.iter().map(|index| (*key, *index)));
        parts.find(|(_, index)| wanted(&self.all[*index]))
    }

    /// The part that a completion is of: the very one, or one that has as much left.
    fn of(&self, done: &Transfer) -> Option<(Key, usize)> {
        if done.bytes == 0 && done.operation != Operation::Flush {
            return None;
        }
        let key = (done.operation, done.sector);
        let same =
            |part: &Part| part.transfer.sector == done.sector && part.transfer.bytes == done.bytes;
        let around =
            |part: &Part| end_of(&part.transfer) >= end_of(done) && part.left_bytes >= done.bytes;
        self.find(key, same).or_else(|| self.find(key, around))
    }

    /// True if a part lies inside what completes. One whose queueing the recording does not hold is
    /// no merge.
    fn is_inside(&self, done: &Transfer) -> bool {
        let last = (done.operation, end_of(done).saturating_sub(1));
        let inside =
            |part: &Part| part.transfer.sector >= done.sector && part.transfer.bytes < done.bytes;
        done.bytes > 0 && self.find(last, inside).is_some()
    }

    /// `X`: the bio around a sector goes on as two.
    fn cut(&mut self, sector: u64) {
        let around = |part: &Part| {
            part.transfer.sector < sector
                && sector < end_of(&part.transfer)
                && part.left_bytes == part.transfer.bytes
        };
        let mut operations = Operation::ALL.into_iter();
        let found = operations.find_map(|operation| self.find((operation, sector), around));
        let Some((_, index)) = found else {
            return;
        };
        let part = &mut self.all[index];
        let first_bytes = ((sector - part.transfer.sector) * SECTOR_BYTES) as u32;
        let mut second = part.transfer.clone();
        second.sector = sector;
        second.bytes -= first_bytes;
        part.transfer.bytes = first_bytes;
        part.left_bytes = first_bytes;
        let at = part.at;
        self.open(at, second);
    }
}

/// True if something completes that is no bio and no part of one: several, or a flush that none
/// asked for by itself.
fn merges(events: &[Event]) -> bool {
    let mut parts = Parts::default();
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::Queue(queue) => {
                if let Some(transfer) = request(queue) {
                    parts.open(at, transfer);
                }
            }
            Event::Complete(done) => {
                let done = &done.transfer;
                let Some((key, index)) = parts.of(done) else {
                    if done.operation == Operation::Flush || parts.is_inside(done) {
                        return true;
                    }
                    continue;
                };
                let part = &mut parts.all[index];
                part.left_bytes -= done.bytes;
                if part.left_bytes == 0 {
                    parts.close(key, index);
                }
            }
            _ => {}
        }
    }
    false
}

fn bio(queue: &Queue) -> Transfer {
    Transfer {
        mono_ns: queue.mono_ns,
        sector: queue.sector,
        bytes: queue.bytes,
        operation: queue.operation,
        flags: queue.flags,
    }
}

/// The request that a bio is on a device without requests; `None` if it asks for nothing.
fn request(queue: &Queue) -> Option<Transfer> {
    let mut transfer = bio(queue);
    (transfer.operation, transfer.flags) =
        rwbs::of_request(transfer.operation, transfer.flags, transfer.bytes);
    if transfer.operation == Operation::Flush {
        transfer.sector = 0;
    }
    (transfer.bytes > 0 || transfer.operation == Operation::Flush).then_some(transfer)
}

/// Each bio is a request from its queueing on, and ends when all of it came back.
fn by_bios(mut events: Vec<Event>) -> Vec<Event> {
    let mut parts = Parts::default();
    let mut dropped = vec![false; events.len()];
    for (at, event) in events.iter_mut().enumerate() {
        match event {
            Event::Split { sector, .. } => parts.cut(*sector),
            _ => dropped[at] = !of_bio(at, event, &mut parts),
        }
    }
    let issues = parts.all.into_iter().map(|part| (part.at, part.transfer));
    let kept = events.into_iter().zip(dropped);
    insert(
        kept.map(|(event, dropped)| (event.mono_ns(), (!dropped).then_some(event))),
        issues.collect(),
    )
}

/// Takes one event of a device without requests; false if nothing of it is to be kept.
fn of_bio(at: usize, event: &mut Event, parts: &mut Parts) -> bool {
    match event {
        Event::Queue(queue) => {
            if let Some(transfer) = request(queue) {
                if transfer.operation != Operation::Flush {
                    // No flush of its own is issued for it.
                    let own = Flags::PREFLUSH.with(Flags::FUA);
                    queue.flags = Flags(queue.flags.0 & !own.0);
                }
                parts.open(at, transfer);
            }
            true
        }
        Event::Complete(done) => {
            let Some((key, index)) = parts.of(&done.transfer) else {
                return true;
            };
            let part = &mut parts.all[index];
            part.left_bytes -= done.transfer.bytes;
            if part.status == 0 {
                part.status = done.status;
            }
            if part.left_bytes > 0 {
                return false;
            }
            done.transfer.sector = part.transfer.sector;
            done.transfer.bytes = part.transfer.bytes;
            done.status = part.status;
            done.in_flush_sequence = done.transfer.operation == Operation::Flush;
            parts.close(key, index);
            true
        }
        Event::Requeue(_) => false,
        _ => true,
    }
}

/// Whatever completes is a request of the bios that it covers.
fn by_completions(events: Vec<Event>) -> Vec<Event> {
    let mut parts = Parts::default();
    let mut issues = Vec::new();
    // Where the last flush may have been issued at the latest.
    let mut flush_at = None;
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::Queue(queue) => {
                if queue.flags.has(Flags::PREFLUSH) || queue.flags.has(Flags::FUA) {
                    flush_at = Some(at);
                }
                if queue.bytes > 0 {
                    parts.open(at, bio(queue));
                }
            }
            Event::Complete(done) if done.transfer.operation == Operation::Flush => {
                let begun = flush_at.unwrap_or(at.saturating_sub(1));
                issues.push((begun, done.transfer.clone()));
                flush_at = Some(at);
            }
            Event::Complete(done) if done.transfer.bytes > 0 => {
                if let Some(begun) = take(&mut parts, &done.transfer) {
                    issues.push((begun, done.transfer.clone()));
                }
                if done.in_flush_sequence {
                    flush_at = Some(at);
                }
            }
            _ => {}
        }
    }
    let kept = events.into_iter().map(|event| {
        let is_kept = !matches!(event, Event::Requeue(_));
        (event.mono_ns(), is_kept.then_some(event))
    });
    insert(kept, issues)
}

/// Takes the bytes of a completion off the bios; where the last of these was queued.
fn take(parts: &mut Parts, done: &Transfer) -> Option<usize> {
    let mut sector = done.sector;
    let mut last = None;
    while sector < end_of(done) {
        let key = (done.operation, sector);
        let around = |part: &Part| sector < end_of(&part.transfer);
        let Some((key, index)) = parts.find(key, around) else {
            // A bio from before the recording; the next one may be in it.
            let above = (done.operation, sector)..(done.operation, end_of(done));
            match parts.open.range(above).next() {
                Some((next, _)) => sector = next.1,
                None => break,
            }
            continue;
        };
        parts.close(key, index);
        let part = parts.all[index].clone();
        last = last.max(Some(part.at));
        let until = end_of(&part.transfer).min(end_of(done));
        let mut keep = |from: u64, to: u64| {
            if from < to {
                let mut rest = part.transfer.clone();
                rest.sector = from;
                rest.bytes = ((to - from) * SECTOR_BYTES) as u32;
                parts.open(part.at, rest);
            }
        };
        keep(part.transfer.sector, sector);
        keep(until, end_of(&part.transfer));
        sector = until;
    }
    last
}

/// Nothing but the ends is known.
fn at_completions(events: Vec<Event>) -> Vec<Event> {
    let mut filled = Vec::with_capacity(events.len() * 2);
    for event in events {
        if let Event::Complete(done) = &event
            && (done.transfer.bytes > 0 || done.transfer.operation == Operation::Flush)
        {
            filled.push(Event::Issue(done.transfer.clone()));
        }
        filled.push(event);
    }
    filled
}

/// Puts each issue behind the event that it follows, at that event's time.
fn insert(
    events: impl Iterator<Item = (u64, Option<Event>)>,
    mut issues: Vec<(usize, Transfer)>,
) -> Vec<Event> {
    issues.sort_by_key(|(at, _)| *at);
    let mut issues = issues.into_iter().peekable();
    let mut filled = Vec::new();
    for (at, (mono_ns, event)) in events.enumerate() {
        filled.extend(event);
        while let Some((_, mut transfer)) = issues.next_if(|(after, _)| *after <= at) {
            transfer.mono_ns = mono_ns;
            filled.push(Event::Issue(transfer));
        }
    }
    filled
}

#[cfg(test)]
mod tests;
