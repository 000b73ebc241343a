//! Filesystems and journal modes: ATC'13 figures 5 to 7.

use super::Experiment;
use crate::lab::Measure;
use crate::lab::finding::{Answer, Claim, Finding};
use crate::lab::grid::View;
use crate::lab::order::{Extreme, Series, both};
use crate::lab::results::{At, Results};

const MODES: &str = "With fsync, 500 transactions. All six journal modes; figure 7 has no MEMORY. A loop device or a guest's disk in place of an SD card: what a flush costs is another matter, and with it the ratios.";
const COUNTS: &str = "Counted by the kernel, so the place does not matter.";

/// A table of filesystems x journal modes.
const fn modes(
    title: &'static str,
    source: &'static str,
    at: &'static At<'static>,
    measures: &'static [Measure],
    found: &'static str,
    differs: &'static str,
) -> View<'static> {
    View {
        title,
        source,
        at,
        rows: &["filesystem"],
        columns: &["journal"],
        measures,
        baseline: &[("journal", "truncate")],
        found,
        differs,
    }
}

const INSERT: &At<'static> = &[
    ("workload", "sqlite"),
    ("operation", "insert"),
    ("switches", ""),
];
const UPDATE: &At<'static> = &[
    ("workload", "sqlite"),
    ("operation", "update"),
    ("switches", ""),
];
const DELETE: &At<'static> = &[
    ("workload", "sqlite"),
    ("operation", "delete"),
    ("switches", ""),
];

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "matrix",
    views: &[
        View {
            title: "4 KiB writes with fsync, a second",
            source: "ATC'13 figure 5, section 5.2",
            at: &[("workload", "file")],
            rows: &["filesystem"],
            columns: &["access"],
            measures: &[Measure::Throughput, Measure::Ios],
            baseline: &[("filesystem", "ext4")],
            found: "xfs and f2fs write at random about 50 and 70 % faster than ext4; f2fs is first at random, xfs in order, btrfs last in both.",
            differs: "Order and random place differ little without flash translation below.",
        },
        View {
            title: "Inserts a second with F and E, TRUNCATE",
            source: "ATC'13 figure 6(a), sections 6.1 and 6.3",
            at: &[
                ("workload", "sqlite"),
                ("operation", "insert"),
                ("journal", "truncate"),
            ],
            rows: &["filesystem"],
            columns: &["switches"],
            measures: &[Measure::Throughput],
            baseline: &[("switches", "")],
            found: "fdatasync gains 17 % on ext4 and little on btrfs and nilfs2; an external journal 30 % on ext4, less on xfs.",
            differs: "Journal and data lie on one machine's disk here, however many loop devices there are: E shows its separate streams only with two real devices.",
        },
        View {
            title: "Updates a second with F and E, TRUNCATE",
            source: "ATC'13 figure 6(b), sections 6.1 and 6.3",
            at: &[
                ("workload", "sqlite"),
                ("operation", "update"),
                ("journal", "truncate"),
            ],
            rows: &["filesystem"],
            columns: &["switches"],
            measures: &[Measure::Throughput],
            baseline: &[("switches", "")],
            found: "fdatasync gains 50 % on ext4 and 66 % on xfs, since an update only overwrites; btrfs and nilfs2 allocate anew and gain little.",
            differs: "The Galaxy S3's SQLite made no journal file for an update (section 6.2), so that all syncs were of overwrites; today's makes one, and its growth needs the commit.",
        },
        View {
            title: "Updates without a journal file, with F",
            source: "ATC'13 figure 6(b), sections 6.1 and 6.2",
            at: &[
                ("workload", "sqlite"),
                ("operation", "update"),
                ("journal", "off"),
            ],
            rows: &["filesystem"],
            columns: &["switches"],
            measures: &[
                Measure::Throughput,
                Measure::OperationP50,
                Measure::WrittenBytes,
            ],
            baseline: &[("switches", "")],
            found: "As above: the Galaxy S3's updates were of this kind.",
            differs: "Journal mode OFF, which today's SQLite has instead.",
        },
        View {
            title: "Bytes written by an update with F and E, TRUNCATE",
            source: "ATC'13 section 6.1",
            at: &[
                ("workload", "sqlite"),
                ("operation", "update"),
                ("journal", "truncate"),
            ],
            rows: &["filesystem"],
            columns: &["switches"],
            measures: &[Measure::WrittenBytes],
            baseline: &[("switches", "")],
            found: "fdatasync saves the metadata that an overwrite does not need.",
            differs: COUNTS,
        },
        modes(
            "Inserts a second by journal mode",
            "ATC'13 figure 7(a), section 6.2",
            INSERT,
            &[Measure::Throughput],
            "WAL is fastest of the modes with a journal on every filesystem, f2fs the fastest filesystem for most modes, btrfs the slowest.",
            MODES,
        ),
        modes(
            "Updates a second by journal mode",
            "ATC'13 figure 7(b), section 6.2",
            UPDATE,
            &[Measure::Throughput],
            "WAL is three times as fast as the rollback journals on every filesystem.",
            MODES,
        ),
        modes(
            "Deletes a second by journal mode",
            "ATC'13 section 6.2",
            DELETE,
            &[Measure::Throughput],
            "",
            MODES,
        ),
        modes(
            "Half of the inserts took at most",
            "",
            INSERT,
            &[Measure::OperationP50],
            "",
            "What the claims below are judged by: others on the machine hardly change it, and the checkpoints of WAL are not in it.",
        ),
        modes(
            "Half of the updates took at most",
            "",
            UPDATE,
            &[Measure::OperationP50],
            "",
            "",
        ),
        modes(
            "I/Os of an insert by journal mode",
            "ATC'13 sections 4.3 and 6.2",
            INSERT,
            &[Measure::Ios],
            "3 to 12 on ext4 depending on the mode, fewest with WAL.",
            COUNTS,
        ),
        modes(
            "Bytes written by an insert by journal mode",
            "ATC'13 section 6.2",
            INSERT,
            &[Measure::WrittenBytes],
            "",
            COUNTS,
        ),
        modes(
            "Flushes of an insert by journal mode",
            "",
            INSERT,
            &[Measure::Flushes],
            "",
            COUNTS,
        ),
    ],
    findings,
};

