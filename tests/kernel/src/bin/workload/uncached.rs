//! Small writes into files that are not in memory.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use iostep_kernel_tests::stamp::BLOCK_BYTES;

/// Changes one byte in the middle of every block, which the filesystem has to read first.
pub fn touch(path: &Path) -> anyhow::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    let blocks = file.metadata()?.len() / BLOCK_BYTES as u64;
    for index in 0..blocks {
        file.write_all_at(&[7], index * BLOCK_BYTES as u64 + 2000)?;
    }
    Ok(())
}
