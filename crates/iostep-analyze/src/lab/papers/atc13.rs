//! ATC'13.

use super::{Paper, PaperTable};
use crate::lab::Measure;

const KIB: f64 = 1024.0;

/// What all tables of the paper have in common until they say otherwise.
const PLAIN: PaperTable = PaperTable {
    paper: Paper::Atc13,
    place: "",
    lab: "",
    measure: Measure::Throughput,
    ratio: false,
    approximate: false,
    at: &[],
    axes: &[],
    rows: &[],
};

pub(super) const TABLES: &[PaperTable] = &[
    // Section 4.3 says nine and twelve; section 6.2 "3 to 12 random I/Os".
    PaperTable {
        place: "sections 4.3 and 6.2, figure 4",
        lab: "table1",
        measure: Measure::Writes,
        at: &[("filesystem", "ext4"), ("switches", "")],
        axes: &["journal"],
        rows: &[(&["wal"], 3.0), (&["delete"], 9.0), (&["persist"], 12.0)],
        ..PLAIN
    },
    // "three write operations", "five additional write operations", "only one journal write",
    // "two writes".
    PaperTable {
        place: "sections 4.2 and 5.1, figure 3",
        lab: "fsync-patterns",
        measure: Measure::Writes,
        at: &[("switches", ""), ("access", "append")],
        axes: &["filesystem"],
        rows: &[
            (&["ext4"], 3.0),
            (&["btrfs"], 6.0),
            (&["nilfs2"], 1.0),
            (&["xfs"], 2.0),
            (&["f2fs"], 2.0),
        ],
        ..PLAIN
    },
    // 128 KB of nilfs2, 4 KB and a log record of 1 KB of xfs, twice 4 KB of f2fs.
    PaperTable {
        place: "section 5.1, figure 3",
        lab: "fsync-patterns",
        measure: Measure::WrittenBytes,
        at: &[("switches", ""), ("access", "append")],
        axes: &["filesystem"],
        rows: &[
            (&["nilfs2"], 128.0 * KIB),
            (&["xfs"], 5.0 * KIB),
            (&["f2fs"], 8.0 * KIB),
        ],
        ..PLAIN
    },
    // "approximately 50% and 70%" above ext4.
    PaperTable {
        place: "section 5.2, figure 5",
        lab: "matrix",
        ratio: true,
        approximate: true,
        at: &[("workload", "file"), ("access", "random-write")],
        axes: &["filesystem"],
        rows: &[(&["ext4"], 1.0), (&["xfs"], 1.5), (&["f2fs"], 1.7)],
        ..PLAIN
    },
    // The columns of table 2 that are figure 6: the same card, mode and number of rows.
    PaperTable {
        place: "table 2, figure 6(a)",
        lab: "matrix",
        at: &[("operation", "insert"), ("journal", "truncate")],
        axes: &["filesystem", "switches"],
        rows: &[
            (&["ext4", ""], 39.0),
            (&["ext4", "F"], 46.0),
            (&["ext4", "E"], 51.0),
            (&["xfs", ""], 60.0),
            (&["xfs", "F"], 60.0),
            (&["xfs", "E"], 82.0),
            (&["f2fs", ""], 83.0),
            (&["f2fs", "F"], 88.0),
        ],
        ..PLAIN
    },
    PaperTable {
        place: "table 2, figure 6(b)",
        lab: "matrix",
        at: &[("operation", "update"), ("journal", "truncate")],
        axes: &["filesystem", "switches"],
        rows: &[
            (&["ext4", ""], 102.0),
            (&["ext4", "F"], 156.0),
            (&["ext4", "E"], 143.0),
            (&["xfs", ""], 149.0),
            (&["xfs", "F"], 251.0),
            (&["xfs", "E"], 179.0),
            (&["f2fs", ""], 171.0),
            (&["f2fs", "F"], 354.0),
        ],
        ..PLAIN
    },
    // The phone's SQLite made no journal file for an update (section 6.2).
    PaperTable {
        place: "table 2, figure 6(b)",
        lab: "matrix",
        at: &[("operation", "update"), ("journal", "off")],
        axes: &["filesystem", "switches"],
        rows: &[
            (&["ext4", ""], 102.0),
            (&["ext4", "F"], 156.0),
            (&["xfs", ""], 149.0),
            (&["xfs", "F"], 251.0),
            (&["f2fs", ""], 171.0),
            (&["f2fs", "F"], 354.0),
        ],
        ..PLAIN
    },
    // Figure 7(a) has the same bars for WAL as table 2 has numbers. Its updates, figure 7(b), are
    // of another SQLite than the table's.
    PaperTable {
        place: "table 2, figure 7(a)",
        lab: "matrix",
        at: &[
            ("operation", "insert"),
            ("journal", "wal"),
            ("switches", ""),
        ],
        axes: &["filesystem"],
        rows: &[(&["ext4"], 76.0), (&["xfs"], 75.0), (&["f2fs"], 149.0)],
        ..PLAIN
    },
    PaperTable {
        place: "section 7, table 2",
        lab: "combined",
        at: &[("operation", "insert")],
        axes: &["filesystem", "switches"],
        rows: &[
            (&["ext4", ""], 39.0),
            (&["ext4", "F"], 46.0),
            (&["ext4", "E"], 51.0),
            (&["ext4", "P"], 39.0),
            (&["ext4", "W"], 76.0),
            (&["ext4", "F+E+P"], 60.0),
            (&["ext4", "F+E+P+W"], 92.0),
            (&["xfs", ""], 60.0),
            (&["xfs", "F"], 60.0),
            (&["xfs", "E"], 82.0),
            (&["xfs", "P"], 61.0),
            (&["xfs", "W"], 75.0),
            (&["xfs", "F+E+P"], 84.0),
            (&["xfs", "F+E+P+W"], 86.0),
            (&["f2fs", ""], 83.0),
            (&["f2fs", "F"], 88.0),
            (&["f2fs", "P"], 85.0),
            (&["f2fs", "W"], 149.0),
            (&["f2fs", "F+E+P"], 89.0),
            (&["f2fs", "F+E+P+W"], 157.0),
        ],
        ..PLAIN
    },
    PaperTable {
        place: "section 7, table 2",
        lab: "combined",
        at: &[("operation", "update")],
        axes: &["filesystem", "switches"],
        rows: &[
            (&["ext4", ""], 102.0),
            (&["ext4", "F"], 156.0),
            (&["ext4", "E"], 143.0),
            (&["ext4", "P"], 109.0),
            (&["ext4", "W"], 100.0),
            (&["ext4", "F+E+P"], 245.0),
            (&["ext4", "F+E+P+W"], 113.0),
            (&["xfs", ""], 149.0),
            (&["xfs", "F"], 251.0),
            (&["xfs", "E"], 179.0),
            (&["xfs", "P"], 153.0),
            (&["xfs", "W"], 153.0),
            (&["xfs", "F+E+P"], 265.0),
            (&["xfs", "F+E+P+W"], 188.0),
            (&["f2fs", ""], 171.0),
            (&["f2fs", "F"], 354.0),
            (&["f2fs", "P"], 226.0),
            (&["f2fs", "W"], 155.0),
            (&["f2fs", "F+E+P"], 358.0),
            (&["f2fs", "F+E+P+W"], 175.0),
        ],
        ..PLAIN
    },
    // On the phone's eMMC. The table's unit is KIOPS, which no eMMC of 2012 reached: IOPS are
    // meant.
    PaperTable {
        place: "section 6.4, table 1",
        lab: "polling",
        at: &[("sync", "fsync")],
        axes: &["threads", "cpu-load", "switches"],
        rows: &[
            (&["1", "0", ""], 1002.0),
            (&["1", "0", "P"], 981.0),
            (&["1", "2", ""], 667.0),
            (&["1", "2", "P"], 756.0),
            (&["10", "0", ""], 2609.0),
            (&["10", "0", "P"], 2705.0),
            (&["10", "2", ""], 2136.0),
            (&["10", "2", "P"], 2351.0),
        ],
        ..PLAIN
    },
    PaperTable {
        place: "section 6.4, table 1",
        lab: "polling",
        measure: Measure::CpuActive,
        at: &[("sync", "fsync")],
        axes: &["threads", "cpu-load", "switches"],
        rows: &[
            (&["1", "0", ""], 0.075),
            (&["1", "0", "P"], 0.109),
            (&["1", "2", ""], 0.264),
            (&["1", "2", "P"], 0.302),
            (&["10", "0", ""], 0.111),
            (&["10", "0", "P"], 0.129),
            (&["10", "2", ""], 0.301),
            (&["10", "2", "P"], 0.331),
        ],
        ..PLAIN
    },
    PaperTable {
        place: "section 6.4, figure 9",
        lab: "polling",
        measure: Measure::VoluntarySwitches,
        ratio: true,
        approximate: true,
        at: &[("sync", "fsync")],
        axes: &["switches"],
        rows: &[(&[""], 1.0), (&["P"], 0.01)],
        ..PLAIN
    },
    PaperTable {
        place: "section 6.4, figure 9",
        lab: "polling",
        measure: Measure::Switches,
        ratio: true,
        approximate: true,
        at: &[("sync", "fsync")],
        axes: &["switches"],
        rows: &[(&[""], 1.0), (&["P"], 0.02)],
        ..PLAIN
    },
];
