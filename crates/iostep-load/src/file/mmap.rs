//! Copies to and from a mapping.

use std::fs::File;
use std::hint::black_box;
use std::ops::Range;

use iostep_model::bench::Sync;
use rustix::mm::{MapFlags, ProtFlags};

use super::bus::Guard;
use super::calls;
use super::payload::Payload;
use super::region::{Region, RegionWorker};
use super::sync::{SyncCall, with_call};
use crate::engine::{Fault, Thread, Worker};
use crate::error::{Error, Result};

/// A thread that copies records to or from a mapping of its own.
#[derive(Debug)]
pub struct Mmap {
    region: Region,
    /// Made by the thread itself.
    prepared: Option<(Payload, Mapping)>,
}

impl Mmap {
    /// One that works on `region`.
    pub fn new(region: Region) -> Mmap {
        Mmap {
            region,
            prepared: None,
        }
    }

    fn write<S: SyncCall>(
        &mut self,
        thread: &mut Thread<'_>,
        (mut payload, mapping): (Payload, Mapping),
        sync: S,
    ) -> std::result::Result<(), Fault> {
        let guard = mapping.guard(&self.region)?;
        let copy = |region: &Region, record: &[u8], offset_bytes| {
            mapping.copy_to(offset_bytes, record);
            check(region, &guard, "write", offset_bytes)
        };
        let end = mapping.msync(libc::MS_SYNC);
        let region = &mut self.region;
        region.write_records(thread, &mut payload, copy, (&sync, &end))
    }

    fn read(
        &mut self,
        thread: &mut Thread<'_>,
        (mut payload, mapping): (Payload, Mapping),
    ) -> std::result::Result<(), Fault> {
        let guard = mapping.guard(&self.region)?;
        let copy = |region: &Region, record: &mut [u8], offset_bytes| {
            mapping.copy_from(offset_bytes, record);
            // Somebody might look at the copy, for all the compiler knows.
            black_box(&mut *record);
            check(region, &guard, "read", offset_bytes)
        };
        self.region.read_records(thread, &mut payload, copy)
    }
}

#[inline]
fn check(
    region: &Region,
    guard: &Guard,
    what: &str,
    offset_bytes: u64,
) -> std::result::Result<(), Fault> {
    match guard.was_hit() {
        false => Ok(()),
        true => Err(region.record_fault(what, offset_bytes, LOST_PAGE)),
    }
}

impl RegionWorker for Mmap {
    fn into_region(self) -> Region {
        self.region
    }
}

impl Worker for Mmap {
    fn prepare(&mut self) -> Result<()> {
        let region = &self.region;
        self.prepared = Some((region.payload(1)?, Mapping::new(region)?));
        Ok(())
    }

    fn work(&mut self, thread: &mut Thread<'_>) -> std::result::Result<(), Fault> {
        let prepared = self.prepared.take().expect("made by prepare");
        if !self.region.job.access.writes() {
            return self.read(thread, prepared);
        }
        let msync = |flags| prepared.1.msync(flags);
        match self.region.job.sync {
            Sync::MsSync => {
                let sync = msync(libc::MS_SYNC);
                self.write(thread, prepared, sync)
            }
            Sync::MsAsync => {
                let sync = msync(libc::MS_ASYNC);
                self.write(thread, prepared, sync)
            }
            other => with_call!(other, call => self.write(thread, prepared, call)),
        }
    }
}

/// A SIGBUS does not say which of them it was.
const LOST_PAGE: &str = "SIGBUS: no space for the page, or an I/O error";

/// A shared mapping from the file's first byte to the end of a region's area.
#[derive(Debug)]
struct Mapping {
    start: *mut u8,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone; the file behind it is shared with anybody who
// opens it, in this process or not.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(region: &Region) -> Result<Mapping> {
        let io = |errno: rustix::io::Errno| Error::io(&region.path, "map")(errno.into());
        let protection = match region.job.access.writes() {
            true => ProtFlags::READ | ProtFlags::WRITE,
            false => ProtFlags::READ,
        };
        let end_bytes = region.offsets.span_bytes().end;
        let length = usize::try_from(end_bytes).map_err(|_| io(rustix::io::Errno::NOMEM))?;
        let anywhere = std::ptr::null_mut();
        // SAFETY: a new mapping wherever the kernel likes.
        let start = unsafe {
            rustix::mm::mmap(
                anywhere,
                length,
                protection,
                MapFlags::SHARED,
                &region.file,
                0,
            )
        };
        Ok(Mapping {
            start: start.map_err(io)?.cast(),
            length,
        })
    }

    fn guard(&self, region: &Region) -> std::result::Result<Guard, Fault> {
        let start = self.start.addr();
        Guard::new(start..start + self.length).map_err(|error| region.fault("mapping", error))
    }

    #[inline]
    fn place(&self, offset_bytes: u64, bytes: usize) -> *mut u8 {
        assert!(offset_bytes as usize <= self.length);
        assert!(bytes <= self.length - offset_bytes as usize);
        // SAFETY: within the mapping.
        unsafe { self.start.add(offset_bytes as usize) }
    }

    #[inline]
    fn copy_to(&self, offset_bytes: u64, record: &[u8]) {
        let place = self.place(offset_bytes, record.len());
        // SAFETY: the place is within the mapping and no Rust value lives there. Other threads
        // may write the same bytes of a shared file, as other processes might: nothing but the
        // file's content depends on who is last.
        unsafe { std::ptr::copy_nonoverlapping(record.as_ptr(), place, record.len()) }
    }

    #[inline]
    fn copy_from(&self, offset_bytes: u64, record: &mut [u8]) {
        let place = self.place(offset_bytes, record.len());
        // SAFETY: as in `copy_to`; nobody writes while a job reads.
        unsafe { std::ptr::copy_nonoverlapping(place, record.as_mut_ptr(), record.len()) }
    }

    /// A way to sync it. Good as long as the mapping is.
    fn msync(&self, flags: i32) -> Msync {
        Msync {
            start: self.start,
            flags,
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nobody refers to it any more.
        let _ = unsafe { rustix::mm::munmap(self.start.cast(), self.length) };
    }
}

/// `msync(2)` of the pages that a range of the file touches.
struct Msync {
    start: *mut u8,
    flags: i32,
}

impl SyncCall for Msync {
    const NAME: &'static str = "msync";

    fn sync(&self, _: &File, range: Range<u64>) -> rustix::io::Result<()> {
        let page_bytes = rustix::param::page_size() as u64;
        let first_bytes = range.start / page_bytes * page_bytes;
        let length = (range.end - first_bytes) as usize;
        // SAFETY: the range was written through the mapping, so it is within it; the kernel
        // changes no memory.
        calls::done(unsafe {
            let start = self.start.add(first_bytes as usize);
            libc::msync(start.cast(), length, self.flags)
        })
    }

    fn entry(&self, _: &Range<u64>) -> Option<io_uring::squeue::Entry> {
        None
    }
}
