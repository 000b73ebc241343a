//! WALDIO beside the journal modes of SQLite: ATC'15 figures 8, 11 to 15 and table 2.

use super::Experiment;
use crate::lab::Measure;
use crate::lab::finding::{Claim, Finding};
use crate::lab::grid::View;
use crate::lab::order::Extreme;
use crate::lab::results::{At, Results};

const UNTRACED: &At<'static> = &[("traced", "no"), ("waldio-layout", "")];

const MODES_DIFFER: &str = "A fresh log, 1000 transactions, fdatasync. LS-MVBT is not rebuilt. Persistent writes are by FUA where the device has it. Group Sync is waldio's group, with 64 pages and 10 ms where the paper has 4 and 2 ms.";

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "waldio",
    views: &[
        View {
            title: "Transactions a second",
            source: "ATC'15 table 2, figure 14",
            at: UNTRACED,
            rows: &["mode"],
            columns: &["operation"],
            measures: &[Measure::Throughput],
            baseline: &[("mode", "wal")],
            found: "WAL is fastest of the stock modes; WALDIO is 2.1 times as fast with full sync, 5.0 times with normal, 4.6 times with Group Sync.",
            differs: MODES_DIFFER,
        },
        View {
            title: "Half of the transactions took at most",
            source: "",
            at: UNTRACED,
            rows: &["mode"],
            columns: &["operation"],
            measures: &[Measure::OperationP50],
            baseline: &[("mode", "wal")],
            found: "",
            differs: "What the claims below are judged by: others on the machine hardly change it, and checkpoints are not in it.",
        },
        View {
            title: "Flushes of a transaction",
            source: "",
            at: UNTRACED,
            rows: &["mode"],
            columns: &["operation"],
            measures: &[Measure::Flushes],
            baseline: &[("mode", "wal")],
            found: "",
            differs: "What the rates follow from: a commit on ext4 is a flush of its own.",
        },
        View {
            title: "Layouts of the log, inserts a second",
            source: "ATC'15 figure 13, section 6.2",
            at: &[("traced", "no"), ("operation", "insert")],
            rows: &["mode", "waldio-layout", "waldio-padding"],
            columns: &[],
            measures: &[Measure::Throughput, Measure::WrittenBytes],
            baseline: &[
                ("mode", "wal"),
                ("waldio-layout", ""),
                ("waldio-padding", ""),
            ],
            found: "Padding to a sector gains nothing, to 4 KB 60 %, to 8 KB 100 %; embedding the header 2.1 times.",
            differs: "The paper's loss below 4 KB is its flash's: pages of 8 KB, and a read for each part that is written.",
        },
        View {
            title: "What an insert writes",
            source: "ATC'15 figures 8 and 15",
            at: &[("traced", "yes")],
            rows: &["journal", "waldio-layout", "waldio-padding"],
            columns: &[],
            measures: &[
                Measure::DataBytes,
                Measure::JournalBytes,
                Measure::WrittenBytes,
                Measure::Writes,
            ],
            baseline: &[
                ("journal", "wal"),
                ("waldio-layout", ""),
                ("waldio-padding", ""),
            ],
            found: "1000 inserts write up to 90 MB with rollback journals, 29.0 MB with WAL (12.3 of data, 16.7 of journal), 4.6 MB with WALDIO: a sixth.",
            differs: "A fresh log: with WALDIO its zeros, which the paper leaves to a discard, are written once and counted. A steady log has none (docs/waldio-results.md).",
        },
    ],
    findings,
};

fn findings(results: Results<'_>) -> Vec<Finding> {
    let operations = ["insert", "update", "delete"];
    let stock = ["wal", "delete", "truncate", "persist"];
    let wal_first = WAL_FIRST.judge(operations.map(|operation| {
        let at = [("operation", operation), UNTRACED[0], UNTRACED[1]];
        let series = results.series(&at, "journal", Measure::OperationP50);
        series.extreme(Extreme::Least, "wal", &stock)
    }));
    let times = |claim: Claim, mode: &'static str, least: f64| {
        claim.judge(operations.map(|operation| {
            let at = [("operation", operation), UNTRACED[0], UNTRACED[1]];
            let series = results.series(&at, "mode", Measure::OperationP50);
            series.ratio("wal", mode, |ratio| ratio * least <= 1.0)
        }))
    };
    let traced = [
        ("traced", "yes"),
        ("operation", "insert"),
        ("waldio-layout", ""),
    ];
    let volume = |measure| results.series(&traced, "journal", measure);
    vec![
        wal_first,
        times(FULL, "waldio full", 2.0),
        times(NORMAL, "waldio normal", 4.9),
        times(GROUP, "waldio group", 4.4),
        VOLUME.judge([volume(Measure::WrittenBytes).ratio("wal", "waldio", |r| r <= 1.0 / 6.0)]),
        NO_JOURNAL.judge([volume(Measure::JournalBytes).ratio("wal", "waldio", |r| r <= 0.05)]),
    ]
}

const WAL_FIRST: Claim = Claim {
    name: "wal-first",
    claim: "WAL is the fastest of SQLite's own journal modes.",
    source: "ATC'15 section 6.3, table 2",
    explanation: "",
};

const FULL: Claim = Claim {
    name: "waldio-full",
    claim: "WALDIO with full sync is twice as fast as WAL.",
    source: "ATC'15 section 6.3, table 2",
    explanation: "",
};

const NORMAL: Claim = Claim {
    name: "waldio-normal",
    claim: "WALDIO with normal sync is 5 times as fast as WAL.",
    source: "ATC'15 section 6.3, table 2",
    explanation: "",
};

const GROUP: Claim = Claim {
    name: "waldio-group",
    claim: "WALDIO with Group Sync is 4.6 times as fast as WAL.",
    source: "ATC'15 section 6.3, table 2",
    explanation: "",
};

const VOLUME: Claim = Claim {
    name: "waldio-sixth",
    claim: "WALDIO writes a sixth of WAL's bytes.",
    source: "ATC'15 section 6.4, figure 15",
    explanation: "A fresh log is filled with zeros once before it is written: a third to a half of what 1000 inserts write.",
};

const NO_JOURNAL: Claim = Claim {
    name: "waldio-no-journal",
    claim: "With WALDIO ext4's journal is hardly written.",
    source: "ATC'15 section 5.2, figure 8",
    explanation: "",
};
