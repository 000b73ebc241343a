//! `iostep record` and `iostep replay` with real programs, on real filesystems.

use std::path::{Path, PathBuf};

use anyhow::Context;
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use iostep_model::syscall::{InitialKind, text};
use serde_json::Value;

use crate::case::Case;
use crate::stage::{self, Stage};

mod block;
mod data;
mod failing;
mod interrupted;
mod told;

const KINDS: [Kind; 3] = [Kind::Ext4, Kind::Xfs, Kind::Btrfs];

pub const SQLITE: &str = "\
PRAGMA journal_mode=WAL;
CREATE TABLE account(id INTEGER PRIMARY KEY, name TEXT NOT NULL, balance INTEGER);
CREATE TABLE entry(id INTEGER PRIMARY KEY, account INTEGER REFERENCES account, note TEXT);
CREATE INDEX entry_account ON entry(account);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
    INSERT INTO account SELECT i, 'name ' || i, i FROM n;
INSERT INTO entry(account, note) SELECT id, hex(randomblob(100)) FROM account;
PRAGMA journal_mode=DELETE;
UPDATE account SET balance = balance + 1;
DELETE FROM entry WHERE id % 3 = 0;
VACUUM;
";

pub const GIT: &str = "\
export HOME=/nonexistent GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
set -e
git init -q repo; cd repo
seq 1000 > a; mkdir d; seq 99 > d/b; git add .; git commit -q -m one
seq 2000 > a; git commit -q -a -m two
git -c gc.auto=0 gc -q";

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for kind in KINDS {
        let needs = |program| {
            let mut needs = stage::requirements(kind);
            needs.extend([Requirement::Btf, Requirement::Program(program)]);
            needs
        };
        all.push(Case::new(
            format!("sqlite3 is recorded and replayed on {}", kind.name()),
            needs("sqlite3"),
            move || {
                let script = format!("sqlite3 app.db <<'END'\n{SQLITE}END\n");
                record_and_replay(kind, &script)
            },
        ));
        all.push(Case::new(
            format!("git is recorded and replayed on {}", kind.name()),
            needs("git"),
            move || record_and_replay(kind, GIT),
        ));
    }
    for way in ["bpf", "ptrace"] {
        let needs = [Requirement::Root, Requirement::Btf];
        let name = format!("a symbolic link that was read is there again, by {way}");
        all.push(Case::new(name, needs, move || symbolic_link(way)));
    }
    all.extend(block::cases());
    all.extend(data::cases());
    all.extend(failing::cases());
    all.extend(interrupted::cases());
    all.extend(told::cases());
    all.into_iter().map(|case| case.about("replay")).collect()
}

/// Records a shell script in a directory of its own and replays it in every timing.
fn record_and_replay(kind: Kind, script: &str) -> anyhow::Result<()> {
    let source = tempfile::tempdir()?;
    let results = tempfile::tempdir()?;
    let trace = results.path().join("app.trace");
    let body = format!("cd '{}'\n{script}", source.path().display());
    let words = ["record", "--json", "-o"].map(PathBuf::from);
    let command = ["--", "sh", "-c", &body].map(PathBuf::from);
    let recorded = iostep::run(words.iter().chain([&trace]).chain(&command))?.success()?;
    println!("    {}", recorded.stdout.lines().next().unwrap_or_default());
    let stage = Stage::new(kind, &[], "")?;
    for flags in [
        &["--timing", "fast"][..],
        &["--timing", "fast", "--threads", "merge"],
        &["--speed", "2"],
    ] {
        let summary = replay(&trace, stage.root(), flags, 0)?;
        ensure_same(&summary)?;
        let written = &summary["totals"]["replayed"]["written_bytes"];
        anyhow::ensure!(
            written == &summary["totals"]["recorded"]["written_bytes"],
            "{flags:?}: {}",
            summary["totals"]
        );
    }
    Ok(())
}

