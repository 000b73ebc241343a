//! One database of a recording while it is read.

use std::collections::{BTreeMap, HashSet};

use iostep_model::pragma::{Journal, Synchronous};
use iostep_model::quantile::nearest_rank;
use iostep_model::syscall::ThreadId;

use super::{Habit, Role};

/// Length of a frame's header, and where the first is (wal.c).
const FRAME_HEADER_BYTES: u64 = 24;
const FIRST_FRAME: i64 = 32;
/// Length of the zeros over a journal's header (`zeroJournalHdr`).
const ZEROED_BYTES: u64 = 28;

/// Transactions of one kind.
#[derive(Debug, Default)]
struct Ended {
    /// How many changed so many pages.
    by_pages: BTreeMap<u64, u64>,
    /// How many had no sync, one, or more of the journal before the database was written; how
    /// many were not synced or were, of a log.
    by_syncs: [u64; 3],
}

impl Ended {
    fn add(&mut self, pages: u64, syncs: usize) {
        *self.by_pages.entry(pages).or_default() += 1;
        self.by_syncs[syncs.min(2)] += 1;
    }

    fn count(&self) -> u64 {
        self.by_pages.values().sum()
    }

    fn median_pages(&self) -> Option<u64> {
        let pages = self.by_pages.iter().map(|(pages, times)| (*pages, *times));
        let [median] = nearest_rank(pages, self.count(), [500]);
        (self.count() > 0).then_some(median)
    }

    /// What most of them did.
    fn synchronous(&self) -> Synchronous {
        let [none, one, more] = self.by_syncs;
        match () {
            () if more >= one && more >= none => Synchronous::Full,
            () if one >= none => Synchronous::Normal,
            () => Synchronous::Off,
        }
    }
}

/// What was seen of a database.
#[derive(Debug, Default)]
pub(super) struct Tracked {
    removed: Ended,
    cut: Ended,
    zeroed: Ended,
    unlocked: Ended,
    synced_frames: Ended,
    writers: HashSet<ThreadId>,
    written_bytes: u64,
    syncs: u64,
    /// Of the transaction under way: pages of the database by their offset, bytes of the journal,
    /// its syncs before the database was written, frames of the log, and those not synced yet.
    pages: HashSet<i64>,
    journal_bytes: u64,
    early_syncs: usize,
    frames: u64,
    unsynced_frames: u64,
    log_was_synced: bool,
}

impl Tracked {
    pub fn written(&mut self, role: Role, offset: i64, bytes: u64, thread: ThreadId) {
        self.written_bytes = self.written_bytes.saturating_add(bytes);
        match role {
            Role::Main => {
                self.pages.insert(offset);
            }
            Role::Journal if bytes == ZEROED_BYTES && offset == 0 => {
                self.end_journal(|tracked| &mut tracked.zeroed);
            }
            Role::Journal => self.journal_bytes += bytes,
            Role::Log => {
                let is_frame = bytes == FRAME_HEADER_BYTES && offset >= FIRST_FRAME;
                self.frames += u64::from(is_frame);
                self.unsynced_frames += u64::from(is_frame);
            }
            Role::Shared => return,
        }
        self.writers.insert(thread);
    }

    pub fn synced(&mut self, role: Role) {
        self.syncs += 1;
        match role {
            // What follows the end of a transaction is that one's.
            Role::Journal if self.journal_bytes > 0 && self.pages.is_empty() => {
                self.early_syncs += 1;
            }
            Role::Log if self.unsynced_frames > 0 => {
                self.synced_frames.add(self.unsynced_frames, 2);
                self.unsynced_frames = 0;
                self.log_was_synced = true;
            }
            _ => {}
        }
    }

    /// The journal was cut to nothing.
    pub fn cut(&mut self) {
        self.end_journal(|tracked| &mut tracked.cut);
    }

    /// The journal was removed.
    pub fn removed(&mut self) {
        self.end_journal(|tracked| &mut tracked.removed);
    }

    fn end_journal(&mut self, kind: impl FnOnce(&mut Tracked) -> &mut Ended) {
        let (pages, syncs) = (self.pages.len() as u64, self.early_syncs);
        if pages > 0 && self.journal_bytes > 0 {
            kind(self).add(pages, syncs);
        }
        self.pages.clear();
        self.journal_bytes = 0;
        self.early_syncs = 0;
    }

    /// The writer's lock of the log was given back.
    pub fn unlocked(&mut self) {
        if self.frames > 0 {
            let syncs = if self.log_was_synced { 2 } else { 1 };
            self.unlocked.add(self.frames, syncs);
        }
        self.frames = 0;
        self.log_was_synced = false;
        // Pages of the database are a checkpoint's here.
        self.pages.clear();
    }

    /// What that amounts to; `None` without a transaction.
    pub fn habit(&self, path: &[u8]) -> Option<Habit> {
        let log = match self.unlocked.count() {
            0 => &self.synced_frames,
            _ => &self.unlocked,
        };
        let kinds = [
            (Journal::Delete, &self.removed),
            (Journal::Truncate, &self.cut),
            (Journal::Persist, &self.zeroed),
            (Journal::Wal, log),
        ];
        let (journal, ended) = kinds.into_iter().max_by_key(|(_, ended)| ended.count())?;
        let transactions = ended.count();
        if transactions == 0 {
            return None;
        }
        let synchronous = match (journal, self.syncs) {
            (_, 0) => Synchronous::Off,
            _ => ended.synchronous(),
        };
        let each = |amount: u64| amount as f64 / transactions as f64;
        Some(Habit {
            database: String::from_utf8_lossy(path).into_owned(),
            journal: Some(journal),
            synchronous: Some(synchronous),
            transactions,
            pages_per_transaction: ended.median_pages(),
            written_bytes_per_transaction: each(self.written_bytes),
            syncs_per_transaction: each(self.syncs),
            threads: u32::try_from(self.writers.len()).unwrap_or(u32::MAX).max(1),
        })
    }
}
