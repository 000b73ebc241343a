//! f2fs's batch atomic writes, by which SQLite commits without a journal: off, but for a job that
//! asks for them.
//!
//! A SQLite that was built with them asks each database file, when it is opened, whether the
//! filesystem has them (os_unix.c, setDeviceCharacteristics), and takes them if so. Its ioctl can
//! be replaced (xSetSystemCall) by one that always says no.

use std::ffi::{CStr, c_int, c_ulong};
use std::path::Path;

use iostep_model::bench::SqliteJob;
use iostep_model::pragma::{Journal, Synchronous};

use crate::error::{Error, Result};
use crate::library::Library;

/// SQLite's VFS for Unix; its variants share its system calls.
const UNIX: &CStr = c"unix";
const IOCTL: &CStr = c"ioctl";
/// `F2FS_SUPER_MAGIC` of linux/magic.h.
const F2FS_MAGIC: u64 = 0xf2f5_2010;
const OPTION: &str = "ENABLE_BATCH_ATOMIC_WRITE";
const LEAVE_OUT: &str = "or leave --batch-atomic out";

type Ioctl = unsafe extern "C" fn(c_int, c_ulong) -> c_int;
type SystemCall = unsafe extern "C" fn();

/// Keeps them off in the SQLite inside.
pub(crate) fn keep_off() {
    if let Ok(inside) = Library::load(None) {
        allow(inside, false);
    }
}

/// Lets the library's databases that are opened from now on have them, or not. A library that
/// was built without them stays as it is.
pub(crate) fn allow(library: Library, allowed: bool) {
    // SAFETY: a registered VFS lives as long as its library; the functions are asked for only if
    // the version has them.
    unsafe {
        let vfs = (library.functions.sqlite3_vfs_find)(UNIX.as_ptr());
        let Some(unix) = vfs.as_ref().filter(|unix| unix.iVersion >= 3) else {
            return;
        };
        let (Some(set), Some(get)) = (unix.xSetSystemCall, unix.xGetSystemCall) else {
            return;
        };
        let Some(current) = get(vfs, IOCTL.as_ptr()) else {
            return;
        };
        let refusing = std::mem::transmute::<Ioctl, SystemCall>(refuse);
        let replacement = match allowed {
            // SQLite's own one.
            true => None,
            false if current as usize == refusing as usize => return,
            false => Some(refusing),
        };
        // It fails only for a name that there is not.
        set(vfs, IOCTL.as_ptr(), replacement);
    }
}

/// In the place of ioctl(2): no request is known. What SQLite passes beyond the request stays in
/// registers that nobody looks at.
unsafe extern "C" fn refuse(_descriptor: c_int, _request: c_ulong) -> c_int {
    -1
}

/// Checks what follows from the job alone: pager.c writes a batch where a commit has a journal,
/// syncs, and needs no super-journal.
///
/// Errors: `Usage`.
pub(crate) fn check_job(job: &SqliteJob) -> Result<()> {
    let usage = |what: String, hint: &str| {
        Err(Error::Usage {
            what,
            hint: hint.into(),
        })
    };
    if !job.batch_atomic {
        return Ok(());
    }
    if !matches!(
        job.journal,
        Journal::Delete | Journal::Truncate | Journal::Persist
    ) {
        let what = format!("batch atomic writes in journal mode {}", job.journal);
        return usage(what, "choose journal mode delete, truncate or persist");
    }
    if job.synchronous == Synchronous::Off {
        let what = "batch atomic writes without syncs".to_owned();
        return usage(what, "choose --synchronous normal, full or extra");
    }
    if job.databases > 1 {
        let what = format!(
            "batch atomic writes of {} databases together",
            job.databases
        );
        return usage(what, "choose --databases 1");
    }
    Ok(())
}

/// Checks what they need of the library, whose compile options these are, and the filesystem.
///
/// Errors: `Unsupported`; `Io`.
pub(crate) fn check_place(job: &SqliteJob, options: &[String]) -> Result<()> {
    if !job.batch_atomic {
        return Ok(());
    }
    if !options.iter().any(|option| option == OPTION) {
        return Err(Error::Unsupported {
            what: "this SQLite was built without batch atomic writes".into(),
            hint: format!("name a library that was built with SQLITE_{OPTION}, {LEAVE_OUT}"),
        });
    }
    let place = &job.directory;
    let filesystem = rustix::fs::statfs(place)
        .map_err(|errno| Error::io(place, "ask the filesystem of")(errno.into()))?;
    match filesystem.f_type as u64 {
        F2FS_MAGIC => Ok(()),
        _ => Err(unsupported(place)),
    }
}

/// The filesystem of `place` has none.
pub(crate) fn unsupported(place: &Path) -> Error {
    Error::Unsupported {
        what: format!("{}: only f2fs has batch atomic writes", place.display()),
        hint: format!("choose a directory on f2fs, {LEAVE_OUT}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether SQLite's requests reach the kernel.
    fn reach(library: Library) -> bool {
        // SAFETY: the VFS of the library inside stays, and has this function.
        let current = unsafe {
            let vfs = (library.functions.sqlite3_vfs_find)(UNIX.as_ptr());
            let get = (*vfs).xGetSystemCall.expect("it can be asked");
            get(vfs, IOCTL.as_ptr()).expect("built with batch atomic writes")
        };
        current as usize == libc::ioctl as *const () as usize
    }

    #[test]
    fn they_are_off_until_they_are_allowed() {
        let inside = Library::load(None).expect("inside");
        keep_off();
        assert!(!reach(inside));
        allow(inside, true);
        assert!(reach(inside));
        allow(inside, false);
        assert!(!reach(inside));
        keep_off();
        assert!(!reach(inside));
    }
}
