//! `traces`.

use bytes::Bytes;
use iostep_model::disk::{Disk, Health};
use iostep_model::operation::Operation;
use iostep_model::store::Stream;
use iostep_model::table::Request;

use super::origin::text;
use super::{Known, table};
use crate::column::int;
use crate::hidden::Key;
use crate::options::Options;

/// What the rows of a trace add up to.
#[derive(Default)]
pub(crate) struct Totals {
    pub requests: u64,
    pub segments: u64,
    pub syncs: u64,
    /// These without iostep's own.
    read_bytes: u64,
    write_bytes: u64,
    flushes: u64,
}

impl Totals {
    /// Of a trace of so many sync calls, before its requests were looked at.
    pub(crate) fn of_syncs(syncs: u64) -> Totals {
        Totals {
            syncs,
            ..Totals::default()
        }
    }

    /// Adds a request, none of iostep's own, to the sums of bytes and flushes.
    pub(crate) fn add(&mut self, request: &Request) {
        let bytes = u64::from(request.bytes);
        match request.operation {
            Operation::Read => self.read_bytes += bytes,
            operation if operation.is_write() => self.write_bytes += bytes,
            _ => self.flushes += u64::from(request.is_executed_flush()),
        }
    }
}

/// A trace.
pub(crate) struct TraceRow<'a> {
    pub known: &'a Known,
    pub stream: &'a Stream,
    pub totals: &'a Totals,
    pub options: &'a Options,
    pub key: &'a Key,
}

impl TraceRow<'_> {
    fn duration_ns(&self) -> Option<i64> {
        let manifest = &self.stream.manifest;
        let end_ns = manifest.end_mono_ns?;
        Some(int(end_ns.saturating_sub(manifest.clocks.mono_ns)))
    }

    fn health(&self, value: impl Fn(&Health) -> Option<u8>) -> Option<i64> {
        let disk: &Disk = self.stream.manifest.disks.first()?;
        let health = disk.health_after.as_ref().or(disk.health_before.as_ref());
        health.and_then(value).map(i64::from)
    }

    fn command(&self) -> Bytes {
        let command = self.stream.manifest.command.as_ref();
        match command.map(|command| command.argv.join(" ")) {
            Some(command) if self.options.keep_paths => text(Some(&command)),
            Some(command) => self.key.hide("command", &command),
            None => Bytes::new(),
        }
    }
}

table!(TraceRow<'_>, |row| {
    trace_id: Bytes = row.known.id.clone(),
    wall_ns: i64 = int(row.stream.manifest.clocks.wall_ns),
    day: i64 = row.known.day(row.stream.manifest.clocks.mono_ns),
    duration_ns: Option<i64> = row.duration_ns(),
    iostep_version: Bytes = text(Some(&row.stream.manifest.iostep_version)),
    backend: &'static str = row.stream.manifest.backend.name(),
    command: Bytes = row.command(),
    passed: i64 = row.stream.manifest.check.passed().into(),
    lost_events: i64 = int(row.stream.manifest.check.lost_events),
    requests: i64 = int(row.totals.requests),
    segments: i64 = int(row.totals.segments),
    syncs: i64 = int(row.totals.syncs),
    files: i64 = row.stream.files.len() as i64,
    read_bytes: i64 = int(row.totals.read_bytes),
    write_bytes: i64 = int(row.totals.write_bytes),
    flushes: i64 = int(row.totals.flushes),
    used_percent: Option<i64> = row.health(|health| health.used_percent),
    life_time_a: Option<i64> = row.health(|health| health.life_time_a),
    life_time_b: Option<i64> = row.health(|health| health.life_time_b),
    pre_eol: Option<i64> = row.health(|health| health.pre_eol),
} with row.known.origin(0, None));
