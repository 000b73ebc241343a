//! What one insert writes: ATC'15 table 1, ATC'13 figure 4.

use super::Experiment;
use crate::lab::Measure;
use crate::lab::finding::{Answer, Claim, Evidence, Finding, Gap, Number};
use crate::lab::grid::View;
use crate::lab::order::{Extreme, words};
use crate::lab::results::Results;

const VOLUMES: &[Measure] = &[
    Measure::DataBytes,
    Measure::JournalBytes,
    Measure::JournalOfJournalBytes,
    Measure::MetadataBytes,
    Measure::WrittenBytes,
    Measure::Writes,
    Measure::Flushes,
];

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "table1",
    views: &[
        View {
            title: "One insert of 100 bytes with fdatasync",
            source: "ATC'15 table 1, section 6.1",
            at: &[("switches", "F")],
            rows: &["filesystem", "journal"],
            columns: &[],
            measures: VOLUMES,
            baseline: &[("journal", "wal")],
            found: "In every journal mode more than half of what is written is ext4's journal; WAL writes least, and WALDIO one page and no journal.",
            differs: "Means of 20 inserts into one leaf page, where the paper shows one. ATC'15 counts one commit for each sync of a new file; jbd2 of today commits the inode's own transaction only, and SQLite of today syncs the directory of a new journal file.",
        },
        View {
            title: "One insert of 100 bytes with fsync",
            source: "ATC'13 section 4.3, figure 4",
            at: &[("switches", "")],
            rows: &["filesystem", "journal"],
            columns: &[],
            measures: VOLUMES,
            baseline: &[("journal", "delete")],
            found: "An insert is nine I/Os in DELETE mode, twelve in PERSIST and three in WAL; the journal files' first commits are 24, 16 and 8 KB in DELETE, TRUNCATE and PERSIST.",
            differs: "Means of 20 inserts. Below is the block pattern of the last one, in place of the figure. The sync of a journal's header finds nothing to commit today, which is two or three I/Os less.",
        },
        View {
            title: "One insert of 100 bytes on f2fs, with batch atomic writes",
            source: "",
            at: &[("filesystem", "f2fs"), ("journal", "delete")],
            rows: &["switches"],
            columns: &[],
            measures: VOLUMES,
            baseline: &[("switches", "F")],
            found: "",
            differs: "With A SQLite commits by F2FS_IOC_COMMIT_ATOMIC_WRITE in place of a journal, which the papers do not have.",
        },
    ],
    findings,
};

/// The modes that sync a journal of their own.
const JOURNALS: [&str; 4] = ["wal", "delete", "truncate", "persist"];

fn findings(results: Results<'_>) -> Vec<Finding> {
    let wal_first = |claim: Claim, measure: Measure| {
        let filesystems = results.values_of("filesystem", &[]);
        let places = filesystems
            .iter()
            .flat_map(|filesystem| places_of(results, filesystem));
        claim.judge(places.map(|at| {
            let series = results.series(&at, "journal", measure);
            series.extreme(Extreme::Least, "wal", &JOURNALS)
        }))
    };
    let ext4 = [("filesystem", "ext4"), ("switches", "F")];
    let ext4_fsync = [("filesystem", "ext4"), ("switches", "")];
    vec![
        wal_first(WAL_FEWEST_WRITES, Measure::Writes),
        wal_first(WAL_FEWEST_BYTES, Measure::WrittenBytes),
        WAL_LEAST_JOJ.judge([results
            .series(&ext4, "journal", Measure::JournalOfJournalBytes)
            .extreme(Extreme::Least, "wal", &JOURNALS)]),
        PERSIST_MOST_WRITES.judge([results
            .series(&ext4_fsync, "journal", Measure::Writes)
            .extreme(Extreme::Greatest, "persist", &JOURNALS)]),
        JOURNAL_OVER_HALF.judge(JOURNALS.iter().chain(&["off"]).map(|journal| {
            let at = [
                ("filesystem", "ext4"),
                ("switches", "F"),
                ("journal", *journal),
            ];
            over_half(results, &at)
        })),
        WALDIO_ONE_PAGE.judge([
            results
                .series(&ext4, "journal", Measure::WrittenBytes)
                .alone("waldio", |bytes| bytes <= 4608.0),
            results
                .series(&ext4, "journal", Measure::JournalBytes)
                .alone("waldio", |bytes| bytes < 512.0),
        ]),
    ]
}

/// The places of a filesystem where cells differ in nothing but the journal mode.
fn places_of<'a>(results: Results<'_>, filesystem: &'a str) -> Vec<[(&'a str, &'a str); 2]> {
    let there = ["", "F"].map(|switches| [("filesystem", filesystem), ("switches", switches)]);
    there
        .into_iter()
        .filter(|at| results.first(at).is_some())
        .collect()
}

/// Whether the filesystem's journal is more than half of what is written.
fn over_half(results: Results<'_>, at: &[(&str, &str)]) -> Answer {
    let gap = |reason: &str| Gap {
        place: words(at),
        reason: reason.to_owned(),
    };
    let median = |measure| {
        let found = results.value(at, measure);
        let (value, _) = found.ok_or_else(|| gap("no number"))?;
        Ok::<f64, Gap>(value.median)
    };
    let journal = median(Measure::JournalBytes)?;
    let all = journal + median(Measure::DataBytes)? + median(Measure::MetadataBytes)?;
    if all == 0.0 {
        return Err(gap("nothing was written"));
    }
    let share = journal / all;
    Ok(Evidence {
        holds: share > 0.5,
        place: words(at),
        numbers: vec![Number::ratio("journal of all", share)],
    })
}

const WAL_FEWEST_WRITES: Claim = Claim {
    name: "wal-fewest-ios",
    claim: "An insert makes the fewest I/Os in WAL mode.",
    source: "ATC'13 section 4.3, figure 4",
    explanation: "",
};

const WAL_FEWEST_BYTES: Claim = Claim {
    name: "wal-fewest-bytes",
    claim: "An insert writes the fewest bytes in WAL mode.",
    source: "ATC'15 section 3, table 1",
    explanation: "",
};

const WAL_LEAST_JOJ: Claim = Claim {
    name: "wal-least-joj",
    claim: "The journaling of journal is least in WAL mode.",
    source: "ATC'15 section 3, table 1",
    explanation: "Of twenty inserts all but the first overwrite the journal of PERSIST mode in place, and fdatasync then needs no commit; a growing WAL needs one for each block.",
};

const PERSIST_MOST_WRITES: Claim = Claim {
    name: "persist-most-ios",
    claim: "An insert makes the most I/Os in PERSIST mode.",
    source: "ATC'13 section 4.3, figure 4",
    explanation: "There are four syncs still, but two of them overwrite the header of the journal within a tick of the clock that the inode's times have, and find nothing to commit: the pattern of persist has data and flush alone there. A truncated journal costs as many requests.",
};

const JOURNAL_OVER_HALF: Claim = Claim {
    name: "journal-over-half",
    claim: "On ext4 the filesystem's journal is more than half of what an insert writes, in every mode.",
    source: "ATC'15 section 3",
    explanation: "With fdatasync, blocks that are only overwritten need no commit: OFF and PERSIST overwrite.",
};

const WALDIO_ONE_PAGE: Claim = Claim {
    name: "waldio-one-page",
    claim: "With WALDIO an insert writes one page of 4 KiB, and nothing to ext4's journal.",
    source: "ATC'15 section 6.1, figure 11(a)",
    explanation: "",
};
