//! `segments`.

use bytes::Bytes;
use iostep_model::operation::Flags;
use iostep_model::table::{Request, Segment};

use super::{Known, table};
use crate::column::int;

/// A part of a request.
pub(crate) struct SegmentRow<'a> {
    pub known: &'a Known<'a>,
    pub row: u32,
    pub app: Bytes,
}

impl<'a> SegmentRow<'a> {
    fn segment(&self) -> &'a Segment {
        &self.known.trace.segments[self.row as usize]
    }

    fn request(&self) -> &'a Request {
        &self.known.trace.requests[self.segment().request as usize]
    }

    fn cause_kind(&self) -> Bytes {
        let kind = self
            .known
            .sync(self.segment().cause)
            .map_or("", |sync| sync.kind.name());
        Bytes::from_static(kind.as_bytes())
    }

    fn cause_file(&self) -> Option<u32> {
        self.known.sync(self.segment().cause)?.file
    }
}

table!(SegmentRow<'_>, |row| {
    trace_id: Bytes = row.known.id.clone(),
    segment_id: i64 = row.row.into(),
    request_id: i64 = row.segment().request.into(),
    sync_id: Option<i64> = row.segment().cause.map(i64::from),
    file_id: Option<i64> = row.segment().file.map(i64::from),
    wall_ns: i64 = row.known.wall_ns(row.request().queue_ns),
    day: i64 = row.known.day(row.request().queue_ns),
    app: Bytes = row.app.clone(),
    operation: Bytes = Bytes::from_static(row.request().operation.name().as_bytes()),
    phase: Bytes = Bytes::from_static(row.request().phase.name().as_bytes()),
    by_tracer: i64 = row.request().by_tracer.into(),
    sector: i64 = int(row.segment().sector),
    bytes: i64 = row.segment().bytes.into(),
    request_bytes: i64 = row.request().bytes.into(),
    synchronous: i64 = row.request().flags.has(Flags::SYNC).into(),
    layer: Bytes = Bytes::from_static(row.segment().class.layer().name().as_bytes()),
    class: Bytes = Bytes::from_static(row.segment().class.name().as_bytes()),
    evidence: Bytes = Bytes::from_static(row.segment().evidence.name().as_bytes()),
    file_type: Bytes = row.known.file_type(row.segment().file),
    file: Bytes = row.known.file(row.segment().file),
    dirtier: Bytes = row.known.program(row.segment().dirtier),
    submitter: Bytes = row.known.program(row.request().submitter),
    cause_kind: Bytes = row.cause_kind(),
    cause_file_type: Bytes = row.known.file_type(row.cause_file()),
    cause_file: Bytes = row.known.file(row.cause_file()),
    cause_is_database_log: i64 = row.known.is_database_log(row.cause_file()),
    wait_ns: i64 = Known::wait_ns(row.request()),
    device_ns: Option<i64> = Known::device_ns(row.request()),
} with row.known.origin(row.request().device));
