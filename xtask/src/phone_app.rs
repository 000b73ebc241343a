//! The tests of the phone app, which `scripts/android` compiles and runs.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::step::{root, run, run_tests};
use crate::{metadata, suites};

/// What `scripts/setup android` leaves when it is done.
const MADE: &str = "/var/cache/iostep/android/made";

/// The app's tests, with the compiled classes and with the code of the APK, where a machine is set up
/// for them; the engine is that of this machine. `make test-android` runs them with the one for
/// phones.
pub fn test() -> Result<()> {
    if !Path::new(MADE).exists() {
        println!("skipped: no {MADE}; scripts/setup android makes it, 700 MB");
        return Ok(());
    }
    suites::build()?;
    let engine = metadata::read()?
        .target_directory
        .join("debug/iostep-bench");
    run(Command::new(root().join("scripts/setup")).arg("android"))?;
    ["test", "test-dex"].iter().try_for_each(|purpose| {
        let mut command = Command::new(root().join("scripts/android"));
        command.arg(purpose).env("IOSTEP_ENGINE", &engine);
        run_tests(&mut command)
    })
}
