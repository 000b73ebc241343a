//! The recorder that needs no more than ptrace(2): for machines without BTF, for users without
//! root's rights, and to compare with.
//!
//! Every call of interest stops its thread twice, which costs as much as under `strace
//! --seccomp-bpf`: a filter of seccomp(2) lets all other calls of a command pass. A process that
//! runs already can be given no filter, so all its calls stop. The records are those of the BPF
//! recorder ([`super::record`]); what is known better here is the size of a file that an open cut.
//!
//! ptrace belongs to a thread: what a function here starts or attaches to, it follows to the end.

mod capture;
mod filter;
mod launch;
mod tracee;
mod tracer;
mod wake;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use super::keeper::Keeper;
use super::present::Present;
use super::{Recorded, spool, table};
use crate::error::{Error, Result};
use crate::session::mono_ns;
use tracer::{Subject, Tracer};

/// Runs a command and records it and all that it starts, until the last of it ended: without the
/// recorder, what a filter catches would fail.
///
/// Once `stop` is set, everything is asked to end with SIGTERM, and killed 2 s later. If the calling
/// process dies, so does all that it traces. `keeper` gets the data of each file before its first
/// open.
///
/// Errors: `Io` if the command cannot be run or the spool in `directory` not be written,
/// `Unsupported` if the command may not be traced or the kernel is older than 5.3.
pub fn command(
    command: &[OsString],
    directory: &Path,
    keeper: Option<Keeper>,
    stop: &AtomicBool,
) -> Result<(Recorded, ExitStatus)> {
    let calls = table::entries().map(|entry| entry.number);
    let caught = calls.chain([libc::SYS_prctl]);
    let filter = filter::catching(caught.filter_map(|number| number.try_into().ok()));
    filtered(command, filter, directory, keeper, stop)
}

fn filtered(
    command: &[OsString],
    mut filter: Vec<libc::sock_filter>,
    directory: &Path,
    mut keeper: Option<Keeper>,
    stop: &AtomicBool,
) -> Result<(Recorded, ExitStatus)> {
    let spool = spool::Writer::create(directory)?;
    let present = Present::inherited()?;
    if let Some(keeper) = &mut keeper {
        present.keep(keeper);
    }
    let mut launched = launch::launch(command, &mut filter)?;
    let start = Start::now();
    let mut tracer = Tracer::new(Subject::Command(launched.pid), spool, keeper);
    launched.open_gate()?;
    follow(&mut tracer, stop)?;
    if !tracer.runs {
        return Err(launched.failure());
    }
    let unknown = || Error::unsupported("the command", "how it ended is not known");
    let status = tracer.status.ok_or_else(unknown)?;
    Ok((recorded(tracer, present, &start)?, status))
}

/// Records a process and all that it starts from now on, until the last of it ended or `stop` is
/// set; then it goes on without the recorder. `keeper` as in [`command`].
///
/// Errors: `Unsupported` if it may not be traced or the kernel is older than 5.3, `Io` for a process
/// that is not there and for the spool in `directory`.
pub fn process(
    process: u32,
    directory: &Path,
    keeper: Option<Keeper>,
    stop: &AtomicBool,
) -> Result<Recorded> {
    let spool = spool::Writer::create(directory)?;
    let mut tracer = Tracer::new(Subject::Process, spool, keeper);
    let present = tracer.attach(process, |keeper| {
        let present = Present::of(process)?;
        if let Some(keeper) = keeper {
            present.keep(keeper);
        }
        Ok(present)
    })?;
    let start = Start::now();
    follow(&mut tracer, stop)?;
    recorded(tracer, present, &start)
}

fn follow(tracer: &mut Tracer, stop: &AtomicBool) -> Result<()> {
    let followed = wake::while_watched(stop, || tracer.run(stop));
    let followed = followed.map_err(Error::io("iostep-watch", "start the thread"));
    followed
        .and_then(|ended| ended)
        .inspect_err(|_| tracer.abandon())
}

/// Time 0 of a recording.
struct Start {
    mono_ns: u64,
    wall_ns: i128,
}

impl Start {
    fn now() -> Start {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        Start {
            mono_ns: mono_ns(),
            wall_ns: wall.map_or(0, |wall| wall.as_nanos() as i128),
        }
    }
}

fn recorded(tracer: Tracer, present: Present, start: &Start) -> Result<Recorded> {
    let (spool, kept) = tracer.recorded()?;
    Ok(Recorded {
        spool: spool.read()?,
        present,
        start_mono_ns: start.mono_ns,
        start_wall_ns: start.wall_ns,
        present_since_ns: 0,
        lost: 0,
        kept,
    })
}

#[cfg(test)]
mod tests;
