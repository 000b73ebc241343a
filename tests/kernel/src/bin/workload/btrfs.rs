//! btrfs: what only it does.

use std::fs::File;

use crate::run::Run;
use crate::system;

/// Files with equal inode numbers in two subvolumes, and in a third that is made meanwhile.
pub fn subvolumes(run: &mut Run) -> anyhow::Result<()> {
    let dir = File::open(run.dir()?)?;
    for name in ["one", "two"] {
        system::create_subvolume(&dir, name)?;
    }
    let targets = ["one/a.db", "two/a.db"].map(|name| run.create(name, 0));
    for index in 0..16 {
        for target in targets.iter().flatten() {
            run.write(target, index)?;
            run.fsync(target)?;
        }
    }
    system::create_subvolume(&dir, "three")?;
    let late = run.create("three/a.db", 0)?;
    for index in 0..64 {
        run.write(&late, index)?;
    }
    for target in targets {
        run.write(&target?, 16)?;
    }
    Ok(())
}
