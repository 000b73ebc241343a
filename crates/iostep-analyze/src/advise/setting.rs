//! How a database is set up.

use iostep_model::bench::WaldioSync;
use iostep_model::durability::{Durability, Loss};
use iostep_model::pragma::{Journal, Synchronous};
use serde::Serialize;

use super::mount_option::MountOption;

/// The setting of `PRAGMA wal_autocheckpoint` that SQLite has by itself, pages.
pub(super) const DEFAULT_CHECKPOINT_PAGES: u32 = 1000;

/// Everything about a database and its filesystem that is measured against something else.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Setting {
    /// `PRAGMA journal_mode`.
    pub journal: Journal,
    /// `PRAGMA synchronous`.
    pub synchronous: Synchronous,
    /// `PRAGMA waldio_sync`, of [`Journal::Waldio`]; `None` for its own choice.
    pub waldio_sync: Option<WaldioSync>,
    /// `PRAGMA wal_autocheckpoint`, of a log.
    pub checkpoint_pages: u32,
    /// `PRAGMA page_size`, bytes.
    pub page_bytes: u32,
    /// An option that the filesystem is mounted with beside those that it has.
    pub mount: Option<MountOption>,
}

impl Setting {
    /// With SQLite's own choices for what is not named.
    pub fn new(journal: Journal, synchronous: Synchronous, page_bytes: u32) -> Setting {
        Setting {
            journal,
            synchronous,
            waldio_sync: None,
            checkpoint_pages: DEFAULT_CHECKPOINT_PAGES,
            page_bytes,
            mount: None,
        }
    }

    /// What a commit can still lose.
    pub fn durability(&self) -> Durability {
        let database = Durability::of(self.journal, self.synchronous, self.waldio_sync);
        let mount = self.mount.map_or(Loss::Nothing, |option| option.loss);
        Durability {
            process_crash: database.process_crash,
            os_crash: database.os_crash.max(mount),
            power_loss: database.power_loss.max(mount),
        }
    }

    /// True if commits or checkpoints are synced, so that what they write is counted with them.
    pub fn syncs(&self) -> bool {
        self.synchronous != Synchronous::Off
    }

    /// True if both ask SQLite for the same: what only a log has does not count without one.
    pub fn is_same(&self, other: &Setting) -> bool {
        let relevant = |setting: &Setting| Setting {
            checkpoint_pages: match setting.journal.is_log() {
                true => setting.checkpoint_pages,
                false => 0,
            },
            waldio_sync: (setting.journal == Journal::Waldio)
                .then(|| setting.waldio_sync.unwrap_or(WaldioSync::Full)),
            ..*setting
        };
        relevant(self) == relevant(other)
    }

    /// The name shown to people: `wal, full, checkpoint 4000`.
    pub fn name(&self) -> String {
        let mut words = vec![self.journal.to_string()];
        match self.waldio_sync {
            Some(sync) => words.push(sync.to_string()),
            None => words.push(self.synchronous.to_string()),
        }
        if self.journal.is_log() && self.checkpoint_pages != DEFAULT_CHECKPOINT_PAGES {
            words.push(format!("checkpoint {}", self.checkpoint_pages));
        }
        words.join(", ")
    }

    /// What `iostep bench sqlite` is asked for.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            format!("--journal={}", self.journal),
            format!("--synchronous={}", self.synchronous),
            format!("--page-size={}", self.page_bytes),
        ];
        if self.journal.is_log() {
            arguments.push(format!("--checkpoint={}", self.checkpoint_pages));
        }
        if let (Journal::Waldio, Some(sync)) = (self.journal, self.waldio_sync) {
            arguments.push(format!("--waldio-sync={sync}"));
        }
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_no_difference_without_a_log() {
        let delete = Setting::new(Journal::Delete, Synchronous::Full, 4096);
        let wal = Setting::new(Journal::Wal, Synchronous::Full, 4096);
        let more = |setting| Setting {
            checkpoint_pages: 4000,
            ..setting
        };
        assert!(delete.is_same(&more(delete)) && !wal.is_same(&more(wal)));
        assert!(!delete.is_same(&wal));
    }

    #[test]
    fn the_own_choice_of_waldio_is_full() {
        let own = Setting::new(Journal::Waldio, Synchronous::Full, 4096);
        let full = Setting {
            waldio_sync: Some(WaldioSync::Full),
            ..own
        };
        assert!(own.is_same(&full));
        assert_eq!(own.name(), "waldio, full");
        assert!(!own.arguments().iter().any(|a| a.starts_with("--waldio")));
        assert!(full.arguments().contains(&"--waldio-sync=full".to_owned()));
    }
}
