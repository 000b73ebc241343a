//! What lies where on the traced devices: the filesystem that a place belongs to, or none.
//!
//! A bio of a live trace lies in one of them. A request of an import, or a discard of a whole disk,
//! may cover several and what is between: it is cut where each begins and ends.

use iostep_model::event::NO_VOLUME;
use iostep_model::filesystem::Kind;
use iostep_model::manifest::{Filesystem, Holds, LayoutRange, Manifest};
use iostep_model::table::Trace;
use iostep_model::{Class, Evidence, SECTOR_BYTES};

use super::recut::recut;

/// A device that holds nothing but the log.
static ALL_LOG: [LayoutRange; 1] = [LayoutRange {
    first_block: 0,
    blocks: u64::MAX,
    class: Class::LogOther,
}];

/// A part of a device, and what lies there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Region<'a> {
    pub(super) device: u8,
    pub(super) start_sector: u64,
    /// The first sector behind it.
    pub(super) end_sector: u64,
    /// What is reserved here: on the first device of a filesystem its layout.
    pub(super) ranges: &'a [LayoutRange],
    /// True where the filesystem's blocks are counted from.
    pub(super) is_first: bool,
}

impl Region<'_> {
    pub(super) fn holds(&self, device: u8, sector: u64) -> bool {
        self.device == device && (self.start_sector..self.end_sector).contains(&sector)
    }
}

/// A filesystem, or whatever is there instead, and where it lies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Volume<'a> {
    pub(super) filesystem: Option<&'a Filesystem>,
    pub(super) regions: Vec<Region<'a>>,
    /// Bytes of the device that it begins on; a filesystem has no more.
    pub(super) device_bytes: u64,
}

impl<'a> Volume<'a> {
    pub(super) fn kind(&self) -> Option<Kind> {
        Kind::of_mount(&self.filesystem?.kind)
    }

    /// True if a place on a device belongs to it.
    pub(super) fn holds(&self, device: u8, sector: u64) -> bool {
        self.regions
            .iter()
            .any(|region| region.holds(device, sector))
    }

    pub(super) fn first(&self) -> Option<&Region<'a>> {
        self.regions.iter().find(|region| region.is_first)
    }
}

/// All that the manifest tells of: as many as it has volumes, or one.
pub(super) fn of(manifest: &Manifest) -> Vec<Volume<'_>> {
    match manifest.volumes.is_empty() {
        true => vec![only(manifest)],
        false => several(manifest),
    }
}

fn only(manifest: &Manifest) -> Volume<'_> {
    let filesystem = manifest.filesystem.as_ref();
    let first = manifest.filesystem_device();
    let whole = |device, ranges| Region {
        device,
        start_sector: 0,
        end_sector: u64::MAX,
        ranges,
        is_first: false,
    };
    let regions = (0..manifest.device_count() as u8).filter_map(|device| {
        Some(match (manifest.holds(device), filesystem) {
            (Holds::Devices, _) => return None,
            (Holds::Journal, _) => whole(device, &ALL_LOG[..]),
            (Holds::Filesystem, Some(filesystem)) if device == first => {
                beginning(device, manifest.filesystem_start_sector(), filesystem)
            }
            (Holds::Filesystem, _) => whole(device, &[]),
        })
    });
    Volume {
        filesystem,
        regions: regions.collect(),
        device_bytes: manifest
            .device_at(first)
            .sectors
            .saturating_mul(SECTOR_BYTES),
    }
}

fn several(manifest: &Manifest) -> Vec<Volume<'_>> {
    let all = manifest.volumes.iter().take(usize::from(NO_VOLUME));
    let own = all.map(|volume| {
        let part = Region {
            device: volume.device,
            start_sector: volume.start_sector,
            end_sector: volume.start_sector.saturating_add(volume.sectors),
            ranges: match volume.holds {
                Holds::Journal => &ALL_LOG[..],
                _ => &[],
            },
            is_first: false,
        };
        let region = match &volume.filesystem {
            // What it does not fill is outside of it.
            Some(filesystem) => {
                let region = beginning(volume.device, volume.start_sector, filesystem);
                Region {
                    end_sector: region.end_sector.min(part.end_sector),
                    ..region
                }
            }
            None => part,
        };
        Volume {
            filesystem: volume.filesystem.as_ref(),
            regions: vec![region],
            device_bytes: volume.sectors.saturating_mul(SECTOR_BYTES),
        }
    });
    let mut all: Vec<Volume<'_>> = own.collect();
    for (at, volume) in manifest.volumes.iter().enumerate().take(all.len()) {
        let first = volume.part_of.map(usize::from);
        if let Some(first) = first.filter(|first| *first < all.len() && *first != at) {
            let regions = std::mem::take(&mut all[at].regions);
            all[first].regions.extend(regions);
        }
    }
    all
}

