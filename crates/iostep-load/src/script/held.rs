//! Databases in a directory that is held by descriptor.
//!
//! SQLite makes every name a full one without symbolic links, so of `/proc/PID/fd/N/app.db` it would
//! ask where the descriptor's link leads and go by the text of that, where somebody may have put
//! another directory meanwhile. A copy of its VFS takes such names as they are.

use std::ffi::{CStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Once, OnceLock};

use iostep_model::directory::Directory;
use rusqlite::ffi;

/// waldio looks whether the VFS below it is called so.
const NAME: &CStr = c"unix-held";
const PREFIX: &[u8] = b"/proc/";

/// SQLite's own way to make a name a full one.
static BELOW: OnceLock<FullPathname> = OnceLock::new();

type FullPathname = unsafe extern "C" fn(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    bytes: c_int,
    out: *mut c_char,
) -> c_int;

/// The path of a file in a held directory, for this process and others, as long as that is held. The
/// dot is for who opens its directory and follows no link at the end of a path, as SQLite does.
pub fn held_path(directory: &Directory, name: &Path) -> PathBuf {
    directory.path_for_others().join(".").join(name)
}

/// If this is a [`held_path`], this process's SQLite takes such names as they are from now on. That is
/// before waldio is first used, which stands on the default VFS.
pub(super) fn take_as_it_is(path: &Path) {
    static DONE: Once = Once::new();
    if path.as_os_str().as_bytes().starts_with(PREFIX) {
        DONE.call_once(register);
    }
}

fn register() {
    // SAFETY: NULL asks for the default VFS, which lives as long as the process; the copy does, too,
    // since it is leaked. SQLite's VFS for Unix keeps nothing in this struct but what is copied.
    unsafe {
        let vfs = ffi::sqlite3_vfs_find(std::ptr::null());
        let below = vfs.as_ref().expect("SQLite for Unix has a VFS");
        let full = below.xFullPathname.expect("every VFS has it");
        let mut copy = *below;
        copy.pNext = std::ptr::null_mut();
        copy.zName = NAME.as_ptr();
        copy.xFullPathname = Some(full_pathname);
        let _ = BELOW.set(full);
        // It has no way to fail once SQLite is initialised, which finding a VFS does.
        ffi::sqlite3_vfs_register(Box::leak(Box::new(copy)), 1);
    }
}

/// # Safety
///
/// As SQLite calls it: `name` is a string, and `out` has room for `bytes`.
unsafe extern "C" fn full_pathname(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    bytes: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: by the caller's word.
    let text = unsafe { CStr::from_ptr(name) }.to_bytes_with_nul();
    if !text.starts_with(PREFIX) {
        return match BELOW.get() {
            // SAFETY: the arguments are handed on as they came.
            Some(below) => unsafe { below(vfs, name, bytes, out) },
            None => ffi::SQLITE_CANTOPEN,
        };
    }
    if usize::try_from(bytes).map_or(true, |room| room < text.len()) {
        return ffi::SQLITE_CANTOPEN;
    }
    // SAFETY: there is room for all of it, and the two do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(name, out, text.len()) };
    ffi::SQLITE_OK
}
