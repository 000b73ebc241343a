//! Whether what was written can be read.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::compare::{Bodies, Comparing, Difference, Expected, Wrong};
use super::offsets::Offsets;
use super::page_cache;
use super::region::Region;
use super::work_files::Area;
use crate::error::{Error, Result};
use iostep_model::bench::{Access, FileJob, Transfer};

/// Records, times threads, whose last writes are known at once: 64 MiB of numbers.
const WINDOW: u64 = 8 << 20;
/// Bytes that are read at once, if a record is not larger.
const READ_BYTES: u64 = 1 << 20;
/// Writes that are gone through again before somebody looks for interruption.
const LOOK_EVERY: u64 = 1 << 20;

/// Reads one area back after a run that came to its end.
pub struct ReadBack<'a> {
    pub job: &'a FileJob,
    pub area: &'a Area,
    /// The file, or device, that the area is in.
    pub file: &'a File,
    /// By whom: the area's regions.
    pub regions: &'a [Region],
    /// Set by whoever wants it to end early.
    pub interrupted: &'a AtomicBool,
}

impl ReadBack<'_> {
    /// Compares every record with what it must hold: the last write to it, of any thread if they
    /// share the file, or what was there before. The page cache is dropped first. A record that
    /// cannot be read is wrong.
    ///
    /// Errors: `Interrupted`; `Io` if the page cache cannot be dropped.
    pub fn compare(&self, wrong: &mut Wrong) -> Result<()> {
        page_cache::drop(self.file, &self.area.path)?;
        let appends = self.job.access == Access::Append;
        if appends && self.regions.len() > 1 {
            let writes: Vec<u64> = self
                .regions
                .iter()
                .map(|region| region.tally.writes)
                .collect();
            let records = writes.iter().sum();
            self.compare_length(records, wrong)?;
            return self.compare_records(0..records, &Known::Counts(writes), wrong);
        }
        let records = match appends {
            true => self.regions.iter().map(in_last_pass).sum(),
            false => self.job.file_bytes / self.job.record_bytes,
        };
        self.compare_length(records, wrong)?;
        let window = (WINDOW / self.regions.len() as u64).max(1);
        let mut start = 0;
        while start < records {
            let range = start..records.min(start + window);
            start = range.end;
            let known = Known::Last(self.last_writes(range.clone())?);
            self.compare_records(range, &known, wrong)?;
        }
        Ok(())
    }

    fn last_writes(&self, range: Range<u64>) -> Result<LastWrites> {
        let length = (range.end - range.start) as usize;
        let mut last = LastWrites {
            range: range.clone(),
            threads: self.regions.iter().map(|region| region.thread).collect(),
            sequences: vec![0; length * self.regions.len()],
        };
        for (region, last) in self.regions.iter().zip(last.sequences.chunks_mut(length)) {
            self.find_last_writes(region, range.clone(), last)?;
        }
        Ok(last)
    }

    /// Goes once more through the offsets of a region, and notes the last write to each record of
    /// `range`.
    fn find_last_writes(&self, region: &Region, range: Range<u64>, last: &mut [u64]) -> Result<()> {
        let base_bytes = self.area.base_bytes;
        let mut offsets = Offsets::new(self.job, region.thread, base_bytes, &Arc::default());
        let mut sequence = 0;
        if self.job.overlap_percent == 0.0 {
            // Each pass goes to all of the places of the one before.
            let passes = region.offsets.pass().saturating_sub(1);
            offsets.skip_to(passes);
            sequence = passes * offsets.pass_operations();
        }
        while sequence < region.tally.writes {
            let Some(offset_bytes) = offsets.next() else {
                offsets.start_over();
                continue;
            };
            sequence += 1;
            let record = (offset_bytes - base_bytes) / self.job.record_bytes;
            if range.contains(&record) {
                last[(record - range.start) as usize] = sequence;
            }
            if sequence.is_multiple_of(LOOK_EVERY) {
                self.look_for_interruption()?;
            }
        }
        Ok(())
    }

    /// A device has its length.
    fn compare_length(&self, records: u64, wrong: &mut Wrong) -> Result<()> {
        let path = &self.area.path;
        let found = self.file.metadata().map_err(Error::io(path, "look at"))?;
        let expected_bytes = records * self.job.record_bytes;
        if found.is_file() && found.len() != expected_bytes {
            let difference = Difference {
                offset_bytes: found.len().min(expected_bytes),
                expected: format!("{expected_bytes} bytes in all"),
                found: format!("{}", found.len()),
            };
            wrong.count(path, Some(difference));
        }
        Ok(())
    }

    fn compare_records(&self, records: Range<u64>, known: &Known, wrong: &mut Wrong) -> Result<()> {
        let record_bytes = self.job.record_bytes;
        let at_once = (READ_BYTES / record_bytes).max(1);
        let most = at_once.min(records.end - records.start);
        let mut buffer = vec![0; (most * record_bytes) as usize];
        let mut writes = Vec::new();
        let mut next = records.start;
        while next < records.end {
            self.look_for_interruption()?;
            let count = at_once.min(records.end - next);
            let chunk = &mut buffer[..(count * record_bytes) as usize];
            let chunk_bytes = self.area.base_bytes + next * record_bytes;
            let whole = self.file.read_exact_at(chunk, chunk_bytes);
            for (number, record) in (next..).zip(chunk.chunks_exact_mut(record_bytes as usize)) {
                let offset_bytes = self.area.base_bytes + number * record_bytes;
                // If not all of them can be read, it matters which.
                let read = match whole {
                    Ok(()) => Ok(()),
                    Err(_) => self.file.read_exact_at(record, offset_bytes),
                };
                let expected = known.of(number, &mut writes);
                let difference = self.difference(read, record, offset_bytes, &expected);
                wrong.count(&self.area.path, difference);
            }
            next += count;
        }
        Ok(())
    }

    fn difference(
        &self,
        read: std::io::Result<()>,
        record: &[u8],
        offset_bytes: u64,
        expected: &Expected,
    ) -> Option<Difference> {
        let comparing = Comparing {
            job: self.job,
            file: self.area.file_number,
        };
        match read {
            Ok(()) => comparing.record(record, offset_bytes, expected, bodies(self.job)),
            Err(error) => Some(Difference {
                offset_bytes,
                expected: expected.to_string(),
                found: error.to_string(),
            }),
        }
    }

    fn look_for_interruption(&self) -> Result<()> {
        match self.interrupted.load(Ordering::Relaxed) {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }
}

