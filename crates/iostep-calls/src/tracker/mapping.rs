//! Which file is mapped where in a process: munmap and msync only say addresses.

use std::collections::BTreeMap;

use iostep_model::syscall::HandleId;

/// Mappings are made of whole pages; the smallest that any of the architectures has.
const PAGE_BYTES: u64 = 4096;

/// A mapped part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) handle: HandleId,
    /// Where in the file, bytes.
    pub(super) offset: i64,
    /// Bytes.
    pub(super) size: u64,
}

/// The mapped files of a process by their address.
#[derive(Clone, Debug, Default)]
pub(super) struct Mappings(BTreeMap<u64, Part>);

impl Mappings {
    /// A new mapping, in place of whatever was there (`MAP_FIXED`).
    pub(super) fn add(&mut self, address: u64, part: Part) {
        self.remove(address, part.size);
        if part.size > 0 {
            self.0.insert(address, part);
        }
    }

    /// The parts of files in a range of addresses, in order.
    pub(super) fn parts(&self, address: u64, size: u64) -> Vec<Part> {
        let end = end(address, size);
        let hits = self.overlapping(address, end).into_iter();
        hits.map(|(start, part)| cut(start, part, address, end))
            .collect()
    }

    /// Takes a range of addresses away. Gives the parts of files that were there, in order.
    pub(super) fn remove(&mut self, address: u64, size: u64) -> Vec<Part> {
        let end = end(address, size);
        let mut removed = Vec::new();
        for (start, part) in self.overlapping(address, end) {
            self.0.remove(&start);
            removed.push(cut(start, part, address, end));
            if start < address {
                self.0.insert(start, cut(start, part, start, address));
            }
            if end < start.saturating_add(part.size) {
                self.0.insert(end, cut(start, part, end, u64::MAX));
            }
        }
        removed
    }

    fn overlapping(&self, address: u64, end: u64) -> Vec<(u64, Part)> {
        // Mappings do not overlap each other, so at most one begins before and reaches in.
        let before = self.0.range(..address).next_back();
        let inside = before
            .into_iter()
            .chain(self.0.range(address..end.max(address)));
        inside
            .filter(|(start, part)| start.saturating_add(part.size) > address)
            .map(|(start, part)| (*start, *part))
            .collect()
    }
}

/// The end of what munmap and mmap take: whole pages.
fn end(address: u64, size: u64) -> u64 {
    let size = size.checked_next_multiple_of(PAGE_BYTES);
    address.saturating_add(size.unwrap_or(u64::MAX))
}

/// What of a mapping at `start` lies from `from` to `to`.
fn cut(start: u64, part: Part, from: u64, to: u64) -> Part {
    let from = from.max(start);
    let to = to.min(start.saturating_add(part.size));
    let skipped = i64::try_from(from - start).unwrap_or(i64::MAX);
    Part {
        handle: part.handle,
        offset: part.offset.saturating_add(skipped),
        size: to.saturating_sub(from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(handle: u32, offset: i64, size: u64) -> Part {
        let handle = HandleId(handle);
        Part {
            handle,
            offset,
            size,
        }
    }

    #[test]
    fn a_hole_in_the_middle_leaves_both_ends() {
        let mut maps = Mappings::default();
        maps.add(0x10000, part(1, 0x1000, 0x5000));
        assert_eq!(maps.remove(0x12000, 0x1000), [part(1, 0x3000, 0x1000)]);
        let rest = [part(1, 0x1000, 0x2000), part(1, 0x4000, 0x2000)];
        assert_eq!(maps.parts(0, u64::MAX), rest);
        assert_eq!(maps.remove(0x12000, 0x1000), []);
    }

    #[test]
    fn a_fixed_mapping_replaces_what_was_there() {
        let mut maps = Mappings::default();
        maps.add(0x10000, part(1, 0, 0x3000));
        maps.add(0x11000, part(2, 0x7000, 0x1000));
        let now = [
            part(1, 0, 0x1000),
            part(2, 0x7000, 0x1000),
            part(1, 0x2000, 0x1000),
        ];
        assert_eq!(maps.parts(0x10000, 0x3000), now);
    }

    #[test]
    fn a_last_page_in_parts_goes_whole() {
        let mut maps = Mappings::default();
        maps.add(0x10000, part(1, 0, 0x1001));
        assert_eq!(maps.remove(0x10000, 0x1001), [part(1, 0, 0x1001)]);
        maps.add(0x10000, part(1, 0, 0x1800));
        assert_eq!(maps.remove(0x11000, 1), [part(1, 0x1000, 0x800)]);
    }

    #[test]
    fn addresses_at_the_very_end_do_not_wrap() {
        let mut maps = Mappings::default();
        maps.add(u64::MAX - 5, part(1, i64::MAX, u64::MAX));
        assert_eq!(maps.parts(u64::MAX - 1, 100).len(), 1);
        assert_eq!(maps.remove(u64::MAX, u64::MAX).len(), 0);
        assert_eq!(maps.parts(5, u64::MAX).len(), 1);
    }
}
