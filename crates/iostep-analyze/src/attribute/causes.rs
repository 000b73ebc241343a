//! Which sync call made an I/O necessary.
//!
//! - A bio that the syncing thread itself submits is that call's (all filesystems; this is all of
//!   btrfs's fsync and of ext4's data).
//! - A jbd2 commit is caused by a sync call that was under way when it began and that needs this
//!   very transaction (`i_sync_tid`, `i_datasync_tid`): either condition alone says too much. Of
//!   several such calls the first to enter is named; the rest found the work begun.
//! - An xfs checkpoint is caused by a sync call that forced its CIL sequence before its record
//!   was written.
//! - f2fs writes no log: a bio is the syncing thread's own, but for pages of other files in it.
//! - nilfs2 writes nothing but logs, one at a time: what is written meanwhile is the log's, and its
//!   cause is a call that waited for it, or that built it.
//! - A commit that nobody waits for belongs to the filesystem's own timer: no cause.

use std::collections::BTreeMap;

use iostep_model::event::{Content, Event, FactRef, IoRef, Queue};
use iostep_model::filesystem::Kind;
use iostep_model::manifest::Manifest;
use iostep_model::table::{Commit, Segment, Sync};
use iostep_model::{Class, SyncKey, SyncKind};
use rustc_hash::FxHashMap;

use super::names::Names;
use super::volumes::{self, Places};

/// jbd2 writes its superblock just before it announces a commit.
const SUPERBLOCK_LEAD_NS: u64 = 5_000_000;
/// How far back a call that is still open is looked for: more than the threads of any workload.
const MAX_OVERLAP: usize = 4096;

/// A sync call and what it was seen to need.
#[derive(Debug)]
struct Call {
    key: SyncKey,
    row: Sync,
    /// Which filesystem's; `None` for all.
    volume: Option<u16>,
    needs: Vec<Need>,
}

impl Call {
    fn is_on(&self, volume: u16) -> bool {
        self.volume.is_none_or(|own| own == volume)
    }
}

/// A commit that a call was seen to need, and when.
#[derive(Clone, Copy, Debug)]
struct Need {
    mono_ns: u64,
    volume: u16,
    commit: u64,
}

/// The log of one filesystem.
#[derive(Debug, Default)]
struct Log {
    filesystem: Option<Kind>,
    commits: Vec<Commit>,
    by_commit: FxHashMap<u64, u32>,
    /// Log records in the order of queueing: time and commit, for records that carry none.
    records: Vec<(u64, u64)>,
}

/// The sync calls and commits of a recording.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    calls: Vec<Call>,
    by_key: FxHashMap<SyncKey, u32>,
    /// By volume, and what is in none.
    logs: BTreeMap<u16, Log>,
}

impl Causes {
    /// Collects sync calls and commits and finds each commit's cause.
    pub(super) fn learn(manifest: &Manifest, names: &Names, events: &[Event]) -> Causes {
        let places = Places::of(manifest);
        let mut causes = Causes::default();
        for (volume, at) in volumes::of(manifest).iter().zip(0..) {
            causes.log_mut(at).filesystem = volume.kind();
        }
        for event in events {
            if let Some((volume, fact)) = event.fact() {
                causes.collect(&places, names, (volume, fact));
            } else if let Some((device, IoRef::Queue(queue))) = event.io() {
                let volume = places.volume_at(device, queue.sector);
                causes.collect_log_record(&places, volume, queue);
            } else if let Event::SyncExit {
                mono_ns,
                sync,
                result,
            } = event
                && let Some(call) = causes.call_mut(*sync)
            {
                call.row.exit_ns = Some(*mono_ns);
                call.row.result = *result;
            }
        }
        causes.calls.sort_by_key(|call| call.key.enter_ns);
        let places = causes.calls.iter().zip(0..);
        causes.by_key = places.map(|(call, index)| (call.key, index)).collect();
        for (volume, log) in &mut causes.logs {
            log.find_jbd2_causes(*volume, &causes.calls);
            log.find_xfs_causes(*volume, &causes.calls);
        }
        causes
    }

    fn log_mut(&mut self, volume: u16) -> &mut Log {
        self.logs.entry(volume).or_default()
    }

