//! Settings of SQLite.

use crate::names::named;

/// `PRAGMA journal_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Journal {
    /// A rollback journal that is removed at the end of each transaction.
    Delete,
    /// A rollback journal that is cut to length zero.
    Truncate,
    /// A rollback journal whose header is overwritten with zeros.
    Persist,
    /// A write-ahead log.
    Wal,
    /// A write-ahead log in aligned blocks, by the extension waldio.
    Waldio,
    /// A rollback journal in memory: a crash can corrupt the database.
    Memory,
    /// No journal: not even ROLLBACK works.
    Off,
}

named!(
    Journal,
    "journal mode",
    Delete = "delete",
    Truncate = "truncate",
    Persist = "persist",
    Wal = "wal",
    Waldio = "waldio",
    Memory = "memory",
    Off = "off",
);

impl Journal {
    /// True for a log that is checkpointed.
    pub fn is_log(self) -> bool {
        matches!(self, Journal::Wal | Journal::Waldio)
    }

    /// What the header of a database tells by its bytes 18 and 19, the versions for writing and for
    /// reading (sqlite.org/fileformat2.html, section 1.3): a log, or any of the other modes, as
    /// which this says DELETE. While waldio uses a database, the version for reading is another
    /// one (the head of waldio.c, GUARDS).
    pub fn of_versions(versions: [u8; 2]) -> Journal {
        match versions {
            [2, 2] => Journal::Wal,
            [2, 0x56 | 0x57] => Journal::Waldio,
            _ => Journal::Delete,
        }
    }
}

/// `PRAGMA synchronous`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Synchronous {
    /// Nothing is synced.
    Off,
    /// Synced at the most critical moments; a WAL only at checkpoints.
    Normal,
    /// Synced before each transaction is reported as done: SQLite's default.
    Full,
    /// As full, and the directory after the journal is removed from it.
    Extra,
}

named!(
    Synchronous,
    "synchronous setting",
    Off = "off",
    Normal = "normal",
    Full = "full",
    Extra = "extra",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_tells_of_a_log_and_whose_it_is() {
        let modes = [[2, 2], [2, 0x56], [2, 0x57], [1, 1], [2, 3]].map(Journal::of_versions);
        let [wal, empty, used, delete, unknown] = modes;
        assert_eq!(
            [wal, empty, used],
            [Journal::Wal, Journal::Waldio, Journal::Waldio]
        );
        assert_eq!([delete, unknown], [Journal::Delete; 2]);
    }

    #[test]
    fn names_read_back_in_either_case_and_others_are_refused_with_the_choices() {
        for journal in Journal::ALL {
            let upper = journal.name().to_ascii_uppercase();
            assert_eq!(upper.parse::<Journal>().as_ref(), Ok(&journal));
        }
        let error = "walrus".parse::<Journal>().expect_err("unknown");
        assert!(
            error.to_string().contains("truncate, persist, wal"),
            "{error}"
        );
        let json = serde_json::to_string(&Journal::Wal).expect("JSON");
        assert_eq!(json, r#""wal""#);
        assert_eq!(
            serde_json::from_str::<Journal>(&json).ok(),
            Some(Journal::Wal)
        );
        assert!(serde_json::from_str::<Journal>(r#""walrus""#).is_err());
        assert!("fullest".parse::<Synchronous>().is_err());
    }
}
