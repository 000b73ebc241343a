//! FAT32: the same promises as for the others, and what a log of 4 KiB blocks costs on it.

use std::collections::BTreeMap;

use iostep_lab::Kind;
use iostep_model::{Class, SyncKind};

use crate::attribution::{self, scenario};
use crate::case::Case;
use crate::recording::{Recording, Scenario};

/// Names in Latin-1, which is what one mode of the workload writes; many kernels take UTF-8 unless
/// they are told not to.
const MOUNT: &str = "iocharset=iso8859-1,utf8=0";

/// FAT knows no hard links, and cannot be frozen.
const MODES: &[&str] = &["-hard-links", "-freeze"];

/// Every mode of the workload that it knows.
pub const ALL: Scenario = Scenario {
    mount: MOUNT,
    modes: MODES,
    ..scenario("vfat", Kind::Fat, &[])
};

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut all = attribution::cases_of(ALL);
    all.push(attribution::case_of(
        scenario("vfat", Kind::Fat, &[]),
        &["append-fsync"],
        "an appended block and its fsync are data, both tables and the directory",
        appended,
    ));
    all
}

/// A cluster is 4 KiB here, so that each block is a new one. The first call makes the directory
/// durable besides.
fn appended(recording: &Recording) -> anyhow::Result<()> {
    let written = recording.written_for(SyncKind::Fsync);
    println!("    first: {:?}", written.first());
    anyhow::ensure!(written.len() == 32, "{} calls", written.len());
    let expected = BTreeMap::from([
        (Class::FileData, 4096),
        (Class::AllocationTable, 2 * 512),
        (Class::Directory, 512),
    ]);
    for (number, classes) in written.iter().enumerate().skip(1) {
        anyhow::ensure!(*classes == expected, "call {number}: {classes:?}");
    }
    Ok(())
}
