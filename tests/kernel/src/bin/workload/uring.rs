//! io_uring.

use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, squeue, types};
use iostep_kernel_tests::stamp::BLOCK_BYTES;
use iostep_model::SyncKind;

use crate::run::{Aligned, Run, Target};

const BLOCKS: u64 = 64;
const BATCH: u64 = 8;

/// Submits entries and waits until all are done.
///
/// Errors: those of the ring, and a write that is short or failed.
fn finish(ring: &mut IoUring, entries: &[squeue::Entry]) -> std::io::Result<()> {
    // SAFETY: every caller keeps the file and the buffers of its entries until this returns, and
    // this returns only when all are complete.
    unsafe { ring.submission().push_multiple(entries) }
        .map_err(|_| std::io::Error::other("the submission queue is full"))?;
    ring.submit_and_wait(entries.len())?;
    for completion in ring.completion() {
        match completion.result() {
            result if result < 0 => return Err(std::io::Error::from_raw_os_error(-result)),
            result if result as u64 != completion.user_data() => {
                return Err(std::io::Error::other("a short write"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn write_entry(target: &Target, buffer: &Aligned, index: u64) -> squeue::Entry {
    let fd = types::Fd(target.file.as_raw_fd());
    let bytes = buffer.bytes();
    opcode::Write::new(fd, bytes.as_ptr(), bytes.len() as u32)
        .offset(index * BLOCK_BYTES as u64)
        .build()
        .user_data(bytes.len() as u64)
}

fn write_all(run: &mut Run, ring: &mut IoUring, target: &Target) -> anyhow::Result<()> {
    for first in (0..BLOCKS).step_by(BATCH as usize) {
        let indices: Vec<u64> = (first..first + BATCH).map(|i| i * 37 % BLOCKS).collect();
        let buffers: Vec<Aligned> = indices
            .iter()
            .map(|&index| run.blocks(target.id, index, 1))
            .collect();
        let entries: Vec<_> = indices
            .iter()
            .zip(&buffers)
            .map(|(&index, buffer)| write_entry(target, buffer, index))
            .collect();
        finish(ring, &entries)?;
    }
    Ok(())
}

/// Through the page cache, left to the kernel.
pub fn buffered(run: &mut Run) -> anyhow::Result<()> {
    let target = run.create("ring.dat", 0)?;
    write_all(run, &mut IoUring::new(16)?, &target)
}

/// Around the page cache.
pub fn direct(run: &mut Run) -> anyhow::Result<()> {
    let target = run.create("ring.dat", libc::O_DIRECT)?;
    write_all(run, &mut IoUring::new(16)?, &target)
}

/// Submitted by the kernel's polling thread.
pub fn sqpoll(run: &mut Run) -> anyhow::Result<()> {
    let target = run.create("ring.dat", libc::O_DIRECT)?;
    let mut ring = IoUring::builder().setup_sqpoll(100).build(16)?;
    write_all(run, &mut ring, &target)
}

/// A write and an fsync behind it, in one submission.
pub fn fsync(run: &mut Run) -> anyhow::Result<()> {
    let target = run.create("ring.db", 0)?;
    let mut ring = IoUring::new(16)?;
    let fd = types::Fd(target.file.as_raw_fd());
    for index in 0..16 {
        let buffer = run.blocks(target.id, index, 1);
        let write = write_entry(&target, &buffer, index).flags(squeue::Flags::IO_LINK);
        let sync = opcode::Fsync::new(fd).build();
        run.sync(SyncKind::UringFsync, Some(target.id), || {
            finish(&mut ring, &[write, sync])
        })?;
    }
    Ok(())
}
