//! From records to the model's events.

use std::collections::HashMap;

use iostep_model::event::{
    Completion, Content, Event, Extent, Queue, Segment, SyncEnter, Transfer,
};
use iostep_model::{Operation, SyncKey, SyncKind};

use crate::sums::Sums;
use crate::tracefs::files::{Files, last_freed};
use crate::tracefs::flush::Flushes;
use crate::tracefs::log::Log;
use crate::tracefs::needs::Needs;
use crate::tracefs::processes::Processes;
use crate::tracefs::seen::{Block, OfFile, OfSync, OfTask, Piece, Range, Seen};
use crate::tracefs::sums::{Point, Tally};
use crate::tracefs::syncs::Syncs;
use crate::tracefs::writes::{DirtyRange, Writes};

/// The table of look-ups starts anew above this: they are told again then.
const MAX_CACHED: usize = 1 << 16;

/// One decoded record: when, by which thread, what.
pub(crate) type Record = (u64, u32, Seen);

/// Keeps what one record needs to know of those before it.
#[derive(Debug)]
pub(crate) struct Translator {
    processes: Processes,
    files: Files,
    syncs: Syncs,
    flushes: Flushes,
    tally: Tally,
    needs: Needs,
    log: Option<Log>,
    /// The system calls of the sync family are recorded.
    syscalls: bool,
    /// Only a partition is traced.
    partition: bool,
    looked: HashMap<u64, Piece>,
    writes: Writes,
    /// fsyncs submitted to io_uring that no worker began yet, by process.
    uring_fsyncs: HashMap<u32, u32>,
}

impl Translator {
    pub fn new(
        processes: Processes,
        files: Files,
        needs: Needs,
        log: Option<Log>,
        syscalls: bool,
        partition: bool,
    ) -> Translator {
        Translator {
            processes,
            files,
            syncs: Syncs::default(),
            flushes: Flushes::default(),
            tally: Tally::default(),
            needs,
            log,
            syscalls,
            partition,
            looked: HashMap::new(),
            writes: Writes::default(),
            uring_fsyncs: HashMap::new(),
        }
    }

    /// Sums over every record so far.
    pub fn sums(&self) -> Sums {
        self.tally.sums()
    }

    /// Tells what files are called at the end of the trace.
    pub fn finish(&mut self, mono_ns: u64, emit: &mut dyn FnMut(Event)) {
        self.files.end_batch(mono_ns, emit);
        self.files.finish(mono_ns, emit);
    }

    /// Translates the records of one drain, in the order of time.
    pub fn batch(&mut self, records: Vec<Record>, emit: &mut dyn FnMut(Event)) {
        let freed = records.iter().filter_map(|(mono_ns, _, seen)| match seen {
            Seen::File(OfFile::Gone(inode)) => Some((*mono_ns, *inode)),
            _ => None,
        });
        self.files.begin_batch(last_freed(freed));
        if self.looked.len() > MAX_CACHED {
            self.looked.clear();
        }
        if self.uring_fsyncs.len() > MAX_CACHED {
            self.uring_fsyncs.clear();
        }
        let end_ns = records.last().map(|(mono_ns, ..)| *mono_ns);
        for (mono_ns, pid, seen) in records {
            self.record(mono_ns, pid, seen, emit);
        }
        if let Some(end_ns) = end_ns {
            self.files.end_batch(end_ns, emit);
        }
        if let Some(log) = &mut self.log {
            log.close();
        }
    }

    fn record(&mut self, mono_ns: u64, pid: u32, seen: Seen, emit: &mut dyn FnMut(Event)) {
        match seen {
            Seen::Block(block) => self.block(mono_ns, pid, block, emit),
            Seen::File(file) => self.file(mono_ns, pid, file, emit),
            Seen::Sync(sync) => self.sync(mono_ns, pid, sync, emit),
            Seen::Task(OfTask::New(child, same_process, comm)) => {
                self.processes.made(pid, child, same_process, comm);
            }
            Seen::Task(OfTask::Renamed(renamed, comm)) => {
                self.processes.renamed(renamed.unwrap_or(pid), comm);
            }
        }
    }

