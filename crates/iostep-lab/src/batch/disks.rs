//! What the devices of a guest's cells lie on.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use iostep_model::bench::{Document, Warning};
use iostep_model::lab::Cell;

use crate::error::{Error, Result};
use crate::free_space;
use crate::guest::Backing;
use crate::storage::JOURNAL_BYTES;

/// Memory as a filesystem.
const MEMORY: &str = "/dev/shm";

/// What lies behind a guest's device.
pub(super) enum GuestDisk {
    /// A nameless file in memory.
    Memory(File),
    /// A sparse file of this many bytes in the directory for temporary files.
    Elsewhere(u64),
}

impl GuestDisk {
    pub fn backing(&self) -> Backing {
        match self {
            GuestDisk::Memory(file) => {
                let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
                Backing::Image(path.into())
            }
            GuestDisk::Elsewhere(bytes) => Backing::New(*bytes),
        }
    }

    /// What only the host can say of a result: to the guest it is a disk.
    pub fn warning(&self, document: &Document) -> Warning {
        let device = document.environment.device.as_ref();
        match self {
            GuestDisk::Memory(_) => Warning::InMemory {
                filesystem: "the memory of a guest's host".into(),
            },
            GuestDisk::Elsewhere(_) => Warning::LoopDevice {
                device: device.map_or(String::new(), |device| device.name.clone()),
                backing_file: "a file of a guest's host".into(),
            },
        }
    }
}

/// The devices that these cells need: the filesystem's, and the journal's if one has its own. In
/// memory if there is room for all of them and for the guest's own `guest_bytes`: each flush of the
/// guest would wait for the host's disk.
pub(super) fn disks(cells: &[&Cell], guest_bytes: u64) -> Result<Vec<GuestDisk>> {
    let largest = cells.iter().map(|cell| cell.storage.device_bytes).max();
    let journal = cells.iter().any(|cell| cell.storage.external_journal);
    let sizes = largest.into_iter().chain(journal.then_some(JOURNAL_BYTES));
    let sizes: Vec<u64> = sizes.collect();
    let memory = Path::new(MEMORY);
    let needed = sizes.iter().copied().fold(guest_bytes, u64::saturating_add);
    if free_space::of(memory).is_ok_and(|free| needed > free) {
        return Ok(sizes.into_iter().map(GuestDisk::Elsewhere).collect());
    }
    let file = |bytes| {
        let file = tempfile::tempfile_in(memory).map_err(Error::io(memory, "create a file in"))?;
        file.set_len(bytes)
            .map_err(Error::io(memory, "make a sparse file in"))?;
        Ok(GuestDisk::Memory(file))
    };
    sizes.into_iter().map(file).collect()
}
