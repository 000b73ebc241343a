//! The part of a trace that a control group is to blame for.
//!
//! Ground truth: a command moves itself into a group that this test made, and writes a file from
//! there; then one is written from outside. The group is gone before anybody asks for it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use serde_json::Value;

use crate::case::Case;
use crate::shown::Mounted;
use crate::stage::{self, Stage};

/// What is written from inside, and from outside.
const INSIDE_BYTES: u64 = 48 * 4096;
const OUTSIDE_BYTES: u64 = 16 * 4096;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let case = |backend: &'static str| {
        let mut needs = stage::requirements(Kind::Ext4);
        needs.extend([Requirement::Btf, Requirement::Tracefs]);
        needs.push(Requirement::Filesystem("cgroup2"));
        let name = format!("a control group has its part, by {backend}");
        Case::new(name, needs, move || part(backend)).about("cgroups")
    };
    let mut needs = stage::requirements(Kind::Ext4);
    needs.push(Requirement::Btf);
    let name = "a filter that nothing can match is an error";
    let refused = Case::new(name, needs, nothing).about("cgroups");
    vec![case("bpf"), case("tracefs"), refused]
}

/// Two groups, one in the other, in a hierarchy that is mounted for them; the drop takes them away.
struct Groups {
    mount: Mounted,
    outer: String,
}

impl Groups {
    const INNER: &str = "inner.scope";

    fn new() -> anyhow::Result<Groups> {
        let mount = Mounted::new(&["-t", "cgroup2", "none"].map(Path::new))?;
        let outer = format!("iostep-kernel-{}", std::process::id());
        let groups = Groups { mount, outer };
        fs::create_dir_all(groups.inner())?;
        Ok(groups)
    }

    fn inner(&self) -> PathBuf {
        self.mount.point().join(&self.outer).join(Groups::INNER)
    }

    /// The inner group below the root of the hierarchy.
    fn path(&self) -> String {
        format!("/{}/{}", self.outer, Groups::INNER)
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        // The command has removed the inner one, where it came so far.
        let _ = fs::remove_dir(self.inner());
        let _ = fs::remove_dir(self.mount.point().join(&self.outer));
    }
}

/// The writer inside stays for a while: the tracefs probe asks /proc about it.
const SCRIPT: &str = "\
    (echo 0 > \"$1/cgroup.procs\"
     (head -c \"$3\" /dev/zero; sleep 1) | dd of=\"$2/inside\" bs=4096 iflag=fullblock conv=fsync)
    head -c \"$4\" /dev/zero | dd of=\"$2/outside\" bs=4096 iflag=fullblock conv=fsync
    rmdir \"$1\"";

fn part(backend: &str) -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let groups = Groups::new()?;
    let id = fs::metadata(groups.inner())?.ino();
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    let mut command = ["sh", "-ec", SCRIPT, "sh"].map(str::to_owned).to_vec();
    let places = [groups.inner(), stage.root().to_owned()];
    command.extend(places.map(|path| path.to_string_lossy().into_owned()));
    command.extend([INSIDE_BYTES, OUTSIDE_BYTES].map(|bytes| bytes.to_string()));
    let flags = ["--backend", backend, "--json", "--cgroup", &groups.outer];
    let traced = iostep::run(stage.trace(&output, &flags, &command))?.success()?;
    only_inside(&serde_json::from_str(&traced.stdout)?)?;
    let mut names = vec![
        groups.path(),
        format!("/sys/fs/cgroup{}/", groups.path()),
        format!("/{}", groups.outer),
        "inner*".to_owned(),
    ];
    // The tracefs probe asks /proc, which has no numbers.
    names.extend((backend == "bpf").then(|| id.to_string()));
    for name in names {
        let part = report(&output, &["--cgroup", &name])?;
        only_inside(&part).with_context(|| name)?;
    }
    let whole = report(&output, &[])?;
    anyhow::ensure!(written(&whole, "outside")? == OUTSIDE_BYTES);
    let processes = whole["processes"].as_array().context("no processes")?;
    let of_group = processes
        .iter()
        .filter(|row| row["cgroup"] == groups.path());
    let names: Vec<&Value> = of_group.map(|row| &row["name"]).collect();
    anyhow::ensure!(names == ["dd"], "{processes:#?}");
    let mut words = vec![PathBuf::from("report"), output];
    words.extend(["--cgroup", "/nobody"].map(PathBuf::from));
    let refused = iostep::run(words)?.status(2)?;
    let expected = "--cgroup /nobody: no thread is in such a control group";
    anyhow::ensure!(refused.stderr.contains(expected), "{}", refused.stderr);
    Ok(())
}

/// What nothing fits, and what is here but does no I/O.
fn nothing() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let directory = tempfile::tempdir()?;
    let command = ["true".to_owned()];
    let attempt = |number: u32, flags: &[&str]| {
        let output = directory.path().join(format!("{number}.iostep"));
        iostep::run(stage.trace(&output, flags, &command))
    };
    for (number, flags, expected) in [
        // More than the kernel gives out.
        (0, ["--pid", "4194305"], "--pid 4194305: no process"),
        (1, ["--cgroup", "nonexist"], "--cgroup nonexist: no thread"),
        (
            2,
            ["--comm", "no-such-program"],
            "--comm no-such-program: no program",
        ),
        (3, ["--file", "*.nothing"], "--file *.nothing: no file"),
    ] {
        let refused = attempt(number, &flags)?.status(2)?;
        let error = refused.stderr;
        anyhow::ensure!(error.contains(expected), "{flags:?}: {error}");
    }
    // A process is refused before anything is recorded; of others there may have been some.
    anyhow::ensure!(!directory.path().join("0.iostep").exists());
    anyhow::ensure!(directory.path().join("1.iostep").exists());
    let own = std::process::id().to_string();
    attempt(4, &["--pid", &own])?.success()?;
    Ok(())
}

fn report(trace: &Path, flags: &[&str]) -> anyhow::Result<Value> {
    let words = [Path::new("report"), "--json".as_ref(), trace];
    let words = words.into_iter().chain(flags.iter().map(Path::new));
    Ok(serde_json::from_str(
        &iostep::run(words)?.success()?.stdout,
    )?)
}

/// Bytes written of the file with this name; 0 if it is not there.
fn written(summary: &Value, name: &str) -> anyhow::Result<u64> {
    let rows = summary["files"].as_array().context("no files")?;
    let is_meant = |row: &&Value| {
        let path = row["path"].as_str().unwrap_or_default();
        path.rsplit('/').next() == Some(name)
    };
    Ok(rows
        .iter()
        .find(is_meant)
        .map_or(0, |row| row["write"]["bytes"].as_u64().unwrap_or_default()))
}

fn only_inside(summary: &Value) -> anyhow::Result<()> {
    let found = (written(summary, "inside")?, written(summary, "outside")?);
    let expected = (INSIDE_BYTES, 0);
    anyhow::ensure!(
        found == expected,
        "{found:?} instead of {expected:?}: {summary:#}"
    );
    Ok(())
}
