//! `iostep compare`: whether two results of `iostep bench` differ, and by how much.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use iostep_analyze::bench::{Comparison, Gate, Judged, Measure, Passage, Quantile};
use iostep_analyze::report::bench;
use iostep_model::bench::{Document, Step};
use iostep_report::document::Detail;

#[cfg(feature = "trace")]
use super::report;
use crate::error::bad_input;
use crate::input::{self, Kind};
use crate::terminal::{self, say};

/// Tell whether two results of bench differ, and by how much.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep compare before.json after.json
  iostep compare before.json after.json --fail-above 5
  iostep compare before.json after.json --fail-on written,flushes

The first line is the verdict: with --fail-above or --fail-on PASS, FAIL or
CANNOT TELL. Exit status: 0, 1 if the second result is worse than is allowed,
2 if that cannot be told.
docs/compare.md explains when two results differ.")]
pub struct Args {
    /// Result of iostep bench -o, or a trace directory
    first: PathBuf,

    /// The one to compare with it
    second: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Exit with 1 if the second is worse by more than this
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_above: Option<f64>,

    /// What has to be worse for that, by 0 % or --fail-above: written, read, flushes, p50, p99,
    /// throughput
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    fail_on: Vec<FailOn>,
}

/// What can fail a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    /// Bytes that the device wrote for an operation.
    Written,
    /// Bytes that it read.
    Read,
    /// Its flushes.
    Flushes,
    /// The median time of an operation and its sync.
    P50,
    /// The 99th percentile.
    P99,
    /// Operations a second.
    Throughput,
}

impl FailOn {
    fn measure(self) -> Measure {
        match self {
            FailOn::Written => Measure::WrittenPerOperation,
            FailOn::Read => Measure::ReadPerOperation,
            FailOn::Flushes => Measure::FlushesPerOperation,
            FailOn::P50 => Measure::Latency(Step::Total, Quantile::P50),
            FailOn::P99 => Measure::Latency(Step::Total, Quantile::P99),
            FailOn::Throughput => Measure::OperationsPerSecond,
        }
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    let percent = number.parse::<f64>().ok();
    percent
        .filter(|percent| percent.is_finite() && *percent >= 0.0)
        .ok_or_else(|| format!("{text}: expected a percentage of 0 or more"))
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let kinds = [kind(&args.first)?, kind(&args.second)?];
    if kinds.contains(&Kind::Trace) {
        let judges = args.fail_above.is_some() || !args.fail_on.is_empty();
        return match kinds {
            [Kind::Trace, Kind::Trace] if judges => Err(bad_input(anyhow!(
                "--fail-above and --fail-on are for results of iostep bench"
            ))),
            [Kind::Trace, Kind::Trace] => two_traces(args),
            [Kind::Trace, _] => Err(input::unfit(&args.first, Kind::Trace)),
            _ => Err(input::unfit(&args.second, Kind::Trace)),
        };
    }
    let first = Document::read(&args.first)?;
    let second = Document::read(&args.second)?;
    let compared = Comparison::of(&first, &second).map_err(|error| {
        let [first, second] = [&args.first, &args.second].map(|path| path.display());
        bad_input(anyhow::Error::new(error).context(format!("{first} and {second}")))
    })?;
    let gate = gate(args, &compared);
    if args.json {
        let answer = Answer {
            comparison: &compared,
            gate: gate.as_ref(),
        };
        terminal::print_json(&terminal::json(&answer))?;
    } else {
        let names = [&args.first, &args.second].map(|path| path.to_string_lossy());
        let names = [&*names[0], &*names[1]];
        let text = bench::comparison(&compared, gate.as_ref(), names);
        terminal::print(&text.text(Detail::Full, terminal::style()))?;
    }
    gate.map_or(Ok(ExitCode::SUCCESS), |gate| passed(&gate, compared.work))
}

/// What `--json` prints.
#[derive(serde::Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    comparison: &'a Comparison,
    /// Only where something can fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<&'a Gate>,
}

#[cfg(feature = "trace")]
fn two_traces(args: &Args) -> anyhow::Result<ExitCode> {
    report::two(&args.first, &args.second, args.json)
}

/// Errors: that of bad usage, since nothing here reads a trace.
#[cfg(not(feature = "trace"))]
fn two_traces(args: &Args) -> anyhow::Result<ExitCode> {
    Err(bad_input(anyhow!(
        "{}: a trace; iostep-bench compares results of bench, iostep compares traces too",
        args.first.display()
    )))
}

/// What one of the two is.
///
/// Errors: it is none that can be compared, nor a damaged one.
fn kind(path: &Path) -> anyhow::Result<Kind> {
    match input::expect(path, &[Kind::Bench, Kind::Trace])? {
        Kind::Other => Err(bad_input(anyhow!(
            "{}: no result of iostep bench and no trace; name two files that iostep bench -o wrote, \
             or two directories of iostep trace",
            path.display()
        ))),
        kind => Ok(kind),
    }
}

/// The verdict, if one was asked for.
fn gate(args: &Args, compared: &Comparison) -> Option<Gate> {
    let mut measures: Vec<Measure> = args.fail_on.iter().map(|on| on.measure()).collect();
    if measures.is_empty() {
        args.fail_above?;
        measures.push(compared.headline);
    }
    let allowed = args.fail_above.unwrap_or(0.0) / 100.0;
    Some(Gate::of(compared, &measures, allowed))
}

/// The exit status of a verdict. What does not pass is told on standard error too, where a build's
/// log has it.
///
/// Errors: nothing tells.
fn passed(gate: &Gate, work: &str) -> anyhow::Result<ExitCode> {
    for judgement in &gate.judged {
        let label = judgement.measure.label(work);
        match judgement.judged {
            Judged::WorseBy(share) if share > gate.allowed => {
                say!("iostep: {label}: worse by {:.1} %", share * 100.0);
            }
            Judged::WorseBy(_) => {}
            Judged::TooFewRuns(needed) if gate.verdict == Passage::CannotTell => {
                return Err(bad_input(anyhow!(
                    "{label}: too few runs to tell; make {needed} of each with --repeat"
                )));
            }
            Judged::Disturbed if gate.verdict == Passage::CannotTell => {
                return Err(bad_input(anyhow!(
                    "{label}: others used the device meanwhile; stop them, or measure with --on loop"
                )));
            }
            Judged::Missing if gate.verdict == Passage::CannotTell => {
                return Err(bad_input(anyhow!(
                    "{label}: not in both results; name others with --fail-on"
                )));
            }
            Judged::TooFewRuns(_) | Judged::Disturbed | Judged::Missing => {
                say!("iostep: {label}: cannot be told");
            }
        }
    }
    Ok(ExitCode::from(u8::from(gate.verdict == Passage::Fail)))
}
