//! Blocks that say who wrote them.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 16 | magic |
//! | 16 | 4 | file id, little-endian like all that follow |
//! | 20 | 4 | process id of the writer |
//! | 24 | 8 | index of the block in its file |
//! | 32 | 8 | sequence number, growing with every write of the process |
//! | 40 | 4 | CRC-32C of all other bytes |
//! | 44 | 4 | zero |
//! | 48 | 4048 | pseudo-random, so that nothing compresses or deduplicates it |

use crate::sector_map::SectorMap;

/// Length of a stamped block in bytes.
pub const BLOCK_BYTES: usize = 4096;

const MAGIC: &[u8; 16] = b"iostep stamp v1\n";
const CRC_OFFSET: usize = 40;
const RANDOM_OFFSET: usize = 48;

/// A stamped block, or a part of it, found on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub stamp: Stamp,
    /// Which sector of the block is the first.
    pub from: u64,
}

/// Where stamped blocks lie.
pub type Stamps = SectorMap<Found>;

/// Who wrote a block, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Which file, in the workload's own numbering.
    pub file_id: u32,
    /// Process that wrote it.
    pub pid: u32,
    /// Index in the file, in units of [`BLOCK_BYTES`].
    pub index: u64,
    /// Grows with every block that the process writes.
    pub sequence: u64,
}

impl Stamp {
    /// The block's bytes.
    pub fn encode(&self) -> [u8; BLOCK_BYTES] {
        self.encode_with(BLOCK_BYTES)
    }

    /// `random_end`: where the random bytes end.
    fn encode_with(&self, random_end: usize) -> [u8; BLOCK_BYTES] {
        let mut block = [0; BLOCK_BYTES];
        block[..16].copy_from_slice(MAGIC);
        block[16..20].copy_from_slice(&self.file_id.to_le_bytes());
        block[20..24].copy_from_slice(&self.pid.to_le_bytes());
        block[24..32].copy_from_slice(&self.index.to_le_bytes());
        block[32..40].copy_from_slice(&self.sequence.to_le_bytes());
        self.fill_random(&mut block[RANDOM_OFFSET..random_end]);
        let crc = checksum(&block);
        block[CRC_OFFSET..CRC_OFFSET + 4].copy_from_slice(&crc.to_le_bytes());
        block
    }

    /// The same with less that is random, so that half of it can be compressed away.
    pub fn encode_compressible(&self) -> [u8; BLOCK_BYTES] {
        self.encode_with(BLOCK_BYTES / 2)
    }

    /// The stamp of a block; `None` for a block without one, or with a damaged one.
    pub fn decode(block: &[u8]) -> Option<Stamp> {
        if block.len() != BLOCK_BYTES || &block[..16] != MAGIC {
            return None;
        }
        let u32_at = |at: usize| Some(u32::from_le_bytes(block[at..at + 4].try_into().ok()?));
        let u64_at = |at: usize| Some(u64::from_le_bytes(block[at..at + 8].try_into().ok()?));
        if u32_at(CRC_OFFSET)? != checksum(block) {
            return None;
        }
        Some(Stamp {
            file_id: u32_at(16)?,
            pid: u32_at(20)?,
            index: u64_at(24)?,
            sequence: u64_at(32)?,
        })
    }

    /// splitmix64 (Steele, Lea and Flood, OOPSLA 2014), seeded by the stamp.
    fn fill_random(&self, bytes: &mut [u8]) {
        let mut state = self.sequence << 40 ^ self.index << 20 ^ u64::from(self.file_id) << 8;
        state ^= u64::from(self.pid) << 32;
        for chunk in bytes.chunks_exact_mut(8) {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(z ^ z >> 31).to_le_bytes());
        }
    }
}

fn checksum(block: &[u8]) -> u32 {
    crc32c::crc32c_append(
        crc32c::crc32c(&block[..CRC_OFFSET]),
        &block[CRC_OFFSET + 4..],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp {
        file_id: 7,
        pid: 4321,
        index: 99,
        sequence: 12,
    };

    #[test]
    fn a_stamp_reads_back() {
        assert_eq!(Stamp::decode(&STAMP.encode()), Some(STAMP));
        let compressible = STAMP.encode_compressible();
        assert_eq!(Stamp::decode(&compressible), Some(STAMP));
        assert_eq!(compressible[BLOCK_BYTES / 2..], [0; BLOCK_BYTES / 2]);
    }

    #[test]
    fn any_flipped_bit_makes_the_block_anonymous() {
        let whole = STAMP.encode();
        for byte in (0..BLOCK_BYTES).step_by(13) {
            let mut damaged = whole;
            damaged[byte] ^= 0x10;
            assert_eq!(Stamp::decode(&damaged), None, "byte {byte}");
        }
    }

    #[test]
    fn blocks_of_neighbours_share_no_content() {
        let next = Stamp {
            index: STAMP.index + 1,
            ..STAMP
        };
        assert_ne!(STAMP.encode()[48..56], next.encode()[48..56]);
    }
}
