//! A kernel that refuses a BPF program. There is no such kernel, so the command is one whose programs
//! read a field that no kernel has.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use iostep_kernel_tests::iostep::{self, Outcome};
use iostep_lab::Kind;
use iostep_model::store;
use tempfile::TempDir;

use crate::case::Case;
use crate::stage::{Stage, requirements};

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let needs = || {
        let mut needs = requirements(Kind::Ext4);
        needs.push(iostep_kernel_tests::requirement::Requirement::Btf);
        needs
    };
    let all = vec![
        Case::new("it costs what it tells, and a line says so", needs(), costs),
        Case::new("without a core one a sentence names it", needs(), core),
    ];
    let about = |case: Case| case.about("a program that is refused");
    all.into_iter().map(about).collect()
}

/// A copy of the command in whose programs a field has another name.
fn with_renamed(field: &str, directory: &TempDir) -> anyhow::Result<PathBuf> {
    let mut bytes = std::fs::read(iostep::binary()?)?;
    let from = field.as_bytes();
    let mut found = 0;
    let mut at = 0;
    while let Some(next) = bytes[at..].windows(from.len()).position(|w| w == from) {
        at += next + from.len();
        // Still a name, or the kernel would take none of the types.
        bytes[at - 1] = b'q';
        found += 1;
    }
    anyhow::ensure!(found > 0, "the command has no {field}");
    let copy = directory.path().join("iostep");
    std::fs::write(&copy, bytes)?;
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755))?;
    Ok(copy)
}

fn trace(command: &Path, stage: &Stage, output: &Path, flags: &[&str]) -> anyhow::Result<Outcome> {
    let file = stage.root().join("file");
    let write = format!(
        "dd if=/dev/zero of={} bs=4k count=5 conv=fsync 2> /dev/null",
        file.display()
    );
    let words = stage.trace(output, flags, &["sh".into(), "-c".into(), write]);
    let output = Command::new(command).args(words).output();
    Ok(Outcome::from(output.context("it cannot be run")?))
}

fn costs() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let command = with_renamed("i_sync_tid", &directory)?;
    let output = directory.path().join("run.iostep");
    let outcome = trace(&command, &stage, &output, &["--settle"])?.success()?;
    let note = "note: not known: which commit fsync waits for; Linux ";
    let told = outcome.stdout.lines().find(|line| line.starts_with(note));
    println!("    {}", told.unwrap_or("nothing is told"));
    let named = told.is_some_and(|line| line.ends_with("the BPF program on_ext4_fsync_exit"));
    anyhow::ensure!(named, "{}", outcome.stdout);
    let trace = store::read(&output)?;
    anyhow::ensure!(trace.manifest.check.passed(), "{:?}", trace.manifest.check);
    anyhow::ensure!(trace.syncs.len() > 1, "{:?}", trace.syncs);
    Ok(())
}

fn core() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let command = with_renamed("bi_end_io", &directory)?;
    let output = directory.path().join("run.iostep");
    let sentence = "refused the BPF program on_bio_queue, without which";
    trace(&command, &stage, &output, &[])?.refused(&[4], sentence)?;
    let verbose = trace(&command, &stage, &output, &["--verbose"])?.status(4)?;
    anyhow::ensure!(verbose.stderr.contains("CO-RE"), "{}", verbose.stderr);
    anyhow::ensure!(!output.exists(), "a trace is left");
    Ok(())
}
