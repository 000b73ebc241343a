//! Comma-separated values (RFC 4180): a line per segment, with everything by name.
//!
//! A request without segments has one line whose segment columns are empty.

use std::borrow::Cow;
use std::io::{self, Write};

use iostep_model::operation::rwbs;
use iostep_model::table::{Request, Segment, Trace};

use crate::csv::cell;

const COLUMNS: &str = "request,queue_ns,issue_ns,complete_ns,operation,rwbs,status,phase,\
                       by_tracer,submitter,submitter_pid,sector,bytes,class,layer,evidence,\
                       file,file_type,inode,file_offset_bytes,dirtier,dirtier_pid,\
                       dirtier_by_inode,cause,cause_kind,commit,home,home_class,device,volume";

/// Writes the trace as CSV, in the order of issue. Times are `CLOCK_MONOTONIC`.
///
/// Errors: those of `out`.
pub fn write(out: &mut impl Write, trace: &Trace) -> io::Result<()> {
    write!(out, "{COLUMNS}\r\n")?;
    for (index, request) in trace.requests.iter().enumerate() {
        let segments = trace.segments_of(request);
        if segments.is_empty() {
            request_columns(out, trace, index, request)?;
            write!(out, ",{},{}", request.sector, request.bytes)?;
            out.write_all(b",,,,,,,,,,,,,,,")?;
            place_columns(out, trace, request, None)?;
        }
        for segment in segments {
            request_columns(out, trace, index, request)?;
            segment_columns(out, trace, segment)?;
            place_columns(out, trace, request, segment.volume)?;
        }
    }
    Ok(())
}

fn request_columns(
    out: &mut impl Write,
    trace: &Trace,
    index: usize,
    request: &Request,
) -> io::Result<()> {
    write!(
        out,
        "{index},{},{},{},{},{},{},{},{},{},{}",
        request.queue_ns,
        request.issue_ns,
        number(request.complete_ns),
        request.operation.name(),
        rwbs(request.operation, request.flags),
        request.status,
        request.phase.name(),
        request.by_tracer,
        comm(trace, request.submitter),
        pid(trace, request.submitter),
    )
}

fn segment_columns(out: &mut impl Write, trace: &Trace, segment: &Segment) -> io::Result<()> {
    let file = segment.file.map(|file| &trace.files[file as usize]);
    let path = file.and_then(|file| file.path.as_deref());
    let cause = segment.cause.map(|sync| &trace.syncs[sync as usize]);
    write!(
        out,
        ",{},{},{},{},{},{},{},{},{}",
        segment.sector,
        segment.bytes,
        segment.class.name(),
        segment.class.layer().name(),
        segment.evidence.name(),
        cell(path.unwrap_or_default()),
        file.map_or("", |file| file.file_type.name()),
        number(file.map(|file| file.key.inode)),
        number(segment.file_offset_bytes),
    )?;
    write!(
        out,
        ",{},{},{},{},{},{},{},{}",
        comm(trace, segment.dirtier),
        pid(trace, segment.dirtier),
        segment.dirtier_by_inode,
        number(segment.cause),
        cause.map_or("", |sync| sync.kind.name()),
        number(segment.commit),
        number(segment.home),
        segment.home_class.map_or("", |class| class.name()),
    )
}

/// The disk that counts the sectors, and where there are several filesystems, which one it is.
fn place_columns(
    out: &mut impl Write,
    trace: &Trace,
    request: &Request,
    volume: Option<u16>,
) -> io::Result<()> {
    let device = &trace.manifest.device_at(request.device).name;
    let volume = trace.manifest.volume_title(volume);
    write!(out, ",{},{}\r\n", cell(device), cell(volume))
}

fn number(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn comm(trace: &Trace, process: Option<u32>) -> Cow<'_, str> {
    let comm = process.map(|process| trace.processes[process as usize].comm.as_str());
    cell(comm.unwrap_or_default())
}

fn pid(trace: &Trace, process: Option<u32>) -> String {
    number(process.map(|process| trace.processes[process as usize].pid))
}
