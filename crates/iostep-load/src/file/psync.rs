//! One system call after the other.

use std::fs::File;

use iostep_model::bench::Transfer;
use rustix::io::Errno;

use super::calls;
use super::payload::Payload;
use super::region::{Region, RegionWorker};
use super::sync::{self, Fsync, with_call};
use crate::engine::{Fault, Thread, Worker};
use crate::error::Result;

/// A thread that reads or writes by `pread(2)`, `pwrite(2)` and their relatives with flags.
#[derive(Debug)]
pub struct Psync {
    region: Region,
    /// Made by the thread itself, so that it is near its CPU.
    payload: Option<Payload>,
}

impl Psync {
    /// One that works on `region`.
    pub fn new(region: Region) -> Psync {
        Psync {
            region,
            payload: None,
        }
    }

    /// Flags of each call.
    fn flags(&self) -> i32 {
        let job = &self.region.job;
        let set = [
            (libc::RWF_HIPRI, job.polled),
            (libc::RWF_DONTCACHE, job.transfer == Transfer::DontCache),
            (libc::RWF_ATOMIC, job.atomic),
        ];
        set.iter()
            .filter(|(_, wanted)| *wanted)
            .fold(sync::write_flags(job.sync), |flags, (flag, _)| flags | flag)
    }

    fn write_by(
        &mut self,
        thread: &mut Thread<'_>,
        write: impl Fn(&File, &[u8], u64) -> rustix::io::Result<usize>,
    ) -> std::result::Result<(), Fault> {
        let region = &mut self.region;
        let payload = self.payload.as_mut().expect("made by prepare");
        let whole = |region: &Region, record: &[u8], offset_bytes| match write(
            &region.file,
            record,
            offset_bytes,
        ) {
            Ok(count) if count == record.len() => Ok(()),
            other => region.write_rest(&write, record, offset_bytes, other),
        };
        with_call!(region.job.sync, call => {
            region.write_records(thread, payload, whole, (&call, &Fsync))
        })
    }

    fn read_by(
        &mut self,
        thread: &mut Thread<'_>,
        read: impl Fn(&File, &mut [u8], u64) -> rustix::io::Result<usize>,
    ) -> std::result::Result<(), Fault> {
        let payload = self.payload.as_mut().expect("made by prepare");
        let whole = |region: &Region, record: &mut [u8], offset_bytes| match read(
            &region.file,
            record,
            offset_bytes,
        ) {
            Ok(count) if count == record.len() => Ok(()),
            other => region.read_rest(&read, record, offset_bytes, other),
        };
        self.region.read_records(thread, payload, whole)
    }
}

impl RegionWorker for Psync {
    fn into_region(self) -> Region {
        self.region
    }
}

impl Worker for Psync {
    fn prepare(&mut self) -> Result<()> {
        self.payload = Some(self.region.payload(1)?);
        Ok(())
    }

    fn work(&mut self, thread: &mut Thread<'_>) -> std::result::Result<(), Fault> {
        let flags = self.flags();
        match (self.region.job.access.writes(), flags) {
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

impl Region {
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

    /// As [`Region::write_rest`], for a read.
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
