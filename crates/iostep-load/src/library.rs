//! A SQLite library as a table of its functions: the one inside, or another by path.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;

use rusqlite::ffi;

use crate::error::{Error, Result};

/// The oldest one that has a WAL.
const OLDEST_VERSION: c_int = 3_007_000;
const INSIDE_HINT: &str = "name another libsqlite3.so, or leave --sqlite-lib out";

/// What SQLite calls when a lock is held by another connection.
type BusyHandler = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
/// What SQLite calls after a commit to a WAL.
type WalHook = unsafe extern "C" fn(*mut c_void, *mut ffi::sqlite3, *const c_char, c_int) -> c_int;
/// What frees a bound value.
type Destructor = unsafe extern "C" fn(*mut c_void);
/// What `sqlite3_exec` calls for each row.
type RowCallback =
    unsafe extern "C" fn(*mut c_void, c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
type EnableLoadExtension = unsafe extern "C" fn(*mut ffi::sqlite3, c_int) -> c_int;
type CheckpointV2 =
    unsafe extern "C" fn(*mut ffi::sqlite3, *const c_char, c_int, *mut c_int, *mut c_int) -> c_int;

/// Declares the table, and both ways to fill it.
macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $answer:ty)?;)+) => {
        /// SQLite's C functions, by their own names.
        #[derive(Clone, Copy, Debug)]
        #[allow(missing_docs)]
        pub(crate) struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $answer)?,)+
            /// Since 3.7.6.
            pub sqlite3_wal_checkpoint_v2: Option<CheckpointV2>,
            /// Where extensions were not left out of the build.
            pub sqlite3_enable_load_extension: Option<EnableLoadExtension>,
        }

        impl Functions {
            fn inside() -> Functions {
                Functions {
                    $($name: ffi::$name,)+
                    sqlite3_wal_checkpoint_v2: Some(ffi::sqlite3_wal_checkpoint_v2),
                    sqlite3_enable_load_extension: Some(ffi::sqlite3_enable_load_extension),
                }
            }

            fn of(path: &Path, library: &libloading::Library) -> Result<Functions> {
                Ok(Functions {
                    $($name: symbol(path, library, stringify!($name))?,)+
                    sqlite3_wal_checkpoint_v2:
                        symbol(path, library, "sqlite3_wal_checkpoint_v2").ok(),
                    sqlite3_enable_load_extension:
                        symbol(path, library, "sqlite3_enable_load_extension").ok(),
                })
            }
        }
    };
}

functions! {
    sqlite3_libversion() -> *const c_char;
    sqlite3_libversion_number() -> c_int;
    sqlite3_sourceid() -> *const c_char;
    sqlite3_threadsafe() -> c_int;
    sqlite3_open_v2(*const c_char, *mut *mut ffi::sqlite3, c_int, *const c_char) -> c_int;
    sqlite3_close(*mut ffi::sqlite3) -> c_int;
    sqlite3_extended_result_codes(*mut ffi::sqlite3, c_int) -> c_int;
    sqlite3_errmsg(*mut ffi::sqlite3) -> *const c_char;
    sqlite3_exec(
        *mut ffi::sqlite3, *const c_char, Option<RowCallback>, *mut c_void, *mut *mut c_char
    ) -> c_int;
    sqlite3_prepare_v2(
        *mut ffi::sqlite3, *const c_char, c_int, *mut *mut ffi::sqlite3_stmt, *mut *const c_char
    ) -> c_int;
    sqlite3_finalize(*mut ffi::sqlite3_stmt) -> c_int;
    sqlite3_sql(*mut ffi::sqlite3_stmt) -> *const c_char;
    sqlite3_bind_int64(*mut ffi::sqlite3_stmt, c_int, i64) -> c_int;
    sqlite3_bind_blob(
        *mut ffi::sqlite3_stmt, c_int, *const c_void, c_int, Option<Destructor>
    ) -> c_int;
    sqlite3_step(*mut ffi::sqlite3_stmt) -> c_int;
    sqlite3_reset(*mut ffi::sqlite3_stmt) -> c_int;
    sqlite3_changes(*mut ffi::sqlite3) -> c_int;
    sqlite3_column_int64(*mut ffi::sqlite3_stmt, c_int) -> i64;
    sqlite3_column_blob(*mut ffi::sqlite3_stmt, c_int) -> *const c_void;
    sqlite3_column_bytes(*mut ffi::sqlite3_stmt, c_int) -> c_int;
    sqlite3_column_text(*mut ffi::sqlite3_stmt, c_int) -> *const u8;
    sqlite3_get_autocommit(*mut ffi::sqlite3) -> c_int;
    sqlite3_busy_handler(*mut ffi::sqlite3, Option<BusyHandler>, *mut c_void) -> c_int;
    sqlite3_wal_hook(*mut ffi::sqlite3, Option<WalHook>, *mut c_void) -> *mut c_void;
    sqlite3_wal_checkpoint(*mut ffi::sqlite3, *const c_char) -> c_int;
    sqlite3_limit(*mut ffi::sqlite3, c_int, c_int) -> c_int;
    sqlite3_vfs_find(*const c_char) -> *mut ffi::sqlite3_vfs;
    sqlite3_vfs_register(*mut ffi::sqlite3_vfs, c_int) -> c_int;
    sqlite3_vfs_unregister(*mut ffi::sqlite3_vfs) -> c_int;
}

