//! Nothing outside of bench's own directory is ever touched.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use iostep_kernel_tests::iostep::Outcome;

use super::{TMPFS, attempt, measure, work_files};
use crate::bad_input::TempMount;
use crate::case::Case;

const MINE: &[u8] = b"do not touch";

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new(
            "a work directory that leads elsewhere is refused",
            TMPFS,
            directory_is_a_link,
        ),
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
            "other files in the work directory stay",
            TMPFS,
            strangers_stay,
        ),
    ]
}

/// Fails if a run passed that should not have, or crashed.
fn ensure_orderly(outcome: &Outcome) -> anyhow::Result<()> {
    println!("    {:?}: {}", outcome.code, outcome.stderr.trim_end());
    let known = matches!(outcome.code, Some(0 | 1 | 2));
    anyhow::ensure!(known, "status {:?}: {}", outcome.code, outcome.stderr);
    anyhow::ensure!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    Ok(())
}

fn directory_is_a_link() -> anyhow::Result<()> {
    for workload in ["file", "sqlite"] {
        let place = TempMount::new("tmpfs", "")?;
        let victim = place.path().join("victim");
        fs::create_dir(&victim)?;
        fs::write(victim.join("file-0"), MINE)?;
        let target = place.path().join("target");
        fs::create_dir(&target)?;
        symlink(&victim, target.join("iostep-bench"))?;
        for flags in ["", "--reuse --keep"] {
            attempt(workload, &target, flags)?.refused(&[1], "iostep-bench")?;
        }
        let left = fs::read_dir(&victim)?.count();
        anyhow::ensure!(left == 1, "{workload}: the victim has {left} files");
        let content = fs::read(victim.join("file-0"))?;
        anyhow::ensure!(content == MINE, "{workload}: the victim changed");
        let link = fs::symlink_metadata(target.join("iostep-bench"))?;
        anyhow::ensure!(link.is_symlink(), "{workload}: the link is gone");
    }
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
    ("sqlite", "--transactions 5 --journal persist --threads 2"),
    ("sqlite", "--transactions 5 --journal wal --databases 2"),
];

fn files_are_links() -> anyhow::Result<()> {
    for (workload, flags) in KEPT {
        for hard in [false, true] {
            for reuse in ["", "--reuse"] {
                let place = TempMount::new("tmpfs", "")?;
                let flags = format!("{flags} --keep {reuse}");
                measure(workload, place.path(), &flags)?;
                let victims = replace_by_links(place.path(), hard)?;
                let outcome = attempt(workload, place.path(), &flags)?;
                ensure_orderly(&outcome)?;
                for (victim, before) in victims {
                    let now = fs::read(&victim)?;
                    anyhow::ensure!(
                        now == before,
                        "{workload} {flags}: {} changed, a hard link: {hard}",
                        victim.display()
                    );
                }
            }
        }
    }
    Ok(())
}

/// Moves each work file out and puts a link to it in its place. Where they are, and what they
/// hold.
fn replace_by_links(target: &Path, hard: bool) -> anyhow::Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut victims = Vec::new();
    for (number, file) in work_files(target).into_iter().enumerate() {
        let victim = target.join(format!("victim-{number}"));
        fs::rename(&file, &victim)?;
        match hard {
            true => fs::hard_link(&victim, &file)?,
            false => symlink(&victim, &file)?,
        }
        victims.push((victim.clone(), fs::read(&victim)?));
    }
    anyhow::ensure!(!victims.is_empty(), "nothing was kept");
    Ok(victims)
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
    anyhow::ensure!(run.runs[0].operations == 16, "{:?}", run.runs);
    let run = measure("sqlite", &target, "--transactions 7 --databases 2 --verify")?;
    anyhow::ensure!(run.runs[0].operations == 7, "{:?}", run.runs);
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
