//! What the threads work on: files or a device.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use iostep_model::bench::{FileJob, Files, Sharing, Target};
use rustix::fs::OFlags;

use super::capability;
use super::device::{BlockDevice, Destruction};
use super::work_files::{Making, WorkFiles, write_content};
use crate::engine::Observer;
use crate::error::{Error, Result};
use crate::work_directory::WorkDirectory;

/// Work files, or a device.
#[derive(Debug)]
pub enum Ground {
    /// Files in a directory of our own.
    Files(WorkFiles),
    /// A device without a filesystem.
    Device(BlockDevice),
}

/// A file, or a part of a device, that some threads work on.
#[derive(Clone, Debug)]
pub struct Area {
    /// Number of the file; 0 for a device.
    pub file_number: u32,
    /// Path of file or device, for people.
    pub path: PathBuf,
    /// Where in it the area begins.
    pub base_bytes: u64,
    /// Who works on it.
    pub threads: Range<u32>,
}

impl Ground {
    /// Takes the target of a job that was checked, and asks it whether it can do what is wanted.
    /// Nothing is made yet.
    ///
    /// Errors: those of [`WorkDirectory::open`], [`BlockDevice::open`] and [`capability::check`].
    pub fn take(job: &FileJob) -> Result<Ground> {
        match &job.target {
            Target::Directory(path) => {
                let directory = WorkDirectory::open(path, "iostep-bench")?;
                let scratch = capability::scratch(directory.as_fd(), directory.path())?;
                capability::check(job, &scratch, path)?;
                Ok(Ground::Files(WorkFiles::new(job, directory)))
            }
            Target::BlockDevice(path) => {
                let writes = job.access.writes();
                // Whoever makes a job of it asks before: `Target::BlockDevice` says so.
                let device = BlockDevice::open(path, writes, Destruction::Agreed)?;
                let areas = match job.sharing {
                    Sharing::OwnFile => u64::from(job.threads),
                    Sharing::SharedFile => 1,
                };
                device.check_room(job.record_bytes, job.file_bytes, areas)?;
                capability::check(job, &device.file(OFlags::empty())?, path)?;
                Ok(Ground::Device(device))
            }
        }
    }

    /// Brings it into the state that the job begins with. A device that is only read, or taken as
    /// it is, is not touched.
    ///
    /// Errors: those of [`WorkFiles::make`].
    pub fn make(
        &self,
        job: &FileJob,
        interrupted: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let device = match self {
            Ground::Files(files) => return files.make(job, interrupted, observer),
            Ground::Device(device) => device,
        };
        if !job.access.writes() || job.files == Files::Reuse {
            return Ok(());
        }
        let areas = self.areas(job);
        let mut making = Making::new(job, areas.len(), interrupted, observer);
        let file = device.file(OFlags::empty())?;
        for area in areas {
            write_content(job, &area, &file, &mut making)?;
        }
        rustix::fs::fsync(&file).map_err(|errno| Error::io(device.path(), "sync")(errno.into()))
    }

    /// What the threads work on, in the order of the threads.
    pub fn areas(&self, job: &FileJob) -> Vec<Area> {
        let threads = |number: u32| match job.sharing {
            Sharing::OwnFile => number..number + 1,
            Sharing::SharedFile => 0..job.threads,
        };
        let areas = match job.sharing {
            Sharing::OwnFile => job.threads,
            Sharing::SharedFile => 1,
        };
        let area = |number| match self {
            Ground::Files(files) => Area {
                file_number: number,
                path: files.path(number),
                base_bytes: 0,
                threads: threads(number),
            },
            Ground::Device(device) => Area {
                file_number: 0,
                path: device.path().to_owned(),
                base_bytes: u64::from(number) * job.file_bytes,
                threads: threads(number),
            },
        };
        (0..areas).map(area).collect()
    }

    /// Opens what an area is in once more.
    ///
    /// Errors: `Io`.
    pub fn open(&self, area: &Area, flags: OFlags) -> Result<File> {
        match self {
            Ground::Files(files) => files.open(area.file_number, flags),
            Ground::Device(device) => device.file(flags - OFlags::RWMODE),
        }
    }
}
