//! What bench says where it is not shown what it reads, as an Android app is not.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use iostep_kernel_tests::iostep;
use iostep_lab::Kind;
use iostep_model::bench::{Document, Warning};

use super::{Fixture, ground_needs};
use crate::case::Case;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    vec![Case::new(
        "what /proc and /sys do not show is null and named",
        ground_needs(Kind::Ext4, &["unshare"]),
        hidden,
    )]
}

fn hidden() -> anyhow::Result<()> {
    let ground = Fixture::new(Kind::Ext4)?;
    let shown = measured(&ground, "true")?;
    let run = &shown.runs[0];
    ensure!(
        run.cpu.machine.is_some() && run.device.is_some() && shown.environment.device.is_some()
    );
    ensure!(unreadable(&shown).is_none(), "{:?}", shown.warnings);
    let hide = "mount -t tmpfs none /sys && mount --bind /dev/null /proc/stat";
    let hidden = measured(&ground, hide)?;
    let run = &hidden.runs[0];
    ensure!(run.cpu.machine.is_none() && run.device.is_none());
    ensure!(hidden.environment.device.is_none());
    ensure!(hidden.environment.filesystem == shown.environment.filesystem);
    let named = unreadable(&hidden).context("no warning")?;
    ensure!(
        named == ["/proc/stat", "/sys/block"].map(Path::new),
        "{named:?}"
    );
    Ok(())
}

/// A result of a run that sees the mounts which `hide` makes before.
fn measured(ground: &Fixture, hide: &str) -> anyhow::Result<Document> {
    let script = format!(r#"{hide} && exec "$0" bench file "$1" --size 1MiB --json"#);
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .arg(iostep::binary()?)
        .arg(ground.root())
        .output()?;
    ensure!(output.status.success(), "{output:?}");
    Ok(Document::parse(Path::new("output"), &output.stdout)?)
}

fn unreadable(document: &Document) -> Option<&[std::path::PathBuf]> {
    document.warnings.iter().find_map(|warning| match warning {
        Warning::Unreadable { paths } => Some(&paths[..]),
        _ => None,
    })
}
