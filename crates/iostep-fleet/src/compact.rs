//! `iostep fleet compact`: few large files of a date instead of many small ones.
//!
//! The new files, and links to those that stay as they are, are put into a directory that nobody
//! sees, which is then exchanged with the date's own in one step. So whoever lists the date's directory
//! finds every row once, before and after. Whoever has listed it before and opens a file afterwards
//! is told that the file is gone.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use iostep_model::error::{Error, Result};
use iostep_model::hex;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::date::Date;
use crate::lake::{Lake, MERGED, Stage};
use crate::merge::{Merge, narrow, runs};
use crate::place::{self, Found};
use crate::table::Table;
use crate::writer::TableFile;

/// How large files are to be.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// A file of fewer bytes is merged with others.
    pub small_bytes: u64,
    /// No file gets another group of rows once it has as many bytes.
    pub full_bytes: u64,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes {
            small_bytes: 128 << 20,
            full_bytes: 448 << 20,
        }
    }
}

/// What was done for a table's date.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compacted {
    /// Files that were merged; 0 if there was nothing to do.
    pub merged_files: u64,
    /// Their bytes.
    pub merged_bytes: u64,
    /// Files that were made of them.
    pub files: u64,
    pub bytes: u64,
    /// Rows of either.
    pub rows: u64,
}

impl Lake {
    /// Merges the small files of a table's date. `stop` is asked between groups of rows: nothing has
    /// changed if it answers an error.
    ///
    /// Errors: `Io`, also if somebody else compacts the date, or the filesystem has no exchange of
    /// names; `Corrupt` for a damaged file; those of `stop`.
    pub fn compact(
        &self,
        table: Table,
        date: Date,
        sizes: Sizes,
        stop: &dyn Fn() -> Result<()>,
    ) -> Result<Compacted> {
        let directory = self.directory(table, date);
        let Some(_merging) = self.lock_for_merge(date)? else {
            let error = std::io::Error::other("another process is compacting this date");
            return Err(Error::io(directory, "compact")(error));
        };
        let listed = {
            let _lock = self.lock(date)?;
            self.finish_commits_of(date)?;
            place::files(&directory)?
        };
        let small: Vec<Found> = listed
            .into_iter()
            .filter(|found| found.bytes < sizes.small_bytes)
            .collect();
        if small.len() < 2 {
            return Ok(Compacted::default());
        }
        let stage = self.stage()?;
        let new = stage.join("new");
        fs::create_dir(&new).map_err(Error::io(&new, "make"))?;
        let mut done = merge(&directory, &small, table, &new, &stage, sizes, stop)?;
        done.merged_files = small.len() as u64;
        done.merged_bytes = small.iter().map(|found| found.bytes).sum();
        self.replace(table, date, &small, &new)?;
        Ok(done)
    }

    /// Adds what stays to the new directory, and puts it into the place of the date's.
    fn replace(&self, table: Table, date: Date, merged: &[Found], new: &Path) -> Result<()> {
        let directory = self.directory(table, date);
        let merged: BTreeSet<&str> = merged.iter().map(|found| found.name.as_str()).collect();
        let _lock = self.lock(date)?;
        self.finish_commits_of(date)?;
        let mut seen = 0;
        for found in place::all_files(&directory)? {
            if merged.contains(found.name.as_str()) {
                seen += 1;
                continue;
            }
            let (from, to) = (directory.join(&found.name), new.join(&found.name));
            fs::hard_link(&from, &to).map_err(Error::io(&to, "link to"))?;
        }
        if seen != merged.len() {
            let error = std::io::Error::other("somebody else has removed files of this date");
            return Err(Error::io(directory, "compact")(error));
        }
        self.exchange(new, table, date)
    }
}

/// Makes the files of `new` of small ones.
fn merge(
    directory: &Path,
    small: &[Found],
    table: Table,
    new: &Path,
    stage: &Stage,
    sizes: Sizes,
    stop: &dyn Fn() -> Result<()>,
) -> Result<Compacted> {
    let mut all = Vec::new();
    for found in small {
        stop()?;
        all.append(&mut runs(&directory.join(&found.name), table)?);
    }
    let all = narrow(
        all,
        table,
        |index| stage.join(&format!("merge-{index}")),
        stop,
    )?;
    let mut merge = Merge::open(&all, table)?;
    let expected_rows = merge.all_rows();
    let mut done = Compacted::default();
    let mut out: Option<(PathBuf, TableFile)> = None;
    loop {
        stop()?;
        let (path, file) = match &mut out {
            Some((path, file)) => (path, file),
            None => {
                let path = stage.join(&format!("out-{}", done.files));
                let file = TableFile::create(&path, table)?;
                let (path, file) = out.insert((path, file));
                (path, file)
            }
        };
        let more = merge.write_group(file)?;
        if more && file.bytes() < sizes.full_bytes {
            continue;
        }
        let path = path.clone();
        let Some((_, file)) = out.take() else { break };
        if file.rows() > 0 {
            done.rows += file.rows();
            done.bytes += file.finish()?;
            done.files += 1;
            let name = format!("{MERGED}{}.parquet", digest(&path)?);
            fs::rename(&path, new.join(&name)).map_err(Error::io(new, "rename a file to"))?;
        }
        if !more {
            break;
        }
    }
    match done.rows == expected_rows {
        true => Ok(done),
        false => Err(Error::corrupt(
            directory,
            "rows",
            format!("{} of {expected_rows} were merged", done.rows),
        )),
    }
}

/// SHA-256 of a file, in hexadecimal digits.
fn digest(path: &Path) -> Result<String> {
    let mut file = fs::File::open(path).map_err(Error::io(path, "open"))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer).map_err(Error::io(path, "read"))? {
            0 => return Ok(hex::encode(&hash.finalize())),
            length => hash.update(&buffer[..length]),
        }
    }
}
