//! `segments`.

use bytes::Bytes;
use iostep_model::operation::Flags;
use iostep_model::table::{Request, Segment};

use super::{Known, table};
use crate::column::int;

/// A part of a request.
pub(crate) struct SegmentRow<'a> {
    pub known: &'a Known,
    /// Row of the trace's segments.
    pub row: u32,
    pub segment: &'a Segment,
    pub request: &'a Request,
    pub app: &'a Bytes,
}

impl SegmentRow<'_> {
    fn cause_kind(&self) -> &'static str {
        let cause = self.known.sync(self.segment.cause);
        cause.map_or("", |sync| sync.kind.name())
    }

    fn cause_file(&self) -> Option<u32> {
        self.known.sync(self.segment.cause)?.file
    }
}

table!(SegmentRow<'_>, |row| {
    trace_id: &Bytes = &row.known.id,
    segment_id: i64 = row.row.into(),
    request_id: i64 = row.segment.request.into(),
    sync_id: Option<i64> = row.segment.cause.map(i64::from),
    file_id: Option<i64> = row.segment.file.map(i64::from),
    wall_ns: i64 = row.known.wall_ns(row.request.queue_ns),
    day: i64 = row.known.day(row.request.queue_ns),
    app: &Bytes = row.app,
    operation: &'static str = row.request.operation.name(),
    phase: &'static str = row.request.phase.name(),
    by_tracer: i64 = row.request.by_tracer.into(),
    sector: i64 = int(row.segment.sector),
    bytes: i64 = row.segment.bytes.into(),
    request_bytes: i64 = row.request.bytes.into(),
    synchronous: i64 = row.request.flags.has(Flags::SYNC).into(),
    layer: &'static str = row.segment.class.layer().name(),
    class: &'static str = row.segment.class.name(),
    evidence: &'static str = row.segment.evidence.name(),
    file_type: &'static str = row.known.file_type(row.segment.file),
    file: &Bytes = row.known.file(row.segment.file),
    dirtier: &Bytes = row.known.program(row.segment.dirtier),
    submitter: &Bytes = row.known.program(row.request.submitter),
    cause_kind: &'static str = row.cause_kind(),
    cause_file_type: &'static str = row.known.file_type(row.cause_file()),
    cause_file: &Bytes = row.known.file(row.cause_file()),
    cause_is_database_log: i64 = row.known.is_database_log(row.cause_file()),
    wait_ns: i64 = Known::wait_ns(row.request),
    device_ns: Option<i64> = Known::device_ns(row.request),
} with row.known.origin(row.request.device, row.segment.volume));
