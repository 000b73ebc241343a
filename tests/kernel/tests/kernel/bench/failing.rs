//! Filesystems and devices that cannot do what is asked, or no longer.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use iostep_model::bench::{Document, Run, RunState};

use super::{
    DEVICE, Disk, Fixture, TMPFS, attempt, brief, document, ensure_removed, ground_needs, only_run,
    start, wait_for, work_files,
};
use crate::bad_input::TempMount;
use crate::case::Case;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut remount = TMPFS.to_vec();
    remount.push(Requirement::Program("mount"));
    vec![
        Case::new(
            "a filesystem that fills up ends the run at that operation",
            TMPFS,
            fills_up,
        ),
        Case::new(
            "a mapping that finds no space ends the run and not the process",
            TMPFS,
            mapping_finds_no_space,
        ),
        Case::new(
            "a database that finds no space ends the run",
            TMPFS,
            database_finds_no_space,
        ),
        Case::new(
            "a write error of a device ends the run at that operation",
            DEVICE,
            write_error,
        ),
        Case::new(
            "what was measured before a failure is written and marked",
            DEVICE,
            marked,
        ),
        Case::new(
            "an error that only a sync tells ends the run",
            DEVICE,
            sync_error,
        ),
        Case::new("a read-only filesystem is refused", remount, read_only),
        Case::new(
            "what a loop device cannot do is refused",
            ground_needs(Kind::Ext4, &[]),
            beyond_a_loop_device,
        ),
    ]
}

/// Fails unless a run ended with one failed operation; the run.
fn failed(outcome: &iostep_kernel_tests::iostep::Outcome, reason: &str) -> anyhow::Result<Run> {
    let document = document(outcome)?;
    let run = only_run(&document)?.clone();
    println!(
        "    after {} operations: {:?}",
        run.operations, run.failures
    );
    anyhow::ensure!(outcome.code == Some(1), "status {:?}", outcome.code);
    anyhow::ensure!(run.state == RunState::Failed, "{:?}", run.state);
    let known = run.failures.iter().all(|f| f.reason.contains(reason));
    anyhow::ensure!(known && !run.failures.is_empty(), "{:?}", run.failures);
    Ok(run)
}

fn used_bytes(place: &Path) -> anyhow::Result<u64> {
    let found = rustix::fs::statvfs(place)?;
    Ok((found.f_blocks - found.f_bfree) * found.f_frsize)
}

/// Fails unless the failed operation's number is that of its place: in order, the first record is
/// written first.
fn ensure_number(run: &Run) -> anyhow::Result<()> {
    let failure = &run.failures[0];
    let place = format!(" at {} of ", (failure.operation - 1) * 4096);
    anyhow::ensure!(failure.attempt.contains(&place), "{failure:?}");
    // All before it have ended, and of those after it at most the depth.
    let ended = failure.operation - 1..failure.operation + 4;
    anyhow::ensure!(ended.contains(&run.operations), "{}", brief(run));
    Ok(())
}

/// Takes all the space that is left.
fn fill(place: &Path) -> anyhow::Result<()> {
    use std::io::Write;
    let mut hog = std::fs::File::create(place.join("hog"))?;
    for block in [&[1; 1 << 16][..], &[1; 4096]] {
        while hog.write_all(block).is_ok() {}
    }
    Ok(())
}

fn fills_up() -> anyhow::Result<()> {
    for engine in ["psync", "uring --depth 4"] {
        let place = TempMount::new("tmpfs", "size=8m")?;
        let flags = format!("--access append --size 6MiB --think 1ms --keep --engine {engine}");
        let running = start("file", place.path(), &flags)?;
        let file = place.path().join("iostep-bench/file-0");
        wait_for(&running, "the first records", || {
            file.metadata().is_ok_and(|found| found.len() >= 10 * 4096)
        })?;
        fill(place.path())?;
        let run = failed(&running.finish()?, "No space left")?;
        // What was counted is there.
        let (length, counted) = (file.metadata()?.len(), run.operations * 4096);
        anyhow::ensure!(counted >= 10 * 4096, "{} operations", run.operations);
        anyhow::ensure!(run.bytes == counted, "{} bytes", run.bytes);
        let ends = match engine {
            "psync" => length == counted,
            _ => length >= counted,
        };
        anyhow::ensure!(ends, "{length} bytes, counted {counted}");
        ensure_number(&run)?;
    }
    Ok(())
}

fn mapping_finds_no_space() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "size=8m")?;
    let flags = "--access write --transfer mmap --initial sparse --size 6MiB --think 1ms";
    let running = start("file", place.path(), flags)?;
    let file = place.path().join("iostep-bench/file-0");
    wait_for(&running, "the first records", || {
        file.metadata().is_ok_and(|found| found.blocks() >= 10 * 8)
    })?;
    fill(place.path())?;
    let outcome = running.finish()?;
    let run = failed(&outcome, "")?;
    anyhow::ensure!(run.operations >= 9, "{} operations", run.operations);
    ensure_removed(place.path())
}

