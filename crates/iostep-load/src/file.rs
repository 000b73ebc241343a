//! Reads and writes of files and block devices.
//!
//! ```text
//! check       jobs that make no sense
//! capability  what the target can do
//! descriptors so many threads can have files open
//! base        the target: work_files in a work_directory, or a device
//! page_cache  what of the files is in memory at the start
//! region      what a thread works on: offsets say where, payload what (stamp: whose, when)
//! psync       a worker that calls; sync: what is called after writes; calls: how both call
//! uring       a worker that keeps many operations under way
//! mmap        a worker that copies; bus: how it survives SIGBUS
//! verify      reads everything back; compare: whether a record holds what it should
//! ```

mod aligned;
mod base;
mod bus;
mod calls;
mod capability;
mod check;
mod compare;
mod descriptors;
mod device;
mod mmap;
mod offsets;
mod page_cache;
mod payload;
mod psync;
mod region;
mod stamp;
mod sync;
mod uring;
mod verify;
mod work_files;

#[cfg(test)]
mod sample;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use iostep_model::bench::{Engine, FileJob, PageCacheState, Run, RunState, Transfer, Verification};
use rustix::fs::OFlags;

use self::base::Base;
use self::compare::Wrong;
use self::mmap::Mmap;
use self::offsets::Offsets;
use self::psync::Psync;
use self::region::{Region, RegionWorker, Tally};
use self::uring::Uring;
use self::verify::ReadBack;
use crate::engine::{Observer, Pool, Worker};
use crate::error::{Error, Result};

/// A job whose target is ready. Dropping it removes the work files, unless they are to be kept.
#[derive(Debug)]
pub struct Bench<'a> {
    job: FileJob,
    interrupted: &'a AtomicBool,
    base: Base,
    /// Whether the next run finds the target as the job wants it.
    ready: bool,
}

impl Bench<'_> {
    /// Checks the job and its target, then makes the work files. `observer` is told how far that
    /// is; `interrupted` ends it early, and the runs as well.
    ///
    /// Errors: `Usage` for a job that makes no sense; `Unsupported` for what kernel, filesystem or
    /// device cannot; `Refused` without space or for a target that is in use; `Interrupted`; `Io`.
    pub fn open<'a>(
        job: &FileJob,
        interrupted: &'a AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<Bench<'a>> {
        check::check(job)?;
        descriptors::allow_for(job.threads)?;
        let base = Base::take(job)?;
        base.make(job, interrupted, observer)?;
        Ok(Bench {
            job: job.clone(),
            interrupted,
            base,
            ready: true,
        })
    }

    /// Runs the job once. Fresh files that an earlier run has written to are made anew before.
    /// Only a run that came to its end is verified.
    ///
    /// Errors: those of making the files, and whatever stands against beginning. What fails later
    /// is in the run.
    pub fn run(&mut self, observer: &mut dyn Observer) -> Result<Run> {
        if !self.ready {
            self.base.make(&self.job, self.interrupted, observer)?;
        }
        self.ready = !self.job.access.writes();
        let page_cache = self.prepare_page_cache()?;
        let regions = self.regions()?;
        let mut run = self.run_regions(regions, observer)?;
        run.page_cache = page_cache;
        Ok(run)
    }

    /// The one place that decides which worker runs.
    fn run_regions(&self, regions: Vec<Region>, observer: &mut dyn Observer) -> Result<Run> {
        match self.job.engine {
            Engine::Psync if self.job.transfer == Transfer::Mmap => {
                self.work(regions, Mmap::new, observer)
            }
            Engine::Psync => self.work(regions, Psync::new, observer),
            Engine::Uring => self.work(regions, Uring::new, observer),
        }
    }

    fn work<W: Worker + RegionWorker>(
        &self,
        regions: Vec<Region>,
        worker: impl Fn(Region) -> W,
        observer: &mut dyn Observer,
    ) -> Result<Run> {
        let pool = Pool {
            measurement: &self.job.measurement,
            interrupted: self.interrupted,
        };
        let mut workers: Vec<W> = regions.into_iter().map(worker).collect();
        let mut run = pool.run(&mut workers, observer)?;
        if self.job.measurement.verify && run.state == RunState::Complete {
            let regions: Vec<_> = workers.into_iter().map(W::into_region).collect();
            match self.verify(&regions) {
                Ok(verification) => run.verification = Some(verification),
                Err(Error::Interrupted) => run.state = RunState::Interrupted,
                Err(error) => return Err(error),
            }
        }
        Ok(run)
    }

    fn verify(&self, regions: &[Region]) -> Result<Verification> {
        let mut wrong = Wrong::default();
        for region in regions {
            wrong.add(&region.tally.wrong);
        }
        for area in self.base.areas(&self.job) {
            let read_back = ReadBack {
                job: &self.job,
                file: &self.base.open(&area, OFlags::RDONLY)?,
                regions: &regions[area.threads.start as usize..area.threads.end as usize],
                interrupted: self.interrupted,
                area: &area,
            };
            read_back.compare(&mut wrong)?;
        }
        Ok(wrong.into_verification())
    }

    fn regions(&self) -> Result<Vec<Region>> {
        let end = Arc::default();
        let flags = self.open_flags();
        let mut regions = Vec::new();
        for area in self.base.areas(&self.job) {
            for thread in area.threads.clone() {
                regions.push(Region {
                    file: self.base.open(&area, flags)?,
                    path: area.path.clone(),
                    file_number: area.file_number,
                    thread,
                    offsets: Offsets::new(&self.job, thread, area.base_bytes, &end),
                    tally: Tally::default(),
                    job: self.job.clone(),
                });
            }
        }
        Ok(regions)
    }

    fn open_flags(&self) -> OFlags {
        let mut flags = match self.job.access.writes() {
            true => OFlags::RDWR,
            false => OFlags::RDONLY,
        };
        flags.set(OFlags::DIRECT, self.job.transfer == Transfer::Direct);
        flags | sync::open_flags(self.job.sync)
    }

    /// `None` for a device.
    fn prepare_page_cache(&self) -> Result<Option<PageCacheState>> {
        let mut state = PageCacheState {
            dirty_pages: Some(0),
            ..PageCacheState::default()
        };
        for area in self.base.areas(&self.job) {
            let file = self.base.open(&area, OFlags::RDONLY)?;
            page_cache::prepare(&file, &area.path, self.job.page_cache, self.interrupted)?;
            page_cache::add_state(&file, &area.path, &mut state)?;
        }
        Ok(matches!(self.base, Base::Files(_)).then_some(state))
    }
}
