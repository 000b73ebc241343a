//! The recorder that needs no more than ptrace(2): for machines without BTF, for users without
//! root's rights, and to compare with.
//!
//! Every call stops its thread twice, as under `strace -f`. A filter of seccomp(2) would let most of
//! them pass, but stays for life, and fails the calls of whatever nobody traces any more. The records
//! are those of the BPF recorder ([`super::record`]); what is known better here is the size of a file
//! that an open cut.
//!
//! ptrace belongs to a thread: what a function here starts or attaches to, it follows to the end.

mod capture;
mod launch;
mod tracee;
mod tracer;
mod wake;

use std::ffi::OsString;
use std::process::ExitStatus;
use std::sync::atomic::AtomicBool;

use iostep_model::syscall::Header;

use super::file_data::FileData;
use super::present::Present;
use super::{Recorded, Start, spool};
use crate::error::{Error, Result};
use crate::rights;
use crate::user::User;
use tracer::{Subject, Tracer};

#[derive(Clone, Debug)]
pub struct Command {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// Whom it belongs to, if not to whoever runs it.
    pub user: Option<User>,
}

/// Runs a command and records it and all that it starts, until the last of it ended.
///
/// Once `stop` is set, everything is asked to end with SIGTERM, and killed 2 s later. If the calling
/// process dies, what it traces goes on without it. `data` keeps that of each file before its first
/// open.
///
/// Errors: `Io` if the command cannot be run, and the spool is then gone, or if the spool cannot be
/// written; `Unsupported` if the command may not be traced or the kernel is older than 5.3.
pub fn command(
    command: &Command,
    (mut spool, header): (spool::Writer, Header),
    mut data: Option<FileData>,
    stop: &AtomicBool,
) -> Result<(Recorded, ExitStatus)> {
    let begin = || {
        let present = Present::inherited()?;
        if let Some(data) = &mut data {
            present.keep(data);
        }
        let launched = launch::launch(command)?;
        spool.begin(&Start::now().beginning(header, present, 0))?;
        rights::give_up();
        Ok(launched)
    };
    let mut launched = match begin() {
        Ok(launched) => launched,
        Err(error) => {
            spool.discard();
            return Err(error);
        }
    };
    let mut tracer = Tracer::new(Subject::Command(launched.pid), spool, data);
    launched.open_gate()?;
    follow(&mut tracer, stop)?;
    if !tracer.runs {
        tracer.discard();
        return Err(launched.failure());
    }
    let unknown = || Error::unsupported("the command", "how it ended is not known");
    let status = tracer.status.ok_or_else(unknown)?;
    Ok((recorded(tracer)?, status))
}

/// Records a process and all that it starts from now on, until the last of it ended or `stop` is
/// set; then it goes on without the recorder. `data` as in [`command`].
///
/// Errors: `Unsupported` if it may not be traced or the kernel is older than 5.3, `Io` for a process
/// that is not there, and the spool is then gone, or if the spool cannot be written.
pub fn process(
    process: u32,
    (spool, header): (spool::Writer, Header),
    data: Option<FileData>,
    stop: &AtomicBool,
) -> Result<Recorded> {
    let mut tracer = Tracer::new(Subject::Process, spool, data);
    let attached = tracer.attach(process, |data, spool| {
        let present = Present::of(process)?;
        if let Some(data) = data {
            present.keep(data);
        }
        spool.begin(&Start::now().beginning(header, present, 0))
    });
    if let Err(error) = attached {
        tracer.discard();
        return Err(error);
    }
    rights::give_up();
    follow(&mut tracer, stop)?;
    recorded(tracer)
}

fn follow(tracer: &mut Tracer, stop: &AtomicBool) -> Result<()> {
    let followed = wake::while_watched(stop, || tracer.run(stop));
    let followed = followed.map_err(Error::io("iostep-watch", "start the thread"));
    followed
        .and_then(|ended| ended)
        .inspect_err(|_| tracer.abandon())
}

fn recorded(tracer: Tracer) -> Result<Recorded> {
    let (spool, kept) = tracer.recorded()?;
    Ok(Recorded {
        spool: spool.read()?,
        lost: 0,
        kept,
    })
}

#[cfg(test)]
mod tests;