fn database_finds_no_space() -> anyhow::Result<()> {
    for journal in ["delete", "wal"] {
        let place = TempMount::new("tmpfs", "size=8m")?;
        let flags = format!(
            "--journal {journal} --record 4000 --transactions 100 --time 60 --think 1ms --checkpoint never"
        );
        let running = start("sqlite", place.path(), &flags)?;
        let used = used_bytes(place.path())?;
        wait_for(&running, "the first rows", || {
            used_bytes(place.path()).is_ok_and(|now| now >= used + 40_000)
        })?;
        fill(place.path())?;
        let run = failed(&running.finish()?, "")?;
        let reason = &run.failures[0].reason;
        let full = ["full", "I/O error"]
            .iter()
            .any(|word| reason.contains(word));
        anyhow::ensure!(full, "{journal}: {reason}");
        anyhow::ensure!(run.operations >= 5, "{} operations", run.operations);
        ensure_removed(place.path())?;
    }
    Ok(())
}

/// The image has room for a quarter of what it says.
fn hollow() -> anyhow::Result<Disk> {
    Disk::new(16 << 20, "4m")
}

fn write_error() -> anyhow::Result<()> {
    for engine in ["psync", "uring --depth 4"] {
        let disk = hollow()?;
        let flags = format!(
            "--destroy-data --reuse --transfer direct --size 8MiB --json --engine {engine}"
        );
        let outcome = attempt("file", disk.path(), &flags)?;
        let run = failed(&outcome, "")?;
        anyhow::ensure!(outcome.stderr.lines().count() <= 3, "{}", outcome.stderr);
        let failure = &run.failures[0];
        let errors = ["Input/output error", "No space left"];
        let known = errors.iter().any(|e| failure.reason.contains(e));
        anyhow::ensure!(known, "{failure:?}");
        // As much as the image had room for. Of requests that were merged it may have taken a part,
        // which the driver calls done (drivers/block/loop.c, lo_complete_rq).
        let room = (4 << 20) / 4096;
        let most = if engine == "psync" { room } else { room + 3 };
        let done = run.operations;
        anyhow::ensure!((1..=most).contains(&done), "{done} operations");
        ensure_number(&run)?;
    }
    Ok(())
}

fn marked() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let result = directory.path().join("result.json");
    for format in ["", "--csv", "--json", "--quiet"] {
        let disk = hollow()?;
        let flags = format!(
            "--destroy-data --reuse --transfer direct --size 8MiB {format} -o {}",
            result.display()
        );
        let outcome = attempt("file", disk.path(), &flags)?.status(1)?;
        let told = |text: &str| text.to_lowercase().contains("failed");
        let quiet = format == "--quiet";
        anyhow::ensure!(told(&outcome.stdout) != quiet, "{}", outcome.stdout);
        anyhow::ensure!(outcome.stderr.contains("1025"), "{}", outcome.stderr);
        let document = Document::read(&result)?;
        let run = only_run(&document)?;
        anyhow::ensure!(run.state == RunState::Failed, "{format}: {}", brief(run));
        anyhow::ensure!(run.operations == 1024, "{format}: {}", brief(run));
        std::fs::remove_file(&result)?;
    }
    Ok(())
}

fn sync_error() -> anyhow::Result<()> {
    let disk = hollow()?;
    let flags = "--destroy-data --reuse --size 8MiB --sync fdatasync --sync-every 512 --json";
    let run = failed(&attempt("file", disk.path(), flags)?, "")?;
    let failure = &run.failures[0];
    anyhow::ensure!(failure.attempt.contains("fdatasync"), "{failure:?}");
    Ok(())
}

fn read_only() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    let status = std::process::Command::new("mount")
        .args(["-o", "remount,ro"])
        .arg(place.path())
        .status()?;
    anyhow::ensure!(status.success(), "mount: {status}");
    for workload in ["file", "sqlite"] {
        attempt(workload, place.path(), "")?.refused(&[1], "ead-only")?;
    }
    Ok(())
}

fn beyond_a_loop_device() -> anyhow::Result<()> {
    let ground = Fixture::new(Kind::Ext4)?;
    let name = ground.disk.path().file_name().unwrap_or_default();
    let queue = Path::new("/sys/class/block").join(name).join("queue");
    let attribute = |name: &str| std::fs::read_to_string(queue.join(name)).unwrap_or_default();
    let poll = attribute("io_poll");
    anyhow::ensure!(poll.trim() != "1", "this loop device has poll queues");
    let atomic = attribute("atomic_write_unit_max_bytes");
    anyhow::ensure!(
        ["", "0"].contains(&atomic.trim()),
        "this loop device is atomic"
    );
    for (flags, object) in [
        ("--polled", "poll queues"),
        ("--polled --engine uring", "poll queues"),
        ("--atomic", "RWF_ATOMIC"),
    ] {
        let flags = format!("--transfer direct {flags}");
        attempt("file", ground.root(), &flags)?.refused(&[4], object)?;
        ensure_removed(ground.root())?;
        anyhow::ensure!(work_files(ground.root()).is_empty(), "files are left");
    }
    Ok(())
}
