//! A filter of system calls that kills whoever makes one that it does not know, as Android has for
//! its apps.
//!
//! What is known of it is not asked for: io_uring is refused by name, and the page cache is looked at
//! by mincore(2) instead of cachestat(2). Whatever else comes up, as in an older Android's smaller
//! list, fails with `ENOSYS`, as it does on a kernel without that call.
//!
//! Source: Android's bionic, libc/SYSCALLS.TXT and libc/SECCOMP_*.TXT: what is in none of them, as
//! `cachestat`, `io_uring_setup`, `landlock_create_ruleset` and `openat2`, raises SIGSYS.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use iostep_model::bench::Warning;

use crate::error::{Error, Result};

/// `si_code` of a SIGSYS that a filter raised (include/uapi/asm-generic/siginfo.h).
const SYS_SECCOMP: i32 = 1;

static ENTERED: AtomicBool = AtomicBool::new(false);
/// How often a call was refused, and the number of the last one.
static REFUSED: AtomicU64 = AtomicU64::new(0);
static LAST: AtomicU64 = AtomicU64::new(0);

/// From now on, and for good, this process makes no call that Android is known to refuse, and
/// survives those that slip through.
///
/// Errors: `Io`, if SIGSYS cannot be caught.
pub fn enter() -> Result<()> {
    ENTERED.store(true, Ordering::Relaxed);
    let handler: extern "C" fn(_, _, _) = answer;
    // SAFETY: all zeros is a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: the handler has the signature of SA_SIGINFO, and does nothing but what is safe in one.
    match unsafe { libc::sigaction(libc::SIGSYS, &action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(Error::io("SIGSYS", "catch")(io::Error::last_os_error())),
    }
}

/// True once [`enter`] was called.
pub(crate) fn is_entered() -> bool {
    ENTERED.load(Ordering::Relaxed)
}

/// What was refused until now, if anything was.
pub(crate) fn refused() -> Option<Warning> {
    let calls = REFUSED.load(Ordering::Relaxed);
    (calls > 0).then(|| Warning::CallsRefused {
        calls,
        last: LAST.load(Ordering::Relaxed),
    })
}

/// Makes the refused call return `-ENOSYS`. The kernel has put the registers back as they were before
/// the call, but for the program counter, which is behind it (kernel/seccomp.c, `SECCOMP_RET_TRAP`).
extern "C" fn answer(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    const ENOSYS: i64 = -(libc::ENOSYS as i64);
    // SAFETY: the kernel gives both to a handler with SA_SIGINFO, for as long as it runs.
    let (code, context) = unsafe { ((*info).si_code, &mut *context.cast::<libc::ucontext_t>()) };
    if code != SYS_SECCOMP {
        // Somebody's kill(2): it has the effect that it has without a handler, on return.
        // SAFETY: both functions are safe in a handler.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
        return;
    }
    #[cfg(target_arch = "x86_64")]
    let number = {
        let register = &mut context.uc_mcontext.gregs[libc::REG_RAX as usize];
        std::mem::replace(register, ENOSYS) as u64
    };
    #[cfg(target_arch = "aarch64")]
    let number = {
        let registers = &mut context.uc_mcontext.regs;
        registers[0] = ENOSYS as u64;
        registers[8]
    };
    LAST.store(number, Ordering::Relaxed);
    REFUSED.fetch_add(1, Ordering::Relaxed);
}
