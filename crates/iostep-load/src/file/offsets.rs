//! Where each operation of a thread goes.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use iostep_model::bench::{Access, FileJob, Sharing};

use crate::engine::random::{Permutation, Random};

/// The offsets of one thread's pass over its file, and of the passes after it. Two of the same job
/// and thread are alike, but for appends to a shared file.
#[derive(Clone, Debug)]
pub struct Offsets {
    base_bytes: u64,
    record_bytes: u64,
    /// Operations of a pass.
    records: u64,
    /// How many of this pass were given out.
    given: u64,
    pass: u64,
    order: Order,
    seed: u64,
    thread: u32,
    overlap_percent: f64,
}

#[derive(Clone, Debug)]
enum Order {
    Sequential,
    /// The next place that no thread has taken.
    Claimed(Arc<AtomicU64>),
    Permuted(Permutation),
    Overlapping(Overlapping),
}

/// A permutation some of whose places are replaced by earlier ones.
#[derive(Clone, Debug)]
struct Overlapping {
    permutation: Permutation,
    random: Random,
    /// Different places so far.
    places: u64,
    /// Operations that have still to go to an earlier place.
    repeats: u64,
}

impl Offsets {
    /// Those of thread `thread` of a job that was checked. Its part of the file begins at
    /// `base_bytes`. `end` is where a shared file ends, in records, if the threads append.
    pub fn new(job: &FileJob, thread: u32, base_bytes: u64, end: &Arc<AtomicU64>) -> Offsets {
        let records = job.file_bytes / job.record_bytes;
        let part = records / u64::from(job.threads);
        let (records, base_bytes) = match (job.sharing, job.access) {
            (Sharing::OwnFile, _) | (_, Access::RandomRead | Access::RandomWrite) => {
                (records, base_bytes)
            }
            (Sharing::SharedFile, Access::Append) => (part, base_bytes),
            (Sharing::SharedFile, Access::Read | Access::Write) => {
                let before_bytes = part * job.record_bytes * u64::from(thread);
                (part, base_bytes + before_bytes)
            }
        };
        let mut offsets = Offsets {
            base_bytes,
            record_bytes: job.record_bytes,
            records,
            given: 0,
            pass: 0,
            order: match (job.access, job.sharing) {
                (Access::Append, Sharing::SharedFile) if job.threads > 1 => {
                    Order::Claimed(Arc::clone(end))
                }
                _ => Order::Sequential,
            },
            seed: job.measurement.seed,
            thread,
            overlap_percent: job.overlap_percent,
        };
        if job.access.random() {
            offsets.shuffle();
        }
        offsets
    }

    /// Begins the next pass: at random, in another order.
    pub fn start_over(&mut self) {
        self.skip_to(self.pass + 1);
    }

    /// Goes to the start of a pass, which is counted from 0.
    pub fn skip_to(&mut self, pass: u64) {
        self.given = 0;
        self.pass = pass;
        if matches!(self.order, Order::Permuted(_) | Order::Overlapping(_)) {
            self.shuffle();
        }
    }

    /// The number of this pass, from 0.
    pub fn pass(&self) -> u64 {
        self.pass
    }

    /// The part of the file that a pass goes over, in bytes; of a shared file that is appended to,
    /// only its length means anything.
    pub fn span_bytes(&self) -> Range<u64> {
        self.base_bytes..self.base_bytes + self.records * self.record_bytes
    }

    pub fn pass_operations(&self) -> u64 {
        self.records
    }

    fn shuffle(&mut self) {
        let stream = self.pass << 16 | u64::from(self.thread);
        let permutation = Permutation::new(self.records, self.seed, stream);
        let wanted = (self.records as f64 * self.overlap_percent / 100.0).round() as u64;
        // The first operation of a pass has no earlier one.
        let repeats = wanted.min(self.records - 1);
        self.order = if repeats == 0 {
            Order::Permuted(permutation)
        } else {
            Order::Overlapping(Overlapping {
                permutation,
                random: Random::new(!self.seed, stream),
                places: 0,
                repeats,
            })
        };
    }
}

impl Iterator for Offsets {
    type Item = u64;

    /// The next offset in bytes; `None` at the end of the pass.
    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.given == self.records {
            return None;
        }
        let record = match &mut self.order {
            Order::Sequential => self.given,
            Order::Permuted(permutation) => permutation.at(self.given),
            Order::Overlapping(overlapping) => overlapping.next(self.records - self.given),
            Order::Claimed(end) => end.fetch_add(1, Ordering::Relaxed),
        };
        self.given += 1;
        Some(self.base_bytes + record * self.record_bytes)
    }
}

impl Overlapping {
    /// The next record, when `left` operations are to come. Which of them repeat a place is drawn
    /// so that the share is exact: Knuth, The art of computer programming 2, 3.4.2, algorithm S.
    fn next(&mut self, left: u64) -> u64 {
        let repeats = self.places > 0 && self.random.below(left) < self.repeats;
        let place = if repeats {
            self.repeats -= 1;
            self.random.below(self.places)
        } else {
            self.places += 1;
            self.places - 1
        };
        self.permutation.at(place)
    }
}

#[cfg(test)]
mod tests;
