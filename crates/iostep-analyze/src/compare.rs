//! Two traces side by side.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::stats::{Latency, Share, Summary};
use iostep_model::unit::Unit;

/// One number of two traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What the number is about: `layer`, `file`, `latency`, ...
    pub group: &'static str,
    pub name: String,
    pub unit: Unit,
    /// In the first trace; nothing if it is not there.
    pub first: Option<u64>,
    /// In the second.
    pub second: Option<u64>,
    /// `second / first`; nothing if either is missing or the first is 0.
    pub ratio: Option<f64>,
}

/// The numbers of two traces, and why either is not whole.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The failed self-check of the first and of the second trace.
    pub complaints: [Option<String>; 2],
    /// The numbers, in the order of a report.
    pub rows: Vec<Row>,
}

impl Comparison {
    /// Compares two summaries. Files are matched by path, and added up where several had it, everything else by name.
    pub fn of(first: &Summary, second: &Summary) -> Comparison {
        let complaint = |summary: &Summary| summary.overview.complaint.clone();
        let mut rows = Vec::new();
        let mut place_of = FxHashMap::default();
        for (side, summary) in [first, second].into_iter().enumerate() {
            for measure in measures(summary) {
                let place = *place_of.entry(measure.key()).or_insert_with(|| {
                    rows.push(Row::of(&measure));
                    rows.len() - 1
                });
                let row: &mut Row = &mut rows[place];
                *(if side == 0 {
                    &mut row.first
                } else {
                    &mut row.second
                }) = Some(measure.value);
            }
        }
        rows.iter_mut().for_each(Row::finish);
        // What only the second has is at the end: bring it to its group.
        rows.sort_by_key(|row| GROUPS.iter().position(|group| *group == row.group));
        Comparison {
            complaints: [complaint(first), complaint(second)],
            rows,
        }
    }
}

impl Row {
    fn of(measure: &Measure) -> Row {
        Row {
            group: measure.group,
            name: measure.name.clone(),
            unit: measure.unit,
            first: None,
            second: None,
            ratio: None,
        }
    }

    fn finish(&mut self) {
        self.ratio = match (self.first, self.second) {
            (Some(first), Some(second)) if first > 0 => Some(second as f64 / first as f64),
            _ => None,
        };
    }
}

/// The groups, in the order of a report.
const GROUPS: [&str; 11] = [
    "all",
    "layer",
    "class",
    "file type",
    "access",
    "size",
    "blocks",
    "journaling of journal",
    "file",
    "sync call",
    "latency",
];

/// One number of one trace.
struct Measure {
    group: &'static str,
    name: String,
    unit: Unit,
    value: u64,
}

impl Measure {
    fn key(&self) -> (&'static str, String) {
        (self.group, self.name.clone())
    }
}

fn count(group: &'static str, name: impl Into<String>, value: u64) -> Measure {
    Measure {
        group,
        name: name.into(),
        unit: Unit::Count,
        value,
    }
}

fn bytes(group: &'static str, name: impl Into<String>, value: u64) -> Measure {
    Measure {
        group,
        name: name.into(),
        unit: Unit::Bytes,
        value,
    }
}

fn time(group: &'static str, name: impl Into<String>, value: u64) -> Measure {
    Measure {
        group,
        name: name.into(),
        unit: Unit::Nanoseconds,
        value,
    }
}

fn measures(summary: &Summary) -> Vec<Measure> {
    let mut measures = all(summary);
    measures.extend(written("layer", &summary.layers, |layer| {
        layer.name().into()
    }));
    measures.extend(written("class", &summary.classes, |class| {
        class.name().into()
    }));
    measures.extend(written(
        "file type",
        &summary.file_types,
        |file_type| match file_type {
            Some(file_type) => file_type.name().into(),
            None => "no file's data".into(),
        },
    ));
    measures.extend(written("access", &summary.modes, |mode| mode.name().into()));
    measures.extend(written("access", &summary.orders, |order| {
        order.name().into()
    }));
    measures.extend(written("access", &summary.heat, |heat| heat.name().into()));
    measures.extend(written("size", &summary.sizes, |bucket| {
        format!("up to {} bytes", bucket.up_to_bytes)
    }));
    measures.push(count("blocks", "written", summary.rewrites.block_writes));
    measures.push(count(
        "blocks",
        "written again",
        summary.rewrites.block_rewrites,
    ));
    measures.extend(joj(summary));
    measures.extend(syncs(summary));
    measures.extend(summary.latencies.iter().flat_map(latency));
    measures
}

