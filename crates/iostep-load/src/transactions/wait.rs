//! What SQLite calls while a statement runs: waiting for a lock, and checkpoints.

use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iostep_model::bench::CheckpointMode;
use rusqlite::ffi;

use crate::library::Library;
use iostep_model::clock::mono_ns;

/// The naps of `sqlite3_busy_timeout`, milliseconds, so that waiting costs here what it costs
/// elsewhere (SQLite's main.c, sqliteDefaultBusyCallback).
const NAPS_MS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];
const MILLISECOND_NS: u64 = 1_000_000;

/// A connection's hooks and what they measured. Only the connection's thread touches them.
#[derive(Debug)]
pub(super) struct Hooks {
    library: Library,
    timeout_ns: u64,
    /// Whose xSleep to wait in; the system's if `None`.
    sleeper: Option<NonNull<ffi::sqlite3_vfs>>,
    /// Checkpoint in the hook from so many pages on.
    checkpoint_pages: Option<u32>,
    mode: CheckpointMode,
    stop: Cell<Option<NonNull<AtomicBool>>>,
    /// When the wait under way began.
    began_ns: Cell<u64>,
    busy_ns: Cell<u64>,
    timed_out: Cell<bool>,
    checkpoints_ns: RefCell<Vec<u64>>,
    checkpoint_failed: Cell<bool>,
}

impl Hooks {
    /// Waits at most `timeout_ns` for a lock; checkpoints a WAL of at least `checkpoint_pages`.
    pub fn new(
        library: Library,
        timeout_ns: u64,
        checkpoint_pages: Option<u32>,
        mode: CheckpointMode,
    ) -> Hooks {
        Hooks {
            library,
            timeout_ns,
            sleeper: None,
            checkpoint_pages,
            mode,
            stop: Cell::new(None),
            began_ns: Cell::new(0),
            busy_ns: Cell::new(0),
            timed_out: Cell::new(false),
            checkpoints_ns: RefCell::new(Vec::with_capacity(64)),
            checkpoint_failed: Cell::new(false),
        }
    }

    /// Waits in the VFS, as SQLite's own busy handler does.
    ///
    /// # Safety
    ///
    /// The VFS is registered as long as the hooks live.
    pub unsafe fn sleep_in(self, vfs: NonNull<ffi::sqlite3_vfs>) -> Hooks {
        Hooks {
            sleeper: Some(vfs),
            ..self
        }
    }

    fn sleep(&self, nap_ns: u64) {
        let Some(vfs) = self.sleeper else {
            return std::thread::sleep(Duration::from_nanos(nap_ns));
        };
        let nap_us = c_int::try_from(nap_ns.div_ceil(1000)).unwrap_or(c_int::MAX);
        // SAFETY: as promised to `sleep_in`.
        unsafe {
            if let Some(sleep) = vfs.as_ref().xSleep {
                sleep(vfs.as_ptr(), nap_us);
            }
        }
    }

    /// True if commits to a WAL have to be told.
    pub fn watches_wal(&self) -> bool {
        self.checkpoint_pages.is_some()
    }

    /// Listens to a flag that ends every wait, or no longer.
    ///
    /// # Safety
    ///
    /// The flag outlives the listening.
    pub unsafe fn listen(&self, stop: Option<&AtomicBool>) {
        self.stop.set(stop.map(NonNull::from));
    }

    /// How long locks were waited for since this was last asked, nanoseconds.
    #[inline]
    pub fn take_busy_ns(&self) -> u64 {
        self.busy_ns.take()
    }

    /// True if the last wait was as long as it may be.
    pub fn timed_out(&self) -> bool {
        self.timed_out.get()
    }

    /// True if a checkpoint failed inside of a COMMIT, which itself was done.
    pub fn checkpoint_failed(&self) -> bool {
        self.checkpoint_failed.get()
    }

