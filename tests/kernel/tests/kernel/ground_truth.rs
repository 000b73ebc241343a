//! The measure itself: what the attribution tests compare with must be whole.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::Context;
use iostep_kernel_tests::image::BLOCK_SECTORS;
use iostep_kernel_tests::requirement::Requirement;
use iostep_kernel_tests::truth::{self, Cause, Truth, number_after, tool};
use iostep_lab::Kind;
use iostep_model::Class;

use crate::case::Case;
use crate::stage::{self, Remains, Stage};

/// Those whose images are read without asking the kernel.
const KINDS: [Kind; 3] = [Kind::Ext4, Kind::Xfs, Kind::Btrfs];

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let each = |kind: Kind| {
        let name = kind.name();
        let requirements = stage::requirements(kind);
        vec![
            Case::new(
                format!("{name}: the image holds every block of every file that still exists"),
                requirements.clone(),
                move || every_block_is_found(kind),
            ),
            Case::new(
                format!("{name}: the image tells which sync call wrote most of the log"),
                requirements,
                move || causes_are_told(kind),
            ),
        ]
    };
    let mut all: Vec<Case> = KINDS.into_iter().flat_map(each).collect();
    let mut requirements = stage::requirements(Kind::Xfs);
    requirements.push(Requirement::Program("xfs_logprint"));
    all.push(Case::new(
        "xfs: log records are where xfs_logprint says",
        requirements,
        records_are_those_of_logprint,
    ));
    all.push(Case::new(
        "btrfs: tree blocks are what dump-tree says",
        stage::requirements(Kind::Btrfs),
        nodes_are_those_of_dump_tree,
    ));
    let mut requirements = stage::requirements(Kind::Ext4);
    requirements.push(Requirement::Program("filefrag"));
    all.push(Case::new(
        "ext4: blocks are found where FIEMAP says",
        requirements,
        blocks_lie_where_fiemap_says,
    ));
    all
}

fn run(stage: &Stage, modes: &[&str]) -> anyhow::Result<()> {
    let words = stage.workload(modes);
    let status = Command::new(&words[0]).args(&words[1..]).status()?;
    anyhow::ensure!(status.success(), "workload: {status}");
    stage.settle()
}

fn remains(kind: Kind) -> anyhow::Result<Remains> {
    let stage = Stage::new(kind, &[], "")?;
    run(&stage, &[])?;
    stage.unmount()
}

fn every_block_is_found(kind: Kind) -> anyhow::Result<()> {
    let Remains { image, facts, .. } = &remains(kind)?;
    let mut found: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    for stamp in image.stamps()?.values() {
        found.entry(stamp.file_id).or_default().insert(stamp.index);
    }
    let expected: BTreeMap<u32, usize> = expected_blocks();
    for file in facts.files.values().filter(|f| !f.deleted) {
        let blocks = found.get(&file.id).map_or(0, BTreeSet::len);
        let mode = file.id / 1000 * 1000;
        if let Some(expected) = expected.get(&mode) {
            anyhow::ensure!(
                blocks == *expected,
                "{:?}: {blocks} blocks of {expected}",
                file.paths
            );
        }
        anyhow::ensure!(blocks > 0, "{:?}: no block", file.paths);
    }
    let total: usize = found.values().map(BTreeSet::len).sum();
    println!("    {total} blocks of {} files", found.len());
    Ok(())
}

/// Blocks per file of the modes that are told here by their number, as `workload list` has them.
fn expected_blocks() -> BTreeMap<u32, usize> {
    // append-fsync, overwrite-fdatasync, direct-big, uring-sqpoll, buffered-big.
    BTreeMap::from([
        (1000, 32),
        (2000, 64),
        (7000, 3456),
        (13000, 64),
        (16000, 4096),
    ])
}

fn causes_are_told(kind: Kind) -> anyhow::Result<()> {
    let Remains { image, facts, .. } = &remains(kind)?;
    let truth = Truth::read(kind.name(), image, facts, &[])?;
    let mut sectors = BTreeMap::new();
    let mut calls = BTreeSet::new();
    for (_, length, block) in truth.log.iter() {
        let told = match &block.cause {
            Cause::Unknown => "unknown",
            Cause::Nobody => "nobody",
            Cause::OneOf(possible) => {
                calls.extend(possible.iter().copied());
                "a sync call"
            }
        };
        *sectors.entry(told).or_insert(0) += length;
    }
    let syncs = facts.syncs().len();
    println!(
        "    log sectors by cause: {sectors:?}; {} of {syncs} sync calls",
        calls.len()
    );
    let told = sectors.get("a sync call").copied().unwrap_or(0);
    let total: u64 = sectors.values().sum();
    anyhow::ensure!(
        told * 2 > total,
        "only {told} of {total} sectors have a cause"
    );
    anyhow::ensure!(
        calls.len() * 2 > syncs,
        "only {} calls wrote log",
        calls.len()
    );
    Ok(())
}

