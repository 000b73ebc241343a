//! The JavaScript of the pages: types, lints, tests.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::step::{root, run};
use crate::tidy::tree;

/// Where the tools find how they are set up.
const PACKAGE: &str = "crates/iostep-report";

/// TypeScript reads the types in comments, ESLint keeps the modules to what becomes one script of
/// them, and node runs the tests of what needs no browser.
pub fn check() -> Result<()> {
    run(tool("tsc").args(["--project", "."]))?;
    run(tool("eslint").args(["--format", "unix", "src"]))?;
    let tests = tree::files()?.into_iter();
    run(Command::new("node")
        .args(["--test", "--test-reporter=spec"])
        .args(tests.filter(|path| path.ends_with(".test.js")))
        .current_dir(root()))
}

/// Debian's, whose versions the checks are written for, even where npm's come first; and its
/// libraries, where only Debian's own node looks by itself.
fn tool(name: &str) -> Command {
    let packaged = Path::new("/usr/bin").join(name);
    let is_packaged = packaged.exists();
    let mut command = Command::new(if is_packaged { packaged } else { name.into() });
    command
        .env("NODE_PATH", "/usr/share/nodejs")
        .current_dir(root().join(PACKAGE));
    command
}
