//! What a trace shows is what its user asked about: paths as they were given, the time that it
//! took, and lines that fit.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use serde_json::Value;
use tempfile::TempDir;

use crate::case::Case;
use crate::stage::{self, Stage};

const IDLE_S: f64 = 1.25;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let case = |kind: Kind, name: &str, body: fn() -> anyhow::Result<()>| {
        let mut needs = stage::requirements(kind);
        needs.push(Requirement::Btf);
        Case::new(name, needs, body).about("shown")
    };
    vec![
        case(Kind::Ext4, "an idle trace says for how long", idle),
        case(Kind::Ext4, "paths are those of a bind mount", bind_mount),
        case(
            Kind::Btrfs,
            "paths are those of a subvolume's mount",
            subvolume,
        ),
        case(
            Kind::Ext4,
            "a long path leaves a table its width",
            long_path,
        ),
    ]
}

fn idle() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "noinit_itable,no_prefetch_block_bitmaps")?;
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    let duration = IDLE_S.to_string();
    let root = stage.root();
    let words = [
        "trace".as_ref(),
        root,
        "--duration".as_ref(),
        duration.as_ref(),
    ];
    let outcome = iostep::run(words.iter().chain(&["-o".as_ref(), output.as_path()]))?.success()?;
    let device = stage
        .device()
        .file_name()
        .context("a name")?
        .to_string_lossy();
    let begun = format!("recording {device} ({})", root.display());
    anyhow::ensure!(outcome.stderr.contains(&begun), "{}", outcome.stderr);
    anyhow::ensure!(
        outcome.stdout.contains("\n no I/O in 1."),
        "{}",
        outcome.stdout
    );
    let summary = json(&output)?;
    let recorded = summary["overview"]["duration_ns"].as_f64().unwrap_or(0.0) / 1e9;
    anyhow::ensure!(recorded >= IDLE_S, "{recorded} s of {IDLE_S}");
    Ok(())
}

fn json(trace: &Path) -> anyhow::Result<Value> {
    let words = [Path::new("report"), "--json".as_ref(), trace];
    Ok(serde_json::from_str(
        &iostep::run(words)?.success()?.stdout,
    )?)
}

/// A mount of a test's own; the drop takes it away.
pub struct Mounted(TempDir);

impl Mounted {
    /// Mounts what the arguments of mount(8) say.
    pub fn new(arguments: &[&Path]) -> anyhow::Result<Mounted> {
        let point = tempfile::tempdir()?;
        let status = Command::new("mount")
            .args(arguments)
            .arg(point.path())
            .status()?;
        anyhow::ensure!(status.success(), "mount {arguments:?}: {status}");
        Ok(Mounted(point))
    }

    pub fn point(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // What is left is told by the test's own search for leftovers.
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

fn bind_mount() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let inside = stage.root().join("in side");
    std::fs::create_dir(&inside)?;
    let bind = Mounted::new(&["--bind".as_ref(), &inside])?;
    let file = bind.0.path().join("a.dat");
    written_as(&bind, &file, "/in side/a.dat")
}

fn subvolume() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Btrfs, &[], "")?;
    let made = Command::new("btrfs")
        .args(["-q", "subvolume", "create"])
        .arg(stage.root().join("@home"))
        .status()?;
    anyhow::ensure!(made.success(), "btrfs subvolume create: {made}");
    stage.settle()?;
    let options = ["-o", "subvol=@home"].map(Path::new);
    let mounted = Mounted::new(&[&options[..], &[stage.device()]].concat())?;
    let file = mounted.0.path().join("a.dat");
    written_as(&mounted, &file, "/@home/a.dat")
}

/// A file is written by one path, and shown by it; its place in the filesystem is another.
fn written_as(mount: &Mounted, file: &Path, place: &str) -> anyhow::Result<()> {
    let (summary, text) = traced(mount.0.path(), &[file.to_owned()])?;
    let rows = summary["files"].as_array().context("no files")?;
    let row = rows.iter().find(|row| row["path"] == place);
    let row = row.with_context(|| format!("no {place} in {rows:#?}"))?;
    println!("    {row}");
    let path = file.to_string_lossy();
    anyhow::ensure!(row["user_path"] == *path, "{path}: {row}");
    anyhow::ensure!(text.contains(&*path), "{path}: {text}");
    Ok(())
}

/// A trace of what is below `root` while some files are written: the summary and the text.
fn traced(root: &Path, files: &[PathBuf]) -> anyhow::Result<(Value, String)> {
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    let mut words: Vec<PathBuf> = vec!["trace".into(), root.into(), "-o".into(), output.clone()];
    let script = "for f; do echo x > \"$f\"; done; sync \"$@\"";
    words.extend(["--settle", "--", "sh", "-c", script, "sh"].map(PathBuf::from));
    words.extend_from_slice(files);
    let outcome = iostep::run(words)?.success()?;
    Ok((json(&output)?, outcome.stdout))
}

fn long_path() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let deep = stage.root().join("long-name-of-a-directory/".repeat(30));
    std::fs::create_dir_all(&deep)?;
    let file = deep.join("a.dat");
    let (summary, text) = traced(stage.root(), std::slice::from_ref(&file))?;
    let rows = summary["files"].as_array().context("no files")?;
    let path = file.to_string_lossy();
    let whole = rows.iter().any(|row| row["user_path"] == *path);
    anyhow::ensure!(whole, "{path}: {rows:#?}");
    anyhow::ensure!(text.contains("/a.dat "), "{text}");
    let rows = text.lines().filter(|line| line.starts_with(' '));
    let rows = rows.filter(|line| line.contains("/a.dat"));
    let widest = rows.max_by_key(|line| line.chars().count());
    let columns = widest.map_or(0, |line| line.chars().count());
    anyhow::ensure!(columns <= 100, "{columns} columns: {widest:?}");
    Ok(())
}
