//! Pieces of bios that wait at a device: for the requests of a disk, or for the bios that a device
//! made of others sends on.

use std::collections::{BTreeMap, VecDeque};

use iostep_model::table::Segment;
use iostep_model::{Class, Evidence, Flags, SECTOR_BYTES};

use super::flushes::Issuer;

/// A piece of a bio, and who asks for it.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(super) issuer: Issuer,
    /// What the flush machinery takes off a bio before the driver sees its request.
    pub(super) durability: Flags,
    pub(super) by_tracer: bool,
    pub(super) piece: Segment,
    /// First piece of its bio.
    pub(super) starts_bio: bool,
}

impl Waiting {
    /// Bytes that nobody was seen to ask for.
    pub(super) fn of_nobody(bytes: u32, class: Class) -> Waiting {
        Waiting {
            issuer: Issuer::default(),
            durability: Flags::default(),
            by_tracer: false,
            piece: Segment::of(bytes, class, Evidence::None),
            starts_bio: false,
        }
    }

    /// Who asks for the flush that the bio of this piece carries.
    pub(super) fn flush_issuer(&self) -> Issuer {
        Issuer {
            sync: self.issuer.sync.or(self.piece.cause),
            ..self.issuer
        }
    }

    /// Cuts a piece that a split divides; gives the second part.
    fn cut(&mut self, bytes: u32) -> Waiting {
        let mut rest = self.clone();
        rest.starts_bio = false;
        rest.piece.bytes -= bytes;
        if let Some(offset) = &mut rest.piece.file_offset_bytes {
            *offset = offset.saturating_add(u64::from(bytes));
        }
        self.piece.bytes = bytes;
        rest
    }
}

/// Something at a device, and to which devices it was sent on.
#[derive(Clone, Debug)]
pub(super) struct Sent<T> {
    pub(super) what: T,
    /// A bit for each device below.
    pub(super) to: u32,
}

impl<T> Sent<T> {
    pub(super) fn new(what: T) -> Sent<T> {
        Sent { what, to: 0 }
    }

    pub(super) fn went_to(&self, device: u8) -> bool {
        self.to & bit(device) != 0
    }
}

pub(super) fn bit(device: u8) -> u32 {
    1u32.checked_shl(device.into()).unwrap_or(0)
}

/// What waits at a device, by its first sector; of several at one sector the older goes first.
///
/// The parts of a bio that was split need not go on in order: a scheduler may prefer the second.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pieces: BTreeMap<u64, VecDeque<Sent<Waiting>>>,
    longest_sectors: u64,
}

impl Queue {
    /// A piece arrives.
    pub(super) fn push(&mut self, sector: u64, piece: Waiting) {
        let sectors = u64::from(piece.piece.bytes).div_ceil(SECTOR_BYTES);
        self.longest_sectors = self.longest_sectors.max(sectors);
        let here = self.pieces.entry(sector).or_default();
        // What a mirror sent on some time ago, and never to all of its disks.
        here.retain(|older| older.to == 0);
        here.push_back(Sent::new(piece));
    }

    /// The pieces that go on to the device `to`, in the order of sectors; they cover all `bytes`.
    /// Of what was never seen to arrive, nobody's. A piece is gone when it was taken `copies` times.
    pub(super) fn take_all(&mut self, first: u64, bytes: u32, to: u8, copies: u32) -> Vec<Waiting> {
        let mut taken = Vec::new();
        let mut left = bytes;
        while left > 0 {
            let sector = first.saturating_add(u64::from(bytes - left) / SECTOR_BYTES);
            let piece = self.take(sector, left, to, copies).unwrap_or_else(|| {
                Waiting::of_nobody(self.gap_bytes(sector, left, to), Class::Unknown)
            });
            left -= piece.piece.bytes;
            taken.push(piece);
        }
        taken
    }

    /// From a sector that no piece covers to the next piece, at most `left` bytes.
    fn gap_bytes(&self, sector: u64, left: u32, to: u8) -> u32 {
        let end = sector.saturating_add(u64::from(left).div_ceil(SECTOR_BYTES));
        let next = self
            .pieces
            .range(sector.saturating_add(1)..end)
            .find(|(_, here)| here.iter().any(|piece| !piece.went_to(to)));
        next.map_or(left, |(next, _)| ((next - sector) * SECTOR_BYTES) as u32)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(bytes: u32, offset: u64) -> Waiting {
        let mut waiting = Waiting::of_nobody(bytes, Class::FileData);
        waiting.starts_bio = true;
        waiting.piece.file_offset_bytes = Some(offset);
        waiting
    }

    /// Bytes, class, offset in the file and whether it begins a bio, of each piece.
    fn taken(queue: &mut Queue, sector: u64, bytes: u32) -> Vec<(u32, Class, Option<u64>, bool)> {
        let pieces = queue.take_all(sector, bytes, 0, 1).into_iter();
        pieces
            .map(|it| {
                let piece = it.piece;
                (
                    piece.bytes,
                    piece.class,
                    piece.file_offset_bytes,
                    it.starts_bio,
                )
            })
            .collect()
    }

    #[test]
    fn the_parts_of_a_split_bio_may_go_in_any_order() {
        let mut queue = Queue::default();
        queue.push(64, piece(4096, 0));
        let data = Class::FileData;
        assert_eq!(
            taken(&mut queue, 68, 1024),
            [(1024, data, Some(2048), false)]
        );
        assert_eq!(
            taken(&mut queue, 70, 1024),
            [(1024, data, Some(3072), false)]
        );
        assert_eq!(taken(&mut queue, 64, 2048), [(2048, data, Some(0), true)]);
        assert!(queue.pieces.is_empty(), "{queue:?}");
    }

    #[test]
    fn what_was_not_seen_to_arrive_is_nobodys_up_to_what_was() {
        let mut queue = Queue::default();
        queue.push(66, piece(512, 0));
        let expected = [
            (1024, Class::Unknown, None, false),
            (512, Class::FileData, Some(0), true),
            (512, Class::Unknown, None, false),
        ];
        assert_eq!(taken(&mut queue, 64, 2048), expected);
        assert_eq!(
            taken(&mut queue, u64::MAX, 1024),
            [(1024, Class::Unknown, None, false)]
        );
    }

    #[test]
    fn a_bio_that_begins_there_goes_before_one_that_covers_the_sector() {
        let mut queue = Queue::default();
        queue.push(64, piece(4096, 0));
        queue.push(68, piece(512, 9));
        let data = Class::FileData;
        assert_eq!(taken(&mut queue, 68, 512), [(512, data, Some(9), true)]);
        assert_eq!(taken(&mut queue, 68, 512), [(512, data, Some(2048), false)]);
    }
}
