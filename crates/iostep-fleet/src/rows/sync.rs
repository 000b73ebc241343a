//! `syncs`.

use bytes::Bytes;
use iostep_analyze::stats::syncs::Caused;
use iostep_model::table::Sync;

use super::{Known, table};
use crate::column::int;

/// A sync call.
pub(crate) struct SyncRow<'a> {
    pub known: &'a Known,
    /// Row of the trace's sync calls.
    pub row: u32,
    pub sync: &'a Sync,
    pub caused: &'a Caused,
    pub app: &'a Bytes,
}

impl SyncRow<'_> {
    fn duration_ns(&self) -> Option<i64> {
        let exit_ns = self.sync.exit_ns?;
        Some(int(exit_ns.saturating_sub(self.sync.enter_ns)))
    }
}

table!(SyncRow<'_>, |row| {
    trace_id: &Bytes = &row.known.id,
    sync_id: i64 = row.row.into(),
    file_id: Option<i64> = row.sync.file.map(i64::from),
    wall_ns: i64 = row.known.wall_ns(row.sync.enter_ns),
    day: i64 = row.known.day(row.sync.enter_ns),
    app: &Bytes = row.app,
    kind: &'static str = row.sync.kind.name(),
    file_type: &'static str = row.known.file_type(row.sync.file),
    file: &Bytes = row.known.file(row.sync.file),
    file_deleted: i64 = row.known.is_deleted(row.sync.file),
    is_database_log: i64 = row.known.is_database_log(row.sync.file),
    duration_ns: Option<i64> = row.duration_ns(),
    result: Option<i64> = row.sync.result,
    data_bytes: i64 = int(row.caused.data_bytes),
    journal_bytes: i64 = int(row.caused.journal_bytes),
    metadata_bytes: i64 = int(row.caused.metadata_bytes),
    writes: i64 = int(row.caused.writes),
    flushes: i64 = int(row.caused.flushes),
} with row.known.origin(0, row.sync.volume));
