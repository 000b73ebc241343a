//! The transactions that are measured.

use iostep_model::bench::{WalFile, WaldioLayout};
use iostep_model::database::{DatabaseFacts, TableFacts};
use serde::Serialize;

use super::recording::Habit;

/// Bytes of a row where nothing says how long one is.
const RECORD_BYTES: u32 = 100;
/// Longer rows are measured as such.
const MOST_RECORD_BYTES: u32 = 1 << 20;
/// What a transaction touches at most.
const MOST_TABLES: u32 = 64;
/// The bytes that a page of a database has to reserve for waldio's layout W.
const WALDIO_RESERVE: u32 = 24;

/// Transactions like those of the application.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Workload {
    /// What a statement does, as bench names it: `insert`, `update`, ...
    pub operation: String,
    /// Bytes of a row's value.
    pub record_bytes: u32,
    /// Trees of the database that a transaction touches: tables and indexes.
    pub tables: u32,
    /// Statements of a transaction for each.
    pub statements: u32,
    /// Threads, on one database.
    pub threads: u32,
    /// What a log's file is like when a run begins.
    pub log_file: WalFile,
    /// Where frames of waldio's log are; `None` for its own choice.
    pub waldio_layout: Option<WaldioLayout>,
    /// Where the numbers come from, in words.
    pub basis: Vec<String>,
}

impl Workload {
    /// Inserts of single rows by one thread, as long as the rows of the largest table; `habit` is
    /// what a recording says.
    pub fn like(facts: Option<&DatabaseFacts>, habit: Option<&Habit>) -> Workload {
        let mut workload = Workload {
            operation: "insert".into(),
            record_bytes: RECORD_BYTES,
            tables: 1,
            statements: 1,
            threads: 1,
            log_file: WalFile::Steady,
            waldio_layout: None,
            basis: Vec::new(),
        };
        if let Some(facts) = facts {
            workload.take_facts(facts);
        }
        if let Some(habit) = habit {
            workload.take_habit(habit);
        }
        if workload.basis.is_empty() {
            workload
                .basis
                .push("nothing known of the transactions".into());
        }
        workload
    }

    fn take_facts(&mut self, facts: &DatabaseFacts) {
        // A database of another SQLite has no room for the headers of frames in its pages.
        if facts.reserved_bytes < WALDIO_RESERVE && facts.pages > 0 {
            self.waldio_layout = Some(WaldioLayout::T);
        }
        let largest = facts.tables.iter().find(|table| table.rows > 0);
        let Some((table, mean)) = largest.and_then(|t| Some((t, t.mean_row_bytes()?))) else {
            return;
        };
        self.record_bytes = value_bytes(mean).min(MOST_RECORD_BYTES);
        self.tables = (1 + table.indexes).min(MOST_TABLES);
        self.basis.push(largest_table(table, mean));
    }

    fn take_habit(&mut self, habit: &Habit) {
        if let Some(pages) = habit.pages_per_transaction {
            // A rollback journal's transaction also changes page 1, with bench as anywhere.
            let own = match habit.journal.is_some_and(|journal| journal.is_log()) {
                true => pages,
                false => pages.saturating_sub(1),
            };
            self.tables = u32::try_from(own).unwrap_or(u32::MAX).clamp(1, MOST_TABLES);
        }
        self.threads = habit.threads.clamp(1, 64);
        self.basis.push(habit.words());
    }

    /// What `iostep bench sqlite` is asked for; `has_log` is whether the journal mode is a log.
    pub fn arguments(&self, has_log: bool, is_waldio: bool) -> Vec<String> {
        let mut arguments = vec![
            format!("--operation={}", self.operation),
            format!("--record={}", self.record_bytes),
            format!("--tables={}", self.tables),
            format!("--statements={}", self.statements),
            format!("--threads={}", self.threads),
        ];
        if self.threads > 1 {
            arguments.push("--shared".into());
        }
        if has_log {
            arguments.push(format!("--wal-file={}", self.log_file));
        }
        if let (true, Some(layout)) = (is_waldio, self.waldio_layout) {
            arguments.push(format!("--waldio-layout={layout}"));
        }
        arguments
    }

