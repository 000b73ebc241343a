//! Programs for arm64, tested here: unit tests under user emulation, the rest in guests.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::step::{root, run, run_tests};
use crate::{metadata, suites, waldio};

/// Crates whose tests need no kernel of their own.
const EMULATED: [&str; 4] = ["iostep-model", "iostep-fs", "iostep-calls", "iostep-load"];
/// What user emulation lacks, by the suites of iostep-load and the tests that need it: io_uring,
/// landlock, direct transfers, writes with flags, and a program that starts itself. They run in the
/// guests (`every_kernel.rs`).
const NOT_EMULATED: [(&str, &[&str]); 5] = [
    (
        "iostep_load",
        &[
            "file::uring::",
            "file::calls::tests::records_go_out",
            "replay::",
        ],
    ),
    ("driver", &[""]),
    (
        "file",
        &[
            "psync::a_sync_follows",
            "verify::a_read_that_brings",
            "verify::one_changed_bit",
            "verify::what_nobody_touched",
            "work_files::direct_",
        ],
    ),
    ("open_files", &[""]),
    (
        "transactions",
        &[
            "waldio::a_run_tells_the_layout",
            "waldio::every_option_and_shape",
        ],
    ),
];
/// What runs nowhere, by a word in the test's name, and why.
const LEFT_OUT: [(&str, &str); 2] = [
    ("library", "these are static programs, which load none"),
    (
        "two_thousand_threads",
        "longer than all else under emulation",
    ),
];
/// Where guests find iostep-load's tests, and the file there that says which to run: a suite and its
/// arguments on each line.
const LOAD: &str = "iostep-load";
const IN_GUESTS: &str = "in-guests";
/// What cargo builds for it, below the target directory. Guests share it.
const BUILT: &str = "aarch64-unknown-linux-gnu/debug";
const SETUPS: [&str; 2] = ["build-arm64", "guest-arm64"];
/// What they leave when they are done.
const MADE: [&str; 2] = [
    "/var/cache/iostep/arm64/made",
    "/var/cache/iostep/root-arm64/made",
];

/// One trace on one kernel, where a machine is set up for it: elsewhere that and the build would
/// take longer than all else.
pub fn smoke() -> Result<()> {
    if let Some(missing) = MADE.iter().find(|made| !Path::new(made).exists()) {
        println!(
            "skipped: no {missing}; scripts/setup {} makes it",
            SETUPS.join(" and ")
        );
        return Ok(());
    }
    on_kernels(&[])
}

/// Everything, on every kernel.
pub fn whole() -> Result<()> {
    setup()?;
    let load = metadata::read()?.target_directory.join(BUILT).join(LOAD);
    std::fs::create_dir_all(&load).with_context(|| format!("cannot make {}", load.display()))?;
    let mut in_guests = String::new();
    for (word, why) in LEFT_OUT {
        println!("{LOAD}: left out: *{word}*: {why}");
    }
    // The whole workspace's, for its features; only these are run.
    let built = suites::executables(cargo("test").args(["--workspace", "--no-run"]))?;
    for test in built {
        let directory = test.manifest.parent().unwrap_or(root());
        if !EMULATED.iter().any(|name| directory.ends_with(name)) {
            continue;
        }
        let mut command = Command::new("qemu-aarch64-static");
        command.arg(&test.path).current_dir(directory);
        if directory.ends_with(LOAD) {
            copy(&test.path, &load.join(&test.name))?;
            command.args(left_out());
            for tests in not_emulated(&test.name) {
                let suite = &test.name;
                println!("{suite}: not under emulation, but in guests: {tests}*");
                command.args(["--skip", tests]);
                let arguments = left_out().collect::<Vec<_>>().join(" ");
                in_guests.push_str(&format!("{suite} {tests} {arguments}\n"));
            }
        }
        run_tests(&mut command)?;
    }
    std::fs::write(load.join(IN_GUESTS), in_guests)?;
    on_kernels(&[("IOSTEP_KERNELS", "1")])
}

/// The arguments of a suite that leave out what runs nowhere.
fn left_out() -> impl Iterator<Item = &'static str> {
    LEFT_OUT.iter().flat_map(|(word, _)| ["--skip", word])
}

fn not_emulated(suite: &str) -> &'static [&'static str] {
    let found = NOT_EMULATED.iter().find(|(name, _)| *name == suite);
    found.map_or(&[], |(_, tests)| tests)
}

fn setup() -> Result<()> {
    let scripts = root().join("scripts/setup");
    SETUPS
        .iter()
        .try_for_each(|purpose| run(Command::new(&scripts).arg(purpose)))
}

fn cargo(task: &str) -> Command {
    let mut command = Command::new(root().join("scripts/cargo-for"));
    command.args(["aarch64", task, "--locked"]);
    command
}

fn on_kernels(variables: &[(&str, &str)]) -> Result<()> {
    setup()?;
    let directory = gather()?;
    let mut variables = variables.to_vec();
    let directory = directory.to_string_lossy();
    variables.push(("IOSTEP_ARM64", &directory));
    suites::kernel_tests("arm64: ", &variables)
}

/// Builds what runs in guests.
fn gather() -> Result<PathBuf> {
    let metadata = metadata::read()?;
    let directory = metadata.target_directory.join(BUILT);
    // Of the workspace's tests, as `build` has them: every other selection has other features. With
    // the tests of its own comes the program.
    let mut build = cargo("test");
    build.args(["--workspace", "--no-run", "--test=kernel", "--test=hostile"]);
    run(&mut build)?;
    let built = suites::executables(&mut build)?;
    let tests = built.iter().find(|built| built.name == "kernel");
    copy(
        &tests.context("no kernel tests")?.path,
        &directory.join("kernel"),
    )?;
    let sqlite = waldio::sqlite_inside(&metadata)?;
    let build = directory.join("waldio");
    run(Command::new("make")
        .args([
            "--silent",
            "-C",
            "waldio",
            "CC=aarch64-linux-gnu-gcc -static",
        ])
        .arg(format!("SQLITE_AMALGAMATION={}", sqlite.display()))
        .arg(format!("BUILD={}", build.display()))
        .arg("kill-program")
        .current_dir(root()))?;
    Ok(directory)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}
