//! What a COMMIT that returned can still lose.

use crate::bench::WaldioSync;
use crate::names::named;
use crate::pragma::{Journal, Synchronous};

/// What is lost at worst, from nothing on; each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Loss {
    Nothing,
    LastCommit,
    /// The last commits, within bounds that were chosen.
    LastCommits,
    /// The commits since the last checkpoint.
    SinceCheckpoint,
    /// The database may be damaged.
    Database,
    /// The whole filesystem may be damaged.
    Filesystem,
}

named!(
    Loss,
    "loss",
    Nothing = "nothing",
    LastCommit = "last-commit",
    LastCommits = "last-commits",
    SinceCheckpoint = "since-checkpoint",
    Database = "database",
    Filesystem = "filesystem",
);

impl Loss {
    /// The same in words.
    pub fn words(self) -> &'static str {
        match self {
            Loss::Nothing => "nothing",
            Loss::LastCommit => "the last commit",
            Loss::LastCommits => "the last commits, as many as the group's bounds allow",
            Loss::SinceCheckpoint => "the commits since the last checkpoint",
            Loss::Database => "the database may be damaged",
            Loss::Filesystem => "the filesystem may be damaged",
        }
    }
}

/// What each kind of accident can cost. A power loss is survived as said if the device keeps what
/// it has promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Durability {
    /// The process is killed.
    pub process_crash: Loss,
    /// The kernel crashes.
    pub os_crash: Loss,
    /// The power fails.
    pub power_loss: Loss,
}

impl Durability {
    /// Of these settings; `waldio` counts with [`Journal::Waldio`] only, whose default is full.
    ///
    /// Sources: sqlite.org/pragma.html#pragma_synchronous, by which NORMAL never damages a database
    /// with a WAL, but can damage one with a rollback journal (a small chance, on older
    /// filesystems); pager.c, `pager_end_transaction` and `zeroJournalHdr`, which from FULL on sync
    /// a journal that is cut or overwritten, and `sqlite3OsDelete`, which syncs the directory that
    /// one was removed from with EXTRA only; for waldio its manual.
    pub fn of(
        journal: Journal,
        synchronous: Synchronous,
        waldio: Option<WaldioSync>,
    ) -> Durability {
        let after = match journal {
            Journal::Memory | Journal::Off => return Durability::everywhere(Loss::Database),
            _ if synchronous == Synchronous::Off => Loss::Database,
            Journal::Waldio => match (waldio, synchronous) {
                (Some(WaldioSync::Persistent), _) => Loss::Nothing,
                (Some(WaldioSync::Group), _) => Loss::LastCommits,
                (Some(WaldioSync::Normal), _) | (_, Synchronous::Normal) => Loss::SinceCheckpoint,
                (Some(WaldioSync::Full) | None, _) => Loss::Nothing,
            },
            Journal::Wal if synchronous == Synchronous::Normal => Loss::SinceCheckpoint,
            Journal::Wal => Loss::Nothing,
            // A journal whose pages were not synced before its page count.
            _ if synchronous == Synchronous::Normal => Loss::Database,
            Journal::Delete if synchronous == Synchronous::Full => Loss::LastCommit,
            Journal::Delete | Journal::Truncate | Journal::Persist => Loss::Nothing,
        };
        Durability {
            process_crash: Loss::Nothing,
            os_crash: after,
            power_loss: after,
        }
    }

    /// The same loss by any accident.
    fn everywhere(loss: Loss) -> Durability {
        Durability {
            process_crash: loss,
            os_crash: loss,
            power_loss: loss,
        }
    }

    /// True if no accident costs more than with the other settings.
    pub fn loses_no_more_than(&self, other: &Durability) -> bool {
        self.process_crash <= other.process_crash
            && self.os_crash <= other.os_crash
            && self.power_loss <= other.power_loss
    }

    /// The worst of all accidents.
    pub fn worst(&self) -> Loss {
        self.process_crash.max(self.os_crash).max(self.power_loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn power_loss(journal: Journal, synchronous: Synchronous) -> Loss {
        Durability::of(journal, synchronous, None).power_loss
    }

    #[test]
    fn only_a_removed_journal_needs_extra() {
        let full = |journal| power_loss(journal, Synchronous::Full);
        assert_eq!(full(Journal::Delete), Loss::LastCommit);
        for journal in [
            Journal::Truncate,
            Journal::Persist,
            Journal::Wal,
            Journal::Waldio,
        ] {
            assert_eq!(full(journal), Loss::Nothing, "{journal}");
        }
        let extra = power_loss(Journal::Delete, Synchronous::Extra);
        assert_eq!(extra, Loss::Nothing);
    }

    #[test]
    fn a_log_without_syncs_loses_commits_and_a_journal_the_database() {
        let normal = |journal| power_loss(journal, Synchronous::Normal);
        assert_eq!(normal(Journal::Wal), Loss::SinceCheckpoint);
        assert_eq!(normal(Journal::Waldio), Loss::SinceCheckpoint);
        assert_eq!(normal(Journal::Truncate), Loss::Database);
        for journal in Journal::ALL {
            assert_eq!(power_loss(journal, Synchronous::Off), Loss::Database);
        }
    }

    #[test]
    fn losing_no_more_holds_for_every_accident() {
        let of = |journal, synchronous| Durability::of(journal, synchronous, None);
        let wal = of(Journal::Wal, Synchronous::Full);
        let delete = of(Journal::Delete, Synchronous::Full);
        assert!(wal.loses_no_more_than(&delete) && !delete.loses_no_more_than(&wal));
        let wal = of(Journal::Wal, Synchronous::Normal);
        let delete = of(Journal::Delete, Synchronous::Normal);
        assert!(wal.loses_no_more_than(&delete) && !delete.loses_no_more_than(&wal));
        // Both lose the database with the power, but only one with the process.
        let memory = of(Journal::Memory, Synchronous::Full);
        let off = of(Journal::Delete, Synchronous::Off);
        assert!(off.loses_no_more_than(&memory) && !memory.loses_no_more_than(&off));
    }

    #[test]
    fn waldio_persistent_asks_for_nothing_of_synchronous() {
        let of = |sync, waldio| Durability::of(Journal::Waldio, sync, Some(waldio)).worst();
        assert_eq!(
            of(Synchronous::Normal, WaldioSync::Persistent),
            Loss::Nothing
        );
        assert_eq!(of(Synchronous::Full, WaldioSync::Group), Loss::LastCommits);
        assert_eq!(
            of(Synchronous::Full, WaldioSync::Normal),
            Loss::SinceCheckpoint
        );
    }

    #[test]
    fn only_a_journal_in_memory_is_lost_with_the_process() {
        for journal in Journal::ALL {
            let crash = Durability::of(journal, Synchronous::Off, None).process_crash;
            let fragile = matches!(journal, Journal::Memory | Journal::Off);
            assert_eq!(crash == Loss::Database, fragile, "{journal}");
        }
    }
}
