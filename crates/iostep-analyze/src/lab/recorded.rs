//! Results of the built-in labs as they were measured once; `recorded/pack` makes them.

use std::io::Read;

use flate2::read::GzDecoder;
use iostep_model::lab::{CellResult, Lab};
use serde::Deserialize;

use super::{Finding, Report};

#[derive(Deserialize)]
struct Recorded {
    lab: Lab,
    cells: Vec<CellResult>,
}

macro_rules! recorded {
    ($($name:literal,)*) => {
        /// Name and results of each lab.
        const RECORDED: &[(&str, &[u8])] = &[$((
            $name,
            include_bytes!(concat!("recorded/", $name, ".json.gz")),
        ),)*];
    };
}

recorded!(
    "table1",
    "fsync-patterns",
    "matrix",
    "combined",
    "polling",
    "waldio",
    "replay",
);

/// The report of each lab.
pub fn reports() -> Vec<Report> {
    RECORDED.iter().map(|(name, _)| report(name)).collect()
}

pub fn report(name: &str) -> Report {
    let found = RECORDED.iter().find(|(lab, _)| *lab == name);
    let (_, packed) = found.expect("a lab that is recorded");
    let mut text = String::new();
    let read = GzDecoder::new(*packed).read_to_string(&mut text);
    read.expect("it is packed by gzip");
    let mut recorded: Recorded = serde_json::from_str(&text).expect("results of a lab");
    recorded.lab.analysis = iostep_lab::builtin::analysis(name);
    Report::of(&recorded.lab, &recorded.cells)
}

/// The median in a table's row, which has these values, and column.
fn median(report: &Report, table: &str, row: &[&str], column: &str) -> f64 {
    let grid = report.grids.iter().find(|grid| grid.title == table);
    let grid = grid.expect(table);
    let place = grid.columns.iter().position(|found| {
        let is_measure = found.values.is_empty() && found.measure.name() == column;
        is_measure || found.values == [column]
    });
    let row = grid.rows.iter().find(|found| found.values == row);
    let entry = row.expect("the row").entries[place.expect(column)].as_ref();
    entry
        .and_then(|entry| entry.value)
        .expect("a number")
        .median
}

#[test]
fn every_cell_has_a_result_or_means_nothing() {
    for report in reports() {
        assert!(report.is_complete(), "{}", report.name);
        assert!(
            !report.grids.is_empty() && !report.findings.is_empty(),
            "{}",
            report.name
        );
    }
}

#[test]
fn one_insert_writes_on_ext4_what_the_paper_says() {
    const TABLE: &str = "One insert of 100 bytes with fdatasync";
    let report = report("table1");
    let kib = |journal, column| median(&report, TABLE, &["ext4", journal], column) / 1024.0;
    let volumes = |journal| ["data each", "journal each", "written each"].map(|c| kib(journal, c));
    // ATC'15 table 1 has these three to the byte.
    assert_eq!(volumes("wal"), [8.0, 20.0, 28.0]);
    assert_eq!(volumes("waldio"), [4.0, 0.0, 4.0]);
    assert_eq!(kib("delete", "data each"), 24.0);
    // Its 48 KB are of another SQLite.
    assert_eq!(volumes("truncate"), [24.0, 44.0, 68.0]);
}

#[test]
fn batch_atomic_writes_leave_f2fs_the_pages_alone() {
    const TABLE: &str = "One insert of 100 bytes on f2fs, with batch atomic writes";
    let report = report("table1");
    let of = |switches| {
        let columns = ["data each", "written each", "flushes each"];
        columns.map(|column| median(&report, TABLE, &[switches], column))
    };
    let [data, written, flushes] = of("F+A");
    // The leaf and the page with the change counter.
    assert_eq!(data, 8192.0);
    let [_, with_journal, more_flushes] = of("F");
    assert!(written < with_journal && flushes < more_flushes);
}

#[test]
fn a_synced_write_makes_the_requests_of_figure_3() {
    const TABLE: &str = "4 KiB appended, fsync";
    let report = report("fsync-patterns");
    let of = |filesystem, column| median(&report, TABLE, &[filesystem], column);
    assert_eq!(of("ext4", "writes each"), 3.0);
    assert_eq!(of("xfs", "writes each"), 2.0);
    assert_eq!(
        [of("f2fs", "writes each"), of("f2fs", "bytes a write")],
        [2.0, 4096.0]
    );
    let pattern = report.patterns.iter().find(|p| p.title == "ext4, append");
    let last = pattern.expect("the pattern").last_operation();
    let writes = last.filter(|request| request.sectors > 0);
    let sizes: Vec<u64> = writes.map(|request| request.sectors * 512 / 1024).collect();
    assert_eq!(sizes, [4, 16, 4]);
}

#[test]
fn no_claim_is_lost_for_want_of_an_explanation() {
    use super::Verdict::{DoesNotHold, Holds};

    let named = |(name, verdict): (&str, _)| (name.to_owned(), verdict);
    let verdicts = |lab: &str| -> Vec<_> {
        let of = |finding: Finding| (finding.name, finding.verdict);
        report(lab).findings.into_iter().map(of).collect()
    };
    let table1 = [
        ("wal-fewest-ios", Holds),
        ("wal-fewest-bytes", Holds),
        ("wal-least-joj", DoesNotHold),
        ("persist-most-ios", DoesNotHold),
        ("journal-over-half", DoesNotHold),
        ("waldio-one-page", Holds),
    ];
    assert_eq!(verdicts("table1"), table1.map(named));
    let patterns = [
        ("f2fs-two-writes", Holds),
        ("ext4-three-writes", Holds),
        ("xfs-one-log-write", Holds),
        ("btrfs-most", Holds),
        ("nilfs2-large-segment", DoesNotHold),
        ("fdatasync-overwrite", Holds),
    ];
    assert_eq!(verdicts("fsync-patterns"), patterns.map(named));
    // What is judged by counts or bytes.
    let counts = [
        ("wal-fewest-ios", Holds),
        ("f2fs-fewer-bytes", DoesNotHold),
        ("btrfs-most", Holds),
        ("fdatasync-update-bytes", Holds),
    ];
    let matrix = verdicts("matrix");
    for expected in counts.map(named) {
        assert!(matrix.contains(&expected), "{expected:?}");
    }
    for finding in reports().into_iter().flat_map(|report| report.findings) {
        let explained = finding.verdict != DoesNotHold || !finding.explanation.is_empty();
        assert!(explained, "{}: {}", finding.name, finding.claim);
    }
}

#[test]
fn polling_leaves_no_voluntary_switch() {
    let report = report("polling");
    let verdict = |name| {
        let found = report.findings.iter().find(|finding| finding.name == name);
        found.map(|finding| finding.verdict)
    };
    assert_eq!(
        verdict("voluntary-divided-by-100"),
        Some(super::Verdict::Holds)
    );
    assert_eq!(verdict("switches-of-reads"), Some(super::Verdict::Holds));
}