/// What is known of the writes to each record.
enum Known {
    /// How many each thread did, but not where.
    Counts(Vec<u64>),
    Last(LastWrites),
}

/// The last writes to each record of a range.
struct LastWrites {
    range: Range<u64>,
    threads: Vec<u32>,
    /// Their sequence numbers, 0 for none: all records of the first thread, then of the next.
    sequences: Vec<u64>,
}

impl Known {
    /// What a record must hold. `writes` is room for the answer.
    fn of<'a>(&'a self, record: u64, writes: &'a mut Vec<(u32, u64)>) -> Expected<'a> {
        let last = match self {
            Known::Counts(counts) => return Expected::Any(counts),
            Known::Last(last) => last,
        };
        let length = (last.range.end - last.range.start) as usize;
        let index = (record - last.range.start) as usize;
        let sequences = last.sequences.iter().copied().skip(index).step_by(length);
        writes.clear();
        writes.extend(last.threads.iter().copied().zip(sequences));
        writes.retain(|(_, sequence)| *sequence > 0);
        match writes.is_empty() {
            true => Expected::Before,
            false => Expected::Last(writes),
        }
    }
}

/// Two direct writes of one record that are under way at once may leave some sectors of each:
/// then only stamps can be compared. Writes through the page cache exclude each other.
fn bodies(job: &FileJob) -> Bodies {
    let others = job.threads_share() && job.access.random();
    let own =
        job.depth > 1 && (job.overlap_percent > 0.0 || job.measurement.limits.time_ns.is_some());
    match job.transfer == Transfer::Direct && job.access.writes() && (others || own) {
        true => Bodies::Skipped,
        false => Bodies::Compared,
    }
}

/// Writes of a region since it began its last pass; the passes before it were whole.
fn in_last_pass(region: &Region) -> u64 {
    region.tally.writes - region.offsets.pass() * region.offsets.pass_operations()
}
