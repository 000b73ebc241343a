//! A finished trace that is read a part at a time, so that memory does not grow with what it holds.
//!
//! What refers to what is checked as it is read. Requests name their segments in the order in which
//! both are stored, so the two tables are read in step.

use std::path::{Path, PathBuf};

use super::checksums::Checksums;
use super::parquet_file::{self, Read, Row, Rows};
use super::references::{self, Counts, Place, Refers};
use crate::columnar::BATCH_ROWS;
use crate::error::{Error, Result};
use crate::manifest::{Manifest, State};
use crate::table::{Commit, File, MarkerRow, ProcessRow, Request, Segment, Sync};

/// A finished trace: files and threads are held, all else is read when it is asked for.
pub struct Stream {
    dir: PathBuf,
    sums: Checksums,
    /// How and on what it was taken.
    pub manifest: Manifest,
    pub files: Vec<File>,
    /// Threads.
    pub processes: Vec<ProcessRow>,
    counts: Counts,
    requests: Rows<Request>,
    segments: Rows<Segment>,
    /// Requests that were read and not given yet.
    ahead: Vec<Request>,
    /// Requests, and segments, that were given.
    done: (usize, usize),
}

/// Requests that follow each other, and their segments.
pub struct Part {
    /// Row of the first request, and of the first segment.
    pub first_request: u32,
    pub first_segment: u32,
    pub requests: Vec<Request>,
    /// In the order of the requests.
    pub segments: Vec<Segment>,
}

impl Part {
    /// The segments of one of its requests.
    pub fn segments_of(&self, request: &Request) -> &[Segment] {
        let first = request.first_segment.saturating_sub(self.first_segment) as usize;
        match usize::from(request.segments) {
            0 => &[],
            count => &self.segments[first..first + count],
        }
    }
}

impl Stream {
    /// Opens the trace in `dir`.
    ///
    /// Errors: `Io`; `Unsupported` for a newer schema or a recording that was never finished;
    /// `Corrupt` for a missing or damaged table.
    pub fn open(dir: &Path) -> Result<Stream> {
        let manifest = Manifest::read(dir)?;
        if manifest.state == State::Recording {
            return Err(Error::Unsupported {
                path: dir.to_owned(),
                found: "a recording that was not finished".into(),
                expected: "a finished trace; finish it with `iostep report`".into(),
            });
        }
        let sums = Checksums::read(dir)?;
        let (requests, segments) = (Rows::open(dir, &sums)?, Rows::<Segment>::open(dir, &sums)?);
        let files: Vec<File> = parquet_file::read(dir, &sums)?;
        let processes: Vec<ProcessRow> = parquet_file::read(dir, &sums)?;
        let counts = Counts {
            processes: processes.len(),
            files: files.len(),
            syncs: Rows::<Sync>::open(dir, &sums)?.count(),
            segments: segments.count(),
        };
        Ok(Stream {
            dir: dir.to_owned(),
            sums,
            manifest,
            files,
            processes,
            counts,
            requests,
            segments,
            ahead: Vec::new(),
            done: (0, 0),
        })
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.dir
    }

    /// Sync calls; read anew at each call.
    ///
    /// Errors: `Io`; `Corrupt`, also later, for a damaged table and for references out of range.
    pub fn syncs(&self) -> Result<impl Iterator<Item = Result<Vec<Sync>>> + use<>> {
        self.batches()
    }

    /// Commits of the filesystem's log.
    ///
    /// Errors: as [`Stream::syncs`].
    pub fn commits(&self) -> Result<impl Iterator<Item = Result<Vec<Commit>>> + use<>> {
        self.batches()
    }

    /// Milestones.
    ///
    /// Errors: as [`Stream::syncs`].
    pub fn markers(&self) -> Result<impl Iterator<Item = Result<Vec<MarkerRow>>> + use<>> {
        self.batches()
    }

