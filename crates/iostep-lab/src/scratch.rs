//! Where a cell's children leave what they found: memory, so that no disk is written to.

use std::path::{Path, PathBuf};

use iostep_model::directory::Temporary;

use crate::error::Result;
use crate::mount::{Mount, temporary_directory};

/// Directories in memory that every user may write to.
const MEMORY: [&str; 2] = ["/dev/shm", "/run"];

/// A directory in memory, gone with this value.
#[derive(Debug)]
pub(crate) enum Scratch {
    /// A tmpfs of its own, which a mount namespace of its own takes with it after a SIGKILL, too.
    Mounted(Mount),
    /// A directory on one that was there. The next one sweeps what a SIGKILL leaves.
    Directory(Temporary),
}

impl Scratch {
    /// Mounts one; only for callers of [`crate::enter_private_mounts`].
    ///
    /// Errors: `Io`.
    pub fn mounted() -> Result<Scratch> {
        Mount::memory().map(Scratch::Mounted)
    }

    /// Makes a directory, which needs no rights.
    ///
    /// Errors: `Io`.
    pub fn directory() -> Result<Scratch> {
        let memory = MEMORY.iter().map(PathBuf::from).find(|path| path.is_dir());
        let parent = memory.map_or_else(temporary_directory, Ok)?;
        let directory = Temporary::new(&parent, "iostep-cell-")?;
        Ok(Scratch::Directory(directory))
    }

    pub fn path(&self) -> &Path {
        match self {
            Scratch::Mounted(mount) => mount.path(),
            Scratch::Directory(directory) => directory.directory().name(),
        }
    }
}
