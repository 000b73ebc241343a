//! Block I/O of replays, against what the devices themselves counted.

use std::path::Path;

use iostep_kernel_tests::counters;
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use iostep_model::manifest::Counters;
use serde_json::Value;

use super::written_trace;
use crate::case::Case;
use crate::stage::{self, Stage};

const KIB: u64 = 1024;
const WRITES: u64 = 64;
const READS: u64 = 48;
/// The last writes, each with a sync behind it that commits.
const SYNCED: u64 = 24;
const BYTES: u64 = 256 * KIB;
/// More than making and removing one empty directory makes a filesystem of this size write.
const AROUND_BYTES: u64 = 4 << 20;
/// As many flushes: this test settles once.
const AROUND_FLUSHES: u64 = 8;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut needs = stage::requirements(Kind::Ext4);
    needs.extend(stage::requirements(Kind::Xfs));
    needs.push(Requirement::Btf);
    vec![Case::new(
        "block I/O in two directories is what their devices counted",
        needs,
        two_targets,
    )]
}

/// O_DIRECT, so that the data's bytes at the device are those of the calls.
fn calls() -> Vec<String> {
    let mut calls =
        vec!["0 5 t1 openat path=\"/a\" flags=O_RDWR|O_CREAT|O_DIRECT mode=0600 = h1".to_owned()];
    let reads = (0..READS).map(|at| ("pread64", at));
    let writes = (0..WRITES).map(|at| ("pwrite64", at));
    for (number, (call, at)) in (1..).zip(writes.chain(reads)) {
        let (start, offset) = (20 * number, at * BYTES);
        calls.push(format!(
            "{start} 5 t1 {call} h1 size={BYTES} offset={offset} = {BYTES}"
        ));
        if call == "pwrite64" && at >= WRITES - SYNCED {
            let start = start + 10;
            calls.push(format!("{start} 5 t1 fsync h1 = 0"));
        }
    }
    calls
}

fn two_targets() -> anyhow::Result<()> {
    let stages = [
        Stage::new(Kind::Ext4, &[], "")?,
        Stage::new(Kind::Xfs, &[], "")?,
    ];
    let directory = tempfile::tempdir()?;
    let trace = directory.path().join("direct.trace");
    written_trace(&trace, 1, "", &calls())?;
    let read = |stage: &Stage| counters::read(stage.device());
    let before = [read(&stages[0])?, read(&stages[1])?];
    let outcome = iostep::run([
        Path::new("replay"),
        &trace,
        "--to".as_ref(),
        stages[0].root(),
        "--to".as_ref(),
        stages[1].root(),
        "--timing".as_ref(),
        "fast".as_ref(),
        "--trace".as_ref(),
        "--json".as_ref(),
    ])?
    .success()?;
    let document: Value = serde_json::from_str(&outcome.stdout)?;
    for (index, stage) in stages.iter().enumerate() {
        stage.settle()?;
        let counted = counters::difference(before[index], read(stage)?);
        let target = &document["targets"][index];
        anyhow::ensure!(
            target["filesystem"] == ["ext4", "xfs"][index],
            "{}",
            target["filesystem"]
        );
        agree(&target["runs"][0]["block"], &counted, stage.device())?;
        let (named, traced) = (&target["device"]["name"], &target["runs"][0]["block"]);
        anyhow::ensure!(named == &traced["device"], "{named}");
    }
    Ok(())
}

/// The data's bytes are exactly those of the calls; all bytes are the device's own count, but for
/// what is done before and after the replay.
fn agree(block: &Value, counted: &Counters, device: &Path) -> anyhow::Result<()> {
    println!("    {block}; {counted:?}");
    anyhow::ensure!(block["whole"] == true, "{block}");
    let name = device.file_name().and_then(|name| name.to_str());
    anyhow::ensure!(block["device"].as_str() == name, "{block}");
    let expected = [
        ("read_bytes", READS * BYTES, counted.read.bytes),
        ("written_bytes", WRITES * BYTES, counted.write.bytes),
    ];
    for (direction, data, counted) in expected {
        let kinds = ["data", "metadata", "journal", "unknown"];
        let of = |kind: &str| block[direction][kind].as_u64().unwrap_or(0);
        anyhow::ensure!(of("data") == data, "{direction}: {} of data", of("data"));
        let sum: u64 = kinds.iter().map(|kind| of(kind)).sum();
        let around = sum..=sum + AROUND_BYTES;
        anyhow::ensure!(around.contains(&counted), "{direction}: {sum} of {counted}");
    }
    let flushes = block["flushes"].as_u64().unwrap_or(0);
    let around = flushes..=flushes + AROUND_FLUSHES;
    anyhow::ensure!(
        flushes > 0 && around.contains(&counted.flush.ios),
        "{flushes} flushes, {counted:?}"
    );
    Ok(())
}
