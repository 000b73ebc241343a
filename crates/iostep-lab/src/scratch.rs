//! Where a cell's children leave what they found: memory, so that no disk is written to.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::{Error, Result};
use crate::mount::Mount;

/// Directories in memory that every user may write to.
const MEMORY: [&str; 2] = ["/dev/shm", "/run"];

/// A directory in memory, gone with this value.
#[derive(Debug)]
pub(crate) enum Scratch {
    /// A tmpfs of its own, which a mount namespace of its own takes with it after a SIGKILL, too.
    Mounted(Mount),
    /// A directory on one that was there.
    Directory(TempDir),
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
        let parent = memory.unwrap_or_else(std::env::temp_dir);
        tempfile::Builder::new()
            .prefix("iostep-cell-")
            .tempdir_in(&parent)
            .map(Scratch::Directory)
            .map_err(Error::io(&parent, "create a directory in"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        match self {
            Scratch::Mounted(mount) => mount.path(),
            Scratch::Directory(directory) => directory.path(),
        }
    }
}