/// A function of a loaded library.
fn symbol<T: Copy>(path: &Path, library: &libloading::Library, name: &str) -> Result<T> {
    // SAFETY: the types in the table are those of SQLite's header for these names.
    let found = unsafe { library.get::<T>(name) };
    found.map(|symbol| *symbol).map_err(|_| Error::Unsupported {
        what: format!("{}: it has no {name}", path.display()),
        hint: INSIDE_HINT.into(),
    })
}

/// A SQLite library that can be used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Library {
    pub functions: Functions,
}

impl Library {
    /// The one that is linked into this program, or the one at `path`; a bare name is looked for
    /// as the dynamic linker does. A loaded library stays until the process ends.
    ///
    /// Errors: `Usage` for what cannot be loaded; `Unsupported` if a function is missing or the
    /// version is older than 3.7.0.
    pub fn load(path: Option<&Path>) -> Result<Library> {
        let Some(path) = path else {
            let functions = Functions::inside();
            return Ok(Library { functions });
        };
        check_can_load(path)?;
        let place = match path.exists() {
            // A name without a slash would be looked for elsewhere.
            true => std::path::absolute(path).map_err(Error::io(path, "find"))?,
            false => path.to_owned(),
        };
        // SAFETY: running the library's initialisers is what was asked for.
        let loaded = unsafe { libloading::Library::new(&place) };
        let loaded = loaded.map_err(|error| Error::Usage {
            what: format!("cannot load SQLite: {}", LoadReason(path, &error)),
            hint: INSIDE_HINT.into(),
        })?;
        let functions = Functions::of(path, &loaded)?;
        // Its exit handlers and thread-local destructors may run at any time from now on.
        std::mem::forget(loaded);
        let library = Library { functions };
        library.check_version(path)?;
        Ok(library)
    }

    fn check_version(&self, path: &Path) -> Result<()> {
        if self.version_number() >= OLDEST_VERSION {
            return Ok(());
        }
        Err(Error::Unsupported {
            what: format!(
                "{}: SQLite {} is older than 3.7.0",
                path.display(),
                self.version()
            ),
            hint: INSIDE_HINT.into(),
        })
    }

    /// `sqlite3_libversion_number`.
    pub fn version_number(&self) -> c_int {
        // SAFETY: it only returns a number.
        unsafe { (self.functions.sqlite3_libversion_number)() }
    }

    /// `sqlite3_libversion`.
    pub fn version(&self) -> String {
        // SAFETY: it returns a constant of the library.
        unsafe { text((self.functions.sqlite3_libversion)()) }
    }

    /// `sqlite3_sourceid`.
    pub fn source_id(&self) -> String {
        // SAFETY: it returns a constant of the library.
        unsafe { text((self.functions.sqlite3_sourceid)()) }
    }

    /// True if threads may use it at the same time, each with its own connection.
    pub fn threadsafe(&self) -> bool {
        // SAFETY: it only returns a number.
        unsafe { (self.functions.sqlite3_threadsafe)() != 0 }
    }
}

/// Errors: `Unsupported` in a program that is linked statically: a library brings the system's C
/// library with it, beside the one that the program has inside.
pub(crate) fn check_can_load(path: &Path) -> Result<()> {
    match cfg!(target_feature = "crt-static") {
        false => Ok(()),
        true => Err(Error::Unsupported {
            what: format!(
                "{}: this iostep is one static file, which loads no library",
                path.display()
            ),
            hint: "use the SQLite and the waldio inside, or an iostep built by make build".into(),
        }),
    }
}

/// Why a library did not load, with its name once.
struct LoadReason<'a>(&'a Path, &'a libloading::Error);

impl std::fmt::Display for LoadReason<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.0.display().to_string();
        let reason = match self.1 {
            libloading::Error::DlOpen { source } => source.to_string(),
            other => other.to_string(),
        };
        match reason.contains(&name) {
            true => f.write_str(&reason),
            false => write!(f, "{name}: {reason}"),
        }
    }
}

/// Copies a C string; empty for NULL.
///
/// # Safety
///
/// `pointer` is NULL or points to a C string that lives until this returns.
pub(crate) unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: it is a C string, as the caller promises.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &Path) -> String {
        Library::load(Some(path)).expect_err("refused").to_string()
    }

    #[test]
    fn the_one_inside_is_the_one_that_rusqlite_runs() {
        let library = Library::load(None).expect("inside");
        assert_eq!(library.version(), rusqlite::version());
        assert!(library.threadsafe());
        assert!(library.source_id().starts_with("20"), "{library:?}");
    }

    #[test]
    fn a_missing_library_is_named() {
        let error = refusal(Path::new("/nonexistent/libsqlite3.so"));
        assert!(error.contains("/nonexistent/libsqlite3.so"), "{error}");
        assert!(error.contains("No such file"), "{error}");
    }

    #[test]
    fn what_is_not_a_library_is_refused() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), vec![b'x'; 4096]).expect("written");
        assert!(refusal(file.path()).contains("invalid ELF header"));
    }

    #[test]
    fn a_library_that_is_not_sqlite_is_told_by_the_missing_function() {
        let error = refusal(Path::new("libc.so.6"));
        assert!(error.contains("libc.so.6: it has no sqlite3_"), "{error}");
    }
}
