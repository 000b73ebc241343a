//! Device bytes and flushes, as the kernel counts them for the whole command.

use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::Context;
use iostep_kernel_tests::counters;
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use iostep_model::bench::Document;
use iostep_model::manifest::Counters;
use iostep_model::store;

use super::{DEVICE, Disk, Fixture, attempt, brief, ground_needs, measure, only_run, words};
use crate::case::Case;

const DISK_BYTES: u64 = 8 << 20;
const RECORD: u64 = 4096;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let traced = [DEVICE, &[Requirement::Btf]].concat();
    vec![
        Case::new(
            "direct writes are so many bytes on the device",
            DEVICE,
            direct_writes,
        ),
        Case::new(
            "direct reads are so many bytes, and nothing is written",
            DEVICE,
            direct_reads,
        ),
        Case::new("a trace sees what bench counts", traced, beside_a_trace),
        Case::new(
            "each fdatasync flushes the device once",
            ground_needs(Kind::Ext4, &[]),
            one_flush_for_each_sync,
        ),
        Case::new(
            "without syncs nothing is flushed",
            ground_needs(Kind::Ext4, &[]),
            no_flush_without_sync,
        ),
        Case::new(
            "a device is filled to its end and not beyond",
            DEVICE,
            whole_device,
        ),
        Case::new(
            "what lies behind the asked bytes of a device is untouched",
            DEVICE,
            rest_of_the_device,
        ),
        Case::new(
            "a device is not written without --destroy-data",
            DEVICE,
            without_destroy_data,
        ),
        Case::new(
            "a mounted device is never written",
            ground_needs(Kind::Ext4, &[]),
            mounted_device,
        ),
    ]
}

/// A device full of a pattern that bench never writes.
fn patterned() -> anyhow::Result<Disk> {
    let disk = Disk::new(DISK_BYTES, "100%")?;
    let device = std::fs::File::options().write(true).open(disk.path())?;
    device.write_all_at(&vec![0xa7; DISK_BYTES as usize], 0)?;
    device.sync_all()?;
    Ok(disk)
}

fn content(device: &Path) -> anyhow::Result<Vec<u8>> {
    Ok(std::fs::read(device)?)
}

/// Runs bench on a device: what it printed, and what the device counted around it.
fn counted(target: &Path, device: &Path, flags: &str) -> anyhow::Result<(Document, Counters)> {
    let before = counters::read(device)?;
    let document = measure("file", target, flags)?;
    let after = counters::read(device)?;
    Ok((document, counters::difference(before, after)))
}

fn direct_writes() -> anyhow::Result<()> {
    let disk = patterned()?;
    for engine in ["psync", "uring --depth 8"] {
        for (access, bytes) in [("write", DISK_BYTES), ("random-write", 1 << 20)] {
            let flags = format!(
                "--destroy-data --reuse --transfer direct --access {access} --size {bytes} \
                 --record {RECORD} --engine {engine}"
            );
            let (document, outside) = counted(disk.path(), disk.path(), &flags)?;
            let run = only_run(&document)?;
            let inside = run.device.context("no counters")?;
            println!("    {engine} {access}: {:?}", inside.write);
            anyhow::ensure!(run.operations == bytes / RECORD, "{flags}: {}", brief(run));
            anyhow::ensure!(inside.write.bytes == bytes, "{flags}: {inside:?}");
            anyhow::ensure!(outside.write.bytes == bytes, "{flags}: {outside:?}");
        }
    }
    Ok(())
}

fn direct_reads() -> anyhow::Result<()> {
    let disk = patterned()?;
    let before = content(disk.path())?;
    for access in ["read", "random-read"] {
        let flags = format!("--transfer direct --access {access} --size 4MiB");
        let (document, outside) = counted(disk.path(), disk.path(), &flags)?;
        let inside = only_run(&document)?.device.context("no counters")?;
        anyhow::ensure!(inside.read.bytes == 4 << 20, "{flags}: {inside:?}");
        anyhow::ensure!(outside.read.bytes >= 4 << 20, "{flags}: {outside:?}");
        anyhow::ensure!(outside.write.bytes == 0, "{flags}: {outside:?}");
    }
    anyhow::ensure!(content(disk.path())? == before, "the content changed");
    Ok(())
}

fn beside_a_trace() -> anyhow::Result<()> {
    let disk = patterned()?;
    let directory = tempfile::tempdir()?;
    let (trace, result) = (
        directory.path().join("run.iostep"),
        directory.path().join("result.json"),
    );
    let flags = "--destroy-data --reuse --transfer direct --access random-write --size 2MiB \
                 --sync fdatasync --sync-every 4 --threads 2";
    let mut line = vec!["trace".into(), disk.path().to_owned()];
    line.extend(["-o".into(), trace.clone(), "--".into(), iostep::binary()?]);
    line.extend(words("file", disk.path(), flags));
    line.extend(["-o".into(), result.clone()]);
    let before = counters::read(disk.path())?;
    iostep::run(line)?.success()?;
    let outside = counters::difference(before, counters::read(disk.path())?);
    let document = Document::read(&result)?;
    let counted = only_run(&document)?.device.context("no counters")?;
    let trace = store::read(&trace)?;
    let writes = trace
        .requests
        .iter()
        .filter(|r| r.operation.is_write() && r.bytes > 0);
    let bytes: u64 = writes.map(|request| u64::from(request.bytes)).sum();
    println!(
        "    traced {bytes} bytes, {:?}",
        trace.manifest.check.completed
    );
    anyhow::ensure!(bytes == 4 << 20, "the trace has {bytes} bytes");
    anyhow::ensure!(counted.write.bytes == bytes, "{counted:?}");
    // A sync after every fourth of two times 512 writes; the rest comes before them.
    let flushes = trace.manifest.check.completed.flush.ios;
    anyhow::ensure!(
        outside.flush.ios == flushes,
        "{outside:?}, {flushes} traced"
    );
    anyhow::ensure!(counted.flush.ios == 256, "{counted:?}");
    Ok(())
}

