//! Every request of a trace by time and address: the data that `picture/*.js` draws.

mod columns;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use askama::Template;
use base64::display::Base64Display;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD};
use iostep_model::SECTOR_BYTES;
use iostep_model::class::{Class, Evidence, FileType, Layer, Role};
use iostep_model::event::Marker;
use iostep_model::operation::{Flags, Operation};
use iostep_model::printable;
use iostep_model::sync::SyncKind;
use iostep_model::table::{Phase, Request, Segment, Trace};
use serde::Serialize;

use crate::modules::Module;
use crate::script_json;
use columns::{Column, Packer};

/// The program of a page with a picture: each module behind those that it imports.
pub(crate) const MODULES: [Module; 19] = [
    ("dom", include_str!("picture/dom.js")),
    ("format", include_str!("picture/format.js")),
    ("columns", include_str!("picture/columns.js")),
    ("marks", include_str!("picture/marks.js")),
    ("axes", include_str!("picture/axes.js")),
    ("shapes", include_str!("picture/shapes.js")),
    ("canvas", include_str!("picture/canvas.js")),
    ("model", include_str!("picture/model.js")),
    ("lanes", include_str!("picture/lanes.js")),
    ("guides", include_str!("picture/guides.js")),
    ("paint", include_str!("picture/paint.js")),
    ("view", include_str!("picture/view.js")),
    ("pick", include_str!("picture/pick.js")),
    ("describe", include_str!("picture/describe.js")),
    ("overview", include_str!("picture/overview.js")),
    ("control", include_str!("picture/control.js")),
    ("theme", include_str!("document/html/theme.js")),
    ("sort", include_str!("document/html/sort.js")),
    ("page", include_str!("picture/page.js")),
];

/// The picture of a trace, for a page: about 16 bytes a request.
#[derive(Template)]
#[template(path = "picture.html")]
pub struct Picture {
    /// JSON of [`Data`].
    data: String,
    /// The long tables, as [`columns`] packs them.
    stream: Vec<u8>,
}

impl Picture {
    /// The picture of a trace, whose rows may refer to what is not there.
    pub fn of(trace: &Trace) -> Picture {
        let (data, stream) = data(trace);
        let data = script_json::to_string(&data);
        Picture { data, stream }
    }

    fn base64(&self) -> Base64Display<'_, 'static, GeneralPurpose> {
        Base64Display::new(&self.stream, &STANDARD)
    }
}

/// Everything about the picture that is not a row of a long table. Codes in the columns are
/// indices into these lists.
#[derive(Serialize)]
struct Data<'a> {
    columns: Vec<Column>,
    classes: Vec<ClassName>,
    evidence: Vec<&'static str>,
    operations: Vec<&'static str>,
    flags: Vec<(u16, &'static str)>,
    phases: Vec<&'static str>,
    sync_kinds: Vec<&'static str>,
    files: Vec<FileName>,
    processes: Vec<String>,
    markers: Vec<MarkerName<'a>>,
    /// First sector and number of sectors of each range of the filesystem's journal.
    journal: Vec<(u64, u64)>,
    /// True if `journal` is only what the trace touched, for want of a layout.
    journal_observed: bool,
}

#[derive(Serialize)]
struct ClassName {
    name: &'static str,
    layer: &'static str,
}

#[derive(Serialize)]
struct FileName {
    path: Option<String>,
    inode: u64,
    file_type: &'static str,
    /// `log` or `other`, if it is a database's.
    of_database: Option<&'static str>,
    deleted: bool,
}

#[derive(Serialize)]
struct MarkerName<'a> {
    time_ns: u64,
    name: Cow<'a, str>,
    step: bool,
}

/// The picture's data, and its columns as [`columns`] packs them.
fn data(trace: &Trace) -> (Data<'_>, Vec<u8>) {
    let mut packer = Packer::new();
    let zero_ns = zero_ns(trace);
    put_requests(&mut packer, trace, zero_ns);
    put_syncs(&mut packer, trace, zero_ns);
    put_commits(&mut packer, trace, zero_ns);
    let (columns, stream) = packer.finish();
    let (journal, journal_observed) = journal(trace);
    let data = Data {
        columns,
        classes: class_names(),
        evidence: Evidence::ALL.map(Evidence::name).to_vec(),
        operations: Operation::ALL.map(Operation::name).to_vec(),
        flags: flag_names(),
        phases: Phase::ALL.map(Phase::name).to_vec(),
        sync_kinds: SyncKind::ALL.map(SyncKind::name).to_vec(),
        files: file_names(trace),
        processes: (0..trace.processes.len() as u32)
            .map(|process| printable(&trace.thread_name(process)).into_owned())
            .collect(),
        markers: marker_names(trace, zero_ns),
        journal,
        journal_observed,
    };
    (data, stream)
}

