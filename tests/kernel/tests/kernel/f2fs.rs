//! f2fs: the same promises as for the others, and what only f2fs does.

use std::collections::BTreeMap;

use anyhow::Context;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use iostep_model::table::Segment;
use iostep_model::{Class, SyncKind};

use crate::attribution::{self, scenario};
use crate::case::Case;
use crate::recording::{Recording, Scenario};
use crate::stage;

/// With discards, unmounting would erase the old versions of blocks that the truth is read from.
const ALL: Scenario = Scenario {
    mount: "nodiscard",
    ..scenario("f2fs", Kind::F2fs, &[])
};

/// Every mode of the workload, and with the thread that writes checkpoints for all.
const SCENARIOS: [Scenario; 2] = [
    ALL,
    Scenario {
        mount: "nodiscard,checkpoint_merge",
        modes: &[
            "append-fsync",
            "create-rename",
            "concurrent-fsync",
            "directories",
        ],
        ..scenario("f2fs checkpoint_merge", Kind::F2fs, &[])
    },
];

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut all: Vec<Case> = SCENARIOS
        .into_iter()
        .flat_map(attribution::cases_of)
        .collect();
    let mut needs = stage::requirements(Kind::F2fs);
    needs.push(Requirement::Btf);
    let mut case = |name: &str, mode, judge: fn(&Recording) -> anyhow::Result<()>| {
        let modes: &'static [&'static str] = mode;
        all.push(Case::new(
            format!("f2fs: {name}"),
            needs.clone(),
            move || judge(&Recording::make(&Scenario { modes, ..ALL })?),
        ));
    };
    case(
        "a write and fsync of 4 KiB are one block of data and one of nodes",
        &["append-fsync"],
        two_writes,
    );
    case(
        "all of an atomic write belongs to the file and to its commit",
        &["atomic-write"],
        atomic_write,
    );
    case(
        "what garbage collection moves goes to its file",
        &["collect"],
        moved,
    );
    all
}

/// Bytes by class of what was written because of each sync call of a kind, in the order of calls.
pub fn written_for(recording: &Recording, kind: SyncKind) -> Vec<BTreeMap<Class, u64>> {
    let trace = &recording.trace;
    let mut written = BTreeMap::new();
    for (row, _) in (0u32..).zip(&trace.syncs).filter(|(_, s)| s.kind == kind) {
        written.insert(row, BTreeMap::new());
    }
    for segment in writes(recording) {
        let classes = segment.cause.and_then(|cause| written.get_mut(&cause));
        if let Some(classes) = classes {
            *classes.entry(segment.class).or_insert(0) += u64::from(segment.bytes);
        }
    }
    written.into_values().collect()
}

fn writes(recording: &Recording) -> impl Iterator<Item = &Segment> {
    let trace = &recording.trace;
    let requests = trace.requests.iter().filter(|r| r.operation.is_write());
    requests.flat_map(|request| trace.segments_of(request))
}

/// ATC'13, figure 3. The first call makes a checkpoint, since the directory is new.
fn two_writes(recording: &Recording) -> anyhow::Result<()> {
    let written = written_for(recording, SyncKind::Fsync);
    println!("    first: {:?}", written.first());
    anyhow::ensure!(written.len() == 32, "{} calls", written.len());
    let expected = BTreeMap::from([(Class::FileData, 4096), (Class::NodeBlock, 4096)]);
    for (number, classes) in written.iter().enumerate().skip(1) {
        anyhow::ensure!(*classes == expected, "call {number}: {classes:?}");
    }
    Ok(())
}

fn atomic_write(recording: &Recording) -> anyhow::Result<()> {
    let written = written_for(recording, SyncKind::AtomicCommit);
    anyhow::ensure!(written.len() == 16, "{} commits", written.len());
    for (number, classes) in written.iter().enumerate() {
        let data = classes.get(&Class::FileData).copied().unwrap_or(0);
        anyhow::ensure!(data == 4 * 4096, "commit {number}: {classes:?}");
        let nodes = classes.contains_key(&Class::NodeBlock);
        anyhow::ensure!(nodes, "commit {number}: {classes:?}");
    }
    let trace = &recording.trace;
    let commits = |segment: &&Segment| {
        let cause = segment.cause.map(|row| trace.syncs[row as usize].kind);
        cause == Some(SyncKind::AtomicCommit)
    };
    for segment in writes(recording).filter(commits) {
        let file = segment.file.context("no file")?;
        let name = trace.file_name(file);
        anyhow::ensure!(name == "/atomic-write/atomic.db", "{name}: {segment:?}");
    }
    let unnamed = trace.files.iter().filter(|file| file.path.is_none());
    println!("    files without a name: {}", unnamed.count());
    recording
        .compare(|c| c.files())
        .require("data to file", 99.9)?;
    recording
        .compare(|c| c.processes())
        .require("data to process", 99.5)
}

fn moved(recording: &Recording) -> anyhow::Result<()> {
    let twice = writes(recording).filter(|s| s.class == Class::FileData);
    let mut offsets: BTreeMap<(Option<u32>, Option<u64>), u64> = BTreeMap::new();
    for segment in twice {
        let blocks = u64::from(segment.bytes) / 4096;
        for block in 0..blocks {
            let offset = segment.file_offset_bytes.map(|o| o + block * 4096);
            *offsets.entry((segment.file, offset)).or_default() += 1;
        }
    }
    let moved = offsets.values().filter(|times| **times > 1).count();
    println!("    {moved} blocks moved");
    // Half of each segment of 512 blocks is in use.
    anyhow::ensure!(moved >= 256, "only {moved} blocks were moved");
    recording
        .compare(|c| c.files())
        .require("data to file", 99.9)?;
    recording.compare(|c| c.classes()).require("class", 99.9)
}
