//! I/O of others on the device that is measured, and storage that nobody else uses.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use iostep_kernel_tests::iostep;
use iostep_lab::Kind;
use serde_json::Value;

use super::{Fixture, ground_needs, words};
use crate::case::Case;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let needs = || ground_needs(Kind::Ext4, &["dd"]);
    vec![
        Case::new(
            "what others write is no cost of an operation, and is told by name",
            needs(),
            disturbed,
        ),
        Case::new(
            "on storage of its own a job has the counts that it has alone",
            needs(),
            alone,
        ),
    ]
}

/// Writes 1 MiB and syncs it, again and again, by a process each time.
struct Writer(Child);

impl Writer {
    fn start(directory: &Path) -> anyhow::Result<Writer> {
        let script = "while :; do
            dd if=/dev/zero of=\"$0/noise\" bs=64k count=16 conv=fsync status=none
        done";
        let child = Command::new("sh")
            .args(["-c", script])
            .arg(directory)
            .stdin(Stdio::null())
            .spawn()?;
        Ok(Writer(child))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const JOB: &str = "--size 2MiB --sync fdatasync --json";

fn result(directory: &Path, flags: &str) -> anyhow::Result<Value> {
    let outcome = iostep::run(words("file", directory, flags))?.success()?;
    serde_json::from_str(&outcome.stdout).context("no JSON")
}

fn device(result: &Value) -> &Value {
    &result["summary"]["runs"][0]["device"]
}

fn disturbed() -> anyhow::Result<()> {
    let ground = Fixture::new(Kind::Ext4)?;
    let quiet = result(ground.root(), JOB)?;
    let written = &device(&quiet)["written_bytes_per_operation"];
    anyhow::ensure!(written.as_f64() >= Some(4096.0), "{}", device(&quiet));
    let writer = Writer::start(ground.root())?;
    let noisy = result(ground.root(), &format!("{JOB} --time 2"))?;
    drop(writer);
    let device = device(&noisy);
    println!("    {device}");
    for figure in [
        "written_bytes_per_operation",
        "flushes_per_operation",
        "write_amplification",
    ] {
        anyhow::ensure!(device[figure].is_null(), "{figure}: {device}");
    }
    let warnings = noisy["summary"]["warnings"]
        .as_array()
        .context("no warnings")?;
    let busy = warnings
        .iter()
        .find(|warning| warning["kind"] == "busy_device");
    let busy = busy.with_context(|| format!("{warnings:?}"))?;
    let names = busy["processes"].to_string();
    anyhow::ensure!(
        names.contains("\"sh\"") || names.contains("\"dd\""),
        "{names}"
    );
    // No more than the device counted, and most of it: each process wrote 1 MiB for its sync.
    let of = |whose: &str| busy[whose]["written_bytes"].as_u64().context("no bytes");
    let (others, all) = (of("others")?, of("device")?);
    anyhow::ensure!(others <= all && others >= 1 << 20, "{others} of {all}");
    Ok(())
}

fn alone() -> anyhow::Result<()> {
    let ground = Fixture::with(Kind::Ext4, 3 << 30, "")?;
    let writer = Writer::start(ground.root())?;
    let flags = format!("{JOB} --on loop");
    let found = [
        result(ground.root(), &flags)?,
        result(ground.root(), &flags)?,
    ];
    drop(writer);
    let written = |result: &Value| device(result)["written_bytes_per_operation"].as_f64();
    let [first, second] = found.each_ref().map(written);
    let (first, second) = (first.context("not known")?, second.context("not known")?);
    println!("    {first} and {second} bytes an operation");
    anyhow::ensure!(first >= 4096.0, "{first}");
    anyhow::ensure!((first - second).abs() <= 0.02 * first, "{first} {second}");
    // The result names what the user named, and nothing is left.
    let directory = ground.root().display().to_string();
    let target = &found[0]["result"]["job"]["target"]["directory"];
    anyhow::ensure!(*target == directory, "{target}");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    let here = |line: &&str| line.contains("iostep-mount") && !line.contains(&directory);
    anyhow::ensure!(!mounts.lines().any(|line| here(&line)), "{mounts}");
    let left: Vec<_> = std::fs::read_dir(ground.root())?.flatten().collect();
    let names: Vec<_> = left.iter().map(|entry| entry.file_name()).collect();
    anyhow::ensure!(names.len() <= 2, "{names:?}");
    Ok(())
}