    /// Shows how long each checkpoint took since this was last asked; the answer is their sum.
    #[inline]
    pub fn take_checkpoints(&self, mut show: impl FnMut(u64)) -> u64 {
        let mut all = self.checkpoints_ns.borrow_mut();
        all.drain(..)
            .inspect(|&checkpoint_ns| show(checkpoint_ns))
            .sum()
    }

    /// Checkpoints one database and remembers how long it took. A lock in the way ends it early,
    /// which is no failure.
    ///
    /// # Safety
    ///
    /// `db` is open, and `schema` is a C string.
    pub unsafe fn checkpoint(&self, db: *mut ffi::sqlite3, schema: *const c_char) -> c_int {
        let sqlite = &self.library.functions;
        let begin_ns = mono_ns();
        // SAFETY: as the caller promises.
        let code = unsafe {
            match sqlite.sqlite3_wal_checkpoint_v2 {
                Some(checkpoint) => {
                    let (log, done) = (ptr::null_mut(), ptr::null_mut());
                    checkpoint(db, schema, mode_number(self.mode), log, done)
                }
                None => (sqlite.sqlite3_wal_checkpoint)(db, schema),
            }
        };
        let checkpoint_ns = mono_ns() - begin_ns;
        self.checkpoints_ns.borrow_mut().push(checkpoint_ns);
        match code & 0xff {
            ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => ffi::SQLITE_OK,
            _ => code,
        }
    }

    /// True if the lock should be tried again.
    fn wait(&self, earlier: c_int) -> bool {
        let now_ns = mono_ns();
        if earlier == 0 {
            self.began_ns.set(now_ns);
        }
        let left_ns = (self.began_ns.get() + self.timeout_ns).saturating_sub(now_ns);
        self.timed_out.set(left_ns == 0);
        if left_ns == 0 || self.must_stop() {
            return false;
        }
        let nap = NAPS_MS[(earlier.max(0) as usize).min(NAPS_MS.len() - 1)];
        self.sleep(left_ns.min(nap * MILLISECOND_NS));
        self.busy_ns.set(self.busy_ns.get() + mono_ns() - now_ns);
        true
    }

    fn must_stop(&self) -> bool {
        // SAFETY: the flag lives, as promised to `listen`.
        let stop = self.stop.get().map(|stop| unsafe { stop.as_ref() });
        stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

fn mode_number(mode: CheckpointMode) -> c_int {
    match mode {
        CheckpointMode::Passive => ffi::SQLITE_CHECKPOINT_PASSIVE,
        CheckpointMode::Full => ffi::SQLITE_CHECKPOINT_FULL,
        CheckpointMode::Restart => ffi::SQLITE_CHECKPOINT_RESTART,
        CheckpointMode::Truncate => ffi::SQLITE_CHECKPOINT_TRUNCATE,
    }
}

/// The busy handler.
///
/// # Safety
///
/// `hooks` points to living [`Hooks`] of the calling thread.
pub(super) unsafe extern "C" fn on_busy(hooks: *mut c_void, earlier: c_int) -> c_int {
    // SAFETY: as the caller promises.
    let hooks = unsafe { &*hooks.cast::<Hooks>() };
    c_int::from(hooks.wait(earlier))
}

/// The WAL hook: what SQLite's own does (main.c, sqlite3WalDefaultHook), timed and in any mode.
///
/// # Safety
///
/// `hooks` points to living [`Hooks`] of the calling thread; the rest is from SQLite.
pub(super) unsafe extern "C" fn on_wal(
    hooks: *mut c_void,
    db: *mut ffi::sqlite3,
    schema: *const c_char,
    pages: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    let hooks = unsafe { &*hooks.cast::<Hooks>() };
    let enough = hooks
        .checkpoint_pages
        .is_some_and(|least| pages.max(0) as u32 >= least);
    if !enough {
        return ffi::SQLITE_OK;
    }
    // SAFETY: SQLite names an open connection and one of its databases.
    let code = unsafe { hooks.checkpoint(db, schema) };
    hooks.checkpoint_failed.set(code != ffi::SQLITE_OK);
    code
}
