//! The pages of the server in a browser, where there is one.

use anyhow::Result;

use crate::step::{cargo, run_tests};

/// What `scripts/setup pages` installs.
const BROWSER: &str = "chromium-headless-shell";

/// What drives it.
const DRIVER: &str = "node";

/// The part of `make test-pages` that no other step runs, without installing what it takes.
pub fn test() -> Result<()> {
    let places = std::env::var_os("PATH").unwrap_or_default();
    for program in [BROWSER, DRIVER] {
        if !std::env::split_paths(&places).any(|place| place.join(program).is_file()) {
            println!("skipped: no {program} in PATH; scripts/setup pages installs it");
            return Ok(());
        }
    }
    run_tests(
        cargo()
            .args(["test", "--workspace", "--locked", "--test", "browser"])
            .args(["--", "--include-ignored"]),
    )
}