/// From a filesystem's first sector to its last on the device that it begins on.
fn beginning(device: u8, start_sector: u64, filesystem: &Filesystem) -> Region<'_> {
    let sectors = filesystem.size_bytes.map(|bytes| bytes / SECTOR_BYTES);
    Region {
        device,
        start_sector,
        end_sector: sectors.map_or(u64::MAX, |sectors| start_sector.saturating_add(sectors)),
        ranges: &filesystem.layout,
        is_first: true,
    }
}

/// Which volume a place belongs to.
#[derive(Debug, Default)]
pub(crate) struct Places<'a> {
    /// By device and place, and the volume of each.
    regions: Vec<(Region<'a>, u16)>,
    /// True if the manifest tells of several.
    are_several: bool,
}

/// Where a place belongs: to a volume, or to none; and up to which sector that holds.
pub(super) type Zone<'a> = (Option<(Region<'a>, u16)>, u64);

impl<'a> Places<'a> {
    pub(crate) fn of(manifest: &'a Manifest) -> Places<'a> {
        Places::new(&of(manifest), !manifest.volumes.is_empty())
    }

    pub(super) fn new(volumes: &[Volume<'a>], are_several: bool) -> Places<'a> {
        let numbered = volumes.iter().zip(0..);
        let mut regions: Vec<(Region<'a>, u16)> = numbered
            .flat_map(|(volume, at)| volume.regions.iter().map(move |region| (*region, at)))
            .collect();
        regions.sort_by_key(|(region, _)| (region.device, region.start_sector));
        Places {
            regions,
            are_several,
        }
    }

    /// True if there are several volumes, so that rows tell which.
    pub(crate) fn are_several(&self) -> bool {
        self.are_several
    }

    /// The volume of a bio that does not reach over an end; [`NO_VOLUME`] for what is in none.
    pub(crate) fn volume_at(&self, device: u8, sector: u64) -> u16 {
        match self.are_several {
            true => self.zone(device, sector).0.map_or(NO_VOLUME, |(_, at)| at),
            false => 0,
        }
    }

    /// A volume as rows have it.
    pub(crate) fn row_of(&self, volume: u16) -> Option<u16> {
        Some(volume).filter(|volume| self.are_several && *volume != NO_VOLUME)
    }

    pub(super) fn zone(&self, device: u8, sector: u64) -> Zone<'a> {
        let key = (device, sector);
        let behind = |(region, _): &(Region<'a>, u16)| (region.device, region.start_sector) <= key;
        let after = self.regions.partition_point(behind);
        let next = self
            .regions
            .get(after)
            .filter(|(next, _)| next.device == device);
        let until = next.map_or(u64::MAX, |(next, _)| next.start_sector);
        match after.checked_sub(1).map(|at| self.regions[at]) {
            Some((region, at)) if region.holds(device, sector) => {
                (Some((region, at)), region.end_sector.min(until))
            }
            _ => (None, until),
        }
    }
}

/// Tells of the bytes that nobody was seen to ask for in which filesystem they lie, and cuts them
/// where each begins and ends.
pub fn place(trace: &mut Trace) {
    let manifest = trace.manifest.clone();
    let places = Places::of(&manifest);
    let devices: Vec<u8> = trace
        .requests
        .iter()
        .map(|request| request.device)
        .collect();
    recut(trace, |segment, room, parts| {
        let is_unseen = segment.class == Class::Unknown && segment.evidence == Evidence::None;
        let device = devices.get(segment.request as usize).copied().unwrap_or(0);
        let mut rest = segment.clone();
        let mut left = room;
        while is_unseen && segment.volume.is_none() && left > 1 {
            let (place, until) = places.zone(device, rest.sector);
            let mut part = rest.clone();
            match place {
                Some((_, at)) => part.volume = places.row_of(at),
                None => part.class = Class::OutsideFilesystem,
            }
            let bytes = until
                .saturating_sub(rest.sector)
                .saturating_mul(SECTOR_BYTES);
            part.bytes = u32::try_from(bytes).map_or(rest.bytes, |bytes| bytes.min(rest.bytes));
            rest.sector = rest
                .sector
                .saturating_add(u64::from(part.bytes) / SECTOR_BYTES);
            rest.bytes -= part.bytes;
            left -= 1;
            parts.push(part);
            if rest.bytes == 0 {
                return;
            }
        }
        parts.push(rest);
    });
}

#[cfg(test)]
mod tests;
