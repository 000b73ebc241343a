//! Direct I/O.

use std::os::unix::fs::FileExt;

use iostep_kernel_tests::stamp::BLOCK_BYTES;
use iostep_model::SyncKind;

use crate::run::Run;

/// One block at a time.
pub fn small(run: &mut Run) -> anyhow::Result<()> {
    let target = run.create("direct.dat", libc::O_DIRECT)?;
    for step in 0..64 {
        let index = step * 37 % 64;
        let block = run.blocks(target.id, index, 1);
        target
            .file
            .write_all_at(block.bytes(), index * BLOCK_BYTES as u64)?;
    }
    run.fsync(&target)
}

/// More than 1024 pages in one call, and a size that is no power of two.
pub fn big(run: &mut Run) -> anyhow::Result<()> {
    let target = run.create("big.dat", libc::O_DIRECT)?;
    for (first, count) in [(0, 2048), (2048, 1025), (3073, 383)] {
        let blocks = run.blocks(target.id, first, count);
        target
            .file
            .write_all_at(blocks.bytes(), first * BLOCK_BYTES as u64)?;
    }
    run.fsync(&target)
}

/// Direct and durable.
pub fn dsync(run: &mut Run) -> anyhow::Result<()> {
    let target = run.create("durable.dat", libc::O_DIRECT | libc::O_DSYNC)?;
    for index in 0..16 {
        let block = run.blocks(target.id, index, 1);
        run.sync(SyncKind::ODsync, Some(target.id), || {
            target
                .file
                .write_all_at(block.bytes(), index * BLOCK_BYTES as u64)
        })?;
    }
    Ok(())
}
