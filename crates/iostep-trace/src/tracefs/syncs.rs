//! Which sync call each thread is in.
//!
//! The filesystem's own fsync tracepoints carry the inode; the system calls around them, where
//! the kernel traces these, tell what was called. `sync`, `syncfs` and `sync_file_range` name no
//! filesystem: they count once they did something to ours.

use std::collections::HashMap;

use iostep_model::event::{Event, SyncEnter};
use iostep_model::{FileKey, SyncKey, SyncKind};

#[derive(Clone, Copy, Debug)]
struct Call {
    kind: SyncKind,
    enter_ns: u64,
    /// True once it concerned the traced filesystem.
    ours: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    call: Option<Call>,
    fsync: Option<SyncKey>,
}

/// The sync calls under way.
#[derive(Debug, Default)]
pub(crate) struct Syncs {
    threads: HashMap<u32, Thread>,
}

impl Syncs {
    /// A system call of the sync family was entered.
    pub fn call(&mut self, pid: u32, kind: SyncKind, enter_ns: u64) {
        self.threads.entry(pid).or_default().call = Some(Call {
            kind,
            enter_ns,
            ours: false,
        });
    }

    /// It returned: tells so if it concerned the traced filesystem.
    pub fn call_returned(
        &mut self,
        pid: u32,
        mono_ns: u64,
        result: i64,
        emit: &mut dyn FnMut(Event),
    ) {
        let call = self.threads.remove(&pid).and_then(|thread| thread.call);
        if let Some(call) = call.filter(|call| call.ours) {
            emit(Event::SyncExit {
                mono_ns,
                sync: SyncKey {
                    pid,
                    enter_ns: call.enter_ns,
                },
                result: Some(result),
            });
        }
    }

    /// The system call that the thread is in, if it is one of the sync family.
    pub fn called(&self, pid: u32) -> Option<SyncKind> {
        Some(self.threads.get(&pid)?.call?.kind)
    }

    /// The filesystem's fsync began.
    pub fn fsync(&mut self, enter: SyncEnter, emit: &mut dyn FnMut(Event)) {
        self.threads.entry(enter.sync.pid).or_default().fsync = Some(enter.sync);
        emit(Event::SyncEnter(enter));
    }

    /// The filesystem's fsync ended; returns which it was.
    pub fn fsync_returned(
        &mut self,
        pid: u32,
        mono_ns: u64,
        result: i64,
        emit: &mut dyn FnMut(Event),
    ) -> Option<SyncKey> {
        let thread = self.threads.get_mut(&pid)?;
        let fsync = thread.fsync.take();
        if thread.call.is_none() {
            self.threads.remove(&pid);
        }
        let sync = fsync?;
        emit(Event::SyncExit {
            mono_ns,
            sync,
            result: Some(result),
        });
        Some(sync)
    }

    /// The sync call that the thread is in, now that it did something to the traced filesystem
    /// (to `file`, where that is known). `tgid` is its process.
    pub fn touch(
        &mut self,
        pid: u32,
        tgid: u32,
        file: Option<FileKey>,
        emit: &mut dyn FnMut(Event),
    ) -> Option<SyncKey> {
        let thread = self.threads.get_mut(&pid)?;
        if thread.fsync.is_some() {
            return thread.fsync;
        }
        let call = thread.call.as_mut()?;
        let whole = matches!(call.kind, SyncKind::Sync | SyncKind::Syncfs);
        if !whole && call.kind != SyncKind::SyncFileRange {
            return None;
        }
        let sync = SyncKey {
            pid,
            enter_ns: call.enter_ns,
        };
        if !call.ours {
            call.ours = true;
            emit(Event::SyncEnter(SyncEnter {
                sync,
                tgid,
                kind: call.kind,
                file: file.filter(|_| !whole),
            }));
        }
        Some(sync)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileKey = FileKey::plain(12, 1);

    #[test]
    fn a_syncfs_of_another_filesystem_is_never_told_of() {
        let mut events = Vec::new();
        let mut syncs = Syncs::default();
        syncs.call(7, SyncKind::Syncfs, 100);
        syncs.call_returned(7, 200, 0, &mut |e| events.push(e));
        assert_eq!(events, []);
    }

    #[test]
    fn a_syncfs_of_ours_is_told_of_from_its_beginning_and_once() {
        let mut events = Vec::new();
        let mut syncs = Syncs::default();
        syncs.call(7, SyncKind::Syncfs, 100);
        let key = syncs.touch(7, 7, Some(FILE), &mut |e| events.push(e));
        assert_eq!(key.map(|key| key.enter_ns), Some(100));
        syncs.touch(7, 7, None, &mut |e| events.push(e));
        syncs.call_returned(7, 200, -5, &mut |e| events.push(e));
        let [Event::SyncEnter(enter), Event::SyncExit { result, .. }] = &events[..] else {
            panic!("{events:?}");
        };
        assert_eq!((enter.file, *result), (None, Some(-5)));
    }

    #[test]
    fn io_inside_an_fsync_belongs_to_it_and_io_after_it_does_not() {
        let mut syncs = Syncs::default();
        let sync = SyncKey {
            pid: 7,
            enter_ns: 110,
        };
        syncs.call(7, SyncKind::Fsync, 100);
        assert_eq!(syncs.touch(7, 7, None, &mut |_| ()), None);
        let enter = SyncEnter {
            sync,
            tgid: 7,
            kind: SyncKind::Fsync,
            file: Some(FILE),
        };
        syncs.fsync(enter, &mut |_| ());
        assert_eq!(syncs.touch(7, 7, None, &mut |_| ()), Some(sync));
        syncs.fsync_returned(7, 150, 0, &mut |_| ());
        assert_eq!(syncs.touch(7, 7, None, &mut |_| ()), None);
        assert_eq!(syncs.called(7), Some(SyncKind::Fsync));
    }
}
