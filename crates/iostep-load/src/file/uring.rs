//! Many operations at once, by `io_uring(7)`.

mod pump;
mod ring;

use self::pump::Pump;
use self::ring::Ring;
use super::region::{Region, RegionWorker};
use crate::engine::{Fault, Thread, Worker};
use crate::error::Result;

pub use ring::probe;

/// A thread that keeps as many operations under way as the job's depth says.
///
/// Each operation is a transfer and, if that completed a group of writes, the sync of this group:
/// it is submitted when all writes of the group are complete, while others go on. With depth 1 that
/// is what psync does.
pub struct Uring {
    region: Region,
    ring: Option<Ring>,
}

impl Uring {
    /// One that works on `region`.
    pub fn new(region: Region) -> Uring {
        Uring { region, ring: None }
    }
}

impl RegionWorker for Uring {
    fn into_region(self) -> Region {
        self.region
    }
}

impl Worker for Uring {
    /// A ring belongs to the thread that made it.
    fn prepare(&mut self) -> Result<()> {
        let job = &self.region.job;
        let payload = self.region.payload(job.depth as usize)?;
        let ring = Ring::new(job.depth, job.polled, &self.region.file, payload)?;
        self.ring = Some(ring);
        Ok(())
    }

    fn work(&mut self, thread: &mut Thread<'_>) -> std::result::Result<(), Fault> {
        let ring = self.ring.take().expect("made by prepare");
        Pump::new(&mut self.region, ring).run(thread)
    }
}

#[cfg(test)]
mod tests;
