//! Cells that run on this machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use iostep_lab::Measured;
use iostep_lab::environment::On;
use iostep_lab::guest;
use iostep_lab::run::{Runner, Site};
use iostep_lab::storage::DeviceSource;
use iostep_model::lab::{self, Cell};

use super::Args;
use crate::command::bench::Location;
use crate::interrupt::Interrupt;
use crate::version;

/// Memory as a filesystem.
const MEMORY: &str = "/dev/shm";

/// Runs cells one by one.
pub struct Here<'a> {
    runner: Runner<'a>,
    on: &'a On,
    journal: Option<PathBuf>,
    images: PathBuf,
}

impl<'a> Here<'a> {
    /// For cells that lie `on` something of this machine.
    ///
    /// Errors: iostep's own file is not found.
    pub fn new(args: &Args, on: &'a On, interrupt: &'a Interrupt) -> anyhow::Result<Here<'a>> {
        let is_guest = std::env::var_os(guest::VARIABLE).is_some();
        let emulated = std::env::var_os(guest::EMULATED_VARIABLE).is_some();
        Ok(Here {
            runner: Runner {
                program: std::env::current_exe().context("cannot find iostep itself")?,
                version: (version::NUMBER, version::COMMIT),
                interrupted: interrupt.flag(),
                time_limit: Duration::from_nanos(args.time_limit),
                guest: is_guest.then_some(emulated),
                counters: |directory| Location::in_directory(directory).counters(),
                environment: |directory| Location::in_directory(directory).environment(),
            },
            on,
            journal: args.journal_device.clone(),
            images: match on {
                On::Tmpfs => PathBuf::from(MEMORY),
                _ => std::env::temp_dir(),
            },
        })
    }

    /// Runs a cell, or cells that take turns.
    pub fn run(&self, cells: &[&Cell]) -> Vec<Measured> {
        let site = match self.on {
            On::Tmpfs => Site::Made(DeviceSource::Images(&self.images), lab::Medium::Tmpfs),
            On::Device(device) => {
                let source = DeviceSource::Devices(device, self.journal.as_deref());
                Site::Made(source, lab::Medium::Device)
            }
            On::Directory(directory) => Site::Directory(directory),
            On::Auto | On::Loop | On::Guest => {
                let place = match is_memory(&self.images) {
                    true => lab::Medium::Tmpfs,
                    false => lab::Medium::Loop,
                };
                Site::Made(DeviceSource::Images(&self.images), place)
            }
        };
        self.runner.run(cells, site)
    }
}

/// True for a directory on tmpfs (linux/magic.h), where `TMPDIR` may lead.
fn is_memory(directory: &Path) -> bool {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    rustix::fs::statfs(directory).is_ok_and(|found| found.f_type == TMPFS_MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_from_a_disk() {
        assert!(is_memory(Path::new(MEMORY)));
        assert!(!is_memory(Path::new("/proc")));
        assert!(!is_memory(Path::new("/no/such/directory")));
    }
}
