//! Job files: TOML whose keys are the long flags, and whose lists are crossed.
//!
//! ```toml
//! [defaults]
//! workload = "file"
//! target = "/mnt"
//!
//! [[job]]
//! name = "sync"
//! access = ["write", "random-write"]
//! sync = ["fsync", "fdatasync"]
//! ```
//!
//! What a key means is not known here: a cell is the arguments of `iostep bench`, and these are
//! read by whoever reads a command line.

use iostep_lab::matrix::{self, Blocks, Problem, check_name, shown};
use iostep_load::Error;
use toml::Table;

/// One combination of the values of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Number of its job in the file, from 1.
    pub job: usize,
    /// The job's name.
    pub name: String,
    /// `file` or `sqlite`, the target, then one argument for each key.
    pub arguments: Vec<String>,
    /// Those of the keys that are lists: key and value.
    pub varied: Vec<(String, String)>,
}

/// The cells of a job file, in its order; the last list of a job varies fastest. `file` names the
/// text in errors.
///
/// Errors: `Usage` with the file, the job and the key.
pub fn cells(file: &str, text: &str) -> Result<Vec<Cell>, Error> {
    let bad = |(what, hint): Problem| Error::Usage {
        what: format!("{file}: {what}"),
        hint: hint.into(),
    };
    let Blocks { blocks, rest } = matrix::blocks(text, "job").map_err(bad)?;
    if let Some(key) = rest.keys().next() {
        let hint = "keys stand in [[job]] or [defaults]";
        return Err(bad((format!("{}: no such table", shown(key)), hint)));
    }
    let mut cells = Vec::new();
    for (number, job) in (1..).zip(blocks) {
        let made = job_cells(number, job, matrix::MAX_CELLS - cells.len());
        cells.extend(made.map_err(|(what, hint)| bad((format!("job {number}: {what}"), hint)))?);
    }
    Ok(cells)
}

