//! One system call after the other.

use std::fs::File;

use iostep_model::bench::{Step, Sync, Transfer};
use rustix::io::Errno;

use super::calls;
use super::lane::{Lane, Laned};
use super::payload::Payload;
use super::sync::{Fdatasync, FileRange, Fsync, Group, NoCall, SyncCall};
use crate::engine::clock::mono_ns;
use crate::engine::{Fault, Thread, Worker};
use crate::error::Result;

/// A thread that reads or writes by `pread(2)`, `pwrite(2)` and their relatives with flags.
#[derive(Debug)]
pub struct Psync {
    lane: Lane,
    /// Made by the thread itself, so that it is near its CPU.
    payload: Option<Payload>,
}

impl Psync {
    /// One that works on `lane`.
    pub fn new(lane: Lane) -> Psync {
        Psync {
            lane,
            payload: None,
        }
    }

    /// Flags of each call.
    fn flags(&self) -> i32 {
        let job = &self.lane.job;
        let set = [
            (libc::RWF_DSYNC, job.sync == Sync::RwfDsync),
            (libc::RWF_HIPRI, job.polled),
            (libc::RWF_DONTCACHE, job.transfer == Transfer::DontCache),
            (libc::RWF_ATOMIC, job.atomic),
        ];
        set.iter()
            .filter(|(_, wanted)| *wanted)
            .fold(0, |flags, (flag, _)| flags | flag)
    }

    fn write_by(
        &mut self,
        thread: &mut Thread<'_>,
        write: impl Fn(&File, &[u8], u64) -> rustix::io::Result<usize>,
    ) -> std::result::Result<(), Fault> {
        match self.lane.job.sync {
            Sync::Fsync => self.write(thread, write, Fsync),
            Sync::Fdatasync => self.write(thread, write, Fdatasync),
            Sync::SyncFileRange => self.write(thread, write, FileRange),
            _ => self.write(thread, write, NoCall),
        }
    }

    fn write<S: SyncCall>(
        &mut self,
        thread: &mut Thread<'_>,
        write: impl Fn(&File, &[u8], u64) -> rustix::io::Result<usize>,
        sync: S,
    ) -> std::result::Result<(), Fault> {
        let lane = &mut self.lane;
        let payload = self.payload.as_mut().expect("made by prepare");
        let bytes = lane.job.record_bytes;
        let mut group = Group::new(lane.job.sync_every);
        while let Some(offset_bytes) = lane.next(thread)? {
            let slot = payload.slot_at(offset_bytes);
            let record = payload.stamp(slot, offset_bytes, lane.tally.writes + 1);
            let Some(begin_ns) = thread.begin() else {
                break;
            };
            lane.tally.writes += 1;
            match write(&lane.file, record, offset_bytes) {
                Ok(count) if count == record.len() => {}
                other => lane.write_rest(&write, record, offset_bytes, other)?,
            }
            let mut end_ns = mono_ns();
            thread.step(Step::Write, end_ns - begin_ns);
            if S::CALLS
                && let Some(range) = group.wrote(offset_bytes, bytes)
            {
                end_ns = lane.sync(thread, &sync, range, end_ns)?;
            }
            thread.step(Step::Total, end_ns - begin_ns);
            thread.end(begin_ns, end_ns, bytes);
        }
        lane.finish(thread, &sync, group)
    }

    fn read_by(
        &mut self,
        thread: &mut Thread<'_>,
        read: impl Fn(&File, &mut [u8], u64) -> rustix::io::Result<usize>,
    ) -> std::result::Result<(), Fault> {
        match self.lane.job.verify {
            true => self.read::<true>(thread, read),
            false => self.read::<false>(thread, read),
        }
    }

    fn read<const VERIFIES: bool>(
        &mut self,
        thread: &mut Thread<'_>,
        read: impl Fn(&File, &mut [u8], u64) -> rustix::io::Result<usize>,
    ) -> std::result::Result<(), Fault> {
        let lane = &mut self.lane;
        let record = self.payload.as_mut().expect("made by prepare").slot_mut(0);
        while let Some(offset_bytes) = lane.next(thread)? {
            let Some(begin_ns) = thread.begin() else {
                break;
            };
            match read(&lane.file, record, offset_bytes) {
                Ok(count) if count == record.len() => {}
                other => lane.read_rest(&read, record, offset_bytes, other)?,
            }
            let end_ns = mono_ns();
            thread.step(Step::Read, end_ns - begin_ns);
            thread.step(Step::Total, end_ns - begin_ns);
            thread.end(begin_ns, end_ns, record.len() as u64);
            if VERIFIES {
                lane.compare_read(record, offset_bytes);
            }
        }
        Ok(())
    }
}

impl Laned for Psync {
    fn into_lane(self) -> Lane {
        self.lane
    }
}

impl Worker for Psync {
    fn prepare(&mut self) -> Result<()> {
        self.payload = Some(self.lane.payload(1)?);
        Ok(())
    }

    fn work(&mut self, thread: &mut Thread<'_>) -> std::result::Result<(), Fault> {
        let flags = self.flags();
        match (self.lane.job.access.writes(), flags) {
            (true, 0) => self.write_by(thread, calls::pwrite),
            (true, _) => self.write_by(thread, |file, record, offset_bytes| {
                calls::pwrite_with(file, record, offset_bytes, flags)
            }),
            (false, 0) => self.read_by(thread, calls::pread),
            (false, _) => self.read_by(thread, |file, record, offset_bytes| {
                calls::pread_with(file, record, offset_bytes, flags)
            }),
        }
    }
}

impl Lane {
    /// Goes on with a write that was cut or failed, which `found` says.
    #[cold]
    fn write_rest(
        &self,
        write: impl Fn(&File, &[u8], u64) -> rustix::io::Result<usize>,
        record: &[u8],
        offset_bytes: u64,
        found: rustix::io::Result<usize>,
    ) -> std::result::Result<(), Fault> {
        self.go_on("write", offset_bytes, found, |done| {
            write(&self.file, &record[done..], offset_bytes + done as u64)
        })
    }

    /// As [`Lane::write_rest`], for a read.
    #[cold]
    fn read_rest(
        &self,
        read: impl Fn(&File, &mut [u8], u64) -> rustix::io::Result<usize>,
        record: &mut [u8],
        offset_bytes: u64,
        found: rustix::io::Result<usize>,
    ) -> std::result::Result<(), Fault> {
        self.go_on("read", offset_bytes, found, |done| {
            read(&self.file, &mut record[done..], offset_bytes + done as u64)
        })
    }

    /// Calls `again`, with how many bytes are done, until all of the record is.
    fn go_on(
        &self,
        what: &str,
        offset_bytes: u64,
        mut found: rustix::io::Result<usize>,
        mut again: impl FnMut(usize) -> rustix::io::Result<usize>,
    ) -> std::result::Result<(), Fault> {
        let total = self.job.record_bytes as usize;
        let mut done = 0;
        loop {
            match found {
                Ok(0) => {
                    let reason = format!("it ended after {done} bytes");
                    return Err(self.record_fault(what, offset_bytes, reason));
                }
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(errno) => {
                    let reason = std::io::Error::from(errno);
                    return Err(self.record_fault(what, offset_bytes, reason));
                }
            }
            if done >= total {
                return Ok(());
            }
            found = again(done);
        }
    }
}

#[cfg(test)]
mod tests;
