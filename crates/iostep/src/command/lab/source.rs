//! Where a lab comes from: its name, a TOML file, or the `lab.json` of a directory of results.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Parser;
use iostep_lab::{Error, Result, builtin, matrix, plan, results};
use iostep_model::lab::{Lab, WorkloadKind};

use crate::command::{bench, replay};

/// Loads a lab.
///
/// Errors: `Usage` for anything wrong in it, with its block and key, and for an unknown name.
pub fn load(name: &str) -> Result<Lab> {
    if let Some(found) = builtin::find(name) {
        let file = PathBuf::from(format!("{name}.toml"));
        return plan::parse(&file, found.text, &check);
    }
    let path = Path::new(name);
    if path
        .extension()
        .is_some_and(|extension| extension == "json")
    {
        return results::read_lab(path);
    }
    plan::parse(path, &read(path)?, &check)
}

fn read(path: &Path) -> Result<String> {
    let bad = |what: String| Error::Usage {
        what: format!("{}: {what}", path.display()),
        hint: "name a built-in lab (iostep lab list), or a lab's TOML file".into(),
    };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| {
            file.take(matrix::MAX_BYTES as u64 + 1)
                .read_to_end(&mut bytes)
        })
        .map_err(|error| bad(format!("cannot read: {error}")))?;
    String::from_utf8(bytes).map_err(|_| bad("not UTF-8".into()))
}

#[derive(Debug, Parser)]
#[command(name = "iostep replay", no_binary_name = true)]
struct ReplayLine {
    #[command(flatten)]
    _args: replay::Args,
}

/// Reads a cell's arguments as the command that it runs reads them.
fn check(kind: WorkloadKind, arguments: &[String]) -> std::result::Result<(), (String, String)> {
    let name = kind.name();
    // Any directory will do: what a cell runs in is made for it.
    match kind {
        // Whoever wrote it knows what it takes.
        WorkloadKind::Command => Ok(()),
        WorkloadKind::Sqlite | WorkloadKind::File => {
            let line = [name.to_owned(), "/".into()];
            bench::check_arguments(&[&line[..], arguments].concat())
        }
        WorkloadKind::Replay => {
            let line = [arguments, &["--to=/".to_owned()]].concat();
            let read = ReplayLine::try_parse_from(line);
            read.map(drop)
                .map_err(|error| bench::complaint(&error, name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lab_that_is_built_in_can_be_read() {
        for lab in builtin::LABS {
            let found = load(lab.name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(found.name, lab.name);
            assert!(!found.cells.is_empty(), "{}", lab.name);
            assert!(!found.analysis.claims.is_empty(), "{}", lab.name);
            let json = serde_json::to_string(&found).expect("JSON");
            let back: Lab = serde_json::from_str(&json).expect("a lab");
            // The order of axes, which no comparison of maps sees.
            assert_eq!(serde_json::to_string(&back).expect("JSON"), json);
        }
    }

    #[test]
    fn a_flag_is_checked_as_on_the_command_line() {
        let refused = |kind, flag: &str| check(kind, &[flag.to_owned()]).expect_err(flag).0;
        let unknown = refused(WorkloadKind::Sqlite, "--depth=4");
        assert_eq!(unknown, "depth: no such flag of sqlite");
        let bad = refused(WorkloadKind::File, "--sync=often");
        assert!(
            bad.starts_with("invalid value 'often' for '--sync <MODE>'"),
            "{bad}"
        );
        let replay = ["a.trace".to_owned(), "--timing=slow".into()];
        assert!(check(WorkloadKind::Replay, &replay).is_err());
        check(
            WorkloadKind::Sqlite,
            &["--journal=wal".into(), "--fsync".into()],
        )
        .expect("flags");
    }

    #[test]
    fn what_is_no_lab_is_bad_usage() {
        for name in ["no-such-lab", "/", "/dev/null"] {
            let error = load(name).expect_err(name);
            assert!(matches!(error, Error::Usage { .. }), "{error}");
        }
    }
}