    fn block(&mut self, mono_ns: u64, pid: u32, block: Block, emit: &mut dyn FnMut(Event)) {
        match block {
            Block::Queue(range) => self.queue(mono_ns, pid, range, emit),
            Block::Issue(range) => self.issue(mono_ns, range, emit),
            Block::Requeue(range) => {
                self.tally.add(Point::Requeued, &range, true);
                emit(Event::Requeue(transfer(mono_ns, range)));
            }
            Block::Complete(range, errno) => self.complete(mono_ns, range, errno, emit),
            Block::Split(sector) => {
                self.tally.split();
                emit(Event::Split { mono_ns, sector });
            }
            Block::Merge => self.tally.merge(),
        }
    }

    fn file(&mut self, mono_ns: u64, pid: u32, file: OfFile, emit: &mut dyn FnMut(Event)) {
        match file {
            OfFile::Mapped(piece, written) => {
                if written {
                    self.needs.mapped(pid, piece.inode);
                }
                self.mapped(mono_ns, piece, emit);
            }
            OfFile::Looked(piece) => {
                let known = self.looked.get(&piece.inode);
                if !known.is_some_and(|known| contains(known, &piece)) {
                    self.mapped(mono_ns, piece, emit);
                }
            }
            OfFile::Freed(fs_block, blocks) => freed(mono_ns, fs_block, blocks, emit),
            OfFile::Write(part) => {
                let told = self.writes.wrote(mono_ns, pid, part);
                self.dirty(mono_ns, pid, told, emit);
            }
            // Write-back that gives up on a folio makes it dirty again, but writes nothing to it.
            OfFile::Folio(..) if self.processes.is_kernel(pid) => {}
            OfFile::Folio(inode, page) => {
                let told = self.writes.folio(mono_ns, pid, inode, page);
                self.dirty(mono_ns, pid, told, emit);
            }
            OfFile::Born {
                inode,
                parent,
                mode,
            } => {
                self.files.mention(parent, mono_ns, emit);
                self.files.born(inode, parent, mode, pid, mono_ns, emit);
            }
            OfFile::Gone(inode) => {
                self.looked.remove(&inode);
                self.writes.gone(inode);
                self.needs.gone(inode);
                self.files.gone(inode, mono_ns, emit);
            }
        }
    }

    fn sync(&mut self, mono_ns: u64, pid: u32, sync: OfSync, emit: &mut dyn FnMut(Event)) {
        match sync {
            OfSync::FsyncEnter { inode, datasync } => {
                self.fsync(mono_ns, pid, inode, datasync, emit);
            }
            OfSync::FsyncExit(result) => {
                if let Some(sync) = self.syncs.fsync_returned(pid, mono_ns, result, emit) {
                    self.needs.exit(sync);
                }
            }
            OfSync::SyscallEnter(kind) => self.syncs.call(pid, kind, mono_ns),
            OfSync::SyscallExit(result) => self.syncs.call_returned(pid, mono_ns, result, emit),
            OfSync::SyncFs => self.touch(mono_ns, pid, None, emit),
            OfSync::Writepages(inode) => self.touch(mono_ns, pid, Some(inode), emit),
            OfSync::CommitStart(commit) => {
                for sync in self.needs.of_commit(commit) {
                    emit(Event::SyncNeeds {
                        mono_ns,
                        sync,
                        commit,
                    });
                }
                self.commit(Some(commit));
                emit(Event::CommitStart { mono_ns, commit });
            }
            OfSync::CommitEnd(commit) => {
                self.commit(None);
                emit(Event::CommitEnd { mono_ns, commit });
            }
            OfSync::Handle(tid) => self.needs.handle(pid, tid),
            OfSync::Marked(inode, caller) => self.needs.marked(pid, inode, caller),
            OfSync::UringFsync => {
                let tgid = self.processes.mention(pid, mono_ns, emit);
                *self.uring_fsyncs.entry(tgid).or_default() += 1;
            }
        }
    }

    /// A disk's sector 0 lies in no partition; its filter lets it through for flushes' sake.
    fn elsewhere(&self, range: &Range) -> bool {
        self.partition && range.sector == 0 && range.bytes > 0
    }

    fn queue(&mut self, mono_ns: u64, pid: u32, range: Range, emit: &mut dyn FnMut(Event)) {
        if self.elsewhere(&range) {
            return;
        }
        self.flushes.queued(&range);
        if range.operation.is_write() {
            self.writes.bio();
        }
        self.tally.add(Point::Queued, &range, true);
        let tgid = self.processes.mention(pid, mono_ns, emit);
        let sync = self.syncs.touch(pid, tgid, None, emit);
        emit(Event::Queue(Queue {
            mono_ns,
            sector: range.sector,
            bytes: range.bytes,
            operation: range.operation,
            flags: range.flags,
            pid,
            tgid,
            sync,
            segments: self.segments(&range),
        }));
    }

