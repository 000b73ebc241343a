//! Devices that fail or have no room: results of a replay, not its end.

use std::path::Path;

use anyhow::Context;
use iostep_kernel_tests::iostep::{self, Running};
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::{Kind, Mount};
use serde_json::Value;

use super::{ensure_removed, replay, written_trace};
use crate::bad_input::TempMount;
use crate::bench::Disk;
use crate::case::Case;
use crate::faults::wait_until;
use crate::stage;

const MIB: u64 = 1 << 20;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let tmpfs = [Requirement::Root, Requirement::Filesystem("tmpfs")];
    let mut loops = stage::requirements(Kind::Ext4);
    loops.push(Requirement::Filesystem("tmpfs"));
    vec![
        Case::new("a full tmpfs is a result", tmpfs, full_tmpfs),
        Case::new("a full device is a result", loops.clone(), full_device),
        Case::new(
            "write errors of a device are results",
            loops.clone(),
            write_errors,
        ),
        Case::new(
            "read errors of a device are results",
            loops.clone(),
            read_errors,
        ),
        Case::new(
            "what was measured before a target broke is kept",
            loops,
            broken_between_runs,
        ),
    ]
}

fn mounted(bytes: u64, memory: &str) -> anyhow::Result<(Mount, Disk)> {
    let disk = Disk::new(bytes, memory)?;
    iostep_lab::mkfs(
        Kind::Ext4,
        &disk.image,
        iostep_lab::tool(Kind::Ext4).at_once,
    )?;
    // A commit would write behind the end of an image that was cut, and so make it whole again.
    let mount = Mount::new(Kind::Ext4, &disk.image, "commit=300")?;
    Ok((mount, disk))
}

/// An open, `writes` MiB in a row, an fsync, and a close.
fn writes(writes: u64) -> Vec<String> {
    let mut calls =
        vec!["0 10 t1 openat path=\"/a\" flags=O_RDWR|O_CREAT mode=0600 = h1".to_owned()];
    for number in 0..writes {
        let (start, offset) = (20 + 10 * number, number * MIB);
        calls.push(format!(
            "{start} 5 t1 pwrite64 h1 size={MIB} offset={offset} = {MIB}"
        ));
    }
    let end = 20 + 10 * writes;
    calls.push(format!("{end} 5 t1 fsync h1 = 0"));
    calls.push(format!("{} 5 t1 close h1 = 0", end + 10));
    calls
}

/// Fails unless every call was issued and all differences are the target's fault. Their errors.
fn blamed(summary: &Value, calls: usize) -> anyhow::Result<Vec<String>> {
    anyhow::ensure!(
        summary["totals"]["done"] == calls,
        "{} of {calls}; skipped: {}",
        summary["totals"],
        summary["skipped"]
    );
    let differences = summary["differences"].as_array().context("a list")?;
    anyhow::ensure!(!differences.is_empty(), "nothing failed");
    let errors = differences.iter().map(|difference| {
        anyhow::ensure!(difference["reason"] == "target", "{difference}");
        let error = difference["replayed"].as_str().context("an error")?;
        println!("    {}: {error}", difference["syscall"]);
        Ok(error.to_owned())
    });
    errors.collect()
}

fn fill(to: &Path, mib: u64) -> anyhow::Result<Vec<String>> {
    let directory = tempfile::tempdir()?;
    let trace = directory.path().join("large.trace");
    let calls = writes(mib);
    written_trace(&trace, 1, "", &calls)?;
    let summary = replay(&trace, to, &["--timing", "fast"], 0)?;
    blamed(&summary, calls.len())
}

fn full_tmpfs() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "size=2m")?;
    let errors = fill(place.path(), 4)?;
    anyhow::ensure!(errors == ["ENOSPC"], "{errors:?}");
    Ok(())
}

fn full_device() -> anyhow::Result<()> {
    let (mount, _disk) = mounted(8 * MIB, "100%")?;
    let errors = fill(mount.path(), 32)?;
    anyhow::ensure!(errors.contains(&"ENOSPC".into()), "{errors:?}");
    Ok(())
}

