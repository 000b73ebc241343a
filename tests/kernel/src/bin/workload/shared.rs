//! More than one process or thread, at a time or one after the other.

use std::fs::File;
use std::os::unix::fs::FileExt;

use iostep_kernel_tests::stamp::BLOCK_BYTES;
use iostep_model::SyncKind;

use crate::run::{Run, wait_for};

const WRITERS: u32 = 4;
/// File numbers between two processes of a mode.
const PART_IDS: u32 = 100;

/// Written by one process, brought to the device on behalf of another.
pub fn writeback(run: &mut Run) -> anyhow::Result<()> {
    let target = run.create("written.dat", 0)?;
    for index in 0..256 {
        run.write(&target, index)?;
    }
    wait_for(vec![run.start_part("syncfs", run.first_id + PART_IDS)?])
}

/// `syncfs(2)` of the whole filesystem.
pub fn syncfs(run: &mut Run) -> anyhow::Result<()> {
    let root = File::open(run.root())?;
    run.sync(SyncKind::Syncfs, None, || Ok(rustix::fs::syncfs(&root)?))
}

/// Written by a thread that is not the process's first.
pub fn other_thread(run: &mut Run) -> anyhow::Result<()> {
    let target = run.create("threads.dat", 0)?;
    let blocks = run.blocks(target.id, 0, 32);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| target.file.write_all_at(blocks.bytes(), 0));
        writer.join().expect("the writer does not panic")
    })?;
    run.fsync(&target)
}

/// Several processes write every fourth block of one file; the first process syncs it.
pub fn shared_file(run: &mut Run) -> anyhow::Result<()> {
    let target = run.create("shared.db", 0)?;
    let parts = (0..WRITERS)
        .map(|k| run.start_part("shared-file-part", run.first_id + (k + 1) * PART_IDS))
        .collect::<Result<_, _>>()?;
    wait_for(parts)?;
    run.fsync(&target)
}

/// One of the processes of [`shared_file`].
pub fn shared_file_part(run: &mut Run) -> anyhow::Result<()> {
    let shared_id = run.first_id / 1000 * 1000;
    let writer = u64::from(run.first_id % 1000 / PART_IDS - 1);
    let path = run.dir()?.join("shared.db");
    let target = run.open(shared_id, &path)?;
    for round in 0..32 {
        run.write(&target, round * u64::from(WRITERS) + writer)?;
    }
    Ok(())
}

/// Several processes, each with a file of its own, all syncing at the same time.
pub fn concurrent_fsync(run: &mut Run) -> anyhow::Result<()> {
    let parts = (0..WRITERS)
        .map(|k| run.start_part("concurrent-part", run.first_id + (k + 1) * PART_IDS))
        .collect::<Result<_, _>>()?;
    wait_for(parts)
}

/// One of the processes of [`concurrent_fsync`].
pub fn concurrent_part(run: &mut Run) -> anyhow::Result<()> {
    run.alone = false;
    let target = run.create(format!("own-{}.db", run.first_id), 0)?;
    for index in 0..32 {
        let block = run.block(target.id, index);
        target
            .file
            .write_all_at(&block, index * BLOCK_BYTES as u64)?;
        run.fsync(&target)?;
    }
    Ok(())
}
