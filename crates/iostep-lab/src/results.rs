//! The directory of a lab's results.
//!
//! `lab.json` is the lab, `cells/KEY.json` what came of each cell, written as soon as it is done,
//! `bench/KEY.json` what `iostep bench` said of it, and `cells.parquet` and `classes.parquet` the
//! cells as tables, written at the end (docs/format-lab.md).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use iostep_model::bench::Document;
use iostep_model::directory::lock;
use iostep_model::lab::{Analysis, Cell, CellResult, Lab, State};
use iostep_model::publish;
use iostep_model::store::lab as tables;

use crate::builtin;
use crate::error::{Error, Result};
use crate::matrix::shown;
use crate::measured::Measured;

#[cfg(test)]
mod tests;

/// The lab in a directory of results.
pub const LAB: &str = "lab.json";
const CELLS: &str = "cells";
const BENCH: &str = "bench";
const LOCK: &str = ".iostep-lab-lock";

/// A directory of results, for this process alone.
#[derive(Debug)]
pub struct Results {
    directory: PathBuf,
    lab: Lab,
    _lock: File,
}

impl Results {
    /// Makes the directory, or goes on with one that holds results of the same lab.
    ///
    /// Errors: `Refused` if another process uses it; `Usage` if it holds another lab; `File` for
    /// what cannot be read, also because a newer iostep wrote it; `Io`.
    pub fn open(directory: &Path, lab: &Lab) -> Result<Results> {
        lab.cells
            .iter()
            .try_for_each(|cell| check_key(directory, cell))?;
        let cells = directory.join(CELLS);
        std::fs::create_dir_all(&cells).map_err(Error::io(&cells, "make the directory"))?;
        let lock = lock(&directory.join(LOCK))?.ok_or_else(|| Error::Refused {
            what: format!(
                "{}: another iostep lab puts its results here",
                directory.display()
            ),
            hint: "wait for it, or name another directory".into(),
        })?;
        let path = directory.join(LAB);
        let mut all = lab.clone();
        if path.exists() {
            all = joined(lab, &read_lab(&path)?, directory)?;
            // What cannot be read must not be written over either.
            read_cells(directory, &all)?;
            let asked = lab.cells.len();
            let own: Vec<Cell> = all.cells.split_off(asked);
            let kept = own
                .into_iter()
                .filter(|cell| cell_path(directory, &cell.key).is_file());
            all.cells.extend(kept);
        }
        all.write(&path)?;
        Ok(Results {
            directory: directory.to_owned(),
            lab: all,
            _lock: lock,
        })
    }

    /// The lab with the cells of earlier runs that have a result.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What came of a cell, if it was tried.
    ///
    /// Errors: `File`.
    pub fn get(&self, cell: &Cell) -> Result<Option<CellResult>> {
        read_cell(&self.directory, cell)
    }

    /// Keeps what came of a cell. The answer is the file of what `iostep bench` said, if that is kept.
    ///
    /// Errors: `File`, `Io`.
    pub fn put(&self, measured: &Measured) -> Result<Option<PathBuf>> {
        let result = &measured.result;
        let path = bench_path(&self.directory, &result.cell.key);
        // The cell comes last: one that is done has it.
        match &measured.bench {
            Some(document) => {
                self.make_bench()?;
                document.write(&path)?;
            }
            // Of an earlier time.
            None => remove(&path)?,
        }
        result.write(&cell_path(&self.directory, &result.cell.key))?;
        Ok(measured.bench.is_some().then_some(path))
    }

    fn make_bench(&self) -> Result<()> {
        let bench = self.directory.join(BENCH);
        std::fs::create_dir_all(&bench).map_err(Error::io(&bench, "make the directory"))
    }

    /// Keeps a cell of another directory of results.
    fn take(&self, result: &CellResult, directory: &Path) -> Result<()> {
        let key = &result.cell.key;
        let (from, to) = (bench_path(directory, key), bench_path(&self.directory, key));
        match std::fs::read(&from) {
            Ok(text) => {
                self.make_bench()?;
                publish::write(&to, &text)?;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => remove(&to)?,
            Err(error) => return Err(Error::io(&from, "read")(error)),
        }
        Ok(result.write(&cell_path(&self.directory, key))?)
    }

    /// Writes the tables, and hands out every result in the order of the lab.
    ///
    /// Errors: `File`.
    pub fn finish(&self) -> Result<Vec<CellResult>> {
        let all = read_cells(&self.directory, &self.lab)?;
        tables::write(&self.directory, &self.lab, &all)?;
        Ok(all)
    }
}

/// Reads a directory of results: the lab, and every cell's result in the lab's order.
///
/// Errors: `Usage` for a directory without `lab.json`; `File`.
pub fn read(directory: &Path) -> Result<(Lab, Vec<CellResult>)> {
    let path = directory.join(LAB);
    if !path.is_file() {
        return Err(Error::Usage {
            what: format!("{}: no directory of a lab's results", directory.display()),
            hint: "name one that iostep lab run made".into(),
        });
    }
    let lab = read_lab(&path)?;
    let cells = read_cells(directory, &lab)?;
    Ok((lab, cells))
}

/// The files of what `iostep bench` said, of complete cells in the lab's order.
///
/// Errors: those of [`read`].
pub fn bench_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let (_, cells) = read(directory)?;
    let complete = cells.iter().filter(|it| it.state == State::Complete);
    let files = complete.map(|result| bench_path(directory, &result.cell.key));
    Ok(files.filter(|path| path.is_file()).collect())
}

