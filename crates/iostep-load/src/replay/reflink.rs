//! Blocks that two files share.

use std::os::fd::{AsRawFd, OwnedFd};

use iostep_model::syscall::constants::FICLONERANGE;
use rustix::io::Errno;

use super::handles::last_error;

/// Gives one file the blocks of another. Where the filesystem cannot, the bytes are copied, so that
/// later calls find them, and the error is the result.
pub(super) fn reflink(
    from: &OwnedFd,
    to: &OwnedFd,
    offsets: (i64, i64),
    size: u64,
) -> Result<i64, Errno> {
    let range = CloneRange {
        from: i64::from(from.as_raw_fd()),
        from_offset: offsets.0 as u64,
        size,
        to_offset: offsets.1 as u64,
    };
    // SAFETY: the request reads one such structure (include/uapi/linux/fs.h), which lives through it.
    let done = unsafe {
        libc::ioctl(
            to.as_raw_fd(),
            FICLONERANGE as libc::Ioctl,
            &raw const range,
        )
    };
    if done == 0 {
        return Ok(0);
    }
    let errno = last_error();
    if matches!(errno, Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL) {
        copy_all(from, to, &range)?;
    }
    Err(errno)
}

/// `struct file_clone_range` (include/uapi/linux/fs.h).
#[repr(C)]
struct CloneRange {
    from: i64,
    from_offset: u64,
    /// Bytes; 0 for all from there on.
    size: u64,
    to_offset: u64,
}

/// Copies what a clone would have shared.
fn copy_all(from: &OwnedFd, to: &OwnedFd, range: &CloneRange) -> Result<(), Errno> {
    let (mut from_at, mut to_at) = (range.from_offset, range.to_offset);
    let mut rest = match range.size {
        0 => u64::MAX,
        size => size,
    };
    while rest > 0 {
        let piece = rest.min(1 << 30) as usize;
        let done =
            rustix::fs::copy_file_range(from, Some(&mut from_at), to, Some(&mut to_at), piece)?;
        if done == 0 {
            break;
        }
        rest -= done as u64;
    }
    Ok(())
}
