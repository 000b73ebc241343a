//! The output of MOST (FI'13 table 2), which its viewer reads.
//!
//! Tab-separated: completion time in seconds, `C`, flags, sector, sectors, thread, command, block
//! type (`D`ata, `J`ournal, `M`etadata), path or `file-NONE`. A request with bytes of several
//! types or files has a line for each run of them.
//!
//! Directories are data there (FI'13 section 3.2). What is not known is metadata without a file,
//! as in MOST's own samples, and so is a flush, whose flags are those of an empty write. The viewer
//! knows reads, writes and `N`; a discard, an erase or a zone's management is an `N`.
//!
//! Source: github.com/ESOS-Lab/MOST, `README.md` and `Viewer/result3.po`.

use std::io::{self, Write};

use iostep_model::class::{Class, Layer};
use iostep_model::operation::{Flags, Operation, rwbs};
use iostep_model::printable;
use iostep_model::table::{Request, Segment, Trace};

use super::{plain_comm, sectors, since_start, thread_id};

const NO_FILE: &str = "file-NONE";

/// Writes the trace in MOST's form, in the order of completion; requests that did not come back
/// are left out.
///
/// Errors: those of `out`.
pub fn write(out: &mut impl Write, trace: &Trace) -> io::Result<()> {
    let mut complete: Vec<(u64, usize)> = trace
        .requests
        .iter()
        .enumerate()
        .filter_map(|(index, request)| Some((request.complete_ns?, index)))
        .collect();
    complete.sort_unstable();
    for (complete_ns, index) in complete {
        let request = &trace.requests[index];
        let ns = since_start(trace, complete_ns);
        let segments = trace.segments_of(request);
        if segments.is_empty() {
            line(out, trace, request, ns, &[])?;
        }
        for run in segments.chunk_by(|a, b| kind_of(a) == kind_of(b)) {
            line(out, trace, request, ns, run)?;
        }
    }
    Ok(())
}

/// What decides a line: the block type and, for data, the file.
fn kind_of(segment: &Segment) -> (char, Option<u32>) {
    match (segment.class, segment.class.layer()) {
        (Class::Directory, _) | (_, Layer::Data) => ('D', segment.file),
        (_, Layer::Journal) => ('J', None),
        (_, Layer::Metadata | Layer::Unknown) => ('M', None),
    }
}

fn line(
    out: &mut impl Write,
    trace: &Trace,
    request: &Request,
    ns: u64,
    run: &[Segment],
) -> io::Result<()> {
    let first = run.first();
    let (kind, file) = first.map_or(('M', None), kind_of);
    let sector = first.map_or(request.sector, |segment| segment.sector);
    let length = match first {
        Some(_) => run.iter().map(|segment| sectors(segment.bytes)).sum(),
        None => sectors(request.bytes),
    };
    let process = first
        .and_then(|segment| segment.dirtier)
        .or(request.submitter);
    let path = file.map(|file| trace.file_path(file));
    writeln!(
        out,
        "{:>5}.{:09}\tC\t{}\t{sector:>8}\t{length:>4}\t{:>4}\t{:>20}\t{kind}\t{}",
        ns / 1_000_000_000,
        ns % 1_000_000_000,
        flags_of(request),
        thread_id(trace, process),
        plain_comm(trace, process),
        path.as_deref().map_or(NO_FILE.into(), printable),
    )
}

/// The viewer looks for an `R`, then for a `W`, and else knows `N` alone; any other letters it takes
/// for those of the line before (`Viewer/test.py`). So what neither reads nor writes is `N`.
fn flags_of(request: &Request) -> String {
    let sync = Flags(request.flags.0 & Flags::SYNC.0);
    match request.operation {
        Operation::Flush => rwbs(Operation::Write, sync),
        Operation::WriteZeroes => rwbs(Operation::Write, request.flags),
        Operation::Discard
        | Operation::SecureErase
        | Operation::Other
        | Operation::ZoneManagement
        | Operation::DriverIn
        | Operation::DriverOut => "N".to_owned(),
        operation @ (Operation::Read | Operation::Write | Operation::ZoneAppend) => {
            rwbs(operation, request.flags)
        }
    }
}