    /// A table's rows, some at a time; nothing after an error.
    fn batches<R: Read + Refers>(&self) -> Result<impl Iterator<Item = Result<Vec<R>>> + use<R>> {
        let (dir, counts) = (self.dir.clone(), self.counts);
        let mut rows = Some((Rows::<R>::open(&dir, &self.sums)?, 0));
        Ok(std::iter::from_fn(move || {
            let (mut table, first) = rows.take()?;
            let mut batch = Vec::new();
            let read = table.read(BATCH_ROWS, &mut batch);
            let read =
                read.and_then(|()| references::check(&dir, R::TABLE, first, &batch, &counts));
            if let Err(error) = read {
                return Some(Err(error));
            }
            let next = first + batch.len();
            rows = (!batch.is_empty()).then_some((table, next));
            (!batch.is_empty()).then_some(Ok(batch))
        }))
    }

    /// The next requests with their segments: at most `most` of either, but for one request that has
    /// more segments. Nothing after the last; only then is it known that there is no segment without
    /// a request.
    ///
    /// Errors: `Io`; `Corrupt` for damaged tables and for what does not fit together, with file, row
    /// and column.
    pub fn next(&mut self, most: usize) -> Result<Option<Part>> {
        let (first_request, first_segment) = self.done;
        let (mut requests, mut segments) = (Vec::new(), Vec::new());
        self.fill(most, &mut requests, &mut segments)?;
        Ok((!requests.is_empty()).then_some(Part {
            first_request: first_request as u32,
            first_segment: first_segment as u32,
            requests,
            segments,
        }))
    }

    /// As [`Stream::next`], appended to what there is.
    pub(super) fn fill(
        &mut self,
        most: usize,
        requests: &mut Vec<Request>,
        segments: &mut Vec<Segment>,
    ) -> Result<()> {
        let begin = self.done;
        loop {
            if self.ahead.is_empty() {
                self.requests.read(BATCH_ROWS, &mut self.ahead)?;
            }
            if self.ahead.is_empty() {
                return references::check_end(&self.dir, self.done.1, &self.counts);
            }
            let (taken, wanted) = (self.done.0 - begin.0, self.done.1 - begin.1);
            let (count, own) = self.that_fit(most, taken, wanted)?;
            let before = segments.len();
            self.segments.read(own, segments)?;
            self.check(count, &segments[before..])?;
            self.done.1 += own;
            self.done.0 += count;
            requests.extend(self.ahead.drain(..count));
            if !self.ahead.is_empty() {
                return Ok(());
            }
        }
    }

    /// How many of the requests that were read fit beside `requests` and `segments`, and how many
    /// segments they have, which are there.
    fn that_fit(&self, most: usize, requests: usize, segments: usize) -> Result<(usize, usize)> {
        let (mut count, mut own) = (0, 0);
        for request in &self.ahead {
            let place = self.request(count);
            request.check(&place, &self.counts)?;
            references::check_order(&place, request, self.done.1 + own)?;
            let more = own + usize::from(request.segments);
            let is_first = requests + count == 0;
            if !is_first && (requests + count == most || segments + more > most) {
                break;
            }
            (count, own) = (count + 1, more);
        }
        Ok((count, own))
    }

    /// Checks the next requests, and the segments that are theirs.
    fn check(&self, count: usize, mut own: &[Segment]) -> Result<()> {
        references::check(&self.dir, Segment::TABLE, self.done.1, own, &self.counts)?;
        for (index, request) in self.ahead[..count].iter().enumerate() {
            let place = self.request(index);
            let split = own.split_at_checked(request.segments.into());
            let (first, rest) = split.ok_or_else(|| place.too_far(&self.counts))?;
            references::check_own(&place, request, first)?;
            own = rest;
        }
        Ok(())
    }

    /// Where one of the requests that were read is.
    fn request(&self, index: usize) -> Place<'_> {
        Place {
            dir: &self.dir,
            table: Request::TABLE,
            row: self.done.0 + index,
        }
    }
}
