//! What is in the files afterwards, read by plain reads.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use iostep_kernel_tests::counters;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use iostep_model::bench::Warning;

use super::{Fixture, TMPFS, brief, ground_needs, measure, only_run, work_files};
use crate::bad_input::TempMount;
use crate::case::Case;

const BLOCK: usize = 4096;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let ext4 = || ground_needs(Kind::Ext4, &[]);
    vec![
        Case::new(
            "mappings of many threads read every file",
            ext4(),
            mappings_read_every_file,
        ),
        Case::new(
            "io_uring writes what psync writes",
            ext4(),
            engines_write_the_same,
        ),
        Case::new(
            "the payload does not compress",
            [TMPFS, &[Requirement::Program("gzip")]].concat(),
            payload_and_gzip,
        ),
        Case::new(
            "a compressing filesystem writes all of the payload",
            ground_needs(Kind::Btrfs, &[]),
            payload_and_btrfs,
        ),
    ]
}

/// The blocks of every work file, that must all have `bytes`.
fn blocks_of_files(target: &Path, bytes: usize) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut blocks = Vec::new();
    for path in work_files(target) {
        let content = std::fs::read(&path)?;
        anyhow::ensure!(
            content.len() == bytes,
            "{}: {} bytes",
            path.display(),
            content.len()
        );
        blocks.extend(content.chunks(BLOCK).map(<[u8]>::to_vec));
    }
    Ok(blocks)
}

/// How many blocks are not zeros, and how many of them are different.
fn written(blocks: &[Vec<u8>]) -> (usize, usize) {
    let written: Vec<_> = blocks
        .iter()
        .filter(|block| block.iter().any(|byte| *byte != 0))
        .collect();
    (written.len(), written.iter().collect::<HashSet<_>>().len())
}

fn mappings_read_every_file() -> anyhow::Result<()> {
    let ground = Fixture::new(Kind::Ext4)?;
    for threads in [4, 8] {
        for access in ["read", "random-read"] {
            let flags = format!(
                "--transfer mmap --size 128KiB --threads {threads} --access {access} --verify"
            );
            let document = measure("file", ground.root(), &flags)?;
            let run = only_run(&document)?;
            anyhow::ensure!(
                run.bytes == threads * (128 << 10),
                "{flags}: {}",
                brief(run)
            );
            // From the device, since the pages were dropped.
            let read = run.device.context("no counters")?.read.bytes;
            anyhow::ensure!(read >= run.bytes, "{flags}: the device read {read} bytes");
        }
    }
    Ok(())
}

fn engines_write_the_same() -> anyhow::Result<()> {
    let ground = Fixture::new(Kind::Ext4)?;
    for access in ["write", "random-write", "append"] {
        for transfer in ["buffered", "direct"] {
            let flags = |engine: &str| {
                format!(
                    "--access {access} --transfer {transfer} --size 512KiB --threads 2 --keep \
                     --seed 7 {engine}"
                )
            };
            let content = |engine: &str| -> anyhow::Result<Vec<Vec<u8>>> {
                measure("file", ground.root(), &flags(engine))?;
                blocks_of_files(ground.root(), 512 << 10)
            };
            let psync = content("--engine psync")?;
            let one = content("--engine uring --depth 1")?;
            anyhow::ensure!(psync == one, "{access} {transfer}: depth 1 differs");
            // With many under way, which buffer a record comes from is up to their ends.
            let many = written(&content("--engine uring --depth 32")?);
            anyhow::ensure!(
                many == (psync.len(), psync.len()),
                "{access} {transfer}: depth 32 wrote {many:?} of {} blocks",
                psync.len()
            );
        }
    }
    Ok(())
}

fn payload_and_gzip() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    let packed = |flags: &str| -> anyhow::Result<usize> {
        let flags = format!("--size 4MiB --access random-write --keep {flags}");
        measure("file", place.path(), &flags)?;
        let mut gzip = Command::new("gzip");
        gzip.args(["-1", "-c"]).args(work_files(place.path()));
        Ok(gzip.output()?.stdout.len())
    };
    // gzip looks back over 32 KiB, so that small records tell most.
    for record in ["512", "4KiB", "1MiB"] {
        for engine in ["psync", "uring --depth 8"] {
            let bytes = packed(&format!("--record {record} --engine {engine}"))?;
            println!("    records of {record}, {engine}: 4 MiB become {bytes} bytes");
            // Of each record 48 bytes say which it is, and these compress. With several under way
            // the wanted buffer may be in use.
            let least = match (record, engine) {
                ("512", _) => 90,
                (_, "psync") => 98,
                _ => 96,
            };
            let percent = bytes * 100 / (4 << 20);
            anyhow::ensure!(percent >= least, "{record}, {engine}: {bytes} bytes");
        }
    }
    let constant = packed("--payload constant")?;
    anyhow::ensure!(constant < 64 << 10, "one byte: {constant} bytes");
    Ok(())
}

fn payload_and_btrfs() -> anyhow::Result<()> {
    let ground = Fixture::with(Kind::Btrfs, 512 << 20, "compress-force=zstd")?;
    let device_bytes = |flags: &str| -> anyhow::Result<u64> {
        let flags = format!("--access append --size 16MiB --end-sync {flags}");
        let before = counters::read(ground.disk.path())?;
        let document = measure("file", ground.root(), &flags)?;
        let after = counters::read(ground.disk.path())?;
        let warned = |w: &Warning| matches!(w, Warning::Compression { .. });
        let warnings = &document.warnings;
        anyhow::ensure!(warnings.iter().any(warned), "no warning: {warnings:?}");
        Ok(counters::difference(before, after).write.bytes)
    };
    let (random, constant) = (device_bytes("")?, device_bytes("--payload constant")?);
    println!("    16 MiB are {random} bytes on the device; of one byte, {constant}");
    anyhow::ensure!(random >= (16 << 20) / 100 * 98, "{random} bytes");
    anyhow::ensure!(constant < 4 << 20, "of one byte, {constant} bytes");
    Ok(())
}
