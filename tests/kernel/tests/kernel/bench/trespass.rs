//! Nothing outside of bench's own directory is ever touched.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::Context;
use iostep_kernel_tests::iostep::Outcome;
use rustix::process::Signal;

use super::{TMPFS, attempt, brief, ensure_removed, measure, start, work_files};
use crate::bad_input::TempMount;
use crate::case::Case;

const MINE: &[u8] = b"do not touch";

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new(
            "a work directory that is a file is refused",
            TMPFS,
            directory_is_a_file,
        ),
        Case::new(
            "work files that are links do not lead to a victim",
            TMPFS,
            files_are_links,
        ),
        Case::new(
            "journals that are links do not lead to a victim",
            TMPFS,
            journals_are_links,
        ),
        Case::new(
            "a work directory of another user is refused",
            TMPFS,
            directory_of_another,
        ),
        Case::new(
            "a path of 300 bytes is used like any other",
            TMPFS,
            long_path,
        ),
        Case::new(
            "what a killed run left is no harm to the next",
            TMPFS,
            after_a_kill,
        ),
        Case::new(
            "other files in the work directory stay",
            TMPFS,
            strangers_stay,
        ),
    ]
}

/// Fails if a run passed that should not have, or crashed.
fn ensure_orderly(outcome: &Outcome) -> anyhow::Result<()> {
    println!("    {:?}: {}", outcome.code, outcome.stderr.trim_end());
    let known = matches!(outcome.code, Some(0..=2));
    anyhow::ensure!(known, "status {:?}: {}", outcome.code, outcome.stderr);
    anyhow::ensure!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    Ok(())
}

fn directory_is_a_file() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    let taken = place.path().join("iostep-bench");
    fs::write(&taken, MINE)?;
    for workload in ["file", "sqlite"] {
        attempt(workload, place.path(), "")?.refused(&[1], "iostep-bench")?;
        anyhow::ensure!(fs::read(&taken)? == MINE, "{workload}: the file changed");
    }
    Ok(())
}

/// What each workload is run with, so that there are files to be replaced.
const KEPT: [(&str, &str); 4] = [
    ("file", "--size 64KiB --threads 2"),
    ("file", "--size 64KiB --threads 2 --shared --transfer mmap"),
    (
        "sqlite",
        "--operation update --rows 20 --transactions 20 --journal persist --threads 2",
    ),
    (
        "sqlite",
        "--operation update --rows 20 --transactions 20 --journal wal --databases 2",
    ),
];

fn files_are_links() -> anyhow::Result<()> {
    for (workload, flags) in KEPT {
        for (hard, reuse) in LINKS {
            let place = TempMount::new("tmpfs", "")?;
            let flags = format!("{flags} --keep {reuse}");
            measure(workload, place.path(), &flags)?;
            let files = work_files(place.path());
            let victims = put_links(place.path(), files, hard)?;
            ensure_orderly(&attempt(workload, place.path(), &flags)?)?;
            ensure_unchanged(victims).with_context(|| format!("{workload} {flags}, {hard}"))?;
        }
    }
    Ok(())
}

/// Whether links are hard, and whether files are reused.
const LINKS: [(bool, &str); 4] = [
    (false, ""),
    (true, ""),
    (false, "--reuse"),
    (true, "--reuse"),
];

fn journals_are_links() -> anyhow::Result<()> {
    for (workload, flags) in KEPT.into_iter().filter(|(w, _)| *w == "sqlite") {
        for (hard, reuse) in LINKS {
            let place = TempMount::new("tmpfs", "")?;
            let flags = format!("{flags} --keep {reuse}");
            measure(workload, place.path(), &flags)?;
            let mut names = Vec::new();
            for file in work_files(place.path()) {
                if file.extension().is_some_and(|ending| ending == "db") {
                    let beside = |ending| PathBuf::from(format!("{}{ending}", file.display()));
                    names.extend(["-journal", "-wal"].map(beside));
                }
            }
            let victims = put_links(place.path(), names, hard)?;
            ensure_orderly(&attempt(workload, place.path(), &flags)?)?;
            ensure_unchanged(victims).with_context(|| format!("{flags}, {hard}"))?;
        }
    }
    Ok(())
}

