//! Memory that a device may read and write directly.

use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::error::{Error, Result};

/// Pages of its own, zeroed, all of them there.
#[derive(Debug)]
pub struct Aligned {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the pages belong to this value alone.
unsafe impl Send for Aligned {}

impl Aligned {
    /// `bytes`, which is not 0, from a page's start on.
    ///
    /// Errors: `Io` without memory.
    pub fn new(bytes: usize) -> Result<Aligned> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // Without POPULATE the first reads would pay for page faults.
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: new anonymous pages, wherever the kernel likes.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) };
        let start = start.map_err(|errno| {
            Error::io("/proc/self/maps", "get memory for buffers")(errno.into())
        })?;
        let start = NonNull::new(start.cast()).expect("nothing is mapped at address 0");
        Ok(Aligned { start, bytes })
    }

    /// Length in bytes.
    pub fn length(&self) -> usize {
        self.bytes
    }

    /// Where it begins. What the caller does with it is to respect the borrows of the slices.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// `length` bytes from `at` on.
    ///
    /// Panics where a slice would.
    #[inline]
    pub fn part(&self, at: usize, length: usize) -> &[u8] {
        assert!(at <= self.bytes && length <= self.bytes - at);
        // SAFETY: within the pages, which are initialised and not given out for writing.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(at), length) }
    }

    /// As [`Aligned::part`], to change.
    #[inline]
    pub fn part_mut(&mut self, at: usize, length: usize) -> &mut [u8] {
        assert!(at <= self.bytes && length <= self.bytes - at);
        // SAFETY: within the pages, and borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(at), length) }
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: these pages were mapped by `new`, and nobody refers to them any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
