//! Temporal locality: how often and how soon a block is written again (FI'13 section 2.3).
//!
//! A block is 4 KiB, counted from the start of the device. It is hot from its second access on;
//! reads and writes are looked at apart.

use std::collections::BTreeMap;

use iostep_model::SECTOR_BYTES;
use iostep_model::manifest::Manifest;
use iostep_model::operation::Operation;
use iostep_model::table::Request;
use serde::Serialize;

use super::amount::{Split, ratio};
use super::distribution::{Share, shares};
use super::latency::Percentiles;

/// Bytes in the block whose rewrites are counted.
pub const BLOCK_BYTES: u64 = 4096;
const BLOCK_SECTORS: u64 = BLOCK_BYTES / SECTOR_BYTES;

/// Whether blocks were accessed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Heat {
    /// Bytes in blocks that were accessed before in the same direction; requests with such bytes.
    Hot,
    /// The rest.
    Cold,
}

iostep_model::listed! { Heat,
    Hot = "hot",
    Cold = "cold",
}

/// How often and how soon blocks are written again.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rewrites {
    /// Different blocks that were written.
    pub blocks: u64,
    /// Writes of blocks; a request of 16 KiB is four.
    pub block_writes: u64,
    /// Writes of blocks that had been written before in this trace.
    pub block_rewrites: u64,
    /// `block_rewrites / block_writes`.
    pub rewrite_share: Option<f64>,
    /// Blocks by the number of times they were written.
    pub times_written: Vec<TimesWritten>,
    /// From one write of a block to its next, over all rewrites.
    pub interval: Option<Percentiles>,
}

/// Blocks that were written a number of times: above half of `up_to_writes` and up to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TimesWritten {
    /// The largest number of writes in the row, a power of two.
    pub up_to_writes: u64,
    pub blocks: u64,
}

/// A run of blocks that were last accessed by the same request.
#[derive(Clone, Copy)]
struct Run {
    end_block: u64,
    last_ns: u64,
}

/// The blocks that were accessed. An access makes one run of all that it covers, so there are at
/// most two runs more than before, however long the request is.
#[derive(Default)]
struct Accessed {
    runs: BTreeMap<u64, Run>,
    /// Reused between requests.
    found: Vec<(u64, Run)>,
}

impl Accessed {
    /// Cuts the run around `block`, if any, so that none crosses it.
    fn cut(&mut self, block: u64) {
        if let Some((_, run)) = self.runs.range_mut(..block).next_back()
            && run.end_block > block
        {
            let rest = *run;
            run.end_block = block;
            self.runs.insert(block, rest);
        }
    }

    /// Notes an access and calls `again` with each part that was accessed before: its first
    /// block, its end and when.
    fn access(&mut self, first: u64, end: u64, now_ns: u64, mut again: impl FnMut(u64, &Run)) {
        self.cut(first);
        self.cut(end);
        self.found.clear();
        self.found.extend(
            self.runs
                .range(first..end)
                .map(|(first, run)| (*first, *run)),
        );
        for (run_first, run) in &self.found {
            again(*run_first, run);
            self.runs.remove(run_first);
        }
        self.runs.insert(
            first,
            Run {
                end_block: end,
                last_ns: now_ns,
            },
        );
    }
}

/// How often each block is covered by ranges that are added in any order.
#[derive(Default)]
struct Coverage {
    first_blocks: Vec<u64>,
    end_blocks: Vec<u64>,
}

impl Coverage {
    fn add(&mut self, first: u64, end: u64) {
        self.first_blocks.push(first);
        self.end_blocks.push(end);
    }

    /// Calls `each` with runs of equally often covered blocks: how often, and how many.
    fn sweep(mut self, mut each: impl FnMut(u64, u64)) {
        self.first_blocks.sort_unstable();
        self.end_blocks.sort_unstable();
        let mut firsts = self.first_blocks.into_iter().peekable();
        let (mut depth, mut from) = (0, 0);
        for end in self.end_blocks {
            while let Some(first) = firsts.next_if(|first| *first < end) {
                if depth > 0 && first > from {
                    each(depth, first - from);
                }
                (depth, from) = (depth + 1, first);
            }
            if end > from {
                each(depth, end - from);
            }
            (depth, from) = (depth - 1, end);
        }
    }
}

/// Sectors between the beginnings of two disks: more than any has.
const DISK_SECTORS_LOG2: u32 = 46;

#[derive(Default)]
pub(super) struct Collector {
    /// Of each device.
    start_sectors: Vec<u64>,
    reads: Accessed,
    writes: Accessed,
    split: [Split; 2],
    written: Coverage,
    block_writes: u64,
    /// Interval and number of blocks.
    intervals: Vec<(u64, u64)>,
}