/// Moves each of these files out, or makes one there, and puts a link to it in its place: where
/// they are, and what they hold.
fn put_links(
    outside: &Path,
    files: Vec<PathBuf>,
    hard: bool,
) -> anyhow::Result<Vec<(PathBuf, Vec<u8>)>> {
    anyhow::ensure!(!files.is_empty(), "nothing was kept");
    let mut victims = Vec::new();
    for (number, file) in files.into_iter().enumerate() {
        let victim = outside.join(format!("victim-{number}"));
        match file.exists() {
            true => fs::rename(&file, &victim)?,
            false => fs::write(&victim, MINE)?,
        }
        match hard {
            true => fs::hard_link(&victim, &file)?,
            false => symlink(&victim, &file)?,
        }
        victims.push((victim.clone(), fs::read(&victim)?));
    }
    Ok(victims)
}

fn ensure_unchanged(victims: Vec<(PathBuf, Vec<u8>)>) -> anyhow::Result<()> {
    for (victim, before) in victims {
        let same = fs::read(&victim)? == before;
        anyhow::ensure!(same, "{} changed", victim.display());
    }
    Ok(())
}

fn directory_of_another() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    let own = place.path().join("iostep-bench");
    fs::create_dir(&own)?;
    std::os::unix::fs::chown(&own, Some(65534), Some(65534))?;
    for workload in ["file", "sqlite"] {
        attempt(workload, place.path(), "")?.refused(&[1], "iostep-bench")?;
        anyhow::ensure!(fs::metadata(&own)?.uid() == 65534, "{workload}: replaced");
    }
    Ok(())
}

fn long_path() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    let mut target = place.path().to_owned();
    while target.as_os_str().len() < 300 {
        target.push("d".repeat(80));
    }
    fs::create_dir_all(&target)?;
    let run = measure("file", &target, "--size 64KiB --verify")?;
    anyhow::ensure!(run.runs[0].operations == 16, "{}", brief(&run.runs[0]));
    let run = measure("sqlite", &target, "--transactions 7 --databases 2 --verify")?;
    anyhow::ensure!(run.runs[0].operations == 7, "{}", brief(&run.runs[0]));
    Ok(())
}

fn strangers_stay() -> anyhow::Result<()> {
    for workload in ["file", "sqlite"] {
        let place = TempMount::new("tmpfs", "")?;
        let own = place.path().join("iostep-bench");
        fs::create_dir(&own)?;
        fs::write(own.join("notes"), MINE)?;
        fs::write(place.path().join("file-0"), MINE)?;
        ensure_orderly(&attempt(workload, place.path(), "")?)?;
        for stranger in [own.join("notes"), place.path().join("file-0")] {
            anyhow::ensure!(fs::read(&stranger)? == MINE, "{}", stranger.display());
        }
        let left = work_files(place.path());
        anyhow::ensure!(left.len() == 1, "{workload}: {left:?} are left");
    }
    Ok(())
}

fn after_a_kill() -> anyhow::Result<()> {
    for (workload, flags) in [
        ("file", "--size 1MiB --threads 2"),
        ("sqlite", "--journal wal --threads 2"),
        ("sqlite", "--journal delete --shared --threads 2"),
    ] {
        let place = TempMount::new("tmpfs", "")?;
        for flags in [flags.to_owned(), format!("{flags} --reuse")] {
            let running = start(workload, place.path(), &format!("{flags} --time 60"))?;
            running.signal(Signal::KILL)?;
            running.finish()?;
            anyhow::ensure!(!work_files(place.path()).is_empty(), "nothing is left");
            measure(workload, place.path(), &flags)?;
            ensure_removed(place.path())?;
        }
    }
    Ok(())
}
