//! Pieces on their way down: from the device that the filesystem lies on to the disks.
//!
//! A bio says whose it is where the filesystem queues it. Device mapper and md send bios of their
//! own on, and the kernel says for each from which device and sector to which it goes. So a piece
//! waits at its device above until such a step takes it, or a part of it, along. A mirror takes it
//! once for each of its disks.

use std::collections::VecDeque;

use iostep_model::event::Remap;
use iostep_model::manifest::{Holds, Manifest};
use iostep_model::table::Segment;
use iostep_model::{Class, Evidence, Operation};
use rustc_hash::FxHashMap;

use super::flushes::Issuer;
use super::waiting::{Queue, Sent, Waiting, bit};

/// Flushes that are remembered per device: more than can be under way.
const MAX_FLUSHES: usize = 256;

/// The devices that are made of others.
#[derive(Debug)]
pub(crate) struct Layers {
    devices: Vec<Layer>,
    queues: FxHashMap<(u8, Operation), Queue>,
    flushes: FxHashMap<u8, VecDeque<Sent<Issuer>>>,
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
        queue.push(sector, piece);
    }

    /// A flush arrives at a device that is made of others.
    pub(super) fn push_flush(&mut self, device: u8, issuer: Issuer) {
        let flushes = self.flushes.entry(device).or_default();
        if flushes.len() == MAX_FLUSHES {
            flushes.pop_front();
        }
        flushes.push_back(Sent::new(issuer));
    }

    /// The pieces that go along with a bio; they cover all of it.
    pub(super) fn take(&mut self, remap: &Remap) -> Vec<Waiting> {
        let Some(from) = remap.from else {
            return vec![Waiting::of_nobody(remap.bytes, Class::OtherVolume)];
        };
        let copies = self.devices.get(usize::from(from)).map_or(1, |d| d.copies);
        let queue = self.queues.entry((from, remap.operation)).or_default();
        queue.take_all(remap.from_sector, remap.bytes, remap.to, copies)
    }

    /// Who asked for a flush that goes from a device to the one below. A device can send it there
    /// several times: device mapper does for each of its targets.
    pub(super) fn take_flush(&mut self, from: u8, to: u8) -> Option<Issuer> {
        let flushes = self.flushes.get_mut(&from)?;
        let at = flushes.iter().position(|flush| !flush.went_to(to));
        let at = at.or_else(|| flushes.len().checked_sub(1))?;
        let flush = &mut flushes[at];
        flush.to |= bit(to);
        Some(flush.what)
    }

    /// The same where the device above does not say that it sends it: md makes a bio of its own
    /// (`md_flush_request`, drivers/md/md.c).
    pub(super) fn take_untold_flush(&mut self, to: u8) -> Option<Issuer> {
        let above = (0u8..).zip(&self.devices);
        let above: Vec<u8> = above
            .filter(|(_, device)| device.made_of.contains(&to))
            .map(|(index, _)| index)
            .collect();
        above.into_iter().find_map(|from| {
            let waits = |flush: &Sent<Issuer>| !flush.went_to(to);
            let any = self.flushes.get(&from)?.iter().any(waits);
            any.then(|| self.take_flush(from, to)).flatten()
        })
    }
}

/// A bio of another volume on the same disk, or of the volume manager itself.
pub(super) fn foreign(bytes: u32) -> Vec<Segment> {
    match bytes {
        0 => Vec::new(),
        bytes => vec![Segment::of(bytes, Class::OtherVolume, Evidence::None)],
    }
}

#[cfg(test)]
mod tests;
