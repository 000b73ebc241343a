//! Flags that are no part of a job: how it is repeated, and where results go.

use std::path::{Path, PathBuf};

use iostep_load::{Error, Result, environment, sandbox};
use iostep_model::bench::MEASUREMENT;

use crate::terminal;

/// Repetitions at least, and at most if no number is given, until the spread is small enough.
pub const UNTIL_SPREAD_RUNS: (u32, u32) = (3, 30);

/// What a generator is asked beside its job.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments<J: clap::Args> {
    #[command(flatten)]
    pub job: J,

    #[command(flatten)]
    pub measure: MeasureArgs,

    #[command(flatten)]
    pub output: OutputArgs,
}

/// How a job is repeated, and what is counted.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = MEASUREMENT)]
pub struct MeasureArgs {
    /// Count this device too: the external journal of the filesystem
    #[arg(long, value_name = "DEVICE")]
    pub journal_device: Option<PathBuf>,

    /// Where it runs: here, or on a loop device: a filesystem of its own in an image in DIR,
    /// which nobody else uses (root)
    #[arg(long, value_enum, default_value = "here")]
    pub on: On,

    /// Make no system call that this filter kills for
    #[arg(long, value_enum, default_value = "auto")]
    pub sandbox: Sandbox,

    /// How many times to run it [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: Option<u32>,

    /// Repeat, 3 to --repeat times (30), until the spread is under this
    #[arg(long, value_name = "PERCENT", value_parser = bound)]
    until_spread: Option<f64>,
}

/// Whose storage it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum On {
    /// Whoever else uses the directory's device.
    #[default]
    Here,
    /// The job's alone.
    Loop,
}

/// Which filter of system calls is known to be around this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Sandbox {
    /// Android's, in what an Android app started.
    #[default]
    Auto,
    /// None: every call is made.
    None,
    /// That of Android for its apps.
    Android,
}

impl Sandbox {
    /// Keeps this process to what the filter allows.
    ///
    /// Errors: those of [`sandbox::enter`].
    pub fn enter(self) -> Result<()> {
        let is_inside = match self {
            Sandbox::Auto => environment::is_android_app(Path::new("/")),
            Sandbox::None => false,
            Sandbox::Android => true,
        };
        match is_inside {
            true => sandbox::enter(),
            false => Ok(()),
        }
    }
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

/// A percentage that is more than 0, and may be more than 100.
fn bound(text: &str) -> std::result::Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    number
        .parse::<f64>()
        .ok()
        .filter(|percent| percent.is_finite() && *percent > 0.0)
        .ok_or_else(|| format!("{text}: expected a percentage of more than 0"))
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

    /// Say on standard error how far it is, as lines of JSON
    #[arg(long)]
    pub progress: bool,

    /// Write the JSON to this file too
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Bring the result to this server too, if it is complete; iostep submit says what is sent
    #[cfg(feature = "many-devices")]
    #[arg(long, value_name = "URL", requires = "output")]
    pub submit: Option<String>,

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
