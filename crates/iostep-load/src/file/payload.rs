//! What is written, and into what is read.

use iostep_model::bench::{FileJob, PayloadKind};

use super::aligned::Aligned;
use super::stamp::{self, LEAST_BYTES, Stamp, UNIT_BYTES};
use crate::error::Result;

/// Neighbours in a file come from this many bytes in turn, at least, in whatever order they are
/// written: so much differs within the range over which filesystems compress (128 KiB on btrfs),
/// and it stays in a core's cache.
const POOL_BYTES: usize = 256 << 10;

/// One thread's buffers, numbered from 0, one record each, one behind the other from a page's
/// start on.
#[derive(Debug)]
pub struct Payload {
    memory: Aligned,
    record_bytes: usize,
    slots: usize,
    /// The part of a record that has stamps: all of it, or nothing.
    stamped_bytes: usize,
}

impl Payload {
    /// Buffers of what `thread` writes to file number `file`: at least `least_slots`, and as many
    /// as it takes that the data do not compress.
    ///
    /// Errors: `Io` without memory.
    pub fn to_write(job: &FileJob, thread: u32, file: u32, least_slots: usize) -> Result<Payload> {
        let record_bytes = job.record_bytes as usize;
        let slots = (POOL_BYTES / record_bytes).max(least_slots).max(1);
        let mut payload = Payload {
            memory: Aligned::new(slots * record_bytes)?,
            record_bytes,
            slots,
            stamped_bytes: 0,
        };
        match job.payload {
            PayloadKind::Constant(byte) => payload.all_mut().fill(byte),
            PayloadKind::Incompressible => payload.fill(job.measurement.seed, thread, file),
        }
        Ok(payload)
    }

    /// Empty buffers.
    ///
    /// Errors: `Io` without memory.
    pub fn to_read(job: &FileJob, slots: usize) -> Result<Payload> {
        let record_bytes = job.record_bytes as usize;
        Ok(Payload {
            memory: Aligned::new(slots * record_bytes)?,
            record_bytes,
            slots,
            stamped_bytes: 0,
        })
    }

    fn fill(&mut self, seed: u64, thread: u32, file: u32) {
        if self.record_bytes >= LEAST_BYTES {
            self.stamped_bytes = self.record_bytes;
        }
        for slot in 0..self.slots {
            let record = self.slot_mut(slot);
            let blank = Stamp {
                seed,
                offset_bytes: 0,
                sequence: 0,
                file,
                thread,
                slot: slot as u64,
            };
            for (number, unit) in record.chunks_mut(UNIT_BYTES).enumerate() {
                stamp::fill(unit, seed, thread, blank.slot, number);
                if unit.len() >= LEAST_BYTES {
                    blank.put(unit);
                }
            }
        }
    }

    /// How many buffers there are.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The buffer that a record at `offset_bytes` should come from.
    #[inline]
    pub fn slot_at(&self, offset_bytes: u64) -> usize {
        (offset_bytes / self.record_bytes as u64) as usize % self.slots
    }

    /// The memory behind the buffers, for whoever registers it with the kernel.
    pub fn memory(&self) -> &Aligned {
        &self.memory
    }

    /// Makes a buffer ready for write number `sequence` of its thread, at `offset_bytes`.
    #[inline]
    pub fn stamp(&mut self, slot: usize, offset_bytes: u64, sequence: u64) -> &[u8] {
        let stamped_bytes = self.stamped_bytes;
        let record = self.slot_mut(slot);
        let mut at = 0;
        while at + LEAST_BYTES <= stamped_bytes {
            Stamp::renew(&mut record[at..], offset_bytes + at as u64, sequence);
            at += UNIT_BYTES;
        }
        record
    }

    /// A buffer.
    #[inline]
    pub fn slot(&self, slot: usize) -> &[u8] {
        self.memory
            .part(slot * self.record_bytes, self.record_bytes)
    }

    /// A buffer, to read into.
    #[inline]
    pub fn slot_mut(&mut self, slot: usize) -> &mut [u8] {
        self.memory
            .part_mut(slot * self.record_bytes, self.record_bytes)
    }

    /// All buffers as one.
    pub fn all(&self) -> &[u8] {
        self.memory.part(0, self.memory.length())
    }

    fn all_mut(&mut self) -> &mut [u8] {
        self.memory.part_mut(0, self.memory.length())
    }
}

#[cfg(test)]
mod tests;
