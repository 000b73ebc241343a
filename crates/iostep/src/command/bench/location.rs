//! Where a job runs: the filesystem and the device below it.

use std::path::Path;

use iostep_load::environment;
use iostep_model::bench::{Environment, Job, Target as JobTarget};
use iostep_model::disk;
use iostep_model::manifest::{Counters, Filesystem};
use iostep_trace::counters;
use iostep_trace::stack::Layer;
use iostep_trace::target::{Mount, Target};

/// A job's directory or device.
pub struct Location {
    /// The device with its counters; `None` for a filesystem without one of its own.
    target: Option<Target>,
    /// The device of its journal, if that is another one.
    journal: Option<Target>,
    /// The filesystem; `None` for a device.
    filesystem: Option<Filesystem>,
}

impl Location {
    /// Finds out where a job runs. What cannot be found is left out: a job needs neither.
    /// `journal` is the device of the filesystem's journal, if it has its own.
    ///
    /// Errors: `journal` is no block device.
    pub fn of(job: &Job, journal: Option<&Path>) -> iostep_trace::Result<Location> {
        let journal = journal.map(Target::resolve).transpose()?;
        Ok(Location {
            journal,
            ..Location::without_journal(job)
        })
    }

    fn without_journal(job: &Job) -> Location {
        let (path, is_device) = match job {
            Job::File(job) => match &job.target {
                JobTarget::Directory(path) => (path, false),
                JobTarget::BlockDevice(path) => (path, true),
            },
            Job::Sqlite(job) => (&job.directory, false),
        };
        if is_device {
            return Location {
                target: Target::resolve(path).ok(),
                journal: None,
                filesystem: None,
            };
        }
        Location::in_directory(path)
    }

    /// A directory. What cannot be found is left out.
    pub fn in_directory(path: &Path) -> Location {
        let target = Target::resolve(path).ok();
        let mount = target.as_ref().and_then(|target| target.mount.clone());
        Location {
            target,
            journal: None,
            filesystem: mount
                .or_else(|| Mount::of(path).ok())
                .map(|mount| Filesystem {
                    kind: mount.kind,
                    mount_point: mount.point.display().to_string(),
                    mounts: Vec::new(),
                    options: mount.options,
                    block_bytes: block_bytes(path),
                    size_bytes: None,
                    layout: Vec::new(),
                }),
        }
    }

    /// The devices whose I/O is this place's: none if the filesystem has none of its own.
    pub fn devices(&self) -> Vec<&Target> {
        let Some(target) = &self.target else {
            return Vec::new();
        };
        let has = |disk: &Layer| target.disks().any(|known| known.number == disk.number);
        let journal = self.journal.as_ref();
        // A mounted filesystem names its journal's device itself.
        let journal = journal.filter(|journal| !journal.disks().all(has));
        std::iter::once(target).chain(journal).collect()
    }

    /// The filesystem; `None` for a device.
    pub fn filesystem(&self) -> Option<&Filesystem> {
        self.filesystem.as_ref()
    }

    /// What the kernel counted for the devices until now; `None` without one that counts.
    pub fn counters(&self) -> Option<Counters> {
        let devices = self.devices();
        if devices.is_empty() || !devices.iter().all(|device| counters::counts(device)) {
            return None;
        }
        counters::read(devices).ok()
    }

    /// The machine with this place; its disks without their health.
    pub fn environment(&self) -> Environment {
        Environment {
            filesystem: self.filesystem.clone(),
            device: self.target.as_ref().map(|target| target.upper().clone()),
            flushes_of: counters::shared_disks(self.devices()),
            disks: disk::each_once(self.devices().into_iter().flat_map(Target::hardware)),
            ..environment::here(Path::new("/"))
        }
    }
}

fn block_bytes(path: &Path) -> u32 {
    let found = rustix::fs::statvfs(path).ok();
    found.map_or(4096, |found| found.f_frsize as u32)
}
