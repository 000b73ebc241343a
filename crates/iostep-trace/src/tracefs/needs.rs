//! Which commit of the log each sync call waits for.
//!
//! ext4 keeps in every inode the transaction that last changed it (`i_sync_tid`) and the last
//! one that changed more than its times (`i_datasync_tid`), and fsync waits for the one or the
//! other (`ext4_fsync_journal`, fs/ext4/fsync.c). Neither is in a tracepoint, but the events
//! that set them are: a thread starts a handle of a transaction, and marks the inode dirty or
//! maps written blocks inside it (`ext4_update_inode_fsync_trans`, fs/ext4/ext4_jbd2.h).

use std::collections::HashMap;
use std::ops::Range;

use iostep_model::SyncKey;

/// Above this the tables start anew.
const MAX_KNOWN: usize = 1 << 20;

#[derive(Clone, Copy, Debug, Default)]
struct Changed {
    sync_tid: Option<u64>,
    datasync_tid: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    inode: u64,
    datasync: bool,
}

/// Transactions of threads and inodes.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    /// The code of `ext4_dirty_inode`, which only changes times.
    times_only: Option<Range<u64>>,
    handles: HashMap<u32, u64>,
    inodes: HashMap<u64, Changed>,
    waiting: HashMap<SyncKey, Waiting>,
}

impl Needs {
    /// Nothing known yet. `times_only` holds the callers that change an inode's times only.
    pub fn new(times_only: Option<Range<u64>>) -> Needs {
        Needs {
            times_only,
            ..Needs::default()
        }
    }

    /// A thread started (or restarted) a handle.
    pub fn handle(&mut self, pid: u32, tid: u64) {
        if self.handles.len() >= MAX_KNOWN {
            self.handles.clear();
        }
        self.handles.insert(pid, tid);
    }

    /// A thread marked an inode dirty, from the code at `caller`.
    pub fn marked(&mut self, pid: u32, inode: u64, caller: u64) {
        let times_only = self.times_only.as_ref();
        let times_only = times_only.is_some_and(|code| code.contains(&caller));
        let tid = self.handles.get(&pid).copied();
        let changed = self.changed(inode);
        changed.sync_tid = tid;
        if !times_only {
            changed.datasync_tid = tid;
        }
    }

    /// A thread made blocks of a file readable as written. Outside of a handle that is a mere
    /// look-up; then its last handle is an old one, which changes nothing.
    pub fn mapped(&mut self, pid: u32, inode: u64) {
        let tid = self.handles.get(&pid).copied();
        let changed = self.changed(inode);
        changed.datasync_tid = changed.datasync_tid.max(tid);
        changed.sync_tid = changed.sync_tid.max(tid);
    }

    fn changed(&mut self, inode: u64) -> &mut Changed {
        if self.inodes.len() >= MAX_KNOWN {
            self.inodes.clear();
        }
        self.inodes.entry(inode).or_default()
    }

    /// The inode went away.
    pub fn gone(&mut self, inode: u64) {
        self.inodes.remove(&inode);
    }

    /// A sync call of one file entered.
    pub fn enter(&mut self, sync: SyncKey, inode: u64, datasync: bool) {
        self.waiting.insert(sync, Waiting { inode, datasync });
    }

    /// It left.
    pub fn exit(&mut self, sync: SyncKey) {
        self.waiting.remove(&sync);
    }

    /// The sync calls under way that need the commit that begins now.
    pub fn of_commit(&self, tid: u64) -> Vec<SyncKey> {
        let needs = |waiting: &Waiting| {
            let changed = self.inodes.get(&waiting.inode)?;
            if waiting.datasync {
                changed.datasync_tid
            } else {
                changed.sync_tid
            }
        };
        let needing = self.waiting.iter().filter(|(_, w)| needs(w) == Some(tid));
        let mut needing: Vec<SyncKey> = needing.map(|(sync, _)| *sync).collect();
        needing.sort_by_key(|sync| (sync.enter_ns, sync.pid));
        needing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: u64 = 0x1010;
    const SIZE: u64 = 0x2000;

    fn key(pid: u32) -> SyncKey {
        SyncKey { pid, enter_ns: 1 }
    }

    fn needs() -> Needs {
        let mut needs = Needs::new(Some(0x1000..0x1080));
        needs.handle(100, 7);
        needs.handle(200, 8);
        needs
    }

    #[test]
    fn fsync_needs_the_last_change_and_fdatasync_the_last_of_size_or_blocks() {
        let mut needs = needs();
        needs.marked(100, 12, SIZE);
        needs.marked(200, 12, TIMES);
        needs.enter(key(1), 12, false);
        needs.enter(key(2), 12, true);
        assert_eq!(needs.of_commit(8), [key(1)]);
        assert_eq!(needs.of_commit(7), [key(2)]);
        needs.exit(key(1));
        assert_eq!(needs.of_commit(8), []);
    }

    #[test]
    fn another_file_in_the_same_transaction_does_not_make_a_need() {
        let mut needs = needs();
        needs.marked(100, 12, SIZE);
        needs.enter(key(1), 13, false);
        assert_eq!(needs.of_commit(7), []);
    }

    #[test]
    fn new_blocks_count_as_data_and_an_old_handle_changes_nothing() {
        let mut needs = needs();
        needs.enter(key(1), 12, true);
        needs.mapped(200, 12);
        assert_eq!(needs.of_commit(8), [key(1)]);
        needs.mapped(100, 12);
        assert_eq!(needs.of_commit(8), [key(1)]);
    }

    #[test]
    fn a_reused_inode_number_needs_nothing_from_before() {
        let mut needs = needs();
        needs.marked(100, 12, SIZE);
        needs.gone(12);
        needs.enter(key(1), 12, false);
        assert_eq!(needs.of_commit(7), []);
    }
}
