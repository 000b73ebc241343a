//! `iostep fleet add`: a trace's or a result's rows.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;

use bytes::Bytes;
use iostep_analyze::stats::syncs;
use iostep_model::bench::Document;
use iostep_model::columnar::GROUP_ROWS;
use iostep_model::error::{Error, Result};
use iostep_model::hex;
use iostep_model::manifest::{self, Manifest};
use iostep_model::table::Trace;
use rustix::fs::OFlags;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::column::int;
use crate::date::Date;
use crate::lake::{Lake, Stage};
use crate::options::Options;
use crate::rows::{
    Known, Origin, RequestRow, ResultRow, Row, SegmentRow, Surroundings, SyncRow, TraceRow,
};
use crate::table::Table;
use crate::writer::TableFile;

/// What became of a trace or a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Added {
    /// `trace_id`, or `result_id`.
    pub id: String,
    /// The date that it is below.
    pub date: String,
    /// False if it was there already.
    pub new: bool,
    /// Rows of `segments`, `requests`, `syncs`, and of `results`, that were added.
    pub segments: u64,
    pub requests: u64,
    pub syncs: u64,
    pub results: u64,
}

impl Added {
    fn nothing(id: &str, date: Date) -> Added {
        Added {
            id: id.into(),
            date: date.to_string(),
            new: false,
            segments: 0,
            requests: 0,
            syncs: 0,
            results: 0,
        }
    }
}

/// The identity of a finished trace: SHA-256 of the manifest and the tables, in hexadecimal digits.
/// What else lies in the directory does not count.
///
/// Errors: `Io`, also for a file that is missing or none.
pub fn identity(directory: &Path) -> Result<String> {
    const FILES: [&str; 8] = [
        manifest::FILE_NAME,
        "commits.parquet",
        "files.parquet",
        "markers.parquet",
        "processes.parquet",
        "requests.parquet",
        "segments.parquet",
        "syncs.parquet",
    ];
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    for name in FILES {
        let path = directory.join(name);
        let mut options = File::options();
        // A FIFO would let us wait.
        let options = options
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32);
        let mut file = options.open(&path).map_err(Error::io(&path, "open"))?;
        let metadata = file.metadata().map_err(Error::io(&path, "look at"))?;
        if !metadata.is_file() {
            return Err(Error::corrupt(path, "file", "no regular file"));
        }
        hash.update(name);
        hash.update(metadata.len().to_le_bytes());
        loop {
            match file.read(&mut buffer).map_err(Error::io(&path, "read"))? {
                0 => break,
                length => hash.update(&buffer[..length]),
            }
        }
    }
    Ok(hex::encode(&hash.finalize()))
}

/// The date that a trace is below: the day on which it began.
///
/// Errors: `Corrupt` for a time after 2262.
fn date_of(directory: &Path, manifest: &Manifest) -> Result<Date> {
    let wall_ns = manifest.clocks.wall_ns;
    match i64::try_from(wall_ns) {
        Ok(wall_ns) => Ok(Date::of_wall_ns(wall_ns)),
        Err(_) => Err(Error::corrupt(
            directory.join(manifest::FILE_NAME),
            "clocks.wall_ns",
            format!("{wall_ns} is a time after the year 2262"),
        )),
    }
}

impl Lake {
    /// Looks whether a trace is in the lake; nothing if it is not.
    ///
    /// Errors: `Io`; `Corrupt` for a damaged manifest or lake.
    pub fn find_trace(&self, directory: &Path, id: &str) -> Result<Option<Added>> {
        let date = date_of(directory, &Manifest::read(directory)?)?;
        let _lock = self.lock(date)?;
        let found = self.has(Table::Traces, date, id)?;
        Ok(found.then(|| Added::nothing(id, date)))
    }

    /// Adds the rows of a trace of `directory`, whose references must be sound, under its
    /// [`identity()`]. If it is there already, nothing changes.
    ///
    /// Errors: `Io`; `Corrupt` for a time that no date has, and for a damaged lake.
    pub fn add_trace(
        &self,
        directory: &Path,
        id: &str,
        trace: &Trace,
        options: &Options,
    ) -> Result<Added> {
        let date = date_of(directory, &trace.manifest)?;
        let known = Known::of(trace, id, options, self.key());
        let stage = self.stage()?;
        let row = TraceRow {
            known: &known,
            options,
            key: self.key(),
        };
        // Segments are about as much work as all else.
        thread::scope(|scope| {
            let segments = scope.spawn(|| write_segments(&stage, id, &known));
            let others = write_requests(&stage, id, &known)
                .and_then(|()| write_syncs(&stage, id, &known))
                .and_then(|()| write(&stage, Table::Traces, id, [row].chunks(1)));
            let segments = segments.join().expect("writing does not panic");
            others.and(segments)
        })?;
        let mut added = Added::nothing(id, date);
        added.new = self.commit(&stage, Table::Traces, date, id)?;
        if added.new {
            added.segments = trace.segments.len() as u64;
            added.requests = trace.requests.len() as u64;
            added.syncs = trace.syncs.len() as u64;
        }
        Ok(added)
    }

