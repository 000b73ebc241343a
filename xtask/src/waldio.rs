//! The SQLite extension, which make builds.

use std::process::Command;

use anyhow::Result;

use crate::step::{root, run};

/// Its tests, plain and under the sanitizers for addresses and undefined behaviour.
pub fn test() -> Result<()> {
    for target in ["test", "test-asan"] {
        let mut make = Command::new("make");
        run(make
            .arg("--no-print-directory")
            .args(["-C", "waldio", target])
            .current_dir(root()))?;
    }
    Ok(())
}
