//! Two traces side by side.

use iostep_model::FileType;
use iostep_model::unit::Unit::{self, Bytes, Count, Nanoseconds};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::stats::amount::ratio;
use crate::stats::{Share, Summary};

/// One number of two traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What the number is about: `layer`, `file`, `latency`, ...
    pub group: &'static str,
    pub name: String,
    pub unit: Unit,
    /// In the first trace; nothing if it is not there.
    pub first: Option<u64>,
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
    /// Compares two summaries. Files are matched by path, and added up where several had it,
    /// everything else by name.
    pub fn of(first: &Summary, second: &Summary) -> Comparison {
        let sides = [first, second];
        let mut rows: Vec<Row> = Vec::new();
        let mut place_of = FxHashMap::default();
        for (side, summary) in sides.into_iter().enumerate() {
            for (group, name, unit, value) in measures(summary) {
                let place = *place_of.entry((group, name.clone())).or_insert(rows.len());
                if place == rows.len() {
                    rows.push(Row {
                        group,
                        name,
                        unit,
                        first: None,
                        second: None,
                        ratio: None,
                    });
                }
                let row = &mut rows[place];
                // Files of one name are several: on two filesystems, or of two types.
                let sum = match side {
                    0 => &mut row.first,
                    _ => &mut row.second,
                };
                *sum = Some(sum.unwrap_or(0).saturating_add(value));
            }
        }
        for row in &mut rows {
            row.ratio =
                (row.first.zip(row.second)).and_then(|(first, second)| ratio(second, first));
        }
        // What only the second has is at the end: bring it to its group.
        rows.sort_by_key(|row| GROUPS.iter().position(|group| *group == row.group));
        Comparison {
            complaints: sides.map(|summary| summary.overview.complaint.clone()),
            rows,
        }
    }
}

