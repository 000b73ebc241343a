//! Bios to requests: merged, split and requeued ones included.
//!
//! A request covers consecutive sectors: walking them finds the bios, or the parts of bios that
//! were split, that it carries.

use std::collections::VecDeque;

use iostep_model::event::{Completion, Queue, Remap, Transfer};
use iostep_model::manifest::{Backend, Manifest};
use iostep_model::table::{Phase, Request, Segment};
use iostep_model::{Flags, Operation, SECTOR_BYTES};
use rustc_hash::FxHashMap;

use super::Phases;
use super::causes::Causes;
use super::flushes::{Flushes, Issuer};
use super::layers::Layers;
use super::names::Names;
use super::waiting::{self, Waiting};

/// A device, by its index into the manifest's `devices`; an operation; a sector.
type RequestKey = (u8, Operation, u64);

/// What is known of a device besides its requests.
#[derive(Debug)]
struct Disk {
    /// Others of the disk may ask for flushes that are seen here.
    sees_flushes_of_others: bool,
    /// The first device that is a part of the same disk: itself, but for partitions.
    first_of_disk: usize,
    flushes: Flushes,
}

/// Who asks for a passthrough request, and whether that is iostep itself.
#[derive(Clone, Copy, Debug)]
struct Asked {
    issuer: Issuer,
    by_tracer: bool,
}

/// Follows bios to their requests.
#[derive(Debug)]
pub(crate) struct Requests<'a> {
    names: &'a Names,
    causes: &'a Causes,
    phases: &'a Phases,
    tracer_tgid: u32,
    layers: Layers,
    waiting: FxHashMap<(u8, Operation), waiting::Queue>,
    /// Of each device.
    disks: Vec<Disk>,
    /// Requests at the driver, by operation and the sector that completes next.
    under_way: FxHashMap<RequestKey, VecDeque<u32>>,
    requeued: FxHashMap<RequestKey, VecDeque<u32>>,
    /// Who made the passthrough requests that are issued next.
    passthrough: FxHashMap<(u8, Operation), VecDeque<Asked>>,
    /// FUA requests whose data is written and whose last flush is not done.
    finishing: FxHashMap<RequestKey, u32>,
    requests: Vec<Request>,
    segments: Vec<Segment>,
}

