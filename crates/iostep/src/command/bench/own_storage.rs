//! `--on loop`: a filesystem of the job's own, which nobody else reads or writes.

use std::path::{Path, PathBuf};

use iostep_lab::storage::{DeviceSource, Mounted, filesystem_of};
use iostep_model::bench::{Document, Job, Target};
use iostep_model::lab::{Filesystem, Storage};

use super::location::Location;

/// Room for databases and logs beside what a job says it needs.
const LEAST_BYTES: u64 = 2 << 30;

/// A mounted image in the job's directory. The drop takes it away.
pub struct OwnStorage {
    mounted: Mounted,
    /// The directory that the job names.
    directory: PathBuf,
}

impl OwnStorage {
    /// Makes a filesystem of the kind that the job's directory is on, or ext4 where there is no
    /// other of that kind to be made, and moves the job onto it.
    ///
    /// To be called before any other thread is started.
    ///
    /// Errors: a job on a device; those of [`Mounted::make`].
    pub fn make(job: &mut Job) -> anyhow::Result<OwnStorage> {
        let directory = directory_of(job).map(Path::to_owned);
        let directory = directory.ok_or_else(|| {
            super::measure_args::usage(
                "--on loop: a device has no room for a filesystem",
                "name a directory",
            )
        })?;
        let needed = match job {
            Job::File(job) => job.file_bytes.saturating_mul(job.files().into()),
            Job::Sqlite(_) => 0,
        };
        let storage = Storage {
            filesystem: filesystem_like(&directory),
            external_journal: false,
            mkfs_options: Vec::new(),
            mount_options: String::new(),
            device_bytes: needed.saturating_mul(2).max(LEAST_BYTES),
        };
        // Whatever ends this process ends the mount too.
        iostep_lab::enter_private_mounts()?;
        let mounted = Mounted::make(&storage, DeviceSource::Images(&directory), false)?;
        mounted.settle()?;
        set_directory(job, mounted.root());
        Ok(OwnStorage { mounted, directory })
    }

    /// Names the places of a result as the user does: two results of one job are alike.
    pub fn restore(self, document: &mut Document) {
        set_directory(&mut document.job, &self.directory);
        if let Some(filesystem) = &mut document.environment.filesystem {
            filesystem.mount_point = self.directory.display().to_string();
        }
        drop(self.mounted);
    }
}

/// The filesystem that a directory is on, or ext4 where there is no other of that kind to be made.
pub fn filesystem_like(directory: &Path) -> Filesystem {
    let found = Location::in_directory(directory)
        .filesystem()
        .and_then(|found| {
            let filesystem = filesystem_of(&found.kind, &found.options)?;
            iostep_lab::mkfs::version(filesystem.kind())?;
            Some(filesystem)
        });
    found.unwrap_or(Filesystem::Ext4)
}

fn directory_of(job: &Job) -> Option<&Path> {
    match job {
        Job::File(job) => match &job.target {
            Target::Directory(path) => Some(path),
            Target::BlockDevice(_) => None,
        },
        Job::Sqlite(job) => Some(&job.directory),
    }
}

fn set_directory(job: &mut Job, directory: &Path) {
    match job {
        Job::File(job) => job.target = Target::Directory(directory.to_owned()),
        Job::Sqlite(job) => job.directory = directory.to_owned(),
    }
}
