//! Follows descriptors, paths and processes: from what a recorder saw to what a recording holds.
//!
//! Every event ends in exactly one line of the ledger, apart from notes, which are no calls: names
//! of threads, and clones without a name.

mod copies;
mod descriptors;
mod effects;
mod initial;
mod lifetimes;
mod links;
mod mapping;
mod operations;
mod place;
mod pool;
mod process;
mod requests;
mod resolve;

use iostep_model::syscall::raw::{Action, Event, Returned, Seen};
use iostep_model::syscall::{
    Call, HandleId, InitialFile, Ledger, Operation, Outcome, PathId, Paths, ProcessId, Syscall,
    Thread, ThreadId,
};
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::sink::Sink;
use initial::{Conclusions, InodeId};
use process::{Task, Tasks};

pub use place::{MAX_PATH_BYTES, UNKNOWN_DIRECTORY, UNNAMED_DIRECTORY};

/// Open files that one call of the recording names at most, so that its line can be read back.
const MOST_HANDLES: usize = 1 << 16;

/// Makes a recording of events, which come in the order in which the calls ended. A clone comes
/// before whatever its child does; one that comes later is made up for as far as possible.
///
/// Memory: the threads that live with their descriptors and mappings, and every path.
#[derive(Debug)]
pub struct Tracker<S> {
    sink: S,
    paths: Paths,
    tasks: Tasks,
    files: FxHashMap<HandleId, OpenFile>,
    /// Open files by the number that tells them apart, where the source has one.
    same_files: FxHashMap<u64, HandleId>,
    initial: Conclusions,
    ledger: Ledger,
    threads: u32,
    processes: u32,
    handles: u32,
    /// An open had to be made up for the event at hand.
    made_up: bool,
    text: Vec<u8>,
}

/// What is left when all events were told.
#[derive(Debug)]
pub struct Finished<S> {
    /// What took the calls.
    pub sink: S,
    /// Every path that the calls and `initial` name.
    pub paths: Paths,
    /// What was there before, each path once.
    pub initial: Vec<InitialFile>,
    /// Where every event went.
    pub ledger: Ledger,
}

/// An open file description, while somebody has it.
#[derive(Debug)]
struct OpenFile {
    path: PathId,
    inode: Option<InodeId>,
    /// Its own position, bytes, as far as calls said.
    position: u64,
    /// That is where it is, not only where it is at least.
    sure: bool,
    /// Nobody saw its open, and no call told where it is.
    position_unknown: bool,
    /// What of the file had been appended when this last appended to it, bytes, if nobody knew where
    /// that was.
    appended: Option<u64>,
    appends: bool,
    /// Descriptors that point to it.
    references: u32,
}

/// Who called, when, and how it ended.
#[derive(Clone, Copy, Debug)]
struct At {
    tid: u32,
    start_ns: u64,
    duration_ns: Option<u64>,
    returned: Returned,
}

impl At {
    fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns.unwrap_or(0))
    }
}

/// What an event was good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// It is a call of the recording.
    Call,
    /// It says what descriptors, directories and threads are.
    Followed,
    /// A descriptor that was open already.
    Present,
    /// A descriptor that came from another process.
    Received,
    /// It is part of something else, for this reason.
    Counted(&'static str),
    /// No call.
    Note,
}

/// What became of an event.
type Step = std::result::Result<Kept, Stop>;

