//! `iostep fleet add`: a trace's or a result's rows.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use bytes::Bytes;
use iostep_analyze::stats::syncs::{Caused, Collector};
use iostep_model::bench::Document;
use iostep_model::columnar::GROUP_ROWS;
use iostep_model::error::{Error, Result};
use iostep_model::hex;
use iostep_model::manifest::{self, Manifest};
use iostep_model::store::{Part, Stream};
use iostep_model::table::{Segment, Sync};
use rustix::fs::OFlags;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::column::int;
use crate::date::Date;
use crate::lake::{Lake, Stage};
use crate::options::Options;
use crate::rows::{
    Known, Origin, RequestRow, ResultRow, Row, SegmentRow, Surroundings, SyncRow, Totals, TraceRow,
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

    /// Adds the rows of the finished trace in `directory` under its [`identity()`]. If it is there
    /// already, nothing changes. The trace is read a part at a time, and what refers to what in it is
    /// checked: nothing of a trace that is damaged anywhere gets into the lake. `stop` is asked between
    /// parts: nothing has changed if it answers an error.
    ///
    /// Errors: `Io`; `Unsupported` for a newer trace and for a recording that was not finished;
    /// `Corrupt` for a damaged trace, a time that no date has, and a damaged lake; those of `stop`.
    pub fn add_trace(
        &self,
        directory: &Path,
        id: &str,
        options: &Options,
        stop: &dyn Fn() -> Result<()>,
    ) -> Result<Added> {
        let mut stream = Stream::open(directory)?;
        self.add_in_parts(&mut stream, id, options, GROUP_ROWS, stop)
    }

    /// As [`Lake::add_trace`], of at most `most` requests and segments at a time.
    fn add_in_parts(
        &self,
        stream: &mut Stream,
        id: &str,
        options: &Options,
        most: usize,
        stop: &dyn Fn() -> Result<()>,
    ) -> Result<Added> {
        let date = date_of(stream.directory(), &stream.manifest)?;
        // Nothing of these is in the lake; they must be sound all the same.
        stream.commits()?.try_for_each(|batch| batch.map(drop))?;
        stream.markers()?.try_for_each(|batch| batch.map(drop))?;
        let known = Known::of(stream, id, options, self.key())?;
        let stage = self.stage()?;
        let mut syncs = Collector::new(known.syncs());
        let mut parts = || stop().and_then(|()| stream.next(most));
        let totals = write_parts(&stage, id, &known, &mut parts, &mut syncs)?;
        write_syncs(&stage, id, &known, stream, syncs.caused())?;
        let row = TraceRow {
            known: &known,
            stream,
            totals: &totals,
            options,
            key: self.key(),
        };
        write(&stage, Table::Traces, id, [row].chunks(1))?;
        let mut added = Added::nothing(id, date);
        added.new = self.commit(&stage, Table::Traces, date, id)?;
        if added.new {
            added.segments = totals.segments;
            added.requests = totals.requests;
            added.syncs = totals.syncs;
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

/// Writes a trace's requests and segments as `next` gives them, and counts what sync calls caused.
fn write_parts(
    stage: &Stage,
    id: &str,
    known: &Known,
    next: &mut dyn FnMut() -> Result<Option<Part>>,
    syncs: &mut Collector,
) -> Result<Totals> {
    let create = |table| TableFile::create(&stage.file(table, id), table);
    let (mut segments, mut requests) = (create(Table::Segments)?, create(Table::Requests)?);
    let mut totals = Totals::of_syncs(known.syncs() as u64);
    let mut now = next()?;
    while let Some(part) = now {
        for request in part.requests.iter().filter(|request| !request.by_tracer) {
            totals.add(request);
            syncs.add(request, part.segments_of(request));
        }
        totals.requests += part.requests.len() as u64;
        totals.segments += part.segments.len() as u64;
        // Segments are about as much work as all else.
        now = thread::scope(|scope| {
            let segments = scope.spawn(|| write_segments(&mut segments, known, &part));
            let others = write_requests(&mut requests, known, &part);
            let others = others.and_then(|()| next());
            let segments = segments.join().unwrap_or_else(|panic| resume_unwind(panic));
            others.and_then(|others| segments.map(|()| others))
        })?;
    }
    segments.finish()?;
    requests.finish()?;
    Ok(totals)
}

/// Rows of a part by their app, each app's in their order.
fn by_app<'a>(apps: impl Iterator<Item = &'a Bytes>) -> Vec<(u32, &'a Bytes)> {
    let mut rows = BTreeMap::<&Bytes, Vec<u32>>::new();
    for (app, row) in apps.zip(0..) {
        rows.entry(app).or_default().push(row);
    }
    let apps = rows.into_iter();
    apps.flat_map(|(app, rows)| rows.into_iter().map(move |row| (row, app)))
        .collect()
}

fn write_segments(file: &mut TableFile, known: &Known, part: &Part) -> Result<()> {
    if part.segments.is_empty() {
        return Ok(());
    }
    let request =
        |segment: &Segment| &part.requests[(segment.request - part.first_request) as usize];
    let segments = part.segments.iter();
    let rows = by_app(segments.map(|segment| known.app_of_segment(request(segment), segment)));
    let rows = rows.into_iter().map(|(index, app)| {
        let segment = &part.segments[index as usize];
        SegmentRow {
            known,
            row: part.first_segment + index,
            segment,
            request: request(segment),
            app,
        }
    });
    let rows: Vec<SegmentRow<'_>> = rows.collect();
    file.group(rows.len(), |group| SegmentRow::write(&rows, group))
}

fn write_requests(file: &mut TableFile, known: &Known, part: &Part) -> Result<()> {
    let requests = part.requests.iter();
    let apps = requests.map(|request| known.app_of_request(request, part.segments_of(request)));
    let rows = by_app(apps).into_iter().map(|(index, app)| RequestRow {
        known,
        row: part.first_request + index,
        request: &part.requests[index as usize],
        volume: {
            let segments = part.segments_of(&part.requests[index as usize]);
            segments.first().and_then(|segment| segment.volume)
        },
        app,
    });
    let rows: Vec<RequestRow<'_>> = rows.collect();
    file.group(rows.len(), |group| RequestRow::write(&rows, group))
}

/// Writes a trace's sync calls, with what each `caused`.
fn write_syncs(
    stage: &Stage,
    id: &str,
    known: &Known,
    stream: &Stream,
    caused: &[Caused],
) -> Result<()> {
    let mut file = TableFile::create(&stage.file(Table::Syncs, id), Table::Syncs)?;
    let mut batches = stream.syncs()?;
    let mut first = 0;
    loop {
        let mut syncs: Vec<Sync> = Vec::new();
        for batch in batches.by_ref() {
            syncs.append(&mut batch?);
            if syncs.len() >= GROUP_ROWS {
                break;
            }
        }
        if syncs.is_empty() {
            return file.finish().map(drop);
        }
        let end = first as usize + syncs.len();
        let Some(caused) = caused.get(first as usize..end) else {
            let path = stream.directory().join("syncs.parquet");
            return Err(Error::corrupt(
                path,
                "rows",
                "more than there were a moment ago",
            ));
        };
        let apps = syncs.iter().map(|sync| known.app_of_sync(sync.into()));
        let rows = by_app(apps).into_iter().map(|(index, app)| SyncRow {
            known,
            row: first + index,
            sync: &syncs[index as usize],
            caused: &caused[index as usize],
            app,
        });
        let rows: Vec<SyncRow<'_>> = rows.collect();
        file.group(rows.len(), |group| SyncRow::write(&rows, group))?;
        first += syncs.len() as u32;
    }
}
