//! The ioctls of `/dev/loop-control` and `/dev/loopN` (include/uapi/linux/loop.h).

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd};

use linux_raw_sys::loop_device::{
    LOOP_CLR_FD, LOOP_CONFIGURE, LOOP_CTL_GET_FREE, loop_config, loop_info64,
};
use rustix::io;
use rustix::ioctl::{self, Ioctl, IoctlOutput, NoArg, Opcode, Setter};

/// `LO_FLAGS_AUTOCLEAR`: detach at the last close.
const AUTOCLEAR: u32 = 4;
/// `LO_FLAGS_DIRECT_IO`: go to the backing file past its page cache.
const DIRECT_IO: u32 = 16;

/// `LOOP_CTL_GET_FREE`: the number is the call's own result.
struct GetFree;

// SAFETY: the opcode takes no argument and returns a device number; nothing is read or written
// through the pointer.
unsafe impl Ioctl for GetFree {
    type Output = u32;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        LOOP_CTL_GET_FREE
    }

    fn as_ptr(&mut self) -> *mut rustix::ffi::c_void {
        std::ptr::null_mut()
    }

    unsafe fn output_from_ptr(
        out: IoctlOutput,
        _: *mut rustix::ffi::c_void,
    ) -> io::Result<Self::Output> {
        u32::try_from(out).map_err(|_| io::Errno::RANGE)
    }
}

/// The number of a loop device that nobody uses at this moment; the kernel makes one if need be.
pub(crate) fn free_number(control: &File) -> io::Result<u32> {
    // SAFETY: see `GetFree`.
    unsafe { ioctl::ioctl(control, GetFree) }
}

/// Binds `backing` to the loop device, which detaches itself when nobody holds it any more.
///
/// `EBUSY` if somebody else was faster.
pub(crate) fn configure(
    device: &File,
    backing: BorrowedFd<'_>,
    block_bytes: u32,
    direct_io: bool,
) -> io::Result<()> {
    let config = loop_config {
        fd: u32::try_from(backing.as_raw_fd()).map_err(|_| io::Errno::BADF)?,
        block_size: block_bytes,
        info: loop_info64 {
            lo_flags: AUTOCLEAR | if direct_io { DIRECT_IO } else { 0 },
            ..empty_info()
        },
        __reserved: [0; 8],
    };
    // SAFETY: LOOP_CONFIGURE reads one `loop_config`, which this is.
    unsafe { ioctl::ioctl(device, Setter::<LOOP_CONFIGURE, loop_config>::new(config)) }
}

/// Detaches now, or at the last close if the device is still held by others.
pub(crate) fn clear(device: &File) -> io::Result<()> {
    // SAFETY: LOOP_CLR_FD takes no argument.
    unsafe { ioctl::ioctl(device, NoArg::<LOOP_CLR_FD>::new()) }
}

fn empty_info() -> loop_info64 {
    loop_info64 {
        lo_device: 0,
        lo_inode: 0,
        lo_rdevice: 0,
        lo_offset: 0,
        lo_sizelimit: 0,
        lo_number: 0,
        lo_encrypt_type: 0,
        lo_encrypt_key_size: 0,
        lo_flags: 0,
        lo_file_name: [0; 64],
        lo_crypt_name: [0; 64],
        lo_encrypt_key: [0; 32],
        lo_init: [0; 2],
    }
}
