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

use iostep_load::Error;
use toml::{Table, Value};

/// More cells than anybody waits for.
pub const MAX_CELLS: usize = 100_000;
/// More text than anybody writes by hand.
pub const MAX_BYTES: usize = 1 << 20;
const MAX_NAME: usize = 64;

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
    let bad = |what: String, hint: &str| Error::Usage {
        what: format!("{file}: {what}"),
        hint: hint.into(),
    };
    if text.len() > MAX_BYTES {
        return Err(bad(
            format!("longer than {MAX_BYTES} bytes"),
            "a job file is written by hand",
        ));
    }
    let mut tables: Table = text
        .parse()
        .map_err(|error: toml::de::Error| bad(first_line(&error, text), "correct the TOML"))?;
    let defaults = match tables.remove("defaults") {
        None => Table::new(),
        Some(Value::Table(table)) => table,
        Some(_) => return Err(bad("defaults: no table".into(), "write [defaults]")),
    };
    let jobs = match tables.remove("job") {
        Some(Value::Array(jobs)) if !jobs.is_empty() => jobs,
        _ => return Err(bad("no job".into(), "write at least one [[job]]")),
    };
    if let Some(key) = tables.keys().next() {
        let hint = "keys stand in [[job]] or [defaults]";
        return Err(bad(format!("{}: no such table", shown(key)), hint));
    }
    let mut cells = Vec::new();
    for (number, job) in (1..).zip(jobs) {
        let Value::Table(job) = job else {
            return Err(bad(format!("job {number}: no table"), "write [[job]]"));
        };
        let room = MAX_CELLS - cells.len();
        let made = Job::new(number, &defaults, job).and_then(|job| job.cells(room));
        cells.extend(made.map_err(|(what, hint)| bad(format!("job {number}: {what}"), hint))?);
    }
    Ok(cells)
}

/// What is wrong, and what would be right.
type Problem = (String, &'static str);

/// A job with its defaults.
struct Job {
    number: usize,
    name: String,
    workload: String,
    target: String,
    keys: Vec<Key>,
}

/// A key with the arguments that its values make.
struct Key {
    name: String,
    /// As shown, and as the argument; `None` for a flag that is not given.
    values: Vec<(String, Option<String>)>,
    is_list: bool,
}

impl Job {
    fn new(number: usize, defaults: &Table, job: Table) -> Result<Job, Problem> {
        let mut all = defaults.clone();
        // A key of the job takes the place that its default has.
        all.extend(job);
        let mut take = |key: &'static str| match all.remove(key) {
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err((format!("{key}: no text"), "write it in quotes")),
            None => Ok(None),
        };
        let (name, workload, target) = (take("name")?, take("workload")?, take("target")?);
        let workload = workload.unwrap_or_default();
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
        Ok(Job {
            number,
            name,
            workload,
            target,
            keys: all
                .into_iter()
                .map(|(name, value)| Key::new(name, value))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Every combination, at most `room`.
    fn cells(&self, room: usize) -> Result<Vec<Cell>, Problem> {
        let count = self
            .keys
            .iter()
            .try_fold(1usize, |count, key| count.checked_mul(key.values.len()))
            .filter(|count| *count <= room)
            .ok_or_else(|| {
                let what = format!("more than {MAX_CELLS} cells with those before");
                (what, "shorten a list, or split the file")
            })?;
        Ok((0..count).map(|number| self.cell(number)).collect())
    }

    /// The combination with this number, whose digits are positions in the lists.
    fn cell(&self, mut number: usize) -> Cell {
        let mut chosen: Vec<_> = self
            .keys
            .iter()
            .rev()
            .map(|key| {
                let position = number % key.values.len();
                number /= key.values.len();
                (key, &key.values[position])
            })
            .collect();
        chosen.reverse();
        let arguments = chosen
            .iter()
            .filter_map(|(_, (_, argument))| argument.clone());
        let varied = chosen.iter().filter(|(key, _)| key.is_list);
        Cell {
            job: self.number,
            name: self.name.clone(),
            arguments: [self.workload.clone(), self.target.clone()]
                .into_iter()
                .chain(arguments)
                .collect(),
            varied: varied
                .map(|(key, (text, _))| (key.name.clone(), text.clone()))
                .collect(),
        }
    }
}

impl Key {
    fn new(name: String, value: Value) -> Result<Key, Problem> {
        let is_flag = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !is_flag {
            let what = format!("{}: no name of a flag", shown(&name));
            return Err((what, "write the long flag without its dashes"));
        }
        let (values, is_list) = match value {
            Value::Array(values) => (values, true),
            value => (vec![value], false),
        };
        if values.is_empty() {
            return Err((format!("{name}: an empty list"), "give it a value"));
        }
        let values = values.iter().map(|value| argument(&name, value));
        let values = values.collect::<Result<_, _>>()?;
        Ok(Key {
            name,
            values,
            is_list,
        })
    }
}

/// A value as shown, and as the argument that it makes.
fn argument(key: &str, value: &Value) -> Result<(String, Option<String>), Problem> {
    let text = match value {
        Value::Boolean(given) => {
            return Ok((given.to_string(), given.then(|| format!("--{key}"))));
        }
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => {
            let what = format!("{key}: no text, number, true or false");
            return Err((what, "write one of these, or a list of them"));
        }
    };
    if text.contains('\0') {
        return Err((format!("{key}: a zero byte"), "take it out"));
    }
    let argument = format!("--{key}={text}");
    Ok((text, Some(argument)))
}

/// The name becomes part of file names.
fn check_name(name: &str) -> Result<(), Problem> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_plain = name.chars().all(allowed) && !name.starts_with(['.', '-']);
    if is_plain && (1..=MAX_NAME).contains(&name.len()) {
        return Ok(());
    }
    let what = format!("name: {:?} cannot be part of a file name", shown(name));
    Err((what, "use up to 64 letters, digits, and - _ . inside"))
}

/// The beginning of a text from outside, without what moves a terminal.
fn shown(text: &str) -> String {
    let plain = text.chars().filter(|c| !c.is_control());
    plain.take(MAX_NAME).collect()
}

/// The parser's reason with the line, without the picture of the place.
fn first_line(error: &toml::de::Error, text: &str) -> String {
    let reason = error.message().lines().next().unwrap_or_default();
    let Some(span) = error.span() else {
        return shown(reason);
    };
    let before = text.as_bytes().get(..span.start).unwrap_or_default();
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    format!("line {line}: {}", shown(reason))
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
            MAX_CELLS
        );
        assert!(refused(&job.repeat(11)).contains("job 11: more than 100000 cells"));
        assert!(refused(&"#".repeat(MAX_BYTES + 1)).contains("longer than"));
    }
}
