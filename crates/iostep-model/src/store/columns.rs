//! The columns of each table.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};

use super::cell::{Bad, Cell, MarkerKind};
use super::lab::{CellRow, ClassRow};
use crate::class::{Class, Evidence, FileType};
use crate::event::Marker;
use crate::identity::FileKey;
use crate::operation::{Flags, Operation};
use crate::sync::SyncKind;
use crate::table::{Commit, File, MarkerRow, Phase, ProcessRow, Request, Segment, Sync};

/// A row that is stored as columns.
pub(super) trait Row: Sized {
    /// The table's name; its file is `TABLE.parquet`.
    const TABLE: &'static str;
    /// The columns' names and types.
    fn schema() -> Schema;
    /// `rows` as arrays, in the order of the schema.
    fn encode(rows: &[Self]) -> Vec<ArrayRef>;
    /// Appends the batch's rows to `rows`. On failure, the column and what is wrong in it. The
    /// last columns may be missing, if they were added later.
    fn decode(batch: &RecordBatch, rows: &mut Vec<Self>) -> Result<(), (&'static str, Bad)>;
}

/// A table: `column: type = value of a row`, in the order of the file, and the row made of the
/// columns' values.
macro_rules! table {
    ($type:ty, $name:literal, |$row:ident| {
        $($column:ident: $cell:ty = $get:expr,)*
    } => $make:expr) => {
        impl Row for $type {
            const TABLE: &'static str = $name;

            fn schema() -> Schema {
                Schema::new(vec![$(Field::new(
                    stringify!($column),
                    <$cell as Cell>::data_type(),
                    <$cell as Cell>::NULLABLE,
                ),)*])
            }

            fn encode(rows: &[Self]) -> Vec<ArrayRef> {
                vec![$(<$cell as Cell>::encode(rows.iter().map(|$row| $get)),)*]
            }

            fn decode(
                batch: &RecordBatch,
                rows: &mut Vec<Self>,
            ) -> Result<(), (&'static str, Bad)> {
                let mut arrays = batch.columns().iter();
                $(
                    let values = match arrays.next() {
                        Some(array) => <$cell as Cell>::decode(array),
                        None => <$cell as Cell>::absent(batch.num_rows()),
                    };
                    let mut $column = values.map_err(|bad| (stringify!($column), bad))?.into_iter();
                )*
                // The arrays of a batch are equally long, so the iterators end together.
                while let ($(Some($column),)*) = ($($column.next(),)*) {
                    rows.push($make);
                }
                Ok(())
            }
        }
    };
}

table!(Request, "requests", |row| {
    queue_ns: u64 = row.queue_ns,
    issue_ns: u64 = row.issue_ns,
    complete_ns: Option<u64> = row.complete_ns,
    sector: u64 = row.sector,
    bytes: u32 = row.bytes,
    operation: Operation = row.operation,
    flags: u16 = row.flags.0,
    status: u8 = row.status,
    bios: u16 = row.bios,
    submitter: Option<u32> = row.submitter,
    sync: Option<u32> = row.sync,
    first_segment: u32 = row.first_segment,
    segments: u16 = row.segments,
    phase: Phase = row.phase,
    by_tracer: bool = row.by_tracer,
    device: u8 = row.device,
} => Request {
    queue_ns, issue_ns, complete_ns, sector, bytes, operation, flags: Flags(flags), status, bios,
    submitter, sync, first_segment, segments, phase, by_tracer, device,
});

table!(Segment, "segments", |row| {
    request: u32 = row.request,
    sector: u64 = row.sector,
    bytes: u32 = row.bytes,
    class: Class = row.class,
    evidence: Evidence = row.evidence,
    file: Option<u32> = row.file,
    file_offset_bytes: Option<u64> = row.file_offset_bytes,
    dirtier: Option<u32> = row.dirtier,
    dirtier_by_inode: bool = row.dirtier_by_inode,
    cause: Option<u32> = row.cause,
    commit: Option<u64> = row.commit,
    home: Option<u64> = row.home,
    home_class: Option<Class> = row.home_class,
} => Segment {
    request, sector, bytes, class, evidence, file, file_offset_bytes, dirtier, dirtier_by_inode,
    cause, commit, home, home_class,
});

table!(File, "files", |row| {
    subvolume: u64 = row.key.subvolume,
    inode: u64 = row.key.inode,
    generation: u32 = row.key.generation,
    path: Option<String> = row.path.clone(),
    mode: u16 = row.mode,
    file_type: FileType = row.file_type,
    birth_wall_ns: Option<i64> = row.birth_wall_ns,
    deleted_ns: Option<u64> = row.deleted_ns,
} => File {
    key: FileKey { subvolume, inode, generation },
    path, mode, file_type, birth_wall_ns, deleted_ns,
});

table!(ProcessRow, "processes", |row| {
    mono_ns: u64 = row.mono_ns,
    pid: u32 = row.pid,
    tgid: u32 = row.tgid,
    parent_tgid: u32 = row.parent_tgid,
    comm: String = row.comm.clone(),
    kernel: bool = row.kernel,
    command_line: Option<String> = row.command_line.clone(),
    cgroup_id: Option<u64> = row.cgroup_id,
    cgroup: Option<String> = row.cgroup.clone(),
} => ProcessRow {
    mono_ns, pid, tgid, parent_tgid, comm, kernel, command_line, cgroup_id, cgroup,
});

table!(Sync, "syncs", |row| {
    enter_ns: u64 = row.enter_ns,
    exit_ns: Option<u64> = row.exit_ns,
    kind: SyncKind = row.kind,
    process: Option<u32> = row.process,
    file: Option<u32> = row.file,
    result: Option<i64> = row.result,
    commit: Option<u64> = row.commit,
} => Sync { enter_ns, exit_ns, kind, process, file, result, commit });

table!(Commit, "commits", |row| {
    id: u64 = row.id,
    start_ns: u64 = row.start_ns,
    end_ns: Option<u64> = row.end_ns,
    cause: Option<u32> = row.cause,
} => Commit { id, start_ns, end_ns, cause });

table!(MarkerRow, "markers", |row| {
    mono_ns: u64 = row.mono_ns,
    marker: MarkerKind = kind_of(&row.marker),
    step: Option<String> = step_of(&row.marker),
} => MarkerRow { mono_ns, marker: marker_of(marker, step) });

table!(CellRow, "cells", |row| {
    lab: String = row.lab.clone(),
    cell: String = row.cell.clone(),
    block: String = row.block.clone(),
    filesystem: String = row.filesystem.clone(),
    switches: String = row.switches.clone(),
    workload: String = row.workload.clone(),
    arguments: String = row.arguments.clone(),
    axes: String = row.axes.clone(),
    traced: bool = row.traced,
    cpu_load: u32 = row.cpu_load,
    state: String = row.state.clone(),
    reason: Option<String> = row.reason.clone(),
    place: Option<String> = row.place.clone(),
    emulated: Option<bool> = row.emulated,
    kernel: Option<String> = row.kernel.clone(),
    processor: Option<String> = row.processor.clone(),
    device: Option<String> = row.device.clone(),
    device_model: Option<String> = row.device_model.clone(),
    mounted: Option<String> = row.mounted.clone(),
    iostep_version: Option<String> = row.iostep_version.clone(),
    iostep_commit: Option<String> = row.iostep_commit.clone(),
    run: Option<u32> = row.run,
    elapsed_ns: Option<u64> = row.elapsed_ns,
    operations: Option<u64> = row.operations,
    p50_ns: Option<u64> = row.p50_ns,
    p99_ns: Option<u64> = row.p99_ns,
    max_ns: Option<u64> = row.max_ns,
    sync_p50_ns: Option<u64> = row.sync_p50_ns,
    sync_p99_ns: Option<u64> = row.sync_p99_ns,
    sync_max_ns: Option<u64> = row.sync_max_ns,
    read_ios: Option<u64> = row.read_ios,
    read_bytes: Option<u64> = row.read_bytes,
    write_ios: Option<u64> = row.write_ios,
    write_bytes: Option<u64> = row.write_bytes,
    discard_bytes: Option<u64> = row.discard_bytes,
    flushes: Option<u64> = row.flushes,
    user_ns: Option<u64> = row.user_ns,
    system_ns: Option<u64> = row.system_ns,
    voluntary_switches: Option<u64> = row.voluntary_switches,
    involuntary_switches: Option<u64> = row.involuntary_switches,
    journal_of_journal_bytes: Option<u64> = row.journal_of_journal_bytes,
    write_requests: Option<u64> = row.write_requests,
} => CellRow {
    lab, cell, block, filesystem, switches, workload, arguments, axes, traced, cpu_load, state,
    reason, place, emulated, kernel, processor, device, device_model, mounted, iostep_version,
    iostep_commit, run, elapsed_ns, operations, p50_ns, p99_ns, max_ns, sync_p50_ns,
    sync_p99_ns, sync_max_ns, read_ios, read_bytes, write_ios, write_bytes, discard_bytes,
    flushes, user_ns, system_ns, voluntary_switches, involuntary_switches,
    journal_of_journal_bytes,
    write_requests,
});

table!(ClassRow, "classes", |row| {
    cell: String = row.cell.clone(),
    run: u32 = row.run,
    class: Option<Class> = row.class,
    operation: Operation = row.operation,
    bytes: u64 = row.bytes,
    requests: u64 = row.requests,
} => ClassRow { cell, run, class, operation, bytes, requests });

fn kind_of(marker: &Marker) -> MarkerKind {
    match marker {
        Marker::CommandStart => MarkerKind::CommandStart,
        Marker::CommandEnd => MarkerKind::CommandEnd,
        Marker::SettleStart => MarkerKind::SettleStart,
        Marker::SettleEnd => MarkerKind::SettleEnd,
        Marker::Step(_) => MarkerKind::Step,
    }
}

fn step_of(marker: &Marker) -> Option<String> {
    match marker {
        Marker::Step(step) => Some(step.clone()),
        _ => None,
    }
}

fn marker_of(kind: MarkerKind, step: Option<String>) -> Marker {
    match kind {
        MarkerKind::CommandStart => Marker::CommandStart,
        MarkerKind::CommandEnd => Marker::CommandEnd,
        MarkerKind::SettleStart => Marker::SettleStart,
        MarkerKind::SettleEnd => Marker::SettleEnd,
        MarkerKind::Step => Marker::Step(step.unwrap_or_default()),
    }
}

/// The schema of `R`'s table, shared.
/// The first columns of a table: older files have fewer.
pub(super) fn schema_of<R: Row>(columns: usize) -> Arc<Schema> {
    let fields = R::schema().fields;
    let first: Vec<_> = fields.iter().take(columns).cloned().collect();
    Arc::new(Schema::new(first))
}
