//! Values of a filter that nothing of a trace fits.

use std::collections::BTreeSet;
use std::fmt;

use iostep_model::table::Trace;

use super::{Filter, Fits, Pattern, fits, is_in_group};

/// So many of what there is are named.
const NAMED: usize = 8;

/// A value that nothing fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// Which value.
    pub value: Value,
    /// What the trace has of this kind: all of it, or the first ones.
    pub there: Vec<String>,
    /// How many more it has.
    pub more: usize,
}

/// A value of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The number of a process or thread.
    Pid(u32),
    /// The name of a program or thread.
    Comm(String),
    /// A control group.
    Cgroup(String),
    /// A file.
    File(String),
    /// No single thread fits all flags about threads, though some fit each.
    Together,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Pid(pid) => write!(f, "--pid {pid}: no process or thread has this number"),
            Value::Comm(name) => write!(f, "--comm {name}: no program or thread is called so"),
            Value::Cgroup(group) => {
                write!(f, "--cgroup {group}: no thread is in such a control group")
            }
            Value::File(file) => write!(f, "--file {file}: no file is called so"),
            Value::Together => {
                f.write_str("--pid, --comm and --cgroup: no thread fits all of them together")
            }
        }
    }
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)?;
        match (&self.value, self.there.is_empty(), self.more) {
            (Value::Together, ..) => Ok(()),
            (_, true, _) => f.write_str("; the trace tells none"),
            (_, false, 0) => write!(f, "; the trace has {}", self.there.join(", ")),
            (_, false, more) => {
                write!(
                    f,
                    "; the trace has {} and {more} more",
                    self.there.join(", ")
                )
            }
        }
    }
}

impl Filter {
    /// The values that no thread or file of `trace` fits, so that no I/O can.
    pub fn unmatched(&self, trace: &Trace) -> Vec<Unmatched> {
        let mut found = self.unmatched_threads(trace);
        let numbers = || 0..trace.files.len() as u32;
        let has_file = |file: &Pattern| {
            let mut all = numbers().flat_map(|number| trace.file_paths(number));
            all.any(|path| fits(file, &path))
        };
        found.extend(told(
            unfit(&self.files, has_file).map(Value::File),
            numbers().map(|number| trace.file_path(number).to_owned()),
        ));
        found
    }

    fn unmatched_threads(&self, trace: &Trace) -> Vec<Unmatched> {
        let rows = || trace.processes.iter();
        let programs = || (0..trace.processes.len() as u32).map(|number| trace.program(number));
        let has_pid = |pid: &&u32| rows().any(|row| row.pid == **pid || row.tgid == **pid);
        let has_comm = |comm: &Pattern| {
            let mut names = rows().map(|row| row.comm.as_str()).chain(programs());
            names.any(|name| comm.matches(name))
        };
        let has_group =
            |group: &Pattern| rows().any(|row| is_in_group(row, std::slice::from_ref(group)));
        let pids = self.pids.iter().filter(|pid| !has_pid(pid));
        let mut found = told(
            pids.map(|pid| Value::Pid(*pid)),
            rows().map(|row| row.tgid.to_string()),
        );
        found.extend(told(
            unfit(&self.comms, has_comm).map(Value::Comm),
            programs().map(str::to_owned),
        ));
        found.extend(told(
            unfit(&self.cgroups, has_group).map(Value::Cgroup),
            rows().filter_map(|row| row.cgroup.clone()),
        ));
        if found.is_empty() && self.is_by_process() {
            let threads = Fits::new(self, trace).threads.unwrap_or_default();
            let none = !threads.contains(&true);
            found.extend(told(
                none.then_some(Value::Together).into_iter(),
                std::iter::empty(),
            ));
        }
        found
    }
}

/// The patterns that nothing fits.
fn unfit(patterns: &[Pattern], is_fit: impl Fn(&Pattern) -> bool) -> impl Iterator<Item = String> {
    let unfit = patterns.iter().filter(move |pattern| !is_fit(pattern));
    unfit.map(Pattern::to_string)
}

/// Values, each with what there is.
fn told(
    values: impl Iterator<Item = Value>,
    there: impl Iterator<Item = String>,
) -> Vec<Unmatched> {
    let values: Vec<Value> = values.collect();
    if values.is_empty() {
        return Vec::new();
    }
    let all: BTreeSet<String> = there.collect();
    let of = |value| Unmatched {
        value,
        more: all.len().saturating_sub(NAMED),
        there: all.iter().take(NAMED).cloned().collect(),
    };
    values.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Pattern;
    use iostep_model::fixture;

    fn pattern(text: &str) -> Vec<Pattern> {
        vec![Pattern::new(text).expect("a pattern")]
    }

    #[test]
    fn a_value_that_nothing_fits_is_told_with_what_there_is() {
        let trace = fixture::sqlite_on_ext4(120);
        let pid = trace.processes[0].pid;
        let filter = Filter {
            pids: vec![pid, 999_999],
            comms: pattern("nobody*"),
            cgroups: pattern("/nobody"),
            files: pattern("*.nothing"),
        };
        let said: Vec<String> = filter
            .unmatched(&trace)
            .iter()
            .map(|u| u.to_string())
            .collect();
        let begins = [
            "--pid 999999: no",
            "--comm nobody*: ",
            "--cgroup /nobody: ",
            "--file *.nothing: ",
        ];
        assert_eq!(said.len(), begins.len(), "{said:?}");
        for (line, begin) in said.iter().zip(begins) {
            assert!(
                line.starts_with(begin) && line.contains("; the trace has "),
                "{line}"
            );
        }
    }

    #[test]
    fn what_fits_is_not_told() {
        let trace = fixture::sqlite_on_ext4(120);
        let filter = Filter {
            pids: vec![trace.processes[0].tgid],
            files: pattern("*-wal"),
            ..Filter::default()
        };
        assert_eq!(filter.unmatched(&trace), []);
        assert_eq!(Filter::default().unmatched(&trace), []);
    }

    #[test]
    fn flags_that_fit_different_threads_only_fit_nothing() {
        let trace = fixture::sqlite_on_ext4(120);
        let other = trace
            .processes
            .iter()
            .enumerate()
            .find(|(number, row)| row.comm != "app" && trace.program(*number as u32) != "app");
        let filter = Filter {
            pids: vec![other.expect("another thread").1.pid],
            comms: pattern("app"),
            ..Filter::default()
        };
        let found = filter.unmatched(&trace);
        assert!(
            matches!(
                &found[..],
                [Unmatched {
                    value: Value::Together,
                    ..
                }]
            ),
            "{found:?}"
        );
    }
}