const JOURNALS: [&str; 4] = ["wal", "delete", "truncate", "persist"];
const FILESYSTEMS: [&str; 5] = ["ext4", "xfs", "btrfs", "f2fs", "nilfs2"];

fn findings(results: Results<'_>) -> Vec<Finding> {
    let by_mode =
        |claim, operation, measure, judge| by_mode(results, claim, operation, measure, judge);
    let time = Measure::OperationP50;
    let bytes = Measure::WrittenBytes;
    let journaling = ["ext4", "xfs"];
    vec![
        by_mode(WAL_FEWEST_IOS, "insert", Measure::Ios, wal_least),
        by_mode(WAL_FIRST_INSERT, "insert", time, wal_least),
        by_mode(WAL_FIRST_UPDATE, "update", time, wal_least),
        by_mode(WAL_UPDATE_THREEFOLD, "update", time, wal_threefold),
        by_filesystem(results, F2FS_FIRST, Extreme::Least, "f2fs"),
        by_filesystem(results, BTRFS_LAST, Extreme::Greatest, "btrfs"),
        below_ext4(results, F2FS_FEWER_IOS, Measure::Ios),
        below_ext4(results, F2FS_FEWER_BYTES, bytes),
        BTRFS_MOST_BYTES.judge(["insert", "update"].map(|operation| {
            let at = [
                ("operation", operation),
                ("journal", "truncate"),
                ("switches", ""),
            ];
            let series = results.series(&at, "filesystem", bytes);
            series.extreme(Extreme::Greatest, "btrfs", &FILESYSTEMS)
        })),
        FDATASYNC_UPDATE.judge(journaling.map(|filesystem| {
            gain(results, filesystem, time, |insert, update| {
                update < insert && update < 1.0
            })
        })),
        FDATASYNC_UPDATE_BYTES.judge(journaling.map(|filesystem| {
            gain(results, filesystem, bytes, |insert, update| {
                update < insert && update < 1.0
            })
        })),
        FDATASYNC_COPY_ON_WRITE.judge(["btrfs", "nilfs2"].map(|filesystem| {
            gain(results, filesystem, bytes, |insert, update| {
                insert > 0.9 && update > 0.9
            })
        })),
    ]
}

/// Whether f2fs has less than ext4 for an insert in each of the modes.
fn below_ext4(results: Results<'_>, claim: Claim, measure: Measure) -> Finding {
    claim.judge(JOURNALS.map(|journal| {
        let at = [
            ("operation", "insert"),
            ("journal", journal),
            ("switches", ""),
        ];
        let series = results.series(&at, "filesystem", measure);
        series.extreme(Extreme::Least, "f2fs", &["ext4"])
    }))
}

