//! A recorded application on each filesystem: ATC'13 figure 10.

use super::Experiment;
use crate::lab::Measure;
use crate::lab::finding::{Claim, Finding};
use crate::lab::grid::View;
use crate::lab::order::Extreme;
use crate::lab::results::{At, Results};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "replay",
    views: &[
        View {
            title: "Time of a replay as fast as it goes",
            source: "ATC'13 section 6.5, figure 10",
            at: &[],
            rows: &["filesystem"],
            columns: &["switches"],
            measures: &[Measure::Elapsed],
            baseline: &[("switches", "")],
            found: "F2FS is fastest with both recordings, of Twitter and of Facebook.",
            differs: "Another application: its recording is built in. F makes each of its fsyncs an fdatasync. Nothing of it is polled for: its writes go through the page cache.",
        },
        View {
            title: "What a replay writes",
            source: "",
            at: &[],
            rows: &["filesystem", "switches"],
            columns: &[],
            measures: &[
                Measure::TotalWrites,
                Measure::TotalWrittenBytes,
                Measure::TotalFlushes,
            ],
            baseline: &[("filesystem", "ext4"), ("switches", "")],
            found: "",
            differs: "From its first call until everything is on the device. With E the first device alone, without the journal's.",
        },
    ],
    findings,
};

const BASELINE: &At<'static> = &[("switches", "")];
const FDATASYNC: &At<'static> = &[("switches", "F")];

fn findings(results: Results<'_>) -> Vec<Finding> {
    let filesystems = results.values_of("filesystem", BASELINE);
    let all: Vec<&str> = filesystems.iter().map(String::as_str).collect();
    let baseline = |measure| results.series(BASELINE, "filesystem", measure);
    // btrfs writes its log tree either way.
    let fdatasync = ["ext4", "xfs", "f2fs", "nilfs2"].map(|filesystem| {
        let at = [("filesystem", filesystem)];
        let series = results.series(&at, "switches", Measure::TotalWrittenBytes);
        series.ratio("", "F", |ratio| ratio < 1.0)
    });
    vec![
        F2FS_FIRST.judge([BASELINE, FDATASYNC].map(|at| {
            let series = results.series(at, "filesystem", Measure::Elapsed);
            series.extreme(Extreme::Least, "f2fs", &all)
        })),
        F2FS_FEWER_WRITES.judge([baseline(Measure::TotalWrites).extreme(
            Extreme::Least,
            "f2fs",
            &["ext4"],
        )]),
        BTRFS_MOST.judge([baseline(Measure::TotalWrites).extreme(
            Extreme::Greatest,
            "btrfs",
            &all,
        )]),
        FDATASYNC_SAVES.judge(fdatasync),
    ]
}

const F2FS_FIRST: Claim = Claim {
    name: "f2fs-first",
    claim: "The replay takes the least time on f2fs.",
    source: "ATC'13 section 6.5, figure 10",
    explanation: "In a guest whose device is memory a replay takes the time of the kernel's own instructions, and of nothing that flash would wait for. Of that, flushes and bytes, f2fs has less than ext4 in the table above; nilfs2 flushes less still, with the most bytes but btrfs.",
};

const F2FS_FEWER_WRITES: Claim = Claim {
    name: "f2fs-fewer-writes",
    claim: "f2fs makes fewer writes than ext4.",
    source: "ATC'13 section 6.2",
    explanation: "",
};

const BTRFS_MOST: Claim = Claim {
    name: "btrfs-most",
    claim: "btrfs makes the most writes.",
    source: "ATC'13 sections 5.1 and 6.5",
    explanation: "",
};

const FDATASYNC_SAVES: Claim = Claim {
    name: "fdatasync-saves",
    claim: "fdatasync in place of fsync saves writes of metadata.",
    source: "ATC'13 section 6.1",
    explanation: "",
};
