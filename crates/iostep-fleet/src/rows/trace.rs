//! `traces`.

use bytes::Bytes;
use iostep_model::disk::{Disk, Health};
use iostep_model::table::Request;

use super::origin::text;
use super::{Known, table};
use crate::column::int;
use crate::hidden::Key;
use crate::options::Options;

/// A trace.
pub(crate) struct TraceRow<'a> {
    pub known: &'a Known<'a>,
    pub options: &'a Options,
    pub key: &'a Key,
}

impl TraceRow<'_> {
    fn sum(&self, count: impl Fn(&Request) -> u64) -> i64 {
        let requests = self.known.trace.requests.iter();
        let own = requests.filter(|request| !request.by_tracer);
        int(own.map(count).fold(0, u64::saturating_add))
    }

    fn duration_ns(&self) -> Option<i64> {
        let manifest = &self.known.trace.manifest;
        let end_ns = manifest.end_mono_ns?;
        Some(int(end_ns.saturating_sub(manifest.clocks.mono_ns)))
    }

    fn health(&self, value: impl Fn(&Health) -> Option<u8>) -> Option<i64> {
        let disk: &Disk = self.known.trace.manifest.disks.first()?;
        let health = disk.health_after.as_ref().or(disk.health_before.as_ref());
        health.and_then(value).map(i64::from)
    }

    fn command(&self) -> Bytes {
        let command = self.known.trace.manifest.command.as_ref();
        match command.map(|command| command.argv.join(" ")) {
            Some(command) if self.options.keep_paths => text(Some(&command)),
            Some(command) => self.key.hide("command", &command),
            None => Bytes::new(),
        }
    }
}

table!(TraceRow<'_>, |row| {
    trace_id: Bytes = row.known.id.clone(),
    wall_ns: i64 = int(row.known.trace.manifest.clocks.wall_ns),
    day: i64 = row.known.day(row.known.trace.manifest.clocks.mono_ns),
    duration_ns: Option<i64> = row.duration_ns(),
    iostep_version: Bytes = text(Some(&row.known.trace.manifest.iostep_version)),
    backend: Bytes = Bytes::from_static(row.known.trace.manifest.backend.name().as_bytes()),
    command: Bytes = row.command(),
    passed: i64 = row.known.trace.manifest.check.passed().into(),
    lost_events: i64 = int(row.known.trace.manifest.check.lost_events),
    requests: i64 = row.known.trace.requests.len() as i64,
    segments: i64 = row.known.trace.segments.len() as i64,
    syncs: i64 = row.known.trace.syncs.len() as i64,
    files: i64 = row.known.trace.files.len() as i64,
    read_bytes: i64 = row.sum(|r| match r.operation {
        iostep_model::Operation::Read => r.bytes.into(),
        _ => 0,
    }),
    write_bytes: i64 = row.sum(|r| if r.operation.is_write() { r.bytes.into() } else { 0 }),
    flushes: i64 = row.sum(|r| r.is_executed_flush().into()),
    used_percent: Option<i64> = row.health(|health| health.used_percent),
    life_time_a: Option<i64> = row.health(|health| health.life_time_a),
    life_time_b: Option<i64> = row.health(|health| health.life_time_b),
    pre_eol: Option<i64> = row.health(|health| health.pre_eol),
} with row.known.origin(0));
