//! --verify passes where nothing is wrong, and finds what somebody else wrote.

use std::fs::File;
use std::os::unix::fs::FileExt;

use anyhow::Context;
use iostep_lab::Kind;
use iostep_model::bench::{Run, Verification};

use super::{DEVICE, Disk, Fixture, document, ground_needs, measure, only_run, start, wait_for};
use crate::case::Case;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new(
            "--verify passes for every access, transfer, sync and engine",
            ground_needs(Kind::Ext4, &[]),
            every_mode_passes,
        ),
        Case::new(
            "--verify finds what somebody else wrote to a device",
            DEVICE,
            foreign_device_record,
        ),
    ]
}

fn verified(run: &Run) -> anyhow::Result<&Verification> {
    run.verification.as_ref().context("nothing was verified")
}

fn every_mode_passes() -> anyhow::Result<()> {
    let ground = Fixture::new(Kind::Ext4)?;
    let mut modes = 0;
    let mut check = |flags: &str| -> anyhow::Result<()> {
        let flags = format!("--size 128KiB --threads 2 --verify {flags}");
        let document = measure("file", ground.root(), &flags)?;
        let found = verified(only_run(&document)?)?;
        anyhow::ensure!(
            found.wrong == 0 && found.compared >= 32,
            "{flags}: {found:?}"
        );
        modes += 1;
        Ok(())
    };
    let syncs = ["none", "osync", "odsync", "rwf-dsync", "fsync", "fdatasync"];
    for engine in ["psync", "uring --depth 4"] {
        for transfer in ["buffered", "direct"] {
            for access in ["read", "random-read"] {
                check(&format!(
                    "--access {access} --transfer {transfer} --engine {engine}"
                ))?;
            }
            for access in ["write", "random-write", "append"] {
                for sync in syncs {
                    check(&format!(
                        "--access {access} --transfer {transfer} --engine {engine} --sync {sync}"
                    ))?;
                }
            }
        }
    }
    for access in ["write", "random-write"] {
        for sync in ["none", "msync", "msync-async", "fsync", "fdatasync"] {
            check(&format!("--access {access} --transfer mmap --sync {sync}"))?;
        }
        check(&format!(
            "--access {access} --shared --sync sync-file-range"
        ))?;
        check(&format!("--access {access} --initial sparse --time 100ms"))?;
        check(&format!(
            "--access {access} --record 512 --initial allocated"
        ))?;
    }
    check("--access random-write --overlap 50")?;
    check("--access random-read --overlap 50 --shared")?;
    println!("    {modes} modes");
    Ok(())
}

/// Fails unless exactly one record is wrong and is told.
fn ensure_one_wrong(outcome: iostep_kernel_tests::iostep::Outcome) -> anyhow::Result<String> {
    let outcome = outcome.status(1)?;
    let document = document(&outcome)?;
    let found = verified(only_run(&document)?)?;
    println!("    {found:?}");
    anyhow::ensure!(found.wrong == 1, "{found:?}");
    found.examples.first().cloned().context("no example")
}

fn foreign_device_record() -> anyhow::Result<()> {
    let disk = Disk::new(1 << 20, "100%")?;
    let flags = "--destroy-data --size 1MiB --think 2ms --verify";
    let running = start("file", disk.path(), flags)?;
    let device = File::options().read(true).write(true).open(disk.path())?;
    let block = |index: u64| {
        let mut block = [0; 4096];
        device
            .read_exact_at(&mut block, index * 4096)
            .map(|()| block)
    };
    // When this one is another, the third was written, and will not be again.
    let before = block(100)?;
    wait_for(&running, "a hundred records", || {
        block(100).is_ok_and(|block| block != before)
    })?;
    device.write_all_at(&[0x11; 4096], 2 * 4096)?;
    let example = ensure_one_wrong(running.finish()?)?;
    anyhow::ensure!(example.contains("8192"), "{example}");
    Ok(())
}
