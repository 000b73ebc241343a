//! System calls that no crate of ours wraps.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `_IOR('v', 1, long)`, include/uapi/linux/fs.h.
const FS_IOC_GETVERSION: libc::c_ulong = 0x8008_7601;
/// `_IOWR('X', 119, int)`, include/uapi/linux/fs.h.
const FIFREEZE: libc::c_ulong = 0xc004_5877;
/// `_IOWR('X', 120, int)`, include/uapi/linux/fs.h.
const FITHAW: libc::c_ulong = 0xc004_5878;

fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The inode's generation.
pub fn generation(file: &File) -> io::Result<u32> {
    let mut value: libc::c_long = 0;
    // SAFETY: the filesystems write an int or a long at the pointer, which has room for either.
    check(unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_GETVERSION as _, &mut value) })?;
    Ok(value as u32)
}

/// Writes a range of a file out and waits for it.
pub fn sync_file_range(file: &File, offset_bytes: i64, bytes: i64) -> io::Result<()> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: takes no pointer.
    check(unsafe { libc::sync_file_range(file.as_raw_fd(), offset_bytes, bytes, flags) })
}

/// Brings everything to the device, in place, and stops all writes until [`thaw`].
pub fn freeze(root: &File) -> io::Result<()> {
    // SAFETY: the call ignores its argument.
    check(unsafe { libc::ioctl(root.as_raw_fd(), FIFREEZE as _, 0) })
}

/// Ends [`freeze`].
pub fn thaw(root: &File) -> io::Result<()> {
    // SAFETY: the call ignores its argument.
    check(unsafe { libc::ioctl(root.as_raw_fd(), FITHAW as _, 0) })
}
