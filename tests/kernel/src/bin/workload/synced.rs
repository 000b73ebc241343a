//! Buffered writes that the program makes durable itself, or leaves alone.

use std::os::unix::fs::FileExt;

use iostep_kernel_tests::stamp::BLOCK_BYTES;
use iostep_model::SyncKind;

use crate::run::Run;
use crate::system;

/// A log: append a block, sync, again.
pub fn append_fsync(run: &mut Run) -> anyhow::Result<()> {
    let log = run.create("log.db", 0)?;
    for index in 0..32 {
        run.write(&log, index)?;
        run.fsync(&log)?;
    }
    Ok(())
}

/// A database: overwrite scattered blocks, each made durable.
pub fn overwrite_fdatasync(run: &mut Run) -> anyhow::Result<()> {
    let database = run.create("pages.db", 0)?;
    for index in 0..64 {
        run.write(&database, index)?;
    }
    run.fsync(&database)?;
    for step in 0..32 {
        // 37 is coprime to 64: every block once, never two neighbours in a row.
        run.write(&database, step * 37 % 64)?;
        run.fdatasync(&database)?;
    }
    Ok(())
}

/// Every write is an fsync.
pub fn o_sync(run: &mut Run) -> anyhow::Result<()> {
    durable_writes(run, libc::O_SYNC, SyncKind::OSync)
}

/// Every write is an fdatasync.
pub fn o_dsync(run: &mut Run) -> anyhow::Result<()> {
    durable_writes(run, libc::O_DSYNC, SyncKind::ODsync)
}

fn durable_writes(run: &mut Run, flag: i32, kind: SyncKind) -> anyhow::Result<()> {
    let target = run.create("durable.dat", flag)?;
    for index in 0..16 {
        let block = run.block(target.id, index);
        run.sync(kind, Some(target.id), || {
            target.file.write_all_at(&block, index * BLOCK_BYTES as u64)
        })?;
    }
    Ok(())
}

/// Blocks that were allocated before they were written.
pub fn preallocated(run: &mut Run) -> anyhow::Result<()> {
    let target = run.create("preallocated.db", 0)?;
    let mode = rustix::fs::FallocateFlags::empty();
    rustix::fs::fallocate(&target.file, mode, 0, 64 * BLOCK_BYTES as u64)?;
    run.fsync(&target)?;
    for step in 0..16 {
        run.write(&target, step * 37 % 64)?;
        run.fdatasync(&target)?;
    }
    Ok(())
}

/// 16 MiB at once, left to the kernel.
pub fn buffered_big(run: &mut Run) -> anyhow::Result<()> {
    let target = run.create("big.dat", 0)?;
    let blocks = run.blocks(target.id, 0, 4096);
    target.file.write_all_at(blocks.bytes(), 0)?;
    Ok(())
}

/// Data without metadata.
pub fn sync_file_range(run: &mut Run) -> anyhow::Result<()> {
    let target = run.create("ranged.dat", 0)?;
    for round in 0..4 {
        for index in round * 16..(round + 1) * 16 {
            run.write(&target, index)?;
        }
        let length = 16 * BLOCK_BYTES as i64;
        run.sync(SyncKind::SyncFileRange, Some(target.id), || {
            system::sync_file_range(&target.file, round as i64 * length, length)
        })?;
    }
    Ok(())
}