fn all(summary: &Summary) -> Vec<Measure> {
    let sum = summary.all();
    let barriers = summary.barriers;
    vec![
        time("all", "duration", summary.overview.duration_ns),
        count("all", "reads", sum.read.requests),
        bytes("all", "read", sum.read.bytes),
        count("all", "writes", sum.write.requests),
        bytes("all", "written", sum.write.bytes),
        count("all", "flushes", barriers.flushes),
        count(
            "all",
            "writes that ask for a flush first",
            barriers.preflush_writes,
        ),
        count("all", "forced writes (FUA)", barriers.fua_writes),
        count("all", "sync calls", summary.sync_calls.len() as u64),
        count(
            "all",
            "interrupts of the device",
            summary.interrupts.of_device,
        ),
    ]
}

/// The written side of a distribution: two traces are compared for what they cost the device.
fn written<K: Copy>(
    group: &'static str,
    shares: &[Share<K>],
    name: impl Fn(K) -> String,
) -> Vec<Measure> {
    let rows = shares
        .iter()
        .filter(|share| share.amounts.write.requests > 0);
    rows.flat_map(|share| {
        let name = name(share.of);
        let write = share.amounts.write;
        let writes = count(group, format!("{name}: writes"), write.requests);
        [
            writes,
            bytes(group, format!("{name}: written"), write.bytes),
        ]
    })
    .collect()
}

fn joj(summary: &Summary) -> Vec<Measure> {
    const GROUP: &str = "journaling of journal";
    let joj = &summary.joj;
    let mut measures = vec![
        bytes(GROUP, "data", joj.data_bytes),
        bytes(GROUP, "journal", joj.journal_bytes),
        bytes(GROUP, "journaling of journal", joj.joj_bytes),
        bytes(
            GROUP,
            "data and journal",
            joj.data_bytes + joj.journal_bytes,
        ),
        bytes(GROUP, "other metadata", joj.metadata_bytes),
    ];
    for file in joj.by_path() {
        measures.push(bytes(
            "file",
            format!("{}: data", file.path),
            file.data_bytes,
        ));
        measures.push(bytes(
            "file",
            format!("{}: journal", file.path),
            file.journal_bytes,
        ));
        measures.push(count("file", format!("{}: syncs", file.path), file.syncs));
    }
    measures
}

fn syncs(summary: &Summary) -> Vec<Measure> {
    let mut measures = Vec::new();
    for row in &summary.sync_kinds {
        let name = row.kind.name();
        measures.push(count("sync call", format!("{name}: calls"), row.calls));
        if let Some(duration) = &row.duration {
            measures.push(time("sync call", format!("{name}: p50"), duration.p50_ns));
            measures.push(time("sync call", format!("{name}: p99"), duration.p99_ns));
        }
    }
    measures
}

fn latency(latency: &Latency) -> [Measure; 2] {
    let name = format!("{}, {}", latency.operation.name(), latency.stage.name());
    [
        time(
            "latency",
            format!("{name}: p50"),
            latency.percentiles.p50_ns,
        ),
        time(
            "latency",
            format!("{name}: p99"),
            latency.percentiles.p99_ns,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn summary(requests: usize) -> Summary {
        Summary::of(&fixture::sqlite_on_ext4(requests))
    }

    #[test]
    fn a_trace_is_once_itself() {
        let comparison = Comparison::of(&summary(200), &summary(200));
        assert!(!comparison.rows.is_empty());
        for row in &comparison.rows {
            assert_eq!(row.first, row.second, "{row:?}");
            assert!(row.ratio.is_none_or(|ratio| ratio == 1.0), "{row:?}");
        }
    }

    #[test]
    fn what_only_one_trace_has_is_in_its_group() {
        let comparison = Comparison::of(&summary(1), &summary(200));
        let groups: Vec<&str> = comparison.rows.iter().map(|row| row.group).collect();
        let mut sorted = groups.clone();
        sorted.sort_by_key(|group| GROUPS.iter().position(|g| g == group));
        assert_eq!(groups, sorted);
        let wal = comparison
            .rows
            .iter()
            .find(|row| row.name == "/app/app.db-wal: syncs");
        let wal = wal.expect("the WAL is in the second trace");
        assert_eq!((wal.first, wal.ratio), (None, None));
        assert!(wal.second > Some(0));
        assert!(groups.iter().all(|group| GROUPS.contains(group)));
    }
}
