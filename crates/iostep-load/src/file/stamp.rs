//! What tells one written block from every other.
//!
//! ```text
//! 0   8  magic "iostepB1"
//! 8   8  seed of the job
//! 16  8  offset of this stamp in the file, bytes
//! 24  8  number of the write in its thread, from 1; 0 for what was there before
//! 32  4  number of the file
//! 36  4  number of the thread; WRITER_BEFORE for what was there before
//! 40  8  slot: which of the thread's buffers
//! ```
//! All in little-endian order. What follows is random, and its seed is the seed, the thread, the
//! slot and the number of the block within its record: a reader can make it again.

use crate::engine::random::Random;

/// Each so many bytes of a record have a stamp.
pub const UNIT_BYTES: usize = 4096;
/// A stamp is not put on anything shorter.
pub const LEAST_BYTES: usize = 64;
/// The thread of content that was there before the threads began.
pub const WRITER_BEFORE: u32 = 0x3fff;

const MAGIC: [u8; 8] = *b"iostepB1";
const STAMP_BYTES: usize = 48;

/// A stamp, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Seed of the job.
    pub seed: u64,
    /// Where it is in the file, bytes.
    pub offset_bytes: u64,
    /// Number of the write in its thread.
    pub sequence: u64,
    /// Number of the file.
    pub file: u32,
    /// Number of the thread.
    pub thread: u32,
    /// Which of the thread's buffers.
    pub slot: u64,
}

impl Stamp {
    /// Puts it at the start of `unit`, which has at least [`LEAST_BYTES`].
    pub fn put(&self, unit: &mut [u8]) {
        unit[..8].copy_from_slice(&MAGIC);
        unit[8..16].copy_from_slice(&self.seed.to_le_bytes());
        Stamp::renew(unit, self.offset_bytes, self.sequence);
        unit[32..36].copy_from_slice(&self.file.to_le_bytes());
        unit[36..40].copy_from_slice(&self.thread.to_le_bytes());
        unit[40..48].copy_from_slice(&self.slot.to_le_bytes());
    }

    /// Changes what differs between two writes from one buffer.
    #[inline]
    pub fn renew(unit: &mut [u8], offset_bytes: u64, sequence: u64) {
        let (offset, rest) = unit[16..32].split_at_mut(8);
        offset.copy_from_slice(&offset_bytes.to_le_bytes());
        rest.copy_from_slice(&sequence.to_le_bytes());
    }

    /// Takes it from the start of `unit`; `None` if there is none.
    pub fn take(unit: &[u8]) -> Option<Stamp> {
        let stamp = unit.first_chunk::<STAMP_BYTES>()?;
        let word = |at: usize| {
            let bytes: [u8; 8] = std::array::from_fn(|i| stamp[at + i]);
            u64::from_le_bytes(bytes)
        };
        (stamp[..8] == MAGIC).then(|| Stamp {
            seed: word(8),
            offset_bytes: word(16),
            sequence: word(24),
            file: word(32) as u32,
            thread: (word(32) >> 32) as u32,
            slot: word(40),
        })
    }
}

/// Fills unit number `unit` of a record in buffer `slot` of a thread.
pub fn fill(bytes: &mut [u8], seed: u64, thread: u32, slot: u64, unit: usize) {
    body(seed, thread, slot, unit).fill(bytes);
}

/// Whether the rest of a unit is what [`fill`] put there.
pub fn body_is_intact(bytes: &[u8], stamped: bool, stamp: &Stamp, unit: usize) -> bool {
    let mut random = body(stamp.seed, stamp.thread, stamp.slot, unit);
    let skipped = if stamped { STAMP_BYTES } else { 0 };
    bytes.chunks(8).enumerate().all(|(number, chunk)| {
        let expected = random.next_u64().to_le_bytes();
        number * 8 < skipped || *chunk == expected[..chunk.len()]
    })
}

/// Slots are below 2^32, units below 2^18 (a record has at most 1 GiB), threads below 2^14.
fn body(seed: u64, thread: u32, slot: u64, unit: usize) -> Random {
    Random::new(seed, slot | (unit as u64) << 32 | u64::from(thread) << 50)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp {
        seed: 0x0102_0304_0506_0708,
        offset_bytes: 1 << 40,
        sequence: 77,
        file: 3,
        thread: 9,
        slot: 5,
    };

    fn unit() -> Vec<u8> {
        let mut unit = vec![0; UNIT_BYTES];
        fill(&mut unit, STAMP.seed, STAMP.thread, STAMP.slot, 2);
        STAMP.put(&mut unit);
        unit
    }

    #[test]
    fn a_stamp_is_taken_as_it_was_put() {
        let mut unit = unit();
        assert_eq!(Stamp::take(&unit), Some(STAMP));
        Stamp::renew(&mut unit, 4096, 78);
        let renewed = Stamp {
            offset_bytes: 4096,
            sequence: 78,
            ..STAMP
        };
        assert_eq!(Stamp::take(&unit), Some(renewed));
        assert_eq!(Stamp::take(&unit[..40]), None);
        unit[7] = 0;
        assert_eq!(Stamp::take(&unit), None);
    }

    #[test]
    fn every_byte_after_the_stamp_is_looked_at() {
        let intact = |unit: &[u8]| body_is_intact(unit, true, &STAMP, 2);
        let mut unit = unit();
        assert!(intact(&unit));
        for at in STAMP_BYTES..UNIT_BYTES {
            unit[at] ^= 1;
            assert!(!intact(&unit), "byte {at}");
            unit[at] ^= 1;
        }
        assert!(!body_is_intact(&unit, true, &STAMP, 1));
    }
}
