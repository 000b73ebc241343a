//! blkparse's default text: a line each for queueing (Q), issue (D) and completion (C).
//!
//! The recording has no CPU numbers, so the CPU is always 0. A request that was put together from
//! several bios has one Q line, of the time of its first bio.
//!
//! Source: blktrace 1.2.0, `blkparse_fmt.c`, `process_default`.

use std::io::{self, Write};

use iostep_model::operation::rwbs;
use iostep_model::table::{Request, Trace};

use super::{plain_comm, sectors, since_start, thread_id};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    Queue,
    Issue,
    Complete,
}

/// Writes the trace as blkparse text, in the order of time.
///
/// Errors: those of `out`.
pub fn write(out: &mut impl Write, trace: &Trace) -> io::Result<()> {
    let mut events = Vec::with_capacity(trace.requests.len() * 3);
    for (index, request) in trace.requests.iter().enumerate() {
        if request.bios > 0 {
            events.push((request.queue_ns, index, Action::Queue));
        }
        events.push((request.issue_ns, index, Action::Issue));
        if let Some(complete_ns) = request.complete_ns {
            events.push((complete_ns, index, Action::Complete));
        }
    }
    events.sort_unstable();
    for (sequence, (mono_ns, index, action)) in events.into_iter().enumerate() {
        let request = &trace.requests[index];
        line(
            out,
            trace,
            request,
            action,
            sequence + 1,
            since_start(trace, mono_ns),
        )?;
    }
    Ok(())
}

fn line(
    out: &mut impl Write,
    trace: &Trace,
    request: &Request,
    action: Action,
    sequence: usize,
    ns: u64,
) -> io::Result<()> {
    let device = &trace.manifest.device;
    let letter = match action {
        Action::Queue => 'Q',
        Action::Issue => 'D',
        Action::Complete => 'C',
    };
    write!(
        out,
        "{:>3},{:<3}  0 {sequence:>8} {:>5}.{:09} {:>5} {letter:>2} {:>3} ",
        device.major,
        device.minor,
        ns / 1_000_000_000,
        ns % 1_000_000_000,
        thread_id(trace, request.submitter),
        rwbs(request.operation, request.flags),
    )?;
    let (sector, length) = (request.sector, sectors(request.bytes));
    match (action, length) {
        (Action::Complete, 0) => writeln!(out, "{sector} [{}]", request.status),
        (Action::Complete, _) => writeln!(out, "{sector} + {length} [{}]", request.status),
        (_, 0) => writeln!(out, "[{}]", plain_comm(trace, request.submitter)),
        _ => writeln!(
            out,
            "{sector} + {length} [{}]",
            plain_comm(trace, request.submitter)
        ),
    }
}
