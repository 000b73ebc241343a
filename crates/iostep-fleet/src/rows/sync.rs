//! `syncs`.

use bytes::Bytes;
use iostep_analyze::stats::syncs;

use super::{Known, table};
use crate::column::int;

/// A sync call.
pub(crate) struct SyncRow<'a> {
    pub known: &'a Known<'a>,
    pub call: syncs::SyncRow,
    pub app: Bytes,
}

impl SyncRow<'_> {
    fn enter_ns(&self) -> u64 {
        self.known.trace.syncs[self.call.sync as usize].enter_ns
    }

    /// 1 for a file that was seen to be deleted; a rollback journal then was one of DELETE.
    fn file_deleted(&self) -> i64 {
        let file = self
            .call
            .file
            .map(|file| &self.known.trace.files[file as usize]);
        file.is_some_and(|file| file.deleted_ns.is_some()).into()
    }
}

table!(SyncRow<'_>, |row| {
    trace_id: Bytes = row.known.id.clone(),
    sync_id: i64 = row.call.sync.into(),
    file_id: Option<i64> = row.call.file.map(i64::from),
    wall_ns: i64 = row.known.wall_ns(row.enter_ns()),
    day: i64 = row.known.day(row.enter_ns()),
    app: Bytes = row.app.clone(),
    kind: Bytes = Bytes::from_static(row.call.kind.name().as_bytes()),
    file_type: Bytes = row.known.file_type(row.call.file),
    file: Bytes = row.known.file(row.call.file),
    file_deleted: i64 = row.file_deleted(),
    is_database_log: i64 = row.known.is_database_log(row.call.file),
    duration_ns: Option<i64> = row.call.duration_ns.map(int),
    result: Option<i64> = row.call.result,
    data_bytes: i64 = int(row.call.caused.data_bytes),
    journal_bytes: i64 = int(row.call.caused.journal_bytes),
    metadata_bytes: i64 = int(row.call.caused.metadata_bytes),
    writes: i64 = int(row.call.caused.writes),
    flushes: i64 = int(row.call.caused.flushes),
} with row.known.origin(0));
