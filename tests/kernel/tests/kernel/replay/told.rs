//! What calls tell of the beginning is there again, and what led to another filesystem is done as it
//! was: recorded by each way, replayed, and looked at.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use serde_json::Value;

use super::replay;
use crate::bad_input::TempMount;
use crate::case::Case;
use crate::stage::{self, Stage};

const MIB: u64 = 1 << 20;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for way in ["bpf", "ptrace", "strace"] {
        let needs = |more: &[Requirement]| {
            let way = match way {
                "strace" => Requirement::Program("strace"),
                _ => Requirement::Btf,
            };
            [&[Requirement::Root, way], more].concat()
        };
        all.push(Case::new(
            format!("files are there again as calls told of them, by {way}"),
            needs(&[]),
            move || as_told(way),
        ));
        all.push(Case::new(
            format!("a move to another filesystem loses nothing on one, by {way}"),
            needs(&[Requirement::Filesystem("tmpfs")]),
            move || between_filesystems(way),
        ));
        all.push(Case::new(
            format!("an unnamed file gets its name and its bytes, by {way}"),
            needs(&[Requirement::Program("python3")]),
            move || unnamed(way),
        ));
        for kind in [Kind::Btrfs, Kind::Xfs] {
            let mut needs = needs(&stage::requirements(kind));
            needs.extend(stage::requirements(Kind::Ext4));
            all.push(Case::new(
                format!(
                    "blocks shared on {} are shared again, by {way}",
                    kind.name()
                ),
                needs,
                move || shared_blocks(way, kind),
            ));
        }
    }
    all
}

/// Records a shell script that runs in a directory. Gives the trace.
fn recorded(way: &str, directory: &Path, script: &str, results: &Path) -> anyhow::Result<PathBuf> {
    let trace = results.join(format!("{way}.trace"));
    let body = format!("cd '{}' || exit\n{script}", directory.display());
    if way != "strace" {
        let words = ["record", "--via", way, "-o"].map(Path::new);
        let command = ["--", "sh", "-c", &body].map(Path::new);
        iostep::run(words.into_iter().chain([trace.as_path()]).chain(command))?.success()?;
        return Ok(trace);
    }
    let text = results.join("app.strace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-ttt", "-T", "-y", "-o"]).arg(&text);
    strace
        .args(["sh", "-c", &body])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // A text has no position of a file that was open before.
        .stderr(Stdio::null());
    let status = strace.status()?;
    ensure!(status.success(), "strace: {status}");
    let words = [Path::new("clean"), &text, Path::new("-o"), &trace];
    iostep::run(words)?.success()?;
    Ok(trace)
}

/// Replays with every result as it was recorded, and leaves the files.
fn kept(trace: &Path, to: &Path) -> anyhow::Result<(Value, PathBuf)> {
    let words = [Path::new("replay"), trace, "--to".as_ref(), to];
    let flags = ["--timing", "fast", "--keep", "--json"].map(Path::new);
    let outcome = iostep::run(words.into_iter().chain(flags))?.success()?;
    let document: Value = serde_json::from_str(&outcome.stdout)?;
    let summary = document["targets"][0]["runs"][0]["summary"].clone();
    println!("    {}", summary["totals"]);
    ensure!(
        summary["totals"]["differing"] == 0,
        "{}",
        summary["differences"]
    );
    Ok((summary, to.join("iostep-replay")))
}

/// A path of the recorded machine, where the replay has it.
fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Overwrites parts of a file, and asks after others in many ways.
const ASKS: &str = "\
stat -c %s big link empty > size
dd if=/dev/zero of=big bs=4096 seek=10 count=1 conv=notrunc,fdatasync 2> /dev/null
readlink link > words
readlink big plain full 2> /dev/null
test -x program && test -d full && test -L link && test -p fifo
test -x plain
rmdir full 2> /dev/null
mkdir full plain 2> /dev/null
cat plain/x full 2> /dev/null
ln -s other link 2> /dev/null
ln plain big 2> /dev/null
ls -l > list
true
";

fn as_told(way: &str) -> anyhow::Result<()> {
    let (source, target) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let results = tempfile::tempdir()?;
    let here = source.path();
    std::fs::write(here.join("big"), vec![7; MIB as usize])?;
    std::fs::write(here.join("plain"), "some text")?;
    std::fs::write(here.join("empty"), "")?;
    std::fs::write(here.join("program"), "#!/bin/sh\n")?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(here.join("program"), mode)?;
    std::fs::create_dir(here.join("full"))?;
    std::fs::write(here.join("full/entry"), "")?;
    std::os::unix::fs::symlink("big", here.join("link"))?;
    rustix::fs::mkfifoat(rustix::fs::CWD, here.join("fifo"), 0o600.into())?;
    let trace = recorded(way, here, ASKS, results.path())?;
    let (summary, root) = kept(&trace, target.path())?;
    let again = |name: &str| {
        let path = below(&root, &here.join(name));
        std::fs::symlink_metadata(&path).with_context(|| path.display().to_string())
    };
    // It was overwritten, and did not grow.
    let big = again("big")?;
    ensure!(big.len() == MIB, "{} bytes", big.len());
    ensure!(big.blocks() * 512 >= MIB, "{} blocks", big.blocks());
    ensure!(again("plain")?.len() == 9 && again("program")?.mode() & 0o111 == 0o111);
    ensure!(again("plain")?.mode() & 0o111 == 0);
    let link = std::fs::read_link(below(&root, &here.join("link")))?;
    ensure!(link == Path::new("big"), "{}", link.display());
    ensure!(again("fifo")?.mode() & 0o170_000 == 0o010_000);
    let left = std::fs::read_dir(below(&root, &here.join("full")))?.count();
    ensure!(left == 1, "{left} entries");
    let totals = &summary["totals"];
    ensure!(totals["recorded"] == totals["replayed"], "{totals}");
    Ok(())
}

