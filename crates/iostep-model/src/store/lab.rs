//! A lab's results as tables, for whoever reads Parquet.
//!
//! | file | a row is |
//! |---|---|
//! | `cells.parquet` | a run of a cell, or a cell without one |
//! | `classes.parquet` | what a run asked the device for of one class with one operation |
//!
//! They are made of the JSON files and say less; nothing here reads them back.

use std::path::Path;

use super::checksums::Checksums;
use super::parquet_file;
use crate::class::Class;
use crate::error::Result;
use crate::lab::{CellResult, Lab, Run, State};
use crate::operation::Operation;

/// A row of `cells.parquet`. Columns of runs are null where a cell has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CellRow {
    pub lab: String,
    pub cell: String,
    pub block: String,
    pub filesystem: String,
    pub switches: String,
    pub workload: String,
    pub arguments: String,
    pub axes: String,
    pub traced: bool,
    pub cpu_load: u32,
    pub state: String,
    pub reason: Option<String>,
    pub place: Option<String>,
    pub emulated: Option<bool>,
    pub kernel: Option<String>,
    pub processor: Option<String>,
    pub device: Option<String>,
    pub device_model: Option<String>,
    pub mounted: Option<String>,
    pub iostep_version: Option<String>,
    pub iostep_commit: Option<String>,
    pub run: Option<u32>,
    pub elapsed_ns: Option<u64>,
    pub operations: Option<u64>,
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub max_ns: Option<u64>,
    pub sync_p50_ns: Option<u64>,
    pub sync_p99_ns: Option<u64>,
    pub sync_max_ns: Option<u64>,
    pub read_ios: Option<u64>,
    pub read_bytes: Option<u64>,
    pub write_ios: Option<u64>,
    pub write_bytes: Option<u64>,
    pub discard_bytes: Option<u64>,
    pub flushes: Option<u64>,
    pub user_ns: Option<u64>,
    pub system_ns: Option<u64>,
    pub voluntary_switches: Option<u64>,
    pub involuntary_switches: Option<u64>,
    pub journal_of_journal_bytes: Option<u64>,
    pub write_requests: Option<u64>,
}

/// A row of `classes.parquet`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ClassRow {
    pub cell: String,
    pub run: u32,
    pub class: Option<Class>,
    pub operation: Operation,
    pub bytes: u64,
    pub requests: u64,
}

/// Writes both tables into `directory`. Each appears whole or not at all.
///
/// Errors: `Io`.
pub fn write(directory: &Path, lab: &Lab, results: &[CellResult]) -> Result<()> {
    let cells: Vec<CellRow> = results
        .iter()
        .flat_map(|result| cell_rows(lab, result))
        .collect();
    let classes: Vec<ClassRow> = results.iter().flat_map(class_rows).collect();
    // They are not a trace's tables, and nobody reads them here.
    let mut unused = Checksums::default();
    parquet_file::write(directory, &cells, &mut unused)?;
    parquet_file::write(directory, &classes, &mut unused)
}

fn cell_rows(lab: &Lab, result: &CellResult) -> Vec<CellRow> {
    let about = about(lab, result);
    if result.runs.is_empty() {
        return vec![about];
    }
    let numbered = (1..).zip(&result.runs);
    numbered
        .map(|(number, run)| with_run(about.clone(), number, run))
        .collect()
}

fn about(lab: &Lab, result: &CellResult) -> CellRow {
    let cell = &result.cell;
    let axes: Vec<String> = cell.axes.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let state = match &result.state {
        State::Complete => "complete",
        State::Failed { .. } => "failed",
        State::NotApplicable { .. } => "not_applicable",
        State::Interrupted => "interrupted",
    };
    let found = result.environment.as_ref();
    CellRow {
        lab: lab.name.clone(),
        cell: cell.key.clone(),
        block: cell.block.clone(),
        filesystem: cell.storage.filesystem.name().into(),
        switches: cell.switches.to_string(),
        workload: cell.workload.kind.name().into(),
        arguments: cell.workload.arguments.join(" "),
        axes: axes.join(" "),
        traced: cell.trace,
        cpu_load: cell.cpu_load,
        state: state.into(),
        reason: result.state.reason().map(str::to_owned),
        place: found.map(|found| found.place.name().to_owned()),
        emulated: found.map(|found| found.emulated),
        kernel: found.map(|found| found.kernel.clone()),
        processor: found.map(|found| found.processor.clone()),
        device: found.and_then(|found| found.device.as_ref().map(|d| d.name.clone())),
        device_model: found.map(|found| found.device_model.clone()),
        mounted: found.map(|found| found.mounted.clone()),
        iostep_version: found.map(|found| found.iostep_version.clone()),
        iostep_commit: found.and_then(|found| found.iostep_commit.clone()),
        ..CellRow::default()
    }
}

fn with_run(about: CellRow, number: u32, run: &Run) -> CellRow {
    let device = run.device;
    CellRow {
        run: Some(number),
        elapsed_ns: Some(run.elapsed_ns),
        operations: Some(run.operations),
        p50_ns: run.latency.map(|latency| latency.p50_ns),
        p99_ns: run.latency.map(|latency| latency.p99_ns),
        max_ns: run.latency.map(|latency| latency.max_ns),
        sync_p50_ns: run.sync_latency.map(|latency| latency.p50_ns),
        sync_p99_ns: run.sync_latency.map(|latency| latency.p99_ns),
        sync_max_ns: run.sync_latency.map(|latency| latency.max_ns),
        read_ios: device.map(|device| device.read.ios),
        read_bytes: device.map(|device| device.read.bytes),
        write_ios: device.map(|device| device.write.ios),
        write_bytes: device.map(|device| device.write.bytes),
        discard_bytes: device.map(|device| device.discard.bytes),
        flushes: device.map(|device| device.flush.ios),
        user_ns: Some(run.cpu.user_ns),
        system_ns: Some(run.cpu.system_ns),
        voluntary_switches: Some(run.cpu.voluntary_switches),
        involuntary_switches: Some(run.cpu.involuntary_switches),
        journal_of_journal_bytes: run.journal_of_journal_bytes,
        write_requests: run.write_requests,
        ..about
    }
}

fn class_rows(result: &CellResult) -> Vec<ClassRow> {
    let numbered = (1..).zip(&result.runs);
    numbered
        .flat_map(|(number, run)| {
            let classes = run.classes.iter().flatten();
            classes.map(move |count| ClassRow {
                cell: result.cell.key.clone(),
                run: number,
                class: count.class,
                operation: count.operation,
                bytes: count.bytes,
                requests: count.requests,
            })
        })
        .collect()
}
