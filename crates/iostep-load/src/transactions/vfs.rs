//! A VFS over a library's own one: forwards everything, times each xSync, and makes it an
//! fsync(2) if that is asked for.
//!
//! SQLite's unix VFS calls fdatasync(2) for every sync where it was built with HAVE_FDATASYNC,
//! whatever the flags say (os_unix.c, full_fsync), so the file's descriptor is needed. The VFS does
//! not give it away, and a second descriptor of a database must never be closed: that drops the
//! process's POSIX locks. But its system calls can be replaced (xSetSystemCall): asked for the size
//! of a file that was just opened, it hands the descriptor to our fstat.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::mem::size_of;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use rusqlite::ffi;

use crate::error::{Error, Result};
use crate::library::{Library, text};
use iostep_model::clock::mono_ns;

type Fstat = unsafe extern "C" fn(c_int, *mut c_void) -> c_int;
type SystemCall = unsafe extern "C" fn();

thread_local! {
    /// True in a thread whose syncs are wanted.
    static TIMES_SYNCS: Cell<bool> = const { Cell::new(false) };
    /// How long each xSync took since the last look, nanoseconds.
    static SYNCS_NS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    /// The descriptor that SQLite last called fstat for.
    static LAST_FSTAT: Cell<c_int> = const { Cell::new(-1) };
}

/// What fstat was before it was replaced; the same function for every library.
static FSTAT: OnceLock<Fstat> = OnceLock::new();
/// Number of the next VFS: each has its own name.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A registered VFS. Connections that use it must be gone before it.
#[derive(Debug)]
pub(super) struct Vfs {
    library: Library,
    /// What SQLite has pointers into.
    shim: *mut Shim,
}

/// The VFS as SQLite sees it, and what is below.
struct Shim {
    vfs: ffi::sqlite3_vfs,
    name: CString,
    below: *mut ffi::sqlite3_vfs,
    fsync: bool,
    /// False where the library never syncs directories (SQLITE_DISABLE_DIRSYNC).
    syncs_directories: bool,
    /// A file has said that it can be written in atomic batches.
    has_batch_atomic: AtomicBool,
    /// Batches that were committed.
    atomic_commits: AtomicU64,
}

// SAFETY: nothing of a registered shim changes but atomics, and the links between VFSes, which
// SQLite guards.
unsafe impl Send for Vfs {}
// SAFETY: as above.
unsafe impl Sync for Vfs {}

