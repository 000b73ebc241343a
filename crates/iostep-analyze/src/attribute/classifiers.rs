//! Bios, cut where a filesystem begins and ends, and each part classified by its own.

use iostep_model::event::{self, Content, Event, NO_VOLUME, Queue};
use iostep_model::manifest::Manifest;
use iostep_model::table::Segment;
use iostep_model::{Class, SECTOR_BYTES};

use super::classify::Classifier;
use super::names::Names;
use super::volumes::{self, Places, Region, Volume};

/// Classifies the bios of all devices.
#[derive(Debug)]
pub(super) struct Classifiers<'a> {
    volumes: Vec<Classifier<'a>>,
    outside: Classifier<'a>,
    places: Places<'a>,
}

impl<'a> Classifiers<'a> {
    pub(super) fn new(
        manifest: &'a Manifest,
        names: &'a Names,
        events: &[Event],
    ) -> Classifiers<'a> {
        let volumes = volumes::of(manifest);
        let places = Places::new(&volumes, !manifest.volumes.is_empty());
        let numbered = volumes.into_iter().zip(0..);
        Classifiers {
            volumes: numbered
                .map(|(volume, at)| Classifier::new(manifest, (at, volume), names, events))
                .collect(),
            outside: Classifier::new(manifest, (NO_VOLUME, Volume::default()), names, &[]),
            places,
        }
    }

    /// Learns from an event that is no I/O.
    pub(super) fn observe(&mut self, event: &Event) {
        for volume in &mut self.volumes {
            volume.observe(event);
        }
    }

    /// The parts of a bio, in the order of sectors. Their bytes add up to the bio's. Their requests,
    /// sectors and causes are not known yet.
    pub(super) fn segments(&mut self, device: u8, queue: &Queue) -> Vec<Segment> {
        let end = end_of(queue);
        let (place, until) = self.places.zone(device, queue.sector);
        if until >= end {
            return self.segments_in(place, queue);
        }
        let mut pieces = Vec::new();
        let mut rest = queue.clone();
        loop {
            let (place, until) = self.places.zone(device, rest.sector);
            if until >= end {
                pieces.extend(self.segments_in(place, &rest));
                return pieces;
            }
            let behind = cut(&mut rest, until);
            pieces.extend(self.segments_in(place, &rest));
            rest = behind;
        }
    }

    fn segments_in(&mut self, place: Option<(Region<'a>, u16)>, queue: &Queue) -> Vec<Segment> {
        let Some((region, at)) = place else {
            return self.outside(queue);
        };
        let mut pieces = self.volumes[usize::from(at)].segments(&region, queue);
        let volume = self.places.row_of(at);
        for piece in &mut pieces {
            piece.volume = volume;
        }
        pieces
    }

    /// What is in no filesystem, but what the kernel says is a file's or a structure's: of one that
    /// was mounted later.
    fn outside(&mut self, queue: &Queue) -> Vec<Segment> {
        let mut pieces = self.outside.segments(&Region::default(), queue);
        for piece in &mut pieces {
            if is_of_no_filesystem(piece.class) {
                piece.class = Class::OutsideFilesystem;
            }
        }
        pieces
    }
}

fn is_of_no_filesystem(class: Class) -> bool {
    matches!(
        class,
        Class::DeviceData | Class::Zeroes | Class::Free | Class::Unknown
    )
}

fn end_of(queue: &Queue) -> u64 {
    let sectors = u64::from(queue.bytes).div_ceil(SECTOR_BYTES);
    queue.sector.saturating_add(sectors)
}

/// Ends a bio at a sector inside of it; gives the rest.
fn cut(queue: &mut Queue, sector: u64) -> Queue {
    let mut rest = queue.clone();
    let bytes = (sector - queue.sector).saturating_mul(SECTOR_BYTES);
    queue.bytes = u32::try_from(bytes).map_or(queue.bytes, |bytes| bytes.min(queue.bytes));
    rest.sector = sector;
    rest.bytes -= queue.bytes;
    queue.segments.clear();
    let mut left = queue.bytes;
    for mut segment in std::mem::take(&mut rest.segments) {
        if left >= segment.bytes {
            left -= segment.bytes;
            queue.segments.push(segment);
            continue;
        }
        let behind = second_part(&segment, left);
        if left > 0 {
            segment.bytes = left;
            queue.segments.push(segment);
        }
        left = 0;
        rest.segments.push(behind);
    }
    rest
}

/// A segment from a byte on.
fn second_part(segment: &event::Segment, from: u32) -> event::Segment {
    let mut behind = segment.clone();
    behind.bytes -= from;
    if let Content::File { offset_bytes, .. } = &mut behind.content {
        *offset_bytes = offset_bytes.saturating_add(from.into());
    }
    behind
}
