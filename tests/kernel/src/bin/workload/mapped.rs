//! Writes through memory.

use std::ffi::c_void;
use std::io;

use iostep_kernel_tests::stamp::BLOCK_BYTES;
use iostep_model::SyncKind;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags};

use crate::run::{Run, Target};

const BLOCKS: usize = 64;

/// A whole file in memory.
struct Mapping {
    start: *mut c_void,
    length: usize,
}

impl Mapping {
    fn of(target: &Target, length: usize) -> io::Result<Mapping> {
        target.file.set_len(length as u64)?;
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing; the file is
        // ours alone and keeps its length as long as the mapping lives.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &target.file,
                0,
            )?
        };
        Ok(Mapping { start, length })
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is `length` bytes long and only reached through this borrow.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.length) }
    }

    fn sync(&mut self, offset: usize, length: usize) -> io::Result<()> {
        let range = &mut self.bytes()[offset..offset + length];
        let start = range.as_mut_ptr().cast();
        // SAFETY: the range was cut out of the mapping by a checked index.
        unsafe { rustix::mm::msync(start, length, MsyncFlags::SYNC)? };
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: start and length are those of mmap, and no borrow outlives the value.
        // The process ends soon, so that a failure has no consequence.
        let _ = unsafe { rustix::mm::munmap(self.start, self.length) };
    }
}

fn fill(run: &mut Run, target: &Target, mapping: &mut Mapping, indices: std::ops::Range<usize>) {
    for index in indices {
        let block = run.block(target.id, index as u64);
        mapping.bytes()[index * BLOCK_BYTES..][..BLOCK_BYTES].copy_from_slice(&block);
    }
}

/// Eight blocks at a time, synced by `msync`.
pub fn msync(run: &mut Run) -> anyhow::Result<()> {
    let target = run.create("mapped.db", 0)?;
    let mut mapping = Mapping::of(&target, BLOCKS * BLOCK_BYTES)?;
    for first in (0..BLOCKS).step_by(8) {
        fill(run, &target, &mut mapping, first..first + 8);
        run.sync(SyncKind::Msync, Some(target.id), || {
            mapping.sync(first * BLOCK_BYTES, 8 * BLOCK_BYTES)
        })?;
    }
    Ok(())
}

/// Left to the kernel.
pub fn unsynced(run: &mut Run) -> anyhow::Result<()> {
    let target = run.create("mapped.dat", 0)?;
    let mut mapping = Mapping::of(&target, BLOCKS * BLOCK_BYTES)?;
    fill(run, &target, &mut mapping, 0..BLOCKS);
    Ok(())
}
