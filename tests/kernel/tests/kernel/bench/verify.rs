//! --verify passes where nothing is wrong, and finds what somebody else wrote.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::process::Command;

use anyhow::Context;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use iostep_model::bench::{Run, Verification};

use super::database::{only_table, sqlite3};
use super::{
    DEVICE, Disk, Ground, TMPFS, document, ground_needs, measure, only_run, start, wait_for,
    work_files,
};
use crate::bad_input::TempMount;
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
            "--verify passes for every journal and operation",
            TMPFS,
            every_journal_passes,
        ),
        Case::new(
            "--verify finds a record that somebody else wrote",
            TMPFS,
            foreign_record,
        ),
        Case::new(
            "--verify finds a single bit in what is read",
            TMPFS,
            foreign_bit,
        ),
        Case::new(
            "--verify finds what somebody else wrote to a device",
            DEVICE,
            foreign_device_record,
        ),
        Case::new(
            "--verify finds a row that somebody else changed",
            [TMPFS, &[Requirement::Program("sqlite3")]].concat(),
            foreign_row,
        ),
    ]
}

fn verified(run: &Run) -> anyhow::Result<&Verification> {
    run.verification.as_ref().context("nothing was verified")
}

fn every_mode_passes() -> anyhow::Result<()> {
    let ground = Ground::new(Kind::Ext4)?;
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

fn every_journal_passes() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    for journal in ["delete", "truncate", "persist", "wal", "memory", "off"] {
        for operation in ["insert", "update", "delete", "read", "mix"] {
            let flags = format!(
                "--journal {journal} --operation {operation} --keys random --transactions 40 \
                 --rows 60 --tables 2 --databases 2 --verify"
            );
            let document = measure("sqlite", place.path(), &flags)?;
            let found = verified(only_run(&document)?)?;
            anyhow::ensure!(found.wrong == 0 && found.compared > 0, "{flags}: {found:?}");
        }
    }
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

fn foreign_record() -> anyhow::Result<()> {
    for flags in ["", "--transfer mmap", "--engine uring"] {
        let place = TempMount::new("tmpfs", "")?;
        let flags = format!("--size 1MiB --initial sparse --think 2ms --verify {flags}");
        let running = start("file", place.path(), &flags)?;
        let path = place.path().join("iostep-bench/file-0");
        // Ten records are written, so the third will not be again.
        wait_for(&running, "ten records", || {
            path.metadata().is_ok_and(|found| found.blocks() >= 10 * 8)
        })?;
        let file = File::options().write(true).open(&path)?;
        file.write_all_at(&[0x11; 4096], 2 * 4096)?;
        let example = ensure_one_wrong(running.finish()?)?;
        anyhow::ensure!(example.contains("8192"), "{flags}: {example}");
    }
    Ok(())
}

fn foreign_bit() -> anyhow::Result<()> {
    for flags in ["", "--transfer mmap", "--engine uring --depth 2"] {
        let place = TempMount::new("tmpfs", "")?;
        let flags = format!("--access read --size 1MiB --think 2ms --verify {flags}");
        let running = start("file", place.path(), &flags)?;
        let path = place.path().join("iostep-bench/file-0");
        let file = File::options().read(true).write(true).open(&path)?;
        let mut byte = [0];
        let last = (1 << 20) - 100;
        file.read_exact_at(&mut byte, last)?;
        file.write_all_at(&[byte[0] ^ 4], last)?;
        let example = ensure_one_wrong(running.finish()?)?;
        let record = (1 << 20) - 4096;
        anyhow::ensure!(example.contains(&record.to_string()), "{flags}: {example}");
    }
    Ok(())
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

fn foreign_row() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    let flags = "--journal wal --transactions 400 --think 2ms --verify";
    let running = start("sqlite", place.path(), flags)?;
    let database = work_files(place.path())
        .into_iter()
        .next()
        .context("no database")?;
    let table = only_table(&database)?;
    wait_for(&running, "ten rows", || {
        let count = sqlite3(&database, &format!("SELECT count(*) FROM {};", table.name));
        count.is_ok_and(|count| count.trim().parse().is_ok_and(|rows: u64| rows >= 10))
    })?;
    let change = format!(
        "UPDATE {0} SET {1} = zeroblob(100) WHERE rowid = (SELECT min(rowid) FROM {0});",
        table.name, table.value
    );
    let status = Command::new("sqlite3")
        .args(["-cmd", ".timeout 5000"])
        .arg(&database)
        .arg(change)
        .status()?;
    anyhow::ensure!(status.success(), "sqlite3: {status}");
    ensure_one_wrong(running.finish()?).map(drop)
}
