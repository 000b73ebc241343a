//! Work that makes the filesystem write its own structures.

use std::fs::File;
use std::os::unix::fs::chown;

use crate::run::Run;
use crate::system;

/// A directory of several blocks.
pub fn directories(run: &mut Run) -> anyhow::Result<()> {
    let dir = run.dir()?;
    for number in 0..300 {
        // Long names fill directory blocks soon.
        std::fs::write(dir.join(format!("{number:0>60}.xml")), "")?;
    }
    let target = run.create("last.dat", 0)?;
    run.write(&target, 0)?;
    run.fsync(&target)
}

/// A file of so many extents that they need blocks of their own.
pub fn fragments(run: &mut Run) -> anyhow::Result<()> {
    let target = run.create("fragments.dat", 0)?;
    for index in 0..400 {
        run.write(&target, index * 2)?;
    }
    run.fsync(&target)
}

/// Files of so many owners that the files of quotas grow, with everything in its place at the end.
pub fn owners(run: &mut Run) -> anyhow::Result<()> {
    let dir = run.dir()?;
    for owner in 10_000..10_600 {
        let path = dir.join(owner.to_string());
        std::fs::write(&path, "")?;
        chown(&path, Some(owner), Some(owner))?;
    }
    freeze(run)
}

/// Makes the filesystem write every structure to its place: freezing empties its log.
pub fn freeze(run: &mut Run) -> anyhow::Result<()> {
    let root = File::open(run.root())?;
    system::freeze(&root)?;
    Ok(system::thaw(&root)?)
}
