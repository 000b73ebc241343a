//! `iostep compare`: whether two results of `iostep bench` differ, and by how much.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use iostep_analyze::bench::Comparison;
use iostep_analyze::report::bench::text::comparison;
use iostep_model::bench::Document;

use super::{bad_input, report};
use crate::input::{self, Kind};
use crate::terminal;

/// Tell whether two results of bench differ, and by how much.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep compare before.json after.json
  iostep compare before.json after.json --fail-above 5

Exit status: 0, or 1 if the second result is worse than --fail-above allows.
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
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    let percent = number.parse::<f64>().ok();
    percent
        .filter(|percent| percent.is_finite() && *percent >= 0.0)
        .ok_or_else(|| format!("{text}: expected a percentage of 0 or more"))
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let taken = [Kind::Bench, Kind::Trace];
    let kinds = [
        input::expect(&args.first, &taken)?,
        input::expect(&args.second, &taken)?,
    ];
    if kinds.contains(&Kind::Trace) {
        return match (kinds, args.fail_above) {
            ([Kind::Trace, Kind::Trace], None) => report::two(&args.first, &args.second, args.json),
            ([Kind::Trace, Kind::Trace], Some(_)) => Err(bad_input(anyhow!(
                "--fail-above is for results of iostep bench"
            ))),
            ([Kind::Trace, _], _) => Err(input::unfit(&args.first, Kind::Trace)),
            _ => Err(input::unfit(&args.second, Kind::Trace)),
        };
    }
    let first = Document::read(&args.first)?;
    let second = Document::read(&args.second)?;
    let compared = Comparison::of(&first, &second);
    if args.json {
        let json =
            serde_json::to_string_pretty(&compared).expect("a comparison has only JSON's types");
        terminal::print(&format!("{json}\n"))?;
    } else {
        let names = [&args.first, &args.second].map(|path| path.to_string_lossy());
        let names = [&*names[0], &*names[1]];
        terminal::print(&comparison::render(&compared, names, terminal::style()))?;
    }
    let worse_percent = compared.worse_by().unwrap_or(0.0) * 100.0;
    let failed = args.fail_above.is_some_and(|bound| worse_percent > bound);
    Ok(ExitCode::from(u8::from(failed)))
}
