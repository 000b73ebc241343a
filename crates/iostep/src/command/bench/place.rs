//! Where a job runs: the filesystem and the device below it.

use std::path::Path;

use iostep_load::environment;
use iostep_model::bench::{Environment, Job, Target as JobTarget};
use iostep_model::manifest::Filesystem;
use iostep_trace::target::{Mount, Target};

/// A job's directory or device.
pub struct Place {
    /// The device with its counters; `None` for a filesystem without one of its own.
    pub target: Option<Target>,
    /// The filesystem; `None` for a device.
    filesystem: Option<Filesystem>,
}

impl Place {
    /// Finds out where a job runs. What cannot be found is left out: a job needs neither.
    pub fn of(job: &Job) -> Place {
        let (path, is_device) = match job {
            Job::File(job) => match &job.target {
                JobTarget::Directory(path) => (path, false),
                JobTarget::BlockDevice(path) => (path, true),
            },
            Job::Sqlite(job) => (&job.directory, false),
        };
        let target = Target::resolve(path).ok();
        if is_device {
            return Place {
                target,
                filesystem: None,
            };
        }
        let mount = target.as_ref().and_then(|target| target.mount.clone());
        Place {
            target,
            filesystem: mount
                .or_else(|| Mount::of(path).ok())
                .map(|mount| Filesystem {
                    kind: mount.kind,
                    mount_point: mount.point.display().to_string(),
                    options: mount.options,
                    block_bytes: block_bytes(path),
                    layout: Vec::new(),
                }),
        }
    }

    /// The machine with this place.
    pub fn environment(&self) -> Environment {
        Environment {
            filesystem: self.filesystem.clone(),
            device: self.target.as_ref().map(|target| target.device.clone()),
            ..environment::here(Path::new("/"))
        }
    }
}

fn block_bytes(path: &Path) -> u32 {
    let found = rustix::fs::statvfs(path).ok();
    found.map_or(4096, |found| found.f_frsize as u32)
}
