//! What happened in a transaction, in words.

use std::ops::Range;

use iostep_model::class::{Class, Layer};
use iostep_model::operation::{Flags, Operation};
use iostep_model::table::{Request, Segment, Sync};
use iostep_report::quantity::bytes;
use serde::Serialize;

use super::part::{Part, Sorter};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// When, in nanoseconds from the transaction's start.
    pub at_ns: u64,
    /// How long it took, in nanoseconds, where that is known.
    pub took_ns: Option<u64>,
    pub text: String,
}

/// The sync calls of a window with the requests that each caused, and the other requests, in the
/// order of time.
pub(super) fn lines(sorter: &Sorter<'_>, window: &Range<u64>) -> Vec<Line> {
    let syncs: Vec<_> = sorter.syncs(window).collect();
    let mut caused: Vec<Vec<Io<'_>>> = syncs.iter().map(|_| Vec::new()).collect();
    let mut lines = Vec::new();
    for io in own_ios(sorter, window) {
        match cause(&io, &syncs) {
            Some(sync) => caused[sync].push(io),
            None => lines.push(Line {
                at_ns: io.request.queue_ns - window.start,
                took_ns: took(io.request),
                text: format!("without a sync call: {}", describe(sorter, &[io])),
            }),
        }
    }
    for ((_, sync), ios) in syncs.iter().zip(&caused) {
        let file = sync.file.map(|file| file_name(sorter, file));
        lines.push(Line {
            at_ns: sync.enter_ns - window.start,
            took_ns: sync.exit_ns.map(|exit| exit.saturating_sub(sync.enter_ns)),
            text: format!(
                "{}({}): {}",
                sync.kind.name(),
                file.as_deref().unwrap_or("?"),
                describe(sorter, ios)
            ),
        });
    }
    lines.sort_by_key(|line| line.at_ns);
    lines
}

/// A request of the experiment, with those of its segments that are.
struct Io<'a> {
    request: &'a Request,
    segments: Vec<&'a Segment>,
}

fn own_ios<'a>(sorter: &'a Sorter<'a>, window: &Range<u64>) -> impl Iterator<Item = Io<'a>> {
    sorter.requests(window).filter_map(|(request, segments)| {
        let segments: Vec<_> = segments
            .iter()
            .filter(|segment| sorter.belongs(request, segment))
            .collect();
        let flush = request.is_executed_flush() && sorter.may_flush(request);
        (flush || !segments.is_empty()).then_some(Io { request, segments })
    })
}

/// Which of the sync calls, by position, made a request necessary. A flush that names no call is
/// counted to the one that it lies in: the filesystem's log thread sends it on the caller's behalf.
fn cause(io: &Io<'_>, syncs: &[(u32, &Sync)]) -> Option<usize> {
    let named = io.segments.iter().find_map(|segment| segment.cause);
    if let Some(named) = named.or(io.request.sync) {
        return syncs.binary_search_by_key(&named, |(index, _)| *index).ok();
    }
    let queue_ns = io.request.queue_ns;
    let before = syncs.partition_point(|(_, sync)| sync.enter_ns <= queue_ns);
    let last = before.checked_sub(1)?;
    let inside = syncs[last].1.exit_ns.is_none_or(|exit| queue_ns <= exit);
    (io.segments.is_empty() && inside).then_some(last)
}

fn took(request: &Request) -> Option<u64> {
    let complete = request.complete_ns?;
    Some(complete.saturating_sub(request.queue_ns))
}

/// A run of pieces of the same kind: `8 KB to app.db`, `ext4 journals 12 KB (...)`.
struct Phrase {
    what: What,
    bytes: u64,
    count: u64,
    /// What the pieces were, in the order of their first appearance.
    details: Vec<&'static str>,
}

#[derive(PartialEq)]
enum What {
    Write(String),
    Read(String),
    Log,
    InPlace,
    Flush,
}

fn describe(sorter: &Sorter<'_>, ios: &[Io<'_>]) -> String {
    let mut phrases = Vec::new();
    for io in ios {
        if io.request.operation == Operation::Flush {
            add(&mut phrases, What::Flush, 0, None);
        }
        for segment in &io.segments {
            let (what, detail) = phrase(sorter, io.request, segment);
            add(&mut phrases, what, segment.bytes.into(), detail);
            if segment.class == Class::LogCommit && io.request.flags.has(Flags::FUA) {
                note(&mut phrases, "with FUA");
            }
        }
    }
    let filesystem = sorter.trace.manifest.filesystem.as_ref();
    let filesystem = filesystem.map_or("the filesystem", |fs| &fs.kind);
    let texts: Vec<_> = phrases.iter().map(|p| p.text(filesystem)).collect();
    if texts.is_empty() {
        return "nothing to write".into();
    }
    texts.join(", then ")
}

fn phrase(
    sorter: &Sorter<'_>,
    request: &Request,
    segment: &Segment,
) -> (What, Option<&'static str>) {
    let name = || {
        let file = segment.file;
        file.map_or_else(
            || segment.class.name().into(),
            |file| file_name(sorter, file),
        )
    };
    if request.operation == Operation::Read {
        return (What::Read(name()), None);
    }
    match sorter.part(segment) {
        Part::File(_) | Part::Unknown => (What::Write(name()), None),
        Part::Log(_) => (What::Log, Some(log_detail(segment))),
        Part::Metadata | Part::Superblock => (What::InPlace, Some(segment.class.name())),
    }
}

/// A logged block by what it is a copy of, the rest by what it is.
fn log_detail(segment: &Segment) -> &'static str {
    match (segment.class, segment.home_class) {
        (Class::LoggedBlock, Some(home)) if home.layer() == Layer::Metadata => home.name(),
        (Class::LogDescriptor, _) => "descriptor",
        (Class::LogCommit, _) => "commit",
        (class, _) => class.name(),
    }
}

fn add(phrases: &mut Vec<Phrase>, what: What, bytes: u64, detail: Option<&'static str>) {
    match phrases.last_mut() {
        Some(last) if last.what == what => {
            last.bytes += bytes;
            last.count += 1;
        }
        _ => phrases.push(Phrase {
            what,
            bytes,
            count: 1,
            details: Vec::new(),
        }),
    }
    if let Some(detail) = detail {
        note(phrases, detail);
    }
}

fn note(phrases: &mut [Phrase], detail: &'static str) {
    if let Some(last) = phrases.last_mut()
        && !last.details.contains(&detail)
    {
        last.details.push(detail);
    }
}

impl Phrase {
    fn text(&self, filesystem: &str) -> String {
        let bytes = bytes(self.bytes);
        let details = self.details.join(", ");
        match &self.what {
            What::Write(name) => format!("{bytes} to {name}"),
            What::Read(name) => format!("{bytes} read from {name}"),
            What::Log => format!("{filesystem} journals {bytes} ({details})"),
            What::InPlace => format!("{bytes} of metadata in place ({details})"),
            What::Flush if self.count == 1 => "a flush".into(),
            What::Flush => format!("{} flushes", self.count),
        }
    }
}

/// The last part of the path. A directory has no name worth telling: it is the copy's.
fn file_name(sorter: &Sorter<'_>, file: u32) -> String {
    let path = sorter.trace.file_name(file);
    match path.rsplit('/').find(|part| !part.is_empty()) {
        Some(_) if sorter.owner(Some(file)) == super::Owner::Directory => "directory".into(),
        Some(name) => name.to_owned(),
        None => path,
    }
}