/// Reads a lab as JSON. One that was written before labs held what they show gets what the
/// built-in lab with its name shows.
///
/// Errors: `File`.
pub fn read_lab(path: &Path) -> Result<Lab> {
    let mut lab = Lab::read(path)?;
    if lab.analysis == Analysis::default() {
        lab.analysis = builtin::analysis(&lab.name);
    }
    Ok(lab)
}

/// Joins directories of results in `into`, which may be one of them or hold results already. Of
/// two results of a cell one that is complete stays.
///
/// Errors: `Usage` for directories of different labs and for two complete results of a cell that
/// differ; those of [`Results::open`] and [`read`]. Nothing is written before all are read.
pub fn merge(directories: &[PathBuf], into: &Path) -> Result<(Lab, Vec<CellResult>)> {
    let mut lab: Option<Lab> = None;
    let mut chosen: BTreeMap<String, (CellResult, &Path)> = BTreeMap::new();
    let present = into.join(LAB).is_file();
    let own = present.then_some(into);
    for directory in directories.iter().map(PathBuf::as_path).chain(own) {
        let (found, cells) = read(directory)?;
        lab = Some(match lab {
            Some(before) => joined(&before, &found, directory)?,
            None => found,
        });
        for result in cells {
            choose(&mut chosen, result, directory)?;
        }
    }
    let lab = lab.ok_or_else(|| Error::Usage {
        what: "nothing to join".into(),
        hint: "name directories of results".into(),
    })?;
    let results = Results::open(into, &lab)?;
    for (result, directory) in chosen.values() {
        results.take(result, directory)?;
    }
    let all = results.finish()?;
    Ok((results.lab.clone(), all))
}

fn choose<'a>(
    chosen: &mut BTreeMap<String, (CellResult, &'a Path)>,
    result: CellResult,
    directory: &'a Path,
) -> Result<()> {
    let key = result.cell.key.clone();
    let Some((other, before)) = chosen.get(&key) else {
        chosen.insert(key, (result, directory));
        return Ok(());
    };
    let both = other.state.is_final() && result.state.is_final();
    if both && *other != result {
        return Err(Error::Usage {
            what: format!(
                "cell {key}: {} and {} hold different results of it",
                before.display(),
                directory.display()
            ),
            hint: "nothing was written; remove the file of one".into(),
        });
    }
    let has_bench = |directory: &Path| bench_path(directory, &key).is_file();
    let has_more = both && !has_bench(before) && has_bench(directory);
    if !other.state.is_final() || has_more {
        chosen.insert(key, (result, directory));
    }
    Ok(())
}

/// `lab` and what `other` has more.
fn joined(lab: &Lab, other: &Lab, directory: &Path) -> Result<Lab> {
    if lab.name != other.name {
        return Err(Error::Usage {
            what: format!(
                "{}: holds results of the lab {}, not of {}",
                directory.display(),
                shown(&other.name),
                shown(&lab.name)
            ),
            hint: "name another directory".into(),
        });
    }
    let mut all = lab.clone();
    let more = other.cells.iter().filter(|cell| {
        let mut own = lab.cells.iter();
        !own.any(|own| own.key == cell.key)
    });
    all.cells.extend(more.cloned());
    Ok(all)
}

pub(crate) fn lab_path(directory: &Path) -> PathBuf {
    directory.join(LAB)
}

fn cell_path(directory: &Path, key: &str) -> PathBuf {
    directory.join(CELLS).join(format!("{key}.json"))
}

fn bench_path(directory: &Path, key: &str) -> PathBuf {
    directory.join(BENCH).join(format!("{key}.json"))
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(path, "remove")(error)),
        _ => Ok(()),
    }
}

/// What a cell left, if it was tried. What `iostep bench` said is none if it cannot be read.
///
/// Errors: `File`.
pub(crate) fn read_measured(directory: &Path, cell: &Cell) -> Result<Option<Measured>> {
    let result = read_cell(directory, cell)?;
    Ok(result.map(|result| Measured {
        result,
        bench: Document::read(&bench_path(directory, &cell.key)).ok(),
    }))
}

/// What came of a cell, if it was tried.
///
/// Errors: `File`.
fn read_cell(directory: &Path, cell: &Cell) -> Result<Option<CellResult>> {
    let path = cell_path(directory, &cell.key);
    if !path.is_file() {
        return Ok(None);
    }
    let mut result = CellResult::read(&path)?;
    if result.cell.key != cell.key {
        let reason = format!("it is of cell {:?}", result.cell.key);
        return Err(iostep_model::Error::corrupt(&path, "key", reason).into());
    }
    // Names of blocks and axes may have changed since.
    result.cell = cell.clone();
    Ok(Some(result))
}

fn read_cells(directory: &Path, lab: &Lab) -> Result<Vec<CellResult>> {
    let found = lab.cells.iter().map(|cell| {
        check_key(directory, cell)?;
        read_cell(directory, cell)
    });
    found.filter_map(Result::transpose).collect()
}

/// A key becomes a file name, and may come from a file that somebody else wrote.
fn check_key(directory: &Path, cell: &Cell) -> Result<()> {
    let key = &cell.key;
    if key.len() == 16 && key.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(());
    }
    let reason = format!("{:?} is no key", shown(key));
    Err(iostep_model::Error::corrupt(directory.join(LAB), "key", reason).into())
}