    fn collect(&mut self, places: &Places<'_>, names: &Names, (volume, fact): (u16, FactRef<'_>)) {
        match fact {
            FactRef::SyncEnter(enter) => {
                // Of one filesystem, or of all of several.
                let of_all = enter.kind == SyncKind::Sync && places.are_several();
                self.by_key.insert(enter.sync, self.calls.len() as u32);
                self.calls.push(Call {
                    key: enter.sync,
                    row: Sync {
                        enter_ns: enter.sync.enter_ns,
                        exit_ns: None,
                        kind: enter.kind,
                        process: names.process(enter.sync.pid, enter.sync.enter_ns),
                        file: enter.file.and_then(|file| names.file_of(volume, file)),
                        result: None,
                        commit: None,
                        volume: places.row_of(volume).filter(|_| !of_all),
                    },
                    volume: (!of_all).then_some(volume),
                    needs: Vec::new(),
                });
            }
            FactRef::SyncNeeds {
                mono_ns,
                sync,
                commit,
            } => {
                if let Some(call) = self.call_mut(sync) {
                    call.needs.push(Need {
                        mono_ns,
                        volume,
                        commit,
                    });
                    // Of several filesystems each counts its own.
                    if call.volume == Some(volume) {
                        call.row.commit = call.row.commit.max(Some(commit));
                    }
                }
            }
            FactRef::CommitStart { mono_ns, commit } => {
                self.log_mut(volume)
                    .start_commit(commit, mono_ns, places.row_of(volume));
            }
            FactRef::CommitEnd { mono_ns, commit } => {
                let log = self.log_mut(volume);
                if let Some(index) = log.by_commit.get(&commit) {
                    log.commits[*index as usize].end_ns = Some(mono_ns);
                }
            }
            _ => {}
        }
    }

    fn call_mut(&mut self, key: SyncKey) -> Option<&mut Call> {
        let index = *self.by_key.get(&key)?;
        self.calls.get_mut(index as usize)
    }

    fn collect_log_record(&mut self, places: &Places<'_>, volume: u16, queue: &Queue) {
        for segment in &queue.segments {
            if let Content::XfsLog {
                sequence: Some(sequence),
            } = segment.content
            {
                let log = self.log_mut(volume);
                log.start_commit(sequence, queue.mono_ns, places.row_of(volume));
                log.records.push((queue.mono_ns, sequence));
            }
        }
    }

    /// The row of a sync call.
    pub(crate) fn sync(&self, key: SyncKey) -> Option<u32> {
        self.by_key.get(&key).copied()
    }

    /// The sync call that made a piece of a bio necessary. Fills in the commit of log records
    /// that carry none themselves.
    pub(crate) fn of_piece(
        &self,
        names: &Names,
        queue: &Queue,
        piece: &mut Segment,
    ) -> Option<u32> {
        let own = queue.sync.and_then(|key| self.sync(key));
        // Where there is one filesystem, rows have no volume.
        let volume = piece.volume.unwrap_or(0);
        let is_known = piece.volume.is_some() || self.logs.len() == 1;
        let Some(log) = self.logs.get(&volume).filter(|_| is_known) else {
            return own;
        };
        if piece.class == Class::LogRecord && piece.commit.is_none() {
            piece.commit = log.next_record(queue.mono_ns);
        }
        if piece.class == Class::LogSuperblock && piece.commit.is_none() {
            piece.commit = log.commit_about_to_start(names, queue);
        }
        if log.filesystem == Some(Kind::F2fs) {
            let checkpoints = names.is_f2fs_checkpoint(queue.pid, queue.mono_ns);
            return self.f2fs_call((volume, own), checkpoints, piece, queue.mono_ns);
        }
        if log.filesystem == Some(Kind::Nilfs2)
            && queue.operation.is_write()
            && piece.class != Class::Superblock
        {
            piece.commit = log.commit_at(queue.mono_ns).map(|commit| commit.id);
        }
        if own.is_some() {
            return own;
        }
        if let Some(commit) = piece.commit.and_then(|id| log.by_commit.get(&id)) {
            return log.commits[*commit as usize].cause;
        }
        if names.is_jbd2(queue.pid, queue.mono_ns) {
            return log.commit_at(queue.mono_ns).and_then(|c| c.cause);
        }
        if log.filesystem == Some(Kind::Btrfs) {
            return self.btrfs_worker(volume, piece, queue.mono_ns);
        }
        None
    }

    /// btrfs hands checksumming and submission to workers: the call is the one under way for the
    /// same file, or for its log.
    fn btrfs_worker(&self, volume: u16, piece: &Segment, mono_ns: u64) -> Option<u32> {
        let is_log = piece.class == Class::TreeLog;
        if piece.file.is_none() && !is_log {
            return None;
        }
        under_way(&self.calls, volume, mono_ns)
            .find(|(_, call)| is_log || call.row.file == piece.file)
            .map(|(index, _)| index)
    }

    /// f2fs collects pages in one bio for all files: whoever needs one of them submits them all
    /// (`f2fs_submit_merged_write_cond`, fs/f2fs/data.c). What is another file's belongs to the
    /// call under way for that file. Everything else is written by a checkpoint, in the thread of
    /// the call that needs it, or in a thread of its own (`-o checkpoint_merge`).
    fn f2fs_call(
        &self,
        (volume, own): (u16, Option<u32>),
        checkpoints: bool,
        piece: &Segment,
        mono_ns: u64,
    ) -> Option<u32> {
        let of_file = |file: u32| {
            under_way(&self.calls, volume, mono_ns)
                .find(|(_, call)| call.row.file == Some(file))
                .map(|(index, _)| index)
        };
        if checkpoints {
            return under_way(&self.calls, volume, mono_ns)
                .next()
                .map(|(index, _)| index);
        }
        let called_on = own.and_then(|index| self.calls[index as usize].row.file);
        match (piece.class, piece.file) {
            (_, file) if own.is_some() && (called_on.is_none() || called_on == file) => own,
            (Class::FileData, Some(file)) => of_file(file),
            (Class::NodeBlock, Some(file)) => of_file(file).or(own),
            _ => own,
        }
    }

    pub(super) fn into_tables(self) -> (Vec<Sync>, Vec<Commit>) {
        let syncs = self.calls.into_iter().map(|call| call.row).collect();
        let mut commits: Vec<Commit> = self
            .logs
            .into_values()
            .flat_map(|log| log.commits)
            .collect();
        // Of one filesystem they stay in the order in which they were told.
        if commits.iter().any(|commit| commit.volume.is_some()) {
            commits.sort_by_key(|commit| commit.start_ns);
        }
        (syncs, commits)
    }
}