    /// Adds the runs of a result of `path`. Of whatever words, the same result is one.
    ///
    /// Errors: `Io`; `Unsupported` for a result without a run; `Corrupt` for a time that no date has,
    /// and for a damaged lake.
    pub fn add_result(&self, path: &Path, document: &Document, options: &Options) -> Result<Added> {
        let Some(first) = document.runs.first() else {
            return Err(Error::Unsupported {
                path: path.to_owned(),
                found: "a result without a run".into(),
                expected: "a result of at least one".into(),
            });
        };
        let date = Date::of_wall_ns(int(first.start_wall_ns));
        let text = serde_json::to_vec(document).expect("a document has only JSON's types");
        let id = hex::encode(&Sha256::digest(&text));
        let mut added = Added::nothing(&id, date);
        let lock = self.lock(date)?;
        if self.has(Table::Results, date, &id)? {
            return Ok(added);
        }
        drop(lock);
        let environment = &document.environment;
        let place = Surroundings {
            host: &environment.host,
            filesystem: environment.filesystem.as_ref().map(|fs| fs.kind.as_str()),
            options,
            key: self.key(),
        };
        let origin = Origin::of(&place, environment.disks.first());
        let name = Bytes::from(id.clone());
        let rows: Vec<ResultRow<'_>> = (0..document.runs.len())
            .map(|index| ResultRow {
                id: &name,
                document,
                origin: &origin,
                index,
            })
            .collect();
        let stage = self.stage()?;
        write(&stage, Table::Results, &id, rows.chunks(GROUP_ROWS))?;
        added.new = self.commit(&stage, Table::Results, date, &id)?;
        if added.new {
            added.results = rows.len() as u64;
        }
        Ok(added)
    }
}

/// Writes groups of rows as a file of a stage.
fn write<R: Row, G: AsRef<[R]>>(
    stage: &Stage,
    table: Table,
    id: &str,
    groups: impl Iterator<Item = G>,
) -> Result<()> {
    let mut file = TableFile::create(&stage.file(table, id), table)?;
    for rows in groups {
        let rows = rows.as_ref();
        file.group(rows.len(), |group| R::write(rows, group))?;
    }
    file.finish().map(drop)
}

/// Rows by their app, each app's in their order.
fn by_app(apps: impl Iterator<Item = Bytes>) -> Vec<(u32, Bytes)> {
    let mut rows = BTreeMap::<Bytes, Vec<u32>>::new();
    for (app, row) in apps.zip(0..) {
        match rows.get_mut(&app) {
            Some(rows) => rows.push(row),
            None => drop(rows.insert(app, vec![row])),
        }
    }
    let apps = rows.into_iter();
    apps.flat_map(|(app, rows)| rows.into_iter().map(move |row| (row, app.clone())))
        .collect()
}

fn write_segments(stage: &Stage, id: &str, known: &Known<'_>) -> Result<()> {
    let trace = known.trace;
    let apps = trace.segments.iter().map(|segment| {
        let request = &trace.requests[segment.request as usize];
        known.app_of_segment(request, segment)
    });
    let rows = by_app(apps);
    let groups = rows.chunks(GROUP_ROWS).map(|rows| {
        let rows = rows.iter().map(|(row, app)| SegmentRow {
            known,
            row: *row,
            app: app.clone(),
        });
        rows.collect::<Vec<_>>()
    });
    write(stage, Table::Segments, id, groups)
}

fn write_requests(stage: &Stage, id: &str, known: &Known<'_>) -> Result<()> {
    let requests = known.trace.requests.iter();
    let rows = by_app(requests.map(|request| known.app_of_request(request)));
    let groups = rows.chunks(GROUP_ROWS).map(|rows| {
        let rows = rows.iter().map(|(row, app)| RequestRow {
            known,
            row: *row,
            app: app.clone(),
        });
        rows.collect::<Vec<_>>()
    });
    write(stage, Table::Requests, id, groups)
}

fn write_syncs(stage: &Stage, id: &str, known: &Known<'_>) -> Result<()> {
    let calls = syncs::calls(known.trace);
    let rows = by_app(known.trace.syncs.iter().map(|sync| known.app_of_sync(sync)));
    let groups = rows.chunks(GROUP_ROWS).map(|rows| {
        let rows = rows.iter().map(|(row, app)| SyncRow {
            known,
            call: calls[*row as usize],
            app: app.clone(),
        });
        rows.collect::<Vec<_>>()
    });
    write(stage, Table::Syncs, id, groups)
}
