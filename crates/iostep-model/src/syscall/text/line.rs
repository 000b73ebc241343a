//! A call's line.

use std::fmt::Write;

use super::super::recording::{Call, Errno, Outcome, Paths};
use super::fields::{Fault, Fields, handle, number, thread};
use super::operation;

/// Appends a call's line without its end.
pub fn write_call(call: &Call, paths: &Paths, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{} ", call.start_ns);
    let _ = match call.duration_ns {
        Some(duration) => write!(out, "{duration}"),
        None => write!(out, "?"),
    };
    let _ = write!(out, " t{} {}", call.thread.0, call.syscall.name());
    operation::write(&call.operation, call.syscall, paths, out);
    let _ = match call.outcome {
        Outcome::Value(value) => write!(out, " = {value}"),
        Outcome::Handle(handle) => write!(out, " = h{}", handle.0),
        Outcome::Failed(errno) => write!(out, " = -{errno}"),
        Outcome::Unfinished => write!(out, " = ?"),
        Outcome::Unknown => write!(out, " = ~"),
    };
}

/// Reads a call's line.
pub(super) fn read_call(line: &str, paths: &mut Paths) -> Result<Call, Fault> {
    // Nothing after the last " = " is quoted, so it is the outcome's whatever a path holds.
    let (call, outcome) = line.rsplit_once(" = ").ok_or("no outcome (\" = \")")?;
    let mut fields = Fields::split(call)?;
    let start = fields.expect("the time")?;
    let start_ns = number(start).ok_or_else(|| format!("{start}: not a time in nanoseconds"))?;
    let duration_ns = match fields.expect("the duration")? {
        "?" => None,
        text => Some(number(text).ok_or_else(|| format!("{text}: not a duration"))?),
    };
    let thread = thread(fields.expect("the thread")?)?;
    let name = fields.expect("the system call")?;
    let syscall = name
        .parse()
        .map_err(|_| format!("{name}: no system call of a trace"))?;
    let operation = operation::read(syscall, &mut fields, paths)?;
    fields.done()?;
    let outcome = read_outcome(outcome)?;
    Ok(Call {
        start_ns,
        duration_ns,
        thread,
        syscall,
        operation,
        outcome,
    })
}

fn read_outcome(text: &str) -> Result<Outcome, Fault> {
    if text.starts_with('h') {
        return handle(text).map(Outcome::Handle);
    }
    match text {
        "?" => return Ok(Outcome::Unfinished),
        "~" => return Ok(Outcome::Unknown),
        _ => {}
    }
    if let Some(name) = text.strip_prefix('-') {
        let numbered = || name.strip_prefix('E').and_then(number).map(Errno);
        let errno = Errno::from_name(name).or_else(numbered);
        return errno
            .map(Outcome::Failed)
            .ok_or_else(|| format!("{text}: not an error's name"));
    }
    let value = number(text).filter(|value: &i64| *value >= 0);
    value
        .map(Outcome::Value)
        .ok_or_else(|| format!("{text}: not an outcome"))
}
