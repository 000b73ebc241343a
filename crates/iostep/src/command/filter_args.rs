//! Flags that choose a part of a trace.

mod living;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::str::FromStr;

use anyhow::anyhow;
use clap::builder::{OsStringValueParser, TypedValueParser};
use iostep_analyze::filter::{Filter, Pattern, Unmatched, Value};
use iostep_model::printable::path_text;
use iostep_model::table::Trace;

use crate::error::bad_input;

/// What is shown; of several values of a flag one has to fit, and of several flags each.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Part that is shown")]
pub struct FilterArgs {
    /// I/O of this process or thread (may be repeated)
    #[arg(long = "pid", value_name = "PID")]
    pids: Vec<u32>,

    /// I/O of programs or threads called so, as app or 'kworker*' (may be repeated)
    #[arg(long = "comm", value_name = "GLOB", value_parser = name())]
    comms: Vec<Pattern>,

    /// I/O of this control group and those below it: path, name or number (may be repeated)
    #[arg(long = "cgroup", value_name = "GLOB", value_parser = cgroup)]
    cgroups: Vec<Pattern>,

    /// Files with this path, or, without a /, this name: '*.db' (may be repeated)
    #[arg(long = "file", value_name = "GLOB", value_parser = name())]
    files: Vec<Pattern>,
}

impl FilterArgs {
    /// What they choose.
    pub fn filter(&self) -> Filter {
        Filter {
            pids: self.pids.clone(),
            comms: self.comms.clone(),
            cgroups: self.cgroups.clone(),
            files: self.files.clone(),
        }
    }
}

impl FilterArgs {
    /// Every value, as what it is about.
    fn values(&self) -> Vec<Value> {
        let words = |patterns: &[Pattern], value: fn(String) -> Value| -> Vec<Value> {
            let words = patterns.iter().map(Pattern::to_string);
            words.map(value).collect()
        };
        let pids = self.pids.iter().map(|pid| Value::Pid(*pid));
        pids.chain(words(&self.comms, Value::Comm))
            .chain(words(&self.cgroups, Value::Cgroup))
            .chain(words(&self.files, Value::File))
            .collect()
    }

    /// The values that something on this machine fits now.
    pub fn living(&self) -> Vec<Value> {
        let is_here = |value: &Value| living::has(value);
        self.values().into_iter().filter(is_here).collect()
    }

    /// Errors: no process or thread has this number now.
    pub fn check_process(pid: u32) -> anyhow::Result<()> {
        let pid = Value::Pid(pid);
        match living::has(&pid) {
            true => Ok(()),
            false => Err(FilterArgs::no_process(&pid)),
        }
    }

    fn no_process(pid: &Value) -> anyhow::Error {
        bad_input(anyhow!("{pid} on this machine; see ps -e"))
    }

    /// Errors: a process that is not among `living`. Of anything else there may be one later.
    pub fn check_processes(&self, living: &[Value]) -> anyhow::Result<()> {
        let mut pids = self.pids.iter().map(|pid| Value::Pid(*pid));
        match pids.find(|pid| !living.contains(pid)) {
            Some(pid) => Err(FilterArgs::no_process(&pid)),
            None => Ok(()),
        }
    }

    /// The part of a trace that they choose.
    ///
    /// Errors: a value that nothing in it fits.
    pub fn part(&self, trace: Trace) -> anyhow::Result<Trace> {
        FilterArgs::refuse(self.unmatched(&trace, None), &[])?;
        Ok(self.filter().apply(trace))
    }

    /// The values that nothing in a trace fits; of those that nothing in others did, if there are
    /// any: what fits one of two traces is worth comparing.
    pub fn unmatched(&self, trace: &Trace, before: Option<Vec<Unmatched>>) -> Vec<Unmatched> {
        let here = self.filter().unmatched(trace);
        let Some(mut before) = before else {
            return here;
        };
        before.retain(|found| here.iter().any(|other| other.value == found.value));
        before
    }

    /// Errors: a value that nothing fits, nor did, as `living` says, while it was traced.
    pub fn refuse(unmatched: Vec<Unmatched>, living: &[Value]) -> anyhow::Result<()> {
        let mut unmatched = unmatched.into_iter();
        match unmatched.find(|found| !living.contains(&found.value)) {
            None => Ok(()),
            Some(found) => Err(bad_input(anyhow!("{found}"))),
        }
    }
}

/// Names that are no text: as they are, or as a trace has them.
fn name() -> impl TypedValueParser<Value = Pattern> {
    let pattern = |name: OsString| match name.to_str() {
        Some(text) => text.parse::<Pattern>(),
        None => path_text(name.as_bytes()).parse(),
    };
    OsStringValueParser::new().try_map(pattern)
}

/// Where the hierarchy of version 2 is mounted, the last beside one of version 1.
const CGROUP_MOUNTS: [&str; 2] = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

/// A path may be that of the group's directory.
fn cgroup(text: &str) -> Result<Pattern, <Pattern as FromStr>::Err> {
    let below = CGROUP_MOUNTS.iter().find_map(|mount| {
        let path = text.strip_prefix(mount)?;
        (path.is_empty() || path.starts_with('/')).then_some(path)
    });
    let path = below.unwrap_or(text);
    match path.trim_end_matches('/') {
        "" if below.is_some() || path.starts_with('/') => "/",
        path => path,
    }
    .parse()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_group_may_be_named_by_its_directory() {
        for (text, expected) in [
            ("/sys/fs/cgroup/a.slice/b.scope/", "/a.slice/b.scope"),
            ("/sys/fs/cgroup/unified/a.slice", "/a.slice"),
            ("/sys/fs/cgroup", "/"),
            ("/", "/"),
            ("/a.slice", "/a.slice"),
            ("b.scope", "b.scope"),
            ("/sys/fs/cgroups/a", "/sys/fs/cgroups/a"),
        ] {
            assert_eq!(
                cgroup(text).expect("a pattern").as_str(),
                expected,
                "{text}"
            );
        }
        assert!(cgroup("[").is_err());
    }
}