    /// The log's blocks can be read; of all others only the length is known.
    fn segments(&mut self, range: &Range) -> Vec<Segment> {
        if range.bytes == 0 {
            return Vec::new();
        }
        let log = self.log.as_mut().filter(|_| range.operation.is_write());
        let logged = log.and_then(|log| log.segments(range.sector, range.bytes));
        logged.unwrap_or_else(|| {
            vec![Segment {
                bytes: range.bytes,
                content: Content::Unknown,
                dirtier: None,
            }]
        })
    }

    fn issue(&mut self, mono_ns: u64, range: Range, emit: &mut dyn FnMut(Event)) {
        if !self.elsewhere(&range) {
            self.flushes.issued(&range);
            self.tally.add(Point::Issued, &range, true);
            emit(Event::Issue(transfer(mono_ns, range)));
        }
    }

    fn complete(&mut self, mono_ns: u64, range: Range, errno: i32, emit: &mut dyn FnMut(Event)) {
        if self.elsewhere(&range) {
            return;
        }
        let in_flush_sequence = self.flushes.in_sequence(&range);
        let ends = range.operation == Operation::Flush || !in_flush_sequence;
        self.tally.add(Point::Completed, &range, ends);
        // Of a bio that only flushes, nothing tells which partition it was for; the kernel counts it
        // for its own. Its flush is the disk's, and counted there.
        if self.partition && range.sector == 0 && range.operation != Operation::Flush {
            self.tally.doubt(&range);
        }
        emit(Event::Complete(Completion {
            transfer: transfer(mono_ns, range),
            status: status(errno),
            in_flush_sequence,
        }));
    }

    fn mapped(&mut self, mono_ns: u64, piece: Piece, emit: &mut dyn FnMut(Event)) {
        self.files.mention(piece.inode, mono_ns, emit);
        self.looked.insert(piece.inode, piece);
        emit(extent(mono_ns, piece));
    }

    /// Tells of a write that is news.
    fn dirty(
        &mut self,
        mono_ns: u64,
        pid: u32,
        told: Option<DirtyRange>,
        emit: &mut dyn FnMut(Event),
    ) {
        let Some(told) = told else {
            return;
        };
        self.files.mention(told.inode, mono_ns, emit);
        self.processes.mention(pid, mono_ns, emit);
        emit(Event::Dirty {
            mono_ns,
            inode: told.inode,
            offset_bytes: told.offset_bytes,
            bytes: told.bytes,
            pid,
        });
    }

    fn fsync(
        &mut self,
        mono_ns: u64,
        pid: u32,
        inode: u64,
        datasync: bool,
        emit: &mut dyn FnMut(Event),
    ) {
        let file = self.files.mention(inode, mono_ns, emit);
        let tgid = self.processes.mention(pid, mono_ns, emit);
        let kind = self.kind_of_fsync(pid, tgid, inode, datasync);
        let sync = SyncKey {
            pid,
            enter_ns: mono_ns,
        };
        let enter = SyncEnter {
            sync,
            tgid,
            kind,
            file: Some(file),
        };
        self.needs.enter(sync, inode, datasync);
        self.syncs.fsync(enter, emit);
    }

    /// What made the filesystem sync one file. A write with O_SYNC comes here out of `write`
    /// (`generic_write_sync`), a direct one that completes later out of a kernel thread; but
    /// that may also be a loop device or an NFS server, which sync everything.
    fn kind_of_fsync(&mut self, pid: u32, tgid: u32, inode: u64, datasync: bool) -> SyncKind {
        let by = |datasync: bool, whole, data| if datasync { data } else { whole };
        if let Some(called) = self.syncs.called(pid) {
            return match called {
                SyncKind::Fsync | SyncKind::Fdatasync | SyncKind::Msync => called,
                _ => SyncKind::Other,
            };
        }
        if let Some(count) = self.uring_fsyncs.get_mut(&tgid)
            && self.processes.is_uring_worker(pid)
        {
            *count -= 1;
            if *count == 0 {
                self.uring_fsyncs.remove(&tgid);
            }
            return SyncKind::UringFsync;
        }
        if !self.syscalls {
            return by(datasync, SyncKind::Fsync, SyncKind::Fdatasync);
        }
        let wrote = self.writes.wrote_last(inode, pid);
        match (self.processes.is_kernel(pid), datasync) {
            (true, true) => SyncKind::ODsync,
            (true, false) => SyncKind::Other,
            (false, _) if self.processes.is_uring_worker(pid) && !wrote => SyncKind::UringFsync,
            (false, _) => by(datasync, SyncKind::OSync, SyncKind::ODsync),
        }
    }

