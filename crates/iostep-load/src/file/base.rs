//! What the threads work on: files or a device.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;

use iostep_model::bench::{FileJob, Files, Sharing, Target};
use rustix::fs::OFlags;

use super::capability;
use super::device::{BlockDevice, Destruction};
use super::work_files::{Area, Making, WorkFiles, write_content};
use crate::engine::Observer;
use crate::error::{Error, Result};
use crate::work_directory::WorkDirectory;

/// Work files, or a device.
#[derive(Debug)]
pub enum Base {
    /// Files in a directory of our own.
    Files(WorkFiles),
    /// A device without a filesystem.
    Device(BlockDevice),
}

impl Base {
    /// Takes the target of a job that was checked, and asks it whether it can do what is wanted.
    /// Nothing is made yet.
    ///
    /// Errors: those of [`WorkDirectory::open`], [`BlockDevice::open`] and [`capability::check`].
    pub fn take(job: &FileJob) -> Result<Base> {
        match &job.target {
            Target::Directory(path) => {
                let directory = WorkDirectory::open(path, "iostep-bench")?;
                let scratch = capability::scratch(directory.as_fd(), directory.path())?;
                capability::check(job, &scratch, path)?;
                Ok(Base::Files(WorkFiles::new(job, directory)))
            }
            Target::BlockDevice(path) => {
                let writes = job.access.writes();
                // Whoever makes a job of it asks before: `Target::BlockDevice` says so.
                let device = BlockDevice::open(path, writes, Destruction::Agreed)?;
                device.check_room(job.record_bytes, job.file_bytes, job.files().into())?;
                capability::check(job, &device.file(OFlags::empty())?, path)?;
                Ok(Base::Device(device))
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
            Base::Files(files) => return files.make(job, interrupted, observer),
            Base::Device(device) => device,
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
        let area = |number| match self {
            Base::Files(files) => Area {
                file_number: number,
                path: files.path(number),
                base_bytes: 0,
                threads: threads(number),
            },
            Base::Device(device) => Area {
                file_number: 0,
                path: device.path().to_owned(),
                base_bytes: u64::from(number) * job.file_bytes,
                threads: threads(number),
            },
        };
        (0..job.files()).map(area).collect()
    }

    /// Opens what an area is in once more.
    ///
    /// Errors: `Io`.
    pub fn open(&self, area: &Area, flags: OFlags) -> Result<File> {
        match self {
            Base::Files(files) => files.open(area.file_number, flags),
            Base::Device(device) => device.file(flags - OFlags::RWMODE),
        }
    }
}