impl<'a> Requests<'a> {
    /// An empty set for a device.
    pub(super) fn new(
        manifest: &Manifest,
        names: &'a Names,
        causes: &'a Causes,
        phases: &'a Phases,
    ) -> Requests<'a> {
        Requests {
            names,
            causes,
            phases,
            tracer_tgid: manifest.tracer_tgid,
            layers: Layers::new(manifest),
            waiting: FxHashMap::default(),
            disks: disks(manifest),
            under_way: FxHashMap::default(),
            requeued: FxHashMap::default(),
            passthrough: FxHashMap::default(),
            finishing: FxHashMap::default(),
            requests: Vec::new(),
            segments: Vec::new(),
        }
    }

    /// True if a bio that is queued on a device says whose it is.
    pub(super) fn is_ours(&self, device: u8) -> bool {
        self.layers.is_ours(device)
    }

    /// A bio was queued, with its pieces in the order of sectors.
    pub(super) fn queue(&mut self, device: u8, queue: &Queue, pieces: Vec<Segment>) {
        let mut issuer = Issuer {
            queue_ns: queue.mono_ns,
            submitter: self.names.process(queue.pid, queue.mono_ns),
            sync: queue.sync.and_then(|key| self.causes.sync(key)),
        };
        if is_placeless(queue.operation, queue.sector) {
            let asked = Asked {
                issuer,
                by_tracer: queue.tgid == self.tracer_tgid,
            };
            let waiting = self.passthrough.entry((device, queue.operation));
            return waiting.or_default().push_back(asked);
        }
        let mut sector = queue.sector;
        let mut first_cause = None;
        for (index, mut piece) in pieces.into_iter().enumerate() {
            piece.cause = self.causes.of_piece(self.names, queue, &mut piece);
            first_cause = first_cause.or(piece.cause);
            let bytes = piece.bytes;
            let waiting = Waiting {
                issuer,
                durability: queue.flags.only(Flags::PREFLUSH.with(Flags::FUA)),
                by_tracer: self.is_tracers(queue, &piece),
                piece,
                starts_bio: index == 0,
            };
            self.arrive(device, queue.operation, sector, waiting);
            sector += u64::from(bytes) / SECTOR_BYTES;
        }
        issuer.sync = issuer.sync.or(first_cause);
        if queue.bytes == 0 && !self.layers.is_ours(device) {
            issuer = self.layers.take_untold_flush(device).unwrap_or(issuer);
        }
        self.flush(device, queue.sector, queue.bytes, queue.flags, issuer);
    }

    /// A piece arrives at a disk, or at a device that is made of others.
    fn arrive(&mut self, device: u8, operation: Operation, sector: u64, piece: Waiting) {
        if !self.layers.is_disk(device) {
            return self.layers.push(device, operation, sector, piece);
        }
        let waiting = self.waiting.entry((device, operation));
        waiting.or_default().push(sector, piece);
    }

    /// A bio that may ask for flushes arrives.
    fn flush(&mut self, device: u8, sector: u64, bytes: u32, flags: Flags, issuer: Issuer) {
        if !self.layers.is_disk(device) {
            if flags.has(Flags::PREFLUSH) {
                self.layers.push_flush(device, issuer);
            }
        } else if let Some(disk) = self.disks.get_mut(usize::from(device)) {
            disk.flushes.queue(sector, bytes, flags, issuer);
        }
    }

    /// A device sent a bio on to the one below.
    pub(super) fn remap(&mut self, remap: &Remap) {
        let durability = remap.flags.only(Flags::PREFLUSH.with(Flags::FUA));
        let mut sector = remap.to_sector;
        let mut issuer = None;
        for (index, mut piece) in self.layers.take(remap).into_iter().enumerate() {
            piece.durability = durability;
            piece.starts_bio = index == 0;
            issuer = issuer.or(Some(piece.flush_issuer()));
            let sectors = u64::from(piece.piece.bytes) / SECTOR_BYTES;
            self.arrive(remap.to, remap.operation, sector, piece);
            sector += sectors;
        }
        let empty = remap.from.filter(|_| remap.bytes == 0);
        let issuer = issuer.or_else(|| self.layers.take_flush(empty?, remap.to));
        let issuer = issuer.unwrap_or_default();
        self.flush(remap.to, remap.to_sector, remap.bytes, remap.flags, issuer);
    }

    /// The tracer's own bytes: what it dirtied, or, where nobody dirtied anything, what it
    /// submitted. What its syncing pushes out is others'.
    fn is_tracers(&self, queue: &Queue, piece: &Segment) -> bool {
        match piece.dirtier {
            Some(row) => self.names.process_at(row).tgid == self.tracer_tgid,
            None => {
                queue.tgid == self.tracer_tgid
                    && self.phases.at(queue.mono_ns) != Phase::Settle
                    && queue.sync.is_none()
            }
        }
    }

    /// A request went to the driver.
    pub(super) fn issue(&mut self, device: u8, transfer: &Transfer) {
        let place = place_of(device, transfer);
        let asked = self.passthrough.get_mut(&(device, transfer.operation));
        let asked = asked.and_then(VecDeque::pop_front);
        if let Some(index) = take_oldest(&mut self.requeued, place) {
            self.requests[index as usize].issue_ns = transfer.mono_ns;
            self.under_way.entry(place).or_default().push_back(index);
            return;
        }
        let index = self.requests.len() as u32;
        let first_segment = self.segments.len() as u32;
        let mut request = Request {
            queue_ns: transfer.mono_ns,
            issue_ns: transfer.mono_ns,
            complete_ns: None,
            sector: place.2,
            bytes: transfer.bytes,
            operation: transfer.operation,
            flags: transfer.flags,
            status: 0,
            bios: 0,
            submitter: None,
            sync: None,
            first_segment,
            segments: 0,
            phase: self.phases.at(transfer.mono_ns),
            by_tracer: false,
            device,
        };
        if transfer.operation == Operation::Flush {
            match self.asker(device) {
                Some((device, issuer)) => {
                    request.device = device;
                    ask(&mut request, issuer);
                }
                // Another partition of the disk asked for it.
                None if self.sees_flushes_of_others(device) => return,
                None => {}
            }
        } else if is_placeless(transfer.operation, transfer.sector) {
            if let Some(asked) = asked {
                ask(&mut request, asked.issuer);
                request.by_tracer = asked.by_tracer;
            }
        } else {
            self.gather(index, device, transfer, &mut request);
        }
        request.phase = self.phases.at(request.queue_ns);
        request.segments = (self.segments.len() as u32 - first_segment) as u16;
        self.requests.push(request);
        self.under_way.entry(place).or_default().push_back(index);
    }

    /// Who asked for a flush that goes to a device, and at which device. It is the whole disk's, so it
    /// serves all parts of it that wait for one, in the name of the first.
    fn asker(&mut self, device: u8) -> Option<(u8, Issuer)> {
        let disk = self.disks.get(usize::from(device))?.first_of_disk;
        let parts = (0u8..).zip(&mut self.disks);
        let parts = parts.filter(|(_, part)| part.first_of_disk == disk);
        let askers = parts.filter_map(|(index, part)| Some((index, part.flushes.issue()?)));
        askers.min_by_key(|(_, issuer)| issuer.queue_ns)
    }

    fn sees_flushes_of_others(&self, device: u8) -> bool {
        let disk = self.disks.get(usize::from(device));
        disk.is_some_and(|disk| disk.sees_flushes_of_others)
    }

    /// Moves the pieces that a request covers into the table.
    fn gather(&mut self, index: u32, device: u8, transfer: &Transfer, request: &mut Request) {
        let mut sector = transfer.sector;
        let queue = self
            .waiting
            .entry((device, transfer.operation))
            .or_default();
        for waiting in queue.take_all(sector, transfer.bytes, device, 1) {
            if request.bios == 0 && waiting.starts_bio || request.submitter.is_none() {
                ask(request, waiting.issuer);
            }
            request.bios = request.bios.saturating_add(u16::from(waiting.starts_bio));
            request.by_tracer |= waiting.by_tracer;
            request.flags = request.flags.with(waiting.durability);
            self.segments.push(Segment {
                request: index,
                sector,
                ..waiting.piece
            });
            sector += u64::from(waiting.piece.bytes) / SECTOR_BYTES;
        }
    }

    /// The driver gave a request back.
    pub(super) fn requeue(&mut self, device: u8, transfer: &Transfer) {
        let place = place_of(device, transfer);
        if let Some(index) = self.take_under_way(place, transfer.bytes) {
            self.requeued.entry(place).or_default().push_back(index);
        }
    }

    /// The oldest request at the driver whose rest has this place and length; if none has, the
    /// oldest at the place.
    fn take_under_way(&mut self, place: RequestKey, bytes: u32) -> Option<u32> {
        let end = place.2 + u64::from(bytes) / SECTOR_BYTES;
        let ends_there = |index: &u32| {
            let request = &self.requests[*index as usize];
            request.sector + u64::from(request.bytes) / SECTOR_BYTES == end
        };
        let all = self.under_way.get_mut(&place)?;
        let found = all.iter().position(ends_there).unwrap_or(0);
        let index = all.remove(found);
        if all.is_empty() {
            self.under_way.remove(&place);
        }
        index
    }

    /// A request, or a part of it, came back.
    pub(super) fn complete(&mut self, device: u8, completion: &Completion) {
        let transfer = &completion.transfer;
        let place = place_of(device, transfer);
        if transfer.bytes > 0
            && transfer.operation != Operation::Flush
            && let Some(disk) = self.disks.get_mut(usize::from(device))
        {
            disk.flushes.data_done(transfer);
        }
        let Some(index) = self.take_under_way(place, transfer.bytes) else {
            // The second completion of a FUA request, or a request from before the recording.
            if let Some(index) = self.finishing.remove(&place) {
                self.requests[index as usize].complete_ns = Some(transfer.mono_ns);
            }
            return;
        };
        let request = &mut self.requests[index as usize];
        if request.status == 0 {
            request.status = completion.status;
        }
        let done = place.2 + u64::from(transfer.bytes) / SECTOR_BYTES;
        let end = request.sector + u64::from(request.bytes) / SECTOR_BYTES;
        if transfer.bytes > 0 && done < end {
            let place = (device, transfer.operation, done);
            self.under_way.entry(place).or_default().push_back(index);
        } else {
            request.complete_ns = Some(transfer.mono_ns);
            if completion.in_flush_sequence && transfer.operation != Operation::Flush {
                self.finishing.insert(place, index);
            }
        }
    }

    /// The tables, in the order of issue.
    pub(super) fn finish(self) -> (Vec<Request>, Vec<Segment>) {
        (self.requests, self.segments)
    }
}

