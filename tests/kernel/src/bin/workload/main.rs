//! Writes stamped blocks in every way a program can, and says what it did.
//!
//! `workload run ROOT FACTS [MODE...]` runs each mode in a process of its own, one after the
//! other; ROOT is a mount point, and each process leaves a JSON object in the directory FACTS.
//! `-MODE` leaves one out. `workload list` names the modes. With `IOSTEP_COMPRESSIBLE` set, half of
//! each block is zeros. `workload touch FILE` changes a byte of every block, `workload read FILE`
//! reads it all.

mod btrfs;
mod direct;
mod f2fs;
mod mapped;
mod metadata;
mod naming;
mod run;
mod shared;
mod synced;
mod system;
mod uncached;
mod uring;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use run::Run;

/// What a mode does.
type Body = fn(&mut Run) -> anyhow::Result<()>;

/// Every mode, in the order of running. The order is part of the file numbers.
const MODES: &[(&str, Body)] = &[
    ("append-fsync", synced::append_fsync),
    ("overwrite-fdatasync", synced::overwrite_fdatasync),
    ("o-sync", synced::o_sync),
    ("o-dsync", synced::o_dsync),
    ("preallocated", synced::preallocated),
    ("direct-4k", direct::small),
    ("direct-big", direct::big),
    ("direct-dsync", direct::dsync),
    ("mmap-msync", mapped::msync),
    ("mmap-unsynced", mapped::unsynced),
    ("uring-buffered", uring::buffered),
    ("uring-direct", uring::direct),
    ("uring-sqpoll", uring::sqpoll),
    ("uring-fsync", uring::fsync),
    ("writeback", shared::writeback),
    ("buffered-big", synced::buffered_big),
    ("sync-file-range", synced::sync_file_range),
    ("fsync-unlink", naming::fsync_unlink),
    ("create-rename", naming::create_rename),
    ("rename-open", naming::rename_open),
    ("inode-reuse", naming::inode_reuse),
    ("deep-path", naming::deep_path),
    ("odd-name", naming::odd_name),
    ("hard-links", naming::hard_links),
    ("other-thread", shared::other_thread),
    ("shared-file", shared::shared_file),
    ("concurrent-fsync", shared::concurrent_fsync),
    ("directories", metadata::directories),
    ("fragments", metadata::fragments),
    ("freeze", metadata::freeze),
];

/// Modes that not every filesystem knows: they run only by their name.
const SPECIAL: &[(&str, Body)] = &[
    ("atomic-write", f2fs::atomic_write),
    ("collect", f2fs::collect),
    ("subvolumes", btrfs::subvolumes),
    ("owners", metadata::owners),
];

/// Processes that a mode starts itself.
const PARTS: &[(&str, Body)] = &[
    ("syncfs", shared::syncfs),
    ("shared-file-part", shared::shared_file_part),
    ("concurrent-part", shared::concurrent_part),
];

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["list"] => {
            let all = MODES.iter().chain(SPECIAL);
            all.for_each(|(name, _)| println!("{name}"));
        }
        ["touch", file] => uncached::touch(Path::new(file))?,
        ["read", file] => drop(std::fs::read(file)?),
        ["run", root, facts, ref modes @ ..] => run_all(root, facts, modes)?,
        ["mode", name, root, facts, first_id] => {
            let mut bodies = MODES.iter().chain(SPECIAL).chain(PARTS);
            let body = bodies.find(|(n, _)| *n == name);
            let (_, body) = body.with_context(|| format!("no mode {name}"))?;
            let mut run = Run::begin(name, Path::new(root), Path::new(facts), first_id.parse()?)?;
            body(&mut run)?;
            run.end()?;
        }
        _ => bail!(
            "usage: workload list | workload run ROOT FACTS [MODE...] | workload touch|read FILE"
        ),
    }
    Ok(())
}

fn run_all(root: &str, facts: &str, wanted: &[&str]) -> anyhow::Result<()> {
    let all = || MODES.iter().chain(SPECIAL);
    let (unwanted, wanted): (Vec<&str>, Vec<&str>) =
        wanted.iter().partition(|word| word.starts_with('-'));
    let unwanted: Vec<&str> = unwanted.iter().map(|word| &word[1..]).collect();
    let mut asked = wanted.iter().chain(&unwanted);
    if let Some(unknown) = asked.find(|w| all().all(|(n, _)| n != *w)) {
        bail!("no mode {unknown}; workload list names them");
    }
    for (number, (name, _)) in (1..).zip(all()) {
        let is_wanted = match &wanted[..] {
            [] => number <= MODES.len(),
            _ => wanted.contains(name),
        };
        if !is_wanted || unwanted.contains(name) {
            continue;
        }
        let status = Command::new(std::env::current_exe()?)
            .args(["mode", name, root, facts, &(number * 1000).to_string()])
            .status()?;
        anyhow::ensure!(status.success(), "mode {name}: {status}");
    }
    Ok(())
}