fn one_flush_for_each_sync() -> anyhow::Result<()> {
    let ground = Fixture::new(Kind::Ext4)?;
    for (every, syncs) in [(1, 256), (8, 32)] {
        let flags = format!("--size 1MiB --sync fdatasync --sync-every {every}");
        let (document, outside) = counted(ground.root(), ground.disk.path(), &flags)?;
        let inside = only_run(&document)?.device.context("no counters")?;
        println!("    every {every}: {inside:?}");
        // The journal's own commits flush too, once in five seconds.
        anyhow::ensure!(
            (syncs..syncs + 4).contains(&inside.flush.ios),
            "{flags}: {inside:?}"
        );
        anyhow::ensure!(outside.flush.ios >= inside.flush.ios, "{outside:?}");
        anyhow::ensure!(inside.write.bytes >= 1 << 20, "{flags}: {inside:?}");
        anyhow::ensure!(inside.write.bytes <= outside.write.bytes, "{outside:?}");
    }
    Ok(())
}

fn no_flush_without_sync() -> anyhow::Result<()> {
    let ground = Fixture::new(Kind::Ext4)?;
    let flags = "--size 1MiB --sync none --transfer direct";
    let (document, _) = counted(ground.root(), ground.disk.path(), flags)?;
    let inside = only_run(&document)?.device.context("no counters")?;
    anyhow::ensure!(inside.flush.ios <= 3, "{inside:?}");
    anyhow::ensure!(inside.write.bytes >= 1 << 20, "{inside:?}");
    Ok(())
}

fn whole_device() -> anyhow::Result<()> {
    let disk = patterned()?;
    let flags = format!("--destroy-data --size {DISK_BYTES} --verify");
    let document = measure("file", disk.path(), &flags)?;
    let run = only_run(&document)?;
    anyhow::ensure!(run.bytes == DISK_BYTES, "{}", brief(run));
    let written = content(disk.path())?;
    let old = written
        .chunks(4096)
        .filter(|b| b.iter().all(|b| *b == 0xa7))
        .count();
    anyhow::ensure!(old == 0, "{old} blocks are as before");
    let disk = patterned()?;
    for flags in ["--size 16MiB", "--size 4MiB --threads 3", "--size 8192TiB"] {
        let flags = format!("--destroy-data {flags}");
        let outcome = attempt("file", disk.path(), &flags)?;
        outcome.refused(&[1, 2], "bytes")?;
    }
    anyhow::ensure!(
        content(disk.path())?.iter().all(|byte| *byte == 0xa7),
        "a refused run wrote to the device"
    );
    Ok(())
}

fn rest_of_the_device() -> anyhow::Result<()> {
    for (flags, bytes) in [
        ("--size 1MiB", 1 << 20),
        ("--size 1MiB --threads 4", 4 << 20),
        ("--size 1MiB --threads 4 --shared", 1 << 20),
        (
            "--size 1MiB --transfer direct --access random-write",
            1 << 20,
        ),
        (
            "--size 1MiB --transfer mmap --threads 2 --sync msync",
            2 << 20,
        ),
        ("--size 1MiB --engine uring --depth 16 --threads 2", 2 << 20),
    ] {
        let disk = patterned()?;
        measure("file", disk.path(), &format!("--destroy-data {flags}"))?;
        let content = content(disk.path())?;
        let (asked, rest) = content.split_at(bytes);
        let old = asked
            .chunks(4096)
            .filter(|b| b.iter().all(|b| *b == 0xa7))
            .count();
        anyhow::ensure!(old == 0, "{flags}: {old} blocks are as before");
        anyhow::ensure!(rest.iter().all(|b| *b == 0xa7), "{flags}: more was written");
    }
    Ok(())
}

fn without_destroy_data() -> anyhow::Result<()> {
    let disk = patterned()?;
    for access in ["write", "random-write", "append"] {
        let flags = format!("--size 1MiB --access {access}");
        attempt("file", disk.path(), &flags)?.refused(&[2], "--destroy-data")?;
    }
    anyhow::ensure!(
        content(disk.path())?.iter().all(|byte| *byte == 0xa7),
        "it wrote to the device"
    );
    Ok(())
}

fn mounted_device() -> anyhow::Result<()> {
    // Read-only, so that the filesystem itself writes nothing either, whenever it likes.
    let ground = Fixture::with(Kind::Ext4, 64 << 20, "ro")?;
    let before = counters::read(ground.disk.path())?;
    let held = content(ground.disk.path())?;
    for flags in ["", "--reuse", "--transfer direct --reuse"] {
        let flags = format!("--destroy-data --size 1MiB {flags}");
        attempt("file", ground.disk.path(), &flags)?.refused(&[1], "is mounted at")?;
    }
    let written = counters::difference(before, counters::read(ground.disk.path())?).write;
    anyhow::ensure!(content(ground.disk.path())? == held, "the content changed");
    anyhow::ensure!(written.bytes == 0, "{written:?}");
    Ok(())
}
