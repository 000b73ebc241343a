//! ptrace(2) and waitpid(2) in safe words.

use std::io;

use libc::{c_int, c_long, c_uint, c_void};

/// A thread stopped, or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It is gone; the status is waitpid's.
    Ended(c_int),
    /// It enters or leaves a system call.
    Call,
    /// It made a thread or process.
    Fork,
    /// It runs another program.
    Exec,
    /// Job control stopped it; it stays stopped until SIGCONT.
    Group,
    /// It was just attached, interrupted or continued.
    Trap,
    /// A signal is about to be delivered.
    Signal(c_int),
}

/// The calling convention whose numbers are recorded (include/uapi/linux/audit.h).
pub(super) const ARCHITECTURE: u32 = if cfg!(target_arch = "aarch64") {
    0xc000_00b7
} else {
    0xc000_003e
};
/// Numbers from here on are x32's, which is another calling convention under the same name
/// (`__X32_SYSCALL_BIT`, arch/x86/include/uapi/asm/unistd.h).
pub(super) const FIRST_FOREIGN: u64 = 0x4000_0000;
/// The register of the first argument, among those of `NT_PRSTATUS`: rdi, x0.
const FIRST_ARGUMENT: usize = if cfg!(target_arch = "aarch64") { 0 } else { 14 };
/// `NT_PRSTATUS` (include/uapi/linux/elf.h): the general registers.
const NT_PRSTATUS: usize = 1;
/// More registers than any architecture has there.
const MOST_REGISTERS: usize = 64;

/// What a thread that stopped at a system call is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    Enter(Call),
    /// It leaves: what the call returned, a negative error number if it failed.
    Leave(i64),
    /// Neither.
    Nothing,
}

/// A system call as its caller made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// `AUDIT_ARCH_` of the calling convention (include/uapi/linux/audit.h).
    pub(super) architecture: u32,
    pub(super) number: u64,
    pub(super) arguments: [u64; 6],
}

/// # Safety
///
/// `address` and `data` are what `request` takes: numbers, or memory that it may write to.
unsafe fn ptrace(request: c_uint, tid: u32, address: usize, data: usize) -> io::Result<c_long> {
    // SAFETY: the caller's.
    let result = unsafe {
        libc::ptrace(
            request,
            tid as libc::pid_t,
            address as *mut c_void,
            data as *mut c_void,
        )
    };
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

/// A request whose arguments are numbers.
fn request(request: c_uint, tid: u32, data: c_int) -> io::Result<()> {
    // SAFETY: no request that this module passes here has a pointer.
    unsafe { ptrace(request, tid, 0, data as usize) }.map(drop)
}

/// Attaches without stopping. New threads and processes of the thread are attached too. If the
/// recorder dies, they go on without it.
pub(super) fn seize(tid: u32) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACEEXEC;
    request(libc::PTRACE_SEIZE, tid, options)
}

/// Stops a running thread soon.
pub(super) fn interrupt(tid: u32) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, tid, 0)
}

/// Lets a stopped thread go on to the next system call, or the end of this one, with a signal if
/// not 0. That it is not there any more is no error: SIGKILL ends stopped threads too.
pub(super) fn resume(tid: u32, signal: c_int) -> io::Result<()> {
    unless_gone(request(libc::PTRACE_SYSCALL, tid, signal))
}

/// Changes the first argument of the system call that a thread enters.
pub(super) fn set_first_argument(tid: u32, value: u64) -> io::Result<()> {
    let mut registers = [0_u64; MOST_REGISTERS];
    let mut part = libc::iovec {
        iov_base: registers.as_mut_ptr().cast(),
        iov_len: size_of_val(&registers),
    };
    let data = (&raw mut part) as usize;
    // SAFETY: PTRACE_GETREGSET writes at most `iov_len` bytes to `iov_base`, and the length.
    unsafe { ptrace(libc::PTRACE_GETREGSET, tid, NT_PRSTATUS, data) }?;
    let bytes = part.iov_len;
    registers[FIRST_ARGUMENT] = value;
    let mut part = libc::iovec {
        iov_base: registers.as_mut_ptr().cast(),
        iov_len: bytes,
    };
    let data = (&raw mut part) as usize;
    // SAFETY: PTRACE_SETREGSET reads the `iov_len` bytes that were written before.
    unsafe { ptrace(libc::PTRACE_SETREGSET, tid, NT_PRSTATUS, data) }.map(drop)
}

/// Changes a word of a stopped thread's memory, write-protected or not.
pub(super) fn set_word(tid: u32, address: u64, value: u64) -> io::Result<()> {
    let address = usize::try_from(address).map_err(io::Error::other)?;
    // SAFETY: PTRACE_POKEDATA takes an address of the other process and a value.
    unsafe { ptrace(libc::PTRACE_POKEDATA, tid, address, value as usize) }.map(drop)
}

/// Leaves a thread stopped that job control stopped, but hears of its continuation.
pub(super) fn listen(tid: u32) -> io::Result<()> {
    unless_gone(request(libc::PTRACE_LISTEN, tid, 0))
}

/// Lets a stopped thread go for good.
pub(super) fn detach(tid: u32, signal: c_int) -> io::Result<()> {
    unless_gone(request(libc::PTRACE_DETACH, tid, signal))
}

fn unless_gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        result => result,
    }
}

