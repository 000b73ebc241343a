//! The tests of the phone app, which `scripts/android` compiles and runs.

use std::process::Command;

use anyhow::{Context, Result};

use crate::step::{root, run_tests};
use crate::{metadata, suites};

/// What `scripts/setup android` leaves when it is done: the list of what it fetched.
const MADE: &str = "/var/cache/iostep/android/made";

/// Half of the time, and what it leaves is looked at by people.
const PICTURES: &str = "ShotsTest";

/// The app's tests with the code of the APK, where a machine is set up for them; the engine is that of
/// this machine. `make test-android` runs all of them, with the classes that it is made of, too, and with
/// the engine for phones.
pub fn test() -> Result<()> {
    let list = root().join("android/jars.txt");
    let list = std::fs::read_to_string(&list).with_context(|| list.display().to_string())?;
    let wanted = list.lines().filter(|line| !line.starts_with('#'));
    let made = std::fs::read_to_string(MADE).unwrap_or_default();
    if !wanted.eq(made.lines()) {
        println!("skipped: {MADE} does not have this list; scripts/setup android fetches 700 MB");
        return Ok(());
    }
    suites::build()?;
    let built = metadata::read()?.target_directory.join("debug");
    println!("left out: {PICTURES}, which draws each screen in many ways; make test-android does");
    let mut command = Command::new(root().join("scripts/android"));
    command
        .arg("test-dex")
        .env("ANDROID_LEFT_OUT", PICTURES)
        .env("IOSTEP_ENGINE", built.join("iostep-bench"))
        .env("IOSTEP_SERVER", built.join("iostep"));
    run_tests(&mut command)
}
