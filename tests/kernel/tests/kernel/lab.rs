//! Labs on loop devices, given devices and directories, and in a guest.
//!
//! Ground truth: the kernel's own counters, its mount table and its list of loop devices.

mod faults;
mod guests;
mod kept;
mod measured;
mod places;

use std::path::PathBuf;

use anyhow::Context;
use iostep_kernel_tests::iostep::{self, Outcome};
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::{plan, results};
use iostep_model::lab::{CellResult, State};
use tempfile::TempDir;

use crate::case::Case;

const LOOP: &[Requirement] = &[
    Requirement::Root,
    Requirement::Loop,
    Requirement::Filesystem("ext4"),
    Requirement::Program("mkfs.ext4"),
];

/// Four cells that take no time.
const QUICK: &str = "[[cells]]\nworkload='file'\nfilesystem='ext4'\nsize='16KiB'\n\
                     device-size='64MiB'\nseed=[1, 2, 3, 4]\n";

/// Every test of `iostep lab run`, `merge` and `report`.
pub fn cases() -> Vec<Case> {
    let mut all = measured::cases();
    all.extend(kept::cases());
    all.extend(places::cases());
    all.extend(faults::cases());
    all.extend(guests::cases());
    all.into_iter().map(|case| case.about("lab")).collect()
}

/// A lab's file and its results, gone afterwards.
struct Bench {
    directory: TempDir,
}

impl Bench {
    fn new(lab: &str) -> anyhow::Result<Bench> {
        let bench = Bench {
            directory: tempfile::tempdir()?,
        };
        std::fs::write(bench.lab(), lab)?;
        Ok(bench)
    }

    fn lab(&self) -> PathBuf {
        self.directory.path().join("test.toml")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn words(&self, results: &str, flags: &[&str]) -> Vec<PathBuf> {
        let mut words = ["lab", "run"].map(PathBuf::from).to_vec();
        words.extend([self.lab(), "--results".into(), self.path(results)]);
        words.extend(flags.iter().map(PathBuf::from));
        words
    }

    fn run(&self, results: &str, flags: &[&str]) -> anyhow::Result<Outcome> {
        iostep::run(self.words(results, flags))
    }

    fn read(&self, results: &str) -> anyhow::Result<Vec<CellResult>> {
        Ok(results::read(&self.path(results))?.1)
    }
}

/// The result with this value of an axis.
fn at<'a>(all: &'a [CellResult], axis: &str, value: &str) -> anyhow::Result<&'a CellResult> {
    let mut all = all.iter();
    let found = all.find(|result| result.cell.axis(axis) == Some(value));
    found.with_context(|| format!("no cell with {axis}={value}"))
}

fn ensure_complete(result: &CellResult) -> anyhow::Result<()> {
    let what = plan::label(&result.cell);
    anyhow::ensure!(
        result.state == State::Complete,
        "{what}: {:?}",
        result.state
    );
    Ok(())
}
