//! A write of 4 KB and fsync on each filesystem: ATC'13 figure 3.

use super::Experiment;
use crate::lab::Measure;
use crate::lab::finding::{Claim, Finding};
use crate::lab::grid::View;
use crate::lab::order::Extreme;
use crate::lab::results::{At, Results};

const MEASURES: &[Measure] = &[
    Measure::Writes,
    Measure::WrittenBytes,
    Measure::BytesPerWrite,
    Measure::DataBytes,
    Measure::JournalBytes,
    Measure::MetadataBytes,
    Measure::Flushes,
    Measure::SyncP50,
];

const APPEND: &At<'static> = &[("access", "append"), ("switches", "")];

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "fsync-patterns",
    views: &[
        View {
            title: "4 KiB appended, fsync",
            source: "ATC'13 figure 3, sections 4.2 and 5.1",
            at: APPEND,
            rows: &["filesystem"],
            columns: &[],
            measures: MEASURES,
            baseline: &[("filesystem", "ext4")],
            found: "ext4 three writes: the data, then descriptor with record, then commit; btrfs five more after the data; nilfs2 one of 128 KB; xfs the data and 1 KB of log; f2fs twice 4 KB.",
            differs: "Means over 256 operations; the pattern below shows the last of them. Flushes that come alone are not counted as writes, though the kernel's own counters do.",
        },
        View {
            title: "4 KiB appended, fdatasync",
            source: "ATC'15 section 4.2",
            at: &[("access", "append"), ("switches", "F")],
            rows: &["filesystem"],
            columns: &[],
            measures: MEASURES,
            baseline: &[("filesystem", "ext4")],
            found: "An allocating write costs the same with fdatasync as with fsync.",
            differs: "",
        },
        View {
            title: "4 KiB overwritten, fsync",
            source: "ATC'15 section 4.2, figure 3(b)",
            at: &[("access", "random-write"), ("switches", "")],
            rows: &["filesystem"],
            columns: &[],
            measures: MEASURES,
            baseline: &[("filesystem", "ext4")],
            found: "fsync journals the inode for its times alone.",
            differs: "The kernel's times tick every few milliseconds, so several overwrites within a tick leave the inode clean.",
        },
        View {
            title: "4 KiB overwritten, fdatasync",
            source: "ATC'15 section 4.2, figure 3(b)",
            at: &[("access", "random-write"), ("switches", "F")],
            rows: &["filesystem"],
            columns: &[],
            measures: MEASURES,
            baseline: &[("filesystem", "ext4")],
            found: "An overwrite with fdatasync writes no journal on ext4.",
            differs: "",
        },
    ],
    findings,
};

const FILESYSTEMS: [&str; 5] = ["ext4", "xfs", "btrfs", "f2fs", "nilfs2"];

fn findings(results: Results<'_>) -> Vec<Finding> {
    let append = |measure| results.series(APPEND, "filesystem", measure);
    let overwrite: &At<'_> = &[("access", "random-write"), ("switches", "F")];
    vec![
        F2FS_TWO_WRITES.judge([
            append(Measure::Writes).alone("f2fs", |writes| (1.9..=2.1).contains(&writes)),
            append(Measure::BytesPerWrite).alone("f2fs", |bytes| (4096.0..4300.0).contains(&bytes)),
        ]),
        EXT4_THREE_WRITES
            .judge([append(Measure::Writes).alone("ext4", |writes| (2.9..=3.1).contains(&writes))]),
        XFS_ONE_LOG_WRITE.judge([
            append(Measure::Writes).alone("xfs", |writes| (1.9..=2.1).contains(&writes)),
            append(Measure::JournalBytes).extreme(Extreme::Least, "xfs", &["ext4"]),
        ]),
        BTRFS_MOST.judge([append(Measure::Writes).extreme(
            Extreme::Greatest,
            "btrfs",
            &FILESYSTEMS,
        )]),
        NILFS2_SEGMENT.judge([
            append(Measure::BytesPerWrite).extreme(Extreme::Greatest, "nilfs2", &FILESYSTEMS),
            append(Measure::WrittenBytes).alone("nilfs2", |bytes| bytes >= 128.0 * 1024.0),
        ]),
        FDATASYNC_OVERWRITE.judge(["ext4", "xfs"].map(|filesystem| {
            let series = results.series(overwrite, "filesystem", Measure::JournalBytes);
            series.alone(filesystem, |bytes| bytes < 64.0)
        })),
    ]
}

const F2FS_TWO_WRITES: Claim = Claim {
    name: "f2fs-two-writes",
    claim: "f2fs writes twice 4 KB for a write with fsync: the data and a node.",
    source: "ATC'13 section 5.1, figure 3(e)",
    explanation: "",
};

const EXT4_THREE_WRITES: Claim = Claim {
    name: "ext4-three-writes",
    claim: "ext4 makes three writes: the data, descriptor with record, and commit.",
    source: "ATC'13 section 4.2, figure 3(a)",
    explanation: "",
};

const XFS_ONE_LOG_WRITE: Claim = Claim {
    name: "xfs-one-log-write",
    claim: "xfs makes two writes, and that of its log is smaller than ext4's.",
    source: "ATC'13 section 5.1, figure 3(d)",
    explanation: "",
};

const BTRFS_MOST: Claim = Claim {
    name: "btrfs-most",
    claim: "btrfs makes the most writes.",
    source: "ATC'13 section 5.1, figure 3(b)",
    explanation: "",
};

const NILFS2_SEGMENT: Claim = Claim {
    name: "nilfs2-large-segment",
    claim: "nilfs2 makes the largest writes, 128 KB for each fsync.",
    source: "ATC'13 section 5.1, figure 3(c)",
    explanation: "Its writes are the largest still, but a log is only as long as what it holds: summary, the file's blocks, and the changed blocks of nilfs2's own files.",
};

const FDATASYNC_OVERWRITE: Claim = Claim {
    name: "fdatasync-overwrite",
    claim: "fdatasync of an overwrite writes nothing to the journal.",
    source: "ATC'15 section 4.2, figure 3(b)",
    explanation: "",
};
