//! A ring, and the buffers that the kernel reads and writes by it.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;

use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};

use crate::error::{Error, Result};
use crate::file::payload::Payload;
use crate::sandbox;

/// The kernel registers buffers of at most 1 GiB (io_uring/rsrc.c).
const MOST_REGISTERED_BYTES: usize = 1 << 30;
const FILE: Fixed = Fixed(0);

/// One thread's ring, with its file and its buffers registered where the kernel lets it.
pub struct Ring {
    ring: IoUring,
    /// Given back only when the kernel is done with it.
    payload: ManuallyDrop<Payload>,
    /// Buffers that nobody uses.
    free: Vec<u32>,
    /// Where each buffer is in `free`, if it is.
    place_in_free: Vec<usize>,
    record_bytes: usize,
    /// Buffers in one registration; `None` if they are not registered.
    registered: Option<usize>,
    is_polled: bool,
    /// Entries whose completion has not been seen.
    under_way: usize,
}

/// A read or write of (the rest of) a record.
#[derive(Clone, Copy, Debug)]
pub struct RecordTransfer {
    pub writes: bool,
    pub buffer: u32,
    /// How much of the record is done.
    pub done_bytes: u32,
    /// Where the record is in the file.
    pub offset_bytes: u64,
    /// `RWF_` flags.
    pub flags: i32,
}

/// Until when to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Until something has completed.
    Completion,
    /// Until something has completed, but not longer than so many nanoseconds.
    AtMost(u64),
}

/// Says whether this kernel lets this process have a ring.
///
/// Errors: `Unsupported` if not; `Io`.
pub fn probe(is_polled: bool) -> Result<()> {
    if sandbox::is_entered() {
        return Err(Error::Unsupported {
            what: "io_uring is not for Android's apps: its filter kills whoever calls it".into(),
            hint: "choose --engine psync, or measure from a shell of adb".into(),
        });
    }
    build(1, is_polled).map(drop)
}

/// The newest way first: completions are then worked on by this thread, when it asks for them,
/// and do not interrupt it.
fn build(entries: u32, is_polled: bool) -> Result<IoUring> {
    let ways: [fn(&mut io_uring::Builder); 3] = [
        // Linux 6.1
        |builder| {
            builder.setup_single_issuer().setup_defer_taskrun();
        },
        // Linux 5.19
        |builder| {
            builder.setup_coop_taskrun();
        },
        |_| {},
    ];
    let mut error = io::Error::from_raw_os_error(libc::EINVAL);
    for way in ways {
        let mut builder = IoUring::builder();
        way(&mut builder);
        if is_polled {
            builder.setup_iopoll();
        }
        match builder.build(entries) {
            Ok(ring) => return Ok(ring),
            Err(refused) => error = refused,
        }
        if error.raw_os_error() != Some(libc::EINVAL) {
            break;
        }
    }
    Err(refusal(error))
}

fn refusal(error: io::Error) -> Error {
    let unsupported = |what: &str, hint: &str| Error::Unsupported {
        what: what.into(),
        hint: hint.into(),
    };
    match error.raw_os_error() {
        Some(libc::ENOSYS) => unsupported("this kernel has no io_uring", "choose --engine psync"),
        Some(libc::EPERM | libc::EACCES) => unsupported(
            "io_uring is forbidden here, by kernel.io_uring_disabled or a seccomp filter",
            "allow it, or choose --engine psync",
        ),
        _ => Error::io("io_uring", "make a ring")(error),
    }
}

impl Ring {
    /// A ring for `depth` operations at once on `file`, which must stay open. To be used by the
    /// calling thread only.
    ///
    /// Errors: as [`probe`].
    pub fn new(depth: u32, is_polled: bool, file: &File, payload: Payload) -> Result<Ring> {
        let ring = build(depth, is_polled)?;
        ring.submitter()
            .register_files(&[file.as_raw_fd()])
            .map_err(Error::io("io_uring", "register a file"))?;
        let record_bytes = payload.all().len() / payload.slots();
        Ok(Ring {
            registered: register(&ring, &payload, record_bytes),
            ring,
            free: (0..payload.slots() as u32).collect(),
            place_in_free: (0..payload.slots()).collect(),
            payload: ManuallyDrop::new(payload),
            record_bytes,
            is_polled,
            under_way: 0,
        })
    }

    /// How many entries are not complete.
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// Takes a buffer that nobody uses, if possible that of a record at `offset_bytes`. There are
    /// at least as many as the depth.
    pub fn take_buffer(&mut self, offset_bytes: u64) -> u32 {
        let wanted = self.payload.slot_at(offset_bytes);
        let place = self.place_in_free[wanted];
        let is_free = self.free.get(place).is_some_and(|&b| b as usize == wanted);
        let last = self.free.len().checked_sub(1);
        let last = last.expect("no more are taken than the depth");
        let buffer = self.free.swap_remove(if is_free { place } else { last });
        if is_free && place < last {
            self.place_in_free[self.free[place] as usize] = place;
        }
        buffer
    }

