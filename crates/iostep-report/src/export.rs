//! A trace in the formats of other tools.

pub mod blkparse;
pub mod csv;
pub mod most;
pub mod perfetto;

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use iostep_model::printable::is_printable;
use iostep_model::table::Trace;

/// A format that a trace can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// blkparse's default text.
    Blkparse,
    /// MOST's `.po` text.
    Most,
    /// Comma-separated values, a line per segment.
    Csv,
    /// Perfetto's trace in protobuf, which ui.perfetto.dev opens.
    Perfetto,
}

/// Writes `trace` to `out` as it goes along; beyond the trace itself, memory is taken only for an
/// order of events by time.
///
/// Errors: those of `out`.
pub fn write(out: &mut impl Write, trace: &Trace, format: Format) -> io::Result<()> {
    match format {
        Format::Blkparse => blkparse::write(out, trace),
        Format::Most => most::write(out, trace),
        Format::Csv => csv::write(out, trace),
        Format::Perfetto => perfetto::write(out, trace),
    }
}

/// `comm` of a thread as it may stand inside a line: what is not printable left out, and, since it
/// ends a column there, without brackets.
fn plain_comm(trace: &Trace, process: Option<u32>) -> String {
    let Some(process) = process else {
        return "unknown".into();
    };
    let comm = &trace.processes[process as usize].comm;
    comm.replace(|c: char| !is_printable(c) || c == '[' || c == ']', "_")
}

/// Thread id; 0 if it is not known.
fn thread_id(trace: &Trace, process: Option<u32>) -> u32 {
    process.map_or(0, |process| trace.processes[process as usize].pid)
}

/// Length in sectors, rounded up.
fn sectors(bytes: u32) -> u64 {
    u64::from(bytes).div_ceil(iostep_model::SECTOR_BYTES)
}

/// Nanoseconds since the recording's start.
fn since_start(trace: &Trace, mono_ns: u64) -> u64 {
    mono_ns.saturating_sub(trace.manifest.clocks.mono_ns)
}