    fn commit(&mut self, commit: Option<u64>) {
        if let Some(log) = &mut self.log {
            log.commit(commit);
        }
    }

    fn touch(&mut self, mono_ns: u64, pid: u32, inode: Option<u64>, emit: &mut dyn FnMut(Event)) {
        if self.syncs.called(pid).is_some() {
            let file = inode.map(|inode| self.files.mention(inode, mono_ns, emit));
            let tgid = self.processes.mention(pid, mono_ns, emit);
            self.syncs.touch(pid, tgid, file, emit);
        }
    }
}

fn contains(outer: &Piece, inner: &Piece) -> bool {
    let end = |piece: &Piece| piece.file_block.saturating_add(piece.blocks.into());
    outer.file_block <= inner.file_block
        && end(inner) <= end(outer)
        && inner.fs_block.wrapping_sub(outer.fs_block)
            == inner.file_block.wrapping_sub(outer.file_block)
}

fn extent(mono_ns: u64, piece: Piece) -> Event {
    Event::Extent(Extent {
        mono_ns,
        inode: piece.inode,
        file_block: piece.file_block,
        fs_block: piece.fs_block,
        fs_blocks: piece.blocks,
    })
}

/// Inode 0 owns what was freed.
fn freed(mono_ns: u64, fs_block: u64, blocks: u64, emit: &mut dyn FnMut(Event)) {
    emit(Event::Extent(Extent {
        mono_ns,
        inode: 0,
        file_block: 0,
        fs_block,
        fs_blocks: u32::try_from(blocks).unwrap_or(u32::MAX),
    }));
}

fn transfer(mono_ns: u64, range: Range) -> Transfer {
    Transfer {
        mono_ns,
        sector: range.sector,
        bytes: range.bytes,
        operation: range.operation,
        flags: range.flags,
    }
}

