//! Flags that every workload has: how it is measured, and where results go.

use std::path::PathBuf;

use iostep_load::{Error, Result};
use iostep_model::bench::{Limits, Pace};
use iostep_model::units;

use super::value::{self, CpuList, Rate};
use crate::terminal;

/// Repetitions at least, and at most if no number is given, until the spread is small enough.
pub const UNTIL_SPREAD_RUNS: (u32, u32) = (3, 30);

/// How a workload is run and repeated.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Measurement")]
pub struct MeasureArgs {
    /// Run for this long, starting over as needed: 10, 500ms, 2m
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    time: Option<u64>,

    /// Do not count what happens before this time
    #[arg(long, value_name = "DURATION", default_value = "0",
          value_parser = units::parse_duration_ns)]
    ramp: u64,

    /// Issue this many operations a second, or bytes: 500, 4MiB/s
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,

    /// Pause of a thread after each operation
    #[arg(long, value_name = "DURATION", default_value = "0",
          value_parser = units::parse_duration_ns)]
    think: u64,

    /// Pin the threads to these CPUs in turn: 0-3,6
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuList>,

    /// Seed of offsets, keys and payload
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Read everything back at the end and compare
    #[arg(long)]
    pub verify: bool,

    /// Use what an earlier run left with --keep, if it fits
    #[arg(long)]
    pub reuse: bool,

    /// Leave the files or databases behind
    #[arg(long)]
    pub keep: bool,

    /// Count this device too: the external journal of the filesystem
    #[arg(long, value_name = "DEVICE")]
    pub journal_device: Option<PathBuf>,

    /// How many times to run it [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: Option<u32>,

    /// Repeat, 3 to --repeat times (30), until the spread is under this
    #[arg(long, value_name = "PERCENT", value_parser = value::bound)]
    until_spread: Option<f64>,
}

/// How often a workload is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repetition {
    /// At least so often.
    pub least: u32,
    /// At most so often.
    pub most: u32,
    /// In between, until half the confidence interval is less than this share of the median.
    pub spread_bound: Option<f64>,
}

impl MeasureArgs {
    /// When the run ends.
    ///
    /// Errors: `Usage` for a time of nothing.
    pub fn limits(&self) -> Result<Limits> {
        if self.time == Some(0) {
            return Err(usage("--time 0: nothing would be measured", "name a time"));
        }
        Ok(Limits {
            time_ns: self.time,
            ramp_ns: self.ramp,
        })
    }

    /// How fast it goes, with operations of `record_bytes` if they have a length.
    ///
    /// Errors: `Usage` for a rate in bytes of operations that have no length.
    pub fn pace(&self, record_bytes: Option<u64>) -> Result<Pace> {
        let operations_per_second = match (self.rate, record_bytes) {
            (Some(Rate::Bytes(_)), None) => {
                return Err(usage(
                    "--rate in bytes: a transaction has no length",
                    "name transactions a second, as 500",
                ));
            }
            (Some(Rate::Bytes(rate)), Some(record)) => Some(rate as f64 / record.max(1) as f64),
            (Some(Rate::Operations(rate)), _) => Some(rate),
            (None, _) => None,
        };
        Ok(Pace {
            operations_per_second,
            think_ns: self.think,
        })
    }

    /// CPUs that the threads are pinned to.
    pub fn cpus(&self) -> Vec<u32> {
        self.cpus.clone().unwrap_or_default().0
    }

    /// How often it is run.
    ///
    /// Errors: `Usage` if a spread could never be computed.
    pub fn repetition(&self) -> Result<Repetition> {
        let Some(percent) = self.until_spread else {
            let runs = self.repeat.unwrap_or(1);
            return Ok(Repetition {
                least: runs,
                most: runs,
                spread_bound: None,
            });
        };
        let (least, most) = UNTIL_SPREAD_RUNS;
        let most = self.repeat.unwrap_or(most);
        if most < least {
            return Err(usage(
                format!("--repeat {most} with --until-spread: too few to know a spread"),
                format!("allow {least} or more"),
            ));
        }
        Ok(Repetition {
            least,
            most,
            spread_bound: Some(percent / 100.0),
        })
    }
}

/// Where results go.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Print JSON: what was asked, every run, and the summary
    #[arg(long, conflicts_with_all = ["csv", "quiet"])]
    pub json: bool,

    /// Print the summary as CSV
    #[arg(long, conflicts_with = "quiet")]
    pub csv: bool,

    /// Print nothing on standard output
    #[arg(short, long)]
    pub quiet: bool,

    /// Print every setting of SQLite too
    #[arg(long, conflicts_with_all = ["json", "csv", "quiet"])]
    pub verbose: bool,

    /// Write the JSON to this file too
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Write the result as one HTML page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Write what was done in each second to this file, as CSV
    #[arg(long, value_name = "FILE")]
    pub seconds: Option<PathBuf>,

    /// Write every single operation to this file, as CSV
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

impl OutputArgs {
    /// Every file that will be written.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let files = [&self.output, &self.html, &self.seconds, &self.log];
        files.into_iter().flatten()
    }

    /// Errors: those of [`terminal::check_results`].
    pub fn check(&self) -> Result<()> {
        terminal::check_results(self.json || self.csv, self.files())
    }
}

/// Something that makes no sense, and what would.
pub fn usage(what: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::Usage {
        what: what.into(),
        hint: hint.into(),
    }
}
