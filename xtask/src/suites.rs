//! What cargo checks: lints, documentation, tests.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::step::{cargo, output_of, root, run};

/// What the kernel tests may ask of a machine; all of it is there where CI runs.
const REQUIREMENTS: &str = "root,btf,ext4,xfs,btrfs";
const KERNEL_TESTS: &str = "iostep-kernel-tests";

/// Clippy over every target.
pub fn lint() -> Result<()> {
    let flags = ["--workspace", "--all-targets", "--locked"];
    run(cargo()
        .arg("clippy")
        .args(flags)
        .args(["--", "-D", "warnings"]))
}

/// Rustdoc, which finds links that lead nowhere.
pub fn doc() -> Result<()> {
    let flags = ["doc", "--workspace", "--no-deps", "--locked", "--quiet"];
    run(cargo().args(flags).env("RUSTDOCFLAGS", "-D warnings"))
}

/// All tests. As root everything runs at once. As a user, the tests that need root say so and are
/// skipped; then root runs the finished binaries of the kernel tests, and compiles nothing.
pub fn test() -> Result<()> {
    // The kernel tests drive this binary, which cargo test alone would not build.
    run(cargo().args(["build", "--workspace", "--bins", "--locked"]))?;
    let mut all = cargo();
    all.args(["test", "--workspace", "--no-fail-fast", "--locked"]);
    if is_root()? {
        require(&mut all);
        return run(&mut all);
    }
    run(&mut all)?;
    for binary in kernel_test_binaries()? {
        run_as_root(&binary)?;
    }
    Ok(())
}

/// A skip is a failure where CI runs, unless the caller already said what is.
fn require(command: &mut Command) {
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    if in_ci && std::env::var_os("IOSTEP_REQUIRE").is_none() {
        command.env("IOSTEP_REQUIRE", REQUIREMENTS);
    }
}

fn is_root() -> Result<bool> {
    Ok(output_of(Command::new("id").arg("-u"))?.trim() == "0")
}

/// Where there is no sudo, the skips that the tests just printed stand, except in CI.
fn run_as_root(binary: &PathBuf) -> Result<()> {
    let has_sudo = Command::new("sudo").arg("-V").output().is_ok();
    if !has_sudo {
        if std::env::var_os("CI").is_some() {
            bail!("{}: needs root, and there is no sudo", binary.display());
        }
        println!("no sudo: the kernel tests were skipped; run `cargo xtask test` as root for them");
        return Ok(());
    }
    let mut command = Command::new("sudo");
    command.arg("--preserve-env=CI,IOSTEP_REQUIRE,PATH");
    require(&mut command);
    run(command
        .arg("--")
        .arg(binary)
        .current_dir(root().join("tests/kernel")))
}

/// A line of cargo's JSON messages, as far as it is of use here.
#[derive(Deserialize)]
struct Message {
    package_id: Option<String>,
    executable: Option<PathBuf>,
}

/// Everything is built by now, so that this only asks where.
fn kernel_test_binaries() -> Result<Vec<PathBuf>> {
    let flags = ["test", "--workspace", "--no-run", "--locked", "--quiet"];
    let messages = output_of(cargo().args(flags).arg("--message-format=json"))?;
    let mut binaries = Vec::new();
    for line in messages.lines() {
        let message: Message =
            serde_json::from_str(line).with_context(|| format!("cargo printed {line:?}"))?;
        if let (Some(package), Some(executable)) = (message.package_id, message.executable)
            && package.contains(KERNEL_TESTS)
        {
            binaries.push(executable);
        }
    }
    Ok(binaries)
}
