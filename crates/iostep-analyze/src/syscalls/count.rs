//! Adds a trace up, call by call.

use std::collections::{BTreeMap, HashSet, VecDeque};

use iostep_model::syscall::text::Reader;
use iostep_model::syscall::{
    Call, Direction, HandleId, InitialKind, Operation, Outcome, PathId, Paths, Syscall,
};
use rustc_hash::FxHashMap;

use super::info::{Before, CallInfo, FileInfo, Info, Source, Totals};

/// Closed files that are remembered: a call that began before the last close, or while it ran,
/// may stand behind it.
const CLOSED: usize = 4096;

/// Counts calls. Memory: a row each for names of calls, paths, and files that are open.
#[derive(Debug, Default)]
pub struct Count {
    totals: Totals,
    calls: BTreeMap<Syscall, CallInfo>,
    files: FxHashMap<PathId, FileInfo>,
    opened: FxHashMap<HandleId, Opened>,
    closed: VecDeque<HandleId>,
    first_ns: Option<u64>,
    last_ns: u64,
}

/// A file that was opened.
#[derive(Clone, Copy, Debug)]
struct Opened {
    path: PathId,
    /// Descriptors that point to it.
    references: u64,
}

/// What a call moved.
#[derive(Clone, Copy, Default)]
struct Moved {
    read: Option<u64>,
    written: Option<u64>,
}

impl Count {
    /// Takes a call. They come as they stand in the trace.
    pub fn call(&mut self, call: &Call) {
        self.first_ns.get_or_insert(call.start_ns);
        let duration_ns = call.duration_ns.unwrap_or(0);
        self.last_ns = self.last_ns.max(call.start_ns.saturating_add(duration_ns));
        let failed = matches!(call.outcome, Outcome::Failed(_));
        let totals = &mut self.totals;
        totals.calls += 1;
        totals.failed += u64::from(failed);
        totals.unfinished += u64::from(call.outcome == Outcome::Unfinished);
        totals.unknown += u64::from(call.outcome == Outcome::Unknown);
        totals.call_ns = totals.call_ns.saturating_add(duration_ns);
        self.on_files(call, duration_ns);
        self.on_descriptors(call);
        let moved = moved(call);
        let bytes = [moved.read, moved.written].into_iter().flatten().max();
        let totals = &mut self.totals;
        totals.reads += u64::from(moved.read.is_some());
        totals.read_bytes = totals.read_bytes.saturating_add(moved.read.unwrap_or(0));
        totals.writes += u64::from(moved.written.is_some());
        totals.written_bytes = totals
            .written_bytes
            .saturating_add(moved.written.unwrap_or(0));
        totals.syncs += u64::from(is_sync(&call.operation));
        let row = self.calls.entry(call.syscall).or_insert(CallInfo {
            syscall: call.syscall,
            calls: 0,
            failed: 0,
            bytes: 0,
            total_ns: 0,
            longest_ns: 0,
        });
        row.calls += 1;
        row.failed += u64::from(failed);
        row.bytes = row.bytes.saturating_add(bytes.unwrap_or(0));
        row.total_ns = row.total_ns.saturating_add(duration_ns);
        row.longest_ns = row.longest_ns.max(duration_ns);
    }

    /// Adds the call to the rows of its files; one that names a file twice is one of its calls.
    fn on_files(&mut self, call: &Call, duration_ns: u64) {
        let path = match call.operation {
            Operation::Open { path, .. } => Some(path),
            Operation::Reopen { handle, .. } => self.opened.get(&handle).map(|of| of.path),
            _ => None,
        };
        let opens = path.is_some();
        if let (Some(path), Outcome::Handle(handle)) = (path, call.outcome) {
            let opened = Opened {
                path,
                references: 1,
            };
            self.opened.insert(handle, opened);
            self.totals.opens += 1;
        }
        let moved = moved(call);
        let handles = call.operation.handles();
        let paths = handles.iter().filter_map(|h| self.opened.get(h));
        let mut paths: Vec<PathId> = paths.map(|opened| opened.path).collect();
        // A copy reads from the first file and writes to the second.
        let copied = matches!(call.operation, Operation::Copy { .. }).then(|| paths.clone());
        paths.extend(call.operation.paths());
        let all = paths.clone();
        for (index, path) in all.iter().enumerate() {
            if all[..index].contains(path) {
                continue;
            }
            let row = self.files.entry(*path).or_default();
            row.calls += 1;
            row.opens += u64::from(opens && matches!(call.outcome, Outcome::Handle(_)));
            row.syncs += u64::from(is_sync(&call.operation));
            row.call_ns = row.call_ns.saturating_add(duration_ns);
            let is = |end: fn(&[PathId]) -> Option<&PathId>| {
                copied.as_deref().is_none_or(|ends| end(ends) == Some(path))
            };
            if let Some(bytes) = moved.read.filter(|_| is(<[PathId]>::first)) {
                row.reads += 1;
                row.read_bytes = row.read_bytes.saturating_add(bytes);
            }
            if let Some(bytes) = moved.written.filter(|_| is(<[PathId]>::last)) {
                row.writes += 1;
                row.written_bytes = row.written_bytes.saturating_add(bytes);
            }
        }
    }