/// A program that asks what a link says, and then follows it.
fn symbolic_link(way: &str) -> anyhow::Result<()> {
    let (source, target) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let results = tempfile::tempdir()?;
    let trace = results.path().join("app.trace");
    let file = source.path().join("real");
    std::fs::write(&file, "content")?;
    std::os::unix::fs::symlink("real", source.path().join("link"))?;
    let script = format!("cd '{}'; readlink link; cat link", source.path().display());
    let words = ["record", "--via", way, "-o"].map(Path::new);
    let command = ["--", "sh", "-c", &script].map(Path::new);
    iostep::run(words.into_iter().chain([trace.as_path()]).chain(command))?.success()?;
    let recording = text::read(&trace)?;
    let path = |name: &str| {
        source
            .path()
            .join(name)
            .into_os_string()
            .into_encoded_bytes()
    };
    let initially = |name: &str| {
        let mut all = recording.initial.iter();
        let found = all.find(|initial| recording.paths.get(initial.path) == path(name));
        found.with_context(|| format!("{name} is not there"))
    };
    let InitialKind::Symlink { content } = initially("link")?.kind else {
        anyhow::bail!("{:?}", initially("link")?);
    };
    anyhow::ensure!(recording.paths.get(content) == b"real");
    let size = 7;
    anyhow::ensure!(
        matches!(initially("real")?.kind, InitialKind::File { size: found, .. } if found == size),
        "{:?}",
        initially("real")?
    );
    let summary = replay(&trace, target.path(), &["--timing", "fast"], 0)?;
    ensure_same(&summary)?;
    anyhow::ensure!(
        summary["totals"]["differing"] == 0,
        "{}",
        summary["differences"]
    );
    Ok(())
}

/// The summary of one replay, which must end with a status.
pub fn replay(trace: &Path, to: &Path, flags: &[&str], status: i32) -> anyhow::Result<Value> {
    let words = [Path::new("replay"), trace, "--to".as_ref(), to];
    let flags = flags.iter().chain(&["--json"]).map(Path::new);
    let outcome = iostep::run(words.into_iter().chain(flags))?;
    let document: Value = serde_json::from_str(&outcome.stdout)
        .with_context(|| format!("no result: {}", outcome.stderr))?;
    let summary = document["targets"][0]["runs"][0]["summary"].clone();
    println!("    {}", summary["totals"]);
    outcome
        .status(status)
        .with_context(|| format!("differences: {}", summary["differences"]))?;
    ensure_removed(to)?;
    Ok(summary)
}

/// Every call of the recording was issued in order, and 99.9 % returned what they had.
pub fn ensure_same(summary: &Value) -> anyhow::Result<()> {
    let total = |name: &str| {
        let found = summary["totals"][name].as_u64();
        found.with_context(|| format!("no {name}"))
    };
    anyhow::ensure!(total("done")? > 100, "{}", summary["totals"]);
    anyhow::ensure!(
        total("done")? == total("expected")?,
        "skipped: {}",
        summary["skipped"]
    );
    anyhow::ensure!(
        1000 * total("differing")? <= total("done")?,
        "differences: {}",
        summary["differences"]
    );
    anyhow::ensure!(summary["order_violations"] == 0, "out of order");
    Ok(())
}

/// A trace with the calls of these lines. All threads of one process are declared.
fn written_trace(path: &Path, threads: u32, initial: &str, calls: &[String]) -> anyhow::Result<()> {
    let mut text = String::from("# iostep system calls 1\n");
    for thread in 1..=threads {
        text += &format!("@thread t{thread} p1 tid={thread} name=\"writer\"\n");
    }
    text += initial;
    for call in calls {
        text += &format!("{call}\n");
    }
    text += &format!("@end calls={}\n", calls.len());
    std::fs::write(path, text)?;
    Ok(())
}

/// Fails unless nothing of a replay is left below a directory.
fn ensure_removed(parent: &Path) -> anyhow::Result<()> {
    let left = parent.join("iostep-replay");
    anyhow::ensure!(!left.exists(), "{} is left", left.display());
    Ok(())
}
