//! Reads and writes of files and block devices.
//!
//! ```text
//! check       jobs that make no sense
//! capability  what the target can do
//! descriptors so many threads can have files open
//! ground      the target: work_files in a work_directory, or a device
//! page_cache  what of the files is in memory at the start
//! lane        what a thread works on: offsets say where, payload what (stamp: whose, when)
//! psync       a worker that calls; sync: what is called after writes; calls: how both call
//! uring       a worker that keeps many operations under way
//! mmap        a worker that copies; bus: how it survives SIGBUS
//! verify      reads everything back; compare: whether a record holds what it should
//! ```

mod aligned;
mod bus;
mod calls;
mod capability;
mod check;
mod compare;
mod descriptors;
mod device;
mod ground;
mod lane;
mod mmap;
mod offsets;
mod page_cache;
mod payload;
mod psync;
mod stamp;
mod sync;
mod uring;
mod verify;
mod work_files;

#[cfg(test)]
mod sample;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use iostep_model::bench::{
    Engine, FileJob, PageCacheState, Run, RunState, Sync, Transfer, Verification,
};
use rustix::fs::OFlags;

use self::compare::Wrong;
use self::ground::Ground;
use self::lane::{Lane, Laned, Tally};
use self::mmap::Mmap;
use self::offsets::Offsets;
use self::psync::Psync;
use self::uring::Uring;
use self::verify::ReadBack;
use crate::engine::{Crew, Observer, Worker};
use crate::error::{Error, Result};

/// A job whose target is ready. Dropping it removes the work files, unless they are to be kept.
#[derive(Debug)]
pub struct Bench<'a> {
    job: FileJob,
    interrupted: &'a AtomicBool,
    ground: Ground,
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
        let ground = Ground::take(job)?;
        ground.make(job, interrupted, observer)?;
        Ok(Bench {
            job: job.clone(),
            interrupted,
            ground,
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
            self.ground.make(&self.job, self.interrupted, observer)?;
        }
        self.ready = !self.job.access.writes();
        let page_cache = self.prepare_page_cache()?;
        let lanes = self.lanes()?;
        let mut run = self.run_lanes(lanes, observer)?;
        run.page_cache = page_cache;
        Ok(run)
    }

    /// The one place that decides which worker runs.
    fn run_lanes(&self, lanes: Vec<Lane>, observer: &mut dyn Observer) -> Result<Run> {
        match self.job.engine {
            Engine::Psync if self.job.transfer == Transfer::Mmap => {
                self.work(lanes, Mmap::new, observer)
            }
            Engine::Psync => self.work(lanes, Psync::new, observer),
            Engine::Uring => self.work(lanes, Uring::new, observer),
        }
    }

    fn work<W: Worker + Laned>(
        &self,
        lanes: Vec<Lane>,
        worker: impl Fn(Lane) -> W,
        observer: &mut dyn Observer,
    ) -> Result<Run> {
        let crew = Crew {
            cpus: &self.job.cpus,
            limits: self.job.limits,
            pace: self.job.pace,
            interrupted: self.interrupted,
        };
        let mut workers: Vec<W> = lanes.into_iter().map(worker).collect();
        let mut run = crew.run(&mut workers, observer)?;
        if self.job.verify && run.state == RunState::Complete {
            let lanes: Vec<_> = workers.into_iter().map(W::into_lane).collect();
            match self.verify(&lanes) {
                Ok(verification) => run.verification = Some(verification),
                Err(Error::Interrupted) => run.state = RunState::Interrupted,
                Err(error) => return Err(error),
            }
        }
        Ok(run)
    }

    fn verify(&self, lanes: &[Lane]) -> Result<Verification> {
        let mut wrong = Wrong::default();
        for lane in lanes {
            wrong.add(&lane.tally.wrong);
        }
        for area in self.ground.areas(&self.job) {
            let read_back = ReadBack {
                job: &self.job,
                file: &self.ground.open(&area, OFlags::RDONLY)?,
                lanes: &lanes[area.threads.start as usize..area.threads.end as usize],
                interrupted: self.interrupted,
                area: &area,
            };
            read_back.compare(&mut wrong)?;
        }
        Ok(wrong.into_verification())
    }

    fn lanes(&self) -> Result<Vec<Lane>> {
        let end = Arc::default();
        let flags = self.open_flags();
        let mut lanes = Vec::new();
        for area in self.ground.areas(&self.job) {
            for thread in area.threads.clone() {
                lanes.push(Lane {
                    file: self.ground.open(&area, flags)?,
                    path: area.path.clone(),
                    file_number: area.file_number,
                    thread,
                    offsets: Offsets::new(&self.job, thread, area.base_bytes, &end),
                    tally: Tally::default(),
                    job: self.job.clone(),
                });
            }
        }
        Ok(lanes)
    }

    fn open_flags(&self) -> OFlags {
        let mut flags = match self.job.access.writes() {
            true => OFlags::RDWR,
            false => OFlags::RDONLY,
        };
        flags.set(OFlags::DIRECT, self.job.transfer == Transfer::Direct);
        match self.job.sync {
            Sync::OSync => flags |= OFlags::SYNC,
            // rustix's DSYNC is O_SYNC where it makes the system calls itself (1.1.6).
            Sync::ODsync => flags |= OFlags::from_bits_retain(libc::O_DSYNC as u32),
            _ => {}
        }
        flags
    }

    /// `None` for a device.
    fn prepare_page_cache(&self) -> Result<Option<PageCacheState>> {
        let mut state = PageCacheState {
            dirty_pages: Some(0),
            ..PageCacheState::default()
        };
        for area in self.ground.areas(&self.job) {
            let file = self.ground.open(&area, OFlags::RDONLY)?;
            page_cache::prepare(&file, &area.path, self.job.page_cache, self.interrupted)?;
            page_cache::add_state(&file, &area.path, &mut state)?;
        }
        Ok(matches!(self.ground, Ground::Files(_)).then_some(state))
    }
}
