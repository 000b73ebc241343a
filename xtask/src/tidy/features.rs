//! What `make demo` compiles is compiled for every later build of iostep, too.

use std::collections::BTreeSet;

use anyhow::Result;

use super::Finding;
use crate::step::{cargo, output_of};

/// As the Makefile has them.
const DEMO: [&str; 3] = ["--no-default-features", "--features", "trace"];

/// A package that the demo has with other features than the whole of iostep is compiled twice, and
/// all that depend on it.
pub fn check(findings: &mut Vec<Finding>) -> Result<()> {
    let whole = packages(&[])?;
    let demo = packages(&DEMO)?;
    let others = demo.difference(&whole);
    let others = others.filter(|package| !package.starts_with("iostep v"));
    findings.extend(others.map(|package| {
        format!(
            "crates/iostep/Cargo.toml: with the commands for many devices it is not {package}: \
             add the features that they want of it"
        )
    }));
    Ok(())
}

/// Each package of iostep with its version and features.
fn packages(flags: &[&str]) -> Result<BTreeSet<String>> {
    let mut tree = cargo();
    tree.args([
        "tree",
        "--locked",
        "--package=iostep",
        "--edges=normal,build",
    ])
    .args(["--prefix=none", "--format={p} {f}"])
    .args(flags);
    let lines = output_of(&mut tree)?;
    // A package that was printed before has a star.
    let lines = lines.lines().map(|line| line.trim_end_matches(" (*)"));
    Ok(lines.map(str::to_owned).collect())
}