impl Vfs {
    /// Registers one over the library's default VFS. With `fsync` every sync is an fsync(2);
    /// `syncs_directories` says whether the library syncs directories at all.
    ///
    /// Errors: `Unsupported` for `fsync` if the VFS below is not SQLite's for Unix.
    pub fn register(library: Library, fsync: bool, syncs_directories: bool) -> Result<Vfs> {
        let sqlite = &library.functions;
        // SAFETY: NULL asks for the default VFS.
        let below = unsafe { (sqlite.sqlite3_vfs_find)(ptr::null()) };
        if below.is_null() {
            return Err(no_vfs("the library has no VFS"));
        }
        if fsync {
            // SAFETY: a registered VFS lives as long as its library.
            unsafe { watch_fstat(below) }?;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("iostep-{number}");
        // SAFETY: as above.
        unsafe { Vfs::over(library, below, name, (fsync, syncs_directories), false) }
    }

    /// Registers one that only times syncs, as the default. Its name begins as that of the VFS
    /// below, and it stays as long as the process, for a VFS that is put over it.
    ///
    /// Errors: `Unsupported`.
    pub fn register_below_another(library: Library) -> Result<std::mem::ManuallyDrop<Vfs>> {
        // SAFETY: NULL asks for the default VFS.
        let below = unsafe { (library.functions.sqlite3_vfs_find)(ptr::null()) };
        if below.is_null() {
            return Err(no_vfs("the library has no VFS"));
        }
        // SAFETY: a registered VFS has a name, and lives as long as its library.
        let vfs = unsafe {
            let name = format!("{}-iostep", text((*below).zName));
            Vfs::over(library, below, name, (false, true), true)?
        };
        Ok(std::mem::ManuallyDrop::new(vfs))
    }

    /// Makes the VFS below the default again, and hides this one from everybody who does not have
    /// it yet.
    pub fn step_back(&self) {
        let sqlite = &self.library.functions;
        // SAFETY: both are registered and stay.
        unsafe {
            (sqlite.sqlite3_vfs_register)((*self.shim).below, 1);
            (sqlite.sqlite3_vfs_unregister)(&raw mut (*self.shim).vfs);
        }
    }

    /// # Safety
    ///
    /// `below` is a registered VFS of the library, for good.
    unsafe fn over(
        library: Library,
        below: *mut ffi::sqlite3_vfs,
        name: String,
        (fsync, syncs_directories): (bool, bool),
        is_default: bool,
    ) -> Result<Vfs> {
        let sqlite = &library.functions;
        let name = CString::new(name).expect("a name of C's and digits have no NUL");
        let shim = Box::into_raw(Box::new(Shim {
            // SAFETY: as the caller promises.
            vfs: unsafe { forwarding(&*below) },
            name,
            below,
            fsync,
            syncs_directories,
            has_batch_atomic: AtomicBool::new(false),
            atomic_commits: AtomicU64::new(0),
        }));
        // SAFETY: the box is alive until Drop, and unregistered there first.
        let code = unsafe {
            (*shim).vfs.zName = (*shim).name.as_ptr();
            (*shim).vfs.pAppData = shim.cast();
            (sqlite.sqlite3_vfs_register)(&raw mut (*shim).vfs, c_int::from(is_default))
        };
        let vfs = Vfs { library, shim };
        match code {
            ffi::SQLITE_OK => Ok(vfs),
            code => Err(no_vfs(&format!("it cannot be registered (code {code})"))),
        }
    }

    /// The name to open databases with.
    pub fn name(&self) -> &CStr {
        // SAFETY: the shim lives as long as this.
        unsafe { &(*self.shim).name }
    }

    /// True if a file that was opened with it can be written in atomic batches.
    pub fn has_batch_atomic(&self) -> bool {
        // SAFETY: the shim lives as long as this.
        unsafe { &*self.shim }
            .has_batch_atomic
            .load(Ordering::Relaxed)
    }

    /// How many atomic batches were committed so far.
    pub fn atomic_commits(&self) -> u64 {
        // SAFETY: the shim lives as long as this.
        unsafe { &*self.shim }
            .atomic_commits
            .load(Ordering::Relaxed)
    }

    /// The name of the VFS below, as `unix`.
    pub fn below(&self) -> String {
        // SAFETY: a registered VFS has a name.
        unsafe { text((*(*self.shim).below).zName) }
    }
}

impl Drop for Vfs {
    fn drop(&mut self) {
        // SAFETY: no connection uses it any more; SQLite forgets it, then it goes.
        unsafe {
            (self.library.functions.sqlite3_vfs_unregister)(&raw mut (*self.shim).vfs);
            drop(Box::from_raw(self.shim));
        }
    }
}

/// Times this thread's syncs from now on, or no longer.
pub(super) fn time_syncs(wanted: bool) {
    TIMES_SYNCS.set(wanted);
    SYNCS_NS.with_borrow_mut(Vec::clear);
}

/// Shows how long each of this thread's syncs took since the last time.
#[inline]
pub(super) fn take_syncs(show: impl FnMut(u64)) {
    SYNCS_NS.with_borrow_mut(|syncs| syncs.drain(..).for_each(show));
}

/// Adds a sync of this thread that no VFS of ours has seen.
#[inline]
pub(super) fn add_sync(sync_ns: u64) {
    if TIMES_SYNCS.get() {
        SYNCS_NS.with_borrow_mut(|syncs| syncs.push(sync_ns));
    }
}

fn no_vfs(what: &str) -> Error {
    Error::Unsupported {
        what: format!("SQLite's VFS: {what}"),
        hint: "use another SQLite library, or leave --fsync out".into(),
    }
}

/// Lets this process see the descriptors that the VFS calls fstat for.
///
/// # Safety
///
/// `below` is a registered VFS.
unsafe fn watch_fstat(below: *mut ffi::sqlite3_vfs) -> Result<()> {
    const NAME: &CStr = c"fstat";
    // SAFETY: as the caller promises; the functions are asked for only if the version has them.
    unsafe {
        let vfs = &*below;
        let unsupported = || no_vfs("it does not tell the descriptors of its files");
        if vfs.iVersion < 3 {
            return Err(unsupported());
        }
        let (Some(set), Some(get)) = (vfs.xSetSystemCall, vfs.xGetSystemCall) else {
            return Err(unsupported());
        };
        let original = get(below, NAME.as_ptr()).ok_or_else(unsupported)?;
        let replacement = std::mem::transmute::<Fstat, SystemCall>(on_fstat);
        if original as usize == replacement as usize {
            return Ok(());
        }
        // SQLite calls it with exactly this type.
        FSTAT.get_or_init(|| std::mem::transmute::<SystemCall, Fstat>(original));
        match set(below, NAME.as_ptr(), Some(replacement)) {
            ffi::SQLITE_OK => Ok(()),
            _ => Err(unsupported()),
        }
    }
}

unsafe extern "C" fn on_fstat(fd: c_int, status: *mut c_void) -> c_int {
    LAST_FSTAT.set(fd);
    match FSTAT.get() {
        // SAFETY: the arguments are SQLite's own.
        Some(fstat) => unsafe { fstat(fd, status) },
        None => -1,
    }
}

/// An open file: what SQLite sees, then the file of the VFS below, right behind.
#[repr(C)]
struct File {
    base: ffi::sqlite3_file,
    methods: ffi::sqlite3_io_methods,
    shim: *const Shim,
    /// The descriptor; only known with fsync.
    fd: c_int,
    /// The path, which SQLite keeps as long as the file is open.
    path: *const c_char,
    /// Its directory has to be synced with it once.
    is_new: bool,
}

/// The file below.
///
/// # Safety
///
/// `file` was opened by [`open`], which has room for both.
#[inline]
unsafe fn lower(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    // SAFETY: as the caller promises.
    unsafe { file.cast::<File>().add(1).cast() }
}

/// A VFS of ours over `below`, still without a name.
fn forwarding(below: &ffi::sqlite3_vfs) -> ffi::sqlite3_vfs {
    let third = below.iVersion >= 3;
    ffi::sqlite3_vfs {
        iVersion: below.iVersion.min(3),
        szOsFile: size_of::<File>() as c_int + below.szOsFile,
        mxPathname: below.mxPathname,
        pNext: ptr::null_mut(),
        zName: ptr::null(),
        pAppData: ptr::null_mut(),
        xOpen: Some(open),
        xDelete: Some(delete),
        xAccess: below.xAccess.and(Some(access)),
        xFullPathname: below.xFullPathname.and(Some(full_pathname)),
        xDlOpen: below.xDlOpen.and(Some(dl_open)),
        xDlError: below.xDlError.and(Some(dl_error)),
        // Nothing loads extensions here.
        xDlSym: None,
        xDlClose: below.xDlClose.and(Some(dl_close)),
        xRandomness: below.xRandomness.and(Some(randomness)),
        xSleep: below.xSleep.and(Some(sleep)),
        xCurrentTime: below.xCurrentTime.and(Some(current_time)),
        xGetLastError: below.xGetLastError.and(Some(get_last_error)),
        xCurrentTimeInt64: match below.iVersion {
            2.. => below.xCurrentTimeInt64.and(Some(current_time_int64)),
            _ => None,
        },
        xSetSystemCall: below
            .xSetSystemCall
            .filter(|_| third)
            .and(Some(set_system_call)),
        xGetSystemCall: below
            .xGetSystemCall
            .filter(|_| third)
            .and(Some(get_system_call)),
        xNextSystemCall: below
            .xNextSystemCall
            .filter(|_| third)
            .and(Some(next_system_call)),
    }
}

/// Methods of ours over those of an open file: the same version and the same gaps.
fn methods_over(below: &ffi::sqlite3_io_methods) -> ffi::sqlite3_io_methods {
    let mut methods = ffi::sqlite3_io_methods {
        iVersion: below.iVersion.min(3),
        xClose: Some(close),
        xRead: below.xRead.and(Some(read)),
        xWrite: below.xWrite.and(Some(write)),
        xTruncate: below.xTruncate.and(Some(truncate)),
        xSync: below.xSync.and(Some(sync)),
        xFileSize: below.xFileSize.and(Some(file_size)),
        xLock: below.xLock.and(Some(lock)),
        xUnlock: below.xUnlock.and(Some(unlock)),
        xCheckReservedLock: below.xCheckReservedLock.and(Some(check_reserved_lock)),
        xFileControl: below.xFileControl.and(Some(file_control)),
        xSectorSize: below.xSectorSize.and(Some(sector_size)),
        xDeviceCharacteristics: below
            .xDeviceCharacteristics
            .and(Some(device_characteristics)),
        xShmMap: None,
        xShmLock: None,
        xShmBarrier: None,
        xShmUnmap: None,
        xFetch: None,
        xUnfetch: None,
    };
    // An older structure ends before these.
    if below.iVersion >= 2 {
        methods.xShmMap = below.xShmMap.and(Some(shm_map));
        methods.xShmLock = below.xShmLock.and(Some(shm_lock));
        methods.xShmBarrier = below.xShmBarrier.and(Some(shm_barrier));
        methods.xShmUnmap = below.xShmUnmap.and(Some(shm_unmap));
    }
    if below.iVersion >= 3 {
        methods.xFetch = below.xFetch.and(Some(fetch));
        methods.xUnfetch = below.xUnfetch.and(Some(unfetch));
    }
    methods
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    path: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    /// What os_unix.c calls a new journal (unixOpen, isNewJrnl).
    const JOURNALS: c_int =
        ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_SUPER_JOURNAL | ffi::SQLITE_OPEN_WAL;
    // SAFETY: SQLite gives one of our VFSes and szOsFile bytes for the file; the file below is
    // aligned as ours is, since both are structures of pointers.
    unsafe {
        let shim = (*vfs).pAppData.cast::<Shim>().cast_const();
        let ours = file.cast::<File>();
        let below = lower(file);
        (*file).pMethods = ptr::null();
        (*below).pMethods = ptr::null();
        let Some(open) = (*(*shim).below).xOpen else {
            return ffi::SQLITE_CANTOPEN;
        };
        let code = open((*shim).below, path, below, flags, out_flags);
        let Some(methods) = (*below).pMethods.as_ref() else {
            return code;
        };
        let is_new = flags & ffi::SQLITE_OPEN_CREATE != 0 && flags & JOURNALS != 0;
        ours.write(File {
            base: ffi::sqlite3_file {
                pMethods: ptr::null(),
            },
            methods: methods_over(methods),
            shim,
            fd: -1,
            path,
            is_new: is_new && (*shim).syncs_directories,
        });
        if (*shim).fsync && code == ffi::SQLITE_OK {
            (*ours).fd = descriptor(below);
        }
        // SQLite closes what has methods, even if the open failed.
        (*ours).base.pMethods = &raw const (*ours).methods;
        code
    }
}

/// The descriptor of an open file of the unix VFS; -1 if it does not tell.
///
/// # Safety
///
/// `file` is open.
unsafe fn descriptor(file: *mut ffi::sqlite3_file) -> c_int {
    LAST_FSTAT.set(-1);
    let mut size_bytes = 0;
    // SAFETY: as the caller promises.
    unsafe {
        if let Some(file_size) = (*file).pMethods.as_ref().and_then(|m| m.xFileSize) {
            file_size(file, &mut size_bytes);
        }
    }
    LAST_FSTAT.get()
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    let begin_ns = mono_ns();
    // SAFETY: SQLite gives a file that `open` opened.
    let code = unsafe {
        let ours = file.cast::<File>();
        let below = lower(file);
        match ((*(*ours).shim).fsync, (*(*below).pMethods).xSync) {
            (true, _) => sync_whole(&mut *ours),
            (false, Some(sync)) => sync(below, flags),
            (false, None) => ffi::SQLITE_OK,
        }
    };
    add_sync(mono_ns() - begin_ns);
    code
}

/// As os_unix.c's unixSync, with fsync(2): the file, and once the directory of a new journal.
///
/// # Safety
///
/// `file` is open.
unsafe fn sync_whole(file: &mut File) -> c_int {
    // SAFETY: the VFS below keeps the descriptor open as long as the file.
    if file.fd < 0 || unsafe { libc::fsync(file.fd) } != 0 {
        return ffi::SQLITE_IOERR_FSYNC;
    }
    if std::mem::take(&mut file.is_new) {
        // SQLite, too, takes a failure here as a filesystem that cannot do it.
        // SAFETY: SQLite keeps the path as long as the file is open.
        let _ = unsafe { sync_directory(file.path) };
    }
    ffi::SQLITE_OK
}

/// Syncs the directory of a path.
///
/// # Safety
///
/// `path` is a C string.
unsafe fn sync_directory(path: *const c_char) -> rustix::io::Result<()> {
    use rustix::fs::{Mode, OFlags};
    // SAFETY: as the caller promises.
    let path = Path::new(OsStr::from_bytes(
        unsafe { CStr::from_ptr(path) }.to_bytes(),
    ));
    let parent = path.parent().unwrap_or(Path::new("/"));
    // Closing a directory's descriptor drops no locks of the files in it.
    let directory = rustix::fs::open(
        parent,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    rustix::fs::fsync(directory)
}

unsafe extern "C" fn delete(
    vfs: *mut ffi::sqlite3_vfs,
    path: *const c_char,
    sync_dir: c_int,
) -> c_int {
    // SAFETY: SQLite gives one of our VFSes and a C string.
    unsafe {
        let shim = &*(*vfs).pAppData.cast::<Shim>();
        let Some(delete) = (*shim.below).xDelete else {
            return ffi::SQLITE_IOERR_DELETE;
        };
        if !shim.fsync {
            return delete(shim.below, path, sync_dir);
        }
        let code = delete(shim.below, path, 0);
        if code != ffi::SQLITE_OK || sync_dir & 1 == 0 || !shim.syncs_directories {
            return code;
        }
        match sync_directory(path) {
            Ok(()) => ffi::SQLITE_OK,
            Err(_) => ffi::SQLITE_IOERR_DIR_FSYNC,
        }
    }
}

/// Hands the call down; the commit of an atomic batch is a sync.
unsafe extern "C" fn file_control(
    file: *mut ffi::sqlite3_file,
    operation: c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: SQLite gives a file that `open` opened, whose shim outlives it.
    unsafe {
        let below = lower(file);
        let Some(control) = (*(*below).pMethods).xFileControl else {
            return ffi::SQLITE_NOTFOUND;
        };
        if operation != ffi::SQLITE_FCNTL_COMMIT_ATOMIC_WRITE {
            return control(below, operation, argument);
        }
        let begin_ns = mono_ns();
        let code = control(below, operation, argument);
        if code == ffi::SQLITE_OK {
            add_sync(mono_ns() - begin_ns);
            let shim = (*file.cast::<File>()).shim;
            (*shim).atomic_commits.fetch_add(1, Ordering::Relaxed);
        }
        code
    }
}

/// Hands the call down, and keeps in mind whether the file takes atomic batches.
unsafe extern "C" fn device_characteristics(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: as in `file_control`.
    unsafe {
        let below = lower(file);
        let Some(ask) = (*(*below).pMethods).xDeviceCharacteristics else {
            return 0;
        };
        let found = ask(below);
        if found & ffi::SQLITE_IOCAP_BATCH_ATOMIC != 0 {
            let shim = (*file.cast::<File>()).shim;
            (*shim).has_batch_atomic.store(true, Ordering::Relaxed);
        }
        found
    }
}

/// Declares methods of a file that only hand the call down.
macro_rules! forward_file {
    ($($name:ident => $method:ident($($argument:ident: $type:ty),*);)+) => {$(
        unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file $(, $argument: $type)*) -> c_int {
            // SAFETY: SQLite gives a file that `open` opened; `methods_over` only installs this
            // if the file below has the method.
            unsafe {
                let below = lower(file);
                match (*(*below).pMethods).$method {
                    Some(method) => method(below $(, $argument)*),
                    None => ffi::SQLITE_IOERR,
                }
            }
        }
    )+};
}

forward_file! {
    close => xClose();
    read => xRead(buffer: *mut c_void, amount: c_int, offset: i64);
    write => xWrite(buffer: *const c_void, amount: c_int, offset: i64);
    truncate => xTruncate(size: i64);
    file_size => xFileSize(size: *mut i64);
    lock => xLock(level: c_int);
    unlock => xUnlock(level: c_int);
    check_reserved_lock => xCheckReservedLock(answer: *mut c_int);
    sector_size => xSectorSize();
    shm_map => xShmMap(page: c_int, size: c_int, extend: c_int, answer: *mut *mut c_void);
    shm_lock => xShmLock(offset: c_int, count: c_int, flags: c_int);
    shm_unmap => xShmUnmap(delete: c_int);
    fetch => xFetch(offset: i64, amount: c_int, answer: *mut *mut c_void);
    unfetch => xUnfetch(offset: i64, page: *mut c_void);
}

unsafe extern "C" fn shm_barrier(file: *mut ffi::sqlite3_file) {
    // SAFETY: as in `forward_file`.
    unsafe {
        let below = lower(file);
        if let Some(barrier) = (*(*below).pMethods).xShmBarrier {
            barrier(below);
        }
    }
}

/// Declares methods of a VFS that only hand the call down; `$otherwise` never happens.
macro_rules! forward_vfs {
    ($($name:ident => $method:ident($($argument:ident: $type:ty),*) -> $answer:ty, $otherwise:expr;)+) => {$(
        unsafe extern "C" fn $name(vfs: *mut ffi::sqlite3_vfs $(, $argument: $type)*) -> $answer {
            // SAFETY: SQLite gives one of our VFSes; `forwarding` only installs this if the VFS
            // below has the method.
            unsafe {
                let below = (*(*vfs).pAppData.cast::<Shim>()).below;
                match (*below).$method {
                    Some(method) => method(below $(, $argument)*),
                    None => $otherwise,
                }
            }
        }
    )+};
}

forward_vfs! {
    access => xAccess(path: *const c_char, flags: c_int, answer: *mut c_int) -> c_int, ffi::SQLITE_IOERR;
    full_pathname => xFullPathname(path: *const c_char, size: c_int, answer: *mut c_char) -> c_int, ffi::SQLITE_IOERR;
    dl_open => xDlOpen(path: *const c_char) -> *mut c_void, ptr::null_mut();
    dl_error => xDlError(size: c_int, answer: *mut c_char) -> (), ();
    dl_close => xDlClose(handle: *mut c_void) -> (), ();
    randomness => xRandomness(size: c_int, answer: *mut c_char) -> c_int, 0;
    sleep => xSleep(microseconds: c_int) -> c_int, 0;
    current_time => xCurrentTime(answer: *mut f64) -> c_int, ffi::SQLITE_IOERR;
    get_last_error => xGetLastError(size: c_int, answer: *mut c_char) -> c_int, 0;
    current_time_int64 => xCurrentTimeInt64(answer: *mut i64) -> c_int, ffi::SQLITE_IOERR;
    set_system_call => xSetSystemCall(name: *const c_char, call: ffi::sqlite3_syscall_ptr) -> c_int, ffi::SQLITE_NOTFOUND;
    get_system_call => xGetSystemCall(name: *const c_char) -> ffi::sqlite3_syscall_ptr, None;
    next_system_call => xNextSystemCall(name: *const c_char) -> *const c_char, ptr::null();
}

// The file below begins where ours ends.
const _: () = assert!(size_of::<File>().is_multiple_of(align_of::<*const c_void>()));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fsync_needs_a_vfs_that_lets_its_system_calls_be_replaced() {
        let library = Library::load(None).expect("inside");
        // SAFETY: NULL asks for the default VFS, which is only read.
        let unix = unsafe { *(library.functions.sqlite3_vfs_find)(ptr::null()) };
        let older = ffi::sqlite3_vfs {
            iVersion: 2,
            ..unix
        };
        let other = ffi::sqlite3_vfs {
            xSetSystemCall: None,
            ..unix
        };
        for mut vfs in [older, other] {
            // SAFETY: only the fields are looked at.
            let error = unsafe { watch_fstat(&mut vfs) }.expect_err("refused");
            assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        }
    }

    #[test]
    fn a_vfs_goes_with_its_last_user() {
        let library = Library::load(None).expect("inside");
        let vfs = Vfs::register(library, false, true).expect("registered");
        assert_eq!(vfs.below(), "unix");
        let name = vfs.name().to_owned();
        // SAFETY: it is only looked up.
        let find = || unsafe { (library.functions.sqlite3_vfs_find)(name.as_ptr()) };
        assert!(!find().is_null());
        drop(vfs);
        assert!(find().is_null());
    }
}
