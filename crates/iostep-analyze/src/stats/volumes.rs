//! By filesystem, where a trace has several.

use iostep_model::class::Layer;
use iostep_model::manifest::Manifest;
use iostep_model::table::{Request, Segment, Trace};
use serde::Serialize;

use super::amount::Split;
use super::uncovered_bytes;

/// What belongs to one volume. The bytes of all rows add up to those of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VolumeRow {
    /// What people call it; `None` for what is in no volume.
    pub name: Option<String>,
    /// Its filesystem; `None` where none is known.
    pub filesystem: Option<String>,
    /// Where that is mounted.
    pub mount_point: Option<String>,
    pub amounts: Split,
    /// Bytes read and written, by layer.
    pub data_bytes: u64,
    pub journal_bytes: u64,
    pub metadata_bytes: u64,
    pub unknown_bytes: u64,
    /// Bytes that the device was told are not needed any more.
    pub discarded_bytes: u64,
    /// Sync calls on it; those on all filesystems are in the row without a name.
    pub syncs: u64,
}

impl VolumeRow {
    fn layer(&mut self, layer: Layer) -> &mut u64 {
        match layer {
            Layer::Data => &mut self.data_bytes,
            Layer::Journal => &mut self.journal_bytes,
            Layer::Metadata => &mut self.metadata_bytes,
            Layer::Unknown => &mut self.unknown_bytes,
        }
    }
}

/// One row for each volume, and the last for what is in none.
pub(super) struct Collector {
    rows: Vec<VolumeRow>,
}

impl Collector {
    pub(super) fn new(manifest: &Manifest) -> Collector {
        let volumes = manifest.volumes.iter().map(|volume| {
            let filesystem = volume.filesystem.as_ref();
            VolumeRow {
                name: Some(volume.title().to_owned()),
                filesystem: filesystem.map(|it| it.kind.clone()),
                mount_point: filesystem
                    .map(|it| it.mount_point.clone())
                    .filter(|point| !point.is_empty()),
                ..VolumeRow::default()
            }
        });
        Collector {
            rows: volumes.chain([VolumeRow::default()]).collect(),
        }
    }

    fn row(&mut self, volume: Option<u16>) -> &mut VolumeRow {
        let last = self.rows.len() - 1;
        let at = volume.map_or(last, |volume| usize::from(volume).min(last));
        &mut self.rows[at]
    }

    pub(super) fn add(&mut self, request: &Request, segments: &[Segment]) {
        // A request is counted once in each row that any of its bytes belong to.
        let mut seen: Vec<Option<u16>> = Vec::with_capacity(1);
        let covered = segments.iter().map(|segment| {
            let bytes = u64::from(segment.bytes);
            (segment.volume, segment.class.layer(), bytes)
        });
        let rest = uncovered_bytes(request, segments);
        let uncovered = (rest > 0).then_some((None, Layer::Unknown, rest));
        for (volume, layer, bytes) in covered.chain(uncovered) {
            let is_first = !seen.contains(&volume);
            if is_first {
                seen.push(volume);
            }
            let row = self.row(volume);
            match row.amounts.side(request.operation) {
                Some(side) => {
                    side.requests += u64::from(is_first);
                    side.bytes += bytes;
                    *row.layer(layer) += bytes;
                }
                None => row.discarded_bytes += bytes,
            }
        }
    }

    /// The rows that have anything; none where there are no volumes.
    pub(super) fn finish(mut self, trace: &Trace) -> Vec<VolumeRow> {
        if trace.manifest.volumes.is_empty() {
            return Vec::new();
        }
        for sync in &trace.syncs {
            self.row(sync.volume).syncs += 1;
        }
        let is_used =
            |row: &VolumeRow| !row.amounts.is_empty() || row.discarded_bytes > 0 || row.syncs > 0;
        self.rows
            .retain(|row| row.filesystem.is_some() || is_used(row));
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostep_model::manifest::Filesystem;
    use iostep_model::{Class, Evidence, Operation, fixture};

    #[test]
    fn rows_of_volumes_add_up_to_the_trace_and_the_last_is_of_none() {
        let mut trace = fixture::sqlite_on_ext4(2);
        let volume = |name, kind: Option<&str>| {
            let filesystem = kind.map(|kind| Filesystem {
                kind: kind.into(),
                ..Filesystem::default()
            });
            fixture::volume(name, filesystem)
        };
        trace.manifest.volumes = vec![volume("sda1", Some("xfs")), volume("sda2", None)];
        let count = trace.segments.len();
        for (segment, at) in trace.segments.iter_mut().zip(0..) {
            segment.volume = [Some(0), Some(1), None][at % 3];
        }
        let mut outside = Segment::of(4096, Class::OutsideFilesystem, Evidence::None);
        outside.request = trace.requests.len() as u32;
        let request = Request {
            operation: Operation::Discard,
            bytes: 4096,
            first_segment: count as u32,
            segments: 1,
            ..trace.requests[0].clone()
        };
        trace.segments.push(outside);
        trace.requests.push(request);
        let summary = crate::stats::Summary::of(&trace);
        let bytes = |row: &VolumeRow| row.amounts.sum().bytes;
        let all: u64 = summary.volumes.iter().map(bytes).sum();
        assert_eq!(all, summary.all().sum().bytes);
        for row in &summary.volumes {
            let layers = row.data_bytes + row.journal_bytes + row.metadata_bytes;
            assert_eq!(layers + row.unknown_bytes, bytes(row), "{row:?}");
        }
        let names: Vec<_> = summary.volumes.iter().map(|row| &row.name).collect();
        assert_eq!(names, [&Some("sda1".into()), &Some("sda2".into()), &None]);
        assert_eq!(summary.volumes[2].discarded_bytes, 4096);
        trace.manifest.volumes.clear();
        assert!(crate::stats::Summary::of(&trace).volumes.is_empty());
    }
}
