//! The journal modes side by side, in the shape of ATC'15 table 1.

use serde::Serialize;

use super::RunCost;

/// A journal mode's line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Journal mode.
    pub mode: String,
    /// Bytes outside the filesystem's journal.
    pub data_bytes: u64,
    /// Bytes in the filesystem's journal.
    pub journal_bytes: u64,
    /// Bytes in the filesystem's journal for syncs of the SQLite journal or WAL.
    pub joj_bytes: u64,
    /// All bytes written until the last statement returned.
    pub total_bytes: u64,
    /// Write requests.
    pub writes: u64,
    /// Flushes that the device executed.
    pub flushes: u64,
    /// Bytes read until the last statement returned.
    pub read_bytes: u64,
    /// Bytes that settling the filesystem wrote afterwards.
    pub later_bytes: u64,
    /// Bytes that closing the database wrote: a WAL's checkpoint.
    pub close_bytes: u64,
    /// Time in SQLite, in nanoseconds.
    pub elapsed_ns: u64,
    /// What the paper measured, if this is its experiment.
    pub paper: Option<PaperRow>,
}

/// A line of ATC'15 table 1: a Galaxy S5 with ext4, one 100-byte insert. KB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PaperRow {
    /// ext4's data region.
    pub data_kb: u32,
    /// ext4's journal region.
    pub journal_kb: u32,
    /// ext4 journal writes for the SQLite journal file.
    pub joj_kb: u32,
    /// Everything.
    pub total_kb: u32,
}

const PAPER: [(&str, [u32; 4]); 5] = [
    ("off", [8, 12, 0, 20]),
    ("wal", [8, 20, 20, 28]),
    ("delete", [24, 56, 44, 80]),
    ("truncate", [24, 48, 36, 72]),
    ("persist", [28, 52, 40, 80]),
];
/// What counts as a 100-byte insert: a key and some small columns may come on top.
const PAPER_USER_BYTES: std::ops::RangeInclusive<u64> = 90..=120;

pub(super) fn rows(runs: &[RunCost], filesystem: &str) -> Vec<Row> {
    runs.iter().map(|run| row(run, filesystem)).collect()
}

fn row(run: &RunCost, filesystem: &str) -> Row {
    let total = run.total();
    Row {
        mode: run.mode.clone(),
        data_bytes: total.data_bytes,
        journal_bytes: total.journal_bytes,
        joj_bytes: total.joj_bytes,
        total_bytes: total.bytes,
        writes: total.writes,
        flushes: total.flushes,
        read_bytes: total.read_bytes,
        later_bytes: run.total_later().bytes,
        close_bytes: run.close.bytes,
        elapsed_ns: run.transactions.iter().map(|t| t.asked.elapsed_ns).sum(),
        paper: is_the_papers(run, filesystem)
            .then(|| paper(&run.mode))
            .flatten(),
    }
}

fn is_the_papers(run: &RunCost, filesystem: &str) -> bool {
    filesystem == "ext4"
        && run.transactions.len() == 1
        && run.transactions[0].asked.rows == 1
        && run
            .user_bytes()
            .is_some_and(|bytes| PAPER_USER_BYTES.contains(&bytes))
}

fn paper(mode: &str) -> Option<PaperRow> {
    let (_, [data_kb, journal_kb, joj_kb, total_kb]) =
        PAPER.into_iter().find(|(name, _)| *name == mode)?;
    Some(PaperRow {
        data_kb,
        journal_kb,
        joj_kb,
        total_kb,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_totals_are_data_and_journal() {
        for (mode, _) in PAPER {
            let row = paper(mode).expect("it is in the table");
            assert_eq!(row.total_kb, row.data_kb + row.journal_kb, "{mode}");
            assert!(row.joj_kb <= row.journal_kb, "{mode}");
        }
        assert_eq!(paper("memory"), None);
    }
}
