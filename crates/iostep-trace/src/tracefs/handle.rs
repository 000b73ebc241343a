//! File handles: from an inode number to an open file, and from there to its generation, its
//! path and its extents, without knowing its name.
//!
//! Source: `ext4_nfs_get_inode` (fs/ext4/super.c): a handle of type `FILEID_INO32_GEN` is the
//! inode number and the generation, and generation 0 stands for any.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::fs::OFlags;

/// `FILEID_INO32_GEN`, include/linux/exportfs.h.
const INO32_GEN: i32 = 1;
const EMPTY: &CStr = c"";

/// `struct file_handle` with the room that ext4's handles need.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Handle {
    bytes: u32,
    kind: i32,
    inode: u32,
    generation: u32,
    /// The kernel may want to add the parent.
    spare: [u32; 4],
}

/// Opens an inode of the filesystem that `mount` lies in; `generation` 0 means any.
///
/// Errors: `ESTALE` if it is gone or of another generation; `EPERM` without
/// `CAP_DAC_READ_SEARCH`; what `open` gives.
pub(crate) fn open(
    mount: BorrowedFd,
    inode: u32,
    generation: u32,
    flags: OFlags,
) -> io::Result<OwnedFd> {
    let mut handle = Handle {
        bytes: 8,
        kind: INO32_GEN,
        inode,
        generation,
        spare: [0; 4],
    };
    let flags = (flags | OFlags::CLOEXEC).bits();
    // SAFETY: `handle` is laid out as `struct file_handle` with `bytes` bytes of handle, and
    // outlives the call; the kernel keeps no pointer.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_open_by_handle_at,
            mount.as_raw_fd(),
            &raw mut handle,
            flags,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made this descriptor for us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// The generation of an open inode.
///
/// Errors: `Unsupported` if the filesystem's handles are not of ext4's kind; what
/// `name_to_handle_at` gives.
pub(crate) fn generation(file: BorrowedFd) -> io::Result<u32> {
    let mut handle = Handle {
        bytes: 24,
        ..Handle::default()
    };
    let mut mount_id = 0i32;
    // SAFETY: `handle` has room for the `bytes` that it names, `EMPTY` ends with NUL, and the
    // kernel keeps no pointer.
    let result = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            file.as_raw_fd(),
            EMPTY.as_ptr(),
            &raw mut handle,
            &raw mut mount_id,
            libc::AT_EMPTY_PATH,
        )
    };
    match (result, handle.kind) {
        (0, INO32_GEN) => Ok(handle.generation),
        (0, _) => Err(io::ErrorKind::Unsupported.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A piece of a file on the filesystem's device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub offset_bytes: u64,
    pub device_bytes: u64,
    pub length_bytes: u64,
}

const BATCH: usize = 256;
/// Above this the rest of a file stays unknown: a bound on memory and time.
const MAX_EXTENTS: usize = 1 << 17;
/// `_IOWR('f', 11, struct fiemap)`, include/uapi/linux/fs.h.
const FS_IOC_FIEMAP: u64 = 0xC020_660B;
const FIEMAP_EXTENT_LAST: u32 = 1;
/// Unknown, delayed, encoded, inline: no plain place on the device.
const FIEMAP_EXTENT_NO_PLACE: u32 = 0x0002 | 0x0004 | 0x0008 | 0x0200;

/// `struct fiemap_extent`, include/uapi/linux/fiemap.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` with its extents.
#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [FiemapExtent; BATCH],
}

/// Where the file lies now. It does not flush: delayed parts are left out.
///
/// Errors: what `FS_IOC_FIEMAP` gives.
pub(crate) fn extents(file: BorrowedFd) -> io::Result<Vec<Placed>> {
    let mut placed = Vec::new();
    let mut request = Box::new(Fiemap {
        start: 0,
        length: u64::MAX,
        flags: 0,
        mapped_extents: 0,
        extent_count: BATCH as u32,
        reserved: 0,
        extents: [FiemapExtent::default(); BATCH],
    });
    while placed.len() < MAX_EXTENTS {
        request.length = u64::MAX - request.start;
        // SAFETY: `request` is laid out as `struct fiemap` followed by room for `extent_count`
        // extents, and outlives the call.
        let result =
            unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut *request) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let count = (request.mapped_extents as usize).min(BATCH);
        let found = &request.extents[..count];
        let with_place = found
            .iter()
            .filter(|e| e.flags & FIEMAP_EXTENT_NO_PLACE == 0);
        placed.extend(with_place.map(|extent| Placed {
            offset_bytes: extent.logical,
            device_bytes: extent.physical,
            length_bytes: extent.length,
        }));
        match found.last() {
            Some(last) if last.flags & FIEMAP_EXTENT_LAST == 0 => {
                request.start = last.logical.saturating_add(last.length);
            }
            _ => break,
        }
    }
    Ok(placed)
}