/// The image has room for a quarter of what it says.
fn write_errors() -> anyhow::Result<()> {
    let (mount, _disk) = mounted(64 * MIB, "16m")?;
    let errors = fill(mount.path(), 40)?;
    // Which of the two depends on the kernel (drivers/block/loop.c), not on the replay.
    let known = ["EIO", "ENOSPC", "EROFS"];
    let all = errors.iter().all(|error| known.contains(&error.as_str()));
    anyhow::ensure!(all, "{errors:?}");
    Ok(())
}

/// The image is cut while a replay waits for the time of its reads.
fn read_errors() -> anyhow::Result<()> {
    let (mount, disk) = mounted(64 * MIB, "100%")?;
    let directory = tempfile::tempdir()?;
    let trace = directory.path().join("reads.trace");
    let mut calls = vec![
        "0 10 t1 openat path=\"/data\" flags=O_RDONLY mode=000 = h1".to_owned(),
        "20 10 t1 mkdir path=\"/ready\" mode=0700 = 0".to_owned(),
    ];
    for number in 0..16 {
        // Time enough to cut the device, on a machine that is emulated and busy, too.
        let (start, offset) = (4_000_000_000 + 10 * number, number * MIB);
        calls.push(format!(
            "{start} 5 t1 pread64 h1 size=4096 offset={offset} = 4096"
        ));
    }
    let initial = format!(
        "@initial file path=\"/data\" size={} content=data seen\n",
        16 * MIB
    );
    written_trace(&trace, 1, &initial, &calls)?;
    let words = [Path::new("replay"), &trace, "--to".as_ref(), mount.path()];
    let running = Running::start(words.into_iter().chain([Path::new("--json")]))?;
    let ready = mount.path().join("iostep-replay/ready");
    wait_until("the first calls", || ready.exists())?;
    disk.cut(4 * MIB)?;
    let fails = fails_at(&disk, 8 * MIB)?;
    let outcome = running.finish()?.status(0)?;
    if !fails {
        println!("    left out: this kernel reads zeros behind the end of a loop device's file");
        return Ok(());
    }
    let document: Value = serde_json::from_str(&outcome.stdout)?;
    let summary = &document["targets"][0]["runs"][0]["summary"];
    let errors = blamed(summary, calls.len())?;
    anyhow::ensure!(errors == ["EIO"], "{errors:?}");
    anyhow::ensure!(summary["differences"][0]["count"] == 16, "{summary}");
    Ok(())
}

/// Whether a read of the device fails there: Linux 6.1's loop driver fills what its file has not with
/// zeros (`lo_read_simple` of drivers/block/loop.c).
fn fails_at(disk: &Disk, offset: u64) -> anyhow::Result<bool> {
    let mut read = std::process::Command::new("dd");
    read.arg(format!("if={}", disk.image.device().display()))
        .arg(format!("skip={}", offset / 4096))
        .args(["of=/dev/null", "bs=4096", "count=1", "iflag=direct"]);
    Ok(!read.output()?.status.success())
}

/// Of two directories one has no room for the second replay.
fn broken_between_runs() -> anyhow::Result<()> {
    let (mount, _disk) = mounted(64 * MIB, "100%")?;
    let small = TempMount::new("tmpfs", "size=4m")?;
    let directory = tempfile::tempdir()?;
    let trace = directory.path().join("app.trace");
    let initial = format!(
        "@initial file path=\"/data\" size={} content=data seen\n",
        8 * MIB
    );
    let calls = ["0 10 t1 openat path=\"/data\" flags=O_RDONLY mode=000 = h1".to_owned()];
    written_trace(&trace, 1, &initial, &calls)?;
    let outcome = iostep::run([
        Path::new("replay"),
        &trace,
        "--to".as_ref(),
        mount.path(),
        "--to".as_ref(),
        small.path(),
        "--json".as_ref(),
    ])?
    .status(1)?;
    let document: Value = serde_json::from_str(&outcome.stdout)?;
    let runs = |target: usize| document["targets"][target]["runs"].as_array().map(Vec::len);
    anyhow::ensure!((runs(0), runs(1)) == (Some(1), Some(0)), "{document}");
    let small = small.path().display().to_string();
    anyhow::ensure!(outcome.stderr.contains(&small), "{}", outcome.stderr);
    anyhow::ensure!(
        outcome.stderr.contains("choose a larger"),
        "{}",
        outcome.stderr
    );
    ensure_removed(mount.path())
}
