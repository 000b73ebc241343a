//! Flags that choose a part of a trace.

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
            files: self.files.clone(),
        }
    }
}
