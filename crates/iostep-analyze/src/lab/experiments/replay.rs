//! A recorded application on each filesystem: ATC'13 figure 10.

use super::Experiment;
use crate::lab::Measure;
use crate::lab::finding::{Claim, Finding};
use crate::lab::grid::View;
use crate::lab::order::Extreme;
use crate::lab::results::Results;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "replay",
    views: &[View {
        title: "Replay of a recording, as fast as it goes",
        source: "ATC'13 section 6.5, figure 10",
        at: &[],
        rows: &["filesystem", "switches"],
        columns: &[],
        measures: &[
            Measure::Elapsed,
            Measure::SyncP50,
            Measure::Ios,
            Measure::WrittenBytes,
            Measure::Flushes,
        ],
        baseline: &[("filesystem", "ext4"), ("switches", "")],
        found: "F2FS is fastest with both recordings, of Twitter and of Facebook.",
        differs: "Another recording. Calls are issued as recorded, so an application's fsync stays fsync: F would be another recording.",
    }],
    findings,
};

fn findings(results: Results<'_>) -> Vec<Finding> {
    let filesystems = results.values_of("filesystem", &[("switches", "")]);
    let others: Vec<&str> = filesystems.iter().map(String::as_str).collect();
    let series = results.series(&[("switches", "")], "filesystem", Measure::Elapsed);
    vec![F2FS_FIRST.judge([series.extreme(Extreme::Least, "f2fs", &others)])]
}

const F2FS_FIRST: Claim = Claim {
    name: "f2fs-first",
    claim: "The replay takes the least time on f2fs.",
    source: "ATC'13 section 6.5, figure 10",
    explanation: "",
};