fn take_oldest(
    places: &mut FxHashMap<RequestKey, VecDeque<u32>>,
    place: RequestKey,
) -> Option<u32> {
    let all = places.get_mut(&place)?;
    let index = all.pop_front();
    if all.is_empty() {
        places.remove(&place);
    }
    index
}

fn ask(request: &mut Request, issuer: Issuer) {
    if issuer.queue_ns > 0 {
        request.queue_ns = issuer.queue_ns;
    }
    request.submitter = issuer.submitter;
    request.sync = issuer.sync;
}

/// True for a request that is no flush and covers no sectors of a device: a passthrough request, whose
/// sector the kernel leaves at -1, or one past any device.
fn is_placeless(operation: Operation, sector: u64) -> bool {
    operation != Operation::Flush && !operation.has_place_at(sector)
}

/// What has no place is at sector 0, as are flushes.
fn place_of(device: u8, transfer: &Transfer) -> RequestKey {
    let operation = transfer.operation;
    match operation.has_place_at(transfer.sector) {
        true => (device, operation, transfer.sector),
        false => (device, operation, 0),
    }
}

fn disks(manifest: &Manifest) -> Vec<Disk> {
    let indices = 0..manifest.device_count();
    let devices: Vec<_> = indices
        .map(|index| manifest.device_at(index as u8))
        .collect();
    let disks = devices.iter().enumerate().map(|(index, device)| Disk {
        // A recording of others has what its device did, and may lack who asked for it.
        sees_flushes_of_others: device.is_partition() && manifest.backend != Backend::Import,
        first_of_disk: devices[..index]
            .iter()
            .position(|other| device.shares_a_disk_with(other))
            .unwrap_or(index),
        flushes: Flushes::new(device.fua == Some(true)),
    });
    disks.collect()
}

