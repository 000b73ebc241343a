//! The command as a user runs it. One program: each more would hold all of iostep once more.

mod bench;
mod bench_program;
mod clean;
mod doctor;
mod every_value;
mod fleet;
mod golden;
mod import;
mod import_disk;
mod import_fat;
mod import_outside;
mod lab;
mod old;
mod output;
mod phone;
mod report;
mod sandbox;
mod serve;
mod terminal;

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// How long something that will surely come may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Files of an earlier version.
const OLD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/old-0.1");

fn iostep() -> Command {
    Command::new(env!("CARGO_BIN_EXE_iostep"))
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

fn name(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// What a directory has, sorted.
fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into()).collect();
    names.sort();
    names
}

/// What is on standard error.
fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a command printed that has to succeed.
fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", said(output));
    serde_json::from_slice(&output.stdout).expect("nothing but JSON")
}

/// A copy of a directory of the tests, to be changed.
fn copy_of(directory: &str) -> TempDir {
    let copy = TempDir::new().expect("a directory");
    let copied = Command::new("cp")
        .args(["-r", "--no-preserve=mode"])
        .arg(format!(
            "{}/tests/{directory}/.",
            env!("CARGO_MANIFEST_DIR")
        ))
        .arg(copy.path())
        .status();
    assert!(copied.expect("cp runs").success());
    copy
}