    /// Gives a buffer back that no entry under way uses.
    pub fn give_back(&mut self, buffer: u32) {
        self.place_in_free[buffer as usize] = self.free.len();
        self.free.push(buffer);
    }

    /// The buffers. What an entry under way uses is the kernel's.
    pub fn payload(&mut self) -> &mut Payload {
        &mut self.payload
    }

    /// Adds a transfer; its completion will have this number.
    pub fn transfer(&mut self, transfer: RecordTransfer, number: u64) {
        let RecordTransfer {
            writes,
            buffer,
            done_bytes,
            offset_bytes,
            flags,
        } = transfer;
        let at = buffer as usize * self.record_bytes + done_bytes as usize;
        let length = (self.record_bytes - done_bytes as usize) as u32;
        assert!(at < self.payload.memory().length());
        // SAFETY: within the buffers, as was just asserted.
        let start = unsafe { self.payload.memory().start().add(at) };
        let offset_bytes = offset_bytes + u64::from(done_bytes);
        let index = self
            .registered
            .map(|buffers| (buffer as usize / buffers) as u16);
        let entry = match (writes, index) {
            (true, Some(index)) => opcode::WriteFixed::new(FILE, start, length, index)
                .offset(offset_bytes)
                .rw_flags(flags)
                .build(),
            (true, None) => opcode::Write::new(FILE, start, length)
                .offset(offset_bytes)
                .rw_flags(flags)
                .build(),
            (false, Some(index)) => opcode::ReadFixed::new(FILE, start, length, index)
                .offset(offset_bytes)
                .rw_flags(flags)
                .build(),
            (false, None) => opcode::Read::new(FILE, start, length)
                .offset(offset_bytes)
                .rw_flags(flags)
                .build(),
        };
        self.push(entry, number);
    }

    /// Adds an entry on the file; its completion will have this number.
    pub fn push(&mut self, entry: squeue::Entry, number: u64) {
        // SAFETY: the file stays open, and the buffers stay until nothing is under way.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(number)) };
        pushed.expect("an operation has one entry at a time, and there is room for all");
        self.under_way += 1;
    }

    /// Hands what was added to the kernel, and waits. Returning early does no harm: the kernel
    /// may have been interrupted, or wants completions to be taken first.
    ///
    /// Errors: whatever else the kernel says.
    pub fn enter(&mut self, wait: Wait) -> io::Result<()> {
        let submitter = self.ring.submitter();
        let entered = match wait {
            Wait::Completion => submitter.submit_and_wait(1),
            // While polling no time limit is heard, and kernels before 5.11 have none.
            Wait::AtMost(_) if self.is_polled || !self.ring.params().is_feature_ext_arg() => {
                submitter.submit()
            }
            Wait::AtMost(ns) => {
                let limit = Timespec::new()
                    .sec(ns / 1_000_000_000)
                    .nsec((ns % 1_000_000_000) as u32);
                submitter.submit_with_args(1, &SubmitArgs::new().timespec(&limit))
            }
        };
        match entered {
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            },
            Ok(_) => Ok(()),
        }
    }

    /// Takes the next completion: its number and result, as of a system call.
    #[inline]
    pub fn completed(&mut self) -> Option<(u64, i32)> {
        let entry = self.ring.completion().next()?;
        self.under_way -= 1;
        Some((entry.user_data(), entry.result()))
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        while self.under_way > 0 {
            if self.enter(Wait::Completion).is_err() {
                // The kernel still has the buffers, so nobody else may have them again.
                return;
            }
            while self.completed().is_some() {}
        }
        // SAFETY: nothing is under way, and nothing uses it after this.
        unsafe { ManuallyDrop::drop(&mut self.payload) };
    }
}

/// Registers the buffers in as few pieces as possible. `None` if the kernel does not take them,
/// as with little RLIMIT_MEMLOCK before Linux 5.12: it goes without, a little slower.
fn register(ring: &IoUring, payload: &Payload, record_bytes: usize) -> Option<usize> {
    let buffers = (MOST_REGISTERED_BYTES / record_bytes).max(1);
    let memory = payload.memory();
    let piece_bytes = buffers * record_bytes;
    let pieces: Vec<_> = (0..memory.length())
        .step_by(piece_bytes)
        .map(|at| libc::iovec {
            // SAFETY: below the length.
            iov_base: unsafe { memory.start().add(at) }.cast(),
            iov_len: piece_bytes.min(memory.length() - at),
        })
        .collect();
    // SAFETY: the buffers outlive the ring's last entry.
    let registered = unsafe { ring.submitter().register_buffers(&pieces) };
    registered.ok().map(|()| buffers)
}
