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
//! of it: whatever it returns has passed [`references`].

mod cell;
mod checksums;
mod column;
mod columns;
pub mod lab;
mod parquet_file;
pub mod references;
#[cfg(test)]
mod tests;

use std::path::Path;

use checksums::Checksums;

use crate::error::{Error, Result};
use crate::manifest::{Manifest, State};
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

/// Reads the trace in `dir`.
///
/// Errors: `Io`; `Unsupported` for a newer schema or a recording that was never finished;
/// `Corrupt` for a missing, damaged or contradictory table, with row and column.
pub fn read(dir: &Path) -> Result<Trace> {
    let manifest = Manifest::read(dir)?;
    if manifest.state == State::Recording {
        return Err(Error::Unsupported {
            path: dir.to_owned(),
            found: "a recording that was not finished".into(),
            expected: "a finished trace; finish it with `iostep report`".into(),
        });
    }
    let sums = Checksums::read(dir)?;
    let trace = Trace {
        manifest,
        requests: parquet_file::read(dir, &sums)?,
        segments: parquet_file::read(dir, &sums)?,
        files: parquet_file::read(dir, &sums)?,
        processes: parquet_file::read(dir, &sums)?,
        syncs: parquet_file::read(dir, &sums)?,
        commits: parquet_file::read(dir, &sums)?,
        markers: parquet_file::read(dir, &sums)?,
    };
    references::check(dir, &trace)?;
    Ok(trace)
}
