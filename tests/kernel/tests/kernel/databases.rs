//! Files of real database servers and stores: the types that a trace gives them, beside the
//! engines' own directories, the places that the filesystem tells, and the engines' own counters.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, ensure};
use iostep_kernel_tests::extents;
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_kernel_tests::score::Score;
use iostep_kernel_tests::written::Written;
use iostep_lab::Kind;
use iostep_model::table::Trace;
use iostep_model::{Class, FileType, SECTOR_BYTES, store};
use serde_json::Value;

use crate::case::Case;
use crate::stage::{self, Stage};

mod mariadb;
mod postgres;
mod server;
mod stores;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut cases = vec![postgres::case(), mariadb::case()];
    cases.extend(stores::cases());
    cases
        .into_iter()
        .map(|case| case.about("databases"))
        .collect()
}

/// What a filesystem with a database on it needs, and these programs.
fn requirements(programs: &[&'static str]) -> Vec<Requirement> {
    let mut needs = stage::requirements(Kind::Ext4);
    needs.push(Requirement::Btf);
    needs.extend(programs.iter().map(|name| Requirement::Program(name)));
    needs
}

/// A trace of what a database wrote, and what is reported of it.
struct Told {
    trace: Trace,
    summary: Value,
    text: String,
}

impl Told {
    /// Traces a filesystem while a command runs.
    fn of(stage: &Stage, command: &[String]) -> anyhow::Result<Told> {
        let directory = tempfile::tempdir()?;
        let output = directory.path().join("run.iostep");
        let outcome = iostep::run(stage.trace(&output, &["--settle"], command))?.success()?;
        let words = [Path::new("report"), "--json".as_ref(), &output];
        Ok(Told {
            trace: store::read(&output)?,
            summary: serde_json::from_str(&iostep::run(words)?.success()?.stdout)?,
            text: outcome.stdout,
        })
    }

    /// Bytes written to files of a type, by the report.
    fn written(&self, file_type: FileType) -> anyhow::Result<u64> {
        let rows = self.summary["file_types"].as_array().context("no types")?;
        let of = serde_json::to_value(file_type)?;
        let row = rows.iter().find(|row| row["of"] == of);
        Ok(row.map_or(0, |row| row["write"]["bytes"].as_u64().unwrap_or(0)))
    }

    /// Bytes written to files in these directories, which are named from the filesystem's root.
    fn written_below(&self, directories: &[&str]) -> anyhow::Result<u64> {
        let rows = self.summary["joj"]["files"]
            .as_array()
            .context("no files")?;
        let is_below = |row: &&Value| {
            let path = row["path"].as_str().unwrap_or_default();
            directories
                .iter()
                .any(|directory| path.starts_with(directory))
        };
        let rows = rows.iter().filter(is_below);
        Ok(rows.filter_map(|row| row["data_bytes"].as_u64()).sum())
    }

    /// Sync calls on files of a type, and the filesystem's journal that these caused.
    fn synced(&self, file_type: FileType) -> anyhow::Result<(u64, u64)> {
        let of = serde_json::to_value(file_type)?;
        let rows = self.summary["joj"]["files"]
            .as_array()
            .context("no files")?;
        let rows = rows.iter().filter(|row| row["file_type"] == of);
        let sum = |name: &str| rows.clone().filter_map(|row| row[name].as_u64()).sum();
        Ok((sum("syncs"), sum("journal_bytes")))
    }

    /// What is told to be journaling of journal is what the syncs of these logs caused, and the
    /// first screen says so.
    fn tells_journaling_of_journal(&self, logs: &[FileType]) -> anyhow::Result<u64> {
        let mut caused = 0;
        for log in logs {
            caused += self.synced(*log)?.1;
        }
        let told = &self.summary["joj"]["joj_bytes"];
        println!("    {told} bytes of journaling of journal");
        ensure!(*told == caused, "{told} of {caused} bytes");
        let line = self.text.lines().map(str::trim_start);
        let mut lines = line.filter(|line| line.starts_with("journaling of journal"));
        let line = lines.next().context("nothing of it on the screen")?;
        ensure!(line.contains(" 0 B:") == (caused == 0), "{line}");
        Ok(caused)
    }

    /// The type that each block has by its last write, where that is in the trace, against what
    /// `is` says of the file that has the block now. `is` gets paths from the filesystem's root.
    fn types(&self, root: &Path, is: impl Fn(&str) -> FileType) -> anyhow::Result<Score> {
        let written = Written::of(&self.trace);
        let mut score = Score::default();
        for path in files_below(root)? {
            let name = format!("/{}", path.strip_prefix(root)?.display());
            let expected = is(&name);
            for extent in extents::of(&File::open(&path)?)? {
                let first = extent.physical / SECTOR_BYTES;
                for sector in first..first + extent.bytes / SECTOR_BYTES {
                    let Some((_, segment)) = written.get(sector) else {
                        continue;
                    };
                    let found = match (segment.class, segment.file) {
                        (Class::FileData, Some(file)) => {
                            self.trace.files[file as usize].file_type.name()
                        }
                        (class, _) => class.name(),
                    };
                    let fault = (found != expected.name())
                        .then(|| format!("{found}, expected {}", expected.name()));
                    score.count(SECTOR_BYTES, fault, || name.clone());
                }
            }
        }
        Ok(score)
    }
}

fn files_below(directory: &Path) -> anyhow::Result<Vec<std::path::PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            files.extend(files_below(&entry.path())?);
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(files)
}
