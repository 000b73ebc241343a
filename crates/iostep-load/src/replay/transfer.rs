//! Reads and writes, and the memory they use.

use std::os::fd::{AsRawFd, BorrowedFd};

use iostep_model::syscall::Direction;
use rustix::io::Errno;

use super::handles::last_error;
use crate::engine::random::Random;

/// Most bytes of a thread's buffer; larger transfers go through it several times in one call.
const BUFFER_BYTES: usize = 1 << 20;
/// Alignment for O_DIRECT: the largest logical block of a device.
const ALIGNMENT_BYTES: usize = 4096;
/// Buffers of one call (`IOV_MAX`, include/uapi/linux/uio.h).
const MOST_BUFFERS: usize = 1024;
/// The most that one call transfers here.
pub(super) const MOST_BYTES: u64 = (MOST_BUFFERS * BUFFER_BYTES) as u64;

/// What a call transfers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) direction: Direction,
    /// Bytes, at most [`MOST_BYTES`].
    pub(super) size: u64,
    /// Buffers that the recorded call had.
    pub(super) buffers: u32,
    /// Where; none: at the file's position.
    pub(super) offset: Option<i64>,
    /// `RWF_` flags.
    pub(super) flags: u32,
}

/// A thread's memory: incompressible bytes to write, and room to read into.
pub(super) struct Buffer {
    memory: Vec<u8>,
    source_at: usize,
    bytes: usize,
}

impl Buffer {
    /// For transfers of up to `largest` bytes. What is written differs from that of another
    /// `stream`.
    pub(super) fn new(largest: u64, stream: u64) -> Buffer {
        let bytes = usize::try_from(largest)
            .unwrap_or(BUFFER_BYTES)
            .min(BUFFER_BYTES);
        let bytes = bytes.next_multiple_of(ALIGNMENT_BYTES).max(ALIGNMENT_BYTES);
        let memory = vec![0; 2 * bytes + ALIGNMENT_BYTES];
        let source_at = memory.as_ptr().align_offset(ALIGNMENT_BYTES);
        let mut buffer = Buffer {
            memory,
            source_at,
            bytes,
        };
        Random::new(1, stream).fill(&mut buffer.memory[source_at..source_at + bytes]);
        buffer
    }

    /// The bytes that are written.
    pub(super) fn source(&self) -> &[u8] {
        &self.memory[self.source_at..self.source_at + self.bytes]
    }

    /// Performs a transfer with one system call, and returns the bytes that it returned.
    pub(super) fn transfer(&mut self, file: BorrowedFd<'_>, what: Transfer) -> Result<i64, Errno> {
        let start = match what.direction {
            Direction::Write => self.source_at,
            Direction::Read => self.source_at + self.bytes,
        };
        let memory = self.memory[start..start + self.bytes].as_mut_ptr();
        let size = what.size as usize;
        if what.buffers == 1 && what.flags == 0 && size <= self.bytes {
            one(file, what, memory)
        } else {
            several(file, what, memory, self.bytes)
        }
    }
}

fn one(file: BorrowedFd<'_>, what: Transfer, memory: *mut u8) -> Result<i64, Errno> {
    let (fd, memory, size) = (file.as_raw_fd(), memory.cast(), what.size as usize);
    // SAFETY: `memory` has at least `size` bytes, which nobody else has a reference to.
    let done = unsafe {
        match (what.direction, what.offset) {
            (Direction::Read, None) => libc::read(fd, memory, size),
            (Direction::Read, Some(at)) => libc::pread64(fd, memory, size, at),
            (Direction::Write, None) => libc::write(fd, memory, size),
            (Direction::Write, Some(at)) => libc::pwrite64(fd, memory, size, at),
        }
    };
    result(done)
}

/// The vectored calls; also a transfer that is larger than the memory, which then comes several
/// times.
fn several(
    file: BorrowedFd<'_>,
    what: Transfer,
    memory: *mut u8,
    bytes: usize,
) -> Result<i64, Errno> {
    let size = what.size as usize;
    let least = size.div_ceil(bytes).max(1);
    let wanted = (what.buffers as usize).clamp(least, MOST_BUFFERS.max(least));
    let each = size.div_ceil(wanted).max(1);
    let mut rest = size;
    let pieces = (0..wanted).map(|_| {
        let iov_len = each.min(rest);
        rest -= iov_len;
        libc::iovec {
            iov_base: memory.cast(),
            iov_len,
        }
    });
    let pieces: Vec<libc::iovec> = pieces.collect();
    let (fd, count) = (file.as_raw_fd(), pieces.len() as i32);
    let flags = what.flags as i32;
    // -1 is "at the file's own position"; a recorded negative offset fails as it did.
    let at = match what.offset {
        None => -1,
        Some(at) if at < 0 => return Err(Errno::INVAL),
        Some(at) => at,
    };
    // SAFETY: each piece lies in `memory`, to which nobody has a reference; that the kernel may
    // fill it several times does no harm.
    let done = unsafe {
        match what.direction {
            Direction::Read => libc::preadv2(fd, pieces.as_ptr(), count, at, flags),
            Direction::Write => libc::pwritev2(fd, pieces.as_ptr(), count, at, flags),
        }
    };
    result(done)
}

fn result(done: isize) -> Result<i64, Errno> {
    if done >= 0 {
        Ok(done as i64)
    } else {
        Err(last_error())
    }
}