fn between_filesystems(way: &str) -> anyhow::Result<()> {
    let (source, target) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let results = tempfile::tempdir()?;
    let other = TempMount::new("tmpfs", "size=8m")?;
    let data: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    for name in ["moved", "copied", "linked"] {
        std::fs::write(source.path().join(name), &data)?;
    }
    let there = other.path().display();
    let script = format!(
        "mv moved '{there}'; cp copied '{there}'; ln linked '{there}' 2> /dev/null || \
         cp linked '{there}'"
    );
    let trace = recorded(way, source.path(), &script, results.path())?;
    let (summary, root) = kept(&trace, target.path())?;
    for name in ["moved", "copied", "linked"] {
        let copy = std::fs::metadata(below(&root, &other.path().join(name)))?;
        ensure!(
            copy.len() == data.len() as u64,
            "{name}: {} bytes",
            copy.len()
        );
    }
    ensure!(!below(&root, &source.path().join("moved")).exists());
    let totals = &summary["totals"];
    ensure!(totals["recorded"] == totals["replayed"], "{totals}");
    let written = totals["replayed"]["written_bytes"].as_u64();
    ensure!(written >= Some(3 * data.len() as u64), "{totals}");
    let refused = summary["skipped"].as_array().context("a list")?;
    let refused = refused
        .iter()
        .find(|skip| skip["reason"] == "refused as recorded");
    ensure!(refused.is_some(), "{}", summary["skipped"]);
    Ok(())
}

/// A file without a name is written, and gets one by its descriptor.
const UNNAMED: &str = "python3 -c '
import ctypes, os
libc = ctypes.CDLL(None)
fd = os.open(\".\", os.O_TMPFILE | os.O_RDWR, 0o644)
os.write(fd, b\"x\" * 5000)
os.fsync(fd)
# AT_SYMLINK_FOLLOW, AT_EMPTY_PATH
assert libc.linkat(-100, b\"/proc/self/fd/%d\" % fd, -100, b\"named\", 0x400) == 0
assert libc.linkat(fd, b\"\", -100, b\"again\", 0x1000) == 0
os.pwrite(fd, b\"y\" * 1000, 5000)
assert os.stat(\"named\").st_size == 6000
'";

fn unnamed(way: &str) -> anyhow::Result<()> {
    let (source, target) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let results = tempfile::tempdir()?;
    let trace = recorded(way, source.path(), UNNAMED, results.path())?;
    let (_, root) = kept(&trace, target.path())?;
    for name in ["named", "again"] {
        let found = std::fs::metadata(below(&root, &source.path().join(name)))?;
        ensure!(found.len() == 6000, "{name}: {} bytes", found.len());
        ensure!(found.nlink() == 2, "{name}: {} names", found.nlink());
    }
    Ok(())
}

fn shared_blocks(way: &str, kind: Kind) -> anyhow::Result<()> {
    let results = tempfile::tempdir()?;
    let stage = Stage::new(kind, &[], "")?;
    let here = stage.root().join("recorded");
    std::fs::create_dir(&here)?;
    std::fs::write(here.join("a"), vec![7; 200_000])?;
    let script = "cp --reflink=always a b; cat b > /dev/null";
    let trace = recorded(way, &here, script, results.path())?;
    let (summary, root) = kept(&trace, stage.root())?;
    let written = &summary["totals"]["replayed"]["written_bytes"];
    ensure!(*written == 0, "{}", summary["totals"]);
    let copy = std::fs::metadata(below(&root, &here.join("b")))?;
    ensure!(copy.len() == 200_000, "{} bytes", copy.len());
    // A filesystem that cannot share has the bytes all the same, and says so.
    let other = Stage::new(Kind::Ext4, &[], "")?;
    let summary = replay(&trace, other.root(), &["--timing", "fast"], 0)?;
    let differences = summary["differences"].as_array().context("a list")?;
    let [difference] = &differences[..] else {
        anyhow::bail!("{}", summary["differences"]);
    };
    ensure!(difference["syscall"] == "ioctl", "{difference}");
    ensure!(difference["replayed"] == "EOPNOTSUPP", "{difference}");
    ensure!(difference["reason"] == "unsupported", "{difference}");
    Ok(())
}