/// The new thread of [`Stop::Fork`], the former number of [`Stop::Exec`]. None if it is gone.
pub(super) fn message(tid: u32) -> Option<u32> {
    let mut message: libc::c_ulong = 0;
    let data = (&raw mut message) as usize;
    // SAFETY: PTRACE_GETEVENTMSG writes an unsigned long to `data`.
    unsafe { ptrace(libc::PTRACE_GETEVENTMSG as c_uint, tid, 0, data) }.ok()?;
    u32::try_from(message).ok()
}

/// What a thread does in [`Stop::Call`]; nothing if it is gone.
///
/// Errors: the kernel does not say it (before Linux 5.3).
pub(super) fn at(tid: u32) -> io::Result<At> {
    let mut info = std::mem::MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let size = size_of::<libc::ptrace_syscall_info>();
    // SAFETY: PTRACE_GET_SYSCALL_INFO writes at most `size` bytes to the last argument.
    let got = unsafe {
        ptrace(
            libc::PTRACE_GET_SYSCALL_INFO,
            tid,
            size,
            info.as_mut_ptr() as usize,
        )
    };
    match got {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(At::Nothing),
        got => got?,
    };
    // SAFETY: the structure is integers only, and was zero before the kernel wrote to it.
    let info = unsafe { info.assume_init() };
    let call = |number, arguments| {
        At::Enter(Call {
            architecture: info.arch,
            number,
            arguments,
        })
    };
    Ok(match info.op {
        libc::PTRACE_SYSCALL_INFO_ENTRY => {
            // SAFETY: `op` says which of the union's members the kernel wrote.
            let entry = unsafe { info.u.entry };
            call(entry.nr, entry.args)
        }
        libc::PTRACE_SYSCALL_INFO_EXIT => {
            // SAFETY: as above.
            At::Leave(unsafe { info.u.exit }.sval)
        }
        _ => At::Nothing,
    })
}

/// Waits for any thread that the calling thread traces. None: a signal came.
///
/// Errors: `ECHILD` if there is none.
pub(super) fn wait() -> io::Result<Option<(u32, Stop)>> {
    let mut status = 0;
    // SAFETY: `status` is a place for an int.
    let tid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
    if tid < 0 {
        let error = io::Error::last_os_error();
        return match error.kind() {
            io::ErrorKind::Interrupted => Ok(None),
            _ => Err(error),
        };
    }
    Ok(Some((tid as u32, stop_of(status))))
}

/// Waits for a child that is not traced, and forgets it.
pub(super) fn reap(pid: u32) {
    let mut status = 0;
    // SAFETY: `status` is a place for an int.
    unsafe { libc::waitpid(pid as libc::pid_t, &raw mut status, 0) };
}

/// ptrace(2), "Stopped states".
fn stop_of(status: c_int) -> Stop {
    if !libc::WIFSTOPPED(status) {
        return Stop::Ended(status);
    }
    let signal = libc::WSTOPSIG(status);
    match (status >> 16, signal) {
        (0, signal) if signal == libc::SIGTRAP | 0x80 => Stop::Call,
        (0, signal) => Stop::Signal(signal),
        (libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE, _) => {
            Stop::Fork
        }
        (libc::PTRACE_EVENT_EXEC, _) => Stop::Exec,
        (libc::PTRACE_EVENT_STOP, signal) if signal != libc::SIGTRAP => Stop::Group,
        _ => Stop::Trap,
    }
}

/// Copies memory of a thread; how many bytes could be read from the beginning.
pub(super) fn read(tid: u32, address: u64, bytes: &mut [u8]) -> usize {
    let Ok(address) = usize::try_from(address) else {
        return 0;
    };
    let here = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    let there = libc::iovec {
        iov_base: address as *mut c_void,
        iov_len: bytes.len(),
    };
    // SAFETY: `here` is the slice; `there` is looked at in the other process only, by the kernel.
    let read = unsafe {
        libc::process_vm_readv(
            tid as libc::pid_t,
            &raw const here,
            1,
            &raw const there,
            1,
            0,
        )
    };
    usize::try_from(read).unwrap_or(0).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_are_told_apart() {
        let stopped = |event: c_int, signal: c_int| stop_of(event << 16 | signal << 8 | 0x7f);
        assert_eq!(stop_of(3 << 8), Stop::Ended(3 << 8));
        assert_eq!(stop_of(libc::SIGKILL), Stop::Ended(libc::SIGKILL));
        assert_eq!(stopped(0, libc::SIGTRAP | 0x80), Stop::Call);
        assert_eq!(stopped(0, libc::SIGTRAP), Stop::Signal(libc::SIGTRAP));
        assert_eq!(stopped(0, libc::SIGSTOP), Stop::Signal(libc::SIGSTOP));
        let event = libc::PTRACE_EVENT_STOP;
        assert_eq!(stopped(event, libc::SIGTRAP), Stop::Trap);
        assert_eq!(stopped(event, libc::SIGSTOP), Stop::Group);
        assert_eq!(stopped(libc::PTRACE_EVENT_VFORK, libc::SIGTRAP), Stop::Fork);
    }

    #[test]
    fn memory_that_is_not_there_reads_short() {
        let text = *b"here";
        let mut bytes = [0; 4];
        let own = std::process::id();
        assert_eq!(read(own, text.as_ptr() as u64, &mut bytes), 4);
        assert_eq!(bytes, text);
        assert_eq!(read(own, 8, &mut bytes), 0);
        assert_eq!(read(own, u64::MAX, &mut bytes), 0);
    }
}