impl Collector {
    pub(super) fn new(manifest: &Manifest) -> Collector {
        let devices = (0..manifest.device_count()).map(|index| manifest.device_at(index as u8));
        Collector {
            start_sectors: devices.map(|device| device.start_sector).collect(),
            ..Collector::default()
        }
    }

    pub(super) fn add(&mut self, request: &Request) {
        let is_read = request.operation == Operation::Read;
        if (!is_read && !request.operation.is_write()) || request.bytes == 0 {
            return;
        }
        let sector = self.sector_of(request);
        let (from, to) = (
            sector * SECTOR_BYTES,
            sector * SECTOR_BYTES + u64::from(request.bytes),
        );
        let (first, end) = (sector / BLOCK_SECTORS, to.div_ceil(BLOCK_BYTES));
        let accessed = if is_read {
            &mut self.reads
        } else {
            &mut self.writes
        };
        let intervals = &mut self.intervals;
        let mut hot_bytes = 0;
        accessed.access(first, end, request.issue_ns, |run_first, run| {
            let (a, b) = (run_first * BLOCK_BYTES, run.end_block * BLOCK_BYTES);
            hot_bytes += b.min(to).saturating_sub(a.max(from));
            if !is_read {
                let interval_ns = request.issue_ns.saturating_sub(run.last_ns);
                intervals.push((interval_ns, run.end_block - run_first));
            }
        });
        if !is_read {
            self.written.add(first, end);
            self.block_writes += end - first;
        }
        self.count(request, hot_bytes);
    }

    /// The sector on its device, as if the disks lay one behind the other.
    fn sector_of(&self, request: &Request) -> u64 {
        let start = self.start_sectors.get(usize::from(request.device));
        let sector = request.sector.saturating_sub(start.copied().unwrap_or(0));
        let disk = u64::from(request.device) << DISK_SECTORS_LOG2;
        disk + sector % (1 << DISK_SECTORS_LOG2)
    }

    fn count(&mut self, request: &Request, hot_bytes: u64) {
        let cold_bytes = u64::from(request.bytes) - hot_bytes;
        for (heat, bytes) in [(Heat::Hot, hot_bytes), (Heat::Cold, cold_bytes)] {
            if bytes > 0
                && let Some(side) = self.split[heat as usize].side(request.operation)
            {
                side.add(bytes);
            }
        }
    }

    pub(super) fn finish(mut self) -> (Vec<Share<Heat>>, Rewrites) {
        let mut blocks = 0;
        let mut by_log2 = [0; 65];
        self.written.sweep(|writes, length| {
            blocks += length;
            by_log2[writes.next_power_of_two().ilog2() as usize] += length;
        });
        let times_written = by_log2
            .iter()
            .enumerate()
            .filter(|(_, blocks)| **blocks > 0);
        let block_rewrites = self.block_writes - blocks;
        let rewrites = Rewrites {
            blocks,
            block_writes: self.block_writes,
            block_rewrites,
            rewrite_share: ratio(block_rewrites, self.block_writes),
            times_written: times_written
                .map(|(log2, blocks)| TimesWritten {
                    up_to_writes: 1 << log2,
                    blocks: *blocks,
                })
                .collect(),
            interval: Percentiles::of_weighted(&mut self.intervals),
        };
        (shares(&self.split, |row| Heat::ALL[row], true), rewrites)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_count_like_single_blocks(accesses in vec((0u64..60, 1u64..20), 0..60)) {
            let mut runs = Accessed::default();
            let mut coverage = Coverage::default();
            let mut blocks = BTreeMap::<u64, (u64, u64)>::new();
            for (now_ns, (first, length)) in accesses.into_iter().enumerate() {
                let now_ns = now_ns as u64;
                let mut found = Vec::new();
                coverage.add(first, first + length);
                runs.access(first, first + length, now_ns, |run_first, run| {
                    found.extend((run_first..run.end_block).map(|b| (b, run.last_ns)));
                });
                let expected: Vec<(u64, u64)> = blocks
                    .range(first..first + length)
                    .map(|(block, (last_ns, _))| (*block, *last_ns))
                    .collect();
                prop_assert_eq!(found, expected);
                for block in first..first + length {
                    let entry = blocks.entry(block).or_default();
                    *entry = (now_ns, entry.1 + 1);
                }
            }
            let mut counts = BTreeMap::<u64, u64>::new();
            coverage.sweep(|times, length| *counts.entry(times).or_default() += length);
            let mut expected = BTreeMap::new();
            for (_, times) in blocks.values() {
                *expected.entry(*times).or_default() += 1;
            }
            prop_assert_eq!(counts, expected);
        }
    }
}
