//! The calls that are timed, as programs make them: through the C library.
//!
//! Its wrappers are points of cancellation (pthreads(7)), which takes two atomic instructions in a
//! program with threads. Whoever says how long a program waits must not leave them out.

use std::fs::File;
use std::os::fd::AsRawFd;

use rustix::io::{Errno, Result};

/// What the last call of the C library in this thread failed with.
#[cold]
pub fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

#[inline]
fn counted(result: isize) -> Result<usize> {
    usize::try_from(result).map_err(|_| last_error())
}

/// The answer of a call that only succeeds or fails.
#[inline]
pub fn done(result: i32) -> Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

/// `pwrite(2)`.
#[inline]
pub fn pwrite(file: &File, bytes: &[u8], offset_bytes: u64) -> Result<usize> {
    let (fd, start) = (file.as_raw_fd(), bytes.as_ptr().cast());
    // SAFETY: the bytes are borrowed through the call.
    counted(unsafe { libc::pwrite64(fd, start, bytes.len(), offset_bytes as i64) })
}

/// `pwritev2(2)` of one part, with `RWF_` flags.
#[inline]
pub fn pwrite_with(file: &File, bytes: &[u8], offset_bytes: u64, flags: i32) -> Result<usize> {
    let part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: the bytes are borrowed through the call, which only reads them.
    counted(unsafe { libc::pwritev2(file.as_raw_fd(), &part, 1, offset_bytes as i64, flags) })
}

/// `pread(2)`.
#[inline]
pub fn pread(file: &File, bytes: &mut [u8], offset_bytes: u64) -> Result<usize> {
    let (fd, start) = (file.as_raw_fd(), bytes.as_mut_ptr().cast());
    // SAFETY: the bytes are borrowed through the call.
    counted(unsafe { libc::pread64(fd, start, bytes.len(), offset_bytes as i64) })
}

/// `preadv2(2)` into one part, with `RWF_` flags.
#[inline]
pub fn pread_with(file: &File, bytes: &mut [u8], offset_bytes: u64, flags: i32) -> Result<usize> {
    let part = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: the bytes are borrowed through the call.
    counted(unsafe { libc::preadv2(file.as_raw_fd(), &part, 1, offset_bytes as i64, flags) })
}

/// `fsync(2)`.
#[inline]
pub fn fsync(file: &File) -> Result<()> {
    // SAFETY: no memory is involved.
    done(unsafe { libc::fsync(file.as_raw_fd()) })
}

/// `fdatasync(2)`.
#[inline]
pub fn fdatasync(file: &File) -> Result<()> {
    // SAFETY: no memory is involved.
    done(unsafe { libc::fdatasync(file.as_raw_fd()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_go_out_and_come_back_with_and_without_flags() {
        let file = tempfile::tempfile().expect("a file");
        let mut found = [0; 4];
        assert_eq!(pwrite(&file, b"abcd", 4096), Ok(4));
        assert_eq!(pwrite_with(&file, b"xy", 4097, libc::RWF_DSYNC), Ok(2));
        assert_eq!(pread(&file, &mut found, 4096), Ok(4));
        assert_eq!(&found, b"axyd");
        assert_eq!(pread_with(&file, &mut found[..2], 4098, 0), Ok(2));
        assert_eq!(&found, b"ydyd");
        assert_eq!(pread(&file, &mut found, 4100), Ok(0));
        assert_eq!((fsync(&file), fdatasync(&file)), (Ok(()), Ok(())));
    }

    #[test]
    fn what_fails_says_why() {
        let (reader, _writer) = rustix::pipe::pipe().expect("a pipe");
        let pipe = File::from(reader);
        assert_eq!(pread(&pipe, &mut [0], 0), Err(Errno::SPIPE));
        assert_eq!(pread_with(&pipe, &mut [0], 0, 0), Err(Errno::SPIPE));
        assert_eq!(pwrite(&pipe, b"x", 0), Err(Errno::SPIPE));
        assert_eq!(pwrite_with(&pipe, b"x", 0, 0), Err(Errno::SPIPE));
        assert_eq!(fsync(&pipe), Err(Errno::INVAL));
        assert_eq!(fdatasync(&pipe), Err(Errno::INVAL));
    }
}