/// `blk_status_t` of a negative errno (`blk_errors`, block/blk-core.c), 10 (I/O error) for any
/// other.
fn status(errno: i32) -> u8 {
    match errno.wrapping_neg() {
        0 => 0,
        libc::EOPNOTSUPP => 1,
        libc::ETIMEDOUT => 2,
        libc::ENOSPC => 3,
        libc::ENOLINK => 4,
        libc::EREMOTEIO => 5,
        libc::EBADE => 6,
        libc::ENODATA => 7,
        libc::EILSEQ => 8,
        libc::ENOMEM => 9,
        libc::EAGAIN => 12,
        libc::EBUSY => 13,
        _ => 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracefs::seen::Part;
    use iostep_model::Flags;

    const APP: u32 = 4_000_100;

    fn translator(syscalls: bool, partition: bool) -> Translator {
        let files = Files::new(None, None, 0);
        let needs = Needs::new(None);
        Translator::new(
            Processes::default(),
            files,
            needs,
            None,
            syscalls,
            partition,
        )
    }

    fn events(translator: &mut Translator, seen: Vec<Seen>) -> Vec<Event> {
        let records = seen.into_iter().zip(1..).map(|(seen, at)| (at, APP, seen));
        let mut events = Vec::new();
        translator.batch(records.collect(), &mut |event| events.push(event));
        events.retain(|event| {
            !matches!(event, Event::Process(_) | Event::File(_) | Event::Cgroup(_))
        });
        events
    }

    fn range(sector: u64, bytes: u32) -> Range {
        Range {
            sector,
            bytes,
            operation: Operation::Write,
            flags: Flags::PREFLUSH,
        }
    }

    fn piece(file_block: u64, blocks: u32) -> Piece {
        Piece {
            inode: 12,
            file_block,
            fs_block: 1000 + file_block,
            blocks,
        }
    }

    fn fsync(datasync: bool) -> [Seen; 2] {
        let enter = OfSync::FsyncEnter {
            inode: 12,
            datasync,
        };
        [Seen::Sync(enter), Seen::Sync(OfSync::FsyncExit(0))]
    }

    fn kinds(events: &[Event]) -> Vec<SyncKind> {
        let kinds = events.iter().filter_map(|event| match event {
            Event::SyncEnter(enter) => Some(enter.kind),
            _ => None,
        });
        kinds.collect()
    }

    #[test]
    fn a_bio_is_one_part_of_unknown_content_and_an_empty_flush_has_none() {
        let seen = [4096, 0].map(|bytes| Seen::Block(Block::Queue(range(8, bytes))));
        let told = events(&mut translator(true, false), seen.into());
        let [Event::Queue(write), Event::Queue(flush)] = &told[..] else {
            panic!("{told:?}");
        };
        assert_eq!(write.segments[0].content, Content::Unknown);
        assert_eq!(write.segments[0].bytes, write.bytes);
        assert!(flush.segments.is_empty());
    }

    #[test]
    fn sector_0_of_the_disk_is_no_part_of_a_partition() {
        let seen = || vec![Seen::Block(Block::Queue(range(0, 512)))];
        assert_eq!(events(&mut translator(true, true), seen()).len(), 0);
        assert_eq!(events(&mut translator(true, false), seen()).len(), 1);
    }

    #[test]
    fn a_look_up_is_told_of_once_and_a_new_mapping_always() {
        let looked = |piece| Seen::File(OfFile::Looked(piece));
        let mapped = |piece| Seen::File(OfFile::Mapped(piece, true));
        let seen = vec![
            looked(piece(0, 8)),
            looked(piece(2, 1)),
            looked(piece(8, 1)),
            looked(piece(8, 1)),
            mapped(piece(8, 1)),
        ];
        assert_eq!(events(&mut translator(true, false), seen).len(), 3);
    }

    #[test]
    fn freed_blocks_belong_to_inode_0() {
        let seen = vec![Seen::File(OfFile::Freed(1000, 8))];
        let told = events(&mut translator(true, false), seen);
        let expected = Extent {
            mono_ns: 1,
            inode: 0,
            file_block: 0,
            fs_block: 1000,
            fs_blocks: 8,
        };
        assert_eq!(told, [Event::Extent(expected)]);
    }

    #[test]
    fn a_sync_has_the_kind_of_the_call_around_it() {
        let call = |kind| Seen::Sync(OfSync::SyscallEnter(kind));
        let [enter, exit] = fsync(true);
        let mut seen = vec![call(SyncKind::Msync), enter, exit];
        seen.push(Seen::Sync(OfSync::SyscallExit(0)));
        let write = Part {
            inode: 12,
            offset_bytes: 0,
            bytes: 10,
        };
        seen.push(Seen::File(OfFile::Write(write)));
        seen.extend(fsync(true));
        seen.extend(fsync(false));
        let told = kinds(&events(&mut translator(true, false), seen));
        assert_eq!(told, [SyncKind::Msync, SyncKind::ODsync, SyncKind::OSync]);
    }

    #[test]
    fn without_system_calls_a_sync_is_what_the_filesystem_calls_it() {
        let seen = [fsync(true), fsync(false)].concat();
        let told = kinds(&events(&mut translator(false, false), seen));
        assert_eq!(told, [SyncKind::Fdatasync, SyncKind::Fsync]);
    }

    #[test]
    fn a_sync_needs_the_commit_that_holds_its_changes() {
        let [enter, exit] = fsync(false);
        let seen = vec![
            Seen::Sync(OfSync::Handle(42)),
            Seen::Sync(OfSync::Marked(12, 0)),
            enter,
            Seen::Sync(OfSync::CommitStart(41)),
            Seen::Sync(OfSync::CommitStart(42)),
            exit,
            Seen::Sync(OfSync::CommitStart(43)),
        ];
        let told = events(&mut translator(true, false), seen);
        let needed: Vec<u64> = told
            .iter()
            .filter_map(|event| match event {
                Event::SyncNeeds { commit, .. } => Some(*commit),
                _ => None,
            })
            .collect();
        assert_eq!(needed, [42]);
    }

    #[test]
    fn errors_keep_the_block_layers_numbers() {
        assert_eq!(status(0), 0);
        assert_eq!(status(-libc::ENOSPC), 3);
        assert_eq!(status(-libc::EIO), 10);
        assert_eq!(status(i32::MIN + 1), 10);
    }
}
