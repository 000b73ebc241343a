//! All optimisations, alone and together: ATC'13 table 2 and figure 11.

use super::Experiment;
use crate::lab::Measure;
use crate::lab::finding::{Claim, Finding};
use crate::lab::grid::View;
use crate::lab::order::Extreme;
use crate::lab::results::{At, Results};

const DIFFERS: &str = "P is not applicable: the kernel polls only for direct I/O that asks for it, and SQLite writes through the page cache; so F+E and F+E+W are measured beside. f2fs has no journal to be elsewhere, its F+W is what remains. Updates of the paper are of the Galaxy S3's SQLite, which made no journal file for them (section 6.2), so that W could gain nothing there.";

const INSERT: &At<'static> = &[("operation", "insert")];
const UPDATE: &At<'static> = &[("operation", "update")];

const fn view(
    title: &'static str,
    at: &'static At<'static>,
    measures: &'static [Measure],
    source: &'static str,
    found: &'static str,
    differs: &'static str,
) -> View<'static> {
    View {
        title,
        source,
        at,
        rows: &["switches"],
        columns: &["filesystem"],
        measures,
        baseline: &[("switches", ""), ("filesystem", "ext4")],
        found,
        differs,
    }
}

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "combined",
    views: &[
        view(
            "Inserts a second",
            INSERT,
            &[Measure::Throughput],
            "ATC'13 table 2, figure 11",
            "F+E+P gain 53 % on ext4; with WAL 92 inserts a second, and 157 on f2fs: 300 % more than the 39 of the stock phone.",
            DIFFERS,
        ),
        view(
            "Updates a second",
            UPDATE,
            &[Measure::Throughput],
            "ATC'13 table 2, figure 11",
            "F+E+P gain 130 % on ext4; f2fs with F and P is fastest, 250 % above the baseline.",
            DIFFERS,
        ),
        view(
            "Half of the inserts took at most",
            INSERT,
            &[Measure::OperationP50],
            "",
            "",
            "What the claims below are judged by: others on the machine hardly change it, and the checkpoints of WAL are not in it.",
        ),
        view(
            "Half of the updates took at most",
            UPDATE,
            &[Measure::OperationP50],
            "",
            "",
            "",
        ),
        view(
            "Bytes written by an insert",
            INSERT,
            &[Measure::WrittenBytes],
            "",
            "",
            "Both devices together where the journal is external.",
        ),
        view(
            "Bytes written by an update",
            UPDATE,
            &[Measure::WrittenBytes],
            "",
            "",
            "Both devices together where the journal is external.",
        ),
    ],
    findings,
};

const ALL: [&str; 9] = ["", "F", "E", "P", "W", "F+E", "F+E+W", "F+E+P", "F+E+P+W"];

fn findings(results: Results<'_>) -> Vec<Finding> {
    let filesystems = ["ext4", "xfs", "f2fs"];
    let time = Measure::OperationP50;
    let gains = |claim: Claim, operation, to, least: f64| {
        let at = [("operation", operation), ("filesystem", "ext4")];
        let series = results.series(&at, "switches", time);
        claim.judge([series.ratio("", to, |ratio| ratio * least <= 1.0)])
    };
    vec![
        gains(F_INSERT, "insert", "F", 1.1),
        gains(F_UPDATE, "update", "F", 1.4),
        gains(E_INSERT, "insert", "E", 1.2),
        gains(W_INSERT, "insert", "W", 1.75),
        EVERYTHING.judge(["F+E+P+W", "F+E+W"].map(|winner| {
            let at = [("operation", "insert"), ("filesystem", "ext4")];
            let series = results.series(&at, "switches", time);
            series.extreme(Extreme::Least, winner, &ALL)
        })),
        F2FS_WAL.judge(["W", "F+W"].map(|mode| {
            let at = [("operation", "insert"), ("switches", mode)];
            let series = results.series(&at, "filesystem", time);
            series.extreme(Extreme::Least, "f2fs", &filesystems)
        })),
    ]
}

const F_INSERT: Claim = Claim {
    name: "f-insert",
    claim: "F gains 18 % for inserts on ext4 (39 to 46).",
    source: "ATC'13 table 2",
    explanation: "",
};

const F_UPDATE: Claim = Claim {
    name: "f-update",
    claim: "F gains 53 % for updates on ext4 (102 to 156).",
    source: "ATC'13 table 2",
    explanation: "Without a journal file every sync of an update was of an overwrite; with one, its growth needs the commit all the same.",
};

const E_INSERT: Claim = Claim {
    name: "e-insert",
    claim: "E gains 30 % for inserts on ext4 (39 to 51).",
    source: "ATC'13 table 2",
    explanation: "The paper's journal was on another device, the faster one; on two loop devices of one disk there is nothing to gain, and two caches to flush.",
};

const W_INSERT: Claim = Claim {
    name: "w-insert",
    claim: "W nearly doubles inserts on ext4 (39 to 76).",
    source: "ATC'13 table 2",
    explanation: "",
};

const EVERYTHING: Claim = Claim {
    name: "all-together",
    claim: "Everything together is fastest for inserts on ext4.",
    source: "ATC'13 section 7, table 2",
    explanation: "F and W gain, E does not: the journal is on the same disk, and each commit has to flush that of the data first.",
};

const F2FS_WAL: Claim = Claim {
    name: "f2fs-wal-first",
    claim: "f2fs is the fastest filesystem for inserts with WAL.",
    source: "ATC'13 section 7, table 2",
    explanation: "",
};
