//! What one thread works on.

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;

use iostep_model::bench::{Access, FileJob, Step};

use super::compare::{self, Wrong};
use super::offsets::Offsets;
use super::payload::Payload;
use super::sync::{Group, SyncCall};
use crate::engine::{Fault, Thread};
use crate::error::Result;
use iostep_model::clock::mono_ns;

/// A thread's file, opened as transfer and sync mode demand, and where its operations go.
#[derive(Debug)]
pub struct Region {
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

/// A worker on a [`Region`].
pub trait RegionWorker {
    /// Gives the region back when all is done.
    fn into_region(self) -> Region;
}

impl Region {
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

    /// Writes record after record by `write`, which is timed, and syncs every group by `sync` and
    /// the end by `end`.
    ///
    /// Errors: what the calls say.
    #[inline]
    pub fn write_records<S: SyncCall, E: SyncCall>(
        &mut self,
        thread: &mut Thread<'_>,
        payload: &mut Payload,
        write: impl Fn(&Region, &[u8], u64) -> std::result::Result<(), Fault>,
        (sync, end): (&S, &E),
    ) -> std::result::Result<(), Fault> {
        let bytes = self.job.record_bytes;
        let mut group = Group::new(self.job.sync_every);
        while let Some(offset_bytes) = self.next(thread)? {
            let slot = payload.slot_at(offset_bytes);
            let record = payload.stamp(slot, offset_bytes, self.tally.writes + 1);
            let Some(begin_ns) = thread.begin() else {
                break;
            };
            self.tally.writes += 1;
            write(self, record, offset_bytes)?;
            let mut end_ns = mono_ns();
            thread.step(Step::Write, end_ns - begin_ns);
            if S::CALLS
                && let Some(range) = group.wrote(offset_bytes, bytes)
            {
                end_ns = self.sync(thread, sync, range, end_ns)?;
            }
            thread.step(Step::Total, end_ns - begin_ns);
            thread.end(begin_ns, end_ns, bytes);
        }
        self.finish(thread, sync, group, end)
    }

    /// Reads record after record by `read`, which is timed.
    ///
    /// Errors: what the calls say.
    #[inline]
    pub fn read_records(
        &mut self,
        thread: &mut Thread<'_>,
        payload: &mut Payload,
        read: impl Fn(&Region, &mut [u8], u64) -> std::result::Result<(), Fault>,
    ) -> std::result::Result<(), Fault> {
        let verifies = self.job.measurement.verify;
        let record = payload.slot_mut(0);
        while let Some(offset_bytes) = self.next(thread)? {
            let Some(begin_ns) = thread.begin() else {
                break;
            };
            read(self, record, offset_bytes)?;
            let end_ns = mono_ns();
            thread.step(Step::Read, end_ns - begin_ns);
            thread.step(Step::Total, end_ns - begin_ns);
            thread.end(begin_ns, end_ns, record.len() as u64);
            if verifies {
                self.compare_read(record, offset_bytes);
            }
        }
        Ok(())
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

    /// What comes after the last write: the sync of a group that was not filled, and `end` if one
    /// more at the end is asked for.
    ///
    /// Errors: whatever the calls say.
    pub fn finish<S: SyncCall, E: SyncCall>(
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
