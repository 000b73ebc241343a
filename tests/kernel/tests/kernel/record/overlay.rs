//! Recordings of files that lie on an overlayfs.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_model::syscall::{InitialKind, text};
use tempfile::TempDir;

use super::received;
use crate::case::Case;
use crate::overlay::{ALL_LAYERS, Layers, NEEDS, Overlay};

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let more = |more: &[Requirement]| [&NEEDS[..], &[Requirement::Btf], more].concat();
    vec![
        Case::new(
            "files of an overlay that came through a socket are followed",
            more(&[Requirement::Program("cc"), Requirement::Program("strace")]),
            through_a_socket,
        ),
        Case::new(
            "files of two layers are no links of each other",
            more(&[]),
            layers_of_one_number,
        ),
        Case::new("names of an overlay's file are links", more(&[]), links),
    ]
}

/// New, in the lower layer before, and in the upper layer before: numbers come from either.
fn through_a_socket() -> anyhow::Result<()> {
    for layers in ALL_LAYERS {
        for before in ["nowhere", "lower", "upper"] {
            println!("    {layers:?}, the file was before: {before}");
            let overlay = Overlay::new(layers, |lower, upper| {
                let layer = match before {
                    "lower" => lower,
                    "upper" => upper,
                    _ => return Ok(()),
                };
                Ok(std::fs::write(
                    layer.join("outside"),
                    "more than is written",
                )?)
            })?;
            let (recording, program) = received::record("bpf", overlay.root())?;
            received::check(&recording, overlay.root())?;
            let by_strace = as_strace_says(program.path(), overlay.root())?;
            ensure!(by_strace == overlay.path("outside"), "{by_strace:?}");
        }
    }
    Ok(())
}

/// The path of the file that came from outside.
fn as_strace_says(program: &Path, files: &Path) -> anyhow::Result<PathBuf> {
    let receive = program.join("receive");
    let output = program.join("strace");
    let mut give = Command::new(&receive);
    give.arg(files).args(["give", "strace", "-yy", "-o"]);
    give.arg(&output).arg(&receive).arg(files).arg("take");
    let status = give.stdout(Stdio::null()).status()?;
    ensure!(status.success(), "strace: {status}");
    let told = std::fs::read_to_string(output)?;
    let mut lines = told.lines();
    let line = lines.find(|line| line.starts_with("pread64(") && line.contains(", 4, 5)"));
    let line = line.context("no pread64")?;
    let path = line.split(['<', '>']).nth(1).context("no path")?;
    Ok(path.into())
}

/// What a recording of `cat` says of these files.
fn kinds(files: &[PathBuf]) -> anyhow::Result<Vec<InitialKind>> {
    let place = TempDir::new()?;
    let trace = place.path().join("trace");
    let words = ["record", "--via", "bpf", "-o"].map(PathBuf::from);
    let words = words.into_iter().chain([trace.clone()]);
    let words = words.chain(["--".into(), "cat".into()]);
    iostep::run(words.chain(files.iter().cloned()))?.success()?;
    let recording = text::read(&trace)?;
    let kind = |path: &PathBuf| {
        let path = path.as_os_str().as_encoded_bytes();
        let mut all = recording.initial.iter();
        let file = all.find(|file| recording.paths.get(file.path) == path);
        Ok(file.context("it is not in the trace")?.kind.clone())
    };
    files.iter().map(kind).collect()
}

fn layers_of_one_number() -> anyhow::Result<()> {
    let mut pair = None;
    let overlay = Overlay::new(Layers::Two, |lower, upper| {
        let fill = |layer: &Path, name: &str| -> anyhow::Result<Vec<u64>> {
            let file = |at| {
                let path = layer.join(format!("{name}{at}"));
                std::fs::write(&path, "four")?;
                Ok(std::fs::metadata(path)?.ino())
            };
            (0..64).map(file).collect()
        };
        let (ones, others) = (fill(lower, "lower")?, fill(upper, "upper")?);
        pair = ones.iter().enumerate().find_map(|(at, number)| {
            let other = others.iter().position(|other| other == number)?;
            Some([format!("lower{at}"), format!("upper{other}")])
        });
        Ok(())
    })?;
    let pair = pair.context("no two files with one number")?;
    println!("    {pair:?} have the same number in their layers");
    let kinds = kinds(&pair.map(|name| overlay.path(&name)))?;
    for kind in &kinds {
        ensure!(
            matches!(kind, InitialKind::File { size: 4, .. }),
            "{kinds:?}"
        );
    }
    Ok(())
}

fn links() -> anyhow::Result<()> {
    for layers in ALL_LAYERS {
        println!("    {layers:?}");
        let overlay = Overlay::new(layers, |_, upper| {
            std::fs::write(upper.join("one"), "four")?;
            Ok(std::fs::hard_link(upper.join("one"), upper.join("other"))?)
        })?;
        let kinds = kinds(&["one", "other"].map(|name| overlay.path(name)))?;
        ensure!(
            matches!(
                kinds[..],
                [
                    InitialKind::File { size: 4, .. },
                    InitialKind::HardLink { .. }
                ]
            ),
            "{kinds:?}"
        );
    }
    Ok(())
}
