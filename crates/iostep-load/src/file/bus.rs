//! SIGBUS without dying of it.
//!
//! A mapped page that cannot be read, or that finds no space when it is first written, is told by
//! a signal in the middle of a copy. The handler puts an empty page of memory there, so that the
//! copy goes on, and remembers that it did: the operation then fails like a call that returns an
//! error. Signals for any other address go where they went before.

use std::cell::Cell;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence};

use crate::error::{Error, Result};

thread_local! {
    // Without a destructor and initialised by a constant, so that a handler may use them: access
    // is a load from the thread's own memory.
    static GUARDED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    static HIT: Cell<bool> = const { Cell::new(false) };
}

/// What happened to the signal before.
static BEFORE: OnceLock<Before> = OnceLock::new();

struct Before(libc::sigaction);

// SAFETY: plain numbers; the pointer within is to code.
unsafe impl Send for Before {}
// SAFETY: as above, and nobody changes it.
unsafe impl Sync for Before {}

/// Guards one range of addresses for the calling thread, until it is dropped in that thread.
#[derive(Debug)]
pub struct Guard(());

impl Guard {
    /// Guards `addresses`, which is a mapping of this thread's alone.
    ///
    /// Errors: `Io` if the handler cannot be set.
    pub fn new(addresses: Range<usize>) -> Result<Guard> {
        install().map_err(Error::io("SIGBUS", "set a handler for"))?;
        HIT.set(false);
        GUARDED.set((addresses.start, addresses.end));
        compiler_fence(Ordering::SeqCst);
        Ok(Guard(()))
    }

    /// True if a page was missing since the guard was made.
    #[inline]
    pub fn was_hit(&self) -> bool {
        compiler_fence(Ordering::SeqCst);
        HIT.get()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        GUARDED.set((0, 0));
    }
}

fn install() -> std::io::Result<()> {
    let result = |code| match code {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    };
    if BEFORE.get().is_some() {
        return Ok(());
    }
    // SAFETY: all zeros is a valid `sigaction`.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: only asks, into a `sigaction` that lives through the call.
    result(unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut before) })?;
    // Known before it can be needed.
    if BEFORE.set(Before(before)).is_err() {
        return Ok(());
    }
    // SAFETY: all zeros is a valid `sigaction`.
    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = handle as *const () as usize;
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler has the signature that SA_SIGINFO asks for and does only what a handler
    // may do.
    result(unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, std::ptr::null_mut()) })
}

extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes valid information, and SIGBUS has an address.
    let address = unsafe { (*info).si_addr() } as usize;
    let (start, end) = GUARDED.get();
    if (start..end).contains(&address) && replace_page(address) {
        HIT.set(true);
        return;
    }
    pass_on(signal, info, context);
}

/// Puts an empty page where `address` is.
fn replace_page(address: usize) -> bool {
    // SAFETY: asks for a constant.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let start = (address & !(page - 1)) as *mut libc::c_void;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: replaces a page of the guarded mapping, which is this thread's alone and which
    // nobody can read or write; system calls are all that happens.
    let result = unsafe { libc::mmap(start, page, protection, flags, -1, 0) };
    result == start
}

fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    type Informed = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
    let before = BEFORE.get().map(|before| before.0);
    match before {
        Some(action)
            if action.sa_flags & libc::SA_SIGINFO != 0
                && action.sa_sigaction != libc::SIG_DFL
                && action.sa_sigaction != libc::SIG_IGN =>
        {
            // SAFETY: whoever set it promised this signature by SA_SIGINFO.
            let handler: Informed = unsafe { std::mem::transmute(action.sa_sigaction) };
            handler(signal, info, context);
        }
        // The faulting instruction runs again, and the kernel then does what it did before us.
        // SAFETY: sets an action that was set before, or the default one.
        _ => unsafe {
            let mut default: libc::sigaction = std::mem::zeroed();
            default.sa_sigaction = libc::SIG_DFL;
            let action = before.unwrap_or(default);
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        },
    }
}
