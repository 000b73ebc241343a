//! Tells how long flushes take: those that waldio makes by itself reach no VFS that could be
//! watched.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What is called after a flush, in the thread that made it.
pub type FlushHook = fn(Duration);

static HOOK: OnceLock<FlushHook> = OnceLock::new();

/// Calls `hook` after each `fdatasync` and each durable write of waldio's own, with the time it
/// took. The flushes that waldio leaves to the VFS below are not among them. There is one hook for the
/// process: the answer is false, and the first one stays, if there was one.
pub fn on_flush(hook: FlushHook) -> bool {
    HOOK.set(hook).is_ok()
}

fn timed<T>(flush: impl FnOnce() -> T) -> T {
    let Some(hook) = HOOK.get() else {
        return flush();
    };
    let begin = Instant::now();
    let answer = flush();
    let elapsed = begin.elapsed();
    // SAFETY: the place is the thread's own, and there as long as the thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let of_flush = unsafe { *errno };
    hook(elapsed);
    // SAFETY: as above.
    unsafe { *errno = of_flush };
    answer
}

/// What waldio.c calls as fdatasync(2); errno is that of the call.
#[unsafe(no_mangle)]
extern "C" fn waldio_hook_fdatasync(fd: c_int) -> c_int {
    // SAFETY: any number is a valid argument.
    timed(|| unsafe { libc::fdatasync(fd) })
}

/// What waldio.c calls as pwritev2(2); errno is that of the call.
///
/// # Safety
///
/// As of pwritev2(2): `parts` has `count` entries that can be read.
#[unsafe(no_mangle)]
unsafe extern "C" fn waldio_hook_pwritev2(
    fd: c_int,
    parts: *const libc::iovec,
    count: c_int,
    offset: libc::off_t,
    flags: c_int,
) -> libc::ssize_t {
    // SAFETY: as the caller promises.
    timed(|| unsafe { libc::pwritev2(fd, parts, count, offset, flags) })
}
