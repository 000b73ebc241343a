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
/// `_IO(0xf5, 1)`, `_IO(0xf5, 2)` and `_IOW(0xf5, 6, __u32)`, include/uapi/linux/f2fs.h.
const F2FS_IOC_START_ATOMIC_WRITE: libc::c_ulong = 0xf501;
const F2FS_IOC_COMMIT_ATOMIC_WRITE: libc::c_ulong = 0xf502;
const F2FS_IOC_GARBAGE_COLLECT: libc::c_ulong = 0x4004_f506;
/// `_IOW(0x94, 14, struct btrfs_ioctl_vol_args)`, include/uapi/linux/btrfs.h.
const BTRFS_IOC_SUBVOL_CREATE: libc::c_ulong = 0x5000_940e;

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

/// f2fs: what is written to the file from now on becomes visible together.
pub fn start_atomic_write(file: &File) -> io::Result<()> {
    // SAFETY: takes no pointer.
    check(unsafe { libc::ioctl(file.as_raw_fd(), F2FS_IOC_START_ATOMIC_WRITE as _) })
}

/// f2fs: ends [`start_atomic_write`], with everything on the device.
pub fn commit_atomic_write(file: &File) -> io::Result<()> {
    // SAFETY: takes no pointer.
    check(unsafe { libc::ioctl(file.as_raw_fd(), F2FS_IOC_COMMIT_ATOMIC_WRITE as _) })
}

/// f2fs: moves what is in use out of one section and waits for it.
///
/// Errors: EAGAIN or ENODATA if there is nothing to collect.
pub fn collect_garbage(file: &File) -> io::Result<()> {
    let wait = 1u32;
    // SAFETY: the filesystem reads a number at the pointer.
    check(unsafe { libc::ioctl(file.as_raw_fd(), F2FS_IOC_GARBAGE_COLLECT as _, &wait) })
}

/// Makes a btrfs subvolume in a directory.
pub fn create_subvolume(dir: &File, name: &str) -> io::Result<()> {
    // struct btrfs_ioctl_vol_args: a descriptor that is not used here, then the name.
    let mut arguments = [0u8; 4096];
    arguments[8..8 + name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: the filesystem reads 4096 bytes at the pointer.
    check(unsafe { libc::ioctl(dir.as_raw_fd(), BTRFS_IOC_SUBVOL_CREATE as _, &arguments) })
}

/// Ends [`freeze`].
pub fn thaw(root: &File) -> io::Result<()> {
    // SAFETY: the call ignores its argument.
    check(unsafe { libc::ioctl(root.as_raw_fd(), FITHAW as _, 0) })
}