/// The zero of the page's times: the recording's start, unless something came before it.
fn zero_ns(trace: &Trace) -> u64 {
    let queued = trace.requests.iter().map(|r| r.queue_ns.min(r.issue_ns));
    let entered = trace.syncs.iter().map(|s| s.enter_ns);
    let start = trace.manifest.clocks.mono_ns;
    queued.chain(entered).fold(start, u64::min)
}

/// A request's segments; none if a damaged trace points past the table.
fn segments_of<'a>(trace: &'a Trace, request: &Request) -> &'a [Segment] {
    let first = request.first_segment as usize;
    trace
        .segments
        .get(first..first + usize::from(request.segments))
        .unwrap_or(&[])
}

fn or_0(index: Option<u32>) -> u64 {
    index.map_or(0, |index| u64::from(index) + 1)
}

fn wide_or_0(value: Option<u64>) -> u64 {
    value.map_or(0, |value| value.saturating_add(1))
}

/// The place of `item` in the list that the page has of its kind.
fn code<T: PartialEq>(all: &[T], item: T) -> u64 {
    let place = all.iter().position(|other| *other == item);
    place.expect("the list has every variant") as u64
}

fn put_requests(packer: &mut Packer, trace: &Trace, zero_ns: u64) {
    let mut requests: Vec<&Request> = trace.requests.iter().collect();
    // The page looks for marks by bisection, whatever order the file had.
    requests.sort_by_key(|request| request.issue_ns);
    let each = || requests.iter().copied();
    packer.put_ascending("request.issue_ns", each().map(|r| r.issue_ns - zero_ns));
    packer.put(
        "request.wait_ns",
        each().map(|r| r.issue_ns.saturating_sub(r.queue_ns)),
    );
    packer.put(
        "request.service_ns_or_0",
        each().map(|r| wide_or_0(r.complete_ns.map(|end| end.saturating_sub(r.issue_ns)))),
    );
    packer.put("request.sector", each().map(|r| r.sector));
    packer.put("request.bytes", each().map(|r| u64::from(r.bytes)));
    packer.put(
        "request.operation",
        each().map(|r| code(&Operation::ALL, r.operation)),
    );
    packer.put("request.flags", each().map(|r| u64::from(r.flags.0)));
    packer.put("request.status", each().map(|r| u64::from(r.status)));
    packer.put("request.submitter_or_0", each().map(|r| or_0(r.submitter)));
    packer.put("request.sync_or_0", each().map(|r| or_0(r.sync)));
    packer.put(
        "request.segments",
        each().map(|r| segments_of(trace, r).len() as u64),
    );
    packer.put("request.phase", each().map(|r| code(&Phase::ALL, r.phase)));
    packer.put("request.by_tracer", each().map(|r| u64::from(r.by_tracer)));
    put_segments(packer, trace, &requests);
}

fn put_segments(packer: &mut Packer, trace: &Trace, requests: &[&Request]) {
    let each = || requests.iter().flat_map(|r| segments_of(trace, r));
    // Most segments are their request's first: the distance is 0 and costs next to nothing.
    packer.put(
        "segment.distance_sectors",
        requests.iter().flat_map(|r| {
            let distance = |s: &Segment| s.sector.saturating_sub(r.sector);
            segments_of(trace, r).iter().map(distance)
        }),
    );
    packer.put("segment.bytes", each().map(|s| u64::from(s.bytes)));
    packer.put("segment.class", each().map(|s| code(&Class::ALL, s.class)));
    packer.put(
        "segment.evidence",
        each().map(|s| code(&Evidence::ALL, s.evidence)),
    );
    packer.put("segment.file_or_0", each().map(|s| or_0(s.file)));
    packer.put(
        "segment.file_offset_bytes_or_0",
        each().map(|s| wide_or_0(s.file_offset_bytes)),
    );
    packer.put("segment.dirtier_or_0", each().map(|s| or_0(s.dirtier)));
    packer.put(
        "segment.dirtier_by_inode",
        each().map(|s| u64::from(s.dirtier_by_inode)),
    );
    packer.put("segment.cause_or_0", each().map(|s| or_0(s.cause)));
    packer.put("segment.commit_or_0", each().map(|s| wide_or_0(s.commit)));
    packer.put(
        "segment.volume_or_0",
        each().map(|s| or_0(s.volume.map(u32::from))),
    );
    packer.put("segment.home_or_0", each().map(|s| wide_or_0(s.home)));
    packer.put(
        "segment.home_class_or_0",
        each().map(|s| s.home_class.map_or(0, |class| code(&Class::ALL, class) + 1)),
    );
}

