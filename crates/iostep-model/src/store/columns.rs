//! The columns of each table.

use std::io::Write;

use parquet::file::writer::SerializedRowGroupWriter;

use super::cell::MarkerKind;
use super::column::{self, Bad, ColumnReader, GroupReader};
use super::lab::{CellRow, ClassRow};
use super::parquet_file::{Read, Row};
use crate::class::{Class, Evidence, FileType};
use crate::columnar::{Column, Written};
use crate::event::Marker;
use crate::identity::FileKey;
use crate::operation::{Flags, Operation};
use crate::sync::SyncKind;
use crate::table::{Commit, File, MarkerRow, Phase, ProcessRow, Request, Segment, Sync};

/// A table: `column: type = value of a row`, in the order of the file, and, where it is read back,
/// the row made of the columns' values.
macro_rules! table {
    ($type:ty, $name:literal, |$row:ident| {
        $($column:ident: $cell:ty = $get:expr,)*
    }) => {
        impl Row for $type {
            const TABLE: &'static str = $name;

            fn columns() -> Vec<Column> {
                vec![$(column::column::<$cell>(stringify!($column)),)*]
            }

            fn write<W: Write + Send>(
                rows: &[Self],
                group: &mut SerializedRowGroupWriter<'_, W>,
            ) -> Written {
                $(column::write::<$cell, W>(group, rows.iter().map(|$row| $get))?;)*
                Ok(())
            }
        }
    };
    ($type:ty, $name:literal, |$row:ident| {
        $($column:ident: $cell:ty = $get:expr,)*
    } => $make:expr) => {
        table!($type, $name, |$row| { $($column: $cell = $get,)* });

        impl Read for $type {
            type Columns = ($(ColumnReader<$cell>,)*);

            fn open(group: &mut GroupReader<'_>) -> Result<Self::Columns, Bad> {
                Ok(($(group.next::<$cell>(stringify!($column))?,)*))
            }

            fn read(
                columns: &mut Self::Columns,
                count: usize,
                rows: &mut Vec<Self>,
            ) -> Result<(), Bad> {
                let ($($column,)*) = columns;
                $(let mut $column = $column.values(count)?.into_iter();)*
                // They are equally long, so they end together.
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
    volume: Option<u16> = row.volume,
} => Segment {
    request, sector, bytes, class, evidence, file, file_offset_bytes, dirtier, dirtier_by_inode,
    cause, commit, home, home_class, volume,
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
    volume: Option<u16> = row.volume,
    first_path: Option<String> = row.first_path.clone(),
} => File {
    key: FileKey { subvolume, inode, generation },
    path, mode, file_type, birth_wall_ns, deleted_ns, volume, first_path,
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
    volume: Option<u16> = row.volume,
} => Sync { enter_ns, exit_ns, kind, process, file, result, commit, volume });

table!(Commit, "commits", |row| {
    id: u64 = row.id,
    start_ns: u64 = row.start_ns,
    end_ns: Option<u64> = row.end_ns,
    cause: Option<u32> = row.cause,
    volume: Option<u16> = row.volume,
} => Commit { id, start_ns, end_ns, cause, volume });

table!(MarkerRow, "markers", |row| {
    mono_ns: u64 = row.mono_ns,
    marker: MarkerKind = kind_of(&row.marker),
    step: Option<String> = step_of(&row.marker),
} => MarkerRow { mono_ns, marker: marker_of(marker, step) });

table!(CellRow<'_>, "cells", |row| {
    lab: String = row.lab.name.clone(),
    cell: String = row.result.cell.key.clone(),
    block: String = row.result.cell.block.clone(),
    filesystem: String = row.result.cell.storage.filesystem.name().into(),
    switches: String = row.result.cell.switches.to_string(),
    workload: String = row.result.cell.workload.kind.name().into(),
    arguments: String = row.result.cell.workload.arguments.join(" "),
    axes: String = joined(&row.result.cell.axes),
    traced: bool = row.result.cell.trace,
    cpu_load: u32 = row.result.cell.cpu_load,
    state: String = row.result.state.name().into(),
    reason: Option<String> = row.result.state.reason().map(str::to_owned),
    place: Option<String> = row.of_place(|place| place.place.name().to_owned()),
    emulated: Option<bool> = row.of_place(|place| place.emulated),
    kernel: Option<String> = row.of_place(|place| place.host.kernel.clone()),
    processor: Option<String> = row.of_place(|place| place.host.processor.clone()),
    device: Option<String> = row.of_place(|place| Some(place.device.as_ref()?.name.clone())).flatten(),
    device_model: Option<String> = row.of_place(|place| place.device_model.clone()),
    mounted: Option<String> = row.of_place(|place| place.mounted.clone()),
    iostep_version: Option<String> = row.of_place(|place| place.iostep_version.clone()),
    iostep_commit: Option<String> = row.of_place(|place| place.iostep_commit.clone()).flatten(),
    run: Option<u32> = row.run.map(|(number, _)| number),
    elapsed_ns: Option<u64> = row.of_run(|run| run.elapsed_ns),
    operations: Option<u64> = row.of_run(|run| run.operations),
    p50_ns: Option<u64> = row.of_run(|run| Some(run.latency?.p50_ns)).flatten(),
    p99_ns: Option<u64> = row.of_run(|run| Some(run.latency?.p99_ns)).flatten(),
    max_ns: Option<u64> = row.of_run(|run| Some(run.latency?.max_ns)).flatten(),
    sync_p50_ns: Option<u64> = row.of_run(|run| Some(run.sync_latency?.p50_ns)).flatten(),
    sync_p99_ns: Option<u64> = row.of_run(|run| Some(run.sync_latency?.p99_ns)).flatten(),
    sync_max_ns: Option<u64> = row.of_run(|run| Some(run.sync_latency?.max_ns)).flatten(),
    read_ios: Option<u64> = row.of_device(|device| device.read.ios),
    read_bytes: Option<u64> = row.of_device(|device| device.read.bytes),
    write_ios: Option<u64> = row.of_device(|device| device.write.ios),
    write_bytes: Option<u64> = row.of_device(|device| device.write.bytes),
    discard_bytes: Option<u64> = row.of_device(|device| device.discard.bytes),
    flushes: Option<u64> = row.of_run(|run| run.own_flushes()).flatten(),
    user_ns: Option<u64> = row.of_run(|run| Some(run.cpu?.user_ns)).flatten(),
    system_ns: Option<u64> = row.of_run(|run| Some(run.cpu?.system_ns)).flatten(),
    voluntary_switches: Option<u64> = row.of_run(|run| Some(run.cpu?.voluntary_switches)).flatten(),
    involuntary_switches: Option<u64> = row.of_run(|run| Some(run.cpu?.involuntary_switches)).flatten(),
    journal_of_journal_bytes: Option<u64> = row.of_run(|run| run.journal_of_journal_bytes).flatten(),
    write_requests: Option<u64> = row.of_run(|run| run.write_requests).flatten(),
});

table!(ClassRow<'_>, "classes", |row| {
    cell: String = row.result.cell.key.clone(),
    run: u32 = row.run,
    class: Option<Class> = row.count.class,
    operation: Operation = row.count.operation,
    bytes: u64 = row.count.bytes,
    requests: u64 = row.count.requests,
});

fn joined(axes: &[(String, String)]) -> String {
    let words = axes.iter().map(|(axis, value)| format!("{axis}={value}"));
    words.collect::<Vec<_>>().join(" ")
}

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
