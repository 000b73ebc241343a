//! What cells measure on loop devices.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use anyhow::Context;
use iostep_kernel_tests::iostep::Running;
use iostep_kernel_tests::requirement::Requirement;
use iostep_model::Operation;
use iostep_model::class::{Class, Layer};
use iostep_model::lab::{Medium, Run, State};

use super::{Bench, LOOP, at, ensure_complete};
use crate::case::Case;

/// What nine traced cells may take.
const MANY: Duration = Duration::from_secs(300);

pub fn cases() -> Vec<Case> {
    let all = [
        LOOP,
        &[
            Requirement::Btf,
            Requirement::Filesystem("xfs"),
            Requirement::Program("mkfs.xfs"),
            Requirement::Filesystem("btrfs"),
            Requirement::Program("mkfs.btrfs"),
        ],
    ]
    .concat();
    let traced = [LOOP, &[Requirement::Btf]].concat();
    vec![
        Case::new(
            "commands take turns on one filesystem, and their writes are counted",
            LOOP,
            commands_by_turns,
        ),
        Case::new(
            "three filesystems with their switches are measured, and classes add up to the counters",
            all,
            three_filesystems,
        ),
        Case::new(
            "an external journal's device is traced with the first",
            traced.clone(),
            external_journal,
        ),
        Case::new(
            "the recording that is built in is replayed, and fdatasync saves commits",
            traced,
            replayed,
        ),
    ]
}

/// Each command writes its name into a file of the test, and 64 KiB into the filesystem.
fn commands_by_turns() -> anyhow::Result<()> {
    let bench = Bench::new(
        "[[cells]]\nworkload='command'\nfilesystem='ext4'\ndevice-size='64MiB'\nrepeat=3\n\
         turns='all'\nenv='TOLD=told'\ncommand=['./write a', './write b']\n\
         [[cells]]\nworkload='command'\nfilesystem='ext4'\ndevice-size='64MiB'\nrepeat=3\n\
         turns='all'\nlabel='fails'\ncommand='./write'\n",
    )?;
    let script = format!(
        "#!/bin/sh\necho \"$1 $(stat -c %d .)\" >>{}/$TOLD\nset -e\n[ -n \"$1\" ]\n\
         dd if=/dev/zero of=new bs=64K count=1 conv=fsync,excl 2>/dev/null\necho '{{\"operations\": 2}}'\n",
        bench.path("").display()
    );
    std::fs::write(bench.path("write"), script)?;
    std::fs::set_permissions(bench.path("write"), PermissionsExt::from_mode(0o755))?;
    bench.run("out", &["--allow-commands"])?.status(1)?;
    let told = std::fs::read_to_string(bench.path("told"))?;
    let words: Vec<&str> = told.split_whitespace().collect();
    let names: Vec<&str> = words.iter().step_by(2).copied().collect();
    anyhow::ensure!(names == ["a", "b", "b", "a", "b", "a"], "{told}");
    let devices = words.iter().skip(1).step_by(2);
    anyhow::ensure!(devices.collect::<BTreeSet<_>>().len() == 1, "{told}");
    for result in bench.read("out")? {
        if result.cell.axis("label").is_some() {
            let failed = matches!(result.state, State::Failed { .. });
            anyhow::ensure!(failed && result.runs.is_empty(), "{:?}", result.state);
            continue;
        }
        ensure_complete(&result)?;
        anyhow::ensure!(result.runs.len() == 3, "{} runs", result.runs.len());
        for run in &result.runs {
            let device = run.device.context("nothing was counted")?;
            let written = device.write.bytes >= 64 << 10 && device.flush.ios >= 1;
            anyhow::ensure!(run.operations == 2 && written, "{run:?}");
        }
    }
    Ok(())
}

fn three_filesystems() -> anyhow::Result<()> {
    let bench = Bench::new(
        "[[cells]]\nworkload='sqlite'\ntransactions=40\ntrace=true\nrepeat=2\n\
         filesystem=['ext4', 'xfs', 'btrfs']\nswitches=['', 'F+W', 'E']\n",
    )?;
    let running = Running::start(bench.words("out", &[]))?;
    running.finish_within(MANY)?.status(0)?;
    let all = bench.read("out")?;
    anyhow::ensure!(all.len() == 9, "{} results", all.len());
    for result in &all {
        let what = iostep_lab::plan::label(&result.cell);
        let is_btrfs = result.cell.axis("filesystem") == Some("btrfs");
        if is_btrfs && result.cell.storage.external_journal {
            let expected = matches!(&result.state, State::NotApplicable { reason } if reason.contains("btrfs"));
            anyhow::ensure!(expected, "{what}: {:?}", result.state);
            continue;
        }
        ensure_complete(result)?;
        anyhow::ensure!(result.runs.len() == 2, "{what}: {} runs", result.runs.len());
        let environment = result.environment.as_ref().context("no environment")?;
        // The directory for temporary files may be memory.
        let place = environment.place;
        let here = matches!(place, Medium::Loop | Medium::Tmpfs);
        anyhow::ensure!(here, "{what}: {place:?}");
        anyhow::ensure!(
            environment.commands.len() >= 2,
            "{:?}",
            environment.commands
        );
        for run in &result.runs {
            check_run(&what, run)?;
        }
    }
    for table in ["cells.parquet", "classes.parquet", "lab.json"] {
        anyhow::ensure!(bench.path("out").join(table).is_file(), "no {table}");
    }
    Ok(())
}