/// Every combination of a job, at most `room`.
fn job_cells(number: usize, mut job: Table, room: usize) -> Result<Vec<Cell>, Problem> {
    let name = matrix::take_text(&mut job, "name")?;
    let workload = matrix::take_text(&mut job, "workload")?.unwrap_or_default();
    let target = matrix::take_text(&mut job, "target")?;
    if !matches!(workload.as_str(), "file" | "sqlite") {
        let what = format!("workload: {:?}", shown(&workload));
        return Err((what, "write workload = \"file\" or \"sqlite\""));
    }
    let target = target.ok_or(("target: missing".into(), "name a directory"))?;
    if target.is_empty() || target.starts_with('-') {
        let what = format!("target: {:?} is no path", shown(&target));
        return Err((what, "name a directory"));
    }
    let name = name.unwrap_or_else(|| format!("{workload}-{number}"));
    check_name(&name)?;
    let cell = |chosen: Vec<matrix::Choice>| Cell {
        job: number,
        name: name.clone(),
        arguments: [workload.clone(), target.clone()]
            .into_iter()
            .chain(chosen.iter().filter_map(|choice| choice.argument.clone()))
            .collect(),
        varied: chosen
            .into_iter()
            .filter(|choice| choice.varies)
            .map(|choice| (choice.key, choice.text))
            .collect(),
    };
    let all = matrix::combinations(job, room)?;
    Ok(all.into_iter().map(cell).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(text: &str) -> Vec<String> {
        let cells = cells("jobs.toml", text).expect("a job file");
        cells.iter().map(|cell| cell.arguments.join(" ")).collect()
    }

    fn refused(text: &str) -> String {
        cells("jobs.toml", text).expect_err(text).to_string()
    }

    #[test]
    fn lists_are_crossed_and_the_last_one_varies_fastest() {
        let text = r#"
            [defaults]
            workload = "file"
            target = "/mnt"
            size = "1MiB"
            [[job]]
            sync = ["fsync", "fdatasync"]
            record = [4096, "8k"]
            size = "2MiB"
            shared = true
            verify = false
        "#;
        let expected = [
            ("fsync", "4096"),
            ("fsync", "8k"),
            ("fdatasync", "4096"),
            ("fdatasync", "8k"),
        ]
        .map(|(sync, record)| {
            format!("file /mnt --size=2MiB --sync={sync} --record={record} --shared")
        });
        assert_eq!(arguments(text), expected);
        let last = cells("jobs.toml", text).expect("cells").remove(3);
        let varied = [("sync", "fdatasync"), ("record", "8k")];
        assert_eq!(
            last.varied,
            varied.map(|(k, v)| (k.to_owned(), v.to_owned()))
        );
        assert_eq!((last.job, last.name.as_str()), (1, "file-1"));
    }

    #[test]
    fn a_flag_may_be_given_and_not_given_and_numbers_may_be_negative() {
        let text = r#"
            [[job]]
            workload = "sqlite"
            target = "d"
            fsync = [false, true]
            cache-size = -2000
            overlap = 0.5
        "#;
        let rest = "--cache-size=-2000 --overlap=0.5";
        let expected = [
            format!("sqlite d {rest}"),
            format!("sqlite d --fsync {rest}"),
        ];
        assert_eq!(arguments(text), expected);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_file_job_and_key() {
        let job = |rest: &str| format!("[[job]]\nworkload='file'\ntarget='/'\n{rest}");
        for (text, expected) in [
            ("".to_owned(), "jobs.toml: no job"),
            ("job = 3".into(), "jobs.toml: no job"),
            ("[[job]]\n[[".into(), "jobs.toml: line 2: "),
            (
                "defaults = 1\n[[job]]".into(),
                "jobs.toml: defaults: no table",
            ),
            (
                "[[job]]\nworkload='tape'".into(),
                "jobs.toml: job 1: workload: \"tape\"",
            ),
            (
                "[[job]]\nworkload='file'".into(),
                "jobs.toml: job 1: target: missing",
            ),
            (
                job("target2=1\n[[job]]\nname=1"),
                "jobs.toml: job 1: target2",
            ),
            (job("[[job]]\nname=1"), "jobs.toml: job 2: name: no text"),
            (job("name='../x'"), "jobs.toml: job 1: name: \"../x\""),
            (
                job("'size=1'=true"),
                "jobs.toml: job 1: size=1: no name of a flag",
            ),
            (job("size=[]"), "jobs.toml: job 1: size: an empty list"),
            (job("size=[[1]]"), "jobs.toml: job 1: size: no text, number"),
            (
                job("size=1979-05-27"),
                "jobs.toml: job 1: size: no text, number",
            ),
            (
                job("size=\"a\\u0000\""),
                "jobs.toml: job 1: size: a zero byte",
            ),
            (job("[other]"), "jobs.toml: other: no such table"),
        ] {
            if expected.ends_with("target2") {
                assert_eq!(arguments(&job("target2=1")), ["file / --target2=1"]);
                continue;
            }
            let error = refused(&text);
            assert!(error.starts_with(expected), "{text}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_matrix_that_never_ends_is_refused_before_it_is_made() {
        let list = format!("[{}]", vec!["1"; 100].join(","));
        let keys: Vec<String> = (0..30).map(|n| format!("k{n} = {list}")).collect();
        let text = format!("[[job]]\nworkload='file'\ntarget='/'\n{}", keys.join("\n"));
        assert!(refused(&text).contains("more than 100000 cells"));
        let job = format!("[[job]]\nworkload='file'\ntarget='/'\na={list}\nb={list}\n");
        assert_eq!(
            cells("", &job.repeat(10)).expect("the limit").len(),
            matrix::MAX_CELLS
        );
        assert!(refused(&job.repeat(11)).contains("job 11: more than 100000 cells"));
        assert!(refused(&"#".repeat(matrix::MAX_BYTES + 1)).contains("longer than"));
    }
}
