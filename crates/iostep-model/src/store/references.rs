//! Whether the tables of a trace fit together.

use std::path::Path;

use crate::error::{Error, Result};
use crate::table::{Commit, MarkerRow, Request, Segment, Sync};
use crate::{SECTOR_BYTES, SECTORS_MAX};

/// How many rows the tables have that others refer to.
#[derive(Clone, Copy)]
pub(super) struct Counts {
    pub processes: usize,
    pub files: usize,
    pub syncs: usize,
    pub segments: usize,
}

/// One row of one table, for messages.
pub(super) struct Place<'a> {
    pub dir: &'a Path,
    pub table: &'static str,
    pub row: usize,
}

impl Place<'_> {
    fn corrupt(&self, column: &str, reason: String) -> Error {
        let path = self.dir.join(format!("{}.parquet", self.table));
        Error::corrupt(path, format!("row {}, {column}", self.row), reason)
    }

    /// A request whose segments are not all there.
    pub(super) fn too_far(&self, counts: &Counts) -> Error {
        let reason = format!("reaches past the {} segments", counts.segments);
        self.corrupt("first_segment", reason)
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

/// A row that may refer to others.
pub(super) trait Refers {
    /// Checks that the rows are there that it refers to.
    ///
    /// Errors: `Corrupt` with file, row and column.
    fn check(&self, place: &Place<'_>, counts: &Counts) -> Result<()> {
        let _ = (place, counts);
        Ok(())
    }
}

impl Refers for MarkerRow {}

impl Refers for Segment {
    fn check(&self, place: &Place<'_>, counts: &Counts) -> Result<()> {
        place.index("file", self.file, counts.files)?;
        place.index("dirtier", self.dirtier, counts.processes)?;
        place.index("cause", self.cause, counts.syncs)
    }
}

impl Refers for Request {
    fn check(&self, place: &Place<'_>, counts: &Counts) -> Result<()> {
        place.sector(self.sector)?;
        place.index("submitter", self.submitter, counts.processes)?;
        place.index("sync", self.sync, counts.syncs)?;
        let end = u64::from(self.first_segment) + u64::from(self.segments);
        match end > counts.segments as u64 {
            true => Err(place.too_far(counts)),
            false => Ok(()),
        }
    }
}

impl Refers for Sync {
    fn check(&self, place: &Place<'_>, counts: &Counts) -> Result<()> {
        place.index("process", self.process, counts.processes)?;
        place.index("file", self.file, counts.files)
    }
}

impl Refers for Commit {
    fn check(&self, place: &Place<'_>, counts: &Counts) -> Result<()> {
        place.index("cause", self.cause, counts.syncs)
    }
}

/// Checks rows that follow each other in a table, from row `first` on.
///
/// Errors: `Corrupt` with file, row and column.
pub(super) fn check<R: Refers>(
    dir: &Path,
    table: &'static str,
    first: usize,
    rows: &[R],
    counts: &Counts,
) -> Result<()> {
    (first..).zip(rows).try_for_each(|(row, referring)| {
        let place = Place { dir, table, row };
        referring.check(&place, counts)
    })
}

/// Checks that the segments of a request begin behind those of the requests before it, of which there
/// are `before`.
///
/// Errors: `Corrupt` with file, row and column.
pub(super) fn check_order(place: &Place<'_>, request: &Request, before: usize) -> Result<()> {
    match request.segments == 0 || request.first_segment as usize == before {
        true => Ok(()),
        false => {
            let reason = "names another request's segment, or leaves some out";
            Err(place.corrupt("first_segment", reason.into()))
        }
    }
}

/// Checks that segments are a request's: they say so, lie inside it and add up to it.
///
/// Errors: `Corrupt` with file, row and column.
pub(super) fn check_own(place: &Place<'_>, request: &Request, own: &[Segment]) -> Result<()> {
    if own.is_empty() {
        return Ok(());
    }
    if own.iter().any(|own| own.request as usize != place.row) {
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

/// Checks that requests name every segment: `named` of all.
///
/// Errors: `Corrupt` with file, row and column.
pub(super) fn check_end(dir: &Path, named: usize, counts: &Counts) -> Result<()> {
    if named == counts.segments {
        return Ok(());
    }
    let place = Place {
        dir,
        table: "segments",
        row: named,
    };
    let reason = format!("requests name {named} segments of {}", counts.segments);
    Err(place.corrupt("request", reason))
}