fn records_are_those_of_logprint() -> anyhow::Result<()> {
    let Remains { image, facts, .. } = &remains(Kind::Xfs)?;
    let truth = Truth::read("xfs", image, facts, &[])?;
    let text = tool("xfs_logprint", &[], image.path())?;
    let start = text.lines().find_map(|line| number_after(line, "daddr:"));
    let start = start.context("xfs_logprint: no daddr")?;
    let mut expected = BTreeSet::new();
    let mut place = None;
    for line in text.lines() {
        if line.contains("tail_lsn:") {
            let (_, lsn) = line.split_once("lsn:").context("xfs_logprint: no lsn")?;
            place = number_after(lsn, ",");
        } else if number_after(line, "num ops:").is_some_and(|operations| operations > 0) {
            expected.extend(place.take().map(|block| start + block));
        }
    }
    let found: BTreeSet<u64> = truth.log.iter().map(|(sector, _, _)| sector).collect();
    println!("    {} records", found.len());
    let differ: Vec<_> = found.symmetric_difference(&expected).take(4).collect();
    anyhow::ensure!(differ.is_empty(), "only one of both has {differ:?}");
    Ok(())
}

fn nodes_are_those_of_dump_tree() -> anyhow::Result<()> {
    let Remains { image, facts, .. } = &remains(Kind::Btrfs)?;
    let truth = Truth::read("btrfs", image, facts, &[])?;
    let text = tool("btrfs", &["inspect-internal", "dump-tree"], image.path())?;
    let mut checked = 0;
    for line in text.lines().filter(|line| line.contains(" owner ")) {
        let kind = ["leaf", "node"]
            .into_iter()
            .find(|kind| line.starts_with(kind));
        let Some(logical) = kind.and_then(|kind| number_after(line, kind)) else {
            continue;
        };
        let owner = line.rsplit(' ').next().unwrap_or("");
        let Some(expected) = class_of(owner) else {
            continue;
        };
        for sector in &truth::btrfs::copies(image, &[logical])?[&logical] {
            let found = truth.classes.get(*sector);
            anyhow::ensure!(found == Some(&expected), "{line}: {found:?}");
            anyhow::ensure!(truth.logical.get(*sector) == Some(&logical), "{line}");
            checked += 1;
        }
    }
    println!("    {checked} copies of tree blocks");
    anyhow::ensure!(checked > 20, "only {checked} copies");
    Ok(())
}

/// The class of a tree's blocks, by the name that `dump-tree` gives it.
fn class_of(owner: &str) -> Option<Class> {
    match owner {
        "ROOT_TREE" => Some(Class::RootTree),
        "CHUNK_TREE" => Some(Class::ChunkTree),
        "EXTENT_TREE" => Some(Class::ExtentTree),
        "DEV_TREE" => Some(Class::DeviceTree),
        "FS_TREE" => Some(Class::FilesystemTree),
        "CSUM_TREE" => Some(Class::ChecksumTree),
        "UUID_TREE" => Some(Class::OtherTree),
        "FREE_SPACE_TREE" => Some(Class::FreeSpaceTree),
        _ => None,
    }
}

fn blocks_lie_where_fiemap_says() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    run(&stage, &["overwrite-fdatasync", "direct-big", "fragments"])?;
    let mut expected = BTreeMap::new();
    for (id, path) in [
        (2000, "overwrite-fdatasync/pages.db"),
        (7000, "direct-big/big.dat"),
        (29000, "fragments/fragments.dat"),
    ] {
        let output = Command::new("filefrag")
            .args(["-v", "-b4096"])
            .arg(stage.root().join(path))
            .output()?;
        for (index, block) in extents(&String::from_utf8_lossy(&output.stdout))? {
            expected.insert(block * BLOCK_SECTORS, (id, index));
        }
    }
    let Remains { image, .. } = &stage.unmount()?;
    let stamps = image.stamps()?;
    for (sector, owner) in &expected {
        let stamp = stamps
            .get(sector)
            .with_context(|| format!("no stamp at {sector}"))?;
        anyhow::ensure!(
            (stamp.file_id, stamp.index) == *owner,
            "{sector}: {stamp:?}"
        );
    }
    println!("    {} blocks", expected.len());
    anyhow::ensure!(
        expected.len() == 64 + 3456 + 400,
        "{} blocks",
        expected.len()
    );
    Ok(())
}

/// The blocks of `filefrag -v`: `ext: logical.. logical: physical.. physical: length: ...`.
fn extents(text: &str) -> anyhow::Result<Vec<(u64, u64)>> {
    let mut blocks = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let [number, logical, physical, length, ..] = fields[..] else {
            continue;
        };
        if number.trim().parse::<u64>().is_err() {
            continue;
        }
        let first = |field| number_after(field, "").context("filefrag: no number");
        let (logical, physical) = (first(logical)?, first(physical)?);
        blocks.extend((0..first(length)?).map(|n| (logical + n, physical + n)));
    }
    Ok(blocks)
}