impl Log {
    fn start_commit(&mut self, id: u64, start_ns: u64, volume: Option<u16>) {
        self.by_commit.entry(id).or_insert_with(|| {
            self.commits.push(Commit {
                id,
                start_ns,
                end_ns: None,
                cause: None,
                volume,
            });
            (self.commits.len() - 1) as u32
        });
    }

    fn find_jbd2_causes(&mut self, volume: u16, calls: &[Call]) {
        let mut waiting: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
        for (index, call) in calls.iter().enumerate() {
            for need in call.needs.iter().filter(|need| need.volume == volume) {
                waiting.entry(need.commit).or_default().push(index as u32);
            }
        }
        for commit in &mut self.commits {
            let under_way = |index: &&u32| {
                let call = &calls[**index as usize].row;
                // nilfs2 tells of those alone that a log answers, and of io_uring's not before.
                (self.filesystem == Some(Kind::Nilfs2) || call.enter_ns <= commit.start_ns)
                    && call.exit_ns.is_none_or(|exit| exit >= commit.start_ns)
            };
            let waiters = waiting.get(&commit.id);
            commit.cause = waiters
                .and_then(|calls| calls.iter().find(under_way).copied())
                .or_else(|| whole_filesystem_sync(calls, volume, commit.start_ns));
        }
    }

    /// xfs tells the need before the record is written, and a record can end several
    /// checkpoints: the call may need any sequence since the last record.
    fn find_xfs_causes(&mut self, volume: u16, calls: &[Call]) {
        let mut before = 0;
        for (queued_ns, sequence) in &self.records {
            let asked = |call: &Call| {
                call.needs.iter().any(|need| {
                    need.volume == volume
                        && need.mono_ns <= *queued_ns
                        && need.commit > before
                        && need.commit <= *sequence
                })
            };
            let caused = under_way(calls, volume, *queued_ns)
                .find(|(_, call)| asked(call))
                .map(|(index, _)| index);
            let commit = self.by_commit.get(sequence).copied();
            if let Some(commit) = commit.map(|index| &mut self.commits[index as usize]) {
                commit.cause = caused.or(commit.cause);
            }
            before = before.max(*sequence);
        }
    }

    /// The checkpoint whose commit record comes next.
    fn next_record(&self, mono_ns: u64) -> Option<u64> {
        let after = self.records.partition_point(|(at, _)| *at <= mono_ns);
        self.records.get(after).map(|(_, sequence)| *sequence)
    }

    fn commit_about_to_start(&self, names: &Names, queue: &Queue) -> Option<u64> {
        if !names.is_jbd2(queue.pid, queue.mono_ns) {
            return None;
        }
        if let Some(commit) = self.commit_at(queue.mono_ns) {
            return Some(commit.id);
        }
        let after = self
            .commits
            .partition_point(|commit| commit.start_ns <= queue.mono_ns);
        let next = self.commits.get(after)?;
        (next.start_ns - queue.mono_ns <= SUPERBLOCK_LEAD_NS).then_some(next.id)
    }

    /// The jbd2 commit under way at a time.
    fn commit_at(&self, mono_ns: u64) -> Option<&Commit> {
        let after = self
            .commits
            .partition_point(|commit| commit.start_ns <= mono_ns);
        let commit = self.commits.get(after.checked_sub(1)?)?;
        commit
            .end_ns
            .is_none_or(|end| end >= mono_ns)
            .then_some(commit)
    }
}

/// The calls under way on a filesystem at a time, the first to enter first.
fn under_way(calls: &[Call], volume: u16, mono_ns: u64) -> impl Iterator<Item = (u32, &Call)> {
    let entered = calls.partition_point(|call| call.row.enter_ns <= mono_ns);
    // Few calls overlap: the open ones are among the last that entered.
    let from = entered.saturating_sub(MAX_OVERLAP);
    let indexed = (from as u32..).zip(&calls[from..entered]);
    indexed.filter(move |(_, call)| {
        call.is_on(volume) && call.row.exit_ns.is_none_or(|exit| exit >= mono_ns)
    })
}

/// `sync` and `syncfs` commit whatever is there, without naming it.
fn whole_filesystem_sync(calls: &[Call], volume: u16, mono_ns: u64) -> Option<u32> {
    under_way(calls, volume, mono_ns)
        .find(|(_, call)| matches!(call.row.kind, SyncKind::Sync | SyncKind::Syncfs))
        .map(|(index, _)| index)
}

#[cfg(test)]
mod tests;
