//! What one thread works on.

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;

use iostep_model::bench::{Access, FileJob, Step};

use super::compare::{self, Wrong};
use super::offsets::Offsets;
use super::payload::Payload;
use super::sync::{Fsync, Group, SyncCall};
use crate::engine::clock::mono_ns;
use crate::engine::{Fault, Thread};
use crate::error::Result;

/// A thread's file, opened as transfer and sync mode demand, and where its operations go.
#[derive(Debug)]
pub struct Lane {
    /// What to do.
    pub job: FileJob,
    /// The thread's own open file.
    pub file: File,
    /// How it is called, for errors.
    pub path: PathBuf,
    /// Number of the file: 0 if it is shared.
    pub file_number: u32,
    /// Number of the thread.
    pub thread: u32,
    /// Where the operations go.
    pub offsets: Offsets,
    /// What was done, for verification.
    pub tally: Tally,
}

/// What a thread did, for verification.
#[derive(Debug, Default)]
pub struct Tally {
    /// Writes that were begun: the sequence number of the last.
    pub writes: u64,
    /// Reads that brought something else than they should.
    pub wrong: Wrong,
}

/// A worker on a [`Lane`].
pub trait Laned {
    /// Gives the lane back when all is done.
    fn into_lane(self) -> Lane;
}

impl Lane {
    /// Buffers for as many operations at once.
    ///
    /// Errors: `Io` without memory.
    pub fn payload(&self, slots: usize) -> Result<Payload> {
        match self.job.access.writes() {
            true => Payload::to_write(&self.job, self.thread, self.file_number, slots),
            false => Payload::to_read(&self.job, slots),
        }
    }

    /// The next offset, in bytes, of this pass or of the next one; `None` when all is done. An
    /// append starts over by emptying the file: nothing may be under way then.
    #[inline]
    pub fn next(&mut self, thread: &Thread<'_>) -> std::result::Result<Option<u64>, Fault> {
        match self.offsets.next() {
            Some(offset_bytes) => Ok(Some(offset_bytes)),
            None if thread.repeats() => self.start_over(),
            None => Ok(None),
        }
    }

    #[cold]
    fn start_over(&mut self) -> std::result::Result<Option<u64>, Fault> {
        if self.job.access == Access::Append {
            rustix::fs::ftruncate(&self.file, 0)
                .map_err(|errno| self.fault("truncation to 0 bytes", errno))?;
        }
        self.offsets.start_over();
        Ok(self.offsets.next())
    }

    /// Syncs, and records how long that took from `begin_ns` on. The answer is when it ended.
    ///
    /// Errors: whatever the call says.
    #[inline]
    pub fn sync<S: SyncCall>(
        &self,
        thread: &mut Thread<'_>,
        sync: &S,
        range: Range<u64>,
        begin_ns: u64,
    ) -> std::result::Result<u64, Fault> {
        self.call_sync(sync, range)?;
        let end_ns = mono_ns();
        thread.step(Step::Sync, end_ns - begin_ns);
        Ok(end_ns)
    }

    fn call_sync<S: SyncCall>(
        &self,
        sync: &S,
        range: Range<u64>,
    ) -> std::result::Result<(), Fault> {
        rustix::io::retry_on_intr(|| sync.sync(&self.file, range.clone()))
            .map_err(|errno| self.fault(S::NAME, errno))
    }

    /// What comes after the last write: the sync of a group that was not filled, and an fsync if
    /// one at the end is asked for.
    ///
    /// Errors: whatever the calls say.
    pub fn finish<S: SyncCall>(
        &self,
        thread: &mut Thread<'_>,
        sync: &S,
        group: Group,
    ) -> std::result::Result<(), Fault> {
        self.finish_by(thread, sync, group, &Fsync)
    }

    /// As [`Lane::finish`], with `end` at the end.
    ///
    /// Errors: whatever the calls say.
    pub fn finish_by<S: SyncCall, E: SyncCall>(
        &self,
        thread: &mut Thread<'_>,
        sync: &S,
        mut group: Group,
        end: &E,
    ) -> std::result::Result<(), Fault> {
        if S::CALLS
            && let Some(range) = group.close()
        {
            self.sync(thread, sync, range, mono_ns())?;
        }
        if self.job.end_sync {
            let begin_ns = mono_ns();
            self.call_sync(end, self.offsets.span_bytes())?;
            thread.step(Step::EndSync, mono_ns() - begin_ns);
        }
        Ok(())
    }

    /// Looks at the stamps of a record that was read.
    #[cold]
    pub fn compare_read(&mut self, record: &[u8], offset_bytes: u64) {
        let found = compare::read_is_wrong(&self.job, self.file_number, record, offset_bytes);
        self.tally.wrong.count(&self.path, found);
    }

    /// A `what` of a record that failed.
    #[cold]
    pub fn record_fault(
        &self,
        what: &str,
        offset_bytes: u64,
        reason: impl std::fmt::Display,
    ) -> Fault {
        let attempt = format!(
            "{what} of {} bytes at {offset_bytes}",
            self.job.record_bytes
        );
        self.fault(&attempt, reason)
    }

    /// Something that failed; `attempt` says what, as `fsync`.
    #[cold]
    pub fn fault(&self, attempt: &str, reason: impl std::fmt::Display) -> Fault {
        Fault {
            attempt: format!("{attempt} of {}", self.path.display()),
            reason: reason.to_string(),
            operation: None,
        }
    }
}
