//! Pieces on their way down: from the device that the filesystem lies on to the disks.
//!
//! A bio says whose it is where the filesystem queues it. Device mapper and md send bios of their
//! own on, and the kernel says for each from which device and sector to which it goes. So a piece
//! waits at its device above until such a step takes it, or a part of it, along. A mirror takes it
//! once for each of its disks.

use std::collections::{BTreeMap, VecDeque};

use iostep_model::event::Remap;
use iostep_model::manifest::{Holds, Manifest};
use iostep_model::{Class, Evidence, Operation, SECTOR_BYTES};
use rustc_hash::FxHashMap;

use super::classify::Piece;
use super::flushes::Asker;
use super::requests::Waiting;

/// Flushes that are remembered per device: more than can be under way.
const MAX_FLUSHES: usize = 256;

/// Something at a device above, and to which devices it was sent on.
#[derive(Clone, Debug)]
struct Sent<T> {
    what: T,
    /// A bit for each device below.
    to: u32,
}

impl<T> Sent<T> {
    fn new(what: T) -> Sent<T> {
        Sent { what, to: 0 }
    }

    fn went_to(&self, device: u8) -> bool {
        self.to & bit(device) != 0
    }
}

fn bit(device: u8) -> u32 {
    1u32.checked_shl(device.into()).unwrap_or(0)
}

/// What waits at a device, by its first sector; of several at one sector the older goes first.
#[derive(Debug, Default)]
struct Queue {
    pieces: BTreeMap<u64, VecDeque<Sent<Waiting>>>,
    longest_sectors: u64,
}

/// The devices that are made of others.
#[derive(Debug)]
pub(crate) struct Layers {
    devices: Vec<Layer>,
    queues: FxHashMap<(u8, Operation), Queue>,
    flushes: FxHashMap<u8, VecDeque<Sent<Asker>>>,
}

#[derive(Debug)]
struct Layer {
    is_disk: bool,
    holds: Holds,
    made_of: Vec<u8>,
    /// On how many devices below a write ends up.
    copies: u32,
}

impl Layers {
    /// For the devices of a manifest.
    pub(super) fn new(manifest: &Manifest) -> Layers {
        let devices = manifest.devices.iter().map(|device| Layer {
            is_disk: device.is_disk(),
            holds: device.holds,
            made_of: device.made_of.clone(),
            copies: match device.kind.as_str() {
                "RAID1" => device.made_of.len() as u32,
                _ => 1,
            },
        });
        Layers {
            devices: devices.collect(),
            queues: FxHashMap::default(),
            flushes: FxHashMap::default(),
        }
    }

    /// True for a device with requests; there is no other where there is only one.
    pub(super) fn is_disk(&self, device: u8) -> bool {
        let device = self.devices.get(usize::from(device));
        device.is_none_or(|device| device.is_disk)
    }

    /// True if a bio that is queued there says whose it is.
    pub(super) fn is_ours(&self, device: u8) -> bool {
        let device = self.devices.get(usize::from(device));
        device.is_none_or(|device| device.holds != Holds::Devices)
    }

    /// A piece arrives at a device that is made of others.
    pub(super) fn push(&mut self, device: u8, operation: Operation, sector: u64, piece: Waiting) {
        let queue = self.queues.entry((device, operation)).or_default();
        let sectors = u64::from(piece.piece.bytes).div_ceil(SECTOR_BYTES);
        queue.longest_sectors = queue.longest_sectors.max(sectors);
        let here = queue.pieces.entry(sector).or_default();
        // What a mirror sent on some time ago, and never to all of its disks.
        here.retain(|older| older.to == 0);
        here.push_back(Sent::new(piece));
    }

    /// A flush arrives at a device that is made of others.
    pub(super) fn push_flush(&mut self, device: u8, asker: Asker) {
        let flushes = self.flushes.entry(device).or_default();
        if flushes.len() == MAX_FLUSHES {
            flushes.pop_front();
        }
        flushes.push_back(Sent::new(asker));
    }