/// What each filesystem says of the journal modes.
fn by_mode(
    results: Results<'_>,
    claim: Claim,
    operation: &str,
    measure: Measure,
    judge: fn(&Series<'_>) -> Answer,
) -> Finding {
    claim.judge(FILESYSTEMS.map(|filesystem| {
        let at = [
            ("filesystem", filesystem),
            ("operation", operation),
            ("switches", ""),
        ];
        judge(&results.series(&at, "journal", measure))
    }))
}

fn wal_least(series: &Series<'_>) -> Answer {
    series.extreme(Extreme::Least, "wal", &JOURNALS)
}

fn wal_threefold(series: &Series<'_>) -> Answer {
    series.ratio("truncate", "wal", |ratio| ratio <= 0.4)
}

/// Whether a filesystem is first, or last, for each operation in each of the modes.
fn by_filesystem(
    results: Results<'_>,
    claim: Claim,
    extreme: Extreme,
    filesystem: &'static str,
) -> Finding {
    let places = ["insert", "update"]
        .into_iter()
        .flat_map(|operation| JOURNALS.map(|journal| (operation, journal)));
    claim.judge(places.map(|(operation, journal)| {
        let at = [
            ("operation", operation),
            ("journal", journal),
            ("switches", ""),
        ];
        let series = results.series(&at, "filesystem", Measure::OperationP50);
        series.extreme(extreme, filesystem, &FILESYSTEMS)
    }))
}

/// What fdatasync changes for inserts with a truncated journal, and for updates without a journal
/// file, which only overwrite.
fn gain(
    results: Results<'_>,
    filesystem: &str,
    measure: Measure,
    holds: fn(f64, f64) -> bool,
) -> Answer {
    let factor = |operation, journal| {
        let at = [
            ("filesystem", filesystem),
            ("operation", operation),
            ("journal", journal),
        ];
        results.series(&at, "switches", measure).factor("", "F")
    };
    let factors = [
        ("insert", factor("insert", "truncate")?),
        ("update", factor("update", "off")?),
    ];
    both(filesystem.to_owned(), factors, holds)
}

const WAL_FEWEST_IOS: Claim = Claim {
    name: "wal-fewest-ios",
    claim: "An insert makes the fewest I/Os in WAL mode.",
    source: "ATC'13 sections 4.3 and 6.2",
    explanation: "",
};

const WAL_FIRST_INSERT: Claim = Claim {
    name: "wal-first-insert",
    claim: "Inserts are fastest in WAL mode on every filesystem.",
    source: "ATC'13 section 6.2, figure 7(a)",
    explanation: "",
};

const WAL_FIRST_UPDATE: Claim = Claim {
    name: "wal-first-update",
    claim: "Updates are fastest in WAL mode on every filesystem.",
    source: "ATC'13 section 6.2, figure 7(b)",
    explanation: "",
};

const WAL_UPDATE_THREEFOLD: Claim = Claim {
    name: "wal-update-threefold",
    claim: "Updates in WAL mode are three times as fast as in TRUNCATE mode.",
    source: "ATC'13 section 6.2, figure 7(b)",
    explanation: "Counts of syncs give the most that is possible: where one sync of WAL stands against three to six, what is not I/O takes a larger share on a fast device.",
};

const F2FS_FIRST: Claim = Claim {
    name: "f2fs-first",
    claim: "f2fs is the fastest filesystem for most of the journal modes.",
    source: "ATC'13 section 6.2, figure 7",
    explanation: "f2fs and nilfs2 were compared in a guest whose device is memory and whose processor is emulated: there a sync costs instructions, and bytes, of which nilfs2 writes several times as many, cost nothing.",
};

const F2FS_FEWER_IOS: Claim = Claim {
    name: "f2fs-fewer-ios",
    claim: "f2fs makes fewer I/Os than ext4 for an insert in each of the modes.",
    source: "ATC'13 section 6.2",
    explanation: "fsync on f2fs writes each changed node as a request of its own, and a rollback journal changes the nodes of two files and a directory; ext4's commit is one request for all records and one for its mark (lab table1 has the classes). In WAL mode one file and one node are left.",
};

const F2FS_FEWER_BYTES: Claim = Claim {
    name: "f2fs-fewer-bytes",
    claim: "f2fs writes fewer bytes than ext4 for an insert in each of the modes.",
    source: "ATC'13 section 6.2",
    explanation: "In PERSIST mode both write about as much: two of the four syncs find nothing to commit on ext4, since on a fast device they fall into the tick of the clock that the times of an inode have (lab table1), and f2fs writes a node for each.",
};

const BTRFS_LAST: Claim = Claim {
    name: "btrfs-last",
    claim: "btrfs is the slowest filesystem.",
    source: "ATC'13 section 6.2, figure 7",
    explanation: "",
};

const BTRFS_MOST_BYTES: Claim = Claim {
    name: "btrfs-most",
    claim: "btrfs writes the most.",
    source: "ATC'13 sections 5.1 and 6.2",
    explanation: "",
};

const FDATASYNC_UPDATE: Claim = Claim {
    name: "fdatasync-update",
    claim: "fdatasync gains more for updates, which only overwrite, than for inserts on ext4 and xfs.",
    source: "ATC'13 section 6.1, figure 6",
    explanation: "",
};

const FDATASYNC_UPDATE_BYTES: Claim = Claim {
    name: "fdatasync-update-bytes",
    claim: "fdatasync saves bytes for updates, which only overwrite, more than for inserts on ext4 and xfs.",
    source: "ATC'13 section 6.1",
    explanation: "",
};

const FDATASYNC_COPY_ON_WRITE: Claim = Claim {
    name: "fdatasync-copy-on-write",
    claim: "fdatasync changes little on btrfs and nilfs2, which allocate for every write.",
    source: "ATC'13 section 6.1",
    explanation: "nilfs2 of today writes for an fdatasync of allocated blocks a log of summary and data alone, and the blocks of its own files with the next whole one (nilfs_construct_dsync_segment; lab fsync-patterns has such a log of 8 KiB).",
};
