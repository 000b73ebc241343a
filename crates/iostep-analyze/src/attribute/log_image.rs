//! Tells what the blocks of an ext4 journal were, from the journal as it is afterwards.
//!
//! The journal is a ring, so a block says what its last write was and nothing of the writes before.

use iostep_model::table::{Request, Segment, Trace};
use iostep_model::{Class, Evidence, SECTOR_BYTES};
use rustc_hash::FxHashMap;

use super::ext4;

/// The first bytes of a block.
pub type Head = [u8; 16];

/// Gives the last write of every journal block of a filesystem its class. `volume` is the
/// filesystem's, as rows have it. `head` reads a filesystem block; `None`
/// leaves the block's segment as it is.
///
/// Under `data=journal` a file's logged data is taken for a logged block of metadata.
pub fn apply(trace: &mut Trace, volume: Option<u16>, mut head: impl FnMut(u64) -> Option<Head>) {
    let Some(filesystem) = trace.manifest.filesystem_of(volume) else {
        return;
    };
    let ring = Ring {
        volume,
        start_sector: trace.manifest.start_sector_of(volume),
        block_sectors: (u64::from(filesystem.block_bytes) / SECTOR_BYTES).max(1),
    };
    let last = ring.last_writes(trace);
    let before = std::mem::take(&mut trace.segments);
    let mut after = Vec::with_capacity(before.len());
    for (row, request) in (0..).zip(&mut trace.requests) {
        let first = request.first_segment as usize;
        let old = &before[first..first + usize::from(request.segments)];
        let start = after.len();
        for segment in old {
            if !ring.has_write(request, segment) {
                after.push(segment.clone());
                continue;
            }
            ring.cut(segment, &mut after, |block| {
                let is_last = last.get(&block) == Some(&row);
                class_of(is_last.then(|| head(block)).flatten()?)
            });
        }
        // A request of more parts than can be counted stays in the parts that it had.
        if after.len() - start > usize::from(u16::MAX) {
            after.truncate(start);
            after.extend_from_slice(old);
        }
        request.first_segment = u32::try_from(start).unwrap_or(u32::MAX);
        request.segments = u16::try_from(after.len() - start).unwrap_or(u16::MAX);
    }
    trace.segments = after;
}

fn class_of(head: Head) -> Option<Class> {
    Some(ext4::log_class(&head).unwrap_or(Class::LoggedBlock))
}

/// Where blocks are on the device.
struct Ring {
    volume: Option<u16>,
    start_sector: u64,
    block_sectors: u64,
}

impl Ring {
    /// True for a part of a write to this log.
    fn has_write(&self, request: &Request, segment: &Segment) -> bool {
        let is_log = segment.class == Class::LogOther && segment.volume == self.volume;
        request.operation.is_write() && is_log
    }

    fn block_of(&self, sector: u64) -> u64 {
        sector.saturating_sub(self.start_sector) / self.block_sectors
    }

    /// Which request wrote each journal block last.
    fn last_writes(&self, trace: &Trace) -> FxHashMap<u64, u32> {
        let mut last = FxHashMap::default();
        for (row, request) in (0..).zip(&trace.requests) {
            for segment in trace.segments_of(request) {
                if !self.has_write(request, segment) {
                    continue;
                }
                let sectors = u64::from(segment.bytes) / SECTOR_BYTES;
                let end = segment.sector + sectors.max(1) - 1;
                let blocks = self.block_of(segment.sector)..=self.block_of(end);
                last.extend(blocks.map(|block| (block, row)));
            }
        }
        last
    }

    /// Adds a segment in parts of one class each.
    fn cut(
        &self,
        segment: &Segment,
        parts: &mut Vec<Segment>,
        mut class_of: impl FnMut(u64) -> Option<Class>,
    ) {
        let first = parts.len();
        let mut sector = segment.sector;
        let end = segment.sector + u64::from(segment.bytes) / SECTOR_BYTES;
        while sector < end {
            let block = self.block_of(sector);
            let next = (self.start_sector + (block + 1) * self.block_sectors).min(end);
            let bytes = ((next - sector) * SECTOR_BYTES) as u32;
            let class = class_of(block);
            match parts[first..].last_mut() {
                Some(last) if last.class == class.unwrap_or(segment.class) => last.bytes += bytes,
                _ => parts.push(Segment {
                    sector,
                    bytes,
                    class: class.unwrap_or(segment.class),
                    evidence: class.map_or(segment.evidence, |_| Evidence::OwnerMap),
                    ..segment.clone()
                }),
            }
            sector = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostep_model::Operation;
    use iostep_model::fixture;

    const MAGIC: [u8; 4] = [0xC0, 0x3B, 0x39, 0x98];

    fn head(kind: u8) -> Head {
        let mut head = [0; 16];
        head[..4].copy_from_slice(&MAGIC);
        head[7] = kind;
        head
    }

    /// Writes of whole blocks of 4096 bytes into the log.
    fn log_writes(writes: &[(u64, u32)]) -> Trace {
        let template = fixture::sqlite_on_ext4(1);
        let mut trace = fixture::empty();
        trace.manifest.filesystem = template.manifest.filesystem.clone();
        trace.manifest.device.start_sector = 64;
        for (row, (block, blocks)) in (0..).zip(writes) {
            let (sector, bytes) = (64 + block * 8, blocks * 4096);
            trace.requests.push(Request {
                sector,
                bytes,
                operation: Operation::Write,
                first_segment: row,
                segments: 1,
                ..template.requests[0].clone()
            });
            trace.segments.push(Segment {
                request: row,
                sector,
                bytes,
                class: Class::LogOther,
                evidence: Evidence::LayoutRange,
                ..template.segments[0].clone()
            });
        }
        trace
    }

    fn parts(trace: &Trace, row: usize) -> Vec<(Class, u32)> {
        let parts = trace.segments_of(&trace.requests[row]).iter();
        parts.map(|part| (part.class, part.bytes / 4096)).collect()
    }

    #[test]
    fn a_transaction_is_taken_apart() {
        let mut trace = log_writes(&[(100, 3), (103, 1)]);
        apply(&mut trace, None, |block| match block {
            100 => Some(head(1)),
            103 => Some(head(2)),
            _ => Some([7; 16]),
        });
        let expected = [(Class::LogDescriptor, 1), (Class::LoggedBlock, 2)];
        assert_eq!(parts(&trace, 0), expected);
        assert_eq!(parts(&trace, 1), [(Class::LogCommit, 1)]);
    }

    #[test]
    fn what_was_written_over_is_not_guessed() {
        let mut trace = log_writes(&[(100, 2), (101, 1)]);
        apply(&mut trace, None, |_| Some(head(1)));
        let expected = [(Class::LogDescriptor, 1), (Class::LogOther, 1)];
        assert_eq!(parts(&trace, 0), expected);
        assert_eq!(parts(&trace, 1), [(Class::LogDescriptor, 1)]);
    }

    #[test]
    fn a_block_that_cannot_be_read_stays_as_it_is() {
        let mut trace = log_writes(&[(100, 2)]);
        let before = trace.segments.clone();
        apply(&mut trace, None, |_| None);
        assert_eq!(trace.segments, before);
    }
}
