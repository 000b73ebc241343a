//! Which completions the flush machinery still holds.
//!
//! A write that needs flushes around it completes twice: once as plain data, marked
//! `RQF_FLUSH_SEQ`, and once, with no bytes left, when its flushes are done. Tracepoints do not
//! show the mark, but they show what it depends on: the flags that the bio had and those that
//! the request was issued with. Source: `blk_insert_flush` and `blk_flush_complete_seq`,
//! block/blk-flush.c.

use std::collections::HashMap;

use iostep_model::{Flags, Operation};

use crate::tracefs::seen::Range;

/// A bound for devices that never finish what they were given.
const MAX_PENDING: usize = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Queued(Flags),
    /// Issued by the flush machinery.
    Sequenced,
}

/// Writes with flush or FUA that are under way, by their first sector.
#[derive(Debug, Default)]
pub(crate) struct Flushes {
    pending: HashMap<u64, Step>,
}

impl Flushes {
    /// A bio was queued.
    pub fn queued(&mut self, range: &Range) {
        let flushes = range.flags.has(Flags::PREFLUSH) || range.flags.has(Flags::FUA);
        if range.bytes > 0 && flushes {
            if self.pending.len() >= MAX_PENDING {
                self.pending.clear();
            }
            self.pending.insert(range.sector, Step::Queued(range.flags));
        }
    }

    /// A request was issued: its flags tell what the device does by itself.
    pub fn issued(&mut self, range: &Range) {
        if range.bytes == 0 {
            return;
        }
        let Some(step) = self.pending.get_mut(&range.sector) else {
            return;
        };
        if let Step::Queued(flags) = *step {
            let postflush = flags.has(Flags::FUA) && !range.flags.has(Flags::FUA);
            if flags.has(Flags::PREFLUSH) || postflush {
                *step = Step::Sequenced;
            } else {
                self.pending.remove(&range.sector);
            }
        }
    }

    /// True if this completion is not the last of its request, or is the flush's own.
    pub fn in_sequence(&mut self, range: &Range) -> bool {
        if range.operation == Operation::Flush {
            return true;
        }
        if range.bytes == 0 {
            self.pending.remove(&range.sector);
            return false;
        }
        self.pending.get(&range.sector) == Some(&Step::Sequenced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(bytes: u32, flags: Flags) -> Range {
        Range {
            sector: 64,
            bytes,
            operation: Operation::Write,
            flags,
        }
    }

    #[test]
    fn a_commit_block_completes_in_sequence_and_then_for_good() {
        let mut flushes = Flushes::default();
        let both = Flags::PREFLUSH.with(Flags::FUA).with(Flags::SYNC);
        flushes.queued(&write(4096, both));
        flushes.issued(&write(4096, Flags::SYNC));
        assert!(flushes.in_sequence(&write(4096, Flags::SYNC)));
        assert!(!flushes.in_sequence(&write(0, Flags::SYNC)));
        assert!(!flushes.in_sequence(&write(4096, Flags::SYNC)));
    }

    #[test]
    fn fua_that_the_device_does_itself_is_no_sequence() {
        let mut flushes = Flushes::default();
        flushes.queued(&write(4096, Flags::FUA));
        flushes.issued(&write(4096, Flags::FUA));
        assert!(!flushes.in_sequence(&write(4096, Flags::FUA)));
    }

    #[test]
    fn a_flush_is_always_part_of_a_sequence() {
        let flush = Range {
            sector: 0,
            bytes: 0,
            operation: Operation::Flush,
            flags: Flags::PREFLUSH,
        };
        assert!(Flushes::default().in_sequence(&flush));
        assert!(!Flushes::default().in_sequence(&write(4096, Flags::SYNC)));
    }
}
