//! What sync calls cost: by call and by kind.

use iostep_model::class::Layer;
use iostep_model::sync::SyncKind;
use iostep_model::table::{Request, Segment, Trace};
use serde::Serialize;

use super::latency::Percentiles;

/// What one sync call made the device do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SyncRow {
    /// Row in `syncs.parquet`.
    pub sync: u32,
    /// When it entered, from the start of the recording.
    pub enter_ns: u64,
    /// How long it took; nothing if it had not left at the end.
    pub duration_ns: Option<u64>,
    /// What was called.
    pub kind: SyncKind,
    /// Process id.
    pub pid: Option<u32>,
    /// Row in `files.parquet`.
    pub file: Option<u32>,
    /// What it returned, where that was seen.
    pub result: Option<i64>,
    /// What it made necessary.
    #[serde(flatten)]
    pub caused: Caused,
}

/// Writes that sync calls made necessary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Caused {
    /// Bytes of files.
    pub data_bytes: u64,
    /// Bytes of the filesystem's log.
    pub journal_bytes: u64,
    /// Bytes of other metadata.
    pub metadata_bytes: u64,
    /// Write requests with any of these bytes.
    pub writes: u64,
    /// Flushes that the device executed in the name of this call: of several that wait for one
    /// flush, it is the first's.
    pub flushes: u64,
}

impl Caused {
    fn add(&mut self, other: &Caused) {
        self.data_bytes += other.data_bytes;
        self.journal_bytes += other.journal_bytes;
        self.metadata_bytes += other.metadata_bytes;
        self.writes += other.writes;
        self.flushes += other.flushes;
    }

    /// Counts a segment's bytes where they belong; unknown ones nowhere.
    pub(super) fn add_segment(&mut self, segment: &Segment) {
        let bytes = u64::from(segment.bytes);
        match segment.class.layer() {
            Layer::Data => self.data_bytes += bytes,
            Layer::Journal => self.journal_bytes += bytes,
            Layer::Metadata => self.metadata_bytes += bytes,
            Layer::Unknown => {}
        }
    }
}

/// The sync calls of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SyncKindRow {
    /// What was called.
    pub kind: SyncKind,
    /// How often.
    pub calls: u64,
    /// How many returned an error.
    pub failed: u64,
    /// The time of all of them together.
    pub total_ns: u64,
    /// How long they took.
    pub duration: Option<Percentiles>,
    /// What they made necessary.
    #[serde(flatten)]
    pub caused: Caused,
}

/// Counts what each sync call of a trace made the device do.
pub struct Collector {
    /// By row of `syncs`.
    caused: Vec<Caused>,
    /// The last request counted for each call.
    last_request: Vec<Option<u32>>,
}

pub(super) struct Syncs {
    pub(super) calls: Vec<SyncRow>,
    pub(super) kinds: Vec<SyncKindRow>,
}

impl Collector {
    /// For a trace of so many sync calls.
    pub fn new(syncs: usize) -> Collector {
        Collector {
            caused: vec![Caused::default(); syncs],
            last_request: vec![None; syncs],
        }
    }

    /// Counts a request, none of iostep's own, with its segments. Requests come in their order, and
    /// what they refer to is there.
    pub fn add(&mut self, request: &Request, segments: &[Segment]) {
        if let Some(sync) = request.sync.filter(|_| request.is_executed_flush()) {
            self.caused[sync as usize].flushes += 1;
        }
        if !request.operation.is_write() {
            return;
        }
        for segment in segments {
            let Some(sync) = segment.cause else { continue };
            let caused = &mut self.caused[sync as usize];
            caused.add_segment(segment);
            let last = &mut self.last_request[sync as usize];
            caused.writes += u64::from(*last != Some(segment.request));
            *last = Some(segment.request);
        }
    }

    /// What each sync call made the device do, by row of `syncs`.
    pub fn caused(&self) -> &[Caused] {
        &self.caused
    }

    pub(super) fn finish(self, trace: &Trace) -> Syncs {
        let start_ns = trace.manifest.clocks.mono_ns;
        let rows = trace.syncs.iter().zip(self.caused).enumerate();
        let calls: Vec<SyncRow> = rows
            .map(|(index, (sync, caused))| SyncRow {
                sync: index as u32,
                enter_ns: sync.enter_ns.saturating_sub(start_ns),
                duration_ns: sync.exit_ns.map(|exit| exit.saturating_sub(sync.enter_ns)),
                kind: sync.kind,
                pid: sync.process.map(|p| trace.processes[p as usize].tgid),
                file: sync.file,
                result: sync.result,
                caused,
            })
            .collect();
        let kinds = SyncKind::ALL
            .into_iter()
            .filter_map(|kind| kind_row(kind, &calls))
            .collect();
        Syncs { calls, kinds }
    }
}

fn kind_row(kind: SyncKind, calls: &[SyncRow]) -> Option<SyncKindRow> {
    let mut row = SyncKindRow {
        kind,
        calls: 0,
        failed: 0,
        total_ns: 0,
        duration: None,
        caused: Caused::default(),
    };
    let mut durations_ns = Vec::new();
    for call in calls.iter().filter(|call| call.kind == kind) {
        row.calls += 1;
        row.failed += u64::from(call.result.is_some_and(|result| result < 0));
        row.caused.add(&call.caused);
        durations_ns.extend(call.duration_ns);
    }
    row.total_ns = durations_ns
        .iter()
        .fold(0, |sum, ns| ns.saturating_add(sum));
    row.duration = Percentiles::of(&mut durations_ns);
    (row.calls > 0).then_some(row)
}
