//! A finished trace on disk: the manifest and one Parquet file per table.
//!
//! | file | a row is |
//! |---|---|
//! | `requests.parquet` | [`crate::table::Request`] |
//! | `segments.parquet` | [`crate::table::Segment`] |
//! | `files.parquet` | [`crate::table::File`] |
//! | `processes.parquet` | [`crate::table::ProcessRow`] |
//! | `syncs.parquet` | [`crate::table::Sync`] |
//! | `commits.parquet` | [`crate::table::Commit`] |
//! | `markers.parquet` | [`crate::table::MarkerRow`] |
//! | `checksums.json` | length and CRC-32C of each of these files |
//! | `manifest.json` | [`crate::manifest::Manifest`], written last |
//!
//! Columns are named as the fields are and carry the fields' units; enums are stored by name. Each
//! file's key-value metadata has `iostep.table` and `iostep.schema_version`. A reader trusts none
//! of it: whatever it returns has been checked, with what it refers to. [`Stream`] reads a trace a part
//! at a time, and [`read`] all of it.

mod cell;
mod checksums;
mod column;
mod columns;
pub mod lab;
mod parquet_file;
mod references;
mod stream;
#[cfg(test)]
mod tests;

use std::path::Path;

use checksums::Checksums;
pub use stream::{Part, Stream};

use crate::error::Result;
use crate::table::Trace;

/// Writes the tables and then the manifest into `dir`, which must exist.
///
/// Each file appears whole or not at all; one of the same name is replaced.
/// Errors: `Io`.
pub fn write(dir: &Path, trace: &Trace) -> Result<()> {
    let mut sums = Checksums::default();
    parquet_file::write(dir, &trace.requests, &mut sums)?;
    parquet_file::write(dir, &trace.segments, &mut sums)?;
    parquet_file::write(dir, &trace.files, &mut sums)?;
    parquet_file::write(dir, &trace.processes, &mut sums)?;
    parquet_file::write(dir, &trace.syncs, &mut sums)?;
    parquet_file::write(dir, &trace.commits, &mut sums)?;
    parquet_file::write(dir, &trace.markers, &mut sums)?;
    sums.write(dir)?;
    trace.manifest.write(dir)
}

/// Reads all of the trace in `dir`.
///
/// Errors: as [`Stream::open`], [`Stream::next`] and [`Stream::syncs`].
pub fn read(dir: &Path) -> Result<Trace> {
    let mut stream = Stream::open(dir)?;
    let (mut requests, mut segments) = (Vec::new(), Vec::new());
    stream.fill(usize::MAX, &mut requests, &mut segments)?;
    let (syncs, commits, markers) = (stream.syncs()?, stream.commits()?, stream.markers()?);
    Ok(Trace {
        requests,
        segments,
        syncs: all(syncs)?,
        commits: all(commits)?,
        markers: all(markers)?,
        manifest: stream.manifest,
        files: stream.files,
        processes: stream.processes,
    })
}

fn all<R>(batches: impl Iterator<Item = Result<Vec<R>>>) -> Result<Vec<R>> {
    let mut rows = Vec::new();
    for batch in batches {
        rows.append(&mut batch?);
    }
    Ok(rows)
}
