//! `--remount` on filesystems other than ext4.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use iostep_lab::Kind;

use super::remounted::{Group, ensure_back, ensure_line, line};
use super::{advice, row};
use crate::case::Case;
use crate::faults::wait_until;
use crate::stage::{self, Stage};
use rustix::process::Signal;

/// A filesystem, how it is mounted, what is tried, and what takes that back: nothing where no
/// remount does it.
struct Try {
    kind: Kind,
    mount: &'static str,
    option: &'static str,
    undo: Option<&'static str>,
}

const XFS: Try = Try {
    kind: Kind::Xfs,
    mount: "discard",
    option: "nodiscard",
    undo: None,
};
const BTRFS: Try = Try {
    kind: Kind::Btrfs,
    mount: "discard=sync",
    option: "nodiscard",
    undo: Some("discard"),
};
const F2FS: Try = Try {
    kind: Kind::F2fs,
    mount: "fsync_mode=strict",
    option: "fsync_mode=nobarrier",
    undo: Some("fsync_mode=strict"),
};
const NILFS2: Try = Try {
    kind: Kind::Nilfs2,
    mount: "",
    option: "nobarrier",
    undo: Some("barrier"),
};

/// Those whose filesystem most kernels have.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new(
            "xfs is not remounted",
            stage::requirements(Kind::Xfs),
            || tried(&XFS),
        ),
        Case::new(
            "an option of btrfs is set and taken back",
            stage::requirements(Kind::Btrfs),
            || tried(&BTRFS),
        ),
    ]
}

pub fn cases_for_guests() -> Vec<Case> {
    vec![
        Case::new(
            "an option of f2fs is set and taken back",
            stage::requirements(Kind::F2fs),
            || tried(&F2FS),
        ),
        Case::new(
            "an option of nilfs2 is set and taken back",
            stage::requirements(Kind::Nilfs2),
            || tried(&NILFS2),
        ),
    ]
}

fn tried(this: &Try) -> anyhow::Result<()> {
    let stage = Stage::new(this.kind, &[], this.mount)?;
    let before = line(stage.root())?;
    let candidate = format!("mount-{}", this.option);
    let flags = format!("--candidates {candidate} --remount --journal wal");
    let found = advice(stage.root(), &flags)?;
    ensure_line(stage.root(), &before)?;
    let row = row(&found, &candidate)?;
    let Some(undo) = this.undo else {
        ensure!(row["state"]["kind"] != "measured", "{row}");
        return Ok(());
    };
    ensure!(row["state"]["kind"] == "measured", "{row}");
    ensure!(row["setting"]["mount"]["undo"] == undo, "{row}");
    killed(stage.root(), &before, &candidate)
}

fn killed(point: &Path, before: &str, candidate: &str) -> anyhow::Result<()> {
    let flags =
        format!("--rounds 2 --time 1 --candidates {candidate} --remount --journal wal --json");
    let words: Vec<PathBuf> = super::words(point, &flags);
    let mut running = Group::start_with(words)?;
    wait_until("the option", || line(point).is_ok_and(|now| now != before))?;
    running.signal(Signal::KILL)?;
    running.finish()?;
    ensure_back(point, before)
}
