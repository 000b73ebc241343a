//! Which layer a piece of I/O belongs to, and whether it is the experiment's at all.

use std::ops::Range;

use iostep_model::class::{Class, FileType, Layer};
use iostep_model::table::{Request, Segment, Sync, Trace};
use serde::Serialize;

/// What a file is to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// The database file.
    Database,
    RollbackJournal,
    /// Its write-ahead log.
    Wal,
    /// Its directory, which SQLite syncs only for a journal or WAL that is new or gone.
    Directory,
    /// Another file.
    Other,
}

impl Owner {
    /// The name shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Owner::Database => "database",
            Owner::RollbackJournal => "rollback journal",
            Owner::Wal => "WAL",
            Owner::Directory => "directory",
            Owner::Other => "other files",
        }
    }

    /// True for what exists only for SQLite's own journaling: the first J of JOJ.
    pub fn is_journaling(self) -> bool {
        matches!(self, Owner::RollbackJournal | Owner::Wal | Owner::Directory)
    }
}

/// A layer of the way from a row to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A file's content.
    File(Owner),
    /// The filesystem's journal, because of a sync of this file; `None` if of no sync.
    Log(Option<Owner>),
    /// The filesystem's metadata in its own place.
    Metadata,
    /// The filesystem's superblock, or the superblock of its journal.
    Superblock,
    /// Not known.
    Unknown,
}

impl Part {
    /// The name shown to people; `filesystem` is its kind, for the journal's name.
    pub fn name(self, filesystem: &str) -> String {
        match self {
            Part::File(owner) => owner.name().into(),
            Part::Log(Some(Owner::Other)) => format!("{filesystem} journal for other files"),
            Part::Log(Some(owner)) => format!("{filesystem} journal for the {}", owner.name()),
            Part::Log(None) => format!("{filesystem} journal for no sync"),
            Part::Metadata => "metadata in place".into(),
            Part::Superblock => "superblock".into(),
            Part::Unknown => "unknown".into(),
        }
    }

    /// True for the filesystem's journal written for syncs of SQLite's journal.
    pub fn is_joj(self) -> bool {
        matches!(self, Part::Log(Some(owner)) if owner.is_journaling())
    }
}

/// Tells the experiment's I/O from everybody else's, and sorts it.
pub(super) struct Sorter<'a> {
    pub(super) trace: &'a Trace,
    owners: Vec<Owner>,
    sql_tgid: u32,
    /// Requests in the order in which they were queued; the trace has them in the order of issue.
    queued: Vec<u32>,
}

impl<'a> Sorter<'a> {
    pub(super) fn new(trace: &'a Trace, database: &str, sql_tgid: u32) -> Sorter<'a> {
        let owners = trace.files.iter().map(|file| {
            let name = file
                .path
                .as_deref()
                .and_then(|path| path.rsplit('/').next());
            owner(name, database, file.file_type)
        });
        let mut queued: Vec<u32> = (0..trace.requests.len() as u32).collect();
        queued.sort_by_key(|&request| trace.requests[request as usize].queue_ns);
        Sorter {
            trace,
            owners: owners.collect(),
            sql_tgid,
            queued,
        }
    }

    /// The requests queued in a window, in that order, with the segments of each.
    pub(super) fn requests(
        &self,
        window: &Range<u64>,
    ) -> impl Iterator<Item = (&'a Request, &'a [Segment])> {
        let trace = self.trace;
        let queued_ns = |request: &u32| trace.requests[*request as usize].queue_ns;
        let first = self.queued.partition_point(|r| queued_ns(r) < window.start);
        let end = self.queued.partition_point(|r| queued_ns(r) < window.end);
        let queued = self.queued.get(first..end).unwrap_or_default();
        queued
            .iter()
            .map(|&request| &trace.requests[request as usize])
            .filter(|request| !request.by_tracer)
            .map(|request| (request, trace.segments_of(request)))
    }

    /// The SQL process's sync calls that began in a window; settling is one on no file.
    pub(super) fn syncs(&self, window: &Range<u64>) -> impl Iterator<Item = (u32, &'a Sync)> {
        let syncs = &self.trace.syncs;
        let first = syncs.partition_point(|sync| sync.enter_ns < window.start);
        let end = syncs.partition_point(|sync| sync.enter_ns < window.end);
        (first..end.max(first))
            .map(|index| (index as u32, &syncs[index]))
            .filter(|(_, sync)| self.is_ours(sync.process))
    }

    pub(super) fn part(&self, segment: &Segment) -> Part {
        match (segment.class, segment.class.layer()) {
            (Class::Superblock | Class::LogSuperblock, _) => Part::Superblock,
            (_, Layer::Data) => Part::File(self.owner(segment.file)),
            (_, Layer::Journal) => Part::Log(self.cause(segment)),
            (_, Layer::Metadata) => Part::Metadata,
            (_, Layer::Unknown) => Part::Unknown,
        }
    }

    /// True for what the SQL process dirtied, submitted or made necessary.
    pub(super) fn belongs(&self, request: &Request, segment: &Segment) -> bool {
        self.is_our_sync(segment.cause)
            || self.is_ours(request.submitter)
            || self.is_of_the_database(segment)
    }

    /// True for content that the SQL process dirtied, or of the database's files.
    pub(super) fn is_of_the_database(&self, segment: &Segment) -> bool {
        self.is_ours(segment.dirtier) || self.owner(segment.file) != Owner::Other
    }

    /// True for a request without content, a flush, that nobody else can have asked for.
    pub(super) fn may_flush(&self, request: &Request) -> bool {
        let submitter = request.submitter.map(|p| &self.trace.processes[p as usize]);
        self.is_our_sync(request.sync)
            || submitter.is_none_or(|process| process.kernel || process.tgid == self.sql_tgid)
    }

    pub(super) fn owner(&self, file: Option<u32>) -> Owner {
        file.map_or(Owner::Other, |file| self.owners[file as usize])
    }

    fn cause(&self, segment: &Segment) -> Option<Owner> {
        let sync = &self.trace.syncs[segment.cause? as usize];
        Some(self.owner(sync.file))
    }

    fn is_our_sync(&self, sync: Option<u32>) -> bool {
        sync.is_some_and(|sync| self.is_ours(self.trace.syncs[sync as usize].process))
    }

    fn is_ours(&self, process: Option<u32>) -> bool {
        process.is_some_and(|p| self.trace.processes[p as usize].tgid == self.sql_tgid)
    }
}

/// By name, since the experiment knows it; by type where the trace has no name.
fn owner(name: Option<&str>, database: &str, file_type: FileType) -> Owner {
    let Some(name) = name else {
        return match file_type {
            FileType::SqliteDatabase => Owner::Database,
            FileType::SqliteJournal => Owner::RollbackJournal,
            FileType::SqliteWal => Owner::Wal,
            FileType::Directory => Owner::Directory,
            _ => Owner::Other,
        };
    };
    match name.strip_prefix(database) {
        Some("") => Owner::Database,
        Some("-journal") => Owner::RollbackJournal,
        Some("-wal") => Owner::Wal,
        _ if file_type == FileType::Directory => Owner::Directory,
        _ => Owner::Other,
    }
}