    /// Bytes that a run of this length may take at most, with journals and logs: no SQLite commits
    /// more transactions, and no filesystem takes more bytes, in a second.
    pub fn room_bytes(&self, page_bytes: u32, checkpoint_pages: u32, run_ns: u64) -> u64 {
        const BESIDE: u64 = 32 << 20;
        const COMMITS_PER_SECOND: u64 = 250_000;
        const BYTES_PER_SECOND: u64 = 2 << 30;
        let rows = u64::from(self.tables) * u64::from(self.statements);
        let row = u64::from(self.record_bytes) + 64;
        let log_pages = u64::from(checkpoint_pages)
            + rows * (2 + u64::from(self.record_bytes) / u64::from(page_bytes.max(512)));
        let in_a_second = COMMITS_PER_SECOND
            .saturating_mul(rows.saturating_mul(row))
            .min(BYTES_PER_SECOND);
        let grown = u128::from(in_a_second) * u128::from(run_ns) / 1_000_000_000;
        let log = 2 * log_pages.saturating_mul(u64::from(page_bytes));
        log.saturating_add(grown as u64).saturating_add(BESIDE)
    }
}

/// The value of a row whose record has so many bytes: without the record's header, which is its
/// own length and the types of key and value (sqlite.org/fileformat2.html, section 2.1).
fn value_bytes(record: f64) -> u32 {
    let record = record.round() as u32;
    let header = if record > 60 { 4 } else { 3 };
    record.saturating_sub(header).max(1)
}

fn largest_table(table: &TableFacts, mean: f64) -> String {
    let rows = match table.whole {
        true => format!("{} rows", table.rows),
        false => format!("the {} rows that were read", table.rows),
    };
    let indexes = match table.indexes {
        0 => "no index".to_owned(),
        1 => "1 index".to_owned(),
        more => format!("{more} indexes"),
    };
    format!(
        "the largest table, {}: {rows} of {mean:.0} B on average, {indexes}",
        table.name
    )
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;
    use iostep_model::pragma::Journal;

    #[test]
    fn rows_and_trees_are_those_of_the_largest_table() {
        let workload = Workload::like(Some(&fixture::facts()), None);
        assert_eq!((workload.record_bytes, workload.tables), (116, 3));
        assert_eq!(workload.waldio_layout, Some(WaldioLayout::T));
        let arguments = workload.arguments(true, false);
        assert!(arguments.contains(&"--wal-file=steady".to_owned()));
        assert!(!arguments.contains(&"--waldio-layout=T".to_owned()));
    }

    #[test]
    fn nothing_known_is_100_bytes_in_one_table() {
        let workload = Workload::like(None, None);
        assert_eq!((workload.record_bytes, workload.tables), (100, 1));
        assert_eq!(workload.waldio_layout, None);
        assert!(!workload.basis.is_empty());
    }

    #[test]
    fn page_1_is_not_taken_for_a_table() {
        let habit = |journal| Habit {
            journal: Some(journal),
            pages_per_transaction: Some(4),
            threads: 200,
            ..Habit::default()
        };
        let of = |journal| Workload::like(None, Some(&habit(journal)));
        assert_eq!(of(Journal::Delete).tables, 3);
        assert_eq!((of(Journal::Wal).tables, of(Journal::Wal).threads), (4, 64));
    }

    #[test]
    fn room_is_a_few_seconds_of_writing_and_a_log() {
        let workload = Workload::like(None, None);
        let room = |run_ns| workload.room_bytes(4096, 1000, run_ns) >> 20;
        assert_eq!((room(0), room(1_000_000_000)), (39, 78));
        let large = Workload {
            record_bytes: 1 << 20,
            ..workload.clone()
        };
        assert_eq!(large.room_bytes(4096, 1000, 500_000_000) >> 20, 1064 + 1);
        assert!(large.room_bytes(65536, u32::MAX, u64::MAX) > 1 << 40);
    }

    #[test]
    fn a_value_is_its_record_without_the_header() {
        // SQLite's own: a record of a NULL and 100 bytes takes 104, one of 10 bytes 13.
        assert_eq!((value_bytes(104.0), value_bytes(13.0)), (100, 10));
        assert_eq!(value_bytes(1.0), 1);
    }
}
