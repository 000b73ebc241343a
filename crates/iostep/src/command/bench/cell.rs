//! A cell of a matrix, checked before anything runs: the same types read it that read a command
//! line.

use std::collections::HashMap;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use iostep_load::Error;
use twox_hash::XxHash64;

use super::generator::Generator;
use super::job_file::Cell;

/// Flags that are the matrix's to set, or that are no setting of a job.
const NOT_ALLOWED: [&str; 11] = [
    "json", "csv", "quiet", "verbose", "output", "submit", "html", "seconds", "log", "progress",
    "help",
];

/// A cell that can be run.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Number of the job in its file, from 1.
    pub job: usize,
    /// The job's name.
    pub name: String,
    /// As people read it: the job's name and what varies.
    pub label: String,
    /// Arguments of `iostep bench`.
    pub arguments: Vec<String>,
    /// Name of its files, without the ending.
    stem: String,
}

impl Planned {
    /// The complete result in the directory of results.
    pub fn result(&self) -> PathBuf {
        PathBuf::from(format!("{}.json", self.stem))
    }

    /// A result that is not complete.
    pub fn partial(&self) -> PathBuf {
        PathBuf::from(format!("{}.json.part", self.stem))
    }
}

/// Checks every cell; `file` names the job file in errors.
///
/// Errors: `Usage` with the file, the job and the key.
pub fn plan(file: &str, cells: Vec<Cell>) -> Result<Vec<Planned>, Error> {
    let mut names: HashMap<String, usize> = HashMap::new();
    let mut planned = Vec::with_capacity(cells.len());
    for cell in cells {
        let stem = stem(&cell);
        let bad = |(what, hint): (String, String)| Error::Usage {
            what: format!("{file}: job {} ({}): {what}", cell.job, cell.name),
            hint,
        };
        check(&cell).map_err(bad)?;
        if let Some(other) = names.insert(stem.clone(), cell.job) {
            let what = format!("{}: the same as in job {other}", label(&cell));
            return Err(bad((what, "take one of them out".into())));
        }
        planned.push(Planned {
            label: label(&cell),
            job: cell.job,
            name: cell.name,
            arguments: cell.arguments,
            stem,
        });
    }
    Ok(planned)
}

/// What is wrong with a cell, and what would be right.
fn check(cell: &Cell) -> Result<(), (String, String)> {
    let flag = |argument: &String| {
        let name = argument.strip_prefix("--")?;
        Some(
            name.split_once('=')
                .map_or(name, |(name, _)| name)
                .to_owned(),
        )
    };
    for name in cell.arguments.iter().filter_map(flag) {
        if NOT_ALLOWED.contains(&name.as_str()) {
            let what = format!("{name}: no setting of a job");
            return Err((what, "the results go to --results".into()));
        }
    }
    check_arguments(&cell.arguments)
}

/// Reads the arguments behind `iostep bench` as a command line: what is wrong with them, and what
/// would be right.
pub(in crate::command) fn check_arguments(arguments: &[String]) -> Result<(), (String, String)> {
    let workload = arguments.first().map_or("", String::as_str);
    let generator = Generator::parse(arguments).map_err(|error| complaint(&error, workload))?;
    let job = generator.job().and(generator.measure().repetition());
    match job {
        Ok(_) => Ok(()),
        Err(Error::Usage { what, hint } | Error::Unsupported { what, hint }) => Err((what, hint)),
        Err(other) => Err((other.to_string(), "correct the job".into())),
    }
}

/// What a command line's parser says, in one line that names the key.
pub(in crate::command) fn complaint(error: &clap::Error, workload: &str) -> (String, String) {
    let line = error.to_string();
    let line = line.lines().next().unwrap_or_default();
    let what = line.strip_prefix("error: ").unwrap_or(line).to_owned();
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(argument))) => {
            let key = argument.trim_start_matches('-');
            let hint = format!("see the help of {workload}");
            (format!("{key}: no such flag of {workload}"), hint)
        }
        _ => (what, "correct the value".to_owned()),
    }
}

fn label(cell: &Cell) -> String {
    let varied = cell
        .varied
        .iter()
        .map(|(key, value)| format!(" {key}={value}"));
    std::iter::once(cell.name.clone()).chain(varied).collect()
}

/// The job's name, and a hash of its arguments in an order that does not depend on the file's.
fn stem(cell: &Cell) -> String {
    let (place, flags) = cell.arguments.split_at(2);
    let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    flags.sort_unstable();
    let all = [place.join("\0"), flags.join("\0")].join("\0");
    format!(
        "{}-{:016x}",
        cell.name,
        XxHash64::oneshot(0, all.as_bytes())
    )
}

#[cfg(test)]
mod tests {
    use super::super::job_file;
    use super::*;

    fn planned(text: &str) -> Result<Vec<Planned>, Error> {
        plan("j.toml", job_file::cells("j.toml", text)?)
    }

    fn refused(rest: &str) -> String {
        let text = format!("[[job]]\nname='x'\nworkload='file'\ntarget='/'\n{rest}");
        let error = planned(&text).expect_err(rest);
        assert!(matches!(error, Error::Usage { .. }), "{error}");
        error.to_string()
    }

    #[test]
    fn every_value_is_checked_as_on_the_command_line() {
        for (rest, expected) in [
            ("sink = 1", "j.toml: job 1 (x): sink: no such flag of file"),
            (
                "journal = 'wal'",
                "j.toml: job 1 (x): journal: no such flag of file",
            ),
            (
                "shared = 'yes'",
                "j.toml: job 1 (x): unexpected value 'yes' for '--shared'",
            ),
            (
                "size = true",
                "j.toml: job 1 (x): a value is required for '--size <SIZE>'",
            ),
            ("time = 0", "j.toml: job 1 (x): --time 0"),
            (
                "help = true",
                "j.toml: job 1 (x): help: no setting of a job",
            ),
            (
                "output = 'f'",
                "j.toml: job 1 (x): output: no setting of a job",
            ),
            ("target = '/nowhere'", "j.toml: line 5: duplicate key"),
        ] {
            let error = refused(rest);
            assert!(error.starts_with(expected), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_result_keeps_its_name_when_keys_move() {
        let name = |text: &str| planned(text).expect("a job file").remove(0).result();
        let before = name("[[job]]\nworkload='file'\ntarget='/'\nsync='fsync'\nsize='1M'");
        let after =
            name("[defaults]\nsize='1M'\n[[job]]\ntarget='/'\nsync='fsync'\nworkload='file'");
        let other = name("[[job]]\nworkload='file'\ntarget='/'\nsync='fsync'\nsize='2M'");
        assert_eq!(before, after);
        assert_ne!(before, other);
    }

    #[test]
    fn a_cell_that_is_there_twice_is_refused() {
        assert!(refused("seed = [1, 2, 1]").contains("seed=1: the same as in job 1"));
    }
}
