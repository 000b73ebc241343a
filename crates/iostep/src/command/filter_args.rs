//! Flags that choose a part of a trace.

use std::str::FromStr;

use iostep_analyze::filter::{Filter, Pattern};

/// What is shown; of several values of a flag one has to fit, and of several flags each.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Part that is shown")]
pub struct FilterArgs {
    /// I/O of this process or thread (may be repeated)
    #[arg(long = "pid", value_name = "PID")]
    pids: Vec<u32>,

    /// I/O of programs or threads called so, as app or 'kworker*' (may be repeated)
    #[arg(long = "comm", value_name = "GLOB")]
    comms: Vec<Pattern>,

    /// I/O of this control group and those below it: path, name or number (may be repeated)
    #[arg(long = "cgroup", value_name = "GLOB", value_parser = cgroup)]
    cgroups: Vec<Pattern>,

    /// Files with this path, or, without a /, this name: '*.db' (may be repeated)
    #[arg(long = "file", value_name = "GLOB")]
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
