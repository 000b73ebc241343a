//! Formatting of Rust and C.

use std::process::Command;

use anyhow::Result;

use crate::step::{cargo, root, run};
use crate::tidy::tree;

/// Formats everything.
pub fn rewrite() -> Result<()> {
    rustfmt(&[])?;
    clang_format(&["-i"])
}

/// Fails if [`rewrite`] would change anything.
pub fn check() -> Result<()> {
    rustfmt(&["--check"])?;
    clang_format(&["--dry-run", "-Werror"])
}

/// The fuzz targets are a workspace of their own, so that a plain build does not need a fuzzer.
fn rustfmt(flags: &[&str]) -> Result<()> {
    run(cargo().args(["fmt", "--all"]).args(["--"]).args(flags))?;
    if root().join("fuzz/Cargo.toml").exists() {
        let manifest = ["--manifest-path", "fuzz/Cargo.toml"];
        run(cargo().arg("fmt").args(manifest).args(["--"]).args(flags))?;
    }
    Ok(())
}

fn clang_format(flags: &[&str]) -> Result<()> {
    let sources: Vec<String> = tree::files()?
        .into_iter()
        .filter(|path| path.ends_with(".c") || path.ends_with(".h"))
        .collect();
    if sources.is_empty() {
        return Ok(());
    }
    let mut command = Command::new("clang-format");
    run(command.current_dir(root()).args(flags).args(sources))
}
