//! Starts a command that waits until it is traced.

use std::ffi::{CString, OsString, c_char};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::{Command, tracee};
use crate::error::{Error, Result};
use crate::user::User;

/// A command of which nothing ran yet.
#[derive(Debug)]
pub(super) struct Launched {
    pub(super) pid: u32,
    name: PathBuf,
    gate: PipeWriter,
    failure: PipeReader,
}

/// What the new process needs, made before it: it must not allocate.
struct Plan {
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    /// Whom it becomes.
    user: Option<User>,
    gate: RawFd,
    failure: RawFd,
}

/// Makes the process, attached by the calling thread.
///
/// Errors: `Usage` for a command that cannot be; `Unsupported` if the process may not be traced;
/// `Io`.
pub(super) fn launch(command: &Command) -> Result<Launched> {
    let Command {
        words: command,
        user,
    } = command;
    let words: std::result::Result<Vec<CString>, _> = command
        .iter()
        .map(|word| CString::new(word.as_bytes()))
        .collect();
    let words = words.map_err(|_| Error::usage("the command", "a word of it has a zero byte"))?;
    let Some(name) = command.first() else {
        return Err(Error::usage("the command", "it is empty; put it behind --"));
    };
    let environment = environment(user.as_ref());
    let failed = || Error::io("the command", "make a pipe to");
    let (wait, gate) = io::pipe().map_err(failed())?;
    let (failure, tell) = io::pipe().map_err(failed())?;
    let pointers = |all: &[CString]| {
        let pointers = all.iter().map(|word| word.as_ptr());
        pointers.chain([std::ptr::null()]).collect()
    };
    let plan = Plan {
        arguments: pointers(&words),
        environment: pointers(&environment),
        user: user.clone(),
        gate: wait.as_raw_fd(),
        failure: tell.as_raw_fd(),
    };
    // SAFETY: the child runs become_command() only, which calls nothing that is not safe after a
    // fork of a process with several threads (signal-safety(7)).
    let pid = match unsafe { libc::fork() } {
        -1 => {
            return Err(Error::io(name, "make a process for")(
                io::Error::last_os_error(),
            ));
        }
        0 => {
            drop_in_child(gate.as_raw_fd());
            // SAFETY: `plan` is whole, and its pointers live here.
            unsafe { become_command(&plan) }
        }
        pid => pid as u32,
    };
    if let Err(error) = tracee::seize(pid) {
        // Closed unopened, the gate ends the process.
        drop(gate);
        tracee::reap(pid);
        return Err(Error::unsupported(
            Path::new(name).display(),
            format!("it may not be traced: {error}; allow ptrace(2), or use --via bpf"),
        ));
    }
    Ok(Launched {
        pid,
        name: name.into(),
        gate,
        failure,
    })
}

/// The child's own copy of the gate would keep it open after the recorder's death.
fn drop_in_child(gate: RawFd) {
    // SAFETY: this is the child, where nobody else uses its copy of the descriptor.
    unsafe { libc::close(gate) };
}

impl Launched {
    /// Lets it run.
    ///
    /// Errors: `Io` if it is gone.
    pub(super) fn open_gate(&mut self) -> Result<()> {
        let opened = self.gate.write_all(&[1]);
        opened.map_err(Error::io(&self.name, "start"))
    }

    /// Why it ended before it ran.
    pub(super) fn failure(self) -> Error {
        let mut number = [0; 4];
        let mut failure = File::from(std::os::fd::OwnedFd::from(self.failure));
        match failure.read_exact(&mut number) {
            Ok(()) => {
                let number = i32::from_ne_bytes(number);
                let error = io::Error::from_raw_os_error(number);
                match number {
                    libc::EACCES => {
                        Error::usage(self.name.display(), format!("cannot run: {error}"))
                    }
                    _ => Error::io(self.name, "run")(error),
                }
            }
            Err(_) => Error::unsupported(self.name.display(), "it was killed before it ran"),
        }
    }
}

/// # Safety
///
/// Called in a new process, with a plan whose pointers are good.
unsafe fn become_command(plan: &Plan) -> ! {
    let mut byte = 0u8;
    // SAFETY: every pointer is to a local or, by the caller's word, good; all functions are
    // async-signal-safe, execvp as glibc and musl implement it.
    unsafe {
        let mut got;
        loop {
            got = libc::read(plan.gate, (&raw mut byte).cast(), 1);
            if got >= 0 || *libc::__errno_location() != libc::EINTR {
                break;
            }
        }
        if got != 1 {
            libc::_exit(127);
        }
        // As std::process::Command leaves them: Rust's runtime ignores SIGPIPE.
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let entered = plan.user.as_ref().map_or(Ok(()), User::enter);
        let error = match entered {
            Err(error) => error.raw_os_error().unwrap_or(libc::EPERM),
            Ok(()) => {
                let (words, environment) = (plan.arguments.as_ptr(), plan.environment.as_ptr());
                libc::execvpe(plan.arguments[0], words, environment);
                *libc::__errno_location()
            }
        };
        libc::write(plan.failure, (&raw const error).cast(), size_of::<i32>());
        libc::_exit(127)
    }
}

/// This process's environment, as `user` has it. A word with a zero byte is in none.
fn environment(user: Option<&User>) -> Vec<CString> {
    let other = user.map_or([].as_slice(), |_| &User::VARIABLES);
    let own = std::env::vars_os().filter(|(name, _)| !other.iter().any(|other| name == other));
    let other = user.into_iter().flat_map(User::environment);
    let other = other.map(|(name, value)| (name.into(), value.to_owned()));
    let line = |(mut line, value): (OsString, OsString)| {
        line.push("=");
        line.push(value);
        CString::new(line.into_vec()).ok()
    };
    own.chain(other).filter_map(line).collect()
}
