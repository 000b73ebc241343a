//! Files at names that nothing had.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// Makes a file that was not there, for its owner alone.
pub fn create_private(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
    Ok(file.into())
}

/// Gives a file of the same directory a name that nothing has, durably.
pub fn give_name(file: &Path, name: &Path) -> Result<()> {
    let failed = |error: io::Error| Error::io(name, "create")(error);
    match rustix::fs::renameat_with(CWD, file, CWD, name, RenameFlags::NOREPLACE) {
        // A filesystem that cannot do so, as NFS.
        Err(Errno::INVAL) => {
            std::fs::hard_link(file, name).map_err(failed)?;
            std::fs::remove_file(file).map_err(failed)?;
        }
        renamed => renamed.map_err(|errno| failed(errno.into()))?,
    }
    let directory = name.parent().filter(|it| !it.as_os_str().is_empty());
    sync(directory.unwrap_or(Path::new(".")))
}

/// Makes names in a directory durable.
pub fn sync(directory: &Path) -> Result<()> {
    let failed = |what| move |error: io::Error| Error::io(directory, what)(error);
    let opened = File::open(directory).map_err(failed("open"))?;
    opened.sync_all().map_err(failed("sync"))
}
