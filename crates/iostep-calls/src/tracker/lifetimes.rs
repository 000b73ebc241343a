//! Threads and processes that begin, become another program, and end.

use iostep_model::syscall::raw::{Action, Returned};
use iostep_model::syscall::{HandleId, Operation, Outcome, Syscall};

use super::process::Shares;
use super::{At, Kept, MOST_HANDLES, Stop, Tracker, UNKNOWN_DIRECTORY, plain};
use crate::sink::Sink;

type Step = std::result::Result<Kept, Stop>;

impl<S: Sink> Tracker<S> {
    pub(super) fn clone_task(&mut self, at: &At, action: Action<'_>) -> Step {
        let Action::Clone {
            name,
            child,
            thread,
            shares_descriptors,
            shares_directory,
        } = action
        else {
            return Ok(Kept::Note);
        };
        let kept = match name.is_empty() {
            true => Kept::Note,
            false => Kept::Followed,
        };
        if child == at.tid || matches!(at.returned, Returned::Failed(_)) {
            return Ok(kept);
        }
        let shares = Shares {
            process: thread,
            descriptors: shares_descriptors,
            directory: shares_directory,
        };
        self.task(at.tid);
        let mut inherited = None;
        match self.tasks.by_tid.get(&child).map(|task| task.born) {
            Some(false) => inherited = Some(self.tasks.adopt(at.tid, child, shares)),
            Some(true) => {
                // The number is used again, so the thread's end was lost.
                let handles = self.take_away(&[child]);
                self.close_many(at, Syscall::Exit, handles)?;
                self.tasks.add_child(at.tid, child, shares);
            }
            None => self.tasks.add_child(at.tid, child, shares),
        }
        if shares_descriptors {
            return Ok(kept);
        }
        let handles = inherited.unwrap_or_else(|| {
            let table = self.tasks.by_tid[&child].descriptors;
            self.tasks.descriptors[table].files()
        });
        let outcome = match at.returned {
            // The child's number means nothing in a recording.
            Returned::Value(_) => Outcome::Value(0),
            other => plain(other),
        };
        self.inherit(at, Syscall::Clone, child, handles, outcome)
            .map(|call| match kept {
                Kept::Note => Kept::Note,
                _ if call == Kept::Call => Kept::Call,
                _ => kept,
            })
    }

    /// Records that a process has its own references now.
    fn inherit(
        &mut self,
        at: &At,
        syscall: Syscall,
        child: u32,
        handles: Box<[HandleId]>,
        outcome: Outcome,
    ) -> Step {
        if handles.is_empty() {
            return Ok(Kept::Followed);
        }
        // The parent's number comes first.
        self.thread(at.tid)?;
        let child = self.thread(child)?;
        self.add_references(&handles);
        for handles in handles.chunks(MOST_HANDLES) {
            let handles = handles.into();
            let operation = Operation::Inherit { child, handles };
            self.call(at, syscall, operation, outcome)?;
        }
        Ok(Kept::Call)
    }

    /// A successful exec: the other threads are gone, and mappings with the old program.
    pub(super) fn execute(&mut self, at: &At, name: &str) -> Step {
        if self.tasks.by_tid.is_empty() {
            let table = self.task(at.tid).descriptors;
            self.tasks.descriptors[table].begins();
        }
        // The kernel waits for them before the old program is gone.
        let process = self.task(at.tid).process;
        self.end_requests(process)?;
        let siblings = self.tasks.siblings(at.tid);
        let mut closed = self.take_away(&siblings).into_vec();
        let task = self.tasks.get(at.tid, UNKNOWN_DIRECTORY);
        let process = task.process;
        self.tasks.processes[process].mappings = Default::default();
        if self.tasks.unshare_descriptors(at.tid) {
            let table = self.task(at.tid).descriptors;
            let handles = self.tasks.descriptors[table].files();
            let outcome = Outcome::Value(0);
            self.inherit(at, Syscall::Execve, at.tid, handles, outcome)?;
        }
        let table = self.task(at.tid).descriptors;
        closed.extend(self.tasks.descriptors[table].close_on_exec(at.end_ns()));
        if !name.is_empty() {
            self.rename_task(at.tid, name);
        }
        self.close_many(at, Syscall::Execve, closed.into())
    }

    pub(super) fn exit(&mut self, at: &At, process: bool) -> Step {
        if !self.tasks.by_tid.contains_key(&at.tid) {
            return Ok(Kept::Followed);
        }
        let mut ended = vec![at.tid];
        if process {
            ended.extend(self.tasks.siblings(at.tid));
        }
        if process || self.tasks.siblings(at.tid).is_empty() {
            self.end_requests(self.tasks.by_tid[&at.tid].process)?;
        }
        let table = self.tasks.by_tid[&at.tid].descriptors;
        if ended.len() == 1 && self.tasks.descriptors.is_shared(table) {
            self.take_away(&ended);
            return Ok(Kept::Followed);
        }
        // The call is the ending thread's, so it is declared while it is there.
        let has_files = ended.iter().any(|tid| {
            let table = self.tasks.by_tid[tid].descriptors;
            !self.tasks.descriptors[table].all_files().is_empty()
        });
        let id = match has_files {
            true => Some(self.thread(at.tid)?),
            false => None,
        };
        let handles = self.take_away(&ended);
        let Some(thread) = id.filter(|_| !handles.is_empty()) else {
            return Ok(Kept::Followed);
        };
        self.drop_references(&handles);
        for handles in handles.chunks(MOST_HANDLES) {
            let handles = handles.into();
            let operation = Operation::CloseMany { handles };
            self.call_of(thread, at, Syscall::Exit, operation, plain(at.returned))?;
        }
        Ok(Kept::Call)
    }

    /// Takes threads away. Gives the files that nobody's table holds any more by that.
    fn take_away(&mut self, tids: &[u32]) -> Box<[HandleId]> {
        let mut handles = Vec::new();
        for tid in tids {
            if let Some(table) = self.tasks.remove(*tid) {
                handles.extend(table.all_files());
            }
        }
        handles.into()
    }
}
