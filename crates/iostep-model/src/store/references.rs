//! Whether the tables of a trace fit together.

use std::path::Path;

use crate::SECTOR_BYTES;
use crate::error::{Error, Result};
use crate::table::{Request, Segment, Trace};

/// The first sector number whose byte offset would not fit 63 bits.
const SECTORS_MAX: u64 = (i64::MAX as u64) / SECTOR_BYTES;

/// One row of one table, for messages.
struct TableRow<'a> {
    dir: &'a Path,
    table: &'static str,
    row: usize,
}

impl TableRow<'_> {
    fn corrupt(&self, column: &str, reason: String) -> Error {
        let path = self.dir.join(format!("{}.parquet", self.table));
        Error::corrupt(path, format!("row {}, {column}", self.row), reason)
    }

    fn index(&self, column: &str, index: Option<u32>, rows: usize) -> Result<()> {
        match index {
            Some(index) if index as usize >= rows => {
                Err(self.corrupt(column, format!("refers to row {index} of {rows}")))
            }
            _ => Ok(()),
        }
    }

    fn sector(&self, sector: u64) -> Result<()> {
        match sector > SECTORS_MAX {
            true => Err(self.corrupt("sector", format!("{sector} is past any device"))),
            false => Ok(()),
        }
    }
}

/// Checks every reference between rows: indices are in range, each segment belongs to exactly the
/// request that names it, and a request's segments lie inside it and add up to it.
///
/// `dir` is for messages.
/// Errors: `Corrupt` with file, row and column.
pub fn check(dir: &Path, trace: &Trace) -> Result<()> {
    let place = |table, row| TableRow { dir, table, row };
    let (processes, files, syncs) = (trace.processes.len(), trace.files.len(), trace.syncs.len());
    let mut segments = 0;
    for (row, request) in trace.requests.iter().enumerate() {
        let place = place("requests", row);
        place.sector(request.sector)?;
        place.index("submitter", request.submitter, processes)?;
        place.index("sync", request.sync, syncs)?;
        check_request(&place, row, request, &trace.segments)?;
        segments += usize::from(request.segments);
    }
    for (row, segment) in trace.segments.iter().enumerate() {
        let place = place("segments", row);
        place.index("request", Some(segment.request), trace.requests.len())?;
        place.index("file", segment.file, files)?;
        place.index("dirtier", segment.dirtier, processes)?;
        place.index("cause", segment.cause, syncs)?;
    }
    if segments != trace.segments.len() {
        let reason = format!("requests name {segments} segments");
        return Err(place("segments", trace.segments.len()).corrupt("request", reason));
    }
    for (row, sync) in trace.syncs.iter().enumerate() {
        place("syncs", row).index("process", sync.process, processes)?;
        place("syncs", row).index("file", sync.file, files)?;
    }
    for (row, commit) in trace.commits.iter().enumerate() {
        place("commits", row).index("cause", commit.cause, syncs)?;
    }
    Ok(())
}

fn check_request(
    place: &TableRow<'_>,
    row: usize,
    request: &Request,
    segments: &[Segment],
) -> Result<()> {
    let first = request.first_segment as usize;
    let Some(own) = segments.get(first..first + usize::from(request.segments)) else {
        let reason = format!("reaches past the {} segments", segments.len());
        return Err(place.corrupt("first_segment", reason));
    };
    if own.is_empty() {
        return Ok(());
    }
    if own.iter().any(|segment| segment.request as usize != row) {
        return Err(place.corrupt("first_segment", "names another request's segment".into()));
    }
    let end_bytes = u64::from(request.bytes);
    let inside = |segment: &Segment| {
        segment
            .sector
            .checked_sub(request.sector)
            .and_then(|sectors| sectors.checked_mul(SECTOR_BYTES))
            .and_then(|bytes| bytes.checked_add(u64::from(segment.bytes)))
            .is_some_and(|end| end <= end_bytes)
    };
    if !own.iter().all(inside) {
        return Err(place.corrupt("sector", "a segment lies outside the request".into()));
    }
    let sum: u64 = own.iter().map(|segment| u64::from(segment.bytes)).sum();
    if sum != end_bytes {
        let reason = format!("{end_bytes}, but its segments have {sum}");
        return Err(place.corrupt("bytes", reason));
    }
    Ok(())
}
