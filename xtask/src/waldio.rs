//! The SQLite extension, which make builds.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::metadata::{self, Metadata};
use crate::step::{as_root, root, run_tests};
use crate::suites;

/// The crate that has the SQLite inside of iostep.
const SQLITE: &str = "libsqlite3-sys";

/// Its tests, with the system's SQLite and with the one inside; under the sanitizers for addresses
/// and undefined behaviour with one of them; the examples, each in its language; and on a filesystem
/// that loses power.
pub fn test() -> Result<()> {
    // The example in Rust is built with everything else.
    suites::build()?;
    let metadata = metadata::read()?;
    let inside = sqlite_inside(&metadata)?;
    let example = metadata.target_directory.join("debug/examples/notes");
    // Most tests keep one processor busy, or wait for the disk.
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    for (targets, is_inside) in [
        (&["test"][..], false),
        (&["test", "test-32", "test-languages"], true),
        (&["test-asan"], false),
    ] {
        let mut make = Command::new("make");
        make.args(["--no-print-directory", "--output-sync=target"])
            .arg(format!("--jobs={jobs}"))
            .args(["-C", "waldio"])
            .args(targets)
            .env("WALDIO_RUST", &example)
            .current_dir(root());
        if is_inside {
            make.arg(format!("SQLITE_AMALGAMATION={}", inside.display()));
        }
        run_tests(&mut make)?;
    }
    lose_power()
}

/// The directory of the sqlite3.c that is inside of iostep.
pub fn sqlite_inside(metadata: &Metadata) -> Result<PathBuf> {
    let mut packages = metadata.packages.iter();
    let package = packages.find(|package| package.name == SQLITE);
    let manifest = &package.context(SQLITE)?.manifest_path;
    Ok(manifest.with_file_name("sqlite3"))
}

/// A few states of a filesystem after a power loss; `make test-crash` looks at thousands.
fn lose_power() -> Result<()> {
    let variables = [("CRASH_STATES", "100"), ("CRASH_COMMITS", "30")];
    let Some(mut command) = as_root("scripts/crash-states", &["CRASH_STATES", "CRASH_COMMITS"])?
    else {
        println!("no sudo: waldio was not tried on a filesystem that loses power");
        return Ok(());
    };
    run_tests(command.arg("ext4").envs(variables).current_dir(root()))
}