#[cfg(test)]
mod tests {
    use iostep_model::event::Event;
    use iostep_model::table::Trace;

    use super::*;
    use crate::attribute::assemble;
    use iostep_model::fixture;

    fn transfer(mono_ns: u64, sectors: u32) -> Transfer {
        Transfer {
            mono_ns,
            sector: 64,
            bytes: sectors * 512,
            operation: Operation::Write,
            flags: Flags::default(),
        }
    }

    fn queue(mono_ns: u64, sectors: u32) -> Event {
        Event::Queue(Queue {
            mono_ns,
            sector: 64,
            bytes: sectors * 512,
            operation: Operation::Write,
            flags: Flags::default(),
            pid: 1,
            tgid: 1,
            sync: None,
            segments: Vec::new(),
        })
    }

    fn complete(mono_ns: u64, sectors: u32) -> Event {
        Event::Complete(Completion {
            transfer: transfer(mono_ns, sectors),
            status: 0,
            in_flush_sequence: false,
        })
    }

    fn tables(events: &[Event]) -> Trace {
        assemble(fixture::empty().manifest, events)
    }

    fn times(trace: &Trace) -> Vec<(u64, Option<u64>)> {
        let rows = trace.requests.iter();
        rows.map(|row| (row.issue_ns, row.complete_ns)).collect()
    }

    #[test]
    fn requests_for_one_place_that_are_given_back_stay_two() {
        let trace = tables(&[
            queue(1, 8),
            queue(2, 8),
            Event::Issue(transfer(3, 8)),
            Event::Issue(transfer(4, 8)),
            Event::Requeue(transfer(5, 8)),
            Event::Requeue(transfer(6, 8)),
            Event::Issue(transfer(7, 8)),
            Event::Issue(transfer(8, 8)),
            complete(9, 8),
            complete(10, 8),
        ]);
        assert_eq!(times(&trace), [(7, Some(9)), (8, Some(10))]);
        assert_eq!(trace.segments.len(), 2);
    }

    #[test]
    fn of_two_requests_for_one_place_the_one_of_that_size_is_back() {
        let trace = tables(&[
            queue(1, 16),
            Event::Issue(transfer(2, 16)),
            queue(3, 8),
            Event::Issue(transfer(4, 8)),
            complete(5, 8),
            complete(6, 16),
        ]);
        assert_eq!(times(&trace), [(2, Some(6)), (4, Some(5))]);
    }

    #[test]
    fn the_second_half_of_a_split_bio_may_be_issued_first() {
        let half = |mono_ns, sector| {
            Event::Issue(Transfer {
                sector,
                ..transfer(mono_ns, 4)
            })
        };
        let trace = tables(&[queue(1, 8), half(2, 68), half(3, 64)]);
        let queued: Vec<u64> = trace.requests.iter().map(|row| row.queue_ns).collect();
        assert_eq!(queued, [1, 1]);
        let bytes: Vec<u32> = trace.segments.iter().map(|row| row.bytes).collect();
        assert_eq!(bytes, [2048, 2048]);
    }
}