    /// The pieces that go along with a bio; they cover all of it.
    pub(super) fn take(&mut self, remap: &Remap) -> Vec<Waiting> {
        let Some(from) = remap.from else {
            return vec![Waiting::of_nobody(remap.bytes, Class::OtherVolume)];
        };
        let copies = self.devices.get(usize::from(from)).map_or(1, |d| d.copies);
        let queue = self.queues.entry((from, remap.operation)).or_default();
        let mut taken: Vec<Waiting> = Vec::new();
        let mut left = remap.bytes;
        while left > 0 {
            let done = u64::from(remap.bytes - left) / SECTOR_BYTES;
            let sector = remap.from_sector.saturating_add(done);
            match queue.take(sector, left, remap.to, copies) {
                Some(piece) => {
                    left -= piece.piece.bytes;
                    taken.push(piece);
                }
                None => {
                    // A device of small blocks has small gaps at worst.
                    let bytes = left.min(SECTOR_BYTES as u32);
                    left -= bytes;
                    match taken.last_mut() {
                        Some(last) if last.piece.evidence == Evidence::None => {
                            last.piece.bytes += bytes;
                        }
                        _ => taken.push(Waiting::of_nobody(bytes, Class::Unknown)),
                    }
                }
            }
        }
        taken
    }

    /// Who asked for a flush that goes from a device to the one below. A device can send it there
    /// several times: device mapper does for each of its targets.
    pub(super) fn take_flush(&mut self, from: u8, to: u8) -> Option<Asker> {
        let flushes = self.flushes.get_mut(&from)?;
        let at = flushes.iter().position(|flush| !flush.went_to(to));
        let at = at.or_else(|| flushes.len().checked_sub(1))?;
        let flush = &mut flushes[at];
        flush.to |= bit(to);
        Some(flush.what)
    }

    /// The same where the device above does not say that it sends it: md makes a bio of its own
    /// (`md_flush_request`, drivers/md/md.c).
    pub(super) fn take_untold_flush(&mut self, to: u8) -> Option<Asker> {
        let above = (0u8..).zip(&self.devices);
        let above: Vec<u8> = above
            .filter(|(_, device)| device.made_of.contains(&to))
            .map(|(index, _)| index)
            .collect();
        above.into_iter().find_map(|from| {
            let waits = |flush: &Sent<Asker>| !flush.went_to(to);
            let any = self.flushes.get(&from)?.iter().any(waits);
            any.then(|| self.take_flush(from, to)).flatten()
        })
    }
}

impl Queue {
    /// The piece at a sector that was not sent to the device below, cut to at most `left` bytes.
    fn take(&mut self, sector: u64, left: u32, to: u8, copies: u32) -> Option<Waiting> {
        let (start, at) = self.find(sector, to)?;
        let mut piece = self.remove(start, at);
        let before = ((sector - start) * SECTOR_BYTES) as u32;
        if before > 0 {
            let rest = piece.what.cut(before);
            self.insert(
                start,
                Sent {
                    what: piece.what,
                    to: piece.to,
                },
            );
            piece.what = rest;
        }
        if piece.what.piece.bytes > left {
            let rest = piece.what.cut(left);
            let after = sector + u64::from(left) / SECTOR_BYTES;
            self.insert(
                after,
                Sent {
                    what: rest,
                    to: piece.to,
                },
            );
        }
        piece.to |= bit(to);
        let taken = piece.what.clone();
        if piece.to.count_ones() < copies {
            self.insert(sector, piece);
        }
        Some(taken)
    }

    /// The nearest piece that covers a sector: its own first sector, and its place there.
    fn find(&self, sector: u64, to: u8) -> Option<(u64, usize)> {
        let from = sector.saturating_sub(self.longest_sectors);
        self.pieces
            .range(from..=sector)
            .rev()
            .find_map(|(start, here)| {
                let at = here.iter().position(|piece| {
                    let sectors = u64::from(piece.what.piece.bytes).div_ceil(SECTOR_BYTES);
                    !piece.went_to(to) && sector - start < sectors
                })?;
                Some((*start, at))
            })
    }

    fn remove(&mut self, start: u64, at: usize) -> Sent<Waiting> {
        let here = self.pieces.get_mut(&start).expect("it was just found");
        let piece = here.remove(at).expect("it was just found");
        if here.is_empty() {
            self.pieces.remove(&start);
        }
        piece
    }

    /// Puts back what is older than everything that came meanwhile.
    fn insert(&mut self, start: u64, piece: Sent<Waiting>) {
        self.pieces.entry(start).or_default().push_front(piece);
    }
}

/// A bio of another volume on the same disk, or of the volume manager itself.
pub(super) fn foreign(bytes: u32) -> Vec<Piece> {
    match bytes {
        0 => Vec::new(),
        bytes => vec![Piece::of(bytes, Class::OtherVolume, Evidence::None)],
    }
}

#[cfg(test)]
mod tests;
