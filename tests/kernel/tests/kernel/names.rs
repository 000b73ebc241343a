//! Files under the names that they get late, and processes under their programs' names.
//!
//! Ground truth: what the program under trace asks the kernel about itself.

use std::path::Path;

use anyhow::Context;
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use iostep_model::store;
use iostep_model::table::{File, Trace};
use serde_json::Value;

use crate::case::Case;
use crate::stage::{self, Stage};

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let case = |kind: Kind, backend, name: &str, body: fn(Kind, &str) -> anyhow::Result<()>| {
        let mut needs = stage::requirements(kind);
        needs.extend([Requirement::Btf, Requirement::Tracefs]);
        let name = format!("{name}, {} by {backend}", kind.name());
        Case::new(name, needs, move || body(kind, backend)).about("names")
    };
    let renamed = "a file has its last name and keeps its first";
    vec![
        case(Kind::Ext4, "bpf", renamed, renames),
        case(Kind::Xfs, "bpf", renamed, renames),
        case(Kind::Btrfs, "bpf", renamed, renames),
        case(Kind::Ext4, "bpf", "a file is what linkat made of it", files),
        case(Kind::Xfs, "bpf", "a file is what linkat made of it", files),
        case(
            Kind::Btrfs,
            "bpf",
            "a file is what linkat made of it",
            files,
        ),
        case(
            Kind::Ext4,
            "bpf",
            "threads belong to their program",
            threads,
        ),
        case(
            Kind::Ext4,
            "tracefs",
            "threads belong to their program",
            threads,
        ),
    ]
}

/// What the program says of itself, and what the command recorded and prints.
struct Told {
    facts: Value,
    trace: Trace,
    summary: Value,
    text: String,
}

impl Told {
    fn of(kind: Kind, backend: &str, what: &str) -> anyhow::Result<Told> {
        let stage = Stage::new(kind, &[], "")?;
        let directory = tempfile::tempdir()?;
        let output = directory.path().join("run.iostep");
        let root = stage.root().to_string_lossy().into_owned();
        let command = [
            env!("CARGO_BIN_EXE_names").to_owned(),
            root,
            what.to_owned(),
        ];
        let flags = ["--settle", "--full", "--backend", backend];
        let outcome = iostep::run(stage.trace(&output, &flags, &command))?.success()?;
        let line = outcome.stdout.lines().next().unwrap_or_default();
        let words = [Path::new("report"), "--json".as_ref(), &output];
        Ok(Told {
            facts: serde_json::from_str(line).with_context(|| line.to_owned())?,
            trace: store::read(&output)?,
            summary: serde_json::from_str(&iostep::run(words)?.success()?.stdout)?,
            text: outcome.stdout,
        })
    }

    /// Rows of a list of the summary.
    fn rows(&self, list: &str) -> Vec<&Value> {
        let rows = self.summary[list].as_array();
        rows.map_or(Vec::new(), |rows| rows.iter().collect())
    }
}

fn files(kind: Kind, backend: &str) -> anyhow::Result<()> {
    let told = Told::of(kind, backend, "files")?;
    for fact in told.facts.as_array().context("no facts")? {
        let is_meant = |file: &&File| {
            fact["inode"] == file.key.inode && fact["generation"] == file.key.generation
        };
        let meant: Vec<_> = told.trace.files.iter().filter(is_meant).collect();
        let [file] = meant[..] else {
            anyhow::bail!("{} rows of {fact}", meant.len());
        };
        println!("    {fact}: {:?}, {:?}", file.path, file.deleted_ns);
        if let Some(path) = fact["path"].as_str() {
            let path = format!("/{path}");
            anyhow::ensure!(file.path.as_deref() == Some(&path), "{file:?}");
            anyhow::ensure!(file.deleted_ns.is_none(), "{file:?}");
            let shown = |text: &str| {
                text.lines()
                    .any(|l| l.contains(&path) && !l.contains("deleted"))
            };
            anyhow::ensure!(shown(&told.text), "{path}: {}", told.text);
        } else {
            anyhow::ensure!(file.deleted_ns.is_some(), "{file:?}");
        }
    }
    // Each of those without a name is a row of its own.
    let table = told.text.lines().skip_while(|line| *line != "Files");
    let table = table.take_while(|line| !line.is_empty());
    let rows = table.filter(|line| line.contains("/#"));
    anyhow::ensure!(rows.count() == 2, "{}", told.text);
    Ok(())
}