/// The groups, in the order of a report.
const GROUPS: [&str; 12] = [
    "all",
    "filesystem",
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

/// One number of one trace: its group, name and unit, and itself.
type Measure = (&'static str, String, Unit, u64);

fn measures(summary: &Summary) -> Vec<Measure> {
    let mut measures = all(summary);
    let mut add = |written: Vec<Measure>| measures.extend(written);
    add(filesystems(summary));
    add(written("layer", &summary.layers, |layer| {
        layer.name().into()
    }));
    add(written("class", &summary.classes, |class| {
        class.name().into()
    }));
    add(written("file type", &summary.file_types, |of| {
        of.map_or("no file's data", FileType::name).into()
    }));
    add(written("access", &summary.modes, |mode| mode.name().into()));
    add(written("access", &summary.orders, |order| {
        order.name().into()
    }));
    add(written("access", &summary.heat, |heat| heat.name().into()));
    add(written("size", &summary.sizes, |bucket| {
        format!("up to {} bytes", bucket.up_to_bytes)
    }));
    add(rest(summary));
    measures
}

fn all(summary: &Summary) -> Vec<Measure> {
    let (sum, barriers) = (summary.all(), summary.barriers);
    [
        ("duration", Nanoseconds, summary.overview.duration_ns),
        ("reads", Count, sum.read.requests),
        ("read", Bytes, sum.read.bytes),
        ("writes", Count, sum.write.requests),
        ("written", Bytes, sum.write.bytes),
        ("flushes", Count, barriers.flushes),
        (
            "writes that ask for a flush first",
            Count,
            barriers.preflush_writes,
        ),
        ("forced writes (FUA)", Count, barriers.fua_writes),
        ("sync calls", Count, summary.sync_calls.len() as u64),
        (
            "interrupts of the device",
            Count,
            summary.interrupts.of_device,
        ),
    ]
    .map(|(name, unit, value)| ("all", name.to_owned(), unit, value))
    .into()
}

/// Of each filesystem, where there are several.
fn filesystems(summary: &Summary) -> Vec<Measure> {
    let rows = summary.volumes.iter().flat_map(|row| {
        let name = row.name.as_deref().unwrap_or("in none of them");
        let (read, write) = (row.amounts.read, row.amounts.write);
        [
            ("reads", Count, read.requests),
            ("read", Bytes, read.bytes),
            ("writes", Count, write.requests),
            ("written", Bytes, write.bytes),
            ("data", Bytes, row.data_bytes),
            ("journal", Bytes, row.journal_bytes),
            ("metadata", Bytes, row.metadata_bytes),
            ("unknown", Bytes, row.unknown_bytes),
            ("discarded", Bytes, row.discarded_bytes),
            ("sync calls", Count, row.syncs),
        ]
        .map(|(what, unit, value)| ("filesystem", format!("{name}: {what}"), unit, value))
    });
    rows.collect()
}

/// The written side of a distribution: two traces are compared for what they cost the device.
fn written<K: Copy>(
    group: &'static str,
    shares: &[Share<K>],
    name: impl Fn(K) -> String,
) -> Vec<Measure> {
    let writes = shares.iter().map(|share| (share.of, share.amounts.write));
    let rows = writes.filter(|(_, write)| write.requests > 0);
    let rows = rows.flat_map(|(of, write)| {
        let name = name(of);
        [
            (group, format!("{name}: writes"), Count, write.requests),
            (group, format!("{name}: written"), Bytes, write.bytes),
        ]
    });
    rows.collect()
}

fn rest(summary: &Summary) -> Vec<Measure> {
    let mut measures = Vec::new();
    let mut add = |group, name: String, unit, value| measures.push((group, name, unit, value));
    let (rewrites, joj) = (&summary.rewrites, &summary.joj);
    add("blocks", "written".into(), Count, rewrites.block_writes);
    add(
        "blocks",
        "written again".into(),
        Count,
        rewrites.block_rewrites,
    );
    for (name, value) in [
        ("data", joj.data_bytes),
        ("journal", joj.journal_bytes),
        ("journaling of journal", joj.joj_bytes),
        ("data and journal", joj.data_bytes + joj.journal_bytes),
        ("other metadata", joj.metadata_bytes),
    ] {
        add("journaling of journal", name.into(), Bytes, value);
    }
    for file in joj.by_path() {
        // Below its root, a path is on every filesystem.
        let path = match summary.volumes.is_empty() {
            true => &file.path,
            false => &file.user_path,
        };
        add("file", format!("{path}: data"), Bytes, file.data_bytes);
        add(
            "file",
            format!("{path}: journal"),
            Bytes,
            file.journal_bytes,
        );
        add("file", format!("{path}: syncs"), Count, file.syncs);
    }
    for row in &summary.sync_kinds {
        let name = row.kind.name();
        add("sync call", format!("{name}: calls"), Count, row.calls);
        if let Some(took) = &row.duration {
            add(
                "sync call",
                format!("{name}: p50"),
                Nanoseconds,
                took.p50_ns,
            );
            add(
                "sync call",
                format!("{name}: p99"),
                Nanoseconds,
                took.p99_ns,
            );
        }
    }
    for latency in &summary.latencies {
        let name = format!("{}, {}", latency.operation.name(), latency.stage.name());
        let took = &latency.percentiles;
        add("latency", format!("{name}: p50"), Nanoseconds, took.p50_ns);
        add("latency", format!("{name}: p99"), Nanoseconds, took.p99_ns);
    }
    measures
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostep_model::fixture;

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
    fn filesystems_and_files_of_one_name_on_them_are_told_apart() {
        let volume =
            |name| fixture::volume(name, Some(iostep_model::manifest::Filesystem::default()));
        let mut trace = fixture::sqlite_on_ext4(200);
        trace.manifest.filesystem = None;
        trace.manifest.volumes = vec![volume("sda1"), volume("sda2")];
        let mut copy = trace.files[0].clone();
        (trace.files[0].volume, copy.volume) = (Some(0), Some(1));
        let other = trace.files.len() as u32;
        trace.files.push(copy);
        let of_file = trace.segments.iter_mut().filter(|s| s.file == Some(0));
        for (index, segment) in of_file.enumerate() {
            segment.file = Some([0, other][index % 2]);
            segment.volume = Some((index % 2) as u16);
        }
        let summary = Summary::of(&trace);
        let comparison = Comparison::of(&summary, &summary);
        let value = |name: &str| {
            let row = comparison.rows.iter().find(|row| row.name == name);
            row.and_then(|row| row.first)
                .unwrap_or_else(|| panic!("{name}"))
        };
        let joj = summary.joj.by_path();
        for (name, index) in [("sda1", 0), ("sda2", 1)] {
            let of_volume = |s: &&iostep_model::table::Segment| {
                s.volume == Some(index)
                    && trace.requests[s.request as usize].operation.is_write()
                    && !trace.requests[s.request as usize].by_tracer
            };
            let written = trace.segments.iter().filter(of_volume);
            let written: u64 = written.map(|s| u64::from(s.bytes)).sum();
            assert_eq!(value(&format!("{name}: written")), written);
            let path = format!("{name}:/app/app.db");
            let row = joj.iter().find(|row| row.user_path == path);
            let data = row.expect("the database").data_bytes;
            assert_eq!(value(&format!("{path}: data")), data);
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
