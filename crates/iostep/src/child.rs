//! The command that is recorded: its process and whatever that leaves behind.

use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::Context;
use iostep_model::manifest;
use iostep_trace::user::User;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, wait};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};

use crate::error::bad_input;

/// How long a command that was asked to end may take.
const TERMINATION: Duration = Duration::from_secs(2);

/// True if what is at a path, or the path, is the reason why it cannot be run.
fn is_no_program(error: &std::io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::NOENT | Errno::ACCESS | Errno::NOEXEC))
}

/// A running command.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    pidfd: OwnedFd,
    status: Option<ExitStatus>,
}

impl Child {
    /// Starts a command, as another user if one is given. Processes that outlive it become this process's children, so that they
    /// can be waited for.
    ///
    /// Errors: the command cannot be run.
    pub fn spawn(command: &[String], user: Option<&User>) -> anyhow::Result<Child> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .context("cannot adopt the command's descendants")?;
        let mut process = Command::new(&command[0]);
        process.args(&command[1..]);
        if let Some(user) = user.cloned() {
            process.envs(user.environment());
            // SAFETY: that makes only system calls, which are safe between fork and exec.
            unsafe { process.pre_exec(move || user.enter()) };
        }
        let mut process = process.spawn().map_err(|error| {
            let is_no_program = is_no_program(&error);
            let error = anyhow::Error::new(error);
            let error = error.context(format!("{}: cannot run the command", command[0]));
            match is_no_program {
                true => bad_input(error),
                false => error,
            }
        })?;
        let pid = Pid::from_child(&process);
        let pidfd = pidfd_open(pid, PidfdFlags::empty())
            .inspect_err(|_| {
                // Without a handle the command cannot be watched: it must not run on alone.
                let _ = process.kill();
                let _ = process.wait();
            })
            .context("cannot watch the command")?;
        Ok(Child {
            process,
            pidfd,
            status: None,
        })
    }

    /// True once the command has ended; waits for that, at most `timeout`.
    pub fn wait(&mut self, timeout: Duration) -> anyhow::Result<bool> {
        let timeout = Timespec::try_from(timeout).context("a timeout out of range")?;
        let mut handles = [PollFd::new(&self.pidfd, PollFlags::IN)];
        match poll(&mut handles, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for the command"),
        }
        if self.status.is_none() {
            self.status = self
                .process
                .try_wait()
                .context("cannot wait for the command")?;
        }
        Ok(self.status.is_some())
    }

    /// Asks a command that still runs to end, and gives it a moment.
    pub fn terminate(&mut self) {
        if self.status.is_some() {
            return;
        }
        // It may have ended just now, which is what was wanted.
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, rustix::process::Signal::TERM);
        let _ = self.wait(TERMINATION);
    }

    /// True while processes that the command started still run. Reaps those that ended.
    pub fn outlived_by_descendants(&self) -> bool {
        if self.status.is_none() {
            return false;
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// The signal that killed the command, if one did.
    pub fn signal(&self) -> Option<i32> {
        self.status.and_then(|status| status.signal())
    }

    /// What a shell has in `$?` once the command has ended: 128 and the number of the signal that
    /// killed it.
    pub fn shell_status(&self) -> Option<u8> {
        let status = self.status?;
        let signal = || status.signal().map(|signal| 128 + signal);
        u8::try_from(status.code().or_else(signal)?).ok()
    }

    pub fn description(&self, argv: &[String]) -> manifest::Command {
        manifest::Command {
            argv: argv.to_vec(),
            pid: self.process.id(),
            exit_status: self.status.and_then(|status| status.code()),
            signal: self.signal(),
        }
    }
}
