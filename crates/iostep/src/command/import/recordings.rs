//! What was recorded: which format it is in, and which files belong to it.

use std::ffi::OsString;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use iostep_calls::input::GUESS_BYTES;
use iostep_trace::blkparse::{self, Device, Format, Recording};

use crate::error::bad_input;
use crate::input::{self, Kind};
use crate::packed::{self, Unpacked};

/// What blktrace puts between a device's name and the number of a CPU.
const OF_BLKTRACE: &str = ".blktrace.";

/// The files of one recording, opened.
pub(super) struct Recordings {
    format: Format,
    files: Vec<(PathBuf, Unpacked)>,
}

/// Opens the files that `paths` name.
///
/// Errors, all of bad usage: one cannot be opened or read, is something else, or several are no
/// files of blktrace.
pub(super) fn open(paths: &[PathBuf]) -> anyhow::Result<Recordings> {
    let paths = files(paths);
    let mut files = Vec::with_capacity(paths.len());
    let mut formats = Vec::with_capacity(paths.len());
    for path in paths {
        if !packed::is_standard_input(&path) && !packed::is_packed(&path) {
            input::expect(&path, &TAKEN)?;
        }
        let whole = packed::open(&path, "iostep import", |file| Box::new(file))?;
        let begun = packed::begin(whole, GUESS_BYTES);
        let begun = begun.with_context(|| format!("{}: cannot read", path.display()));
        let (start, whole) = begun.map_err(bad_input)?;
        formats.push(match input::of_start(&start) {
            Kind::Block(format) => format,
            // Its reader says what is wrong with what is none.
            Kind::Blkparse | Kind::Other | Kind::Damaged => Format::Blkparse,
            kind => return Err(input::unfit(&path, kind)),
        });
        files.push((path, whole));
    }
    let format = formats.first().copied().unwrap_or(Format::Blkparse);
    if files.len() > 1 && formats.iter().any(|format| *format != Format::Blktrace) {
        return Err(bad_input(anyhow!(
            "{} files; only blktrace's files, one for each CPU, are one recording together",
            files.len()
        )));
    }
    Ok(Recordings { format, files })
}

const TAKEN: [Kind; 4] = [
    Kind::Blkparse,
    Kind::Block(Format::Blktrace),
    Kind::Block(Format::Ftrace),
    Kind::Block(Format::Iolog),
];

impl Recordings {
    /// Reads all of it.
    ///
    /// Errors: those of the format.
    pub(super) fn read(self, device: Option<Device>) -> iostep_trace::Result<Recording> {
        let files = self.files.into_iter();
        let files = files.map(|(path, file)| (path, BufReader::new(file)));
        blkparse::read(files, self.format, device)
    }
}

/// The files that are meant: for one of blktrace's, or for the name that they have in common, those
/// of all CPUs.
fn files(paths: &[PathBuf]) -> Vec<PathBuf> {
    let [path] = paths else {
        return paths.to_vec();
    };
    let base = match of_blktrace(path) {
        Some(base) => base,
        None if !path.exists() => path.clone(),
        None => return vec![path.clone()],
    };
    let all = of_cpus(&base);
    match all.is_empty() {
        true => vec![path.clone()],
        false => all,
    }
}

/// What stands before `.blktrace.CPU`.
fn of_blktrace(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let (base, cpu) = name.rsplit_once(OF_BLKTRACE)?;
    let is_number = !cpu.is_empty() && cpu.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| path.with_file_name(base))
}

/// The files of a name's CPUs that there are, in the order of the CPUs.
fn of_cpus(base: &Path) -> Vec<PathBuf> {
    let directory = match base.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let cpu = |name: &OsString| -> Option<u32> {
        let path = base.with_file_name(name);
        if of_blktrace(&path)? != base {
            return None;
        }
        name.to_str()?.rsplit_once('.')?.1.parse().ok()
    };
    let mut files: Vec<(u32, OsString)> =
        names.filter_map(|name| Some((cpu(&name)?, name))).collect();
    files.sort();
    let files = files.into_iter();
    files.map(|(_, name)| base.with_file_name(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_of_blktrace_stands_for_those_of_all_cpus() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        for name in [
            "sda.blktrace.0",
            "sda.blktrace.10",
            "sda.blktrace.2",
            "sdb.blktrace.0",
        ] {
            std::fs::write(at(name), b"").expect("write");
        }
        std::fs::write(at("text"), b"").expect("write");
        let all = ["sda.blktrace.0", "sda.blktrace.2", "sda.blktrace.10"].map(at);
        for given in ["sda", "sda.blktrace.0", "sda.blktrace.2"] {
            assert_eq!(files(&[at(given)]), all, "{given}");
        }
        assert_eq!(files(&[at("text")]), [at("text")]);
        assert_eq!(files(&[at("missing")]), [at("missing")]);
        let two = [at("sda.blktrace.0"), at("sda.blktrace.2")];
        assert_eq!(files(&two), two);
    }
}