fn check_run(what: &str, run: &Run) -> anyhow::Result<()> {
    anyhow::ensure!(
        run.operations == 40,
        "{what}: {} transactions",
        run.operations
    );
    let device = run.device.context("no counters")?;
    let classes = run.classes.as_ref().context("no classes")?;
    let written: u64 = classes
        .iter()
        .filter(|count| count.operation.is_write())
        .map(|count| count.bytes)
        .sum();
    println!(
        "    {what}: {} bytes counted, {written} traced",
        device.write.bytes
    );
    // A transaction writes its page, and each commit is flushed.
    anyhow::ensure!(device.write.bytes >= 40 * 4096, "{what}: {device:?}");
    anyhow::ensure!(device.flush.ios >= 40, "{what}: {device:?}");
    // Both windows begin and end in the middle of what the kernel does by itself.
    let apart = written.abs_diff(device.write.bytes);
    anyhow::ensure!(
        apart <= device.write.bytes / 10,
        "{what}: {written} of {device:?}"
    );
    let flushes = classes
        .iter()
        .filter(|count| count.operation == Operation::Flush);
    let flushes: u64 = flushes.map(|count| count.requests).sum();
    anyhow::ensure!(
        flushes.abs_diff(device.flush.ios) <= device.flush.ios / 10,
        "{what}: {flushes} flushes of {device:?}"
    );
    Ok(())
}

fn external_journal() -> anyhow::Result<()> {
    let bench = Bench::new(
        "[[cells]]\nworkload='sqlite'\ntransactions=30\ntrace=true\nfilesystem='ext4'\n\
         switches=['', 'E']\ndevice-size='128MiB'\n",
    )?;
    bench.run("out", &["--on", "tmpfs"])?.status(0)?;
    let all = bench.read("out")?;
    let log_bytes = |switches: &str| -> anyhow::Result<u64> {
        let result = at(&all, "switches", switches)?;
        ensure_complete(result)?;
        let place = result.environment.as_ref().map(|found| found.place);
        anyhow::ensure!(place == Some(Medium::Tmpfs), "{place:?}");
        let classes = result.runs[0].classes.iter().flatten();
        let log = classes.filter(|c| c.class.map(Class::layer) == Some(Layer::Journal));
        Ok(log.map(|count| count.bytes).sum())
    };
    anyhow::ensure!(log_bytes("")? > 0, "nothing was logged");
    anyhow::ensure!(log_bytes("E")? > 0, "the log's device is not traced");
    Ok(())
}

fn replayed() -> anyhow::Result<()> {
    let bench = Bench::new(
        "[[cells]]\nworkload='replay'\nrecording='builtin:timeline'\ntiming='fast'\n\
         trace=true\nfilesystem='ext4'\nswitches=['', 'F', 'P']\n",
    )?;
    let running = Running::start(bench.words("out", &["--on", "tmpfs"]))?;
    running.finish_within(MANY)?.status(0)?;
    let all = bench.read("out")?;
    let polled = &at(&all, "switches", "P")?.state;
    anyhow::ensure!(matches!(polled, State::NotApplicable { .. }), "{polled:?}");
    let run = |switches: &str| -> anyhow::Result<&Run> {
        let result = at(&all, "switches", switches)?;
        ensure_complete(result)?;
        result.runs.first().context("no run")
    };
    let (fsync, fdatasync) = (run("")?, run("F")?);
    anyhow::ensure!(
        fsync.operations == fdatasync.operations,
        "another number of calls"
    );
    let flushes = |run: &Run| run.device.map(|device| device.flush.ios);
    let (before, after) = (flushes(fsync), flushes(fdatasync));
    anyhow::ensure!(after.is_some() && after < before, "{after:?} of {before:?}");
    Ok(())
}
