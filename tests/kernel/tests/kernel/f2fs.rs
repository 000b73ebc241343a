//! f2fs: the same promises as for the others, and what only f2fs does.

use std::collections::BTreeMap;

use anyhow::Context;
use iostep_lab::Kind;
use iostep_model::table::Segment;
use iostep_model::{Class, SyncKind};

use crate::attribution::{self, Judge, scenario};
use crate::case::Case;
use crate::recording::{FoundBy, Recording, Scenario};

/// With discards, unmounting would erase the old versions of blocks that the truth is read from.
pub const ALL: Scenario = Scenario {
    mount: "nodiscard",
    ..scenario("f2fs", Kind::F2fs, &[])
};

/// Without what is deleted: encrypted blocks of no file tell nothing.
const MODES_ENCRYPTED: &[&str] = &[
    "append-fsync",
    "overwrite-fdatasync",
    "direct-4k",
    "mmap-msync",
    "writeback",
    "create-rename",
    "concurrent-fsync",
    "fragments",
    "freeze",
];

/// What is written is a copy of the file's page (fs/crypto/crypto.c), and no phone is without.
const ENCRYPTED: Scenario = Scenario {
    mount: "nodiscard,test_dummy_encryption",
    modes: MODES_ENCRYPTED,
    found: FoundBy::Files,
    ..scenario("f2fs fscrypt", Kind::F2fs, &["-O", "encrypt"])
};

/// Every mode of the workload, as phones have it, and with the thread that writes checkpoints for
/// all.
const SCENARIOS: [Scenario; 3] = [
    ALL,
    ENCRYPTED,
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
    let mut case = |name: &str, modes, judge: Judge| {
        all.push(attribution::case_of(ALL, modes, name, judge));
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

/// ATC'13, figure 3. The first call makes a checkpoint, since the directory is new.
fn two_writes(recording: &Recording) -> anyhow::Result<()> {
    let written = recording.written_for(SyncKind::Fsync);
    println!("    first: {:?}", written.first());
    anyhow::ensure!(written.len() == 32, "{} calls", written.len());
    let expected = BTreeMap::from([(Class::FileData, 4096), (Class::NodeBlock, 4096)]);
    for (number, classes) in written.iter().enumerate().skip(1) {
        anyhow::ensure!(*classes == expected, "call {number}: {classes:?}");
    }
    Ok(())
}

fn atomic_write(recording: &Recording) -> anyhow::Result<()> {
    let written = recording.written_for(SyncKind::AtomicCommit);
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
    for segment in recording.writes().filter(commits) {
        let file = segment.file.context("no file")?;
        let path = trace.files[file as usize].path.as_deref();
        let expected = Some("/atomic-write/atomic.db");
        anyhow::ensure!(path == expected, "{path:?}: {segment:?}");
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
    let twice = recording.writes().filter(|s| s.class == Class::FileData);
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