fn put_syncs(packer: &mut Packer, trace: &Trace, zero_ns: u64) {
    let each = || trace.syncs.iter();
    packer.put("sync.enter_ns", each().map(|s| s.enter_ns - zero_ns));
    packer.put(
        "sync.duration_ns_or_0",
        each().map(|s| wide_or_0(s.exit_ns.map(|exit| exit.saturating_sub(s.enter_ns)))),
    );
    packer.put("sync.kind", each().map(|s| code(&SyncKind::ALL, s.kind)));
    packer.put("sync.process_or_0", each().map(|s| or_0(s.process)));
    packer.put("sync.file_or_0", each().map(|s| or_0(s.file)));
}

fn put_commits(packer: &mut Packer, trace: &Trace, zero_ns: u64) {
    let each = || trace.commits.iter();
    packer.put("commit.id", each().map(|c| c.id));
    packer.put(
        "commit.start_ns",
        each().map(|c| c.start_ns.saturating_sub(zero_ns)),
    );
    packer.put(
        "commit.duration_ns_or_0",
        each().map(|c| wide_or_0(c.end_ns.map(|end| end.saturating_sub(c.start_ns)))),
    );
    packer.put("commit.cause_or_0", each().map(|c| or_0(c.cause)));
    packer.put(
        "commit.volume_or_0",
        each().map(|c| or_0(c.volume.map(u32::from))),
    );
}

fn class_names() -> Vec<ClassName> {
    let name = |class: &Class| ClassName {
        name: class.name(),
        layer: class.layer().name(),
    };
    Class::ALL.iter().map(name).collect()
}

fn flag_names() -> Vec<(u16, &'static str)> {
    let mut flags: Vec<(u16, &'static str)> = Flags::KERNEL_NAMES
        .iter()
        .map(|(name, bit)| (bit.0, *name))
        .collect();
    // Two kernel names may stand for one bit of ours.
    flags.dedup_by_key(|flag| flag.0);
    flags
}

fn file_names(trace: &Trace) -> Vec<FileName> {
    let files = (0..).zip(&trace.files).map(|(row, file)| FileName {
        path: file
            .path
            .as_ref()
            .map(|_| printable(&trace.file_name(row)).into_owned()),
        inode: file.key.inode,
        file_type: file.file_type.name(),
        of_database: part_of_database(file.file_type),
        deleted: file.deleted_ns.is_some(),
    });
    files.collect()
}

/// SQLite's wal-index goes with its log, and so does what other engines share.
fn part_of_database(file_type: FileType) -> Option<&'static str> {
    let (_, role) = file_type.of_database()?;
    let is_log = file_type.is_database_log() || role == Role::SharedMemory;
    Some(if is_log { "log" } else { "other" })
}

fn marker_names(trace: &Trace, zero_ns: u64) -> Vec<MarkerName<'_>> {
    let markers = trace.markers.iter().map(|row| MarkerName {
        time_ns: row.mono_ns.saturating_sub(zero_ns),
        name: printable(match &row.marker {
            Marker::CommandStart => "command starts",
            Marker::CommandEnd => "command ends",
            Marker::SettleStart => "settling",
            Marker::SettleEnd => "settled",
            Marker::Step(step) => step,
        }),
        step: matches!(row.marker, Marker::Step(_)),
    });
    markers.collect()
}

/// The journal's ranges in sectors: what the layout reserves, or else what was seen of it.
fn journal(trace: &Trace) -> (Vec<(u64, u64)>, bool) {
    let manifest = &trace.manifest;
    let start = manifest.device.start_sector;
    let reserved: Vec<(u64, u64)> = manifest
        .filesystem
        .iter()
        .flat_map(|fs| {
            let block_sectors = u64::from(fs.block_bytes) / SECTOR_BYTES;
            let journal = fs
                .layout
                .iter()
                .filter(|r| r.class.layer() == Layer::Journal);
            journal.map(move |range| {
                let first = range.first_block.saturating_mul(block_sectors);
                (
                    first.saturating_add(start),
                    range.blocks.saturating_mul(block_sectors),
                )
            })
        })
        .collect();
    if !reserved.is_empty() {
        return (reserved, false);
    }
    (observed_journal(trace), true)
}

/// The range from the first to the last journal sector that was read or written. The trees of
/// btrfs's log lie anywhere, so a range around them would say nothing.
fn observed_journal(trace: &Trace) -> Vec<(u64, u64)> {
    let of_journal = |s: &&Segment| s.class.layer() == Layer::Journal && s.class != Class::TreeLog;
    let ends = trace.segments.iter().filter(of_journal).map(|s| {
        let sectors = u64::from(s.bytes).div_ceil(SECTOR_BYTES);
        (s.sector, s.sector.saturating_add(sectors))
    });
    let range = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    range
        .map(|(first, end)| (first, end - first))
        .into_iter()
        .collect()
}
