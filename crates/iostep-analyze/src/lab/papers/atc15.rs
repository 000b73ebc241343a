//! ATC'15.

use super::{Paper, PaperTable};
use crate::lab::Measure;

const KIB: f64 = 1024.0;
/// Bytes for each of 1000 operations of a megabyte for all of them.
const MIB_OF_1000: f64 = 1024.0 * 1024.0 / 1000.0;

/// What all tables of the paper have in common until they say otherwise.
const PLAIN: PaperTable = PaperTable {
    paper: Paper::Atc15,
    place: "",
    lab: "",
    measure: Measure::Throughput,
    ratio: false,
    approximate: false,
    at: &[],
    axes: &[],
    rows: &[],
};

/// One insert of table 1.
const VOLUME: PaperTable = PaperTable {
    place: "sections 3 and 6.1, table 1",
    lab: "table1",
    at: &[("filesystem", "ext4"), ("switches", "F")],
    axes: &["journal"],
    ..PLAIN
};

pub(super) const TABLES: &[PaperTable] = &[
    PaperTable {
        measure: Measure::DataBytes,
        rows: &[
            (&["off"], 8.0 * KIB),
            (&["wal"], 8.0 * KIB),
            (&["delete"], 24.0 * KIB),
            (&["truncate"], 24.0 * KIB),
            (&["persist"], 28.0 * KIB),
            (&["waldio"], 4.0 * KIB),
        ],
        ..VOLUME
    },
    PaperTable {
        measure: Measure::JournalBytes,
        rows: &[
            (&["off"], 12.0 * KIB),
            (&["wal"], 20.0 * KIB),
            (&["delete"], 56.0 * KIB),
            (&["truncate"], 48.0 * KIB),
            (&["persist"], 52.0 * KIB),
            (&["waldio"], 0.0),
        ],
        ..VOLUME
    },
    PaperTable {
        measure: Measure::JournalOfJournalBytes,
        rows: &[
            (&["off"], 0.0),
            (&["wal"], 20.0 * KIB),
            (&["delete"], 44.0 * KIB),
            (&["truncate"], 36.0 * KIB),
            (&["persist"], 40.0 * KIB),
            (&["waldio"], 0.0),
        ],
        ..VOLUME
    },
    PaperTable {
        measure: Measure::WrittenBytes,
        rows: &[
            (&["off"], 20.0 * KIB),
            (&["wal"], 28.0 * KIB),
            (&["delete"], 80.0 * KIB),
            (&["truncate"], 72.0 * KIB),
            (&["persist"], 80.0 * KIB),
            (&["waldio"], 4.0 * KIB),
        ],
        ..VOLUME
    },
    PaperTable {
        place: "section 6.3, table 2",
        lab: "waldio",
        axes: &["operation", "journal"],
        rows: &[
            (&["insert", "delete"], 98.0),
            (&["insert", "truncate"], 99.0),
            (&["insert", "persist"], 213.0),
            (&["insert", "wal"], 587.0),
            (&["update", "delete"], 97.0),
            (&["update", "truncate"], 98.0),
            (&["update", "persist"], 212.0),
            (&["update", "wal"], 556.0),
            (&["delete", "delete"], 96.0),
            (&["delete", "truncate"], 97.0),
            (&["delete", "persist"], 203.0),
            (&["delete", "wal"], 596.0),
        ],
        ..PLAIN
    },
    // FS, PD and NS without Group Sync; `group` is FS with it.
    PaperTable {
        place: "section 6.3, table 2",
        lab: "waldio",
        at: &[("journal", "waldio"), ("waldio-layout", "")],
        axes: &["operation", "waldio-sync"],
        rows: &[
            (&["insert", "full"], 1219.0),
            (&["insert", "persistent"], 1290.0),
            (&["insert", "normal"], 2907.0),
            (&["insert", "group"], 2729.0),
            (&["update", "full"], 1254.0),
            (&["update", "persistent"], 1380.0),
            (&["update", "normal"], 2973.0),
            (&["update", "group"], 2867.0),
            (&["delete", "full"], 1197.0),
            (&["delete", "persistent"], 1224.0),
            (&["delete", "normal"], 2930.0),
            (&["delete", "group"], 2546.0),
        ],
        ..PLAIN
    },
    // "barely brings any performance gain", "by 60%", "by 100%".
    PaperTable {
        place: "section 6.2, figure 13",
        lab: "waldio",
        ratio: true,
        approximate: true,
        at: &[("journal", "waldio"), ("waldio-layout", "P")],
        axes: &["waldio-padding"],
        rows: &[(&["512"], 1.0), (&["4096"], 1.6), (&["8192"], 2.0)],
        ..PLAIN
    },
    PaperTable {
        place: "section 5.2, figure 8",
        lab: "waldio",
        measure: Measure::DataBytes,
        at: &[("operation", "insert")],
        axes: &["journal"],
        rows: &[
            (&["wal"], 12.3 * MIB_OF_1000),
            (&["waldio"], 4.4 * MIB_OF_1000),
        ],
        ..PLAIN
    },
    PaperTable {
        place: "section 5.2, figure 8",
        lab: "waldio",
        measure: Measure::JournalBytes,
        at: &[("operation", "insert")],
        axes: &["journal"],
        rows: &[
            (&["wal"], 16.7 * MIB_OF_1000),
            (&["waldio"], 0.2 * MIB_OF_1000),
        ],
        ..PLAIN
    },
    PaperTable {
        place: "section 6.4, figure 15",
        lab: "waldio",
        measure: Measure::WrittenBytes,
        at: &[("operation", "insert")],
        axes: &["journal"],
        rows: &[
            (&["wal"], 29.0 * MIB_OF_1000),
            (&["waldio"], 4.6 * MIB_OF_1000),
        ],
        ..PLAIN
    },
    // "as much as total 90 MByte" for the three together.
    PaperTable {
        place: "section 6.4, figure 15",
        lab: "waldio",
        measure: Measure::WrittenBytes,
        approximate: true,
        at: &[("operation", "insert")],
        axes: &["journal"],
        rows: &[
            (&["delete"], 90.0 * MIB_OF_1000),
            (&["truncate"], 90.0 * MIB_OF_1000),
            (&["persist"], 90.0 * MIB_OF_1000),
        ],
        ..PLAIN
    },
];
