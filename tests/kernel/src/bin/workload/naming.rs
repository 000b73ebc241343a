//! Files whose names come, go and change.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::run::Run;

/// A rollback journal: made, synced, deleted, again under the same name.
pub fn fsync_unlink(run: &mut Run) -> anyhow::Result<()> {
    for _ in 0..16 {
        let journal = run.create("app.db-journal", 0)?;
        run.write(&journal, 0)?;
        run.write(&journal, 1)?;
        run.fsync(&journal)?;
        std::fs::remove_file(&journal.path)?;
        run.deleted(journal.id);
    }
    Ok(())
}

/// A file replaced as a whole: written under another name, synced, renamed over the old one.
pub fn create_rename(run: &mut Run) -> anyhow::Result<()> {
    let final_path = run.dir()?.join("settings.xml");
    let mut replaced = None;
    for _ in 0..16 {
        let new = run.create("settings.xml.new", 0)?;
        run.write(&new, 0)?;
        run.fsync(&new)?;
        std::fs::rename(&new.path, &final_path)?;
        run.also_named(new.id, &final_path);
        if let Some(old) = replaced.replace(new.id) {
            run.deleted(old);
        }
    }
    Ok(())
}

/// Renamed while it is being written.
pub fn rename_open(run: &mut Run) -> anyhow::Result<()> {
    let target = run.create("before.dat", 0)?;
    for index in 0..16 {
        run.write(&target, index)?;
    }
    run.fsync(&target)?;
    let after = run.dir()?.join("after.dat");
    std::fs::rename(&target.path, &after)?;
    run.also_named(target.id, &after);
    for index in 16..32 {
        run.write(&target, index)?;
    }
    run.fsync(&target)
}

/// Deleted, and its inode number at once given to a file of another name.
pub fn inode_reuse(run: &mut Run) -> anyhow::Result<()> {
    for round in 0..16 {
        let target = run.create(format!("round-{round}.tmp"), 0)?;
        run.write(&target, 0)?;
        run.fsync(&target)?;
        std::fs::remove_file(&target.path)?;
        run.deleted(target.id);
    }
    Ok(())
}

/// Thirty directories down.
pub fn deep_path(run: &mut Run) -> anyhow::Result<()> {
    let relative: String = (0..30).map(|level| format!("level-{level}/")).collect();
    std::fs::create_dir_all(run.dir()?.join(&relative))?;
    let target = run.create(relative + "deep.dat", 0)?;
    for index in 0..8 {
        run.write(&target, index)?;
        run.fsync(&target)?;
    }
    Ok(())
}

/// A name that is Latin-1, not UTF-8.
pub fn odd_name(run: &mut Run) -> anyhow::Result<()> {
    let target = run.create(OsStr::from_bytes(b"caf\xe9 \xff.db"), 0)?;
    for index in 0..8 {
        run.write(&target, index)?;
        run.fsync(&target)?;
    }
    Ok(())
}

/// Two names, of which the first goes.
pub fn hard_links(run: &mut Run) -> anyhow::Result<()> {
    let target = run.create("first.dat", 0)?;
    let second = run.dir()?.join("second.dat");
    std::fs::hard_link(&target.path, &second)?;
    run.also_named(target.id, &second);
    run.write(&target, 0)?;
    run.fsync(&target)?;
    std::fs::remove_file(&target.path)?;
    for index in 1..8 {
        run.write(&target, index)?;
        run.fsync(&target)?;
    }
    Ok(())
}
