//! `requests`.

use bytes::Bytes;
use iostep_model::operation::Flags;
use iostep_model::table::Request;

use super::{Known, table};
use crate::column::int;

/// A request to a device.
pub(crate) struct RequestRow<'a> {
    pub known: &'a Known,
    /// Row of the trace's requests.
    pub row: u32,
    pub request: &'a Request,
    /// That of its first part.
    pub volume: Option<u16>,
    pub app: &'a Bytes,
}

impl RequestRow<'_> {
    fn has(&self, flag: Flags) -> i64 {
        self.request.flags.has(flag).into()
    }
}

table!(RequestRow<'_>, |row| {
    trace_id: &Bytes = &row.known.id,
    request_id: i64 = row.row.into(),
    sync_id: Option<i64> = row.request.sync.map(i64::from),
    wall_ns: i64 = row.known.wall_ns(row.request.queue_ns),
    day: i64 = row.known.day(row.request.queue_ns),
    app: &Bytes = row.app,
    submitter: &Bytes = row.known.program(row.request.submitter),
    operation: &'static str = row.request.operation.name(),
    phase: &'static str = row.request.phase.name(),
    by_tracer: i64 = row.request.by_tracer.into(),
    executed_flush: i64 = row.request.is_executed_flush().into(),
    sector: i64 = int(row.request.sector),
    bytes: i64 = row.request.bytes.into(),
    synchronous: i64 = row.has(Flags::SYNC),
    preflush: i64 = row.has(Flags::PREFLUSH),
    fua: i64 = row.has(Flags::FUA),
    background: i64 = row.has(Flags::BACKGROUND),
    readahead: i64 = row.has(Flags::READAHEAD),
    status: i64 = row.request.status.into(),
    bios: i64 = row.request.bios.into(),
    segments: i64 = row.request.segments.into(),
    wait_ns: i64 = Known::wait_ns(row.request),
    device_ns: Option<i64> = Known::device_ns(row.request),
} with row.known.origin(row.request.device, row.volume));
