//! What only f2fs can do.

use iostep_model::SyncKind;

use crate::run::Run;
use crate::system;

/// Batches of blocks that are overwritten together or not at all, as SQLite's batch atomic write
/// does it.
pub fn atomic_write(run: &mut Run) -> anyhow::Result<()> {
    let database = run.create("atomic.db", 0)?;
    for index in 0..64 {
        run.write(&database, index)?;
    }
    run.fsync(&database)?;
    for batch in 0..16 {
        system::start_atomic_write(&database.file)?;
        for step in 0..4 {
            run.write(&database, (batch * 4 + step) * 37 % 64)?;
        }
        run.sync(SyncKind::AtomicCommit, Some(database.id), || {
            system::commit_atomic_write(&database.file)
        })?;
    }
    Ok(())
}

/// Segments with holes, which garbage collection then empties.
pub fn collect(run: &mut Run) -> anyhow::Result<()> {
    let kept = run.create("kept.dat", 0)?;
    let other = run.create("removed.dat", 0)?;
    for chunk in 0..64 {
        for index in chunk * 16..(chunk + 1) * 16 {
            run.write(&kept, index)?;
            run.write(&other, index)?;
        }
        run.fsync(&kept)?;
        run.fsync(&other)?;
    }
    std::fs::remove_file(&other.path)?;
    run.deleted(other.id);
    let root = std::fs::File::open(run.root())?;
    run.sync(SyncKind::Syncfs, None, || Ok(rustix::fs::syncfs(&root)?))?;
    for _ in 0..8 {
        let nothing_left = [Some(libc::EAGAIN), Some(libc::ENODATA)];
        match system::collect_garbage(&kept.file) {
            Err(error) if nothing_left.contains(&error.raw_os_error()) => break,
            result => result?,
        }
    }
    Ok(())
}
