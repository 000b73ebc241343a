//! The SQLite extension, which make builds.

use std::process::Command;

use anyhow::{Context, Result};

use crate::step::{root, run_tests};
use crate::{metadata, suites};

/// The crate that has the SQLite inside of iostep.
const SQLITE: &str = "libsqlite3-sys";

/// Its tests, with the system's SQLite and with the one inside; under the sanitizers for addresses
/// and undefined behaviour with one of them. Then the examples, each in its language.
pub fn test() -> Result<()> {
    // The example in Rust is built with everything else.
    suites::build()?;
    let metadata = metadata::read()?;
    let package = metadata
        .packages
        .iter()
        .find(|package| package.name == SQLITE);
    let manifest = &package.context(SQLITE)?.manifest_path;
    let inside = manifest.with_file_name("sqlite3");
    let example = metadata.target_directory.join("debug/examples/notes");
    for (target, is_inside) in [
        ("test", false),
        ("test", true),
        ("test-asan", false),
        ("test-languages", true),
    ] {
        let mut make = Command::new("make");
        make.arg("--no-print-directory")
            .args(["-C", "waldio", target])
            .env("WALDIO_RUST", &example)
            .current_dir(root());
        if is_inside {
            make.arg(format!("SQLITE_AMALGAMATION={}", inside.display()));
        }
        run_tests(&mut make)?;
    }
    Ok(())
}
