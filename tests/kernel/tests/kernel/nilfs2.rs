//! nilfs2: the same promises as for the others, and what only a log can be asked.

use std::collections::BTreeMap;

use iostep_lab::Kind;
use iostep_model::{Class, SECTOR_BYTES, SyncKind};

use crate::attribution::{self, scenario};
use crate::case::Case;
use crate::recording::{Recording, Scenario};

/// nilfs2 cannot preallocate.
const MODES: &[&str] = &["-preallocated"];

/// Every mode of the workload that it knows.
pub const ALL: Scenario = Scenario {
    modes: MODES,
    ..scenario("nilfs2", Kind::Nilfs2, &[])
};

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut all = attribution::cases_of(ALL);
    all.push(attribution::case_of(
        scenario("nilfs2", Kind::Nilfs2, &[]),
        &["append-fsync"],
        "a write and fsync of 4 KiB are one long write of everything that changed",
        large_write,
    ));
    all
}

/// ATC'13, figure 3: the block itself is the smallest part.
fn large_write(recording: &Recording) -> anyhow::Result<()> {
    let written = recording.written_for(SyncKind::Fsync);
    anyhow::ensure!(written.len() == 32, "{} calls", written.len());
    for (number, classes) in written.iter().enumerate() {
        let blocks = |class| classes.get(&class).copied().unwrap_or(0) / 4096;
        for class in [
            Class::SegmentSummary,
            Class::InodeTable,
            Class::Checkpoint,
            Class::SegmentInfoTable,
            Class::AddressTranslation,
            Class::SuperRoot,
        ] {
            anyhow::ensure!(blocks(class) > 0, "call {number}: {classes:?}");
        }
        anyhow::ensure!(blocks(Class::FileData) == 1, "call {number}: {classes:?}");
        let total: u64 = classes.values().sum();
        anyhow::ensure!(total >= 8 * 4096, "call {number}: {classes:?}");
    }
    println!("    last: {:?}", written.last());
    runs_are_contiguous(recording)
}

/// What a call causes is one run of sectors, or two where a segment ends.
fn runs_are_contiguous(recording: &Recording) -> anyhow::Result<()> {
    let trace = &recording.trace;
    let mut runs: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for segment in &trace.segments {
        let is_log = segment.commit.is_some();
        let Some(cause) = segment.cause.filter(|_| is_log) else {
            continue;
        };
        let (count, end) = runs.entry(cause).or_insert((0, 0));
        *count += u64::from(*end != segment.sector);
        *end = segment.sector + u64::from(segment.bytes) / SECTOR_BYTES;
    }
    for (cause, (count, _)) in runs {
        let call = &trace.syncs[cause as usize];
        anyhow::ensure!(count <= 2, "{count} runs of sectors for {call:?}");
    }
    Ok(())
}