fn renames(kind: Kind, backend: &str) -> anyhow::Result<()> {
    let told = Told::of(kind, backend, "renames")?;
    let facts = told.facts.as_array().context("no facts")?;
    for fact in facts {
        let is_meant = |file: &&File| {
            fact["inode"] == file.key.inode && fact["generation"] == file.key.generation
        };
        let meant: Vec<_> = told.trace.files.iter().filter(is_meant).collect();
        let [file] = meant[..] else {
            anyhow::bail!("{} rows of {fact}", meant.len());
        };
        println!("    {:?}, first {:?}", file.path, file.first_path);
        let path = |name: &Value| name.as_str().map(|name| format!("/{name}"));
        anyhow::ensure!(file.path == path(&fact["path"]), "{fact}: {file:?}");
        anyhow::ensure!(file.first_path == path(&fact["first"]), "{fact}: {file:?}");
        anyhow::ensure!(
            fact["deleted"] == file.deleted_ns.is_some(),
            "{fact}: {file:?}"
        );
    }
    // Bytes that are no text are a row each.
    let rows = told.rows("files");
    for name in ["/n\\xff", "/n\\xfe", "/n\\\\xff"] {
        let own = rows.iter().filter(|row| row["path"] == name);
        anyhow::ensure!(own.count() == 1, "{name}: {rows:#?}");
    }
    Ok(())
}

fn threads(kind: Kind, backend: &str) -> anyhow::Result<()> {
    let told = Told::of(kind, backend, "threads")?;
    let process = &told.facts["process"];
    let files = told.facts["files"].as_array().context("no files")?;
    let rows = told.rows("processes");
    let own: Vec<_> = rows
        .iter()
        .filter(|row| row["pid"] == process["pid"])
        .collect();
    let [row] = own[..] else {
        anyhow::bail!("{} rows of {process}: {rows:#?}", own.len());
    };
    println!("    {row}");
    anyhow::ensure!(row["name"] == process["comm"], "{row}");
    let command = row["command_line"].as_str().unwrap_or_default();
    anyhow::ensure!(command.contains("names"), "{row}");
    let bytes = told.facts["bytes_each"].as_u64().unwrap_or(0) * files.len() as u64;
    anyhow::ensure!(row["dirtied"]["bytes"] == bytes, "{bytes} of {row}");
    anyhow::ensure!(row["syncs"] == files.len() as u64, "{row}");
    let name = |row: &Value| row["name"].as_str().unwrap_or_default().to_owned();
    let stray = rows.iter().find(|row| {
        let name = name(row);
        name.starts_with("writer-") || name.starts_with("iou-")
    });
    anyhow::ensure!(stray.is_none(), "a thread as a process: {stray:?}");
    files
        .iter()
        .try_for_each(|fact| dirtied_by(&told.trace, fact, process))
}

/// The rows of threads have the threads' own names and numbers.
fn dirtied_by(trace: &Trace, fact: &Value, process: &Value) -> anyhow::Result<()> {
    let path = format!("/{}", fact["file"].as_str().context("a file")?);
    let mut seen = 0;
    for segment in &trace.segments {
        let file = segment.file.map(|file| &trace.files[file as usize]);
        if file.and_then(|file| file.path.as_ref()) != Some(&path) {
            continue;
        }
        let Some(dirtier) = segment.dirtier else {
            continue;
        };
        let thread = &trace.processes[dirtier as usize];
        anyhow::ensure!(process["pid"] == thread.tgid, "{path}: {thread:?}");
        match fact["comm"].as_str() {
            Some(comm) => {
                anyhow::ensure!(thread.comm == comm, "{path}: {thread:?}");
                anyhow::ensure!(fact["thread"] == thread.pid, "{path}: {thread:?}");
            }
            None => anyhow::ensure!(thread.comm.starts_with("iou-wrk-"), "{thread:?}"),
        }
        seen += 1;
    }
    anyhow::ensure!(seen > 0, "{path}: not in the trace");
    Ok(())
}
