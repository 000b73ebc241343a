//! Makes waitpid(2) return when somebody asks for the end.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, ScopedJoinHandle};
use std::time::Duration;

/// How often the flag is looked at.
const INTERVAL: Duration = Duration::from_millis(50);

/// Runs `traced` here, while another thread sends this one a signal again and again once `flag` is
/// set, so that no wait of it goes on for long.
///
/// Errors: no thread can be started.
pub(super) fn while_watched<T>(flag: &AtomicBool, traced: impl FnOnce() -> T) -> io::Result<T> {
    let signal = libc::SIGRTMIN() + 4;
    catch(signal)?;
    // SAFETY: no precondition.
    let thread = unsafe { libc::pthread_self() };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = || {
            while !done.load(Ordering::Acquire) {
                if flag.load(Ordering::Relaxed) {
                    // SAFETY: the thread runs: it waits for this one before it leaves the scope.
                    unsafe { libc::pthread_kill(thread, signal) };
                }
                std::thread::park_timeout(INTERVAL);
            }
        };
        let builder = Builder::new().name("iostep-watch".into());
        let watcher: ScopedJoinHandle<'_, ()> = builder.spawn_scoped(scope, watch)?;
        let _ended = Ended(&done, watcher.thread().clone());
        Ok(traced())
    })
}

/// Ends the watch, whatever becomes of what was watched.
struct Ended<'a>(&'a AtomicBool, std::thread::Thread);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        self.1.unpark();
    }
}

extern "C" fn do_nothing(_: libc::c_int) {}

/// A handler without `SA_RESTART`: the wait ends with `EINTR`.
fn catch(signal: libc::c_int) -> io::Result<()> {
    // SAFETY: all zero is a sigaction without flags and with an empty mask; the handler does
    // nothing, so it may run at any moment.
    let set = unsafe {
        let mut action = std::mem::zeroed::<libc::sigaction>();
        action.sa_sigaction = do_nothing as extern "C" fn(libc::c_int) as usize;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut())
    };
    match set {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
