//! The trace request by request: table 2 of FI'13, with what MOST could not know.
//!
//! One line per segment, in the order of issue; a request without segments has one line, too.

use std::fmt::Write as _;
use std::io::{self, Write};

use iostep_model::operation::rwbs;
use iostep_model::printable;
use iostep_model::table::{Phase, Request, Segment, Trace};

use super::quantity::seconds;

const HEADER: &str = "     issued (s)   complete (s) rwbs         sector    bytes \
                      dirtied by           submitted by         class             \
                      evidence       cause                file";

/// Writes the table to `out`, line by line.
///
/// Errors: those of `out`.
pub fn write(out: &mut impl Write, trace: &Trace) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    let mut line = String::new();
    for request in &trace.requests {
        let segments = trace.segments_of(request);
        let first = segments.first();
        line_of(&mut line, trace, request, first);
        writeln!(out, "{}", line.trim_end())?;
        for segment in segments.iter().skip(1) {
            line_of(&mut line, trace, request, Some(segment));
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    Ok(())
}

fn line_of(line: &mut String, trace: &Trace, request: &Request, segment: Option<&Segment>) {
    let start_ns = trace.manifest.clocks.mono_ns;
    let time = |ns: u64| seconds(ns.saturating_sub(start_ns));
    let thread = |process: Option<u32>| match process {
        Some(process) => printable(&trace.thread_name(process)).into_owned(),
        None => "-".into(),
    };
    let (sector, bytes) = match segment {
        Some(segment) => (segment.sector, segment.bytes),
        None => (request.sector, request.bytes),
    };
    let dirtier = segment.and_then(|s| s.dirtier);
    let by_inode = segment.is_some_and(|s| s.dirtier_by_inode && s.dirtier.is_some());
    line.clear();
    write!(
        line,
        "{:>15} {:>14} {:<6} {sector:>12} {bytes:>8} {:<20} {:<20} {:<17} {:<14} {:<20} {}{}",
        time(request.issue_ns),
        request.complete_ns.map_or_else(|| "-".into(), time),
        rwbs(request.operation, request.flags),
        thread(dirtier) + if by_inode { "?" } else { "" },
        thread(request.submitter),
        segment.map_or("-", |s| s.class.name()),
        segment.map_or("-", |s| s.evidence.name()),
        segment
            .map_or(request.sync, |s| s.cause)
            .map_or_else(|| "-".into(), |sync| cause_of(trace, sync)),
        file_of(trace, segment),
        mark_of(request),
    )
    .expect("writing to a string cannot fail");
}

fn cause_of(trace: &Trace, sync: u32) -> String {
    format!("{} #{sync}", trace.syncs[sync as usize].kind.name())
}

/// The file with the offset in it; for a block of the log, the home of its copy.
fn file_of(trace: &Trace, segment: Option<&Segment>) -> String {
    let Some(segment) = segment else {
        return "-".into();
    };
    let mut text = match segment.file {
        Some(file) => printable(&trace.file_name(file)).into_owned(),
        None => "-".into(),
    };
    if let Some(offset) = segment.file_offset_bytes {
        write!(text, " +{offset}").expect("writing to a string cannot fail");
    }
    match (segment.home_class, segment.home) {
        (Some(class), Some(home)) => {
            write!(text, " (copy of {} {home})", class.name())
        }
        (None, Some(home)) => write!(text, " (logical {home})"),
        _ => Ok(()),
    }
    .expect("writing to a string cannot fail");
    text
}

fn mark_of(request: &Request) -> String {
    let mut mark = String::new();
    if request.status != 0 {
        write!(mark, " [failed, status {}]", request.status).expect("a string takes it");
    }
    if request.phase != Phase::Run {
        write!(mark, " [{}]", request.phase.name()).expect("a string takes it");
    }
    if request.by_tracer {
        mark.push_str(" [tracer]");
    }
    mark
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostep_model::fixture;

    #[test]
    fn each_segment_has_a_line() {
        let mut trace = fixture::sqlite_on_ext4(9);
        trace.requests[8].phase = Phase::Settle;
        trace.requests[1].complete_ns = None;
        trace.segments[1].dirtier_by_inode = true;
        let mut out = Vec::new();
        write(&mut out, &trace).expect("a vector takes it");
        let text = String::from_utf8(out).expect("text");
        insta::assert_snapshot!(text);
        let bare = trace.requests.iter().filter(|r| r.segments == 0).count();
        assert_eq!(text.lines().count(), 1 + trace.segments.len() + bare);
    }
}