    /// Follows what descriptors point to open files.
    fn on_descriptors(&mut self, call: &Call) {
        match &call.operation {
            Operation::Close { handle } => self.release(&[*handle]),
            Operation::CloseMany { handles } => self.release(handles),
            Operation::Inherit { handles, .. } => handles.iter().for_each(|h| self.share(*h)),
            Operation::Duplicate { replaces, .. } => {
                if let Outcome::Handle(handle) = call.outcome {
                    self.share(handle);
                }
                self.release(replaces.as_slice());
            }
            _ => {}
        }
    }

    fn share(&mut self, handle: HandleId) {
        if let Some(opened) = self.opened.get_mut(&handle) {
            opened.references += 1;
        }
    }

    fn release(&mut self, handles: &[HandleId]) {
        for handle in handles {
            let Some(opened) = self.opened.get_mut(handle) else {
                continue;
            };
            opened.references = opened.references.saturating_sub(1);
            if opened.references > 0 {
                continue;
            }
            self.closed.push_back(*handle);
            if self.closed.len() <= CLOSED {
                continue;
            }
            // It may have been closed twice, in a trace that is not true.
            if let Some(oldest) = self.closed.pop_front()
                && self.opened.get(&oldest).is_some_and(|o| o.references == 0)
            {
                self.opened.remove(&oldest);
            }
        }
    }

    /// The numbers of all calls that were taken, with what `reader`, which read them, says else.
    /// `with_files`: a row for each path.
    pub fn finish(self, reader: &Reader, with_files: bool, interrupted: bool) -> Info {
        let mut totals = self.totals;
        totals.files = self.files.len() as u64;
        totals.threads = reader.threads().len() as u64;
        let processes: HashSet<_> = reader.threads().iter().map(|t| t.process).collect();
        totals.processes = processes.len() as u64;
        let mut calls: Vec<_> = self.calls.into_values().collect();
        calls.sort_by_key(|row| std::cmp::Reverse(row.calls));
        let files = with_files.then(|| named(self.files, reader.paths()));
        Info {
            lost: reader.ledger().lost,
            cut_at_line: reader.cut_at_line(),
            interrupted,
            source: source(reader),
            run_ns: self.last_ns.saturating_sub(self.first_ns.unwrap_or(0)),
            totals,
            before: before(reader),
            calls,
            files,
        }
    }
}

/// The rows with their paths, the most calls first.
fn named(files: FxHashMap<PathId, FileInfo>, paths: &Paths) -> Vec<FileInfo> {
    let rows = files.into_iter().map(|(path, row)| FileInfo {
        path: String::from_utf8_lossy(paths.get(path)).into_owned(),
        ..row
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.path.cmp(&b.path)));
    rows
}

/// What was read and written; none where the call is of another kind.
fn moved(call: &Call) -> Moved {
    let done = Some(call.moved_bytes());
    match call.operation {
        Operation::Transfer {
            direction: Direction::Read,
            ..
        } => Moved {
            read: done,
            written: None,
        },
        Operation::Transfer { .. } => Moved {
            read: None,
            written: done,
        },
        Operation::Copy { .. } => Moved {
            read: done,
            written: done,
        },
        _ => Moved::default(),
    }
}

fn is_sync(operation: &Operation<HandleId, PathId>) -> bool {
    matches!(
        operation,
        Operation::Sync { .. }
            | Operation::SyncAll
            | Operation::SyncRange { .. }
            | Operation::SyncMap { .. }
    )
}

fn source(reader: &Reader) -> Source {
    let header = reader.header();
    let ledger = reader.ledger();
    let (kept, left_out) = ledger.totals();
    let lines = ledger.lines.iter().filter(|line| !line.kept);
    let mut because: Vec<_> = lines.map(|l| (l.reason.clone(), l.count)).collect();
    because.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let words = header.command.iter();
    Source {
        recorder: header.recorder.clone(),
        machine: header.machine.clone(),
        command: words
            .map(|w| String::from_utf8_lossy(w).into_owned())
            .collect(),
        start_wall_ns: header.clock.start_wall_ns,
        resolution_ns: header.clock.resolution_ns,
        kept,
        left_out,
        left_out_because: because,
    }
}

fn before(reader: &Reader) -> Before {
    let mut before = Before::default();
    for file in reader.initial() {
        before.seen += u64::from(file.seen);
        match file.kind {
            InitialKind::Absent => before.absent += 1,
            InitialKind::Directory => before.directories += 1,
            InitialKind::Symlink { .. } | InitialKind::HardLink { .. } => before.links += 1,
            InitialKind::Fifo | InitialKind::Socket | InitialKind::Device => before.files += 1,
            InitialKind::File { size, .. } => {
                before.files += 1;
                before.bytes = before.bytes.saturating_add(size);
            }
        }
    }
    before
}