/// Why an event is no call of the recording.
#[derive(Debug)]
enum Stop {
    /// It is left out, for this reason.
    LeftOut(&'static str),
    /// The recording ends.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

impl<S: Sink> Tracker<S> {
    /// Begins a recording.
    pub fn new(sink: S) -> Tracker<S> {
        Tracker {
            sink,
            paths: Paths::default(),
            tasks: Tasks::default(),
            files: FxHashMap::default(),
            same_files: FxHashMap::default(),
            initial: Conclusions::new(),
            ledger: Ledger::default(),
            threads: 0,
            processes: 0,
            handles: 0,
            made_up: false,
            text: Vec::new(),
        }
    }

    /// Takes an event.
    ///
    /// Errors: the sink's, and `TooMany`; the recording cannot go on then.
    pub fn event(&mut self, event: Event<'_>) -> Result<()> {
        let at = At {
            tid: event.tid,
            start_ns: event.start_ns,
            duration_ns: event.duration_ns,
            returned: event.returned,
        };
        self.made_up = false;
        let (kept, reason) = match self.action(&at, event.action, event.seen.as_ref()) {
            Ok(Kept::Call) if self.made_up => (true, "call that needed an open"),
            Ok(Kept::Call) => (true, "call"),
            Ok(Kept::Followed) => (true, "followed"),
            Ok(Kept::Present) => (true, "open already"),
            Ok(Kept::Received) => (true, "came from another process"),
            Ok(Kept::Counted(reason)) => (true, reason),
            Ok(Kept::Note) => return Ok(()),
            Err(Stop::LeftOut(reason)) => (false, reason),
            Err(Stop::Failed(error)) => return Err(error),
        };
        self.ledger.add(kept, reason, 1);
        Ok(())
    }

    /// The recorder lost events.
    pub fn lost(&mut self, events: u64) {
        self.ledger.lost = self.ledger.lost.saturating_add(events);
    }

    /// Where the events went so far.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Ends the recording. What is open stays open.
    pub fn finish(mut self) -> Finished<S> {
        for process in self.tasks.processes.slots() {
            // A sink that takes no more says so when it is finished.
            let _ = self.end_requests(process);
        }
        let initial = self.initial.initial(&mut self.paths);
        Finished {
            sink: self.sink,
            paths: self.paths,
            initial,
            ledger: self.ledger,
        }
    }

    fn action(
        &mut self,
        at: &At,
        action: Action<'_>,
        seen: Option<&Seen>,
    ) -> std::result::Result<Kept, Stop> {
        match action {
            Action::Operation(syscall, operation) => self.operation(at, syscall, operation, seen),
            Action::Duplicate {
                syscall,
                from,
                close_on_exec,
            } => self.duplicate(at, syscall, from, close_on_exec),
            Action::CloseRange {
                first,
                last,
                on_exec_only,
            } => self.close_range(at, first, last, on_exec_only),
            Action::CloseOnExec { of, on } => Ok(self.set_close_on_exec(at, of.number, on)),
            Action::Unmap { address, size } => self.unmap(at, address, size),
            Action::Remap {
                address,
                size,
                new_size,
            } => self.remap(at, address, size, new_size),
            Action::SyncMap {
                address,
                size,
                flags,
            } => self.sync_map(at, address, size, flags),
            Action::Submit { context, requests } => self.submit(at, context, requests),
            Action::Complete { .. } => self.completed(at, action),
            Action::MakeOther {
                name,
                kind,
                descriptors,
                close_on_exec,
            } => self.make_other(at, &name, (kind, descriptors), close_on_exec),
            Action::Present { .. } => self.present(at, action, seen),
            Action::ChangeDirectory(path) => self.change_directory(at, path),
            Action::ChangeRoot(path) => self.change_root(at, path),
            Action::Clone { .. } => self.clone_task(at, action),
            Action::Execute { name } => self.execute(at, &name),
            Action::Exit { process } => self.exit(at, process),
            Action::LeftOut { reason, .. } => Err(Stop::LeftOut(reason)),
            Action::Counted { reason } => Ok(Kept::Counted(reason)),
            note => self.note(at, note).map(|()| Kept::Note),
        }
    }

    /// What is told apart from calls.
    fn note(&mut self, at: &At, note: Action<'_>) -> std::result::Result<(), Stop> {
        match note {
            Action::Name(name) => self.rename_task(at.tid, &name),
            Action::LinkSays { path, content } => self.link_says(at, &path, &content)?,
            Action::Tells { path, seen } => self.tells(at, &path, &seen)?,
            Action::KnownAs(number) => self.task(at.tid).own_number = Some(number),
            Action::Renumbered { from } => self.renumber(from, at.tid),
            _ => {}
        }
        Ok(())
    }

    fn task(&mut self, tid: u32) -> &mut Task {
        self.tasks.get(tid, UNKNOWN_DIRECTORY)
    }

    /// The number of a thread in the recording; it is declared if this is the first call.
    fn thread(&mut self, tid: u32) -> Result<ThreadId> {
        if let Some(id) = self.task(tid).id {
            return Ok(id);
        }
        self.threads = next(self.threads, "threads")?;
        let id = ThreadId(self.threads);
        let task = self.tasks.get(tid, UNKNOWN_DIRECTORY);
        task.id = Some(id);
        let (process, name) = (task.process, task.name.clone());
        let process = match self.tasks.processes[process].id {
            Some(process) => process,
            None => {
                self.processes = next(self.processes, "processes")?;
                let number = ProcessId(self.processes);
                self.tasks.processes[process].id = Some(number);
                number
            }
        };
        self.sink.thread(&Thread {
            id,
            process,
            tid,
            name,
        })?;
        Ok(id)
    }

    fn rename_task(&mut self, tid: u32, name: &str) {
        let task = self.tasks.get(tid, UNKNOWN_DIRECTORY);
        if task.name == name {
            return;
        }
        task.name = name.to_owned();
        self.tell_again(tid);
    }

    /// A thread has another number than it was told under.
    fn renumber(&mut self, from: u32, tid: u32) {
        if self.tasks.renumber(from, tid) {
            self.tell_again(tid);
        }
    }

    /// Says what a thread is now, if it was declared.
    fn tell_again(&mut self, tid: u32) {
        let task = self.tasks.get(tid, UNKNOWN_DIRECTORY);
        let (id, process, name) = (task.id, task.process, task.name.clone());
        let process = self.tasks.processes[process].id;
        if let (Some(id), Some(process)) = (id, process) {
            self.sink.changed(&Thread {
                id,
                process,
                tid,
                name,
            });
        }
    }

    /// Hands a call to the sink.
    fn call(
        &mut self,
        at: &At,
        syscall: Syscall,
        operation: Operation<HandleId, PathId>,
        outcome: Outcome,
    ) -> Result<()> {
        let thread = self.thread(at.tid)?;
        self.call_of(thread, at, syscall, operation, outcome)
    }

    /// Like [`Tracker::call`], of a thread that may have ended.
    fn call_of(
        &mut self,
        thread: ThreadId,
        at: &At,
        syscall: Syscall,
        operation: Operation<HandleId, PathId>,
        outcome: Outcome,
    ) -> Result<()> {
        let call = Call {
            start_ns: at.start_ns,
            duration_ns: at.duration_ns,
            thread,
            syscall,
            operation,
            outcome,
        };
        self.sink.call(call, &self.paths)
    }

    /// A new open file.
    fn add_file(
        &mut self,
        path: PathId,
        inode: Option<InodeId>,
        appends: bool,
    ) -> Result<HandleId> {
        self.handles = next(self.handles, "open files")?;
        let handle = HandleId(self.handles);
        if let Some(inode) = inode {
            self.initial.hold(inode);
        }
        let file = OpenFile {
            path,
            inode,
            position: 0,
            sure: true,
            position_unknown: false,
            appended: None,
            appends,
            references: 1,
        };
        self.files.insert(handle, file);
        Ok(handle)
    }

    fn add_references(&mut self, handles: &[HandleId]) {
        for handle in handles {
            if let Some(file) = self.files.get_mut(handle) {
                file.references += 1;
            }
        }
    }

    fn drop_references(&mut self, handles: &[HandleId]) {
        for handle in handles {
            if let Some(file) = self.files.get_mut(handle) {
                file.references -= 1;
                if file.references > 0 {
                    continue;
                }
                let inode = file.inode;
                self.files.remove(handle);
                if let Some(inode) = inode {
                    self.initial.release(inode);
                }
            }
        }
    }
}

/// The number after the last one.
fn next(last: u32, what: &'static str) -> Result<u32> {
    last.checked_add(1).ok_or(Error::TooMany { what })
}

/// How a call ended, if it gives no descriptor.
fn plain(returned: Returned) -> Outcome {
    match returned {
        Returned::Value(value) => Outcome::Value(i64::try_from(value).unwrap_or(i64::MAX)),
        Returned::Failed(errno) => Outcome::Failed(errno),
        Returned::Unfinished => Outcome::Unfinished,
        Returned::Unknown => Outcome::Unknown,
    }
}

#[cfg(test)]
mod tests;
