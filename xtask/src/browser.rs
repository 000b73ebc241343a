//! The pages of the server in a browser, where there is one.

use anyhow::Result;

use crate::step::{cargo, run_tests};

/// What `scripts/setup pages` installs.
const BROWSER: &str = "chromium-headless-shell";

/// The same as `make test-pages` does, without installing what it takes.
pub fn test() -> Result<()> {
    let places = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&places).any(|place| place.join(BROWSER).is_file()) {
        println!("skipped: no {BROWSER} in PATH; scripts/setup pages installs it");
        return Ok(());
    }
    run_tests(
        cargo()
            .args(["test", "--workspace", "--locked", "--test", "browser"])
            .args(["--", "--include-ignored"]),
    )
}
